//! `tern verbs bench`: what the adapters of this host do without a message library, between two processes.
//!
//! The second process is this command once more, of which the first has input and output; so it may be started by any command
//! that runs others, elsewhere too. Both go through the same measurements ([`super::measure`]).

use super::curves::{self, Points};
use super::measure::{Bench, LONGEST};
use fabric::settings::Settings;
use fabric::{Either, Verbs};
use ibv::{Ibv, Opened, Traffic};
use launch::address;
use rnic::{Listening, Rnic};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const HELP: &str = "\
usage: tern verbs bench [--adapter rnic|ibv] [--rounds N] [--plots DIR] [--by COMMAND]

Measures what adapters do between two processes, without a message library: Tern's software adapter
(rnic), and that of the system which libibverbs finds (ibv; TERN_IBV_PORTS and TERN_IBV_LIBRARY
count). Latency by Send and Receive is half of a round trip, of a Read the whole; medians.
Datagrams (UD) are measured where the adapter has them; what is lost of them is counted and not
sent again.

  --adapter A    only this one
  --rounds N     times of each latency; of all else in proportion (default: 1000)
  --plots DIR    measures curves over lengths and connections too, and writes figures like those of
                 the dissertation (002, chapters 3 and 6) there, with values.csv
  --by COMMAND   starts the second process, such as 'ssh host' (default: on this host)";

/// Connections by which writes go, as the adapter takes them: each has a queue pair and a completion queue of its own.
const CONNECTIONS: [usize; 5] = [1, 2, 4, 8, 16];

/// Receive buffers at each rail: where connections have them, and where datagrams take most of them.
const FOR_CONNECTIONS: usize = 32;
const FOR_DATAGRAMS: usize = 256;

/// What is measured in one run of both processes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// So many connections.
    Connections(usize),
    /// Datagrams, with a connection beside them by which the processes meet.
    Datagrams,
}

/// As the second process is told of it.
impl std::fmt::Display for Carrier {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Carrier::Connections(count) => write!(out, "{count}"),
            Carrier::Datagrams => out.write_str("datagrams"),
        }
    }
}

impl std::str::FromStr for Carrier {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Carrier, Self::Err> {
        if text == "datagrams" { Ok(Carrier::Datagrams) } else { text.parse().map(Carrier::Connections) }
    }
}

/// What is measured, by name.
type Rows = Vec<(String, f64)>;

struct Options {
    adapters: Vec<String>,
    rounds: usize,
    /// Where figures go: curves are measured for them.
    plots: Option<PathBuf>,
    by: Vec<String>,
    /// This is the second process, and what is measured.
    second: Option<Carrier>,
}

fn options(arguments: Vec<OsString>) -> Result<Option<Options>, String> {
    use lexopt::prelude::*;
    let adapters = vec!["rnic".into(), "ibv".into()];
    let mut options = Options { adapters, rounds: 1000, plots: None, by: Vec::new(), second: None };
    let mut parser = lexopt::Parser::from_args(arguments);
    let wrong = |error: lexopt::Error| format!("verbs bench: {error}\n{HELP}");
    while let Some(argument) = parser.next().map_err(wrong)? {
        match argument {
            Long("adapter") => {
                let name = parser.value().and_then(|value| value.string()).map_err(wrong)?;
                if name != "rnic" && name != "ibv" {
                    return Err(format!("verbs bench: there is no adapter `{name}`: rnic or ibv"));
                }
                options.adapters = vec![name];
            }
            Long("rounds") => {
                options.rounds = parser.value().and_then(|value| value.parse()).map_err(wrong)?
            }
            Long("plots") => options.plots = Some(parser.value().map_err(wrong)?.into()),
            Long("by") => {
                let command = parser.value().and_then(|value| value.string()).map_err(wrong)?;
                options.by = command.split_whitespace().map(str::to_owned).collect();
            }
            Long("second") => {
                options.second = Some(parser.value().and_then(|value| value.parse()).map_err(wrong)?);
            }
            Short('h') | Long("help") => return Ok(None),
            other => return Err(wrong(other.unexpected())),
        }
    }
    if options.rounds == 0 {
        return Err("verbs bench: --rounds 0: at least one is needed for a median".into());
    }
    Ok(Some(options))
}

/// Runs the command.
pub fn run(arguments: Vec<OsString>) -> Result<(), String> {
    let Some(options) = options(arguments)? else {
        println!("{HELP}");
        return Ok(());
    };
    let settings = Settings::from_env()?;
    if let Some(way) = options.second {
        let mut talk = Talk { heard: Box::new(stdin().lock()), said: Box::new(stdout()) };
        return both(&options.adapters[0], way, &options, &settings, 1, &mut talk).map(drop);
    }
    let mut drawn = Vec::new();
    for adapter in &options.adapters {
        if adapter == "ibv" {
            match ibv::describe(&settings) {
                Ok(text) => println!("ibv: {}", text.lines().next().unwrap_or_default()),
                Err(why) if options.adapters.len() > 1 => {
                    println!("ibv: {why}");
                    continue;
                }
                Err(why) => return Err(why),
            }
        }
        // One rank of the software adapter has one connection with another.
        let most = if adapter == "ibv" { CONNECTIONS.len() } else { 1 };
        let connections = CONNECTIONS[..most].iter().map(|count| Carrier::Connections(*count));
        for way in connections.chain(has_datagrams(adapter, &settings)?.then_some(Carrier::Datagrams)) {
            let (rows, points) = first(adapter, way, &options, &settings)?;
            drawn.extend(points.into_iter().map(|point| (adapter.clone(), point)));
            for (name, value) in rows {
                // Of what is less than one, by adapters in software, the first digits.
                let digits = if value > 0.0 && value < 1.0 { 4 } else { 2 };
                println!("{adapter:<6}{name:<48}{value:>10.digits$}");
            }
        }
    }
    if let Some(folder) = &options.plots {
        println!("{}: {}", folder.display(), curves::draw(folder, &drawn)?.join(", "));
    }
    Ok(())
}

/// Whether an adapter has datagrams: those of iWARP have none.
fn has_datagrams(adapter: &str, settings: &Settings) -> Result<bool, String> {
    Ok(adapter != "ibv" || ibv::has_datagrams(settings)?)
}

/// A line each way with the other process.
struct Talk {
    heard: Box<dyn BufRead>,
    said: Box<dyn Write>,
}

impl Talk {
    fn tell(&mut self, line: &str) -> Result<String, String> {
        let gone = |error: std::io::Error| format!("verbs bench: the other process has gone: {error}");
        writeln!(self.said, "{line}").and_then(|()| self.said.flush()).map_err(gone)?;
        let mut answer = String::new();
        self.heard.read_line(&mut answer).map_err(gone)?;
        match answer.strip_suffix('\n') {
            Some(answer) => Ok(answer.to_owned()),
            None => Err("verbs bench: the other process has ended".into()),
        }
    }
}

/// Starts the second process and measures with it.
fn first(
    adapter: &str,
    way: Carrier,
    options: &Options,
    settings: &Settings,
) -> Result<(Rows, Points), String> {
    let own = std::env::current_exe().map_err(|e| format!("verbs bench: cannot tell where tern is: {e}"))?;
    let mut words: Vec<OsString> = options.by.iter().map(OsString::from).collect();
    words.push("env".into());
    // What starts it may begin with other variables.
    for (name, value) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"TERN_"))
    {
        let mut word = name;
        word.push("=");
        word.push(value);
        words.push(word);
    }
    words.push(own.into());
    words.extend(["verbs", "bench", "--adapter", adapter, "--second"].map(OsString::from));
    words.extend([way.to_string(), "--rounds".into(), options.rounds.to_string()].map(OsString::from));
    if options.plots.is_some() {
        // Of which it draws nothing.
        words.extend(["--plots", "-"].map(OsString::from));
    }
    let mut command = Command::new(&words[0]);
    let started = command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(|e| format!("verbs bench: cannot run {}: {e}", words[0].display()))?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("verbs bench: the second process has no input or output".into());
    };
    let mut talk = Talk { heard: Box::new(BufReader::new(output)), said: Box::new(input) };
    let found = both(adapter, way, options, settings, 0, &mut talk);
    drop(talk);
    end(child, found)
}

/// Waits for the second process, which ends when it hears nothing more.
fn end<T>(mut child: Child, found: Result<T, String>) -> Result<T, String> {
    let status = child.wait().map_err(|e| format!("verbs bench: the second process: {e}"))?;
    let found = found?;
    if status.success() { Ok(found) } else { Err(format!("verbs bench: the second process: {status}")) }
}

/// What both processes do.
fn both(
    adapter: &str,
    way: Carrier,
    options: &Options,
    settings: &Settings,
    me: usize,
    talk: &mut Talk,
) -> Result<(Rows, Points), String> {
    let mut verbs = open(adapter, way, settings, me, talk)?;
    let depth = if way == Carrier::Datagrams { FOR_DATAGRAMS } else { FOR_CONNECTIONS };
    let mut bench = Bench::new(&mut verbs, depth, |line| talk.tell(line))?;
    let found = match options.plots {
        Some(_) => (rows(&mut bench, way, options.rounds)?, points(&mut bench, way, options.rounds)?),
        None => (rows(&mut bench, way, options.rounds)?, Points::new()),
    };
    bench.meet()?;
    Ok(found)
}

/// What is printed.
fn rows<V: Verbs>(bench: &mut Bench<V>, way: Carrier, rounds: usize) -> Result<Rows, String> {
    match way {
        Carrier::Connections(1) => Ok([alone(bench, rounds)?, connected(bench, 1, rounds)?].concat()),
        Carrier::Connections(count) => connected(bench, count, rounds),
        Carrier::Datagrams => by_datagrams(bench, rounds),
    }
}

/// What is drawn.
fn points<V: Verbs>(bench: &mut Bench<V>, way: Carrier, rounds: usize) -> Result<Points, String> {
    let mut points = match way {
        Carrier::Connections(1) => curves::alone(bench, rounds)?,
        Carrier::Connections(_) => Points::new(),
        Carrier::Datagrams => return curves::by_datagrams(bench, rounds),
    };
    points.extend(curves::together(bench, rounds)?);
    Ok(points)
}

/// The adapter, which joins the two processes in this way.
fn open(
    adapter: &str,
    way: Carrier,
    settings: &Settings,
    me: usize,
    talk: &mut Talk,
) -> Result<Either<Rnic, Ibv>, String> {
    let mut secret = [0; 16];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut secret));
    random.map_err(|error| format!("verbs bench: /dev/urandom: {error}"))?;
    // Both draw one, and that of the first counts.
    let drawn: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let other = talk.tell(&drawn)?;
    if me == 1 {
        let wrong = || format!("verbs bench: the first process says `{other}` in place of a secret");
        let number = u128::from_str_radix(&other, 16).map_err(|_| wrong())?;
        secret = number.to_be_bytes();
    }
    let at = address::outer(settings)?;
    if adapter == "ibv" {
        let (times, traffic) = match way {
            Carrier::Connections(count) => (count, Traffic::Messages),
            Carrier::Datagrams => (1, Traffic::Both),
        };
        let opened = Opened::open(&ibv::Choice::from(settings)?.repeated(times), traffic, at)?;
        let own = opened.card()?;
        let other = talk.tell(&own)?;
        let mut cards = [own.into_bytes(), other.into_bytes()];
        cards.rotate_left(me);
        return opened.join(me, &cards, secret).map(Either::Second);
    }
    let listening = if way == Carrier::Datagrams { Listening::for_both(at)? } else { Listening::at(at)? };
    let own = listening.address()?;
    let other = talk.tell(&own.to_string())?;
    let other: SocketAddr =
        other.parse().map_err(|_| format!("verbs bench: the other process listens at `{other}`"))?;
    let mut addresses = [own, other];
    addresses.rotate_left(me);
    // The way there may be narrower than the way back.
    let longest = listening.longest_datagram(&addresses);
    let other = talk.tell(&longest.to_string())?;
    let other: usize =
        other.parse().map_err(|_| format!("verbs bench: the other process says `{other}` of datagrams"))?;
    listening.limited_to(longest.min(other)).open(me, addresses.into(), secret).map(Either::First)
}

/// What is measured over one connection alone.
fn alone<V: Verbs>(bench: &mut Bench<V>, rounds: usize) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for (name, len) in [("8 B", 8), ("1 KB", 1 << 10), ("64 KB", 64 << 10)] {
        rows.push((format!("Send, {name}, us"), bench.latency(len, rounds)?));
    }
    for (name, len) in [("8 B", 8), ("64 KB", 64 << 10)] {
        rows.push((format!("Read, {name}, us"), bench.read(len, rounds)?));
    }
    for (name, len) in [("64 KB", 64 << 10), ("1 MB", 1 << 20)] {
        let count = (rounds / 2).max(8);
        rows.push((format!("Write, {name}, one way, GB/s"), bench.stream(len, count, false)?.0));
        rows.push((format!("Write, {name}, both ways, GB/s"), bench.stream(len, count, true)?.0));
    }
    for (name, len) in [("4 KB", 4 << 10), ("64 KB", 64 << 10), ("1 MB", 1 << 20), ("16 MB", 16 << 20)] {
        let (there, back) = bench.registration(len, (rounds / 10).max(3))?;
        rows.push((format!("registration, {name}, us"), there));
        rows.push((format!("its end, {name}, us"), back));
    }
    for (name, len) in [("64 KB", 64 << 10), ("1 MB", LONGEST)] {
        for reused in [0, 50, 100] {
            let rate = bench.reuse(len, (rounds / 2).max(8), reused)?;
            rows.push((format!("Write, {name}, {reused} % registered already, GB/s"), rate));
        }
    }
    Ok(rows)
}

/// What is measured of datagrams: up to the longest that the adapter has.
fn by_datagrams<V: Verbs>(bench: &mut Bench<V>, rounds: usize) -> Result<Rows, String> {
    let (mut rows, mut lost) = (Rows::new(), 0);
    let longest = bench.longest_datagram().min(64 << 10);
    let lengths = [("datagram", 8), ("datagram", longest.min(1 << 10)), ("longest datagram", longest)];
    for (name, len) in lengths {
        let (time, missing) = bench.datagram_latency(len, rounds)?;
        rows.push((format!("{name}, {len} B, us"), time));
        lost += missing;
    }
    let short = bench.datagram_stream(64, 20 * rounds, false)?;
    rows.push(("datagram, 64 B, one way, million/s".into(), short.number));
    lost += short.lost;
    for (name, len) in &lengths[1..] {
        for (ways, both) in [("one way", false), ("both ways", true)] {
            let stream = bench.datagram_stream(*len, 2 * rounds, both)?;
            rows.push((format!("{name}, {len} B, {ways}, GB/s"), stream.rate));
            lost += stream.lost;
        }
    }
    rows.push(("datagrams that were lost".into(), lost as f64));
    Ok(rows)
}

/// What more connections make of short and of long writes.
fn connected<V: Verbs>(bench: &mut Bench<V>, connections: usize, rounds: usize) -> Result<Rows, String> {
    let short = bench.stream(64, 20 * rounds, false)?.1;
    let long = bench.stream(64 << 10, 2 * rounds, false)?.0;
    Ok(vec![
        (format!("Write, 64 B, {connections} connections, million/s"), short),
        (format!("Write, 64 KB, {connections} connections, GB/s"), long),
    ])
}
