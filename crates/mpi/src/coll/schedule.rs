//! The one representation of a collective: a straight-line program per rank.
//!
//! A program is what a rank would do if it were alone: post sends and receives, wait for some of
//! them, copy, reduce. Posting and waiting are separate steps, so a program can keep many messages
//! in flight (pipelines, bounded windows) and yet needs no graph: its order is the dependency.
//! [`Schedule::advance`] runs it as far as it can without waiting, through [`Io`]; so a blocking
//! call, a request and a persistent request are the same thing driven differently. Addresses are
//! relative to two buffers and a scratch area, so a program can be run again on other buffers.
//!
//! ```text
//!            start(tag)            advance: all steps done
//!   idle ───────────────▶ running ─────────────────────────▶ idle
//!                          │   ▲
//!      Reduce by user's op │   │ called()
//!                          ▼   │
//!                         calling
//! ```
use std::sync::Arc;

pub use super::io::{Data, Io, OpId};
pub use super::program::{Base, Buf, Lands, Program, Step};
use super::scratch::Scratch;
use super::tag::{Collective, Tag};
use super::ty::Type;
use crate::datatype::basic::Basic;
use crate::error::{Class, Error, Result, fail};
use crate::handle::Handle;
use crate::mem;
use crate::op::{self, Op, Predefined};
use fabric::Span;

/// Polls without success between two looks for the reason: rare enough to cost nothing, often
/// enough to be prompt for a person.
const PATIENCE: u32 = 1024;

/// From this length on it pays to write once what several ranks read.
const SHARED_BYTES: u64 = 2048;

/// From this length on a message is combined where it lies: the copy of a shorter one costs less than to look there. Those of the unit tests are
/// short.
const COMBINED_BYTES: u64 = if cfg!(test) { 1 } else { 1024 };

/// So much is still in the nearest cache after it has been copied.
const NEAR_BYTES: usize = 8192;

/// A call of a user-defined reduction that the caller of [`Schedule::advance`] makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserReduce {
    /// Address of the C function.
    pub function: usize,
    /// Whether it takes an `MPI_Count` length (`MPI_Op_create_c`).
    pub large: bool,
    /// Its `invec`.
    pub in_addr: usize,
    /// Its `inoutvec`.
    pub inout_addr: usize,
    /// Its length.
    pub count: u64,
    /// Its datatype.
    pub datatype: Handle,
    /// Distance between elements, for lengths beyond what the function can be told at once.
    pub extent: i64,
}

/// How far a schedule has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The collective is complete on this rank.
    Done,
    /// A message is being waited for.
    Pending,
    /// Call this, then [`Schedule::called`], then advance again.
    Call(UserReduce),
}

#[derive(Clone, Copy, Debug)]
struct Message {
    id: OpId,
    peer: u32,
    /// Bytes a receive must bring; `None` for a send.
    expect: Option<u64>,
}

/// A program being run, or ready to be run (again).
#[derive(Debug)]
pub struct Schedule {
    program: Arc<Program>,
    /// The program of the call, once its sequel is run.
    first: Option<Arc<Program>>,
    send: usize,
    recv: usize,
    temp: Scratch,
    /// Buffers that belong to the library: they live as long as messages may use them.
    words: Box<[u64]>,
    tag: Tag,
    pc: usize,
    calling: bool,
    messages: Vec<Message>,
    /// All messages before this one are done.
    settled: usize,
    /// Polls without success since something moved.
    idle: u32,
    /// When the run began, where that is kept account of.
    since_ns: Option<u64>,
}

impl Schedule {
    /// A program on the buffers of a call.
    pub fn new(program: Arc<Program>, send: usize, recv: usize) -> Result<Schedule> {
        let temp = Scratch::new(program.temp_bytes)?;
        let messages = Vec::with_capacity(program.messages as usize);
        Ok(Schedule {
            tag: Tag::idle(program.kind),
            program,
            first: None,
            send,
            recv,
            temp,
            words: Box::default(),
            pc: 0,
            calling: false,
            messages,
            settled: 0,
            idle: 0,
            since_ns: None,
        })
    }

    /// Takes over the memory that its buffers lie in: a collective of the library itself, which
    /// may fail while messages are under way.
    pub fn own(&mut self, words: Box<[u64]>) {
        self.words = words;
    }

    /// What [`Schedule::own`] was given, with what has been received.
    pub fn words(&self) -> &[u64] {
        // The engine wrote through the address.
        std::hint::black_box(&self.words)
    }

    /// To be called when it is kept idle: gives up memory that others may use.
    #[inline]
    pub fn rest(&mut self) {
        self.temp.rest();
    }

    /// Moves an idle schedule to other buffers.
    pub fn rebase(&mut self, send: usize, recv: usize) {
        assert!(self.messages.is_empty(), "a running schedule cannot move");
        (self.send, self.recv) = (send, recv);
    }

    /// Begins a run; every rank of the communicator uses the same tag for the same collective.
    pub fn start(&mut self, tag: Tag) {
        debug_assert_eq!(tag.kind(), Some(self.program.kind));
        if let Some(first) = self.first.take() {
            self.program = first;
        }
        self.tag = tag.signed(self.program.algorithm, self.program.root);
        self.pc = 0;
        self.calling = false;
        self.messages.clear();
        self.settled = 0;
        self.since_ns = None;
    }

    /// Whether it moves nothing, here and later, so that it is over when it starts.
    #[inline(always)]
    pub fn is_nothing(&self) -> bool {
        self.program.steps.is_empty() && self.program.sequel.is_none() && self.first.is_none()
    }

    /// The program of the call.
    pub fn program(&self) -> &Arc<Program> {
        self.first.as_ref().unwrap_or(&self.program)
    }

    /// The tag of the current or last run.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Runs on as far as possible. After an error the run is over; [`Schedule::in_flight`] names
    /// what the transport still holds.
    #[inline]
    pub fn advance(&mut self, io: &mut impl Io) -> Result<Progress> {
        if self.calling {
            return Ok(Progress::Pending); // another thread looks around meanwhile
        }
        if self.pc == 0 {
            if self.temp.bytes() < self.program.temp_bytes {
                self.temp = Scratch::new(self.program.temp_bytes)?;
            }
            if self.since_ns.is_none() {
                self.since_ns = io.now_ns();
            }
        }
        loop {
            match self.run(io)? {
                Progress::Done => {}
                other => return Ok(other),
            }
            self.messages.clear();
            self.settled = 0;
            if !self.goes_on()? {
                break;
            }
        }
        if let Some(since_ns) = self.since_ns.take() {
            io.ended(self.program(), since_ns);
        }
        Ok(Progress::Done)
    }

    /// Runs the steps of one program, to the end of all its messages.
    #[inline]
    fn run(&mut self, io: &mut impl Io) -> Result<Progress> {
        while let Some(&step) = self.program.steps.get(self.pc) {
            match step {
                Step::Send { buf, .. } if self.is_sent_on(&buf) && self.send_all(&buf, io) => continue,
                Step::Send { peer, buf } => self.begin_send(peer, &buf, io)?,
                Step::Recv { peer, buf, combined } => self.begin_receive(peer, &buf, combined, io)?,
                Step::Wait(message) => {
                    if !self.settle(message as usize, io)? {
                        return Ok(Progress::Pending);
                    }
                }
                Step::WaitAll => {
                    if !self.settle_all(io)? {
                        return Ok(Progress::Pending);
                    }
                }
                Step::Copy { from, to } => self.copy(&from, &to),
                Step::Reduce { from, inout } => {
                    if let Some(call) = self.reduce(&from, &inout)? {
                        self.calling = true;
                        return Ok(Progress::Call(call));
                    }
                }
                Step::Combine { message, from, inout, lands } => {
                    match self.combine(message as usize, (from, inout, lands), io)? {
                        None => return Ok(Progress::Pending),
                        Some(None) => {}
                        Some(Some(call)) => {
                            self.calling = true;
                            return Ok(Progress::Call(call));
                        }
                    }
                }
                Step::Expect { word, bytes, from, to } => self.compare(&word, bytes, (from, to), io)?,
            }
            self.pc += 1;
        }
        Ok(if self.settle_all(io)? { Progress::Done } else { Progress::Pending })
    }

    #[inline]
    fn begin_send(&mut self, peer: u32, buf: &Buf, io: &mut impl Io) -> Result {
        let id = match self.pc < self.program.contributions && self.reads_in_place(buf) {
            true => io.isend_combined(peer as usize, self.tag, self.data(buf))?,
            false => io.isend(peer as usize, self.tag, self.data(buf))?,
        };
        self.messages.push(Message { id, peer, expect: None });
        Ok(())
    }

    #[inline]
    fn begin_receive(&mut self, peer: u32, buf: &Buf, combined: bool, io: &mut impl Io) -> Result {
        let id = match combined && self.reads_in_place(buf) {
            true => io.irecv_combined(peer as usize, self.tag, self.data(buf))?,
            false => io.irecv(peer as usize, self.tag, self.data(buf))?,
        };
        self.messages.push(Message { id, peer, expect: Some(self.bytes(buf)) });
        Ok(())
    }

    /// Whether there is more to run: what the numbers that have come ask for.
    #[inline]
    fn goes_on(&mut self) -> Result<bool> {
        if self.first.is_some() {
            self.temp.rest(); // what a leader has needed for others may be much
        } else if let Some(sequel) = &self.program.sequel {
            let (at, len) = (self.address(&sequel.words), self.bytes(&sequel.words) as usize);
            let rest = mem::with(at, len, |bytes| sequel.follow(&self.program, bytes))?;
            self.temp.enlarge(rest.temp_bytes)?;
            self.first = Some(std::mem::replace(&mut self.program, Arc::new(rest)));
            self.pc = 0;
            return Ok(true);
        }
        Ok(false)
    }

    fn compare(&self, word: &Buf, bytes: u64, (from, to): (u32, u32), io: &impl Io) -> Result {
        let told = u64::from_ne_bytes(mem::short(self.address(word), size_of::<u64>()));
        if told == bytes {
            return Ok(());
        }
        let (from, to, kind) = (io.name(from as usize), io.name(to as usize), self.program.kind.name());
        let text = format!(
            "{from} sends {told} bytes to {to} in this {kind}, whose count and datatype ask for {bytes}"
        );
        fail(Class::TRUNCATE, text)
    }

    /// Whether the next step sends the same data to another rank, and so much that this matters.
    #[inline]
    fn is_sent_on(&self, buf: &Buf) -> bool {
        matches!(self.program.steps.get(self.pc + 1), Some(Step::Send { buf: next, .. }) if next == buf)
            && self.bytes(buf) >= SHARED_BYTES
    }

    /// Sends to all ranks to which the steps from here on send the same data; whether it has left for any.
    #[cold]
    fn send_all(&mut self, buf: &Buf, io: &mut impl Io) -> bool {
        let same = |step: &Step| match step {
            Step::Send { peer, buf: next } if next == buf => Some(*peer as usize),
            _ => None,
        };
        let mut peers: Vec<usize> = self.program.steps[self.pc..].iter().map_while(same).collect();
        if Collective::NEIGHBOR.contains(&self.program.kind) {
            // Several edges may lead to one rank; what is written once goes to different ones.
            let again = (1..peers.len()).find(|at| peers[..*at].contains(&peers[*at]));
            peers.truncate(again.unwrap_or(peers.len()));
        }
        let left = io.send_all(&peers, self.tag, self.data(buf));
        let done = |peer: &usize| Message { id: OpId::DONE, peer: *peer as u32, expect: None };
        self.messages.extend(peers[..left].iter().map(done));
        self.pc += left;
        left > 0
    }

    /// The user function of the last [`Progress::Call`] has returned.
    pub fn called(&mut self) {
        assert!(std::mem::take(&mut self.calling), "called() without a call");
        self.pc += 1;
    }

    /// Messages the transport has not reported done: (peer, identity), to be cancelled after an
    /// error and to be named when a hang is explained.
    pub fn in_flight(&self) -> impl Iterator<Item = (usize, OpId)> + '_ {
        self.messages.iter().filter(|m| m.id != OpId::DONE).map(|m| (m.peer as usize, m.id))
    }

    /// Ranks with which this one has messages under way or still to begin.
    pub fn partners(&self) -> impl Iterator<Item = usize> + '_ {
        let to_come = self.program.steps.get(self.pc..).unwrap_or_default().iter();
        let to_come = to_come.filter_map(|step| match step {
            Step::Send { peer, .. } | Step::Recv { peer, .. } => Some(*peer as usize),
            _ => None,
        });
        self.in_flight().map(|(peer, _)| peer).chain(to_come)
    }

    #[inline]
    fn settle(&mut self, index: usize, io: &mut impl Io) -> Result<bool> {
        let message = self.messages[index];
        if message.id == OpId::DONE {
            return Ok(true);
        }
        let polled = io.poll(message.id);
        self.polled(index, polled, io)
    }

    /// What was heard of a message: whether it is done.
    #[inline]
    fn polled(&mut self, index: usize, polled: Option<Result<u64>>, io: &mut impl Io) -> Result<bool> {
        let message = self.messages[index];
        let Some(result) = polled else {
            self.idle = self.idle.wrapping_add(1);
            if self.idle.is_multiple_of(PATIENCE) || io.is_asleep() {
                self.look_for_reason(&message, io)?;
            }
            return Ok(false);
        };
        self.idle = 0;
        self.messages[index].id = OpId::DONE;
        let bytes = result.map_err(|error| self.blame(error, &io.name(message.peer as usize)))?;
        match message.expect {
            Some(expected) if bytes != expected => {
                self.mismatch(&io.name(message.peer as usize), bytes, expected)
            }
            _ => Ok(true),
        }
    }

    #[inline]
    fn settle_all(&mut self, io: &mut impl Io) -> Result<bool> {
        while self.settled < self.messages.len() {
            if !self.settle(self.settled, io)? {
                return Ok(false);
            }
            self.settled += 1;
        }
        Ok(true)
    }

    /// A rank that waits for a message may find one of another collective instead, or of the same
    /// one called otherwise.
    #[cold]
    fn look_for_reason(&self, message: &Message, io: &mut impl Io) -> Result {
        if let Some(error) = io.given_up() {
            return Err(error);
        }
        if message.expect.is_none() {
            return Ok(());
        }
        let found = io.unclaimed(message.peer as usize);
        match found.and_then(|found| self.tag.conflict(found, &io.name(message.peer as usize))) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    #[cold]
    fn mismatch(&self, peer: &str, bytes: u64, expected: u64) -> Result<bool> {
        let kind = self.program.kind.name();
        fail(
            Class::TRUNCATE,
            format!(
                "{peer} sent {bytes} bytes in this {kind}, but count and datatype here ask for {expected}"
            ),
        )
    }

    #[cold]
    fn blame(&self, error: Error, peer: &str) -> Error {
        Error::new(
            error.class,
            format!("{} (message with {peer} in this {})", error.text, self.program.kind.name()),
        )
    }

    #[inline]
    fn address(&self, buf: &Buf) -> usize {
        let base = match buf.base {
            Base::Send => self.send,
            Base::Recv => self.recv,
            Base::Temp => self.temp.address(),
            Base::Words => self.program.words.as_ptr() as usize,
        };
        base.wrapping_add_signed(buf.offset as isize)
    }

    #[inline]
    fn bytes(&self, buf: &Buf) -> u64 {
        buf.count * self.program.types[buf.ty as usize].size
    }

    #[inline]
    fn data(&self, buf: &Buf) -> Data<'_> {
        let ty = &self.program.types[buf.ty as usize];
        let addr = self.address(buf);
        if ty.dense {
            Data::Bytes { addr, len: buf.count * ty.size }
        } else {
            Data::Typed { addr, count: buf.count, ty }
        }
    }

    fn copy(&self, from: &Buf, to: &Buf) {
        debug_assert_eq!(self.bytes(from), self.bytes(to));
        let types = &self.program.types;
        Type::copy(
            (&types[from.ty as usize], from.count, self.address(from)),
            (&types[to.ty as usize], to.count, self.address(to)),
        );
    }

    /// Whether a message may be combined where it lies: operations of the application want their operands as a whole.
    #[inline]
    fn reads_in_place(&self, buf: &Buf) -> bool {
        self.bytes(buf) >= COMBINED_BYTES
            && self.program.op.as_ref().is_some_and(|op| op.predefined().is_some())
    }

    /// Combines with a message as it comes. `None` if it has not come as a whole; then maybe a call that does the rest.
    fn combine(
        &mut self,
        index: usize,
        (from, inout, lands): (Buf, Buf, Lands),
        io: &mut impl Io,
    ) -> Result<Option<Option<UserReduce>>> {
        let id = self.messages[index].id;
        let mut is_read = false;
        if id != OpId::DONE {
            let ty = &self.program.types[from.ty as usize];
            let known = self.program.op.as_ref().and_then(Op::predefined);
            let known = known.map(|op| Ok((op, op::element(op, ty.basic, ty.handle)?))).transpose()?;
            let (left, right) = (self.address(&from), self.address(&inout));
            let polled = io.poll_combined(id, &mut |at, piece| {
                let (op, basic) = known.expect("it was asked for where the operation is known");
                combine_piece((op, basic), piece, (left + at, right + at), lands);
            });
            is_read = polled.as_ref().is_some_and(|polled| polled.1);
            if !self.polled(index, polled.map(|polled| polled.0), io)? {
                return Ok(None);
            }
        }
        if is_read { Ok(Some(None)) } else { self.reduce(&from, &inout).map(Some) }
    }

    fn reduce(&self, from: &Buf, inout: &Buf) -> Result<Option<UserReduce>> {
        debug_assert_eq!((from.count, from.ty), (inout.count, inout.ty));
        let ty = &self.program.types[from.ty as usize];
        let (in_addr, inout_addr, count) = (self.address(from), self.address(inout), from.count);
        match self.program.op.as_ref().expect("a program that reduces has an operation") {
            Op::User(user) => Ok(Some(UserReduce {
                function: user.function,
                large: user.large,
                in_addr,
                inout_addr,
                count,
                datatype: ty.handle,
                extent: ty.extent,
            })),
            Op::Predefined(op) => {
                let basic = op::element(*op, ty.basic, ty.handle)?;
                let len = count as usize * ty.extent as usize;
                mem::with(in_addr, len, |a| mem::with_mut(inout_addr, len, |b| op::apply(*op, basic, a, b)));
                Ok(None)
            }
        }
    }
}

/// Combines with a piece of a message: where the operands lie that belong to it, of which it is one.
fn combine_piece((op, basic): (Predefined, Basic), piece: Span, (from, inout): (usize, usize), lands: Lands) {
    for at in (0..piece.len).step_by(NEAR_BYTES) {
        let Span { addr, len } = piece.part(at, NEAR_BYTES);
        let (left, right) = match lands {
            Lands::From => (addr, inout + at),
            Lands::Inout => {
                mem::copy(inout + at, addr, len);
                (from + at, inout + at)
            }
        };
        mem::with(left, len, |a| mem::with_mut(right, len, |b| op::apply(op, basic, a, b)));
    }
}
