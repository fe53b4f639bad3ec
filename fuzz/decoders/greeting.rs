//! Who connects: what is said without the secret is nothing, and what is said with it is understood. Names of ports.

use rnic::driver::greeting::*;
use rnic::{Asker, Card, Integrity, Port};

const SECRET: Secret = [7; 16];
const SIZE: usize = 8;

/// The whole input as what a stranger says, and its bytes as what those are who know a secret.
pub fn decode(input: &[u8]) {
    assert_eq!(who_asks(&SECRET, 1, SIZE, input), None);
    assert!(!is_reply(&SECRET, b"request", input) && !is_proof(&SECRET, &[b"kind"], input));
    let _ = has_integrity(input, Integrity::Mac);
    let mut bytes = input.iter().copied().chain(std::iter::repeat(0));
    let [kind, ranks] = [(); 2].map(|()| bytes.next().unwrap_or(0));
    let integrity = [Integrity::Auto, Integrity::Crc, Integrity::Mac][usize::from(kind % 3)];
    let (from, to) = (usize::from(ranks & 15), usize::from(ranks >> 4));
    let mut sixteen = || std::array::from_fn(|_| bytes.next().unwrap_or(0));
    let said = request(&SECRET, from, to, integrity, sixteen());
    let is_one = from < SIZE && from != to;
    assert_eq!(who_asks(&SECRET, to, SIZE, &said), is_one.then_some(from));
    assert!(has_integrity(&said, integrity));
    let answer = reply(&SECRET, &said, sixteen());
    assert!(is_reply(&SECRET, &said, &answer) && !is_reply(&SECRET, input, &answer));
    let mut card = || {
        let words = std::array::from_fn(|_| u64::from_le_bytes(*sixteen().first_chunk().expect("8 of 16")));
        let card = Card::from_words(words);
        assert_eq!(Card::from_words(card.to_words()), card);
        card
    };
    let (own, peer) = (card(), card());
    ports(input, own);
    assert_eq!(which_guest_asks(&peer, input), None);
    let port = u32::from(kind) << 24 | u32::from(ranks);
    let said = guest_request(&own, &peer, port, integrity, sixteen());
    let asker = Asker { card: Card { key: [0; 16], ..own }, port };
    assert_eq!(which_guest_asks(&peer, &said), Some(asker));
}

/// The input as the name of a port, and behind how names begin; and the name of a port of this process.
fn ports(input: &[u8], card: Card) {
    let text = String::from_utf8_lossy(input);
    for name in [&*text, &format!("tern-port:{text}")] {
        if let Some(port) = Port::named(name) {
            assert_eq!(Port::named(&port.name()), Some(port));
        }
    }
    let port = Port { card, number: input.len() as u32 };
    assert_eq!(Port::named(&port.name()), Some(port));
}
