//! The tool information interface (MPI 5.0 section 15.3): control variables from the declaration of the
//! settings, performance variables and types of events from the declaration of the events, categories from all.
//!
//! It has a life of its own: it may be initialised before MPI, several times, and outlive it. What is
//! watched lives in the rank, so whoever asks for a value passes how to find it out ([`Now`]).

mod categories;
mod controls;
mod events;
mod sessions;

use std::sync::Arc;

use fabric::settings::Settings;
use proto::event::Variable;

use crate::error::{Class, Result, fail};
use crate::handle::{Handle, Slab};

pub use categories::{COUNT as CATEGORIES, Category, category, category_named};
pub use controls::{Control, Enumeration, ValueForm, control_named, enumeration, enumeration_of};
pub use events::{Callback, Registration, SAFETY, event_named, event_type};
pub use sessions::{ALL_HANDLES, Session, Watch, is_state};

/// Error classes of the interface (MPI 5.0 section 15.3.10). They are returned, never raised.
pub mod class {
    use crate::error::Class;

    /// `MPI_T_ERR_CANNOT_INIT`.
    pub const CANNOT_INIT: Class = Class(1001);
    /// `MPI_T_ERR_NOT_INITIALIZED`.
    pub const NOT_INITIALIZED: Class = Class(1003);
    /// `MPI_T_ERR_INVALID`.
    pub const INVALID: Class = Class(1006);
    /// `MPI_T_ERR_INVALID_INDEX`.
    pub const INVALID_INDEX: Class = Class(1007);
    /// `MPI_T_ERR_INVALID_SESSION`.
    pub const INVALID_SESSION: Class = Class(1009);
    /// `MPI_T_ERR_INVALID_HANDLE`.
    pub const INVALID_HANDLE: Class = Class(1010);
    /// `MPI_T_ERR_INVALID_NAME`.
    pub const INVALID_NAME: Class = Class(1011);
    /// `MPI_T_ERR_OUT_OF_HANDLES`.
    pub const OUT_OF_HANDLES: Class = Class(1012);
    /// `MPI_T_ERR_OUT_OF_SESSIONS`.
    pub const OUT_OF_SESSIONS: Class = Class(1013);
    /// `MPI_T_ERR_CVAR_SET_NEVER`.
    pub const CVAR_SET_NEVER: Class = Class(1015);
    /// `MPI_T_ERR_PVAR_NO_WRITE`.
    pub const PVAR_NO_WRITE: Class = Class(1016);
    /// `MPI_T_ERR_PVAR_NO_STARTSTOP`.
    pub const PVAR_NO_STARTSTOP: Class = Class(1017);
    /// `MPI_T_ERR_PVAR_NO_ATOMIC`.
    pub const PVAR_NO_ATOMIC: Class = Class(1018);
}

/// `MPI_CHAR`, the type of a text.
pub const CHAR: Handle = Handle(0x243);
/// `MPI_INT`, the type of a choice.
pub const INT: Handle = Handle(0x209);
/// `MPI_UNSIGNED_LONG_LONG`, the type of a number.
pub const UNSIGNED_LONG_LONG: Handle = Handle(0x20f);

/// The value of a performance variable at this moment, by its index in [`variables`].
pub type Now<'a> = &'a dyn Fn(usize) -> u64;

/// The performance variables; their indices are those of the interface.
pub fn variables() -> &'static [Variable] {
    proto::event::variables()
}

/// What the interface keeps.
#[derive(Debug, Default)]
pub struct Tools {
    /// How many times it has been initialised and not finalised.
    users: u32,
    /// What is in force; those of MPI_Init once it has been called.
    settings: Option<Settings>,
    controls: Slab<Control>,
    sessions: Slab<Session>,
    watches: Slab<Watch>,
    registrations: Slab<Registration>,
    /// The variables as they were when MPI was finalised.
    last: Option<Arc<[u64]>>,
}

impl Tools {
    /// Whether the interface can be used.
    pub fn is_initialised(&self) -> bool {
        self.users > 0
    }

    /// `MPI_T_init_thread`. `read` gives the settings, if none are known yet.
    pub fn init(&mut self, read: impl FnOnce() -> std::result::Result<Settings, String>) -> Result {
        if self.settings.is_none() {
            self.settings = Some(read().or_else(|text| fail(class::CANNOT_INIT, text))?);
        }
        self.users += 1;
        Ok(())
    }

    /// `MPI_T_finalize`: with the last user goes all that was allocated.
    pub fn finalize(&mut self) {
        self.users -= 1;
        if self.users == 0 {
            (self.controls, self.sessions, self.watches, self.registrations) = Default::default();
        }
    }

    /// MPI has been initialised with these settings.
    pub fn started(&mut self, settings: Settings) {
        self.settings = Some(settings);
    }

    /// MPI has been finalised: the variables stay as they are.
    pub fn ended(&mut self, last: Box<[u64]>) {
        self.last = Some(last.into());
    }

    /// The variables as MPI left them, `None` before it was finalised.
    pub fn last(&self) -> Option<Arc<[u64]>> {
        self.last.clone()
    }
}

/// The item an index names, among those of an array.
fn at<T>(items: &[T], index: i32) -> Result<&T> {
    match usize::try_from(index).ok().and_then(|index| items.get(index)) {
        Some(item) => Ok(item),
        None => {
            fail(class::INVALID_INDEX, format!("there is no index {index}, only 0 to {}", items.len() - 1))
        }
    }
}

/// The index of what has this name.
fn named<T>(items: impl IntoIterator<Item = T>, name: &[u8], name_of: impl Fn(&T) -> String) -> Result<i32> {
    let index = items.into_iter().position(|item| name_of(&item).as_bytes() == name);
    match index {
        Some(index) => Ok(index as i32),
        None => fail(class::INVALID_NAME, format!("`{}` is not known", String::from_utf8_lossy(name))),
    }
}

fn no_handle<T>() -> Result<T> {
    fail(class::INVALID_HANDLE, "freed or never allocated")
}

/// Stores an object; no room is an error of this class.
fn insert<T>(slab: &mut Slab<T>, value: T, full: Class) -> Result<Handle> {
    slab.insert(value).or_else(|error| fail(full, &*error.text))
}
