//! `tern explain`: which protocol a message would take, what each would cost, and why.

use std::ffi::OsString;

use fabric::settings::Settings;
use fabric::{Caps, Costs, Device, Distance, Source, Span};
use mpi::coll::{Collective, Tariff};
use proto::Protocol;
use proto::choice::choose::{Seen, choose};
use proto::choice::explain::table;
use proto::choice::facts::{Fact, Facts};
use proto::choice::journal::{bytes, reason, time};
use proto::choice::terms::{Message, Term, cost};
use proto::choice::way::Way;
use sim::Cluster;

use crate::options::{Known, Value, set};
use crate::{collective, epoch};

const HELP: &str = "\
usage: tern explain --size BYTES [--peer RANK] [--reuse PART] [--late US] [--rtr]
                    [--cluster NAME|FILE]
       tern explain --collective NAME [--size BYTES] [--ranks N] [--hosts N]
                    [--in-turn] [--ordered] [--cluster NAME|FILE]
       tern explain --puts N --gets N --size BYTES [--peer RANK] [--reuse PART]
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
  --cluster NAME   a cluster of `clusters/`, or a file

The second form says which algorithm a collective would take: there settings such as TERN_COLL_BCAST
count, and between hosts that are not those of a cluster Tern's adapter over 10 Gbit/s is assumed.

  --collective NAME  such as allreduce
  --size BYTES       of the vector; of one rank's block in gather, scatter,
                     allgather and alltoall; of all blocks in allgatherv and
                     reduce_scatter (default: 0)
  --ranks N          ranks (default: 2, or all that fit the cluster)
  --hosts N          hosts they are on, by block (default: 1, or those of the
                     cluster that are needed)
  --in-turn          ranks are dealt out to the hosts in turn
  --ordered          the operation does not commute

The third form says how the operations of an epoch at one target behind an adapter would be planned,
Puts and Gets called in turn; TERN_WIN_SCHEDULE counts, and without --cluster that adapter is assumed.

  --puts N           Puts of the epoch (default: 0)
  --gets N           Gets of the epoch (default: 0)
  --size BYTES       of each of them
  --reuse PART       from 0.5 on their buffers are taken for registered";

/// Longest eager message of a modelled adapter, in bytes.
const EAGER_BYTES: usize = 16 << 10;

#[derive(Default)]
struct Question {
    size: usize,
    peer: Option<usize>,
    reuse: f64,
    late_us: f64,
    rtr: bool,
    cluster: Option<String>,
    collective: Option<Collective>,
    ranks: Option<usize>,
    hosts: Option<usize>,
    puts: usize,
    gets: usize,
    in_turn: bool,
    ordered: bool,
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

const KNOWN: Known<Question> = Known {
    flags: &[
        ("--rtr", |question| &mut question.rtr),
        ("--in-turn", |question| &mut question.in_turn),
        ("--ordered", |question| &mut question.ordered),
    ],
    setters: &[
        ("--size", |question, value| set(&mut question.size, length(&value))),
        ("--peer", |question, value| {
            set(&mut question.peer, value.read("a rank", |text| text.parse().ok()).map(Some))
        }),
        ("--reuse", |question, value| set(&mut question.reuse, value.number(0.0..=1.0))),
        ("--late", |question, value| set(&mut question.late_us, value.number(0.0..=1e9))),
        ("--cluster", |question, value| set(&mut question.cluster, value.text().map(Some))),
        ("--collective", |question, value| {
            set(&mut question.collective, value.text().and_then(|text| collective::named(&text)).map(Some))
        }),
        ("--ranks", |question, value| set(&mut question.ranks, value.number(1..=1 << 20).map(Some))),
        ("--hosts", |question, value| set(&mut question.hosts, value.number(1..=1 << 20).map(Some))),
        ("--puts", |question, value| set(&mut question.puts, value.number(0..=OPERATIONS_MAX))),
        ("--gets", |question, value| set(&mut question.gets, value.number(0..=OPERATIONS_MAX))),
    ],
    word: None,
    help: HELP,
};

/// More than that a rank does not hold.
const OPERATIONS_MAX: usize = 1024;

fn parse(arguments: Vec<OsString>) -> Result<Option<Question>, String> {
    let mut question = Question::default();
    if !KNOWN.read(arguments, &mut question)? {
        return Ok(None);
    }
    if question.size == 0 && question.collective.is_none() {
        return Err(format!("--size is missing\n{HELP}"));
    }
    Ok(Some(question))
}

fn length(value: &Value) -> Result<usize, String> {
    let read = |text: &str| fabric::settings::parse_bytes(text).filter(|len| (1..=1 << 40).contains(len));
    Ok(value.read("a length such as 64K", read)? as usize)
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
    let facts = facts_of(&cluster, settings);
    let distance = cluster.distance(0, peer);
    Ok((facts, distance, format!("cluster {}, rank 0 to {peer} ({})", cluster.name, distance.name())))
}

/// The same for an epoch, whose target is behind an adapter.
fn answer_epoch(question: &Question, settings: &Settings) -> Result<String, String> {
    let asked = epoch::Question {
        puts: question.puts,
        gets: question.gets,
        bytes: question.size,
        is_registered: question.reuse >= 0.5,
    };
    let (facts, distance, place) = match question.cluster {
        Some(_) => known(question, settings)?,
        None => {
            let costs = Costs::ethernet();
            let facts = facts_with([costs; 2], 1, 0, settings);
            (facts, Distance::Network, "by Tern's adapter over 10 Gbit/s".to_string())
        }
    };
    if facts.path(distance).reach && !facts.path(distance).registration {
        return Err(
            "--peer: that rank shares memory with rank 0, where there is nothing to be planned".into()
        );
    }
    Ok(epoch::answer(&asked, &facts, distance, settings, &place))
}

/// What ranks of a modelled cluster know before the first message.
fn facts_of(cluster: &Cluster, settings: &Settings) -> Facts {
    let costs = Distance::ALL.map(|(distance, _)| cluster.costs(distance));
    facts_with(costs, cluster.rails.len(), cluster.rails[0].inline_bytes, settings)
}

/// What is known of adapters from these costs.
fn facts_with(costs: [Costs; 2], rails: usize, inline_bytes: usize, settings: &Settings) -> Facts {
    let caps =
        Caps { name: "sim", inline_bytes, frame_bytes: EAGER_BYTES, registration: true, ..Caps::default() };
    let eager_bytes = EAGER_BYTES.min(settings.number("TERN_EAGER_MAX") as usize);
    let mut facts = Facts::new(costs, [&caps; 2], rails, eager_bytes);
    facts.keep(settings.number("TERN_REGISTERED_MAX") > 0);
    facts
}

/// What the device of this host measures when it starts, and what its ranks find out about copies as they
/// run: measured here between two threads.
fn this_host(settings: &Settings) -> Result<(Facts, &'static str), String> {
    let options = shm::Options {
        dir: settings.text("TERN_SHM_DIR").into(),
        prefix: "tern-explain".into(),
        single_copy: settings.flag("TERN_SINGLE_COPY"),
        cores: cores(),
        stores: None,
        loads: None,
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

/// Cores of this machine.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
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

/// The same for a collective.
fn answer_collective(question: &Question, kind: Collective, settings: &Settings) -> Result<String, String> {
    let (tariff, capacity, cores, place) = match &question.cluster {
        Some(name) => {
            let cluster = Cluster::find(name)?;
            let facts = facts_of(&cluster, settings);
            let tariff = collective::tariff(&facts, cluster.shared.is_some());
            (tariff, cluster.capacity(), cluster.cores, format!("cluster {}", cluster.name))
        }
        None => (Tariff::of_job(settings, cores()), usize::MAX, usize::MAX, "as this host".into()),
    };
    let ranks = question.ranks.unwrap_or(if capacity == usize::MAX { 2 } else { capacity });
    let hosts = question.hosts.unwrap_or(ranks.div_ceil(cores));
    if ranks > capacity || hosts > ranks {
        return Err(format!(
            "--ranks {ranks} --hosts {hosts}: no more hosts than ranks, and no more ranks than fit"
        ));
    }
    let asked = collective::Question {
        kind,
        bytes: question.size as u64,
        ranks,
        hosts,
        in_turn: question.in_turn,
        ordered: question.ordered,
    };
    Ok(collective::answer(&asked, &tariff, settings, &place))
}

fn answer(question: &Question) -> Result<String, String> {
    let settings = Settings::from_env()?;
    if let Some(kind) = question.collective {
        return answer_collective(question, kind, &settings);
    }
    if question.puts + question.gets > 0 {
        return answer_epoch(question, &settings);
    }
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
    fn collectives_name_the_algorithm_its_rival_and_what_does_not_apply() {
        let text = ask("--collective MPI_Allreduce --size 8 --cluster c1").unwrap();
        let head = "MPI_Allreduce of 8 bytes, 32 ranks on 4 hosts, cluster c1: two-level\n";
        assert!(text.starts_with(head) && text.contains("% ahead of"), "{text}");
        let text = ask("--collective scan --size 1K --ranks 8 --hosts 2 --in-turn").unwrap();
        assert!(text.contains("these do not apply to this case: two-level"), "{text}");
        let text = ask("--collective gatherv --ranks 4").unwrap();
        assert!(
            text.contains("4 ranks on 1 host, as this host: linear") && text.contains("no other applies"),
            "{text}"
        );
    }

    /// Paper 004: in turn, so that both halves of the link are busy; small ones together, with the synchronisation.
    #[test]
    fn epochs_name_the_plan_and_what_the_others_would_take() {
        let text = ask("--puts 8 --gets 8 --size 64K --cluster em64t-pcie").unwrap();
        assert!(text.starts_with("8 Puts and 8 Gets of 64K, cluster em64t-pcie, rank 0 to "), "{text}");
        assert!(text.contains("order=interleaved messages=none sync=alone"), "{text}");
        let text = ask("--puts 16 --size 8").unwrap();
        let head = "16 Puts of 8, by Tern's adapter over 10 Gbit/s: order=issue messages=8 sync=merged\n";
        assert!(text.starts_with(head) && text.contains("times as long"), "{text}");
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
            ("--size 64K --puts 1025", "--puts 1025: must be a number from 0 to 1024"),
            ("--puts 4", "--size is missing"),
            ("--collective allreduces", "--collective allreduces: must be one of barrier, bcast"),
            ("--collective bcast --ranks 0", "--ranks 0: must be a number from 1"),
            ("--collective bcast --ranks 2 --hosts 3", "--ranks 2 --hosts 3: no more hosts than ranks"),
            ("--collective bcast --cluster c1 --ranks 33", "no more ranks than fit"),
        ] {
            let text = ask(line).unwrap_err();
            assert!(text.contains(part), "{line}: {text}");
        }
    }
}
