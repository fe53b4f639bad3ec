//! Error handlers (MPI 5.0 section 9.3): the predefined ones and those a program made.
//!
//! A handler lives while the program holds its handle or an object uses it; the two are counted
//! apart so that a handle the program has freed is refused even while objects still use it. Which
//! handler an object uses is kept here too: an error must find it whatever the rank is busy with.

use std::collections::BTreeMap;

use crate::comm::{COMM_NULL, COMM_SELF, COMM_WORLD};
use crate::error::{Class, Result, fail};
use crate::handle::{Handle, Slab};
use crate::session::SESSION_NULL;

/// `MPI_ERRHANDLER_NULL`.
pub const NULL: Handle = Handle(0x140);
/// `MPI_ERRORS_ARE_FATAL`: an error ends all connected processes.
pub const ARE_FATAL: Handle = Handle(0x141);
/// `MPI_ERRORS_ABORT`: an error aborts the processes of the object.
pub const ABORT: Handle = Handle(0x142);
/// `MPI_ERRORS_RETURN`: the program sees the error code.
pub const RETURN: Handle = Handle(0x143);

/// The predefined handlers by the names that the start of a program has for them (MPI 5.0 section 11.8.4).
pub const NAMED: [(&str, Handle); 3] =
    [("mpi_errors_are_fatal", ARE_FATAL), ("mpi_errors_abort", ABORT), ("mpi_errors_return", RETURN)];

/// The kind of object a handler the program made is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Raiser {
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
        kind: Raiser,
        /// The address of the function.
        function: usize,
    },
}

#[derive(Debug)]
struct User {
    kind: Raiser,
    function: usize,
    /// Handles the program holds: from create and from get.
    held: u32,
    /// Objects that use it.
    used: u32,
}

/// All error handlers of a process.
#[derive(Debug, Default)]
pub struct Errhandlers {
    handlers: Slab<User>,
    /// Those that objects were given; others have the initial one: `MPI_ERRORS_RETURN` for files, else
    /// `MPI_ERRORS_ARE_FATAL`.
    uses: BTreeMap<(Raiser, Handle), Handle>,
    /// What `MPI_COMM_WORLD` and `MPI_COMM_SELF` have at first, if the start of the program says another one.
    initial: Option<Handle>,
}

impl Errhandlers {
    /// The start of the program names the initial handler, a predefined one.
    pub fn begin_with(&mut self, initial: Handle) {
        self.initial = Some(initial);
    }

    /// What errors ask for where there are no objects yet, or none any more.
    pub fn initial_action(&self) -> Action {
        self.action_by(self.initial.unwrap_or(ARE_FATAL)).0
    }

    /// `MPI_*_create_errhandler`.
    pub fn create(&mut self, kind: Raiser, function: usize) -> Result<Handle> {
        if function == 0 {
            return fail(Class::ARG, "the function of the error handler is NULL");
        }
        self.handlers.insert(User { kind, function, held: 1, used: 0 })
    }

    /// `MPI_Errhandler_free`; the program forgets the handle.
    pub fn free(&mut self, handle: Handle) -> Result {
        self.check(handle)?;
        if let Some(user) = self.handlers.get_mut(handle) {
            user.held -= 1;
            self.reclaim(handle);
        }
        Ok(())
    }

    /// `MPI_*_set_errhandler` of an object.
    pub fn set(&mut self, kind: Raiser, object: Handle, new: Handle) -> Result {
        self.check(new)?;
        if let Some(user) = self.handlers.get_mut(new) {
            if user.kind != kind {
                return fail(
                    Class::ERRHANDLER,
                    format!("is an error handler for {}, not for {}", user.kind.objects(), kind.objects()),
                );
            }
            user.used += 1;
        }
        self.release(kind, object);
        self.uses.insert((kind, object), new);
        Ok(())
    }

    /// `MPI_*_get_errhandler` of an object: a handle that the program frees.
    pub fn get(&mut self, kind: Raiser, object: Handle) -> Handle {
        let used = self.of(kind, object);
        if let Some(user) = self.handlers.get_mut(used) {
            user.held += 1;
        }
        used
    }

    /// A new object gets the handler of another one: a communicator that of its parent, even if the
    /// program has freed the handle.
    pub fn inherit(&mut self, kind: Raiser, from: Handle, to: Handle) {
        let Some(used) = self.given(kind, from) else { return };
        if let Some(user) = self.handlers.get_mut(used) {
            user.used += 1;
        }
        self.uses.insert((kind, to), used);
    }

    /// An object goes.
    pub fn release(&mut self, kind: Raiser, object: Handle) {
        let Some(used) = self.uses.remove(&(kind, object)) else { return };
        if let Some(user) = self.handlers.get_mut(used) {
            user.used -= 1;
            self.reclaim(used);
        }
    }

    /// All objects go, with MPI_Finalize.
    pub fn release_all(&mut self) {
        while let Some((kind, object)) = self.uses.keys().next().copied() {
            self.release(kind, object);
        }
    }

    /// The communicator whose handler is for errors that concern no object: `MPI_COMM_SELF` (MPI 5.0
    /// section 9.3). Before MPI 4.0 it was `MPI_COMM_WORLD`, and programs of that time set no other:
    /// as long as nobody has set that of `MPI_COMM_SELF`, it is that of `MPI_COMM_WORLD`.
    pub fn of_no_object(&self) -> Handle {
        if self.uses.contains_key(&(Raiser::Comm, COMM_SELF)) { COMM_SELF } else { COMM_WORLD }
    }

    fn of(&self, kind: Raiser, object: Handle) -> Handle {
        self.given(kind, object).unwrap_or(if kind == Raiser::File { RETURN } else { ARE_FATAL })
    }

    /// What an object was given, by the program or by how it was started.
    fn given(&self, kind: Raiser, object: Handle) -> Option<Handle> {
        let is_first = kind == Raiser::Comm && matches!(object, COMM_WORLD | COMM_SELF);
        self.uses.get(&(kind, object)).copied().or(self.initial.filter(|_| is_first))
    }

    /// What to do with an error of an object.
    pub fn action(&self, kind: Raiser, object: Handle) -> Action {
        match self.of(kind, object) {
            ARE_FATAL => Action::Fatal,
            ABORT => Action::Abort,
            RETURN => Action::Return,
            handle => match self.handlers.get(handle) {
                Some(user) => Action::Call { kind: user.kind, function: user.function },
                None => panic!("an object uses error handler {:#x}, which is not alive", handle.0),
            },
        }
    }

    /// What to do with an error by a handler that no object has yet, and the null handle that its function gets.
    pub fn action_by(&self, handler: Handle) -> (Action, Handle) {
        let null = |kind| if kind == Raiser::Session { SESSION_NULL } else { COMM_NULL };
        match (handler, self.handlers.get(handler)) {
            (ABORT, _) => (Action::Abort, COMM_NULL),
            (RETURN, _) => (Action::Return, COMM_NULL),
            (_, Some(user)) => (Action::Call { kind: user.kind, function: user.function }, null(user.kind)),
            _ => (Action::Fatal, COMM_NULL),
        }
    }

    /// Whether the program may name this handler.
    pub fn check(&self, handle: Handle) -> Result {
        match handle {
            ARE_FATAL | ABORT | RETURN => Ok(()),
            NULL => fail(Class::ERRHANDLER, "is MPI_ERRHANDLER_NULL"),
            _ if self.handlers.get(handle).is_some_and(|user| user.held > 0) => Ok(()),
            _ => fail(
                Class::ERRHANDLER,
                format!("is not an error handler (freed or never created: {:#x})", handle.0),
            ),
        }
    }

    fn reclaim(&mut self, handle: Handle) {
        if self.handlers.get(handle).is_some_and(|user| user.held == 0 && user.used == 0) {
            self.handlers.remove(handle);
        }
    }
}

impl Raiser {
    fn objects(self) -> &'static str {
        match self {
            Raiser::Comm => "communicators",
            Raiser::Win => "windows",
            Raiser::File => "files",
            Raiser::Session => "sessions",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: Handle = Handle(0x101);
    const CHILD: Handle = Handle(1 << 20 | 1);

    #[test]
    fn a_handler_outlives_its_handle_while_an_object_uses_it() {
        let mut table = Errhandlers::default();
        let h = table.create(Raiser::Comm, 0x1000).unwrap();
        table.set(Raiser::Comm, OBJECT, h).unwrap();
        table.inherit(Raiser::Comm, OBJECT, CHILD);
        table.free(h).unwrap();
        assert_eq!(table.free(h).unwrap_err().class, Class::ERRHANDLER);
        assert_eq!(table.set(Raiser::Comm, OBJECT, h).unwrap_err().class, Class::ERRHANDLER);
        let call = Action::Call { kind: Raiser::Comm, function: 0x1000 };
        assert_eq!((table.action(Raiser::Comm, OBJECT), table.action(Raiser::Comm, CHILD)), (call, call));
        table.release(Raiser::Comm, OBJECT);
        assert_eq!(table.action(Raiser::Comm, OBJECT), Action::Fatal);
        assert_eq!(table.get(Raiser::Comm, CHILD), h);
        table.release_all();
        table.check(h).unwrap();
        table.free(h).unwrap();
        assert!(table.handlers.is_empty());
    }

    #[test]
    fn errors_of_no_object_are_the_worlds_until_a_program_knows_better() {
        let mut table = Errhandlers::default();
        table.set(Raiser::Comm, COMM_WORLD, RETURN).unwrap();
        assert_eq!(table.of_no_object(), COMM_WORLD);
        table.set(Raiser::Comm, COMM_SELF, ARE_FATAL).unwrap();
        assert_eq!(table.of_no_object(), COMM_SELF);
    }

    #[test]
    fn the_start_of_the_program_may_name_the_first_one() {
        let mut table = Errhandlers::default();
        table.begin_with(RETURN);
        table.inherit(Raiser::Comm, COMM_WORLD, CHILD);
        for comm in [COMM_WORLD, COMM_SELF, CHILD] {
            assert_eq!(table.action(Raiser::Comm, comm), Action::Return);
        }
        assert_eq!(table.action(Raiser::Win, OBJECT), Action::Fatal);
        table.set(Raiser::Comm, COMM_WORLD, ARE_FATAL).unwrap();
        assert_eq!(
            (table.get(Raiser::Comm, COMM_WORLD), table.get(Raiser::Comm, COMM_SELF)),
            (ARE_FATAL, RETURN)
        );
        table.release_all();
        assert_eq!(table.action(Raiser::Comm, COMM_WORLD), Action::Return);
        assert_eq!(table.initial_action(), Action::Return);
        let mut other = Errhandlers::default();
        other.set(Raiser::Comm, COMM_SELF, RETURN).unwrap();
        assert_eq!(other.initial_action(), Action::Fatal, "what the program has set is of its communicators");
    }

    #[test]
    fn an_object_keeps_the_handler_it_was_given() {
        let mut table = Errhandlers::default();
        let h = table.create(Raiser::Comm, 0x1000).unwrap();
        table.set(Raiser::Comm, OBJECT, h).unwrap();
        table.free(h).unwrap();
        assert_eq!(table.get(Raiser::Comm, CHILD), ARE_FATAL);
        assert_eq!(table.get(Raiser::Comm, OBJECT), h);
        table.set(Raiser::Comm, OBJECT, RETURN).unwrap();
        table.set(Raiser::Comm, CHILD, h).unwrap();
        table.free(h).unwrap();
        let for_files = table.create(Raiser::File, 0x2000).unwrap();
        for bad in [for_files, NULL] {
            assert_eq!(table.set(Raiser::Comm, CHILD, bad).unwrap_err().class, Class::ERRHANDLER);
        }
        assert_eq!(table.get(Raiser::Comm, CHILD), h, "a refused handler changes nothing");
    }

    #[test]
    fn kinds_and_null_are_told_apart() {
        let mut table = Errhandlers::default();
        let h = table.create(Raiser::Win, 0x1000).unwrap();
        let error = table.set(Raiser::Comm, OBJECT, h).unwrap_err();
        assert!(error.class == Class::ERRHANDLER && error.text.contains("windows"), "{error}");
        assert_eq!(table.set(Raiser::Comm, OBJECT, NULL).unwrap_err().class, Class::ERRHANDLER);
        assert_eq!(table.create(Raiser::Comm, 0).unwrap_err().class, Class::ARG);
        for predefined in [ARE_FATAL, ABORT, RETURN] {
            table.set(Raiser::File, OBJECT, predefined).unwrap();
            table.free(predefined).unwrap();
        }
        table.set(Raiser::File, OBJECT, ABORT).unwrap();
        assert_eq!(table.action(Raiser::File, OBJECT), Action::Abort);
        assert_eq!(table.action(Raiser::File, CHILD), Action::Return);
    }
}
