//! Scratch memory of schedules.
//!
//! What a long vector needs is much, and a system gives fresh memory page by page, each of which costs about as much as the data it is for:
//! the longest piece is left for the next schedule.
use crate::error::Result;
use crate::mem;
use std::sync::Mutex;

/// Shorter pieces cost little, and those of a schedule stay with it.
const LEAST_BYTES: usize = 32 << 10;
/// The longest piece that is left.
const MOST_BYTES: usize = 4 << 20;

static LEFT: Mutex<Option<Box<[u128]>>> = Mutex::new(None);

/// A piece, with anything in it.
#[derive(Debug, Default)]
pub(super) struct Scratch(Box<[u128]>);

impl Scratch {
    /// At least so many bytes.
    pub fn new(bytes: usize) -> Result<Scratch> {
        let len = bytes.div_ceil(size_of::<u128>());
        if bytes > LEAST_BYTES
            && let Ok(mut left) = LEFT.try_lock()
            && let Some(piece) = left.take_if(|left| left.len() >= len)
        {
            return Ok(Scratch(piece));
        }
        Ok(Scratch(mem::zeroed(len)?))
    }

    /// Its length in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// Its address.
    #[inline]
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Has at least so many bytes from here on, of which the first are as they were.
    pub fn enlarge(&mut self, bytes: usize) -> Result {
        if bytes > self.bytes() {
            let longer = Scratch::new(bytes)?;
            mem::copy(longer.address(), self.address(), self.bytes());
            *self = longer;
        }
        Ok(())
    }

    /// Gives up what others may use meanwhile.
    pub fn rest(&mut self) {
        if self.bytes() > LEAST_BYTES {
            *self = Scratch::default();
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if (LEAST_BYTES + 1..=MOST_BYTES).contains(&self.bytes())
            && let Ok(mut left) = LEFT.try_lock()
            && left.as_ref().is_none_or(|left| left.len() < self.0.len())
        {
            *left = Some(std::mem::take(&mut self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_piece_is_left_for_the_next_one() {
        let mut piece = Scratch::new(1 << 20).unwrap();
        mem::write(piece.address(), &[7; 100]);
        piece.enlarge(3 << 20).unwrap();
        assert!(piece.bytes() >= 3 << 20);
        mem::with(piece.address(), 100, |bytes| assert_eq!(bytes, [7; 100]));
        piece.rest();
        assert_eq!(piece.bytes(), 0);
        let (longest, other) = (Scratch::new(2 << 20).unwrap(), Scratch::new(2 << 20).unwrap());
        assert_ne!(longest.address(), other.address());
        let too_much = Scratch::new(MOST_BYTES + 1).unwrap();
        drop((longest, other, too_much));
        assert!(LEFT.lock().unwrap().as_ref().is_none_or(|left| size_of_val(&**left) <= MOST_BYTES));
    }

    #[test]
    fn a_short_piece_stays() {
        let mut piece = Scratch::new(100).unwrap();
        piece.rest();
        assert_eq!(piece.bytes(), 112);
    }
}
