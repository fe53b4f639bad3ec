//! Rendezvous by read (RGET).
//!
//! Wins when the sender comes first: the receiver has all it needs when it arrives, and the
//! sender may leave MPI. Costs the registration on both sides and one latency more than RPUT
//! for the request of the read (dissertation, section 4.2.1). Over several adapters each carries one
//! stripe.
//!
//! ```text
//! sender                      receiver
//!   register
//!   RTS(addr, keys) ────────▶ match, register
//!          ◀──── RDMA Read ──
//!          ◀──────────── FIN  deregister
//!   deregister
//! ```

use super::port::Port;
use super::stripes::Stripes;
use super::{Happening, Message, Mover, Step};
use fabric::{Remote, Rights};
use wire::head::FrameType;
use wire::long::{Fragment, LongRts};

/// The sending side.
#[derive(Debug, Default)]
pub(crate) enum Sender {
    /// The RTS has not left; what is registered already is kept.
    #[default]
    Idle,
    /// Registered, but there was no room for the RTS.
    Held(Stripes),
    /// The receiver may read.
    Offered(Stripes),
}

impl Mover for Sender {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match (std::mem::take(self), what) {
            (Sender::Idle, Happening::Start) => match Stripes::hold(port, message.local, Rights::REMOTE_READ)
            {
                Ok(stripes) => self.offer(stripes, message, port),
                Err(_) => Step::Frames,
            },
            (Sender::Held(stripes), Happening::Start) => self.offer(stripes, message, port),
            (Sender::Offered(stripes), Happening::Fin(fin)) if fin.len <= message.len => {
                stripes.release(port);
                Step::Done
            }
            (state, _) => {
                *self = state;
                Step::Illegal
            }
        }
    }

    fn retreat(&mut self, port: &mut impl Port) {
        if let Sender::Held(stripes) | Sender::Offered(stripes) = std::mem::take(self) {
            stripes.release(port);
        }
    }

    fn is_unanswered(&self, _port: &impl Port) -> bool {
        true
    }
}

impl Sender {
    fn offer(&mut self, stripes: Stripes, message: &Message, port: &mut impl Port) -> Step {
        let rts = LongRts {
            len: message.len,
            addr: message.local.addr as u64,
            keys: stripes.keys(),
            protocol: message.number(),
            ..LongRts::default()
        };
        if port.request(rts, 0) {
            *self = Sender::Offered(stripes);
            Step::Going
        } else {
            *self = Sender::Held(stripes);
            Step::NoRoom
        }
    }
}

/// The receiving side.
#[derive(Debug, Default)]
pub(crate) enum Receiver {
    /// Not matched.
    #[default]
    Idle,
    /// Reads are under way: this many.
    Reading(Stripes, usize),
}

impl Mover for Receiver {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match (std::mem::take(self), what) {
            (Receiver::Idle, Happening::Matched(rts, _)) => {
                // The sender cut its stripes by its own length.
                let Ok(stripes) = Stripes::hold_as(port, message.local, rts.len, Rights::LOCAL_WRITE) else {
                    return Step::Frames;
                };
                let mut under_way = 0;
                for stripe in stripes.iter() {
                    let remote =
                        Remote { addr: rts.addr + stripe.offset as u64, key: rts.keys[stripe.held.rail] };
                    port.read(stripe.held.rail, stripe.local(message.local), remote, stripe.held.rail as u32);
                    under_way += 1;
                }
                if under_way == 0 {
                    port.tell(FrameType::Fin, Fragment::default()); // no room for anything
                    return Step::Done;
                }
                *self = Receiver::Reading(stripes, under_way);
                Step::Going
            }
            (Receiver::Reading(stripes, 1), Happening::Completed(_)) => {
                stripes.release(port);
                port.tell(FrameType::Fin, Fragment { len: message.local.len as u64, ..Fragment::default() });
                Step::Done
            }
            (Receiver::Reading(stripes, under_way), Happening::Completed(_)) => {
                *self = Receiver::Reading(stripes, under_way - 1);
                Step::Going
            }
            (state, _) => {
                *self = state;
                Step::Illegal
            }
        }
    }

    fn retreat(&mut self, port: &mut impl Port) {
        if let Receiver::Reading(stripes, _) = std::mem::take(self) {
            stripes.release(port);
        }
    }
}
