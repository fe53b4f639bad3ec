//! `tern sim run`: one of the built-in programs on a modelled cluster.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use lexopt::{Arg, Parser, ValueExt};
use proto::{EagerBy, Protocol};
use sim::{Cluster, Job, Setup};

use super::programs::{PROGRAMS, Program};
use super::{text, unknown};
use crate::chart::short;

const HELP: &str = "\
usage: tern sim run PROGRAM [OPTIONS]

Runs a program on a modelled cluster in virtual time and shows what it measured.

  --cluster NAME     a cluster of Tern's, or a file with a / or ending in .toml (graphene)
  --ranks N          number of ranks (2)
  --spread           one rank per host
  --bytes LEN        length of the messages, such as 8, 64K or 1M
  --protocol NAME    the protocol of all long messages, or eager-copy or eager-zero-copy of short ones
  --seed S           from what chance follows (0)
  --trace FILE       draws the run for Perfetto
  --list             the programs and clusters there are";

/// Slices of a trace.
const TRACE_LIMIT: usize = 1_000_000;

struct Options {
    program: &'static Program,
    cluster: Cluster,
    ranks: usize,
    len: usize,
    protocol: Option<Protocol>,
    eager_by: EagerBy,
    seed: u64,
    trace: Option<PathBuf>,
}

/// Runs `tern sim run`.
pub fn run(arguments: Vec<OsString>) -> Result<(), String> {
    let Some(options) = parse(arguments)? else { return Ok(()) };
    let mut setup = Setup::default();
    setup.limits.force = options.protocol;
    setup.limits.eager_by = options.eager_by;
    let mut job = Job::new(&options.cluster, options.ranks).seed(options.seed);
    if options.trace.is_some() {
        job = job.trace(TRACE_LIMIT);
    }
    let (body, len) = (options.program.body, options.len);
    let start = Instant::now();
    let mut report = job.program(&setup, move |rank| body(rank, len))?;
    let real = start.elapsed().as_secs_f64();
    if let Some(file) = &options.trace {
        let trace = report.trace.take().ok_or("no trace was drawn")?;
        std::fs::write(file, trace.json()).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let (end_ns, hash, counters) = (report.end_ns, report.trace_hash, report.counters);
    let results = report.all()?;
    println!(
        "{} on {}, {} ranks, {len} bytes, seed {}",
        options.program.name, options.cluster.name, options.ranks, options.seed
    );
    for (rank, result) in results.into_iter().enumerate() {
        let measured = result.map_err(|error| format!("rank {rank}: {}", error.text))?;
        // All ranks of a symmetric program measure much the same.
        for (what, ns) in measured.iter().filter(|_| rank == 0) {
            println!("  {what:<12} {} µs", short(ns / 1000.0));
        }
    }
    println!("  virtual time {} ms, hash {hash:016x}", short(end_ns as f64 / 1e6));
    println!(
        "  {} messages on the wire, {} bytes, {} registrations; {} s real time, {} million messages/s",
        counters.messages(),
        counters.bytes,
        counters.registered,
        short(real),
        short(counters.messages() as f64 / real / 1e6)
    );
    Ok(())
}

fn parse(arguments: Vec<OsString>) -> Result<Option<Options>, String> {
    let (mut name, mut cluster, mut ranks, mut spread, mut len) =
        (None, "graphene".to_string(), 2, false, None);
    let (mut protocol, mut eager_by, mut seed, mut trace) = (None, EagerBy::Choice, 0, None);
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(text)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => {
                println!("{HELP}");
                return Ok(None);
            }
            Arg::Long("list") => {
                PROGRAMS.iter().for_each(|program| println!("{:<10} {}", program.name, program.about));
                println!("\nclusters: {}", sim::cluster::names().collect::<Vec<_>>().join(", "));
                return Ok(None);
            }
            Arg::Long("cluster") => cluster = parser.value().and_then(ValueExt::string).map_err(text)?,
            Arg::Short('n') | Arg::Long("ranks") => {
                ranks = parser.value().and_then(|v| v.parse()).map_err(text)?
            }
            Arg::Long("spread") => spread = true,
            Arg::Long("bytes") => {
                len = Some(bytes(&parser.value().and_then(ValueExt::string).map_err(text)?)?)
            }
            Arg::Long("protocol") => {
                let name = parser.value().and_then(ValueExt::string).map_err(text)?;
                let eager = EagerBy::ALL.iter().map(|(_, name)| *name);
                let known = eager.chain(Protocol::ALL.iter().map(|(_, name)| *name));
                if !known.clone().any(|known| known == name) {
                    return Err(unknown("protocol", &name, known));
                }
                (protocol, eager_by) = (Protocol::named(&name), EagerBy::named(&name));
            }
            Arg::Long("seed") => seed = parser.value().and_then(|v| v.parse()).map_err(text)?,
            Arg::Long("trace") => trace = Some(parser.value().map_err(text)?.into()),
            Arg::Value(value) if name.is_none() => name = Some(value.string().map_err(text)?),
            other => return Err(format!("{}\n{HELP}", other.unexpected())),
        }
    }
    let name = name.ok_or_else(|| format!("no program named\n{HELP}"))?;
    let known = || PROGRAMS.iter().map(|program| program.name);
    let program = PROGRAMS.iter().find(|program| program.name == name);
    let program = program.ok_or_else(|| unknown("program", &name, known()))?;
    let cluster = Cluster::find(&cluster)?;
    let cluster = if spread { super::lab::spread(&cluster) } else { cluster };
    Ok(Some(Options {
        program,
        cluster,
        ranks,
        len: len.unwrap_or(program.len),
        protocol,
        eager_by,
        seed,
        trace,
    }))
}

/// A length with or without a unit.
fn bytes(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix(['M', 'm']) {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    let number: usize =
        digits.parse().map_err(|_| format!("--bytes {text}: must be such as 8, 64K or 1M"))?;
    number.checked_mul(unit).filter(|len| *len <= 1 << 30).ok_or(format!("--bytes {text}: at most 1024M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(arguments: &[&str]) -> String {
        parse(arguments.iter().map(OsString::from).collect()).err().expect("wrong arguments")
    }

    #[test]
    fn unknown_names_get_the_nearest() {
        assert_eq!(error(&["pingpon"]), "unknown program `pingpon`; the nearest known one is `pingpong`");
        let text = error(&["halo", "--protocol", "rgett"]);
        assert_eq!(text, "unknown protocol `rgett`; the nearest known one is `rget`");
        let text = error(&["halo", "--cluster", "lioncup"]);
        assert_eq!(text, "unknown cluster `lioncup`; the nearest known one is `lioncub`");
        assert!(error(&["halo", "--bytes", "x"]).contains("--bytes x"));
        assert!(error(&[]).starts_with("no program named"));
    }

    #[test]
    fn lengths_have_units() {
        assert_eq!([bytes("8"), bytes("64K"), bytes("1M")], [Ok(8), Ok(65536), Ok(1 << 20)]);
        assert!(bytes("9999999M").is_err() && bytes("-1").is_err());
    }

    #[test]
    fn every_program_runs() {
        let cluster = Cluster::find("graphene").unwrap();
        for program in PROGRAMS {
            let (body, len) = (program.body, program.len);
            let report =
                Job::new(&cluster, 6).program(&Setup::default(), move |rank| body(rank, len)).unwrap();
            let results = report.all().unwrap();
            let measured =
                results[0].as_ref().unwrap_or_else(|error| panic!("{}: {}", program.name, error.text));
            assert!(measured.iter().all(|(_, ns)| *ns > 0.0) && !measured.is_empty(), "{}", program.name);
        }
    }
}
