//! MPI 5.0, chapter 12 One-sided communication.

use crate::kind::handle::{Comm, Datatype, Group, InfoOrNull, MaybeDatatype, Op, Win, WinOrNull, WinRef};
use crate::kind::output::{
    AintOut, DispUnitOut, FlagOut, GroupOut, InfoOut, IntOut, PtrOut, RequestOut, WinOut,
};
use crate::kind::scalar::{
    Addr, AddrIn, Aint, AintSize, AnyRank, Assert, BufIn, BufOut, Count, Dest, DispUnit, LockType,
};
use crate::kind::text::{StrIn, StrOut};
use crate::table::rows;

rows! { "12 One-sided communication";
    MPI_Accumulate(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Op, win: Win) large quick
        => crate::win::operate::accumulate;
    MPI_Compare_and_swap(origin_addr: BufIn, compare_addr: AddrIn, result_addr: BufOut,
        datatype: Datatype, target_rank: Dest, target_disp: Aint, win: Win) quick
        => crate::win::operate::compare_and_swap;
    MPI_Fetch_and_op(origin_addr: BufIn, result_addr: BufOut, datatype: Datatype, target_rank: Dest,
        target_disp: Aint, op: Op, win: Win) quick => crate::win::operate::fetch_and_op;
    MPI_Get(origin_addr: BufOut, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win) large quick
        => crate::win::operate::get;
    MPI_Get_accumulate(origin_addr: BufIn, origin_count: Count, origin_datatype: MaybeDatatype,
        result_addr: BufOut, result_count: Count, result_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Op, win: Win) large quick
        => crate::win::operate::get_accumulate;
    MPI_Put(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win) large quick
        => crate::win::operate::put;
    MPI_Raccumulate(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Op, win: Win,
        request: RequestOut) large => crate::win::operate::raccumulate;
    MPI_Rget(origin_addr: BufOut, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win, request: RequestOut) large quick
        => crate::win::operate::rget;
    MPI_Rget_accumulate(origin_addr: BufIn, origin_count: Count, origin_datatype: MaybeDatatype,
        result_addr: BufOut, result_count: Count, result_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, op: Op, win: Win,
        request: RequestOut) large => crate::win::operate::rget_accumulate;
    MPI_Rput(origin_addr: BufIn, origin_count: Count, origin_datatype: Datatype, target_rank: Dest,
        target_disp: Aint, target_count: Count, target_datatype: Datatype, win: Win, request: RequestOut) large quick
        => crate::win::operate::rput;
    MPI_Win_allocate(size: AintSize, disp_unit: DispUnit, info: InfoOrNull, comm: Comm, baseptr: PtrOut,
        win: WinOut) large => crate::win::allocate;
    MPI_Win_allocate_shared(size: AintSize, disp_unit: DispUnit, info: InfoOrNull, comm: Comm,
        baseptr: PtrOut, win: WinOut) large => crate::win::allocate_shared;
    MPI_Win_attach(win: Win, base: Addr, size: AintSize) => crate::win::attach;
    MPI_Win_complete(win: Win) quick => mpi::win::sync::complete;
    MPI_Win_create(base: Addr, size: AintSize, disp_unit: DispUnit, info: InfoOrNull, comm: Comm,
        win: WinOut) large => crate::win::create;
    MPI_Win_create_dynamic(info: InfoOrNull, comm: Comm, win: WinOut) => crate::win::create_dynamic;
    MPI_Win_detach(win: Win, base: AddrIn) => crate::win::detach;
    MPI_Win_fence(assert: Assert, win: Win) quick => mpi::win::sync::fence;
    MPI_Win_flush(rank: AnyRank, win: Win) quick => mpi::win::sync::flush;
    MPI_Win_flush_all(win: Win) quick => mpi::win::sync::flush_all;
    MPI_Win_flush_local(rank: AnyRank, win: Win) quick => mpi::win::sync::flush_local;
    MPI_Win_flush_local_all(win: Win) quick => mpi::win::sync::flush_local_all;
    MPI_Win_free(win: WinRef) => crate::win::free;
    MPI_Win_get_group(win: Win, group: GroupOut) => crate::win::get_group;
    MPI_Win_get_info(win: Win, info_used: InfoOut) => crate::win::get_info;
    MPI_Win_get_name(win: WinOrNull, win_name: StrOut, resultlen: IntOut) => crate::win::get_name;
    MPI_Win_lock(lock_type: LockType, rank: AnyRank, assert: Assert, win: Win) quick => mpi::win::sync::lock;
    MPI_Win_lock_all(assert: Assert, win: Win) quick => mpi::win::sync::lock_all;
    MPI_Win_post(group: Group, assert: Assert, win: Win) quick => mpi::win::sync::post;
    MPI_Win_set_info(win: Win, info: InfoOrNull) => crate::win::set_info;
    MPI_Win_set_name(win: Win, win_name: StrIn) => crate::win::set_name;
    MPI_Win_shared_query(win: Win, rank: AnyRank, size: AintOut, disp_unit: DispUnitOut, baseptr: PtrOut) large
        => crate::win::shared_query;
    MPI_Win_start(group: Group, assert: Assert, win: Win) quick => mpi::win::sync::start;
    MPI_Win_sync(win: Win) => mpi::win::sync::sync;
    MPI_Win_test(win: Win, flag: FlagOut) => crate::win::caller::test;
    MPI_Win_unlock(rank: AnyRank, win: Win) quick => mpi::win::sync::unlock;
    MPI_Win_unlock_all(win: Win) quick => mpi::win::sync::unlock_all;
    MPI_Win_wait(win: Win) quick => mpi::win::sync::wait;
}
