//! How `mpiexec` and an agent recognise each other: both know the secret of the job, which the agent was given on its
//! standard input, and each shows it by a MAC over fresh random numbers of both. No secret travels.
//!
//! The listener sends a challenge to whoever connects, and nothing else before the answer is right: a port scan learns
//! 28 bytes, and costs a bounded place for a bounded time. The MAC is BLAKE3 with a key that is derived from the
//! secret for this purpose alone, as others use the secret as well.

/// How both sides talk; another number is another language.
const PROTOCOL: u32 = 1;
const MAGIC: &[u8; 8] = b"TERNHOST";
/// Bytes of a challenge.
pub const CHALLENGE: usize = 28;
/// Bytes of an answer.
pub const ANSWER: usize = 52;
/// Bytes of what the listener proves itself with.
pub const PROOF: usize = 32;

/// A number that is used once.
pub type Nonce = [u8; 16];

/// What both sides know of each other.
pub struct Secret {
    key: [u8; 32],
}

impl Secret {
    /// What the secret of a job is for agents.
    pub fn new(secret: [u8; 16]) -> Secret {
        Secret { key: blake3::derive_key("Tern mpiexec: connection of an agent, protocol 1", &secret) }
    }

    fn mac(&self, who: u8, host: u32, theirs: &Nonce, own: &Nonce) -> blake3::Hash {
        let text = [&[who][..], &host.to_le_bytes(), theirs, own].concat();
        blake3::keyed_hash(&self.key, &text)
    }

    /// What an agent answers to a challenge.
    pub fn answer(&self, host: u32, challenge: &Nonce, own: &Nonce) -> [u8; ANSWER] {
        let mac = self.mac(b'A', host, challenge, own);
        let answer = [&host.to_le_bytes()[..], own, mac.as_bytes()].concat();
        answer.try_into().expect("the parts have these lengths")
    }

    /// The host of the agent that gave an answer, and the proof to send back; `None` if it does not know the secret.
    pub fn check_answer(&self, challenge: &Nonce, answer: &[u8; ANSWER]) -> Option<(u32, [u8; PROOF])> {
        let host = u32::from_le_bytes(answer[..4].try_into().expect("four bytes"));
        let own: &Nonce = answer[4..20].try_into().expect("sixteen bytes");
        let mac: [u8; PROOF] = answer[20..].try_into().expect("thirty-two bytes");
        // The comparison takes the same time whatever differs.
        let right = self.mac(b'A', host, challenge, own) == blake3::Hash::from_bytes(mac);
        right.then(|| (host, *self.mac(b'M', host, challenge, own).as_bytes()))
    }

    /// Whether the listener knows the secret.
    pub fn check_proof(&self, host: u32, challenge: &Nonce, own: &Nonce, proof: &[u8; PROOF]) -> bool {
        self.mac(b'M', host, challenge, own) == blake3::Hash::from_bytes(*proof)
    }
}

/// What the listener sends to whoever connects.
pub fn challenge(nonce: &Nonce) -> [u8; CHALLENGE] {
    let text = [&MAGIC[..], &PROTOCOL.to_le_bytes(), nonce].concat();
    text.try_into().expect("the parts have these lengths")
}

/// The number in a challenge, or why it is none.
pub fn read_challenge(bytes: &[u8; CHALLENGE]) -> Result<Nonce, String> {
    if &bytes[..8] != MAGIC {
        return Err("what listens there is no mpiexec of Tern".into());
    }
    match u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes")) {
        PROTOCOL => Ok(bytes[12..].try_into().expect("sixteen bytes")),
        other => {
            Err(format!("that mpiexec is of another version: it speaks protocol {other}, not {PROTOCOL}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knows_the_secret_is_recognised_and_nobody_else() {
        let (root, agent, stranger) = (Secret::new([1; 16]), Secret::new([1; 16]), Secret::new([2; 16]));
        let (asked, own) = ([3; 16], [4; 16]);
        assert_eq!(read_challenge(&challenge(&asked)), Ok(asked));
        let answer = agent.answer(7, &asked, &own);
        let (host, proof) = root.check_answer(&asked, &answer).unwrap();
        assert_eq!(host, 7);
        assert!(agent.check_proof(7, &asked, &own, &proof));
        // Another secret, another challenge (a replay), another host, or the answer sent back as a proof.
        assert!(stranger.check_answer(&asked, &answer).is_none());
        assert!(root.check_answer(&[5; 16], &answer).is_none());
        assert!(!stranger.check_proof(7, &asked, &own, &proof));
        assert!(!agent.check_proof(8, &asked, &own, &proof));
        assert!(!agent.check_proof(7, &asked, &own, answer[20..].try_into().unwrap()));
        for bit in 0..ANSWER * 8 {
            let mut changed = answer;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(root.check_answer(&asked, &changed).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn other_services_and_versions_are_named() {
        let mut other = challenge(&[0; 16]);
        other[8] = 9;
        assert!(read_challenge(&other).unwrap_err().contains("protocol 9"));
        assert!(read_challenge(&[b'S'; CHALLENGE]).unwrap_err().contains("no mpiexec"));
    }
}
