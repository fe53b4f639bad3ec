//! The command line of `tern bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::options::{Known, Value, set};

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
    /// Number of rounds; 0 until it is known.
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
    /// Directory for the results; empty until it is known.
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
        if !KNOWN.read(arguments, &mut options)? {
            return Ok(None);
        }
        if options.rounds == 0 {
            options.rounds = if options.quick { 2 } else { 5 };
        }
        if options.out.as_os_str().is_empty() {
            options.out = options.build.join("bench");
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

const KNOWN: Known<Options> = Known {
    flags: &[
        ("--quick", |options| &mut options.quick),
        ("--list", |options| &mut options.list),
        ("--pool", |options| &mut options.pool),
        ("--install-peers", |options| &mut options.install_peers),
    ],
    setters: &[
        ("--rounds", |options, value| set(&mut options.rounds, value.number(1..=1_000_000))),
        ("--seconds", |options, value| set(&mut options.seconds, seconds(&value).map(Some))),
        ("--only", |options, value| value.words().map(|words| options.only.extend(words))),
        ("--hosts", |options, value| set(&mut options.hosts, value.text().map(Some))),
        ("--mtu", |options, value| set(&mut options.mtu, value.number(576..=65535))),
        ("--transports", |options, value| value.words().map(|words| options.transports.extend(words))),
        ("--peer", |options, value| peer(&value).map(|peer| options.peers.push(peer))),
        ("--tern", |options, value| set(&mut options.tern, Ok(Some(value.path())))),
        ("--build", |options, value| set(&mut options.build, Ok(value.path()))),
        ("--out", |options, value| set(&mut options.out, Ok(value.path()))),
        ("--source", |options, value| set(&mut options.source, Ok(Some(value.path())))),
    ],
    word: None,
    help: HELP,
};

fn seconds(value: &Value) -> Result<f64, String> {
    let read = |text: &str| text.parse().ok().filter(|seconds| *seconds > 0.0 && *seconds < 1000.0);
    value.read("above 0 and below 1000", read)
}

fn peer(value: &Value) -> Result<(String, PathBuf), String> {
    value.read("NAME=PREFIX", |text| {
        let (name, prefix) = text.split_once('=')?;
        let is_whole = !name.is_empty() && !prefix.is_empty();
        is_whole.then(|| (name.to_string(), prefix.into()))
    })
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
