//! Eager messages from buffers that come again: when they leave from there, when they are copied all
//! the same, and that nobody's memory is read at the wrong time.

use crate::adapter::{Adapter, Net, Shared};
use fabric::Span;
use proto::channel::{Channel, Settings};
use proto::{EagerBy, Engine, Event, Limits, Mode, OpId, Want};

const CONTEXT: u64 = 4;
/// By the costs that a device assumes, a buffer of this length is registered when it has come again
/// nine times: 20 µs for what saves 0.6 each time.
const LEN: usize = 8192;
const AGAIN: usize = 9;

/// Two ranks in one thread.
struct Pair {
    net: Shared,
    engines: [Engine<Channel<Adapter>>; 2],
}

impl Pair {
    fn new(eager_by: EagerBy, prepare: impl Fn(&mut Net)) -> Pair {
        Pair::limited(eager_by, usize::MAX, prepare)
    }

    /// With so many bytes that each rank may register.
    fn limited(eager_by: EagerBy, lockable_bytes: usize, prepare: impl Fn(&mut Net)) -> Pair {
        let net = Net::shared(2);
        net.get().is_watched = true;
        prepare(&mut net.get());
        let limits = Limits { unexpected_bytes: 1 << 20, eager_by, ..Limits::default() };
        let settings = Settings { fast_after: 2, ..Settings::default() };
        let channel = |me| {
            let mut adapter = Adapter::new(me, &net);
            adapter.lockable_bytes = lockable_bytes;
            Channel::new(adapter, settings.clone()).unwrap()
        };
        let engines = [0, 1].map(|me| Engine::new(channel(me), limits.clone()));
        Pair { net, engines }
    }

    fn look(&mut self) {
        self.net.get().step();
        self.engines.iter_mut().for_each(|engine| _ = engine.poll().unwrap());
    }

    fn wait(&mut self, rank: usize, op: OpId) {
        while !self.engines[rank].is_done(op) {
            self.look();
        }
        assert_eq!(self.engines[rank].take(op).unwrap().failure, None);
    }

    fn send(&mut self, from: usize, data: &[u8]) -> Option<OpId> {
        let span = Span { addr: data.as_ptr() as usize, len: data.len() };
        // What MPI_Send does first: it must neither lose nor double the message.
        if self.engines[from].send_now::<false>(1 - from, CONTEXT, 1, span) {
            return None;
        }
        self.engines[from].send(1 - from, CONTEXT, 1, span, Mode::Standard).unwrap()
    }

    fn receive(&mut self, at: usize, len: usize) -> Vec<u8> {
        let mut into = vec![0; len];
        let want = Want { source: Some(1 - at), context: CONTEXT, tag: Some(1) };
        let op = self.engines[at].receive(want, Span { addr: into.as_mut_ptr() as usize, len }).unwrap();
        self.wait(at, op);
        into
    }

    /// Sends a message from rank 0 and has it answered.
    fn exchange(&mut self, data: &[u8]) {
        let sent = self.send(0, data);
        assert!(self.receive(1, data.len()) == data, "what has come differs");
        sent.into_iter().for_each(|op| self.wait(0, op));
        self.answer();
    }

    fn answer(&mut self) {
        assert_eq!(self.send(1, b"yes"), None);
        assert_eq!(self.receive(0, 3), b"yes");
    }

    fn count(&self, event: Event) -> u64 {
        self.engines[0].counters().get(event)
    }

    fn gathered(&self) -> u64 {
        self.engines[0].device().counters().get(Event::ZeroCopy)
    }

    /// Until messages go by the fast path.
    fn acquainted(mut self) -> Pair {
        (0..8).for_each(|_| self.exchange(b"hello"));
        self
    }
}

fn filled(seed: usize) -> Vec<u8> {
    (0..LEN).map(|at| (at * 7 + seed) as u8).collect()
}

#[test]
fn a_buffer_that_comes_again_is_gathered() {
    let mut pair = Pair::new(EagerBy::Choice, |_| {}).acquainted();
    let mut buffer = filled(0);
    for round in 0..AGAIN + 5 {
        buffer[round] = 0xff;
        pair.exchange(&buffer);
        let expected = (round + 1).saturating_sub(AGAIN) as u64;
        assert_eq!((pair.gathered(), pair.count(Event::EagerZeroCopy)), (expected, expected), "{round}");
    }
    assert_eq!((pair.count(Event::FrequentBuffer), pair.count(Event::CacheMiss)), (1, 1));
    assert_eq!(pair.engines[0].usage().unwrap().frequent(), 1);
    // Another buffer, and a short message from the same one, are copied.
    pair.exchange(&filled(1));
    pair.exchange(&buffer[..200]);
    assert_eq!(pair.count(Event::EagerZeroCopy), 5);
    // A part of what is registered needs no further registration.
    pair.exchange(&buffer[..4096]);
    assert_eq!((pair.count(Event::EagerZeroCopy), pair.count(Event::CacheMiss)), (6, 1));
    // Now and then copies are tried.
    (0..100).for_each(|_| pair.exchange(&buffer));
    assert!(pair.count(Event::FrequentCopied) > 0 && pair.count(Event::EagerZeroCopy) > 40);
}

/// The adapter of this test reads memory when the message travels: until then the send goes on.
#[test]
fn a_send_ends_when_the_adapter_has_done_with_the_buffer() {
    for (eager_by, rounds) in [(EagerBy::Choice, AGAIN), (EagerBy::ZeroCopy, 0)] {
        let mut pair = Pair::new(eager_by, |_| {}).acquainted();
        let mut buffer = filled(0);
        (0..rounds).for_each(|_| pair.exchange(&buffer));
        let expected = buffer.clone();
        let op = pair.send(0, &buffer).expect("the adapter has not read it yet");
        assert_eq!(pair.engines[0].pending().len(), 1);
        for _ in 0..100 {
            pair.engines[0].poll().unwrap();
            assert!(!pair.engines[0].is_done(op));
        }
        pair.wait(0, op);
        buffer.fill(0);
        assert!(pair.receive(1, LEN) == expected);
        assert!(!pair.engines[0].needs_care());
    }
}

#[test]
fn what_is_mapped_anew_begins_anew() {
    let mut pair = Pair::new(EagerBy::Choice, |_| {}).acquainted();
    let buffer = filled(0);
    let span = Span { addr: buffer.as_ptr() as usize, len: LEN };
    (0..AGAIN + 1).for_each(|_| pair.exchange(&buffer));
    assert_eq!(pair.count(Event::EagerZeroCopy), 1);
    pair.net.get().unmap(0, span);
    (0..AGAIN).for_each(|_| pair.exchange(&buffer));
    assert_eq!((pair.count(Event::EagerZeroCopy), pair.count(Event::FrequentGone)), (1, 1));
    pair.exchange(&buffer);
    assert_eq!((pair.count(Event::EagerZeroCopy), pair.count(Event::CacheMiss)), (2, 2));
}

#[test]
fn where_nobody_tells_of_memory_that_goes_all_is_copied() {
    let mut pair = Pair::new(EagerBy::Choice, |net| net.is_watched = false).acquainted();
    let buffer = filled(0);
    (0..3 * AGAIN).for_each(|_| pair.exchange(&buffer));
    assert_eq!((pair.gathered(), pair.count(Event::CacheMiss)), (0, 0));
    assert!(pair.engines[0].usage().is_none());
}

/// Forced, each message has a registration of its own there.
#[test]
fn forced_it_registers_for_each_message_what_it_may_not_keep() {
    let mut pair = Pair::new(EagerBy::ZeroCopy, |net| net.is_watched = false).acquainted();
    let own = pair.net.get().registered(0);
    let buffer = filled(0);
    (0..5).for_each(|_| pair.exchange(&buffer));
    assert_eq!((pair.gathered(), pair.count(Event::CacheMiss)), (5, 5));
    assert!(pair.net.get().registered(0) <= own + Settings::default().frame_bytes * 80);
    assert!(pair.engines[0].registrations().is_empty());
}

#[test]
fn without_gather_or_registration_all_is_copied() {
    let mut pair = Pair::new(EagerBy::Choice, |net| net.caps.gather = 1).acquainted();
    let buffer = filled(0);
    (0..AGAIN + 3).for_each(|_| pair.exchange(&buffer));
    assert_eq!(pair.gathered(), 0);

    // As much can be registered as copied messages need.
    let mut pair = Pair::new(EagerBy::Copy, |_| {}).acquainted();
    pair.exchange(&buffer);
    let copied_bytes = pair.net.get().registered(0);
    let mut pair = Pair::limited(EagerBy::Choice, copied_bytes, |_| {}).acquainted();
    (0..2 * AGAIN).for_each(|_| pair.exchange(&buffer));
    assert_eq!((pair.gathered(), pair.count(Event::RegistrationRefused)), (0, 1));
    assert_eq!(pair.count(Event::FrequentGone), 1, "it is tried again only when it has come as often");
}

/// What must wait for room leaves as soon as there is some, in order.
#[test]
fn without_room_it_waits_and_keeps_its_place() {
    let mut pair = Pair::new(EagerBy::ZeroCopy, |_| {}).acquainted();
    let buffers: Vec<Vec<u8>> = (0..100).map(filled).collect();
    let sent: Vec<Option<OpId>> = buffers.iter().map(|buffer| pair.send(0, buffer)).collect();
    assert!(sent.iter().all(Option::is_some) && pair.count(Event::EagerQueued) > 0);
    for buffer in &buffers {
        assert!(pair.receive(1, LEN) == *buffer);
    }
    sent.into_iter().flatten().for_each(|op| pair.wait(0, op));
    assert_eq!(pair.engines[0].pending(), []);
}

/// A program that never sends twice from the same place costs a table that stops to grow.
#[test]
fn without_reuse_nothing_is_registered_and_the_table_stops() {
    let mut pair = Pair::new(EagerBy::Choice, |_| {}).acquainted();
    let memory = vec![0u8; 1 << 28];
    let mut state = 1u64;
    // Addresses at one distance from each other would share no bucket for very long.
    for _ in 0..16_000 {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let at = (state >> 36) as usize % (memory.len() - 2048);
        pair.exchange(&memory[at..at + 2048]);
    }
    let usage = pair.engines[0].usage().unwrap();
    assert!(!usage.grows() && usage.frequent() == 0, "{} buffers", usage.len());
    assert_eq!(pair.count(Event::UsageRefused), usage.refused());
    assert_eq!((pair.count(Event::CacheMiss), pair.gathered()), (0, 0));
}
