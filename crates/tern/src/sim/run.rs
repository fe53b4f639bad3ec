//! `tern sim run`: one of the built-in programs on a modelled cluster.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use proto::{EagerBy, Protocol};
use sim::{Cluster, Job, Setup};

use super::programs::{PROGRAMS, Program};
use super::unknown;
use crate::chart::short;
use crate::options::{Known, Value, set};

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

/// What the command line says.
#[derive(Default)]
struct Typed {
    program: Option<String>,
    cluster: Option<String>,
    ranks: Option<usize>,
    spread: bool,
    len: Option<usize>,
    protocol: Option<Protocol>,
    eager_by: EagerBy,
    seed: u64,
    trace: Option<PathBuf>,
    list: bool,
}

const KNOWN: Known<Typed> = Known {
    flags: &[("--spread", |typed| &mut typed.spread), ("--list", |typed| &mut typed.list)],
    setters: &[
        ("--cluster", |typed, value| set(&mut typed.cluster, value.text().map(Some))),
        ("-n", ranks),
        ("--ranks", ranks),
        ("--bytes", |typed, value| set(&mut typed.len, bytes(&value).map(Some))),
        ("--protocol", protocol),
        ("--seed", |typed, value| set(&mut typed.seed, value.number(0..=u64::MAX))),
        ("--trace", |typed, value| set(&mut typed.trace, Ok(Some(value.path())))),
    ],
    word: Some(|typed| &mut typed.program),
    help: HELP,
};

/// What is to be run.
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
    let mut typed = Typed::default();
    if !KNOWN.read(arguments, &mut typed)? {
        println!("{HELP}");
        return Ok(None);
    }
    if typed.list {
        PROGRAMS.iter().for_each(|program| println!("{:<10} {}", program.name, program.about));
        println!("\nclusters: {}", sim::cluster::names().collect::<Vec<_>>().join(", "));
        return Ok(None);
    }
    let name = typed.program.ok_or_else(|| format!("no program named\n{HELP}"))?;
    let known = || PROGRAMS.iter().map(|program| program.name);
    let program = PROGRAMS.iter().find(|program| program.name == name);
    let program = program.ok_or_else(|| unknown("program", &name, known()))?;
    let cluster = Cluster::find(typed.cluster.as_deref().unwrap_or("graphene"))?;
    Ok(Some(Options {
        program,
        cluster: if typed.spread { super::lab::spread(&cluster) } else { cluster },
        ranks: typed.ranks.unwrap_or(2),
        len: typed.len.unwrap_or(program.len),
        protocol: typed.protocol,
        eager_by: typed.eager_by,
        seed: typed.seed,
        trace: typed.trace,
    }))
}

fn ranks(typed: &mut Typed, value: Value) -> Result<(), String> {
    set(&mut typed.ranks, value.number(0..=usize::MAX).map(Some))
}

fn protocol(typed: &mut Typed, value: Value) -> Result<(), String> {
    let name = value.text()?;
    let eager = EagerBy::ALL.iter().map(|(_, name)| *name);
    let known = eager.chain(Protocol::ALL.iter().map(|(_, name)| *name));
    if !known.clone().any(|known| known == name) {
        return Err(unknown("protocol", &name, known));
    }
    (typed.protocol, typed.eager_by) = (Protocol::named(&name), EagerBy::named(&name));
    Ok(())
}

/// A length with or without a unit.
fn bytes(value: &Value) -> Result<usize, String> {
    let read = |text: &str| fabric::settings::parse_bytes(text).filter(|len| *len <= 1 << 30);
    Ok(value.read("such as 8, 64K or 1M, at most 1024M", read)? as usize)
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
        let read = |text: &str| parse(["halo", "--bytes", text].map(OsString::from).to_vec());
        for (text, len) in [("8", 8), ("64K", 64 << 10), ("1M", 1 << 20)] {
            assert_eq!(read(text).unwrap().unwrap().len, len);
        }
        for text in ["9999999M", "-1", ""] {
            assert!(error(&["halo", "--bytes", text]).contains("at most 1024M"), "{text}");
        }
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
