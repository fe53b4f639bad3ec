//! What targets are told where ranks synchronise by words, in an epoch whose end the targets wait for: a fence, or complete and wait. Both ends count
//! messages, so nobody acknowledges any.
//!
//! ```text
//! origin                                                        target
//! operations ─────────────────────── messages ────────────────▶ heeded when it looks around
//! so many messages ───────────────── word ────────────────────▶
//! fence: somebody was told something  word of the barrier ─────▶ the barrier is over, and as many are to be heeded as are counted
//!   the next epoch                                               heeds them
//!   before a copy: has it heeded? ◀── word ───────────────────── all that came before barrier n is heeded: its fence is over
//! ```
//!
//! The word that counts is stored at the end of an epoch, before that of the barrier, so who leaves this sees all that was sent before. It may see more: an
//! origin that is in the next fence already has sent, too, what that ends. A target heeds that as well, which nobody may tell from having come later: it
//! has called its fence.
//!
//! An origin leaves its fence without knowing whether the target has heeded what it was told by this one, or by a third one. What goes in a message of the
//! only other rank is heeded behind that; all else could come before, so it waits for the target's word. Dynamic windows are asked as ever: their targets
//! have to say what they refuse.

use super::active::Active;
use super::epoch::Epoch;
use super::issue::send_batch;
use super::{Delivery, Window, soon};
use crate::error::Result;
use crate::handle::Handle;
use crate::world::World;
use fabric::Device;

/// Messages to and from each rank.
#[derive(Debug)]
pub struct Messages {
    sent: Box<[u32]>,
    heeded: Box<[u32]>,
}

impl Messages {
    /// None, of so many ranks.
    pub fn new(ranks: usize) -> Messages {
        Messages { sent: vec![0; ranks].into(), heeded: vec![0; ranks].into() }
    }
}

impl Active {
    /// Whether targets count what they were told instead of being asked for it.
    fn counts(&self) -> bool {
        self.near.is_some() && !self.refuses
    }

    /// Whether targets are asked for what they were told in this epoch.
    #[inline]
    pub(super) fn is_asked(&self, epoch: &Epoch) -> bool {
        !self.counts() || epoch.has_locks()
    }

    /// A message has been sent to a target.
    pub(super) fn was_sent(&mut self, target: u32) {
        let sent = &mut self.messages.sent[target as usize];
        *sent = sent.wrapping_add(1);
    }

    /// Tells a target how many that were, whoever waits for them there: what is sent in the next epoch it is not to wait for.
    pub(super) fn say_sent(&self, target: u32) {
        if let Some(control) = &self.near {
            control.count(target, self.messages.sent[target as usize]);
        }
    }

    /// A message of a rank is heeded.
    pub(super) fn heeds_one(&mut self, from: u32) {
        let heeded = &mut self.messages.heeded[from as usize];
        *heeded = heeded.wrapping_add(1);
    }

    /// Whether all is heeded that a rank has told this one before the last word of it that was seen.
    pub(super) fn has_heeded_all_of(&self, from: u32) -> bool {
        let heeded = self.messages.heeded[from as usize];
        self.near.as_ref().is_none_or(|control| heeded.wrapping_sub(control.counted(from)) as i32 >= 0)
    }

    /// The barrier of a fence is over before which some rank was told something: whether this one has heeded all that it was. Then it says so, and
    /// wakes all if anybody waits for that.
    #[inline(never)]
    pub(super) fn heeds_for_fence(&mut self, me: u32, wake: impl FnMut(u32)) -> bool {
        let ranks = self.touched.len() as u32;
        let all = (0..ranks).all(|from| self.has_heeded_all_of(from));
        let Some(control) = &mut self.near else { return true };
        if !all {
            control.meet_again();
            return false;
        }
        if control.heeds() {
            (0..ranks).for_each(wake);
        }
        self.unheeded.fill(true);
        self.unheeded[me as usize] = false;
        true
    }

    /// Whether what goes to a target now, and not in a message, could come before what that was told for the last fence.
    #[inline]
    pub(super) fn is_early(&mut self, target: u32) -> bool {
        let unheeded = &mut self.unheeded[target as usize];
        if *unheeded && self.near.as_ref().is_some_and(|control| control.has_heeded(target)) {
            *unheeded = false;
        }
        *unheeded
    }
}

impl Window {
    /// Whether targets count what they were told, so that nobody is asked before an epoch ends that they wait for.
    pub fn counts(&self) -> bool {
        matches!(&self.path, Delivery::Active(active) if active.counts())
    }
}

impl<D: Device> World<D> {
    /// Sends what targets are still to be told in the epoch that is to end, of a fence or of a start; those to whom not all has left at once
    /// are `held`.
    pub fn let_all_leave(&mut self, win: Handle, is_fence: bool, held: &mut Vec<u32>) -> Result {
        let World { objects, engine, detached, .. } = self;
        let Window { path: Delivery::Active(active), place, .. } = objects.windows.find_mut(win)? else {
            return Ok(());
        };
        let mut done = Ok(());
        for target in 0..place.size() {
            if !active.touched[target as usize] {
                continue;
            }
            done = done.and(send_batch(active, place, target, engine, detached));
            if active.held[target as usize] {
                held.push(target);
            }
            active.synchronised(target);
            active.say_sent(target);
            if is_fence && let Some(control) = &mut active.near {
                control.tells();
            }
        }
        active.tally.ended();
        done
    }

    /// Whether what these were told has left this rank as far as that is for it to bring about: a target takes by itself what is offered to it.
    pub fn have_left(&self, win: Handle, held: &[u32]) -> Result<bool> {
        let place = &self.objects.windows.find(win)?.place;
        Ok(!held.iter().any(|target| self.engine.has_backlog(place.world_rank(*target) as usize)))
    }

    /// Whether a target has heeded what it was told for the last fence; an error if some rank of the window is lost, so that it may never.
    pub fn has_heeded_fence(&mut self, win: Handle, target: u32) -> Result<bool> {
        if !self.window(win)?.active().is_some_and(|active| active.is_early(target)) {
            return Ok(true);
        }
        self.all_are_there(win)?;
        Ok(false)
    }

    /// This rank begins to wait for that, so it is to be woken, or waits no longer.
    pub fn waits_for_heed(&mut self, win: Handle, target: u32, begins: bool) -> Result {
        let World { objects, engine, .. } = self;
        let window = objects.windows.find(win)?;
        let Some(control) = window.path.control() else { return Ok(()) };
        if begins {
            control.waits(target);
        } else if control.waited(target, None) {
            soon::wake_all(window, engine);
        }
        Ok(())
    }
}
