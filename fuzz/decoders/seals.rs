//! Seals: what was not sealed by the peer, or has come already, is not taken, and what was is, whatever it says.

use rnic::driver::StreamSeals;
use rnic::driver::seal::{DatagramSeals, TAG_LEN, TRAILER_LEN};
use std::iter::once;

const SECRET: [u8; 16] = [7; 16];
/// Datagrams that are sealed at a time, more than there are numbers of which it is known whether they have come.
const AHEAD: usize = 1100;

/// The whole input as what a stranger says; then as what is sealed, and, byte by byte, what comes of it and what is changed.
pub fn decode(input: &[u8]) {
    datagrams(input);
    stream(input);
}

fn datagrams(input: &[u8]) {
    let seals = |me, peer| DatagramSeals::new(&SECRET, b"kind", me, peer);
    let (mut here, mut there) = (seals(0, 1), seals(1, 0));
    assert_eq!(there.check.open(input), None);
    let mut sealed: Vec<Vec<u8>> = Vec::new();
    let mut taken: Vec<bool> = Vec::new();
    let mut newest = 0;
    for step in input.chunks_exact(2) {
        let (what, back) = (step[0], usize::from(step[1]));
        let more = if what == 255 { AHEAD } else { usize::from(what & 3) };
        for _ in 0..more.min(4 * AHEAD - sealed.len().min(4 * AHEAD)) {
            let mut out = step.to_vec();
            out.extend(input.iter().take(back));
            here.seal.datagram(&mut out, 2);
            assert_eq!(out.len(), 2 + input.len().min(back) + TRAILER_LEN);
            sealed.push(out.split_off(2));
            taken.push(false);
        }
        // The last ones, or those from before there were so many.
        let back = if what & 64 != 0 { back * 8 } else { back };
        let Some(at) = sealed.len().checked_sub(1 + back) else { continue };
        let mut datagram = sealed[at].clone();
        if what & 32 != 0 {
            let bit = usize::from(what) * 7 % (8 * datagram.len());
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(there.check.open(&datagram), None);
            continue;
        }
        let opened = there.check.open(&datagram);
        let is_known = at + 1024 > newest || newest == 0;
        assert!(opened.is_none_or(|bytes| bytes == &datagram[..datagram.len() - TRAILER_LEN]));
        assert!(opened.is_none() || !taken[at], "it is taken once");
        assert!(opened.is_some() || taken[at] || !is_known, "it is taken");
        taken[at] |= opened.is_some();
        newest = newest.max(at);
        assert_eq!(here.check.open(&datagram), None, "it is not taken by who has sent it");
    }
}

fn stream(input: &[u8]) {
    let seals = |asked| StreamSeals::new(&SECRET, b"request", b"reply", asked);
    let (mut here, mut there) = (seals(true), seals(false));
    if let Some((said, bytes)) = input.split_first_chunk::<TAG_LEN>() {
        assert!(!there.check.is_next(bytes, said) && !here.check.is_next(bytes, said));
    }
    for piece in input.chunks(usize::from(input.first().copied().unwrap_or(0)) + 1) {
        let (one, other) = piece.split_at(piece.len() / 2);
        let tag = here.seal.stream([one, other].into_iter());
        let mut wrong = tag;
        wrong[piece.len() % TAG_LEN] ^= 1 << (piece[0] & 7);
        assert!(!there.check.is_next(piece, &wrong));
        let mut changed = piece.to_vec();
        changed[piece.len() / 2] ^= 1 << (piece[0] & 7);
        assert!(!there.check.is_next(&changed, &tag));
        assert!(!there.check.is_next(one, &tag));
        assert!(there.check.is_next(piece, &tag));
        let again = there.seal.stream(once(piece));
        assert!(!there.check.is_next(piece, &again) && here.check.is_next(piece, &again));
    }
}
