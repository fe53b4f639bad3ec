//! A timer among what the kernel tells of: it ends a sleep when something is due.

use rustix::event::epoll;
use rustix::time::{self, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::os::fd::OwnedFd;

/// See the [module](self).
pub struct Alarm {
    timer: OwnedFd,
    at_ns: u64,
}

impl Alarm {
    /// One that ends waits for this epoll, which calls it by this name.
    pub fn new(epoll: &OwnedFd, name: u64) -> Result<Alarm, rustix::io::Errno> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(epoll, &timer, epoll::EventData::new_u64(name), epoll::EventFlags::IN)?;
        Ok(Alarm { timer, at_ns: u64::MAX })
    }

    /// Has it end a sleep at `due_ns`; nothing, if it does so before already.
    pub fn arm(&mut self, due_ns: u64, now_ns: u64) {
        if self.at_ns <= now_ns {
            self.at_ns = u64::MAX;
        }
        if due_ns >= self.at_ns {
            return;
        }
        self.at_ns = due_ns;
        let left_ns = due_ns.saturating_sub(now_ns).max(1);
        let it_value =
            Timespec { tv_sec: (left_ns / 1_000_000_000) as i64, tv_nsec: (left_ns % 1_000_000_000) as i64 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).expect("the timer is open");
    }

    /// It has ended a sleep, or would end the next one at once.
    pub fn disarm(&mut self, now_ns: u64) {
        if self.at_ns <= now_ns {
            let _ = rustix::io::read(&self.timer, &mut [0; 8]);
            self.at_ns = u64::MAX;
        }
    }
}
