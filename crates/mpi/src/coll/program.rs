//! What a schedule runs: the steps of one rank, and what their buffers mean.
use super::account::Chosen;
use super::cost::Algorithm;
use super::overlap::Reach;
use super::sequel::Sequel;
use super::tag::Collective;
use super::ty::Type;
use crate::op::Op;

/// What a [`Buf`] is relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Base {
    /// The send buffer of the call.
    Send,
    /// The receive buffer of the call (or its only buffer).
    Recv,
    /// Scratch memory of the schedule.
    Temp,
    /// Numbers of the program, which are only read.
    Words,
}

/// `count` elements of a type at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buf {
    /// Distance from the base in bytes.
    pub offset: i64,
    /// Number of elements.
    pub count: u64,
    /// Index into the types of the program; 0 is bytes.
    pub ty: u32,
    /// What the offset counts from.
    pub base: Base,
}

/// An operand of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lands {
    /// The left one, which is only read.
    From,
    /// The right one, where the result belongs.
    Inout,
}

/// One step of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Start sending `buf` to a rank of the communicator.
    Send {
        /// The receiver.
        peer: u32,
        /// What is sent; untouched until waited for.
        buf: Buf,
    },
    /// Start receiving into `buf`.
    Recv {
        /// The sender.
        peer: u32,
        /// Where the message goes; exactly this much must come.
        buf: Buf,
        /// Whether a [`Step::Combine`] waits for it.
        combined: bool,
    },
    /// Wait for the message with this number (sends and receives count from 0 in program order).
    Wait(u32),
    /// Wait for everything started so far.
    WaitAll,
    /// Copy, packing or unpacking where the types differ.
    Copy {
        /// The source.
        from: Buf,
        /// The destination, of the same number of bytes.
        to: Buf,
    },
    /// `inout = from op inout`.
    Reduce {
        /// The left operand.
        from: Buf,
        /// The right operand and result.
        inout: Buf,
    },
    /// Wait for the message with this number, a receive into one of the two buffers, and combine as [`Step::Reduce`] does: piece by piece, where it
    /// lies if that can be. If the message was to come into `from`, nothing need come there.
    Combine {
        /// The message.
        message: u32,
        /// The left operand.
        from: Buf,
        /// The right operand and result.
        inout: Buf,
        /// Which of the two the message was to come into.
        lands: Lands,
    },
    /// What a rank has told that it sends to another one must be what that one asks for.
    Expect {
        /// The number that was told, in bytes.
        word: Buf,
        /// What is asked for.
        bytes: u64,
        /// The sender.
        from: u32,
        /// The receiver.
        to: u32,
    },
}

/// The program of one rank for one collective.
#[derive(Debug)]
pub struct Program {
    /// Which collective it is.
    pub kind: Collective,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The types its buffers refer to.
    pub types: Vec<Type>,
    /// How it is run: the same on all ranks, or `None` where it need not be.
    pub algorithm: Option<Algorithm>,
    /// The root, if it has one: the same on all ranks.
    pub root: Option<u32>,
    /// The operation of its Reduce steps.
    pub op: Option<Op>,
    /// The steps before this one send what their receivers combine.
    pub contributions: usize,
    /// Scratch memory it needs.
    pub temp_bytes: usize,
    /// How many messages it sends and receives.
    pub messages: u32,
    /// See [`Base::Words`].
    pub words: Vec<u64>,
    /// What comes behind its last step.
    pub sequel: Option<Sequel>,
    /// How far its buffers reach.
    pub reach: Reach,
    /// What was chosen, where there was a choice.
    pub chosen: Option<Chosen>,
}
