//! Tells when memory of this process goes away, so that no registration outlives its pages.
//!
//! The kernel itself tells, by events of userfaultfd: whatever unmaps, moves or empties memory
//! that is watched, be it the application, the allocator, or the C library calling itself, where no replaced function and
//! no preloaded library would see it. The call that takes the memory away does not return before the
//! event has been read; so whoever may map this address anew has been preceded by the news.
//!
//! [`Monitor::start`] proves that on this machine before anybody relies on it. Where userfaultfd is
//! not permitted there is no monitor, and registrations must end with the transfer that needs
//! them: docs/protocols/registration-cache.md says why nothing else will do.
//!
//! [`Frames`] is a look of another kind, for a mode that verifies each use: whether the same physical memory is still there.

mod extent;
mod frames;
mod monitor;
mod news;
mod sys;
mod trial;

pub use frames::Frames;
pub use monitor::{Monitor, describe};
