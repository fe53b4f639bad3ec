//! Shares and copies across, as the port of an operation gives them.

use super::movers::port::{Sharing, Turn};
use super::posting::RankPort;
use crate::event::{Amount, Event};
use crate::message::op::Side;
use fabric::{Device, Fault, Share, ShareWord, Shares, Span};
use wire::head::{FrameType, Head, Offer};

/// Makes a share of this rank that nobody uses available again.
pub(super) fn close(dev: &impl Device, share: Share) {
    dev.opened_shares().store(share, ShareWord::Left, 2);
}

impl<D: Device> Sharing for RankPort<'_, D> {
    fn open_share(&mut self) -> Option<Share> {
        let index = self.dev.shares().filter(|_| !self.path().registration).and_then(Shares::open)?;
        let share = Share { owner: self.dev.me(), index };
        self.dev.opened_shares().store(share, ShareWord::Open, self.op as u64);
        Some(share)
    }

    fn close_share(&mut self, share: Share) {
        close(self.dev, share);
    }

    fn take_share(&mut self, share: Share) -> bool {
        self.dev.opened_shares().take(share, ShareWord::Open, self.op as u64)
    }

    #[inline]
    fn word(&self, share: Share, word: ShareWord) -> u64 {
        self.dev.opened_shares().load(share, word)
    }

    #[inline]
    fn set_words(&mut self, share: Share, words: &[(ShareWord, u64)]) {
        self.dev.opened_shares().store_all(share, words);
    }

    fn add_word(&mut self, share: Share, word: ShareWord, value: u64) -> u64 {
        self.dev.opened_shares().add(share, word, value)
    }

    fn wake(&mut self) {
        self.dev.wake(self.peer);
    }

    fn reaches(&mut self) -> bool {
        self.dev.reach(self.peer)
    }

    fn copy_across(&mut self, side: Side, local: Span, remote: usize) -> Result<(), Fault> {
        let limit = &mut self.eager_limits[self.dev.distance(self.peer) as usize];
        let is_read = side == Side::Receive && self.ahead.takes(self.peer, local, remote);
        let start = (!is_read && limit.prices(local.len)).then(|| self.dev.now_ns());
        let result = match side {
            Side::Receive if is_read => Ok(()),
            Side::Receive => self.dev.read(self.peer, local, remote),
            Side::Send => self.dev.write(self.peer, local, remote),
        };
        if let Some(aside) = self.aside {
            aside.left = aside.left.saturating_sub(local.len);
        }
        if result.is_ok() {
            if let Some(start) = start {
                limit.moved(local.len, self.dev.now_ns() - start);
            }
            let (event, amount) = match side {
                Side::Receive => (Event::PiecePulled, Amount::PulledBytes),
                Side::Send => (Event::PiecePushed, Amount::PushedBytes),
            };
            self.counters.count(event);
            self.counters.add(amount, local.len as u64);
        }
        result
    }

    fn was_written(&mut self, span: Span) {
        self.dev.was_written(span);
    }

    fn announce(&mut self, kind: FrameType, offer: Offer) -> bool {
        let body = Offer { op: self.op, ..offer }.encode();
        let data = Span { addr: body.as_ptr() as usize, len: body.len() };
        self.dev.try_send(self.peer, Head::new(kind, self.envelope.0, self.envelope.1).encode(), data)
    }

    #[inline]
    fn turn(&self) -> Turn {
        Turn { aside: *self.aside, ..self.turn }
    }
}
