//! What a protocol for long messages may do: its only way to the world.

use crate::choice::tuning::Tuning;
use crate::event::Event;
use crate::memory::rcache::Held;
use crate::memory::staging::{Slab, Use};
use fabric::{Fault, Local, Remote, Span};
use wire::head::FrameType;
use wire::long::{Fragment, LongRts};

/// Time, memory, transfers and messages to the other side. Whatever costs time is a call here.
pub trait Port {
    /// What the pipelines are tuned by.
    fn tuning(&self) -> &Tuning;
    /// Adapters to spread a message over.
    fn rails(&self) -> usize;
    /// Registers memory, or finds that it is; with `keep` it may stay registered afterwards.
    fn hold(&mut self, rail: usize, span: Span, keep: bool) -> Result<Held, Fault>;
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
