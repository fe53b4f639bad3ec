//! What a rank knows and has decided about long messages, and what their ends teach.
//!
//! Only messages that are too long for eager come here, and only over registered memory; shared
//! memory has its limit (`crate::choice::eager_limit`), and an account if one is asked for.

use crate::choice::choose::{Choices, Key, LONG};
use crate::choice::explain::Account;
use crate::choice::facts::{Facts, Path};
use crate::choice::terms::{self, Message};
use crate::choice::way::Way;
use crate::memory::rcache::Held;
use crate::message::matching::Envelope;
use crate::message::op::OpId;
use crate::message::work::Work;
use crate::rendezvous::posting::Post;
use crate::rendezvous::state::Long;
use fabric::estimate::{Averaging, Least};
use fabric::spread::SpreadMap;
use fabric::{Device, Distance, Rank, Span};
use std::collections::{HashSet, VecDeque};
use wire::long::Report;

/// Buffers whose uses are counted; when there are more, counting begins anew.
const BUFFERS_MAX: usize = 4096;
/// Envelopes whose receivers' habits are kept; those of further ones are not.
const ENVELOPES_MAX: usize = 4096;
/// What has come `u` times is expected to come `4·u` times more, so that of a registration `s/(u + s)`
/// is left to pay: the speculation factor of 25 % of «000», section 3.3.1.
pub(crate) const SPECULATION: f64 = 0.25;
/// Messages whose receivers have not told how long they took; of more the oldest are forgotten.
const AWAITED_MAX: usize = 64;
/// How what is known of a receiver's lateness follows what it does: applications change it from phase to phase.
const LATE: Averaging = Averaging::fading(4);
/// A rank that has not looked around for so long was outside MPI: what ended meanwhile says
/// nothing about how long it took.
const AWAY_NS: u64 = 5000;
/// Times of which the shortest is taken for an observation.
const TIMES: u32 = 8;
/// Copies between two that are timed, and the shortest of them.
const COPY_SAMPLE: (u32, usize) = (4, 4096);

/// What was predicted of a message that is under way.
#[derive(Clone, Copy, Debug)]
struct Told {
    key: Option<Key>,
    way: Way,
    envelope: Envelope,
    to: Distance,
    len: usize,
    predicted_ns: f64,
    begun_ns: u64,
    left_ns: u64,
    /// By how much the receiver came late; `None` until it has answered.
    late_ns: Option<f64>,
    /// When the RTS met its receive; `None` until the receiver has answered.
    met_ns: Option<f64>,
}

/// A transfer that is alone on its way, so that its time is that of its bytes.
#[derive(Clone, Copy, Debug)]
struct Lone {
    work: Work,
    posted_ns: u64,
    len: usize,
    is_write: bool,
    to: Distance,
}

/// The shortest of some times of so many bytes, compared with what was expected: the others say how busy the ranks
/// were that should have looked.
type Shortest = Least<(usize, f64)>;

/// What one rank knows and has decided.
#[derive(Debug)]
pub struct Learner {
    /// What is known.
    pub facts: Facts,
    /// What is in force.
    pub choices: Choices,
    /// What messages did, for people.
    pub account: Account,
    buffers: SpreadMap<usize, (usize, u32)>,
    late: SpreadMap<Envelope, f64>,
    told: SpreadMap<OpId, Told>,
    held: Vec<(Held, usize)>,
    outstanding: u32,
    lone: Option<Lone>,
    looked_ns: u64,
    away_ns: u64,
    /// Time outside MPI while something was under way.
    outside_ns: u64,
    /// Long messages that are coming in.
    receiving: u32,
    /// Peers to which messages have gone by frames, and through staging memory: the first one pays for what is there from
    /// then on.
    known: HashSet<(Rank, bool)>,
    /// What was predicted of messages that have left, and of which the receiver has not yet told.
    awaited: VecDeque<(OpId, Told)>,
    copies: u32,
    /// By distance: round trips, writes and reads.
    trips: [Shortest; Distance::ALL.len()],
    writes: [Shortest; Distance::ALL.len()],
    reads: [Shortest; Distance::ALL.len()],
    pub(crate) decided: u32,
}

impl Learner {
    pub(crate) fn new(facts: Facts) -> Learner {
        Learner {
            facts,
            choices: Choices::default(),
            account: Account::default(),
            buffers: SpreadMap::default(),
            late: SpreadMap::default(),
            told: SpreadMap::default(),
            held: Vec::new(),
            outstanding: 0,
            lone: None,
            looked_ns: 0,
            away_ns: 0,
            outside_ns: 0,
            receiving: 0,
            known: HashSet::new(),
            awaited: VecDeque::new(),
            copies: 0,
            trips: Default::default(),
            writes: Default::default(),
            reads: Default::default(),
            decided: 0,
        }
    }

    /// How often this buffer was used before, for as many bytes; counts the use.
    pub(crate) fn uses(&mut self, span: Span) -> u32 {
        if self.buffers.len() >= BUFFERS_MAX && !self.buffers.contains_key(&span.addr) {
            self.buffers.clear();
        }
        let (len, uses) = self.buffers.entry(span.addr).or_insert((span.len, 0));
        let before = if *len >= span.len { *uses } else { 0 };
        (*len, *uses) = (span.len.max(*len), before + 1);
        before
    }

    /// Whether times are being taken: then the engine says when it looks around.
    #[inline]
    pub(crate) fn is_watching(&self) -> bool {
        self.lone.is_some() || !self.told.is_empty() || self.receiving > 0
    }

    /// The engine begins to look around; `waiting` if it has not left MPI since it last did.
    pub(crate) fn look(&mut self, now_ns: u64, waiting: bool) {
        if !waiting && now_ns > self.looked_ns + AWAY_NS {
            self.away_ns = now_ns;
            self.outside_ns += now_ns - self.looked_ns;
        }
        self.looked_ns = now_ns;
    }

    /// The engine is at work.
    pub(crate) fn looked(&mut self, now_ns: u64) {
        self.looked_ns = now_ns;
    }

    /// A transfer has been posted.
    pub(crate) fn posted(&mut self, work: Work, now_ns: u64, len: usize, is_write: bool, to: Distance) {
        self.looked(now_ns);
        self.outstanding += 1;
        let lone = Lone { work, posted_ns: now_ns, len, is_write, to };
        self.lone = (self.outstanding == 1).then_some(lone);
    }

    /// As [`Learner::posted`].
    pub(crate) fn is_posted(&mut self, dev: &impl Device, w: &Post) {
        self.posted(w.work(), dev.now_ns(), w.local.span.len, w.write, dev.distance(w.peer));
    }

    /// A transfer has ended.
    pub(crate) fn completed(&mut self, work: Work, now_ns: u64, is_well: bool) {
        self.outstanding = self.outstanding.saturating_sub(1);
        let Some(lone) = self.lone.take_if(|lone| lone.work == work) else { return };
        if !is_well || lone.posted_ns < self.away_ns {
            return;
        }
        let link = &mut self.facts.paths[lone.to as usize];
        let expected_ns = link.write.at(lone.len as f64);
        let shortest = if lone.is_write { &mut self.writes } else { &mut self.reads };
        let took_ns = (now_ns - lone.posted_ns) as f64;
        let ratio = took_ns / expected_ns.max(1.0);
        let Some((_, (len, ns))) = shortest[lone.to as usize].add(TIMES, ratio, (lone.len, took_ns)) else {
            return;
        };
        if lone.is_write {
            // The sender learns of the end one latency later.
            link.write.observe(len, (ns - link.latency.value).max(0.0));
        } else if link.write.count > 0 {
            link.read.observe((ns - link.write.at(len as f64)).max(0.0));
        } else {
            link.write.observe(len, (ns - link.read.value).max(0.0));
        }
    }

    /// A question of an epoch that left then is answered. What it carried took so much of the way.
    pub(crate) fn epoch_answered(&mut self, to: Distance, asked_ns: u64, now_ns: u64, carried: usize) {
        let link = &mut self.facts.paths[to as usize];
        let wire_ns = carried as f64 * link.write.per_byte;
        // Behind much that is carried little is seen of the way itself.
        if asked_ns <= self.away_ns || 2.0 * wire_ns > link.latency.value {
            return;
        }
        let trip_ns = (now_ns - asked_ns) as f64 - wire_ns;
        if let Some((ns, _)) = self.trips[to as usize].add(TIMES, trip_ns, (0, trip_ns)) {
            link.latency.observe(ns / 2.0);
        }
    }

    /// Memory was registered anew.
    pub(crate) fn registered(&mut self, held: Held, len: usize, ns: u64, now_ns: u64) {
        self.looked(now_ns);
        self.facts.register.observe(len, ns as f64);
        self.held.push((held, len));
    }

    /// A registration was released; `ended` if it was given back to the adapter.
    pub(crate) fn released(&mut self, held: Held, ns: u64, ended: bool) {
        let Some(at) = self.held.iter().position(|(known, _)| *known == held) else { return };
        let (_, len) = self.held.swap_remove(at);
        if ended {
            self.facts.deregister.observe(len, ns as f64);
        }
    }

    /// Whether to time this copy.
    pub(crate) fn times_copy(&mut self, len: usize) -> bool {
        self.copies = self.copies.wrapping_add(1);
        len >= COPY_SAMPLE.1 && self.copies.is_multiple_of(COPY_SAMPLE.0)
    }

    /// A long message begins to leave.
    pub(crate) fn begins(&mut self, id: OpId, now_ns: u64) {
        if let Some(told) = self.told.get_mut(&id) {
            (told.begun_ns, told.left_ns) = (now_ns, now_ns);
            self.looked(now_ns);
        }
    }

    /// Its RTS has left.
    pub(crate) fn leaves(&mut self, id: OpId, now_ns: u64) {
        if let Some(told) = self.told.get_mut(&id) {
            told.left_ns = now_ns;
            self.looked(now_ns);
        }
    }

    /// Its receiver has said that the RTS has met a receive that had waited for so long. The answer would have been here
    /// at `now_ns` had it left at once.
    pub(crate) fn answered(&mut self, id: OpId, now_ns: u64, waited_ns: u64) {
        let gone = self.awaited.iter_mut().find(|(known, _)| *known == id).map(|(_, told)| told);
        let Some(told) = self.told.get_mut(&id).or(gone) else { return };
        let (to, was_here) = (told.envelope, told.left_ns >= self.away_ns);
        let along_ns = self.facts.along_ns(told.to, told.way, told.len);
        let link = &mut self.facts.paths[told.to as usize];
        let trip_ns = (now_ns.saturating_sub(told.left_ns) as f64 - along_ns).max(0.0);
        let late_ns = if waited_ns > 0 { 0.0 } else { (trip_ns - 2.0 * link.latency.value).max(0.0) };
        if waited_ns > 0
            && was_here
            && let Some((ns, _)) = self.trips[told.to as usize].add(TIMES, trip_ns, (0, trip_ns))
        {
            link.latency.observe(ns / 2.0);
        }
        told.late_ns = Some(late_ns);
        told.met_ns = Some(now_ns as f64 - link.latency.value);
        if self.late.len() < ENVELOPES_MAX || self.late.contains_key(&to) {
            let known = self.late.entry(to).or_insert(late_ns);
            *known = LATE.follow(Some(*known), 1, late_ns);
        }
    }

    /// By how much the receiver is expected to come late; 0 if that is less than a round trip.
    pub(crate) fn late_ns(&self, to: &Envelope, distance: Distance) -> f64 {
        let late_ns = self.late.get(to).copied().unwrap_or(0.0);
        if late_ns > 2.0 * self.facts.path(distance).latency.value { late_ns } else { 0.0 }
    }

    /// Nothing is to be learnt of this message any more.
    pub(crate) fn forget(&mut self, id: OpId) {
        if !self.told.is_empty() {
            self.told.remove(&id);
        }
    }

    /// The receiver wants frames: nothing is to be learnt of this message unless that was expected.
    pub(crate) fn takes_frames(&mut self, id: OpId) {
        if self.told.get(&id).is_some_and(|told| told.way != Way::Frames) {
            self.told.remove(&id);
        }
    }

    /// A message has ended: compares what it took with what was predicted.
    pub(crate) fn ended(&mut self, id: OpId, now_ns: u64) {
        let Some(told) = self.told.remove(&id) else { return };
        let took_ns = now_ns.saturating_sub(told.begun_ns) as f64;
        // The sender learns of the end one latency after the last byte has arrived.
        let path = self.facts.path(told.to);
        let notice_ns = if path.registration { path.latency.value } else { 0.0 };
        let seen_ns = (took_ns - told.late_ns.unwrap_or(0.0) - notice_ns).max(1.0);
        self.account.ended(told.to, told.way, told.len, seen_ns);
        if told.key.is_some() {
            if self.awaited.len() >= AWAITED_MAX {
                self.awaited.pop_front();
            }
            self.awaited.push_back((id, told));
        }
    }

    /// How long this rank has been outside MPI so far, as far as it was watched.
    pub(crate) fn outside_ns(&mut self, now_ns: u64) -> u64 {
        self.looked(now_ns);
        self.outside_ns
    }

    /// A message begins to come in: how long this rank has been outside MPI before.
    pub(crate) fn receives(&mut self, now_ns: u64) -> u64 {
        self.receiving += 1;
        self.outside_ns(now_ns)
    }

    /// A message that was coming in has failed, or comes by frames.
    pub(crate) fn gives_up(&mut self) {
        self.receiving = self.receiving.saturating_sub(1);
    }

    /// It is there: how long it took, without what the application did meanwhile.
    pub(crate) fn received(&mut self, long: &Long, now_ns: u64) -> Report {
        self.gives_up();
        let took_ns = (now_ns - long.begun_ns).saturating_sub(self.outside_ns - long.away_ns);
        let short = |ns: u64| ns.min(u32::MAX as u64) as u32;
        Report { op: long.message.peer_op, took_ns: short(took_ns).max(1), waited_ns: short(long.waited_ns) }
    }

    /// The receiver tells how long a message took.
    pub(crate) fn reported(&mut self, report: Report) {
        let id = OpId(report.op);
        if report.took_ns == 0 {
            return;
        }
        let told = match self.awaited.iter().position(|(known, _)| *known == id) {
            Some(at) => self.awaited.remove(at).map(|(_, told)| told),
            None => self.told.get_mut(&id).map(|told| Told { key: told.key.take(), ..*told }),
        };
        let Some((told, key)) = told.and_then(|told| Some((told, told.key?))) else { return };
        // Before they meet the receiver waits; if it comes later it does not.
        let way_ns =
            self.facts.path(told.to).latency.value + self.facts.along_ns(told.to, told.way, told.len);
        let met_ns = told.met_ns.unwrap_or(0.0).max(told.left_ns as f64 + way_ns);
        let before_ns = met_ns - told.begun_ns as f64;
        let seen_ns = report.took_ns as f64 + before_ns.min(report.waited_ns as f64);
        let known = (told.envelope.source, told.way.is_staged());
        if (told.way.is_framed() || told.way.is_staged()) && self.known.insert(known) {
            return self.choices.untold(key, told.way);
        }
        self.choices.ended(key, told.way, told.predicted_ns, seen_ns);
    }

    /// As [`Learner::ended`], and looks at the clock only if there is reason to.
    #[inline]
    pub(crate) fn ended_at(&mut self, id: OpId, dev: &impl Device) {
        if !self.told.is_empty() {
            self.ended(id, dev.now_ns());
        }
    }

    /// A message leaves of which the end will be seen.
    pub(crate) fn tell(
        &mut self,
        id: OpId,
        envelope: Envelope,
        way: Way,
        message: &Message,
        predicted_ns: f64,
        now_ns: u64,
    ) {
        self.looked(now_ns);
        let key = self.facts.path(message.distance).registration.then(|| Key::of(message));
        let told = Told {
            key,
            way,
            envelope,
            to: message.distance,
            len: message.len,
            predicted_ns,
            begun_ns: now_ns,
            left_ns: now_ns,
            late_ns: message.rtr.then_some(0.0),
            met_ns: None,
        };
        self.told.insert(id, told);
        let entry = key.and_then(|key| self.choices.entry(key));
        self.account.left(message.distance, way, message.len, predicted_ns, entry);
    }

    /// Whether an RTR would be of use for the next message like this one, which goes this way.
    pub(crate) fn welcomes_rtr(&self, message: &Message, way: Way) -> bool {
        if way == Way::Write {
            return true;
        }
        if message.rtr {
            let in_force = self.choices.entry(Key::of(message)).map(|entry| entry.way());
            return in_force == Some(Way::Write);
        }
        self.choices.would_write(&self.facts, message, way)
    }

    /// Longest message to peers of this distance that had better be copied eagerly than go by any other way, if
    /// its buffer has not been seen before.
    pub(crate) fn eager_limit(&self, distance: Distance) -> usize {
        const STEP: usize = 1024;
        let Path { eager_bytes: most_bytes, at_once_bytes, .. } = *self.facts.path(distance);
        // What the adapter takes at once waits for nobody, and a rendezvous for as long as its peer computes.
        if at_once_bytes >= most_bytes {
            return at_once_bytes;
        }
        let dearer = |len: &usize| {
            let message = Message { len: *len, distance, reuse: 0.0, rtr: false, late_ns: 0.0, eager: true };
            let eager = terms::cost(Way::Eager, &self.facts, &message).map_or(f64::MAX, |c| c.total_ns());
            let other = LONG.iter().filter_map(|way| terms::cost(*way, &self.facts, &message));
            other.map(|cost| cost.total_ns()).fold(f64::INFINITY, f64::min) < eager
        };
        let first = (STEP..=most_bytes).step_by(STEP).find(dearer);
        first.map_or(most_bytes, |len| len - STEP)
    }
}
