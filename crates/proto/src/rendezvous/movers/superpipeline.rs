//! Copy superpipeline.
//!
//! Wins for long messages from buffers that do not come back, where registration is dear: no memory
//! of the application is registered at all, and the first message is as fast as the best. Costs both
//! cores the copies, and some per cent of the bandwidth; both sides must be inside MPI
//! (superpipeline paper, section 4):
//! - chunks grow by `q = Bcopy/Bnet` (5), so that chunk `i+1` is copied while chunk `i` travels; the
//!   gaps are `O(log L)` (7);
//! - the receiver copies blocks of a page as their flags land, one behind the adapter;
//! - the first chunk, `C0 = Bcopy·2λ`, is copied while the handshake takes place;
//! - chunks are folded into three buffers: chunk `i` leaves once chunk `i-2` is acknowledged.
//!
//! ```text
//! T(L) = b/Bcopy + g·log_q(1 + L/C0·(q - 1)) + λ + L/Bnet     (9)
//!
//! sender                          receiver
//!   RTS(plan) ──────────────────▶ match, take a slab, clear the flags of chunks 0 and 1
//!   copy chunk 0     ◀────── ACK
//!     ── RDMA Write chunk 0 ────▶ copy out block by block
//!   copy chunk 1
//!     ── RDMA Write chunk 1 ────▶ chunk 0 is empty: clear the flags of chunk 2
//!   copy chunk 2   ◀── READY 0    copy out chunk 1 …
//!     ── RDMA Write chunk 2 ────▶
//! ```
//! A flag is the number of the slab's use and of the chunk. The receiver clears the words where
//! flags will lie before it lets the chunk come, so that neither payload nor an older flag that
//! lies there is taken for one. Where a device does not promise that bytes become visible in order,
//! the sender tells FIN for each chunk instead, behind it.

use super::chunks::{Chunk, Chunks, Plan};
use super::port::Port;
use super::{Happening, Message, Mover, Step, TELL, copy_pipeline};
use crate::choice::tuning::{Tuning, WINDOW};
use crate::choice::way::Protocol;
use crate::event::Event;
use crate::memory::staging::{BUFFERS, Slab, Use};
use fabric::{Fault, Remote};
use std::collections::VecDeque;
use wire::head::FrameType;
use wire::long::{Fragment, LongRts, RAILS};

/// How a message is cut.
fn plan(message: &Message, tuning: &Tuning) -> Plan {
    match message.protocol {
        Some(Protocol::CopyPipeline) => copy_pipeline::plan(message.len, tuning),
        _ => Plan::growing(tuning.first_chunk_bytes, tuning.growth, tuning),
    }
}

/// Whether a receiver names a slab that can be: a number, an adapter, memory for all buffers.
fn fits(ack: &Fragment, plan: &Plan, rails: usize) -> bool {
    let end = ack.addr.checked_add(plan.slab_len() as u64);
    ack.offset <= u32::MAX as u64 && (ack.rail as usize) < rails.min(RAILS) && end.is_some()
}

/// What says that a block has landed. Its last byte is never zero, so a cleared word that has become
/// this one has landed to its end, and nothing of the write comes after it.
fn flag(number: u32, chunk: &Chunk) -> u64 {
    1 << 63 | (number as u64) << 32 | (chunk.index as u64 + 1)
}

/// The sending side.
#[derive(Debug, Default)]
pub(crate) enum Sender {
    /// The RTS has not left.
    #[default]
    Idle,
    /// The RTS is out; the first chunk lies in the slab, if there was one.
    Asked(Plan, Option<Slab>),
    /// The receiver is ready, and all slabs are in use.
    Waiting(Plan, Fragment),
    /// Chunks travel.
    Moving(Box<Moving>),
}

/// What a sender is about.
#[derive(Debug)]
pub(crate) struct Moving {
    plan: Plan,
    slab: Slab,
    /// Where the receiver's slab is, and its number.
    target: Fragment,
    chunks: Chunks,
    /// The first chunk has been copied during the handshake.
    is_ahead: bool,
    /// Copied, waiting for an acknowledgement.
    copied: Option<Chunk>,
    /// Chunks in the hands of the adapter, by buffer.
    flying: [Option<Chunk>; BUFFERS],
    /// Chunks that have been written and of which the receiver wants to be told, in order.
    untold: VecDeque<Chunk>,
    acknowledged: u32,
    written: u32,
}

impl Mover for Sender {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        let step = match (&mut *self, what) {
            (Sender::Idle, Happening::Start) => self.start(message, port),
            (Sender::Asked(plan, slab), Happening::Ack(ack))
                if ack.len <= message.len && fits(&ack, plan, port.rails()) =>
            {
                let (plan, slab) = (*plan, slab.take());
                self.answered(plan, slab, ack, message, port)
            }
            (Sender::Waiting(plan, ack), Happening::Look) => {
                let (plan, ack) = (*plan, *ack);
                self.answered(plan, None, ack, message, port)
            }
            (Sender::Moving(m), Happening::Ready(told)) if m.is_acknowledged_by(&told) => {
                m.acknowledged += 1;
                m.go_on(message, port)
            }
            (Sender::Moving(m), Happening::Completed(work)) => m.completed(work, message, port),
            (Sender::Moving(_), Happening::Look) => Step::Going,
            _ => Step::Illegal,
        };
        if step == Step::Done {
            *self = Self::Idle;
        }
        step
    }

    fn retreat(&mut self, port: &mut impl Port) {
        match std::mem::take(self) {
            Sender::Asked(_, Some(slab)) => port.unstage(slab),
            Sender::Moving(moving) => port.unstage(moving.slab),
            _ => {}
        }
    }

    fn is_unanswered(&self, _port: &impl Port) -> bool {
        matches!(self, Sender::Idle | Sender::Asked(..))
    }
}

impl Sender {
    /// RTS, then the first chunk while it travels.
    fn start(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let Ok(slab) = port.stage(Use::Early) else { return Step::Frames };
        let plan = plan(message, port.tuning());
        let (protocol, keys) = (message.number(), plan.encode());
        if !port.request(LongRts { len: message.len, protocol, keys, ..LongRts::default() }, 0) {
            slab.into_iter().for_each(|slab| port.unstage(slab));
            return Step::NoRoom;
        }
        if message.protocol == Some(Protocol::Superpipeline)
            && let (Some(slab), Some(chunk)) = (&slab, plan.chunks(message.len).next())
        {
            copy_in(&plan, slab, &chunk, message, port);
        }
        *self = Sender::Asked(plan, slab);
        Step::Going
    }

    fn answered(
        &mut self,
        plan: Plan,
        slab: Option<Slab>,
        ack: Fragment,
        message: &Message,
        port: &mut impl Port,
    ) -> Step {
        let is_ahead = slab.is_some() && message.protocol == Some(Protocol::Superpipeline);
        let slab = match slab.map_or_else(|| port.stage(Use::Granted), |slab| Ok(Some(slab))) {
            Ok(Some(slab)) => slab,
            Ok(None) => {
                *self = Sender::Waiting(plan, ack);
                return Step::Looking;
            }
            Err(fault) => {
                *self = Sender::Idle;
                return Step::Failed(fault);
            }
        };
        let mut moving = Box::new(Moving {
            plan,
            slab,
            target: ack,
            chunks: plan.chunks(ack.len),
            is_ahead,
            copied: None,
            flying: [None; BUFFERS],
            untold: VecDeque::new(),
            acknowledged: 0,
            written: 0,
        });
        let step = moving.go_on(message, port);
        *self = Sender::Moving(moving);
        step
    }
}

impl Moving {
    /// Acknowledgements come in order, and not before what they acknowledge.
    fn is_acknowledged_by(&self, told: &Fragment) -> bool {
        told.offset == self.acknowledged as u64 && self.acknowledged < self.written
    }

    /// Copies and writes as far as buffers and acknowledgements go.
    fn go_on(&mut self, message: &Message, port: &mut impl Port) -> Step {
        loop {
            if self.copied.is_none() {
                self.copied = self.copy_next(message, port);
            }
            let Some(chunk) = self.copied else { break };
            if chunk.index >= self.acknowledged + WINDOW {
                break;
            }
            self.write(&chunk, port);
            self.copied = None;
        }
        if self.copied.is_none() && self.flying == [None; BUFFERS] {
            port.unstage(self.slab);
            return Step::Done;
        }
        Step::Going
    }

    fn copy_next(&mut self, message: &Message, port: &mut impl Port) -> Option<Chunk> {
        let chunk = self.chunks.clone().next()?;
        if self.flying[chunk.index as usize % self.plan.buffers()].is_some() {
            return None;
        }
        self.chunks.next();
        if chunk.index > 0 || !self.is_ahead {
            copy_in(&self.plan, &self.slab, &chunk, message, port);
        }
        Some(chunk)
    }

    fn write(&mut self, chunk: &Chunk, port: &mut impl Port) {
        let rail = self.target.rail as usize;
        let buffer = self.plan.buffer(chunk);
        for block in self.plan.blocks(chunk, 0) {
            port.store(self.slab.span.addr + buffer + block.flag, flag(self.target.offset as u32, chunk));
        }
        let span = self.slab.span.part(buffer, self.plan.staged_len(chunk));
        let remote = Remote { addr: self.target.addr + buffer as u64, key: self.target.key };
        port.write(rail, self.slab.regions[rail].local(span), remote, chunk.index);
        port.emit(Event::ChunkWritten);
        self.flying[chunk.index as usize % self.plan.buffers()] = Some(*chunk);
        self.written += 1;
        if self.target.flags & TELL != 0 {
            self.untold.push_back(*chunk);
        }
    }

    fn completed(&mut self, work: u32, message: &Message, port: &mut impl Port) -> Step {
        let place = &mut self.flying[work as usize % self.plan.buffers()];
        if place.take_if(|chunk| chunk.index == work).is_none() {
            return Step::Illegal;
        }
        let (flying, rail) = (self.flying, self.target.rail);
        while let Some(chunk) = self.untold.pop_front_if(|chunk| !flying.contains(&Some(*chunk))) {
            let (offset, len) = (chunk.offset, chunk.len as u64);
            port.fin(Fragment { offset, len, rail, ..Fragment::default() });
        }
        self.go_on(message, port)
    }
}

/// Copies a chunk's payload into its buffer; flags follow when it leaves.
fn copy_in(plan: &Plan, slab: &Slab, chunk: &Chunk, message: &Message, port: &mut impl Port) {
    let (to, from) = (slab.span.addr + plan.buffer(chunk), message.local.addr + chunk.offset as usize);
    for block in plan.blocks(chunk, 0) {
        port.copy(to + block.at, from + block.offset, block.len);
    }
}

/// The receiving side.
#[derive(Debug, Default)]
pub(crate) enum Receiver {
    /// Not matched.
    #[default]
    Idle,
    /// All slabs are in use.
    Waiting(LongRts),
    /// Chunks come.
    Landing(Box<Landing>),
}

/// What a receiver is about.
#[derive(Debug)]
pub(crate) struct Landing {
    plan: Plan,
    slab: Slab,
    /// Those that may not come yet.
    chunks: Chunks,
    /// Those that may come.
    granted: VecDeque<Chunk>,
    /// Blocks of the first of these that have been copied.
    copied: usize,
}

impl Mover for Receiver {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        let told = !port.writes_in_order();
        let step = match (&mut *self, what) {
            (Receiver::Idle, Happening::Matched(rts, _)) => self.answer(rts, message, port),
            (Receiver::Waiting(rts), Happening::Look) => {
                let rts = *rts;
                self.answer(rts, message, port)
            }
            (Receiver::Landing(l), Happening::Look) if !told => l.look(message, port),
            (Receiver::Landing(_), Happening::Look) => Step::Going,
            (Receiver::Landing(l), Happening::Fin(fin)) if told && l.is_front(&fin) => {
                l.take_rest(message, port)
            }
            _ => Step::Illegal,
        };
        if step == Step::Done {
            *self = Self::Idle;
        }
        step
    }

    fn retreat(&mut self, port: &mut impl Port) {
        if let Receiver::Landing(landing) = std::mem::take(self) {
            port.unstage(landing.slab);
        }
    }
}

impl Receiver {
    fn answer(&mut self, rts: LongRts, message: &Message, port: &mut impl Port) -> Step {
        let slab = match port.stage(Use::Receive) {
            Ok(Some(slab)) => slab,
            Ok(None) => {
                *self = Receiver::Waiting(rts);
                return Step::Looking;
            }
            Err(_) if matches!(self, Receiver::Idle) => return Step::Frames,
            Err(fault) => return Step::Failed(fault),
        };
        let len = message.local.len as u64;
        let plan = Plan::decode(rts.keys, slab.span.len).filter(|plan| plan.numbers(len));
        let Some(plan) = plan else {
            port.unstage(slab);
            let what = format!("rank {} cuts its message in a way that does not fit here", message.peer);
            return Step::Failed(Fault::Device(what));
        };
        let mut landing =
            Landing { plan, slab, chunks: plan.chunks(len), granted: VecDeque::new(), copied: 0 };
        for _ in 0..WINDOW {
            landing.grant(port);
        }
        let rail = slab.number as usize % port.rails().clamp(1, RAILS);
        let told = !port.writes_in_order();
        let ack = Fragment {
            offset: slab.number as u64,
            len,
            addr: slab.span.addr as u64,
            key: slab.regions[rail].remote,
            rail: rail as u16,
            flags: if told { TELL } else { 0 },
        };
        port.tell(FrameType::Ack, ack);
        if landing.granted.is_empty() {
            port.unstage(slab);
            return Step::Done;
        }
        *self = Receiver::Landing(Box::new(landing));
        if told { Step::Going } else { Step::Looking }
    }
}

impl Landing {
    /// Prepares the buffer of the next chunk; false if there is none.
    fn grant(&mut self, port: &mut impl Port) -> bool {
        let Some(chunk) = self.chunks.next() else { return false };
        let buffer = self.slab.span.addr + self.plan.buffer(&chunk);
        self.plan.blocks(&chunk, 0).for_each(|block| port.store(buffer + block.flag, 0));
        self.granted.push_back(chunk);
        true
    }

    /// Copies the blocks of a chunk that have landed.
    fn look(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let Some(chunk) = self.granted.front().copied() else { return Step::Illegal };
        let before = self.copied;
        let buffer = self.slab.span.addr + self.plan.buffer(&chunk);
        let expected = flag(self.slab.number, &chunk);
        for block in self.plan.blocks(&chunk, before) {
            if port.load(buffer + block.flag) != expected {
                return if self.copied > before { Step::Moved } else { Step::Looking };
            }
            let to = message.local.addr + chunk.offset as usize + block.offset;
            port.copy(to, buffer + block.at, block.len);
            self.copied += 1;
        }
        match self.emptied(&chunk, port) {
            Step::Going => Step::Moved,
            step => step,
        }
    }

    /// The chunk that is expected has landed as a whole.
    fn is_front(&self, fin: &Fragment) -> bool {
        self.granted.front().is_some_and(|c| (c.offset, c.len as u64) == (fin.offset, fin.len))
    }

    fn take_rest(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let Some(chunk) = self.granted.front().copied() else { return Step::Illegal };
        let buffer = self.slab.span.addr + self.plan.buffer(&chunk);
        for block in self.plan.blocks(&chunk, 0) {
            let to = message.local.addr + chunk.offset as usize + block.offset;
            port.copy(to, buffer + block.at, block.len);
        }
        self.emptied(&chunk, port)
    }

    /// Acknowledges a chunk if another one waits for it.
    fn emptied(&mut self, chunk: &Chunk, port: &mut impl Port) -> Step {
        self.granted.pop_front();
        self.copied = 0;
        if self.grant(port) {
            port.tell(FrameType::Ready, Fragment { offset: chunk.index as u64, ..Fragment::default() });
        }
        if !self.granted.is_empty() {
            return Step::Going;
        }
        port.unstage(self.slab);
        Step::Done
    }
}
