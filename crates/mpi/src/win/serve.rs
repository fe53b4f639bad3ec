//! A look around in windows whose memory is not shared: messages of origins are taken and heeded, answers are taken and sent.

use super::active::{Active, Answer, Arrival, Gathered, Pending, Refused, TELL};
use super::issue::{at_target, let_leave, send};
use super::target::Letter;
use super::{Delivery, Window, named};
use crate::comm::{Place, Purpose};
use crate::error::{Class, Error, Result};
use crate::handle::Handle;
use crate::mem;
use crate::request::{Origin, received};
use crate::world::{Detached, World, fault};
use fabric::{Device, Span};
use proto::{Engine, Failure, MEMORY_MAX, OpId, Want};

/// Most messages that are taken out of matching before they are heeded.
const ARRIVALS: usize = 64;

impl<D: Device> World<D> {
    /// Carries out what others ask for, and takes what they have answered; true if anything moved.
    pub(crate) fn serve_windows(&mut self) -> bool {
        let World { objects, engine, detached, .. } = self;
        let windows = &mut objects.windows;
        let mut moved = false;
        for at in 0..windows.active.len() {
            let win = windows.active[at];
            let claimed = windows.claimed(win);
            let Some(window) = windows.slab.get_mut(win) else { continue };
            let served = serve(win, window, claimed, engine, detached);
            moved |= served.unwrap_or_else(|error| {
                if let Some(active) = window.active() {
                    active.failure.get_or_insert(error);
                }
                false
            });
        }
        if moved {
            engine.note();
        }
        moved
    }
}

/// Sends all that is held, if nothing has joined it since the last look around: what has been begun is to arrive although its
/// origin synchronises with others, computes, or waits for what only this brings about (MPI 5.0 section 12.7.3).
fn let_rest_leave<D: Device>(
    active: &mut Active,
    place: &Place,
    claimed: Option<u32>,
    engine: &mut Engine<D>,
    detached: &mut Vec<(OpId, Detached)>,
) -> Result {
    if active.gathered == Gathered::Growing {
        active.gathered = Gathered::Resting;
        return Ok(());
    }
    active.gathered = Gathered::Nothing;
    let mut left = Ok(());
    for target in 0..place.size() {
        // Whatever came of another one.
        left = left.and(let_leave(active, place, (target, claimed), engine, detached));
    }
    left
}

fn serve<D: Device>(
    win: Handle,
    window: &mut Window,
    claimed: Option<u32>,
    engine: &mut Engine<D>,
    detached: &mut Vec<(OpId, Detached)>,
) -> Result<bool> {
    let Window { path: Delivery::Active(active), place, name, .. } = window else { return Ok(false) };
    // Who waits for a request names no window.
    let of_window = |error: Error| named(win, name, &error);
    if active.gathered != Gathered::Nothing {
        let_rest_leave(active, place, claimed, engine, detached)?;
    }
    let context = place.context_for(Purpose::Message);
    let mut moved = take_in(active, engine, place)?;
    take_answers(active, engine, &of_window, &mut moved);
    if let Some(failure) = active.far.as_mut().and_then(|far| far.look(engine, &of_window, &mut moved)) {
        active.failure.get_or_insert(failure);
    }
    let dead: Vec<u32> = match engine.lost() {
        [] => Vec::new(),
        lost => lost.iter().filter_map(|(rank, _)| place.mine.rank_of(*rank as u32)).collect(),
    };
    if active.inbox.is_empty() && dead.len() == active.dead.len() {
        return Ok(moved);
    }
    let mut letters = heed_in_order(window, engine, &mut moved)?;
    bury(window, dead, &mut letters)?;
    let place = &window.place;
    for Letter { to, tag, bytes } in letters {
        let to = place.world_rank(to) as usize;
        // Who is lost awaits no answer.
        if engine.is_there(to).is_ok() {
            send(engine, detached, (to, context, tag), bytes.into())?;
        }
    }
    Ok(moved)
}

/// Takes in what other ranks have told; whether anything has come.
fn take_in<D: Device>(active: &mut Active, engine: &mut Engine<D>, place: &Place) -> Result<bool> {
    let mut moved = false;
    let want = Want { source: None, context: place.context_for(Purpose::Message), tag: Some(TELL) };
    while active.inbox.len() < ARRIVALS && engine.has_room().is_ok() {
        let Some(message) = engine.probe_matched(&want) else { break };
        let Some(from) = place.mine.rank_of(message.envelope.source as u32) else { continue };
        moved = true;
        let message = match engine.take_whole(message) {
            Ok(bytes) => {
                active.inbox.push_back(Arrival { from, op: None, bytes });
                continue;
            }
            Err(message) => message,
        };
        let bytes = match message.body.len() as usize {
            len if len <= MEMORY_MAX => engine.take_memory(len),
            len => mem::zeroed::<u8>(len)?.into_vec(),
        };
        let span = Span { addr: bytes.as_ptr() as usize, len: bytes.len() };
        let op = engine.receive_matched(message, span).map_err(fault)?;
        active.inbox.push_back(Arrival { from, op: Some(op), bytes });
    }
    for arrival in &mut active.inbox {
        if let Some(outcome) = arrival.op.and_then(|op| engine.take(op)) {
            arrival.op = None;
            if let Some(error) = received(outcome, &Origin::Rank(arrival.from as i32)).error {
                active.failure.get_or_insert(error);
            }
        }
    }
    Ok(moved)
}

/// Takes note of ranks that have died, once what came from them before has been heeded.
fn bury(window: &mut Window, dead: Vec<u32>, letters: &mut Vec<Letter>) -> Result {
    for rank in dead {
        let active = window.active().expect("only windows of this kind are served");
        if !active.dead.contains(&rank) && !active.owes_heed(rank) {
            window.lose(rank, letters)?;
        }
    }
    Ok(())
}

/// Heeds what has come, each origin's messages in the order in which it sent them.
fn heed_in_order<D: Device>(
    window: &mut Window,
    engine: &mut Engine<D>,
    moved: &mut bool,
) -> Result<Vec<Letter>> {
    let mut letters = Vec::new();
    let mut late: Vec<u32> = Vec::new();
    let mut at = 0;
    loop {
        let active = window.active().expect("only windows of this kind are served");
        let Some(arrival) = active.inbox.get(at) else { return Ok(letters) };
        if arrival.op.is_some() || late.contains(&arrival.from) {
            late.push(arrival.from);
            at += 1;
            continue;
        }
        let Arrival { from, bytes, .. } = active.inbox.remove(at).expect("looked at above");
        active.heeds[0] = true;
        active.heeds_one(from);
        *moved = true;
        // The engine wrote it through its address.
        let bytes = std::hint::black_box(bytes);
        window.heed(from, &bytes, &mut letters)?;
        engine.give_memory(bytes);
    }
}

fn take_answers<D: Device>(
    active: &mut Active,
    engine: &mut Engine<D>,
    of_window: &impl Fn(Error) -> Error,
    moved: &mut bool,
) {
    let mut at = 0;
    while at < active.pending.len() {
        let Some(outcome) = engine.take(active.pending[at].op) else {
            at += 1;
            continue;
        };
        *moved = true;
        let Pending { target, answer, disp, room, .. } = active.pending.swap_remove(at);
        let len = outcome.len;
        let failed = match outcome.failure.as_deref() {
            Some(Failure::Device(why)) => Some(at_target(target, &fault(why.clone()))),
            _ => received(outcome, &Origin::Rank(target as i32)).error,
        };
        let error = match (failed, &answer) {
            (Some(error), _) => Some(error),
            (None, Answer::Done) => {
                let (said, _) =
                    std::hint::black_box(&room).split_first_chunk().expect("as long as an answer");
                Refused::decode(said).map(|refused| refused.by(target))
            }
            (None, Answer::Data(unpack, _)) => {
                unpack.finish(len);
                let is_whole = len == unpack.ty.size() * unpack.count;
                (!is_whole).then(|| Refused { class: Class::RMA_RANGE, disp }.by(target))
            }
        };
        match answer {
            Answer::Data(_, Some(ticket)) => ticket.end(error.map(of_window)),
            // An error of what was fetched comes again with the acknowledgement.
            Answer::Data(_, None)
                if active.refuses && error.as_ref().is_some_and(|e| e.class == Class::RMA_RANGE) => {}
            _ => {
                if let Some(error) = error {
                    active.failure.get_or_insert(error);
                }
            }
        }
    }
}
