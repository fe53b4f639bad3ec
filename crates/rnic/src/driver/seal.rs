//! A MAC behind each message (`TERN_INTEGRITY=mac`).
//!
//! Who can read and change what the network carries can have nothing taken that a rank of the job has not sent, to this rank, at
//! this place.
//!
//! ```text
//! stream:    FPDU | MAC (16)                  of a number, which both sides count, and the FPDU
//! datagram:  datagram | number (8) | MAC (16) of the datagram and its number      no number is taken twice
//! ```
//!
//! Keyed BLAKE3, cut to 128 bits. Each direction of each pair has a key of its own, derived from the secret of the job; those
//! of a connection over TCP depend on what both sides have drawn for its set-up, so that one that is played again, whole, is
//! not taken either. Nothing is placed, or shown to the stack, before its MAC was right.
//!
//! Datagrams may overtake each other: of the newest [`WINDOW`] numbers it is known which have come (RFC 4303 section 3.4.3),
//! and what is older is dropped. What is sent again has a new number.

use super::greeting::Secret;
use fabric::Rank;

/// Length of the MAC.
pub const TAG_LEN: usize = 16;
/// Length of a number in front of it.
const NUMBER_LEN: usize = 8;
/// What a datagram is longer by.
pub const TRAILER_LEN: usize = NUMBER_LEN + TAG_LEN;
/// Numbers up to the newest of which it is known whether they have come.
const WINDOW: u64 = 1024;

type Key = [u8; 32];

/// How it is known that what comes is what was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Integrity {
    /// By what each transport has: the checksum of TCP, a CRC in each datagram.
    #[default]
    Auto,
    /// By a CRC in each segment over TCP as well.
    Crc,
    /// By a MAC behind each message.
    Mac,
}

impl Integrity {
    /// By its name in `TERN_INTEGRITY`.
    pub fn named(name: &str) -> Option<Integrity> {
        match name {
            "auto" => Some(Integrity::Auto),
            "crc" => Some(Integrity::Crc),
            "mac" => Some(Integrity::Mac),
            _ => None,
        }
    }
}

/// Puts MACs behind what is sent.
#[derive(Clone)]
pub struct Seal {
    key: Key,
    next: u64,
}

/// Looks whether those of a stream are right.
pub struct InOrder {
    key: Key,
    next: u64,
}

/// Looks whether those of datagrams are, and whether they have come before.
pub struct Once {
    key: Key,
    /// The number behind the newest.
    next: u64,
    came: [u64; WINDOW as usize / 64],
}

/// Both directions of a connection.
pub struct StreamSeals {
    /// What is sent.
    pub seal: Seal,
    /// What comes.
    pub check: InOrder,
}

/// Both directions of datagrams with one peer.
pub struct DatagramSeals {
    /// What is sent.
    pub seal: Seal,
    /// What comes.
    pub check: Once,
}

/// A key for this purpose.
fn derive(secret: &Secret, purpose: &[&[u8]]) -> Key {
    let mut hasher = blake3::Hasher::new_keyed(&blake3::derive_key("tern rnic message 1", secret));
    purpose.iter().for_each(|part| {
        hasher.update(part);
    });
    *hasher.finalize().as_bytes()
}

fn tag<'a>(key: &Key, number: u64, pieces: impl Iterator<Item = &'a [u8]>) -> [u8; TAG_LEN] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&number.to_be_bytes());
    pieces.for_each(|piece| {
        hasher.update(piece);
    });
    *hasher.finalize().as_bytes().first_chunk().expect("16 of 32 bytes")
}

/// Takes the same time wherever they differ.
pub(super) fn are_equal(one: &[u8; TAG_LEN], other: &[u8; TAG_LEN]) -> bool {
    std::hint::black_box(u128::from_ne_bytes(*one) ^ u128::from_ne_bytes(*other)) == 0
}

impl Seal {
    /// The MAC of what is sent next, in these pieces.
    pub fn stream<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) -> [u8; TAG_LEN] {
        self.next += 1;
        tag(&self.key, self.next - 1, pieces)
    }

    /// Appends what the datagram that begins at `begin` ends with.
    pub fn datagram(&mut self, out: &mut Vec<u8>, begin: usize) {
        let tag = tag(&self.key, self.next, std::iter::once(&out[begin..]));
        out.extend_from_slice(&self.next.to_be_bytes());
        out.extend_from_slice(&tag);
        self.next += 1;
    }
}

impl InOrder {
    /// Whether this is what was sent next.
    pub fn is_next(&mut self, bytes: &[u8], said: &[u8; TAG_LEN]) -> bool {
        let is_right = are_equal(&tag(&self.key, self.next, std::iter::once(bytes)), said);
        self.next += u64::from(is_right);
        is_right
    }
}

impl Once {
    /// What the sender has sealed, if it has, and it comes for the first time.
    pub fn open<'a>(&mut self, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (rest, said) = sealed.split_last_chunk::<TAG_LEN>()?;
        let (bytes, number) = rest.split_last_chunk::<NUMBER_LEN>()?;
        let number = u64::from_be_bytes(*number);
        let is_right = are_equal(&tag(&self.key, number, std::iter::once(bytes)), said);
        (is_right && self.is_new(number)).then_some(bytes)
    }

    /// Whether no datagram with this number has come, as far as that is known; it has now.
    fn is_new(&mut self, number: u64) -> bool {
        let place = |number: u64| ((number % WINDOW / 64) as usize, 1u64 << (number % 64));
        if number >= self.next {
            if number - self.next >= WINDOW {
                self.came.fill(0);
            }
            for skipped in self.next.max(number.saturating_sub(WINDOW))..number {
                let (word, bit) = place(skipped);
                self.came[word] &= !bit;
            }
            self.next = number + 1;
            let (word, bit) = place(number);
            self.came[word] |= bit;
            return true;
        }
        let (word, bit) = place(number);
        let is_new = self.next - number <= WINDOW && self.came[word] & bit == 0;
        if is_new {
            self.came[word] |= bit;
        }
        is_new
    }
}

impl DatagramSeals {
    /// Of `me` with `peer`, for this kind of datagrams.
    pub fn new(secret: &Secret, kind: &[u8], me: Rank, peer: Rank) -> DatagramSeals {
        let key = |from: Rank, to: Rank| {
            derive(secret, &[kind, &(from as u32).to_be_bytes(), &(to as u32).to_be_bytes()])
        };
        DatagramSeals {
            seal: Seal { key: key(me, peer), next: 0 },
            check: Once { key: key(peer, me), next: 0, came: [0; WINDOW as usize / 64] },
        }
    }
}

impl StreamSeals {
    /// Of the connection that was set up by this request and this reply; `asked`: this side has asked for it.
    pub fn new(secret: &Secret, request: &[u8], reply: &[u8], asked: bool) -> StreamSeals {
        let [there, back] = [b"asks", b"told"].map(|way| derive(secret, &[way, request, reply]));
        let (out, into) = if asked { (there, back) } else { (back, there) };
        StreamSeals { seal: Seal { key: out, next: 0 }, check: InOrder { key: into, next: 0 } }
    }
}

macro_rules! without_keys {
    ($($name:ident)*) => {$(
        /// Keys are for nobody's eyes.
        impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(stringify!($name))
            }
        }
    )*};
}

without_keys!(StreamSeals DatagramSeals);

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> [DatagramSeals; 2] {
        [(0, 1), (1, 0)].map(|(me, peer)| DatagramSeals::new(&[7; 16], b"x", me, peer))
    }

    fn sealed(seals: &mut DatagramSeals, bytes: &[u8]) -> Vec<u8> {
        let mut out = b"in front".to_vec();
        out.extend_from_slice(bytes);
        seals.seal.datagram(&mut out, 8);
        out.split_off(8)
    }

    #[test]
    fn datagrams_are_taken_once_and_unchanged() {
        let [mut here, mut there] = pair();
        let first = sealed(&mut here, b"first");
        for bit in 0..8 * first.len() {
            let mut forged = first.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(there.check.open(&forged), None, "bit {bit}");
        }
        (0..first.len()).for_each(|len| assert_eq!(there.check.open(&first[..len]), None));
        assert_eq!(here.check.open(&first), None, "sent back to who sent it");
        let mut other = DatagramSeals::new(&[7; 16], b"y", 1, 0);
        assert_eq!(other.check.open(&first), None, "another kind");
        assert_eq!(there.check.open(&first), Some(&b"first"[..]));
        assert_eq!(there.check.open(&first), None, "played again");
    }

    /// In any order within the window, each once; what is older is dropped.
    #[test]
    fn numbers_are_taken_once() {
        let [mut here, mut there] = pair();
        let all: Vec<_> = (0..4 * WINDOW).map(|at| sealed(&mut here, &at.to_be_bytes())).collect();
        let mut state = 1u64;
        let mut taken = vec![0; all.len()];
        let mut begin = 0;
        while begin < all.len() {
            for _ in 0..600 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = begin + (state >> 40) as usize % 500;
                if let Some(one) = all.get(at) {
                    taken[at] += u32::from(there.check.open(one).is_some());
                }
            }
            begin += 300;
        }
        assert!(taken.iter().all(|times| *times <= 1) && taken.iter().sum::<u32>() > 2000);
        assert_eq!(there.check.open(&all[0]), None, "too old to know");
        let [mut far, mut near] = pair();
        far.seal.next = 10 * WINDOW + 5;
        let ahead = sealed(&mut far, b"ahead");
        assert!(near.check.open(&ahead).is_some() && near.check.open(&ahead).is_none());
    }

    #[test]
    fn streams_are_taken_in_order() {
        let seals = |asked| StreamSeals::new(&[7; 16], b"request", b"reply", asked);
        let (mut here, mut there) = (seals(true), seals(false));
        let parts: [&[u8]; 2] = [b"one ", b"message"];
        let tags = [0, 1].map(|_| here.seal.stream(parts.into_iter()));
        assert!(!there.check.is_next(b"one message", &tags[1]), "one is missing in front");
        assert!(!there.check.is_next(b"one massage", &tags[0]), "changed");
        assert!(!here.check.is_next(b"one message", &tags[0]), "sent back");
        assert!(there.check.is_next(b"one message", &tags[0]));
        assert!(!there.check.is_next(b"one message", &tags[0]), "twice");
        assert!(there.check.is_next(b"one message", &tags[1]));
        let mut other = StreamSeals::new(&[7; 16], b"request", b"drawn anew", false);
        assert!(!other.check.is_next(b"one message", &tags[0]), "of another connection");
    }
}
