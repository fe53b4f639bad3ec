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
    /// By their class.
    free: Vec<Class>,
    free_bytes: usize,
    /// Pieces that were asked for so far.
    asked: u64,
}

/// Pieces that hold as much as each other.
#[derive(Debug, Default)]
struct Class {
    pieces: Vec<Vec<u8>>,
    /// What [`Kept::asked`] was when the last one was asked for.
    asked: u64,
}

/// The class of pieces for `len` bytes: four to each power of two, so that no more than a fifth of a piece is for nothing.
fn class(len: usize) -> usize {
    let below = len.max(LEAST) - 1;
    let bits = below.ilog2() as usize;
    4 * bits + (below >> (bits - 2)) % 4
}

/// What pieces of a class hold.
fn capacity(class: usize) -> usize {
    (5 + class % 4) << (class / 4 - 2)
}

impl Kept {
    /// A piece of `len` bytes, with anything in it.
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        if len < LEAST {
            return vec![0; len];
        }
        self.asked += 1;
        let class = class(len);
        let kept = self.free.get_mut(class).and_then(|free| {
            free.asked = self.asked;
            free.pieces.pop()
        });
        let Some(mut piece) = kept else {
            let mut piece = vec![0; capacity(class)];
            piece.truncate(len);
            return piece;
        };
        self.free_bytes -= piece.capacity();
        piece.resize(len, 0);
        piece
    }

    /// The message has been delivered.
    pub fn give(&mut self, piece: Vec<u8>) {
        let held = piece.capacity();
        if !(LEAST..=FREE_MAX).contains(&held) || capacity(class(held)) != held {
            return;
        }
        let class = class(held);
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Class::default);
            self.free[class].asked = self.asked;
        }
        while self.free_bytes + held > FREE_MAX && self.drop_one_for(class) {}
        if self.free_bytes + held <= FREE_MAX {
            self.free[class].pieces.push(piece);
            self.free_bytes += held;
        }
    }

    /// Drops a piece of the class that nobody has asked for the longest, if that is longer ago than this one was asked for.
    fn drop_one_for(&mut self, class: usize) -> bool {
        let asked = self.free[class].asked;
        let held = self.free.iter_mut().filter(|free| free.asked < asked && !free.pieces.is_empty());
        let Some(piece) = held.min_by_key(|free| free.asked).and_then(|oldest| oldest.pieces.pop()) else {
            return false;
        };
        self.free_bytes -= piece.capacity();
        true
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
        assert_eq!((kept.free_bytes, len), (80 << 10, 70_000));
        let other = kept.take(60_000);
        assert_ne!(other.as_ptr(), at);
        let next = kept.take(80 << 10);
        assert_eq!((next.as_ptr(), next.len(), kept.free_bytes), (at, 80 << 10, 0));
    }

    #[test]
    fn a_piece_is_long_enough_and_a_fifth_of_it_is_for_nothing_at_most() {
        for len in (LEAST..300_000).chain([1 << 20, (1 << 20) + 1, (4 << 20) + 100, FREE_MAX]) {
            let held = capacity(class(len));
            assert!(len <= held && held - len < (held / 5).max(2), "{len} {held}");
            assert_eq!(class(held), class(len));
        }
    }

    /// Whatever others have left, what is asked for again and again is not asked of the allocator.
    #[test]
    fn what_is_asked_for_now_takes_the_place_of_what_was() {
        let mut kept = Kept::default();
        let old: Vec<_> = (0..8).map(|_| kept.take(1 << 20)).collect();
        old.into_iter().for_each(|piece| kept.give(piece));
        let first = kept.take((4 << 20) + 100);
        let at = first.as_ptr();
        kept.give(first);
        let second = kept.take((4 << 20) + 100);
        assert_eq!(second.as_ptr(), at);
        assert!(kept.free_bytes >= 2 << 20, "others stay as far as there is room");
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
