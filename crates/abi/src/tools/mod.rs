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
use crate::global::thread;
use crate::kind::output::Out;

/// `MPI_T_BIND_NO_OBJECT`.
const BIND_NO_OBJECT: i32 = 1;
/// `MPI_T_VERBOSITY_USER_BASIC`: what says why a job is slow.
const USER_BASIC: i32 = 0x09;
/// `MPI_T_VERBOSITY_TUNER_BASIC`: what may be tuned.
const TUNER_BASIC: i32 = 0x11;
/// `MPI_T_VERBOSITY_TUNER_DETAIL`: how adapters are used.
const TUNER_DETAIL: i32 = 0x12;

/// `MPI_T_init_thread`. The interface is safe for threads at every level, whatever MPI was or will be
/// initialised with: it touches the rank as the thread that makes progress does, while nobody is inside.
pub fn init_thread(cx: &Cx, required: i32, provided: Out<i32>) -> Result {
    let Some(level) = thread::granted(required) else {
        return fail(class::INVALID, format!("{required} is not a level of thread support"));
    };
    cx.anytime().tools.init(Settings::from_env)?;
    provided.set(level);
    Ok(())
}

/// `MPI_T_finalize`.
pub fn finalize(cx: &Cx) -> Result {
    cx.anytime().tools.finalize();
    Ok(())
}
