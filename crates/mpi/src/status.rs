//! `MPI_Status` in the layout of the standard ABI: eight `int`, the last five of them ours.
//!
//! The count is kept in bytes; functions that ask for elements divide by the type's size. Its 64
//! bits lie in `internal[0]` (low) and `internal[1]` (high); `internal[2]` holds flags.

/// `MPI_ANY_SOURCE`.
pub const ANY_SOURCE: i32 = -1;
/// `MPI_ANY_TAG`.
pub const ANY_TAG: i32 = -2;

const CANCELLED: i32 = 1;

/// What a receive, probe or completed request reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Status {
    /// `MPI_SOURCE`.
    pub source: i32,
    /// `MPI_TAG`.
    pub tag: i32,
    /// `MPI_ERROR`, written only by operations that complete several requests.
    pub error: i32,
    internal: [i32; 5],
}

const _: () = assert!(std::mem::size_of::<Status>() == 32 && std::mem::align_of::<Status>() == 4);

impl Status {
    /// The status of operations that carry no message (MPI 5.0 section 3.7.3): any source, any
    /// tag, nothing received, not cancelled.
    pub const EMPTY: Status = Status::new(ANY_SOURCE, ANY_TAG, 0);

    /// The status of a receive from `MPI_PROC_NULL` (MPI 5.0 section 3.10).
    pub const PROC_NULL: Status = Status::new(crate::group::PROC_NULL, ANY_TAG, 0);

    /// The status of a message of `count_bytes`.
    #[inline]
    pub const fn new(source: i32, tag: i32, count_bytes: u64) -> Status {
        let (low, high) = (count_bytes as u32 as i32, (count_bytes >> 32) as i32);
        Status { source, tag, error: 0, internal: [low, high, 0, 0, 0] }
    }

    /// How many bytes were received.
    #[inline]
    pub const fn count_bytes(&self) -> u64 {
        self.internal[0] as u32 as u64 | (self.internal[1] as u32 as u64) << 32
    }

    /// `MPI_Status_set_elements`, in bytes.
    pub fn set_count_bytes(&mut self, count_bytes: u64) {
        self.internal[0] = count_bytes as u32 as i32;
        self.internal[1] = (count_bytes >> 32) as i32;
    }

    /// `MPI_Test_cancelled`.
    pub const fn is_cancelled(&self) -> bool {
        self.internal[2] & CANCELLED != 0
    }

    /// `MPI_Status_set_cancelled`.
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[2] =
            if cancelled { self.internal[2] | CANCELLED } else { self.internal[2] & !CANCELLED };
    }

    /// This status with an error code, for the operations that complete several requests.
    pub const fn with_error(mut self, error: i32) -> Status {
        self.error = error;
        self
    }

    /// As the eight integers of C or Fortran.
    pub const fn to_ints(self) -> [i32; 8] {
        let [a, b, c, d, e] = self.internal;
        [self.source, self.tag, self.error, a, b, c, d, e]
    }

    /// From the eight integers of C or Fortran; every value is accepted.
    pub const fn from_ints(ints: [i32; 8]) -> Status {
        let [source, tag, error, a, b, c, d, e] = ints;
        Status { source, tag, error, internal: [a, b, c, d, e] }
    }
}

impl Default for Status {
    fn default() -> Self {
        Status::EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_beyond_32_bits_and_flags_survive_the_layout() {
        for count in [0, 1, i32::MAX as u64 + 1, u32::MAX as u64, 1 << 40, u64::MAX] {
            let mut status = Status::new(3, 7, count).with_error(12);
            status.set_cancelled(true);
            let back = Status::from_ints(status.to_ints());
            assert_eq!((back, back.count_bytes(), back.is_cancelled()), (status, count, true));
            assert_eq!(back.to_ints()[..3], [3, 7, 12]);
            let mut cleared = back;
            cleared.set_cancelled(false);
            cleared.set_count_bytes(5);
            assert_eq!(cleared, Status::new(3, 7, 5).with_error(12));
        }
        assert_eq!(Status::EMPTY.to_ints(), [-1, -2, 0, 0, 0, 0, 0, 0]);
        assert_eq!((Status::PROC_NULL.source, Status::PROC_NULL.count_bytes()), (-3, 0));
    }
}
