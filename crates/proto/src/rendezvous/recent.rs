//! A table that forgets what has not been asked for longest.

use fabric::spread::SpreadMap;
use std::hash::Hash;

/// At most a given number of entries in two generations: what is asked for moves to the young one,
/// and when that is full the old one is forgotten. So each entry used among the last half of that
/// number of different ones is still there, and an access costs two look-ups at most.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    young: SpreadMap<K, V>,
    old: SpreadMap<K, V>,
    half: usize,
    has_forgotten: bool,
}

impl<K: Eq + Hash + Copy, V> Recent<K, V> {
    /// An empty table of at most `most` entries.
    pub fn new(most: usize) -> Recent<K, V> {
        let half = (most / 2).max(1);
        Recent { young: SpreadMap::default(), old: SpreadMap::default(), half, has_forgotten: false }
    }

    /// Whether an entry was ever forgotten.
    pub fn has_forgotten(&self) -> bool {
        self.has_forgotten
    }

    /// An entry as it stands; to ask so does not keep it from being forgotten.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// As [`Recent::get`], to change it.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self.young.get_mut(key) {
            None => self.old.get_mut(key),
            found => found,
        }
    }

    /// The entry of a key, made if there is none; `forget` is given those that have to go for it.
    pub fn entry(&mut self, key: K, make: impl FnOnce() -> V, mut forget: impl FnMut(&K, V)) -> &mut V {
        if !self.young.contains_key(&key) {
            let value = self.old.remove(&key).unwrap_or_else(make);
            if self.young.len() >= self.half {
                let oldest = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
                self.has_forgotten |= !oldest.is_empty();
                oldest.into_iter().for_each(|(key, value)| forget(&key, value));
            }
            self.young.insert(key, value);
        }
        self.young.get_mut(&key).expect("it is there, or was put there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is asked for stays, what is not goes, and the number of entries is bounded.
    #[test]
    fn the_oldest_are_forgotten() {
        let mut table = Recent::new(8);
        let mut gone = Vec::new();
        for key in 0..100u32 {
            *table.entry(key, || 0, |key, _| gone.push(*key)) += 1;
            *table.entry(1000, || 0, |key, _| gone.push(*key)) += 1;
            assert!(table.young.len() + table.old.len() <= 8);
            assert!((key.saturating_sub(2)..=key).all(|recent| table.get(&recent).is_some()));
        }
        assert_eq!(table.get(&1000), Some(&100));
        assert!(
            table.has_forgotten() && !gone.contains(&1000) && gone.contains(&0) && table.get(&0).is_none()
        );
        *table.get_mut(&1000).unwrap() = 5;
        assert_eq!(table.entry(1000, || 0, |_, _| ()), &5);
    }
}
