//! Who alone speaks: its socket is read in each look, and the kernel is asked of the others in some.
//!
//! A socket that is in an epoll instance costs each packet that comes a call and two locks more, though nobody sleeps on it, and
//! who asks the instance is told of what is read in any case. So one that has spoken alone for some time is taken out, while its
//! owner looks without a pause. It is put back before the kernel is asked on behalf of others that speak, and before anybody sleeps:
//!
//! - the owner, where a look was in vain for some rounds ([`fabric::Verbs::idle`] says «sleep» only then);
//! - the thread beside the application, which tells before it sleeps ([`fabric::Verbs::rests`]), and not when it is awake again: so
//!   for some time nothing is taken out;
//! - another thread of the application: nothing is taken out while several wait, or one does who may sleep.

use super::{Contact, Door, Rnic};
use fabric::Rank;
use rustix::event::epoll;

/// Times that somebody must have spoken alone.
const ROW: u32 = 64;
/// How long the thread beside the application may sleep, and more.
const REST_NS: u64 = 200_000_000;

/// Who is heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The connection with a peer.
    Link(Rank),
    /// Datagrams, of whomever.
    Datagrams,
}

/// See the [module](self).
#[derive(Default)]
pub struct Alone {
    /// Who was heard last, while nobody else speaks.
    source: Option<Source>,
    /// How often since somebody else was.
    row: u32,
    /// The kernel does not tell of it.
    is_out: bool,
    /// Who waits may sleep, while another thread of the application looks.
    may_sleep: bool,
    /// Somebody may sleep until then who does not say when he is awake.
    rests_until_ns: u64,
    /// Threads that wait.
    waiters: usize,
}

impl Alone {
    /// The peer whose connection alone speaks.
    pub fn peer(&self) -> Option<Rank> {
        match self.source {
            Some(Source::Link(peer)) => Some(peer),
            _ => None,
        }
    }

    /// Whether datagrams alone have come for some time.
    pub fn are_datagrams(&self) -> bool {
        self.source == Some(Source::Datagrams) && self.row >= ROW
    }

    /// Whether one connection alone has spoken for some time.
    pub fn is_a_peer(&self) -> bool {
        self.peer().is_some() && self.row >= ROW
    }

    /// Whether the kernel does not tell of somebody.
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// A connection has ended, and with it its socket.
    pub fn ended(&mut self, peer: Rank) {
        if self.peer() == Some(peer) {
            (self.source, self.row, self.is_out) = (None, 0, false);
        }
    }
}

impl Rnic {
    /// Somebody has spoken.
    pub(super) fn speaks(&mut self, source: Source) {
        if self.alone.source != Some(source) {
            self.several_speak();
            self.alone.source = Some(source);
        }
        self.alone.row = self.alone.row.saturating_add(1);
        let Alone { row, is_out, may_sleep, waiters, .. } = self.alone;
        let nobody_sleeps = !self.shares_core && !may_sleep && waiters <= 1;
        if row.is_multiple_of(ROW) && !is_out && nobody_sleeps {
            self.take_out(source);
        }
    }

    /// Nobody speaks alone.
    pub(super) fn several_speak(&mut self) {
        self.listen_to_all();
        (self.alone.source, self.alone.row) = (None, 0);
    }

    fn take_out(&mut self, source: Source) {
        if self.clock_ns() < self.alone.rests_until_ns {
            return;
        }
        self.alone.is_out = match source {
            Source::Link(peer) => match &self.contacts[peer] {
                // Only the kernel tells of room.
                Contact::Connected(link) if !link.asks_for_room => {
                    epoll::delete(&self.epoll, link.socket()).is_ok()
                }
                _ => false,
            },
            Source::Datagrams => {
                self.hear_datagrams(false);
                true
            }
        };
    }

    /// Has the kernel tell of all.
    pub(super) fn listen_to_all(&mut self) {
        if !std::mem::take(&mut self.alone.is_out) {
            return;
        }
        self.alone.row = 0;
        match self.alone.source {
            Some(Source::Link(peer)) => {
                let Contact::Connected(link) = &self.contacts[peer] else { return };
                let heard = self.hear(link.socket(), peer as u64, link.asks_for_room, false);
                self.note(heard);
            }
            Some(Source::Datagrams) => self.hear_datagrams(true),
            None => {}
        }
    }

    fn hear_datagrams(&mut self, hears: bool) {
        if let Door::Datagrams(datagrams) = &mut self.door {
            datagrams.talk.listen(hears);
        }
        if let Some(unreliable) = &mut self.unreliable {
            unreliable.talk.listen(hears);
        }
    }

    /// Who waits may sleep from here on, or not any more.
    pub(super) fn may_sleep(&mut self, may: bool) {
        self.alone.may_sleep = may;
        if may {
            self.listen_to_all();
        }
    }

    /// Somebody is going to sleep who does not say when he is awake again.
    pub(super) fn somebody_rests(&mut self) {
        self.listen_to_all();
        self.alone.rests_until_ns = self.clock_ns() + REST_NS;
    }

    /// So many threads wait at present.
    pub(super) fn threads_wait(&mut self, threads: usize) {
        self.alone.waiters = threads;
        if threads > 1 {
            self.listen_to_all();
        }
    }
}
