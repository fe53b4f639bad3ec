//! What completions say: work has ended, messages have come, connections are broken.

use crate::contact::Phase;
use crate::hello::Hello;
use crate::rail::{FLIGHT, Flight, HEAD, HELLO_IN, Kind, LEAVE, News, OWN, PROBE, RECEIVE, Rail};
use fabric::{Completion, Done, Fault, Rank};
use rnic::driver::{Secret, memory};
use std::collections::VecDeque;
use verbs_layout::constants::*;
use verbs_layout::layout::Wc;

/// Completions fetched at a time.
const AT_ONCE: usize = 16;

impl Rail {
    /// Fetches what has ended; whether anything had.
    pub fn look(&mut self, me: Rank, secret: &Secret, news: &mut VecDeque<News>) -> bool {
        let mut room = [Wc::default(); AT_ONCE];
        let count = match self.hub.poll(&mut room) {
            Ok(count) => count,
            Err(why) => {
                news.push_back(News::Fault(why));
                return false;
            }
        };
        for wc in &room[..count] {
            let at = wc.wr_id as u32;
            match wc.wr_id >> 62 {
                FLIGHT => self.landed(at, wc, news),
                RECEIVE => self.came(at, wc, news),
                HELLO_IN => {
                    let bytes = memory::bytes(
                        self.note(at).span.part(0, (wc.byte_len as usize).saturating_sub(HEAD)),
                    );
                    let hello = (wc.status == WC_SUCCESS)
                        .then(|| Hello::decode(bytes, me, self.contacts.len(), self.index, secret));
                    news.extend(hello.flatten().map(News::Hello));
                    if let Err(why) = self.expect_hello(at) {
                        news.push_back(News::Fault(format!("{}: {why}", self.port.name())));
                    }
                }
                _ => self.hellos_free.push(at),
            }
        }
        count > 0
    }

    /// Work has ended.
    fn landed(&mut self, at: u32, wc: &Wc, news: &mut VecDeque<News>) {
        let Some(Flight { peer, work, done, kind }) = self.flights.remove(at) else { return };
        // A datagram that the adapter could not send is as lost.
        let is_datagram = kind == Kind::Datagram;
        let is_well = wc.status == WC_SUCCESS || is_datagram;
        let why = if is_well {
            None
        } else {
            self.ask_adapter(news);
            Some(self.reason(wc))
        };
        let mut result = Ok(());
        if !is_datagram {
            let contact = self.contacts[peer].as_mut().expect("something was posted to it");
            contact.under_way -= 1;
            contact.requests -= usize::from(matches!(kind, Kind::Request | Kind::Atomic));
            contact.atomics -= usize::from(kind == Kind::Atomic);
            contact.has_parted |= work == OWN;
            if work == PROBE {
                contact.is_asked = false;
                news.extend(is_well.then_some(News::Answered(peer)));
            }
            if let Some(why) = why {
                let fault = match &contact.phase {
                    Phase::Lost(fault) => fault.clone(),
                    _ => Fault::PeerLost(peer, why.clone()),
                };
                if !matches!(contact.phase, Phase::Lost(_)) {
                    let is_gone = contact.has_left;
                    self.lose(peer, &fault);
                    // A peer that has taken its leave may be gone.
                    news.extend((!is_gone).then_some(News::Broken(peer, why)));
                }
                result = Err(fault);
            }
        }
        if work < PROBE {
            news.push_back(News::Ended(Completion { work, done, result }));
        }
    }

    /// Takes what the adapter has to say, which may be why work has failed.
    fn ask_adapter(&mut self, news: &mut VecDeque<News>) {
        while let Some((kind, about)) = self.port.adapter.next_event() {
            self.note_port(kind, about);
            news.push_back(News::Event(kind, about));
        }
    }

    /// Keeps whether the port is down, if this event is about it.
    pub fn note_port(&mut self, kind: i32, about: u32) {
        if about == u32::from(self.port.number) && matches!(kind, EVENT_PORT_ERR | EVENT_PORT_ACTIVE) {
            self.is_down = kind == EVENT_PORT_ERR;
        }
    }

    /// What an error of a completion means.
    fn reason(&self, wc: &Wc) -> String {
        let status = self.port.adapter.library.status(wc.status);
        let remedy = match wc.status {
            _ if self.is_down => ": the port is down",
            WC_RETRY_EXC_ERR => {
                ": its process or host is gone, or the network does not carry what is sent there"
            }
            WC_RNR_RETRY_EXC_ERR => ": it has had no receive buffer for too long",
            WC_REM_ACCESS_ERR | WC_LOC_PROT_ERR => ": memory is not, or no longer, registered",
            _ => "",
        };
        format!(
            "{}: {status} (status {}, {:#x} of the adapter){remedy}",
            self.port.name(),
            wc.status,
            wc.vendor_err
        )
    }

    /// A message or a datagram has come.
    fn came(&mut self, at: u32, wc: &Wc, news: &mut VecDeque<News>) {
        let Some(filling) = self.receives.get(at).copied() else { return };
        let queue = if filling.is_for_datagrams { &mut self.own } else { &mut self.shared };
        queue.0 -= 1;
        let has_word = wc.wc_flags & FLAG_IMMEDIATE != 0;
        let is_leave = self.line.is_some() && wc.byte_len == 0 && wc.status == WC_SUCCESS;
        let (has_word, word) = if is_leave { (true, LEAVE) } else { (has_word, u32::from_be(wc.imm_data)) };
        let from = match (filling.is_for_datagrams, has_word) {
            _ if wc.status != WC_SUCCESS => None,
            (true, true) => Some(word as usize).filter(|from| *from < self.contacts.len()),
            (true, false) => None,
            (false, _) => self.whose(wc.qp_num),
        };
        let Some(from) = from.filter(|_| filling.is_for_datagrams || !has_word) else {
            if let (Some(peer), LEAVE) = (from, word) {
                self.contact(peer).has_left = true;
            }
            // Nothing that anybody waits for: the buffer waits on.
            if let Err(why) = self.post_filling(at) {
                news.push_back(News::Fault(format!("{}: {why}", self.port.name())));
            }
            return;
        };
        self.receives.remove(at);
        let len = if filling.is_for_datagrams {
            (wc.byte_len as usize).saturating_sub(HEAD)
        } else {
            wc.byte_len as usize
        };
        let done = Done::Received { from, len, datagram: filling.is_for_datagrams };
        news.push_back(News::Ended(Completion { work: filling.work, done, result: Ok(()) }));
        if let Some((buffer, work)) = self.spare.pop_front()
            && let Err(why) = self.post_receive(buffer, work)
        {
            news.push_back(News::Fault(format!("{}: {why}", self.port.name())));
        }
    }

    #[inline]
    fn whose(&mut self, number: u32) -> Option<Rank> {
        if self.last.0 != number {
            self.last = (number, *self.by_number.get(&number)?);
        }
        Some(self.last.1)
    }
}
