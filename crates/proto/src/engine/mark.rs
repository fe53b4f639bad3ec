//! What goes with the end of an epoch: docs/protocols/epochs.md, "Fences of two ranks".

use super::Engine;
use crate::epoch::Mark;
use fabric::{Device, Fault, Rank};

impl<D: Device> Engine<D> {
    /// With the end of the epoch that is open at a target goes this. If it is the end of a fence, the word says also that another one has
    /// to follow where operations went in messages: the target scatters these when it looks, and what comes by its adapter would overtake them.
    pub fn mark(&mut self, window: u32, target: Rank, mark: Mark, is_fence: bool) -> Result<(), Fault> {
        if let Some(access) = self.windows()?.access(window, target) {
            (access.mark, access.is_fence) = (mark, is_fence);
        }
        Ok(())
    }

    /// What goes with the first end of a rank's epoch here that is not taken note of yet, if there is one.
    pub fn next_mark(&mut self, window: u32, rank: Rank) -> Result<Option<Mark>, Fault> {
        let peer = self.windows()?.window(window)?.peers.get(&rank);
        Ok(peer.and_then(|peer| peer.ended.front()).copied())
    }

    /// What has gone with the last end of an epoch of this rank at another one.
    pub fn last_mark(&mut self, window: u32, rank: Rank) -> Result<Mark, Fault> {
        let peer = self.windows()?.window(window)?.peers.get(&rank);
        Ok(peer.map(|peer| peer.mark).unwrap_or_default())
    }
}
