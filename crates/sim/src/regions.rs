//! Registered memory of one rank, and the check that every access is inside it, and to what it is registered for.

use fabric::{Fault, Local, Rights, Span};

use crate::cluster::Registration;

const INDEX_BITS: u32 = 20;

#[derive(Clone, Copy, Debug)]
struct Region {
    span: Span,
    rail: u32,
    rights: Rights,
    /// Changes when the region is given back, so that a key is never good twice in a row.
    generation: u32,
    is_live: bool,
}

/// The regions of a rank.
#[derive(Default)]
pub struct Regions {
    all: Vec<Region>,
    free: Vec<u32>,
    live: usize,
    locked_bytes: usize,
}

impl Regions {
    /// Registers `span` with `rail` for these uses; its key, which is never 0.
    pub fn add(
        &mut self,
        rail: usize,
        span: Span,
        rights: Rights,
        limits: &Registration,
    ) -> Result<u32, Fault> {
        let locked = pages(span.len, limits.page_bytes) * limits.page_bytes;
        if self.live >= limits.regions {
            return Err(Fault::Device(format!(
                "all {} regions are in use (limit `regions`)",
                limits.regions
            )));
        }
        if self.locked_bytes + locked > limits.lockable_bytes {
            return Err(Fault::Device(format!(
                "{locked} bytes cannot be locked: {} of {} are (limit `lockable_bytes`)",
                self.locked_bytes, limits.lockable_bytes
            )));
        }
        self.live += 1;
        self.locked_bytes += locked;
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(Region { span, rail: 0, rights, generation: 0, is_live: false });
            self.all.len() as u32 - 1
        });
        assert!(index < (1 << INDEX_BITS) - 1, "regions are limited below that");
        let region = &mut self.all[index as usize];
        *region = Region { span, rail: rail as u32, rights, is_live: true, ..*region };
        Ok((index + 1) | region.generation << INDEX_BITS)
    }

    /// Gives a region back; its length, or why it could not be.
    pub fn remove(&mut self, rail: usize, key: u32, limits: &Registration) -> Result<usize, String> {
        let region = self.find(key).filter(|region| region.rail == rail as u32).copied();
        let Some(Region { span, .. }) = region else {
            return Err(format!("key {key:#x} is not registered with rail {rail}"));
        };
        let index = (key & ((1 << INDEX_BITS) - 1)) - 1;
        let region = &mut self.all[index as usize];
        region.is_live = false;
        region.generation = (region.generation + 1) & ((1 << (32 - INDEX_BITS)) - 1);
        self.live -= 1;
        self.locked_bytes -= pages(span.len, limits.page_bytes) * limits.page_bytes;
        self.free.push(index);
        Ok(span.len)
    }

    /// Whether `local` is inside memory registered under its key for what is `needed`, with `rail` if one is given.
    pub fn check(&self, rail: Option<usize>, local: Local, needed: Rights) -> Result<(), String> {
        let Local { span: Span { addr, len }, key } = local;
        let Some(region) = self.find(key) else {
            return Err(format!("key {key:#x} is not registered"));
        };
        if rail.is_some_and(|rail| region.rail != rail as u32) {
            return Err(format!("key {key:#x} belongs to rail {}", region.rail));
        }
        let (first, end) = (region.span.addr, region.span.addr + region.span.len);
        if addr < first || addr.checked_add(len).is_none_or(|after| after > end) {
            let outside = addr.wrapping_sub(first) as isize;
            return Err(format!(
                "{len} bytes at offset {outside} of the {} of key {key:#x}",
                region.span.len
            ));
        }
        if !region.rights.include(needed) {
            return Err(format!("key {key:#x} is registered for {:?}, not for {needed:?}", region.rights));
        }
        Ok(())
    }

    /// Everything is gone: the rank has ended.
    pub fn clear(&mut self) {
        *self = Regions::default();
    }

    fn find(&self, key: u32) -> Option<&Region> {
        let index = (key & ((1 << INDEX_BITS) - 1)).checked_sub(1)?;
        let region = self.all.get(index as usize)?;
        (region.is_live && region.generation == key >> INDEX_BITS).then_some(region)
    }
}

/// Pages that `len` bytes fill when they begin at one, as the pages of a cost: where memory happens to lie in
/// this process must not change a simulation.
pub fn pages(len: usize, page_bytes: usize) -> usize {
    len.div_ceil(page_bytes).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Registration = Registration {
        page_bytes: 4096,
        register_ns: (0.0, 0.0),
        deregister_ns: (0.0, 0.0),
        lockable_bytes: 16384,
        regions: 2,
    };

    fn local(addr: usize, len: usize, key: u32) -> Local {
        Local { span: Span { addr, len }, key }
    }

    #[test]
    fn access_outside_or_with_a_stale_key_is_refused() {
        let mut regions = Regions::default();
        let key = regions.add(0, Span { addr: 1000, len: 100 }, Rights::REMOTE_READ, &LIMITS).unwrap();
        assert_eq!(regions.check(Some(0), local(1000, 100, key), Rights::NONE), Ok(()));
        assert_eq!(regions.check(Some(0), local(1000, 100, key), Rights::REMOTE_READ), Ok(()));
        for right in [Rights::LOCAL_WRITE, Rights::REMOTE_WRITE, Rights::REMOTE_ATOMIC] {
            let refused = regions.check(Some(0), local(1000, 1, key), right).unwrap_err();
            assert!(refused.contains("not for"), "{refused}");
        }
        assert!(
            regions
                .check(None, local(1001, 100, key), Rights::NONE)
                .unwrap_err()
                .contains("offset 1 of the 100")
        );
        assert!(regions.check(None, local(999, 1, key), Rights::NONE).is_err());
        assert!(regions.check(None, local(usize::MAX, 2, key), Rights::NONE).is_err());
        assert!(
            regions
                .check(Some(1), local(1000, 1, key), Rights::NONE)
                .unwrap_err()
                .contains("belongs to rail 0")
        );
        assert!(regions.check(None, local(1000, 1, 0), Rights::NONE).is_err());
        assert_eq!(regions.remove(0, key, &LIMITS), Ok(100));
        assert!(
            regions.check(None, local(1000, 1, key), Rights::NONE).unwrap_err().contains("not registered")
        );
        assert!(regions.remove(0, key, &LIMITS).is_err());
        let again = regions.add(0, Span { addr: 1000, len: 100 }, Rights::REMOTE_READ, &LIMITS).unwrap();
        assert_ne!(again, key);
    }

    #[test]
    fn limits_are_errors_that_name_them() {
        let mut regions = Regions::default();
        let span = |len| Span { addr: 0, len };
        let error = regions.add(0, span(16385), Rights::NONE, &LIMITS).unwrap_err();
        assert!(format!("{error:?}").contains("lockable_bytes"), "{error:?}");
        let key = regions.add(0, span(12288), Rights::NONE, &LIMITS).unwrap();
        assert!(regions.add(0, span(4097), Rights::NONE, &LIMITS).is_err());
        regions.add(0, span(4096), Rights::NONE, &LIMITS).unwrap();
        regions.remove(0, key, &LIMITS).unwrap();
        regions.add(0, span(1), Rights::NONE, &LIMITS).unwrap();
        let error = regions.add(0, span(1), Rights::NONE, &LIMITS).unwrap_err();
        assert!(format!("{error:?}").contains("limit `regions`"), "{error:?}");
    }
}
