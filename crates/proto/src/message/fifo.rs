//! A queue into which entries are written where they will lie.
//!
//! `VecDeque` takes a new entry by its address, so it lies in memory twice, and to copy what has just been written in smaller pieces the processor
//! waits for these: a twentieth of what a message of a window takes. Here it is appended to a `Vec`; what has been taken from the
//! front leaves when the queue is empty, or makes up half of it when there is no more room.

use std::ops::Deref;

#[derive(Debug)]
pub(crate) struct Fifo<T> {
    entries: Vec<T>,
    /// So many of them have been taken.
    taken: usize,
}

impl<T> Default for Fifo<T> {
    fn default() -> Fifo<T> {
        Fifo { entries: Vec::new(), taken: 0 }
    }
}

impl<T: Copy> Fifo<T> {
    #[inline(always)]
    pub fn push_back(&mut self, entry: T) {
        if self.entries.len() == self.entries.capacity() {
            self.make_room();
        }
        self.entries.push(entry);
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.entries.capacity() == 0 {
            // For most peers one is enough.
            self.entries.reserve_exact(1);
        } else if self.taken > self.entries.len() / 2 {
            self.entries.drain(..self.taken);
            self.taken = 0;
        }
    }

    /// The oldest entry.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        self.entries.get(self.taken)
    }

    /// Takes the oldest entry.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        let front = *self.front()?;
        self.taken += 1;
        if self.taken == self.entries.len() {
            self.entries.clear();
            self.taken = 0;
        }
        Some(front)
    }

    /// Takes the entry behind so many others.
    pub fn remove(&mut self, at: usize) -> Option<T> {
        match at {
            0 => self.pop_front(),
            _ => (at < self.len()).then(|| self.entries.remove(self.taken + at)),
        }
    }
}

impl<T> Deref for Fifo<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.entries[self.taken..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Whatever is appended and taken, it is a queue, and has room for no more than four times what was in it at once.
        #[test]
        fn it_is_a_queue(steps in proptest::collection::vec((0u8..4, 0usize..8), 1..400)) {
            let (mut fifo, mut model, mut most) = (Fifo::default(), VecDeque::new(), 1);
            for (number, (what, at)) in steps.into_iter().enumerate() {
                match what {
                    0 | 1 => {
                        fifo.push_back(number);
                        model.push_back(number);
                    }
                    2 => prop_assert_eq!(fifo.pop_front(), model.pop_front()),
                    _ => prop_assert_eq!(fifo.remove(at), model.remove(at)),
                }
                prop_assert_eq!(fifo.front(), model.front());
                prop_assert!(fifo.iter().eq(&model));
                most = most.max(model.len());
                prop_assert!(fifo.entries.capacity() <= 4.max(4 * most), "{} for {most}", fifo.entries.capacity());
            }
        }
    }
}
