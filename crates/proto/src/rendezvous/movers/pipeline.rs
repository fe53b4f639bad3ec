//! Pipelined registration, and the caching pipeline.
//!
//! Wins for long messages from buffers that do not come back: while one block is on the wire the
//! next ones are registered on both sides, so registration costs what it exceeds the wire by, and
//! no more than `depth` blocks are pinned. Costs a READY and a FIN per block, and both sides must be
//! inside MPI (pipeline paper, section 4). A head travels with the RTS, and from the ACK on frames
//! move what lies below the RDMA offset, which covers the registration of the first block.
//!
//! The caching pipeline keeps what it registers (section 5.2): the first message costs as much, the
//! next ones nothing. Blocks end at multiples of their length in memory, on either side by its own
//! addresses, so that messages that begin elsewhere in the same buffer find them again.
//!
//! Where a side cannot register a block, the block goes by frames: READY or FIN say so.
//!
//! ```text
//! sender                          receiver
//!   RTS + head ─────────────────▶ match
//!              ◀─ ACK(len, RDMA offset)
//!   frames: head … RDMA offset ─▶ register block 0
//!                     ◀─ READY 0, register block 1
//!   register block 0  ◀─ READY 1, … up to `depth`
//!     ── RDMA Write ────────────▶
//!   FIN 0, deregister ──────────▶ deregister, register the next block
//! ```
//! The blocks go to the adapters by their bandwidth, and the FIN of a block goes by its adapter, behind
//! it: the completion of a write does not say that it is placed. Frames go by whichever the device takes.

use super::port::Port;
use super::{BY_FRAMES, Happening, Message, Mover, Step};
use crate::choice::way::Protocol;
use crate::event::Event;
use crate::memory::rcache::Held;
use fabric::{Remote, Rights, Span};
use std::collections::VecDeque;
use wire::head::FrameType;
use wire::long::{Fragment, LongRts, RAILS};

/// Frames sent before what has arrived is looked at: a READY must not wait for long.
const FRAMES_AT_ONCE: usize = 4;

impl Message {
    /// Whether its registrations may stay.
    fn keeps(&self) -> bool {
        self.protocol == Some(Protocol::CachingPipeline)
    }

    /// How far the block of memory that begins at `offset` goes, and what is registered for it.
    fn block(&self, offset: u64, end: u64, block_bytes: usize) -> (u64, Span) {
        if !self.keeps() {
            let len = end.saturating_sub(offset).min(block_bytes as u64);
            return (offset + len, self.local.part(offset as usize, len as usize));
        }
        let addr = self.local.addr + offset as usize;
        let first = addr - addr % block_bytes;
        let behind = (first + block_bytes).min(self.local.addr + self.local.len);
        let first = first.max(self.local.addr);
        (end.min((behind - self.local.addr) as u64), Span { addr: first, len: behind - first })
    }
}

/// The sending side.
#[derive(Debug, Default)]
pub(crate) enum Sender {
    /// The RTS has not left.
    #[default]
    Idle,
    /// The RTS is out, with so many bytes.
    Asked(u64),
    /// The receiver has told what it wants.
    Moving(Box<Moving>),
}

/// What a sender still has to move.
#[derive(Debug)]
pub(crate) struct Moving {
    /// Bytes that travel.
    len: u64,
    /// Where the next block begins.
    next: u64,
    /// Bytes from the RDMA offset on that have no FIN.
    left: u64,
    runs: VecDeque<Run>,
    pieces: Vec<Piece>,
    posted: u32,
}

/// Bytes to go by frames.
#[derive(Clone, Copy, Debug)]
struct Run {
    at: u64,
    end: u64,
    /// Where it began, if it stands for a block: then it ends with a FIN.
    block: Option<u64>,
}

/// A block, or what one registration covers of it, on the wire.
#[derive(Clone, Copy, Debug)]
struct Piece {
    work: u32,
    held: Held,
    offset: u64,
    len: u64,
}

impl Sender {
    /// RTS, with as much of the message as goes into its frame.
    fn start(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let along = port.tuning().head_bytes.min(port.frame_bytes() - LongRts::LEN);
        let along = along.min(message.local.len);
        let protocol = message.number();
        if !port.request(LongRts { len: message.len, protocol, ..LongRts::default() }, along) {
            return Step::NoRoom;
        }
        *self = Sender::Asked(along as u64);
        Step::Going
    }
}

impl Mover for Sender {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        let step = match (&mut *self, what) {
            (Sender::Idle, Happening::Start) => self.start(message, port),
            (Sender::Asked(along), Happening::Ack(ack))
                if ack.len <= message.len && ack.offset <= ack.len && ack.offset >= ack.len.min(*along) =>
            {
                let mut moving = Moving::new(*along, &ack);
                let step = moving.go_on(message, port);
                *self = Sender::Moving(Box::new(moving));
                step
            }
            (Sender::Moving(m), Happening::Ready(block)) if m.expects(&block, message, port.rails()) => {
                m.take(block, message, port);
                m.step(false)
            }
            (Sender::Moving(m), Happening::Completed(work)) => m.completed(work, port),
            (Sender::Moving(m), Happening::Look) => m.go_on(message, port),
            _ => Step::Illegal,
        };
        if step == Step::Done {
            *self = Self::Idle;
        }
        step
    }

    fn retreat(&mut self, port: &mut impl Port) {
        if let Sender::Moving(moving) = std::mem::take(self) {
            moving.pieces.iter().for_each(|piece| port.release(piece.held));
        }
    }

    fn is_unanswered(&self, _port: &impl Port) -> bool {
        !matches!(self, Sender::Moving(_))
    }
}

impl Moving {
    fn new(along: u64, ack: &Fragment) -> Moving {
        let run = Run { at: along, end: ack.offset, block: None };
        Moving {
            len: ack.len,
            next: ack.offset,
            left: ack.len - ack.offset,
            runs: (run.at < run.end).then_some(run).into_iter().collect(),
            pieces: Vec::new(),
            posted: 0,
        }
    }

    /// Blocks come one after the other and lie inside the message.
    fn expects(&self, block: &Fragment, message: &Message, rails: usize) -> bool {
        let inside = block.offset.checked_add(block.len).is_some_and(|end| end <= self.len);
        block.offset == self.next && block.len > 0 && inside && message.covers(block, rails)
    }

    /// Registers a block and writes it, in as many pieces as registrations are kept apart.
    fn take(&mut self, block: Fragment, message: &Message, port: &mut impl Port) {
        self.next += block.len;
        if block.flags & BY_FRAMES != 0 {
            let run = Run { at: block.offset, end: self.next, block: Some(block.offset) };
            return self.runs.push_back(run);
        }
        let mut at = block.offset;
        while at < self.next {
            // A block of a pipeline that keeps nothing is registered as the receiver has cut it.
            let cut = if message.keeps() { port.tuning().block_bytes } else { block.len as usize };
            let (end, span) = message.block(at, self.next, cut);
            match port.hold(block.rail as usize, span, Rights::NONE, message.keeps()) {
                Ok(held) => {
                    let local = message.local.part(at as usize, (end - at) as usize);
                    let remote = Remote { addr: block.addr + (at - block.offset), key: block.key };
                    self.pieces.push(Piece { work: self.posted, held, offset: at, len: end - at });
                    port.write(held.rail, held.region.local(local), remote, self.posted);
                    self.posted = self.posted.wrapping_add(1);
                    port.emit(Event::BlockWritten);
                }
                Err(_) => self.runs.push_back(Run { at, end, block: Some(at) }),
            }
            at = end;
        }
    }

    fn completed(&mut self, work: u32, port: &mut impl Port) -> Step {
        let Some(at) = self.pieces.iter().position(|piece| piece.work == work) else { return Step::Illegal };
        let Piece { held, offset, len, .. } = self.pieces.remove(at);
        let rail = held.rail as u16;
        port.fin(Fragment { offset, len, rail, ..Fragment::default() });
        port.release(held);
        self.left -= len;
        self.step(false)
    }

    /// Sends some of what goes by frames.
    fn go_on(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let mut sent = 0;
        while sent < FRAMES_AT_ONCE
            && let Some(run) = self.runs.front_mut()
        {
            let len = (run.end - run.at).min(port.frame_bytes() as u64);
            if !port.frame(message.local.part(run.at as usize, len as usize), run.at) {
                break;
            }
            sent += 1;
            run.at += len;
            if run.at < run.end {
                continue;
            }
            if let Some(offset) = run.block {
                let fin = Fragment { offset, len: run.end - offset, flags: BY_FRAMES, ..Fragment::default() };
                port.tell(FrameType::Fin, fin);
                self.left -= fin.len;
            }
            self.runs.pop_front();
        }
        self.step(sent > 0)
    }

    fn step(&self, moved: bool) -> Step {
        Step::of_frames(self.runs.is_empty(), self.left, moved)
    }
}

/// The receiving side.
#[derive(Debug, Default)]
pub(crate) enum Receiver {
    /// Not matched.
    #[default]
    Idle,
    /// Frames come in, and blocks are written.
    Exposing(Box<Exposing>),
}

/// What a receiver still expects.
#[derive(Debug)]
pub(crate) struct Exposing {
    /// Where frames below the RDMA offset begin, and the RDMA offset.
    framed: (u64, u64),
    /// Bytes of these that have not come.
    streaming: u64,
    /// Where the next block begins.
    next: u64,
    blocks: Vec<Block>,
    /// Bytes given to each adapter so far.
    given: [u64; RAILS],
}

/// A block that the sender may write.
#[derive(Clone, Copy, Debug)]
struct Block {
    offset: u64,
    len: u64,
    /// Bytes without a FIN.
    left: u64,
    /// `None` if it goes by frames.
    held: Option<Held>,
}

impl Block {
    fn covers(&self, offset: u64, len: u64) -> bool {
        offset >= self.offset && offset.checked_add(len).is_some_and(|end| end <= self.offset + self.len)
    }
}

impl Mover for Receiver {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        let step = match (&mut *self, what) {
            (Receiver::Idle, Happening::Matched(_, along)) => {
                let mut exposing = Box::new(Exposing::new(along, message, port));
                let step = exposing.go_on(message, port);
                *self = Receiver::Exposing(exposing);
                step
            }
            (Receiver::Exposing(e), Happening::Look) => e.go_on(message, port),
            (Receiver::Exposing(e), Happening::Data(offset, data)) => e.data(offset, data, message, port),
            (Receiver::Exposing(e), Happening::Fin(fin)) => e.fin(&fin, message, port),
            _ => Step::Illegal,
        };
        if step == Step::Done {
            *self = Self::Idle;
        }
        step
    }

    fn retreat(&mut self, port: &mut impl Port) {
        if let Receiver::Exposing(exposing) = std::mem::take(self) {
            exposing.blocks.iter().filter_map(|block| block.held).for_each(|held| port.release(held));
        }
    }
}

impl Exposing {
    /// Decides up to where frames go, and says so.
    fn new(along: u64, message: &Message, port: &mut impl Port) -> Exposing {
        let len = message.local.len as u64;
        let offset = (port.tuning().rdma_offset_bytes as u64).max(along).min(len);
        port.tell(FrameType::Ack, Fragment { offset, len, ..Fragment::default() });
        Exposing {
            framed: (along, offset),
            streaming: offset - along,
            next: offset,
            blocks: Vec::new(),
            given: [0; RAILS],
        }
    }

    /// Registers a block if one may be under way, and comes back for the next one: what arrives
    /// meanwhile, above all frames, must not wait for all of them.
    fn go_on(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let may = self.blocks.len() < port.tuning().depth.max(1);
        let exposed = may && self.next < message.local.len as u64 && self.expose(message, port);
        match self.step(message) {
            Step::Going if exposed => Step::Moved,
            step => step,
        }
    }

    /// Registers a block and tells the sender; false if there is no memory for it now.
    fn expose(&mut self, message: &Message, port: &mut impl Port) -> bool {
        let offset = self.next;
        let (behind, span) = message.block(offset, message.local.len as u64, port.tuning().block_bytes);
        let (len, rail) = (behind - offset, self.rail(port));
        let told = Fragment { offset, len, rail: rail as u16, ..Fragment::default() };
        let held = port.hold(rail, span, Rights::REMOTE_WRITE, message.keeps()).ok();
        match held {
            Some(held) => {
                let addr = (message.local.addr + offset as usize) as u64;
                port.tell(FrameType::Ready, Fragment { addr, key: held.region.remote, ..told });
            }
            // One that is on the wire gives its registration back soon.
            None if !self.blocks.is_empty() => return false,
            None => port.tell(FrameType::Ready, Fragment { flags: BY_FRAMES, ..told }),
        }
        self.given[rail] += len;
        self.blocks.push(Block { offset, len, left: len, held });
        self.next = behind;
        true
    }

    /// The adapter that has been given least, measured by its share.
    fn rail(&self, port: &impl Port) -> usize {
        let share = |rail: &usize| self.given[*rail] as f64 / port.tuning().rails[*rail].max(1) as f64;
        let rails = 0..port.rails().clamp(1, RAILS);
        rails.min_by(|a, b| share(a).total_cmp(&share(b))).expect("there is at least one")
    }

    /// A frame below the RDMA offset, or one of a block that goes by frames.
    fn data(&mut self, offset: u64, data: Span, message: &Message, port: &mut impl Port) -> Step {
        let (first, behind) = self.framed;
        let len = data.len as u64;
        let inside = offset >= first && offset.checked_add(len).is_some_and(|end| end <= behind);
        if inside && len <= self.streaming {
            self.streaming -= len;
        } else if !self.blocks.iter().any(|block| block.covers(offset, len)) {
            return Step::Illegal;
        }
        port.copy(message.local.addr + offset as usize, data.addr, data.len);
        self.step(message)
    }

    /// A block, or a part of it, is there.
    fn fin(&mut self, fin: &Fragment, message: &Message, port: &mut impl Port) -> Step {
        let meant = |b: &Block| b.covers(fin.offset, fin.len) && fin.len > 0 && fin.len <= b.left;
        let Some(at) = self.blocks.iter().position(meant) else { return Step::Illegal };
        self.blocks[at].left -= fin.len;
        if self.blocks[at].left == 0
            && let Some(held) = self.blocks.remove(at).held
        {
            port.release(held);
        }
        self.go_on(message, port)
    }

    fn step(&self, message: &Message) -> Step {
        let ended = self.streaming == 0 && self.blocks.is_empty() && self.next == message.local.len as u64;
        if ended { Step::Done } else { Step::Going }
    }
}
