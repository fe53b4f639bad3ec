//! Every machine in every state is told everything: the table of what it does is a snapshot
//! (`transitions.txt`; `TERN_UPDATE_SNAPSHOTS=1` writes it), and nothing stays held.

pub(super) mod script;

use super::chunks::Plan;
use super::{BY_FRAMES, Happening, Machine, Mover, Step};
use crate::choice::tuning::Tuning;
use crate::choice::way::Protocol;
use crate::message::op::Side;
use fabric::Span;
use script::{BUFFER, STAGING, Script, message};
use std::fmt::Write;
use wire::long::{Fragment, LongRts};

/// Bytes of the message: two blocks and a half behind the RDMA offset, four chunks.
const LEN: usize = 12_000;

fn script() -> Script {
    let tuning = Tuning {
        head_bytes: 500,
        rdma_offset_bytes: 2000,
        block_bytes: 4096,
        depth: 2,
        first_chunk_bytes: 4096,
        growth: 1.0,
        fixed_chunk_bytes: Some(3000),
        staging_bytes: 4096,
        ..Tuning::default()
    };
    Script { tuning, ..Script::default() }
}

/// What may happen, by a name.
fn happening(protocol: Protocol, name: &str) -> Happening {
    let at = |offset: u64, len: u64| Fragment { offset, len, addr: 0x5000 + offset, ..Fragment::default() };
    let copies = matches!(protocol, Protocol::Superpipeline | Protocol::CopyPipeline);
    let plan = match protocol {
        Protocol::CopyPipeline => super::copy_pipeline::plan(LEN as u64, &script().tuning),
        _ => Plan::growing(4096, 1.0, &script().tuning),
    };
    let keys = if copies { plan.encode() } else { [0; 4] };
    let chunk = |k: usize| plan.chunks(LEN as u64).nth(k).map(|c| at(c.offset, c.len as u64)).expect("there");
    let data = |len: usize| Span { addr: 0x1000, len };
    match name {
        "start" => Happening::Start,
        "matched" => Happening::Matched(
            LongRts { len: LEN as u64, addr: 0x5000, protocol: protocol as u16, keys, ..LongRts::default() },
            if copies || matches!(protocol, Protocol::Rget | Protocol::Speculative) { 0 } else { 500 },
        ),
        "matched, nonsense" => Happening::Matched(LongRts { len: LEN as u64, ..LongRts::default() }, 0),
        "ack" if copies => Happening::Ack(at(5, LEN as u64)),
        "ack" => Happening::Ack(at(2000, LEN as u64)),
        "ack of everything by frames" => Happening::Ack(at(LEN as u64, LEN as u64)),
        "ack of nothing" => Happening::Ack(at(0, 0)),
        "ack, too long" => Happening::Ack(at(2000, LEN as u64 + 1)),
        "ack, rail 9" => Happening::Ack(Fragment { rail: 9, ..at(2000, LEN as u64) }),
        "ready 0" if copies => Happening::Ready(at(0, 0)),
        "ready 1" if copies => Happening::Ready(at(1, 0)),
        "ready 0" => Happening::Ready(at(2000, 4096)),
        "ready 1" => Happening::Ready(at(6096, 4096)),
        "ready 0 by frames" => Happening::Ready(Fragment { flags: BY_FRAMES, ..at(2000, 4096) }),
        "ready, all" => Happening::Ready(at(0, LEN as u64)),
        "ready, outside" => Happening::Ready(at(2000, u64::MAX)),
        "fin 0" if copies => Happening::Fin(chunk(0)),
        "fin 1" if copies => Happening::Fin(chunk(1)),
        "fin 0" => Happening::Fin(at(2000, 4096)),
        "fin 1" => Happening::Fin(at(6096, 4096)),
        "fin, outside" => Happening::Fin(at(1000, 4096)),
        "data" => Happening::Data(500, data(1500)),
        "data of block 0" => Happening::Data(2000, data(1000)),
        "data, outside" => Happening::Data(u64::MAX, data(2)),
        "completed 0" => Happening::Completed(0),
        "completed 1" => Happening::Completed(1),
        "look" => Happening::Look,
        other => panic!("{other}"),
    }
}

const ALL: &[&str] = &[
    "start",
    "matched",
    "matched, nonsense",
    "ack",
    "ack of everything by frames",
    "ack of nothing",
    "ack, too long",
    "ack, rail 9",
    "ready 0",
    "ready 1",
    "ready 0 by frames",
    "ready, all",
    "ready, outside",
    "fin 0",
    "fin 1",
    "fin, outside",
    "data",
    "data of block 0",
    "data, outside",
    "completed 0",
    "completed 1",
    "look",
];

/// States by the way that leads there: what happens, and from where on the port refuses what.
type Path = (&'static str, &'static [&'static str]);

fn ways(protocol: Protocol, side: Side) -> &'static [Path] {
    match (protocol, side) {
        (Protocol::Rget | Protocol::Speculative, Side::Send) => &[("Idle", &[]), ("Offered", &["start"])],
        (Protocol::Rget | Protocol::Speculative, Side::Receive) => {
            &[("Idle", &[]), ("Reading", &["matched"])]
        }
        (Protocol::Rput, Side::Send) => &[
            ("Idle", &[]),
            ("Asked", &["start"]),
            ("Writing, nothing ready", &["start", "ack"]),
            ("Writing", &["start", "ack", "ready, all"]),
        ],
        (Protocol::Rput, Side::Receive) => &[("Idle", &[]), ("Exposed", &["matched"])],
        (Protocol::Pipeline | Protocol::CachingPipeline, Side::Send) => &[
            ("Idle", &[]),
            ("Asked", &["start"]),
            ("Moving, no room for frames", &["start", "no room", "ack"]),
            ("Moving, nothing ready", &["start", "ack"]),
            ("Moving, one block", &["start", "ack", "ready 0"]),
            ("Moving, two blocks", &["start", "ack", "ready 0", "ready 1"]),
            ("Moving, cannot register", &["start", "ack", "no memory"]),
        ],
        (Protocol::Pipeline | Protocol::CachingPipeline, Side::Receive) => &[
            ("Idle", &[]),
            ("Idle, cannot register", &["no memory"]),
            ("Exposing, one block", &["matched"]),
            ("Exposing", &["matched", "look"]),
            ("Exposing, head complete", &["matched", "look", "data"]),
            ("Exposing, cannot register", &["no memory", "matched"]),
        ],
        (_, Side::Send) => &[
            ("Idle", &[]),
            ("Idle, no room", &["no room"]),
            ("Idle, cannot register", &["no memory"]),
            ("Idle, no slab", &["no slab"]),
            ("Asked", &["start"]),
            ("Asked, no slab", &["no slab", "start"]),
            ("Waiting", &["no slab", "start", "ack"]),
            ("Moving", &["start", "ack"]),
            ("Moving, one has left", &["start", "ack", "completed 0"]),
            ("Moving, one acknowledged", &["start", "ack", "ready 0"]),
        ],
        (_, Side::Receive) => &[
            ("Idle", &[]),
            ("Idle, no slab", &["no slab"]),
            ("Idle, cannot register", &["no memory"]),
            ("Waiting", &["no slab", "matched"]),
            ("Landing", &["matched"]),
            ("Landing, a chunk is there", &["matched", "flags 0"]),
            ("Landing, told", &["disorder", "matched"]),
        ],
    }
}

struct Stage {
    machine: Machine,
    script: Script,
}

impl Stage {
    /// A machine in the state that a way leads to.
    fn at(protocol: Protocol, side: Side, way: &[&str]) -> Stage {
        let mut stage = Stage { machine: Machine::new(protocol, side), script: script() };
        for name in way {
            match *name {
                "no room" => stage.script.has_no_room = true,
                "no memory" => stage.script.refuses_to_register = true,
                "no slab" => stage.script.has_no_slab = true,
                "disorder" => stage.script.is_disordered = true,
                "flags 0" => {
                    let flags: Vec<_> =
                        stage.script.words.keys().copied().filter(|a| *a < STAGING + 4096).collect();
                    stage.script.words.extend(flags.into_iter().map(|addr| (addr, 1 << 63 | 5 << 32 | 1)));
                }
                name => {
                    let step = stage.tell(protocol, name);
                    assert!(matches!(step, Step::Going | Step::Looking | Step::Moved), "{name}: {step:?}");
                }
            }
        }
        stage.script.log.clear();
        stage
    }

    fn tell(&mut self, protocol: Protocol, name: &str) -> Step {
        self.machine.on(happening(protocol, name), &message(Some(protocol), LEN), &mut self.script)
    }
}

fn table() -> String {
    let mut out = String::new();
    for (protocol, name) in Protocol::ALL {
        for side in [Side::Send, Side::Receive] {
            writeln!(out, "{name}, {}", if side == Side::Send { "sender" } else { "receiver" }).unwrap();
            for (state, way) in ways(protocol, side) {
                writeln!(out, "  {state}").unwrap();
                ALL.iter().for_each(|what| row(&mut out, protocol, side, way, what));
            }
        }
    }
    out
}

fn row(out: &mut String, protocol: Protocol, side: Side, way: &[&str], what: &str) {
    let mut stage = Stage::at(protocol, side, way);
    let step = stage.tell(protocol, what);
    let said = std::mem::take(&mut stage.script.log);
    match &step {
        Step::Illegal => assert!(said.is_empty(), "{way:?}, {what}: illegal, and yet {said:?}"),
        step => {
            writeln!(out, "    {what} → {step:?}").unwrap();
            said.iter().for_each(|line| writeln!(out, "      {line}").unwrap());
        }
    }
    if matches!(step, Step::Done | Step::Frames) {
        assert!(stage.script.held.is_empty() && stage.script.slabs.is_empty(), "{way:?}, {what}: {step:?}");
    }
    stage.machine.retreat(&mut stage.script);
    assert!(stage.script.held.is_empty() && stage.script.slabs.is_empty(), "{way:?}, {what}: retreat");
}

#[test]
fn everything_in_every_state() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rendezvous/movers/tests/transitions.txt");
    let table = table();
    if std::env::var_os("TERN_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    for (line, (is, was)) in table.lines().zip(expected.lines()).enumerate() {
        assert_eq!(is, was, "line {} of transitions.txt; TERN_UPDATE_SNAPSHOTS=1 writes it anew", line + 1);
    }
    assert_eq!(table.lines().count(), expected.lines().count());
}

/// The blocks of a caching pipeline end at the same addresses wherever the message begins, and each
/// is registered as a whole; a plain one is cut from where it begins.
#[test]
fn blocks_of_a_caching_pipeline_are_aligned() {
    for (protocol, expected) in [
        (
            Protocol::Pipeline,
            ["buffer+2000..+4096 rail 0, to be written to", "buffer+6096..+4096 rail 1, to be written to"],
        ),
        (
            Protocol::CachingPipeline,
            [
                "buffer+0..+4096 rail 0, to be written to, to keep",
                "buffer+4096..+4096 rail 1, to be written to, to keep",
            ],
        ),
    ] {
        let mut stage = Stage::at(protocol, Side::Receive, &[]);
        stage.script.rails = 2;
        assert_eq!(BUFFER % 4096, 0);
        stage.tell(protocol, "matched");
        stage.tell(protocol, "look");
        let registered: Vec<_> =
            stage.script.log.iter().filter_map(|l| l.strip_prefix("register ")).collect();
        assert_eq!(registered, expected);
    }
}

/// Adapters carry blocks by their bandwidth.
#[test]
fn blocks_go_where_there_is_room() {
    let mut stage = Stage::at(Protocol::Pipeline, Side::Receive, &[]);
    stage.script.rails = 2;
    stage.script.tuning = Tuning { rails: [3, 1, 1, 1], depth: 100, block_bytes: 100, ..stage.script.tuning };
    stage.tell(Protocol::Pipeline, "matched");
    while stage.tell(Protocol::Pipeline, "look") == Step::Moved {}
    let second =
        stage.script.log.iter().filter(|l| l.starts_with("register") && l.contains("rail 1")).count();
    assert_eq!((stage.script.held.len(), second), (100, 25));
}
