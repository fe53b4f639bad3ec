//! Memory of messages that came before their receives: what one of them leaves, the next one takes.
//!
//! From the allocator long pieces would come as new pages each time, which the kernel clears and maps one by
//! one: that takes several times what the copy does. Where more ranks than cores run, most messages come early.

/// Shorter pieces the allocator gives faster.
const LEAST: usize = 4096;
/// Bytes that wait for the next message.
pub const FREE_MAX: usize = 8 << 20;

/// Pieces that are free.
#[derive(Debug, Default)]
pub struct Kept {
    /// By the number of bits of what they can hold.
    free: Vec<Vec<Vec<u8>>>,
    free_bytes: usize,
}

/// What pieces of this length can hold: a power of two.
fn class(len: usize) -> usize {
    len.next_power_of_two().trailing_zeros() as usize
}

impl Kept {
    /// A piece of `len` bytes, with anything in it.
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        if len < LEAST {
            return vec![0; len];
        }
        let class = class(len);
        let Some(mut piece) = self.free.get_mut(class).and_then(Vec::pop) else {
            let mut piece = vec![0; 1 << class];
            piece.truncate(len);
            return piece;
        };
        self.free_bytes -= piece.capacity();
        piece.resize(len, 0);
        piece
    }

    /// The message has been delivered.
    pub fn give(&mut self, piece: Vec<u8>) {
        let capacity = piece.capacity();
        if capacity < LEAST || !capacity.is_power_of_two() || self.free_bytes + capacity > FREE_MAX {
            return;
        }
        let class = class(capacity);
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        self.free[class].push(piece);
        self.free_bytes += capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_message_leaves_the_next_one_takes() {
        let mut kept = Kept::default();
        let first = kept.take(70_000);
        let (at, len) = (first.as_ptr(), first.len());
        kept.give(first);
        assert_eq!((kept.free_bytes, len), (1 << 17, 70_000));
        let other = kept.take(60_000);
        assert_ne!(other.as_ptr(), at);
        let next = kept.take(131_072);
        assert_eq!((next.as_ptr(), next.len(), kept.free_bytes), (at, 131_072, 0));
    }

    #[test]
    fn no_more_waits_than_is_said() {
        let mut kept = Kept::default();
        let pieces: Vec<_> = (0..40).map(|_| kept.take(1 << 20)).collect();
        pieces.into_iter().for_each(|piece| kept.give(piece));
        assert_eq!(kept.free_bytes, FREE_MAX);
        let short = kept.take(100);
        kept.give(short);
        assert_eq!(kept.free_bytes, FREE_MAX);
        (0..40).for_each(|_| drop(kept.take(1 << 20)));
        assert_eq!(kept.free_bytes, 0);
    }
}
