//! Events: which types there are says `proto/event.rs`; here is who listens to them.

use proto::event::{Type, types};

use super::{Tools, at, class, insert, named, no_handle};
use crate::error::{Result, fail};
use crate::handle::Handle;

/// What a callback promises (`MPI_T_CB_REQUIRE_…`), from the least to the most.
pub const SAFETY: [i32; 4] = [0x00, 0x03, 0x0f, 0x3f];

/// A function of the application that is told of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Callback {
    /// Its address.
    pub function: usize,
    /// What it is given.
    pub user_data: usize,
    /// What it promises.
    pub safety: i32,
}

/// Somebody who listens to a type of events.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// The number of the type.
    pub kind: usize,
    callbacks: [Option<Callback>; SAFETY.len()],
    /// The function that is told how many were dropped, or 0.
    pub dropped: usize,
}

impl Registration {
    /// The callback that is called: that which promises least, for here nothing is needed of it.
    pub fn callback(&self) -> Option<Callback> {
        self.callbacks.iter().flatten().next().copied()
    }
}

fn level(safety: i32) -> Result<usize> {
    match SAFETY.iter().position(|known| *known == safety) {
        Some(level) => Ok(level),
        None => fail(class::INVALID, format!("argument `cb_safety` is {safety:#x}, no level of safety")),
    }
}

/// The type of events with this index.
pub fn event_type(index: i32) -> Result<&'static Type> {
    at(types(), index)
}

/// The index of the type of events with this name.
pub fn event_named(name: &[u8]) -> Result<i32> {
    named(types(), name, |one| one.name.clone())
}

impl Tools {
    /// `MPI_T_event_handle_alloc`.
    pub fn register(&mut self, index: i32) -> Result<Handle> {
        event_type(index)?;
        let registration = Registration { kind: index as usize, callbacks: Default::default(), dropped: 0 };
        insert(&mut self.registrations, registration, class::OUT_OF_HANDLES)
    }

    /// A registration.
    pub fn registration(&mut self, handle: Handle) -> Result<&mut Registration> {
        self.registrations.get_mut(handle).map_or_else(no_handle, Ok)
    }

    /// `MPI_T_event_handle_free`: what the callback promised that was called.
    pub fn unregister(&mut self, handle: Handle) -> Result<i32> {
        let callback = self.registration(handle)?.callback();
        self.registrations.remove(handle);
        Ok(callback.map_or(SAFETY[0], |callback| callback.safety))
    }

    /// `MPI_T_event_register_callback`; no function ends it.
    pub fn set_callback(&mut self, handle: Handle, callback: Callback) -> Result {
        let level = level(callback.safety)?;
        self.registration(handle)?.callbacks[level] =
            Some(callback).filter(|callback| callback.function != 0);
        Ok(())
    }

    /// Whether this is a level of safety, and a registration.
    pub fn check_callback(&mut self, handle: Handle, safety: i32) -> Result {
        level(safety)?;
        self.registration(handle).map(drop)
    }

    /// Those who listen to a type.
    pub fn listeners(&self, kind: usize) -> Vec<(Handle, Registration)> {
        let all = self.registrations.iter().filter(|(_, one)| one.kind == kind);
        all.map(|(handle, one)| (handle, *one)).collect()
    }

    /// The types that somebody listens to, a bit for each.
    pub fn wanted(&self) -> u64 {
        let listening = self.registrations.iter().filter(|(_, one)| one.callback().is_some());
        listening.fold(0, |wanted, (_, one)| wanted | 1 << one.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callback_that_promises_least_is_called() {
        let mut tools = Tools::default();
        let index = event_named(b"tern_matched").unwrap();
        let handle = tools.register(index).unwrap();
        assert_eq!(tools.wanted(), 0, "nobody listens yet");
        let callback = |function, safety| Callback { function, user_data: 1, safety };
        tools.set_callback(handle, callback(10, 0x3f)).unwrap();
        tools.set_callback(handle, callback(20, 0x03)).unwrap();
        assert_eq!(tools.wanted(), 1 << index);
        assert_eq!(tools.registration(handle).unwrap().callback(), Some(callback(20, 0x03)));
        tools.set_callback(handle, callback(0, 0x03)).unwrap();
        assert_eq!(tools.listeners(index as usize)[0].1.callback(), Some(callback(10, 0x3f)));
        assert_eq!(tools.set_callback(handle, callback(1, 2)).unwrap_err().class, class::INVALID);
        assert_eq!(tools.unregister(handle), Ok(0x3f));
        assert_eq!(tools.unregister(handle).unwrap_err().class, class::INVALID_HANDLE);
        assert_eq!(tools.wanted(), 0);
        assert_eq!(event_type(-1).unwrap_err().class, class::INVALID_INDEX);
        assert_eq!(event_named(b"tern_nonsense").unwrap_err().class, class::INVALID_NAME);
    }
}
