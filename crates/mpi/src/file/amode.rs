//! How a file is opened (MPI 5.0 section 14.2.1), and where a pointer is moved from.

use crate::error::{Class, Result, fail};

/// Bits of `amode`; the numbers are those of the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Amode(i32);

impl Amode {
    /// `MPI_MODE_APPEND`: all pointers begin at the end.
    pub const APPEND: i32 = 1;
    /// `MPI_MODE_CREATE`.
    pub const CREATE: i32 = 2;
    /// `MPI_MODE_DELETE_ON_CLOSE`.
    pub const DELETE_ON_CLOSE: i32 = 4;
    /// `MPI_MODE_EXCL`.
    pub const EXCL: i32 = 8;
    /// `MPI_MODE_RDONLY`.
    pub const RDONLY: i32 = 16;
    /// `MPI_MODE_RDWR`.
    pub const RDWR: i32 = 32;
    /// `MPI_MODE_SEQUENTIAL`: only the shared pointer is used.
    pub const SEQUENTIAL: i32 = 64;
    /// `MPI_MODE_UNIQUE_OPEN`: nobody else opens it; nothing is gained by it here.
    pub const UNIQUE_OPEN: i32 = 128;
    /// `MPI_MODE_WRONLY`.
    pub const WRONLY: i32 = 256;

    /// The bits the program gave, unless they contradict each other.
    pub fn new(bits: i32) -> Result<Amode> {
        let amode = Amode(bits);
        let ways = [Amode::RDONLY, Amode::RDWR, Amode::WRONLY].iter().filter(|way| amode.has(**way)).count();
        let complaint = if bits & !0x1ff != 0 {
            "has bits that mean nothing"
        } else if ways != 1 {
            "must have exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR, MPI_MODE_WRONLY"
        } else if amode.has(Amode::RDONLY) && bits & (Amode::CREATE | Amode::EXCL) != 0 {
            "has MPI_MODE_RDONLY, which excludes MPI_MODE_CREATE and MPI_MODE_EXCL"
        } else if amode.has(Amode::RDWR) && amode.has(Amode::SEQUENTIAL) {
            "has MPI_MODE_RDWR, which excludes MPI_MODE_SEQUENTIAL"
        } else {
            return Ok(amode);
        };
        fail(Class::AMODE, format!("argument `amode` is {bits}: it {complaint}"))
    }

    /// As the program gave them.
    pub fn bits(self) -> i32 {
        self.0
    }

    /// Whether this bit is set.
    pub fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }

    /// Fails unless the file may be read; the text goes on behind the name of the file ([`super::of_file`]).
    pub fn check_read(self) -> Result {
        if self.has(Amode::WRONLY) {
            return fail(Class::ACCESS, "was opened with MPI_MODE_WRONLY");
        }
        Ok(())
    }

    /// As [`Amode::check_read`], of writing.
    pub fn check_write(self) -> Result {
        if self.has(Amode::RDONLY) {
            return fail(Class::READ_ONLY, "was opened with MPI_MODE_RDONLY");
        }
        Ok(())
    }

    /// As [`Amode::check_read`], of what is no access by the shared pointer: nor is that one told or moved.
    pub fn check_random(self) -> Result {
        if self.has(Amode::SEQUENTIAL) {
            let text =
                "was opened with MPI_MODE_SEQUENTIAL, which allows accesses by the shared pointer only";
            return fail(Class::UNSUPPORTED_OPERATION, text);
        }
        Ok(())
    }
}

/// What a distance of MPI_File_seek counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whence {
    /// `MPI_SEEK_SET`: the start of the view.
    Start,
    /// `MPI_SEEK_CUR`: where the pointer is.
    Current,
    /// `MPI_SEEK_END`: the end of the file.
    End,
}

impl Whence {
    /// What the number in C stands for.
    pub fn new(whence: i32) -> Result<Whence> {
        match whence {
            401 => Ok(Whence::Current),
            402 => Ok(Whence::End),
            403 => Ok(Whence::Start),
            other => fail(
                Class::ARG,
                format!("argument `whence` is {other}, must be MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictions_are_refused() {
        for good in [16, 32, 256, 32 | 2, 256 | 2 | 8, 16 | 64, 256 | 64, 32 | 4 | 128 | 1] {
            assert_eq!(Amode::new(good).unwrap().bits(), good);
        }
        for bad in [0, 2, 16 | 32, 16 | 256, 16 | 2, 16 | 8, 32 | 64, 32 | 512, -1] {
            assert_eq!(Amode::new(bad).unwrap_err().class, Class::AMODE, "{bad}");
        }
        let write_only = Amode::new(256).unwrap();
        assert_eq!(write_only.check_read().unwrap_err().class, Class::ACCESS);
        assert_eq!(Amode::new(16).unwrap().check_write().unwrap_err().class, Class::READ_ONLY);
        assert_eq!(Whence::new(0).unwrap_err().class, Class::ARG);
    }
}
