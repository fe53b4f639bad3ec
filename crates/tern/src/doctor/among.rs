//! The hosts of a job: what each lacks, and whether they reach each other where ranks would.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use fabric::settings::Settings;
use launch::address;
use launch::pmi::client::Client;

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
}

/// Tries all pairs of hosts, and has rank 0 print what all have found.
pub fn run(
    mut client: Client,
    settings: &Result<Settings, String>,
    mut checks: Vec<Check>,
) -> Result<ExitCode, String> {
    let me = client.rank();
    let (memory, listener) = match settings {
        Ok(settings) => {
            let bound = address::outer(settings)
                .and_then(|at| TcpListener::bind((at, 0)).map_err(|why| format!("{at}: {why}")));
            (address::memory(settings).unwrap_or_else(|why| why), bound)
        }
        Err(why) => (format!("rank {me}"), Err(why.clone())),
    };
    let at = match &listener {
        Ok(listener) => listener.local_addr().map(|at| at.to_string()).map_err(|why| why.to_string()),
        Err(why) => Err(why.clone()),
    };
    let told =
        format!("{memory}\n{}\n{}", launch::sys::hostname(), at.unwrap_or_else(|why| format!("!{why}")));
    let places = client.share("doctor.places", told.as_bytes())?;
    let places: Vec<Place> = places
        .iter()
        .map(|told| read(told))
        .collect::<Option<_>>()
        .ok_or("a rank of this job is no `tern doctor` of this version")?;
    checks.extend(reached(&places, me));
    let text: Vec<String> = checks.iter().map(Check::line).collect();
    let all = client.share("doctor.checks", text.join("\n").as_bytes())?;
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

fn read(told: &[u8]) -> Option<Place> {
    let text = std::str::from_utf8(told).ok()?;
    let mut lines = text.lines().map(String::from);
    let (memory, host, at) = (lines.next()?, lines.next()?, lines.next()?);
    let at = match at.strip_prefix('!') {
        Some(why) => Err(why.into()),
        None => Ok(at.parse().ok()?),
    };
    Some(Place { memory, host, at })
}

/// Whether no lower rank is on its host.
fn is_first(places: &[Place], rank: usize) -> bool {
    !places[..rank].iter().any(|place| place.memory == places[rank].memory)
}

/// Connects to each other host, to all at once.
fn reached(places: &[Place], me: usize) -> Vec<Check> {
    if !is_first(places, me) {
        return Vec::new();
    }
    let others = (0..places.len()).filter(|rank| is_first(places, *rank) && *rank != me);
    thread::scope(|scope| {
        let tries: Vec<_> = others.map(|rank| scope.spawn(move || reach(&places[rank]))).collect();
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
        Err(why) => Check::fail(
            what,
            format!("{} not at {at}: {why}", other.host),
            format!(
                "TERN_INTERFACE=NAME or SUBNET, if that address is the wrong one; else, on {}: iptables -I INPUT -p tcp \
                 -s ADDRESS-OF-THIS-HOST -j ACCEPT (firewalld: firewall-cmd --zone=trusted --add-source=ADDRESS-OF-THIS-HOST)",
                other.host
            ),
        ),
    }
}
