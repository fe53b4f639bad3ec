//! `tern sim`: the library on modelled clusters in virtual time.

mod figure;
mod lab;
mod programs;
mod reproduce;
mod run;

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};

const HELP: &str = "\
usage: tern sim reproduce [--out DIR] [--list] [--short] [PAPER ...]
       tern sim run PROGRAM [OPTIONS]

  reproduce   runs the experiments of the papers on their platforms (all, or those named) and
              prints paper / Tern / difference; writes the table and figures to DIR (build/sim);
              --short: the papers, and what of the oracle takes little time
  run         runs one of the built-in programs on a cluster; --help explains its options";

/// Runs `tern sim`.
pub fn run(mut arguments: Vec<OsString>) -> Result<(), String> {
    if arguments.is_empty() {
        return Err(format!("no simulation named\n{HELP}"));
    }
    let what = arguments.remove(0);
    match what.to_str() {
        Some("reproduce") => reproduce(arguments),
        Some("run") => run::run(arguments),
        Some("-h" | "--help" | "help") => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(format!(
            "{}\n{HELP}",
            unknown("simulation", &what.display().to_string(), ["reproduce", "run"].into_iter())
        )),
    }
}

fn reproduce(arguments: Vec<OsString>) -> Result<(), String> {
    let (mut names, mut out, mut short) = (Vec::new(), PathBuf::from("build/sim"), false);
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(text)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => {
                println!("{HELP}");
                return Ok(());
            }
            Arg::Long("out") => out = parser.value().map_err(text)?.into(),
            Arg::Long("short") => short = true,
            Arg::Long("list") => {
                reproduce::STUDIES.iter().for_each(|(name, about, _)| println!("{name:<8} {about}"));
                return Ok(());
            }
            Arg::Value(name) => names.push(name.string().map_err(text)?),
            other => return Err(format!("{}\n{HELP}", other.unexpected())),
        }
    }
    reproduce::run(&names, short, &out)
}

fn text(error: lexopt::Error) -> String {
    error.to_string()
}

/// Says that a name is unknown, and which known one is nearest.
fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = sim::nearest(name, known);
    format!("unknown {kind} `{name}`; the nearest known one is `{near}`")
}
