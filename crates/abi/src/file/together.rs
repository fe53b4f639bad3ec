//! Collective access in two phases (MPI 5.0 section 14.4.2): some ranks access the file, each a part of it in long
//! runs, and the data goes between them and the ranks that have asked for it. Whether that pays is predicted from what
//! the file's accesses and exchanges have cost so far; else each rank moves its own pieces. Plan: [`disk::phase`].

use std::time::Instant;

use disk::experience::{AccessWay, Advice, Kind, Spell};
use disk::phase::{Costs, Cut, Plan, RoundCosts, Wish};
use disk::{AccessCosts, Piece};
use mpi::error::Result;
use mpi::file::refused;
use mpi::mem;

use super::access::{Direction, Job, Ready};
use super::agree::{agree, all_well, class_of};
use crate::coll::run::{self, Lists};
use crate::comm::host;
use crate::cx::Cx;
use crate::env::now_ns;

/// What ranks tell each other before anything is moved.
const WORDS: usize = 20;

/// Hints about the use of two phases, as they travel.
const AS_IT_PAYS: u64 = 2;

fn wish(job: &Job, way: Direction, ready: &Ready) -> Wish {
    let joins = |gap, len| way == Direction::Read && job.disk.reading.joins(gap, len);
    Wish::of(job.view.pieces(ready.start, ready.len), joins)
}

fn rates(job: &Job, way: Direction) -> &AccessCosts {
    if way == Direction::Read { &job.disk.reading } else { &job.disk.writing }
}

fn words(job: &Job, way: Direction, ranks: usize, host: u64, ready: &Result<Ready>) -> [u64; WORDS] {
    let wish = ready.as_ref().map_or(Wish::default(), |ready| wish(job, way, ready));
    let rates = rates(job, way);
    let tariff = RoundCosts::of(rates);
    let advice = rates.experience.advice(Kind::of(wish.bytes, wish.calls));
    let last = rates.experience.last();
    let buffering = job.hints.buffering.map_or(AS_IT_PAYS, u64::from);
    let (owners, buffer) = (job.hints.owners(ranks as u64), job.hints.buffer_bytes);
    [
        class_of(ready),
        wish.first,
        wish.end,
        wish.bytes,
        wish.calls,
        wish.moved,
        host,
        last.begun_ns,
        last.ended_ns,
        tariff.call_ps,
        tariff.byte_ps,
        tariff.round_ps,
        tariff.swap_ps,
        advice.alone_ps,
        advice.phases_ps,
        advice.tries,
        owners,
        buffer,
        job.hints.block_bytes,
        buffering | u64::from(job.atomic) << 8,
    ]
}

/// What all ranks have come to.
pub struct Agreed {
    /// How two phases go, if these are better.
    pub plan: Option<Plan>,
    /// What was predicted, where there was a choice.
    costs: Option<Costs>,
    kind: Kind,
}

impl Agreed {
    /// This rank has done its part; with its next access it tells the others.
    fn ended(&self, rates: &AccessCosts, begun_ns: u64) {
        let Some(costs) = self.costs else { return };
        let way = if self.plan.is_some() { AccessWay::Phases } else { AccessWay::Alone };
        let spell = Spell { begun_ns, ended_ns: now_ns() };
        rates.experience.ended(self.kind, way, costs.bytes, spell);
    }
}

/// What all ranks come to, with the hints and rates of the first.
fn plan(all: &[[u64; WORDS]], way: Direction) -> Agreed {
    let wish = |w: &[u64; WORDS]| Wish { first: w[1], end: w[2], bytes: w[3], calls: w[4], moved: w[5] };
    let wishes: Vec<Wish> = all.iter().map(wish).collect();
    let kind = Kind::of(wishes[0].bytes, wishes[0].calls);
    let [.., call_ps, byte_ps, round_ps, swap_ps, alone_ps, phases_ps, tries, owners, buffer, block, how] =
        all[0];
    // An atomic access is one locked section of the rank that makes it.
    let plan = Plan::new(&wishes, owners, buffer, block).filter(|_| all.len() > 1 && how >> 8 == 0);
    let Some(plan) = plan else { return Agreed { plan: None, costs: None, kind } };
    let tariff = RoundCosts { call_ps, byte_ps, round_ps, swap_ps };
    let costs = plan.costs(&wishes, tariff, way == Direction::Write);
    let is_better = match how & 0xff {
        AS_IT_PAYS => costs.takes_phases(Advice { alone_ps, phases_ps, tries }),
        how => how != 0,
    };
    Agreed { plan: is_better.then_some(plan), costs: Some(costs), kind }
}

/// Does a collective access; how many bytes of the stream were moved.
pub fn go(cx: &Cx, job: &Job, way: Direction, ready: Result<Ready>) -> Result<(u64, Ready)> {
    let (agreed, mut ready) = agree_on(cx, job, way, ready)?;
    if let Some(plan) = agreed.plan {
        return carry_out(cx, job, way, &agreed, plan, ready);
    }
    let begun_ns = now_ns();
    let moved = job.alone(way, &mut ready)?;
    agreed.ended(rates(job, way), begun_ns);
    Ok((moved, ready))
}

/// What all ranks come to, and their errors.
pub fn agree_on(cx: &Cx, job: &Job, way: Direction, ready: Result<Ready>) -> Result<(Agreed, Ready)> {
    let ranks = run::site(cx, job.comm)?.size;
    let host = host(cx, job.comm)? as u64;
    let all = run::exchange_words(cx, job.comm, words(job, way, ranks, host, &ready))?;
    let spell = |words: &[u64; WORDS]| {
        let [_, _, _, _, _, _, host, begun_ns, ended_ns, ..] = *words;
        (host, Spell { begun_ns, ended_ns })
    };
    rates(job, way).experience.told(all.iter().map(spell));
    let ready = all_well(ready, all.iter().map(|words| words[0]))?;
    Ok((plan(&all, way), ready))
}

/// Moves the bytes in two phases, which all have agreed upon; how many bytes of this rank's stream were moved.
pub fn carry_out(
    cx: &Cx,
    job: &Job,
    way: Direction,
    agreed: &Agreed,
    plan: Plan,
    mut ready: Ready,
) -> Result<(u64, Ready)> {
    let begun_ns = now_ns();
    let ranks = run::site(cx, job.comm)?.size;
    let cuts = plan.cut(job.view.pieces(ready.start, ready.len));
    let (mut moved, mut outcome) = (0, Ok(()));
    for round in 0..plan.rounds() {
        let from = cuts.partition_point(|cut| cut.round < round);
        let cuts = &cuts[from..cuts.partition_point(|cut| cut.round <= round)];
        let begun = Instant::now();
        let round = match way {
            Direction::Write => write_round(cx, job, ranks, cuts, &ready)?,
            Direction::Read => read_round(cx, job, ranks, cuts, &mut ready)?,
        };
        let took_ns = begun.elapsed().as_nanos() as u64;
        rates(job, way).exchanged(8 * round.words as u64, took_ns.saturating_sub(round.disk_ns));
        moved += round.bytes;
        outcome = outcome.and(round.outcome);
    }
    agree(cx, job.comm, outcome)?;
    agreed.ended(rates(job, way), begun_ns);
    Ok((moved, ready))
}

/// What came of one round.
struct Round {
    /// Of this rank's part of the file.
    outcome: Result,
    /// How many bytes of this rank's stream were moved.
    bytes: u64,
    /// How many words this rank has sent or received, whichever is more.
    words: usize,
    /// What the accesses of the file have taken.
    disk_ns: u64,
}

/// Lists of words for each rank: for the owners of the cuts what `entry` says, which is `words` words of all cuts.
fn lists<'a>(
    ranks: usize,
    cuts: &'a [Cut],
    words: usize,
    mut entry: impl FnMut(&mut Vec<u64>, &[&'a Cut]),
) -> Lists {
    let mut by_owner: Vec<Vec<&Cut>> = vec![Vec::new(); ranks];
    cuts.iter().for_each(|cut| by_owner[cut.owner].push(cut));
    // What comes in lies behind what goes out: about as much, and where there is room for it nothing is moved.
    let sent = 2 * ranks + 2 * cuts.len() + words;
    let mut lists = Lists::with_room(2 * sent);
    for cuts in by_owner {
        lists.push(|list| {
            if !cuts.is_empty() {
                list.push(cuts.len() as u64);
                list.extend(cuts.iter().flat_map(|cut| [cut.piece.offset, cut.piece.len]));
                entry(list, &cuts);
            }
        });
    }
    lists
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

/// Words that so many bytes fill.
fn words_for(bytes: u64) -> usize {
    bytes.div_ceil(8) as usize
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

    /// From the first byte of the file to the last.
    fn range(&self) -> std::ops::Range<u64> {
        self.runs.first().map_or(0, |run| run.offset)..self.runs.last().map_or(0, |run| run.end())
    }

    /// Where a piece lies that is in one of the runs.
    fn place(&self, piece: &Piece) -> usize {
        let run = self.runs.partition_point(|run| run.offset <= piece.offset) - 1;
        (self.starts[run] + piece.offset - self.runs[run].offset) as usize
    }
}

/// One round of writing.
fn write_round(cx: &Cx, job: &Job, ranks: usize, cuts: &[Cut], ready: &Ready) -> Result<Round> {
    let bytes = cuts.iter().map(|cut| cut.piece.len).sum();
    let lists = ready.stream.with(|data| {
        let of = |cut: &&Cut| &data[cut.position as usize..][..cut.piece.len as usize];
        lists(ranks, cuts, words_for(bytes), |list, cuts| push_bytes(list, &mut cuts.iter().map(of)))
    });
    let sent = lists.word_count();
    let came = run::exchange_lists(cx, job.comm, lists)?;
    let lists: Vec<(Vec<Piece>, &[u64])> = came.iter().map(parse).collect();
    let (outcome, disk_ns) = put(job, &lists);
    Ok(Round { outcome, bytes, words: sent.max(came.word_count()), disk_ns })
}

/// Writes what the ranks have sent: the pieces of each, and their bytes in words. How long that has taken as well.
fn put(job: &Job, lists: &[(Vec<Piece>, &[u64])]) -> (Result, u64) {
    let room = Room::of(lists.iter().flat_map(|(pieces, _)| pieces.iter().copied()).collect());
    let mut parts: Vec<(Piece, &[u8])> = Vec::new();
    for (pieces, words) in lists {
        let mut rest = mem::bytes_of(words);
        parts.extend(pieces.iter().map(|piece| {
            let (bytes, later) = rest.split_at(piece.len as usize);
            rest = later;
            (*piece, bytes)
        }));
    }
    let timed = |write: &mut dyn FnMut() -> disk::Result| {
        let begun = Instant::now();
        let outcome = job.disk.guarded(room.range(), false, write).map_err(refused);
        (outcome, begun.elapsed().as_nanos() as u64)
    };
    // The order of the ranks stays where it matters.
    let mut sorted = parts.clone();
    sorted.sort_by_key(|(piece, _)| piece.offset);
    if disk::is_gathered(&sorted) {
        return timed(&mut || disk::write_gathered(&job.disk, &sorted));
    }
    let mut data = vec![0; room.len as usize];
    // Rank by rank: where two write the same byte the higher one has written last, everywhere.
    for (piece, bytes) in parts {
        memcopy::copy_bytes(&mut data[room.place(&piece)..][..bytes.len()], bytes);
    }
    timed(&mut || disk::write(&job.disk, room.runs.iter().copied(), &data))
}

/// One round of reading.
fn read_round(cx: &Cx, job: &Job, ranks: usize, cuts: &[Cut], ready: &mut Ready) -> Result<Round> {
    let asked = run::exchange_lists(cx, job.comm, lists(ranks, cuts, 0, |_, _| ()))?;
    let asked: Vec<Vec<Piece>> = asked.iter().map(|list| parse(list).0).collect();
    let room = Room::of(asked.iter().flatten().copied().collect());
    let mut data = vec![0; room.len as usize];
    let begun = Instant::now();
    let mut read = || disk::read(&job.disk, room.runs.iter().copied(), &mut data, job.hints.buffer_bytes);
    let read = job.disk.guarded(room.range(), true, &mut read);
    let disk_ns = begun.elapsed().as_nanos() as u64;
    let (got, outcome) = match read.map_err(refused) {
        Ok(got) => (got, Ok(())),
        Err(error) => (0, Err(error)),
    };
    let all: u64 = asked.iter().flatten().map(|piece| piece.len).sum();
    let mut answers = Lists::with_room(2 * ranks + words_for(all));
    for pieces in &asked {
        // What lies before the end of the file is what lies before the end of what was read.
        let there = |piece: &Piece| {
            let from = room.place(piece).min(got);
            &data[from..(room.place(piece) + piece.len as usize).min(got)]
        };
        answers.push(|list| {
            list.push(pieces.iter().map(|piece| there(piece).len() as u64).sum());
            push_bytes(list, &mut pieces.iter().map(there));
        });
    }
    let sent = answers.word_count();
    let came = run::exchange_lists(cx, job.comm, answers)?;
    let mut moved = 0;
    for (owner, list) in came.iter().enumerate() {
        let Some((valid, words)) = list.split_first() else { continue };
        moved += fill(ready, cuts, owner, &mem::bytes_of(words)[..*valid as usize]);
    }
    Ok(Round { outcome, bytes: moved, words: sent.max(came.word_count()), disk_ns })
}

/// Puts what an owner has read into the stream; how many bytes that is.
fn fill(ready: &mut Ready, cuts: &[Cut], owner: usize, bytes: &[u8]) -> u64 {
    ready.stream.with_mut(|data| {
        let mut from = 0;
        for cut in cuts.iter().filter(|cut| cut.owner == owner) {
            let len = (cut.piece.len as usize).min(bytes.len() - from);
            memcopy::copy_bytes(&mut data[cut.position as usize..][..len], &bytes[from..from + len]);
            from += len;
        }
        from as u64
    })
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
            assert_eq!(mem::bytes_of(&list[1..])[..100], bytes);
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
