//! What the loss of a peer means for those who may wait for it without naming it.

use crate::world::World;
use fabric::Device;

impl<D: Device> World<D> {
    /// Ends receives from any source that a lost rank might have been the source of.
    #[inline]
    pub(crate) fn heed_losses(&mut self) {
        if !self.engine.lost().is_empty() {
            self.end_wildcards();
        }
    }

    #[cold]
    fn end_wildcards(&mut self) {
        let lost = self.engine.lost().to_vec();
        let comms = &self.objects.comms;
        self.engine.end_wildcards(|context| {
            let (_, comm) = comms.by_context(context)?;
            let concerned = lost.iter().find(|(rank, _)| comm.place.peers.rank_of(*rank as u32).is_some())?;
            Some(concerned.1.clone())
        });
    }
}
