//! Things of one kind by number: the numbers of those that are gone are given again. Queues of which there are many.

use std::collections::VecDeque;

/// A queue that never had anything gets room for one entry, not for four: kept for each of many peers, most of which never
/// have two at a time, the difference is what most of their memory would be.
#[inline]
pub fn begin_with_one<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() == 0 {
        queue.reserve_exact(1);
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct Table<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Keeps an object; its number.
    pub fn insert(&mut self, object: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.entries[number as usize] = Some(object);
            return number;
        }
        self.entries.push(Some(object));
        self.entries.len() as u32 - 1
    }

    /// The object of a number, if there is one.
    #[inline]
    pub fn get(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number as usize)?.as_mut()
    }

    /// All objects with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries.iter().enumerate().filter_map(|(at, entry)| Some((at as u32, entry.as_ref()?)))
    }

    /// All objects.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flatten()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives up an object.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let object = self.entries.get_mut(number as usize)?.take();
        if object.is_some() {
            self.free.push(number);
        }
        object
    }
}
