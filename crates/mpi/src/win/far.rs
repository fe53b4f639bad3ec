//! Targets behind an adapter: Put and Get of few runs are one-sided operations of the engine (docs/protocols/epochs.md),
//! which holds them, plans them and says when they are placed; everything else goes by messages to the target as to
//! any other. Between the two MPI asks for no order but that of synchronisations, and these wait for both.
//!
//! An epoch of the engine at a target begins with the first operation and ends with a flush, so it is not that of MPI.

use std::sync::Arc;

use super::active::{Gathered, TELL, Ticket};
use super::issue::at_target;
use super::operation::{Area, Operation, Verb};
use super::quick::There;
use super::{Delivery, Member, Window, about};
use crate::comm::{Place, Purpose};
use crate::datatype::{Datatype, Group};
use crate::error::{Class, Error, Result, fail};
use crate::handle::Handle;
use crate::mem;
use crate::op::Predefined;
use crate::request::Buffer;
use crate::world::{World, fault};
use fabric::{Atomic, Device, Fault, Rank, Span};
use proto::epoch::{Action, Ending, Mark, Schedule};
use proto::event::Event;
use proto::{Engine, Exposed, Want};
use wire::Malformed;

/// Most pieces of an operation that are operations of their own: a type of more is told the target once.
const PIECES: usize = 16;
/// Bytes of what adapters change at once.
const WORD: u64 = 8;
/// Operations at one target that are held or remembered before their origin waits for them.
const HELD: usize = 1024;

/// What ranks tell each other of a window: [`Exposed`] in words.
pub const WORDS: usize = Exposed::LEN / 8;

/// What a rank keeps of a window for targets behind an adapter.
#[derive(Debug)]
pub struct Far {
    /// What this rank's engine calls the window.
    number: u32,
    /// By rank: its number in the job if it is behind an adapter that both use.
    reached: Box<[Option<Rank>]>,
    /// By rank: an epoch of the engine is open there.
    touched: Box<[bool]>,
    /// Ranks at which an epoch ends.
    closing: Vec<u32>,
    /// Operations with requests, by target.
    tickets: Vec<(u32, Arc<Ticket>)>,
    /// By rank: it was told of the end of the last epoch by a message.
    pub(super) was_told: Box<[bool]>,
    /// Targets of whose words adapters change some.
    changing: Vec<u32>,
    /// What the plans of its epochs are like is fixed.
    is_fixed: bool,
    /// Whether adapters change words of this rank without its processor.
    pub(super) words_change: bool,
}

impl Far {
    /// Whether a rank of the window is reached so.
    pub fn reaches(&self, rank: u32) -> bool {
        self.reached[rank as usize].is_some()
    }

    /// Whether an epoch of the engine is open at a rank.
    pub fn touches(&self, rank: u32) -> bool {
        self.touched[rank as usize]
    }

    /// Whether its adapter changes a word of a rank.
    pub fn changes(&self, rank: u32) -> bool {
        self.changing.contains(&rank)
    }

    /// Whether what goes to a rank by its adapter has an end of its own already, or is to have one in any case.
    pub(super) fn is_apart(&self, rank: u32) -> bool {
        self.is_fixed || !self.reaches(rank) || self.touches(rank) || self.changes(rank)
    }

    /// Whether the end of the last epoch at a rank said that another word has to follow.
    pub(super) fn says_again<D: Device>(&self, engine: &mut Engine<D>, rank: u32) -> Result<bool> {
        match self.reached[rank as usize].filter(|_| !self.was_told[rank as usize]) {
            Some(rank) => Ok(engine.last_mark(self.number, rank).map_err(fault)?.again),
            None => Ok(false),
        }
    }

    /// Whether no end of an epoch is awaited at this rank, or at any.
    pub fn is_quiet(&self, target: Option<u32>) -> bool {
        let is_other = |rank: &u32| target.is_some_and(|target| target != *rank);
        self.closing.iter().all(is_other) && self.changing.iter().all(is_other)
    }

    /// Begins an atomic operation on one word that the adapter of the target carries out; whether it has gone so.
    pub(super) fn change<D: Device>(
        &mut self,
        engine: &mut Engine<D>,
        operation: &Operation,
        member: &Member,
    ) -> Result<bool> {
        let target = operation.target;
        let Some(rank) = self.reached[target as usize] else { return Ok(false) };
        let Some((offset, atomic, into)) = change(operation, member) else { return Ok(false) };
        let begun = engine.change(self.number, rank, offset, atomic, into).map_err(fault)?;
        if begun && !self.changing.contains(&target) {
            self.changing.push(target);
        }
        Ok(begun)
    }

    /// Begins an operation if it is one for the engine; how to tell that it is over, if `asks`.
    pub(super) fn operate<D: Device>(
        &mut self,
        engine: &mut Engine<D>,
        operation: &Operation,
        member: &Member,
        asks: bool,
    ) -> Result<Option<Option<Arc<Ticket>>>> {
        let Operation { verb, target, area, data, result, .. } = operation;
        let (here, puts) = match (verb, result) {
            (Verb::Put, _) => (data, true),
            (Verb::Get, Some(result)) => (result, false),
            _ => return Ok(None),
        };
        let Some(rank) = self.reached[*target as usize] else { return Ok(None) };
        let Some(pieces) = pieces(area, here, member.unit) else { return Ok(None) };
        match engine.is_open(self.number, rank).map_err(fault)? {
            Some(true) => {}
            Some(false) => engine.start(self.number, &[rank], false).map_err(fault)?,
            // Another thread waits for the end of an epoch there.
            None => return Ok(None),
        }
        self.touched[*target as usize] = true;
        for (offset, local) in pieces {
            let done = match puts {
                true => engine.put(self.number, rank, offset, local),
                false => engine.get(self.number, rank, offset, local),
            };
            done.map_err(fault)?;
        }
        if !asks {
            return Ok(Some(None));
        }
        engine.issue_at(self.number, rank).map_err(fault)?;
        let ticket = Arc::<Ticket>::default();
        self.tickets.push((*target, ticket.clone()));
        Ok(Some(Some(ticket)))
    }

    /// Begins to complete what goes to a rank, if anything does.
    pub(super) fn close<D: Device>(&mut self, engine: &mut Engine<D>, target: u32) -> Result {
        match self.reached[target as usize].filter(|_| self.touched[target as usize]) {
            Some(rank) => self.close_by(engine, target, rank, Ending::Flush),
            None => Ok(()),
        }
    }

    /// Begins the end of an epoch of MPI at a rank, which it is told with this mark, whether anything went there or not.
    pub(super) fn end<D: Device>(
        &mut self,
        engine: &mut Engine<D>,
        target: u32,
        mark: Mark,
        is_fence: bool,
    ) -> Result {
        let Some(rank) = self.reached[target as usize] else { return Ok(()) };
        if !self.touched[target as usize] {
            engine.start(self.number, &[rank], false).map_err(fault)?;
        }
        engine.mark(self.number, rank, mark, is_fence).map_err(fault)?;
        self.close_by(engine, target, rank, Ending::Complete)
    }

    fn close_by<D: Device>(
        &mut self,
        engine: &mut Engine<D>,
        target: u32,
        rank: Rank,
        ending: Ending,
    ) -> Result {
        self.touched[target as usize] = false;
        self.closing.push(target);
        engine.close_at(self.number, &[rank], ending).map_err(fault)
    }

    /// Takes note of epochs and operations that are over; the first error of one.
    pub(super) fn look<D: Device>(
        &mut self,
        engine: &mut Engine<D>,
        of_window: &impl Fn(Error) -> Error,
        moved: &mut bool,
    ) -> Option<Error> {
        let Far { number, reached, closing, tickets, changing, .. } = self;
        let mut failure = None;
        let rank = |target: u32| reached[target as usize].expect("only what is reached is touched");
        // Before epochs are forgotten.
        tickets.retain(|(target, ticket)| {
            let over = engine.is_done_here(*number, rank(*target)).map_err(fault);
            if over.as_ref().is_ok_and(|over| !over) {
                return true;
            }
            ticket.end(over.err().map(|error| of_window(at_target(*target, &error))));
            *moved = true;
            false
        });
        changing.retain(|target| {
            let goes_on = engine.is_changing(*number, rank(*target)).map_err(fault).unwrap_or_else(|error| {
                let text = format!("an atomic operation at target {target} has failed: {}", error.text);
                failure.get_or_insert(Error::new(error.class, text));
                true // there may be others
            });
            *moved |= !goes_on;
            goes_on
        });
        closing.retain(|target| {
            let over = engine.is_closed_at(*number, &[rank(*target)]).map_err(fault);
            if let Err(error) = &over {
                let text = format!("the epoch at target {target} has failed: {}", error.text);
                failure.get_or_insert(Error::new(error.class, text));
            }
            let goes_on = over.is_ok_and(|over| !over);
            *moved |= !goes_on;
            goes_on
        });
        failure
    }

    /// Has everything that is held for a rank leave.
    pub(super) fn issue<D: Device>(&self, engine: &mut Engine<D>, target: u32) -> Result {
        match self.reached[target as usize].filter(|_| self.touched[target as usize]) {
            Some(rank) => engine.issue_at(self.number, rank).map_err(fault),
            None => Ok(()),
        }
    }

    /// Whether the memory of all operations at this target, or at any, may be reused.
    fn is_done_here<D: Device>(&self, engine: &mut Engine<D>, target: Option<u32>) -> Result<bool> {
        let meant = |at: &u32| target.is_none_or(|target| target == *at);
        for at in (0..self.reached.len() as u32).filter(meant).filter(|at| self.touched[*at as usize]) {
            let rank = self.reached[at as usize].expect("only what is reached is touched");
            if !engine.is_done_here(self.number, rank).map_err(fault)? {
                return Ok(false);
            }
        }
        Ok(self.is_quiet(target))
    }
}

impl Window {
    /// Holds a Put or a Get of one run at a target behind an adapter, if it is like the last one of an epoch that goes on there;
    /// whether it has. Otherwise nothing is done, and the general path says what is wrong, if anything.
    #[inline(never)]
    pub(super) fn hold_now<D: Device>(
        &mut self,
        engine: &mut Engine<D>,
        action: Action,
        there: &There,
        local: Span,
    ) -> bool {
        let (Delivery::Active(active), Ok(target)) = (&mut self.path, usize::try_from(there.target)) else {
            return false;
        };
        let Some(far) = active.far.as_ref().filter(|far| far.touched.get(target) == Some(&true)) else {
            return false;
        };
        let (member, Some(rank)) = (self.members[target], far.reached[target]) else { return false };
        let start = u64::try_from(there.disp).ok().and_then(|disp| disp.checked_mul(member.unit));
        let is_inside =
            |start: &u64| start.checked_add(local.len as u64).is_some_and(|end| end <= member.size);
        let Some(offset) = start.filter(is_inside) else { return false };
        if !self.epoch.reaches(target as u32)
            || !engine.hold_alike(far.number, rank, action, offset, local, HELD - 1)
        {
            return false;
        }
        active.gathered = Gathered::Growing;
        engine.count(Event::WindowTold);
        true
    }
}

/// What an adapter can do of an operation: the offset of a word in the window, its change, and where to put what it was. `None` unless it
/// is one integer of 8 bytes on its boundary, to which something is added or that is compared and swapped.
fn change(operation: &Operation, member: &Member) -> Option<(u64, Atomic, Span)> {
    let Operation { verb, area, data, result, compare, .. } = operation;
    let is_word = |count: u64, ty: &Datatype| {
        let basic = ty.predefined().map(|row| row.basic);
        count == 1 && ty.size() == WORD && basic.is_some_and(|basic| basic.group() == Group::Integer)
    };
    let result = result.as_ref()?;
    let offset = (area.disp as u64).wrapping_mul(member.unit);
    let is_aligned = (member.base as u64).wrapping_add(offset).is_multiple_of(WORD);
    if !is_aligned || !is_word(area.count, &area.ty) || !is_word(result.count, &result.ty) {
        return None;
    }
    let own =
        |addr: usize| mem::with(addr, WORD as usize, |bytes| bytes.try_into().map(u64::from_ne_bytes).ok());
    let carried = || Some(data).filter(|data| is_word(data.count, &data.ty)).and_then(|data| own(data.addr));
    let atomic = match verb {
        Verb::Fetch(Predefined::Sum) => Atomic::Add(carried()?),
        Verb::Fetch(Predefined::NoOp) => Atomic::Add(0),
        Verb::Swap => Atomic::CompareSwap { compare: own(*compare)?, swap: carried()? },
        _ => return None,
    };
    Some((offset, atomic, Span { addr: result.addr, len: WORD as usize }))
}

/// Runs of memory on both sides, cut where either ends: offset in the window and memory here. `None` if they are many.
fn pieces(area: &Area, here: &Buffer, unit: u64) -> Option<Vec<(u64, Span)>> {
    let start = (area.disp as u64).wrapping_mul(unit) as usize;
    let mut theirs = area.ty.runs(start, area.count, 0);
    let mut ours = here.ty.runs(here.addr, here.count, 0);
    let mut pieces = Vec::new();
    let (mut there, mut own) = (theirs.next(), ours.next());
    while let (Some((offset, room)), Some((addr, len))) = (there, own) {
        if pieces.len() == PIECES {
            return None;
        }
        let least = room.min(len);
        pieces.push((offset as u64, Span { addr, len: least as usize }));
        let rest = |at: usize, len: u64| (len > least).then(|| (at + least as usize, len - least));
        there = rest(offset, room).or_else(|| theirs.next());
        own = rest(addr, len).or_else(|| ours.next());
    }
    Some(pieces)
}

/// What a rank has exposed, as it tells it by these words, of a window of which it has told `size` bytes before.
pub fn exposed(rank: u32, words: &[u64; WORDS], size: u64) -> Result<Exposed> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let text = match Exposed::decode(bytes.first_chunk().expect("as long as they were")) {
        Ok(exposed) if exposed.window == 0 || exposed.len == size => return Ok(exposed),
        Ok(exposed) => format!("{} bytes, where its part of the window has {size}", exposed.len),
        Err(Malformed(text)) => text,
    };
    fail(Class::INTERN, format!("what rank {rank} says of its exposed memory is malformed: {text}"))
}

impl<D: Device> World<D> {
    /// Makes this rank's part of a window known to its adapters, if ranks of the window are behind one; the words
    /// that all are to be told, zeros where nobody is. Released with [`World::conceal`].
    pub fn expose(&mut self, place: &Place, own: &Member) -> Result<[u64; WORDS]> {
        let engine = &mut self.engine;
        let is_far = |rank| rank != place.rank && engine.has_adapter(place.world_rank(rank) as usize);
        if !(0..place.size()).any(is_far) {
            return Ok([0; WORDS]);
        }
        let number = self.objects.windows.next_number();
        let span = Span { addr: own.base, len: own.size as usize };
        let bytes = engine.expose(number, span).map_err(fault)?.encode();
        let (words, _) = bytes.as_chunks();
        Ok(std::array::from_fn(|at| u64::from_le_bytes(words[at])))
    }

    /// What a window of these `members`, whose ranks have told these words, keeps for those behind an adapter.
    pub fn reach(
        &mut self,
        place: &Place,
        members: &[Member],
        told: &[[u64; WORDS]],
        schedule: Schedule,
    ) -> Result<Option<Box<Far>>> {
        let exposed = |rank: u32| exposed(rank, &told[rank as usize], members[rank as usize].size);
        let number = exposed(place.rank)?.window;
        if number == 0 {
            return Ok(None);
        }
        let ranks = told.len();
        let mut reached = vec![None; ranks];
        for rank in (0..ranks as u32).filter(|rank| *rank != place.rank) {
            let in_job = place.world_rank(rank) as usize;
            let theirs = exposed(rank)?;
            if self.engine.has_adapter(in_job) && theirs.window != 0 {
                self.engine.admit(number, in_job, theirs).map_err(fault)?;
                reached[rank as usize] = Some(in_job);
            }
        }
        self.engine.schedule(number, schedule).map_err(fault)?;
        Ok(Some(Box::new(Far {
            number,
            reached: reached.into(),
            touched: vec![false; ranks].into(),
            was_told: vec![false; ranks].into(),
            closing: Vec::new(),
            tickets: Vec::new(),
            changing: Vec::new(),
            is_fixed: schedule != Schedule::CHOICE,
            words_change: self.engine.device().words_change(),
        })))
    }

    /// The end of what [`World::expose`] has made: adapters touch this memory no more. All ranks have come to it.
    pub fn conceal(&mut self, win: Handle) -> Result {
        let World { objects, engine, .. } = self;
        let window = objects.windows.find_mut(win)?;
        let far = window.active().and_then(|active| active.far.take());
        far.map_or(Ok(()), |far| engine.withdraw(far.number).map_err(|reason| about(win, &fault(reason))))
    }

    /// Whether an operation at a target goes by the adapter and has not ended.
    pub fn is_far_touched(&mut self, win: Handle, target: u32) -> Result<bool> {
        let far = self.window(win)?.active().and_then(|active| active.far.as_ref());
        Ok(far.is_some_and(|far| far.touches(target)))
    }

    /// Begins to complete what goes by an adapter to a target, which [`World::is_placed`] says is over.
    pub fn place(&mut self, win: Handle, target: u32) -> Result {
        let World { objects, engine, .. } = self;
        let far = objects.windows.find_mut(win)?.active().and_then(|active| active.far.as_mut());
        far.map_or(Ok(()), |far| far.close(engine, target))
    }

    /// Whether no end of what goes by an adapter is awaited at a target, or at any.
    pub fn is_placed(&mut self, win: Handle, target: Option<u32>) -> Result<bool> {
        let far = self.window(win)?.active().and_then(|active| active.far.as_ref());
        Ok(far.is_none_or(|far| far.is_quiet(target)))
    }

    /// Ranks that were told of something that they do not answer.
    pub fn untold(&mut self, win: Handle) -> Result<Vec<u32>> {
        let Some(active) = self.window(win)?.active() else { return Ok(Vec::new()) };
        let untold =
            (0..).zip(&mut active.untold).filter_map(|(rank, told)| std::mem::take(told).then_some(rank));
        Ok(untold.collect())
    }

    /// Whether nothing is on its way from these memories here, or to them.
    pub(super) fn far_is_done_here(&mut self, win: Handle, target: Option<u32>) -> Result<bool> {
        let World { objects, engine, .. } = self;
        let far = objects.windows.find_mut(win)?.active().and_then(|active| active.far.as_ref());
        far.map_or(Ok(true), |far| far.is_done_here(engine, target))
    }

    /// Whether so many operations are held or remembered for a target that its origin has to wait.
    pub(super) fn far_is_full(&mut self, win: Handle, target: u32) -> Result<bool> {
        let World { objects, engine, .. } = self;
        let far = objects.windows.find_mut(win)?.active().and_then(|active| active.far.as_ref());
        let Some((number, rank)) = far.and_then(|far| Some((far.number, far.reached[target as usize]?)))
        else {
            return Ok(false);
        };
        Ok(engine.called(number, rank).map_err(fault)? >= HELD)
    }

    /// Whether all of these have completed an epoch here; then that is used up.
    pub(super) fn far_completed(&mut self, win: Handle, from: &[u32]) -> Result<Option<bool>> {
        let World { objects, engine, .. } = self;
        let Window { path: Delivery::Active(active), place, .. } = objects.windows.find_mut(win)? else {
            return Ok(None);
        };
        let Some(far) = &active.far else { return Ok(None) };
        let is_told = |rank: &u32| !far.reaches(*rank) || active.has_told_end(*rank);
        let (told, by_word): (Vec<u32>, Vec<u32>) = from.iter().partition(|rank| is_told(rank));
        if !active.have_completed(&told) {
            return Ok(Some(false));
        }
        // Messages that left before the word of an adapter have come before it, and are to be heeded first.
        let context = place.context_for(Purpose::Message);
        let want = |source| Want { source: Some(source), context, tag: Some(TELL) };
        let by_adapter: Vec<Rank> = by_word.iter().filter_map(|rank| far.reached[*rank as usize]).collect();
        let have_come = engine.have_ended(far.number, &by_adapter).map_err(fault)?
            && !by_word.iter().any(|rank| active.owes_heed(*rank))
            && !by_adapter.iter().any(|rank| engine.probe(&want(*rank)).is_some());
        if !have_come {
            return Ok(Some(false));
        }
        let number = far.number;
        let marks = by_adapter.iter().map(|rank| Ok(engine.next_mark(number, *rank)?.expect("it has come")));
        let marks = marks.collect::<std::result::Result<Vec<_>, Fault>>().map_err(fault)?;
        // An adapter's word of the end behind this one may be here first, where a message takes another way than its words.
        let ends = || by_word.iter().copied().zip(marks.iter().copied());
        let are_next = ends().all(|(rank, mark)| active.is_next_end(rank, mark));
        let over = are_next && engine.is_exposure_over(number, &by_adapter).map_err(fault)?;
        if over {
            ends().for_each(|(rank, mark)| active.hear_end(rank, mark));
            active.use_up(&told);
        }
        Ok(Some(over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::{Datatype, Form};

    #[test]
    fn runs_are_cut_where_either_side_ends() {
        let int = Datatype::of(Handle(0x209)).unwrap().clone();
        let gaps = Datatype::vector(3, 2, 4, &int, Form::Small).unwrap();
        let here = Buffer { addr: 1000, count: 6, ty: int.clone() };
        let area = |count, ty: &Arc<Datatype>| Area { disp: 10, count, ty: ty.clone() };
        let span = |addr, len| Span { addr, len };
        let cut = pieces(&area(1, &gaps), &here, 4).unwrap();
        assert_eq!(cut, [(40, span(1000, 8)), (56, span(1008, 8)), (72, span(1016, 8))]);
        assert_eq!(pieces(&area(6, &int), &here, 4).unwrap(), [(40, span(1000, 24))]);
        let many = Buffer { addr: 1000, count: 200, ty: int };
        let far_apart = Datatype::vector(100, 2, 4, &many.ty, Form::Small).unwrap();
        assert_eq!(pieces(&area(1, &far_apart), &many, 4), None);
    }
}
