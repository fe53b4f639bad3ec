//! Who may connect: both sides prove in the private data of the set-up that they are of the job and who they are.
//!
//! ```text
//! request: rank (4) | nonce (16) | MAC (32) of «request», both ranks and the nonce
//! reply:             MAC (32) of «reply» and the request's MAC
//! ```
//! The key is the job's secret. Without it neither side can say anything that the other takes, and what a stranger
//! has overheard is of no use to him: the reply depends on the nonce, and an accepted request that is played again
//! finds the pair connected already.

use fabric::Rank;

/// Secret of a job.
pub type Secret = [u8; 16];
const NONCE: usize = 16;
const MAC: usize = 32;
const REQUEST: usize = 4 + NONCE + MAC;

fn mac(secret: &Secret, parts: &[&[u8]]) -> blake3::Hash {
    let key = blake3::derive_key("tern rnic connection 1", secret);
    let mut hasher = blake3::Hasher::new_keyed(&key);
    parts.iter().for_each(|part| {
        hasher.update(part);
    });
    hasher.finalize()
}

/// What `me` says to `peer`.
pub fn request(secret: &Secret, me: Rank, peer: Rank, nonce: [u8; NONCE]) -> Vec<u8> {
    let (me, peer) = ((me as u32).to_be_bytes(), (peer as u32).to_be_bytes());
    let proof = mac(secret, &[b"request", &me, &peer, &nonce]);
    [&me[..], &nonce, proof.as_bytes()].concat()
}

/// Who speaks, if it is a rank of the job of `size` that speaks to `me`.
pub fn who_asks(secret: &Secret, me: Rank, size: usize, said: &[u8]) -> Option<Rank> {
    if said.len() != REQUEST {
        return None;
    }
    let (rank, rest) = said.split_at(4);
    let (nonce, proof) = rest.split_at(NONCE);
    let peer = u32::from_be_bytes(rank.try_into().ok()?) as usize;
    let expected = mac(secret, &[b"request", rank, &(me as u32).to_be_bytes(), nonce]);
    // The comparison of hashes takes the same time wherever they differ.
    let is_right = expected == blake3::Hash::from_bytes(proof.try_into().ok()?);
    (is_right && peer < size && peer != me).then_some(peer)
}

/// The answer to a request.
pub fn reply(secret: &Secret, request: &[u8]) -> Vec<u8> {
    mac(secret, &[b"reply", request]).as_bytes().to_vec()
}

/// Whether an answer is that of the rank that was asked.
pub fn is_reply(secret: &Secret, request: &[u8], said: &[u8]) -> bool {
    let Ok(said) = <[u8; MAC]>::try_from(said) else { return false };
    mac(secret, &[b"reply", request]) == blake3::Hash::from_bytes(said)
}

/// What `from` writes into its datagrams of this kind for `to`: random to whoever does not know the secret.
pub fn datagram_id(secret: &Secret, kind: &[u8], from: Rank, to: Rank) -> u64 {
    let (from, to) = ((from as u32).to_be_bytes(), (to as u32).to_be_bytes());
    let hash = mac(secret, &[kind, &from, &to]);
    u64::from_be_bytes(hash.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranks_of_the_job_are_let_in() {
        let (secret, other) = ([7; 16], [8; 16]);
        let said = request(&secret, 3, 1, [9; 16]);
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
        let answer = reply(&secret, &said);
        assert!(is_reply(&secret, &said, &answer) && !is_reply(&other, &said, &answer));
        assert!(!is_reply(&secret, &said, &answer[1..]));
    }
}
