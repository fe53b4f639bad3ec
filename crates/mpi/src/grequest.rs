//! Generalised requests: operations of the program that MPI completes like its own (MPI 5.0
//! section 13.2).
//!
//! The three functions are C functions; this crate only says when the C layer has to call which:
//! `query` then `free` in the wait or test that sees the request complete, `free` alone when the
//! program has freed the handle before.

use crate::error::{Class, Result, fail};

/// What the program gave to `MPI_Grequest_start`: addresses of functions and their first argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Callbacks {
    /// Fills the status of a completed request.
    pub query: usize,
    /// Frees what the program keeps for the request.
    pub free: usize,
    /// Told of `MPI_Cancel`, with whether the request is complete.
    pub cancel: usize,
    /// First argument of all three.
    pub extra_state: usize,
}

/// A generalised request.
#[derive(Debug)]
pub struct Grequest {
    callbacks: Callbacks,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Started by the program.
    Active,
    /// Active, and the handle was freed by `MPI_Request_free`.
    Forgotten,
    /// `MPI_Grequest_complete` was called; the next wait or test takes it.
    Complete,
}

impl Grequest {
    /// `MPI_Grequest_start`.
    pub fn start(callbacks: Callbacks) -> Result<Grequest> {
        let named =
            [("query_fn", callbacks.query), ("free_fn", callbacks.free), ("cancel_fn", callbacks.cancel)];
        match named.iter().find(|(_, address)| *address == 0) {
            Some((name, _)) => fail(Class::ARG, format!("argument `{name}` is NULL")),
            None => Ok(Grequest { callbacks, state: State::Active }),
        }
    }

    /// The functions to call.
    pub fn callbacks(&self) -> Callbacks {
        self.callbacks
    }

    /// Whether a wait or test finds it complete.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// `MPI_Grequest_complete`. `true`: nobody will wait, the request goes now: remove it and
    /// call `free`.
    pub fn complete(&mut self) -> Result<bool> {
        match self.state {
            State::Active => {
                self.state = State::Complete;
                Ok(false)
            }
            State::Forgotten => Ok(true),
            State::Complete => fail(Class::REQUEST, "the generalized request is complete already"),
        }
    }

    /// `MPI_Request_free`. `true`: the request goes now: remove it and call `free`; otherwise it
    /// stays, reachable for `MPI_Grequest_complete` alone.
    pub fn forget(&mut self) -> Result<bool> {
        match self.state {
            State::Complete => Ok(true),
            State::Active => {
                self.state = State::Forgotten;
                Ok(false)
            }
            State::Forgotten => fail(Class::REQUEST, "the request was freed already"),
        }
    }

    /// Whether the program may still wait for it, test, cancel or free it.
    pub fn is_held(&self) -> bool {
        self.state != State::Forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLBACKS: Callbacks = Callbacks { query: 1, free: 2, cancel: 3, extra_state: 0 };

    #[test]
    fn free_runs_once_whichever_comes_first() {
        let mut waited = Grequest::start(CALLBACKS).unwrap();
        assert!(!waited.is_complete());
        assert_eq!(waited.complete(), Ok(false));
        assert!(waited.is_complete());
        assert_eq!(waited.complete().unwrap_err().class, Class::REQUEST);
        assert_eq!(waited.forget(), Ok(true));

        let mut forgotten = Grequest::start(CALLBACKS).unwrap();
        assert_eq!(forgotten.forget(), Ok(false));
        assert!(!forgotten.is_held() && !forgotten.is_complete());
        assert_eq!(forgotten.forget().unwrap_err().class, Class::REQUEST);
        assert_eq!(forgotten.complete(), Ok(true));
    }

    #[test]
    fn every_function_is_needed() {
        for callbacks in [
            Callbacks { query: 0, ..CALLBACKS },
            Callbacks { free: 0, ..CALLBACKS },
            Callbacks { cancel: 0, ..CALLBACKS },
        ] {
            assert_eq!(Grequest::start(callbacks).unwrap_err().class, Class::ARG);
        }
    }
}
