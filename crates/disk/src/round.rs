//! What ranks tell each other when they access a file in two phases ([`crate::phase`]): what each wants, then in each round
//! lists of words, which are pieces of the file and their bytes. It is checked before it is used: whatever a list says, nothing outside of
//! memory is touched, and nothing of the file but what its reader moves in this round.

use crate::Piece;
use crate::experience::{Advice, Spell};
use crate::phase::{Costs, Plan, RoundCosts, Wish};

/// What one rank says of an access before anything is moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Said {
    /// The class of the error with which it has failed, 0 if it has not.
    pub class: u64,
    /// What it wants.
    pub wish: Wish,
    /// The number of its host.
    pub host: u64,
    /// When it was at the last access.
    pub last: Spell,
    /// What moving costs it.
    pub tariff: RoundCosts,
    /// How accesses like this one have fared.
    pub advice: Advice,
    /// How many ranks are to access the file at most.
    pub owners: u64,
    /// Bytes that each of these moves at once.
    pub buffer: u64,
    /// Bytes of a block that one of them has, 0 for one domain each.
    pub block: u64,
    /// Whether two phases are taken; `None`: where they are predicted to pay.
    pub phases: Option<bool>,
    /// Whether accesses of one rank are to exclude those of others.
    pub is_atomic: bool,
}

/// [`Said::phases`] as it travels, where it is not a number of 0 or 1.
const AS_IT_PAYS: u64 = 2;

impl Said {
    /// Words of one.
    pub const WORDS: usize = 20;

    /// As it travels.
    pub fn to_words(self) -> [u64; Said::WORDS] {
        let Said { wish, last, tariff, advice, .. } = self;
        let phases = self.phases.map_or(AS_IT_PAYS, u64::from);
        [
            self.class,
            wish.first,
            wish.end,
            wish.bytes,
            wish.calls,
            wish.moved,
            self.host,
            last.begun_ns,
            last.ended_ns,
            tariff.call_ps,
            tariff.byte_ps,
            tariff.round_ps,
            tariff.swap_ps,
            advice.alone_ps,
            advice.phases_ps,
            advice.tries,
            self.owners,
            self.buffer,
            self.block,
            phases | u64::from(self.is_atomic) << 8,
        ]
    }

    /// From the words of one of so many ranks; `None` if no rank says this.
    pub fn from_words(words: &[u64; Said::WORDS], ranks: usize) -> Option<Said> {
        let [class, first, end, bytes, calls, moved, host, begun_ns, ended_ns, rest @ ..] = *words;
        let [call_ps, byte_ps, round_ps, swap_ps, alone_ps, phases_ps, tries, owners, buffer, block, how] =
            rest;
        let phases = match how & 0xff {
            AS_IT_PAYS => None,
            word => Some(word == 1),
        };
        let said = Said {
            class,
            wish: Wish { first, end, bytes, calls, moved },
            host,
            last: Spell { begun_ns, ended_ns },
            tariff: RoundCosts { call_ps, byte_ps, round_ps, swap_ps },
            advice: Advice { alone_ps, phases_ps, tries },
            owners,
            buffer,
            block,
            phases,
            is_atomic: how >> 8 == 1,
        };
        let is_sound = said.wish.is_sound() && owners <= ranks as u64 && said.to_words() == *words;
        is_sound.then_some(said)
    }
}

/// Where there is a choice after all ranks have said this: how two phases would go and what both ways are predicted to cost, and whether
/// two phases are taken. Hints and rates are those of the first rank.
pub fn settle(all: &[Said], writes: bool) -> Option<(Plan, Costs, bool)> {
    let Said { owners, buffer, block, phases, is_atomic, tariff, advice, .. } = *all.first()?;
    let wishes: Vec<Wish> = all.iter().map(|said| said.wish).collect();
    // An atomic access is one locked section of the rank that makes it.
    let plan = Plan::new(&wishes, owners, buffer, block).filter(|_| all.len() > 1 && !is_atomic)?;
    let costs = plan.costs(&wishes, tariff, writes);
    Some((plan, costs, phases.unwrap_or_else(|| costs.takes_phases(advice))))
}

/// What one owner does in one round.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The owner's rank.
    pub owner: usize,
    /// The number of the round.
    pub round: u64,
}

impl Turn<'_> {
    /// The pieces that a rank asks for with this list; `None` if they are none of this turn.
    pub fn asked(&self, list: &[u64]) -> Option<Vec<Piece>> {
        let (pieces, rest) = self.pieces(list)?;
        rest.is_empty().then_some(pieces)
    }

    /// The pieces for which a rank brings the bytes, and these, in words, piece by piece; `None` if they are none of this turn or the
    /// bytes are not as many.
    pub fn brought<'b>(&self, list: &'b [u64]) -> Option<(Vec<Piece>, &'b [u64])> {
        let (pieces, rest) = self.pieces(list)?;
        let bytes = pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(piece.len))?;
        (rest.len() == words_for(bytes)).then_some((pieces, rest))
    }

    /// The pieces at the beginning of a list, and what follows. An empty list has none.
    fn pieces<'b>(&self, list: &'b [u64]) -> Option<(Vec<Piece>, &'b [u64])> {
        let Some((count, rest)) = list.split_first() else { return Some((Vec::new(), &[])) };
        let (pieces, rest) = rest.split_at_checked(usize::try_from(*count).ok()?.checked_mul(2)?)?;
        let pieces = pieces.as_chunks().0.iter().map(|[offset, len]| Piece { offset: *offset, len: *len });
        let pieces: Vec<Piece> = pieces.collect();
        pieces.iter().all(|piece| self.plan.deals(piece, self.owner, self.round)).then_some((pieces, rest))
    }
}

/// What an owner answers that was asked for so many bytes: how many of them there are, and their words; `None` if it is no answer to that.
pub fn answered(list: &[u64], asked: u64) -> Option<(usize, &[u64])> {
    let Some((bytes, words)) = list.split_first() else { return Some((0, &[])) };
    (*bytes <= asked && words.len() == words_for(*bytes)).then_some((*bytes as usize, words))
}

/// Appends pieces as [`Turn`] reads them.
pub fn push_pieces(list: &mut Vec<u64>, pieces: impl ExactSizeIterator<Item = Piece>) {
    list.push(pieces.len() as u64);
    list.extend(pieces.flat_map(|piece| [piece.offset, piece.len]));
}

/// Appends bytes to words, filled up with zeros.
pub fn push_bytes(list: &mut Vec<u64>, chunks: &mut dyn Iterator<Item = &[u8]>) {
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
pub fn words_for(bytes: u64) -> usize {
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
#[derive(Debug)]
pub struct Room {
    /// They, in ascending order.
    pub runs: Vec<Piece>,
    starts: Vec<u64>,
    /// Bytes of all.
    pub len: u64,
}

impl Room {
    /// For all of these pieces.
    pub fn of(pieces: Vec<Piece>) -> Room {
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
    pub fn range(&self) -> std::ops::Range<u64> {
        self.runs.first().map_or(0, |run| run.offset)..self.runs.last().map_or(0, |run| run.end())
    }

    /// Where a piece lies that is in one of the runs.
    pub fn place(&self, piece: &Piece) -> usize {
        let run = self.runs.partition_point(|run| run.offset <= piece.offset) - 1;
        (self.starts[run] + piece.offset - self.runs[run].offset) as usize
    }
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
            let back: Vec<u8> = list[1..].iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!((&back[..100], list.len() - 1), (&bytes[..], words_for(100)));
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
