//! What is sent and not acknowledged, and what of it is lost (RFC 2018, RFC 8985).
//!
//! ```text
//!           ┌────────── sent again ──────────┐
//!           ▼                                │
//!  sent ── Out ── sent long before something that has come, or timeout ──▶ Lost
//!           └──────▶ Here, behind a gap ──▶ acknowledged: gone ◀──────────────┘
//! ```

use super::super::fpdu::Fpdu;
use std::collections::VecDeque;
use wire::datagram::{Reliable, WORDS_MAX};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Out,
    Lost,
    Here,
}

#[derive(Debug)]
struct Sent {
    /// Number of its first FPDU among all that ever were.
    fpdu: u64,
    fpdus: usize,
    at_ns: u64,
    times: u32,
    state: State,
}

/// What an acknowledgement has said.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    /// Datagrams that were not known to have come.
    pub(super) newly: u32,
    /// Bytes of the stream that are acknowledged in order.
    pub(super) bytes: usize,
    /// When the newest of them was sent that was sent once.
    pub(super) sent_ns: Option<u64>,
    /// Whether something has come that was taken for lost and not sent again.
    pub(super) was_not_lost: bool,
}

#[derive(Debug)]
pub(super) struct Flight {
    /// Number of the first in `sent`.
    first: u64,
    sent: VecDeque<Sent>,
    fpdus: VecDeque<Fpdu>,
    first_fpdu: u64,
    out: usize,
    lost: usize,
    here: usize,
    /// When the newest of what has come was sent, its number, and how long it took.
    newest: (u64, u64),
    newest_took_ns: u64,
}

impl Flight {
    pub(super) fn new(first: u64) -> Flight {
        Flight {
            first,
            sent: VecDeque::new(),
            fpdus: VecDeque::new(),
            first_fpdu: 0,
            out: 0,
            lost: 0,
            here: 0,
            newest: (0, 0),
            newest_took_ns: 0,
        }
    }

    /// The number of the oldest that is not acknowledged, and of the next one.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn next(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Datagrams under way.
    pub(super) fn out(&self) -> usize {
        self.out
    }

    /// Takes what the next datagram shall carry.
    pub(super) fn push(&mut self, fpdu: Fpdu) {
        fabric::begin_with_one(&mut self.fpdus);
        self.fpdus.push_back(fpdu);
    }

    /// What has been pushed leaves as a datagram; its number.
    pub(super) fn leaves(&mut self, fpdus: usize, now_ns: u64) -> u64 {
        let fpdu = self.first_fpdu + (self.fpdus.len() - fpdus) as u64;
        fabric::begin_with_one(&mut self.sent);
        self.sent.push_back(Sent { fpdu, fpdus, at_ns: now_ns, times: 1, state: State::Out });
        self.out += 1;
        self.next() - 1
    }

    /// The oldest that is lost.
    pub(super) fn lost(&self) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        let at = self.sent.iter().position(|sent| sent.state == State::Lost)?;
        Some(self.first + at as u64)
    }

    /// It leaves again.
    pub(super) fn leaves_again(&mut self, seq: u64, now_ns: u64) {
        let sent = &mut self.sent[(seq - self.first) as usize];
        (sent.at_ns, sent.times, sent.state) = (now_ns, sent.times + 1, State::Out);
        self.lost -= 1;
        self.out += 1;
    }

    /// What it carries.
    pub(super) fn carried(&self, seq: u64) -> impl Iterator<Item = &Fpdu> {
        let sent = &self.sent[(seq - self.first) as usize];
        let at = (sent.fpdu - self.first_fpdu) as usize;
        self.fpdus.range(at..at + sent.fpdus)
    }

    /// The number that an acknowledgement names, if it is one that can be.
    pub(super) fn number(&self, ack: u32) -> Option<u64> {
        let ack = self.first.wrapping_add_signed(i64::from(ack.wrapping_sub(self.first as u32) as i32));
        (ack <= self.next()).then_some(ack)
    }

    /// Takes an acknowledgement in: everything before `ack`, which is not before the oldest, has come, and what the bits say.
    pub(super) fn acknowledge(
        &mut self,
        ack: u64,
        reliable: &Reliable,
        now_ns: u64,
        least_ns: u64,
    ) -> Acknowledged {
        let mut what = Acknowledged::default();
        while self.first < ack {
            self.came(0, now_ns, least_ns, &mut what);
            let sent = self.sent.pop_front().expect("only what was sent is acknowledged");
            what.bytes += self.fpdus.drain(..sent.fpdus).map(|fpdu| fpdu.len()).sum::<usize>();
            self.first_fpdu += sent.fpdus as u64;
            self.first += 1;
            self.here -= 1;
        }
        if self.sent.is_empty() && self.fpdus.is_empty() {
            self.sent.shrink_to(0);
            self.fpdus.shrink_to(0);
        }
        for bit in 0..64 * WORDS_MAX {
            let at = 1 + bit;
            if at >= self.sent.len() {
                break;
            }
            if reliable.came[bit / 64] >> (bit % 64) & 1 != 0 {
                self.came(at, now_ns, least_ns, &mut what);
            }
        }
        what
    }

    fn came(&mut self, at: usize, now_ns: u64, least_ns: u64, what: &mut Acknowledged) {
        let seq = self.first + at as u64;
        let sent = &mut self.sent[at];
        match sent.state {
            State::Here => return,
            State::Out => self.out -= 1,
            State::Lost => {
                self.lost -= 1;
                what.was_not_lost |= sent.times == 1;
            }
        }
        sent.state = State::Here;
        self.here += 1;
        what.newly += 1;
        // RFC 6298 section 3: of what was sent twice it is not known which one is answered.
        if sent.times == 1 {
            what.sent_ns = what.sent_ns.max(Some(sent.at_ns));
        }
        let took_ns = now_ns.saturating_sub(sent.at_ns);
        if (sent.times == 1 || took_ns >= least_ns) && (sent.at_ns, seq) > self.newest {
            (self.newest, self.newest_took_ns) = ((sent.at_ns, seq), took_ns);
        }
    }

    /// Looks what is lost: sent before something that has come, and a round trip and `reordering_ns` ago. The first that is, and
    /// when the next will be.
    pub(super) fn lose(&mut self, now_ns: u64, reordering_ns: u64) -> (Option<u64>, Option<u64>) {
        let (mut first_lost, mut due_ns) = (None, None::<u64>);
        let took_ns = self.newest_took_ns + reordering_ns;
        for (at, sent) in self.sent.iter_mut().enumerate() {
            let seq = self.first + at as u64;
            if sent.state != State::Out || (sent.at_ns, seq) >= self.newest {
                continue;
            }
            if sent.at_ns + took_ns <= now_ns {
                sent.state = State::Lost;
                self.out -= 1;
                self.lost += 1;
                first_lost = first_lost.or(Some(seq));
            } else {
                due_ns = Some(due_ns.map_or(sent.at_ns + took_ns, |due| due.min(sent.at_ns + took_ns)));
            }
        }
        (first_lost, due_ns)
    }

    /// No answer has come: the last that is under way is to go once more, for what that brings back tells of the others.
    pub(super) fn lose_last(&mut self) {
        if let Some(last) = self.sent.iter_mut().rev().find(|sent| sent.state == State::Out) {
            last.state = State::Lost;
            self.out -= 1;
            self.lost += 1;
        }
    }

    /// No answer has come: all that is under way is taken for lost.
    pub(super) fn lose_all(&mut self) {
        for sent in self.sent.iter_mut().filter(|sent| sent.state == State::Out) {
            sent.state = State::Lost;
            self.lost += 1;
        }
        self.out = 0;
    }

    /// That was wrong: what was not sent again is under way.
    pub(super) fn find_all(&mut self) {
        for sent in self.sent.iter_mut().filter(|sent| sent.state == State::Lost) {
            sent.state = State::Out;
            self.out += 1;
        }
        self.lost = 0;
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Flight::new(self.next());
    }
}
