//! Memory of the ranks as the adapters see it: what is registered, what has gone away since, and every access checked.

use super::Net;
use super::pin::Pinned;
use fabric::{Local, Rank, Remote, Rights, Span};

/// The bit by which the keys that peers use differ from those of the rank itself.
const THEIRS: u32 = 1 << 31;

/// Those of a region.
pub fn keys_of(index: usize) -> fabric::Region {
    fabric::Region { local: index as u32, remote: index as u32 | THEIRS }
}

/// Where memory begins that a rank names so, as its peers name it.
pub fn theirs(local: Local) -> Remote {
    Remote { addr: local.span.addr as u64, key: local.key | THEIRS }
}

/// Registered memory: the pages it had then, which are not those that are mapped there later.
pub struct Region {
    pub rail: usize,
    pub span: Span,
    pub rights: Rights,
    /// Where the memory has gone away since.
    pub gone: Vec<Span>,
    /// The pages themselves, if ranks have them.
    pub pages: Option<Pinned>,
}

impl Net {
    /// Bytes registered by a rank.
    pub fn registered(&self, rank: Rank) -> usize {
        self.hosts[rank].keys.iter().flatten().map(|region| region.span.len).sum()
    }

    /// Where the only region of this length is that a rank has registered.
    pub fn region(&self, rank: Rank, len: usize) -> Span {
        let spans = self.hosts[rank].keys.iter().flatten().map(|region| region.span);
        let mut regions = spans.filter(|span| span.len == len);
        let region = regions.next().expect("it was registered");
        assert_eq!(regions.next(), None);
        region
    }

    /// What the regions that are this memory of a rank are registered for, in the order of their making.
    pub fn rights(&self, rank: Rank, span: Span) -> Vec<Rights> {
        let regions = self.hosts[rank].keys.iter().flatten().filter(|region| region.span == span);
        regions.map(|region| region.rights).collect()
    }

    /// Memory of a rank goes away: what is registered there keeps the old pages.
    pub fn unmap(&mut self, rank: Rank, span: Span) {
        let host = &mut self.hosts[rank];
        host.keys.iter_mut().flatten().filter(|r| overlap(r.span, span)).for_each(|r| r.gone.push(span));
        if self.is_watched {
            host.gone.push(span);
        }
    }

    /// What an adapter reads there.
    pub(super) fn fetch(&mut self, rank: Rank, rail: usize, local: Local, needed: Rights) -> Vec<u8> {
        let span = self.check(rank, rail, local, needed);
        let region = self.hosts[rank].keys[(local.key & !THEIRS) as usize].as_mut();
        let pages = region.and_then(|region| region.pages.as_mut());
        pages.map_or_else(|| bytes_at(span), |pages| pages.read(span))
    }

    /// The span if it was registered with this rail under this key, for what is `needed`.
    pub(super) fn check(&self, rank: Rank, rail: usize, local: Local, needed: Rights) -> Span {
        let Local { span, key } = local;
        let is_of_peer = !Rights::LOCAL_WRITE.include(needed);
        assert_eq!(key & THEIRS != 0, is_of_peer, "rank {rank}: key {key:#x} for {needed:?}");
        let region = self.hosts[rank].keys.get((key & !THEIRS) as usize).and_then(Option::as_ref);
        let inside = |whole: Span| whole.addr <= span.addr && span.addr + span.len <= whole.addr + whole.len;
        let region = region.filter(|region| inside(region.span));
        let region =
            region.unwrap_or_else(|| panic!("rank {rank}: {span:?} is not registered under key {key}"));
        assert_eq!(region.rail, rail, "rank {rank}: key {key} is that of another rail");
        let rights = region.rights;
        assert!(
            rights.include(needed),
            "rank {rank}: {span:?} is registered for {rights:?}, not for {needed:?}"
        );
        let gone = region.gone.iter().find(|gone| overlap(**gone, span));
        assert_eq!(gone, None, "rank {rank}: key {key} names old pages of {span:?}");
        span
    }
}

fn overlap(a: Span, b: Span) -> bool {
    a.addr < b.addr + b.len && b.addr < a.addr + a.len
}

pub fn remote_span(remote: Remote, len: usize) -> Local {
    Local { span: Span { addr: remote.addr as usize, len }, key: remote.key }
}

pub fn gather(spans: impl Iterator<Item = Span>) -> Vec<u8> {
    spans.map(bytes_at).collect::<Vec<_>>().concat()
}

pub fn bytes_at(span: Span) -> Vec<u8> {
    let mut bytes = vec![0; span.len];
    copy(bytes.as_mut_ptr() as usize, span.addr, span.len);
    bytes
}

pub fn put(to: usize, data: &[u8]) {
    copy(to, data.as_ptr() as usize, data.len());
}

pub fn copy(to: usize, from: usize, len: usize) {
    // SAFETY: both are buffers of the test, of the net or of the engine, valid for `len` bytes; who
    // calls holds the net, and what the test has handed over it leaves alone.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) }
}
