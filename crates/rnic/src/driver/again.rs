//! Connections that could not begin because the system knew no way to the peer, as while a cable is cut: each is begun again and
//! again, until there is a way or the watch gives the peer up ([`super::watch`]). So are those that the peer closes without a word, as
//! one does at whose port strangers take each other's place: for as long as it takes to find out that a peer is lost.

use super::alarm::Alarm;
use super::knock::LOST;
use super::{ALARM, Contact, Rnic};
use fabric::Rank;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::time::Duration;

/// How soon the first time, and the longest time between two; it doubles.
const SOON: Duration = Duration::from_millis(20);
const SELDOM: Duration = Duration::from_secs(1);

/// See the [module](self).
#[derive(Default)]
pub struct Again {
    /// Made when it is first needed.
    alarm: Option<Alarm>,
    peers: Vec<Rank>,
    due_ns: u64,
    pause: Duration,
    /// Who has closed a connection without a word, and when first.
    turned_away: HashMap<Rank, u64>,
}

/// Whether the system says that there is no way now. There may be one later.
pub fn is_no_way(error: &std::io::Error) -> bool {
    // A cable that is down takes routes and, of IPv6, addresses with it; neighbours that do not answer take 3 s.
    let passing =
        [Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::NETDOWN, Errno::ADDRNOTAVAIL, Errno::TIMEDOUT];
    Errno::from_io_error(error).is_some_and(|errno| passing.contains(&errno))
}

/// Whether the other side has closed a connection that was set up, and said nothing.
pub fn is_farewell(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

impl Again {
    /// There is a connection with this peer.
    pub fn has_met(&mut self, peer: Rank) {
        self.turned_away.remove(&peer);
    }

    /// Whether something is to be begun again by now.
    #[inline]
    pub fn is_due(&self, clock_ns: impl FnOnce() -> u64) -> bool {
        !self.peers.is_empty() && clock_ns() >= self.due_ns
    }
}

impl Rnic {
    /// There is no way to a peer with whom this rank has begun.
    #[cold]
    pub(super) fn begin_later(&mut self, peer: Rank) {
        if self.again.peers.is_empty() {
            self.again.pause = SOON;
            self.wake_to_begin();
        }
        self.again.peers.push(peer);
    }

    /// Whether a peer is to be asked again that has closed the connection without a word.
    #[cold]
    pub(super) fn tries_again(&mut self, peer: Rank) -> bool {
        if peer >= self.size || !matches!(self.contacts[peer], Contact::Begun(_)) {
            return false;
        }
        let now_ns = self.clock_ns();
        let since_ns = *self.again.turned_away.entry(peer).or_insert(now_ns);
        u128::from(now_ns - since_ns) < LOST.as_nanos()
    }

    fn wake_to_begin(&mut self) {
        let now_ns = self.clock_ns();
        self.again.due_ns = now_ns + self.again.pause.as_nanos() as u64;
        self.again.pause = SELDOM.min(self.again.pause * 2);
        if self.again.alarm.is_none() {
            match Alarm::new(&self.epoll, ALARM) {
                Ok(alarm) => self.again.alarm = Some(alarm),
                // The timer of the watch ends a sleep too, only later.
                Err(_) => return,
            }
        }
        if let Some(alarm) = &mut self.again.alarm {
            alarm.disarm(now_ns);
            alarm.arm(self.again.due_ns, now_ns);
        }
    }

    /// Begins again with all with whom it is due.
    #[cold]
    pub(super) fn begin_again(&mut self) {
        let peers = std::mem::take(&mut self.again.peers);
        for peer in peers {
            // The peer has begun itself meanwhile, or was given up.
            if !matches!(self.contacts[peer], Contact::Begun(_)) {
                continue;
            }
            match self.ask(peer) {
                Ok(true) => {}
                Ok(false) => self.again.peers.push(peer),
                Err(why) => self.lose(peer, &why),
            }
        }
        if !self.again.peers.is_empty() {
            return self.wake_to_begin();
        }
        let now_ns = self.clock_ns();
        if let Some(alarm) = &mut self.again.alarm {
            alarm.disarm(now_ns);
        }
    }
}
