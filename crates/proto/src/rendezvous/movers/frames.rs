//! The payload in frames, through the device: where nobody can copy from the other, nor write, and in shared memory where
//! an application gets on fastest so.
//!
//! Costs two copies. Either side may end here: of the protocols over registered memory if it cannot register, and of a
//! share if no side can reach the other.
//!
//! ```text
//! sender                      receiver
//!   RTS ────────────────────▶ match
//!          ◀──────────── CTS  so many bytes
//!   DATA(offset, bytes) ────▶ copy out
//!          ...
//! ```

use super::port::Port;
use super::{Happening, Message, Mover, Step};

/// Bytes of a frame where there is no room for longer ones.
const LITTLE: usize = 2048;
/// Into how many frames at least a message is cut in shared memory, and the longest of them there: whoever receives
/// copies a frame when it is complete, while the next one is written.
const FRAMES: usize = 16;
pub(crate) const FRAME_MAX: usize = 64 << 10;

/// The sending side: the CTS has come.
#[derive(Debug)]
pub(crate) struct Sender {
    /// Bytes that the receiver wants.
    limit: usize,
    sent: usize,
    /// The longest frame, where the message is cut.
    cut_bytes: Option<usize>,
}

impl Sender {
    /// `limit` bytes are wanted. In shared memory there may be room for little where there is none for much: then frames
    /// are cut.
    pub fn new(limit: usize, is_cut: bool) -> Sender {
        let cut_bytes = is_cut.then(|| (limit / FRAMES).clamp(LITTLE, FRAME_MAX));
        Sender { limit, sent: 0, cut_bytes }
    }

    /// Sends a frame of the longest length there is room for, unless it is to keep step with the other side's and leads too far: how many bytes.
    fn next(&self, message: &Message, in_step: bool, port: &mut impl Port) -> Option<usize> {
        let left = self.limit - self.sent;
        let most = port.frame_bytes().min(self.cut_bytes.unwrap_or(usize::MAX)).min(left);
        if in_step && port.keeps_back(most) {
            return None;
        }
        let mut leaves = |len| port.frame(message.local.part(self.sent, len), self.sent as u64);
        if leaves(most) {
            return Some(most);
        }
        (self.cut_bytes.is_some() && LITTLE < most && leaves(LITTLE)).then_some(LITTLE)
    }
}

impl Mover for Sender {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        if what != Happening::Look {
            return Step::Illegal;
        }
        let before = self.sent;
        // Inside MPI this rank looks what has come before it goes on.
        let in_step = self.cut_bytes.is_some() && port.turn().aside.is_none();
        let most = if in_step { FRAME_MAX } else { usize::MAX };
        while self.sent < self.limit
            && self.sent - before < most
            && let Some(len) = self.next(message, in_step, port)
        {
            self.sent += len;
        }
        Step::of_frames(self.sent == self.limit, 0, self.sent > before)
    }

    fn retreat(&mut self, _port: &mut impl Port) {}

    fn moved(&self) -> u64 {
        self.sent as u64
    }
}

/// The receiving side.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    filled: u64,
}

impl Mover for Receiver {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        let limit = message.local.len as u64;
        match what {
            Happening::Data(offset, data)
                if offset.checked_add(data.len as u64).is_some_and(|end| end <= limit) =>
            {
                self.filled += data.len as u64;
                port.copy(message.local.addr + offset as usize, data.addr, data.len);
                if self.filled >= limit { Step::Done } else { Step::Going }
            }
            _ => Step::Illegal,
        }
    }

    fn retreat(&mut self, _port: &mut impl Port) {}

    fn moved(&self) -> u64 {
        self.filled
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::script::{BUFFER, Script, message};
    use super::*;
    use crate::choice::way::Protocol;
    use fabric::Span;

    /// What there is room for leaves, and nothing beyond what is wanted.
    #[test]
    fn frames_leave_while_there_is_room() {
        let message = message(Some(Protocol::Rget), 3000);
        let mut script = Script { has_no_room: true, ..Script::default() };
        let mut sender = Sender::new(2500, true);
        assert_eq!(sender.on(Happening::Look, &message, &mut script), Step::Looking);
        script.has_no_room = false;
        assert_eq!(sender.on(Happening::Look, &message, &mut script), Step::Done);
        assert_eq!(sender.moved(), 2500);
        assert_eq!(Sender::new(0, true).on(Happening::Start, &message, &mut script), Step::Illegal);
    }

    /// In an exchange a frame may have to wait for one of the other side's.
    #[test]
    fn a_sender_that_leads_waits() {
        let message = message(None, 100);
        let mut script = Script { keeps_back: true, ..Script::default() };
        let mut sender = Sender::new(100, true);
        assert_eq!(sender.on(Happening::Look, &message, &mut script), Step::Looking);
        script.keeps_back = false;
        assert_eq!(sender.on(Happening::Look, &message, &mut script), Step::Done);
    }

    /// Frames in any order end the message when all bytes are there; none goes beyond the buffer.
    #[test]
    fn a_receiver_is_filled() {
        let message = message(None, 100);
        let (mut script, mut receiver) = (Script::default(), Receiver::default());
        let mut come = |offset, len| {
            let what = Happening::Data(offset, Span { addr: BUFFER, len });
            receiver.on(what, &message, &mut script)
        };
        assert_eq!(come(60, 40), Step::Going);
        for (offset, len) in [(60, 41), (u64::MAX, 1), (101, 0)] {
            assert_eq!(come(offset, len), Step::Illegal);
        }
        assert_eq!(come(0, 60), Step::Done);
    }
}
