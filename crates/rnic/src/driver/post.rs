//! Posting work to a peer: over its connection, as datagrams, or into what waits until there is a way to it.

use super::burst;
use super::postings::{Payload, Posted};
use super::{Contact, DEPTH, Door, Rnic};
use crate::stack::Work;
use fabric::{Fault, Local, Rank};

/// Longest of what is taken at once: what a socket that fills up leaves of it is copied.
pub const AT_ONCE: usize = 2 << 20;

impl Rnic {
    pub(super) fn post(&mut self, to: Rank, parts: &[Local], work: u64, what: Work) -> Result<bool, Fault> {
        self.post_this(to, Posted::new(work, Payload::of(parts)), what)
    }

    pub(super) fn post_this(&mut self, to: Rank, posted: Posted, what: Work) -> Result<bool, Fault> {
        if matches!(self.contacts[to], Contact::None) {
            match self.door {
                Door::Connections(_) => self.begin(to).inspect_err(|why| self.lose(to, why))?,
                Door::Datagrams(_) => self.pair(to),
                Door::Knocks(_) => return Err(Fault::Device("there are unreliable datagrams only".into())),
            }
            self.watch.begin(self.clock_ns());
        }
        let is_short = matches!(posted.payload, Payload::Inline(_));
        let is_asked = matches!(what, Work::Read { .. } | Work::Atomic { .. });
        let leads = self.leads.take() == Some(to);
        let may_wait = (is_short || leads) && !is_asked;
        let (is_long, look) = (posted.payload.len() > burst::LONG, self.look);
        // What was not copied waits only if it is one of many, and so does what is asked: nobody may say that it is to leave.
        let is_of_many = is_asked || !is_long && !is_short;
        match &mut self.contacts[to] {
            Contact::Begun(waiting) | Contact::Expected(waiting) => {
                if waiting.len() >= DEPTH {
                    return Ok(false);
                }
                waiting.push_back((posted, what));
                self.note_unsent(to);
                Ok(true)
            }
            Contact::Connected(link) => {
                self.watch.spoken(to);
                let waits = link.burst.is_waiting();
                if link.post(posted, what).is_some() {
                    return Ok(false);
                }
                match may_wait || is_of_many && link.burst.may_wait(look) {
                    true if waits => {}
                    true => self.waiting.push(to),
                    false => self.send(to),
                }
                Ok(true)
            }
            Contact::Paired(peer) if peer.is_gone() => Err(self.watch.why(to)),
            Contact::Paired(peer) => {
                let waits = peer.burst.is_waiting();
                if !peer.post(posted, what) {
                    return Ok(false);
                }
                match may_wait || is_of_many && peer.burst.may_wait(look) {
                    true if waits => {}
                    true => self.waiting.push(to),
                    false => self.send_datagrams(to),
                }
                Ok(true)
            }
            Contact::None | Contact::Gone => Err(self.refusal(to)),
        }
    }

    /// Has the socket take a message from where it lies, see [`Link::see_off`](super::link::Link::see_off). False if there is no connection yet, if others wait
    /// for its socket, or for its peer to speak first, or if the message would wait for others to leave with.
    pub(super) fn post_to_stream(&mut self, to: Rank, parts: &[Local], work: u64, what: Work) -> bool {
        let (posted, look) = (Posted::new(work, Payload::of(parts)), self.look);
        let Contact::Connected(link) = &mut self.contacts[to] else { return false };
        let would_wait = posted.payload.len() <= burst::LONG && link.burst.would_wait(look);
        if would_wait || !link.is_free() || link.post(posted, what).is_some() {
            return false;
        }
        link.burst.may_wait(look);
        self.watch.spoken(to);
        let start = self.start;
        link.see_off(&self.regions, || start.elapsed().as_nanos() as u64);
        self.send(to);
        true
    }
}
