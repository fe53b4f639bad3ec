//! Short pieces of a file, many by one call: into a mapping of it.
//!
//! Processes that write pieces in turn wait for each other at the file's lock in the kernel, for each piece. Into a mapping they do not, and no
//! byte is touched that nobody has asked to write. Stores of this process would be SIGBUS behind the end of a file that another one has cut, or on
//! a full disk; so the kernel stores (`process_vm_readv`), and what it cannot store is written by calls, which tell the error.
//!
//! ```text
//! the last piece by a call      the file is as long as it is to be
//! the others into the mapping   up to 1024 at once
//! what is left of them          by calls
//! ```
//!
//! Which way is taken is learnt: of chunks of about as many bytes in about as many pieces what each took.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

use fabric::arms::{Arms, Policy};
use fabric::estimate::Estimate;

use crate::Piece;
use crate::experience::{Kind, SEEN};
use crate::sys::{self, Mapping};

/// Fewer are written one by one: to map costs more than they do.
const FEW: usize = 8;
/// Bytes of a file that are mapped at a time: few enough to be had everywhere, and far more than a chunk has as a rule.
const WINDOW: u64 = 64 << 20;
/// It begins at multiples of this, which are whole pages of any machine.
const ALIGNED: u64 = 64 << 10;

/// The other way is tried soon, and later and later.
const POLICY: Policy = Policy { margin: 0.05, dwell: 0, tries: (2, 64) };

/// How a chunk of pieces is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// A call for each.
    Calls,
    /// One into a mapping.
    Mapping,
}

impl By {
    const ALL: [By; 2] = [By::Calls, By::Mapping];
}

/// What each way took per byte.
#[derive(Debug)]
struct Ways {
    costs: [(By, Estimate); 2],
    arms: Arms<By>,
}

impl Default for Ways {
    fn default() -> Ways {
        let costs = By::ALL.map(|way| (way, Estimate::default()));
        Ways { costs, arms: Arms::new(By::Calls, &POLICY) }
    }
}

impl Ways {
    fn next(&mut self) -> By {
        self.arms.step();
        let known = self.costs.iter().filter_map(|(way, cost)| Some((*way, cost.value()?)));
        let best = self.arms.best(&POLICY, 0.0, known);
        self.arms.change(best);
        if self.arms.is_due(&POLICY) { self.arms.turn(&By::ALL, best) } else { best }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Whether the kernel stores into a mapping of the file, once that is known.
    may: Option<bool>,
    mapping: Option<Mapping>,
    ways: BTreeMap<Kind, Ways>,
}

/// What one open file knows of it.
#[derive(Debug, Default)]
pub struct Scatter(Mutex<State>);

impl Scatter {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }

    /// How these are to be written, and what kind they are if that is to be learnt from.
    pub fn way(&self, file: &fs::File, parts: &[(Piece, &[u8])]) -> (By, Option<Kind>) {
        if parts.len() < FEW || !is_in_window(parts) {
            return (By::Calls, None);
        }
        let mut state = self.state();
        if !*state.may.get_or_insert_with(|| sys::may_be_mapped(file)) {
            return (By::Calls, None);
        }
        let kind = Kind::of(parts.iter().map(|(piece, _)| piece.len).sum(), parts.len() as u64);
        (state.ways.entry(kind).or_default().next(), Some(kind))
    }

    /// A chunk of so many bytes has taken so long.
    pub fn took(&self, kind: Kind, way: By, bytes: u64, took_ns: u64) {
        let mut state = self.state();
        let costs = &mut state.ways.entry(kind).or_default().costs;
        let (_, cost) = costs.iter_mut().find(|(of, _)| *of == way).expect("each way has costs");
        cost.observe(&SEEN, took_ns as f64 / bytes.max(1) as f64);
    }

    /// Stores pieces in ascending order, which the file is long enough for; how many of them, from the first on.
    pub fn store(&self, file: &fs::File, parts: &[(Piece, &[u8])]) -> usize {
        let (Some((first, _)), Some((last, _))) = (parts.first(), parts.last()) else { return 0 };
        let mut state = self.state();
        let is_there = |mapping: &Mapping| mapping.has(&(first.offset..last.end()));
        if !state.mapping.as_ref().is_some_and(is_there) {
            let begin = first.offset - first.offset % ALIGNED;
            state.mapping = Mapping::of(file, begin..begin + WINDOW + ALIGNED);
        }
        let Some(stored) = state.mapping.as_ref().and_then(|mapping| mapping.store(parts)) else {
            (state.may, state.mapping) = (Some(false), None);
            return 0;
        };
        let ends = parts.iter().scan(0, |sum, (piece, _)| {
            *sum += piece.len;
            Some(*sum)
        });
        ends.take_while(|end| *end <= stored).count()
    }
}

/// Whether pieces are in ascending order, lie apart, and not too far from the first to the last.
fn is_in_window(parts: &[(Piece, &[u8])]) -> bool {
    let are_apart = parts.windows(2).all(|pair| pair[0].0.end() <= pair[1].0.offset);
    let (Some((first, _)), Some((last, _))) = (parts.first(), parts.last()) else { return false };
    are_apart && last.end() - first.offset <= WINDOW && last.end() <= i64::MAX as u64 - 2 * WINDOW
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;
    use crate::file::tests::{BOTH, temporaries, temporary};
    use crate::{File, How, Locking};

    /// Pieces behind these gaps and of these lengths, with bytes that depend on `seed`.
    fn parts<'a>(gaps: &[(u64, u64)], data: &'a [u8], seed: usize) -> Vec<(Piece, &'a [u8])> {
        let (mut at, mut from) = (0, seed % 100);
        let mut next = |&(gap, len): &(u64, u64)| {
            let piece = Piece { offset: at + gap, len };
            (at, from) = (piece.end(), from + len as usize);
            (piece, &data[from - len as usize..from])
        };
        gaps.iter().map(&mut next).collect()
    }

    fn put(map: &mut Vec<u8>, parts: &[(Piece, &[u8])]) {
        for (piece, bytes) in parts {
            map.resize(map.len().max(piece.end() as usize), 0);
            map[piece.offset as usize..piece.end() as usize].copy_from_slice(bytes);
        }
    }

    fn check(file: &File, map: &[u8]) {
        let mut whole = vec![0xee; map.len() + 1];
        assert_eq!(file.read_at(&mut whole, 0).unwrap(), map.len());
        assert!(whole[..map.len()] == *map);
    }

    fn data() -> Vec<u8> {
        (0..200_000usize).map(|i| (i * 7 + i / 256) as u8).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Against bytes in memory, whichever way is taken, while another process cuts the file or makes it longer.
        #[test]
        fn pieces_are_written_as_in_a_byte_map(
            rounds in prop::collection::vec((prop::collection::vec((0u64..9000, 1u64..300), 1..40), 0usize..3), 1..8),
        ) {
            let data = data();
            for (file, gone) in temporaries(&format!("scatter-{:?}", std::thread::current().id())) {
                let (other, mut map) = (File::open(&gone.0, BOTH).unwrap(), Vec::new());
                for (seed, (gaps, what)) in rounds.iter().enumerate() {
                    let parts = parts(gaps, &data, seed);
                    match what {
                        0 => file.write_pieces(&parts).unwrap(),
                        _ => file.write_mapped(&parts).unwrap(),
                    }
                    put(&mut map, &parts);
                    check(&other, &map);
                    if *what == 2 {
                        map.truncate(map.len() / 2);
                        other.set_size(map.len() as u64).unwrap();
                    }
                }
            }
        }
    }

    /// What the kernel cannot store is written by calls: all of it where the file has been cut behind its first page.
    #[test]
    fn what_lies_behind_the_end_is_not_stored() {
        for (file, gone) in temporaries("cut") {
            let plain = fs::File::options().read(true).write(true).open(&gone.0).unwrap();
            let (data, scatter) = (data(), Scatter::default());
            let parts = parts(&[(0, 100), (5000, 100), (20_000, 100)], &data, 0);
            file.set_size(100).unwrap();
            assert_eq!(scatter.store(&plain, &parts), 1);
            file.set_size(30_000).unwrap();
            assert_eq!(scatter.store(&plain, &parts), 3, "the same mapping");
            let mut map = vec![0; 30_000];
            put(&mut map, &parts);
            check(&file, &map);
        }
    }

    /// What is stored while the pages are written back and given up is there when they are read again.
    #[test]
    fn what_is_stored_beside_writing_back_is_kept() {
        for (file, gone) in temporaries("back") {
            let (data, rounds_left) = (data(), AtomicU32::new(200));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let (plain, begun) = (fs::File::open(&gone.0).unwrap(), Instant::now());
                    // A round that fails counts nothing more.
                    while rounds_left.load(Relaxed) > 0 && begun.elapsed().as_secs() < 60 {
                        plain.sync_all().unwrap();
                        sys::give_up_pages(&plain);
                    }
                });
                let mut map = Vec::new();
                for seed in 0..200 {
                    let parts = parts(&[(900, 100); 500], &data, seed);
                    file.write_mapped(&parts).unwrap();
                    put(&mut map, &parts);
                    check(&file, &map);
                    rounds_left.fetch_sub(1, Relaxed);
                }
            });
        }
    }

    /// The cheaper way is taken, and the other one tried now and then.
    #[test]
    fn the_cheaper_way_is_taken() {
        let (file, gone) = temporary("ways");
        let plain = fs::File::options().read(true).write(true).open(&gone.0).unwrap();
        if !sys::may_be_mapped(&plain) {
            return;
        }
        let (data, scatter) = (data(), Scatter::default());
        let parts = parts(&[(10, 100); 20], &data, 0);
        assert_eq!(scatter.way(&plain, &parts[..FEW - 1]), (By::Calls, None), "they are few");
        for cheap in [By::Mapping, By::Calls] {
            let mut count = 0;
            for _ in 0..1000 {
                let (way, kind) = scatter.way(&plain, &parts);
                count += u32::from(way == cheap);
                scatter.took(kind.unwrap(), way, 2000, if way == cheap { 1000 } else { 3000 });
            }
            assert!(count > 900, "{cheap:?} {count}");
        }
        drop(file);
    }

    /// A file that is locked, or cannot be read, is written by calls.
    #[test]
    fn what_needs_locks_is_written_by_calls() {
        let (_file, gone) = temporary("locks");
        let data = data();
        let parts = parts(&[(10, 100); 20], &data, 0);
        for how in [How { locking: Locking::Always, ..BOTH }, How { read: false, ..BOTH }] {
            let file = File::open(&gone.0, how).unwrap();
            (0..10).for_each(|_| file.write_pieces(&parts).unwrap());
            let mut map = Vec::new();
            put(&mut map, &parts);
            check(&_file, &map);
        }
    }
}
