//! Memory of the ranks as the adapters see it: what is registered, what has gone away since, and every access checked.

use super::Net;
use super::pin::Pinned;
use fabric::{Local, Rank, Remote, Span};

/// Registered memory: the pages it had then, which are not those that are mapped there later.
pub struct Region {
    pub rail: usize,
    pub span: Span,
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

    /// Memory of a rank goes away: what is registered there keeps the old pages.
    pub fn unmap(&mut self, rank: Rank, span: Span) {
        let host = &mut self.hosts[rank];
        host.keys.iter_mut().flatten().filter(|r| overlap(r.span, span)).for_each(|r| r.gone.push(span));
        if self.is_watched {
            host.gone.push(span);
        }
    }

    /// What an adapter reads there.
    pub(super) fn fetch(&mut self, rank: Rank, rail: usize, local: Local) -> Vec<u8> {
        let span = self.check(rank, rail, local);
        let region = self.hosts[rank].keys[local.key as usize].as_mut();
        let pages = region.and_then(|region| region.pages.as_mut());
        pages.map_or_else(|| bytes_at(span), |pages| pages.read(span))
    }

    /// The span if it was registered with this rail under this key.
    pub(super) fn check(&self, rank: Rank, rail: usize, local: Local) -> Span {
        let Local { span, key } = local;
        let region = self.hosts[rank].keys.get(key as usize).and_then(Option::as_ref);
        let inside = |whole: Span| whole.addr <= span.addr && span.addr + span.len <= whole.addr + whole.len;
        let region = region.filter(|region| inside(region.span));
        let region =
            region.unwrap_or_else(|| panic!("rank {rank}: {span:?} is not registered under key {key}"));
        assert_eq!(region.rail, rail, "rank {rank}: key {key} is that of another rail");
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
