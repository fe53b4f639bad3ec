//! What a protocol for long messages may do: its only way to the world.

use crate::choice::tuning::Tuning;
use crate::event::Event;
use crate::memory::rcache::Held;
use crate::memory::staging::{Slab, Use};
use crate::message::op::Side;
use fabric::{Fault, Local, Remote, Rights, Share, ShareWord, Span};
use wire::head::{FrameType, Offer};
use wire::long::{Fragment, LongRts};

/// Whose turn it is to copy in a look around.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The side: a rank copies pieces of its own receives first.
    pub copies: Side,
    /// Whether the other side is not expected to help.
    pub alone: bool,
    /// The look beside the application that this is; `None` inside MPI.
    pub aside: Option<Aside>,
}

/// A look beside the application.
#[derive(Clone, Copy, Debug)]
pub struct Aside {
    /// Bytes that may still be copied in it.
    pub left: usize,
    /// Whether a collective is under way: others wait for what comes after its messages, which is not left to who comes back
    /// to MPI first.
    pub is_awaited: bool,
}

impl Turn {
    /// Whether anything may still be copied in this look.
    pub fn copies_on(&self) -> bool {
        self.aside.is_none_or(|aside| aside.left > 0)
    }
}

impl Default for Turn {
    fn default() -> Turn {
        Turn { copies: Side::Receive, alone: false, aside: None }
    }
}

/// Words that both sides of a message can change, and copies across to the other side's memory.
pub trait Sharing {
    /// Opens a share, which may be taken by its word `Open`; `None` if there is none for this peer, or all are in use.
    fn open_share(&mut self) -> Option<Share>;
    /// Makes a share of this rank that nobody uses available again.
    fn close_share(&mut self, share: Share);
    /// Takes the share of this operation back; false if the other side was faster.
    fn take_share(&mut self, share: Share) -> bool;
    /// Reads a word of a share.
    fn word(&self, share: Share, word: ShareWord) -> u64;
    /// Sets a word of a share.
    fn set_word(&mut self, share: Share, word: ShareWord, value: u64) {
        self.set_words(share, &[(word, value)]);
    }
    /// Sets words of a share, in this order.
    fn set_words(&mut self, share: Share, words: &[(ShareWord, u64)]);
    /// Adds to a word of a share, modulo 2^64, and returns what it held before.
    fn add_word(&mut self, share: Share, word: ShareWord, value: u64) -> u64;
    /// Wakes the other side, which may sleep and sees a share only by looking.
    fn wake(&mut self);
    /// Whether this rank can copy from and to the other side's memory.
    fn reaches(&mut self) -> bool;
    /// Copies from the other side's memory at `remote` to `local` at its receiver, the other way at its sender.
    fn copy_across(&mut self, side: Side, local: Span, remote: usize) -> Result<(), Fault>;
    /// The other side may have written this memory.
    fn was_written(&mut self, span: Span);
    /// Tells the other side about a share in the order of messages; the offer gets the number of the operation. False
    /// if there is no room now; then nothing has happened.
    fn announce(&mut self, kind: FrameType, offer: Offer) -> bool;
    /// Whose turn it is to copy.
    fn turn(&self) -> Turn;
}

/// Time, memory, transfers and messages to the other side. Whatever costs time is a call here.
pub trait Port: Sharing {
    /// What the pipelines are tuned by.
    fn tuning(&self) -> &Tuning;
    /// Adapters to spread a message over.
    fn rails(&self) -> usize;
    /// Registers memory for these uses, or finds that it is; with `keep` it may stay registered afterwards.
    fn hold(&mut self, rail: usize, span: Span, rights: Rights, keep: bool) -> Result<Held, Fault>;
    /// Gives back what was held.
    fn release(&mut self, held: Held);
    /// Staging memory for one message, `None` while all of it is in use.
    fn stage(&mut self, wanted: Use) -> Result<Option<Slab>, Fault>;
    /// Gives staging memory back.
    fn unstage(&mut self, slab: Slab);
    /// Whether the bytes of a write become visible in order.
    fn writes_in_order(&self) -> bool;
    /// Reads a word that the other side may write.
    fn load(&self, addr: usize) -> u64;
    /// Writes a word of staging memory.
    fn store(&mut self, addr: usize, value: u64);
    /// Writes to the other side; ends as `Completed(work)`, when `local` may be reused. That the bytes are
    /// placed the other side learns by [`Port::fin`] alone.
    fn write(&mut self, rail: usize, local: Local, remote: Remote, work: u32);
    /// Reads from the other side; ends as `Completed(work)`.
    fn read(&mut self, rail: usize, local: Local, remote: Remote, work: u32);
    /// Copies inside this process.
    fn copy(&mut self, to: usize, from: usize, len: usize);
    /// Opens the message: `rts` gets the number of the operation, and the first `along` bytes of
    /// the buffer travel with it. False if there is no room now; then nothing has happened.
    fn request(&mut self, rts: LongRts, along: usize) -> bool;
    /// The most that one frame carries, in bytes.
    fn frame_bytes(&self) -> usize;
    /// Sends a piece of the message by a frame, to `offset` of the other side's buffer. False if
    /// there is no room now; then nothing has happened.
    fn frame(&mut self, data: Span, offset: u64) -> bool;
    /// Whether a frame of so many bytes would lead too far in an exchange of frames, and is to be kept back for now
    /// ([`crate::rendezvous::lead`]).
    fn keeps_back(&mut self, len: usize) -> bool;
    /// Tells the other side something; arrives in order and is not lost.
    fn tell(&mut self, kind: FrameType, fragment: Fragment);
    /// As [`Port::tell`], where more is told in this call: both may leave together.
    fn tell_with_next(&mut self, kind: FrameType, fragment: Fragment) {
        self.tell(kind, fragment);
    }
    /// Tells the other side what has been moved, in order with all that is told, and behind everything
    /// that was written over the adapter that the fragment names: when it is heard, that is placed.
    fn fin(&mut self, fragment: Fragment);
    /// Counts what happened.
    fn emit(&mut self, event: Event);
}
