//! `tern explain`: which protocol a message would take, what each would cost, and why.

use std::ffi::OsString;

use fabric::settings::Settings;
use fabric::{Caps, Device, Distance};
use proto::choose::{Seen, choose};
use proto::cost::{Message, Term, Way, cost};
use proto::explain::table;
use proto::facts::Facts;
use proto::journal::{bytes, reason, us};
use sim::Cluster;

const HELP: &str = "\
usage: tern explain --size BYTES [--peer RANK] [--reuse PART] [--late US] [--rtr]
                    [--cluster NAME|FILE]

Says which protocol a message from rank 0 would take and what each would cost, without a run: on the
modelled cluster, or between ranks of this host as its device measures now.

  --size BYTES     length of the message, such as 64K
  --peer RANK      its receiver (default: the first one that is not on the host of rank 0)
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
fn known(question: &Question) -> Result<(Facts, Distance, String), String> {
    let Some(name) = &question.cluster else {
        let (facts, name) = this_host()?;
        return Ok((facts, Distance::Host, format!("this host, device {name}")));
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
        remote_cost: (0.0, 0.0),
        registration: true,
    };
    let costs = Distance::ALL.map(|(distance, _)| cluster.costs(distance));
    let mut facts = Facts::new(costs, &caps, cluster.rails.len(), EAGER_BYTES);
    facts.keeps = true;
    let distance = cluster.distance(0, peer);
    Ok((facts, distance, format!("cluster {}, rank 0 to {peer} ({})", cluster.name, distance.name())))
}

/// What the device of this host measures when it starts.
fn this_host() -> Result<(Facts, &'static str), String> {
    let settings = Settings::from_env()?;
    let options = shm::Options {
        dir: settings.text("TERN_SHM_DIR").into(),
        prefix: "tern-explain".into(),
        single_copy: settings.flag("TERN_SINGLE_COPY"),
        cores: 1,
    };
    let device = shm::Shm::local_job(1, &options)?.pop().ok_or("no device")?;
    let eager_bytes = settings.number("TERN_EAGER_MAX") as usize;
    let costs = Distance::ALL.map(|(distance, _)| device.costs(distance));
    Ok((Facts::new(costs, device.caps(), 1, eager_bytes), device.caps().name))
}

fn answer(question: &Question) -> Result<String, String> {
    let (facts, distance, place) = known(question)?;
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
    let mut costs: Vec<_> =
        ways.iter().filter_map(|way| Some((*way, cost(*way, &facts, &message)?))).collect();
    costs.sort_by(|a, b| a.1.total_ns().total_cmp(&b.1.total_ns()));
    let mut lines = vec![vec!["protocol".to_string(), "total".into()]];
    lines[0].extend(Term::ALL.map(|(_, name)| name.to_string()));
    for (way, cost) in &costs {
        let mut line = vec![way.name().to_string(), us(cost.total_ns())];
        line.extend(
            Term::ALL.map(|(term, _)| if cost.get(term) == 0.0 { "-".into() } else { us(cost.get(term)) }),
        );
        lines.push(line);
    }
    let size = bytes(question.size as u64);
    let mut text =
        format!("{size} bytes, reuse {}, on {place}: {}\n\n", question.reuse, choice.winner.name());
    text += &table("", &lines);
    text += &match choice.runner_up {
        Some(_) => format!("\n{}: {:.0} % ahead\n", reason(&choice), 100.0 * choice.margin),
        None => format!("\n{}\n", reason(&choice)),
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
        assert!(ask("--size 64K").unwrap().contains("on this host, device shm: "));
    }

    #[test]
    fn wrong_questions_name_what_is_wrong() {
        for (line, part) in [
            ("--cluster graphene", "--size is missing"),
            ("--size 0", "--size 0: must be a length"),
            ("--size 64K --reuse 2", "--reuse 2: must be a number from 0 to 1"),
            ("--size 64K --cluster graphen", "the nearest known one is `graphene`"),
            ("--size 64K --cluster graphene --peer 0", "--peer 0: the receiver is one of the ranks 1 to"),
            ("--size 64K --sizes 3", "unknown option --sizes"),
        ] {
            let text = ask(line).unwrap_err();
            assert!(text.contains(part), "{line}: {text}");
        }
    }
}
