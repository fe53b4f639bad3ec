//! How a long message comes to nothing.
//!
//! Memory goes back to the application, and registrations end, only when nothing can touch them any
//! more: neither what this side has posted nor what the other side has. So a side that cannot go on
//! posts nothing from there on, waits for the completions of what it has posted, and then says FAILED
//! behind its writes, on each adapter it has written over. The other side, whatever it was about, does
//! the same, and each ends when it has said FAILED and heard it.
//!
//! ```text
//! sender                        receiver
//!   ═ write, rail 0 ═══════════▶
//!   ═ write, rail 1 ══▶ error
//!   drain: rail 0 completes
//!   ├─ FIN FAILED 1 of 2 ──────▶  behind the write on rail 0
//!   ├─ FIN FAILED 2 of 2 ──────▶  drain: nothing posted
//!   ◀────── FIN FAILED 1 of 1 ─┤  ended: its memory is free
//!   ended
//! ```
//! A side whose operation has ended well before it hears FAILED has drained already; it answers with
//! HEARD, to which there is no answer. Who is gone for good is not waited for: its adapter has given
//! up, too.

use super::movers::{FAILED, HEARD, Mover};
use super::posting::Posted;
use crate::message::malformed;
use crate::message::op::OpId;
use crate::message::peers::How;
use crate::rendezvous::Rendezvous;
use crate::rendezvous::phase::Phase;
use crate::rendezvous::state::{Course, State};
use fabric::{Device, Fault, Rank};
use wire::Malformed;
use wire::head::{FrameType, Head};
use wire::long::{Fragment, RAILS};

/// What is left to do of a message that has failed.
#[derive(Debug)]
pub(crate) struct Ending {
    /// Why.
    fault: Fault,
    /// The other side has said as much, behind these adapters; and behind how many it will.
    heard: u32,
    expected: u32,
    /// This side has said it.
    told: bool,
    /// There is nobody who could.
    alone: bool,
}

impl Ending {
    fn new(fault: Fault, alone: bool) -> Ending {
        Ending { fault, heard: 0, expected: 1, told: false, alone }
    }

    /// The other side touches nothing any more.
    fn is_answered(&self) -> bool {
        self.alone || self.heard.count_ones() >= self.expected
    }
}

/// The adapters behind which FAILED is said: those that were written over, at least one.
fn behind(posted: &Posted) -> impl Iterator<Item = u16> + use<> {
    let rails = if posted.rails == 0 { 1 } else { posted.rails };
    (0..RAILS as u16).filter(move |rail| rails >> rail & 1 != 0)
}

impl<D: Device> Rendezvous<'_, D> {
    /// This side cannot go on.
    pub(crate) fn lose_long(&mut self, id: OpId, fault: Fault) {
        let Some(State::Long(long)) = self.ops.get(id).map(|op| &op.state) else { return };
        let alone = fault.lost_peer() == Some(long.message.peer) || long.message.peer_op == 0;
        self.fail_long(id, Ending::new(fault, alone));
    }

    fn fail_long(&mut self, id: OpId, ending: Ending) {
        let forgotten = self.backlog.forget(id);
        let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else { return };
        long.posted.open -= forgotten;
        match long.ending() {
            Some(known) => known.alone |= ending.alone,
            None => long.goes_on(Course::Draining(ending)),
        }
        self.learner.forget(id);
        self.end_if_drained(id);
    }

    /// Takes the next step to the end of a message that has failed.
    pub(crate) fn end_if_drained(&mut self, id: OpId) {
        let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else { return };
        let (message, posted) = (long.message, long.posted);
        let Some(ending) = long.ending().filter(|_| posted.open == 0) else { return };
        if !std::mem::replace(&mut ending.told, true) && !ending.alone {
            let head = Head::new(FrameType::Fin, message.peer_op as i32, id.0 as u64).encode();
            let len = behind(&posted).count() as u64;
            for rail in behind(&posted) {
                let said = Fragment { len, rail, flags: FAILED, ..Fragment::default() }.encode();
                self.peers.control_as(self.dev, message.peer, How::Behind(Some(rail as usize)), head, &said);
            }
        }
        if ending.is_answered() {
            self.end_long(id);
        }
    }

    fn end_long(&mut self, id: OpId) {
        self.with_machine(id, |machine, _, port| machine.retreat(port));
        let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else { return };
        let (mut ends, is_counted) = (long.outcome.clone(), long.is_counted());
        let fault = long.ending().expect("only a message that has failed ends so").fault.clone();
        if is_counted {
            self.learner.gives_up();
        }
        ends.failure = ends.failure.or(Some(fault.into()));
        self.ops.set(id, State::Done(ends));
    }

    /// FIN with FAILED: the other side cannot go on, and touches nothing any more that it touched over
    /// this adapter.
    pub(crate) fn on_failed(&mut self, from: Rank, head: Head, said: &Fragment) -> Result<(), Fault> {
        let id = OpId(head.tag as u32);
        if said.rail as usize >= RAILS || !(1..=RAILS as u64).contains(&said.len) {
            let what = format!("a failure told over adapter {}, {} of them", said.rail, said.len);
            return Err(malformed(from, Malformed(what)));
        }
        match self.ops.get_mut(id).map(|op| &mut op.state) {
            Some(State::Long(long)) if long.message.peer == from && long.phase() != Phase::Queued => {
                if said.flags & HEARD == 0 {
                    long.message.peer_op = head.context as u32;
                }
            }
            _ if said.flags & HEARD == 0 => {
                let head = Head::new(FrameType::Fin, head.context as i32, 0).encode();
                let answer = Fragment { flags: FAILED | HEARD, ..*said };
                self.control(from, head, &answer.encode());
                return Ok(());
            }
            _ => return Ok(()),
        }
        let text = format!("rank {from} could not do its part of the transfer");
        self.fail_long(id, Ending::new(Fault::Device(text), false));
        if let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state)
            && let Some(ending) = long.ending()
        {
            ending.heard |= 1 << said.rail;
            ending.expected = said.len as u32;
        }
        self.end_if_drained(id);
        Ok(())
    }
}
