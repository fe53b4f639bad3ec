//! Windows whose targets carry operations out: what an origin has told and not yet sent, what it waits for, and what
//! a target keeps for its origins. Here nothing is sent: [`super::issue`] does that.
//!
//! Operations to one target gather until there is a reason to send them: they fill a message, something has to come
//! back at once, or a synchronisation rides with the last of them. What this rank does to itself never gathers: it is the
//! next of what has come.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use super::along::Sums;
use super::copied::Attached;
use super::direct::Control;
use super::far::Far;
use super::fence::Fences;
use super::heed::Messages;
use super::locks::Locks;
use super::message::{self, Record, Told, TypeName};
use super::operation::Operation;
use super::tally::Tally;
use super::{Window, packed};
use crate::datatype::Datatype;
use crate::error::{Class, Error};
use crate::mem;
use crate::request::Unpack;
use proto::OpId;
use proto::epoch::Mark;

/// Bytes of operations to one target that gather whatever that costs.
pub const BATCH_BYTES: usize = 4 << 10;
/// Bytes of operations that may be under way to one target before their origin waits for it.
const LOAD_BYTES: u64 = 4 << 20;
/// Most answers that one rank awaits in one window.
const ANSWERS: usize = 1024;
/// Types of one origin that a target keeps.
const TYPES: usize = 64;
/// Tag of what targets are told; answers have the others.
pub const TELL: i32 = 0;

/// How an operation with a request ended.
#[derive(Debug, Default)]
pub struct Ticket(OnceLock<Option<Error>>);

impl Ticket {
    /// The outcome, once there is one.
    pub fn outcome(&self) -> Option<&Option<Error>> {
        self.0.get()
    }

    /// The operation has ended.
    pub fn end(&self, error: Option<Error>) {
        let _ = self.0.set(error);
    }
}

/// What an answer means.
#[derive(Debug)]
pub enum Answer {
    /// All told before has been done, or a lock is held.
    Done,
    /// Bytes of the target, to be put where the origin wants them.
    Data(Unpack, Option<Arc<Ticket>>),
}

/// An operation that its target refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Why.
    pub class: Class,
    /// Where it was to be, in displacement units; in a dynamic window an address.
    pub disp: i64,
}

impl Refused {
    /// Bytes of an acknowledgement.
    pub const LEN: usize = 16;

    /// What the acknowledgement says; zeros if nothing was refused.
    pub fn encode(refused: Option<Refused>) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        if let Some(Refused { class, disp }) = refused {
            out[..8].copy_from_slice(&i64::from(class.0).to_ne_bytes());
            out[8..].copy_from_slice(&disp.to_ne_bytes());
        }
        out
    }

    /// Reads an acknowledgement.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Option<Refused> {
        let word = |at: usize| i64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let class = Class(word(0) as i32);
        (class.0 != 0).then(|| Refused { class, disp: word(8) })
    }

    /// What the origin says of it.
    pub fn by(self, target: u32) -> Error {
        let Refused { class, disp } = self;
        let place = match class {
            Class::RMA_RANGE => "is not all in memory that it exposes",
            Class::DISP => "has a negative displacement",
            _ => "makes no sense there",
        };
        let text =
            format!("target {target} has refused an operation at displacement {disp:#x}, which {place}");
        Error::new(class, text)
    }
}

/// An answer that has not come.
#[derive(Debug)]
pub struct Pending {
    /// Who answers.
    pub target: u32,
    /// The receive.
    pub op: OpId,
    /// What it means.
    pub answer: Answer,
    /// Displacement of the operation, if it is one.
    pub disp: i64,
    /// Memory of the receive, where the answer has none.
    pub room: Box<[u8]>,
}

/// A message that has been taken out of matching.
#[derive(Debug)]
pub struct Arrival {
    /// Rank of its sender in the window.
    pub from: u32,
    /// The receive, while it is under way.
    pub op: Option<OpId>,
    /// Its bytes, in memory of the engine.
    pub bytes: Vec<u8>,
}

/// What operations wait for that have not left, so that they leave together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gathered {
    /// There are none.
    Nothing,
    /// For others: one has come since the last look around.
    Growing,
    /// For nothing any more but a synchronisation, which this rank may never reach before they have arrived.
    Resting,
}

/// State of one rank in a window of this kind.
#[derive(Debug)]
pub struct Active {
    /// What is gathered, at any target.
    pub gathered: Gathered,
    /// By target: whether operations have been begun of which it is not known that they are done there.
    pub touched: Box<[bool]>,
    /// By target: bytes of these operations.
    pub load: Box<[u64]>,
    /// By target: whether accumulates are among them.
    pub(super) sums: Box<[Sums]>,
    /// By target: the last of these operations is answered, which says also that all before it are done.
    answered: Box<[bool]>,
    /// By target: something that it was told has not left at once, so what is sent next may overtake it.
    pub held: Box<[bool]>,
    /// By rank: it was told of an unlock without being asked for an answer.
    pub untold: Box<[bool]>,
    /// By target: the last fence has ended operations that it was told by messages, by this rank or, where ranks meet by words, by any, and it is
    /// not known that these are heeded: what does not go by a message would overtake them.
    pub unheeded: Box<[bool]>,
    /// By target: it had to be asked for that ([`Active::mark`]).
    pub was_asked: Box<[bool]>,
    /// By rank: how many ends of epochs it was told, and has told, of which the lowest bit counts: an end by a message and the next one by an
    /// adapter may be seen in either order.
    ends: Box<[(bool, bool)]>,
    /// A target may refuse what its origin cannot check, and says so in an acknowledgement.
    pub(super) refuses: bool,
    /// By target: what it is to be told.
    pub batches: Box<[Vec<u8>]>,
    /// Answers that have not come.
    pub pending: Vec<Pending>,
    /// What others have told this rank.
    pub inbox: VecDeque<Arrival>,
    /// The lock of this rank's memory.
    pub locks: Locks,
    /// By origin: what it has told behind a lock that it has not got yet.
    pub behind_locks: HashMap<u32, Vec<u8>>,
    /// By origin: exposures it has told of that are not used up.
    pub posts: Box<[u32]>,
    /// By origin: epochs it has completed by messages that are not used up, with what was said of each.
    pub completes: Box<[VecDeque<Mark>]>,
    /// By origin: the first error since the last answer.
    pub failed: Box<[Option<Refused>]>,
    /// Ranks that have died, of which this rank has taken note.
    pub dead: Vec<u32>,
    /// What went wrong and nobody has been told.
    pub failure: Option<Error>,
    /// By target: types it has been told, and the number of the next.
    told: Box<[(Vec<Arc<Datatype>>, usize)]>,
    /// Types that origins have told.
    types: HashMap<(u32, u32), Arc<Datatype>>,
    last_reply: i32,
    /// Words that all ranks map, where they share a host and the kernel copies between them: by these they synchronise.
    pub near: Option<Control>,
    /// What targets count instead of acknowledging it.
    pub(super) messages: Messages,
    /// What tells whether operations are copies or told.
    pub(super) tally: Tally,
    /// Whether this rank has been told anything in this exposure epoch, and in the one before: then who waits for its end serves meanwhile.
    pub(super) heeds: [bool; 2],
    /// By target: what it has attached, as far as this rank knows.
    pub(super) attached: Box<[Attached]>,
    /// Targets behind an adapter, if there are any.
    pub far: Option<Box<Far>>,
    /// Its fences, if these may go either way.
    pub fences: Option<Fences>,
}

impl Active {
    /// Of a window of so many ranks.
    pub fn new(ranks: usize, far: Option<Box<Far>>, fences: Option<Fences>, refuses: bool) -> Active {
        Active {
            gathered: Gathered::Nothing,
            touched: vec![false; ranks].into(),
            load: vec![0; ranks].into(),
            sums: vec![Sums::default(); ranks].into(),
            answered: vec![false; ranks].into(),
            held: vec![false; ranks].into(),
            untold: vec![false; ranks].into(),
            unheeded: vec![false; ranks].into(),
            was_asked: vec![false; ranks].into(),
            ends: vec![(false, false); ranks].into(),
            refuses,
            batches: (0..ranks).map(|_| Vec::new()).collect(),
            pending: Vec::new(),
            inbox: VecDeque::new(),
            locks: Locks::default(),
            behind_locks: HashMap::new(),
            posts: vec![0; ranks].into(),
            completes: vec![VecDeque::new(); ranks].into(),
            failed: vec![None; ranks].into(),
            dead: Vec::new(),
            failure: None,
            told: (0..ranks).map(|_| (Vec::new(), 0)).collect(),
            types: HashMap::new(),
            last_reply: 0,
            near: None,
            messages: Messages::new(ranks),
            tally: Tally::new(ranks),
            heeds: [false; 2],
            attached: vec![Attached::default(); ranks].into(),
            far,
            fences,
        }
    }

    /// A tag for an answer: none that is still awaited.
    pub fn next_reply(&mut self) -> i32 {
        self.last_reply = self.last_reply % (1 << 30) + 1;
        self.last_reply
    }

    /// Gathers a record for a target.
    pub fn tell(&mut self, target: u32, record: &Record) {
        message::push(&mut self.batches[target as usize], record);
    }

    /// Whether a target need not be asked whether all operations are done: there are none, nor is its lock asked for (`is_claimed`), or
    /// the answer to the last one tells.
    pub fn owes_nothing(&self, target: u32, is_claimed: bool) -> bool {
        match self.touched[target as usize] {
            false => !is_claimed,
            true => !self.refuses && self.answered[target as usize],
        }
    }

    /// What goes with the end of an epoch that is that of a fence: what is asserted, and whether the rank is to answer this one, since it was told by
    /// messages what would be overtaken by what does not go so. Where nothing in sight goes otherwise it is asked when something does, but
    /// once.
    pub fn mark(&mut self, said: u16, rank: u32) -> Mark {
        let again = match self.touched[rank as usize] {
            true => !self.ends_by_message(rank) || self.was_asked[rank as usize],
            false => self.far.as_ref().is_some_and(|far| far.changes(rank)),
        };
        let fences = self.fences.as_mut().expect("it is in a fence that is told");
        fences.begin(Mark { said, again, turn: false })
    }

    /// Whether all operations of the epoch at this rank went by messages, so that its end joins them.
    pub fn ends_by_message(&self, rank: u32) -> bool {
        let goes_otherwise = |far: &Far| far.touches(rank) || far.changes(rank);
        self.touched[rank as usize] && !self.far.as_ref().is_some_and(|far| goes_otherwise(far))
    }

    /// A rank is told of the end of an epoch now; which turn that is.
    pub fn tell_end(&mut self, rank: u32) -> bool {
        let (told, _) = &mut self.ends[rank as usize];
        std::mem::replace(told, !*told)
    }

    /// Whether this is said of the next end of an epoch of this rank, and not of the one behind it.
    pub fn is_next_end(&self, rank: u32, mark: Mark) -> bool {
        mark.turn == self.ends[rank as usize].1
    }

    /// Whether the next end of an epoch of this rank came by a message.
    pub fn has_told_end(&self, rank: u32) -> bool {
        self.completes[rank as usize].front().is_some_and(|mark| self.is_next_end(rank, *mark))
    }

    /// What a target was told it has done, or will have when its answers are here.
    pub fn synchronised(&mut self, target: u32) {
        self.tally.ended();
        self.touched[target as usize] = false;
        self.load[target as usize] = 0;
        self.sums[target as usize].ended();
        self.held[target as usize] = false;
    }

    /// Whether something that a rank has told this one is not heeded yet.
    pub fn owes_heed(&self, from: u32) -> bool {
        self.inbox.iter().any(|arrival| arrival.from == from)
    }

    /// Gathers an operation. Its bytes are copied, so the origin's buffer is free again.
    pub fn gather(&mut self, operation: &Operation, reply: i32) {
        let Operation { verb, target, area, data, compare, .. } = operation;
        let target = *target as usize;
        self.touched[target] = true;
        self.answered[target] = verb.fetches();
        self.sums[target].told(*verb);
        self.load[target] += area.len() + message::OPERATION_BYTES as u64;
        let (known, next) = &mut self.told[target];
        let description: Vec<u8>;
        let ty = match area.ty.predefined() {
            Some(row) => TypeName::Predefined(row.handle),
            None => match known.iter().position(|ty| Arc::ptr_eq(ty, &area.ty)) {
                Some(number) => TypeName::Known(number as u32),
                None => {
                    let number = *next % TYPES;
                    *next += 1;
                    if number == known.len() {
                        known.push(area.ty.clone())
                    } else {
                        known[number] = area.ty.clone()
                    }
                    description = area.ty.describe().iter().flat_map(|word| word.to_ne_bytes()).collect();
                    TypeName::New(number as u32, &description)
                }
            },
        };
        let batch = &mut self.batches[target];
        let mut push = |data: &[u8]| {
            let told = Told { verb: *verb, reply, disp: area.disp, count: area.count, ty, data };
            message::push(batch, &Record::Operate(told));
        };
        if !verb.carries() {
            return push(&[]);
        }
        packed(data, |data| match compare {
            0 => push(data),
            compare => mem::with(*compare, data.len(), |compare| push(&[data, compare].concat())),
        });
    }

    /// The type that an origin names.
    pub fn named(&mut self, from: u32, name: TypeName) -> Option<Arc<Datatype>> {
        match name {
            TypeName::Predefined(handle) => Datatype::of(handle).cloned(),
            TypeName::Known(number) => self.types.get(&(from, number)).cloned(),
            TypeName::New(number, bytes) if (number as usize) < TYPES => {
                let words: Vec<u64> =
                    bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
                let ty = Datatype::described(&words).ok()?;
                self.types.insert((from, number), ty.clone());
                Some(ty)
            }
            TypeName::New(..) => None,
        }
    }

    /// Whether all of these have let this rank in, each of which has heeded then what it was told in epochs before; then that is used up.
    pub fn let_in(&mut self, from: &[u32]) -> bool {
        let all = from.iter().all(|rank| self.posts[*rank as usize] > 0);
        if all {
            for rank in from {
                self.posts[*rank as usize] -= 1;
                self.unheeded[*rank as usize] = false;
            }
        }
        all
    }

    /// Whether all of these have completed an epoch by a message; [`Active::use_up`] forgets that.
    pub fn have_completed(&self, from: &[u32]) -> bool {
        from.iter().all(|rank| self.has_told_end(*rank))
    }

    /// An epoch of each of these, which have completed one by a message, is used up.
    pub fn use_up(&mut self, from: &[u32]) {
        for rank in from {
            let mark = self.completes[*rank as usize].pop_front().expect("it has completed an epoch");
            self.hear_end(*rank, mark);
        }
    }

    /// An epoch of this rank is used up, of which this was said.
    pub fn hear_end(&mut self, rank: u32, mark: Mark) {
        let (_, heard) = &mut self.ends[rank as usize];
        *heard = !*heard;
        self.fences.iter_mut().for_each(|fences| fences.hear(rank, mark));
    }

    /// Whether a rank has told this one so, and that is not used up.
    pub fn has_told(&self, told: super::direct::Told, rank: u32) -> bool {
        match told {
            super::direct::Told::Post => self.posts[rank as usize] > 0,
            super::direct::Told::Complete => !self.completes[rank as usize].is_empty(),
        }
    }

    /// Whether so much is under way to a target that its origin has to wait.
    pub fn is_full(&self, target: u32) -> bool {
        self.load[target as usize] > LOAD_BYTES || self.pending.len() > ANSWERS
    }

    /// Whether nothing that this target, or any, was told, or its adapter, is to be completed or told of.
    pub fn is_idle(&self, target: Option<u32>) -> bool {
        let is_touched =
            |rank: u32| self.touched[rank as usize] || self.far.as_ref().is_some_and(|far| far.touches(rank));
        let any_touched = match target {
            Some(target) => is_touched(target),
            None => (0..self.touched.len() as u32).any(is_touched),
        };
        !any_touched && self.failure.is_none() && self.is_quiet(target)
    }

    /// Whether no answer of this target, or of any, is awaited.
    pub fn is_quiet(&self, target: Option<u32>) -> bool {
        self.pending.iter().all(|pending| target.is_some_and(|target| target != pending.target))
            && self.far.as_ref().is_none_or(|far| far.is_quiet(target))
    }

    /// Whether nothing that was fetched is still on its way from this target, or from any.
    pub fn has_fetched(&self, target: Option<u32>) -> bool {
        let concerns = |pending: &&Pending| target.is_none_or(|target| target == pending.target);
        !self.pending.iter().filter(concerns).any(|pending| matches!(pending.answer, Answer::Data(..)))
    }
}

impl Window {
    /// State of a window whose targets carry operations out.
    pub fn active(&mut self) -> Option<&mut Active> {
        match &mut self.path {
            super::Delivery::Active(active) => Some(active),
            super::Delivery::Direct(_) => None,
        }
    }
}
