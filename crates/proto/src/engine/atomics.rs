//! Words of windows that adapters change: each leaves when it is begun, belongs to no epoch and ends when its answer is here.
//! Behind frames to the same rank it is carried out before these are heeded, for the target takes them out later.

use super::Engine;
use super::onesided::RAIL;
use crate::epoch::window::Words;
use crate::message::work::Work;
use fabric::{Atomic, Device, Fault, Rank, Remote, Span};

/// Bytes of a word.
const LEN: usize = 8;

impl<D: Device> Engine<D> {
    /// Begins to change the word at `offset` of a rank's window, a multiple of 8 there; what it was goes `into` 8 bytes here. False if no
    /// adapter does, or not now: then nothing has happened.
    pub fn change(
        &mut self,
        window: u32,
        rank: Rank,
        offset: u64,
        atomic: Atomic,
        into: Span,
    ) -> Result<bool, Fault> {
        assert_eq!(into.len, LEN, "a word has 8 bytes");
        let Some(mut epochs) = self.epochs.take_if(|epochs| epochs.bounce.slot_bytes() >= LEN) else {
            return Ok(false);
        };
        let theirs = epochs.window(window).ok().and_then(|found| found.peers.get(&rank)?.exposed);
        let changed = (|| {
            let Some(theirs) = theirs.filter(|theirs| theirs.registered) else { return Ok(false) };
            let Ok(Some(slot)) = epochs.bounce.take(&mut self.dev, LEN) else { return Ok(false) };
            let number = epochs.words.next;
            let remote = Remote { addr: theirs.addr + offset, key: theirs.keys[RAIL] };
            let work = Work::Word(number).encode();
            let posted = self.dev.post_atomic(rank, RAIL, slot.local, remote, atomic, work);
            if posted != Ok(true) {
                epochs.bounce.give(slot);
                return posted;
            }
            epochs.words.next = number.wrapping_add(1);
            epochs.words.under_way.insert(number, (window, rank, slot, into));
            Ok(true)
        })();
        self.epochs = Some(epochs);
        changed
    }

    /// Whether a word of this rank's window is being changed; what went wrong with one, once.
    pub fn is_changing(&mut self, window: u32, rank: Rank) -> Result<bool, Fault> {
        let Some(epochs) = &mut self.epochs else { return Ok(false) };
        let Words { under_way, failed, .. } = &mut epochs.words;
        if let Some(at) = failed.iter().position(|(there, at, _)| (*there, *at) == (window, rank)) {
            return Err(failed.swap_remove(at).2);
        }
        Ok(under_way.values().any(|(there, at, ..)| (*there, *at) == (window, rank)))
    }

    /// One has ended.
    pub(super) fn changed(&mut self, number: u32, result: Result<(), Fault>) {
        let Some(epochs) = &mut self.epochs else { return };
        let ended = epochs.words.under_way.remove(&number);
        let (window, rank, slot, into) = ended.expect("it ends once");
        match result {
            Ok(()) => self.dev.copy(into.addr, slot.local.span.addr, LEN),
            Err(fault) => epochs.words.failed.push((window, rank, fault)),
        }
        epochs.bounce.give(slot);
    }
}
