//! The monitor of one process: watches memory and passes on what is told.

use crate::extent::{mappings, pages};
use crate::frames::Frames;
use crate::news::Board;
use crate::sys::{Bell, Maps, News, Pagemap, Uffd, page_bytes, without_signals};
use crate::trial::try_all;
use fabric::Span;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// For how long memory that was emptied is not watched anew. The kernel tells before it empties, so
/// another thread could register the old pages just then; this is some hundred times as long as
/// the call takes.
const SETTLE: Duration = Duration::from_millis(20);
/// Places that settle; when there are more they are taken together.
const SETTLING_MAX: usize = 64;

struct Shared {
    uffd: Uffd,
    bell: Bell,
    board: Board,
}

/// Tells when memory goes away that it was asked to watch.
///
/// A thread reads the events and sleeps while there are none.
pub struct Monitor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    maps: Maps,
    /// For the second look, if it was asked for.
    pagemap: Option<Pagemap>,
    page_bytes: usize,
    /// Turn of the board up to which everything has been taken.
    seen: u64,
    /// What was emptied a moment ago, and when.
    settling: Vec<(Span, Instant)>,
    /// Ends of what is watched by beginnings, as far as it is known.
    watched: BTreeMap<usize, usize>,
    /// The process it was started in.
    process: u32,
}

impl Monitor {
    /// A monitor that has shown that it is told of every way in which memory goes away, or why there is
    /// none.
    ///
    /// With `look_again` [`Monitor::is_unchanged`] asks the kernel. It is for processes with
    /// several threads: one may map and use an address while another is still in the call that
    /// unmapped it, of which the news may not have been read. It also finds what brings no event, such as `shmdt`.
    pub fn start(look_again: bool) -> Result<Monitor, String> {
        let mut monitor = Monitor::begin(look_again)?;
        try_all(&mut monitor)?;
        Ok(monitor)
    }

    fn begin(look_again: bool) -> Result<Monitor, String> {
        let about = |what: &'static str| move |error| format!("{what}: {error}");
        let uffd = Uffd::open().map_err(about("userfaultfd is not permitted"))?;
        let pagemap = (look_again && uffd.watches_all).then(|| Pagemap::open().ok()).flatten();
        let bell = Bell::new().map_err(about("eventfd"))?;
        let maps = Maps::open().map_err(about("/proc/self/maps"))?;
        let shared = Arc::new(Shared { uffd, bell, board: Board::new() });
        let reader = shared.clone();
        let builder = std::thread::Builder::new().name("tern-memory".into()).stack_size(64 * 1024);
        let thread = without_signals(|| builder.spawn(move || read_events(&reader)));
        let thread = Some(thread.map_err(about("a thread to read events"))?);
        Ok(Monitor {
            shared,
            thread,
            maps,
            pagemap,
            page_bytes: page_bytes(),
            seen: 0,
            settling: Vec::new(),
            watched: BTreeMap::new(),
            process: std::process::id(),
        })
    }

    /// Asks to be told when this memory goes away. False if the kernel cannot tell, or not yet: then
    /// no registration of it must outlive its use.
    pub fn watch(&mut self, span: Span) -> bool {
        let now = Instant::now();
        self.settling.retain(|(_, since)| now.duration_since(*since) < SETTLE);
        if self.settling.iter().any(|(settling, _)| overlap(*settling, span)) {
            return false;
        }
        let (whole, exact) = (mappings(&self.maps, span), pages(span, self.page_bytes));
        let can_watch = |span: &Span| self.shared.uffd.watch(*span).is_ok();
        let Some(watched) = whole.into_iter().chain([exact]).find(can_watch) else { return false };
        add(&mut self.watched, watched);
        true
    }

    /// Whether something has gone since the last [`Monitor::take`]. Costs a load.
    #[inline(always)]
    pub fn has_changed(&self) -> bool {
        self.shared.board.turn() != self.seen
    }

    /// Adds to `gone` what has gone.
    pub fn take(&mut self, gone: &mut Vec<Span>) {
        let (settling, watched, now) = (&mut self.settling, &mut self.watched, Instant::now());
        self.seen = self.shared.board.take(|news| {
            gone.push(match news {
                News::Unmapped(span) => {
                    let end = span.addr + span.len;
                    while let Some((&first, _)) = watched.range(span.addr..end).find(|(_, e)| **e <= end) {
                        watched.remove(&first);
                    }
                    span
                }
                News::MovedTo(span) => {
                    add(watched, span);
                    span
                }
                News::Emptied(span) => {
                    settle(settling, span, now);
                    span
                }
            });
        });
    }

    /// A second look at memory that is watched: false if something else is mapped there, or if that
    /// cannot be found out. Without `look_again` it is true.
    pub fn is_unchanged(&self, span: Span) -> bool {
        let Some(pagemap) = &self.pagemap else { return true };
        pagemap.is_watched(pages(span, self.page_bytes)).unwrap_or(false)
    }

    /// Nothing settles: what was emptied was the monitor's own.
    pub(crate) fn forget_settling(&mut self) {
        self.settling.clear();
    }

    /// Whether [`Monitor::is_unchanged`] asks the kernel.
    pub fn looks_again(&self) -> bool {
        self.pagemap.is_some()
    }
}

/// Memory is unwatched before the thread ends. Else who takes it away would wait for ever for the event to
/// be read, if a child has inherited the descriptor, or if it is the thread itself that gives its stack back.
impl Drop for Monitor {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            return std::mem::forget(self.thread.take()); // a child has no such thread
        }
        self.take(&mut Vec::new());
        for (&addr, &end) in &self.watched {
            let known = Span { addr, len: end - addr };
            for span in [mappings(&self.maps, known), Some(known)].into_iter().flatten() {
                _ = self.shared.uffd.unwatch(span);
            }
        }
        self.shared.bell.ring();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

fn add(watched: &mut BTreeMap<usize, usize>, span: Span) {
    let end = watched.entry(span.addr).or_default();
    *end = (*end).max(span.addr + span.len);
}

/// The thread: it must neither allocate nor take a lock.
fn read_events(shared: &Shared) {
    while shared.uffd.wait(&shared.bell.0) {
        shared.board.write(|| shared.uffd.read());
    }
}

fn overlap(a: Span, b: Span) -> bool {
    a.addr < b.addr.saturating_add(b.len) && b.addr < a.addr.saturating_add(a.len)
}

fn settle(settling: &mut Vec<(Span, Instant)>, span: Span, now: Instant) {
    if settling.len() < SETTLING_MAX {
        return settling.push((span, now));
    }
    let first = settling.iter().map(|(s, _)| s.addr).chain([span.addr]).min().unwrap_or(0);
    let ends = settling.iter().map(|(s, _)| s.addr.saturating_add(s.len));
    let end = ends.chain([span.addr.saturating_add(span.len)]).max().unwrap_or(usize::MAX);
    settling.clear();
    settling.push((Span { addr: first, len: end - first }, now));
}

/// What this machine can do, for people.
pub fn describe() -> String {
    let frames = match Frames::open() {
        Ok(_) => "the second look and physical frames, which are shown to this user".into(),
        Err(why) => format!("the second look alone: {why}"),
    };
    match Monitor::start(true) {
        Ok(monitor) => {
            let again = if monitor.looks_again() { "works" } else { "is not there (Linux 6.7)" };
            format!(
                "userfaultfd: told of munmap, MAP_FIXED, mremap, madvise and free, all tried just now; \
                 registrations are kept\na second look at what is used again (PAGEMAP_SCAN) {again}\n\
                 TERN_REGISTERED_VERIFY=1 has {frames}"
            )
        }
        Err(why) => format!(
            "nothing tells when memory goes away, registrations end with their message: {why}\n\
             in a container the seccomp profile must allow userfaultfd; before Linux 5.11 the sysctl \
             vm.unprivileged_userfaultfd"
        ),
    }
}
