//! Looking around: the one place where a rank takes in what has come, and minds what has not.
//!
//! Waits, tests, probes and the thread beside the application all look by [`Engine::progress`].
//! What depends on time depends on the clock there, and on nothing else: rounds say little, for
//! some of them are sleeps and others a few nanoseconds.
//!
//! - Faults that only the device's `check` reports are asked for every [`LOOKS`] looks and after
//!   each sleep, and one found where nobody can be told of it is kept for the next who asks.
//! - Back-pressure gives way: a message that waits in the device because too many unexpected ones
//!   are kept may have the one that is waited for behind it. It does so after [`GIVE_WAY_NS`] in
//!   which nothing moved, and after [`GIVE_WAY_BUSY_NS`] whatever moved, for traffic with others says
//!   nothing about this message. Who looks rarely gets on without it: what counts are times
//!   between looks of a wait, or [`LOOKS`] looks of others.
//! - A message that might have gone eagerly, but stands before this rank as an offer, is fetched when no
//!   receive has taken it for [`FETCH_NS`], or when a wait is about to sleep: its sender may be who is waited for.
//! - A wait that has slept for [`STAMP_NS`] gives what is pending its time stamp.
//! - A test in vain gives the core away where ranks outnumber cores ([`Engine::in_vain`]).

use crate::engine::Engine;
use crate::event::{Amount, Event};
use crate::message::work::Work;
use crate::rendezvous::movers::port::Aside;
use fabric::{Device, Fault, Nap};

/// Looks after which the clock is read and the device is checked; a wait of as many is a long one.
const LOOKS: u32 = 64;
/// How long nothing may move before back-pressure gives way.
const GIVE_WAY_NS: u64 = 10_000_000;
/// How long a message may be left with its sender while others move.
const GIVE_WAY_BUSY_NS: u64 = 200_000_000;
/// How long a message that might have gone eagerly is left with its sender.
const FETCH_NS: u64 = 1_000_000;
/// How long a wait sleeps before what is pending is said to have waited since then.
const STAMP_NS: u64 = 10_000_000;
/// The number that the first round in which the device sleeps gets; those after it count on from
/// there. So one number says both, and to be awake again is to set it to 0.
const ASLEEP: u32 = 1 << 31;
/// Bytes copied for one look beside the application: it waits for no more when it comes back.
pub(crate) const ASIDE_BYTES: usize = 1 << 20;

/// What a rank that looks around knows of its time.
#[derive(Default)]
pub(crate) struct Idle {
    /// Looks since the device was checked.
    looks: u32,
    /// Looks in vain in a row of the wait under way.
    pub(crate) round: u32,
    /// Since when the wait under way is a long one; 0: it is not.
    waits_since_ns: u64,
    /// When the last wait that slept began to.
    asleep_since_ns: u64,
    /// Whether what is pending has got its time stamp since then.
    stamped: bool,
    /// Whether a message was left with its sender, in this look or the one before.
    holds: bool,
    held: Held,
    /// Since when messages that might have gone eagerly stand here as offers; 0: none do.
    offered_since_ns: u64,
}

/// A message that is left with its sender.
#[derive(Default)]
struct Held {
    /// In this look.
    now: bool,
    /// Since when; 0: not before this look.
    since_ns: u64,
    /// When something else moved last.
    moved_ns: u64,
    /// Looks since then.
    looks: u32,
}

impl Idle {
    /// Whether the rank is inside a wait that has looked in vain.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.round != 0
    }

    /// A message that might have gone eagerly stands here as an offer.
    pub fn offered(&mut self, now_ns: u64) {
        if self.offered_since_ns == 0 {
            self.offered_since_ns = now_ns.max(1);
        }
    }

    /// None does any more.
    pub fn none_offered(&mut self) {
        self.offered_since_ns = 0;
    }

    /// A message stays with its sender.
    #[cold]
    pub fn hold(&mut self) {
        self.holds = true;
        self.held.now = true;
    }
}

impl<D: Device> Engine<D> {
    /// Looks around once. `None` if something moved, otherwise what to do until the next look.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<D::Nap>, Fault> {
        if self.progress()? {
            if self.idle.waits_since_ns != 0 {
                self.waited();
            }
            self.idle.round = 0;
            return Ok(None);
        }
        if self.dev.has_served() {
            self.idle.round = 0;
        }
        // While a message is held no sleep: its sender finds no room and wakes nobody.
        let nap = self.dev.idle(if self.idle.holds { 0 } else { self.idle.round });
        self.idle.round = self.idle.round.saturating_add(1);
        if self.idle.round == LOOKS || nap.sleeps() {
            self.waits_long(nap.sleeps());
        }
        Ok(Some(nap))
    }

    /// Looks at everything that may have changed; true if anything moved.
    #[inline]
    pub fn progress(&mut self) -> Result<bool, Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let moved = self.look()?;
        self.idle.looks += 1;
        if self.idle.looks >= LOOKS || self.idle.holds {
            self.mind_time(moved)?;
        }
        Ok(moved)
    }

    /// Takes in what has come and advances what progresses by looking; true if anything moved.
    fn look(&mut self) -> Result<bool, Fault> {
        if self.is_watching() {
            self.learner.look(self.dev.now_ns(), self.idle.is_waiting());
        }
        if let Some(source) = self.dev.pressed() {
            self.make_way(source);
        }
        let mut moved = false;
        let mut position = 0;
        while let Some(source) = self.dev.source(position) {
            moved |= self.drain(source)?;
            position += 1;
        }
        moved |= self.complete();
        if self.rcache.is_idle() {
            self.rcache.heed(&mut self.dev, &mut self.counters);
        }
        if !self.peers.backlog.is_empty() {
            moved |= self.flush();
        }
        if !self.active.is_empty() {
            moved |= self.rendezvous().pump();
        }
        if self.epochs.is_some() {
            moved |= self.issue_epochs()?;
        }
        if self.is_watching() {
            self.learner.looked(self.dev.now_ns());
        }
        self.news |= moved;
        Ok(moved)
    }

    /// Whether times are being taken.
    #[inline]
    fn is_watching(&self) -> bool {
        self.learner.is_watching() || !self.rtrs.waiting.is_empty()
    }

    /// Fetches what adapters have finished, and hands them what waited for room.
    fn complete(&mut self) -> bool {
        let mut moved = false;
        while let Some((work, result)) = self.dev.completed() {
            moved = true;
            match Work::decode(work) {
                Work::Transfer(op, number) => self.rendezvous().completed(op, number, result),
                Work::Gathered(op) => self.gathered(op, result),
                Work::Flight(number) => self.landed(number, result),
                Work::Word(number) => self.changed(number, result),
            }
        }
        if !self.backlog.is_empty() {
            moved |= self.rendezvous().post_what_waited();
        }
        moved
    }

    /// As [`Engine::progress`] while the application computes: the cores are its, what a peer can
    /// copy is left to the peer, and little is copied at a time, unless others wait for what follows: then it `is_awaited`.
    /// A fault is kept for the application's next look.
    pub fn progress_aside(&mut self, is_awaited: bool) -> bool {
        if self.fault.is_some() {
            return false;
        }
        self.aside = Some(Aside { left: ASIDE_BYTES, is_awaited });
        let moved = self.progress();
        self.aside = None;
        moved.unwrap_or_else(|fault| {
            self.fault = Some(fault);
            false
        })
    }

    /// To be called before this rank sleeps without a wait, and before the look that precedes that.
    pub fn rests(&mut self) {
        self.dev.rests();
    }

    /// To be called when a test or a probe has found nothing: what to do before the application goes
    /// on. It never sleeps.
    pub fn in_vain(&mut self) -> Option<D::Nap> {
        self.dev.spare()
    }

    /// To be called when a wait is over.
    #[inline(always)]
    pub fn awake(&mut self) {
        if self.idle.waits_since_ns != 0 {
            self.waited();
        }
        self.idle.round = 0;
        self.dev.awake();
    }

    /// Whether the wait under way has come to the point where this rank sleeps.
    #[inline]
    pub fn is_asleep(&self) -> bool {
        self.idle.round >= ASLEEP
    }

    /// When the wait under way first slept, in device time; `None` if it has not.
    pub fn asleep_since_ns(&self) -> Option<u64> {
        self.is_asleep().then_some(self.idle.asleep_since_ns)
    }

    /// Gives what is pending a time stamp if it has none: since the wait under way sleeps, or now.
    pub fn stamp(&mut self) {
        let since_ns = self.asleep_since_ns().unwrap_or_else(|| self.dev.now_ns()).max(1);
        for op in self.ops.iter_mut().filter(|op| op.since_ns == 0) {
            op.since_ns = since_ns;
        }
    }

    /// The wait under way is a long one, or about to sleep: then the next look minds the time.
    #[cold]
    fn waits_long(&mut self, sleeps: bool) {
        if self.idle.waits_since_ns == 0 {
            self.idle.waits_since_ns = self.dev.now_ns().max(1);
        }
        if !sleeps {
            return;
        }
        self.idle.looks = LOOKS;
        if self.idle.round < ASLEEP {
            self.idle.round = ASLEEP;
            self.idle.asleep_since_ns = self.dev.now_ns();
            self.idle.stamped = false;
        }
    }

    /// Something has come for a wait that was long.
    #[cold]
    fn waited(&mut self) {
        self.counters.count(Event::LongWait);
        let since_ns = std::mem::take(&mut self.idle.waits_since_ns);
        self.counters.add(Amount::WaitedNs, self.dev.now_ns().saturating_sub(since_ns));
    }

    /// What is due by the clock.
    #[cold]
    #[inline(never)]
    fn mind_time(&mut self, moved: bool) -> Result<(), Fault> {
        if self.idle.looks >= LOOKS {
            self.idle.looks = 0;
            self.dev.check()?;
            self.heed_losses()?;
        }
        self.stamp_if_due();
        let offered_ns = self.idle.offered_since_ns;
        if offered_ns != 0 && (self.is_asleep() || self.dev.now_ns() > offered_ns + FETCH_NS) {
            self.fetch_offered();
        }
        if self.idle.holds {
            self.mind_held(moved)?;
        }
        Ok(())
    }

    /// A wait that has slept for long gives what is pending its time stamp.
    fn stamp_if_due(&mut self) {
        if self.is_asleep() && !self.idle.stamped {
            self.idle.stamped = self.dev.now_ns() > self.idle.asleep_since_ns + STAMP_NS;
            if self.idle.stamped {
                self.stamp();
            }
        }
    }

    /// A message was left with its sender: gives way when that is due.
    fn mind_held(&mut self, moved: bool) -> Result<(), Fault> {
        let now_ns = self.dev.now_ns().max(1);
        let by_clock = self.idle.is_waiting() || self.aside.is_some();
        let held = &mut self.idle.held;
        if !std::mem::take(&mut held.now) {
            (self.idle.holds, self.idle.held) = (false, Held::default());
            return Ok(());
        }
        if held.since_ns == 0 {
            (held.since_ns, held.moved_ns) = (now_ns, now_ns);
        }
        if moved {
            held.moved_ns = now_ns;
        }
        held.looks = held.looks.saturating_add(if by_clock { LOOKS } else { 1 });
        let is_still = now_ns > held.moved_ns + GIVE_WAY_NS && self.aside.is_none();
        let is_due = is_still || now_ns > held.since_ns + GIVE_WAY_BUSY_NS;
        if !is_due || held.looks < LOOKS {
            return Ok(());
        }
        (self.idle.holds, self.idle.held) = (false, Held::default());
        self.give_way(is_still)
    }

    /// Keeps more unexpected messages than was wanted, for the message that is waited for may
    /// stand behind them. There is an end to that for a rank that can do nothing else.
    fn give_way(&mut self, is_still: bool) -> Result<(), Fault> {
        let (held_bytes, most) = (self.matching.held_bytes(), self.limits.unexpected_max_bytes);
        if self.limits.unexpected_bytes >= most {
            if !is_still {
                return Ok(());
            }
            return Err(Fault::Device(format!(
                "{} unexpected messages hold {held_bytes} bytes, the limit TERN_UNEXPECTED_MAX; receives are missing",
                self.matching.waiting(),
            )));
        }
        let paths = &self.learner.facts.paths;
        let frame_bytes =
            paths.iter().map(|path| path.frame_bytes.max(path.at_once_bytes)).max().unwrap_or(0);
        let next_fits = held_bytes + 2 * frame_bytes;
        self.limits.unexpected_bytes = next_fits.max(self.limits.unexpected_bytes * 2);
        Ok(())
    }
}
