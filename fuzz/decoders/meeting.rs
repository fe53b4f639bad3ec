//! What ranks tell each other of themselves before they are connected, and how the launcher's store has it for all of them.

use std::net::SocketAddr;

use launch::meeting::{self, Met};
use launch::pmi::share;

/// Ranks of the job.
const SIZE: usize = 9;
const MANNER: &str = "TERN_DEVICES=auto,TERN_TRANSPORT=rc,TERN_INTEGRITY=auto";

/// The input as the place of a rank, as all that ranks say of one thing, and each of its lines as the host of a rank.
pub fn decode(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    place(&text);
    place(&format!("{} {text}", meeting::kind()));
    if let Some(values) = share::split(input, SIZE) {
        assert_eq!(values.len(), SIZE);
        assert_eq!(share::split(share::join(&values).as_bytes(), SIZE), Some(values));
    }
    let told: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    hosts(&told);
    let least = meeting::least(&told);
    assert!(least.is_none_or(|least| told.iter().all(|text| number(text) >= least)));
}

fn place(text: &str) {
    match meeting::read_place::<SocketAddr>(3, text, MANNER) {
        Ok((at, name)) => {
            let again = meeting::place(&at.to_string(), MANNER, &name);
            assert_eq!(meeting::read_place(3, &again, MANNER), Ok((at, name)));
        }
        Err(why) => assert!(why.contains("rank 3"), "{why}"),
    }
    // Of adapters of the system it is read later, `card`.
    if let Ok((card, name)) = meeting::read_place::<String>(3, text, MANNER) {
        assert_eq!(meeting::place(&card, MANNER, &name), text);
    }
}

fn hosts(told: &[Vec<u8>]) {
    let Met { memories, cards, seats } = meeting::read_hosts(told);
    assert!(memories.len() == told.len() && cards.len() == told.len());
    if seats.is_empty() {
        return;
    }
    let all = memories.iter().zip(&seats).zip(&cards);
    let again: Vec<_> =
        all.map(|((memory, seat), card)| meeting::host(memory, seat, card).into_bytes()).collect();
    assert_eq!(meeting::read_hosts(&again), Met { memories, cards, seats });
}

fn number(text: &[u8]) -> usize {
    std::str::from_utf8(text).expect("it was read").parse().expect("it was read")
}
