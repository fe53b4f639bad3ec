//! A net that keeps the promises of `fabric::verbs` and no others:
//! - a write completes once its data has been fetched, and is placed some time later, or the other way round;
//! - it is placed in pieces, in any order unless the adapters promise one, beside other writes;
//! - what is sent comes behind what was written and sent before to the same peer over the same rail, and behind
//!   nothing else: what is written or read later may be there first; its memory may be free long before it comes;
//! - rails and completions overtake each other, a queue is full for no reason, and some for a while;
//! - a transfer that fails says so at once or late, and some of it is placed all the same.

use super::*;

/// Queues that are closed at a time, at most.
const CLOSED: usize = 3;

/// What has left its poster's memory and is on its way.
pub(super) struct Flight {
    data: Vec<u8>,
    /// Pieces that are not in place: offset and length.
    pieces: VecDeque<(usize, usize)>,
    /// Whether its poster has been told that it is over.
    is_over: bool,
}

impl Net {
    /// Lets something happen that verbs allow.
    pub(super) fn disturb(&mut self) {
        let busy: Vec<usize> = (0..self.queues.len()).filter(|at| !self.queues[*at].is_empty()).collect();
        if !busy.is_empty() {
            let queue = busy[self.dice() % busy.len()];
            self.go_on(queue);
        }
        let late = self.unfinished();
        if !late.is_empty() && self.dice().is_multiple_of(2) {
            let rank = late[self.dice() % late.len()];
            self.finish_any(rank);
        }
        self.open_and_close();
    }

    /// Lets something happen to what one rank has posted to another.
    pub fn disturb_pair(&mut self, from: Rank, to: Rank) {
        let first = self.queue(from, to, 0);
        let busy: Vec<usize> = (first..first + RAILS_MAX).filter(|at| !self.queues[*at].is_empty()).collect();
        if !busy.is_empty() {
            let queue = busy[self.dice() % busy.len()];
            self.go_on(queue);
        }
        if !self.late[from].is_empty() && self.dice().is_multiple_of(2) {
            self.finish_any(from);
        }
    }

    /// Whether anything is under way between these, or a completion is late.
    pub fn is_busy(&self, from: Rank, to: Rank) -> bool {
        let first = self.queue(from, to, 0);
        self.queues[first..first + RAILS_MAX].iter().any(|queue| !queue.is_empty())
            || !self.late[from].is_empty()
    }

    /// Some completion of a rank comes.
    fn finish_any(&mut self, rank: Rank) {
        let at = self.dice() % self.late[rank].len();
        let completion = self.late[rank].remove(at).expect("inside");
        self.hosts[rank].completions.push_back(completion);
    }

    /// Some queue takes nothing for a while.
    fn open_and_close(&mut self) {
        match self.dice() % 128 {
            0 if self.closed.len() < CLOSED => {
                let queue = self.dice() % self.queues.len();
                self.closed.push(queue);
            }
            1..4 if !self.closed.is_empty() => drop(self.closed.remove(0)),
            _ => {}
        }
    }

    /// Whether this work of a queue may be placed before all others.
    fn is_next(&self, queue: usize, at: usize) -> bool {
        let mut before = self.queues[queue].iter().take(at);
        match self.queues[queue][at].what {
            What::Send => before.all(|posted| matches!(posted.what, What::Read(_))),
            What::Read(_) => true,
            What::Write(_) if !self.caps.writes_in_order => true,
            What::Write(_) => !before.any(|posted| matches!(posted.what, What::Write(_))),
        }
    }

    /// Lets some work of a queue go on.
    fn go_on(&mut self, queue: usize) {
        let (from, to) = (queue / RAILS_MAX / self.size, queue / RAILS_MAX % self.size);
        let (rail, dice) = (queue % RAILS_MAX, self.dice());
        let is_send = |posted: &Posted| matches!(posted.what, What::Send);
        let can_go_on = |at: &usize| self.is_next(queue, *at) || is_send(&self.queues[queue][*at]);
        let able: Vec<usize> = (0..self.queues[queue].len()).filter(can_go_on).collect();
        let at = able[dice / 64 % able.len()];
        let is_next = self.is_next(queue, at);
        let mut posted = self.queues[queue].remove(at).expect("inside");
        let ended = match posted.what {
            What::Send => self.send_on((from, to, rail), is_next, &mut posted),
            What::Read(remote) => {
                let fails = self.fails(&posted);
                let wanted = remote_span(remote, posted.parts[0].span.len);
                let mut data = self.fetch(to, rail, wanted, Rights::REMOTE_READ);
                data.truncate(if fails { dice % data.len() } else { data.len() });
                put(self.check(from, rail, posted.parts[0], Rights::LOCAL_WRITE).addr, &data);
                self.over(from, &posted, Done::Read, result(fails));
                true
            }
            What::Write(remote) => self.write_on((from, to, rail), remote, &mut posted),
        };
        if !ended {
            self.queues[queue].insert(at, posted);
        }
    }

    /// Some more of a message, which comes when it is the next; whether that is all.
    fn send_on(&mut self, way: (Rank, Rank, usize), is_next: bool, posted: &mut Posted) -> bool {
        let (from, to, rail) = way;
        let mut flight = match posted.flight.take() {
            Some(flight) => flight,
            None => {
                Flight { data: self.data_of(from, rail, posted), pieces: VecDeque::new(), is_over: false }
            }
        };
        let comes = is_next && self.dice().is_multiple_of(2);
        if !flight.is_over && (comes || self.dice().is_multiple_of(4)) {
            flight.is_over = true;
            self.over(from, posted, Done::Sent, Ok(()));
        }
        if comes {
            self.hosts[to].promised[rail] -= 1;
            self.receive_over(rail, from, to, &flight.data, false);
        }
        posted.flight = Some(flight);
        comes
    }

    /// Some more of a write; whether that is all.
    fn write_on(&mut self, way: (Rank, Rank, usize), remote: Remote, posted: &mut Posted) -> bool {
        let (from, to, rail) = way;
        let mut flight = match posted.flight.take() {
            Some(flight) => flight,
            None => self.take_off(from, rail, remote, posted),
        };
        if self.dice().is_multiple_of(2)
            && let Some(_) = flight.pieces.front()
        {
            let at = if self.caps.writes_in_order { 0 } else { self.dice() % flight.pieces.len() };
            let (offset, len) = flight.pieces.remove(at).expect("inside");
            let there = Remote { addr: remote.addr + offset as u64, key: remote.key };
            let target = self.check(to, rail, remote_span(there, len), Rights::REMOTE_WRITE);
            put(target.addr, &flight.data[offset..offset + len]);
        }
        if !flight.is_over && (flight.pieces.is_empty() || self.dice().is_multiple_of(16)) {
            flight.is_over = true;
            self.over(from, posted, Done::Written, Ok(()));
        }
        let is_placed = flight.pieces.is_empty();
        if is_placed {
            self.hosts[to].touched.push(from);
        }
        posted.flight = Some(flight);
        is_placed
    }

    /// A write leaves: its data has been fetched. If it fails, its poster hears of it now.
    fn take_off(&mut self, from: Rank, rail: usize, remote: Remote, posted: &Posted) -> Flight {
        let data = self.data_of(from, rail, posted);
        let (mut pieces, mut at) = (VecDeque::new(), 0);
        let each = (data.len() / 6).next_multiple_of(8).max(8);
        while at < data.len() {
            // Cut where words end in the memory of the peer.
            let word = (remote.addr as usize + at + each) / 8 * 8;
            let end = (word - remote.addr as usize).min(data.len());
            pieces.push_back((at, end - at));
            at = end;
        }
        let fails = self.fails(posted);
        if fails {
            let left = self.dice() % pieces.len();
            pieces.truncate(left);
            self.over(from, posted, Done::Written, result(true));
        }
        let mut is_over = fails;
        if !fails && self.dice().is_multiple_of(2) {
            is_over = true;
            self.over(from, posted, Done::Written, Ok(()));
        }
        Flight { data, pieces, is_over }
    }

    /// Whether a transfer fails: only those of the engine do.
    fn fails(&mut self, posted: &Posted) -> bool {
        let may = self.fails_one_in > 0 && posted.work >> 63 == 0;
        may && self.dice().is_multiple_of(self.fails_one_in)
    }

    fn over(&mut self, poster: Rank, posted: &Posted, done: Done, result: Result<(), Fault>) {
        self.late[poster].push_back(Completion { work: posted.work, done, result });
    }
}

fn result(fails: bool) -> Result<(), Fault> {
    if fails { Err(Fault::Device("the adapter did not get on".into())) } else { Ok(()) }
}
