//! Jobs on modelled clusters, in virtual time. One program: the simulator is compiled once for it.

mod choice;
mod epochs;
mod faults;
mod levels;
mod pipelines;
mod programs;
#[path = "../support/mod.rs"]
mod support;
mod times;
mod traces;
mod windows;
