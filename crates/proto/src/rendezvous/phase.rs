//! How far a message has come at one of its sides: however the two agree, and whoever moves the bytes.
//!
//! ```text
//!  send     Queued ── RTS leaves ──▶ Offered ── met ──▶ Moving ────────────────▶ Done
//!             │  └──── an RTR is taken, or eager ──────▶  │ ▲
//!             │                         │ cancel: asked   │ │ refused: others move it
//!             │                         ▼                 │ └─┘
//!             │                     Withdrawn ── met ──▶ Moving
//!             │                         └── not met ─────────────────────────────▶ Done
//!             └── cancelled, or left as a whole ─────────────────────────────────▶ Done
//!
//!  receive  Posted ── RTS, or its RTR is taken ────────▶ Moving ────────────────▶ Done
//!             │ cancel: asked, for an RTR is out          ▲
//!             ▼                                           │
//!          Withdrawn ── its RTR was taken ────────────────┘
//!             └── given up, or met by a message that is there ───────────────────▶ Done
//!
//!  both     Queued, Offered, Withdrawn, Moving ── it cannot go on ──▶ Draining ─▶ Done
//! ```
//! A message is *matched* at the step to `Moving`: there is nothing to wait for between the two. `Draining` is needed only
//! where adapters may still touch memory ([`super::draining`]).

/// Where one side of a message stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// A send that waits for room.
    Queued,
    /// Its RTS is out.
    Offered,
    /// A receive that no message has met.
    Posted,
    /// To be cancelled, if the other side says that nothing has met it.
    Withdrawn,
    /// Both sides have been found; the bytes move, or are about to.
    Moving,
    /// It has failed; the memory is not free yet.
    Draining,
    /// Ended.
    Done,
}

impl Phase {
    /// Whether one may follow another.
    pub fn may_become(self, next: Phase) -> bool {
        use Phase::*;
        match self {
            // Again: what it is to do first changes.
            Queued => matches!(next, Queued | Offered | Moving | Draining | Done),
            Offered => matches!(next, Withdrawn | Moving | Draining | Done),
            // Again: its RTR has left.
            Posted => matches!(next, Posted | Withdrawn | Moving | Done),
            Withdrawn => matches!(next, Moving | Draining | Done),
            // Again: who was to move it cannot, and others do.
            Moving => matches!(next, Moving | Draining | Done),
            // Again: the other side says that it has failed, too.
            Draining => matches!(next, Draining | Done),
            Done => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Phase::*;
    use super::*;

    const ALL: [Phase; 7] = [Queued, Offered, Posted, Withdrawn, Moving, Draining, Done];

    /// Every pair, as a person reads it: a row says what may follow.
    #[test]
    fn what_may_follow() {
        let table = ALL.map(|from| ALL.map(|to| if from.may_become(to) { 'x' } else { '.' }));
        let table: Vec<String> = table.iter().map(|row| row.iter().collect()).collect();
        assert_eq!(
            table,
            [
                // Queued Offered Posted Withdrawn Moving Draining Done
                "xx..xxx", // Queued
                "...xxxx", // Offered
                "..xxx.x", // Posted
                "....xxx", // Withdrawn
                "....xxx", // Moving
                ".....xx", // Draining
                ".......", // Done
            ]
        );
    }

    /// A send is never a receive, nothing that has been matched waits again, and whatever has begun can end.
    #[test]
    fn phases_go_one_way() {
        let reaches = |from: Phase| {
            let mut known = vec![from];
            let mut at = 0;
            while at < known.len() {
                let next = ALL.iter().filter(|next| known[at].may_become(**next));
                let new: Vec<Phase> = next.filter(|next| !known.contains(next)).copied().collect();
                known.extend(new);
                at += 1;
            }
            known
        };
        assert!(ALL.iter().all(|from| reaches(*from).contains(&Done)));
        for waits in [Queued, Offered, Posted, Withdrawn] {
            assert!(!reaches(Moving).contains(&waits) && !reaches(Draining).contains(&waits));
        }
        assert!(!reaches(Queued).contains(&Posted));
        assert!(!reaches(Posted).contains(&Queued) && !reaches(Posted).contains(&Offered));
    }
}
