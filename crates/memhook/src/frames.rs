//! Which frames of physical memory hold this process's pages, for who wants to know whether they are the same ones still.
//!
//! An adapter that has registered memory holds its frames, and none of them becomes another page's meanwhile: the kernel does not
//! move, merge or swap out what a device may write to. So the page at an address is the adapter's as long as its frame
//! is the one that it was, and not a moment longer, however it went. That finds what brings no event and leaves the mapping as it
//! was, as a file that is cut.

use crate::extent::pages;
use crate::sys::{Pagemap, page_bytes};
use fabric::Span;

/// Shows frames. The kernel tells them to who has CAP_SYS_ADMIN.
pub struct Frames {
    pagemap: Pagemap,
    page_bytes: usize,
}

impl Frames {
    /// Fails, and says why, where the kernel does not show them to this process.
    pub fn open() -> Result<Frames, String> {
        let pagemap = Pagemap::open().map_err(|error| format!("/proc/self/pagemap: {error}"))?;
        let frames = Frames { pagemap, page_bytes: page_bytes() };
        let here = 0u8;
        match frames.of(Span { addr: &raw const here as usize, len: 1 }, &mut Vec::new()) {
            true => Ok(frames),
            false => Err("the kernel shows physical frames to who has CAP_SYS_ADMIN alone".into()),
        }
    }

    /// Adds the number of the frame of each page that a span lies in. False if one has none: nothing is mapped there, or what is
    /// mapped is longer than its file.
    ///
    /// The kernel may take a page out of the table in which this looks and leave it where it is; so what is missing there is asked for
    /// first, as by a load.
    pub fn of(&self, span: Span, out: &mut Vec<u64>) -> bool {
        let (whole, before) = (pages(span, self.page_bytes), out.len());
        let mut look = || {
            out.truncate(before);
            let is_told = self.pagemap.frames(whole, self.page_bytes, out).is_ok();
            is_told && out[before..].iter().all(|frame| *frame != 0)
        };
        look() || Pagemap::fill(whole).is_ok() && look()
    }
}
