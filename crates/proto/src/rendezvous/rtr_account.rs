//! Whether early receivers offer their buffers (RTR): what was seen of an envelope (peer, context, tag).
//!
//! The receiver judges, for it sees all that becomes of its RTRs; which message one belongs to is the business of
//! [`crate::message::rtrs`].
//!
//! - An RTR was of use if its sender wrote to it; if it tried another way though it had the RTR in time, that says nothing
//!   against it. One that was met by an eager message, or by an RTS that it does not answer, was sent for nothing.
//! - If under 80 % were of use none are sent, and it is counted silently which receives were early enough; at 80 % they begin
//!   again (dissertation, sections 4.2.6 and 4.4.2, where the sender judges and tells).
//! - An RTS says if RTRs are unwelcome, for another way is cheaper.
//! - Memory that is not registered is not registered for an RTR before receives of the envelope were seen to wait long
//!   enough to hide it. (The dissertation's buffers come again.)
//!
//! The sender of an RTS lets an RTR that crosses it answer it, if it is seen to be inside MPI when answers come: then the write
//! begins a latency earlier than the read that the RTS asks for. A sender that computes is read from.

use crate::choice::tuning::{ENVELOPES_MAX, PRESENT_MIN};
use crate::message::matching::Envelope;
use crate::message::op::OpId;
use crate::rendezvous::movers::stripes::Stripes;
use crate::rendezvous::recent::Recent;
use std::collections::HashMap;

/// Flag of an RTS: RTRs are of no use to its sender.
pub(crate) const UNWELCOME: u16 = 1;
/// Flag of an RTS: an RTR that crosses it answers it.
pub(crate) const ANSWERABLE: u16 = 2;
/// Flag of an RTS: its sender had an RTR in time, and tries another way.
pub(crate) const DECLINED: u16 = 4;
/// Above these flags an RTS says how many RTRs had come when it left.
pub(crate) const CAME_SHIFT: u32 = 3;
/// Part of the RTRs that must be of use, in per cent (section 4.4.2).
const USAGE_MIN: u32 = 80;
/// RTRs, or silent observations, before they are judged.
const SAMPLES_MIN: u32 = 8;
/// Observations after which older ones count half.
const SAMPLES_MAX: u32 = 64;
/// As many registrations a receive must have waited for one to be hidden: other receives and sends may have waited
/// for it.
const HIDDEN: f64 = 3.0;

/// How often something was of use.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    all: u32,
    used: u32,
}

impl Usage {
    fn count(&mut self, used: bool) {
        if self.all >= SAMPLES_MAX {
            (self.all, self.used) = (self.all / 2, self.used / 2);
        }
        self.all += 1;
        self.used += u32::from(used);
    }

    fn is_enough(&self) -> bool {
        self.used * 100 >= USAGE_MIN * self.all
    }

    /// `None` before there are enough observations.
    fn pays(&self) -> Option<bool> {
        (self.all >= SAMPLES_MIN).then(|| self.is_enough())
    }
}

/// What the receiver keeps for one envelope.
#[derive(Debug, Default)]
struct Incoming {
    /// The sender has no use for RTRs.
    unwelcome: bool,
    /// Too few were of use.
    idle: bool,
    usage: Usage,
    /// While none are sent: whether they would have been.
    silent: Usage,
    /// How often receives waited for so long that a registration before the message costs nothing.
    hidden: Usage,
}

/// A receive that has met an RTS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting {
    /// Whether its RTR was of use; `None` if it had none.
    pub used: Option<bool>,
    /// Whether one would have been in time.
    pub early: bool,
    /// For how long it had waited, and how long the registration of its memory takes.
    pub waited_ns: u64,
    pub register_ns: f64,
}

/// A receive that is posted.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub since_ns: u64,
    /// How long this rank had been outside MPI before.
    pub outside_ns: u64,
    /// Its RTR, if one is out.
    pub rtr: Option<Out>,
    /// It is to be cancelled once the sender has given the RTR up.
    pub cancelling: bool,
}

/// An RTR over registered memory that is out.
#[derive(Debug)]
pub(crate) struct Out {
    pub stripes: Stripes,
    /// Which one to that peer.
    pub number: u32,
    /// Messages of the peer that had been taken in.
    pub seen: u32,
}

/// The tables of one rank.
#[derive(Debug)]
pub(crate) struct RtrAccount {
    incoming: Recent<Envelope, Incoming>,
    /// Of messages sent: whether this rank was inside MPI when they were answered.
    present: Recent<Envelope, Usage>,
    /// Answers after which that is judged.
    present_min: u32,
    /// Posted receives that expect a rendezvous over registered memory.
    pub waiting: HashMap<OpId, Waiting>,
    /// Whether RTRs go on however few are used, and none answers an RTS.
    persists: bool,
}

impl RtrAccount {
    /// Empty tables; without `adapt` what is seen changes nothing.
    pub fn new(adapt: bool) -> RtrAccount {
        RtrAccount {
            incoming: Recent::new(ENVELOPES_MAX),
            present: Recent::new(ENVELOPES_MAX),
            present_min: PRESENT_MIN,
            waiting: HashMap::new(),
            persists: !adapt,
        }
    }

    /// Keeps account of so many envelopes from here on, and judges senders after so many answers; to be called before
    /// the first message.
    pub fn keep(&mut self, most: usize, present_min: u32) {
        (self.incoming, self.present) = (Recent::new(most), Recent::new(most));
        self.present_min = present_min;
    }

    /// Whether RTRs may be sent for an envelope.
    pub fn may_offer(&self, from: &Envelope) -> bool {
        self.incoming.get(from).is_none_or(|known| !known.unwelcome && (self.persists || !known.idle))
    }

    /// Whether memory is to be registered for an RTR.
    pub fn may_register(&self, from: &Envelope) -> bool {
        self.incoming.get(from).is_some_and(|known| known.hidden.pays() == Some(true))
    }

    /// An RTS has come, which says whether RTRs are welcome.
    pub fn on_rts(&mut self, from: &Envelope, flags: u16) {
        let unwelcome = flags & UNWELCOME != 0;
        match self.incoming.get_mut(from) {
            Some(known) => known.unwelcome = unwelcome,
            None if unwelcome => self.coming(from).unwelcome = true,
            None => {}
        }
    }

    /// A receive has met a rendezvous.
    pub fn met(&mut self, from: &Envelope, meeting: Meeting) {
        let known = self.coming(from);
        known.hidden.count(meeting.waited_ns as f64 > HIDDEN * meeting.register_ns);
        match meeting.used {
            Some(used) => known.used(used),
            None if known.idle => {
                known.silent.count(meeting.early);
                if known.silent.pays() == Some(true) {
                    (known.idle, known.usage) = (false, Usage::default());
                }
            }
            None => {}
        }
    }

    /// A receive with an RTR out was met by an eager message.
    pub fn missed(&mut self, from: &Envelope) {
        self.coming(from).used(false);
    }

    /// What is kept for an envelope of which something has come.
    fn coming(&mut self, from: &Envelope) -> &mut Incoming {
        self.incoming.entry(*from, Incoming::default, |_, _| ())
    }

    /// The RTS of a message has been answered; whether this rank has been inside MPI since it left.
    pub fn was_present(&mut self, to: &Envelope, present: bool) {
        self.present.entry(*to, Usage::default, |_, _| ()).count(present);
    }

    /// Whether an RTR that crosses an RTS finds its sender inside MPI.
    pub fn is_present(&self, to: &Envelope) -> bool {
        let known = self.present.get(to).copied().unwrap_or_default();
        !self.persists && known.all >= self.present_min && known.is_enough()
    }
}

impl Incoming {
    fn used(&mut self, used: bool) {
        self.usage.count(used);
        if self.usage.pays() == Some(false) {
            (self.idle, self.silent) = (true, Usage::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Envelope = Envelope { source: 1, context: 3, tag: 5 };

    fn meeting(used: Option<bool>, early: bool) -> Meeting {
        Meeting { used, early, waited_ns: 1000, register_ns: 400.0 }
    }

    #[test]
    fn rtrs_stop_that_come_to_nothing_and_begin_again_when_they_would_be_of_use() {
        for adapt in [true, false] {
            let mut account = RtrAccount::new(adapt);
            (0..SAMPLES_MIN).for_each(|_| account.met(&FROM, meeting(Some(false), false)));
            assert_eq!(account.may_offer(&FROM), !adapt);
            (0..SAMPLES_MIN - 1).for_each(|_| account.met(&FROM, meeting(None, true)));
            assert_eq!(account.may_offer(&FROM), !adapt);
            account.met(&FROM, meeting(None, true));
            assert!(account.may_offer(&FROM) && !account.may_register(&FROM));
        }
    }

    #[test]
    fn the_sender_says_whether_rtrs_are_welcome() {
        let mut account = RtrAccount::new(true);
        account.on_rts(&FROM, UNWELCOME);
        assert!(!account.may_offer(&FROM) && account.may_offer(&Envelope { tag: 6, ..FROM }));
        account.on_rts(&FROM, 0);
        assert!(account.may_offer(&FROM));
    }

    /// One of five that is away is too many when the receiver waits for it.
    #[test]
    fn who_computes_meanwhile_is_not_waited_for() {
        let mut account = RtrAccount::new(true);
        (0..PRESENT_MIN).for_each(|_| {
            assert!(!account.is_present(&FROM));
            account.was_present(&FROM, true);
        });
        assert!(account.is_present(&FROM));
        (0..SAMPLES_MAX).for_each(|answer| account.was_present(&FROM, answer % 4 != 0));
        assert!(!account.is_present(&FROM));
    }
}
