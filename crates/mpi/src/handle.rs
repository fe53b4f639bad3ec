//! Object handles: an index and a generation, so that a freed handle is told apart
//! from a live one instead of being followed.
//!
//! A handle fits a positive Fortran `INTEGER` (MPI 5.0 section 19.3.4) and lies above
//! the 12 bits the standard ABI reserves for predefined handles.

use crate::error::{Class, Result, fail};

/// A handle as the C binding carries it. Values below [`Handle::FIRST_DYNAMIC`] are
/// predefined by the ABI.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Handle(pub u32);

const INDEX_BITS: u32 = 20;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
const GENERATIONS: u32 = 1 << (31 - INDEX_BITS);

impl Handle {
    /// The smallest value of a handle that is not predefined.
    pub const FIRST_DYNAMIC: u32 = 1 << INDEX_BITS;

    /// Whether the standard ABI reserves this value.
    pub fn is_predefined(self) -> bool {
        self.0 < Self::FIRST_DYNAMIC
    }
}

/// Objects of one kind, addressed by [`Handle`].
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    live: usize,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: Vec::new(), live: 0 }
    }
}

impl<T> Slab<T> {
    /// Stores `value`; fails with `MPI_ERR_INTERN` when 2^20 objects of the kind are alive.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Result<Handle> {
        self.insert_with(|| value)
    }

    /// The same of a value that is made where it is stored: one that is there before would be dropped if there were no place, so it lies in memory,
    /// and to copy what has just been written in smaller pieces the processor waits for these.
    #[inline(always)]
    pub fn insert_with(&mut self, make: impl FnOnce() -> T) -> Result<Handle> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.grow()?,
        };
        let slot = &mut self.slots[index as usize];
        // A free slot holds nothing; an assignment would look whether there is something to drop.
        std::mem::forget(slot.value.replace(make()));
        self.live += 1;
        Ok(Handle(slot.generation << INDEX_BITS | index))
    }

    #[cold]
    fn grow(&mut self) -> Result<u32> {
        self.room()?;
        self.slots.push(Slot { generation: 1, value: None });
        Ok(self.slots.len() as u32 - 1)
    }

    /// The error of the next [`Slab::insert`], if it fails.
    pub fn room(&self) -> Result<()> {
        if self.has_room() {
            return Ok(());
        }
        fail(Class::INTERN, "more than 1048576 objects of one kind are alive; free some")
    }

    /// Whether the next [`Slab::insert`] succeeds.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() <= INDEX_MASK as usize
    }

    /// The object, unless the handle was never given out or has been freed.
    #[inline]
    pub fn get(&self, handle: Handle) -> Option<&T> {
        let slot = self.slots.get((handle.0 & INDEX_MASK) as usize)?;
        if slot.generation == handle.0 >> INDEX_BITS { slot.value.as_ref() } else { None }
    }

    /// As [`Slab::get`], to change the object.
    #[inline]
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        let slot = self.slots.get_mut((handle.0 & INDEX_MASK) as usize)?;
        if slot.generation == handle.0 >> INDEX_BITS { slot.value.as_mut() } else { None }
    }

    /// Frees the handle and returns the object.
    #[inline]
    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        let index = handle.0 & INDEX_MASK;
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != handle.0 >> INDEX_BITS {
            return None;
        }
        let value = slot.value.take()?;
        self.forget(handle);
        Some(value)
    }

    /// Frees the handle of an object that is there and owns nothing: it is not dropped.
    #[inline(always)]
    pub fn forget(&mut self, handle: Handle) {
        let index = handle.0 & INDEX_MASK;
        let slot = &mut self.slots[index as usize];
        slot.generation = if slot.generation + 1 == GENERATIONS { 1 } else { slot.generation + 1 };
        std::mem::forget(slot.value.take());
        self.free.push(index);
        self.live -= 1;
    }

    /// How many objects are alive.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether no object is alive.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// All live objects with their handles, in index order.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let value = slot.value.as_ref()?;
            Some((Handle(slot.generation << INDEX_BITS | index as u32), value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_is_not_followed() {
        let mut slab = Slab::default();
        let a = slab.insert("a").unwrap();
        assert!(!a.is_predefined());
        assert_eq!(slab.remove(a), Some("a"));
        let b = slab.insert("b").unwrap();
        assert_ne!(a, b);
        assert_eq!(slab.get(a), None);
        assert_eq!(slab.remove(a), None);
        assert_eq!(slab.get(b), Some(&"b"));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn generations_wrap_without_reaching_predefined_values() {
        let mut slab = Slab::default();
        for _ in 0..3 * GENERATIONS {
            let h = slab.insert(()).unwrap();
            assert!(!h.is_predefined() && h.0 <= i32::MAX as u32);
            slab.remove(h);
        }
    }
}
