//! The origin of one-sided operations: does the steps of plans as there is room.

use super::Engine;
use super::onesided::RAIL;
use crate::epoch::plan::{self, Item, Part, Step};
use crate::epoch::window::{Access, Epochs, Flight, Memory};
use crate::epoch::{Action, Ending, Held, Mark, rights_of};
use crate::event::Event;
use crate::message::work::Work;
use crate::rendezvous::movers::port::Port;
use fabric::{Charge, Device, Fault, Rank, Remote, Span};
use wire::epoch::{self as flags, OpHead};
use wire::head::{FrameType as Message, Head};

/// Least bytes for which one more adapter is taken.
const STRIPE_BYTES: usize = 64 << 10;

/// How a step went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Went {
    Done,
    /// There is no room, or something has to end first.
    Later,
}

impl<D: Device> Engine<D> {
    /// Does what can be done for all epochs; true if anything moved.
    pub(crate) fn issue_epochs(&mut self) -> Result<bool, Fault> {
        let Some(mut epochs) = self.epochs.take_if(|epochs| epochs.works || !epochs.copies.is_empty()) else {
            return Ok(false);
        };
        let mut moved = false;
        let busy: Vec<(u32, Rank)> = epochs
            .windows
            .iter()
            .flat_map(|(window, found)| {
                let works = |access: &Access| access.has_work();
                let busy =
                    found.peers.iter().filter(move |(_, peer)| peer.access.as_ref().is_some_and(works));
                busy.map(|(rank, _)| (*window, *rank))
            })
            .collect();
        // One step for each target in turn, so that all of them get something to do.
        let mut left = busy.clone();
        while !left.is_empty() {
            left.retain(|(window, rank)| {
                let went = self.step(&mut epochs, *window, *rank);
                moved |= went == Went::Done;
                let works = |access: &mut Access| access.has_work();
                went == Went::Done && epochs.access(*window, *rank).is_some_and(works)
            });
        }
        moved |= self.copy_out(&mut epochs);
        let works = |access: &mut Access| access.has_work();
        epochs.works = busy.iter().any(|(window, rank)| epochs.access(*window, *rank).is_some_and(works));
        self.epochs = Some(epochs);
        Ok(moved)
    }

    /// Gets that were read into memory of the library go where they are wanted. The synchronisation has left before:
    /// the copy is hidden behind its way («000», section 5.1.2).
    fn copy_out(&mut self, epochs: &mut Epochs) -> bool {
        let copies = std::mem::take(&mut epochs.copies);
        for (window, rank, slot, into) in &copies {
            self.dev.copy(into.addr, slot.local.span.addr, into.len);
            epochs.bounce.give(*slot);
            if let Some(access) = epochs.access(*window, *rank) {
                access.copies -= 1;
            }
        }
        !copies.is_empty()
    }

    fn step(&mut self, epochs: &mut Epochs, window: u32, rank: Rank) -> Went {
        let peer = epochs.windows.get_mut(&window).and_then(|found| found.peers.get_mut(&rank));
        let peer = peer.expect("it is busy");
        let access = peer.access.as_mut().expect("it is busy");
        if access.gated {
            if peer.posts == 0 {
                return Went::Later;
            }
            peer.posts -= 1;
            access.gated = false;
        }
        if let Some(flight) = access.posts.front().copied() {
            return self.post_flight(epochs, window, rank, flight);
        }
        if access.message.is_some() {
            return self.post_message(access, rank);
        }
        let Some(step) = access.steps.pop_front() else { return Went::Later };
        let (went, step) = match step {
            Step::Direct(op) => (self.direct(epochs, window, rank, op), Step::Direct(op)),
            Step::Message(parts, sync) => {
                let went = self.compose(epochs, window, rank, &parts, sync);
                (went, Step::Message(parts, sync))
            }
            Step::Sync => (self.synchronise(epochs, window, rank), Step::Sync),
        };
        if went == Went::Later {
            epochs.access(window, rank).expect("it is busy").steps.push_front(step);
        }
        went
    }

    /// Takes memory for an operation and cuts it into transfers.
    fn direct(&mut self, epochs: &mut Epochs, window: u32, rank: Rank, op: usize) -> Went {
        let peer = &epochs.windows[&window].peers[&rank];
        let theirs = peer.exposed.expect("it has operations");
        let held = peer.access.as_ref().expect("it is busy").ops[op];
        let (write, rights) = (held.action == Action::Put, rights_of(held.action));
        let at = |from: usize, rail: usize| Remote {
            addr: theirs.addr + held.offset + from as u64,
            key: theirs.keys[rail],
        };
        let mut flights = Vec::new();
        if held.local.len <= epochs.bounce.slot_bytes() {
            let found = if self.counts_use(rank, held.local.len) {
                self.frequent(rank, held.local, rights)
            } else {
                None
            };
            let (local, memory) = match found {
                Some(own) => {
                    self.counters.count(Event::EpochZeroCopy);
                    (own.region.local(held.local), Memory::Own(own))
                }
                None => match epochs.bounce.take(&mut self.dev, held.local.len) {
                    Ok(Some(slot)) => {
                        if write {
                            self.dev.copy(slot.local.span.addr, held.local.addr, held.local.len);
                        }
                        (slot.local, Memory::Slot(slot, held.local))
                    }
                    Ok(None) => return Went::Later,
                    Err(_) => return self.in_messages(epochs, window, rank, op),
                },
            };
            flights.push(Flight { window, rank, write, rail: RAIL, local, remote: at(0, RAIL), memory });
        } else {
            let (len, most) = (held.local.len, self.path(rank).transfer_bytes);
            let rails = len.div_ceil(STRIPE_BYTES).clamp(1, self.path(rank).rails.min(self.dev.rails()));
            let each = len.div_ceil(rails.max(len.div_ceil(most))).next_multiple_of(64).min(most);
            let keep = self.path(rank).keeps;
            for (number, from) in (0..len).step_by(each).enumerate() {
                let (rail, span) = (number % rails, held.local.part(from, each));
                let Ok(own) = self.rendezvous().with_port(rank, |port| port.hold(rail, span, rights, keep))
                else {
                    for Flight { memory, .. } in flights {
                        self.give_back(epochs, rank, memory);
                    }
                    return self.in_messages(epochs, window, rank, op);
                };
                let (local, memory) = (own.region.local(span), Memory::Own(own));
                flights.push(Flight { window, rank, write, rail, local, remote: at(from, rail), memory });
            }
        }
        self.counters.count(if write { Event::PutDirect } else { Event::GetDirect });
        let numbers: Vec<u32> = flights.into_iter().map(|flight| epochs.launch(flight)).collect();
        epochs.access(window, rank).expect("it is busy").posts.extend(numbers);
        Went::Done
    }

    /// The adapter can register no more: the operation goes in messages, in pieces.
    fn in_messages(&mut self, epochs: &mut Epochs, window: u32, rank: Rank, op: usize) -> Went {
        self.counters.count(Event::RegistrationRefused);
        let most = self.message_bytes(rank);
        let access = epochs.access(window, rank).expect("it is busy");
        let Held { action, local, .. } = access.ops[op];
        let item = Item { action, len: local.len, memory: plan::Memory::Copied };
        plan::in_pieces(&item, op, most).into_iter().rev().for_each(|step| access.steps.push_front(step));
        Went::Done
    }

    fn post_flight(&mut self, epochs: &mut Epochs, window: u32, rank: Rank, number: u32) -> Went {
        let waits = epochs.windows[&window].schedule.waits;
        let flight = epochs.flights[number as usize].as_ref().expect("it waits");
        let Flight { write, rail, local, remote, .. } = *flight;
        let (is_own, work) = (matches!(flight.memory, Memory::Own(_)), Work::Flight(number));
        self.dev.label(|| if write { "put" } else { "get" });
        if write
            && rail == RAIL
            && epochs.access(window, rank).expect("it is busy").ends_with_this_post(waits)
        {
            self.dev.leads(rank);
        }
        let posted = match write {
            true => self.dev.post_write(rank, rail, local, remote, work.encode()),
            false => self.dev.post_read(rank, rail, local, remote, work.encode()),
        };
        if posted == Ok(true) {
            let (now_ns, to) = (self.dev.now_ns(), self.dev.distance(rank));
            self.learner.posted(work, now_ns, local.span.len, write, to);
        }
        if posted == Ok(true) && write && !is_own {
            let peer = epochs.windows.get_mut(&window).and_then(|found| found.peers.get_mut(&rank));
            peer.expect("it is busy").copied_writes += 1;
        }
        let access = epochs.access(window, rank).expect("it is busy");
        match posted {
            Ok(false) => {
                self.counters.count(Event::PostRefused);
                return Went::Later;
            }
            Ok(true) => {
                access.posts.pop_front();
                access.reads += u32::from(!write);
                access.writes += u32::from(write && is_own);
                access.rails |= u32::from(write) << rail;
            }
            Err(fault) => {
                access.posts.pop_front();
                let flight = epochs.land(number).expect("it waits");
                self.give_back(epochs, rank, flight.memory);
                self.fail_access(epochs, window, rank, fault);
            }
        }
        Went::Done
    }

    /// Makes a message of operations, and of the synchronisation.
    fn compose(&mut self, epochs: &mut Epochs, window: u32, rank: Rank, parts: &[Part], sync: bool) -> Went {
        if sync && epochs.access(window, rank).is_some_and(|access| access.reads > 0) {
            return Went::Later;
        }
        let access = &epochs.windows[&window].peers[&rank].access;
        let access = access.as_ref().expect("it is busy");
        let gets = parts.iter().map(|part| access.ops[part.op]).filter(|op| op.action == Action::Get);
        let (mut answered, mut lands) = (false, false);
        for held in gets {
            (answered, lands) = (true, lands || epochs.is_exposed(held.local));
        }
        let access = epochs.access(window, rank).expect("it is busy");
        (access.scattered, access.lands) = (!answered, access.lands || lands);
        let (mut what, mut context) = (flags::OPS, 0);
        if sync {
            let (more, notes) = self.last_word(epochs, window, rank);
            (what, context) = (what | more, notes);
        }
        let start_ns = self.dev.now_ns();
        let mut copied_ns = 0.0;
        let access = epochs.access(window, rank).expect("it is busy");
        let carried = |part: &Part| if access.ops[part.op].action == Action::Put { part.len } else { 0 };
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| OpHead::LEN + carried(part)).sum());
        for part in parts {
            let held = access.ops[part.op];
            let mut token = 0;
            if held.action == Action::Get {
                token = access.answers.len() as u32;
                access.answers.push(Some(held.local.part(part.from, part.len)));
                access.unanswered += 1;
            }
            let head = OpHead {
                action: held.action,
                token,
                offset: held.offset + part.from as u64,
                len: part.len as u64,
            };
            bytes.extend_from_slice(&head.encode());
            self.dev.charge(Charge::Header);
            if held.action == Action::Put {
                let at = bytes.len();
                bytes.resize(at + part.len, 0);
                self.dev.copy(bytes.as_mut_ptr() as usize + at, held.local.addr + part.from, part.len);
                copied_ns += part.len as f64 * self.learner.facts.copy_ns_per_byte(part.len);
            }
        }
        let beside_ns = (self.dev.now_ns() - start_ns) as f64 - copied_ns;
        self.learner.facts.part.observe(beside_ns.max(0.0) / parts.len().max(1) as f64);
        let number = epochs.windows[&window].peers[&rank].number();
        let head = Head { kind: Message::Epoch, aux: what, tag: number as i32, context }.encode();
        epochs.access(window, rank).expect("it is busy").message = Some((head, bytes));
        Went::Done
    }

    fn post_message(&mut self, access: &mut Access, rank: Rank) -> Went {
        let (head, bytes) = access.message.as_ref().expect("it waits");
        let data = Span { addr: bytes.as_ptr() as usize, len: bytes.len() };
        self.dev.label(|| "epoch");
        if !self.peers[rank].control.is_empty() || !self.dev.try_send(rank, *head, data) {
            return Went::Later;
        }
        let aux = (head[0] >> 16) as u16;
        access.told |= aux & (flags::DONE | flags::ASK) != 0;
        if access.unanswered > 0 || aux & flags::ASK != 0 {
            access.asked_ns = self.dev.now_ns();
        }
        access.message = None;
        Went::Done
    }

    /// Ends the epoch at a target by a message of its own.
    fn synchronise(&mut self, epochs: &mut Epochs, window: u32, rank: Rank) -> Went {
        let waits = epochs.windows[&window].schedule.waits;
        let copied = epochs.windows[&window].peers[&rank].copied_writes;
        let access = epochs.access(window, rank).expect("it is busy");
        // What the target serves it has served when it sees a later frame; what its adapter reads it must not change. Behind a fence it may
        // write to where Gets are still to be copied here.
        let copies = access.is_fence && access.copies > 0;
        if access.reads > 0 || copies || waits && access.writes + copied > 0 {
            return Went::Later;
        }
        let (what, notes) = self.last_word(epochs, window, rank);
        let number = epochs.windows[&window].peers[&rank].number();
        self.dev.label(|| "epoch");
        let asked_ns = (what & flags::ASK != 0).then(|| self.dev.now_ns());
        self.tell(number, rank, Some(RAIL), what, notes);
        let access = epochs.access(window, rank).expect("it is busy");
        access.told = true;
        access.asked_ns = asked_ns.unwrap_or(access.asked_ns);
        Went::Done
    }

    /// Notes behind what other adapters write; then how the synchronisation reads, and the number of notes.
    fn last_word(&mut self, epochs: &mut Epochs, window: u32, rank: Rank) -> (u16, u64) {
        let found = epochs.windows.get_mut(&window).expect("it is busy");
        let peer = found.peers.get_mut(&rank).expect("it is busy");
        let number = peer.number();
        let access = peer.access.as_mut().expect("it is busy");
        let written = std::mem::take(&mut access.rails);
        let rails = written & !(1 << RAIL);
        for rail in (0..32).filter(|rail| rails >> rail & 1 != 0) {
            peer.notes_sent += 1;
            self.tell(number, rank, Some(rail), flags::NOTE, 0);
        }
        let what = if access.ending == Some(Ending::Flush) { flags::ASK } else { flags::DONE };
        if what == flags::ASK {
            peer.asked += 1;
            access.asked = peer.asked;
        }
        let failed = if access.fault.is_some() { flags::FAILED } else { 0 };
        // What the target scatters when it looks is overtaken by what comes to its memory, its answers by what it writes itself, and writes by
        // others that have no order with them.
        let is_overtaken =
            access.scattered || access.lands || rails != 0 || written != 0 && !self.dev.writes_in_order(rank);
        let again = access.is_fence && (access.mark.again || is_overtaken);
        peer.mark = Mark { again, ..access.mark };
        (what | failed | peer.mark.flags(), peer.notes_sent)
    }

    /// A transfer of an epoch has ended.
    pub(super) fn landed(&mut self, number: u32, result: Result<(), Fault>) {
        self.learner.completed(Work::Flight(number), self.dev.now_ns(), result.is_ok());
        let Some(mut epochs) = self.epochs.take() else { return };
        let flight = epochs.land(number).expect("an epoch's transfer ends once");
        let Flight { window, rank, write, memory, .. } = flight;
        let is_own = matches!(memory, Memory::Own(_));
        epochs.works = true;
        match memory {
            Memory::Slot(slot, into) if !write && result.is_ok() => {
                epochs.copies.push((window, rank, slot, into));
                if let Some(access) = epochs.access(window, rank) {
                    access.copies += 1;
                }
            }
            memory => self.give_back(&mut epochs, rank, memory),
        }
        let peer = epochs.windows.get_mut(&window).and_then(|found| found.peers.get_mut(&rank));
        if let Some(peer) = peer {
            peer.copied_writes -= u32::from(write && !is_own);
            match (&mut peer.access, &result) {
                (Some(access), _) => {
                    access.reads -= u32::from(!write);
                    access.writes -= u32::from(write && is_own);
                }
                (None, Err(fault)) => peer.late = Some(fault.clone()),
                (None, Ok(())) => {}
            }
        }
        if let Err(fault) = result {
            self.fail_access(&mut epochs, window, rank, fault);
        }
        self.epochs = Some(epochs);
    }

    fn give_back(&mut self, epochs: &mut Epochs, rank: Rank, memory: Memory) {
        match memory {
            Memory::Own(held) => self.let_go(rank, held),
            Memory::Slot(slot, _) => epochs.bounce.give(slot),
        }
    }

    /// An epoch cannot succeed any more: what has not left is given up, and the target is told so at the end.
    fn fail_access(&mut self, epochs: &mut Epochs, window: u32, rank: Rank, fault: Fault) {
        let Some(access) = epochs.access(window, rank) else { return };
        access.fault.get_or_insert(fault);
        let posts = std::mem::take(&mut access.posts);
        let ends = access.ending.is_some() && !access.told && access.message.is_none();
        access.steps.clear();
        if ends {
            access.steps.push_back(Step::Sync);
        }
        for number in posts {
            let flight = epochs.land(number).expect("it waits");
            self.give_back(epochs, rank, flight.memory);
        }
    }

    /// A rank is lost: its epochs here end with that. What adapters still hold ends with its completion, which comes.
    pub(super) fn lose_epochs(&mut self, rank: Rank, fault: &Fault) {
        let Some(mut epochs) = self.epochs.take() else { return };
        let known = |found: &crate::epoch::window::Window| found.peers.contains_key(&rank);
        let concerned = epochs.windows.iter().filter(|(_, found)| known(found)).map(|(window, _)| *window);
        for window in concerned.collect::<Vec<_>>() {
            self.fail_access(&mut epochs, window, rank, fault.clone());
            let found = epochs.windows.get_mut(&window).expect("it was found");
            let peer = found.peers.get_mut(&rank).expect("it was found");
            peer.lost = Some(fault.clone());
            if let Some(access) = &mut peer.access {
                access.steps.clear();
                access.waiting.clear();
                access.answers.iter_mut().for_each(|answer| *answer = None);
                (access.message, access.unanswered, access.gated, access.told) = (None, 0, false, true);
            }
        }
        self.epochs = Some(epochs);
        self.note();
    }
}
