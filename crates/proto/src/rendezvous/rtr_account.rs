//! Speculative rendezvous: who may send an RTR, and which send an RTR belongs to.
//!
//! Wins when receivers come early: the sender writes at once, while the receiver computes. Costs
//! an RTR for nothing when both sides come together (dissertation, chapter 4). The rules, per
//! envelope (peer, context, tag):
//!
//! - A receive that finds no message sends an RTR, unless a receive posted before would accept
//!   the same message and has sent none (section 4.2.3). Receives with a wildcard send none.
//! - A send that finds an RTR writes, and an RTR-ACK takes the place of its RTS. A receive that
//!   finds an RTS, or is met by one without having sent an RTR, answers with an RTS-ACK.
//!   What the protocol does first goes before the RTS-ACK, on which no byte waits. (In the dissertation it comes
//!   first.)
//! - So each receive brings the sender exactly one of RTR and RTS-ACK: an RTR belongs to the
//!   oldest send without, and only if there is none it is kept for the next send.
//! - An eager message may have met a receive whose RTR is on its way. It sets the *Eager flag*; the
//!   next rendezvous drops all RTRs and tells the receiver to stop (stop-RTR). When the receiver
//!   has answered, none is on its way any more, and the next RTS lets it resume (resume-RTR).
//! - With stop-RTR the receiver takes all its RTRs for granted as dropped. (The dissertation does not
//!   say so. A receive whose RTR was dropped would else let later ones send theirs, which the
//!   sender would give to the wrong send: `tests/protocols/races` finds it.)
//! - Memory that is not registered is not registered for an RTR before receives of the envelope were seen to wait long
//!   enough to hide it. (The dissertation's buffers come again.)
//! - Each side keeps account of the envelopes used last. A sender that has forgotten some takes each new
//!   one for such that eager messages may have left for: its first rendezvous stops the receiver's
//!   RTRs, whatever has become of earlier ones. A receiver that has forgotten that it was to stop takes
//!   all envelopes of that sender that it does not know for stopped, until an RTS says otherwise.
//! - If under 80 % of the RTRs were used, the sender stops them too, and counts silently which
//!   receives were early enough; at 80 % it lets them resume (sections 4.2.6 and 4.4.2).
//!
//! ```text
//! early receiver              early sender                crossing
//! S            R              S            R              S            R
//! ◀────── RTR ─┤ Irecv        ├─ RTS ──────▶              ├─ RTS ─╲╱─ RTR ┤
//! Isend                       ◀─ read ─────┤ Irecv        RTR dropped
//! ├─ RTR-ACK ──▶              ◀─ RTS-ACK ──┤              ◀─ read ──────┤
//! ├═ write ════▶              ◀─ FIN ──────┤              ◀─ FIN ───────┤
//! ├─ FIN ──────▶
//! ```

use super::movers::stripes::Stripes;
use crate::choice::tuning::ENVELOPES_MAX;
use crate::message::matching::Envelope;
use crate::message::op::OpId;
use crate::message::rtrs::{Rtr, Rtrs};
use crate::rendezvous::recent::Recent;
use fabric::Rank;
use fabric::spread::SpreadMap;
use std::collections::HashSet;

/// Flag of an RTS: no more RTRs for this envelope, and those sent are void.
pub(crate) const STOP: u16 = 1;
/// Flag of an RTS: RTRs are welcome again.
pub(crate) const RESUME: u16 = 2;
/// Part of the RTRs that must be used, in per cent (section 4.4.2).
const USAGE_MIN: u32 = 80;
/// RTRs, or silent observations, before they are judged.
const SAMPLES_MIN: u32 = 8;
/// RTRs in a row that come to nothing, after which no more are sent until a rendezvous comes.
pub(crate) const MISSES_MAX: u8 = 8;
/// Observations after which older ones count half.
const SAMPLES_MAX: u32 = 64;

/// As many registrations a receive must have waited for one to be hidden: other receives and sends may have waited
/// for it.
const HIDDEN: f64 = 3.0;

/// How often something was of use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
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

    /// `None` before there are enough observations.
    fn pays(&self) -> Option<bool> {
        (self.all >= SAMPLES_MIN).then_some(self.used * 100 >= USAGE_MIN * self.all)
    }
}

/// Where the sender of an envelope stands with RTRs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Flag {
    /// Every RTR has its send.
    #[default]
    Clear,
    /// Eager messages left: RTRs may be void.
    Eager,
    /// This operation's RTS told the receiver to stop.
    Stopping(OpId),
    /// No RTR is on its way.
    Stopped,
}

/// What the sender keeps for one envelope.
#[derive(Debug, Default)]
struct Outgoing {
    flag: Flag,
    /// Stopped because RTRs did not pay, not because of eager messages.
    idle: bool,
    /// Sends whose RTS is out and whose receive has not answered.
    sends: Vec<OpId>,
    usage: Usage,
    silent: Usage,
}

/// What the receiver keeps for one envelope.
#[derive(Debug, Default)]
struct Incoming {
    stopped: bool,
    /// RTRs in a row that came to nothing.
    missed: u8,
    /// How often receives waited for so long that a registration before the message costs nothing.
    early: Usage,
}

/// How a send is to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plan {
    /// Write into the buffer of this RTR.
    Write(Rtr),
    /// Send an RTS with these flags.
    Rts(u16),
}

/// A send by rendezvous that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    pub op: OpId,
    /// Its length in bytes.
    pub len: u64,
    /// Whether an RTR is of use.
    pub wants: Wants,
}

/// Whether an RTR is of use to a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wants {
    /// It takes it.
    Takes,
    /// Not this time, for it tries another way.
    Declines,
    /// No.
    Nothing,
}

/// A receive that is posted and expects a rendezvous over registered memory.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub since_ns: u64,
    /// How long this rank had been outside MPI before.
    pub outside_ns: u64,
    /// Its memory, if an RTR is out.
    pub stripes: Option<Stripes>,
}

/// The tables of one rank.
#[derive(Debug)]
pub(crate) struct RtrAccount {
    out: Recent<Envelope, Outgoing>,
    incoming: Recent<Envelope, Incoming>,
    /// Senders of which an envelope that was to stop is forgotten.
    stopped: HashSet<Rank>,
    /// Posted receives that expect such a rendezvous.
    pub waiting: SpreadMap<OpId, Waiting>,
    /// Whether RTRs go on however few are used.
    persists: bool,
    /// Shortest time an RTS took to be answered: a round trip.
    round_trip_ns: Option<u64>,
}

impl RtrAccount {
    /// Empty tables; without `adapt` RTRs never stop for being of little use.
    pub fn new(adapt: bool) -> RtrAccount {
        RtrAccount {
            out: Recent::new(ENVELOPES_MAX),
            incoming: Recent::new(ENVELOPES_MAX),
            stopped: HashSet::new(),
            waiting: SpreadMap::default(),
            persists: !adapt,
            round_trip_ns: None,
        }
    }

    /// Keeps account of so many envelopes from here on; to be called before the first message.
    pub fn keep(&mut self, most: usize) {
        (self.out, self.incoming) = (Recent::new(most), Recent::new(most));
    }

    /// Whether an RTR waits for the next rendezvous, if that has `len` bytes.
    pub fn is_offered(&mut self, rtrs: &Rtrs, to: &Envelope, len: u64, sent_before: bool) -> bool {
        let persists = self.persists;
        self.outgoing(to, sent_before).may_write(persists)
            && rtrs.next(to.context, to.tag).is_some_and(|rtr| len <= rtr.len)
    }

    /// A rendezvous begins: by one of the RTRs of its peer, or by RTS. `sent_before` says whether anything has left to
    /// this peer before.
    pub fn begin(&mut self, rtrs: &mut Rtrs, to: &Envelope, send: Send, sent_before: bool) -> Plan {
        let persists = self.persists;
        self.outgoing(to, sent_before).begin(rtrs, to, send, persists)
    }

    fn outgoing(&mut self, to: &Envelope, sent_before: bool) -> &mut Outgoing {
        // What left before this account was kept may have been eager.
        let before = sent_before || self.out.has_forgotten();
        let flag = if before { Flag::Eager } else { Flag::Clear };
        self.out.entry(*to, || Outgoing { flag, ..Outgoing::default() }, |_, _| ())
    }

    /// What is kept for an envelope of which something has come.
    fn coming(&mut self, from: &Envelope) -> &mut Incoming {
        let (incoming, senders) = (&mut self.incoming, &mut self.stopped);
        let stopped = senders.contains(&from.source);
        let forget = |envelope: &Envelope, incoming: Incoming| {
            if incoming.stopped {
                senders.insert(envelope.source);
            }
        };
        incoming.entry(*from, || Incoming { stopped, ..Incoming::default() }, forget)
    }

    /// A message that is no rendezvous over registered memory leaves; `op` if it was to be one.
    pub fn other_left(&mut self, to: &Envelope, op: Option<OpId>) {
        let Some(out) = self.out.get_mut(to) else { return };
        out.sends.retain(|send| Some(*send) != op);
        match out.flag {
            Flag::Clear => out.flag = Flag::Eager,
            Flag::Stopping(stop) if Some(stop) == op => out.flag = Flag::Eager,
            _ => {}
        }
    }

    /// An RTR has arrived; whether it is for the next send.
    pub fn on_rtr(&mut self, from: &Envelope, sent_before: bool) -> bool {
        let out = self.outgoing(from, sent_before);
        let is_stopped = matches!(out.flag, Flag::Stopping(_) | Flag::Stopped);
        let is_next = !is_stopped && out.sends.is_empty();
        if !is_stopped && !is_next {
            out.sends.remove(0);
        }
        if !is_next {
            out.usage.count(false);
        }
        is_next
    }

    /// RTS-ACK, the end of the read, or a CTS: the receive of this send has been met. `waited_ns` says
    /// for how long the receive had been posted when the RTS came.
    pub fn on_met(&mut self, to: &Envelope, op: OpId, waited_ns: Option<u64>) {
        let Some(out) = self.out.get_mut(to) else { return };
        out.sends.retain(|send| *send != op);
        if out.flag == Flag::Stopping(op) {
            out.flag = Flag::Stopped;
        }
        if let Some(waited_ns) = waited_ns {
            out.silent.count(self.round_trip_ns.is_some_and(|rtt| waited_ns > rtt));
        }
    }

    /// An RTS was answered after this time.
    pub fn on_round_trip(&mut self, ns: u64) {
        self.round_trip_ns = Some(self.round_trip_ns.map_or(ns, |known| known.min(ns)));
    }

    /// Whether RTRs may be sent for an envelope.
    pub fn may_offer(&self, from: &Envelope) -> bool {
        match self.incoming.get(from) {
            Some(known) => !known.stopped && known.missed < MISSES_MAX,
            None => !self.stopped.contains(&from.source),
        }
    }

    /// An RTS has come; whether all RTRs for its envelope are void.
    pub fn on_rts(&mut self, from: &Envelope, flags: u16) -> bool {
        if flags & (STOP | RESUME) != 0 || self.incoming.get(from).is_some() {
            let incoming = self.coming(from);
            incoming.missed = 0;
            incoming.stopped = flags & STOP != 0 || incoming.stopped && flags & RESUME == 0;
        }
        flags & STOP != 0
    }

    /// Whether memory is to be registered for an RTR.
    pub fn may_register(&self, from: &Envelope) -> bool {
        self.incoming.get(from).is_some_and(|i| i.early.pays() == Some(true))
    }

    /// A receive for which memory is to be registered for so long has waited for a rendezvous.
    pub fn waited(&mut self, from: &Envelope, waited_ns: u64, register_ns: f64) {
        self.coming(from).early.count(waited_ns as f64 > HIDDEN * register_ns);
    }

    /// RTRs in a row that came to nothing.
    pub fn misses(&mut self, from: &Envelope) -> &mut u8 {
        &mut self.coming(from).missed
    }
}

impl Outgoing {
    /// Whether the next rendezvous takes an RTR if there is one.
    fn may_write(&self, persists: bool) -> bool {
        self.flag == Flag::Clear && (persists || self.usage.pays() != Some(false))
    }

    /// Whether what stopped RTRs is over.
    fn may_resume(&self) -> bool {
        !self.idle || self.silent.pays() == Some(true)
    }

    fn begin(&mut self, rtrs: &mut Rtrs, to: &Envelope, send: Send, persists: bool) -> Plan {
        let Send { op, wants, .. } = send;
        let flags = match self.flag {
            Flag::Eager => STOP,
            Flag::Clear if self.may_write(persists) => return self.begin_clear(rtrs, to, send),
            Flag::Clear => {
                (self.idle, self.silent) = (true, Usage::default());
                STOP
            }
            Flag::Stopped if wants != Wants::Nothing && self.may_resume() => RESUME,
            Flag::Stopped | Flag::Stopping(_) => 0,
        };
        // Until the receiver has stopped, all RTRs are dropped; then none is on its way; and the
        // receive of the RTS that lets them resume sends none. So no RTR belongs to this send.
        match flags {
            STOP => {
                self.flag = Flag::Stopping(op);
                (0..rtrs.drop_all(to.context, to.tag)).for_each(|_| self.usage.count(false));
                self.sends.clear();
            }
            RESUME => {
                (self.flag, self.idle, self.usage) = (Flag::Clear, false, Usage::default());
            }
            _ => {}
        }
        Plan::Rts(flags)
    }

    fn begin_clear(&mut self, rtrs: &mut Rtrs, to: &Envelope, send: Send) -> Plan {
        let Send { op, len, wants } = send;
        match rtrs.take(to.context, to.tag) {
            Some(rtr) => {
                let fits = len <= rtr.len;
                self.usage.count(fits && wants != Wants::Nothing);
                if fits && wants == Wants::Takes { Plan::Write(rtr) } else { Plan::Rts(0) }
            }
            None => {
                self.sends.push(op);
                Plan::Rts(0)
            }
        }
    }
}
