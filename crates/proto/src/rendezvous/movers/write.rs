//! The transfer of a speculative rendezvous whose RTR was in time: the sender writes at once. Each
//! stripe has its FIN, which goes by its adapter, behind it.
//!
//! See [`crate::rendezvous::rtr`] for the rules that say when.

use super::port::Port;
use super::stripes::{Stripes, ends_stripe};
use super::{Happening, Message, Mover, Step};
use fabric::Remote;
use wire::long::{Fragment, RAILS};

/// The sending side: registered before it is begun.
#[derive(Debug)]
pub(crate) enum Sender {
    /// The RTR-ACK has not left; where the receiver's buffer lies, and its keys.
    Held(Stripes, u64, [u32; RAILS]),
    /// So many writes are under way.
    Writing(Stripes, usize),
    /// At its end.
    Over,
}

impl Mover for Sender {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match (std::mem::replace(self, Sender::Over), what) {
            (Sender::Held(stripes, addr, keys), Happening::Start) => {
                let mut under_way = 0;
                for stripe in stripes.iter() {
                    let rail = stripe.held.rail;
                    let remote = Remote { addr: addr + stripe.offset as u64, key: keys[rail] };
                    port.write(rail, stripe.local(message.local), remote, rail as u32);
                    under_way += 1;
                }
                *self = Sender::Writing(stripes, under_way);
                Step::Going
            }
            (Sender::Writing(stripes, under_way), Happening::Completed(rail)) => {
                let stripe = stripes.iter().find(|stripe| stripe.held.rail as u32 == rail).copied();
                let stripe = stripe.expect("a write of each stripe was posted under its adapter");
                let is_last = under_way == 1;
                if is_last {
                    stripes.release(port);
                } else {
                    *self = Sender::Writing(stripes, under_way - 1);
                }
                let (offset, len, rail) = (stripe.offset as u64, stripe.len as u64, rail as u16);
                port.fin(Fragment { offset, len, rail, ..Fragment::default() });
                if is_last { Step::Done } else { Step::Going }
            }
            (state, _) => {
                *self = state;
                Step::Illegal
            }
        }
    }

    fn retreat(&mut self, port: &mut impl Port) {
        match std::mem::replace(self, Sender::Over) {
            Sender::Held(stripes, ..) | Sender::Writing(stripes, _) => stripes.release(port),
            Sender::Over => {}
        }
    }
}

/// The receiving side: the RTR has been taken.
#[derive(Debug)]
pub(crate) enum Receiver {
    /// The sender writes; the stripes of these adapters, a bit each, are not finished.
    Exposed(Stripes, u32),
    /// At its end.
    Over,
}

impl Mover for Receiver {
    fn on(&mut self, what: Happening, _message: &Message, port: &mut impl Port) -> Step {
        match (std::mem::replace(self, Receiver::Over), what) {
            (Receiver::Exposed(stripes, open), Happening::Fin(fin)) if ends_stripe(&fin, open) => {
                let open = open & !(1 << fin.rail);
                if open == 0 {
                    stripes.release(port);
                    return Step::Done;
                }
                *self = Receiver::Exposed(stripes, open);
                Step::Going
            }
            (state, _) => {
                *self = state;
                Step::Illegal
            }
        }
    }

    fn retreat(&mut self, port: &mut impl Port) {
        if let Receiver::Exposed(stripes, _) = std::mem::replace(self, Receiver::Over) {
            stripes.release(port);
        }
    }
}

impl Receiver {
    /// A message of `len` bytes is on its way to a buffer of these stripes.
    pub fn new(stripes: Stripes, len: u64) -> Receiver {
        let open = stripes.rails(len);
        Receiver::Exposed(stripes, open)
    }
}
