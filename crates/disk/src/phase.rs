//! Two-phase collective access, planned: the bytes that all ranks want together are dealt out to some of them, each of
//! which moves its part between file and memory in long runs, while the data goes between ranks by messages
//! (del Rosario, Bordawekar, Choudhary: Improved parallel I/O via a two-phase run-time access strategy, 1993). Pure:
//! all ranks plan from the same facts and come to the same plan.

use crate::experience::Advice;
use crate::{AccessCosts, Piece};

/// Domains begin at multiples of this many bytes, so that no page is written by two.
const ALIGN: u64 = 4 << 10;

/// What one rank wants to access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wish {
    /// The first byte of the file.
    pub first: u64,
    /// Behind the last.
    pub end: u64,
    /// How many bytes.
    pub bytes: u64,
    /// In how many calls it would move them itself.
    pub calls: u64,
    /// How many bytes these would move, with the gaps that are read.
    pub moved: u64,
}

impl Wish {
    /// What these pieces are, in ascending order; `joins` says of a gap and the length behind it whether both are
    /// moved together with what lies before.
    pub fn of(pieces: impl Iterator<Item = Piece>, joins: impl Fn(u64, u64) -> bool) -> Wish {
        let mut wish = Wish::default();
        for piece in pieces {
            let gap = piece.offset.saturating_sub(wish.end);
            if wish.calls > 0 && joins(gap, piece.len) {
                wish.moved += gap;
            } else {
                wish.first = if wish.calls == 0 { piece.offset } else { wish.first };
                wish.calls += 1;
            }
            wish.bytes += piece.len;
            wish.moved += piece.len;
            wish.end = wish.end.max(piece.end()); // pieces that are read may lie in each other
        }
        wish
    }

    /// Whether a rank may want this of a file, whose offsets are those of `off_t`.
    pub fn is_sound(&self) -> bool {
        self.bytes == 0 || self.first < self.end && i64::try_from(self.end).is_ok()
    }
}

/// What moving costs, as one rank has measured it; all ranks go by the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundCosts {
    /// A call, in picoseconds.
    pub call_ps: u64,
    /// A byte of a call.
    pub byte_ps: u64,
    /// A round of the exchange.
    pub round_ps: u64,
    /// A byte exchanged.
    pub swap_ps: u64,
}

impl RoundCosts {
    /// What these rates say now.
    pub fn of(rates: &AccessCosts) -> RoundCosts {
        RoundCosts {
            call_ps: rates.call_ps(),
            byte_ps: rates.byte_ps(),
            round_ps: rates.round_ps(),
            swap_ps: rates.swap_ps(),
        }
    }
}

/// What a collective access is predicted to take, in picoseconds, as long as nothing is known of such accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// If each rank moves its pieces itself.
    pub alone_ps: u64,
    /// In two phases.
    pub phases_ps: u64,
    /// Bytes of all ranks.
    pub bytes: u64,
}

impl Costs {
    /// Whether two phases are taken: they are expected to take less, or it is time to try what takes more.
    pub fn takes_phases(&self, advice: Advice) -> bool {
        let expected = |predicted_ps: u64, known_ps: u64| match known_ps {
            0 => u128::from(predicted_ps),
            known_ps => u128::from(self.bytes) * u128::from(known_ps) / 1024,
        };
        let alone = expected(self.alone_ps, advice.alone_ps);
        let phases = expected(self.phases_ps, advice.phases_ps);
        let is_tried = alone.max(phases) <= alone.min(phases).saturating_mul(u128::from(advice.tries));
        (phases < alone) != is_tried
    }
}

/// Who accesses which part of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    start: u64,
    end: u64,
    /// Bytes of each block but the last: blocks go to the owners in turn.
    block: u64,
    owners: u64,
    /// Bytes an owner moves in one round.
    buffer: u64,
}

/// A piece as one owner gets it in one round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// In which round.
    pub round: u64,
    /// Who accesses it: a number below the number of owners.
    pub owner: usize,
    /// Where it lies in the file.
    pub piece: Piece,
    /// Where it lies in the data of the rank that wants it.
    pub position: u64,
}

impl Plan {
    /// Deals out what these ranks want to at most `owners` of them, in rounds of `buffer` bytes each: one domain to each,
    /// or blocks of so many bytes in turn if that is not 0. `None` if nobody wants anything.
    pub fn new(wishes: &[Wish], owners: u64, buffer: u64, block: u64) -> Option<Plan> {
        let wanted = || wishes.iter().filter(|wish| wish.bytes > 0);
        let start = wanted().map(|wish| wish.first).min()?;
        let end = wanted().map(|wish| wish.end).max()?;
        let start = start - start % if block > 0 { block } else { ALIGN };
        let owners = owners.max(1);
        let block = if block > 0 { block } else { (end - start).div_ceil(owners).next_multiple_of(ALIGN) };
        let owners = owners.min((end - start).div_ceil(block));
        Some(Plan { start, end, block, owners, buffer: buffer.max(ALIGN) })
    }

    /// How many ranks access the file: the first ones.
    pub fn owners(&self) -> usize {
        self.owners as usize
    }

    /// How many rounds there are, the same for all.
    pub fn rounds(&self) -> u64 {
        self.largest().div_ceil(self.buffer)
    }

    /// Bytes of the owner that has most.
    fn largest(&self) -> u64 {
        let span = self.end - self.start;
        let turns = span.div_ceil(self.block).div_ceil(self.owners);
        turns.saturating_mul(self.block).min(span)
    }

    /// The pieces of one rank, which lie in its data one behind the other, as they go to owners, by rounds.
    pub fn cut(&self, pieces: impl Iterator<Item = Piece>) -> Vec<Cut> {
        let (mut cuts, mut position) = (Vec::new(), 0);
        for piece in pieces {
            let mut at = piece.offset;
            while at < piece.end() {
                let (owner, round, left) = self.dealt(at);
                let len = (piece.end() - at).min(left);
                cuts.push(Cut { round, owner, piece: Piece { offset: at, len }, position });
                (at, position) = (at + len, position + len);
            }
        }
        cuts.sort_by_key(|cut| cut.round);
        cuts
    }

    /// Who moves the byte at this offset, in which round, and how many bytes from it on go with it.
    fn dealt(&self, at: u64) -> (usize, u64, u64) {
        let (number, inside) = ((at - self.start) / self.block, (at - self.start) % self.block);
        // Where it lies in what its owner has, block behind block.
        let there = number / self.owners * self.block + inside;
        let left = (self.block - inside).min(self.buffer - there % self.buffer);
        ((number % self.owners) as usize, there / self.buffer, left)
    }

    /// Whether this owner moves a piece in this round, all of it.
    pub fn deals(&self, piece: &Piece, owner: usize, round: u64) -> bool {
        let end = piece.offset.checked_add(piece.len).filter(|end| *end <= self.end);
        if piece.offset < self.start || piece.len == 0 || end.is_none() {
            return false;
        }
        let (of, when, left) = self.dealt(piece.offset);
        (of, when) == (owner, round) && piece.len <= left
    }

    /// What this costs, and what it costs that each rank moves its pieces itself. Writers of one file exclude each other
    /// in the kernel, readers do not.
    pub fn costs(&self, wishes: &[Wish], tariff: RoundCosts, writes: bool) -> Costs {
        let cost = |calls: u64, bytes: u64| {
            let all = u128::from(calls) * u128::from(tariff.call_ps);
            all.saturating_add(u128::from(bytes) * u128::from(tariff.byte_ps))
        };
        // Ranks may say any numbers.
        let sum = |of: fn(&Wish) -> u64| wishes.iter().map(of).fold(0, u64::saturating_add);
        let alone = wishes.iter().map(|wish| cost(wish.calls, wish.moved));
        let alone: u128 = if writes { alone.fold(0, u128::saturating_add) } else { alone.max().unwrap_or(0) };
        let total = sum(|wish| wish.bytes);
        let span = self.end - self.start;
        let ranks = wishes.len().max(1) as u64;
        // Gaps are left out by writers: as many calls as there are gaps, at most one for each piece.
        let pieces = sum(|wish| wish.calls);
        let is_whole = total >= span;
        let runs = (self.rounds() * self.owners).max(span.div_ceil(self.block));
        let calls =
            if is_whole || !writes { runs } else { pieces.min(1 + (span - total)).max(runs.min(pieces)) };
        let moved = if writes { cost(calls, total) } else { cost(calls, span) / u128::from(self.owners) };
        let swapped = u128::from(total / ranks) * u128::from(tariff.swap_ps);
        let messages = u128::from(self.rounds()) * u128::from(tariff.round_ps);
        let messages = messages.saturating_add(swapped.saturating_mul(2));
        let fit = |cost: u128| u64::try_from(cost).unwrap_or(u64::MAX);
        Costs { alone_ps: fit(alone), phases_ps: fit(moved.saturating_add(messages)), bytes: total }
    }
}

/// Whether the parts of the file that two ranks want lie among each other.
pub fn interleaved(wishes: &[Wish]) -> bool {
    let mut ranges: Vec<(u64, u64)> =
        wishes.iter().filter(|wish| wish.bytes > 0).map(|wish| (wish.first, wish.end)).collect();
    ranges.sort();
    ranges.windows(2).any(|pair| pair[0].1 > pair[1].0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_byte_goes_to_one_owner_in_one_round(
            lens in prop::collection::vec((0u64..9000, 1u64..20_000), 1..20),
            owners in 1u64..9,
            buffer in 1u64..40_000,
            block in prop_oneof![Just(0), 1u64..30_000],
            start in 0u64..1_000_000,
        ) {
            let mut at = start;
            let pieces: Vec<Piece> = lens.iter().map(|&(gap, len)| {
                let piece = Piece { offset: at + gap, len };
                at = piece.end();
                piece
            }).collect();
            let bytes = pieces.iter().map(|piece| piece.len).sum();
            let wish = Wish::of(pieces.iter().copied(), |_, _| false);
            prop_assert_eq!((wish.first, wish.end, wish.bytes), (pieces[0].offset, at, bytes));
            let plan = Plan::new(&[Wish::default(), wish], owners, buffer, block).unwrap();
            prop_assert!(plan.owners() as u64 <= owners);
            let mut cuts = plan.cut(pieces.iter().copied());
            let mut moved = std::collections::BTreeMap::new();
            for cut in &cuts {
                prop_assert!(cut.round < plan.rounds() && cut.owner < plan.owners());
                prop_assert!(plan.deals(&cut.piece, cut.owner, cut.round));
                let longer = Piece { len: cut.piece.len + plan.buffer, ..cut.piece };
                prop_assert!(!plan.deals(&longer, cut.owner, cut.round));
                prop_assert!(!plan.deals(&cut.piece, cut.owner, cut.round + 1));
                *moved.entry((cut.round, cut.owner)).or_insert(0) += cut.piece.len;
                let number = |at: u64| at.checked_div(block).unwrap_or(0);
                if block > 0 {
                    let turn = number(cut.piece.offset) - number(pieces[0].offset);
                    prop_assert_eq!(cut.owner as u64, turn % plan.owners() as u64);
                    prop_assert_eq!(number(cut.piece.end() - 1), number(cut.piece.offset));
                }
            }
            prop_assert!(moved.values().all(|bytes| *bytes <= buffer.max(ALIGN)));
            // A page has one owner, unless blocks are asked for that are no pages.
            let mut pages = std::collections::BTreeMap::new();
            for cut in cuts.iter().filter(|_| block == 0) {
                for page in cut.piece.offset / ALIGN..=(cut.piece.end() - 1) / ALIGN {
                    prop_assert_eq!(*pages.entry(page).or_insert(cut.owner), cut.owner);
                }
            }
            cuts.sort_by_key(|cut| cut.position);
            let mut again: Vec<Piece> = Vec::new();
            let mut position = 0;
            for cut in cuts {
                prop_assert_eq!(cut.position, position);
                position += cut.piece.len;
                match again.last_mut() {
                    Some(last) if last.end() == cut.piece.offset => last.len += cut.piece.len,
                    _ => again.push(cut.piece),
                }
            }
            prop_assert_eq!(position, bytes);
            let mut merged: Vec<Piece> = Vec::new();
            for piece in pieces {
                match merged.last_mut() {
                    Some(last) if last.end() == piece.offset => last.len += piece.len,
                    _ => merged.push(piece),
                }
            }
            prop_assert_eq!(again, merged);
        }
    }

    /// As filetypes for reading may have them (MPI 5.0 section 14.1.1): the plan has all of it.
    #[test]
    fn pieces_in_each_other_end_where_the_last_byte_is() {
        let pieces = [(0, 100_000), (8, 8)].map(|(offset, len)| Piece { offset, len });
        let wish = Wish::of(pieces.into_iter(), |_, _| false);
        assert_eq!((wish.first, wish.end), (0, 100_000));
        let plan = Plan::new(&[wish], 1, 4096, 0).unwrap();
        assert!(plan.cut(pieces.into_iter()).iter().all(|cut| cut.round < plan.rounds()));
    }

    #[test]
    fn many_small_pieces_are_worth_it_and_large_blocks_are_not() {
        let tariff = RoundCosts::of(&AccessCosts::default());
        let strided: Vec<Wish> = (0..8)
            .map(|i| Wish::of((0..1 << 17).map(|k| Piece { offset: 64 * k + 8 * i, len: 8 }), |_, _| false))
            .collect();
        let plan = Plan::new(&strided, 8, 16 << 20, 0).unwrap();
        let costs = plan.costs(&strided, tariff, true);
        assert!(costs.takes_phases(Advice::NONE));
        let never = Advice { phases_ps: 1 << 40, ..Advice::NONE };
        assert!(!costs.takes_phases(never), "it never came true");
        assert!(!costs.takes_phases(Advice { tries: 1000, ..Advice::NONE }), "the other way is tried");
        assert!(interleaved(&strided));
        let read = |gap, len| AccessCosts::default().joins(gap, len);
        let sieved: Vec<Wish> = (0..8)
            .map(|i| Wish::of((0..1 << 17).map(|k| Piece { offset: 64 * k + 8 * i, len: 8 }), read))
            .collect();
        assert_eq!((sieved[0].calls, sieved[0].moved), (1, (8 << 20) - 56));
        let blocks: Vec<Wish> = (0..8)
            .map(|i| Wish::of(std::iter::once(Piece { offset: i << 20, len: 1 << 20 }), |_, _| false))
            .collect();
        let plan = Plan::new(&blocks, 8, 16 << 20, 0).unwrap();
        assert!(
            [true, false]
                .iter()
                .all(|writes| !plan.costs(&blocks, tariff, *writes).takes_phases(Advice::NONE))
        );
        assert!(!interleaved(&blocks));
        assert_eq!(Plan::new(&[Wish::default(); 3], 3, 1, 0), None);
    }
}
