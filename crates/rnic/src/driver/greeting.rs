//! Who may connect: both sides prove in the private data of the set-up that they are of the job and who they are.
//!
//! ```text
//! request: integrity (1) | rank (4) | nonce (16) | MAC (32) of «request», both ranks, integrity and the nonce
//! reply:   nonce (16) | MAC (32) of «reply», the request and the nonce
//! ```
//! A process of another job, a guest, says who it is there, where it listens, and at which port of the process it asks:
//!
//! ```text
//! request: integrity (1) | job (16) | rank (4) | address (16) | its port (2) | number (4) | nonce (16) | MAC (32) of all that,
//!          of «guest», and of job and rank of the process that is asked
//! ```
//! Then the key is that of the process that is asked, which stands in its card ([`super::guests`]).
//!
//! *Integrity* says how the messages of the connection will be checked ([`super::seal`]): both sides must mean the same.
//!
//! The key is the job's secret. Without it neither side can say anything that the other takes, and what a stranger
//! has overheard is of no use to him: the reply depends on the nonce, and an accepted request that is played again
//! finds the pair connected already.

use super::guests::{Asker, Card};
use super::seal::{Integrity, are_equal};
use fabric::Rank;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Secret of a job.
pub type Secret = [u8; 16];
const NONCE: usize = 16;
const MAC: usize = 32;
const REQUEST: usize = 1 + 4 + NONCE + MAC;
const GUEST: usize = 1 + 16 + 4 + 16 + 2 + 4 + NONCE;

fn mac(secret: &Secret, parts: &[&[u8]]) -> blake3::Hash {
    let key = blake3::derive_key("tern rnic connection 1", secret);
    let mut hasher = blake3::Hasher::new_keyed(&key);
    parts.iter().for_each(|part| {
        hasher.update(part);
    });
    hasher.finalize()
}

/// What `me` says to `peer`.
pub fn request(secret: &Secret, me: Rank, peer: Rank, integrity: Integrity, nonce: [u8; NONCE]) -> Vec<u8> {
    let (me, peer, integrity) = ((me as u32).to_be_bytes(), (peer as u32).to_be_bytes(), [integrity as u8]);
    let proof = mac(secret, &[b"request", &me, &peer, &integrity, &nonce]);
    [&integrity, &me[..], &nonce, proof.as_bytes()].concat()
}

/// Whether who has sent this request, which is known to be of a peer, checks messages in this way.
pub fn has_integrity(request: &[u8], integrity: Integrity) -> bool {
    request.first() == Some(&(integrity as u8))
}

/// Who speaks, if it is a rank of the job of `size` that speaks to `me`.
pub fn who_asks(secret: &Secret, me: Rank, size: usize, said: &[u8]) -> Option<Rank> {
    if said.len() != REQUEST {
        return None;
    }
    let (integrity, rest) = said.split_at(1);
    let (rank, rest) = rest.split_at(4);
    let (nonce, proof) = rest.split_at(NONCE);
    let peer = u32::from_be_bytes(rank.try_into().ok()?) as usize;
    let expected = mac(secret, &[b"request", rank, &(me as u32).to_be_bytes(), integrity, nonce]);
    // The comparison of hashes takes the same time wherever they differ.
    let is_right = expected == blake3::Hash::from_bytes(proof.try_into().ok()?);
    (is_right && peer < size && peer != me).then_some(peer)
}

/// What the process with the card `own` says to that of `peer`, at a port of that.
pub fn guest_request(
    own: &Card,
    peer: &Card,
    port: u32,
    integrity: Integrity,
    nonce: [u8; NONCE],
) -> Vec<u8> {
    let ip = match own.address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let (rank, door) = (own.rank.to_be_bytes(), own.address.port().to_be_bytes());
    let said =
        [&[integrity as u8], &own.job[..], &rank, &ip.octets(), &door, &port.to_be_bytes(), &nonce].concat();
    let proof = mac(&peer.key, &[b"guest", &peer.job, &peer.rank.to_be_bytes(), &said]);
    [&said[..], proof.as_bytes()].concat()
}

/// Which process of another job asks that with the card `own`, if it knows its key.
pub fn which_guest_asks(own: &Card, said: &[u8]) -> Option<Asker> {
    if said.len() != GUEST + MAC {
        return None;
    }
    let (said, proof) = said.split_at(GUEST);
    let expected = mac(&own.key, &[b"guest", &own.job, &own.rank.to_be_bytes(), said]);
    if expected != blake3::Hash::from_bytes(proof.try_into().ok()?) {
        return None;
    }
    let said = &said[1..];
    let number = |at: usize| said[at..at + 4].try_into().ok().map(u32::from_be_bytes);
    let octets: [u8; 16] = said[20..36].try_into().ok()?;
    let door = u16::from_be_bytes(said[36..38].try_into().ok()?);
    let address = SocketAddr::new(Ipv6Addr::from(octets).to_canonical(), door);
    let job = said[..16].try_into().ok()?;
    let card = Card { job, rank: number(16)?, address, key: [0; 16] };
    Some(Asker { card, port: number(38)? })
}

/// The answer to a request.
pub fn reply(secret: &Secret, request: &[u8], nonce: [u8; NONCE]) -> Vec<u8> {
    [&nonce[..], mac(secret, &[b"reply", request, &nonce]).as_bytes()].concat()
}

/// Whether an answer is that of the rank that was asked.
pub fn is_reply(secret: &Secret, request: &[u8], said: &[u8]) -> bool {
    let Some((nonce, said)) = said.split_first_chunk::<NONCE>() else { return false };
    let Ok(said) = <[u8; MAC]>::try_from(said) else { return false };
    mac(secret, &[b"reply", request, nonce]) == blake3::Hash::from_bytes(said)
}

/// What `from` writes into its datagrams of this kind for `to`: random to whoever does not know the secret.
pub fn datagram_id(secret: &Secret, kind: &[u8], from: Rank, to: Rank) -> u64 {
    let (from, to) = ((from as u32).to_be_bytes(), (to as u32).to_be_bytes());
    let hash = mac(secret, &[kind, &from, &to]);
    u64::from_be_bytes(hash.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
}

/// Length of a [`proof`] in bytes.
pub const PROOF: usize = 16;

/// What only a rank of the job can say of this: keyed BLAKE3, cut to 128 bits. The first part says what it is for, and the
/// others have lengths that follow from that.
pub fn proof(secret: &Secret, parts: &[&[u8]]) -> [u8; PROOF] {
    *mac(secret, parts).as_bytes().first_chunk().expect("16 of 32 bytes")
}

/// Whether this is the [`proof`] of these, in the same time wherever they differ.
pub fn is_proof(secret: &Secret, parts: &[&[u8]], said: &[u8]) -> bool {
    <[u8; PROOF]>::try_from(said).is_ok_and(|said| are_equal(&proof(secret, parts), &said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_let_in_who_know_the_key() {
        let card =
            |job, rank, key| Card { job: [job; 16], rank, address: "10.0.0.1:7".parse().unwrap(), key };
        let (own, peer) = (card(1, 5, [0; 16]), card(2, 0, [7; 16]));
        let said = guest_request(&own, &peer, 9, Integrity::Mac, [3; 16]);
        assert_eq!(which_guest_asks(&peer, &said), Some(Asker { card: own, port: 9 }));
        assert_eq!(which_guest_asks(&card(2, 0, [8; 16]), &said), None, "another key");
        assert_eq!(which_guest_asks(&card(2, 1, [7; 16]), &said), None, "for another process");
        for at in 0..said.len() {
            let mut forged = said.clone();
            forged[at] ^= 1;
            assert_eq!(which_guest_asks(&peer, &forged), None);
            assert_eq!(which_guest_asks(&peer, &said[..at]), None);
        }
    }

    #[test]
    fn only_ranks_of_the_job_are_let_in() {
        let (secret, other) = ([7; 16], [8; 16]);
        let said = request(&secret, 3, 1, Integrity::Mac, [9; 16]);
        assert!(has_integrity(&said, Integrity::Mac) && !has_integrity(&said, Integrity::Crc));
        assert_eq!(who_asks(&secret, 1, 4, &said), Some(3));
        assert_eq!(who_asks(&other, 1, 4, &said), None);
        assert_eq!(who_asks(&secret, 2, 4, &said), None, "for another rank");
        assert_eq!(who_asks(&secret, 1, 3, &said), None, "no such rank");
        for at in 0..said.len() {
            let mut forged = said.clone();
            forged[at] ^= 1;
            assert_eq!(who_asks(&secret, 1, 4, &forged), None);
            assert_eq!(who_asks(&secret, 1, 4, &said[..at]), None);
        }
        let answer = reply(&secret, &said, [4; 16]);
        assert!(is_reply(&secret, &said, &answer) && !is_reply(&other, &said, &answer));
        assert!(!is_reply(&secret, &said, &answer[1..]));
    }
}
