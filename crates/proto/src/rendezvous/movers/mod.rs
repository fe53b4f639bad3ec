//! Who moves the bytes: what the protocols over registered memory have in common, and a file for each.
//!
//! A protocol is two machines, one on each side. Both are given what happens as a [`Happening`]
//! and act on the world through a [`Port`]; a [`Step`] says how they stand. The sender's machine
//! begins when the message may leave (its RTS keeps the order of messages), the receiver's when
//! the RTS has met its receive. What happens over registered memory comes in messages; where [`both`] sides copy it is
//! changed words of a share, which a look around finds.

pub(crate) mod both;
pub(crate) mod chunks;
pub(crate) mod claims;
mod copy_pipeline;
pub(crate) mod frames;
mod pipeline;
pub(crate) mod port;
mod rget;
mod rput;
pub(crate) mod stripes;
mod superpipeline;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use crate::choice::way::{Protocol, Way};
use crate::message::op::{Failure, Side};
use fabric::{Fault, Rank, Share, ShareWord, Span};
use port::Port;
use wire::long::{Fragment, LongRts, RAILS};

/// What both machines of a message know.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The protocol over registered memory of its RTS; `None` if it came to frames without one, or by a share.
    pub protocol: Option<Protocol>,
    /// The other rank.
    pub peer: Rank,
    /// This rank's buffer, cut to the bytes that travel.
    pub local: Span,
    /// Operation at the other rank; 0 while the sender does not know it.
    pub peer_op: u32,
    /// Length as the sender gave it.
    pub len: u64,
}

impl Message {
    /// The number of its protocol in an RTS.
    pub fn number(&self) -> u16 {
        self.protocol.map_or(0, |protocol| protocol as u16)
    }

    /// Whether a fragment told by the peer lies inside the message and in memory, and names an adapter
    /// there is.
    pub fn covers(&self, fragment: &Fragment, rails: usize) -> bool {
        let end = fragment.offset.checked_add(fragment.len);
        end.is_some_and(|end| end <= self.local.len as u64)
            && fragment.addr.checked_add(fragment.len).is_some()
            && (fragment.rail as usize) < rails.min(RAILS)
    }
}

/// What happens to a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happening {
    /// The message may leave: send the RTS. By a share it is told both sides, once there is one.
    Start,
    /// Its RTS has met a receive; so many bytes came along and are in place.
    Matched(LongRts, u64),
    /// The receiver has answered.
    Ack(Fragment),
    /// A piece of the target may be written.
    Ready(Fragment),
    /// The other side has moved something.
    Fin(Fragment),
    /// A piece of the message lies in a frame; where in the message it belongs.
    Data(u64, Span),
    /// A posted transfer has ended, and its memory here may be reused; the number is the one it was
    /// posted under.
    Completed(u32),
    /// A look around: memory that peers write may have changed, time has passed.
    Look,
}

/// How a machine stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Not at its end.
    Going,
    /// As [`Step::Going`], and it wants [`Happening::Look`] whenever the rank looks around.
    Looking,
    /// As [`Step::Looking`], and this look found something to do.
    Moved,
    /// It has found that its RTS has met a receive, and is not at its end.
    Met,
    /// All bytes are where they belong and nothing is held.
    Done,
    /// As [`Step::Done`] for both sides, but some of the bytes could not be moved.
    Spoilt(Box<Failure>),
    /// The RTS could not leave: to be started again when there is room.
    NoRoom,
    /// This side cannot register its memory, or neither can copy: the message goes by frames. Nothing is held.
    Frames,
    /// What happened is not allowed in this state.
    Illegal,
    /// It came to nothing; nothing is held.
    Failed(Fault),
}

impl Step {
    /// Of a sender with `left` bytes to go that the receiver does not have: whether none of them are to leave in
    /// frames now, and whether one just has.
    pub fn of_frames(none_to_leave: bool, left: u64, moved: bool) -> Step {
        match (none_to_leave, left) {
            (true, 0) => Step::Done,
            (true, _) => Step::Going,
            (false, _) if moved => Step::Moved,
            (false, _) => Step::Looking,
        }
    }
}

/// What became of the wish to take a message back whose RTS is out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Withdrawal {
    /// Nobody has met it, nor will.
    Back,
    /// A receive has met it, or waits for it.
    Met,
    /// Its receiver alone knows, and is to be asked.
    Asked,
}

/// One side of one protocol.
pub(crate) trait Mover {
    /// Takes in what happens, and acts on it.
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step;

    /// The other side wants frames, or the operation has failed: gives back what is held. No transfer of
    /// either side is under way.
    fn retreat(&mut self, port: &mut impl Port);

    /// Whether this is a sender whose receiver may still ask for frames: it has said nothing else.
    fn is_unanswered(&self, _port: &impl Port) -> bool {
        false
    }

    /// Takes the RTS back, if that can be done without the receiver.
    fn take_back(&mut self, _port: &mut impl Port) -> Withdrawal {
        Withdrawal::Asked
    }

    /// Whether the message gets on only if this rank looks.
    fn needs_care(&self) -> bool {
        true
    }

    /// The word that must cease to be 0 before a look finds anything.
    fn awaits(&self) -> Option<(Share, ShareWord)> {
        None
    }

    /// How many bytes have been moved, where that is known: for reports.
    fn moved(&self) -> u64 {
        0
    }
}

/// A machine of either side of any protocol.
#[derive(Debug)]
pub(crate) enum Machine {
    RgetSend(rget::Sender),
    RgetReceive(rget::Receiver),
    RputSend(rput::Sender),
    RputReceive(rput::Receiver),
    RtrSend(write::Sender),
    RtrReceive(write::Receiver),
    PipelineSend(pipeline::Sender),
    PipelineReceive(pipeline::Receiver),
    CopySend(superpipeline::Sender),
    CopyReceive(superpipeline::Receiver),
    FramesSend(frames::Sender),
    FramesReceive(frames::Receiver),
    BothSend(both::Sender),
    BothReceive(both::Receiver),
}

impl Machine {
    /// Whether it is looked at when it is its side's turn, and not before.
    #[inline]
    pub fn takes_turns(&self) -> bool {
        matches!(self, Machine::BothSend(_) | Machine::BothReceive(_))
    }

    /// Whether this is a message that its receiver will copy alone.
    pub fn is_to_be_pulled(&self) -> bool {
        matches!(self, Machine::BothSend(sender) if sender.is_to_be_pulled())
    }

    /// Where the bytes lie that this side will copy as a whole when it looks; `None` of any other message.
    pub fn postponed(&self) -> Option<usize> {
        match self {
            Machine::BothReceive(receiver) => receiver.postponed(),
            _ => None,
        }
    }

    /// How the bytes of a message travel that began with this protocol, if with any.
    pub fn way(&self, protocol: Option<Protocol>) -> Way {
        match self {
            Machine::BothSend(machine) if !machine.is_direct() => Way::Frames,
            Machine::BothSend(_) | Machine::BothReceive(_) => Way::Both,
            Machine::FramesSend(_) | Machine::FramesReceive(_) => Way::Frames,
            _ => protocol.map_or(Way::Frames, Way::of),
        }
    }

    pub fn new(protocol: Protocol, side: Side) -> Machine {
        match (protocol, side) {
            (Protocol::Rget | Protocol::Speculative, Side::Send) => {
                Machine::RgetSend(rget::Sender::default())
            }
            (Protocol::Rget | Protocol::Speculative, Side::Receive) => {
                Machine::RgetReceive(rget::Receiver::default())
            }
            (Protocol::Rput, Side::Send) => Machine::RputSend(rput::Sender::default()),
            (Protocol::Rput, Side::Receive) => Machine::RputReceive(rput::Receiver::default()),
            (Protocol::Pipeline | Protocol::CachingPipeline, Side::Send) => {
                Machine::PipelineSend(pipeline::Sender::default())
            }
            (Protocol::Pipeline | Protocol::CachingPipeline, Side::Receive) => {
                Machine::PipelineReceive(pipeline::Receiver::default())
            }
            (Protocol::Superpipeline | Protocol::CopyPipeline, Side::Send) => {
                Machine::CopySend(superpipeline::Sender::default())
            }
            (Protocol::Superpipeline | Protocol::CopyPipeline, Side::Receive) => {
                Machine::CopyReceive(superpipeline::Receiver::default())
            }
        }
    }
}

/// Does something with whichever machine it is.
macro_rules! each {
    ($self:expr, $machine:ident => $what:expr) => {
        match $self {
            Machine::RgetSend($machine) => $what,
            Machine::RgetReceive($machine) => $what,
            Machine::RputSend($machine) => $what,
            Machine::RputReceive($machine) => $what,
            Machine::RtrSend($machine) => $what,
            Machine::RtrReceive($machine) => $what,
            Machine::PipelineSend($machine) => $what,
            Machine::PipelineReceive($machine) => $what,
            Machine::CopySend($machine) => $what,
            Machine::CopyReceive($machine) => $what,
            Machine::FramesSend($machine) => $what,
            Machine::FramesReceive($machine) => $what,
            Machine::BothSend($machine) => $what,
            Machine::BothReceive($machine) => $what,
        }
    };
}

impl Mover for Machine {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        each!(self, machine => machine.on(what, message, port))
    }

    fn retreat(&mut self, port: &mut impl Port) {
        each!(self, machine => machine.retreat(port))
    }

    fn is_unanswered(&self, port: &impl Port) -> bool {
        each!(self, machine => machine.is_unanswered(port))
    }

    fn take_back(&mut self, port: &mut impl Port) -> Withdrawal {
        each!(self, machine => machine.take_back(port))
    }

    #[inline]
    fn needs_care(&self) -> bool {
        match self {
            Machine::BothSend(machine) => machine.needs_care(),
            Machine::BothReceive(machine) => machine.needs_care(),
            _ => true,
        }
    }

    #[inline]
    fn awaits(&self) -> Option<(Share, ShareWord)> {
        match self {
            Machine::BothSend(machine) => machine.awaits(),
            _ => None,
        }
    }

    fn moved(&self) -> u64 {
        each!(self, machine => machine.moved())
    }
}

/// Flag of a Fin: the message has failed at the other side, which touches no memory of this one any
/// more. The length says over how many adapters that is told, and the rail which one this is.
pub(crate) const FAILED: u16 = 1;
/// Flag of a Ready or a Fin: the block goes, or went, by frames.
pub(crate) const BY_FRAMES: u16 = 2;
/// Flag of an Ack: the receiver cannot see writes land, and wants a Fin for each.
pub(crate) const TELL: u16 = 4;

/// Flag of a Fin that says FAILED: it answers one, for an operation that had ended well.
pub(crate) const HEARD: u16 = 8;
