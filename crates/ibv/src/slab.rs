//! Things by number: those of things that are gone are given again.

/// See the [module](self).
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    /// Nothing.
    pub const NEW: Slab<T> = Slab { entries: Vec::new(), free: Vec::new() };

    /// Keeps a thing; its number.
    pub fn insert(&mut self, thing: T) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.entries[at] = Some(thing);
                at
            }
            None => {
                self.entries.push(Some(thing));
                self.entries.len() - 1
            }
        }
    }

    /// Gives up what has this number.
    pub fn remove(&mut self, at: usize) -> Option<T> {
        let thing = self.entries.get_mut(at)?.take();
        if thing.is_some() {
            self.free.push(at);
        }
        thing
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// What has this number.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.entries.get(at)?.as_ref()
    }
}
