//! The queue pair that alone speaks: its socket is read in every look, and the kernel is asked of the others in some.
//!
//! A socket that is in an epoll instance costs each segment that comes a call and two locks more, though nobody sleeps on it. So where
//! such a pair has gone on for some time, and the thread sleeps by the clock since the program polls ([`crate::thread`]), its socket
//! is taken out. It is put back before somebody else is looked at, and before the thread sleeps on the sockets again.

use super::{Adapter, Transport};
use crate::thread;
use rnic::driver::hear;
use rustix::event::epoll;

/// So many looks in a row have found something, without one of which another pair had anything.
const ROW: u32 = 64;

/// See the [module](self).
#[derive(Default)]
pub struct Hot {
    pair: Option<u32>,
    /// Looks that have found something.
    row: u32,
    /// Its socket is not in the epoll instance.
    is_out: bool,
}

impl Hot {
    /// Who is looked at in every look.
    pub fn pair(&self) -> Option<u32> {
        self.pair
    }

    /// This one's socket is put back by who asks; whether it was out.
    pub fn comes_back(&mut self, pair: u32) -> bool {
        self.pair == Some(pair) && {
            self.row = 0;
            std::mem::take(&mut self.is_out)
        }
    }
}

impl Adapter {
    /// This one alone has something, or several or none.
    pub fn warms(&mut self, pair: Option<u32>) {
        if self.hot.pair != pair {
            self.listens();
            self.hot = Hot { pair, ..Hot::default() };
        }
    }

    /// This one is looked at in every look no more.
    pub fn cools(&mut self, pair: u32) {
        if self.hot.pair == Some(pair) {
            self.warms(None);
        }
    }

    /// Who is hot had something.
    pub fn stays_hot(&mut self) {
        self.hot.row = self.hot.row.saturating_add(1);
        if self.hot.row < ROW || self.hot.is_out || !thread::is_away() {
            return;
        }
        let Some(pair) = self.hot.pair.and_then(|handle| self.pairs.get(handle)) else { return };
        self.hot.is_out = match &mut pair.transport {
            Transport::Datagrams(ud) => {
                ud.talk.listen(false);
                true
            }
            Transport::Connection(_) => match pair.link() {
                // Only the kernel tells of room.
                Some(link) if !link.asks_for_room => epoll::delete(&self.epoll, link.socket()).is_ok(),
                _ => false,
            },
        };
    }

    /// Has the kernel tell of all sockets again.
    pub fn listens(&mut self) {
        let Some(handle) = self.hot.pair.filter(|pair| self.hot.comes_back(*pair)) else { return };
        let (name, Some(pair)) = (u64::from(handle), self.pairs.get(handle)) else { return };
        match &mut pair.transport {
            Transport::Datagrams(ud) => ud.talk.listen(true),
            Transport::Connection(_) => {
                // What has lost its connection has nothing to be told of.
                if let Some(link) = pair.link() {
                    let _ = hear(&self.epoll, link.socket(), name, link.asks_for_room, false);
                }
            }
        }
    }
}
