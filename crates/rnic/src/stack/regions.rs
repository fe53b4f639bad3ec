//! Registered memory: who may do what with it (RFC 5040 section 5.2, RFC 5042).
//!
//! A tag (STag) is the index of an entry, 24 bits, and a key, 8 bits, which changes each time the entry
//! is used anew, so that the tag of a region that has ended names nothing. Offsets are addresses: the
//! tagged offset of a region's first byte is where it lies in its process.

use std::collections::VecDeque;

use wire::iwarp::rdmap::Cause;

/// What may be done with a region; several are joined by `|`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rights(u8);

impl Rights {
    /// Nothing but sending from it.
    pub const NONE: Rights = Rights(0);
    /// What this side has read elsewhere may be placed there.
    pub const LOCAL_WRITE: Rights = Rights(1);
    /// Peers may read it.
    pub const REMOTE_READ: Rights = Rights(2);
    /// Peers may write it.
    pub const REMOTE_WRITE: Rights = Rights(4);
    /// Peers may change words of it atomically.
    pub const REMOTE_ATOMIC: Rights = Rights(8);
    /// Everything.
    pub const ALL: Rights = Rights(15);

    fn include(self, needed: Rights) -> bool {
        self.0 & needed.0 == needed.0
    }
}

impl std::ops::BitOr for Rights {
    type Output = Rights;
    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

/// Why an access is refused, in the order in which it is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// The tag names no region, one that has ended, or one that has been invalidated.
    Stag,
    /// The region is of another protection domain.
    Domain,
    /// The region is not registered for this.
    Rights,
    /// Offset and length exceed 64 bits.
    Wrap,
    /// Bytes outside the region.
    Bounds,
}

impl Denied {
    /// As DDP says it of a tagged segment (RFC 5041 section 8.2); rights are a matter of RDMAP.
    pub fn of_segment(self) -> Cause {
        match self {
            Denied::Stag => Cause::TAGGED_STAG,
            Denied::Domain => Cause::TAGGED_DOMAIN,
            Denied::Rights => Cause::RDMAP_RIGHTS,
            Denied::Wrap => Cause::TAGGED_WRAP,
            Denied::Bounds => Cause::TAGGED_BOUNDS,
        }
    }

    /// As RDMAP says it of what a request names (RFC 5040 section 4.8).
    pub fn of_request(self) -> Cause {
        match self {
            Denied::Stag => Cause::RDMAP_STAG,
            Denied::Domain => Cause::RDMAP_DOMAIN,
            Denied::Rights => Cause::RDMAP_RIGHTS,
            Denied::Wrap => Cause::RDMAP_WRAP,
            Denied::Bounds => Cause::RDMAP_BOUNDS,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    base: u64,
    len: u64,
    domain: u32,
    rights: Rights,
    key: u8,
    /// Registered, and not invalidated.
    valid: bool,
    /// Registered.
    taken: bool,
}

/// Most regions at a time: what 24 bits can tell apart; index 0 is never given out.
pub const MAX_REGIONS: usize = (1 << 24) - 1;

/// The regions of one adapter.
#[derive(Debug)]
pub struct Regions {
    entries: Vec<Entry>,
    /// Entries that can be used anew, those that ended last behind: tags repeat as late as possible.
    free: VecDeque<u32>,
}

impl Default for Regions {
    fn default() -> Regions {
        Regions::new()
    }
}

impl Regions {
    /// No region.
    pub fn new() -> Regions {
        let nothing =
            Entry { base: 0, len: 0, domain: 0, rights: Rights::NONE, key: 0, valid: false, taken: true };
        Regions { entries: vec![nothing], free: VecDeque::new() }
    }

    /// Registers `len` bytes whose first has the offset `base`; their tag. `None` if there are too many
    /// regions, or the last byte has no offset.
    pub fn register(&mut self, base: u64, len: u64, rights: Rights, domain: u32) -> Option<u32> {
        base.checked_add(len)?;
        let index = match self.free.pop_front() {
            Some(index) => index as usize,
            None if self.entries.len() > MAX_REGIONS => return None,
            None => {
                let nothing = Entry { taken: false, ..self.entries[0] };
                self.entries.push(nothing);
                self.entries.len() - 1
            }
        };
        let entry = &mut self.entries[index];
        let key = entry.key.wrapping_add(1);
        *entry = Entry { base, len, domain, rights, key, valid: true, taken: true };
        Some((index as u32) << 8 | u32::from(key))
    }

    /// Ends a region, also one that has been invalidated. False if the tag names none.
    pub fn deregister(&mut self, stag: u32) -> bool {
        let Some(entry) = self.find(stag) else { return false };
        (entry.valid, entry.taken) = (false, false);
        self.free.push_back(stag >> 8);
        true
    }

    /// Ends the tag of a region for remote and local access (Send with Invalidate).
    pub fn invalidate(&mut self, stag: u32, domain: u32) -> Result<(), Denied> {
        let entry = self.find(stag).filter(|entry| entry.valid).ok_or(Denied::Stag)?;
        if entry.domain != domain {
            return Err(Denied::Domain);
        }
        entry.valid = false;
        Ok(())
    }

    /// Whether these bytes may be touched so.
    #[inline]
    pub fn check(&self, stag: u32, to: u64, len: u64, needed: Rights, domain: u32) -> Result<(), Denied> {
        let entry = self.entries.get(stag as usize >> 8).ok_or(Denied::Stag)?;
        if !entry.valid || entry.key != stag as u8 {
            return Err(Denied::Stag);
        }
        if entry.domain != domain {
            return Err(Denied::Domain);
        }
        if !entry.rights.include(needed) {
            return Err(Denied::Rights);
        }
        let end = to.checked_add(len).ok_or(Denied::Wrap)?;
        if to < entry.base || end > entry.base + entry.len {
            return Err(Denied::Bounds);
        }
        Ok(())
    }

    fn find(&mut self, stag: u32) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(stag as usize >> 8).filter(|_| stag >> 8 != 0)?;
        (entry.taken && entry.key == stag as u8).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_in_its_order() {
        let mut regions = Regions::new();
        let rights = Rights::REMOTE_READ | Rights::LOCAL_WRITE;
        let stag = regions.register(0x1000, 0x100, rights, 7).unwrap();
        let check = |stag, to, len, needed, domain| regions.check(stag, to, len, needed, domain);
        assert_eq!(check(stag, 0x1000, 0x100, Rights::REMOTE_READ, 7), Ok(()));
        assert_eq!(check(stag, 0x1100, 0, Rights::REMOTE_READ, 7), Ok(()));
        for wrong in [0, 1, stag ^ 1, stag + 0x100, u32::MAX] {
            assert_eq!(check(wrong, 0x1000, 1, Rights::REMOTE_READ, 7), Err(Denied::Stag), "{wrong:x}");
        }
        assert_eq!(check(stag, 0, 1, Rights::REMOTE_WRITE, 8), Err(Denied::Domain));
        assert_eq!(check(stag, 0, 1, Rights::REMOTE_WRITE, 7), Err(Denied::Rights));
        assert_eq!(check(stag, 0, 1, Rights::ALL, 7), Err(Denied::Rights));
        assert_eq!(check(stag, u64::MAX, 2, rights, 7), Err(Denied::Wrap));
        for (to, len) in [(0xfff, 1), (0x1100, 1), (0x10ff, 2), (0x1000, 0x101), (0xfff, 0x102)] {
            assert_eq!(check(stag, to, len, rights, 7), Err(Denied::Bounds), "{to:x} {len:x}");
        }
    }

    #[test]
    fn tags_that_have_ended_name_nothing() {
        let mut regions = Regions::new();
        let first = regions.register(0, 8, Rights::ALL, 0).unwrap();
        assert!(regions.deregister(first) && !regions.deregister(first));
        let second = regions.register(0, 8, Rights::ALL, 0).unwrap();
        assert_eq!((first >> 8, first != second), (second >> 8, true));
        assert_eq!(regions.check(first, 0, 8, Rights::NONE, 0), Err(Denied::Stag));
        assert_eq!(regions.invalidate(second, 1), Err(Denied::Domain));
        assert_eq!(regions.invalidate(second, 0), Ok(()));
        assert_eq!(regions.invalidate(second, 0), Err(Denied::Stag));
        assert_eq!(regions.check(second, 0, 8, Rights::NONE, 0), Err(Denied::Stag));
        assert!(regions.deregister(second), "an invalidated region still has to be given back");
        assert!(!regions.deregister(0) && !regions.deregister(u32::MAX));
        assert_eq!(regions.register(u64::MAX, 2, Rights::ALL, 0), None);
    }
}
