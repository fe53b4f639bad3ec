//! What is drawn for Perfetto, read as strictly as its importer: named lanes, slices that do not overlap, arrows
//! with two ends, colours that exist.

use std::collections::{BTreeMap, BTreeSet};

use proto::Protocol;
use serde_json::Value;
use sim::cluster::Datagram;
use sim::{Cluster, Job, Setup};

/// `cname`s that viewers of trace events know: the ones that are made of one colour
/// (catapult, tracing/base/color_scheme.html).
const KNOWN: &[&str] = &[
    "thread_state_uninterruptible",
    "thread_state_iowait",
    "thread_state_running",
    "thread_state_runnable",
    "thread_state_unknown",
    "background_memory_dump",
    "light_memory_dump",
    "detailed_memory_dump",
    "vsync_highlight_color",
    "generic_work",
    "good",
    "bad",
    "terrible",
    "black",
    "grey",
    "white",
    "yellow",
    "olive",
    "rail_response",
    "rail_animation",
    "rail_idle",
    "rail_load",
    "startup",
    "heap_dump_stack_frame",
    "heap_dump_object_type",
    "heap_dump_child_node_arrow",
    "cq_build_running",
    "cq_build_passed",
    "cq_build_failed",
    "cq_build_abandoned",
];

type Lane = (u64, u64);

/// What a drawing holds, in picoseconds.
#[derive(Default)]
struct Drawing {
    groups: BTreeSet<u64>,
    lanes: BTreeMap<Lane, String>,
    /// By lane, in the order of the file: from, to, name.
    slices: BTreeMap<Lane, Vec<(u64, u64, String)>>,
    /// By group, name and number: those that are open.
    open: BTreeMap<(u64, String, u64), Vec<u64>>,
    /// By number: phase, lane, time.
    arrows: BTreeMap<u64, Vec<(String, Lane, u64)>>,
    /// Of what messages do, by name.
    colours: BTreeMap<String, BTreeSet<String>>,
}

fn text<'v>(event: &'v Value, key: &str) -> &'v str {
    event[key].as_str().unwrap_or_else(|| panic!("no string `{key}` in {event}"))
}

fn number(event: &Value, key: &str) -> u64 {
    event[key].as_u64().unwrap_or_else(|| panic!("no number `{key}` in {event}"))
}

/// Microseconds with six places.
fn time(event: &Value, key: &str) -> u64 {
    let micros = event[key].as_f64().unwrap_or_else(|| panic!("no time `{key}` in {event}"));
    (micros * 1e6).round() as u64
}

impl Drawing {
    fn read(json: &str) -> Drawing {
        let all: Value = serde_json::from_str(json).expect("it is JSON");
        let mut drawing = Drawing::default();
        for event in all["traceEvents"].as_array().expect("a list of events") {
            drawing.add(event);
        }
        drawing
    }

    fn add(&mut self, event: &Value) {
        let phase = text(event, "ph");
        if phase == "M" {
            match text(event, "name") {
                "process_name" => assert!(self.groups.insert(number(event, "pid")), "named twice: {event}"),
                "thread_name" => {
                    let name = event["args"]["name"].as_str().expect("a name").to_string();
                    let lane = (number(event, "pid"), number(event, "tid"));
                    assert_eq!(self.lanes.insert(lane, name), None, "named twice: {event}");
                }
                "left_out" => assert_eq!(event["args"]["slices"], 0, "some slices are missing"),
                other => panic!("metadata {other}"),
            }
            return;
        }
        let lane = (number(event, "pid"), number(event, "tid"));
        assert!(self.groups.contains(&lane.0) && self.lanes.contains_key(&lane), "no name for {event}");
        let at = time(event, "ts");
        if let Some(colour) = event["cname"].as_str() {
            assert!(KNOWN.contains(&colour), "{event}");
            if event["args"]["message"] != 0 {
                self.colours.entry(text(event, "name").into()).or_default().insert(colour.into());
            }
        }
        let name = text(event, "name").to_string();
        match phase {
            "X" => self.slices.entry(lane).or_default().push((at, at + time(event, "dur"), name)),
            "b" => self.open.entry((lane.0, name, number(event, "id"))).or_default().push(at),
            "e" => {
                let open = self.open.get_mut(&(lane.0, name, number(event, "id"))).expect("it began");
                assert!(open.pop().expect("it began") <= at, "{event} ends before it begins");
            }
            "s" | "t" | "f" => {
                self.arrows.entry(number(event, "id")).or_default().push((phase.into(), lane, at))
            }
            other => panic!("phase {other}: {event}"),
        }
    }

    fn check(&self) {
        let names: BTreeSet<&String> = self.lanes.values().collect();
        assert!(!names.contains(&String::new()));
        for (lane, slices) in &self.slices {
            let name = &self.lanes[lane];
            for pair in slices.windows(2) {
                // Picoseconds do not survive the way through microseconds as a double whole.
                assert!(pair[0].1 <= pair[1].0 + 1, "{name}: {:?} overlaps {:?}", pair[0], pair[1]);
            }
        }
        assert!(self.open.values().all(Vec::is_empty), "something never ends");
        for (number, points) in &self.arrows {
            let phases: Vec<&str> = points.iter().map(|(phase, ..)| phase.as_str()).collect();
            let (first, last) = (phases[0], phases[phases.len() - 1]);
            assert!((first, last) == ("s", "f"), "message {number}: {phases:?}");
            assert!(
                phases[1..phases.len() - 1].iter().all(|phase| *phase == "t"),
                "message {number}: {phases:?}"
            );
            assert!(points.is_sorted_by_key(|(.., at)| *at), "message {number} goes back in time");
            for (_, lane, at) in points {
                let is_inside = |slice: &&(u64, u64, String)| slice.0 <= *at && *at <= slice.1;
                assert!(self.slices[lane].iter().any(|slice| is_inside(&slice)), "message {number} at {at}");
            }
        }
        for (name, colours) in &self.colours {
            assert_eq!(colours.len(), 1, "{name} has {colours:?}");
        }
        let distinct: BTreeSet<_> = self.colours.values().flatten().collect();
        assert_eq!(distinct.len(), self.colours.len(), "protocols share a colour: {:?}", self.colours);
    }
}

fn ring(rank: &mut sim::Rank<'_>) -> mpi::Result<()> {
    let (me, n) = (rank.rank(), rank.size());
    for (round, len) in [8, 5000, 70_001, 300_000, 300_000].into_iter().enumerate() {
        let (out, into) = (rank.buffer(len), rank.buffer(len));
        rank.compute(100_000 * (me % 2) as u64);
        rank.sendrecv(out, (me + 1) % n, into, ((me + n - 1) % n) as i32, round as i32 / 3)?;
    }
    Ok(())
}

#[test]
fn drawings_are_what_perfetto_reads() {
    for name in ["graphene", "ndr-2026"] {
        for (protocol, word) in Protocol::ALL {
            let mut setup = Setup::default();
            setup.limits.force = Some(protocol);
            let job = Job::new(&Cluster::find(name).unwrap(), 6).per_host(2).trace(1 << 20);
            let report = job.program(&setup, ring).unwrap();
            let drawing = Drawing::read(&report.trace.unwrap().json());
            drawing.check();
            assert!(!drawing.arrows.is_empty() && drawing.colours.len() >= 2, "{name}, {word}");
            let inside = drawing.lanes.values().filter(|lane| lane.starts_with("inside host")).count();
            assert_eq!(
                (inside, drawing.lanes.values().filter(|lane| lane.starts_with("rank")).count()),
                (3, 6)
            );
        }
    }
}

/// Datagrams that are lost have no arrow, those that come twice have one.
#[test]
fn lost_datagrams_leave_no_open_end() {
    let mut cluster = Cluster::find("graphene").unwrap();
    cluster.datagram =
        Datagram { max_bytes: 2048, loss: 0.3, duplication: 0.3, reorder: 0.3, ..cluster.datagram };
    let job = Job::new(&cluster, 2).per_host(1).seed(3).trace(1 << 20);
    let report = job.run(datagrams).unwrap();
    assert!(report.counters.lost > 0 && report.counters.doubled > 0 && report.counters.reordered > 0);
    Drawing::read(&report.trace.unwrap().json()).check();
}

/// Rank 0 sends, rank 1 has room for all.
fn datagrams(mut nic: sim::Nic<'_>) {
    use fabric::{Local, Nap, Rights, Verbs};
    let span = nic.allocate(4096);
    let local = nic.register(0, span, Rights::ALL).unwrap().local(span);
    for work in 0..100 {
        if nic.me() == 1 {
            nic.post_receive(0, local, work);
        } else {
            while !nic.post_datagram(1, 0, &[Local { span: span.part(0, 500), ..local }], work).unwrap() {
                nic.poll();
            }
        }
    }
    let end = nic.now_ns() + 10_000_000;
    while nic.now_ns() < end {
        while nic.poll().is_some() {}
        nic.alarm(end);
        nic.idle(0).take();
    }
}
