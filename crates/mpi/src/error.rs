//! Error classes and the error value (MPI 5.0 section 9.4).

/// An MPI error class; the numbers are those of the standard ABI (MPI 5.0 section 20).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Class(pub i32);

/// What went wrong: a class for the program, a text for the person.
///
/// It is one pointer, so that the result of an operation that succeeds fits a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Detail>);

/// What an [`Error`] says.
///
/// `text` names the argument or the peer and the cause, without the name of the
/// operation, which the caller knows and puts in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The class the C binding returns.
    pub class: Class,
    /// The cause, for a person: "argument `count` is -3, must not be negative".
    pub text: String,
}

/// Result of an MPI operation.
pub type Result<T = ()> = std::result::Result<T, Error>;

impl Error {
    /// An error of `class` with a text for the person.
    #[cold]
    pub fn new(class: Class, text: impl Into<String>) -> Self {
        Error(Box::new(Detail { class, text: text.into() }))
    }
}

impl std::ops::Deref for Error {
    type Target = Detail;
    fn deref(&self) -> &Detail {
        &self.0
    }
}

/// Shorthand for `Err(Error::new(class, text))`.
#[cold]
pub fn fail<T>(class: Class, text: impl Into<String>) -> Result<T> {
    Err(Error::new(class, text))
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.class.name(), self.text)
    }
}

macro_rules! classes {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl Class {
            $(#[doc = $text] pub const $name: Class = Class($value);)*

            /// Every class of the standard with its name and text.
            pub const STANDARD: &'static [(Class, &'static str, &'static str)] = &[
                (Class(0), "MPI_SUCCESS", "no error"),
                $((Class($value), concat!("MPI_ERR_", stringify!($name)), $text),)*
            ];
        }
    };
}

classes! {
    BUFFER = 1, "invalid buffer pointer";
    COUNT = 2, "invalid count argument";
    TYPE = 3, "invalid datatype argument";
    TAG = 4, "invalid tag argument";
    COMM = 5, "invalid communicator";
    RANK = 6, "invalid rank";
    REQUEST = 7, "invalid request handle";
    ROOT = 8, "invalid root";
    GROUP = 9, "invalid group";
    OP = 10, "invalid operation";
    TOPOLOGY = 11, "invalid topology";
    DIMS = 12, "invalid dimension argument";
    ARG = 13, "invalid argument of some other kind";
    UNKNOWN = 14, "unknown error";
    TRUNCATE = 15, "message truncated on receive";
    OTHER = 16, "known error not in this list";
    INTERN = 17, "internal error of the library";
    PENDING = 18, "pending request";
    IN_STATUS = 19, "error code is in status";
    ACCESS = 20, "permission denied";
    AMODE = 21, "error related to the amode passed to MPI_File_open";
    ASSERT = 22, "invalid assertion argument";
    BAD_FILE = 23, "invalid file name";
    BASE = 24, "invalid base passed to MPI_Free_mem";
    CONVERSION = 25, "an error occurred in a user supplied data conversion function";
    DISP = 26, "invalid displacement argument";
    DUP_DATAREP = 27, "data representation identifier already registered";
    FILE_EXISTS = 28, "file exists";
    FILE_IN_USE = 29, "file operation could not be completed, as the file is open";
    FILE = 30, "invalid file handle";
    INFO_KEY = 31, "key longer than MPI_MAX_INFO_KEY";
    INFO_NOKEY = 32, "invalid key passed to MPI_Info_delete";
    INFO_VALUE = 33, "value longer than MPI_MAX_INFO_VAL";
    INFO = 34, "invalid info argument";
    IO = 35, "other I/O error";
    KEYVAL = 36, "invalid attribute key";
    LOCKTYPE = 37, "invalid locktype argument";
    NAME = 38, "invalid service name passed to MPI_Lookup_name";
    NO_MEM = 39, "out of memory";
    NOT_SAME = 40, "collective argument not identical on all processes";
    NO_SPACE = 41, "not enough space";
    NO_SUCH_FILE = 42, "file does not exist";
    PORT = 43, "invalid port name passed to MPI_Comm_connect";
    QUOTA = 44, "quota exceeded";
    READ_ONLY = 45, "read-only file or file system";
    RMA_ATTACH = 46, "memory cannot be attached";
    RMA_CONFLICT = 47, "conflicting accesses to window";
    RMA_RANGE = 48, "target memory is not part of the window";
    RMA_SHARED = 49, "memory cannot be shared";
    RMA_SYNC = 50, "invalid synchronization of RMA calls";
    SERVICE = 51, "invalid service name passed to MPI_Unpublish_name";
    SIZE = 52, "invalid size argument";
    SPAWN = 53, "error in spawning processes";
    UNSUPPORTED_DATAREP = 54, "unsupported data representation";
    UNSUPPORTED_OPERATION = 55, "unsupported operation";
    WIN = 56, "invalid window argument";
    RMA_FLAVOR = 57, "passed window has the wrong flavor";
    PROC_ABORTED = 58, "operation failed because a remote peer has aborted";
    VALUE_TOO_LARGE = 59, "value is too large to store";
    SESSION = 60, "invalid session argument";
    ERRHANDLER = 61, "invalid error handler";
    ABI = 62, "ABI mismatch or invalid ABI request";
}

impl Class {
    /// The last error code that the standard reserves (`MPI_ERR_LASTCODE`).
    pub const LAST: Class = Class(0x3fff);

    /// The class by which another rank says how it has fared: `None` for 0, and [`Class::INTERN`] for what is the number of no class.
    pub fn told(word: u64) -> Option<Class> {
        let class = i32::try_from(word).map_or(Class::INTERN, Class);
        (class.0 != 0).then_some(class)
    }

    /// The name of the class in C, or a generic one for classes a program added.
    pub fn name(self) -> &'static str {
        Self::STANDARD
            .iter()
            .find(|row| row.0 == self)
            .map_or("error class added by the program", |row| row.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_numbered_without_gaps() {
        for (i, row) in Class::STANDARD.iter().enumerate() {
            assert_eq!(row.0.0, i as i32, "{}", row.1);
        }
    }

    /// Nor one whose lower half is that of none.
    #[test]
    fn no_word_but_zero_says_that_nothing_has_failed() {
        assert_eq!([0, 38, 0x4000].map(Class::told), [None, Some(Class::NAME), Some(Class(0x4000))]);
        assert_eq!([1 << 32, u64::MAX].map(Class::told), [Some(Class::INTERN); 2]);
    }
}
