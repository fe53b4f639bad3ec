//! Rendezvous by write (RPUT).
//!
//! Wins over RGET where a read costs more than a write, and when the receiver comes first and waits:
//! registration of the source overlaps the handshake. Costs a full handshake before the first byte, and the
//! sender must be inside MPI to answer (dissertation, section 4.2.1). Over several adapters each
//! carries one stripe.
//!
//! A stripe that the sender cannot register goes by frames.
//!
//! ```text
//! sender                      receiver
//!   RTS ────────────────────▶ match, register
//!                    ◀─ ACK(bytes), READY(addr, key) per stripe
//!   register
//!     ── RDMA Write ────────▶
//!   deregister, FIN ────────▶ deregister                 per stripe
//! ```
//! The FIN of a stripe goes by its adapter, behind it: the completion of a write does not say that
//! it is placed.

use super::port::Port;
use super::stripes::{Stripes, ends_stripe};
use super::{BY_FRAMES, Happening, Message, Mover, Step};
use crate::memory::rcache::Held;
use fabric::{Remote, Rights};
use std::collections::VecDeque;
use wire::head::FrameType;
use wire::long::{Fragment, LongRts};

/// Frames sent before what has arrived is looked at.
const FRAMES_AT_ONCE: usize = 4;

/// The sending side.
#[derive(Debug, Default)]
pub(crate) enum Sender {
    /// The RTS has not left.
    #[default]
    Idle,
    /// The RTS is out.
    Asked,
    /// Stripes become ready and are moved.
    Moving(Moving),
}

/// What a sender still has to do.
#[derive(Debug)]
pub(crate) struct Moving {
    /// Stripes being written.
    pieces: Vec<Piece>,
    /// Stripes that could not be registered, the first of them as far as it has not left.
    framed: VecDeque<Fragment>,
    /// Bytes that have not arrived.
    left: u64,
}

/// A stripe of the source that is being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    held: Held,
    fragment: Fragment,
}

impl Mover for Sender {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match (&mut *self, what) {
            (Sender::Idle, Happening::Start) => {
                let protocol = message.number();
                if !port.request(LongRts { len: message.len, protocol, ..LongRts::default() }, 0) {
                    return Step::NoRoom;
                }
                *self = Sender::Asked;
                Step::Going
            }
            (Sender::Asked, Happening::Ack(Fragment { len: 0, .. })) => Step::Done,
            (Sender::Asked, Happening::Ack(ack)) if ack.len <= message.len => {
                *self = Sender::Moving(Moving { pieces: Vec::new(), framed: VecDeque::new(), left: ack.len });
                Step::Going
            }
            (Sender::Moving(m), Happening::Ready(fragment))
                if message.covers(&fragment, port.rails()) && m.expects(&fragment) =>
            {
                m.take(fragment, message, port)
            }
            (Sender::Moving(m), Happening::Completed(work)) => m.completed(work, port),
            (Sender::Moving(m), Happening::Look) => m.go_on(message, port),
            _ => Step::Illegal,
        }
    }

    fn retreat(&mut self, port: &mut impl Port) {
        if let Sender::Moving(moving) = std::mem::take(self) {
            moving.pieces.iter().for_each(|piece| port.release(piece.held));
        }
    }

    fn is_unanswered(&self, _port: &impl Port) -> bool {
        !matches!(self, Sender::Moving(_))
    }
}

impl Moving {
    /// Whether the stripes with this one are no more than was agreed.
    fn expects(&self, fragment: &Fragment) -> bool {
        let pieces = self.pieces.iter().map(|piece| &piece.fragment);
        let known = pieces.chain(&self.framed).map(|fragment| fragment.len).sum::<u64>();
        fragment.len > 0 && known.checked_add(fragment.len).is_some_and(|sum| sum <= self.left)
    }

    fn take(&mut self, fragment: Fragment, message: &Message, port: &mut impl Port) -> Step {
        let span = message.local.part(fragment.offset as usize, fragment.len as usize);
        match port.hold(fragment.rail as usize, span, Rights::NONE, true) {
            Ok(held) => {
                let remote = Remote { addr: fragment.addr, key: fragment.key };
                port.write(held.rail, held.region.local(span), remote, fragment.rail as u32);
                self.pieces.push(Piece { held, fragment });
            }
            Err(_) => self.framed.push_back(fragment),
        }
        self.step(false)
    }

    fn completed(&mut self, work: u32, port: &mut impl Port) -> Step {
        let Some(at) = self.pieces.iter().position(|piece| piece.fragment.rail as u32 == work) else {
            return Step::Illegal;
        };
        let piece = self.pieces.remove(at);
        port.release(piece.held);
        port.fin(Fragment { addr: 0, key: 0, ..piece.fragment });
        self.left -= piece.fragment.len;
        self.step(false)
    }

    /// Sends some of what goes by frames.
    fn go_on(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let mut sent = 0;
        while sent < FRAMES_AT_ONCE
            && let Some(rest) = self.framed.front_mut()
        {
            let len = rest.len.min(port.frame_bytes() as u64);
            if !port.frame(message.local.part(rest.offset as usize, len as usize), rest.offset) {
                break;
            }
            sent += 1;
            (rest.offset, rest.len, self.left) = (rest.offset + len, rest.len - len, self.left - len);
            if rest.len == 0 {
                port.tell(FrameType::Fin, Fragment { addr: 0, key: 0, flags: BY_FRAMES, ..*rest });
                self.framed.pop_front();
            }
        }
        self.step(sent > 0)
    }

    fn step(&self, moved: bool) -> Step {
        Step::of_frames(self.framed.is_empty(), self.left, moved)
    }
}

/// The receiving side.
#[derive(Debug, Default)]
pub(crate) enum Receiver {
    /// Not matched.
    #[default]
    Idle,
    /// The sender writes; the stripes of these adapters, a bit each, are not finished.
    Exposed(Stripes, u32),
}

impl Mover for Receiver {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match (std::mem::take(self), what) {
            (Receiver::Idle, Happening::Matched(..)) => {
                let Ok(stripes) = Stripes::hold(port, message.local, Rights::REMOTE_WRITE) else {
                    return Step::Frames;
                };
                let taken = Fragment { len: message.local.len as u64, ..Fragment::default() };
                match stripes.iter().next() {
                    Some(_) => port.tell_with_next(FrameType::Ack, taken),
                    None => port.tell(FrameType::Ack, taken),
                }
                for stripe in stripes.iter() {
                    port.tell(FrameType::Ready, stripe.fragment(message.local));
                }
                let open = stripes.rails(message.local.len as u64);
                if open == 0 {
                    return Step::Done; // no room for anything
                }
                *self = Receiver::Exposed(stripes, open);
            }
            (Receiver::Exposed(stripes, open), Happening::Data(offset, data))
                if offset.checked_add(data.len as u64).is_some_and(|end| end <= message.local.len as u64) =>
            {
                port.copy(message.local.addr + offset as usize, data.addr, data.len);
                *self = Receiver::Exposed(stripes, open);
            }
            (Receiver::Exposed(stripes, open), Happening::Fin(fin)) if ends_stripe(&fin, open) => {
                let open = open & !(1 << fin.rail);
                if open == 0 {
                    stripes.release(port);
                    return Step::Done;
                }
                *self = Receiver::Exposed(stripes, open);
            }
            (state, _) => {
                *self = state;
                return Step::Illegal;
            }
        }
        Step::Going
    }

    fn retreat(&mut self, port: &mut impl Port) {
        if let Receiver::Exposed(stripes, _) = std::mem::take(self) {
            stripes.release(port);
        }
    }
}
