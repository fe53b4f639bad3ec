//! MPI 5.0 section 15.3, the tool information interface.
//!
//! Its functions may be called before MPI_Init and after MPI_Finalize, and return their errors.

pub mod category;
pub mod control;
pub mod event;
pub mod variable;

use fabric::settings::Settings;
use mpi::error::{Result, fail};
use mpi::tools::class;

use crate::cx::Cx;
use crate::global::{self, thread};
use crate::kind::output::Out;

/// `MPI_T_BIND_NO_OBJECT`.
const BIND_NO_OBJECT: i32 = 1;
/// `MPI_T_VERBOSITY_USER_BASIC`: what says why a job is slow.
const USER_BASIC: i32 = 0x09;
/// `MPI_T_VERBOSITY_TUNER_BASIC`: what may be tuned.
const TUNER_BASIC: i32 = 0x11;
/// `MPI_T_VERBOSITY_TUNER_DETAIL`: how adapters are used.
const TUNER_DETAIL: i32 = 0x12;

/// `MPI_T_init_thread`. The interface is as safe for threads as MPI is, whose rank it looks at:
/// a level asked for before MPI_Init is kept there (MPI 5.0 section 15.3.4 allows the influence).
pub fn init_thread(cx: &Cx, required: i32, provided: Out<i32>) -> Result {
    let Some(level) = thread::granted(required) else {
        return fail(class::INVALID, format!("{required} is not a level of thread support"));
    };
    let mut objects = cx.objects();
    objects.tools.init(Settings::from_env)?;
    provided.set(if global::is_active() {
        global::thread_level()
    } else {
        objects.tools.promise(level);
        level
    });
    Ok(())
}

/// `MPI_T_finalize`.
pub fn finalize(cx: &Cx) -> Result {
    cx.objects().tools.finalize();
    Ok(())
}
