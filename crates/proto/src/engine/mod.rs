//! One rank's end of all protocols: what it has, and what can be asked of it.

mod arrive;
mod atomics;
mod explanation;
pub mod frequent;
mod growth;
mod issue;
mod lost;
mod mark;
mod onesided;
mod progress;
mod readings;
pub(crate) mod receive;
pub(crate) mod send;
mod serve;
mod threads;

use crate::choice::choose::Choices;
use crate::choice::eager_limit::{EagerLimit, limit_from};
use crate::choice::edge::edge;
use crate::choice::explain::{Account, Detail};
use crate::choice::facts::{Facts, Path};
use crate::choice::habits::{Habits, Manner};
use crate::choice::terms::{self, Message};
use crate::choice::tuning::Tuning;
use crate::choice::way::Protocol;
use crate::choice::way::Way;
use crate::engine::frequent::{EagerBy, Frequent};
use crate::engine::progress::Idle;
use crate::epoch::journal::Journal;
use crate::epoch::window::Epochs;
use crate::event::{Counters, Event};
use crate::memory::rcache::{CacheLimits, Rcache};
use crate::memory::staging::Staging;
use crate::message::matching::{Envelope, Matching};
use crate::message::op::{OpId, Outcome, PendingOp};
use crate::message::peers::Peers;
use crate::rendezvous::ahead::Ahead;
use crate::rendezvous::crossing::Crossing;
use crate::rendezvous::learner::Learner;
use crate::rendezvous::movers::port::{Aside, Turn};
use crate::rendezvous::posting::Backlog;
use crate::rendezvous::rtr_account::RtrAccount;
use crate::rendezvous::state::{Ops, Spare, State};
use crate::rendezvous::{Rendezvous, Rules};
use fabric::{Device, Distance, Fault, Rank, Span};

/// Limits and switches of the protocols.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest message that goes by copy eager, in bytes.
    pub eager_bytes: usize,
    /// Bytes of unexpected messages kept before the senders are slowed down.
    pub unexpected_bytes: usize,
    /// Bytes of unexpected messages at which the job is given up.
    pub unexpected_max_bytes: usize,
    /// Whether what is measured changes what is done: how messages go in shared memory, and RTRs that stop
    /// where they are of no use.
    pub adapt: bool,
    /// Whether an early receiver offers its buffer.
    pub rtr: bool,
    /// Whether rendezvous may use remote access.
    pub remote_access: bool,
    /// The protocol all long messages are to take.
    pub force: Option<Protocol>,
    /// That of short ones.
    pub eager_by: EagerBy,
    /// What may stay registered between messages.
    pub cache: CacheLimits,
}

/// Of a rank that nobody has set anything for: models and tests. A job has those of its settings.
impl Default for Limits {
    fn default() -> Limits {
        Limits {
            eager_bytes: 16 << 10,
            unexpected_bytes: 64 << 20,
            unexpected_max_bytes: 4 << 30,
            adapt: true,
            rtr: true,
            remote_access: true,
            force: None,
            eager_by: EagerBy::default(),
            cache: CacheLimits::default(),
        }
    }
}

/// All protocols of one rank over one device.
pub struct Engine<D: Device> {
    pub(crate) dev: D,
    pub(crate) limits: Limits,
    pub(crate) rules: Rules,
    pub(crate) ops: Ops,
    pub(crate) matching: Matching,
    pub(crate) peers: Peers,
    /// Operations that progress by looking: offered, moving, streaming.
    pub(crate) active: Vec<OpId>,
    /// Memory for long messages.
    longs: Spare,
    /// What is copied behind sends.
    pub(crate) crossing: Crossing,
    /// What is copied by one call.
    pub(crate) ahead: Ahead,
    /// RTRs for registered memory.
    pub(crate) rtrs: RtrAccount,
    /// Registrations of application memory.
    pub(crate) rcache: Rcache,
    /// Which buffers come again, where eager messages may leave from them.
    pub(crate) frequent: Option<Box<Frequent>>,
    /// Memory through which long messages are copied.
    pub(crate) staging: Staging,
    /// Transfers that wait for room in the queue of their adapter.
    pub(crate) backlog: Backlog,
    pub(crate) counters: Counters,
    /// By distance.
    pub(crate) eager_limits: [EagerLimit; Distance::ALL.len()],
    /// How messages go that share their length, peer and context, in shared memory.
    pub(crate) habits: Option<Box<Habits>>,
    /// What is known and decided about longer messages.
    pub(crate) learner: Box<Learner>,
    /// How often to look for a message before a receive is posted, by distance.
    pub(crate) looks: [u32; Distance::ALL.len()],
    /// What went wrong where it could not be told; the next look does.
    pub(crate) fault: Option<Fault>,
    /// Peers that are lost, and why.
    pub(crate) lost: Vec<(Rank, Fault)>,
    /// The look beside the application that this is; `None` inside MPI, where everything is copied that can be.
    pub(crate) aside: Option<Aside>,
    /// Something has happened that a thread of this rank may wait for.
    pub(crate) news: bool,
    pub(crate) idle: Idle,
    /// Windows of one-sided communication, where there are any.
    pub(crate) epochs: Option<Box<Epochs>>,
    /// What became of epochs, and what is to be done again.
    pub(crate) planned: Box<Journal>,
}

impl<D: Device> Engine<D> {
    /// An engine with nothing under way.
    pub fn new(mut dev: D, limits: Limits) -> Engine<D> {
        let (n, takes_at_once) = (dev.size(), dev.takes_at_once());
        let by_distance = Distance::ALL.map(|(distance, _)| distance);
        let looks = by_distance.map(|distance| dev.caps(distance).looks);
        let caps = by_distance.map(|distance| dev.caps(distance));
        let costs = by_distance.map(|distance| dev.costs(distance));
        let mut facts = Facts::new(costs, caps, dev.rails(), limits.eager_bytes);
        facts.paths.iter_mut().for_each(|path| path.reach &= limits.remote_access);
        let registers = facts.paths.iter().any(|path| path.registration);
        let keeps = registers && limits.cache.bytes > 0 && dev.watch(Span::EMPTY);
        facts.keep(keeps);
        let eager_limits = by_distance.map(|distance| {
            let (path, (setup_ns, per_byte)) = (facts.path(distance), costs[distance as usize].single);
            let most = path.eager_bytes.max(path.at_once_bytes);
            EagerLimit::new(most, limits.adapt && path.reach, setup_ns, per_byte)
        });
        let copies = |path: &Path| path.reach && !path.registration;
        let tries = limits.adapt && limits.force.is_none() && facts.paths.iter().any(copies);
        let gathers = match limits.eager_by {
            EagerBy::Choice => limits.adapt && keeps,
            EagerBy::Copy => false,
            EagerBy::ZeroCopy => registers,
        };
        let frequent = gathers.then(|| Frequent::new(&facts, limits.eager_by == EagerBy::ZeroCopy));
        let rtrs = RtrAccount::new(limits.adapt);
        let rcache = Rcache::new(limits.cache);
        let Limits { adapt, rtr, force, .. } = limits;
        let rules = Rules { adapt, rtr, force };
        let tunings = || facts.paths.iter().map(|path| &path.tuning);
        let staged = tunings().map(|tuning| tuning.staged_messages).max().unwrap_or(0);
        let staging = Staging::new(staged, tunings().map(|tuning| tuning.staging_bytes).max().unwrap_or(0));
        let mut engine = Engine {
            dev,
            limits,
            rules,
            ops: Ops::default(),
            matching: Matching::new(n, takes_at_once),
            peers: Peers::new(n),
            active: Vec::new(),
            longs: Spare::default(),
            crossing: Crossing::default(),
            ahead: Ahead::default(),
            rtrs,
            rcache,
            frequent: frequent.map(Box::new),
            staging,
            backlog: Backlog::default(),
            counters: Counters::default(),
            eager_limits,
            habits: tries.then(Box::default),
            learner: Box::new(Learner::new(facts)),
            looks,
            fault: None,
            lost: Vec::new(),
            aside: None,
            news: false,
            idle: Idle::default(),
            epochs: None,
            planned: Box::default(),
        };
        if registers && adapt && force.is_none() {
            engine.rendezvous().refresh();
        }
        if let Some(frequent) = &engine.frequent {
            // What leaves from its buffer as it is counts no use.
            let at_once_bytes = engine.learner.facts.path(Distance::Network).at_once_bytes;
            let least_bytes = frequent.least_bytes().max(at_once_bytes + 1);
            engine.eager_limits[Distance::Network as usize].watch_from(least_bytes);
        }
        engine
    }

    /// The device.
    pub fn device(&self) -> &D {
        &self.dev
    }

    /// Whether the kernel lets this rank copy from memory of a peer of its host, and to it.
    pub fn may_copy_alone(&mut self, peer: Rank) -> bool {
        self.dev.distance(peer) == Distance::Host && self.limits.remote_access && self.dev.reach(peer)
    }

    /// Copies from memory of a peer of this host, or to it, where the kernel lets this rank: whether it does.
    pub fn copy_alone(&mut self, peer: Rank, reads: bool, local: Span, remote: usize) -> Result<bool, Fault> {
        if !self.may_copy_alone(peer) {
            return Ok(false);
        }
        let copied = match reads {
            true => self.dev.read(peer, local, remote),
            false => self.dev.write(peer, local, remote),
        };
        match copied {
            Ok(()) => Ok(true),
            Err(Fault::NotPermitted) => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Whether something for a peer waits for room on its way, which this rank has to bring about.
    pub fn has_backlog(&self, peer: Rank) -> bool {
        self.peers.backlog.contains(&peer)
    }

    /// Counts what the layers above have done.
    #[inline(always)]
    pub fn count(&mut self, event: Event) {
        self.counters.count(event);
    }

    /// How often to look for what a peer on this host is about to store in memory before a wait begins, which looks
    /// at everything: as for a message ([`Engine::receive_now`]).
    #[inline]
    pub fn looks_near(&self) -> u32 {
        let is_alone = self.active.is_empty() && self.peers.backlog.is_empty();
        if is_alone { self.looks[Distance::Host as usize] } else { 1 }
    }

    /// How often each event happened.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What goes eagerly to a peer, and what copies cost there.
    #[inline(always)]
    pub fn eager_limit(&self, peer: Rank) -> &EagerLimit {
        &self.eager_limits[self.dev.distance(peer) as usize]
    }

    #[inline(always)]
    pub(crate) fn eager_limit_mut(&mut self, peer: Rank) -> &mut EagerLimit {
        &mut self.eager_limits[self.dev.distance(peer) as usize]
    }

    /// Longest eager message from there: from whomever if no source is given.
    pub(crate) fn limit_from(&self, source: Option<Rank>) -> usize {
        limit_from(&self.eager_limits, source.map(|source| self.dev.distance(source)))
    }

    /// What is known of the way to a peer.
    #[inline]
    pub(crate) fn path(&self, peer: Rank) -> &Path {
        self.learner.facts.path(self.dev.distance(peer))
    }

    /// Whether this peer is behind adapters that touch registered memory.
    pub fn has_adapter(&self, peer: Rank) -> bool {
        self.path(peer).registration
    }

    /// How messages go that more than one manner is possible for, in shared memory; by habit if none is given.
    pub fn fix_manner(&mut self, manner: Option<Manner>) {
        if let Some(habits) = &mut self.habits {
            habits.fix(manner);
        }
    }

    /// Whether each use of a registration that was kept is verified, as far as the device can ([`Rcache::verify`]).
    pub fn verify_registrations(&mut self, verifies: bool) {
        self.rcache.verify(verifies);
    }

    /// Tunes the pipelines; to be done before the first message.
    pub fn tune(&mut self, tuning: Tuning) {
        self.rtrs.keep(tuning.envelopes);
        self.staging = Staging::new(tuning.staged_messages, tuning.staging_bytes);
        self.learner.facts.paths.iter_mut().for_each(|path| path.tuning = tuning.clone());
    }

    /// The registrations of application memory.
    pub fn registrations(&self) -> &Rcache {
        &self.rcache
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What this rank knows and has decided.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    /// What a message of a buffer that comes again is expected to cost by the best of its ways, in nanoseconds.
    pub fn message_ns(&self, to: Rank, len: usize) -> f64 {
        let distance = self.dev.distance(to);
        let message = Message { len, distance, reuse: 1.0, rtr: false, late_ns: 0.0, eager: true };
        let costs = Way::ALL.iter().filter_map(|(way, _)| terms::cost(*way, &self.learner.facts, &message));
        costs.map(|cost| cost.total_ns()).fold(f64::INFINITY, f64::min)
    }

    /// For how long such a message keeps its two ends from computing: with what a core copies, and without what an adapter moves.
    pub fn held_ns(&self, to: Rank, len: usize) -> f64 {
        let (facts, distance) = (&self.learner.facts, self.dev.distance(to));
        let copy_ns =
            if facts.path(distance).registration { 0.0 } else { edge(facts, distance, len).busy_ns };
        self.message_ns(to, 0) + copy_ns
    }

    /// Keeps an account of messages from here on.
    pub fn explain(&mut self, detail: Detail) {
        self.learner.account = Account::new(detail);
        self.eager_limits.iter_mut().for_each(|limit| limit.watch(self.learner.account.is_on()));
    }

    /// The choices, to pin and to journal them.
    pub fn choices_mut(&mut self) -> &mut Choices {
        &mut self.learner.choices
    }

    /// Cancels an operation that has not been matched; true if it was. What is returned here is final:
    /// an operation that cannot be cancelled ends as if nobody had asked.
    pub fn cancel(&mut self, id: OpId) -> bool {
        self.rendezvous().cancel(id)
    }

    /// This rank for its rendezvous.
    #[inline(always)]
    pub(crate) fn rendezvous(&mut self) -> Rendezvous<'_, D> {
        Rendezvous {
            dev: &mut self.dev,
            rules: self.rules,
            ops: &mut self.ops,
            matching: &mut self.matching,
            peers: &mut self.peers,
            counters: &mut self.counters,
            rcache: &mut self.rcache,
            staging: &mut self.staging,
            eager_limits: &mut self.eager_limits,
            learner: &mut self.learner,
            longs: &mut self.longs,
            active: &mut self.active,
            crossing: &mut self.crossing,
            ahead: &mut self.ahead,
            rtrs: &mut self.rtrs,
            backlog: &mut self.backlog,
            aside: &mut self.aside,
            turn: Turn::default(),
        }
    }

    /// The outcome of an operation that has ended, which is forgotten with this call.
    #[inline]
    pub fn take(&mut self, id: OpId) -> Option<Outcome> {
        match self.ops.get(id)?.state {
            State::Done(_) => match self.ops.remove(id)?.state {
                State::Done(outcome) => Some(outcome),
                _ => None,
            },
            _ => None,
        }
    }

    /// Tag and length of a message whose operation has ended well; then it is forgotten.
    #[inline(always)]
    pub fn take_plain(&mut self, id: OpId) -> Option<(i32, u64)> {
        self.ops.take_plain(id)
    }

    /// The outcome of an operation that has ended, without forgetting it.
    pub fn outcome(&self, id: OpId) -> Option<&Outcome> {
        match &self.ops.get(id)?.state {
            State::Done(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Whether the operation has ended.
    #[inline]
    pub fn is_done(&self, id: OpId) -> bool {
        matches!(self.ops.get(id), Some(op) if matches!(op.state, State::Done(_)))
    }

    /// All operations that have not ended.
    pub fn pending(&self) -> Vec<PendingOp> {
        self.ops.iter().filter_map(|(id, op)| op.pending(id)).collect()
    }

    /// Messages that have arrived and that no receive has asked for, with their lengths.
    pub fn arrived(&self) -> impl Iterator<Item = (&Envelope, u64)> {
        self.matching.unexpected().map(|message| (&message.envelope, message.body.len()))
    }

    /// Whether something is under way that gets on only if this rank looks.
    pub fn needs_care(&self) -> bool {
        self.ops.need_care()
            || !self.peers.backlog.is_empty()
            || self.dev.owes()
            || self.epochs.as_ref().is_some_and(|epochs| epochs.needs_care())
    }
}
