//! One peer's packets: numbers, acknowledgements, what is lost, and how much may be under way.
//!
//! Knows neither datagrams nor memory: `S` is what a packet was sent from, `K` what a packet that came too early is kept
//! in.
//!
//! ```text
//!          ┌────────────── again ──────────────┐
//!          ▼                                   │
//!  push ─ Out ── one that left later is here, and a round trip and a quarter have passed ──▶ Lost ◀── timeout: all that are out
//!          └───▶ Here, behind a gap ──▶ acknowledged: gone
//! ```
//!
//! What is lost is found out by times and not by counting (RACK, RFC 8985): windows are small where much is lost, and then few
//! packets follow one that is. Where none does the last one is sent once more after two round trips (its section 7): what that
//! brings back tells of the others, long before the timeout.
//!
//! Acknowledgements go with whatever is sent; alone every 50 packets (dissertation, section 6.6.1), when one is asked for,
//! when something is missing or comes twice, and after a while.

use super::pace::Pace;
use std::collections::VecDeque;
use wire::packet::BITS;

/// Packets under way and kept, at most.
pub(super) const WINDOW: u32 = BITS;
/// Packets in order that are acknowledged together.
const ACK_EVERY: u32 = 50;
/// How long an acknowledgement waits for something to go with.
pub(super) const ACK_DELAY_NS: u64 = 500_000;
/// The time of what is not to happen. What a rank keeps for each of many peers is to be small: it takes half of an option.
const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Out,
    Lost,
    Here,
}

#[derive(Debug)]
struct Sent<S> {
    /// Until it is here.
    item: Option<S>,
    at_ns: u64,
    times: u32,
    state: State,
}

/// What becomes of a packet that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// It is the next one: [`Stream::accept`], or [`Stream::keep`].
    Next,
    /// It waits for what is missing: [`Stream::keep`], or as if it had not come.
    Early,
    /// It has been there, or is too far ahead.
    Dropped,
}

/// Whether the first of these left before the second: when, and their numbers.
fn is_before(one: (u64, u32), other: (u64, u32)) -> bool {
    one.0 < other.0 || one.0 == other.0 && (one.1.wrapping_sub(other.1) as i32) < 0
}

/// See the [head of this module](self).
#[derive(Debug)]
pub(super) struct Stream<S, K> {
    first: u32,
    sent: VecDeque<Sent<S>>,
    out: u32,
    lost: u32,
    /// Sent since an acknowledgement was asked for.
    unasked: u32,
    pace: Pace,
    /// When no answer has come for too long, or [`NEVER`]; whether the last packet was sent once more meanwhile.
    timer_ns: u64,
    has_probed: bool,
    /// When more is to be taken for lost, or [`NEVER`].
    loss_ns: u64,
    /// Of what is here what left last: when, its number, and how long it took.
    newest: Option<(u64, u32)>,
    newest_took_ns: u64,
    expected: u32,
    /// Packets that wait for those before them, or for a receive buffer, in order. No memory while there is none.
    kept: Vec<(u32, K)>,
    unanswered: u32,
    answers: bool,
    /// When an acknowledgement is owed, or [`NEVER`].
    answer_ns: u64,
    /// Packets sent again.
    resent: u64,
}

impl<S: Copy, K> Stream<S, K> {
    /// Both directions begin with this number.
    pub(super) fn new(first: u32) -> Stream<S, K> {
        Stream {
            first,
            sent: VecDeque::new(),
            out: 0,
            lost: 0,
            unasked: 0,
            pace: Pace::default(),
            timer_ns: NEVER,
            has_probed: false,
            loss_ns: NEVER,
            newest: None,
            newest_took_ns: 0,
            expected: first,
            kept: Vec::new(),
            unanswered: 0,
            answers: false,
            answer_ns: NEVER,
            resent: 0,
        }
    }

    /// Whether a new packet may leave.
    pub(super) fn may_send(&self) -> bool {
        self.lost == 0 && self.out < self.pace.window() && (self.sent.len() as u32) < WINDOW
    }

    /// A new packet leaves: its number, and whether an acknowledgement is to be asked for.
    pub(super) fn push(&mut self, now_ns: u64, item: S) -> (u32, bool) {
        let seq = self.first.wrapping_add(self.sent.len() as u32);
        fabric::begin_with_one(&mut self.sent);
        self.sent.push_back(Sent { item: Some(item), at_ns: now_ns, times: 1, state: State::Out });
        self.out += 1;
        self.unasked += 1;
        if self.timer_ns == NEVER {
            self.timer_ns = now_ns + self.patience_ns();
        }
        (seq, self.asks())
    }

    /// How long to wait for an answer before something is done.
    fn patience_ns(&self) -> u64 {
        if self.has_probed { self.pace.timeout_ns() } else { self.pace.probe_ns() }
    }

    /// This time, if something waits for its acknowledgement.
    fn while_sent(&self, due_ns: u64) -> u64 {
        if self.sent.is_empty() { NEVER } else { due_ns }
    }

    fn asks(&mut self) -> bool {
        let asks = 2 * self.unasked >= self.pace.window().min(WINDOW);
        self.unasked = if asks { 0 } else { self.unasked };
        asks
    }

    /// The oldest packet that is lost leaves again, if one may: what it was sent from, its number.
    pub(super) fn again(&mut self, now_ns: u64) -> Option<(u32, S)> {
        if self.lost == 0 || self.out >= self.pace.window() {
            return None;
        }
        let at = self.sent.iter().position(|sent| sent.state == State::Lost)?;
        let sent = &mut self.sent[at];
        (sent.at_ns, sent.times, sent.state) = (now_ns, sent.times + 1, State::Out);
        self.lost -= 1;
        self.out += 1;
        self.resent += 1;
        Some((self.first.wrapping_add(at as u32), sent.item.expect("what is lost is not here")))
    }

    /// Takes an acknowledgement in; `freed` gets what is here. False if it is of nothing that was sent.
    pub(super) fn acknowledge(&mut self, now_ns: u64, ack: u32, came: u128, freed: &mut Vec<S>) -> bool {
        let newly = ack.wrapping_sub(self.first) as i32;
        if newly < 0 {
            return true; // an older one than the last
        }
        if newly as usize > self.sent.len() {
            return false;
        }
        let (mut here, was_full) = (0, 2 * self.out >= self.pace.window());
        let mut measured_ns = None;
        for _ in 0..newly {
            here += u32::from(self.is_here(0, now_ns, freed, &mut measured_ns));
            self.sent.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        for at in 1..self.sent.len().min(BITS as usize + 1) {
            if came >> (at - 1) & 1 != 0 {
                here += u32::from(self.is_here(at, now_ns, freed, &mut measured_ns));
            }
        }
        if let Some(sent_ns) = measured_ns {
            self.pace.measured(now_ns.saturating_sub(sent_ns));
        }
        if here > 0 {
            self.pace.acknowledged(now_ns, here, was_full);
            self.has_probed = false;
            self.timer_ns = self.while_sent(now_ns + self.patience_ns());
        }
        self.lose(now_ns);
        // What has been acknowledged unasked, by messages that went the other way, need not be asked for.
        self.unasked = self.unasked.min(self.out);
        if self.sent.is_empty() {
            self.sent.shrink_to(0);
        }
        true
    }

    /// A packet has come; whether that is news.
    fn is_here(&mut self, at: usize, now_ns: u64, freed: &mut Vec<S>, measured_ns: &mut Option<u64>) -> bool {
        let seq = self.first.wrapping_add(at as u32);
        let sent = &mut self.sent[at];
        match sent.state {
            State::Here => return false,
            State::Out => self.out -= 1,
            State::Lost => self.lost -= 1,
        }
        // RFC 6298 section 3: of what was sent twice it is not known which one is answered. Of several that are answered
        // together the one that left last says how long the way is: the others have waited for it.
        if sent.times == 1 {
            *measured_ns = (*measured_ns).max(Some(sent.at_ns));
        }
        let took_ns = now_ns.saturating_sub(sent.at_ns);
        let is_newest = self.newest.is_none_or(|newest| is_before(newest, (sent.at_ns, seq)));
        if is_newest && (sent.times == 1 || took_ns >= self.pace.least_ns()) {
            (self.newest, self.newest_took_ns) = (Some((sent.at_ns, seq)), took_ns);
        }
        sent.state = State::Here;
        freed.extend(sent.item.take());
        true
    }

    /// What left before something that is here, and long enough ago, is lost; when that will be so of more.
    fn lose(&mut self, now_ns: u64) {
        self.loss_ns = NEVER;
        let Some(newest) = self.newest else { return };
        let patience_ns = self.newest_took_ns + self.pace.trip_ns() / 4;
        let mut last = None;
        for (at, sent) in self.sent.iter_mut().enumerate() {
            let seq = self.first.wrapping_add(at as u32);
            if sent.state != State::Out || !is_before((sent.at_ns, seq), newest) {
                continue;
            }
            let due_ns = sent.at_ns + patience_ns;
            if due_ns <= now_ns {
                sent.state = State::Lost;
                self.out -= 1;
                self.lost += 1;
                last = Some(seq);
            } else {
                self.loss_ns = self.loss_ns.min(due_ns);
            }
        }
        if let Some(seq) = last {
            self.pace.lost(seq, self.first.wrapping_add(self.sent.len() as u32));
        }
    }

    /// The number of the next one.
    pub(super) fn expected(&self) -> u32 {
        self.expected
    }

    /// What becomes of a packet with this number.
    pub(super) fn take(&mut self, seq: u32) -> Taken {
        let at = self.place(seq);
        let taken = match seq.wrapping_sub(self.expected) {
            _ if self.kept.get(at).is_some_and(|kept| kept.0 == seq) => Taken::Dropped,
            0 => Taken::Next,
            1..WINDOW => Taken::Early,
            _ => Taken::Dropped,
        };
        self.answers |= taken != Taken::Next;
        taken
    }

    /// The next one has been dealt with.
    pub(super) fn accept(&mut self, now_ns: u64, asks: bool) {
        self.expected = self.expected.wrapping_add(1);
        self.unanswered += 1;
        self.answers |= asks || self.unanswered >= ACK_EVERY || !self.kept.is_empty();
        self.answer_ns = self.answer_ns.min(now_ns + ACK_DELAY_NS);
    }

    /// Where a packet stands, or is to stand, among those that are kept.
    fn place(&self, seq: u32) -> usize {
        let ahead = |seq: u32| seq.wrapping_sub(self.expected);
        self.kept.partition_point(|kept| ahead(kept.0) < ahead(seq))
    }

    /// Keeps a packet until it can be dealt with.
    pub(super) fn keep(&mut self, seq: u32, packet: K) {
        self.kept.insert(self.place(seq), (seq, packet));
    }

    /// The next one, if it has been kept.
    pub(super) fn follow(&mut self) -> Option<K> {
        if self.kept.first()?.0 != self.expected {
            return None;
        }
        let (_, packet) = self.kept.remove(0);
        if self.kept.is_empty() {
            self.kept = Vec::new();
        }
        Some(packet)
    }

    /// The number that is expected, and which behind it have come. They are on their way: nothing is owed.
    pub(super) fn answer(&mut self) -> (u32, u128) {
        (self.unanswered, self.answers, self.answer_ns) = (0, false, NEVER);
        let bit = |seq: u32| match seq.wrapping_sub(self.expected) {
            0 => 0,
            ahead => 1 << (ahead - 1),
        };
        (self.expected, self.kept.iter().fold(0, |came, kept| came | bit(kept.0)))
    }

    /// Whether an acknowledgement is owed now.
    pub(super) fn answers(&self) -> bool {
        self.answers
    }

    /// Has an acknowledgement not wait any longer.
    pub(super) fn hurry(&mut self) {
        self.answers |= self.answer_ns != NEVER;
    }

    /// When [`Stream::tick`] is due.
    pub(super) fn due_ns(&self) -> Option<u64> {
        let owed_ns = if self.answers { 0 } else { self.answer_ns };
        Some(owed_ns.min(self.timer_ns).min(self.loss_ns)).filter(|due_ns| *due_ns != NEVER)
    }

    /// Deals with what is due; whether no answer has come for too long.
    pub(super) fn tick(&mut self, now_ns: u64) -> bool {
        if self.answer_ns <= now_ns {
            self.answers = true;
        }
        if self.loss_ns <= now_ns {
            self.lose(now_ns);
        }
        if self.timer_ns > now_ns {
            return false;
        }
        if !std::mem::replace(&mut self.has_probed, true) && self.probe() {
            self.timer_ns = now_ns + self.pace.timeout_ns();
            return false;
        }
        for sent in self.sent.iter_mut().filter(|sent| sent.state == State::Out) {
            sent.state = State::Lost;
            self.lost += 1;
        }
        self.out = 0;
        self.pace.timed_out(self.first.wrapping_add(self.sent.len() as u32));
        self.timer_ns = self.while_sent(now_ns + self.pace.timeout_ns());
        true
    }

    /// The last packet that is under way goes once more; false if there is none.
    fn probe(&mut self) -> bool {
        let Some(last) = self.sent.iter_mut().rev().find(|sent| sent.state == State::Out) else {
            return false;
        };
        last.state = State::Lost;
        self.out -= 1;
        self.lost += 1;
        true
    }

    /// Nothing goes or comes any more: `freed` gets what was sent and is not acknowledged. What had come and is not dealt with.
    pub(super) fn end(&mut self, freed: &mut Vec<S>) -> impl Iterator<Item = K> {
        freed.extend(self.sent.drain(..).filter_map(|sent| sent.item));
        (self.out, self.lost, self.timer_ns, self.loss_ns) = (0, 0, NEVER, NEVER);
        (self.answers, self.answer_ns) = (false, NEVER);
        std::mem::take(&mut self.kept).into_iter().map(|kept| kept.1)
    }

    /// Whether all that was sent is acknowledged.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.sent.is_empty()
    }

    /// Packets that were sent again.
    pub(super) fn resent(&self) -> u64 {
        self.resent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who answers each message by a message has acknowledged it by that: nothing else need be sent.
    #[test]
    fn messages_that_answer_each_other_ask_for_no_acknowledgement() {
        let mut freed = Vec::new();
        let mut ends = [0, 1].map(|_| Stream::<u32, ()>::new(7));
        for round in 0..1000 {
            let ([from], [to]) = ends.split_at_mut(1) else { unreachable!() };
            let (from, to) = if round % 2 == 0 { (from, to) } else { (to, from) };
            let now_ns = 10_000 * round;
            let (seq, asks) = from.push(now_ns, 0);
            assert!(!asks, "round {round}");
            let (ack, came) = from.answer();
            assert!(to.acknowledge(now_ns, ack, came, &mut freed) && to.take(seq) == Taken::Next);
            to.accept(now_ns, asks);
            assert!(!to.answers(), "round {round}");
        }
        assert_eq!(freed.len(), 999);
    }

    /// Who is only sent to is asked before the window is full.
    #[test]
    fn a_stream_asks_within_its_window() {
        let mut stream = Stream::<u32, ()>::new(0);
        let mut asked = 0;
        while stream.may_send() {
            asked += u32::from(stream.push(0, 0).1);
        }
        assert!(asked >= 2, "{asked} times in a window of {}", stream.out);
    }
}
