//! What may be done with registered memory, and the keys that name it.

use crate::device::Span;
use crate::verbs::{Local, Remote};

/// What registered memory is registered for; several are joined by `|`. All of it may be sent and written to peers by its own rank.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights(u8);

impl Rights {
    /// Nothing more.
    pub const NONE: Rights = Rights(0);
    /// The adapter may place there what its own rank reads from peers and receives from them.
    pub const LOCAL_WRITE: Rights = Rights(1);
    /// Peers may read it.
    pub const REMOTE_READ: Rights = Rights(2);
    /// Peers may write to it, so that the adapter may write there.
    pub const REMOTE_WRITE: Rights = Rights(4 | Rights::LOCAL_WRITE.0);
    /// Peers may change words of it, and likewise.
    pub const REMOTE_ATOMIC: Rights = Rights(8 | Rights::LOCAL_WRITE.0);
    /// Everything: memory of windows.
    pub const ALL: Rights = Rights(15);

    /// Whether these are all that are `needed`, or more.
    #[inline(always)]
    pub const fn include(self, needed: Rights) -> bool {
        self.0 & needed.0 == needed.0
    }
}

impl std::ops::BitOr for Rights {
    type Output = Rights;
    fn bitor(self, other: Rights) -> Rights {
        Rights(self.0 | other.0)
    }
}

impl std::fmt::Debug for Rights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = ["local write", "remote read", "remote write", "remote atomic"].into_iter().enumerate();
        f.debug_set().entries(names.filter(|(at, _)| self.0 >> at & 1 != 0).map(|(_, name)| name)).finish()
    }
}

/// The keys of a registration: no other one that its adapter has at that time has either of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Region {
    /// By which its own rank names it in what it posts.
    pub local: u32,
    /// By which peers do: the only one that is ever told them.
    pub remote: u32,
}

impl Region {
    /// Of an adapter that has one key for both.
    pub const fn of(key: u32) -> Region {
        Region { local: key, remote: key }
    }

    /// Memory inside it, for this rank to post.
    #[inline(always)]
    pub const fn local(self, span: Span) -> Local {
        Local { span, key: self.local }
    }

    /// Memory inside it that begins at `addr`, for a peer.
    #[inline(always)]
    pub const fn remote(self, addr: usize) -> Remote {
        Remote { addr: addr as u64, key: self.remote }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_write_from_afar_lets_the_adapter_write() {
        for right in [Rights::REMOTE_WRITE, Rights::REMOTE_ATOMIC] {
            assert!(right.include(Rights::LOCAL_WRITE) && !right.include(Rights::REMOTE_READ));
        }
        assert!(!Rights::REMOTE_READ.include(Rights::LOCAL_WRITE));
        assert!(!Rights::REMOTE_WRITE.include(Rights::REMOTE_ATOMIC));
        let all = Rights::REMOTE_READ | Rights::REMOTE_WRITE | Rights::REMOTE_ATOMIC;
        assert!(all == Rights::ALL && all.include(Rights::NONE) && !Rights::NONE.include(all));
    }
}
