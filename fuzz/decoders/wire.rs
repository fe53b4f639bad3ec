//! Message headers, offers, long messages, operations of epochs and what stands behind frames: what is accepted encodes to the same bytes.

use wire::epoch::{self, AnswerHead, OpHead};
use wire::head::{Head, Offer};
use wire::long::{Fragment, LongRts};
use wire::packet::{self, Packet};
use wire::slot::{Meet, Tail};

/// Decodes two words as a header and the rest as an offer.
pub fn decode(input: &[u8]) {
    if let Some((words, _)) = input.split_first_chunk::<16>() {
        let word = |at: usize| u64::from_le_bytes(words[at..at + 8].try_into().unwrap());
        let words = [word(0), word(8)];
        if let Ok(head) = Head::decode(words) {
            assert_eq!(head.encode(), words);
        }
        if let Ok(tail) = Tail::decode(words[0]) {
            assert_eq!(tail.encode(), words[0]);
        }
    }
    if let Ok(meet) = Meet::decode(input) {
        // Without slots, what else is said of them is ignored.
        assert_eq!(Meet::decode(&meet.encode()), Ok(meet));
    }
    if let Ok(packet) = Packet::decode(input) {
        assert_eq!(packet.encode(), input[..packet::HEAD_LEN]);
    }
    if let Ok(fragment) = Fragment::decode(input) {
        assert_eq!(fragment.encode(), input);
    }
    if let Ok(rts) = LongRts::decode(input) {
        assert_eq!(rts.encode(), input[..LongRts::LEN]);
        assert!(rts.addr.checked_add(rts.len).is_some());
    }
    if let Some((bytes, _)) = input.split_first_chunk()
        && let Ok(op) = OpHead::decode(bytes)
    {
        assert_eq!(op.encode(), *bytes);
        assert!(op.offset.checked_add(op.len).is_some_and(|end| end <= isize::MAX as u64));
    }
    if let Some((bytes, _)) = input.split_first_chunk() {
        assert_eq!(AnswerHead::decode(bytes).encode(), *bytes);
    }
    if let Some((bytes, _)) = input.split_first_chunk()
        && let Ok(flags) = epoch::flags(u16::from_le_bytes(*bytes))
    {
        assert_eq!(flags.to_le_bytes(), *bytes);
    }
    for bytes in [input, input.get(16..).unwrap_or_default()] {
        if let Ok(offer) = Offer::decode(bytes) {
            assert_eq!(offer.encode(), bytes);
        }
    }
}
