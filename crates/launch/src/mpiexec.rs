//! The launcher.
//!
//! On one host `mpiexec` starts the ranks itself ([`hands`]), each in a process group of its own, with two socket pairs
//! (PMI-1 and the control channel) and two pipes (its output). On several, an [`agent`] on each does that, and is
//! told so over a connection. Everything after that is one epoll loop in [`job`]. Three things see to it that nothing is left behind: the launcher is the
//! subreaper of all descendants, every rank dies with it ([`crate::sys::process::prepare`]), and
//! the [`guard`] ends what remains if the launcher itself is killed.
pub mod agent;
mod agents;
pub mod arguments;
pub mod bind;
mod callers;
mod channels;
mod death;
mod files;
pub mod foreign;
pub mod guard;
mod hands;
mod hang;
pub mod hello;
pub mod help;
pub mod hosts;
pub mod job;
mod link;
pub mod message;
pub mod options;
pub mod output;
pub mod placement;
mod places;
mod reach;
mod spawn;
mod spread;
pub mod start;
mod strangers;
mod streams;
pub mod task;
mod token;
pub mod values;

use crate::sys::signal;
use arguments::Request;
use std::ffi::OsString;
use std::io::Write;

/// Runs `mpiexec` with these arguments (without the program's own name); returns its exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    signal::reset_ignored();
    // What one mpiexec says to another on the far end of a launcher: no option of a user.
    if arguments == ["--agent"] {
        return agent::run();
    }
    match arguments::parse(arguments) {
        Ok(Request::Run(mut plan)) => {
            if let Err(why) = plan.heed(std::env::var_os(arguments::TIMEOUT)) {
                return fail(why.into());
            }
            plan.warnings.iter().for_each(|warning| complain(&format!("warning: {warning}")));
            job::Job::start(*plan).map_or_else(fail, job::Job::run)
        }
        Ok(Request::Help) => print(&help::text()),
        Ok(Request::Version) => print(concat!("mpiexec (Tern) ", env!("CARGO_PKG_VERSION"), "\n")),
        Err(why) => fail(why.into()),
    }
}

/// Says why nothing was started.
fn fail(refusal: start::Refusal) -> u8 {
    complain(&refusal.text);
    refusal.code
}

fn complain(text: &str) {
    // Where nobody takes the message the exit code says all that can be said.
    let _ = writeln!(std::io::stderr(), "mpiexec: {text}");
}

fn print(text: &str) -> u8 {
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_or_else(|error| fail(format!("standard output: {error}").into()), |()| 0)
}
