//! Memory of a window that ranks of one host share beside the job's segment: under a random name for the moment it
//! takes to map it, and under none afterwards.

use std::path::{Path, PathBuf};

use crate::segment::{self, Segment};

/// Mapped memory of a window; unmapped when it is dropped.
pub struct WindowMemory(Segment);

impl WindowMemory {
    /// Makes `len` bytes, all zero, in a file of `dir` that has memory behind it; the file has to be removed when all
    /// have mapped it.
    pub fn create(len: usize, dir: &Path, prefix: &str) -> Result<(WindowMemory, PathBuf), String> {
        let (segment, path) = segment::create_named(len, dir, prefix)?;
        segment.back(0, len).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Ok((WindowMemory(segment), path))
    }

    /// Maps what another rank made.
    pub fn open(len: usize, path: &Path, dir: &Path) -> Result<WindowMemory, String> {
        segment::open_named(len, path, dir).map(WindowMemory)
    }

    /// Where it lies.
    pub fn address(&self) -> usize {
        self.0.at(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_show_the_same_bytes() {
        let dir = Path::new("/dev/shm");
        let (one, path) = WindowMemory::create(8192, dir, "tern-test-window").unwrap();
        let other = WindowMemory::open(8192, &path, dir).unwrap();
        assert!(WindowMemory::open(4096, &path, dir).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(WindowMemory::open(8192, &path, dir).is_err());
        let at = |memory: &WindowMemory| (memory.address() + 100) as *mut u32;
        // SAFETY: inside both mappings, aligned, used by nobody else.
        unsafe {
            at(&one).write_volatile(77);
            assert_eq!(at(&other).read_volatile(), 77);
        }
    }
}
