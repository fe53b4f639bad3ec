//! What a rank posts to its adapters, as their completions name it: one word, written and read here alone.
//!
//! The three highest bits are not the engine's: `channel` (bit 63) and `reliable` (bit 61) mark work of their own, and pass the rest through.

use super::op::OpId;

/// Bits of the number of a transfer: blocks and chunks of one message, of which a page each would be 512 GiB.
const NUMBER_BITS: u32 = 27;

/// Posted work of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A transfer of a long message, with the number that its machine gave.
    Transfer(OpId, u32),
    /// An eager message that leaves from its buffer.
    Gathered(OpId),
    /// A transfer of an epoch, by the number of its flight.
    Flight(u32),
    /// A word of a window that is changed, by its number.
    Word(u32),
}

impl Work {
    /// As a device takes it.
    pub fn encode(self) -> u64 {
        let (kind, number, index) = match self {
            Work::Transfer(op, number) => (0, number, op.0),
            Work::Gathered(op) => (1, 0, op.0),
            Work::Flight(number) => (2, 0, number),
            Work::Word(number) => (3, 0, number),
        };
        assert!(number >> NUMBER_BITS == 0, "a message has at most 2^{NUMBER_BITS} transfers");
        kind << (32 + NUMBER_BITS) | u64::from(number) << 32 | u64::from(index)
    }

    /// As a device gives it back.
    pub fn decode(work: u64) -> Work {
        let (number, index) = ((work >> 32) as u32 & ((1 << NUMBER_BITS) - 1), work as u32);
        match work >> (32 + NUMBER_BITS) {
            0 => Work::Transfer(OpId(index), number),
            1 => Work::Gathered(OpId(index)),
            2 => Work::Flight(index),
            3 => Work::Word(index),
            _ => panic!("a completion of work {work:#x}, which the engine has not posted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_leaves_the_highest_bits_alone() {
        let most = (1 << NUMBER_BITS) - 1;
        for index in [0, 1, 77, u32::MAX] {
            let op = OpId(index);
            let kinds = [Work::Gathered(op), Work::Flight(index), Work::Word(index)];
            let transfers = [0, 1, most].map(|number| Work::Transfer(op, number));
            for work in kinds.into_iter().chain(transfers) {
                assert_eq!(Work::decode(work.encode()), work);
                assert_eq!(work.encode() >> 61, 0);
            }
        }
    }

    #[test]
    #[should_panic(expected = "which the engine has not posted")]
    fn work_of_nobody_is_not_taken_for_anothers() {
        Work::decode(1 << 61);
    }

    #[test]
    #[should_panic(expected = "at most 2^27 transfers")]
    fn a_number_that_would_be_read_as_another_kind_is_refused() {
        Work::Transfer(OpId(0), 1 << NUMBER_BITS).encode();
    }
}
