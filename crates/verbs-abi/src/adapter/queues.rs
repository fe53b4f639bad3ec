//! Queues that programs look into: completions, and what is to be received into.

use super::constants::{EVENT_CQ_ERR, OP_RECEIVE, WC_LOC_PROT_ERR, WC_SUCCESS};
use super::events::{Context, Object, Owner};
use fabric::Span;
use fabric::Table;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::os::fd::OwnedFd;

/// What has ended, as `struct ibv_wc` says it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ended {
    /// As the program named the work.
    pub id: u64,
    /// `enum ibv_wc_status`.
    pub status: i32,
    /// `enum ibv_wc_opcode`.
    pub opcode: i32,
    /// Bytes that came.
    pub len: u32,
    /// Immediate data as they stand in memory, or the key that ended.
    pub immediate: u32,
    /// The queue pair's number.
    pub number: u32,
    /// Who sent a datagram.
    pub source: u32,
    /// `enum ibv_wc_flags`.
    pub flags: u32,
}

impl Ended {
    /// A receive buffer that may not be filled has been taken by a message.
    pub fn denied(id: u64, number: u32) -> Ended {
        Ended { id, status: WC_LOC_PROT_ERR, opcode: OP_RECEIVE, number, ..Ended::default() }
    }
}

/// What a completion queue is asked to tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wish {
    /// Nothing.
    #[default]
    None,
    /// The next message whose sender asks for it, or the next error.
    Solicited,
    /// Whatever comes next.
    Next,
}

/// A completion queue.
#[derive(Debug, Default)]
pub struct Completions {
    /// What has ended and was not fetched.
    pub ended: VecDeque<Ended>,
    /// Room, as was asked for: more is kept all the same, and told of once.
    pub room: usize,
    /// Whether there was more than that.
    pub is_over: bool,
    /// Who is told of that.
    pub owner: Owner,
    /// What its channel shall be told.
    pub wish: Wish,
    /// The channel, by its number.
    pub channel: Option<u32>,
    /// What events call it: the address of the program's object.
    pub address: usize,
    /// Queue pairs that use it.
    pub users: usize,
    /// Events of its channel that were fetched and not acknowledged.
    pub owed: u32,
}

/// A channel of events: a descriptor that counts, and what it told of.
#[derive(Debug)]
pub struct Channel<T> {
    /// An event descriptor, one for each event.
    pub descriptor: OwnedFd,
    /// What has not been fetched: of completion queues their addresses.
    pub ready: VecDeque<T>,
    /// Who uses it.
    pub users: usize,
}

impl<T> Channel<T> {
    /// Without events. Its descriptor may be polled, and made not to block.
    pub fn new() -> std::io::Result<Channel<T>> {
        use rustix::event::{EventfdFlags, eventfd};
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?;
        Ok(Channel { descriptor, ready: VecDeque::new(), users: 0 })
    }

    /// Tells of something.
    pub fn tell(&mut self, what: T) {
        self.ready.push_back(what);
        // It counts up to 2^64 - 2 and never blocks before.
        let _ = rustix::io::write(&self.descriptor, &1u64.to_ne_bytes());
    }

    /// Discards what is of no use any more, so that the descriptor does not count it.
    pub fn forget(&mut self, is_gone: impl Fn(&T) -> bool) {
        let before = self.ready.len();
        self.ready.retain(|told| !is_gone(told));
        for _ in self.ready.len()..before {
            // Who has taken its count already, and waits for the adapter, finds nothing; to wait for another would be to wait for ever.
            let (mut room, flags) = ([0; 8], rustix::io::ReadWriteFlags::NOWAIT);
            let _ = rustix::io::preadv2(&self.descriptor, &mut [IoSliceMut::new(&mut room)], u64::MAX, flags);
        }
    }
}

/// Completion queues, and the channels of their events.
#[derive(Debug, Default)]
pub struct Queues {
    /// Completion queues.
    pub completions: Table<Completions>,
    /// Channels.
    pub channels: Table<Channel<usize>>,
    /// Open devices.
    pub contexts: Table<Context>,
}

impl Queues {
    /// Tells a completion queue of an end.
    pub fn complete(&mut self, queue: u32, ended: Ended, is_solicited: bool) {
        let Some(completions) = self.completions.get(queue) else { return };
        completions.ended.push_back(ended);
        if completions.ended.len() > completions.room && !completions.is_over {
            completions.is_over = true;
            let owner = completions.owner;
            self.tell(owner, Object::Completions(queue), EVENT_CQ_ERR);
        }
        let Some(completions) = self.completions.get(queue) else { return };
        let is_wished = match completions.wish {
            Wish::None => false,
            Wish::Next => true,
            Wish::Solicited => is_solicited || ended.status != WC_SUCCESS,
        };
        if is_wished {
            completions.wish = Wish::None;
            let (channel, address) = (completions.channel, completions.address);
            if let Some(channel) = channel.and_then(|channel| self.channels.get(channel)) {
                channel.tell(address);
            }
        }
    }
}

/// Memory for one message.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    /// As the program named it.
    pub id: u64,
    /// Its pieces: most messages have one.
    pub pieces: SmallVec<[Span; 1]>,
    /// Whether the program may not have it filled: no such key, over the ends of the region, no right to write.
    pub is_denied: bool,
}

impl Buffer {
    /// Bytes in it.
    pub fn room(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len).sum()
    }

    /// The memory from `offset` on, up to `len` bytes in one piece.
    pub fn part(&self, mut offset: usize, len: usize) -> Span {
        for piece in &self.pieces {
            if offset < piece.len {
                return piece.part(offset, len.min(piece.len - offset));
            }
            offset -= piece.len;
        }
        Span::EMPTY
    }

    /// Copies into it from `offset` on.
    pub fn fill(&self, mut offset: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let to = self.part(offset, bytes.len());
            if to.len == 0 {
                return;
            }
            rnic::driver::memory::copy(to.addr, bytes.as_ptr() as usize, to.len);
            offset += to.len;
            bytes = &bytes[to.len..];
        }
    }
}

/// Buffers in the order in which messages take them: of a queue pair, or shared by several.
#[derive(Debug, Default)]
pub struct Receives {
    /// Those that are free.
    pub free: VecDeque<Buffer>,
    /// Most at a time.
    pub room: u32,
    /// Pieces of one at most.
    pub pieces: u32,
    /// The protection domain of their memory.
    pub domain: u32,
    /// Queue pairs that use it.
    pub users: u32,
    /// What one has that is shared.
    pub shared: Option<Box<Shared>>,
}

impl Receives {
    /// Takes out the next buffer; `Err` with one that may not be filled, which is the end of the queue pair that takes it.
    pub fn take(&mut self) -> Option<Result<Buffer, Buffer>> {
        let buffer = self.free.pop_front()?;
        Some(if buffer.is_denied { Err(buffer) } else { Ok(buffer) })
    }
}

/// See [`Receives::shared`].
#[derive(Debug, Default)]
pub struct Shared {
    /// Who is told when there are too few.
    pub owner: Owner,
    /// Fewer than this many are; 0: never.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn a_message_goes_over_the_pieces_of_a_buffer() {
        let mut memory = [0u8; 16];
        let base = memory.as_mut_ptr() as usize;
        let pieces = smallvec![Span { addr: base, len: 3 }, Span { addr: base + 8, len: 5 }];
        let buffer = Buffer { id: 1, pieces, is_denied: false };
        assert_eq!(buffer.room(), 8);
        assert_eq!(buffer.part(2, 10), Span { addr: base + 2, len: 1 });
        assert_eq!(buffer.part(3, 2), Span { addr: base + 8, len: 2 });
        assert_eq!(buffer.part(8, 1).len, 0);
        buffer.fill(1, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(memory, [0, 1, 2, 0, 0, 0, 0, 0, 3, 4, 5, 6, 7, 0, 0, 0]);
    }
}
