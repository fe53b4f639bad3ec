//! What programs of verbs tell each other in private data: which queue pairs a connection is of, and where datagrams go. What is
//! accepted survives encoding.

use tern_verbs::adapter::identifiers::Answer;
use tern_verbs::adapter::meeting::Ends;
use tern_verbs::adapter::number;

/// The input as each of them, and as numbers that are told.
pub fn decode(input: &[u8]) {
    if let Some(ends) = Ends::decode(input) {
        assert_eq!(ends.encode(), input);
    }
    if let Some((answer, private)) = Answer::decode(input) {
        // An address of IPv4 has more than one GID.
        let again = answer.encode(private);
        assert_eq!(Answer::decode(&again), Some((answer, private)));
        assert_eq!((again.len(), &again[again.len() - private.len()..]), (input.len(), private));
    }
    let Some((numbers, private)) = input.split_first_chunk::<24>() else { return };
    let word = |at: usize| u32::from_be_bytes(numbers[at..at + 4].try_into().expect("four bytes"));
    let ends = Ends { to: word(0), from: word(4), sends: word(8), expects: word(12) };
    let encoded = ends.encode();
    assert_eq!(Ends::decode(&encoded), Some(ends));
    assert_eq!(Answer::decode(&encoded), None);
    assert!((0..encoded.len()).all(|len| Ends::decode(&encoded[..len]).is_none()));
    assert_eq!(Ends::decode(&[&encoded[..], b"x"].concat()), None);
    let gid = std::array::from_fn(|byte| numbers[8 + byte]);
    let answer = Answer { number: word(0), key: word(4), at: number::address(&gid) };
    let encoded = answer.encode(private);
    assert_eq!(Answer::decode(&encoded), Some((answer, private)));
    assert_eq!(Ends::decode(&encoded), None);
}
