//! What may wait so that several messages leave by one system call.
//!
//! The first one to a peer between two looks leaves at once, alone: nobody waits on a quiet link. What follows it before this
//! rank looks around is one of many, and waits for the others.

/// Messages of one look that leave at once, each alone: further ones wait for each other. With 2, a fifth less of 8 bytes per second.
const FEW: u32 = 1;
/// So many do not wait for more: the peer has something to do meanwhile. 16 and 64 are slower by a tenth.
const MANY: usize = 32;
/// Nor do so many bytes: they fill a packet of the kernel (64 KiB, GSO), so more would not spare anything.
const FULL: usize = 64 << 10;
/// What is longer does not wait at all: of its time the system call is the least part. Frames are shorter.
pub const LONG: usize = (16 << 10) + 64;

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Burst {
    /// The look in which something was posted last, how much of that has left alone, and how much waits.
    look: u32,
    few: u32,
    waiting: usize,
    bytes: usize,
}

impl Burst {
    /// Counts what has just been posted, in this look: whether it may wait for more to leave with.
    pub fn may_wait(&mut self, look: u32) -> bool {
        if self.look != look {
            (self.look, self.few) = (look, 0);
        }
        self.few = self.few.saturating_add(1);
        self.few > FEW && self.waiting < MANY && self.bytes < FULL
    }

    /// Whether what is posted next, in this look, would.
    pub fn would_wait(&self, look: u32) -> bool {
        self.look == look && self.few >= FEW && self.waiting < MANY && self.bytes < FULL
    }

    /// Something was posted.
    pub fn posted(&mut self) {
        self.waiting += 1;
    }

    /// As [`Burst::posted`], of so many bytes.
    pub fn posted_bytes(&mut self, len: usize) {
        self.posted();
        self.bytes += len;
    }

    /// All that was posted has been offered to the socket.
    pub fn sent(&mut self) {
        (self.waiting, self.bytes) = (0, 0);
    }

    /// Whether something posted has not been offered to the socket.
    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ones_leave_alone_and_the_rest_together() {
        let mut burst = Burst::default();
        let mut calls = 0;
        for _ in 0..FEW as usize + 3 * MANY {
            burst.posted();
            if !burst.may_wait(7) {
                calls += 1;
                burst.sent();
            }
        }
        assert_eq!((calls, burst.is_waiting()), (FEW + 3, false));
        burst.posted();
        assert!(!burst.may_wait(8), "the first after a look");
    }

    #[test]
    fn a_packet_that_is_full_leaves() {
        let mut burst = Burst::default();
        let waits = [(); 6].map(|()| {
            burst.posted_bytes(LONG);
            let waits = burst.may_wait(1);
            if !waits {
                burst.sent();
            }
            waits
        });
        assert_eq!(waits, [false, true, true, true, false, true]);
    }
}
