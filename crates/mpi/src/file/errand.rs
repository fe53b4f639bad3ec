//! What a thread of the library does for an access while the application goes on.

use std::sync::OnceLock;

use crate::handle::Handle;
use crate::request::Ended;

/// An access that another thread does, or has done.
#[derive(Debug)]
pub struct Errand {
    /// The file, whose error handler a failure concerns.
    pub file: Handle,
    outcome: OnceLock<Ended>,
}

impl Errand {
    /// One that nobody has done yet.
    pub fn new(file: Handle) -> Errand {
        Errand { file, outcome: OnceLock::new() }
    }

    /// What came of it, once it is done.
    pub fn outcome(&self) -> Option<&Ended> {
        self.outcome.get()
    }

    /// It is done; it is so once.
    pub fn end(&self, ended: Ended) {
        let _ = self.outcome.set(ended);
    }
}
