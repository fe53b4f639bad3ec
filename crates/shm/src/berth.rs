//! Where the threads of a rank sleep: a word in the segment, on which its peers wake them.
//!
//! A rank with a device that has a descriptor (an adapter) sleeps once for both: in `poll`, on that descriptor
//! and on a socket of its own, whose name stands beside the word. Who takes an announced sleep off the word rings
//! there, too ([`crate::polling`]). Nobody else pays for it. The name is random, in the abstract namespace of the host's network: it
//! lies in no directory and goes with its process. A ring says nothing but «look», so one from a stranger costs a look.

use crate::nap;
use crate::polling::Polling;
use crate::segment;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// See the [module](self). It lies at the beginning of a line of the segment.
#[repr(C)]
pub struct Berth {
    word: AtomicU32,
    /// Threads that sleep on descriptors.
    polling: Polling,
    /// Name of the socket, 0 if there is none.
    name: [AtomicU64; 2],
}

/// What a rank sleeps on beside its word: valid as long as its device.
#[derive(Clone, Copy, Debug)]
pub struct Descriptors {
    ring: RawFd,
    other: RawFd,
}

impl Berth {
    /// The word as it is.
    #[inline(always)]
    pub fn load(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }

    /// The word.
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// As [`nap::announce`].
    pub fn announce(&self, who: u32) -> bool {
        nap::announce(&self.word, who)
    }

    /// Takes the announcement of a sleep back.
    pub fn renounce(&self, who: u32) {
        self.word.fetch_and(!who, Ordering::Relaxed);
    }

    /// Wakes those of `whom` that sleep here.
    #[cold]
    pub fn wake(&self, whom: u32) {
        if nap::wake(&self.word, whom) && self.name[0].load(Ordering::Acquire) != 0 && self.polling.is_any() {
            self.ring();
        }
    }

    /// Sleeps while the word is as it was `seen`, until `who` is woken or a descriptor has something, at most for
    /// the given time.
    pub fn sleep(&self, seen: u32, who: u32, longest: Duration, beside: Option<Descriptors>) {
        match beside {
            None => nap::sleep(&self.word, seen, who, longest),
            Some(fds) if seen & who != 0 => {
                let poll = || wait_on(fds, longest);
                self.polling.sleep(&TURN, (&self.word, seen), poll, || take_off(fds.ring));
            }
            Some(_) => {}
        }
    }

    fn ring(&self) {
        let name = self.name.each_ref().map(|half| half.load(Ordering::Relaxed));
        // Full means that a ring waits there; a socket that is gone has nobody to wake.
        let socket = UnixDatagram::unbound().and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok((socket, address(name)?))
        });
        if let Ok((socket, address)) = socket {
            let _ = socket.send_to_addr(&[1], &address);
        }
    }
}

/// The socket that others ring at, which closes with this value.
pub struct Ring {
    socket: OwnedFd,
}

impl Ring {
    /// Opens one and writes its name beside the word.
    pub fn open(berth: &Berth) -> std::io::Result<Ring> {
        let bytes = segment::random()?;
        let half = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) | 1;
        let name = [half(0), half(8)];
        let socket = UnixDatagram::bind_addr(&address(name)?)?;
        socket.set_nonblocking(true)?;
        berth.name[1].store(name[1], Ordering::Relaxed);
        berth.name[0].store(name[0], Ordering::Release);
        Ok(Ring { socket: socket.into() })
    }

    /// To sleep on together with `other`.
    pub fn beside(&self, other: RawFd) -> Descriptors {
        Descriptors { ring: self.socket.as_raw_fd(), other }
    }
}

fn address(name: [u64; 2]) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("tern-{:016x}{:016x}", name[0], name[1]))
}

/// Held by a thread of this process that begins or ends to poll.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until a descriptor has something, at most for the given time; whether it is the ring.
fn wait_on(fds: Descriptors, longest: Duration) -> bool {
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut entries = [entry(fds.ring), entry(fds.other)];
    let until = libc::timespec {
        tv_sec: longest.as_secs() as libc::time_t,
        tv_nsec: longest.subsec_nanos() as libc::c_long,
    };
    // SAFETY: both are open as long as the device of who sleeps; the rest are local variables.
    unsafe { libc::ppoll(entries.as_mut_ptr(), 2, &until, std::ptr::null()) };
    entries[0].revents & libc::POLLIN != 0
}

/// Takes what was rung off the socket.
fn take_off(ring: RawFd) {
    let mut byte = 0u8;
    // SAFETY: a datagram of one byte into a local variable; the socket does not block.
    while unsafe { libc::recv(ring, (&raw mut byte).cast(), 1, libc::MSG_DONTWAIT) } >= 0 {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Instant;

    fn berth() -> Arc<Berth> {
        let name = [AtomicU64::new(0), AtomicU64::new(0)];
        Arc::new(Berth { word: AtomicU32::new(0), polling: Polling::default(), name })
    }

    const LONG: Duration = Duration::from_secs(60);

    /// Whoever takes the ring off the socket first, the others do not sleep on.
    #[test]
    #[cfg_attr(miri, ignore = "miri has no sockets")]
    fn all_that_sleep_are_woken() {
        let berth = berth();
        let ring = Ring::open(&berth).unwrap();
        let (mine, _other) = UnixDatagram::pair().unwrap();
        let fds = ring.beside(mine.as_raw_fd());
        for _ in 0..100 {
            berth.announce(nap::WAITER);
            let seen = berth.load();
            let start = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| berth.sleep(seen, nap::WAITER, LONG / 10, Some(fds)));
                }
                std::thread::sleep(Duration::from_millis(1));
                berth.wake(nap::WAITER);
            });
            assert!(start.elapsed() < LONG / 20);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "miri has no sockets")]
    fn who_sleeps_on_a_descriptor_too_is_woken_by_either() {
        let berth = berth();
        let ring = Ring::open(&berth).unwrap();
        let (mine, other) = UnixDatagram::pair().unwrap();
        let fds = ring.beside(mine.as_raw_fd());
        let asleep = |by: &(dyn Fn() + Sync)| {
            berth.announce(nap::WAITER);
            let seen = berth.load();
            let start = Instant::now();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(20));
                    by();
                });
                berth.sleep(seen, nap::WAITER, LONG, Some(fds));
            });
            assert!(start.elapsed() < LONG / 2);
        };
        asleep(&|| berth.wake(nap::ALL));
        asleep(&|| drop(other.send(b"x")));
        // What woke last time and was not taken wakes again: the device has it.
        asleep(&|| {});
    }

    #[test]
    #[cfg_attr(miri, ignore = "miri has no sockets")]
    fn who_is_woken_before_it_sleeps_does_not_sleep() {
        let berth = berth();
        let ring = Ring::open(&berth).unwrap();
        let (mine, _other) = UnixDatagram::pair().unwrap();
        berth.announce(nap::WAITER);
        let seen = berth.load();
        berth.wake(nap::ALL);
        let start = Instant::now();
        berth.sleep(seen, nap::WAITER, LONG, Some(ring.beside(mine.as_raw_fd())));
        assert!(start.elapsed() < LONG / 2);
    }
}
