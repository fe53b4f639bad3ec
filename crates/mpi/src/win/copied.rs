//! Windows of ranks of one host whose memory is the program's own, which nobody else maps. The kernel copies from it and to it
//! (`process_vm_readv`, `process_vm_writev`), so an origin does alone what it does in memory that all map ([`super::direct`]), and
//! synchronises by the same words. No target takes part.
//!
//! ```text
//! Put, Get       one copy
//! accumulates    guard of the target | read | combine | write | guard free        a piece after the other
//! ```
//!
//! What is atomic is so by the guard alone, which targets take for what they are told, too: a call of the kernel costs a third of a
//! message there and back, so of many operations of one epoch all but Gets are told the target in one message, and so is what
//! lies in several runs. How many an epoch has is taken from the one before; a target that takes its time is told nothing for a while ([`Tally`]).

use super::active::{Active, BATCH_BYTES};
use super::direct::Control;
use super::epoch::Epoch;
use super::issue::at_target;
use super::operation::{Operation, Verb, combine};
use super::quick::{There, run_at};
use super::{Flavour, Member, Path, Window, about};
use crate::comm::Place;
use crate::datatype::{self, Basic, Datatype};
use crate::error::Result;
use crate::handle::Handle;
use crate::mem;
use crate::op::Predefined;
use crate::world::{World, fault};
use fabric::{Device, Fault, Span};
use proto::Engine;
use proto::event::Event;

/// Most Puts of an epoch that the kernel makes one by one: so many take as long as the acknowledgement that they spare.
const FEW: u32 = 4;
/// Of what is read and written, under a guard, one takes as long as so many Puts.
const CHANGE: u32 = 3;
/// What a short copy by the kernel takes, near enough to tell a target that computes, or has no core, from one that heeds what it is told.
const COPY_NS: u64 = 500;
/// Such a target takes so many times as long for all that it was told as copies would.
const LATE: u64 = 2;
/// Epochs for which it is told nothing more, at first and at most: the number doubles as long as it is late when it is told again.
const SPARED: (u32, u32) = (16, 1024);
/// Bytes that are read, combined and written at a time: as many as stay in the nearer caches.
const PIECE: usize = 64 << 10;
/// Bytes of a piece that needs no memory of its own.
const SHORT: usize = 64;

/// How many operations there are in an epoch at each target, this one and the last, and whether targets heed at once what they are told.
#[derive(Debug)]
pub struct Tally {
    epoch: u32,
    targets: Box<[Count]>,
}

/// Of one target.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    epoch: u32,
    now: u32,
    before: u32,
    /// Epochs, this one included, for which it is told nothing that the kernel can do, for it was late.
    spared: u32,
    /// For how many it was the last time.
    again: u32,
}

impl Tally {
    /// Of so many targets.
    pub fn new(ranks: usize) -> Tally {
        Tally { epoch: 0, targets: vec![Count::default(); ranks].into() }
    }

    /// Epochs are over.
    #[inline]
    pub fn ended(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// One more at this target, of so many bytes; whether it is for the kernel rather than to be told. What a Get is told comes back in a
    /// message for each. It counts if it is for the kernel, or if this is the last word on it.
    #[inline]
    pub fn is_for_kernel(&mut self, target: u32, verb: Verb, len: u64, is_last: bool) -> bool {
        let is_few = self.is_few(target, verb, len);
        if (is_few || is_last) && verb != Verb::Get {
            self.targets[target as usize] = self.with(target, verb);
        }
        is_few
    }

    /// The count at a target with one more operation.
    #[inline]
    fn with(&self, target: u32, verb: Verb) -> Count {
        let Tally { epoch, targets } = self;
        let mut count = targets[target as usize];
        if count.epoch != *epoch {
            let spared = count.spared.saturating_sub(1);
            count = Count { epoch: *epoch, now: 0, before: count.now, spared, ..count };
        }
        let worth = if verb == Verb::Put { 1 } else { CHANGE };
        Count { now: count.now.saturating_add(worth), ..count }
    }

    /// Whether one more at this target would be for the kernel.
    #[inline]
    pub fn is_few(&self, target: u32, verb: Verb, len: u64) -> bool {
        let Count { now, before, spared, .. } = self.with(target, verb);
        verb == Verb::Get || before.max(now) <= FEW || spared > 0 || len > BATCH_BYTES as u64
    }

    /// A target has acknowledged what it was told in an epoch after so long.
    pub fn waited(&mut self, target: u32, took_ns: u64) {
        let count = &mut self.targets[target as usize];
        let is_late = took_ns > LATE * COPY_NS * u64::from(count.now);
        count.again = if is_late { (2 * count.again).clamp(SPARED.0, SPARED.1) } else { 0 };
        count.spared = if is_late { count.again + 1 } else { 0 };
    }
}

/// What a target has attached to a dynamic window.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    /// How often it had changed that when it was read there.
    changes: u32,
    regions: Vec<[u64; 2]>,
}

/// Most regions of a target that are looked at: where there are more it finds them itself.
const REGIONS: usize = 1 << 12;

/// The address of so many bytes at a displacement of a dynamic window, if they are known to be attached there.
fn find<D: Device>(
    engine: &mut Engine<D>,
    place: &Place,
    active: &mut Active,
    target: u32,
    (disp, len): (i64, u64),
) -> Option<usize> {
    let Active { near: Some(control), attached, .. } = active else { return None };
    let known = &mut attached[target as usize];
    let changes = control.changes(target);
    if changes != known.changes {
        let (addr, count) = control.table(target);
        if count > REGIONS {
            return None;
        }
        let mut regions = vec![[0; 2]; count];
        let span = Span { addr: regions.as_mut_ptr() as usize, len: size_of_val(&regions[..]) };
        let process = place.world_rank(target) as usize;
        let is_read = count == 0 || engine.copy_alone(process, true, span, addr) == Ok(true);
        if !is_read || changes % 2 != 0 || control.changes(target) != changes {
            return None;
        }
        *known = Attached { changes, regions: std::hint::black_box(regions) };
    }
    let addr = u64::try_from(disp).ok()?;
    let holds =
        |[at, size]: &[u64; 2]| addr >= *at && addr.checked_add(len).is_some_and(|end| end <= at + size);
    known.regions.iter().any(holds).then_some(addr as usize)
}

/// Carries an operation out in a window whose memory not all ranks map where its origin does that alone; whether it is done. What is not in the
/// window is refused; of a dynamic one only its target can tell.
pub(super) fn by_origin<D: Device>(
    win: Handle,
    window: &mut Window,
    is_claimed: bool,
    engine: &mut Engine<D>,
    operation: &Operation,
) -> Result<bool> {
    let Operation { target, area, .. } = operation;
    let member = window.members[*target as usize];
    let may_copy = !is_claimed && (window.copies || member.mapped);
    let Window { path: Path::Active(active), place, epoch, flavour, .. } = window else { return Ok(false) };
    let remote = match flavour {
        Flavour::Dynamic => find(engine, place, active, *target, (area.disp, area.len())),
        _ => {
            let located = area.locate(member.base, member.size, member.unit, *target);
            Some(located.map_err(|error| about(win, &error))?)
        }
    };
    let done = may_copy && copy_alone(engine, place, operation, &member)?
        || match remote {
            Some(remote) => operate(engine, place, active, operation, (remote, epoch))?,
            None => false,
        };
    if done {
        engine.count(Event::WindowCopied);
    }
    Ok(done)
}

/// Carries an operation out at `remote` if it is for the kernel; whether it is done.
fn operate<D: Device>(
    engine: &mut Engine<D>,
    place: &Place,
    active: &mut Active,
    operation: &Operation,
    (remote, epoch): (usize, &Epoch),
) -> Result<bool> {
    let Operation { verb, target, area, data, result, compare } = operation;
    let is_early = active.is_early(*target);
    let Active { near: Some(control), tally, touched, .. } = active else { return Ok(false) };
    let is_few = tally.is_for_kernel(*target, *verb, area.len(), true);
    let is_run = |ty: &Datatype| ty.is_contiguous();
    let are_runs = is_run(&area.ty)
        && (!verb.carries() || is_run(&data.ty))
        && result.as_ref().is_none_or(|result| is_run(&result.ty));
    // Accumulates have an order, and none goes past one that is told.
    let is_behind = !verb.moves() && touched[*target as usize];
    if !is_few || !are_runs || is_behind || is_early {
        return Ok(false);
    }
    let process = place.world_rank(*target) as usize;
    let len = area.len() as usize;
    let copied = match (verb, result, area.ty.basic()) {
        (Verb::Put, ..) => engine.copy_alone(process, false, Span { addr: data.addr, len }, remote),
        (Verb::Get, Some(result), _) => {
            engine.copy_alone(process, true, Span { addr: result.addr, len }, remote)
        }
        (_, result, Some(basic)) => {
            let (data, result) = (data.addr, result.as_ref().map(|result| result.addr));
            let change = Change { verb: *verb, basic, data, result, compare: *compare, remote };
            return change.make(engine, process, control, (*target, epoch.is_alone(*target)), len);
        }
        _ => Ok(false),
    };
    copied.map_err(|reason| at_target(*target, &fault(reason)))
}

/// An operation that changes a run of elements of a target, or fetches them whole.
#[derive(Clone, Copy)]
pub(super) struct Change {
    /// Which one.
    pub verb: Verb,
    /// What the elements are.
    pub basic: Basic,
    /// Where those of the origin are, if it carries any.
    pub data: usize,
    /// Where those of the target go.
    pub result: Option<usize>,
    /// What [`Verb::Swap`] compares with.
    pub compare: usize,
    /// Where those of the target are.
    pub remote: usize,
}

impl Change {
    /// Carries it out on `len` bytes of a target; whether the kernel lets this rank. `is_alone`: nobody else touches the target.
    pub fn make<D: Device>(
        self,
        engine: &mut Engine<D>,
        process: usize,
        control: &Control,
        (target, is_alone): (u32, bool),
        len: usize,
    ) -> Result<bool> {
        let size = self.basic.size() as usize;
        let step = PIECE / size * size;
        let mut short = [0; SHORT];
        let mut long = if len > SHORT { engine.take_memory(step.min(len)) } else { Vec::new() };
        let room = if len > SHORT { &mut long[..] } else { &mut short[..] };
        let mut done = Ok(true);
        for at in (0..len).step_by(step) {
            let room = &mut room[..step.min(len - at)];
            let piece = self.from(at);
            let mut change = || done = piece.make_piece(engine, process, room);
            match is_alone {
                true => change(),
                false => control.alone(target, &mut change)?,
            }
            if matches!(done, Ok(false)) && at > 0 {
                // What was changed before cannot be told the target once more.
                done = Err(Fault::Device("the kernel has stopped to copy".into()));
            }
            if done != Ok(true) {
                break;
            }
        }
        if len > SHORT {
            engine.give_memory(long);
        }
        done.map_err(|reason| at_target(target, &fault(reason)))
    }

    /// The rest of it from a byte on.
    fn from(self, at: usize) -> Change {
        let Change { data, result, remote, .. } = self;
        Change { data: data + at, result: result.map(|result| result + at), remote: remote + at, ..self }
    }

    /// Carries it out on as many bytes as `room` has.
    fn make_piece<D: Device>(
        self,
        engine: &mut Engine<D>,
        process: usize,
        room: &mut [u8],
    ) -> std::result::Result<bool, Fault> {
        let Change { verb, basic, data, result, compare, remote } = self;
        let len = room.len();
        if verb == Verb::Accumulate(Predefined::Replace) {
            return engine.copy_alone(process, false, Span { addr: data, len }, remote);
        }
        let span = Span { addr: room.as_mut_ptr() as usize, len };
        if !engine.copy_alone(process, true, span, remote)? {
            return Ok(false);
        }
        // The kernel wrote it through its address, and is to read it so.
        let room = std::hint::black_box(room);
        if let Some(result) = result {
            mem::write(result, room);
        }
        match verb {
            Verb::Fetch(Predefined::NoOp) => return Ok(true),
            Verb::Swap if mem::with(compare, len, |compare| compare != &*room) => return Ok(true),
            Verb::Swap => mem::read(data, room),
            Verb::Accumulate(op) | Verb::Fetch(op) => {
                mem::with(data, len, |data| combine(op, basic, data, room))
            }
            Verb::Put | Verb::Get => unreachable!("they are copies"),
        }
        std::hint::black_box(room);
        engine.copy_alone(process, false, span, remote)
    }
}

/// Puts or gets without the target, where this rank maps its memory, or a long run of bytes where the kernel lets it; whether it has.
fn copy_alone<D: Device>(
    engine: &mut Engine<D>,
    place: &Place,
    operation: &Operation,
    member: &Member,
) -> Result<bool> {
    let Operation { verb, target, area, data, result, .. } = operation;
    let (here, reads) = match (verb, result) {
        (Verb::Put, _) => (data, false),
        (Verb::Get, Some(result)) => (result, true),
        _ => return Ok(false),
    };
    let remote = area.locate(member.base, member.size, member.unit, *target)?;
    if member.mapped {
        let here = datatype::Buffer { base: here.addr, count: here.count, ty: &here.ty };
        let there = datatype::Buffer { base: remote, count: area.count, ty: &area.ty };
        let (from, to) = if reads { (there, here) } else { (here, there) };
        datatype::copy(from, to);
        return Ok(true);
    }
    let is_run = area.ty.is_contiguous() && here.ty.is_contiguous();
    if !is_run || area.len() <= BATCH_BYTES as u64 || *target == place.rank {
        return Ok(false);
    }
    let local = Span { addr: here.addr, len: area.len() as usize };
    let copied = engine.copy_alone(place.world_rank(*target) as usize, reads, local, remote);
    copied.map_err(|reason| at_target(*target, &fault(reason)))
}

/// The address of a run of `len` bytes at a target of a window whose ranks synchronise by words although they do not map its memory, if an
/// epoch includes it and this is for the kernel.
fn locate_near<D: Device>(
    window: &mut Window,
    engine: &mut Engine<D>,
    verb: Verb,
    there: &There,
    len: usize,
) -> Option<usize> {
    let (target, len_bytes) = (u32::try_from(there.target).ok()?, len as u64);
    if !window.is_near() {
        return None;
    }
    let is_dynamic = window.flavour == Flavour::Dynamic;
    let located = if is_dynamic { None } else { Some(run_at(window, there.target, there.disp, len)?) };
    let Window { path: Path::Active(active), place, epoch, .. } = window else { return None };
    if target >= place.size() || !epoch.reaches(target) {
        return None;
    }
    let found = located.or_else(|| find(engine, place, active, target, (there.disp, len_bytes)))?;
    // Accumulates have an order, and none goes past one that is told; nor does anything past what was told for the last fence.
    let is_behind = !verb.moves() && active.touched[target as usize] || active.is_early(target);
    (active.tally.is_for_kernel(target, verb, len_bytes, false) && !is_behind).then_some(found)
}

/// Puts or gets a run by the kernel where that is how it goes; whether it is done.
pub(super) fn copy_now<const PUT: bool, D: Device>(
    window: &mut Window,
    engine: &mut Engine<D>,
    there: &There,
    here: Span,
) -> bool {
    let verb = if PUT { Verb::Put } else { Verb::Get };
    let Some(remote) = locate_near(window, engine, verb, there, here.len) else { return false };
    let process = window.place.world_rank(there.target as u32) as usize;
    // Of what has failed the general path finds out the same, and tells.
    let done = engine.copy_alone(process, !PUT, here, remote) == Ok(true);
    if done {
        engine.count(Event::WindowCopied);
    }
    done
}

impl<D: Device> World<D> {
    /// These targets have acknowledged what they were told, for which this rank has waited since then.
    pub fn waited(&mut self, win: Handle, targets: &[u32], since_ns: u64) -> Result {
        let took_ns = self.engine.device().now_ns().saturating_sub(since_ns);
        if let Some(active) = self.window(win)?.active() {
            targets.iter().for_each(|target| active.tally.waited(*target, took_ns));
        }
        Ok(())
    }

    /// An accumulate, a fetch or a swap of one run by the kernel, where that is how it goes; whether it is done.
    #[inline(never)]
    pub(super) fn change_apart_now(
        &mut self,
        (verb, basic): (Verb, Basic),
        [data, compare]: [usize; 2],
        result: Option<usize>,
        (there, len): (&There, usize),
        win: Handle,
    ) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        let Some(remote) = locate_near(window, engine, verb, there, len) else { return false };
        let target = there.target as u32;
        let is_alone = window.epoch.is_alone(target);
        let Window { path: Path::Active(active), place, .. } = window else { return false };
        let Some(control) = &active.near else { return false };
        let change = Change { verb, basic, data, result, compare, remote };
        let process = place.world_rank(target) as usize;
        match change.make(engine, process, control, (target, is_alone), len) {
            Ok(false) => return false,
            Ok(true) => {}
            // Part of it may be done, so nobody is to begin once more. The end of the epoch tells.
            Err(error) => _ = active.failure.get_or_insert(about(win, &error)),
        }
        engine.count(Event::WindowCopied);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: Verb = Verb::Accumulate(Predefined::Sum);

    /// How many Puts of an epoch of so many are for the kernel, each asked of twice as programs do that begin at once.
    fn epoch(tally: &mut Tally, count: u32, target: u32) -> u32 {
        let mut is_for_kernel = |is_last| tally.is_for_kernel(target, Verb::Put, 8, is_last);
        let few = (0..count).filter(|_| is_for_kernel(false) || is_for_kernel(true)).count() as u32;
        tally.ended();
        few
    }

    /// Of many in an epoch the first few are taken for an epoch of few, and none of the next epoch.
    #[test]
    fn an_epoch_is_taken_to_be_like_the_last_one_at_its_target() {
        let mut tally = Tally::new(2);
        assert_eq!(epoch(&mut tally, FEW, 0), FEW);
        assert_eq!(epoch(&mut tally, 10 * FEW, 0), FEW);
        assert_eq!(epoch(&mut tally, 3, 1), 3, "another target");
        assert_eq!(epoch(&mut tally, 1, 0), 0);
        assert_eq!(epoch(&mut tally, 2, 0), 2);
        assert!(tally.is_for_kernel(1, SUM, 8, true) && tally.is_for_kernel(1, Verb::Put, 8, true));
        assert!(!tally.is_for_kernel(1, SUM, 8, true) && tally.is_for_kernel(1, SUM, 1 << 20, true));
        assert!(tally.is_for_kernel(1, Verb::Get, 8, true));
    }

    /// A target that is late is told less and less often, until it is in time.
    #[test]
    fn who_is_late_is_told_nothing_for_some_epochs() {
        let mut tally = Tally::new(1);
        let mut spared = |took_ns| {
            while epoch(&mut tally, 10, 0) == 10 {}
            assert_eq!(epoch(&mut tally, 10, 0), 0);
            tally.waited(0, took_ns);
            (0..).take_while(|_| epoch(&mut tally, 10, 0) == 10).count() as u32
        };
        let (late_ns, in_time_ns) = (LATE * COPY_NS * 10 + 1, COPY_NS * 10);
        assert_eq!([late_ns, late_ns, late_ns].map(&mut spared), [16, 32, 64]);
        assert_eq!([in_time_ns, late_ns].map(&mut spared), [0, 16]);
        assert_eq!((0..20).map(|_| spared(late_ns)).max(), Some(SPARED.1));
    }
}
