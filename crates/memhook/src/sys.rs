//! The kernel's interfaces: userfaultfd, `PAGEMAP_SCAN`, `PROCMAP_QUERY`, and plain memory calls.

use fabric::Span;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;

const USER_MODE_ONLY: libc::c_int = 1;
const API: u64 = 0xaa;
const FEATURE_PAGEFAULT_FLAG_WP: u64 = 1 << 0;
const FEATURE_EVENT_REMAP: u64 = 1 << 2;
const FEATURE_EVENT_REMOVE: u64 = 1 << 3;
const FEATURE_EVENT_UNMAP: u64 = 1 << 6;
const FEATURE_WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
const FEATURE_WP_ASYNC: u64 = 1 << 15;
const REGISTER_MODE_WP: u64 = 1 << 1;
const EVENT_REMAP: u64 = 0x14;
const EVENT_REMOVE: u64 = 0x15;
const EVENT_UNMAP: u64 = 0x16;
const PAGE_IS_WPALLOWED: u64 = 1 << 0;
/// An entry of `/proc/self/pagemap`: a page is there, and the number of its frame, which is 0 for who may not know it.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;
/// Entries that are read at a time.
const ENTRIES: usize = 512;

/// `struct uffdio_api`: version, features, ioctls.
type UffdioApi = [u64; 3];
/// `struct uffdio_register`: start, length, mode, ioctls.
type UffdioRegister = [u64; 4];
/// `struct uffd_msg`: the event in the lowest byte, then its arguments.
type UffdMsg = [u64; 4];
/// `struct page_region`: start, end, categories.
type PageRegion = [u64; 3];
/// `struct pm_scan_arg`: size, flags, start, end, walk_end, vec, vec_len, max_pages, inverted, mask,
/// anyof, return.
type PmScanArg = [u64; 12];
/// `struct procmap_query`: size, flags, address, start, end, and eight words of no interest.
type ProcmapQuery = [u64; 13];

const UFFDIO_API: u64 = read_write(0xaa, 0x3f, size_of::<UffdioApi>());
const UFFDIO_REGISTER: u64 = read_write(0xaa, 0x00, size_of::<UffdioRegister>());
const UFFDIO_UNREGISTER: u64 = 2 << 30 | (16 << 16) | (0xaa << 8) | 0x01;
const PAGEMAP_SCAN: u64 = read_write(b'f' as u64, 16, size_of::<PmScanArg>());
const PROCMAP_QUERY: u64 = read_write(b'f' as u64, 17, size_of::<ProcmapQuery>());

/// `_IOWR` of the kernel's generic ABI.
const fn read_write(kind: u64, number: u64, size: usize) -> u64 {
    3 << 30 | (size as u64) << 16 | kind << 8 | number
}

fn checked(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// Calls an ioctl whose argument is one of the arrays above.
fn ioctl<const N: usize>(fd: &impl AsRawFd, request: u64, argument: &mut [u64; N]) -> Result<libc::c_int> {
    // SAFETY: the array is as long as the request says and may be written; what addresses in it
    // refer to is valid, as the callers see to.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), request as _, argument.as_mut_ptr()) })
}

/// What an event says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// The mapping has gone, or has been moved away from here.
    Unmapped(Span),
    /// The contents are about to go; the mapping stays.
    Emptied(Span),
    /// A mapping that is watched has been moved here.
    MovedTo(Span),
}

/// A userfaultfd that tells of memory which goes away, and never makes anybody wait for a page.
pub struct Uffd {
    fd: OwnedFd,
    /// Whether any mapping can be watched, files included, and [`Pagemap::is_watched`] works.
    pub watches_all: bool,
}

impl Uffd {
    /// Fails where the kernel is too old or does not permit it.
    pub fn open() -> Result<Uffd> {
        let events =
            FEATURE_EVENT_REMAP | FEATURE_EVENT_REMOVE | FEATURE_EVENT_UNMAP | FEATURE_PAGEFAULT_FLAG_WP;
        // With asynchronous write protection (Linux 6.7) all mappings can be watched. Pages are never
        // protected: the mode is the one that has no effect unless they are.
        Uffd::with(events | FEATURE_WP_HUGETLBFS_SHMEM | FEATURE_WP_ASYNC, true)
            .or_else(|_| Uffd::with(events, false))
    }

    fn with(features: u64, watches_all: bool) -> Result<Uffd> {
        let open = |flags: libc::c_int| {
            // SAFETY: the call takes flags alone.
            let fd =
                unsafe { libc::syscall(libc::SYS_userfaultfd, flags | libc::O_CLOEXEC | libc::O_NONBLOCK) };
            // SAFETY: a descriptor that was just opened has no other owner.
            checked(fd as libc::c_int).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
        };
        // Ordinary users may watch user mode alone; kernels before 5.11 do not know the flag.
        let fd = open(USER_MODE_ONLY).or_else(|_| open(0))?;
        ioctl(&fd, UFFDIO_API, &mut [API, features, 0])?;
        Ok(Uffd { fd, watches_all })
    }

    /// Watches whole pages; no harm if they are watched already.
    pub fn watch(&self, pages: Span) -> Result<()> {
        let argument = &mut [pages.addr as u64, pages.len as u64, REGISTER_MODE_WP, 0];
        ioctl(&self.fd, UFFDIO_REGISTER, argument).map(drop)
    }

    /// Ends that.
    pub fn unwatch(&self, pages: Span) -> Result<()> {
        ioctl(&self.fd, UFFDIO_UNREGISTER, &mut [pages.addr as u64, pages.len as u64]).map(drop)
    }

    /// Waits until there are events, or the other descriptor is readable: whether there are events.
    pub fn wait(&self, stop: &OwnedFd) -> bool {
        let fds = [self.fd.as_raw_fd(), stop.as_raw_fd()];
        let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        // SAFETY: the array has two elements.
        while unsafe { libc::poll(polled.as_mut_ptr(), 2, -1) } < 0 {}
        polled[0].revents & libc::POLLIN != 0
    }

    /// Reads the next event, if there is one: what it says of one or two places. This lets the call
    /// go on that caused it.
    pub fn read(&self) -> Option<[Option<News>; 2]> {
        let mut message: UffdMsg = [0; 4];
        let len = size_of_val(&message);
        // SAFETY: the buffer is as long as it says.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), message.as_mut_ptr().cast(), len) };
        if read != len as isize {
            return None;
        }
        let [_, first, second, third] = message.map(|word| word as usize);
        let range = Span { addr: first, len: second.saturating_sub(first) };
        Some(match message[0] & 0xff {
            EVENT_UNMAP => [Some(News::Unmapped(range)), None],
            EVENT_REMOVE => [Some(News::Emptied(range)), None],
            EVENT_REMAP => {
                let (from, to) = (Span { addr: first, len: third }, Span { addr: second, len: third });
                [Some(News::Unmapped(from)), Some(News::MovedTo(to))]
            }
            _ => [None, None],
        })
    }
}

/// `/proc/self/pagemap`.
pub struct Pagemap(File);

impl Pagemap {
    /// Fails where /proc is not mounted.
    pub fn open() -> Result<Pagemap> {
        File::open("/proc/self/pagemap").map(Pagemap)
    }

    /// Whether every mapping in these pages is one that is watched. Mappings that are watched are
    /// passed over without a look at their pages, so the length does not matter.
    pub fn is_watched(&self, pages: Span) -> Result<bool> {
        let mut found: PageRegion = [0; 3];
        let (start, end) = (pages.addr as u64, (pages.addr + pages.len) as u64);
        let (size, vec) = (size_of::<PmScanArg>() as u64, found.as_mut_ptr() as u64);
        let unwatched = [PAGE_IS_WPALLOWED; 2];
        let mut argument: PmScanArg =
            [size, 0, start, end, 0, vec, 1, 0, unwatched[0], unwatched[1], 0, PAGE_IS_WPALLOWED];
        Ok(ioctl(&self.0, PAGEMAP_SCAN, &mut argument)? == 0)
    }

    /// Adds the number of each page's frame; 0 if it has none that could be told.
    pub fn frames(&self, pages: Span, page_bytes: usize, out: &mut Vec<u64>) -> Result<()> {
        let (mut room, mut at) = ([0u8; 8 * ENTRIES], pages.addr / page_bytes);
        let end = (pages.addr + pages.len) / page_bytes;
        while at < end {
            let part = &mut room[..8 * ENTRIES.min(end - at)];
            self.0.read_exact_at(part, 8 * at as u64)?;
            let entries = part.as_chunks::<8>().0.iter().map(|entry| u64::from_ne_bytes(*entry));
            out.extend(entries.map(|entry| if entry & PRESENT == 0 { 0 } else { entry & FRAME }));
            at += part.len() / 8;
        }
        Ok(())
    }

    /// Sees to it that all pages are there, as if each were read, if they can be (Linux 5.14).
    pub fn fill(pages: Span) -> Result<()> {
        // SAFETY: nothing is changed; a page that cannot be there is an error, not a signal.
        let filled =
            unsafe { libc::madvise(pages.addr as *mut libc::c_void, pages.len, libc::MADV_POPULATE_READ) };
        checked(filled).map(drop)
    }
}

/// `/proc/self/maps`, asked for the mapping at an address.
pub struct Maps(File);

impl Maps {
    /// Fails where /proc is not mounted.
    pub fn open() -> Result<Maps> {
        File::open("/proc/self/maps").map(Maps)
    }

    /// The mapping that holds an address.
    pub fn mapping(&self, addr: usize) -> Result<Span> {
        let size = size_of::<ProcmapQuery>() as u64;
        let mut query: ProcmapQuery = [0; 13];
        (query[0], query[2]) = (size, addr as u64);
        match ioctl(&self.0, PROCMAP_QUERY, &mut query) {
            Ok(_) => Ok(Span { addr: query[3] as usize, len: (query[4] - query[3]) as usize }),
            Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => look_up(addr),
            Err(error) => Err(error),
        }
    }
}

/// The mapping that holds an address, from the text, on kernels before 6.11.
pub fn look_up(addr: usize) -> Result<Span> {
    let mut text = String::new();
    File::open("/proc/self/maps")?.read_to_string(&mut text)?;
    let range = |line: &str| {
        let (first, end) = line.split(' ').next()?.split_once('-')?;
        let hex = |text| usize::from_str_radix(text, 16).ok();
        Some((hex(first)?, hex(end)?))
    };
    let mut ranges = text.lines().filter_map(range);
    let found = ranges.find(|(first, end)| (*first..*end).contains(&addr));
    found.map(|(addr, end)| Span { addr, len: end - addr }).ok_or(ErrorKind::NotFound.into())
}

/// Length of a page.
pub fn page_bytes() -> usize {
    // SAFETY: the call takes a number alone.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// A descriptor that is readable once it has been rung.
pub struct Bell(pub OwnedFd);

impl Bell {
    /// A bell that has not been rung.
    pub fn new() -> Result<Bell> {
        // SAFETY: the call takes numbers alone.
        let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) })?;
        // SAFETY: a descriptor that was just opened has no other owner.
        Ok(Bell(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Rings it.
    pub fn ring(&self) {
        let (one, fd): (u64, RawFd) = (1, self.0.as_raw_fd());
        // SAFETY: eight bytes are what is written. It cannot fail: the counter holds 2^64 - 2.
        unsafe { libc::write(fd, (&raw const one).cast(), 8) };
    }
}

/// Runs `f` with all signals blocked in this thread: a thread that starts there handles none.
pub fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: both sets are valid for writing, and the old one is restored as it was.
    unsafe {
        let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let result = f();
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut());
        result
    }
}
