//! Collective access in two phases (MPI 5.0 section 14.4.2): some ranks access the file, each a part of it in long
//! runs, and the data goes between them and the ranks that have asked for it. Whether that pays is predicted from what
//! the file's accesses and exchanges have cost so far; else each rank moves its own pieces. Plan: [`disk::phase`].

use std::time::Instant;

use disk::Piece;
use disk::phase::{Cut, Plan, Tariff, Wish};
use mpi::error::Result;
use mpi::file::refused;

use super::access::{Job, Ready, Way};
use super::agree::{agree, all_well, class_of};
use crate::coll::run;
use crate::cx::Cx;

/// What ranks tell each other before anything is moved.
const WORDS: usize = 13;

/// Hints about the use of two phases, as they travel.
const AS_IT_PAYS: u64 = 2;

fn wish(job: &Job, way: Way, ready: &Ready) -> Wish {
    let joins = |gap, len| way == Way::Read && job.disk.reading.joins(gap, len);
    Wish::of(job.view.pieces(ready.start, ready.len), joins)
}

fn words(job: &Job, way: Way, ranks: usize, ready: &Result<Ready>) -> [u64; WORDS] {
    let wish = ready.as_ref().map_or(Wish::default(), |ready| wish(job, way, ready));
    let rates = if way == Way::Read { &job.disk.reading } else { &job.disk.writing };
    let tariff = Tariff::of(rates);
    let buffering = job.hints.buffering.map_or(AS_IT_PAYS, u64::from);
    let (owners, buffer) = (job.hints.owners(ranks as u64), job.hints.buffer_bytes);
    [
        class_of(ready),
        wish.first,
        wish.end,
        wish.bytes,
        wish.calls,
        wish.moved,
        tariff.call_ps,
        tariff.byte_ps,
        tariff.round_ps,
        tariff.swap_ps,
        owners,
        buffer,
        buffering | u64::from(job.atomic) << 8,
    ]
}

/// The plan that all ranks come to, if two phases are better; hints and rates are those of the first.
fn plan(all: &[[u64; WORDS]], way: Way) -> Option<Plan> {
    let wish = |w: &[u64; WORDS]| Wish { first: w[1], end: w[2], bytes: w[3], calls: w[4], moved: w[5] };
    let wishes: Vec<Wish> = all.iter().map(wish).collect();
    let [.., call_ps, byte_ps, round_ps, swap_ps, owners, buffer, how] = all[0];
    let plan = Plan::new(&wishes, owners, buffer)?;
    // An atomic access is one locked section of the rank that makes it.
    if all.len() == 1 || how >> 8 != 0 {
        return None;
    }
    let tariff = Tariff { call_ps, byte_ps, round_ps, swap_ps };
    let is_better = match how & 0xff {
        AS_IT_PAYS => plan.pays(&wishes, tariff, way == Way::Write),
        how => how != 0,
    };
    is_better.then_some(plan)
}

/// Does a collective access; how many bytes of the stream were moved.
pub fn go(cx: &Cx, job: &Job, way: Way, ready: Result<Ready>) -> Result<(u64, Ready)> {
    match agree_on(cx, job, way, ready)? {
        (Some(plan), ready) => carry_out(cx, job, way, &plan, ready),
        (None, mut ready) => Ok((job.alone(way, &mut ready)?, ready)),
    }
}

/// The plan of two phases, if these pay: else each rank moves its own pieces.
pub fn agree_on(cx: &Cx, job: &Job, way: Way, ready: Result<Ready>) -> Result<(Option<Plan>, Ready)> {
    let ranks = run::site(cx, job.comm)?.size;
    let all = run::exchange_words(cx, job.comm, words(job, way, ranks, &ready))?;
    let ready = all_well(ready, all.iter().map(|words| words[0]))?;
    Ok((plan(&all, way), ready))
}

/// Moves the bytes in two phases; how many bytes of this rank's stream were moved.
pub fn carry_out(cx: &Cx, job: &Job, way: Way, plan: &Plan, mut ready: Ready) -> Result<(u64, Ready)> {
    let ranks = run::site(cx, job.comm)?.size;
    let cuts = plan.cut(job.view.pieces(ready.start, ready.len));
    let rounds: Vec<&[Cut]> = (0..plan.rounds())
        .map(|round| {
            let from = cuts.partition_point(|cut| cut.round < round);
            &cuts[from..cuts.partition_point(|cut| cut.round <= round)]
        })
        .collect();
    let (mut moved, mut outcome) = (0, Ok(()));
    for cuts in rounds {
        let round = match way {
            Way::Write => write_round(cx, job, ranks, cuts, &ready),
            Way::Read => read_round(cx, job, ranks, cuts, &mut ready),
        };
        let (here, bytes) = round?;
        moved += bytes;
        outcome = outcome.and(here);
    }
    agree(cx, job.comm, outcome)?;
    Ok((moved, ready))
}

/// Lists of words for each rank: for the owners of the cuts what `entry` says.
fn lists<'a>(
    ranks: usize,
    cuts: &'a [Cut],
    mut entry: impl FnMut(&mut Vec<u64>, &[&'a Cut]),
) -> Vec<Vec<u64>> {
    let mut by_owner: Vec<Vec<&Cut>> = vec![Vec::new(); ranks];
    cuts.iter().for_each(|cut| by_owner[cut.owner].push(cut));
    let mut list = |cuts: &Vec<&'a Cut>| {
        let mut list = Vec::new();
        if !cuts.is_empty() {
            list.push(cuts.len() as u64);
            list.extend(cuts.iter().flat_map(|cut| [cut.piece.offset, cut.piece.len]));
            entry(&mut list, cuts);
        }
        list
    };
    by_owner.iter().map(&mut list).collect()
}

/// The pieces at the beginning of a list, and what follows.
fn parse(list: &[u64]) -> (Vec<Piece>, &[u64]) {
    let Some((count, rest)) = list.split_first() else { return (Vec::new(), &[]) };
    let (pieces, rest) = rest.split_at(2 * *count as usize);
    (pieces.as_chunks().0.iter().map(|[offset, len]| Piece { offset: *offset, len: *len }).collect(), rest)
}

/// Appends bytes to words, filled up with zeros.
fn push_bytes(list: &mut Vec<u64>, chunks: &mut dyn Iterator<Item = &[u8]>) {
    let (mut word, mut filled) = ([0; 8], 0);
    for mut bytes in chunks {
        while !bytes.is_empty() {
            if filled == 0 && bytes.len() >= 8 {
                let (whole, rest) = bytes.as_chunks::<8>();
                list.extend(whole.iter().map(|bytes| u64::from_ne_bytes(*bytes)));
                bytes = rest;
                continue;
            }
            let len = bytes.len().min(8 - filled);
            word[filled..filled + len].copy_from_slice(&bytes[..len]);
            (filled, bytes) = (filled + len, &bytes[len..]);
            if filled == 8 {
                list.push(u64::from_ne_bytes(word));
                (word, filled) = ([0; 8], 0);
            }
        }
    }
    if filled > 0 {
        list.push(u64::from_ne_bytes(word));
    }
}

/// The bytes in words.
fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn swap(cx: &Cx, job: &Job, way: Way, lists: &[Vec<u64>]) -> Result<Vec<Vec<u64>>> {
    let begun = Instant::now();
    let came = run::exchange_lists(cx, job.comm, lists)?;
    let sent: usize = lists.iter().map(Vec::len).sum();
    let got: usize = came.iter().map(Vec::len).sum();
    let rates = if way == Way::Read { &job.disk.reading } else { &job.disk.writing };
    rates.exchanged(8 * sent.max(got) as u64, begun.elapsed().as_nanos() as u64);
    Ok(came)
}

/// Pieces in ascending order, those that touch or overlap as one.
fn merged(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by_key(|piece| piece.offset);
    let mut runs: Vec<Piece> = Vec::new();
    for piece in pieces {
        match runs.last_mut() {
            Some(last) if piece.offset <= last.end() => last.len = last.len.max(piece.end() - last.offset),
            _ => runs.push(piece),
        }
    }
    runs
}

/// Where the runs lie that are kept one behind the other.
struct Room {
    runs: Vec<Piece>,
    starts: Vec<u64>,
    len: u64,
}

impl Room {
    fn of(pieces: Vec<Piece>) -> Room {
        let runs = merged(pieces);
        let mut len = 0;
        let mut start = |run: &Piece| {
            let start = len;
            len += run.len;
            start
        };
        let starts = runs.iter().map(&mut start).collect();
        Room { runs, starts, len }
    }

    /// Where a piece lies that is in one of the runs.
    fn place(&self, piece: &Piece) -> usize {
        let run = self.runs.partition_point(|run| run.offset <= piece.offset) - 1;
        (self.starts[run] + piece.offset - self.runs[run].offset) as usize
    }
}

/// One round of writing; the outcome of this rank's part of the file, and how many bytes of its own have gone.
fn write_round(cx: &Cx, job: &Job, ranks: usize, cuts: &[Cut], ready: &Ready) -> Result<(Result, u64)> {
    let lists = ready.stream.with(|data| {
        let of = |cut: &&Cut| &data[cut.position as usize..][..cut.piece.len as usize];
        lists(ranks, cuts, |list, cuts| push_bytes(list, &mut cuts.iter().map(of)))
    });
    let came = swap(cx, job, Way::Write, &lists)?;
    let parsed: Vec<(Vec<Piece>, Vec<u8>)> = came
        .iter()
        .map(|list| {
            let (pieces, data) = parse(list);
            (pieces, bytes_of(data))
        })
        .collect();
    let room = Room::of(parsed.iter().flat_map(|(pieces, _)| pieces.iter().copied()).collect());
    let mut data = vec![0; room.len as usize];
    // Rank by rank: where two write the same byte the higher one has written last, everywhere.
    for (pieces, bytes) in &parsed {
        let mut from = 0;
        for piece in pieces {
            let len = piece.len as usize;
            data[room.place(piece)..][..len].copy_from_slice(&bytes[from..from + len]);
            from += len;
        }
    }
    let outcome = disk::write(&job.disk, room.runs.iter().copied(), &data).map_err(refused);
    Ok((outcome, cuts.iter().map(|cut| cut.piece.len).sum()))
}

/// One round of reading; as [`write_round`].
fn read_round(cx: &Cx, job: &Job, ranks: usize, cuts: &[Cut], ready: &mut Ready) -> Result<(Result, u64)> {
    let asked = swap(cx, job, Way::Read, &lists(ranks, cuts, |_, _| ()))?;
    let asked: Vec<Vec<Piece>> = asked.iter().map(|list| parse(list).0).collect();
    let room = Room::of(asked.iter().flatten().copied().collect());
    let mut data = vec![0; room.len as usize];
    let read = disk::read(&job.disk, room.runs.iter().copied(), &mut data, job.hints.buffer_bytes);
    let (got, outcome) = match read.map_err(refused) {
        Ok(got) => (got, Ok(())),
        Err(error) => (0, Err(error)),
    };
    let answers: Vec<Vec<u64>> = asked
        .iter()
        .map(|pieces| {
            // What lies before the end of the file is what lies before the end of what was read.
            let there = |piece: &Piece| {
                let from = room.place(piece).min(got);
                &data[from..(room.place(piece) + piece.len as usize).min(got)]
            };
            let mut list = vec![pieces.iter().map(|piece| there(piece).len() as u64).sum()];
            push_bytes(&mut list, &mut pieces.iter().map(there));
            list
        })
        .collect();
    let came = swap(cx, job, Way::Read, &answers)?;
    let mut moved = 0;
    for (owner, list) in came.iter().enumerate() {
        let Some((valid, words)) = list.split_first() else { continue };
        let (bytes, mut from) = (bytes_of(words), 0);
        let valid = *valid as usize;
        for cut in cuts.iter().filter(|cut| cut.owner == owner) {
            let len = (cut.piece.len as usize).min(valid - from);
            ready.stream.with_mut(|data| {
                data[cut.position as usize..][..len].copy_from_slice(&bytes[from..from + len])
            });
            from += len;
        }
        moved += from as u64;
    }
    Ok((outcome, moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_as_words() {
        let bytes: Vec<u8> = (0..100).collect();
        for cut in 0..100 {
            let mut list = vec![7];
            push_bytes(&mut list, &mut [&bytes[..cut], &[], &bytes[cut..]].into_iter());
            assert_eq!(bytes_of(&list[1..])[..100], bytes);
        }
    }

    #[test]
    fn runs_hold_all_pieces() {
        let piece = |offset, len| Piece { offset, len };
        let room = Room::of(vec![piece(20, 5), piece(0, 4), piece(4, 4), piece(22, 8), piece(2, 3)]);
        assert_eq!(room.runs, [piece(0, 8), piece(20, 10)]);
        assert_eq!((room.place(&piece(4, 4)), room.place(&piece(22, 8)), room.len), (4, 10, 18));
    }
}
