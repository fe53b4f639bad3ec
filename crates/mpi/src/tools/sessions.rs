//! Sessions and the handles of performance variables in them.
//!
//! A variable is counted whether somebody watches or not. A handle shows what was added while it
//! was started, on top of what the tool wrote: so every session has values of its own and a
//! tool disturbs no other.

use proto::event::{Class, Variable};

use super::{Now, Tools, at, class, insert, named, no_handle, variables};
use crate::error::{Result, fail};
use crate::handle::Handle;

/// `MPI_T_PVAR_ALL_HANDLES`.
pub const ALL_HANDLES: usize = 1;

/// A session.
#[derive(Debug)]
pub struct Session;

/// A handle of a performance variable.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    session: Handle,
    index: usize,
    /// Its value without what has been added since it was started.
    value: u64,
    /// The variable when the handle was started, unless it is stopped.
    since: Option<u64>,
}

impl Watch {
    fn variable(&self) -> &'static Variable {
        &variables()[self.index]
    }

    fn start(&mut self, now: u64) {
        self.since.get_or_insert(now);
    }

    fn stop(&mut self, now: u64) {
        if let Some(since) = self.since.take() {
            self.value = self.value.wrapping_add(now.wrapping_sub(since));
        }
    }

    fn read(&self, now: u64) -> u64 {
        self.value.wrapping_add(self.since.map_or(0, |since| now.wrapping_sub(since)))
    }

    fn write(&mut self, value: u64, now: u64) {
        self.value = value;
        self.since = self.since.map(|_| now);
    }
}

/// Whether handles of a variable start with its value, cannot be stopped and not be written:
/// those that say how things stand.
pub fn is_state(class: Class) -> bool {
    matches!(class, Class::Level | Class::Most | Class::Size)
}

impl Tools {
    /// The performance variable with this index.
    pub fn variable(&self, index: i32) -> Result<&'static Variable> {
        at(variables(), index)
    }

    /// The performance variable of this name and class, `class_of` giving the number of a class.
    pub fn variable_named(&self, name: &[u8], number: i32, class_of: impl Fn(Class) -> i32) -> Result<i32> {
        let index = named(variables(), name, |variable| variable.name.clone())?;
        if class_of(self.variable(index)?.class) != number {
            let name = String::from_utf8_lossy(name);
            return fail(class::INVALID_NAME, format!("`{name}` is not of class {number}"));
        }
        Ok(index)
    }

    /// `MPI_T_pvar_session_create`.
    pub fn open(&mut self) -> Result<Handle> {
        insert(&mut self.sessions, Session, class::OUT_OF_SESSIONS)
    }

    /// `MPI_T_pvar_session_free`: its handles end with it.
    pub fn close(&mut self, session: Handle) -> Result {
        self.session(session)?;
        for handle in self.of(session) {
            self.watches.remove(handle);
        }
        self.sessions.remove(session);
        Ok(())
    }

    /// `MPI_T_pvar_handle_alloc`. What can be stopped is stopped at first and stands at 0.
    pub fn watch(&mut self, session: Handle, index: i32) -> Result<Handle> {
        self.session(session)?;
        let variable = self.variable(index)?;
        let since = is_state(variable.class).then_some(0);
        let watch = Watch { session, index: index as usize, value: 0, since };
        insert(&mut self.watches, watch, class::OUT_OF_HANDLES)
    }

    /// `MPI_T_pvar_handle_free`.
    pub fn unwatch(&mut self, session: Handle, handle: Handle) -> Result {
        self.one(session, handle)?;
        self.watches.remove(handle);
        Ok(())
    }

    /// `MPI_T_pvar_start`; `None` means all handles of the session.
    pub fn start(&mut self, session: Handle, handle: Option<Handle>, now: Now) -> Result {
        self.each(session, handle, class::PVAR_NO_STARTSTOP, |watch| watch.start(now(watch.index)))
    }

    /// `MPI_T_pvar_stop`; `None` means all handles of the session.
    pub fn stop(&mut self, session: Handle, handle: Option<Handle>, now: Now) -> Result {
        self.each(session, handle, class::PVAR_NO_STARTSTOP, |watch| watch.stop(now(watch.index)))
    }

    /// `MPI_T_pvar_reset`; `None` means all handles of the session.
    pub fn reset(&mut self, session: Handle, handle: Option<Handle>, now: Now) -> Result {
        self.each(session, handle, class::PVAR_NO_WRITE, |watch| watch.write(0, now(watch.index)))
    }

    /// `MPI_T_pvar_read`.
    pub fn read(&mut self, session: Handle, handle: Handle, now: Now) -> Result<u64> {
        let watch = self.one(session, handle)?;
        Ok(watch.read(now(watch.index)))
    }

    /// `MPI_T_pvar_write`.
    pub fn write(&mut self, session: Handle, handle: Handle, value: u64, now: Now) -> Result {
        self.each(session, Some(handle), class::PVAR_NO_WRITE, |watch| watch.write(value, now(watch.index)))
    }

    /// `MPI_T_pvar_readreset`.
    pub fn read_and_reset(&mut self, session: Handle, handle: Handle, now: Now) -> Result<u64> {
        let mut value = 0;
        self.each(session, Some(handle), class::PVAR_NO_ATOMIC, |watch| {
            let now = now(watch.index);
            value = watch.read(now);
            watch.write(0, now);
        })?;
        Ok(value)
    }

    fn session(&self, session: Handle) -> Result<&Session> {
        match self.sessions.get(session) {
            Some(session) => Ok(session),
            None => fail(class::INVALID_SESSION, "freed or never created"),
        }
    }

    /// The handle, which must be one of this session.
    fn one(&mut self, session: Handle, handle: Handle) -> Result<&mut Watch> {
        self.session(session)?;
        match self.watches.get_mut(handle) {
            Some(watch) if watch.session == session => Ok(watch),
            _ => no_handle(),
        }
    }

    fn of(&self, session: Handle) -> Vec<Handle> {
        self.watches.iter().filter(|(_, watch)| watch.session == session).map(|(handle, _)| handle).collect()
    }

    /// Changes a handle, or all of a session that can be changed: those that say how things stand
    /// cannot, for which alone that is the error `refused`.
    fn each(
        &mut self,
        session: Handle,
        handle: Option<Handle>,
        refused: crate::Class,
        mut change: impl FnMut(&mut Watch),
    ) -> Result {
        if let Some(handle) = handle {
            let watch = self.one(session, handle)?;
            let variable = watch.variable();
            if is_state(variable.class) {
                return fail(refused, format!("{} says how things stand", variable.name));
            }
            change(watch);
            return Ok(());
        }
        self.session(session)?;
        for handle in self.of(session) {
            let watch = self.one(session, handle)?;
            if !is_state(watch.variable().class) {
                change(watch);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn index(name: &str) -> i32 {
        variables().iter().position(|variable| variable.name == name).expect("declared") as i32
    }

    #[test]
    fn a_handle_shows_what_came_while_it_was_started() {
        let value = Cell::new(100);
        let now: Now = &|_| value.get();
        let mut tools = Tools::default();
        let (a, b) = (tools.open().unwrap(), tools.open().unwrap());
        let counter = index("tern_eager");
        let (mine, other) = (tools.watch(a, counter).unwrap(), tools.watch(b, counter).unwrap());
        assert_eq!(tools.read(a, mine, now), Ok(0));
        tools.start(a, Some(mine), now).unwrap();
        value.set(107);
        tools.start(a, None, now).unwrap();
        assert_eq!(tools.read(a, mine, now), Ok(7), "what is started is not started anew");
        tools.stop(a, Some(mine), now).unwrap();
        value.set(200);
        assert_eq!(tools.read_and_reset(a, mine, now), Ok(7));
        tools.write(a, mine, 50, now).unwrap();
        tools.start(a, None, now).unwrap();
        value.set(203);
        assert_eq!(tools.read_and_reset(a, mine, now), Ok(53));
        value.set(205);
        assert_eq!(tools.read(a, mine, now), Ok(2));
        assert_eq!(tools.read(b, other, now), Ok(0), "the other session has not started its own");
        assert_eq!(tools.read(a, other, now).unwrap_err().class, class::INVALID_HANDLE);
        tools.close(a).unwrap();
        assert_eq!(tools.read(a, mine, now).unwrap_err().class, class::INVALID_SESSION);
        assert_eq!(tools.unwatch(b, mine).unwrap_err().class, class::INVALID_HANDLE);
    }

    #[test]
    fn what_says_how_things_stand_is_read_only() {
        let now: Now = &|_| 64;
        let mut tools = Tools::default();
        let session = tools.open().unwrap();
        let level = tools.watch(session, index("tern_unexpected_bytes")).unwrap();
        assert_eq!(tools.read(session, level, now), Ok(64));
        let class = |result: Result| result.unwrap_err().class;
        assert_eq!(class(tools.start(session, Some(level), now)), class::PVAR_NO_STARTSTOP);
        assert_eq!(class(tools.reset(session, Some(level), now)), class::PVAR_NO_WRITE);
        assert_eq!(class(tools.write(session, level, 1, now)), class::PVAR_NO_WRITE);
        assert_eq!(class(tools.read_and_reset(session, level, now).map(|_| ())), class::PVAR_NO_ATOMIC);
        tools.stop(session, None, now).unwrap();
        tools.reset(session, None, now).unwrap();
        assert_eq!(tools.read(session, level, now), Ok(64));
    }
}
