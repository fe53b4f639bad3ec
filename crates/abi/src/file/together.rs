//! Collective access in two phases (MPI 5.0 section 14.4.2): some ranks access the file, each a part of it in long
//! runs, and the data goes between them and the ranks that have asked for it. Whether that pays is predicted from what
//! the file's accesses and exchanges have cost so far; else each rank moves its own pieces. Plan: [`disk::phase`].

use std::time::Instant;

use disk::experience::{AccessWay, Kind, Spell};
use disk::phase::{Costs, Cut, Plan, RoundCosts, Wish};
use disk::round::{self, Room, Said, Turn};
use disk::{AccessCosts, Piece};
use mpi::error::{Class, Error, Result};
use mpi::file::refused;
use mpi::mem;

use super::access::{Direction, Job, Ready};
use super::agree::{agree, all_well, class_of};
use crate::coll::run::{self, Lists};
use crate::comm::host;
use crate::cx::Cx;
use crate::env::now_ns;

fn wish(job: &Job, way: Direction, ready: &Ready) -> Wish {
    let joins = |gap, len| way == Direction::Read && job.disk.reading.joins(gap, len);
    Wish::of(job.view.pieces(ready.start, ready.len), joins)
}

fn rates(job: &Job, way: Direction) -> &AccessCosts {
    if way == Direction::Read { &job.disk.reading } else { &job.disk.writing }
}

/// What this rank says before anything is moved.
fn said(job: &Job, way: Direction, ranks: usize, host: u64, ready: &Result<Ready>) -> Said {
    let wish = ready.as_ref().map_or(Wish::default(), |ready| wish(job, way, ready));
    let rates = rates(job, way);
    Said {
        class: class_of(ready),
        wish,
        host,
        last: rates.experience.last(),
        tariff: RoundCosts::of(rates),
        advice: rates.experience.advice(Kind::of(wish.bytes, wish.calls)),
        owners: job.hints.owners(ranks as u64),
        buffer: job.hints.buffer_bytes,
        block: job.hints.block_bytes,
        phases: job.hints.buffering,
        is_atomic: job.atomic,
    }
}

/// What a rank has told is none of what it may tell.
fn malformed(rank: usize, what: &str) -> Error {
    let text = format!("{what} of rank {rank} of the file's communicator is malformed");
    Error::new(Class::INTERN, text)
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

/// What all ranks come to.
fn plan(all: &[Said], way: Direction) -> Agreed {
    let kind = Kind::of(all[0].wish.bytes, all[0].wish.calls);
    let settled = round::settle(all, way == Direction::Write);
    let plan = settled.filter(|(.., is_taken)| *is_taken).map(|(plan, ..)| plan);
    Agreed { plan, costs: settled.map(|(_, costs, _)| costs), kind }
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
    let all = run::exchange_words(cx, job.comm, said(job, way, ranks, host, &ready).to_words())?;
    let all = all.iter().enumerate().map(|(rank, words)| {
        Said::from_words(words, ranks).ok_or_else(|| malformed(rank, "the part in a collective access"))
    });
    let all = all.collect::<Result<Vec<Said>>>()?;
    rates(job, way).experience.told(all.iter().map(|said| (said.host, said.last)));
    let ready = all_well(ready, all.iter().map(|said| said.class))?;
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
    let run::Site { rank, size: ranks, .. } = run::site(cx, job.comm)?;
    let cuts = plan.cut(job.view.pieces(ready.start, ready.len));
    let (mut moved, mut outcome) = (0, Ok(()));
    for round in 0..plan.rounds() {
        let from = cuts.partition_point(|cut| cut.round < round);
        let cuts = &cuts[from..cuts.partition_point(|cut| cut.round <= round)];
        let turn = Turn { plan: &plan, owner: rank, round };
        let begun = Instant::now();
        let round = match way {
            Direction::Write => write_round(cx, job, ranks, (cuts, turn), &ready)?,
            Direction::Read => read_round(cx, job, ranks, (cuts, turn), &mut ready)?,
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
                round::push_pieces(list, cuts.iter().map(|cut| cut.piece));
                entry(list, &cuts);
            }
        });
    }
    lists
}

/// One round of writing: this rank's cuts of it, and what is its turn.
fn write_round(
    cx: &Cx,
    job: &Job,
    ranks: usize,
    (cuts, turn): (&[Cut], Turn),
    ready: &Ready,
) -> Result<Round> {
    let bytes = cuts.iter().map(|cut| cut.piece.len).sum();
    let lists = ready.stream.with(|data| {
        let of = |cut: &&Cut| &data[cut.position as usize..][..cut.piece.len as usize];
        let words = round::words_for(bytes);
        lists(ranks, cuts, words, |list, cuts| round::push_bytes(list, &mut cuts.iter().map(of)))
    });
    let sent = lists.word_count();
    let came = run::exchange_lists(cx, job.comm, lists)?;
    let brought = |(rank, list)| turn.brought(list).ok_or_else(|| malformed(rank, "what is to be written"));
    let lists: Result<Vec<_>> = came.iter().enumerate().map(brought).collect();
    // Nobody waits for one that has found something wrong: all learn of it behind the last round.
    let (outcome, disk_ns) = lists.map_or_else(|error| (Err(error), 0), |lists| put(job, &lists));
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

/// One round of reading, as [`write_round`].
fn read_round(
    cx: &Cx,
    job: &Job,
    ranks: usize,
    (cuts, turn): (&[Cut], Turn),
    ready: &mut Ready,
) -> Result<Round> {
    let came = run::exchange_lists(cx, job.comm, lists(ranks, cuts, 0, |_, _| ()))?;
    let mut wrong = None;
    let mut asked = |(rank, list)| {
        let pieces = turn.asked(list);
        pieces.unwrap_or_else(|| {
            wrong.get_or_insert_with(|| malformed(rank, "what is to be read"));
            Vec::new()
        })
    };
    let asked: Vec<Vec<Piece>> = came.iter().enumerate().map(&mut asked).collect();
    let room = Room::of(asked.iter().flatten().copied().collect());
    let mut data = vec![0; room.len as usize];
    let begun = Instant::now();
    let mut read = || disk::read(&job.disk, room.runs.iter().copied(), &mut data, job.hints.buffer_bytes);
    let read = job.disk.guarded(room.range(), true, &mut read);
    let disk_ns = begun.elapsed().as_nanos() as u64;
    let (got, outcome) = match read.map_err(refused) {
        Ok(got) => (got, wrong.map_or(Ok(()), Err)),
        Err(error) => (0, Err(error)),
    };
    let answers = answers(ranks, &asked, (&room, &data[..got]));
    let sent = answers.word_count();
    let came = run::exchange_lists(cx, job.comm, answers)?;
    let (moved, filled) = take(ready, cuts, &came);
    let words = sent.max(came.word_count());
    Ok(Round { outcome: outcome.and(filled), bytes: moved, words, disk_ns })
}

/// For each rank what was read of the pieces it has asked for: as many bytes as there are, and these in words.
fn answers(ranks: usize, asked: &[Vec<Piece>], (room, data): (&Room, &[u8])) -> Lists {
    let all: u64 = asked.iter().flatten().map(|piece| piece.len).sum();
    let mut answers = Lists::with_room(2 * ranks + round::words_for(all));
    for pieces in asked {
        // What lies before the end of the file is what lies before the end of what was read.
        let there = |piece: &Piece| {
            let from = room.place(piece).min(data.len());
            &data[from..(room.place(piece) + piece.len as usize).min(data.len())]
        };
        answers.push(|list| {
            list.push(pieces.iter().map(|piece| there(piece).len() as u64).sum());
            round::push_bytes(list, &mut pieces.iter().map(there));
        });
    }
    answers
}

/// Puts what the owners have answered into the stream; how many bytes that is.
fn take(ready: &mut Ready, cuts: &[Cut], came: &Lists) -> (u64, Result) {
    let (mut moved, mut outcome) = (0, Ok(()));
    for (owner, list) in came.iter().enumerate() {
        let asked = cuts.iter().filter(|cut| cut.owner == owner).map(|cut| cut.piece.len).sum();
        match round::answered(list, asked) {
            Some((valid, words)) => moved += fill(ready, cuts, owner, &mem::bytes_of(words)[..valid]),
            None => outcome = outcome.and(Err(malformed(owner, "what was read"))),
        }
    }
    (moved, outcome)
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
