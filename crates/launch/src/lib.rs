//! Starting a job: the embedded `mpiexec`, the PMI server and clients, and hang reports.
//!
//! Two sides meet here. The *library side*, used by every rank, is [`pmi::client`] (how ranks find
//! each other under this or any other launcher) and [`control`] (how a rank tells `mpiexec`
//! what it waits for). The *launcher side* is [`mpiexec`]: one process, one epoll loop, no threads.
//! What both must agree on is in modules without I/O: [`pmi::line`] and [`report`].
pub mod address;
pub mod asked;
pub mod control;
pub mod crowd;
pub mod graph;
pub mod image;
pub mod links;
pub mod look;
pub mod meeting;
pub mod mpiexec;
pub mod pmi;
mod program;
pub mod report;
pub mod sys;
pub mod text;
