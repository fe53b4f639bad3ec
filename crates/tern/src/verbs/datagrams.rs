//! What is measured of datagrams (UD), beside connections (RC): they may be lost, which is counted, and nothing is sent again.

use super::measure::{Bench, WORD, median};
use fabric::Verbs;
use std::time::{Duration, Instant};

/// After so long a datagram counts as lost.
const LOST: Duration = Duration::from_millis(200);
/// Looks in vain between two looks at the clock.
const LOOKS: u32 = 64;
/// Datagrams, and bytes of them, for which the receiver gives leave to send at a time; twice as many are under way.
const GROUP: usize = 16;
const GROUP_BYTES: usize = 64 << 10;

/// What a stream has made.
pub struct Stream {
    /// Of what has come, GB/s.
    pub rate: f64,
    /// Of what has come, datagrams per µs.
    pub number: f64,
    /// How many have not.
    pub lost: usize,
}

/// One rank's part in a stream.
struct Flow {
    group: usize,
    to_send: usize,
    sent: usize,
    /// Groups that the peer has heard.
    leaves: usize,
    to_hear: usize,
    /// Datagrams that have come, or count as lost.
    heard: usize,
    told: usize,
    lost: usize,
    /// As the peer says.
    lost_there: usize,
    quiet: u32,
    since: Instant,
}

impl Flow {
    fn new(group: usize, to_send: usize, to_hear: usize) -> Flow {
        let (sent, leaves, heard, told, lost, lost_there) = (0, 0, 0, 0, 0, 0);
        let since = Instant::now();
        Flow { group, to_send, sent, leaves, to_hear, heard, told, lost, lost_there, quiet: 0, since }
    }

    fn may_send(&self) -> bool {
        self.sent < self.to_send && self.sent < (self.leaves + 2) * self.group
    }

    fn waits_for_leave(&self) -> bool {
        self.leaves * self.group < self.to_send
    }

    fn is_over(&self) -> bool {
        !self.waits_for_leave() && self.heard == self.to_hear && self.told * self.group == self.to_hear
    }

    /// So many have come. After a time without any, the rest of a group counts as lost: its sender waits for leave.
    fn hear(&mut self, count: usize) {
        if count > 0 {
            self.heard = (self.heard + count).min(self.to_hear);
            self.quiet = 0;
            return;
        }
        if self.quiet == 0 {
            self.since = Instant::now();
        }
        self.quiet += 1;
        if self.quiet.is_multiple_of(LOOKS) && self.heard < self.to_hear && self.since.elapsed() > LOST {
            let missing = self.group - self.heard % self.group;
            (self.heard, self.lost, self.quiet) = (self.heard + missing, self.lost + missing, 0);
        }
    }
}

impl<V: Verbs> Bench<'_, V> {
    /// Longest datagram of the adapter.
    pub fn longest_datagram(&self) -> usize {
        self.verbs.caps().datagram_bytes
    }

    fn post_datagram(&mut self, len: usize) -> Result<(), String> {
        let (peer, part) = (self.peer, self.regions[0].local(self.memory.part(0, len)));
        self.post(|verbs| verbs.post_datagram(peer, 0, &[part], super::measure::PLAIN))
    }

    /// Half of a round trip of datagrams of `len` bytes, in µs: the median of `rounds`; and how many rounds were lost beside them.
    pub fn datagram_latency(&mut self, len: usize, rounds: usize) -> Result<(f64, usize), String> {
        self.meet()?;
        if !self.is_first() {
            self.echo(len)?;
            return Ok((f64::NAN, 0));
        }
        let (mut times, mut lost) = (Vec::with_capacity(rounds), 0);
        while times.len() < rounds {
            let (begun, wanted, mut looks) = (Instant::now(), self.datagrams + 1, 0u32);
            self.post_datagram(len)?;
            while self.datagrams < wanted {
                self.turn()?;
                looks += 1;
                if looks.is_multiple_of(LOOKS) && begun.elapsed() > LOST {
                    break;
                }
            }
            match self.datagrams < wanted {
                true if lost == rounds => return Err(format!("of {len} bytes no datagram comes back")),
                true => lost += 1,
                false => times.push(begun.elapsed().as_secs_f64() * 1e6 / 2.0),
            }
        }
        self.meet()?;
        Ok((median(times), lost))
    }

    /// Answers each datagram by one, until the peer wants to meet.
    fn echo(&mut self, len: usize) -> Result<(), String> {
        let (end, mut answered) = (self.sent + 1, self.datagrams);
        while self.received < end {
            self.turn()?;
            while answered < self.datagrams {
                self.post_datagram(len)?;
                answered += 1;
            }
        }
        self.meet()
    }

    /// Datagrams of `len` bytes, about `count`, from rank 0 or from both, as many at a time as their receiver has room for. It gives leave by
    /// messages over the connection.
    pub fn datagram_stream(&mut self, len: usize, count: usize, both: bool) -> Result<Stream, String> {
        self.meet()?;
        let group = (GROUP_BYTES / len).clamp(1, GROUP);
        let count = count.next_multiple_of(group);
        let part = |has_part: bool| if has_part { count } else { 0 };
        let mut flow = Flow::new(group, part(both || self.is_first()), part(both || !self.is_first()));
        let (begun, mut seen) = (Instant::now(), self.datagrams);
        while !flow.is_over() {
            if flow.may_send() {
                self.post_datagram(len)?;
                flow.sent += 1;
            }
            self.turn()?;
            flow.hear((self.datagrams - seen) as usize);
            seen = self.datagrams;
            while flow.told < flow.heard / group {
                flow.told += 1;
                self.give_leave(flow.lost)?;
            }
            // Messages over the connection come in order: what comes before the next meeting is leave.
            while flow.waits_for_leave() && self.received > self.sent {
                self.received -= 1;
                flow.leaves += 1;
                flow.lost_there = self.last_word() as usize;
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        self.meet()?;
        let lost = flow.lost + flow.lost_there;
        let came = (flow.to_send + flow.to_hear - lost) as f64;
        Ok(Stream { rate: came * len as f64 / seconds / 1e9, number: came / seconds / 1e6, lost })
    }

    /// A message that is no part of a meeting.
    fn give_leave(&mut self, lost: usize) -> Result<(), String> {
        self.verbs.poke_bytes(self.memory.addr, &(lost as u64).to_ne_bytes());
        let (peer, part) = (self.peer, self.regions[0].local(self.memory.part(0, WORD)));
        self.post(|verbs| verbs.post_send(peer, 0, &[part], super::measure::PLAIN))
    }

    /// What the last message begins with.
    fn last_word(&self) -> u64 {
        let mut word = [0; WORD];
        self.verbs.peek_bytes(self.buffers[self.last].span.part(0, WORD), &mut word);
        u64::from_ne_bytes(word)
    }
}
