//! The side that makes partitions ready.
//!
//! How many of them go in one message is chosen by what it costs ([`proto::choice::partitions`]), from when they became
//! ready in the rounds before. The receiver is told with the first round, and again when a term ends; a term is
//! twice as long as the one before where the choice has not changed. A receiver that waits for one partition urges: from then
//! on each goes alone.

use super::Parts;
use crate::comm::{Place, Purpose};
use crate::error::{Class, Error, Result, fail};
use crate::mem;
use crate::request::{Body, Ended, Keep, failed};
use crate::status::Status;
use crate::world::{World, fault};
use fabric::{Device, Span};
use proto::choice::partitions::{MessageCosts, cut};
use proto::{Engine, Mode, OpId};

/// The message by which a send request introduces itself, in words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hello {
    /// The context of its messages.
    pub channel: u64,
    /// Bytes of the whole message.
    pub bytes: u64,
    /// Partitions.
    pub partitions: u64,
    /// How it is cut in the first round.
    pub term: Term,
}

/// How messages are cut for some rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Partitions in one message.
    pub together: u64,
    /// Rounds.
    pub rounds: u64,
}

/// Rounds at the end of a term in which it is looked when partitions become ready: the clock costs as much as the rest of
/// MPI_Pready.
const WATCHED: u64 = 8;

/// The tag of messages that tell of a term; those of data follow.
pub(super) const TERM_TAG: i32 = 0;

/// The tag of the empty message by which a receiver urges, and of the answer to it.
pub(super) const URGE_TAG: i32 = i32::MAX;
pub(super) const ANSWER_TAG: i32 = i32::MAX - 1;

impl Hello {
    /// Words of one.
    pub const WORDS: usize = 5;

    /// As it travels.
    pub fn words(self) -> [u64; Hello::WORDS] {
        [self.channel, self.bytes, self.partitions, self.term.together, self.term.rounds]
    }

    /// `None` if no sender has written this.
    pub fn from_words([channel, bytes, partitions, together, rounds]: [u64; Hello::WORDS]) -> Option<Hello> {
        let hello = Hello { channel, bytes, partitions, term: Term { together, rounds } };
        let has_whole_parts = bytes.checked_rem(partitions).unwrap_or(bytes) == 0;
        let is_sound = i32::try_from(partitions).is_ok()
            && has_whole_parts
            && hello.allows(hello.term)
            && channel & 3 == Purpose::Partitioned as u64;
        is_sound.then_some(hello)
    }

    /// Whether the sender may cut its message so. What is empty is cut no more, so there are no more messages in a round than bytes, or one.
    pub fn allows(&self, term: Term) -> bool {
        let all = self.partitions.max(1);
        let is_cut = term.together < all;
        (1..=all).contains(&term.together) && term.rounds > 0 && !(is_cut && self.bytes == 0)
    }
}

impl Term {
    /// Each partition alone, for good.
    pub const ALONE: Term = Term { together: 1, rounds: u64::MAX };
}

/// Numbers of messages of partitions put together.
pub(super) fn messages(partitions: usize, together: usize) -> usize {
    partitions.div_ceil(together).max(1)
}

/// A partitioned send.
#[derive(Debug)]
pub struct Sender {
    /// What it was made of.
    pub(super) parts: Parts,
    pub(super) to: usize,
    pub(super) tag: i32,
    pub(super) channel: u64,
    term: Term,
    /// Rounds of the term that are left.
    left: u64,
    /// Rounds that have been started.
    started: u64,
    /// The tag of the first message of the rounds to come.
    first_tag: i32,
    urge: Urge,
    /// When each partition became ready, from the start of its round on, summed over the rounds that are watched.
    ready_ns: Vec<f64>,
    round: Round,
}

/// Whether the receiver has asked for partitions that wait for others of their message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Urge {
    Never,
    /// It has, when all of the last round had left: the next one begins with it.
    Heard,
    Obeyed,
}

/// What is under way.
#[derive(Debug, Default)]
struct Round {
    /// The tag of its first message.
    first_tag: i32,
    /// When it began, if it is watched, and later by the time that messages took to leave.
    began_ns: Option<u64>,
    /// Partitions that go in one message.
    together: usize,
    /// The number of a partition's message is that of the partition without so many bits, where that is so: a division is the
    /// slowest instruction there would be.
    shift: Option<u32>,
    is_ready: Vec<bool>,
    /// Partitions that each message still waits for.
    missing: Vec<usize>,
    unsent: usize,
    flying: Vec<(OpId, Option<Box<[u8]>>)>,
    error: Option<Error>,
}

impl Round {
    /// A round whose messages have so many of the partitions, not yet started.
    fn lay_out(&mut self, partitions: usize, together: usize) {
        self.together = together;
        self.shift = match together {
            all if all >= partitions => Some(usize::BITS - 1),
            some => some.is_power_of_two().then(|| some.trailing_zeros()),
        };
        self.is_ready.clear();
        self.is_ready.resize(partitions, false);
        self.missing.clear();
        self.missing
            .extend((0..messages(partitions, together)).map(|m| together.min(partitions - m * together)));
        self.unsent = self.missing.len();
        self.flying.clear();
    }

    /// The message in which a partition goes.
    #[inline(always)]
    fn message(&self, partition: usize) -> usize {
        match self.shift {
            Some(bits) => partition >> bits,
            None => partition / self.together,
        }
    }

    /// The clock of a round that is watched stands still while a message leaves: what that costs is counted by length.
    fn stop<D: Device>(&self, engine: &Engine<D>) -> u64 {
        self.began_ns.map_or(0, |_| engine.device().now_ns())
    }

    /// See [`Round::stop`].
    fn go_on<D: Device>(&mut self, engine: &Engine<D>, stopped_ns: u64) {
        if let Some(began_ns) = &mut self.began_ns {
            *began_ns += engine.device().now_ns().saturating_sub(stopped_ns);
        }
    }
}

impl Sender {
    /// Introduces itself to the receiver. Before anything is known all partitions count as ready at once.
    pub(super) fn open<D: Device>(
        world: &mut World<D>,
        place: &Place,
        parts: Parts,
        to: usize,
        tag: i32,
    ) -> Result<Sender> {
        let channel = world.new_context() << 2 | Purpose::Partitioned as u64;
        let ready_ns = vec![0.0; parts.partitions];
        let costs = To { engine: &world.engine, to };
        let together = cut(&ready_ns, parts.part_bytes() as usize, &costs, None);
        let term = Term { together: together as u64, rounds: 1 };
        let hello = Hello { channel, bytes: parts.bytes(), partitions: parts.partitions as u64, term };
        tell(world, to, place.context_for(Purpose::Partitioned), tag, &hello.words())?;
        let (urge, round) = (Urge::Never, Round::default());
        let first_tag = TERM_TAG + 1;
        Ok(Sender { parts, to, tag, channel, term, left: 1, started: 0, first_tag, urge, ready_ns, round })
    }

    /// Partitions of the round that are not ready.
    pub(super) fn unready(&self) -> usize {
        self.round.is_ready.iter().filter(|is_ready| !**is_ready).count()
    }

    /// Starts a round.
    pub(super) fn start<D: Device>(&mut self, world: &mut World<D>) -> Result {
        if self.left == 0 {
            self.begin_term(world)?;
        }
        self.count(&world.engine);
        let (partitions, together) = (self.parts.partitions, self.term.together as usize);
        self.round.lay_out(partitions, together);
        if self.urge == Urge::Heard {
            self.obey(&mut world.engine)?;
        }
        if partitions == 0 { self.send(&mut world.engine, 0) } else { Ok(()) }
    }

    /// Whether the next round is like the one before it, nobody has to be told of it and nothing of it leaves now.
    pub(super) fn is_usual(&self) -> bool {
        let is_alike = self.round.together == self.term.together as usize && !self.round.missing.is_empty();
        self.left > 0 && is_alike && self.parts.partitions > 0 && self.urge != Urge::Heard
    }

    /// As [`Sender::start`] of a round that [is usual](Sender::is_usual).
    pub(super) fn start_now<D: Device>(&mut self, engine: &Engine<D>) -> bool {
        if !self.is_usual() {
            return false;
        }
        let (partitions, together) = (self.parts.partitions, self.term.together as usize);
        self.count(engine);
        let round = &mut self.round;
        round.is_ready.fill(false);
        round.unsent = round.missing.len();
        round.missing.fill(together);
        *round.missing.last_mut().expect("looked at above") = partitions - (round.unsent - 1) * together;
        true
    }

    /// One more round of this term.
    fn count<D: Device>(&mut self, engine: &Engine<D>) {
        self.left -= 1;
        self.started += 1;
        self.round.first_tag = self.first_tag;
        self.round.began_ns = (self.left < WATCHED).then(|| engine.device().now_ns());
        self.round.error = None;
    }

    /// The receiver waits for a partition, and perhaps what it does then is what others of its message wait for: they go each
    /// alone from this round on, or from the next one if all messages of this round have left. Whether something leaves now.
    pub(super) fn hurry<D: Device>(&mut self, engine: &mut Engine<D>) -> bool {
        if self.urge != Urge::Never {
            return false;
        }
        if self.round.unsent == 0 {
            self.urge = Urge::Heard;
            return false;
        }
        if let Err(error) = self.obey(engine) {
            // Nobody who could be told has called: the round ends with it.
            self.round.error = self.round.error.take().or(Some(error));
            self.round.unsent = 0;
        }
        true
    }

    /// What has not left yet of the round leaves by partitions, with tags that no message had before: what the receiver has
    /// posted for messages that never come cannot meet them. It is told the round.
    fn obey<D: Device>(&mut self, engine: &mut Engine<D>) -> Result {
        let (partitions, together) = (self.parts.partitions, self.term.together as usize);
        let round = &mut self.round;
        round.first_tag += round.missing.len() as i32;
        round.shift = Some(0);
        self.first_tag = round.first_tag + partitions as i32;
        round.began_ns = None;
        let has_left: Vec<bool> = (0..partitions).map(|p| round.missing[p / together] == 0).collect();
        round.missing = has_left.iter().map(|has_left| usize::from(!has_left)).collect();
        round.unsent = round.missing.iter().sum();
        (self.term, self.left, self.urge) = (Term::ALONE, Term::ALONE.rounds, Urge::Obeyed);
        let (answer, span) = packed(&[self.started]);
        let op = engine.send(self.to, self.channel, ANSWER_TAG, span, Mode::Standard).map_err(fault)?;
        self.round.flying.extend(op.map(|op| (op, Some(answer))));
        for (partition, has_left) in has_left.into_iter().enumerate() {
            if self.round.is_ready[partition] && !has_left {
                self.round.missing[partition] = 0;
                self.send(engine, partition)?;
            }
        }
        Ok(())
    }

    fn begin_term<D: Device>(&mut self, world: &mut World<D>) -> Result {
        let rounds = self.term.rounds;
        let watched = rounds.min(WATCHED);
        self.ready_ns.iter_mut().for_each(|sum| *sum /= watched as f64);
        let costs = To { engine: &world.engine, to: self.to };
        let current = Some((self.term.together as usize, rounds));
        let bytes = self.parts.part_bytes() as usize;
        let together = cut(&self.ready_ns, bytes, &costs, current) as u64;
        let rounds = if together == self.term.together { rounds.saturating_mul(2) } else { 1 };
        self.term = Term { together, rounds };
        self.left = rounds;
        self.ready_ns.fill(0.0);
        tell(world, self.to, self.channel, TERM_TAG, &[together, rounds])
    }

    /// A partition is ready; with the last of its message this leaves.
    pub(super) fn ready<D: Device>(&mut self, engine: &mut Engine<D>, partition: i32, arg: &str) -> Result {
        let partition = self.parts.check(partition, arg)?;
        if std::mem::replace(&mut self.round.is_ready[partition], true) {
            return fail(Class::ARG, format!("argument `{arg}` is {partition}, which is ready already"));
        }
        self.watch(engine, partition);
        let message = self.round.message(partition);
        self.round.missing[message] -= 1;
        if self.round.missing[message] == 0 { self.send(engine, message) } else { Ok(()) }
    }

    /// Notes when a partition is ready, in a round that is watched.
    #[inline]
    fn watch<D: Device>(&mut self, engine: &Engine<D>, partition: usize) {
        if let Some(began_ns) = self.round.began_ns {
            self.ready_ns[partition] += engine.device().now_ns().saturating_sub(began_ns) as f64;
        }
    }

    /// As [`Sender::ready`] where that is no more than noting it: nothing leaves, nothing is wrong and nobody looks at the clock.
    #[inline]
    pub(super) fn note_now(&mut self, partition: i32) -> bool {
        let Ok(partition) = usize::try_from(partition) else { return false };
        let round = &mut self.round;
        if round.began_ns.is_some() || round.is_ready.get(partition) != Some(&false) {
            return false;
        }
        let message = round.message(partition);
        let missing = &mut round.missing[message];
        if *missing == 1 {
            return false;
        }
        *missing -= 1;
        round.is_ready[partition] = true;
        true
    }

    /// As [`Sender::ready`] where what leaves is short and leaves at once, and nothing is wrong.
    pub(super) fn ready_now<D: Device>(&mut self, engine: &mut Engine<D>, partition: i32) -> bool {
        let Ok(partition) = usize::try_from(partition) else { return false };
        if self.round.is_ready.get(partition) != Some(&false) {
            return false;
        }
        let message = self.round.message(partition);
        if self.round.missing[message] == 1 && !self.leaves_now(engine, message) {
            return false;
        }
        self.watch(engine, partition);
        self.round.missing[message] -= 1;
        self.round.is_ready[partition] = true;
        true
    }

    /// Sends a message that can leave at once, from where it lies.
    fn leaves_now<D: Device>(&mut self, engine: &mut Engine<D>, message: usize) -> bool {
        let (from, len) = self.stretch(message);
        let buffer = &self.parts.buffer;
        let span = Span { addr: buffer.addr.wrapping_add(from as usize), len: len as usize };
        let tag = self.round.first_tag + message as i32;
        let stopped_ns = self.round.stop(engine);
        let left = buffer.ty.is_contiguous() && engine.send_now::<false>(self.to, self.channel, tag, span);
        self.round.go_on(engine, stopped_ns);
        self.round.unsent = self.round.unsent.saturating_sub(usize::from(left));
        left
    }

    /// Where a message begins in the stream, and its length.
    fn stretch(&self, message: usize) -> (u64, u64) {
        let (each, together) = (self.parts.part_bytes(), self.term.together as usize);
        let first = message * together;
        let last = (first + together).min(self.parts.partitions);
        (first as u64 * each, (last - first) as u64 * each)
    }

    fn send<D: Device>(&mut self, engine: &mut Engine<D>, message: usize) -> Result {
        let (from, len) = self.stretch(message);
        let buffer = &self.parts.buffer;
        let (span, packed) = if buffer.ty.is_contiguous() {
            (Span { addr: buffer.addr.wrapping_add(from as usize), len: len as usize }, None)
        } else {
            let mut out = mem::zeroed(len as usize)?;
            buffer.ty.pack(buffer.addr, buffer.count, from, &mut out);
            (Span { addr: out.as_ptr() as usize, len: out.len() }, Some(out))
        };
        let tag = self.round.first_tag + message as i32;
        let stopped_ns = self.round.stop(engine);
        let op = engine.send(self.to, self.channel, tag, span, Mode::Standard).map_err(fault)?;
        self.round.go_on(engine, stopped_ns);
        self.round.flying.extend(op.map(|op| (op, packed)));
        self.round.unsent = self.round.unsent.saturating_sub(1);
        Ok(())
    }

    /// The status of a round that has ended when its last message left.
    pub(super) fn end_now(&self) -> Option<Status> {
        let round = &self.round;
        let has_ended = round.unsent == 0 && round.flying.is_empty() && round.error.is_none();
        has_ended.then_some(Status::EMPTY)
    }

    /// How the round ended, if it has.
    pub(super) fn settle<D: Device>(&mut self, engine: &mut Engine<D>) -> Option<Ended> {
        let round = &mut self.round;
        round.flying.retain(|(op, _)| match engine.take(*op) {
            None => true,
            Some(outcome) => {
                let failure = outcome.failure;
                let error = failure.map(|f| failed(*f, outcome.source as i32, outcome.tag, outcome.len));
                round.error = round.error.take().or(error);
                false
            }
        });
        let is_done = round.unsent == 0 && round.flying.is_empty();
        is_done.then(|| Ended { error: round.error.take(), ..Ended::WELL })
    }
}

/// What a message to this rank costs.
struct To<'a, D: Device> {
    engine: &'a Engine<D>,
    to: usize,
}

impl<D: Device> MessageCosts for To<'_, D> {
    fn total_ns(&self, len: usize) -> f64 {
        self.engine.message_ns(self.to, len)
    }

    fn held_ns(&self, len: usize) -> f64 {
        self.engine.held_ns(self.to, len)
    }
}

/// Sends some words, which live as long as the engine needs them.
fn tell<D: Device>(world: &mut World<D>, to: usize, context: u64, tag: i32, words: &[u64]) -> Result {
    let (copy, span) = packed(words);
    if let Some(op) = world.engine.send(to, context, tag, span, Mode::Standard).map_err(fault)? {
        world.detach(Body::Send(op, Keep::Packed(copy)));
    }
    Ok(())
}

/// Words as a message.
fn packed(words: &[u64]) -> (Box<[u8]>, Span) {
    let copy: Box<[u8]> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let span = Span { addr: copy.as_ptr() as usize, len: copy.len() };
    (copy, span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_comes_back_from_its_words_and_nonsense_is_refused() {
        let hello =
            Hello { channel: 7 << 2 | 3, bytes: 80, partitions: 4, term: Term { together: 2, rounds: 1 } };
        assert_eq!(Hello::from_words(hello.words()), Some(hello));
        for (at, word) in [(0, 4), (1, 81), (1, 0), (2, u64::MAX), (2, 0), (2, 1), (3, 0), (3, 5), (4, 0)] {
            let mut words = hello.words();
            words[at] = word;
            assert_eq!(Hello::from_words(words), None);
        }
        assert_eq!([messages(0, 1), messages(7, 2), messages(8, 8)], [1, 4, 1]);
    }
}
