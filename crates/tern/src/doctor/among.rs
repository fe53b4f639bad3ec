//! The hosts of a job: what each lacks, and whether they reach each other where ranks would.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fabric::settings::Settings;
use launch::address;
use launch::pmi::client::Client;

use super::echo::{Echo, Word, ask};
use super::{Check, Verdict, print};

/// A host that answers, answers in milliseconds; what drops packets, drops the second and third as well.
const PATIENCE: Duration = Duration::from_secs(4);

/// One rank's place.
struct Place {
    /// What ranks of one memory have in common.
    memory: String,
    host: String,
    /// Where it listens, or why it does not.
    at: Result<SocketAddr, String>,
    /// Where it answers datagrams, and to which word.
    echo: Result<(SocketAddr, Word), String>,
}

/// Tries all pairs of hosts, and has rank 0 print what all have found.
pub fn run(
    mut client: Client,
    settings: &Result<Settings, String>,
    mut checks: Vec<Check>,
) -> Result<ExitCode, String> {
    let me = client.rank();
    let (memory, outer) = match settings {
        Ok(settings) => (address::memory(settings).unwrap_or_else(|why| why), address::outer(settings)),
        Err(why) => (format!("rank {me}"), Err(why.clone())),
    };
    let here = |why: std::io::Error, at: IpAddr| format!("{at}: {why}");
    let listener = outer.clone().and_then(|at| TcpListener::bind((at, 0)).map_err(|why| here(why, at)));
    let echo = outer.and_then(|at| Echo::new(at).map_err(|why| here(why, at)));
    let told = format!("{memory}\n{}\n{}", launch::sys::hostname(), told(&listener, &echo));
    let places = client.share("doctor.places", told.as_bytes())?;
    let places: Vec<Place> = places
        .iter()
        .map(|told| read(told))
        .collect::<Option<_>>()
        .ok_or("a rank of this job is no `tern doctor` of this version")?;
    // Who needs no datagrams can do without.
    let needs = settings.as_ref().is_ok_and(|settings| settings.text("TERN_TRANSPORT") != "rc");
    let over = AtomicBool::new(false);
    let all = thread::scope(|scope| {
        if let Ok(echo) = &echo {
            scope.spawn(|| echo.answer(&over));
        }
        checks.extend(reached(&places, me, needs));
        let text: Vec<String> = checks.iter().map(Check::line).collect();
        let all = client.share("doctor.checks", text.join("\n").as_bytes());
        over.store(true, Ordering::Relaxed);
        all
    })?;
    client.finalize()?;
    drop(listener); // who connects to it has done so
    if me != 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let mut code = ExitCode::SUCCESS;
    for (rank, text) in all.iter().enumerate().filter(|(rank, _)| is_first(&places, *rank)) {
        let text = String::from_utf8_lossy(text);
        let checks: Vec<Check> = text.lines().filter_map(Check::read).collect();
        let printed = print(&format!("host {} (rank {rank})", places[rank].host), &checks);
        if checks.iter().any(|check| check.verdict == Verdict::Fail) {
            code = printed;
        }
    }
    Ok(code)
}

/// Where this rank listens and answers, in two lines; or why it does not.
fn told(listener: &Result<TcpListener, String>, echo: &Result<Echo, String>) -> String {
    let at = match listener {
        Ok(listener) => listener.local_addr().map(|at| at.to_string()).map_err(|why| why.to_string()),
        Err(why) => Err(why.clone()),
    };
    let echo = match echo {
        Ok(echo) => echo.place().map(|(at, word)| format!("{at} {word:x}")).map_err(|why| why.to_string()),
        Err(why) => Err(why.clone()),
    };
    let [at, echo] = [at, echo].map(|said| said.unwrap_or_else(|why| format!("!{why}")));
    format!("{at}\n{echo}")
}

fn read(told: &[u8]) -> Option<Place> {
    let text = std::str::from_utf8(told).ok()?;
    let mut lines = text.lines().map(String::from);
    let (memory, host, at, echo) = (lines.next()?, lines.next()?, lines.next()?, lines.next()?);
    let at = match at.strip_prefix('!') {
        Some(why) => Err(why.into()),
        None => Ok(at.parse().ok()?),
    };
    let echo = match echo.strip_prefix('!') {
        Some(why) => Err(why.into()),
        None => {
            let (at, word) = echo.split_once(' ')?;
            Ok((at.parse().ok()?, Word::from_str_radix(word, 16).ok()?))
        }
    };
    Some(Place { memory, host, at, echo })
}

/// Whether no lower rank is on its host.
fn is_first(places: &[Place], rank: usize) -> bool {
    !places[..rank].iter().any(|place| place.memory == places[rank].memory)
}

/// Connects to each other host and asks it by datagrams, all at once.
fn reached(places: &[Place], me: usize, needs: bool) -> Vec<Check> {
    if !is_first(places, me) {
        return Vec::new();
    }
    let others = (0..places.len()).filter(|rank| is_first(places, *rank) && *rank != me);
    thread::scope(|scope| {
        let tries: Vec<_> = others
            .flat_map(|rank| {
                let by_datagrams = scope.spawn(move || answers(&places[rank], needs));
                [scope.spawn(move || reach(&places[rank])), by_datagrams]
            })
            .collect();
        tries.into_iter().filter_map(|tried| tried.join().ok()).collect()
    })
}

fn reach(other: &Place) -> Check {
    let what = "reaches";
    let at = match &other.at {
        Ok(at) => at,
        Err(why) => return Check::fail(what, format!("{} does not listen: {why}", other.host), "see there"),
    };
    match TcpStream::connect_timeout(at, PATIENCE) {
        Ok(_) => Check::pass(what, format!("{} at {at}", other.host)),
        Err(why) => Check::fail(what, format!("{} not at {at}: {why}", other.host), mend(other, "tcp")),
    }
}

/// Whether a host answers datagrams; without them jobs run by connections alone.
fn answers(other: &Place, needs: bool) -> Check {
    let what = "datagrams";
    let (at, word) = match &other.echo {
        Ok(place) => *place,
        Err(why) => return Check::fail(what, format!("{} takes none: {why}", other.host), "see there"),
    };
    match ask(at, word, PATIENCE / 2) {
        Ok(()) => Check::pass(what, format!("to {} and back at {at}", other.host)),
        Err(why) => {
            let found = format!("not to {} and back at {at}: {why}", other.host);
            let mend = mend(other, "udp");
            match needs {
                true => Check::fail(what, found, mend),
                false => Check::weak(what, found + " (TERN_TRANSPORT=rc needs none)", mend),
            }
        }
    }
}

fn mend(other: &Place, protocol: &str) -> String {
    format!(
        "TERN_INTERFACE=NAME or SUBNET, if that address is the wrong one; else, on {}: iptables -I INPUT -p {protocol} \
         -s ADDRESS-OF-THIS-HOST -j ACCEPT (firewalld: firewall-cmd --zone=trusted --add-source=ADDRESS-OF-THIS-HOST)",
        other.host
    )
}
