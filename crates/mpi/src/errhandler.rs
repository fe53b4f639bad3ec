//! Error handlers (MPI 5.0 section 9.3): the predefined ones and those a program made.
//!
//! A handler lives while the program holds its handle or an object uses it; the two are counted
//! apart so that a handle the program has freed is refused even while objects still use it.

use crate::error::{Class, Result, fail};
use crate::handle::{Handle, Slab};

/// `MPI_ERRHANDLER_NULL`.
pub const NULL: Handle = Handle(0x140);
/// `MPI_ERRORS_ARE_FATAL`: an error ends all connected processes.
pub const ARE_FATAL: Handle = Handle(0x141);
/// `MPI_ERRORS_ABORT`: an error aborts the processes of the object.
pub const ABORT: Handle = Handle(0x142);
/// `MPI_ERRORS_RETURN`: the program sees the error code.
pub const RETURN: Handle = Handle(0x143);

/// The kind of object a handler the program made is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Communicators.
    Comm,
    /// Windows.
    Win,
    /// Files.
    File,
    /// Sessions.
    Session,
}

/// What the C layer has to do with an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// End all connected processes.
    Fatal,
    /// Abort the processes of the object.
    Abort,
    /// Return the code.
    Return,
    /// Call the program's function at this address, then return the code.
    Call {
        /// What the function takes as its first argument.
        kind: Kind,
        /// The address of the function.
        function: usize,
    },
}

#[derive(Debug)]
struct User {
    kind: Kind,
    function: usize,
    /// Handles the program holds: from create and from get.
    held: u32,
    /// Objects that use it.
    used: u32,
}

/// All error handlers of one rank.
#[derive(Debug, Default)]
pub struct Errhandlers(Slab<User>);

impl Errhandlers {
    /// `MPI_*_create_errhandler`.
    pub fn create(&mut self, kind: Kind, function: usize) -> Result<Handle> {
        if function == 0 {
            return fail(Class::ARG, "the function of the error handler is NULL");
        }
        self.0.insert(User { kind, function, held: 1, used: 0 })
    }

    /// `MPI_Errhandler_free`; the program forgets the handle.
    pub fn free(&mut self, handle: Handle) -> Result {
        self.check(handle)?;
        if let Some(user) = self.0.get_mut(handle) {
            user.held -= 1;
            self.reclaim(handle);
        }
        Ok(())
    }

    /// An object of `kind` starts to use the handler: `MPI_*_set_errhandler`.
    pub fn attach(&mut self, handle: Handle, kind: Kind) -> Result {
        self.check(handle)?;
        if let Some(user) = self.0.get_mut(handle) {
            if user.kind != kind {
                return fail(
                    Class::ERRHANDLER,
                    format!("is an error handler for {}, not for {}", user.kind.objects(), kind.objects()),
                );
            }
            user.used += 1;
        }
        Ok(())
    }

    /// One more object uses a handler that another object uses already: a communicator inherits
    /// the handler of its parent even if the program has freed the handle.
    pub fn inherit(&mut self, handle: Handle) {
        if let Some(user) = self.0.get_mut(handle) {
            user.used += 1;
        }
    }

    /// An object stops using the handler.
    pub fn detach(&mut self, handle: Handle) {
        if let Some(user) = self.0.get_mut(handle) {
            user.used -= 1;
            self.reclaim(handle);
        }
    }

    /// `MPI_*_get_errhandler`: the program holds the handler of an object once more.
    pub fn hold(&mut self, handle: Handle) -> Handle {
        if let Some(user) = self.0.get_mut(handle) {
            user.held += 1;
        }
        handle
    }

    /// What to do with an error of an object that uses this handler.
    pub fn action(&self, handle: Handle) -> Action {
        match handle {
            ARE_FATAL => Action::Fatal,
            ABORT => Action::Abort,
            RETURN => Action::Return,
            _ => match self.0.get(handle) {
                Some(user) => Action::Call { kind: user.kind, function: user.function },
                None => panic!("an object uses error handler {:#x}, which is not alive", handle.0),
            },
        }
    }

    /// Whether the program may name this handler.
    pub fn check(&self, handle: Handle) -> Result {
        match handle {
            ARE_FATAL | ABORT | RETURN => Ok(()),
            NULL => fail(Class::ERRHANDLER, "is MPI_ERRHANDLER_NULL"),
            _ if self.0.get(handle).is_some_and(|user| user.held > 0) => Ok(()),
            _ => fail(
                Class::ERRHANDLER,
                format!("is not an error handler (freed or never created: {:#x})", handle.0),
            ),
        }
    }

    fn reclaim(&mut self, handle: Handle) {
        if self.0.get(handle).is_some_and(|user| user.held == 0 && user.used == 0) {
            self.0.remove(handle);
        }
    }
}

impl Kind {
    fn objects(self) -> &'static str {
        match self {
            Kind::Comm => "communicators",
            Kind::Win => "windows",
            Kind::File => "files",
            Kind::Session => "sessions",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handler_outlives_its_handle_while_an_object_uses_it() {
        let mut table = Errhandlers::default();
        let h = table.create(Kind::Comm, 0x1000).unwrap();
        table.attach(h, Kind::Comm).unwrap();
        table.inherit(h);
        table.free(h).unwrap();
        assert_eq!(table.free(h).unwrap_err().class, Class::ERRHANDLER);
        assert_eq!(table.attach(h, Kind::Comm).unwrap_err().class, Class::ERRHANDLER);
        assert_eq!(table.action(h), Action::Call { kind: Kind::Comm, function: 0x1000 });
        table.detach(h);
        assert_eq!(table.hold(h), h);
        table.detach(h);
        table.check(h).unwrap();
        table.free(h).unwrap();
        assert!(table.0.is_empty());
    }

    #[test]
    fn kinds_and_null_are_told_apart() {
        let mut table = Errhandlers::default();
        let h = table.create(Kind::Win, 0x1000).unwrap();
        let error = table.attach(h, Kind::Comm).unwrap_err();
        assert!(error.class == Class::ERRHANDLER && error.text.contains("windows"), "{error}");
        assert_eq!(table.attach(NULL, Kind::Comm).unwrap_err().class, Class::ERRHANDLER);
        assert_eq!(table.create(Kind::Comm, 0).unwrap_err().class, Class::ARG);
        for predefined in [ARE_FATAL, ABORT, RETURN] {
            table.attach(predefined, Kind::File).unwrap();
            table.detach(predefined);
            table.free(predefined).unwrap();
        }
        assert_eq!(table.action(ABORT), Action::Abort);
    }
}
