//! One open file. Reads and writes name their offset, so threads share it; locked sections exclude the threads of
//! this process by a mutex and everybody else by a lock of the kernel.

use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind, IoSlice};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use crate::scatter::{By, Scatter};
use crate::sys::{self, Lock, PARTS_MAX};
use crate::{AccessCosts, Fault, Piece, Result, Style};

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    /// It will be read.
    pub read: bool,
    /// It will be written.
    pub write: bool,
    /// Made if it is not there.
    pub create: bool,
    /// Must not be there.
    pub exclusive: bool,
    /// Permissions of a new file, before the process's mask.
    pub permissions: u32,
    /// When accesses are locked that need not be.
    pub locking: Locking,
}

/// When each access of a file is a locked section, atomic or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Locking {
    /// On file systems that need it. Clients of NFS keep pages for themselves: they write a page back as a whole if they have read
    /// it and have no lock, with what others had written into it meanwhile undone, and read what they had before. To lock is to
    /// ask the server anew, to unlock to write back.
    #[default]
    WhereNeeded,
    /// On all.
    Always,
    /// On none.
    Never,
}

impl Locking {
    /// What the word of the setting says.
    pub fn named(word: &str) -> Locking {
        match word {
            "always" => Locking::Always,
            "never" => Locking::Never,
            _ => Locking::WhereNeeded,
        }
    }

    fn holds(self, file: &fs::File) -> bool {
        match self {
            Locking::WhereNeeded => sys::is_on_nfs(file),
            Locking::Always => true,
            Locking::Never => false,
        }
    }
}

/// An open file.
#[derive(Debug)]
pub struct File {
    file: fs::File,
    path: PathBuf,
    gate: Mutex<()>,
    /// Whether accesses are locked that need not be.
    is_locked: bool,
    /// Whether it can be read, as a shared lock wants it.
    is_read: bool,
    /// What reading from it costs.
    pub reading: AccessCosts,
    /// What writing to it costs.
    pub writing: AccessCosts,
    /// How it is written in many pieces.
    scatter: Scatter,
}

fn refused(path: &Path, errno: i32, doing: &str) -> Fault {
    Fault::new(format_args!("{doing} {}", path.display()), &Error::from_raw_os_error(errno))
}

/// Removes a file's name.
pub fn remove(path: &Path) -> Result {
    fs::remove_file(path).map_err(|cause| Fault::new(format_args!("delete {}", path.display()), &cause))
}

impl File {
    /// Opens a file. Directories, pipes and sockets are refused, and opening one does not wait.
    pub fn open(path: &Path, how: How) -> Result<File> {
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => return Err(refused(path, libc::EISDIR, "open")),
            Ok(meta) if meta.file_type().is_fifo() || meta.file_type().is_socket() => {
                return Err(refused(path, libc::ESPIPE, "open"));
            }
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(how.read).write(how.write).mode(how.permissions);
        // The standard library wants access to write for both, MPI has seen to that.
        options.create(how.create && !how.exclusive).create_new(how.create && how.exclusive);
        match options.open(path) {
            Ok(file) => Ok(File::of(file, path, how)),
            Err(cause) => Err(Fault::new(format_args!("open {}", path.display()), &cause)),
        }
    }

    fn of(file: fs::File, path: &Path, how: How) -> File {
        let (gate, is_locked) = (Mutex::new(()), how.locking.holds(&file));
        File {
            file,
            is_locked,
            is_read: how.read,
            path: path.to_path_buf(),
            gate,
            reading: AccessCosts::default(),
            writing: AccessCosts::default(),
            scatter: Scatter::default(),
        }
    }

    /// The name it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and number: the same for all names of one file.
    pub fn identity(&self) -> Result<(u64, u64)> {
        let meta = self.file.metadata().map_err(|cause| self.fault("look at", &cause))?;
        Ok((meta.dev(), meta.ino()))
    }

    /// What its owner, its group and others may do.
    pub fn permissions(&self) -> Result<u32> {
        let meta = self.file.metadata().map_err(|cause| self.fault("look at", &cause))?;
        Ok(meta.mode() & 0o7777)
    }

    /// Its length in bytes.
    pub fn size(&self) -> Result<u64> {
        let len =
            || self.file.metadata().map(|meta| meta.len()).map_err(|cause| self.fault("look at", &cause));
        // Where locks are needed the length may be remembered from before, too.
        self.guarded(0..1, self.is_read, len)
    }

    /// Makes it shorter or longer.
    pub fn set_size(&self, size: u64) -> Result {
        self.file
            .set_len(size)
            .map_err(|cause| self.fault(&format!("set the size to {size} bytes of"), &cause))
    }

    /// Gives the first `size` bytes room on the device.
    pub fn preallocate(&self, size: u64) -> Result {
        if size == 0 {
            return Ok(());
        }
        let room = || {
            sys::preallocate(&self.file, size)
                .map_err(|cause| self.fault(&format!("get room for {size} bytes of"), &cause))
        };
        // The C library writes into each block where the file system cannot do it.
        self.guarded(0..size, false, room)
    }

    /// Waits until all that was written is on the device.
    pub fn sync(&self) -> Result {
        self.file.sync_all().or_else(|cause| match cause.raw_os_error() {
            // What cannot be synchronised has nothing to lose: /dev/null.
            Some(libc::EINVAL) => Ok(()),
            _ => Err(self.fault("synchronise", &cause)),
        })
    }

    /// Says that a range will be read soon.
    pub fn will_be_read(&self, range: Range<u64>) {
        sys::will_be_read(&self.file, &range);
    }

    /// Says in what order it will be read.
    pub fn will_be_read_in(&self, style: Style) {
        sys::will_be_read_in(&self.file, style);
    }

    /// Reads from `offset` on until the buffer is full or the file ends; how many bytes came.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let begun = Instant::now();
        let mut done = 0;
        while done < buffer.len() {
            match read_some(&self.file, &mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => {
                    return Err(self.fault_at("read", buffer.len() - done, offset + done as u64, &cause));
                }
            }
        }
        self.reading.transferred(done as u64, begun.elapsed().as_nanos() as u64);
        Ok(done)
    }

    /// Writes all bytes from `offset` on.
    pub fn write_at(&self, data: &[u8], offset: u64) -> Result {
        let begun = Instant::now();
        let mut done = 0;
        while done < data.len() {
            let written = write_some(&self.file, &data[done..], offset + done as u64);
            done += self.written(written, data.len() - done, offset + done as u64)?;
        }
        self.writing.transferred(done as u64, begun.elapsed().as_nanos() as u64);
        Ok(())
    }

    /// Writes up to [`PARTS_MAX`] pieces with what belongs into them.
    pub fn write_pieces(&self, parts: &[(Piece, &[u8])]) -> Result {
        // A mapping is read as well as written, and knows of no lock.
        let may_map = self.is_read && !self.is_locked;
        let (way, kind) = if may_map { self.scatter.way(&self.file, parts) } else { (By::Calls, None) };
        let begun = kind.map(|_| Instant::now());
        match way {
            By::Calls => self.write_each(parts)?,
            By::Mapping => self.write_mapped(parts)?,
        }
        if let (Some(kind), Some(begun)) = (kind, begun) {
            let (bytes, took_ns) =
                (parts.iter().map(|(piece, _)| piece.len).sum(), begun.elapsed().as_nanos() as u64);
            self.scatter.took(kind, way, bytes, took_ns);
            if way == By::Mapping {
                let count = parts.len() as u64;
                self.writing.transferred(bytes / count, took_ns / count);
            }
        }
        Ok(())
    }

    fn write_each(&self, parts: &[(Piece, &[u8])]) -> Result {
        parts.iter().try_for_each(|(piece, bytes)| self.write_at(bytes, piece.offset))
    }

    pub(crate) fn write_mapped(&self, parts: &[(Piece, &[u8])]) -> Result {
        let Some(((last, bytes), others)) = parts.split_last() else { return Ok(()) };
        self.write_at(bytes, last.offset)?;
        let stored = self.scatter.store(&self.file, others);
        self.write_each(&others[stored..])
    }

    /// Writes what lies in several places, all of it, one behind the other from `offset` on.
    pub fn write_gathered_at(&self, mut parts: &mut [IoSlice], offset: u64) -> Result {
        let begun = Instant::now();
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let mut done = 0;
        while done < len {
            let at_once = &parts[..parts.len().min(PARTS_MAX)];
            let written = sys::write_gathered(&self.file, at_once, offset + done as u64);
            let count = self.written(written, len - done, offset + done as u64)?;
            IoSlice::advance_slices(&mut parts, count);
            done += count;
        }
        self.writing.transferred(done as u64, begun.elapsed().as_nanos() as u64);
        Ok(())
    }

    /// How many bytes were written of so many from `offset` on.
    fn written(&self, written: std::io::Result<usize>, len: usize, offset: u64) -> Result<usize> {
        match written {
            Ok(0) => {
                let cause = Error::from_raw_os_error(libc::ENOSPC);
                Err(self.fault_at("write", len, offset, &cause))
            }
            Ok(count) => Ok(count),
            Err(cause) if cause.kind() == ErrorKind::Interrupted => Ok(0),
            Err(cause) => Err(self.fault_at("write", len, offset, &cause)),
        }
    }

    /// Calls `f` while nobody else has a lock on this range, or, if it is to be shared, no exclusive one.
    pub fn locked<R>(&self, range: Range<u64>, shared: bool, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let gate = self.gate.lock().expect("nobody panics in a locked section");
        let kind = if shared { Lock::Shared } else { Lock::Exclusive };
        let doing = || format!("lock bytes {} to {} of", range.start, range.end);
        sys::lock(&self.file, &range, kind).map_err(|cause| self.fault(&doing(), &cause))?;
        let result = f();
        let freed = sys::lock(&self.file, &range, Lock::Free);
        drop(gate);
        let value = result?;
        freed.map_err(|cause| self.fault("unlock", &cause))?;
        Ok(value)
    }

    /// Calls `f`, which accesses this range, in a locked section if the file needs that.
    pub fn guarded<R>(&self, range: Range<u64>, shared: bool, f: impl FnOnce() -> Result<R>) -> Result<R> {
        if self.is_locked && !range.is_empty() { self.locked(range, shared, f) } else { f() }
    }

    /// Whether accesses are locked that need not be.
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    fn fault(&self, doing: &str, cause: &Error) -> Fault {
        Fault::new(format_args!("{doing} {}", self.path.display()), cause)
    }

    fn fault_at(&self, verb: &str, len: usize, offset: u64, cause: &Error) -> Fault {
        self.fault(&format!("{verb} {len} bytes at offset {offset} of"), cause)
    }
}

/// Reads some bytes from `offset` on: by way of other memory where the kernel would copy many times as long straight into place
/// ([`memcopy`]).
fn read_some(file: &std::fs::File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    if !memcopy::wants_detour(buffer.as_ptr() as usize, offset as usize, buffer.len()) {
        return file.read_at(buffer, offset);
    }
    memcopy::by_way_of(offset as usize, |room| {
        let len = buffer.len().min(room.len());
        let came = file.read_at(&mut room[..len], offset)?;
        memcopy::copy_bytes(&mut buffer[..came], &room[..came]);
        Ok(came)
    })
}

/// Writes some bytes from `offset` on, in the same way.
fn write_some(file: &std::fs::File, data: &[u8], offset: u64) -> std::io::Result<usize> {
    if !memcopy::wants_detour(offset as usize, data.as_ptr() as usize, data.len()) {
        return file.write_at(data, offset);
    }
    memcopy::by_way_of(offset as usize, |room| {
        let len = data.len().min(room.len());
        memcopy::copy_bytes(&mut room[..len], &data[..len]);
        file.write_at(&room[..len], offset)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A file that is gone when it is dropped.
    pub struct Temporary(pub PathBuf);

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    pub const BOTH: How = How {
        read: true,
        write: true,
        create: true,
        exclusive: false,
        permissions: 0o600,
        locking: Locking::Never,
    };

    pub fn temporary(name: &str) -> (File, Temporary) {
        temporary_in(&std::env::temp_dir(), name)
    }

    /// Such a file where temporary files lie, and one in the file system of memory, as far as a mapping of them is as good as calls.
    pub fn temporaries(name: &str) -> Vec<(File, Temporary)> {
        let mut places = vec![std::env::temp_dir(), PathBuf::from("/dev/shm")];
        places.dedup();
        let files = places.iter().filter(|place| place.is_dir()).map(|place| temporary_in(place, name));
        files.filter(|(file, _)| sys::may_be_mapped(&file.file)).collect()
    }

    fn temporary_in(place: &Path, name: &str) -> (File, Temporary) {
        let path = place.join(format!("tern-disk-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        (File::open(&path, BOTH).unwrap(), Temporary(path))
    }

    #[test]
    fn what_lies_behind_the_end_is_not_read() {
        let (file, _gone) = temporary("end");
        file.write_at(b"hello", 3).unwrap();
        let mut buffer = [9; 10];
        assert_eq!(file.read_at(&mut buffer, 1).unwrap(), 7);
        assert_eq!(&buffer, b"\0\0hello\x09\x09\x09");
        assert_eq!((file.read_at(&mut buffer, 8).unwrap(), file.size().unwrap()), (0, 8));
        file.preallocate(20).unwrap();
        file.preallocate(5).unwrap();
        assert_eq!(file.size().unwrap(), 20);
    }

    /// Wherever they lie in memory and in the file, longer than one detour and shorter.
    #[test]
    fn bytes_arrive_that_lie_close_behind_their_place() {
        memcopy::assume_slow(true);
        let (file, _gone) = temporary("close");
        let mut data = memcopy::Room::new(310_000);
        for (at, offset, len) in
            [(16, 0, 300_000), (0, 16, 300_000), (0, 4127, 5000), (31, 8192, memcopy::DETOUR), (0, 1, 100)]
        {
            data.iter_mut().enumerate().for_each(|(k, byte)| *byte = ((k * 7 + len) % 251) as u8);
            file.write_at(&data[at..at + len], offset).unwrap();
            for to in [at, at + 16] {
                let mut back = memcopy::Room::new(310_000);
                assert_eq!(file.read_at(&mut back[to..to + len], offset).unwrap(), len);
                assert!(back[to..to + len] == data[at..at + len], "{at} {offset} {len} {to}");
                assert!(back[..to].iter().chain(&back[to + len..]).all(|byte| *byte == 0));
            }
        }
    }

    #[test]
    fn what_lies_in_many_places_is_written_as_one_run() {
        let (file, _gone) = temporary("gathered");
        let data: Vec<u8> = (0..10_000u32).map(|i| (i * 7 % 251) as u8).collect();
        // More than one call can take, some of them empty.
        let mut parts: Vec<IoSlice> = data.chunks(3).flat_map(|part| [part, &[]]).map(IoSlice::new).collect();
        file.write_gathered_at(&mut parts, 5).unwrap();
        let mut back = vec![0; 10_010];
        assert_eq!(file.read_at(&mut back, 0).unwrap(), 10_005);
        assert_eq!(back[5..10_005], data);
        file.write_gathered_at(&mut [], 5).unwrap();
        let reader = File::open(file.path(), How { write: false, create: false, ..BOTH }).unwrap();
        let fault = reader.write_gathered_at(&mut [IoSlice::new(b"x")], 77).unwrap_err();
        assert!(fault.text.contains("write 1 bytes at offset 77 of "), "{fault:?}");
    }

    #[test]
    fn refusals_name_the_file_and_what_was_tried() {
        let path = Path::new("/nonexistent/x");
        let fault = File::open(path, BOTH).unwrap_err();
        assert!(
            fault.errno == libc::ENOENT && fault.text.starts_with("cannot open /nonexistent/x: "),
            "{fault:?}"
        );
        assert_eq!(File::open(Path::new("/"), BOTH).unwrap_err().errno, libc::EISDIR);
        let (_file, gone) = temporary("reader");
        let reader = File::open(&gone.0, How { write: false, create: false, ..BOTH }).unwrap();
        let fault = reader.write_at(b"x", 77).unwrap_err();
        assert!(fault.text.contains("write 1 bytes at offset 77 of "), "{fault:?}");
        let again = File::open(&gone.0, How { exclusive: true, ..BOTH }).unwrap_err();
        assert_eq!(again.errno, libc::EEXIST);
    }

    #[test]
    fn a_section_that_needs_it_is_locked_and_no_other() {
        let (plain, gone) = temporary("guard");
        let how = How { locking: Locking::Always, ..BOTH };
        let (one, two) = (File::open(&gone.0, how).unwrap(), File::open(&gone.0, how).unwrap());
        assert!(one.is_locked() && !plain.is_locked());
        let is_free = |file: &File| sys::try_lock(&file.file, &(0..8), Lock::Exclusive).unwrap();
        one.guarded(4..12, false, || {
            assert!(!is_free(&two), "another open of the file must not get in");
            Ok(())
        })
        .unwrap();
        assert!(one.guarded(8..12, false, || Ok(is_free(&two))).unwrap(), "it is another range");
        sys::lock(&two.file, &(0..8), Lock::Free).unwrap();
        assert!(plain.guarded(4..12, false, || Ok(is_free(&two))).unwrap(), "this one needs none");
        sys::lock(&two.file, &(0..8), Lock::Free).unwrap();
        // Nothing is left behind, and a writer that may not read is not asked for a shared lock.
        let writer = File::open(&gone.0, How { read: false, ..how }).unwrap();
        writer.write_at(b"hello", 0).unwrap();
        assert_eq!((writer.size().unwrap(), is_free(&two)), (5, true));
    }

    #[test]
    fn two_opens_of_one_process_exclude_each_other() {
        let (one, gone) = temporary("lock");
        let two = File::open(&gone.0, BOTH).unwrap();
        one.write_at(&0u64.to_ne_bytes(), 0).unwrap();
        let add = |file: &File| {
            for _ in 0..500 {
                file.locked(0..8, false, || {
                    let mut word = [0; 8];
                    file.read_at(&mut word, 0)?;
                    file.write_at(&(u64::from_ne_bytes(word) + 1).to_ne_bytes(), 0)
                })
                .unwrap();
            }
        };
        std::thread::scope(|scope| {
            for file in [&one, &one, &two] {
                scope.spawn(move || add(file));
            }
        });
        let mut word = [0; 8];
        one.read_at(&mut word, 0).unwrap();
        assert_eq!(u64::from_ne_bytes(word), 1500);
    }
}
