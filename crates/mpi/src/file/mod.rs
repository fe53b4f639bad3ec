//! Files (MPI 5.0 chapter 14): what an open file is to a rank, and what the system's refusals are called.

mod amode;
mod datarep;
mod errand;
mod hints;
mod view;

use std::sync::Arc;

pub use amode::{Amode, Whence};
pub use datarep::{Conversion, Datarep, Sizes, UserRep};
pub use errand::Errand;
pub use hints::Hints;
pub use view::{Pieces, View};

use crate::error::{Class, Error, Result, fail};
use crate::handle::Handle;
use crate::objects::{Objects, unusable};

/// `MPI_FILE_NULL`.
pub const FILE_NULL: Handle = Handle(0x118);

/// An open file.
#[derive(Debug)]
pub struct File {
    /// A communicator of its own: that of MPI_File_open, duplicated.
    pub comm: Handle,
    /// What is below.
    pub disk: Arc<disk::File>,
    /// The bits it was opened with.
    pub amode: Amode,
    /// What the program sees of it.
    pub view: Arc<View>,
    /// The individual pointer, in etypes.
    pub position: i64,
    /// The shared pointer, in etypes; or why there is none.
    pub shared: Arc<std::result::Result<disk::Counter, String>>,
    /// Whether accesses are atomic (MPI 5.0 section 14.6.1).
    pub atomic: bool,
    /// Hints in force.
    pub hints: Hints,
    /// The split collective that has begun.
    pub split: Option<Split>,
}

/// A split collective between its two calls (MPI 5.0 section 14.4.5).
#[derive(Clone, Debug)]
pub struct Split {
    /// The name of the operation without `_begin`.
    pub name: &'static str,
    /// The buffer, which the second call names again.
    pub buf: usize,
    /// What the second call waits for.
    pub errand: Arc<Errand>,
}

impl File {
    /// Fails between the two calls of a split collective: no other collective access is permitted there, and what changes the
    /// file or its view has to wait for it (MPI 5.0 sections 14.2.4, 14.3, 14.4.5 and 14.6.1).
    pub fn check_whole(&self) -> Result {
        let Some(Split { name, .. }) = self.split else { return Ok(()) };
        let text = format!("is within a split collective: {name}_begin was called, and {name}_end was not");
        of_file(&self.disk, fail(Class::IO, text))
    }
}

/// Says which file is refused.
pub fn of_file(disk: &disk::File, checked: Result) -> Result {
    let name = |error: Error| format!("argument `fh`, {}, {}", disk.path().display(), error.text);
    checked.or_else(|error| fail(error.class, name(error)))
}

impl Objects {
    /// The file of a handle.
    pub fn file(&self, handle: Handle) -> Result<&File> {
        match self.files.get(handle) {
            Some(file) => Ok(file),
            None => fail(Class::FILE, unusable(handle, FILE_NULL, "MPI_FILE_NULL", "a file")),
        }
    }

    /// As [`Objects::file`], to change it.
    pub fn file_mut(&mut self, handle: Handle) -> Result<&mut File> {
        match self.files.get_mut(handle) {
            Some(file) => Ok(file),
            None => fail(Class::FILE, unusable(handle, FILE_NULL, "MPI_FILE_NULL", "a file")),
        }
    }
}

/// The error of a refusal of the system: the numbers are those of Linux on every machine it runs on here.
pub fn refused(fault: disk::Fault) -> Error {
    let class = match fault.errno {
        1 | 13 => Class::ACCESS,
        2 => Class::NO_SUCH_FILE,
        12 => Class::NO_MEM,
        16 | 26 => Class::FILE_IN_USE,
        17 => Class::FILE_EXISTS,
        20 | 21 | 36 | 40 => Class::BAD_FILE,
        27 | 28 => Class::NO_SPACE,
        29 | 95 => Class::UNSUPPORTED_OPERATION,
        30 => Class::READ_ONLY,
        122 => Class::QUOTA,
        _ => Class::IO,
    };
    Error::new(class, fault.text)
}

/// Prefixes that name a kind of file system, as other implementations take them.
const PREFIXES: [&str; 10] =
    ["ufs:", "nfs:", "file:", "unix:", "xfs:", "lustre:", "gpfs:", "panfs:", "pvfs2:", "testfs:"];

/// The path in a file name, which may begin with the kind of the file system.
pub fn path_of(name: &str) -> Result<&str> {
    let path = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    if path.is_empty() {
        return fail(Class::BAD_FILE, format!("argument `filename` is \"{name}\", which names no file"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_no_part_of_the_path() {
        assert_eq!(path_of("ufs:/a/b").unwrap(), "/a/b");
        assert_eq!(path_of("a:b").unwrap(), "a:b");
        assert_eq!(path_of("nfs:").unwrap_err().class, Class::BAD_FILE);
        assert_eq!(path_of("").unwrap_err().class, Class::BAD_FILE);
    }

    #[test]
    fn refusals_have_the_class_of_their_cause() {
        let class = |errno| refused(disk::Fault { errno, text: String::new() }).class;
        assert_eq!(
            (class(28), class(122), class(30), class(5)),
            (Class::NO_SPACE, Class::QUOTA, Class::READ_ONLY, Class::IO)
        );
    }
}
