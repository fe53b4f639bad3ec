//! Operations and synchronisations of a rank in its windows: what is begun, and whether it is over. Nothing here
//! waits; who does asks again after each look around.

use std::sync::Arc;

use super::active::{Active, Answer, Arrival, BATCH_BYTES, Pending, Refused, TELL, Ticket};
use super::begin::{Begin, expect};
use super::direct;
use super::epoch::{self, LockType, Members};
use super::fence::FenceWay;
use super::message::{OPERATION_BYTES, Record};
use super::operation::{Operation, Verb};
use super::tally::Asked;
use super::{Delivery, Window, Windows, about, copied, price, soon};
use crate::comm::{Place, Purpose};
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::mem;
use crate::world::{Detached, World, fault};
use fabric::{Device, Span};
use proto::epoch::Mark;
use proto::event::Event;
use proto::{Engine, Mode, OpId};

/// What ends with an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// All operations are done at the target.
    Flush,
    /// Everything that it was told has been heeded.
    Lull,
    /// The same, and its lock is free.
    Unlock,
    /// Its lock is held.
    Lock(LockType),
}

impl<D: Device> World<D> {
    /// The window of a handle.
    pub fn window(&mut self, win: Handle) -> Result<&mut Window> {
        self.objects.windows.find_mut(win)
    }

    /// Begins an operation; with `asks`, how to tell that it is over, unless it is at once.
    pub fn operate(&mut self, win: Handle, operation: &Operation, asks: bool) -> Result<Option<Arc<Ticket>>> {
        let World { objects, engine, detached, .. } = self;
        let target = operation.target;
        let is_claimed = objects.windows.claimed(win) == Some(target);
        let window = objects.windows.find_mut(win)?;
        if copied::by_origin(win, window, is_claimed, engine, operation)? {
            return Ok(None);
        }
        let member = window.members[target as usize];
        let place = &window.place;
        match &mut window.path {
            Delivery::Direct(control) => {
                let is_alone = window.epoch.is_alone(target);
                let bell = || engine.device().bell();
                let done = control.operate(operation, &member, is_alone, &bell);
                done.map_err(|error| about(win, &error))?;
                engine.count(match operation.verb {
                    Verb::Put => Event::WindowPut,
                    Verb::Get => Event::WindowGet,
                    Verb::Accumulate(_) | Verb::Fetch(_) | Verb::Swap => Event::WindowAtomic,
                });
                Ok(None)
            }
            Delivery::Active(active) => {
                engine.count(Event::WindowTold);
                let is_timed = active.near.is_some() && active.tally.is_timed();
                let since_ns = is_timed.then(|| engine.device().now_ns());
                let begin = Begin { operation, asks, is_claimed };
                let distance = engine.device().distance(place.world_rank(target) as usize);
                if let Some(begun) = begin.go_far(active, engine, &member, distance)? {
                    return Ok(begun);
                }
                let ticket = begin.gather(active, engine, place)?;
                if begin.leaves_at_once(active, engine, place, distance) {
                    send_batch(active, place, target, engine, detached)?;
                }
                if let Some(since_ns) = since_ns {
                    let took_ns = engine.device().now_ns().saturating_sub(since_ns);
                    active.tally.told(operation.verb, operation.area.len(), took_ns);
                }
                Ok(ticket)
            }
        }
    }

    /// Begins a synchronisation with a target, which [`World::is_quiet`] says is over. Nothing is to be done where
    /// memory is shared.
    pub fn synchronise(&mut self, win: Handle, target: u32, sync: Sync) -> Result {
        let World { objects, engine, detached, .. } = self;
        let is_claimed = objects.windows.claimed(win) == Some(target);
        let window = objects.windows.find_mut(win)?;
        let place = &window.place;
        let Delivery::Active(active) = &mut window.path else { return Ok(()) };
        if let Some(far) = active.far.as_mut().filter(|_| sync == Sync::Flush) {
            far.close(engine, target).map_err(|error| at_target(target, &error))?;
            if !active.touched[target as usize] && !is_claimed {
                return Ok(());
            }
        }
        if matches!(sync, Sync::Flush | Sync::Unlock) && active.owes_nothing(target, is_claimed) {
            active.synchronised(target);
            if sync == Sync::Unlock {
                active.untold[target as usize] = true;
                active.tell(target, &Record::Unlock(0));
            }
            return send_batch(active, place, target, engine, detached);
        }
        let reply = active.next_reply();
        let room = mem::zeroed::<u8>(Refused::LEN)?;
        let span = Span { addr: room.as_ptr() as usize, len: room.len() };
        let op = expect(engine, place, target, reply, span)?;
        active.pending.push(Pending { target, op, answer: Answer::Done, disp: 0, room });
        active.synchronised(target);
        active.tell(
            target,
            &match sync {
                Sync::Flush | Sync::Lull => Record::Flush(reply),
                Sync::Unlock => Record::Unlock(reply),
                Sync::Lock(kind) => Record::Lock(kind, reply),
            },
        );
        let sent = send_batch(active, place, target, engine, detached);
        active.say_sent(target);
        sent
    }

    /// Which targets, of one or of all, have operations under way of which it is not known that they are done there.
    pub fn touched(&mut self, win: Handle, target: Option<u32>) -> Result<Vec<u32>> {
        let claimed = self.objects.windows.claimed(win);
        let Some(active) = self.window(win)?.active() else { return Ok(Vec::new()) };
        let is_meant = |rank: &u32| target.is_none_or(|target| target == *rank);
        let is_touched = |rank: &u32| {
            let is_told = active.touched[*rank as usize] || claimed == Some(*rank);
            is_told || active.far.as_ref().is_some_and(|far| far.touches(*rank))
        };
        Ok((0..active.touched.len() as u32).filter(is_meant).filter(is_touched).collect())
    }

    /// Ranks whose operations, told by messages, are to be heeded before those in `told` are told of the end of an epoch: the
    /// word of an adapter overtakes what has not left, and who is not told sees no end at all.
    pub fn overtaken(&mut self, win: Handle, told: &[u32]) -> Result<Vec<u32>> {
        let World { objects, engine, detached, .. } = self;
        let Window { path: Delivery::Active(active), place, .. } = objects.windows.find_mut(win)? else {
            return Ok(Vec::new());
        };
        let mut overtaken = Vec::new();
        for rank in 0..place.size() {
            if !active.touched[rank as usize] {
                continue;
            }
            let by_adapter =
                active.far.as_ref().is_some_and(|far| far.reaches(rank)) && !active.ends_by_message(rank);
            if by_adapter {
                send_batch(active, place, rank, engine, detached)?;
            }
            let is_late = by_adapter && active.held[rank as usize];
            if is_late || !told.contains(&rank) {
                overtaken.push(rank);
            }
        }
        Ok(overtaken)
    }

    /// Tells ranks that their windows' owner exposes its memory, or that all operations of an epoch are there.
    pub fn notify(&mut self, win: Handle, to: &[u32], told: direct::Told) -> Result {
        self.tell(win, to, told, None)
    }

    /// As [`World::notify`], that all operations of an epoch are there, of a fence in which this is asserted.
    pub fn end_for_fence(&mut self, win: Handle, to: &[u32], assert: i32) -> Result {
        self.tell(win, to, direct::Told::Complete, Some(epoch::common(assert)))
    }

    fn tell(&mut self, win: Handle, to: &[u32], told: direct::Told, fence: Option<u32>) -> Result {
        let World { objects, engine, detached, .. } = self;
        let window = objects.windows.find_mut(win)?;
        let place = &window.place;
        if let Some(control) = window.path.control_mut() {
            soon::tell_all(control, place, engine, told, to);
            soon::ended(window);
            return Ok(());
        }
        let Delivery::Active(active) = &mut window.path else { return Ok(()) };
        each(to, |rank| {
            if told == direct::Told::Post {
                active.tell(rank, &Record::Post);
                return send_batch(active, place, rank, engine, detached);
            }
            let mark = fence.map_or(Mark::default(), |said| active.mark(said as u16, rank));
            let mark = Mark { turn: active.tell_end(rank), ..mark };
            let by_message = active.ends_by_message(rank);
            // Of other epochs it is their targets that begin the next one.
            active.unheeded[rank as usize] = fence.is_some() && active.touched[rank as usize];
            if let Some(far) = active.far.as_mut().filter(|far| far.reaches(rank)) {
                far.was_told[rank as usize] = by_message;
                if !by_message {
                    let closed = far.end(engine, rank, mark, fence.is_some());
                    active.synchronised(rank);
                    return closed.map_err(|error| at_target(rank, &error));
                }
            }
            active.tell(rank, &Record::Complete(mark));
            active.synchronised(rank);
            send_batch(active, place, rank, engine, detached)
        })
    }

    /// Whether all of these have told this rank so once more; then that is used up. An error if one that has not is lost.
    pub fn heard(&mut self, win: Handle, from: &[u32], told: direct::Told) -> Result<bool> {
        let heard = self.have_told(win, from, told);
        if matches!(heard, Ok(true)) {
            return heard;
        }
        let has_failed = heard.is_err();
        self.are_there(win, |window, rank| has_failed || window.awaits(told, rank), from.iter().copied())?;
        heard
    }

    /// An error if one of these ranks of a window, of whom something is awaited, is lost.
    #[inline]
    fn are_there(
        &mut self,
        win: Handle,
        is_awaited: impl Fn(&Window, u32) -> bool,
        ranks: impl Iterator<Item = u32>,
    ) -> Result {
        let World { objects, engine, .. } = self;
        if engine.lost().is_empty() {
            return Ok(());
        }
        let window = objects.windows.find_mut(win)?;
        let place = &window.place;
        let why = |rank: u32| Some((rank, engine.is_there(place.world_rank(rank) as usize).err()?));
        match ranks.filter(|rank| is_awaited(window, *rank)).find_map(why) {
            Some((rank, why)) => {
                let why = fault(why);
                Err(about(win, &Error::new(why.class, format!("rank {rank} of the window: {}", why.text))))
            }
            None => Ok(()),
        }
    }

    fn have_told(&mut self, win: Handle, from: &[u32], told: direct::Told) -> Result<bool> {
        if told == direct::Told::Complete
            && let Some(completed) = self.far_completed(win, from).map_err(|error| about(win, &error))?
        {
            return Ok(completed);
        }
        let window = self.window(win)?;
        // Whoever has told has counted before what is to be heeded.
        let is_counted = window.counts() && told == direct::Told::Complete;
        let is_early = is_counted && from.iter().any(|rank| window.awaits(told, *rank));
        if let Some(control) = window.path.control_mut() {
            let heard = !is_early && control.heard(told, from);
            if heard && told == direct::Told::Complete {
                soon::exposure_ended(window);
            }
            return Ok(heard);
        }
        Ok(match &mut window.path {
            Delivery::Direct(_) => false,
            Delivery::Active(active) if told == direct::Told::Post => active.let_in(from),
            Delivery::Active(active) => {
                let have = active.have_completed(from);
                if have {
                    active.use_up(from);
                }
                have
            }
        })
    }

    /// Begins, or goes on with, the meeting of all ranks by words in shared memory; whether all have come, `None`
    /// where memory is not shared. An error if one that has not come is lost.
    pub fn meet(&mut self, win: Handle, assert: i32) -> Result<Option<bool>> {
        let World { objects, engine, .. } = self;
        let met = soon::meet::<true, D>(objects.windows.find_mut(win)?, engine, assert);
        match met {
            Some(false) => self.all_are_there(win)?,
            _ => soon::ended(self.window(win)?),
        }
        Ok(met)
    }

    /// An error if a rank of a window is lost, for who waits for whichever.
    #[inline]
    pub fn all_are_there(&mut self, win: Handle) -> Result {
        let ranks = self.window(win)?.place.size();
        self.are_there(win, |_, _| true, 0..ranks)
    }

    /// Whether another rank was seen to assert something else in the fence that is over.
    pub fn agrees(&mut self, win: Handle, assert: i32) -> Result {
        let own = epoch::common(assert);
        let window = self.window(win)?;
        let found = match window.path.control_mut() {
            Some(control) => control.take_differs(),
            None => window.active().and_then(|active| active.fences.as_ref()?.differs(own)),
        };
        found.map_or(Ok(()), |(rank, said)| Err(about(win, &epoch::differs(rank, said, own))))
    }

    /// Whether the ranks that have told each other that their epochs are over have to say each that its memory is done before anybody
    /// comes there again.
    pub fn needs_second_word(&mut self, win: Handle) -> Result<bool> {
        let World { objects, engine, .. } = self;
        let Some(active) = objects.windows.find_mut(win)?.active() else { return Ok(false) };
        let Some(fences) = &active.fences else { return Ok(false) };
        if fences.needs_second_word() {
            return Ok(true);
        }
        // What the engine has made of the operations only it knows.
        let Some(far) = &active.far else { return Ok(false) };
        fences.others().iter().try_fold(false, |needs, rank| Ok(needs || far.says_again(engine, *rank)?))
    }

    /// The other ranks, if each is told of the next fence by itself.
    pub fn fenced_with(&mut self, win: Handle) -> Result<Option<Members>> {
        let fences = self.window(win)?.active().and_then(|active| active.fences.as_ref());
        Ok(fences.filter(|fences| fences.way() == FenceWay::Told).map(|fences| fences.others().clone()))
    }

    /// A fence is over, which has begun then; which way rank 0 is to tell all others to take from now on, if it is.
    pub fn fence_ended(&mut self, win: Handle, since_ns: u64) -> Result<Option<FenceWay>> {
        let took_ns = self.engine.device().now_ns().saturating_sub(since_ns);
        let Some(active) = self.window(win)?.active() else { return Ok(None) };
        let Some(fences) = &mut active.fences else { return Ok(None) };
        if fences.way() == FenceWay::Asked {
            // All have come to it, behind what they had to heed in those before.
            active.unheeded.fill(false);
        }
        Ok(fences.ended(took_ns))
    }

    /// What rank 0 has told of fences.
    pub fn agree_on_fences(&mut self, win: Handle, way: FenceWay) -> Result {
        let fences = self.window(win)?.active().and_then(|active| active.fences.as_mut());
        fences.into_iter().for_each(|fences| fences.agree(way));
        Ok(())
    }

    /// Begins to give back a lock, which [`World::is_quiet`] says is over.
    pub fn unlock(&mut self, win: Handle, target: u32, kind: LockType) -> Result {
        let World { objects, engine, .. } = self;
        let window = objects.windows.find_mut(win)?;
        let Some(control) = window.path.control() else {
            return self.synchronise(win, target, Sync::Unlock);
        };
        if control.unlock(target, kind) {
            soon::wake_all(window, engine);
        }
        soon::ended(window);
        Ok(())
    }

    /// Sends what has gathered for a target.
    pub fn send_gathered(&mut self, win: Handle, target: u32) -> Result {
        let World { objects, engine, detached, .. } = self;
        let claimed = objects.windows.claimed(win);
        let window = objects.windows.find_mut(win)?;
        let place = &window.place;
        match &mut window.path {
            Delivery::Active(active) => let_leave(active, place, (target, claimed), engine, detached),
            Delivery::Direct(_) => Ok(()),
        }
    }

    /// Whether an operation may not wait at its target for the lock that was asked for, so that its origin has to wait for it.
    pub fn needs_lock(&mut self, win: Handle, operation: &Operation, asks: bool) -> Result<bool> {
        let target = operation.target;
        if self.objects.windows.claimed(win) != Some(target) {
            return Ok(false);
        }
        let World { objects, engine, .. } = self;
        let window = objects.windows.find_mut(win)?;
        let peer = window.place.world_rank(target) as usize;
        let copies = window.members[target as usize].mapped && operation.verb.moves();
        let Some(active) = window.active() else { return Ok(false) };
        // With what waits there already, whichever way its bytes go; its own record, and that of the unlock.
        let records = 2 * OPERATION_BYTES as u64;
        let bytes = (active.load[target as usize] + records + operation.area.len()) as usize;
        let afterwards = match active.far.as_ref().is_some_and(|far| far.reaches(target)) {
            _ if copies => price::Afterwards::Copied,
            true => price::Afterwards::Written,
            false => price::Afterwards::Told,
        };
        let distance = engine.device().distance(peer);
        Ok(asks || !price::is_kept(&engine.learner().facts, distance, bytes, afterwards))
    }

    /// Whether an operation would overtake what its target was told by messages in the epochs before, so that its origin has to ask first
    /// whether that is heeded. So it is told at the end of the next one as well, if that has such operations again.
    pub fn needs_heed(&mut self, win: Handle, operation: &Operation) -> Result<bool> {
        let World { objects, engine, .. } = self;
        let target = operation.target;
        let window = objects.windows.find_mut(win)?;
        let distance = engine.device().distance(window.place.world_rank(target) as usize);
        let (copies, is_mapped) = (window.copies, window.members[target as usize].mapped);
        let is_of_two = window.members.len() == 2;
        let Window { path: Delivery::Active(active), epoch, .. } = window else { return Ok(false) };
        if !active.unheeded[target as usize] {
            return Ok(false);
        }
        if active.near.is_some() {
            let (verb, len) = (operation.verb, operation.area.len());
            let asked = Asked { target, verb, len, is_asked: active.is_asked(epoch) };
            let is_told = is_of_two && active.tally.tells(&engine.learner().facts, &asked);
            return Ok(active.is_early(target) && !is_told);
        }
        let is_long = copies && operation.area.len() > BATCH_BYTES as u64;
        let is_far = active.far.as_ref().is_some_and(|far| far.reaches(target))
            && !active.goes_along(&engine.learner().facts, distance, operation);
        let overtakes = operation.verb.moves() && (is_far || is_long || is_mapped);
        active.was_asked[target as usize] |= overtakes;
        Ok(overtakes)
    }

    /// A target has answered that it has heeded all that it was told.
    pub fn has_heeded(&mut self, win: Handle, target: u32) -> Result {
        if let Some(active) = self.window(win)?.active() {
            active.unheeded[target as usize] = false;
        }
        Ok(())
    }

    /// All that a target, or any, was told has been answered: a lock that was asked for is held, too.
    pub fn locks_are_held(&mut self, win: Handle, target: Option<u32>) {
        let Windows { claim, .. } = &mut self.objects.windows;
        claim.take_if(|(of, at)| *of == win && target.is_none_or(|target| target == *at));
    }

    /// Whether so much is under way to a target that its origin has to complete it before it goes on.
    pub fn is_full(&mut self, win: Handle, target: u32) -> Result<bool> {
        let is_full = self.window(win)?.active().is_some_and(|active| active.is_full(target));
        Ok(is_full || self.far_is_full(win, target)?)
    }

    /// Whether no answer of this target, or of any, is awaited; an error that one has brought.
    pub fn is_quiet(&mut self, win: Handle, target: Option<u32>) -> Result<bool> {
        self.has_settled(win, |active| active.is_quiet(target))
    }

    /// Whether nothing that was fetched is still on its way.
    pub fn has_fetched(&mut self, win: Handle, target: Option<u32>) -> Result<bool> {
        let is_done_here = self.far_is_done_here(win, target).map_err(|error| about(win, &error))?;
        Ok(is_done_here && self.has_settled(win, |active| active.has_fetched(target))?)
    }

    fn has_settled(&mut self, win: Handle, is_settled: impl Fn(&Active) -> bool) -> Result<bool> {
        let Some(active) = self.window(win)?.active() else { return Ok(true) };
        if !is_settled(active) {
            return Ok(false);
        }
        match active.failure.take() {
            Some(error) => Err(about(win, &error)),
            None => Ok(true),
        }
    }
}

/// Sends bytes, which live until they have left; whether they have.
pub(super) fn send<D: Device>(
    engine: &mut Engine<D>,
    detached: &mut Vec<(OpId, Detached)>,
    (to, context, tag): (usize, u64, i32),
    bytes: Vec<u8>,
) -> Result<bool> {
    let span = Span { addr: bytes.as_ptr() as usize, len: bytes.len() };
    let op = engine.send(to, context, tag, span, Mode::Standard).map_err(fault)?;
    match op {
        Some(op) => detached.push((op, Detached::Told(bytes))),
        None => engine.give_memory(bytes),
    }
    Ok(op.is_none())
}

pub(super) fn send_batch<D: Device>(
    active: &mut Active,
    place: &Place,
    target: u32,
    engine: &mut Engine<D>,
    detached: &mut Vec<(OpId, Detached)>,
) -> Result {
    let batch = std::mem::take(&mut active.batches[target as usize]);
    if batch.is_empty() {
        return Ok(());
    }
    if target == place.rank {
        // It stands before all that others tell this rank from here on.
        active.inbox.push_back(Arrival { from: target, op: None, bytes: batch });
    } else {
        let to = place.world_rank(target) as usize;
        let to = (to, place.context_for(Purpose::Message), TELL);
        let left = send(engine, detached, to, batch).map_err(|error| at_target(target, &error))?;
        active.held[target as usize] |= !left;
    }
    active.was_sent(target);
    Ok(())
}

/// Does something of each rank, whatever came of it with others; the first error.
pub fn each(ranks: &[u32], mut f: impl FnMut(u32) -> Result) -> Result {
    let mut done = Ok(());
    for rank in ranks {
        done = done.and(f(*rank));
    }
    done
}

/// Says of which target an error is.
#[cold]
pub(super) fn at_target(target: u32, error: &Error) -> Error {
    Error::new(error.class, format!("target {target}: {}", error.text))
}

/// Sends all that is held for a target, of which that may be the one that is claimed.
pub(super) fn let_leave<D: Device>(
    active: &mut Active,
    place: &Place,
    (target, claimed): (u32, Option<u32>),
    engine: &mut Engine<D>,
    detached: &mut Vec<(OpId, Detached)>,
) -> Result {
    if let Some(far) = &active.far {
        far.issue(engine, target).map_err(|error| at_target(target, &error))?;
    }
    // A lock that nothing waits for goes with what does.
    if claimed == Some(target) && !active.touched[target as usize] {
        return Ok(());
    }
    send_batch(active, place, target, engine, detached)
}
