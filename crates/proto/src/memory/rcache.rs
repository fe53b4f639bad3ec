//! The registration cache: registrations of application memory that outlive the transfer they were
//! made for.
//!
//! To register costs a system call and time per page, often more than the transfer itself, and
//! applications send from the same buffers again and again. So a protocol *holds* a registration
//! while a transfer needs it and *releases* it afterwards, and what nobody holds stays registered
//! (lazy deregistration) until its memory goes away, room is needed, or the adapter has no more
//! (paper 000, section 3.1; paper 001, section 5.1; dissertation, section 3.5.1). It speeds up only what
//! comes again: the first message pays in full (paper 003, «Real behavior of rcache»).
//!
//! Registrations may overlap, but none that can be found lies inside another: a new one that contains
//! others takes their place. Sorted by their beginnings they are then sorted by their ends too,
//! so one step in a balanced tree finds the only candidate. They are not merged: the union would
//! register memory between two buffers that nobody sends, and would be lost with either of them.
//!
//! Who sends a buffer lets its peers read it at most, and who receives into it lets them write to it at most ([`Rights`]). What is kept is
//! registered for that from the beginning, by whichever protocol its first message goes, so that another one finds it; what ends with
//! its transfer is registered for that alone. A registration that lacks what the next use needs is *widened*: all of it is registered anew,
//! for both, and takes its place. So a buffer that is sent and received in turn is found each time after the first of each kind, and its
//! peers may read it and write to it as long as it is kept.
//!
//! Memory that is given back to the system and mapped anew has other pages, which the adapter does not know. So only
//! memory whose end is announced is kept ([`fabric::Device::watch`]); all other registrations are shared while
//! they are in use, which is safe because MPI forbids to give such memory back, and end with their last release.
//!
//! For who doubts that all ends are announced each use can be verified ([`Rcache::verify`]): what is kept is used again only if
//! its pages lie in the frames that they were in when they were registered, as far as the device knows these.

use crate::event::{Counters, Event};
use fabric::spread::SpreadMap;
use fabric::{Charge, Device, Fault, Region, Rights, Span};
use std::collections::BTreeMap;

/// A registration that is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The adapter it is registered with.
    pub rail: usize,
    /// Its keys.
    pub region: Region,
}

/// What the cache may keep. What transfers need is registered beyond it, and ends with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheLimits {
    /// Bytes; 0: nothing is kept.
    pub bytes: usize,
    /// Registrations.
    pub regions: usize,
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        CacheLimits { bytes: 4 << 30, regions: 16384 }
    }
}

#[derive(Debug)]
struct Entry {
    span: Span,
    region: Region,
    /// What it is registered for.
    rights: Rights,
    /// Transfers that use it.
    holders: u32,
    /// Whether it stays when nobody uses it.
    kept: bool,
    /// Whether it can be found.
    listed: bool,
    /// When it was last released, in releases.
    turn: u64,
    /// Where its pages were when it was registered, if uses are verified and that is known.
    frames: Option<Box<[u64]>>,
}

/// Why a registration must not be used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stale {
    /// Not everything is mapped there that was watched.
    Mapping,
    /// A page, counted from the first that is used, is another one than was registered.
    Page(usize),
    /// Some page is missing.
    Missing,
}

/// The registrations of one rank.
#[derive(Debug, Default)]
pub struct Rcache {
    limits: CacheLimits,
    /// By adapter and local key.
    entries: SpreadMap<(usize, u32), Entry>,
    /// By adapter: local keys by first byte of those that can be found.
    index: Vec<BTreeMap<usize, u32>>,
    /// Those that nobody holds, the least recently used first.
    idle: BTreeMap<u64, (usize, u32)>,
    turn: u64,
    bytes: usize,
    gone: Vec<Span>,
    refused: Option<Fault>,
    /// Whether each use is verified.
    verifies: bool,
    /// Frames of what is being verified.
    now: Vec<u64>,
    /// How many registrations were found stale by that, and what the first was.
    stale: Option<(u64, Span, Stale)>,
}

impl Rcache {
    /// An empty cache.
    pub fn new(limits: CacheLimits) -> Rcache {
        Rcache { limits, ..Rcache::default() }
    }

    /// Registers memory for these uses, or finds that it is. With `keep` the registration may outlive its use, so
    /// that the next one finds it. A fault says that the adapter can register no more even though
    /// nothing is kept; the protocol then has to copy.
    pub fn hold(
        &mut self,
        dev: &mut impl Device,
        counters: &mut Counters,
        rail: usize,
        span: Span,
        rights: Rights,
        keep: bool,
    ) -> Result<Held, Fault> {
        self.heed(dev, counters);
        let (mut span, mut rights, mut keep) = (span, rights, keep);
        if let Some(key) = self.find(dev, rail, span) {
            let entry = &self.entries[&(rail, key)];
            let (found, whole, is_kept) = (entry.rights, entry.span, entry.kept);
            match self.is_stale(dev, rail, key, span) {
                None if found.include(rights) => {
                    counters.count(Event::CacheHit);
                    return Ok(self.hold_again(rail, key));
                }
                None => {
                    self.drop_from_index(dev, rail, whole.addr);
                    (span, rights, keep) = (whole, rights | found, keep || is_kept);
                }
                Some(why) => {
                    self.found_stale(counters, span, why);
                    self.invalidate(dev, counters, span);
                }
            }
        }
        counters.count(Event::CacheMiss);
        let whole = pages_around(span, dev.page_bytes());
        let kept = keep && self.make_room(dev, counters, whole.len) && dev.watch(whole);
        let (span, rights) = if kept { (whole, by_any_protocol(rights)) } else { (span, rights) };
        let region = self.register(dev, counters, rail, span, rights)?;
        self.insert(
            dev,
            rail,
            Entry { span, region, rights, holders: 1, kept, listed: false, turn: 0, frames: None },
        );
        if kept && self.verifies {
            self.remember(dev, rail, region, span);
        }
        Ok(Held { rail, region })
    }

    /// Has each use of what is kept verified from now on.
    pub fn verify(&mut self, verifies: bool) {
        self.verifies = verifies;
    }

    /// The transfer is over.
    pub fn release(&mut self, dev: &mut impl Device, held: Held) {
        let name = (held.rail, held.region.local);
        let entry = self.entries.get_mut(&name).expect("what is released is held");
        entry.holders -= 1;
        if entry.holders > 0 {
            return;
        }
        if entry.kept && entry.listed {
            self.turn += 1;
            entry.turn = self.turn;
            self.idle.insert(self.turn, name);
        } else {
            self.remove(dev, name);
        }
    }

    /// Forgets memory that has gone away, as the device tells. What is in use leaves with its last
    /// release.
    #[inline]
    pub fn heed(&mut self, dev: &mut impl Device, counters: &mut Counters) {
        if dev.memory_changed() {
            let mut gone = std::mem::take(&mut self.gone);
            dev.take_changes(&mut gone);
            gone.drain(..).for_each(|span| self.invalidate(dev, counters, span));
            self.gone = gone;
        }
    }

    /// Forgets what overlaps `span`.
    pub fn invalidate(&mut self, dev: &mut impl Device, counters: &mut Counters, span: Span) {
        let end = span.addr.saturating_add(span.len);
        for rail in 0..self.index.len() {
            // The ends are sorted as the beginnings are.
            while let Some((&first, &key)) = self.index[rail].range(..end).next_back() {
                if first + self.entries[&(rail, key)].span.len <= span.addr {
                    break;
                }
                counters.count(Event::CacheInvalidated);
                self.drop_from_index(dev, rail, first);
            }
        }
    }

    /// Gives back what nobody holds.
    pub fn clear(&mut self, dev: &mut impl Device) {
        while let Some((_, name)) = self.idle.pop_first() {
            self.remove(dev, name);
        }
    }

    /// Whether registrations are kept that nobody holds.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Bytes that are registered, in use or kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of registrations, in use or kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is registered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether memory is registered such that [`Rcache::hold`] would find it for these uses. Of [`Rights::NONE`] whether it is for
    /// anything: what it lacks for others is added once.
    pub fn has(&self, rail: usize, span: Span, rights: Rights) -> bool {
        self.candidate(rail, span).is_some_and(|key| self.entries[&(rail, key)].rights.include(rights))
    }

    /// All of what is registered together with memory that is held.
    pub fn whole(&self, held: Held) -> Span {
        self.entries[&(held.rail, held.region.local)].span
    }

    /// In one line, what a person can do about registrations that were refused; `None` if none was.
    pub fn advice(&self) -> Option<String> {
        let Fault::Device(cause) = self.refused.as_ref()? else { return None };
        Some(format!(
            "messages are copied because memory could not be registered: {cause}; if this is the limit of locked \
             memory raise it: `ulimit -l unlimited`, LimitMEMLOCK=infinity (systemd, slurmd), --ulimit memlock=-1 \
             (containers)"
        ))
    }

    /// In one line, what was found by verifying each use; `None` if nothing was.
    pub fn findings(&self) -> Option<String> {
        let (count, Span { addr, len }, why) = self.stale?;
        let how = match why {
            Stale::Mapping => {
                "what is mapped there is not what was watched (munmap, MAP_FIXED, mremap, shmdt)".into()
            }
            Stale::Page(page) => format!(
                "page {page} of them lies in another frame than when it was registered, and nobody had told (madvise, a file \
                 that was cut and grew)"
            ),
            Stale::Missing => "some page of them cannot be had any more (a file that was cut)".into(),
        };
        Some(format!(
            "TERN_REGISTERED_VERIFY: {count} kept registrations were stale when they were to be used, and registered anew; the \
             first: {len} bytes at {addr:#x}: {how}"
        ))
    }

    /// Why a registration must not be used again; `None` if nothing says that. What is not kept is in use, and MPI forbids to give its
    /// memory back.
    fn is_stale(&mut self, dev: &mut impl Device, rail: usize, key: u32, span: Span) -> Option<Stale> {
        let entry = &self.entries[&(rail, key)];
        if !entry.kept {
            return None;
        }
        if !dev.is_unchanged(span) {
            return Some(Stale::Mapping);
        }
        let (known, region) = (entry.frames.as_ref()?, entry.region);
        self.now.clear();
        if !dev.frames(rail, region, span, &mut self.now) {
            return Some(Stale::Missing);
        }
        let first = (span.addr - entry.span.addr) / dev.page_bytes();
        let is_other = |(now, then): (&u64, &u64)| now != then;
        self.now.iter().zip(&known[first..]).position(is_other).map(Stale::Page)
    }

    /// Says what was found, if that is what was looked for.
    fn found_stale(&mut self, counters: &mut Counters, span: Span, why: Stale) {
        if self.verifies {
            counters.count(Event::CacheStale);
            self.stale.get_or_insert((0, span, why)).0 += 1;
        }
    }

    /// Remembers where the pages of a new registration are.
    fn remember(&mut self, dev: &mut impl Device, rail: usize, region: Region, span: Span) {
        let mut frames = Vec::with_capacity(span.len / dev.page_bytes());
        if dev.frames(rail, region, span, &mut frames) {
            let entry = self.entries.get_mut(&(rail, region.local)).expect("it was inserted");
            entry.frames = Some(frames.into());
        }
    }

    fn find(&self, dev: &mut impl Device, rail: usize, span: Span) -> Option<u32> {
        let entries = self.index.get(rail).map_or(0, BTreeMap::len);
        dev.charge(Charge::CacheSearch(usize::BITS - entries.leading_zeros()));
        self.candidate(rail, span)
    }

    /// The last that begins no later is the one that ends last of those.
    fn candidate(&self, rail: usize, span: Span) -> Option<u32> {
        let (&first, &key) = self.index.get(rail)?.range(..=span.addr).next_back()?;
        let entry = &self.entries[&(rail, key)];
        (span.addr + span.len <= first + entry.span.len).then_some(key)
    }

    fn hold_again(&mut self, rail: usize, key: u32) -> Held {
        let entry = self.entries.get_mut(&(rail, key)).expect("it was found");
        if entry.holders == 0 {
            self.idle.remove(&entry.turn);
        }
        entry.holders += 1;
        Held { rail, region: entry.region }
    }

    /// Makes room to keep `len` bytes more; false if what is in use leaves none.
    fn make_room(&mut self, dev: &mut impl Device, counters: &mut Counters, len: usize) -> bool {
        let limits = self.limits;
        if len > limits.bytes || limits.regions == 0 {
            return false;
        }
        while self.bytes > limits.bytes - len || self.entries.len() >= limits.regions {
            if !self.evict(dev, counters) {
                return false;
            }
        }
        true
    }

    /// Registers, if need be at the expense of what nobody uses.
    fn register(
        &mut self,
        dev: &mut impl Device,
        counters: &mut Counters,
        rail: usize,
        span: Span,
        rights: Rights,
    ) -> Result<Region, Fault> {
        loop {
            let fault = match dev.register(rail, span, rights) {
                Ok(region) => return Ok(region),
                Err(fault) => fault,
            };
            let enough = self.bytes.saturating_sub(span.len);
            if !self.evict(dev, counters) {
                counters.count(Event::RegistrationRefused);
                self.refused.get_or_insert_with(|| fault.clone());
                return Err(fault);
            }
            while self.bytes > enough && self.evict(dev, counters) {}
        }
    }

    fn insert(&mut self, dev: &mut impl Device, rail: usize, mut entry: Entry) {
        let (span, key) = (entry.span, entry.region.local);
        if self.index.len() <= rail {
            self.index.resize_with(rail + 1, BTreeMap::new);
        }
        let inner = self.inside(rail, span);
        entry.listed = entry.kept || inner.is_empty();
        if entry.listed {
            inner.into_iter().for_each(|first| self.drop_from_index(dev, rail, first));
            self.index[rail].insert(span.addr, key);
        }
        self.bytes += span.len;
        let old = self.entries.insert((rail, key), entry);
        assert!(old.is_none(), "key {key:#x} of rail {rail} was given twice");
    }

    /// First bytes of those that lie inside a span.
    fn inside(&self, rail: usize, span: Span) -> Vec<usize> {
        let end = span.addr + span.len;
        let begins = self.index[rail].range(span.addr..end.max(span.addr + 1));
        let is_inside =
            |(first, key): &(&usize, &u32)| **first + self.entries[&(rail, **key)].span.len <= end;
        begins.take_while(is_inside).map(|(first, _)| *first).collect()
    }

    /// What is found no more leaves, now or with its last release.
    fn drop_from_index(&mut self, dev: &mut impl Device, rail: usize, first: usize) {
        let key = self.index[rail].remove(&first).expect("it is in the index");
        let entry = self.entries.get_mut(&(rail, key)).expect("what is in the index is an entry");
        entry.listed = false;
        if entry.holders == 0 {
            self.idle.remove(&entry.turn);
            self.remove(dev, (rail, key));
        }
    }

    /// Gives back the least recently used of those that nobody holds.
    fn evict(&mut self, dev: &mut impl Device, counters: &mut Counters) -> bool {
        let Some((_, name)) = self.idle.pop_first() else { return false };
        counters.count(Event::CacheEvicted);
        self.remove(dev, name);
        true
    }

    fn remove(&mut self, dev: &mut impl Device, name: (usize, u32)) {
        let entry = self.entries.remove(&name).expect("it is an entry");
        if entry.listed {
            self.index[name.0].remove(&entry.span.addr);
        }
        self.bytes -= entry.span.len;
        dev.deregister(name.0, entry.region);
    }
}

/// What a buffer that is used so may be used for by another protocol: one that is sent read by peers, one that is received into written to.
fn by_any_protocol(rights: Rights) -> Rights {
    rights | if rights.include(Rights::LOCAL_WRITE) { Rights::REMOTE_WRITE } else { Rights::REMOTE_READ }
}

/// The pages that hold a span.
fn pages_around(span: Span, page_bytes: usize) -> Span {
    let addr = span.addr - span.addr % page_bytes;
    let end = (span.addr + span.len).next_multiple_of(page_bytes);
    Span { addr, len: end - addr }
}
