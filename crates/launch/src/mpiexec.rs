//! The launcher of one host.
//!
//! `mpiexec` starts the ranks itself, each in a process group of its own, with two socket pairs
//! (PMI-1 and the control channel) and two pipes (its output). Everything after that is one epoll
//! loop in [`job`]. Three things see to it that nothing is left behind: the launcher is the
//! subreaper of all descendants, every rank dies with it ([`crate::sys::process::prepare`]), and
//! the [`guard`] ends what remains if the launcher itself is killed.
pub mod arguments;
pub mod bind;
mod channels;
mod death;
pub mod guard;
mod hang;
pub mod help;
pub mod job;
pub mod look;
pub mod output;
mod places;
pub mod start;
mod streams;

use arguments::Request;
use std::ffi::OsString;

/// Runs `mpiexec` with these arguments (without the program's own name); returns its exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let plan = match arguments::parse(arguments) {
        Ok(Request::Run(plan)) => plan,
        Ok(Request::Help) => {
            print!("{}", help::text());
            return 0;
        }
        Ok(Request::Version) => {
            println!("mpiexec (Tern) {}", env!("CARGO_PKG_VERSION"));
            return 0;
        }
        Err(why) => return fail(why.into()),
    };
    job::Job::start(plan).map_or_else(fail, job::Job::run)
}

/// Says why nothing was started.
fn fail(refusal: start::Refusal) -> u8 {
    eprintln!("mpiexec: {}", refusal.text);
    refusal.code
}
