//! What ranks with adapters of the system say before they are connected: cards, and datagrams with the secret of the job. And the ports that
//! a user lists.

use ibv::card;
use ibv::hello::{self, Hello};

const SECRET: [u8; 16] = [7; 16];
const SIZE: usize = 8;

/// The input as a list of ports, as a card, as a datagram of a stranger, and as numbers that a rank says.
pub fn decode(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    ports(&text);
    if let (Some(door), Some(places)) = (card::door(&text), card::read(&text)) {
        let ports = places.iter().map(|place| (*place, (place.hellos, place.datagrams)));
        let again = card::text(door, ports);
        assert_eq!((card::door(&again), card::read(&again)), (Some(door), Some(places)));
        assert_eq!(card::agree(&[again.clone(), again]), Ok(()));
    }
    let _ = card::agree(&[text.clone().into_owned()]);
    // Whatever the reason, who has no adapter is not taken for one who has.
    let refused = card::agree(&[card::without(&text)]);
    assert!(refused.is_err_and(|(rank, why)| rank == 0 && !why.contains('\n')));
    assert_eq!(Hello::decode(input, 1, SIZE, 0, &SECRET), None);
    let Some(([ranks, asks, reads, rail, numbers @ ..], _)) = input.split_first_chunk::<16>() else { return };
    let number = |at: usize| u32::from_le_bytes(numbers[at..at + 4].try_into().expect("four bytes"));
    let (from, to) = (ranks & 15, usize::from(ranks >> 4));
    let (asks, from) = (asks & 1 != 0, u32::from(from));
    let (turn, number, packet) = (number(0), number(4), number(8));
    let said = Hello { asks, from, turn, number, packet, reads: *reads, rail: *rail };
    let bytes: [u8; hello::LEN] = said.encode(to, &SECRET);
    let is_one = (from as usize) < SIZE && from as usize != to;
    assert_eq!(Hello::decode(&bytes, to, SIZE, *rail, &SECRET), is_one.then_some(said));
}

fn ports(text: &str) {
    match ibv::listed(text) {
        Ok(ports) => {
            assert!(
                ports.len() <= fabric::verbs::RAILS_MAX && ports.iter().all(|(name, ..)| !name.is_empty())
            );
            let index = |index: &Option<u32>| index.map_or(String::new(), |index| format!(":{index}"));
            let again = ports.iter().map(|(name, port, at)| format!("{name}:{port}{}", index(at)));
            assert_eq!(ibv::listed(&again.collect::<Vec<_>>().join(",")), Ok(ports));
        }
        Err(why) => assert!(why.starts_with("TERN_IBV_PORTS"), "{why}"),
    }
}
