//! A reliable connection (RC): an iWARP connection over TCP behind a queue pair.
//!
//! What verbs have and iWARP has not: a message with immediate data is one message there, two here. A Write with
//! immediate data is followed by Immediate Data (RFC 7306 section 6) that hold the word and the length of the Write; a
//! Send with immediate data is preceded by such, marked, whose receive buffer the Send then takes.

use super::constants::*;
use super::queues::{Buffer, Ended, Receives};
use fabric::Span;
use rnic::driver::{Landing, Link, Payload, Posted, memory};
use rnic::stack::{Arrived, Atomic, Cause, Failure, NotDone, Place, Receive, Sink, Work};
use std::collections::VecDeque;

/// In the upper half of Immediate Data: they are of the Send behind them. Else it is the length of the Write before.
const OF_NEXT_SEND: u64 = 1 << 63;

/// The Immediate Data that precede a Send.
pub fn before_send(immediate: u32) -> u64 {
    OF_NEXT_SEND | u64::from(immediate)
}

/// The Immediate Data that follow a Write.
pub fn behind_write(immediate: u32, len: u32) -> u64 {
    u64::from(len) << 32 | u64::from(immediate)
}

/// Work that was handed to the connection, in the order of posting.
#[derive(Debug)]
pub struct Sent {
    /// What is told when it has ended; without it nobody is told unless it fails.
    pub ended: Ended,
    /// Whether it is told.
    pub is_told: bool,
    /// Whether it is part of the request behind it.
    pub is_part: bool,
    /// Whether it does not begin before Reads and atomic operations in front of it have ended (`IBV_SEND_FENCE`).
    pub is_fenced: bool,
    /// Whether it is one of these itself.
    pub asks: bool,
}

/// How far a queue pair has come with its peer.
#[derive(Debug)]
pub enum Phase {
    /// Not begun; what is posted waits for the peer, which may be on its way, but not for ever.
    Apart {
        /// On the adapter's clock; `None` if nothing is posted.
        until_ns: Option<u64>,
    },
    /// As if it were one connection.
    Connected(Box<Link>),
    /// The peer has gone, or was never there: nothing that is posted reaches it. As on InfiniBand it is tried again for a time all
    /// the same, while what other peers have sent comes: until then.
    Parted {
        /// On the adapter's clock; `None` if nothing is posted.
        until_ns: Option<u64>,
    },
    /// It is gone.
    Gone,
}

impl Default for Phase {
    fn default() -> Phase {
        Phase::Apart { until_ns: None }
    }
}

/// What a queue pair has beside its queues.
#[derive(Debug, Default)]
pub struct Rc {
    /// How far it has come.
    pub phase: Phase,
    /// What is posted before there is a connection, or stands behind a fence; and whether it is fenced itself.
    waiting: VecDeque<(Posted, Work, bool)>,
    /// Reads and atomic operations that the connection has and that have not ended.
    asked: u32,
    /// Whether nothing is handed over to the connection (`IBV_QPS_SQD`), and whether what it has is waited for.
    holds: bool,
    /// See above.
    pub is_draining: bool,
    /// Whether anything has come.
    pub is_heard: bool,
    /// Work under way, and how many requests it was made of.
    pub sent: VecDeque<Sent>,
    /// See [`Rc::sent`].
    pub requests: usize,
    /// Of what comes.
    pub arrivals: Arrivals,
}

/// Buffers that messages are filling, and messages that have come.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// Few at a time: messages come one after the other.
    filling: Vec<(u64, Buffer)>,
    next: u64,
    /// The immediate data of the next Send.
    immediate: Option<u32>,
    /// What has come: the completion, and whether its sender asks for an event.
    pub came: Vec<(Ended, bool)>,
}

impl Arrivals {
    /// Takes back the buffers that will not be filled, in the order in which messages took them.
    pub fn take_back(&mut self) -> Vec<Buffer> {
        self.filling.drain(..).map(|(_, buffer)| buffer).collect()
    }

    fn buffer(&self, id: u64) -> Option<&Buffer> {
        self.filling.iter().find(|filling| filling.0 == id).map(|filling| &filling.1)
    }
}

/// What a peer's Terminate means to work that was under way (RFC 5040 section 4.8, RFC 5041 section 7).
fn status_of(cause: Cause) -> i32 {
    const RDMAP: u8 = 0;
    const DDP: u8 = 1;
    match (cause.layer, cause.kind) {
        // Errors of protection, and of tagged buffers.
        (RDMAP | DDP, 1) => WC_REM_ACCESS_ERR,
        // Errors of untagged buffers: there is none, or the message is too long for it.
        (DDP, 2) => WC_REM_INV_REQ_ERR,
        _ => WC_REM_OP_ERR,
    }
}

impl Rc {
    /// Why work that was under way when the connection ended was not done.
    pub fn status(&self) -> i32 {
        let Phase::Connected(link) = &self.phase else { return WC_WR_FLUSH_ERR };
        match link.connection.failure() {
            Some(Failure::Terminated(terminate)) => status_of(terminate.cause),
            Some(Failure::Lost) => WC_RETRY_EXC_ERR,
            _ => WC_WR_FLUSH_ERR,
        }
    }

    /// The event that tells why the connection has ended: this side has refused what its peer asked for, which is the end of no work here, or
    /// the peer has, and no work was under way that could have been told (`is_told`).
    pub fn event(&self, is_told: bool) -> Option<i32> {
        let Phase::Connected(link) = &self.phase else { return None };
        match link.connection.failure()? {
            Failure::Refused(terminate) => Some(match status_of(terminate.cause) {
                WC_REM_ACCESS_ERR => EVENT_QP_ACCESS_ERR,
                WC_REM_INV_REQ_ERR => EVENT_QP_REQ_ERR,
                _ => EVENT_QP_FATAL,
            }),
            Failure::Terminated(_) if !is_told => Some(EVENT_QP_FATAL),
            _ => None,
        }
    }

    /// Hands nothing over from now on, or again.
    pub fn hold(&mut self, holds: bool) {
        (self.holds, self.is_draining) = (holds, holds);
    }

    /// Whether everything has ended that was handed over.
    pub fn is_drained(&self) -> bool {
        self.sent.len() == self.waiting.len()
    }

    /// Whether the peer has ended the connection in good order, or is simply not there any more for what is under way.
    pub fn has_parted(&self) -> bool {
        let Phase::Connected(link) = &self.phase else { return false };
        match link.connection.failure() {
            Some(Failure::Closed) => true,
            Some(Failure::Lost) => !self.sent.is_empty(),
            _ => false,
        }
    }

    /// Has work that is tried again for a time wait for its end, in front of all other.
    pub fn keep(&mut self, late: Vec<Ended>) {
        self.requests += late.len();
        for ended in late.into_iter().rev() {
            self.sent.push_front(Sent {
                ended,
                is_told: true,
                is_part: false,
                is_fenced: false,
                asks: false,
            });
        }
    }

    /// Posts work; false if there is no room.
    pub fn post(&mut self, payload: Payload, work: Work, sent: Sent) -> bool {
        let posted = Posted::new(0, payload);
        let is_behind = self.holds || !self.waiting.is_empty() || sent.is_fenced && self.asked > 0;
        match &mut self.phase {
            Phase::Connected(link) if !is_behind => {
                if link.post(posted, work).is_some() {
                    return false;
                }
                self.asked += u32::from(sent.asks);
            }
            _ => self.waiting.push_back((posted, work, sent.is_fenced)),
        }
        self.requests += usize::from(!sent.is_part);
        self.sent.push_back(sent);
        true
    }

    /// Hands over to the connection what waits and no fence keeps back; whether anything was.
    pub fn let_go(&mut self) -> bool {
        let Phase::Connected(link) = &mut self.phase else { return false };
        let before = self.waiting.len();
        while !self.holds
            && let Some((_, _, is_fenced)) = self.waiting.front()
            && !(*is_fenced && self.asked > 0)
            && let Some((posted, work, _)) = self.waiting.pop_front()
        {
            self.asked += u32::from(asks(&work));
            assert!(link.post(posted, work).is_none(), "no more waits than fits");
        }
        self.waiting.len() < before
    }

    /// Forgets what has not been handed over.
    pub fn forget(&mut self) {
        self.waiting.clear();
        self.asked = 0;
    }

    /// The oldest work that has ended, if somebody is to be told; `None` if there is none.
    pub fn poll(&mut self) -> Option<Option<Ended>> {
        let Phase::Connected(link) = &mut self.phase else { return None };
        let (_, result) = link.poll()?;
        let sent = self.sent.pop_front().expect("what has ended was posted");
        self.requests -= usize::from(!sent.is_part);
        self.asked -= u32::from(sent.asks);
        let mut ended = sent.ended;
        match result {
            Ok(_) => {}
            Err(NotDone::NoRequests) => ended.status = WC_LOC_QP_OP_ERR,
            Err(NotDone::Flushed) => ended.status = WC_WR_FLUSH_ERR,
        }
        let is_told = sent.is_told || ended.status != WC_SUCCESS;
        Some((is_told && !sent.is_part).then_some(ended))
    }
}

/// Whether work is a request that the peer answers.
pub fn asks(work: &Work) -> bool {
    matches!(work, Work::Read { .. } | Work::Atomic { .. })
}

/// What a connection needs of its queue pair while it takes something in.
pub struct Coming<'a> {
    /// Buffers for messages.
    pub receives: &'a mut Receives,
    /// See [`Arrivals`].
    pub arrivals: &'a mut Arrivals,
    /// The number of the queue pair.
    pub number: u32,
}

impl Landing for Coming<'_> {
    fn span(&self, place: Place, len: usize) -> Span {
        match place {
            Place::Region { to, .. } => Span { addr: to as usize, len },
            Place::Buffer { id, offset } => {
                self.arrivals.buffer(id).map_or(Span::EMPTY, |buffer| buffer.part(offset as usize, len))
            }
        }
    }

    fn touched(&mut self) {}
}

impl Sink for Coming<'_> {
    fn receive(&mut self, _msn: u32) -> Receive {
        let buffer = match self.receives.take() {
            None => return Receive::Later,
            Some(Err(denied)) => {
                self.arrivals.came.push((Ended::denied(denied.id, self.number), true));
                return Receive::None;
            }
            Some(Ok(buffer)) => buffer,
        };
        let (id, len) = (self.arrivals.next, buffer.room());
        self.arrivals.next += 1;
        self.arrivals.filling.push((id, buffer));
        Receive::Buffer { id, len }
    }

    fn place(&mut self, place: Place, bytes: &[u8]) {
        match place {
            Place::Region { to, .. } => memory::copy(to as usize, bytes.as_ptr() as usize, bytes.len()),
            Place::Buffer { id, offset } => {
                if let Some(buffer) = self.arrivals.buffer(id) {
                    buffer.fill(offset as usize, bytes);
                }
            }
        }
    }

    fn arrived(&mut self, arrived: Arrived) {
        let filling = &mut self.arrivals.filling;
        let Some(at) = filling.iter().position(|filling| filling.0 == arrived.id) else { return };
        let (_, buffer) = filling.remove(at);
        let mut ended = Ended { id: buffer.id, opcode: OP_RECEIVE, number: self.number, ..Ended::default() };
        ended.len = arrived.len;
        match arrived.immediate {
            Some(word) if word & OF_NEXT_SEND != 0 => {
                self.arrivals.immediate = Some(word as u32);
                return self.receives.free.push_front(buffer);
            }
            Some(word) => {
                (ended.opcode, ended.len) = (OP_RECEIVE_WITH_IMMEDIATE, (word >> 32) as u32);
                (ended.immediate, ended.flags) = (word as u32, FLAG_IMMEDIATE);
            }
            None => {
                if let Some(word) = self.arrivals.immediate.take() {
                    (ended.immediate, ended.flags) = (word, FLAG_IMMEDIATE);
                } else if let Some(key) = arrived.invalidated {
                    (ended.immediate, ended.flags) = (key, FLAG_INVALIDATED);
                }
            }
        }
        self.arrivals.came.push((ended, arrived.solicited));
    }

    fn atomic(&mut self, _stag: u32, to: u64, atomic: &Atomic) -> u64 {
        memory::change(to as usize, atomic)
    }
}
