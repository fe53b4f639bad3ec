//! What ends a sleep: a completion, an event of an adapter, a knock of a peer, a time.

use crate::rail::Rail;
use rnic::driver::alarm::Alarm;
use rustix::event::epoll;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// Names of what the kernel tells of: completions are called by their rail.
const EVENTS: u64 = 1 << 32;
const ALARM: u64 = 1 << 33;
const DOOR: u64 = ALARM + 1;
const LINES: u64 = 1 << 34;
/// What the kernel tells in one look, at most.
const AT_ONCE: usize = 16;

/// What has woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// The completion queue of this rail.
    Completions(usize),
    /// The adapter of this rail.
    Adapter(usize),
    /// The line of this rail, by which iWARP is connected.
    Line(usize),
    /// A peer knocks.
    Door,
}

/// See the [module](self).
pub struct Sleep {
    epoll: OwnedFd,
    alarm: Alarm,
}

impl Sleep {
    /// Over the rails in this order, and where peers knock.
    pub fn new(rails: &[Rail], door: &TcpListener) -> Result<Sleep, String> {
        let cannot = |error: Errno| format!("cannot wait for an adapter: {error}");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(cannot)?;
        for (at, rail) in rails.iter().enumerate() {
            let add = |of: std::os::fd::BorrowedFd, name| {
                let flags = rustix::fs::fcntl_getfl(of).map_err(cannot)?;
                rustix::fs::fcntl_setfl(of, flags | rustix::fs::OFlags::NONBLOCK).map_err(cannot)?;
                match epoll::add(&epoll, of, epoll::EventData::new_u64(name), epoll::EventFlags::IN) {
                    // Two ports of an adapter have one descriptor for its events.
                    Ok(()) | Err(Errno::EXIST) => Ok(()),
                    Err(error) => Err(cannot(error)),
                }
            };
            add(rail.hub().events(), at as u64)?;
            add(rail.port.adapter.events(), EVENTS + at as u64)?;
            if let Some(line) = &rail.line {
                add(line.events(), LINES + at as u64)?;
            }
        }
        epoll::add(&epoll, door, epoll::EventData::new_u64(DOOR), epoll::EventFlags::IN).map_err(cannot)?;
        let alarm = Alarm::new(&epoll, ALARM).map_err(cannot)?;
        Ok(Sleep { epoll, alarm })
    }

    /// Readable when a sleep is over.
    pub fn descriptor(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Ends a sleep at this time.
    pub fn until(&mut self, at_ns: u64, now_ns: u64) {
        self.alarm.arm(at_ns, now_ns);
    }

    /// What there is, without waiting.
    pub fn look(&mut self, now_ns: u64) -> Result<Vec<Woken>, String> {
        let mut room = [const { MaybeUninit::uninit() }; AT_ONCE];
        let soon = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match epoll::wait(self.epoll.as_fd(), &mut room, Some(&soon)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => {
                return Err(format!(
                    "events of an adapter cannot be asked for any more: {error}: has the program closed descriptors that are \
                     not its own?"
                ));
            }
        };
        let mut woken = Vec::new();
        for event in events {
            match event.data.u64() {
                ALARM => self.alarm.disarm(now_ns),
                DOOR => woken.push(Woken::Door),
                name if name >= LINES => woken.push(Woken::Line((name - LINES) as usize)),
                name if name >= EVENTS => woken.push(Woken::Adapter((name - EVENTS) as usize)),
                name => woken.push(Woken::Completions(name as usize)),
            }
        }
        Ok(woken)
    }
}
