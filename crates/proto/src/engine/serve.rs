//! The target of one-sided operations, and answers to its origin.

use super::Engine;
use crate::epoch::window::Peer;
use crate::epoch::{Action, Ending, Mark};
use crate::message::malformed;
use fabric::{Charge, Device, Fault, Frame, Rank, Span};
use wire::Malformed;
use wire::epoch::{self as flags, AnswerHead, OpHead};
use wire::head::{FrameType as Message, Head};

impl<D: Device> Engine<D> {
    /// A message of an epoch.
    pub(crate) fn on_epoch(&mut self, from: Rank, head: Head, frame: Frame) -> Result<(), Fault> {
        let what = flags::flags(head.aux).map_err(|e| malformed(from, e))?;
        let window = head.tag as u32;
        if !self.epochs.as_ref().is_some_and(|epochs| epochs.windows.contains_key(&window)) {
            return Err(malformed(from, Malformed(format!("there is no window {window}"))));
        }
        if what & flags::ANSWER != 0 {
            self.on_answer(from, window, frame.data)?;
        }
        if what & flags::OPS != 0 {
            self.serve(from, window, frame.data)?;
        }
        let epochs = self.windows()?;
        epochs.works |= what & flags::POST != 0;
        let peer = epochs.window(window)?.peers.entry(from).or_default();
        peer.posts += u64::from(what & flags::POST != 0);
        peer.notes_seen += u64::from(what & flags::NOTE != 0);
        if what & flags::DONE != 0 {
            peer.dones.push_back((head.context, what));
        }
        if what & flags::ASK != 0 {
            peer.asks.push_back(head.context);
        }
        peer.answered += u64::from(what & flags::PLACED != 0);
        if what & flags::PLACED != 0
            && let Some(access) = &mut peer.access
        {
            // An epoch that failed has not waited for its answer.
            access.placed |= access.told && access.asked > 0 && peer.answered >= access.asked;
        }
        let number = peer.number();
        for _ in 0..what_is_placed(peer) {
            self.tell(number, from, None, flags::PLACED, 0);
        }
        if what & (flags::PLACED | flags::ANSWER) != 0 {
            self.learn_of_answer(from, window);
        }
        self.issue_epochs().map(drop)
    }

    /// What was asked of a target is answered: how long a way is.
    fn learn_of_answer(&mut self, from: Rank, window: u32) {
        let Some(access) = self.epochs.as_mut().and_then(|epochs| epochs.access(window, from)) else {
            return;
        };
        let is_last = access.unanswered == 0 && (access.placed || access.ending != Some(Ending::Flush));
        if !is_last || access.asked_ns == 0 {
            return;
        }
        let asked_ns = std::mem::take(&mut access.asked_ns);
        let carried = access.ops.iter().map(|op| op.local.len).sum();
        let (distance, now_ns) = (self.dev.distance(from), self.dev.now_ns());
        self.learner.epoch_answered(distance, asked_ns, now_ns, carried);
    }

    /// Does the operations of a message.
    fn serve(&mut self, from: Rank, window: u32, data: Span) -> Result<(), Fault> {
        let span = self.windows()?.window(window)?.span;
        let most = self.message_bytes(from);
        let (mut at, mut answer) = (0, Vec::new());
        while at < data.len {
            let op = OpHead::decode(&self.read_head(from, data, &mut at)?).map_err(|e| malformed(from, e))?;
            self.dev.charge(Charge::Header);
            let len = op.len as usize;
            if op.offset + op.len > span.len as u64 {
                let text = format!("{len} bytes at {} of window {window}, which has {}", op.offset, span.len);
                return Err(malformed(from, Malformed(text)));
            }
            let there = span.addr + op.offset as usize;
            match op.action {
                Action::Put if len > data.len - at => {
                    let text = format!("a Put of {len} bytes that brings {}", data.len - at);
                    return Err(malformed(from, Malformed(text)));
                }
                Action::Put => {
                    self.dev.copy(there, data.addr + at, len);
                    at += len;
                }
                Action::Get if answer.len() + AnswerHead::LEN + len > most => {
                    let text = format!("Gets whose answer does not fit {most} bytes");
                    return Err(malformed(from, Malformed(text)));
                }
                Action::Get => {
                    answer.extend_from_slice(&AnswerHead { token: op.token, len: len as u32 }.encode());
                    let begin = answer.len();
                    answer.resize(begin + len, 0);
                    self.dev.copy(answer.as_mut_ptr() as usize + begin, there, len);
                }
            }
        }
        if !answer.is_empty() {
            let number = self.windows()?.window(window)?.peers.get(&from).map_or(0, Peer::number);
            let head = Head { kind: Message::Epoch, aux: flags::ANSWER, tag: number as i32, context: 0 };
            self.dev.label(|| "epoch");
            self.peers.control(&mut self.dev, from, head.encode(), &answer);
        }
        Ok(())
    }

    /// Puts what Gets have brought where they want it.
    fn on_answer(&mut self, from: Rank, window: u32, data: Span) -> Result<(), Fault> {
        let mut at = 0;
        while at < data.len {
            let head = AnswerHead::decode(&self.read_head(from, data, &mut at)?);
            self.dev.charge(Charge::Header);
            let len = head.len as usize;
            let left = data.len - at;
            let wanted = self.windows()?.access(window, from).and_then(|access| {
                let place = access.answers.get_mut(head.token as usize)?;
                let into = place.filter(|into| into.len == len && len <= left)?;
                *place = None;
                access.unanswered -= 1;
                Some(into)
            });
            let Some(into) = wanted else {
                let text = format!("{len} bytes for window {window} that no Get has asked for");
                return Err(malformed(from, Malformed(text)));
            };
            self.dev.copy(into.addr, data.addr + at, len);
            at += len;
        }
        Ok(())
    }

    /// The next head in a message, behind which `at` then stands.
    fn read_head<const LEN: usize>(
        &self,
        from: Rank,
        data: Span,
        at: &mut usize,
    ) -> Result<[u8; LEN], Fault> {
        let mut bytes = [0; LEN];
        if data.len - *at < LEN {
            let text = format!("{} bytes where {LEN} of a head should be", data.len - *at);
            return Err(malformed(from, Malformed(text)));
        }
        self.dev.peek_bytes(data.part(*at, LEN), &mut bytes);
        *at += LEN;
        Ok(bytes)
    }
}

/// Lets ends take effect whose notes have come; how many questions are to be answered.
fn what_is_placed(peer: &mut Peer) -> usize {
    while peer.dones.front().is_some_and(|(notes, _)| *notes <= peer.notes_seen) {
        let (_, what) = peer.dones.pop_front().expect("it was looked at");
        peer.ended.push_back(Mark::of_flags(what));
        peer.failed |= what & flags::FAILED != 0;
    }
    let mut due = 0;
    while peer.asks.front().is_some_and(|notes| *notes <= peer.notes_seen) {
        peer.asks.pop_front();
        due += 1;
    }
    due
}
