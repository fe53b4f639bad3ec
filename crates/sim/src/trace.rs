//! A drawing of a run for Perfetto or chrome://tracing: a lane per rank, adapter direction and link, an
//! arrow per message, names and colours by protocol.
//!
//! The format is Chrome's trace events in JSON, which both read. Times there are microseconds.

use std::collections::HashMap;
use std::fmt::Write;

use crate::message::Message;
use crate::queue::Ps;

/// Names of colours that both viewers know; protocols take them in turn.
const COLOURS: &[&str] = &[
    "thread_state_running",
    "rail_response",
    "rail_animation",
    "rail_idle",
    "rail_load",
    "startup",
    "heap_dump_stack_frame",
    "cq_build_running",
    "cq_build_failed",
    "thread_state_iowait",
];

/// Groups of lanes.
const RANKS: u32 = 1;
const ADAPTERS: u32 = 2;
const LINKS: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Slice {
    group: u32,
    lane: u32,
    first: Ps,
    last: Ps,
    /// For what ranks do.
    name: &'static str,
    /// For what messages do: their label and number.
    message: Option<(u16, u64)>,
    bytes: usize,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub struct Trace {
    labels: Vec<&'static str>,
    slices: Vec<Slice>,
    limit: usize,
    left_out: u64,
    rails: u32,
}

impl Trace {
    /// Nothing yet; at most `limit` slices will be kept.
    pub fn new(rails: usize, limit: usize) -> Trace {
        Trace { labels: vec![""], slices: Vec::new(), limit, left_out: 0, rails: rails as u32 }
    }

    /// The number of a label.
    pub fn label(&mut self, name: &'static str) -> u16 {
        let known = self.labels.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.labels.push(name);
            self.labels.len() - 1
        }) as u16
    }

    /// A rank does something.
    pub fn rank(&mut self, rank: u32, name: &'static str, first: Ps, last: Ps, bytes: usize) {
        if last > first {
            self.push(Slice { group: RANKS, lane: rank, first, last, name, message: None, bytes });
        }
    }

    /// A message leaves an adapter of `host` in `first..last`, on its way to [`Message::landing`].
    pub fn left(&mut self, host: usize, message: &Message, first: Ps, last: Ps) {
        let lane = self.lane(host, message);
        self.push(message_slice(ADAPTERS, lane * 2, message, first, last));
        self.push(message_slice(
            LINKS,
            self.link(host, message.rail as u32),
            message,
            first,
            message.landing.last,
        ));
    }

    /// A message leaves for another rank of `host`, at `first`. Inside a host there are no queues: messages overlap,
    /// which lanes of adapters cannot show.
    pub fn left_inside(&mut self, host: usize, message: &Message, first: Ps) {
        let lane = self.link(host, self.rails);
        self.push(message_slice(LINKS, lane, message, first, message.landing.last));
    }

    /// A message has landed through an adapter of `host`.
    pub fn landed(&mut self, host: usize, message: &Message) {
        let lane = self.lane(host, message) * 2 + 1;
        self.push(message_slice(ADAPTERS, lane, message, message.landing.first, message.landing.last));
    }

    /// The drawing as JSON.
    pub fn json(&self) -> String {
        let mut out = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        for (group, name) in [(RANKS, "ranks"), (ADAPTERS, "adapters"), (LINKS, "links")] {
            meta(&mut out, "process_name", group, 0, name);
        }
        let mut lanes: Vec<(u32, u32)> = self.slices.iter().map(|slice| (slice.group, slice.lane)).collect();
        lanes.sort_unstable();
        lanes.dedup();
        for (group, lane) in lanes {
            meta(&mut out, "thread_name", group, lane, &self.lane_name(group, lane));
        }
        let arrows = self.arrows();
        for (at, slice) in self.slices.iter().enumerate() {
            self.write(&mut out, slice);
            if let Some(phase) = arrows.get(&at) {
                arrow(&mut out, phase, slice);
            }
        }
        let _infallible = write!(
            out,
            "{{\"ph\":\"M\",\"pid\":0,\"name\":\"left_out\",\"args\":{{\"slices\":{}}}}}\n]}}\n",
            self.left_out
        );
        out
    }

    fn push(&mut self, slice: Slice) {
        if self.slices.len() < self.limit { self.slices.push(slice) } else { self.left_out += 1 }
    }

    fn lane(&self, host: usize, message: &Message) -> u32 {
        host as u32 * self.rails + message.rail as u32
    }

    /// The link of an adapter, or behind those the inside of the host.
    fn link(&self, host: usize, rail: u32) -> u32 {
        host as u32 * (self.rails + 1) + rail
    }

    /// Where arrows begin, go on and end: the slices of a message at adapters, by their number. A message that is
    /// lost has none, one that comes twice ends where it comes last, the answer to a request goes on from it.
    fn arrows(&self) -> HashMap<usize, &'static str> {
        let mut ways: HashMap<u64, Vec<usize>> = HashMap::new();
        let of_adapters = |slice: &Slice| slice.message.filter(|_| slice.group == ADAPTERS);
        for (at, slice) in self.slices.iter().enumerate() {
            if let Some((_, number)) = of_adapters(slice) {
                ways.entry(number).or_default().push(at);
            }
        }
        let is_end = |at: usize| !self.slices[at].lane.is_multiple_of(2);
        let mut phases = HashMap::new();
        for way in ways.values() {
            let (first, Some(end)) = (way[0], way.iter().rposition(|at| is_end(*at))) else { continue };
            if is_end(first) {
                continue; // its beginning was left out
            }
            for at in &way[1..end] {
                phases.insert(*at, "t");
            }
            phases.insert(first, "s");
            phases.insert(way[end], "f");
        }
        phases
    }

    fn lane_name(&self, group: u32, lane: u32) -> String {
        let place = |lane: u32| format!("host {} rail {}", lane / self.rails, lane % self.rails);
        match group {
            RANKS => format!("rank {lane}"),
            ADAPTERS if lane.is_multiple_of(2) => format!("{} out", place(lane / 2)),
            ADAPTERS => format!("{} in", place(lane / 2)),
            _ => match (lane / (self.rails + 1), lane % (self.rails + 1)) {
                (host, rail) if rail < self.rails => format!("host {host} rail {rail}"),
                (host, _) => format!("inside host {host}"),
            },
        }
    }

    fn write(&self, out: &mut String, slice: &Slice) {
        let Slice { group, lane, first, last, bytes, .. } = *slice;
        let (label, number) = slice.message.unwrap_or((0, 0));
        let name = if label == 0 { slice.name } else { self.labels[label as usize] };
        let head = format!("\"pid\":{group},\"tid\":{lane},\"ts\":{}", Micros(first));
        let shade = if label == 0 { slice.name.len() } else { label as usize };
        let colour = COLOURS[shade % COLOURS.len()];
        let about = format!(
            "\"name\":\"{name}\",\"cat\":\"{name}\",\"cname\":\"{colour}\",\"args\":{{\"bytes\":{bytes},\"message\":{number}}}"
        );
        let duration = Micros(last - first);
        // Slices of one lane may not overlap, but messages on a link do: those are asynchronous.
        let _infallible = if group == LINKS {
            writeln!(
                out,
                "{{\"ph\":\"b\",\"id\":{number},{head},{about}}},\n{{\"ph\":\"e\",\"id\":{number},\"pid\":{group},\"tid\":{lane},\"ts\":{},\"name\":\"{name}\",\"cat\":\"{name}\"}},",
                Micros(last)
            )
        } else {
            writeln!(out, "{{\"ph\":\"X\",\"dur\":{duration},{head},{about}}},")
        };
    }
}

/// A point of the arrow of a message: at the beginning of a slice, to which it then belongs.
fn arrow(out: &mut String, phase: &str, slice: &Slice) {
    let Slice { group, lane, first, message, .. } = *slice;
    let number = message.map_or(0, |(_, number)| number);
    let bound = if phase == "f" { ",\"bp\":\"e\"" } else { "" };
    let _infallible = writeln!(
        out,
        "{{\"ph\":\"{phase}\"{bound},\"id\":{number},\"pid\":{group},\"tid\":{lane},\"ts\":{},\"name\":\"message\",\"cat\":\"message\"}},",
        Micros(first)
    );
}

fn message_slice(group: u32, lane: u32, message: &Message, first: Ps, last: Ps) -> Slice {
    let about = Some((message.label, message.number));
    Slice { group, lane, first, last, name: message.kind.name(), message: about, bytes: message.len }
}

fn meta(out: &mut String, what: &str, group: u32, lane: u32, name: &str) {
    let _infallible = writeln!(
        out,
        "{{\"ph\":\"M\",\"pid\":{group},\"tid\":{lane},\"name\":\"{what}\",\"args\":{{\"name\":\"{name}\"}}}},"
    );
}

/// Picoseconds written as microseconds.
struct Micros(Ps);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
