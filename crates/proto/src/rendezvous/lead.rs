//! Frames both ways: neither of two ranks gets far ahead of what it has read of the other.
//!
//! A block that has just been read is the nearest place for the next frame (`shm/lending.rs`), and only few blocks can go to and fro. Who
//! comes first and writes all of a long message at once fills others, whose lines push the application's data out of the caches of both; and
//! who comes later reads all of them before the first of its own leaves. So who awaits frames from a rank sends it [`MOST`] bytes, and the
//! next ones for what has come (drawn with one each):
//!
//! ```text
//! rank 0   frame ▶  reads ◀ frame   reads ◀ frame   …
//! rank 1   ◀ frame  reads ▶ ◀ frame reads ▶ ◀ frame  …
//! ```
//!
//! The other one may be held up, so who has waited for long goes on alone.

use super::movers::frames::FRAME_MAX;
use fabric::Rank;

/// Bytes in frames that a rank may be ahead: two of the longest, that one is written while one is read.
const MOST: usize = 2 * FRAME_MAX;

/// After so long a rank waits for the other one's frames no longer: several times what both copies of the longest take. A clock counts, and not looks:
/// a rank that sleeps between two has few of them.
const PATIENCE_NS: u64 = 200_000;

/// Exchanges of frames that are under way, one for each rank from which frames are to come.
#[derive(Default, Debug)]
pub(crate) struct Leads(Vec<Lead>);

#[derive(Debug)]
struct Lead {
    peer: Rank,
    /// Bytes that are to come.
    awaited: usize,
    /// Bytes that have been sent since any were to come, less those that have come.
    ahead: usize,
    /// Since when a frame has been kept back, if one is.
    waits_since_ns: Option<u64>,
}

impl Leads {
    /// So many bytes are to come in frames.
    pub fn awaits(&mut self, peer: Rank, len: usize) {
        match self.of(peer) {
            Some(lead) => lead.awaited += len,
            None => self.0.push(Lead { peer, awaited: len, ahead: 0, waits_since_ns: None }),
        }
    }

    /// A frame has come.
    pub fn came(&mut self, peer: Rank, len: usize) {
        let Some(lead) = self.of(peer) else { return };
        lead.ahead = lead.ahead.saturating_sub(len);
        lead.awaited = lead.awaited.saturating_sub(len);
        lead.waits_since_ns = None;
        if lead.awaited == 0 {
            self.forget(peer);
        }
    }

    /// A frame has left.
    pub fn sent(&mut self, peer: Rank, len: usize) {
        if let Some(lead) = self.of(peer) {
            lead.ahead += len;
        }
    }

    /// Whether a frame would lead too far, and is to be kept back for now. Who has waited for long leads alone from here on.
    pub fn keeps_back(&mut self, peer: Rank, len: usize, now_ns: impl FnOnce() -> u64) -> bool {
        let Some(lead) = self.of(peer).filter(|lead| lead.ahead > 0 && lead.ahead + len > MOST) else {
            return false;
        };
        let now_ns = now_ns();
        let waits = now_ns.saturating_sub(*lead.waits_since_ns.get_or_insert(now_ns)) < PATIENCE_NS;
        if !waits {
            self.forget(peer);
        }
        waits
    }

    fn forget(&mut self, peer: Rank) {
        self.0.retain(|lead| lead.peer != peer);
    }

    fn of(&mut self, peer: Rank) -> Option<&mut Lead> {
        self.0.iter_mut().find(|lead| lead.peer == peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: usize = 16 << 10;

    #[test]
    fn who_sends_alone_leads_nobody() {
        let mut leads = Leads::default();
        (0..100).for_each(|_| leads.sent(1, FRAME));
        assert!(!leads.keeps_back(1, FRAME, || 0));
        leads.came(1, FRAME);
        assert!(!leads.keeps_back(1, FRAME, || 0));
    }

    /// As many bytes as two of the longest have, until some have come.
    #[test]
    fn in_an_exchange_frames_leave_for_those_that_come() {
        let mut leads = Leads::default();
        leads.awaits(1, 12 * FRAME);
        leads.awaits(2, FRAME);
        for _ in 0..8 {
            assert!(!leads.keeps_back(1, FRAME, || 0));
            leads.sent(1, FRAME);
        }
        assert!(
            leads.keeps_back(1, FRAME, || 0)
                && !leads.keeps_back(2, MOST, || 0)
                && !leads.keeps_back(3, FRAME, || 0)
        );
        leads.came(1, FRAME);
        assert!(!leads.keeps_back(1, FRAME, || 0));
        leads.sent(1, FRAME);
        assert!(leads.keeps_back(1, 1, || 0));
        (0..11).for_each(|_| leads.came(1, FRAME));
        assert!(
            !leads.keeps_back(1, FRAME, || 0) && leads.0.len() == 1,
            "nothing more is to come from there"
        );
        leads.forget(2);
        assert!(leads.0.is_empty());
    }

    /// Who has waited for long goes on alone, whatever comes or does not; each frame that comes begins the wait anew.
    #[test]
    fn nobody_waits_for_ever() {
        let mut leads = Leads::default();
        leads.awaits(1, 1 << 30);
        leads.sent(1, 2 * MOST);
        let mut kept_at = |ns| leads.keeps_back(1, MOST, || ns);
        assert!(kept_at(5) && kept_at(PATIENCE_NS + 4));
        leads.came(1, FRAME);
        let mut kept_at = |ns| leads.keeps_back(1, MOST, || ns);
        assert!(kept_at(PATIENCE_NS + 5) && kept_at(2 * PATIENCE_NS + 4));
        assert!(!kept_at(2 * PATIENCE_NS + 5) && !kept_at(2 * PATIENCE_NS + 6));
    }

    /// A frame longer than that leaves alone.
    #[test]
    fn the_first_frame_leaves_whatever_its_length() {
        let mut leads = Leads::default();
        leads.awaits(1, 1 << 30);
        assert!(!leads.keeps_back(1, 2 * MOST, || 0));
        leads.sent(1, 2 * MOST);
        assert!(leads.keeps_back(1, 1, || 0));
    }
}
