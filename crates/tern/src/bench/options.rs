//! The command line of `tern bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::{Arg, Parser, ValueExt};

/// Help text.
pub const HELP: &str = "\
usage: tern bench [OPTIONS]

Compiles the benchmark programs for every MPI library found (Tern, those in PATH, those installed
with --install-peers), runs them interleaved, prints medians and ratios, and writes results.md,
results.json and plots.

  --quick              fewer sizes, shorter runs, 2 rounds
  --rounds N           number of rounds (5)
  --seconds S          time to spend on one point (0.2; quick 0.05)
  --only CASE[,CASE]   these cases only; --list names them
  --list               the cases, and what each shows
  --hosts A,B          between hosts, as many ranks on each; `namespaces` makes two network
                       namespaces on this machine (root, iproute2), `namespaces:8` eight
  --mtu BYTES          MTU of their cables (1500)
  --transports LIST    Tern once more with each of these as TERN_TRANSPORT: rc, rd, ud, hybrid
  --pool               one table over all states of the machine, however different
  --peer NAME=PREFIX   another library, with mpicc and mpiexec in PREFIX or PREFIX/bin
  --tern PREFIX        where Tern is, if not beside this command
  --install-peers      install MPICH, Open MPI and Intel MPI from PyPI into BUILD/peers first
  --build BUILD        directory for what is built and installed (build)
  --out DIR            directory for the results (BUILD/bench)
  --source DIR         directory of the benchmark sources";

/// What the user asked for.
#[derive(Debug)]
pub struct Options {
    /// Fewer sizes and shorter runs.
    pub quick: bool,
    /// Number of rounds.
    pub rounds: usize,
    /// Time per point, if not the default.
    pub seconds: Option<f64>,
    /// Names of the cases to run; all if empty.
    pub only: Vec<String>,
    /// Only list the cases.
    pub list: bool,
    /// Hosts to measure between.
    pub hosts: Option<String>,
    /// MTU of the cable between namespaces.
    pub mtu: u32,
    /// Transports with which Tern is measured besides its own choice.
    pub transports: Vec<String>,
    /// Do not keep readings apart by the state of the machine.
    pub pool: bool,
    /// Further libraries: name and prefix.
    pub peers: Vec<(String, PathBuf)>,
    /// Where Tern is.
    pub tern: Option<PathBuf>,
    /// Install the peers first.
    pub install_peers: bool,
    /// Directory for what is built and installed.
    pub build: PathBuf,
    /// Directory for the results.
    pub out: PathBuf,
    /// Directory of the benchmark sources, if not found by itself.
    pub source: Option<PathBuf>,
    /// The command as typed, for the record.
    pub command_line: String,
}

impl Options {
    /// Reads the command line; nothing if help was asked for.
    pub fn parse(arguments: Vec<OsString>) -> Result<Option<Options>, String> {
        let typed: Vec<String> = arguments.iter().map(|a| a.display().to_string()).collect();
        let mut options = Options::defaults(format!("tern bench {}", typed.join(" ")).trim_end().to_string());
        let (mut rounds, mut out) = (None, None);
        let mut parser = Parser::from_args(arguments);
        while let Some(argument) = parser.next().map_err(text)? {
            match argument {
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Long("quick") => options.quick = true,
                Arg::Long("rounds") => rounds = Some(parser.value().and_then(|v| v.parse()).map_err(text)?),
                Arg::Long("seconds") => {
                    options.seconds = Some(parser.value().and_then(|v| v.parse()).map_err(text)?)
                }
                Arg::Long("only") => options.only.extend(words(&mut parser)?),
                Arg::Long("hosts") => {
                    options.hosts = Some(parser.value().and_then(ValueExt::string).map_err(text)?);
                }
                Arg::Long("mtu") => options.mtu = parser.value().and_then(|v| v.parse()).map_err(text)?,
                Arg::Long("transports") => options.transports.extend(words(&mut parser)?),
                Arg::Long("list") => options.list = true,
                Arg::Long("pool") => options.pool = true,
                Arg::Long("peer") => {
                    options.peers.push(peer(&parser.value().and_then(ValueExt::string).map_err(text)?)?);
                }
                Arg::Long("tern") => options.tern = Some(parser.value().map_err(text)?.into()),
                Arg::Long("install-peers") => options.install_peers = true,
                Arg::Long("build") => options.build = parser.value().map_err(text)?.into(),
                Arg::Long("out") => out = Some(parser.value().map_err(text)?.into()),
                Arg::Long("source") => options.source = Some(parser.value().map_err(text)?.into()),
                other => return Err(format!("{}\n{HELP}", other.unexpected())),
            }
        }
        options.rounds = rounds.unwrap_or(if options.quick { 2 } else { 5 });
        options.out = out.unwrap_or_else(|| options.build.join("bench"));
        if options.rounds == 0 || options.seconds.is_some_and(|s| !(s > 0.0 && s < 1000.0)) {
            return Err("--rounds and --seconds must be above 0 (and --seconds below 1000)".to_string());
        }
        if !(576..=65535).contains(&options.mtu) {
            return Err(format!("--mtu {}: must be from 576 to 65535", options.mtu));
        }
        if options.hosts.is_none() && !options.transports.is_empty() {
            return Err("--transports: matters between hosts only; see --hosts".to_string());
        }
        Ok(Some(options))
    }

    /// Where `--install-peers` installs.
    pub fn peers_dir(&self) -> PathBuf {
        self.build.join("peers")
    }

    fn defaults(command_line: String) -> Options {
        Options {
            quick: false,
            rounds: 0,
            seconds: None,
            only: Vec::new(),
            list: false,
            hosts: None,
            mtu: 1500,
            transports: Vec::new(),
            pool: false,
            peers: Vec::new(),
            tern: None,
            install_peers: false,
            build: PathBuf::from("build"),
            out: PathBuf::new(),
            source: None,
            command_line,
        }
    }
}

/// The value of an option that is a list with commas between.
fn words(parser: &mut Parser) -> Result<Vec<String>, String> {
    let list = parser.value().and_then(ValueExt::string).map_err(text)?;
    Ok(list.split(',').map(str::to_string).collect())
}

fn peer(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, prefix)) if !name.is_empty() && !prefix.is_empty() => {
            Ok((name.to_string(), prefix.into()))
        }
        _ => Err(format!("--peer {text}: must be NAME=PREFIX")),
    }
}

fn text(error: lexopt::Error) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Option<Options>, String> {
        Options::parse(arguments.iter().map(OsString::from).collect())
    }

    #[test]
    fn options_are_read_and_defaults_follow_from_them() {
        let options =
            parse(&["--quick", "--only", "latency,stream", "--peer", "Mine=/opt/mine"]).unwrap().unwrap();
        assert_eq!((options.rounds, options.only.len()), (2, 2));
        assert_eq!(options.peers, [("Mine".to_string(), PathBuf::from("/opt/mine"))]);
        assert_eq!(options.out, PathBuf::from("build/bench"));
        assert_eq!(options.command_line, "tern bench --quick --only latency,stream --peer Mine=/opt/mine");
        assert_eq!(parse(&["--build=b", "--rounds=7"]).unwrap().unwrap().out, PathBuf::from("b/bench"));
        assert!(parse(&["--help"]).unwrap().is_none());
    }

    #[test]
    fn bad_options_are_named() {
        for (arguments, part) in [
            (vec!["--no-such"], "--no-such"),
            (vec!["--rounds", "x"], "x"),
            (vec!["--rounds", "0"], "--rounds"),
            (vec!["--peer", "Mine"], "NAME=PREFIX"),
            (vec!["--seconds", "-1"], "--seconds"),
            (vec!["--hosts", "a,b", "--mtu", "9"], "--mtu 9"),
            (vec!["--transports", "ud"], "--hosts"),
        ] {
            let error = parse(&arguments).unwrap_err();
            assert!(error.contains(part), "{arguments:?}: {error}");
        }
    }
}
