//! `tern explain`: which protocol a message would take, what each would cost, and why.

use std::ffi::OsString;

use fabric::settings::Settings;
use fabric::{Caps, Device, Distance, Source, Span};
use proto::Protocol;
use proto::choice::choose::{Seen, choose};
use proto::choice::explain::table;
use proto::choice::facts::{Fact, Facts};
use proto::choice::journal::{bytes, reason, time};
use proto::choice::terms::{Message, Term, cost};
use proto::choice::way::Way;
use sim::Cluster;

const HELP: &str = "\
usage: tern explain --size BYTES [--peer RANK] [--reuse PART] [--late US] [--rtr]
                    [--cluster NAME|FILE]

Says which protocol a message from rank 0 would take and what each would cost, without a run: on the
modelled cluster, or between ranks of this host as its device measures now. Settings count, such as
TERN_PROTOCOL and TERN_EAGER_MAX.

  --size BYTES     length of the message, such as 64K
  --peer RANK      its receiver (default: on a cluster the first one that is
                   not on the host of rank 0)
  --reuse PART     part of the uses of its buffers that find them registered, 0 to 1 (default: 0)
  --late US        by how much the receiver comes later than the sender, in us (default: 0)
  --rtr            the receiver has offered its buffer
  --cluster NAME   a cluster of `clusters/`, or a file";

/// Longest eager message of a modelled adapter, in bytes.
const EAGER_BYTES: usize = 16 << 10;

struct Question {
    size: usize,
    peer: Option<usize>,
    reuse: f64,
    late_us: f64,
    rtr: bool,
    cluster: Option<String>,
}

/// Runs `tern explain`.
pub fn run(arguments: Vec<OsString>) -> Result<(), String> {
    let Some(question) = parse(arguments)? else {
        println!("{HELP}");
        return Ok(());
    };
    print!("{}", answer(&question)?);
    Ok(())
}

fn parse(arguments: Vec<OsString>) -> Result<Option<Question>, String> {
    let mut question = Question { size: 0, peer: None, reuse: 0.0, late_us: 0.0, rtr: false, cluster: None };
    let mut size = None;
    let mut parser = lexopt::Parser::from_args(arguments);
    let number = |name: &str, text: &str, least: f64, most: f64| match text.parse::<f64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("{name} {text}: must be a number from {least} to {most}")),
    };
    while let Some(argument) = parser.next().map_err(|e| e.to_string())? {
        let lexopt::Arg::Long(name) = argument else {
            if argument == lexopt::Arg::Short('h') {
                return Ok(None);
            }
            return Err(argument.unexpected().to_string());
        };
        let name = name.to_string();
        if name == "help" {
            return Ok(None);
        }
        if name == "rtr" {
            question.rtr = true;
            continue;
        }
        if !["size", "peer", "reuse", "late", "cluster"].contains(&name.as_str()) {
            return Err(format!("unknown option --{name}\n{HELP}"));
        }
        let value = parser.value().map_err(|e| e.to_string())?.to_string_lossy().into_owned();
        match name.as_str() {
            "size" => size = Some(length(&value)?),
            "peer" => {
                question.peer = Some(value.parse().map_err(|_| format!("--peer {value}: must be a rank"))?)
            }
            "reuse" => question.reuse = number("--reuse", &value, 0.0, 1.0)?,
            "late" => question.late_us = number("--late", &value, 0.0, 1e9)?,
            _ => question.cluster = Some(value),
        }
    }
    question.size = size.ok_or_else(|| format!("--size is missing\n{HELP}"))?;
    Ok(Some(question))
}

fn length(text: &str) -> Result<usize, String> {
    let parsed = fabric::settings::parse_bytes(text).filter(|len| (1..=1 << 40).contains(len));
    parsed.map(|len| len as usize).ok_or_else(|| format!("--size {text}: must be a length such as 64K"))
}

/// What is known, how far the receiver is, and where that is.
fn known(question: &Question, settings: &Settings) -> Result<(Facts, Distance, String), String> {
    let Some(name) = &question.cluster else {
        let peer = question.peer.unwrap_or(1);
        if peer == 0 {
            return Err("--peer 0: the message is from rank 0; its receiver is another".into());
        }
        let (facts, name) = this_host(settings)?;
        return Ok((facts, Distance::Host, format!("this host, device {name}, rank 0 to {peer}")));
    };
    let cluster = Cluster::find(name)?;
    let peer = question.peer.unwrap_or(cluster.cores);
    if peer == 0 || peer >= cluster.capacity() {
        let last = cluster.capacity() - 1;
        return Err(format!("--peer {peer}: the receiver is one of the ranks 1 to {last} of `{name}`"));
    }
    let caps = Caps {
        name: "sim",
        inline_bytes: cluster.rails[0].inline_bytes,
        frame_bytes: EAGER_BYTES,
        remote_access: false,
        remote_access_note: String::new(),
        looks: 1,
        registration: true,
    };
    let costs = Distance::ALL.map(|(distance, _)| cluster.costs(distance));
    let eager_bytes = EAGER_BYTES.min(settings.number("TERN_EAGER_MAX") as usize);
    let mut facts = Facts::new(costs, [&caps; 2], cluster.rails.len(), eager_bytes);
    facts.keep(settings.number("TERN_REGISTERED_MAX") > 0);
    let distance = cluster.distance(0, peer);
    Ok((facts, distance, format!("cluster {}, rank 0 to {peer} ({})", cluster.name, distance.name())))
}

/// What the device of this host measures when it starts, and what its ranks find out about copies as they
/// run: measured here between two threads.
fn this_host(settings: &Settings) -> Result<(Facts, &'static str), String> {
    let options = shm::Options {
        dir: settings.text("TERN_SHM_DIR").into(),
        prefix: "tern-explain".into(),
        single_copy: settings.flag("TERN_SINGLE_COPY"),
        cores: std::thread::available_parallelism().map_or(1, |n| n.get()),
        stores: None,
    };
    let ranks = shm::Shm::local_job(2, &options)?;
    let (device, caps) = (&ranks[0], ranks[0].caps(Distance::Host).clone());
    let eager_bytes = caps.frame_bytes.min(settings.number("TERN_EAGER_MAX") as usize);
    let costs = Distance::ALL.map(|(distance, _)| device.costs(distance));
    let mut facts = Facts::new(costs, [&caps; 2], 1, eager_bytes);
    let per_byte = copy_ns_per_byte(ranks);
    facts.copy.iter_mut().for_each(|(_, fact)| *fact = Fact::new(per_byte, Source::StartUp));
    Ok((facts, caps.name))
}

/// What a copy into shared memory and one out of it cost on average: the middle of some, between two ranks that
/// play a frame to and fro.
fn copy_ns_per_byte(ranks: Vec<shm::Shm>) -> f64 {
    // The first times around, the blocks are memory that nobody has touched.
    const ROUNDS: usize = 400;
    const LAST: usize = 200;
    let rank = |mut device: shm::Shm| {
        let frame_bytes = device.caps(Distance::Host).frame_bytes;
        let (bytes, mut into) = (vec![1u8; frame_bytes], vec![0u8; frame_bytes]);
        let data = |bytes: &[u8]| Span { addr: bytes.as_ptr() as usize, len: bytes.len() };
        let (me, peer) = (device.me(), 1 - device.me());
        let mut times = Vec::new();
        for turn in me..2 * ROUNDS + me {
            let took_ns = loop {
                let start = device.now_ns();
                if turn % 2 == 1 {
                    if let Some(frame) = device.peek(peer) {
                        let start = device.now_ns();
                        device.copy(into.as_mut_ptr() as usize, frame.data.addr, frame.data.len);
                        let took_ns = device.now_ns() - start;
                        device.pop(peer);
                        break took_ns;
                    }
                } else if device.try_send(peer, [1, 0], data(&bytes)) {
                    break device.now_ns() - start;
                }
                std::thread::yield_now();
            };
            times.push(took_ns as f64 / bytes.len() as f64);
        }
        let last = &mut times[2 * ROUNDS - LAST..];
        last.sort_by(f64::total_cmp);
        last[LAST / 2]
    };
    std::thread::scope(|scope| {
        let ranks: Vec<_> = ranks.into_iter().map(|device| scope.spawn(|| rank(device))).collect();
        let middles = ranks.into_iter().map(|rank| rank.join().expect("a rank only copies"));
        middles.sum::<f64>() / 2.0
    })
}

/// The way that TERN_PROTOCOL asks for, if this message is too long for eager.
fn forced(question: &Question, settings: &Settings, eager_bytes: usize) -> Option<Way> {
    let protocol = Protocol::named(settings.text("TERN_PROTOCOL")).filter(|_| question.size > eager_bytes)?;
    let is_write = protocol == Protocol::Speculative && question.rtr;
    Some(if is_write { Way::Write } else { Way::of(protocol) })
}

fn answer(question: &Question) -> Result<String, String> {
    let settings = Settings::from_env()?;
    let (facts, distance, place) = known(question, &settings)?;
    let eager_bytes = facts.path(distance).eager_bytes;
    let message = Message {
        len: question.size,
        distance,
        reuse: question.reuse,
        rtr: question.rtr,
        late_ns: question.late_us * 1000.0,
        eager: true,
    };
    let ways = Way::ALL.map(|(way, _)| way);
    let choice = choose(&facts, &message, &Seen::default(), &ways).ok_or("no protocol can take it")?;
    let taken = forced(question, &settings, eager_bytes).unwrap_or(choice.winner);
    let mut costs: Vec<_> =
        ways.iter().filter_map(|way| Some((*way, cost(*way, &facts, &message)?))).collect();
    costs.sort_by(|a, b| a.1.total_ns().total_cmp(&b.1.total_ns()));
    let mut lines = vec![vec!["protocol".to_string(), "total".into()]];
    lines[0].extend(Term::ALL.map(|(_, name)| name.to_string()));
    for (way, cost) in &costs {
        let mut line = vec![way.name().to_string(), time(cost.total_ns())];
        line.extend(
            Term::ALL.map(|(term, _)| if cost.get(term) == 0.0 { "-".into() } else { time(cost.get(term)) }),
        );
        lines.push(line);
    }
    let size = bytes(question.size as u64);
    let mut text = format!("{size} bytes, reuse {}, on {place}: {}\n\n", question.reuse, taken.name());
    text += &table("", &lines);
    text += &if taken != choice.winner {
        format!("\nasked for by TERN_PROTOCOL; {} would be the cheapest\n", choice.winner.name())
    } else {
        match choice.runner_up {
            Some((other, _)) if choice.margin > 2.0 => {
                let times = choice.margin + 1.0;
                format!("\n{}: {} takes {times:.0} times as long\n", reason(&choice), other.name())
            }
            Some(_) => format!("\n{}: {:.0} % ahead\n", reason(&choice), 100.0 * choice.margin),
            None => format!("\n{} for more than {}\n", reason(&choice), bytes(eager_bytes as u64)),
        }
    };
    Ok(text + &facts.text(distance, question.size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(line: &str) -> Result<String, String> {
        answer(&parse(line.split_whitespace().map(OsString::from).collect())?.expect("a question"))
    }

    #[test]
    fn names_the_winner_its_rival_and_the_facts() {
        let text = ask("--size 1M --peer 5 --reuse 0.2 --cluster graphene").unwrap();
        assert!(
            text.starts_with("1M bytes, reuse 0.2, on cluster graphene, rank 0 to 5 (network): "),
            "{text}"
        );
        assert!(text.contains("% ahead") && text.contains("register 68.0 us"), "{text}");
        let text = ask("--size 1M --peer 3").unwrap();
        assert!(text.contains("on this host, device shm, rank 0 to 3: "), "{text}");
        assert!(
            text.contains("ns per byte (start-up, 0 seen)")
                && text.contains("no other way for more than 256K")
        );
    }

    #[test]
    fn wrong_questions_name_what_is_wrong() {
        for (line, part) in [
            ("--cluster graphene", "--size is missing"),
            ("--size 0", "--size 0: must be a length"),
            ("--size 64K --reuse 2", "--reuse 2: must be a number from 0 to 1"),
            ("--size 64K --cluster graphen", "the nearest known one is `graphene`"),
            ("--size 64K --cluster graphene --peer 0", "--peer 0: the receiver is one of the ranks 1 to"),
            ("--size 64K --peer 0", "--peer 0: the message is from rank 0"),
            ("--size 64K --sizes 3", "unknown option --sizes"),
        ] {
            let text = ask(line).unwrap_err();
            assert!(text.contains(part), "{line}: {text}");
        }
    }
}
