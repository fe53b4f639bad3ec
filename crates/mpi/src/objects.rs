//! The tables of the objects of one rank that do not depend on its devices.
//!
//! Lookups turn a handle of the application into the object, or into an error of the right class
//! whose text says what is wrong with the handle; the caller puts the argument's name in front.

use std::sync::Arc;

use crate::attr::Keyvals;
use crate::codes::ErrorCodes;
use crate::errhandler::Errhandlers;
use crate::error::{Class, Result, fail};
use crate::group::Group;
use crate::handle::{Handle, Slab};
use crate::info::Info;

/// `MPI_GROUP_NULL`.
pub const GROUP_NULL: Handle = Handle(0x108);
/// `MPI_GROUP_EMPTY`.
pub const GROUP_EMPTY: Handle = Handle(0x109);
/// `MPI_INFO_NULL`.
pub const INFO_NULL: Handle = Handle(0x130);
/// `MPI_INFO_ENV`.
pub const INFO_ENV: Handle = Handle(0x131);

/// The objects of one rank.
#[derive(Debug)]
pub struct Objects {
    /// Groups the program holds.
    pub groups: Slab<Arc<Group>>,
    /// Info objects the program holds.
    pub infos: Slab<Info>,
    /// Error handlers.
    pub errhandlers: Errhandlers,
    /// Attribute keys.
    pub keyvals: Keyvals,
    /// Error classes and codes.
    pub codes: ErrorCodes,
    /// What `MPI_INFO_ENV` holds.
    pub info_env: Info,
    empty_group: Arc<Group>,
}

impl Default for Objects {
    fn default() -> Self {
        Objects {
            groups: Slab::default(),
            infos: Slab::default(),
            errhandlers: Errhandlers::default(),
            keyvals: Keyvals::default(),
            codes: ErrorCodes::default(),
            info_env: Info::new(),
            empty_group: Arc::new(Group::EMPTY),
        }
    }
}

impl Objects {
    /// The group of a handle.
    pub fn group(&self, handle: Handle) -> Result<&Arc<Group>> {
        match self.groups.get(handle) {
            Some(group) => Ok(group),
            None if handle == GROUP_EMPTY => Ok(&self.empty_group),
            None => fail(Class::GROUP, unusable(handle, GROUP_NULL, "MPI_GROUP_NULL", "a group")),
        }
    }

    /// A handle for a new group: `MPI_GROUP_EMPTY` if it has no members.
    pub fn add_group(&mut self, group: Group) -> Result<Handle> {
        if group.is_empty() { Ok(GROUP_EMPTY) } else { self.groups.insert(Arc::new(group)) }
    }

    /// `MPI_Group_free`. The empty group may be freed, which leaves it alone (operations that
    /// find no members return it, and programs free what operations return).
    pub fn free_group(&mut self, handle: Handle) -> Result {
        self.group(handle)?;
        self.groups.remove(handle);
        Ok(())
    }

    /// The info object of a handle.
    pub fn info(&self, handle: Handle) -> Result<&Info> {
        match self.infos.get(handle) {
            Some(info) => Ok(info),
            None if handle == INFO_ENV => Ok(&self.info_env),
            None => fail(Class::INFO, unusable(handle, INFO_NULL, "MPI_INFO_NULL", "an info object")),
        }
    }

    /// The info object of an argument that may be `MPI_INFO_NULL`.
    pub fn optional_info(&self, handle: Handle) -> Result<Option<&Info>> {
        if handle == INFO_NULL { Ok(None) } else { self.info(handle).map(Some) }
    }

    /// The info object of a handle, to change or free it.
    pub fn info_mut(&mut self, handle: Handle) -> Result<&mut Info> {
        if handle == INFO_ENV {
            return fail(Class::INFO, "is MPI_INFO_ENV, which cannot be changed");
        }
        match self.infos.get_mut(handle) {
            Some(info) => Ok(info),
            None => fail(Class::INFO, unusable(handle, INFO_NULL, "MPI_INFO_NULL", "an info object")),
        }
    }

    /// `MPI_Info_free`.
    pub fn free_info(&mut self, handle: Handle) -> Result {
        self.info_mut(handle)?;
        self.infos.remove(handle);
        Ok(())
    }
}

/// What is wrong with a handle that names no object.
pub(crate) fn unusable(handle: Handle, null: Handle, null_name: &str, what: &str) -> String {
    if handle == null {
        format!("is {null_name}")
    } else if handle.is_predefined() {
        format!("is not {what} ({:#x} is not a handle of this kind)", handle.0)
    } else {
        format!("is not {what} (freed or never created: {:#x})", handle.0)
    }
}
