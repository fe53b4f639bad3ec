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
//! lies in several runs: whichever costs less ([`super::tally`]).

use super::active::{Active, BATCH_BYTES};
use super::direct::Control;
use super::epoch::Epoch;
use super::issue::at_target;
use super::operation::{Operation, Verb, combine};
use super::quick::{There, run_at};
use super::tally::{Asked, Tally};
use super::{Delivery, Flavour, Member, Window, about};
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

/// Bytes that are read, combined and written at a time: as many as stay in the nearer caches.
const PIECE: usize = 64 << 10;
/// Bytes of a piece that needs no memory of its own.
const SHORT: usize = 64;

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
    let Window { path: Delivery::Active(active), place, epoch, flavour, .. } = window else {
        return Ok(false);
    };
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
    let (is_early, is_asked) = (active.is_early(*target), active.is_asked(epoch));
    let Active { near: Some(control), tally, touched, .. } = active else { return Ok(false) };
    let asked = Asked { target: *target, verb: *verb, len: area.len(), is_asked };
    let is_few = tally.is_for_kernel(&engine.learner().facts, &asked, true);
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
    let since_ns = tally.is_timed().then(|| engine.device().now_ns());
    let copied = match (verb, result, area.ty.basic()) {
        (Verb::Put, ..) => engine.copy_alone(process, false, Span { addr: data.addr, len }, remote),
        (Verb::Get, Some(result), _) => {
            engine.copy_alone(process, true, Span { addr: result.addr, len }, remote)
        }
        (_, result, Some(basic)) => {
            let (data, result) = (data.addr, result.as_ref().map(|result| result.addr));
            let change = Change { verb: *verb, basic, data, result, compare: *compare, remote };
            let done = change.make(engine, process, control, (*target, epoch.is_alone(*target)), len);
            note(tally, engine, &asked, since_ns);
            return done;
        }
        _ => Ok(false),
    };
    note(tally, engine, &asked, since_ns);
    copied.map_err(|reason| at_target(*target, &fault(reason)))
}

/// An operation that was timed from then on is over.
#[inline]
fn note<D: Device>(tally: &mut Tally, engine: &Engine<D>, asked: &Asked, since_ns: Option<u64>) {
    if let Some(since_ns) = since_ns {
        tally.copied(asked, engine.device().now_ns().saturating_sub(since_ns));
    }
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

/// An operation that is begun by the kernel: what it is, where, and when it began if it is timed.
type Begun = (Asked, usize, Option<u64>);

/// An operation on a run of `len` bytes at a target of a window whose ranks synchronise by words although they do not map its memory, if an
/// epoch includes it and this is for the kernel.
fn locate_near<D: Device>(
    window: &mut Window,
    engine: &mut Engine<D>,
    verb: Verb,
    there: &There,
    len: usize,
) -> Option<Begun> {
    let (target, len_bytes) = (u32::try_from(there.target).ok()?, len as u64);
    if !window.is_near() {
        return None;
    }
    let is_dynamic = window.flavour == Flavour::Dynamic;
    let located = if is_dynamic { None } else { Some(run_at(window, there.target, there.disp, len)?) };
    let Window { path: Delivery::Active(active), place, epoch, .. } = window else { return None };
    if target >= place.size() || !epoch.reaches(target) {
        return None;
    }
    let found = located.or_else(|| find(engine, place, active, target, (there.disp, len_bytes)))?;
    // Accumulates have an order, and none goes past one that is told; nor does anything past what was told for the last fence.
    let is_behind = !verb.moves() && active.touched[target as usize] || active.is_early(target);
    let asked = Asked { target, verb, len: len_bytes, is_asked: active.is_asked(epoch) };
    if is_behind || !active.tally.is_for_kernel(&engine.learner().facts, &asked, false) {
        return None;
    }
    Some((asked, found, active.tally.is_timed().then(|| engine.device().now_ns())))
}

/// Puts or gets a run by the kernel where that is how it goes; whether it is done.
pub(super) fn copy_now<const PUT: bool, D: Device>(
    window: &mut Window,
    engine: &mut Engine<D>,
    there: &There,
    here: Span,
) -> bool {
    let verb = if PUT { Verb::Put } else { Verb::Get };
    let Some((asked, remote, since_ns)) = locate_near(window, engine, verb, there, here.len) else {
        return false;
    };
    let process = window.place.world_rank(there.target as u32) as usize;
    // Of what has failed the general path finds out the same, and tells.
    let done = engine.copy_alone(process, !PUT, here, remote) == Ok(true);
    if done {
        engine.count(Event::WindowCopied);
    }
    if let Some(active) = window.active() {
        note(&mut active.tally, engine, &asked, since_ns);
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
        let Some((asked, remote, since_ns)) = locate_near(window, engine, verb, there, len) else {
            return false;
        };
        let target = there.target as u32;
        let is_alone = window.epoch.is_alone(target);
        let Window { path: Delivery::Active(active), place, .. } = window else { return false };
        let Some(control) = &active.near else { return false };
        let change = Change { verb, basic, data, result, compare, remote };
        let process = place.world_rank(target) as usize;
        match change.make(engine, process, control, (target, is_alone), len) {
            Ok(false) => return false,
            Ok(true) => {}
            // Part of it may be done, so nobody is to begin once more. The end of the epoch tells.
            Err(error) => _ = active.failure.get_or_insert(about(win, &error)),
        }
        note(&mut active.tally, engine, &asked, since_ns);
        engine.count(Event::WindowCopied);
        true
    }
}
