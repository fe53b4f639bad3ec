//! What the system has refused, and of which file at which offset.

/// A refusal of the system.
#[derive(Debug)]
pub struct Fault {
    /// The system's error number, 0 if it gave none.
    pub errno: i32,
    /// What was tried and why it failed: "cannot write 4096 bytes at offset 512 of /data/x: No space left".
    pub text: String,
}

/// Result of an operation on a file.
pub type Result<T = ()> = std::result::Result<T, Fault>;

impl Fault {
    /// `doing` completes "cannot …".
    #[cold]
    pub fn new(doing: impl std::fmt::Display, cause: &std::io::Error) -> Fault {
        Fault { errno: cause.raw_os_error().unwrap_or(0), text: format!("cannot {doing}: {cause}") }
    }
}
