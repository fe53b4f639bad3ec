//! One-sided communication as it is called from above: windows are numbers, displacements bytes.
//!
//! Nothing blocks: `close` begins the end of an epoch, [`Engine::is_closed`] and
//! [`Engine::is_exposure_over`] say whether it has come, and looks in between make it come. See
//! docs/protocols/epochs.md.

use super::Engine;
use crate::epoch::cost::Gone;
use crate::epoch::early::gain_ns;
use crate::epoch::journal::{EpochKind, Journal};
use crate::epoch::plan::{self, Item, Kept, Limits, Memory, Part, Plan, Step};
use crate::epoch::window::{Access, Alike, Epochs, Exposed, Window};
use crate::epoch::{Action, Bundling, Ending, Held, Schedule, rights_of};
use crate::event::Event;
use crate::message::peers::How;
use fabric::{Charge, Device, Fault, Rank, Region, Rights, Span};
use std::collections::BTreeMap;
use wire::epoch as flags;
use wire::head::{FrameType as Message, Head};
use wire::long::RAILS;

/// Shortest part of a frame that a message of operations is given.
const MESSAGE_MIN: usize = 256;
/// Of operations that are alike every so many looks at the clock: how long they are held is asked of all of them together.
const CLOCK_EVERY: usize = 8;
/// The adapter that carries frames.
pub(super) const RAIL: usize = 0;

impl<D: Device> Engine<D> {
    /// Makes memory of this rank a window. The others must [`Engine::admit`] what is returned before they touch it.
    /// What the adapters cannot register is reached by messages.
    pub fn expose(&mut self, window: u32, span: Span) -> Result<Exposed, Fault> {
        if self.epochs.as_ref().is_some_and(|epochs| epochs.windows.contains_key(&window)) {
            return Err(Fault::Device(format!("window {window} is there already")));
        }
        let slot_bytes = self.slot_bytes();
        let (mut regions, mut registered) =
            ([Region::default(); RAILS], self.learner.facts.paths.iter().any(|p| p.registration));
        for (rail, place) in
            regions.iter_mut().enumerate().take(self.dev.rails()).filter(|_| registered && span.len > 0)
        {
            match self.dev.register(rail, span, Rights::ALL) {
                Ok(region) => *place = region,
                Err(Fault::Device(_) | Fault::Limit(_)) => {
                    (0..rail).for_each(|rail| self.dev.deregister(rail, regions[rail]));
                    self.counters.count(Event::RegistrationRefused);
                    registered = false;
                    break;
                }
                Err(fault) => return Err(fault),
            }
        }
        let epochs = self.epochs.get_or_insert_with(|| Box::new(Epochs::new(slot_bytes)));
        epochs.windows.insert(
            window,
            Window {
                span,
                regions,
                registered,
                schedule: Schedule::CHOICE,
                peers: BTreeMap::new(),
                habit: Default::default(),
                small_bytes: None,
                kept: Kept::default(),
            },
        );
        let keys = regions.map(|region| region.remote);
        Ok(Exposed { addr: span.addr as u64, len: span.len as u64, keys, registered, window })
    }

    /// Longest operation that goes through memory of the library.
    pub(super) fn slot_bytes(&self) -> usize {
        let slot_bytes = self.learner.facts.paths.iter().filter(|path| path.registration);
        slot_bytes.map(|path| path.eager_bytes).max().unwrap_or(0)
    }

    /// What a rank has exposed.
    pub fn admit(&mut self, window: u32, rank: Rank, theirs: Exposed) -> Result<(), Fault> {
        self.windows()?.window(window)?.peers.entry(rank).or_default().exposed = Some(theirs);
        Ok(())
    }

    /// The end of a window. Refused while an epoch is under way here.
    pub fn withdraw(&mut self, window: u32) -> Result<(), Fault> {
        let found = self.windows()?.window(window)?;
        if let Some((rank, _)) = found.peers.iter().find(|(_, peer)| peer.access.is_some()) {
            return Err(Fault::Device(format!("window {window}: the epoch at rank {rank} has not ended")));
        }
        let late = found.peers.values_mut().find_map(|peer| peer.late.take());
        let (span, regions, registered) = (found.span, found.regions, found.registered);
        if registered && span.len > 0 {
            (0..self.dev.rails().min(RAILS)).for_each(|rail| self.dev.deregister(rail, regions[rail]));
        }
        self.windows()?.windows.remove(&window);
        late.map_or(Ok(()), Err)
    }

    /// What is fixed of the plans of a window from its next epoch on.
    pub fn schedule(&mut self, window: u32, schedule: Schedule) -> Result<(), Fault> {
        let found = self.windows()?.window(window)?;
        (found.schedule, found.kept) = (schedule, Kept::default());
        Ok(())
    }

    /// Lets these origins in, for one epoch each.
    pub fn post(&mut self, window: u32, origins: &[Rank]) -> Result<(), Fault> {
        for &origin in origins {
            let number = self.number(window, origin)?;
            self.tell(number, origin, None, flags::POST, 0);
        }
        Ok(())
    }

    /// Begins an access epoch at these targets; `gated` if each lets this origin in by a post.
    pub fn start(&mut self, window: u32, targets: &[Rank], gated: bool) -> Result<(), Fault> {
        let found = self.windows()?.window(window)?;
        let taken =
            targets.iter().find(|rank| found.peers.get(rank).is_some_and(|peer| peer.access.is_some()));
        if let Some(rank) = taken {
            return Err(Fault::Device(format!("window {window}: an epoch at rank {rank} is under way")));
        }
        if let Some(fault) = targets.iter().find_map(|rank| found.peers.get(rank)?.lost.clone()) {
            return Err(fault);
        }
        for rank in targets {
            let peer = found.peers.entry(*rank).or_default();
            peer.access = Some(Access { gated, fault: peer.late.take(), ..Access::default() });
        }
        Ok(())
    }

    /// Writes to a target's window. The memory must stay as it is until the epoch has ended.
    pub fn put(&mut self, window: u32, target: Rank, offset: u64, data: Span) -> Result<(), Fault> {
        self.hold_operation(window, target, Action::Put, offset, data)
    }

    /// Reads from a target's window.
    pub fn get(&mut self, window: u32, target: Rank, offset: u64, into: Span) -> Result<(), Fault> {
        self.hold_operation(window, target, Action::Get, offset, into)
    }

    /// Begins the end of all access epochs of a window: plans what is held and issues it.
    pub fn close(&mut self, window: u32, ending: Ending) -> Result<(), Fault> {
        let targets = self.accessed(window, |access| access.ending.is_none())?;
        self.close_at(window, &targets, ending)
    }

    /// As [`Engine::close`], for the epochs at these targets alone, which are open.
    pub fn close_at(&mut self, window: u32, targets: &[Rank], ending: Ending) -> Result<(), Fault> {
        let now_ns = self.dev.now_ns();
        for rank in targets {
            self.plan_access(window, *rank, Some(ending), now_ns)?;
        }
        self.issue_epochs().map(drop)
    }

    /// Issues what is held for a target although its epoch goes on: somebody waits for it.
    pub fn issue_at(&mut self, window: u32, target: Rank) -> Result<(), Fault> {
        let now_ns = self.dev.now_ns();
        self.plan_access(window, target, None, now_ns)?;
        self.issue_epochs().map(drop)
    }

    /// Whether the access epochs have ended; then they are forgotten. The fault of one that failed.
    pub fn is_closed(&mut self, window: u32) -> Result<bool, Fault> {
        let targets = self.accessed(window, |_| true)?;
        self.is_closed_at(window, &targets)
    }

    /// As [`Engine::is_closed`], of the epochs at these targets alone.
    pub fn is_closed_at(&mut self, window: u32, targets: &[Rank]) -> Result<bool, Fault> {
        let now_ns = self.dev.now_ns();
        let found = self.windows()?.window(window)?;
        // A flush says how its Puts have ended, also those from memory of the library.
        let goes_on = |rank: &Rank| {
            let Some((peer, access)) =
                found.peers.get(rank).and_then(|peer| Some((peer, peer.access.as_ref()?)))
            else {
                return false;
            };
            !access.is_over() || access.ending == Some(Ending::Flush) && peer.copied_writes > 0
        };
        if targets.iter().any(goes_on) {
            return Ok(false);
        }
        let mut fault = None;
        for rank in targets {
            let found = self.windows()?.window(window)?;
            let Some(access) = found.peers.get_mut(rank).and_then(|peer| peer.access.take()) else {
                continue;
            };
            if let Some(kind) = access.kind {
                self.planned.ended(kind, now_ns.saturating_sub(access.closed_ns) as f64);
            }
            fault = fault.or(access.fault);
        }
        fault.map_or(Ok(true), Err)
    }

    /// Whether a target takes operations: whether an epoch is open there, or none is and one may begin; `None` while
    /// the end of the last one is under way.
    pub fn is_open(&mut self, window: u32, target: Rank) -> Result<Option<bool>, Fault> {
        let found = self.windows()?.window(window)?;
        let access = found.peers.get(&target).and_then(|peer| peer.access.as_ref());
        Ok(match access {
            None => Some(false),
            Some(access) if access.ending.is_none() => Some(true),
            Some(_) => None,
        })
    }

    /// Whether the memory of all operations called at a target may be reused, and what they get is here. They must
    /// have been issued. The fault if the epoch has failed.
    pub fn is_done_here(&mut self, window: u32, target: Rank) -> Result<bool, Fault> {
        let found = self.windows()?.window(window)?;
        let access = found.peers.get(&target).and_then(|peer| peer.access.as_ref());
        match access.filter(|access| access.is_done_here()) {
            Some(Access { fault: Some(fault), .. }) => Err(fault.clone()),
            done => Ok(done.is_some() || access.is_none()),
        }
    }

    /// How many operations of the epoch at a target are remembered.
    pub fn called(&mut self, window: u32, target: Rank) -> Result<usize, Fault> {
        let found = self.windows()?.window(window)?;
        let access = found.peers.get(&target).and_then(|peer| peer.access.as_ref());
        Ok(access.map_or(0, |access| access.ops.len()))
    }

    fn accessed(&mut self, window: u32, is_meant: impl Fn(&Access) -> bool) -> Result<Vec<Rank>, Fault> {
        let found = self.windows()?.window(window)?;
        let meant = found.peers.iter().filter(|(_, peer)| peer.access.as_ref().is_some_and(&is_meant));
        Ok(meant.map(|(rank, _)| *rank).collect())
    }

    /// Whether each of these origins has ended an epoch here; then these are forgotten.
    pub fn is_exposure_over(&mut self, window: u32, origins: &[Rank]) -> Result<bool, Fault> {
        if !self.have_ended(window, origins)? {
            return Ok(false);
        }
        let found = self.windows()?.window(window)?;
        let mut failed = None;
        for rank in origins {
            let peer = found.peers.get_mut(rank).expect("it has ended an epoch");
            peer.ended.pop_front().expect("it has ended an epoch");
            peer.was_origin = true;
            if std::mem::take(&mut peer.failed) {
                failed = Some(*rank);
            }
        }
        let span = found.span;
        self.dev.was_written(span);
        match failed {
            Some(rank) => Err(Fault::Device(format!("window {window}: an epoch of rank {rank} has failed"))),
            None => Ok(true),
        }
    }

    /// As [`Engine::is_exposure_over`], but nothing is forgotten. A fault if one of them is lost and has not ended it.
    pub fn have_ended(&mut self, window: u32, origins: &[Rank]) -> Result<bool, Fault> {
        let found = self.windows()?.window(window)?;
        let mut all = true;
        for rank in origins {
            let Some(peer) = found.peers.get(rank).filter(|peer| peer.ended.is_empty()) else {
                all &= found.peers.contains_key(rank);
                continue;
            };
            if let Some(fault) = &peer.lost {
                return Err(fault.clone());
            }
            all = false;
        }
        Ok(all)
    }

    /// The account of the epochs of this rank, to pin and to journal their plans.
    pub fn planned_mut(&mut self) -> &mut Journal {
        &mut self.planned
    }

    pub(super) fn windows(&mut self) -> Result<&mut Epochs, Fault> {
        self.epochs.as_deref_mut().ok_or_else(|| Fault::Device("there is no window".into()))
    }

    /// What messages about a window call it at a rank.
    fn number(&mut self, window: u32, rank: Rank) -> Result<u32, Fault> {
        let peer = self.windows()?.window(window)?.peers.get(&rank);
        let theirs = peer.and_then(|peer| peer.exposed);
        let none = || Fault::Device(format!("window {window}: rank {rank} has exposed nothing"));
        Ok(theirs.ok_or_else(none)?.window)
    }

    /// Sends a word about a window that must not be lost; the window is called as it is there.
    pub(super) fn tell(&mut self, window: u32, to: Rank, behind: Option<usize>, what: u16, context: u64) {
        let head = Head { kind: Message::Epoch, aux: what, tag: window as i32, context }.encode();
        self.peers.control_as(&mut self.dev, to, How::Behind(behind), head, &[]);
    }

    /// Most bytes of a message of operations and of its answer.
    pub(super) fn message_bytes(&self, to: Rank) -> usize {
        let path = self.path(to);
        path.eager_bytes.max(MESSAGE_MIN).min(path.frame_bytes)
    }

    fn hold_operation(
        &mut self,
        window: u32,
        target: Rank,
        action: Action,
        offset: u64,
        local: Span,
    ) -> Result<(), Fault> {
        let (me, now_ns) = (self.dev.me(), self.dev.now_ns());
        let found = self.windows()?.window(window)?;
        let (span, schedule, habit, small_bytes) =
            (found.span, found.schedule, found.habit, found.small_bytes);
        let peer = found.peers.entry(target).or_default();
        let Some(theirs) = peer.exposed else {
            return Err(Fault::Device(format!("window {window}: rank {target} has exposed nothing")));
        };
        let open = |access: &&mut Access| access.ending.is_none();
        let Some(access) = peer.access.as_mut().filter(open) else {
            return Err(Fault::Device(format!("window {window}: no epoch at rank {target} is open")));
        };
        let len = local.len;
        if offset.checked_add(len as u64).is_none_or(|end| end > theirs.len) {
            return Err(Fault::Limit(format!(
                "window {window} of rank {target}: {len} bytes at {offset} lie outside of its {}",
                theirs.len
            )));
        }
        if len == 0 {
            return Ok(());
        }
        if target == me {
            let there = span.addr + offset as usize;
            let (to, from) = if action == Action::Put { (there, local.addr) } else { (local.addr, there) };
            self.dev.copy(to, from, len);
            return Ok(());
        }
        let op = access.ops.len();
        access.ops.push(Held { action, offset, local, since_ns: now_ns });
        self.dev.charge(Charge::Header);
        let item = self.item(target, action, local);
        let most = self.message_bytes(target);
        let (direct, fits) = (theirs.registered && self.path(target).registration, in_message(len) <= most);
        let distance = self.dev.distance(target);
        let gain = |facts| habit.known && gain_ns(&item, &habit, distance, fits, facts) > 0.0;
        let leaves = schedule.early.unwrap_or_else(|| direct && gain(&self.learner.facts));
        let bundles = !matches!(schedule.bundling, Some(Bundling::Never | Bundling::Last));
        let is_small = schedule.early.is_none() && bundles && small_bytes.is_some_and(|most| len <= most);
        let epochs = self.windows()?;
        epochs.works |= leaves || is_small;
        let access = epochs.access(window, target).expect("it is open");
        if leaves {
            access.early += 1;
            if direct {
                access.steps.push_back(Step::Direct(op));
            } else {
                access.steps.extend(plan::in_pieces(&item, op, most));
            }
            self.counters.count(Event::EpochEarly);
            return self.issue_epochs().map(drop);
        }
        access.waiting.push(op);
        let shares = (is_small && fits).then_some(most);
        access.alike = Some(Alike { action, len, shares });
        match shares {
            Some(most) => self.gather_small(window, target, op, most),
            None => Ok(()),
        }
    }

    /// Holds an operation inside of a target's window that is like the last one of an epoch that is open there, of fewer operations
    /// than `most`; whether it has. What is decided of an operation when it is called depends on what it does, its length, and what
    /// earlier epochs were like.
    pub fn hold_alike(
        &mut self,
        window: u32,
        target: Rank,
        action: Action,
        offset: u64,
        local: Span,
        most: usize,
    ) -> bool {
        let Engine { epochs: Some(epochs), dev, .. } = self else { return false };
        let Some(access) = epochs.access(window, target) else { return false };
        let is_alike = |alike: &Alike| alike.action == action && alike.len == local.len;
        let Some(alike) = access.alike.filter(is_alike) else { return false };
        if access.ending.is_some() || access.fault.is_some() || access.ops.len() >= most {
            return false;
        }
        let op = access.ops.len();
        if let Some(most) = alike.shares {
            let bytes = access.small.1 + in_message(local.len);
            if bytes > most {
                return false;
            }
            access.small.0.push(op);
            access.small.1 = bytes;
        }
        let since_ns =
            if op.is_multiple_of(CLOCK_EVERY) { dev.now_ns() } else { access.ops[op - 1].since_ns };
        access.ops.push(Held { action, offset, local, since_ns });
        access.waiting.push(op);
        dev.charge(Charge::Header);
        true
    }

    /// Operations that will share a message leave when they fill one: 004, section 4.2.
    fn gather_small(&mut self, window: u32, target: Rank, op: usize, most: usize) -> Result<(), Fault> {
        let access = self.windows()?.access(window, target).expect("it is open");
        let bytes = in_message(access.ops[op].local.len);
        if access.small.1 + bytes <= most {
            access.small.0.push(op);
            access.small.1 += bytes;
            return Ok(());
        }
        let (full, _) = std::mem::replace(&mut access.small, (vec![op], bytes));
        access.waiting.retain(|op| full.binary_search(op).is_err()); // in the order of the calls, as all lists of them
        access.early += full.len();
        let part = |op: &usize| Part { op: *op, from: 0, len: access.ops[*op].local.len };
        let parts = full.iter().map(part).collect();
        access.steps.push_back(Step::Message(parts, false));
        self.counters.count(Event::EpochMessage);
        self.issue_epochs().map(drop)
    }

    /// What the planner is to know of an operation.
    fn item(&self, target: Rank, action: Action, local: Span) -> Item {
        let slot_bytes = self.epochs.as_ref().map_or(0, |epochs| epochs.bounce.slot_bytes());
        let is_short = local.len <= slot_bytes;
        let looks = !is_short || self.counts_use(target, local.len);
        let is_known = looks && self.path(target).keeps && self.rcache.has(RAIL, local, rights_of(action));
        let memory = match (is_known, is_short) {
            (true, _) => Memory::Registered,
            (false, true) => Memory::Copied,
            (false, false) => Memory::Fresh,
        };
        Item { action, len: local.len, memory }
    }

    /// Whether what some of these Gets bring goes to a window of this rank.
    fn lands(&self, waiting: &[usize], all: &[Held]) -> bool {
        let mut gets = waiting.iter().map(|op| &all[*op]).filter(|op| op.action == Action::Get);
        self.epochs.as_ref().is_some_and(|epochs| gets.any(|op| epochs.is_exposed(op.local)))
    }

    /// Those of an epoch's operations that do not wait any more.
    fn gone_before(
        &self,
        rank: Rank,
        all: &[Held],
        waiting: &[usize],
        limits: &Limits,
        now_ns: u64,
    ) -> Vec<Gone> {
        let mut waiting = waiting.iter().peekable();
        let gone = all.iter().enumerate().filter(|(op, _)| waiting.next_if(|next| *next == op).is_none());
        let gone = gone.map(|(_, held)| Gone {
            item: self.item(rank, held.action, held.local),
            since_ns: now_ns.saturating_sub(held.since_ns) as f64,
            direct: limits.direct,
        });
        gone.collect()
    }

    /// Plans what is held for one target, and the end of the epoch if it comes now.
    fn plan_access(
        &mut self,
        window: u32,
        rank: Rank,
        ending: Option<Ending>,
        now_ns: u64,
    ) -> Result<(), Fault> {
        let epochs = self.windows()?;
        epochs.works = true;
        let found = epochs.window(window)?;
        let schedule = found.schedule;
        let access = found.peers.get_mut(&rank).and_then(|peer| {
            let registered = peer.exposed.is_some_and(|theirs| theirs.registered);
            let was_origin =
                if ending.is_some() { std::mem::take(&mut peer.was_origin) } else { peer.was_origin };
            peer.access.as_mut().map(|access| (access, registered, was_origin))
        });
        let Some((access, registered, was_origin)) = access else { return Ok(()) };
        // What was read is here when its reads have ended: there is nothing to ask the target.
        let asks = ending == Some(Ending::Complete) || ending == Some(Ending::Flush) && access.needs_word();
        (access.told, access.placed) = (!asks && ending.is_some(), !asks && ending.is_some());
        let (mark, is_fence) = (access.mark, access.is_fence);
        access.small = Default::default();
        let mut waiting = std::mem::take(&mut access.waiting);
        if access.fault.is_some() {
            waiting.clear();
        }
        let all = std::mem::take(&mut access.ops);
        let items: Vec<Item> =
            waiting.iter().map(|op| self.item(rank, all[*op].action, all[*op].local)).collect();
        let limits = Limits {
            distance: self.dev.distance(rank),
            message_bytes: self.message_bytes(rank),
            direct: registered && self.path(rank).registration,
            ends: asks,
            meets_once: is_fence && !mark.again && self.dev.writes_in_order(rank),
            lands: is_fence && self.lands(&waiting, &all),
            alternates: !is_fence && was_origin,
        };
        let gone = self.gone_before(rank, &all, &waiting, &limits, now_ns);
        let kind = (ending.is_some() && !all.is_empty()).then(|| EpochKind::of(limits.distance, &all));
        let kept = &mut self.epochs.as_mut().expect("it has windows").window(window)?.kept;
        let facts = &self.learner.facts;
        let plan = match kind.and_then(|kind| self.planned.pinned(kind)) {
            Some(form) => plan::of_form(&items, &gone, &form, &limits, facts),
            None => kept.plan(items, &gone, &schedule, &limits, facts),
        };
        self.count_plan(&plan);
        if let Some(kind) = kind {
            let early = self.windows()?.access(window, rank).expect("it has an epoch").early;
            self.planned.planned(kind, &plan, early);
            let found = self.windows()?.window(window)?;
            found.small_bytes = plan.small_bytes;
            let ((lag_ns, gets_behind), all_len) = (seen(&all, now_ns), all.len());
            found.habit.ended(lag_ns, gets_behind, all_len);
        }
        let access = self.windows()?.access(window, rank).expect("it has an epoch");
        access.ops = all;
        access.steps.extend(plan.steps.into_iter().map(|step| of_all(step, &waiting)));
        if ending.is_none() {
            access.early += waiting.len();
            return Ok(());
        }
        (access.ending, access.closed_ns, access.kind) = (ending, now_ns, kind);
        Ok(())
    }

    fn count_plan(&mut self, plan: &Plan) {
        let messages = plan.steps.iter().filter(|step| matches!(step, Step::Message(..)));
        messages.for_each(|_| self.counters.count(Event::EpochMessage));
        if plan.merged {
            self.counters.count(Event::EpochMerged);
        }
        (0..plan.reordered).for_each(|_| self.counters.count(Event::EpochReordered));
    }
}

/// A step of a plan for those that waited, as one of all operations of the epoch.
fn of_all(step: Step, waiting: &[usize]) -> Step {
    match step {
        Step::Direct(op) => Step::Direct(waiting[op]),
        Step::Message(mut parts, sync) => {
            parts.iter_mut().for_each(|part| part.op = waiting[part.op]);
            Step::Message(parts, sync)
        }
        Step::Sync => Step::Sync,
    }
}

/// Bytes that an operation takes in a message.
fn in_message(len: usize) -> usize {
    flags::OpHead::LEN + len
}

/// What an epoch was like: mean time from an operation to the end, and bytes of Gets behind the first Put.
fn seen(ops: &[Held], now_ns: u64) -> (f64, f64) {
    let lags: u64 = ops.iter().map(|op| now_ns.saturating_sub(op.since_ns)).sum();
    let behind = ops.iter().skip_while(|op| op.action == Action::Get).filter(|op| op.action == Action::Get);
    let gets_behind: usize = behind.map(|op| op.local.len).sum();
    (lags as f64 / ops.len() as f64, gets_behind as f64)
}
