//! Space for buffered sends (MPI 5.0 section 3.6): which part of an attached buffer is in use.
//!
//! Only addresses are kept here; the memory is the application's. A message takes one segment,
//! accounted with [`OVERHEAD`]: a program that attaches `MPI_Pack_size +
//! MPI_BSEND_OVERHEAD` per message always finds space.
//!
//! The standard demands at least what a circular queue of entries would offer, whose space comes
//! back in order (section 3.6.1). First fit does not: it can split the gap that the queue would
//! have kept whole. Next fit does, because it puts each segment where the queue would, and it
//! reuses space that comes back out of order as well.

use std::collections::BTreeMap;

use crate::error::{Class, Result, fail};

/// The bytes of buffer a message takes beyond its data: no more than any ABI promises, and MPICH's
/// `MPI_BSEND_OVERHEAD` is 96, the standard one 512.
pub const OVERHEAD: usize = 96;
/// `MPI_BUFFER_AUTOMATIC`: the library provides the space.
pub const AUTOMATIC: usize = 2;
/// Segments start at multiples of this, so that copies into them are aligned.
const ALIGN: usize = 16;

/// The buffer attached to the process, a communicator or a session.
#[derive(Debug, Default)]
pub struct Bsend {
    attached: Option<Attached>,
}

#[derive(Debug)]
enum Attached {
    User {
        address: usize,
        len: usize,
        /// Used segments: start to length in bytes, overhead included.
        used: BTreeMap<usize, usize>,
        /// Where the last segment ended; the search goes on there.
        tail: usize,
    },
    Automatic {
        /// Segments on the heap by the address of their data.
        used: BTreeMap<usize, Box<[u8]>>,
    },
}

/// What `MPI_Buffer_detach` gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Detached {
    /// The address that was attached.
    pub address: usize,
    /// Its length in bytes; zero for [`AUTOMATIC`].
    pub len: usize,
}

impl Bsend {
    /// `MPI_Buffer_attach` and its kin; one buffer at a time.
    pub fn attach(&mut self, address: usize, len: usize) -> Result {
        if self.attached.is_some() {
            return fail(Class::BUFFER, "a buffer is attached already; detach it first");
        }
        self.attached = Some(match address {
            AUTOMATIC => Attached::Automatic { used: BTreeMap::new() },
            0 if len > 0 => return fail(Class::BUFFER, format!("the buffer is NULL, with {len} bytes")),
            _ => Attached::User { address, len, used: BTreeMap::new(), tail: address },
        });
        Ok(())
    }

    /// `MPI_Buffer_detach`: only when no segment is in use, which the caller waits for
    /// ([`Bsend::is_drained`]). With no buffer attached the answer is a NULL buffer of no length.
    pub fn detach(&mut self) -> Detached {
        assert!(self.is_drained(), "detached while messages are in the buffer");
        match self.attached.take() {
            Some(Attached::User { address, len, .. }) => Detached { address, len },
            Some(Attached::Automatic { .. }) => Detached { address: AUTOMATIC, len: 0 },
            None => Detached { address: 0, len: 0 },
        }
    }

    /// Whether a buffer is attached.
    pub fn is_attached(&self) -> bool {
        self.attached.is_some()
    }

    /// The length of the attached buffer; zero without one and for [`AUTOMATIC`].
    pub fn len_bytes(&self) -> usize {
        match self.attached {
            Some(Attached::User { len, .. }) => len,
            _ => 0,
        }
    }

    /// Whether no message is in the buffer: what detach and flush wait for.
    pub fn is_drained(&self) -> bool {
        self.segments() == 0
    }

    /// How many messages are in the buffer.
    pub fn segments(&self) -> usize {
        match &self.attached {
            Some(Attached::User { used, .. }) => used.len(),
            Some(Attached::Automatic { used }) => used.len(),
            None => 0,
        }
    }

    /// Space for a message of `len_bytes` of data; `None` if it does not fit now. The address is
    /// where the data goes; it is given back with [`Bsend::release`].
    pub fn reserve(&mut self, len_bytes: usize) -> Option<usize> {
        match self.attached.as_mut()? {
            Attached::User { address, len, used, tail } => {
                let wanted = len_bytes.checked_add(OVERHEAD)?;
                let end = address.checked_add(*len)?;
                let start = gap(*tail, end, used, wanted).or_else(|| gap(*address, end, used, wanted))?;
                used.insert(start, wanted);
                *tail = start + wanted;
                Some(start.next_multiple_of(ALIGN))
            }
            Attached::Automatic { used } => {
                let mut space = Vec::new();
                // One byte at least, so that every segment has an address of its own.
                space.try_reserve_exact(len_bytes.max(1)).ok()?;
                space.resize(len_bytes.max(1), 0);
                let space: Box<[u8]> = space.into_boxed_slice();
                let address = space.as_ptr().addr();
                used.insert(address, space);
                Some(address)
            }
        }
    }

    /// The message whose data is at `address` has left.
    pub fn release(&mut self, address: usize) {
        let known = match &mut self.attached {
            Some(Attached::User { used, .. }) => {
                let start = used.range(..=address).next_back().map(|(start, _)| *start);
                start
                    .filter(|start| start.next_multiple_of(ALIGN) == address)
                    .and_then(|s| used.remove(&s))
                    .is_some()
            }
            Some(Attached::Automatic { used }) => used.remove(&address).is_some(),
            None => false,
        };
        assert!(known, "released {address:#x}, which is no segment of the attached buffer");
    }

    /// Why a message of `len_bytes` does not fit, for the error `MPI_ERR_BUFFER`.
    pub fn shortage(&self, len_bytes: usize) -> String {
        match &self.attached {
            None => "no buffer is attached for buffered sends".into(),
            Some(Attached::Automatic { .. }) => format!("out of memory for a message of {len_bytes} bytes"),
            Some(Attached::User { len, used, .. }) => {
                let taken: usize = used.values().sum();
                format!(
                    "a message of {len_bytes} bytes and its overhead of {OVERHEAD} do not fit the attached \
                     buffer of {len} bytes, of which {taken} hold {} messages not received yet",
                    used.len()
                )
            }
        }
    }
}

/// The lowest gap of at least `wanted` bytes from `start`, which is in no segment, to `end`.
fn gap(mut start: usize, end: usize, used: &BTreeMap<usize, usize>, wanted: usize) -> Option<usize> {
    for (next, taken) in used.range(start..) {
        if next - start >= wanted {
            return Some(start);
        }
        start = next + taken;
    }
    (end - start >= wanted).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The circular queue of section 3.6.1: space is taken at the tail and comes back at the head.
    struct Queue {
        len: usize,
        /// Start, length, whether the message has left; oldest first.
        entries: Vec<(usize, usize, bool)>,
        tail: usize,
    }

    impl Queue {
        fn reserve(&mut self, wanted: usize) -> Option<usize> {
            let start = match self.entries.first() {
                Some(&(head, ..)) if self.tail <= head => (head - self.tail >= wanted).then_some(self.tail),
                head if self.len - self.tail < wanted => {
                    let limit = head.map_or(self.tail, |entry| entry.0);
                    (limit >= wanted).then_some(0)
                }
                _ => Some(self.tail),
            }?;
            self.entries.push((start, wanted, false));
            self.tail = start + wanted;
            Some(start)
        }

        fn release(&mut self, start: usize) {
            let entry = self.entries.iter_mut().find(|entry| entry.0 == start && !entry.2).unwrap();
            entry.2 = true;
            while self.entries.first().is_some_and(|entry| entry.2) {
                self.entries.remove(0);
            }
        }
    }

    proptest! {
        #[test]
        fn there_is_space_whenever_the_queue_of_the_standard_has_some(
            len in 2_000usize..6_000,
            steps in prop::collection::vec((0usize..2_500, any::<bool>(), any::<prop::sample::Index>()), 1..200),
        ) {
            const BASE: usize = 0x1003;
            let mut bsend = Bsend::default();
            bsend.attach(BASE, len).unwrap();
            let mut queue = Queue { len, entries: vec![], tail: 0 };
            let mut alive: Vec<(usize, usize)> = vec![];
            for (size, release, which) in steps {
                if release && !alive.is_empty() {
                    let (start, place) = alive.remove(which.index(alive.len()));
                    queue.release(start);
                    bsend.release(place);
                } else if let Some(start) = queue.reserve(size + OVERHEAD) {
                    let place = bsend.reserve(size);
                    prop_assert!(place.is_some_and(|p| p >= BASE && p + size <= BASE + len));
                    alive.push((start, place.unwrap()));
                }
            }
            prop_assert_eq!(bsend.segments(), alive.len());
        }
    }

    #[test]
    fn a_buffer_of_the_standard_size_holds_its_messages() {
        for (base, sizes) in [(0x1001, vec![1, 7, 0, 100]), (0x1000, vec![1; 50]), (0x100f, vec![3, 5, 1000])]
        {
            let mut bsend = Bsend::default();
            bsend.attach(base, sizes.iter().map(|size| size + OVERHEAD).sum()).unwrap();
            let places: Vec<usize> = sizes.iter().map(|size| bsend.reserve(*size).unwrap()).collect();
            assert!(bsend.reserve(0).is_none());
            assert!(bsend.shortage(0).contains(&format!("hold {} messages", sizes.len())));
            for (i, (place, size)) in places.iter().zip(&sizes).enumerate() {
                assert!(*place >= base && place % ALIGN == 0);
                let next = places.get(i + 1).copied().unwrap_or(usize::MAX);
                assert!(place + size <= next, "segments do not overlap");
            }
            places.iter().for_each(|place| bsend.release(*place));
            assert!(bsend.is_drained());
        }
    }

    #[test]
    fn gaps_are_used_again() {
        let mut bsend = Bsend::default();
        bsend.attach(0x1000, 3 * (64 + OVERHEAD)).unwrap();
        let places: Vec<usize> = (0..3).map(|_| bsend.reserve(64).unwrap()).collect();
        bsend.release(places[1]);
        assert_eq!(bsend.reserve(65), None);
        assert_eq!(bsend.reserve(64), Some(places[1]));
    }

    #[test]
    fn attach_and_detach_follow_each_other() {
        let mut bsend = Bsend::default();
        assert_eq!(bsend.detach(), Detached { address: 0, len: 0 });
        assert!(bsend.reserve(1).is_none() && bsend.shortage(1).contains("no buffer"));
        assert_eq!(bsend.attach(0, 1).unwrap_err().class, Class::BUFFER);
        bsend.attach(0x1000, 600).unwrap();
        assert_eq!(bsend.len_bytes(), 600);
        assert_eq!(bsend.attach(0x2000, 600).unwrap_err().class, Class::BUFFER);
        assert_eq!(bsend.detach(), Detached { address: 0x1000, len: 600 });
        assert_eq!(bsend.reserve(usize::MAX), None);
    }

    #[test]
    fn the_automatic_buffer_grows() {
        let mut bsend = Bsend::default();
        bsend.attach(AUTOMATIC, 0).unwrap();
        let (a, b, c) =
            (bsend.reserve(0).unwrap(), bsend.reserve(0).unwrap(), bsend.reserve(1 << 20).unwrap());
        assert!(a != b && b != c && bsend.segments() == 3);
        [a, b, c].into_iter().for_each(|place| bsend.release(place));
        assert_eq!(bsend.detach(), Detached { address: AUTOMATIC, len: 0 });
    }

    #[test]
    #[should_panic(expected = "no segment")]
    fn releasing_what_was_not_reserved_is_a_bug() {
        let mut bsend = Bsend::default();
        bsend.attach(0x1000, 6000).unwrap();
        bsend.reserve(8);
        bsend.release(0x1010);
    }
}
