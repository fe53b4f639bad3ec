//! Posted work: what it is, when it is done, and in which order that is told.
//!
//! ```text
//! post ──▶ Waiting ──▶ (Send, Write) last byte cut ──▶ Stream ──▶ in the socket ──▶ Done ──▶ poll
//!                 └──▶ (Read, Atomic) request cut ──▶ Response ──▶ response checked ──▶ Done ──▶ poll
//! ```
//!
//! Completions are told in the order of posting, as verbs do, so that a Send posted behind a Read says
//! that the Read is complete. Requests over the peer's limit (ORD) wait in a queue of their own:
//! what is posted behind them passes (RFC 5040 section 5.5 orders nothing behind a Read but its own response).

use std::collections::VecDeque;

use wire::iwarp::rdmap::Atomic;

/// What can be posted. Lengths are those of the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A message for the next receive buffer of the peer.
    Send {
        /// Bytes.
        len: u32,
        /// Whether it asks that the peer be woken.
        solicited: bool,
        /// A tag of the peer that ends when the message has come.
        invalidate: Option<u32>,
    },
    /// Bytes into a region of the peer.
    Write {
        /// Bytes.
        len: u32,
        /// Tag of the region.
        stag: u32,
        /// Offset of the first byte.
        to: u64,
        /// Behind it a message of eight bytes that takes a receive buffer of the peer (RFC 7306
        /// section 6), and whether that asks the peer to be woken.
        immediate: Option<(u64, bool)>,
    },
    /// Bytes of a region of the peer into one of this side.
    Read {
        /// Bytes.
        len: u32,
        /// Where they go: tag of a region of this side.
        sink_stag: u32,
        /// Offset there.
        sink_to: u64,
        /// What is read: tag of a region of the peer.
        stag: u32,
        /// Offset there.
        to: u64,
    },
    /// Changes a 64-bit word of the peer and tells what it was.
    Atomic {
        /// Tag of the region.
        stag: u32,
        /// Offset of the word, a multiple of eight.
        to: u64,
        /// The change.
        atomic: Atomic,
    },
}

impl Work {
    /// Whether it is a request that the peer answers.
    pub(super) fn is_request(&self) -> bool {
        matches!(self, Work::Read { .. } | Work::Atomic { .. })
    }
}

/// What has been done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// All bytes are in the stream: the memory may be used again.
    Sent,
    /// The same, of a Write. Whether they are placed is another matter.
    Written,
    /// All bytes have been placed and checked.
    Read,
    /// What the word was.
    Atomic(u64),
}

/// Why work was not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotDone {
    /// The connection has ended; see [`super::Connection::failure`].
    Flushed,
    /// The peer answers no requests (its IRD is zero).
    NoRequests,
}

/// The end of posted work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// As given when it was posted.
    pub id: u64,
    /// How it ended.
    pub result: Result<Done, NotDone>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Waiting,
    /// All cut, not yet all in the socket.
    Stream,
    Response,
    Ended(Result<Done, NotDone>),
}

#[derive(Debug)]
struct Posted {
    id: u64,
    work: Work,
    state: State,
    /// Work of the connection itself, of which nobody is told.
    silent: bool,
}

/// A request that the peer has not answered yet, by the number of its work.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    Read { seq: u64, stag: u32, to: u64, len: u32, got: u32 },
    Atomic { seq: u64, id: u32 },
}

/// The send queue of a connection. Work is named by a number that counts all that was ever posted.
#[derive(Debug)]
pub(super) struct SendQueue {
    depth: usize,
    ord: usize,
    posted: VecDeque<Posted>,
    /// Number of the oldest in `posted`.
    first: u64,
    /// Number of the next that has not been looked at.
    next: u64,
    /// Requests that wait for one before to be answered.
    parked: VecDeque<u64>,
    /// Work whose last byte has been cut, and the position in the stream behind it.
    handed: VecDeque<(u64, u64)>,
    /// Requests under way, in the order in which they will be answered.
    pub(super) asked: VecDeque<Asked>,
    /// Requests that were posted and not answered.
    requests: usize,
    failed: bool,
}

impl SendQueue {
    pub(super) fn new(depth: usize, ord: usize) -> SendQueue {
        SendQueue {
            depth,
            ord,
            posted: VecDeque::new(),
            first: 0,
            next: 0,
            parked: VecDeque::new(),
            handed: VecDeque::new(),
            asked: VecDeque::new(),
            requests: 0,
            failed: false,
        }
    }

    /// Work of the connection itself, by which it opens the stream.
    pub(super) fn open(&mut self, work: Work) {
        self.requests += usize::from(work.is_request());
        self.posted.push_back(Posted { id: 0, work, state: State::Waiting, silent: true });
    }

    pub(super) fn post(&mut self, id: u64, work: Work) -> bool {
        if self.posted.len() >= self.depth {
            return false;
        }
        let state = match work {
            _ if self.failed => State::Ended(Err(NotDone::Flushed)),
            _ if work.is_request() && self.ord == 0 => State::Ended(Err(NotDone::NoRequests)),
            _ => State::Waiting,
        };
        self.requests += usize::from(work.is_request() && matches!(state, State::Waiting));
        fabric::begin_with_one(&mut self.posted);
        self.posted.push_back(Posted { id, work, state, silent: false });
        true
    }

    /// Whether a request that is posted now leaves before everything that is posted behind it: it will not have to wait for answers.
    pub(super) fn keeps_order(&self) -> bool {
        self.requests < self.ord
    }

    /// The next piece of work to send something of: its number, id and what it is. The same again,
    /// until [`SendQueue::cut`] or [`SendQueue::requested`] says that all of it is cut. `is_open` if
    /// some of it has been: then no request steps in between.
    pub(super) fn next(&mut self, is_open: bool) -> Option<(u64, u64, Work)> {
        let may_ask = self.asked.len() < self.ord;
        if let Some(&seq) = self.parked.front().filter(|_| may_ask && !is_open) {
            let posted = &self.posted[(seq - self.first) as usize];
            return Some((seq, posted.id, posted.work));
        }
        loop {
            let seq = self.next;
            let posted = self.posted.get((seq - self.first) as usize)?;
            if !matches!(posted.state, State::Waiting) {
                self.next += 1;
            } else if posted.work.is_request() && !may_ask {
                self.parked.push_back(seq);
                self.next += 1;
            } else {
                return Some((seq, posted.id, posted.work));
            }
        }
    }

    /// The last byte of a Send or Write has been cut: it stands in front of this position.
    pub(super) fn cut(&mut self, seq: u64, end: u64) {
        self.state(seq, State::Stream);
        fabric::begin_with_one(&mut self.handed);
        self.handed.push_back((seq, end));
        self.next += 1;
    }

    /// A request has been cut.
    pub(super) fn requested(&mut self, seq: u64, asked: Asked) {
        self.state(seq, State::Response);
        fabric::begin_with_one(&mut self.asked);
        self.asked.push_back(asked);
        if self.parked.front() == Some(&seq) {
            self.parked.pop_front();
        } else {
            self.next += 1;
        }
    }

    /// The stream has been written up to this position.
    pub(super) fn written(&mut self, position: u64) {
        while let Some((seq, _)) = self.handed.pop_front_if(|(_, end)| *end <= position) {
            let is_send = matches!(self.posted[(seq - self.first) as usize].work, Work::Send { .. });
            self.state(seq, State::Ended(Ok(if is_send { Done::Sent } else { Done::Written })));
        }
    }

    /// The oldest request has been answered.
    pub(super) fn answered(&mut self, done: Done) {
        if let Some(Asked::Read { seq, .. } | Asked::Atomic { seq, .. }) = self.asked.pop_front() {
            self.state(seq, State::Ended(Ok(done)));
            self.requests -= 1;
        }
    }

    /// All that has not ended ends.
    pub(super) fn flush(&mut self) {
        self.failed = true;
        for posted in &mut self.posted {
            if !matches!(posted.state, State::Ended(_)) {
                posted.state = State::Ended(Err(NotDone::Flushed));
            }
        }
        self.parked.clear();
        self.handed.clear();
        self.asked.clear();
    }

    pub(super) fn poll(&mut self) -> Option<Completion> {
        loop {
            let State::Ended(result) = self.posted.front()?.state else { return None };
            let posted = self.posted.pop_front()?;
            self.first += 1;
            self.next = self.next.max(self.first);
            if !posted.silent {
                return Some(Completion { id: posted.id, result });
            }
        }
    }

    /// Gives memory back if nothing is posted.
    pub(super) fn give_back(&mut self) {
        if self.posted.is_empty() {
            self.posted.shrink_to(0);
            self.handed.shrink_to(0);
            self.asked.shrink_to(0);
            self.parked.shrink_to(0);
        }
    }

    /// Work that has not been told to have ended.
    pub(super) fn len(&self) -> usize {
        self.posted.len()
    }

    /// Whether [`SendQueue::next`] may find something.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        let is_behind = self.next < self.first + self.posted.len() as u64;
        is_behind || !self.parked.is_empty() && self.asked.len() < self.ord
    }

    /// Whether nothing is under way or waits.
    pub(super) fn is_idle(&self) -> bool {
        self.posted.iter().all(|posted| matches!(posted.state, State::Ended(_)))
    }

    fn state(&mut self, seq: u64, state: State) {
        self.posted[(seq - self.first) as usize].state = state;
    }
}
