//! The shared file pointer: a number that all who have opened a file change together, wherever they run and whatever
//! they are doing. It lies in a file of its own, because a lock of the kernel needs nobody's attention: a rank that
//! computes cannot be asked. See docs/protocols/files.md.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::file::{How, Locking};
use crate::{File, Result};

/// Where the number lies.
#[derive(Debug)]
pub enum Place {
    /// Only this process uses it.
    Here(Mutex<i64>),
    /// In this file.
    File(Box<File>),
}

/// A shared number.
#[derive(Debug)]
pub struct Counter(Place);

const RANGE: std::ops::Range<u64> = 0..8;

impl Counter {
    /// For one process.
    pub fn alone() -> Counter {
        Counter(Place::Here(Mutex::new(0)))
    }

    /// Makes the file of the number, which is 0 while the file is empty. The name must not be taken. Nothing is written here, where
    /// nobody has a lock: a client of NFS keeps that until it is about to take one, when others may have counted, and would undo it.
    pub fn create(path: &Path) -> Result<Counter> {
        // Each look at it is a locked section already.
        let locking = Locking::Never;
        let how = How { read: true, write: true, create: true, exclusive: true, permissions: 0o600, locking };
        File::open(path, how).map(|file| Counter(Place::File(Box::new(file))))
    }

    /// Opens one that another process has made.
    pub fn join(path: &Path) -> Result<Counter> {
        let locking = Locking::Never;
        let how = How { read: true, write: true, create: false, exclusive: false, permissions: 0, locking };
        File::open(path, how).map(|file| Counter(Place::File(Box::new(file))))
    }

    /// The name of its file.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.0 {
            Place::Here(_) => None,
            Place::File(file) => Some(file.path().to_path_buf()),
        }
    }

    /// What it is now.
    pub fn get(&self) -> Result<i64> {
        self.change(|value| value)
    }

    /// Makes it `value`.
    pub fn set(&self, value: i64) -> Result {
        self.change(|_| value).map(drop)
    }

    /// Adds `more` and says what it was before.
    pub fn fetch_add(&self, more: i64) -> Result<i64> {
        self.change(|value| value.saturating_add(more))
    }

    fn change(&self, f: impl FnOnce(i64) -> i64) -> Result<i64> {
        match &self.0 {
            Place::Here(value) => {
                let mut value = value.lock().expect("nobody panics while changing a number");
                let old = *value;
                *value = f(old);
                Ok(old)
            }
            Place::File(file) => file.locked(RANGE, false, || {
                let mut word = [0; 8];
                // An empty file leaves it as it is.
                file.read_at(&mut word, 0)?;
                let old = i64::from_ne_bytes(word);
                let new = f(old);
                if new != old {
                    file.write_at(&new.to_ne_bytes(), 0)?;
                }
                Ok(old)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remove;

    #[test]
    fn nobody_gets_a_number_twice() {
        let path = std::env::temp_dir().join(format!("tern-counter-{}", std::process::id()));
        let counters = [Counter::create(&path).unwrap(), Counter::join(&path).unwrap()];
        assert!(Counter::create(&path).is_err(), "the name is taken");
        remove(&path).unwrap();
        let mut got: Vec<i64> = std::thread::scope(|scope| {
            let take = |counter| move || (0..300).map(|_| Counter::fetch_add(counter, 3).unwrap()).collect();
            let threads: Vec<std::thread::ScopedJoinHandle<Vec<i64>>> =
                [&counters[0], &counters[0], &counters[1]]
                    .into_iter()
                    .map(|c| scope.spawn(take(c)))
                    .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        got.sort();
        assert_eq!(got, (0..900).map(|i| 3 * i).collect::<Vec<i64>>());
        counters[1].set(-5).unwrap();
        assert_eq!(counters[0].get().unwrap(), -5);
        let alone = Counter::alone();
        assert_eq!((alone.fetch_add(4).unwrap(), alone.get().unwrap()), (0, 4));
    }
}
