//! What a job is started and explained with: arguments of `mpiexec`, the environment of a launcher, values of the key-value
//! store, reports of ranks, files of hosts and of links, answers in PMI-2, what is said between hosts, what an agent is told,
//! the CPUs of ranks, programs that the kernel refuses and what others are linked with, numbers of processes that a program asks for, and subnets and routes.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use launch::address;
use launch::asked;
use launch::crowd::{Crowd, Seat};
use launch::graph::{Report, State, graph};
use launch::image;
use launch::links;
use launch::mpiexec::arguments::{self, Request};
use launch::mpiexec::{agent, foreign, hello, hosts, task};
use launch::pmi::environment::Launcher;
use launch::pmi::two::{Answer, message};
use launch::pmi::value::{self, Maxes};
use launch::report::Line;

/// Reads `input`, whose first byte chooses, as one of them.
pub fn decode(input: &[u8]) {
    let Some((which, rest)) = input.split_first() else { return };
    match which % 15 {
        0 => read_arguments(rest),
        1 => read_environment(rest),
        2 => read_value(rest),
        3 => read_reports(rest),
        4 => read_hosts(rest),
        5 => read_links(rest),
        6 => read_answer(rest),
        7 => read_hello(rest),
        8 => read_handover(rest),
        9 => read_task(rest),
        10 => read_seats(rest),
        11 => read_image(rest),
        12 => read_soft(rest),
        13 => read_subnet(rest),
        _ => read_libraries(rest),
    }
}

fn read_arguments(input: &[u8]) {
    let word = |bytes: &[u8]| OsString::from(OsStr::from_bytes(bytes));
    let words: Vec<OsString> = input.split(|byte| *byte == b'\n').map(word).collect();
    if let Ok(Request::Run(plan)) = arguments::parse(words) {
        // One of several programs may have no rank, the job may not.
        assert!(plan.segments.iter().any(|segment| segment.count > 0));
        assert!(plan.segments.iter().all(|segment| !segment.program.is_empty()));
        if let Some(network) = &plan.network {
            assert_eq!(network.place(&plan).len(), plan.ranks());
        }
    }
}

fn read_environment(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lookup = |name: &str| {
        let mut pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
    };
    if let Ok(Launcher::Descriptor { fd, rank, size }) = Launcher::detect(lookup) {
        assert!(fd >= 0 && rank < size);
    }
}

/// A store that answers each question with the next line, and one that keeps what is put.
fn read_value(input: &[u8]) {
    let maxes = Maxes { name_bytes: 64, key_bytes: 64, value_bytes: 64 };
    let text = String::from_utf8_lossy(input);
    let mut answers = text.lines();
    let _ = value::join("key", maxes, |_| answers.next().map(String::from).ok_or("no more".into()));
    if let Ok(pairs) = value::split("key", input, maxes) {
        let find = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, word)| word.clone());
        assert_eq!(
            value::join("key", maxes, |name| find(name).ok_or("not put".into())).as_deref(),
            Ok(input)
        );
    }
}

/// The lines of all ranks, one rank after the other: `end` begins the next.
fn read_reports(input: &[u8]) {
    let mut reports = Vec::new();
    let mut operations = Vec::new();
    let mut begun = BTreeMap::new();
    for line in input.split(|byte| *byte == b'\n') {
        let rank = reports.len();
        match Line::decode(line) {
            Ok(Line::Pending { pending, .. }) => operations.push(pending),
            Ok(Line::Begun { runs, .. }) => begun.extend(runs),
            Ok(Line::End { left_out, moves, .. }) => {
                let operations = std::mem::take(&mut operations);
                let state = match moves % 3 {
                    0 => State::Moving,
                    1 => State::Idle,
                    _ => State::Pending { operations, left_out },
                };
                reports.push(Report { rank, state, begun: std::mem::take(&mut begun) });
            }
            _ => return,
        }
    }
    assert!(graph(&reports).iter().all(|sentence| !sentence.is_empty()));
}

fn read_hosts(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let read = |text: &str| hosts::from_lines("-f", OsStr::new("file"), text);
    let Ok(found) = read(&text) else { return };
    let line = |host: &hosts::Host| match host.slots {
        Some(slots) => format!("[{}]:{slots}\n", host.name),
        None => format!("[{}]\n", host.name),
    };
    assert_eq!(read(&found.iter().map(line).collect::<String>()), Ok(found));
}

/// A file, and what stands in one behind its first line.
fn read_links(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for text in [links::parse(&text), links::parse(&(links::text(&[]) + &text))] {
        let again = links::parse(&links::text(&text));
        assert!(text.ends_with(&again) && text.is_empty() == again.is_empty());
    }
}

fn read_answer(input: &[u8]) {
    let Ok(answer) = Answer::parse("kvs-get", input) else { return };
    let fields = answer.fields.iter().map(|(key, value)| (&key[..], &value[..])).collect::<Vec<_>>();
    if let [("cmd", command), rest @ ..] = &fields[..]
        && !command.contains(';')
    {
        assert_eq!(&message(command, rest).as_bytes()[6..], input);
    }
}

/// A challenge, and numbers of one side and the other.
fn read_hello(input: &[u8]) {
    if let Some((bytes, _)) = input.split_first_chunk()
        && let Ok(nonce) = hello::read_challenge(bytes)
    {
        assert_eq!(hello::challenge(&nonce), *bytes);
    }
    let secret = hello::Secret::new([7; 16]);
    let Some((answer, _)) = input.split_first_chunk() else { return };
    assert!(secret.check_answer(&[3; 16], answer).is_none());
    let [asked, own] = [0, 16].map(|at| std::array::from_fn(|byte| input[at + byte]));
    let host = u32::from_le_bytes(std::array::from_fn(|byte| input[32 + byte]));
    let (heard, proof) =
        secret.check_answer(&asked, &secret.answer(host, &asked, &own)).expect("it is right");
    assert!(heard == host && secret.check_proof(host, &asked, &own, &proof));
}

fn read_handover(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Some((host, secret, address)) = agent::read_handover(&text) else { return };
    let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let again = format!("tern-agent {host} {digits} {address}");
    assert_eq!(agent::read_handover(&again), Some((host, secret, address)));
}

fn read_task(input: &[u8]) {
    let address = [127, 0, 0, 1].into();
    if task::decode(input, [7; 16], address).is_ok() {
        assert!((0..input.len()).all(|len| task::decode(&input[..len], [7; 16], address).is_err()));
    }
}

/// A seat in each line.
fn read_seats(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(seats) = text.lines().map(str::parse::<Seat>).collect::<Result<Vec<_>, _>>() else { return };
    for (rank, seat) in seats.iter().enumerate() {
        assert_eq!(seat.to_string().parse().as_ref(), Ok(seat));
        let crowd = Crowd::of(rank, &seats);
        assert!(crowd.ranks >= 1 && crowd.share(crowd.ranks) == crowd.cpus);
    }
    assert!(Crowd::worst(&seats).is_none_or(|least| (1..=seats.len()).contains(&least)));
}

/// The beginning of a program.
fn read_image(input: &[u8]) {
    for head in [input, &[&b"\x7fELF"[..], input].concat()] {
        assert!(!image::describe(head).is_empty());
        let interpreter = image::interpreter(head);
        assert!(interpreter.is_none_or(|path| !path.as_os_str().is_empty()));
        let _ = image::is_text(head);
    }
}

/// How many there may be, and the list.
fn read_soft(input: &[u8]) {
    let Some((most, list)) = input.split_first_chunk() else { return };
    let (most, text) = (usize::from(u16::from_le_bytes(*most)), String::from_utf8_lossy(list));
    if let Ok(count) = asked::soft(&text, most) {
        assert!((1..=most).contains(&count));
        assert_eq!(asked::soft(&count.to_string(), most), Ok(count));
    }
}

/// A subnet, then tables of routes.
fn read_subnet(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (subnet, routes) = text.split_once('\n').unwrap_or((&text, ""));
    if let Some((net, bits)) = address::subnet(subnet) {
        assert!(address::is_within(net, net, bits));
    }
    assert!(address::leading(routes, routes).iter().all(|name| routes.contains(name)));
}

/// A program, of which the first bytes are right.
fn read_libraries(input: &[u8]) {
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    let elf = [&[0x7f, b'E', b'L', b'F', 2, order], input].concat();
    let libraries = foreign::needed(&|at, most| {
        let rest = elf.get(usize::try_from(at).ok()?..)?;
        Some(rest[..most.min(rest.len())].to_vec())
    });
    assert!(libraries.is_none_or(|all| all.iter().all(|name| !name.contains('\0'))));
}
