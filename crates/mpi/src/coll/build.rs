//! Writing programs: what the algorithms are written in.
use super::combine;
use super::cost::Algorithm;
use super::levels::Spread;
use super::overlap::Reach;
use super::schedule::{Base, Buf, Program, Step};
use super::sequel::{Sequel, Write};
use super::tag::Collective;
use super::ty::Type;
use crate::op::Op;

/// The ranks an algorithm runs among: a communicator, or some of its ranks renumbered, so that an
/// algorithm can be a phase of another (two levels, folding to a power of two).
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// This rank's number among them.
    pub me: usize,
    /// How many there are.
    pub size: usize,
    members: Option<&'a [u32]>,
}

impl<'a> View<'a> {
    /// All ranks of a communicator.
    pub fn all(me: usize, size: usize) -> View<'a> {
        assert!(me < size);
        View { me, size, members: None }
    }

    /// The ranks listed, of which `me` is one's index.
    pub fn of(members: &'a [u32], me: usize) -> View<'a> {
        assert!(me < members.len());
        View { me, size: members.len(), members: Some(members) }
    }

    fn rank(&self, index: usize) -> u32 {
        self.members.map_or(index as u32, |m| m[index])
    }

    /// Number `distance` further round the ring.
    pub fn after(&self, distance: usize) -> usize {
        (self.me + distance) % self.size
    }

    /// Number `distance` back round the ring (at most one round).
    pub fn before(&self, distance: usize) -> usize {
        (self.me + self.size - distance) % self.size
    }
}

/// A program being written.
#[derive(Debug)]
pub struct Builder {
    steps: Vec<Step>,
    types: Vec<Type>,
    messages: u32,
    temp: u64,
    words: Vec<u64>,
    sequel: Option<Sequel>,
    /// Whether the operands of its reductions may change sides.
    pub commutes: bool,
    is_one_host: bool,
}

/// The longest contribution that goes by a block of shared memory. Those of the unit tests are short.
const PIECE_BYTES: u64 = if cfg!(test) { 64 } else { 256 << 10 };
/// Most pieces of a vector: this bounds the length of a program.
const PIECES_MAX: u64 = 1024;

/// The number of a message in a program, to be waited for.
#[derive(Clone, Copy, Debug)]
pub struct Posted(Option<u32>);

impl Default for Builder {
    fn default() -> Self {
        let (steps, types) = (Vec::with_capacity(8), vec![Type::bytes()]);
        Builder {
            steps,
            types,
            messages: 0,
            temp: 0,
            words: Vec::new(),
            sequel: None,
            commutes: false,
            is_one_host: false,
        }
    }
}

impl Builder {
    /// A program with this operation, if it has one, of ranks that are spread like this.
    pub fn reducing(op: Option<&Op>, spread: &Spread) -> Builder {
        let is_one_host = matches!(spread, Spread::OneHost);
        Builder { commutes: op.is_none_or(Op::commutes), is_one_host, ..Builder::default() }
    }

    /// A vector in pieces of which each of `ranks` ranks' share can be combined where it lies, as far as that is possible: where each begins, and how many
    /// elements it has. The same on all ranks.
    pub fn pieces(&self, vector: Buf, ranks: u64) -> Vec<(u64, u64)> {
        let ty = &self.types[vector.ty as usize];
        let most = (PIECE_BYTES / ty.size.max(1)).max(1) * ranks;
        let pieces =
            if self.is_one_host && ty.dense { vector.count.div_ceil(most).min(PIECES_MAX) } else { 1 };
        let split = Split { total: vector.count, parts: pieces.max(1) };
        (0..split.parts as usize).map(|at| (split.start(at), split.len(at, at + 1))).collect()
    }

    /// A program behind another one, whose types and scratch memory are there still.
    pub fn after(first: &Program) -> Builder {
        Builder { types: first.types.clone(), temp: first.temp_bytes as u64, ..Builder::default() }
    }

    /// The finished program.
    pub fn finish(
        self,
        kind: Collective,
        algorithm: Option<Algorithm>,
        root: Option<u32>,
        op: Option<Op>,
    ) -> Program {
        let steps = combine::combine(self.steps, &self.types);
        Program {
            kind,
            algorithm,
            root,
            contributions: if op.is_some() { combine::contributions(&steps) } else { 0 },
            steps,
            types: self.types,
            op,
            temp_bytes: self.temp as usize,
            messages: self.messages,
            words: self.words,
            sequel: self.sequel,
            reach: Reach::default(),
            chosen: None,
        }
    }

    /// The index of a type in the program.
    pub fn ty(&mut self, ty: &Type) -> u32 {
        let known = self.types.iter().take(8).position(|t| t.same(ty));
        known.unwrap_or_else(|| {
            self.types.push(ty.clone());
            self.types.len() - 1
        }) as u32
    }

    /// `count` elements of `ty` at a base.
    pub fn buf(&mut self, base: Base, count: u64, ty: &Type) -> Buf {
        Buf { offset: 0, count, ty: self.ty(ty), base }
    }

    /// Scratch memory for that many bytes.
    pub fn temp(&mut self, bytes: u64) -> Buf {
        let offset = self.temp.next_multiple_of(16);
        self.temp = offset + bytes;
        Buf { offset: offset as i64, count: bytes, ty: 0, base: Base::Temp }
    }

    /// Numbers that can be sent and copied.
    pub fn words(&mut self, numbers: &[u64]) -> Buf {
        let offset = size_of_val(&*self.words) as i64;
        self.words.extend_from_slice(numbers);
        Buf { offset, count: size_of_val(numbers) as u64, ty: 0, base: Base::Words }
    }

    /// Ends the program with the numbers that have come into `words`, none above `most`: they say what follows.
    pub fn then(&mut self, words: Buf, most: u64, write: Box<Write>) {
        self.wait_all();
        self.sequel = Some(Sequel { words, most, write });
    }

    /// The number at `word` is what `from` says that it sends to `to`: it must be `bytes`.
    pub fn expect(&mut self, word: Buf, bytes: u64, from: u32, to: u32) {
        self.steps.push(Step::Expect { word, bytes, from, to });
    }

    /// Scratch memory laid out like `buf`, as reductions need it.
    pub fn temp_like(&mut self, buf: Buf) -> Buf {
        if buf.count == 0 {
            return Buf { offset: 0, base: Base::Temp, ..buf };
        }
        let ty = &self.types[buf.ty as usize];
        let stride = (buf.count - 1) as i64 * ty.extent;
        let below = ty.true_lb + stride.min(0);
        let space = self.temp((ty.true_extent.max(0) + stride.abs()) as u64);
        Buf { offset: space.offset - below, base: Base::Temp, ..buf }
    }

    /// Bytes of data in a buffer.
    pub fn bytes(&self, buf: Buf) -> u64 {
        buf.count * self.types[buf.ty as usize].size
    }

    /// Elements `from ..from + count` of a buffer.
    pub fn part(&self, buf: Buf, from: u64, count: u64) -> Buf {
        let extent = self.types[buf.ty as usize].extent;
        Buf { offset: buf.offset + from as i64 * extent, count, ..buf }
    }

    /// The place `displacement` elements from the start of a buffer.
    pub fn part_signed(&self, buf: Buf, displacement: i64) -> Buf {
        let extent = self.types[buf.ty as usize].extent;
        Buf { offset: buf.offset + displacement * extent, ..buf }
    }

    /// The buffer as bytes, where it is one run of them.
    pub fn as_bytes(&self, buf: Buf) -> Option<Buf> {
        let dense = self.types[buf.ty as usize].dense;
        dense.then(|| Buf { count: self.bytes(buf), ty: 0, ..buf })
    }

    /// Posts a send; nothing is posted for no data, on both sides alike.
    pub fn send(&mut self, view: &View, to: usize, buf: Buf) -> Posted {
        if self.bytes(buf) == 0 { Posted(None) } else { self.post(Step::Send { peer: view.rank(to), buf }) }
    }

    /// Posts a receive; see [`Builder::send`].
    pub fn recv(&mut self, view: &View, from: usize, buf: Buf) -> Posted {
        if self.bytes(buf) == 0 {
            Posted(None)
        } else {
            self.post(Step::Recv { peer: view.rank(from), buf, combined: false })
        }
    }

    /// Posts a send without data: a signal.
    pub fn signal(&mut self, view: &View, to: usize) -> Posted {
        self.post(Step::Send {
            peer: view.rank(to),
            buf: Buf { offset: 0, count: 0, ty: 0, base: Base::Temp },
        })
    }

    /// Posts the receive of a signal.
    pub fn await_signal(&mut self, view: &View, from: usize) -> Posted {
        self.post(Step::Recv {
            peer: view.rank(from),
            buf: Buf { offset: 0, count: 0, ty: 0, base: Base::Temp },
            combined: false,
        })
    }

    fn post(&mut self, step: Step) -> Posted {
        self.steps.push(step);
        self.messages += 1;
        Posted(Some(self.messages - 1))
    }

    /// Waits for one message.
    pub fn wait(&mut self, posted: Posted) {
        if let Posted(Some(message)) = posted {
            self.steps.push(Step::Wait(message));
        }
    }

    /// Waits for all messages posted so far.
    pub fn wait_all(&mut self) {
        if self.messages > 0 && self.steps.last() != Some(&Step::WaitAll) {
            self.steps.push(Step::WaitAll);
        }
    }

    /// Waits for all data that has been asked for, not for what is sent.
    pub fn wait_received(&mut self) {
        let mut open = Vec::new();
        let mut message = 0;
        for step in &self.steps {
            match *step {
                Step::Send { .. } => message += 1,
                Step::Recv { .. } => {
                    open.push(message);
                    message += 1;
                }
                Step::Wait(one) => open.retain(|other| *other != one),
                Step::WaitAll => open.clear(),
                Step::Copy { .. } | Step::Reduce { .. } | Step::Combine { .. } | Step::Expect { .. } => {}
            }
        }
        self.steps.extend(open.into_iter().map(Step::Wait));
    }

    /// Sends one buffer and receives another, and waits for both.
    pub fn exchange(&mut self, view: &View, to: usize, out: Buf, from: usize, into: Buf) {
        self.recv(view, from, into);
        self.send(view, to, out);
        self.wait_all();
    }

    /// Copies; nothing if both are the same place.
    pub fn copy(&mut self, from: Buf, to: Buf) {
        debug_assert_eq!(self.bytes(from), self.bytes(to), "{from:?} {to:?}");
        if self.bytes(from) > 0 && from != to {
            self.steps.push(Step::Copy { from, to });
        }
    }

    /// `inout = from op inout`.
    pub fn reduce(&mut self, from: Buf, inout: Buf) {
        debug_assert_eq!((from.count, from.ty), (inout.count, inout.ty));
        if from.count > 0 {
            self.steps.push(Step::Reduce { from, inout });
        }
    }
}

/// Consecutive ranges of `total` things for `parts` receivers, as even as possible.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// How many things.
    pub total: u64,
    /// How many receivers.
    pub parts: u64,
}

impl Split {
    /// Where part `i` begins; part `parts` begins at the end.
    pub fn start(&self, i: usize) -> u64 {
        let i = i as u64;
        self.total / self.parts * i + (self.total % self.parts).min(i)
    }

    /// How many things parts `from..to` have together.
    pub fn len(&self, from: usize, to: usize) -> u64 {
        self.start(to) - self.start(from)
    }
}

/// The largest power of two that is at most `n`.
pub fn floor_power(n: usize) -> usize {
    1 << n.ilog2()
}
