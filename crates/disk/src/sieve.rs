//! Data that lies in a file in pieces. Reading sieves: pieces that lie close are read together with the gaps between
//! them, where the measured rates say that this is cheaper. Writing does not: to write a gap back is to undo what
//! another process has written there meanwhile, and MPI lets processes write disjoint bytes of a file without any
//! agreement (MPI 5.0 section 14.6.1). Many small writes are one call of the kernel ([`crate::scatter`]), or put together by the collective operations.

use std::io::IoSlice;
use std::time::Instant;

use crate::sys::PARTS_MAX;
use crate::{File, Piece, Result};

/// Pieces that the kernel is told of before they are read: as many as devices and servers have under way at once.
const AHEAD: u64 = 64;

/// Reads pieces in ascending order into `buffer`, one behind the other, with at most `window` bytes of the file at
/// once. How many bytes came: fewer where the file ends.
pub fn read(
    file: &File,
    pieces: impl Iterator<Item = Piece> + Clone,
    buffer: &mut [u8],
    window: u64,
) -> Result<usize> {
    let mut advice = Advice { pieces: pieces.clone(), read: 0, told: 0 };
    let mut pieces = pieces.peekable();
    let (mut done, mut group) = (0, Vec::new());
    let mut room = Vec::new();
    while let Some(first) = pieces.next() {
        advice.before(file, first.len);
        group.clear();
        group.push(first);
        let mut end = first.end();
        while let Some(next) = pieces.next_if(|next| {
            next.offset >= end
                && next.end() - first.offset <= window
                && file.reading.joins(next.offset - end, next.len)
        }) {
            end = next.end();
            group.push(next);
        }
        let wanted: u64 = group.iter().map(|piece| piece.len).sum();
        let into = &mut buffer[done..done + wanted as usize];
        let came = match group.len() {
            1 => file.read_at(into, first.offset)?,
            _ => read_together(file, &group, &mut room, into)?,
        };
        done += came;
        advice.read += group.len() as u64;
        if (came as u64) < wanted {
            break;
        }
    }
    Ok(done)
}

/// Tells the kernel of pieces before they are read, where reading waits: what one read waits for and what the next one does
/// then come at the same time. Where it was measured this was as good as io_uring (docs/protocols/files.md).
struct Advice<I> {
    /// Those it has not been told of.
    pieces: I,
    /// Pieces that were read.
    read: u64,
    /// Pieces it was told of, or that needed no advice.
    told: u64,
}

impl<I: Iterator<Item = Piece>> Advice<I> {
    /// A piece of so many bytes is about to be read.
    fn before(&mut self, file: &File, len: u64) {
        // Many at a time, so that the clock is not looked at for each.
        if !file.reading.waits(len) || self.told > self.read + AHEAD / 2 {
            return;
        }
        let begun = Instant::now();
        // What is being read needs no advice any more.
        let behind = (self.read + 1).saturating_sub(self.told);
        let wanted = behind + AHEAD;
        let mut calls = 0;
        for piece in self.pieces.by_ref().take(wanted as usize).skip(behind as usize) {
            file.will_be_read(piece.offset..piece.end());
            calls += 1;
        }
        self.told += wanted;
        if calls > 0 {
            file.reading.advised(calls, begun.elapsed().as_nanos() as u64);
        }
    }
}

/// Reads from the first piece to the last with one call.
fn read_together(file: &File, group: &[Piece], room: &mut Vec<u8>, into: &mut [u8]) -> Result<usize> {
    let start = group[0].offset;
    let span = (group[group.len() - 1].end() - start) as usize;
    room.resize(span, 0);
    let came = file.read_at(&mut room[..span], start)? as u64;
    let begun = Instant::now();
    let mut done = 0;
    for piece in group {
        let at = piece.offset - start;
        let len = came.saturating_sub(at).min(piece.len) as usize;
        memcopy::copy_bytes(&mut into[done..done + len], &room[at as usize..][..len]);
        done += len;
        if (len as u64) < piece.len {
            break;
        }
    }
    file.reading.copied(done as u64, begun.elapsed().as_nanos() as u64);
    Ok(done)
}

/// Writes pieces from `data`, in which they lie one behind the other.
pub fn write(file: &File, pieces: impl Iterator<Item = Piece>, data: &[u8]) -> Result {
    let (mut rest, mut parts) = (data, Vec::new());
    for piece in pieces {
        let (now, later) = rest.split_at(piece.len as usize);
        parts.push((piece, now));
        rest = later;
        if parts.len() == PARTS_MAX {
            file.write_pieces(&parts)?;
            parts.clear();
        }
    }
    file.write_pieces(&parts)
}

/// From which mean length on pieces are written from where they lie: copying less costs less than what the system does for
/// each of them.
const GATHERED_FROM: u64 = 512;

/// Whether pieces in ascending order, with what belongs into them, are written by [`write_gathered`]: they lie apart, and are
/// long enough.
pub fn is_gathered(parts: &[(Piece, &[u8])]) -> bool {
    let total: u64 = parts.iter().map(|(piece, _)| piece.len).sum();
    let are_apart = parts.windows(2).all(|pair| pair[0].0.end() <= pair[1].0.offset);
    are_apart && total >= GATHERED_FROM * parts.len() as u64
}

/// Writes pieces in ascending order with what belongs into them, those that touch by one call from where they lie.
pub fn write_gathered(file: &File, parts: &[(Piece, &[u8])]) -> Result {
    let mut places: Vec<IoSlice> = Vec::new();
    for run in parts.chunk_by(|one, next| one.0.end() == next.0.offset) {
        places.clear();
        places.extend(run.iter().map(|(_, bytes)| IoSlice::new(bytes)));
        file.write_gathered_at(&mut places, run[0].0.offset)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::file::tests::temporary;

    fn pieces(gaps: &[(u64, u64)]) -> Vec<Piece> {
        let mut at = 0;
        let mut place = |&(gap, len): &(u64, u64)| {
            let piece = Piece { offset: at + gap, len };
            at = piece.end();
            piece
        };
        gaps.iter().map(&mut place).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Against a file in memory; whether pieces are read together is changed by what a call costs.
        #[test]
        fn pieces_come_and_go_as_in_a_byte_map(
            gaps in prop::collection::vec((0u64..300, 1u64..200), 1..30),
            size in 0usize..5000,
            call_ns in prop::sample::select(vec![1u64, 100, 100_000]),
            window in prop::sample::select(vec![1u64, 500, 1 << 20]),
        ) {
            let (file, _gone) = temporary(&format!("sieve-{:?}", std::thread::current().id()));
            let mut map: Vec<u8> = (0..size).map(|i| (i * 7 + i / 256) as u8).collect();
            file.write_at(&map, 0).unwrap();
            let pieces = pieces(&gaps);
            let total: u64 = pieces.iter().map(|piece| piece.len).sum();
            for _ in 0..100 {
                file.reading.transferred(1, call_ns);
            }
            let mut expected = Vec::new();
            for piece in &pieces {
                let (from, to) = (size.min(piece.offset as usize), size.min(piece.end() as usize));
                expected.extend_from_slice(&map[from..to]);
            }
            let mut buffer = vec![0xee; total as usize];
            let came = read(&file, pieces.iter().copied(), &mut buffer, window).unwrap();
            prop_assert_eq!(&buffer[..came], &expected[..]);
            let data: Vec<u8> = (0..total).map(|i| i as u8 ^ 0x5a).collect();
            write(&file, pieces.iter().copied(), &data).unwrap();
            let mut from = 0;
            for piece in &pieces {
                map.resize(map.len().max(piece.end() as usize), 0);
                map[piece.offset as usize..piece.end() as usize].copy_from_slice(&data[from..][..piece.len as usize]);
                from += piece.len as usize;
            }
            let mut whole = vec![0; map.len() + 1];
            prop_assert_eq!(file.read_at(&mut whole, 0).unwrap(), map.len());
            prop_assert_eq!(&whole[..map.len()], &map[..]);
        }
    }

    #[test]
    fn pieces_are_gathered_where_they_lie_apart_and_are_long() {
        let (file, _gone) = temporary("gather");
        let bytes = [vec![1; 600], vec![2; 700], vec![3; 800]];
        let parts = |offsets: [u64; 3]| -> Vec<(Piece, &[u8])> {
            offsets
                .into_iter()
                .zip(&bytes)
                .map(|(offset, bytes)| (Piece { offset, len: bytes.len() as u64 }, &bytes[..]))
                .collect()
        };
        assert!(is_gathered(&parts([10, 610, 2000])));
        write_gathered(&file, &parts([10, 610, 2000])).unwrap();
        let mut back = vec![9; 3000];
        assert_eq!(file.read_at(&mut back, 0).unwrap(), 2800);
        assert!(back[10..610] == bytes[0] && back[610..1310] == bytes[1] && back[2000..2800] == bytes[2]);
        assert!(back[..10].iter().chain(&back[1310..2000]).all(|byte| *byte == 0));
        assert!(!is_gathered(&parts([10, 609, 2000])), "they overlap");
        assert!(!is_gathered(&[(Piece { offset: 0, len: 8 }, &[0; 8])]), "it is short");
    }
}
