//! Which device carries messages between whom: of this host, or of the job that `tern info` is a program of.

use fabric::settings::Settings;
use launch::address;
use launch::pmi::client::Client;

use crate::doctor::network::{interface_of, mtu};

/// The adapter between hosts, where it would listen.
pub fn adapter(settings: &Settings) -> String {
    let at = match address::outer(settings) {
        Ok(at) => {
            let interface = interface_of(at);
            format!("at {at} ({interface}, MTU {})", mtu(&interface))
        }
        Err(why) => why,
    };
    let carried = carried(settings.text("TERN_TRANSPORT"));
    format!("ranks of several hosts, through an RDMA adapter in software: {carried}\nlistens {at}")
}

/// Adapters of the system.
pub fn system(settings: &Settings) -> String {
    let used = "ranks of several hosts, through RDMA adapters of the system";
    match (ibv::describe(settings), ibv::taken(settings)) {
        (Ok(_), Ok(text)) => format!("{used} (TERN_DEVICES=auto, shm+ibv)\n{text}"),
        (Ok(text), Err(why)) => format!("{used} (TERN_DEVICES=shm+ibv; auto takes none: {why})\n{text}"),
        (Err(why), _) => format!("not here: {why}"),
    }
}

/// How messages get from adapter to adapter.
fn carried(transport: &str) -> &'static str {
    match transport {
        "rd" => "iWARP over datagrams that the adapter makes reliable (RD)",
        "ud" => "iWARP over datagrams (UD) that the library makes reliable",
        "hybrid" => "iWARP over datagrams (UD), and over TCP (RC) to the peers that much is sent to",
        _ => "iWARP over TCP",
    }
}

/// What is chosen for a job on this host and others, from the setting alone.
pub fn alone(settings: &Settings) -> String {
    match settings.text("TERN_DEVICES") {
        "shm" => "  all ranks, which must be on one host: shm\n".into(),
        name @ ("rnic" | "ibv") => format!("  all ranks, also of one host: {name}\n"),
        _ => {
            let others = if is_system(settings) { "ibv" } else { "rnic" };
            let if_all = if settings.text("TERN_DEVICES") == "auto" && others == "ibv" {
                ", if all of them have such adapters"
            } else {
                ""
            };
            format!(
                "  ranks that share memory: shm\n  ranks that do not, on other hosts or in other containers: {others}{if_all}\n"
            )
        }
    }
}

/// Whether adapters of the system are what this host has for others.
fn is_system(settings: &Settings) -> bool {
    match settings.text("TERN_DEVICES") {
        "auto" => ibv::taken(settings).is_ok(),
        name => name.ends_with("ibv"),
    }
}

/// What one rank says of itself.
struct Place {
    memory: String,
    host: String,
    at: String,
}

/// What is chosen in a job, for rank 0 to print. Collective.
pub fn in_job(settings: &Settings, client: &mut Client) -> Result<String, String> {
    // As all are asked here: one that has none is enough.
    let said = client.share("info.system", if is_system(settings) { b"yes" } else { b"no" })?;
    let is_system = said.iter().all(|said| said == b"yes");
    let at = match is_system {
        true => ibv::describe(settings)
            .map_or_else(|why| why, |text| text.lines().next().unwrap_or_default().into()),
        false => address::outer(settings).map_or_else(|why| why, |at| at.to_string()),
    };
    let memory = match settings.text("TERN_DEVICES") {
        "rnic" | "ibv" => format!("rank {}", client.rank()),
        "shm" => String::new(),
        _ => address::memory(settings)?,
    };
    let told = format!("{memory}\n{}\n{at}", launch::sys::hostname());
    let read = |told: &Vec<u8>| {
        let text = String::from_utf8_lossy(told).into_owned();
        let mut lines = text.lines().map(String::from);
        Some(Place { memory: lines.next()?, host: lines.next()?, at: lines.next()? })
    };
    let places: Option<Vec<Place>> = client.share("info.places", told.as_bytes())?.iter().map(read).collect();
    let places = places.ok_or("a rank of this job is no `tern info` of this version")?;
    Ok(table(&places, if is_system { "ibv" } else { "rnic" }))
}

/// A line for each host.
fn table(places: &[Place], adapter: &str) -> String {
    let mut text = String::new();
    let is_first = |rank: &usize| places[..*rank].iter().all(|place| place.memory != places[*rank].memory);
    let several = places.iter().any(|place| place.memory != places[0].memory);
    for first in (0..places.len()).filter(is_first) {
        let here: Vec<usize> =
            (0..places.len()).filter(|r| places[*r].memory == places[first].memory).collect();
        let among = if here.len() > 1 { "shm among them" } else { "alone there" };
        let others = match several {
            true => format!("; {adapter} at {} to all others", places[first].at),
            false => String::new(),
        };
        text += &format!("  rank {} on {}: {among}{others}\n", numbers(&here), places[first].host);
    }
    text
}

/// Numbers in rising order, runs as `0-3`.
fn numbers(all: &[usize]) -> String {
    let runs = all.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[usize]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_host() {
        let place = |(memory, host): (&str, &str)| Place {
            memory: memory.into(),
            host: host.into(),
            at: format!("at-{host}"),
        };
        let two: Vec<Place> = [("x", "a"), ("x", "a"), ("y", "b"), ("x", "a")].map(place).into();
        assert_eq!(
            table(&two, "rnic"),
            "  rank 0-1,3 on a: shm among them; rnic at at-a to all others\n\
             \x20 rank 2 on b: alone there; rnic at at-b to all others\n"
        );
        assert_eq!(table(&two[..2], "rnic"), "  rank 0-1 on a: shm among them\n");
    }
}
