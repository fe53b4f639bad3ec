//! MPI 5.0, chapter 9 Environmental management.

use crate::kind::handle::{Comm, InfoOrNull};
use crate::kind::output::{FlagOut, InfoOut, IntOut, PtrOut, ThreadLevelOut};
use crate::kind::scalar::{Addr, AintSize, Int, ThreadLevel};
use crate::kind::text::{Argc, Argv, StrOut};
use crate::table::{plain_rows, rows};

rows! { "9 Environmental management";
    MPI_Abort(comm: Comm, errorcode: Int) => crate::start::abort;
    MPI_Alloc_mem(size: AintSize, info: InfoOrNull, baseptr: PtrOut) => crate::env::alloc_mem;
    MPI_Finalize() => crate::start::finalize;
    MPI_Finalized(flag: FlagOut) anytime => crate::env::finalized;
    MPI_Free_mem(base: Addr) => crate::env::free_mem;
    MPI_Get_hw_resource_info(hw_info: InfoOut) anytime => crate::env::get_hw_resource_info;
    MPI_Get_library_version(version: StrOut, resultlen: IntOut) anytime => crate::env::get_library_version;
    MPI_Get_processor_name(name: StrOut, resultlen: IntOut) => crate::env::get_processor_name;
    MPI_Get_version(version: IntOut, subversion: IntOut) anytime => crate::env::get_version;
    MPI_Init(argc: Argc, argv: Argv) anytime => crate::start::init;
    MPI_Init_thread(argc: Argc, argv: Argv, required: ThreadLevel, provided: ThreadLevelOut) anytime => crate::start::init_thread;
    MPI_Initialized(flag: FlagOut) anytime => crate::env::initialized;
    MPI_Is_thread_main(flag: FlagOut) => crate::env::is_thread_main;
    MPI_Pcontrol(level: Int) anytime variadic => crate::env::pcontrol;
    MPI_Query_thread(provided: ThreadLevelOut) => crate::env::query_thread;
}

plain_rows! { "9 Environmental management";
    MPI_Wtick() -> "double" as f64 => crate::env::wtick;
    MPI_Wtime() -> "double" as f64 => crate::env::wtime;
}
