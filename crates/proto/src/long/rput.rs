//! Rendezvous by write (RPUT).
//!
//! Wins over RGET where a read costs more than a write, and when the receiver comes first and waits:
//! registration of the source overlaps the handshake. Costs a full handshake before the first byte, and the
//! sender must be inside MPI to answer (dissertation, section 4.2.1). Over several adapters each
//! carries one stripe.
//!
//! ```text
//! sender                      receiver
//!   RTS ────────────────────▶ match, register
//!                    ◀─ ACK(bytes), READY(addr, key) per stripe
//!   register
//!     ── RDMA Write ────────▶
//!   deregister, FIN ────────▶ deregister                 per stripe
//! ```

use super::port::Port;
use super::stripes::Stripes;
use super::{Happening, Message, Step};
use crate::rcache::Held;
use fabric::{Local, Remote};
use wire::head::Kind;
use wire::long::{Fragment, LongRts};

/// The sending side.
#[derive(Debug, Default)]
pub(crate) enum Sender {
    /// The RTS has not left.
    #[default]
    Idle,
    /// The RTS is out.
    Asked,
    /// Stripes become ready and are written; so many bytes are still to be.
    Writing(Vec<Piece>, u64),
}

/// A stripe of the source that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    held: Held,
    fragment: Fragment,
}

impl Sender {
    pub fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match (std::mem::take(self), what) {
            (Sender::Idle, Happening::Start) => {
                let protocol = message.protocol as u16;
                if !port.request(LongRts { len: message.len, protocol, ..LongRts::default() }, 0) {
                    return Step::NoRoom;
                }
                *self = Sender::Asked;
            }
            (Sender::Asked, Happening::Ack(Fragment { len: 0, .. })) => return Step::Done,
            (Sender::Asked, Happening::Ack(ack)) if ack.len <= message.len => {
                *self = Sender::Writing(Vec::new(), ack.len);
            }
            (Sender::Writing(mut pieces, left), Happening::Ready(fragment))
                if message.covers(&fragment, port.rails()) =>
            {
                let span = message.local.part(fragment.offset as usize, fragment.len as usize);
                let held = match port.hold(fragment.rail as usize, span, true) {
                    Ok(held) => held,
                    Err(fault) => {
                        pieces.iter().for_each(|piece| port.release(piece.held));
                        return Step::Failed(fault);
                    }
                };
                let remote = Remote { addr: fragment.addr, key: fragment.key };
                port.write(held.rail, Local { span, key: held.key }, remote, fragment.rail as u32);
                pieces.push(Piece { held, fragment });
                *self = Sender::Writing(pieces, left);
            }
            (Sender::Writing(mut pieces, left), Happening::Completed(work))
                if pieces.iter().any(|piece| piece.fragment.rail as u32 == work) =>
            {
                let at = pieces.iter().position(|piece| piece.fragment.rail as u32 == work);
                let piece = pieces.remove(at.expect("looked for above"));
                port.release(piece.held);
                port.tell(Kind::Fin, Fragment { addr: 0, key: 0, ..piece.fragment });
                if left <= piece.fragment.len {
                    return Step::Done;
                }
                *self = Sender::Writing(pieces, left - piece.fragment.len);
            }
            (state, _) => {
                *self = state;
                return Step::Illegal;
            }
        }
        Step::Going
    }

    /// Gives back what is held.
    pub fn retreat(&mut self, port: &mut impl Port) {
        if let Sender::Writing(pieces, _) = std::mem::take(self) {
            pieces.iter().for_each(|piece| port.release(piece.held));
        }
    }
}

/// The receiving side.
#[derive(Debug, Default)]
pub(crate) enum Receiver {
    /// Not matched.
    #[default]
    Idle,
    /// The sender writes; so many stripes are not finished.
    Exposed(Stripes, usize),
}

impl Receiver {
    pub fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match (std::mem::take(self), what) {
            (Receiver::Idle, Happening::Matched(..)) => {
                let Ok(stripes) = Stripes::hold(port, message.local) else { return Step::Frames };
                port.tell(Kind::Ack, Fragment { len: message.local.len as u64, ..Fragment::default() });
                for stripe in stripes.iter() {
                    port.tell(Kind::Ready, stripe.fragment(message.local));
                }
                let count = stripes.iter().count();
                if count == 0 {
                    return Step::Done; // no room for anything
                }
                *self = Receiver::Exposed(stripes, count);
            }
            (Receiver::Exposed(stripes, 1), Happening::Fin(_)) => {
                stripes.release(port);
                return Step::Done;
            }
            (Receiver::Exposed(stripes, count), Happening::Fin(_)) => {
                *self = Receiver::Exposed(stripes, count - 1);
            }
            (state, _) => {
                *self = state;
                return Step::Illegal;
            }
        }
        Step::Going
    }

    /// Gives back what is held.
    pub fn retreat(&mut self, port: &mut impl Port) {
        if let Receiver::Exposed(stripes, _) = std::mem::take(self) {
            stripes.release(port);
        }
    }
}
