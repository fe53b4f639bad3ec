//! The transfer of a speculative rendezvous whose RTR was in time: the sender writes at once.
//!
//! See [`super::speculative`] for the rules that say when.

use super::port::Port;
use super::stripes::Stripes;
use super::{Happening, Message, Step};
use fabric::Remote;
use wire::head::Kind;
use wire::long::{Fragment, LongRts};

/// The sending side: registered before it is begun.
#[derive(Debug)]
pub(crate) enum Sender {
    /// The RTR-ACK has not left.
    Held(Stripes, LongRts),
    /// So many writes are under way.
    Writing(Stripes, usize),
    /// At its end.
    Over,
}

impl Sender {
    pub fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match (std::mem::replace(self, Sender::Over), what) {
            (Sender::Held(stripes, rtr), Happening::Start) => {
                let mut under_way = 0;
                for stripe in stripes.iter() {
                    let rail = stripe.held.rail;
                    let remote = Remote { addr: rtr.addr + stripe.offset as u64, key: rtr.keys[rail] };
                    port.write(rail, stripe.local(message.local), remote, rail as u32);
                    under_way += 1;
                }
                *self = Sender::Writing(stripes, under_way);
                Step::Going
            }
            (Sender::Writing(stripes, 1), Happening::Completed(_)) => {
                stripes.release(port);
                port.tell(Kind::Fin, Fragment { len: message.len, ..Fragment::default() });
                Step::Done
            }
            (Sender::Writing(stripes, under_way), Happening::Completed(_)) => {
                *self = Sender::Writing(stripes, under_way - 1);
                Step::Going
            }
            (state, _) => {
                *self = state;
                Step::Illegal
            }
        }
    }

    /// Gives back what is held.
    pub fn retreat(&mut self, port: &mut impl Port) {
        match std::mem::replace(self, Sender::Over) {
            Sender::Held(stripes, _) | Sender::Writing(stripes, _) => stripes.release(port),
            Sender::Over => {}
        }
    }
}

/// The receiving side: the RTR has been taken.
#[derive(Debug)]
pub(crate) enum Receiver {
    /// The sender writes.
    Exposed(Stripes),
    /// At its end.
    Over,
}

impl Receiver {
    pub fn on(&mut self, what: Happening, _message: &Message, port: &mut impl Port) -> Step {
        match (std::mem::replace(self, Receiver::Over), what) {
            (Receiver::Exposed(stripes), Happening::Fin(_)) => {
                stripes.release(port);
                Step::Done
            }
            (state, _) => {
                *self = state;
                Step::Illegal
            }
        }
    }

    /// Gives back what is held.
    pub fn retreat(&mut self, port: &mut impl Port) {
        if let Receiver::Exposed(stripes) = std::mem::replace(self, Receiver::Over) {
            stripes.release(port);
        }
    }
}
