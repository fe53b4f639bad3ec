//! The `tern` command: what this installation is and can do, and how fast it is.
#![forbid(unsafe_code)]

mod bench;
mod chart;
mod chosen;
mod collective;
mod doctor;
mod epoch;
mod explain;
mod info;
mod options;
mod sim;
mod verbs;

use std::process::ExitCode;

const HELP: &str = "\
usage: tern COMMAND [OPTIONS]

  info     version, devices and every setting with its value, default and origin
  doctor   what this host, others and a program lack, and the command that mends it
  bench    measure this MPI and others side by side
  explain  which way a message, a collective or an epoch of a window would take, what each would cost, and why
  sim      run programs on modelled clusters; reproduce the papers
  verbs    run a program that is written to verbs on the software RDMA adapter

`tern COMMAND --help` explains the options of a command.";

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1).collect()) {
        Ok(code) => code,
        Err(text) => {
            eprintln!("tern: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Vec<std::ffi::OsString>) -> Result<ExitCode, String> {
    if arguments.is_empty() {
        return Err(format!("no command given\n{HELP}"));
    }
    let command = arguments.remove(0);
    // The others write to programs that they start.
    if !matches!(command.to_str(), Some("doctor" | "bench" | "verbs")) {
        launch::sys::signal::end_when_unread();
    }
    let done = match command.to_str() {
        Some("doctor") => return doctor::run(arguments),
        Some("info") => info::run(arguments),
        Some("bench") => bench::run(arguments),
        Some("explain") => explain::run(arguments),
        Some("sim") => sim::run(arguments),
        Some("verbs") => verbs::run(arguments),
        Some("-h" | "--help" | "help") => {
            println!("{HELP}");
            Ok(())
        }
        Some("-V" | "--version") => {
            println!("tern {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        _ => Err(format!("unknown command {}\n{HELP}", command.display())),
    };
    done.map(|()| ExitCode::SUCCESS)
}
