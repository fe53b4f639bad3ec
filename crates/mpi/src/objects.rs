//! The tables of the objects of one rank that do not depend on its devices.
//!
//! Lookups turn a handle of the application into the object, or into an error of the right class
//! whose text says what is wrong with the handle; the caller puts the argument's name in front.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attr::{self, AttrMap, Keyvals, Predefined};
use crate::bsend::Bsend;
use crate::comm::Comms;
use crate::datatype::{TypeSlot, Types};
use crate::error::{Class, Result, fail};
use crate::file::{File, UserRep};
use crate::group::Group;
use crate::handle::{Handle, Slab};
use crate::op::Ops;
use crate::p2p::Message;
use crate::request::Requests;
use crate::session::{ProcessSet, SESSION_NULL, Session};
use crate::win::{self, Windows};

/// `MPI_GROUP_NULL`.
pub const GROUP_NULL: Handle = Handle(0x108);
/// `MPI_GROUP_EMPTY`.
pub const GROUP_EMPTY: Handle = Handle(0x109);

/// The objects of one rank.
#[derive(Debug, Default)]
pub struct Objects {
    /// Groups the program holds.
    pub groups: Slab<Arc<Group>>,
    /// Attribute keys.
    pub keyvals: Keyvals,
    /// When accesses of files are locked that need not be.
    pub locking: disk::Locking,
    /// Where the program reads `MPI_LASTUSEDCODE`.
    pub last_used_code: usize,
    /// Values of the predefined attributes of communicators.
    pub predefined: Predefined,
    /// The buffer attached to the process for buffered sends.
    pub bsend: Bsend,
    /// Communicators.
    pub comms: Comms,
    /// Requests.
    pub requests: Requests,
    /// Messages taken out by matched probes.
    pub messages: Slab<Message>,
    /// Datatypes, predefined ones included.
    pub types: Types,
    /// Reduction operations.
    pub ops: Ops,
    /// Windows.
    pub windows: Windows,
    /// Sessions.
    pub sessions: Slab<Session>,
    /// The process sets of the job.
    pub sets: Vec<ProcessSet>,
    /// From which session groups come.
    pub origins: BTreeMap<Handle, Handle>,
    /// Files.
    pub files: Slab<File>,
    /// Data representations that were registered.
    pub datareps: Vec<Arc<UserRep>>,
    empty_group: Arc<Group>,
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

    /// As [`Objects::add_group`], for a group that comes from where another object comes from.
    pub fn add_group_of(&mut self, group: Group, session: Option<Handle>) -> Result<Handle> {
        let handle = self.add_group(group)?;
        if handle != GROUP_EMPTY {
            self.origins.extend(session.map(|session| (handle, session)));
        }
        Ok(handle)
    }

    /// The session of a handle.
    pub fn session(&self, handle: Handle) -> Result<&Session> {
        match self.sessions.get(handle) {
            Some(session) => Ok(session),
            None => fail(Class::SESSION, unusable(handle, SESSION_NULL, "MPI_SESSION_NULL", "a session")),
        }
    }

    /// `MPI_Group_free`. The empty group may be freed, which leaves it alone (operations that
    /// find no members return it, and programs free what operations return).
    pub fn free_group(&mut self, handle: Handle) -> Result {
        self.group(handle)?;
        self.groups.remove(handle);
        self.origins.remove(&handle);
        Ok(())
    }

    /// The datatype of a handle, with what belongs to the handle; for communication ask
    /// [`TypeSlot::committed`] of it.
    #[inline]
    pub fn datatype(&self, handle: Handle) -> Result<&TypeSlot> {
        self.types.get(handle)
    }

    /// The datatype of a handle, to change its name or attributes.
    pub fn datatype_mut(&mut self, handle: Handle) -> Result<&mut TypeSlot> {
        self.types.get_mut(handle)
    }
}

/// Attributes of the objects that have them.
impl Objects {
    /// The attributes of an object and the keys they belong to.
    pub fn attrs_mut(&mut self, kind: attr::Holder, handle: Handle) -> Result<(&mut AttrMap, &mut Keyvals)> {
        let attrs = match kind {
            attr::Holder::Type => &mut self.types.get_mut(handle)?.attrs,
            attr::Holder::Comm => match self.comms.get_mut(handle) {
                Some(comm) => &mut comm.attrs,
                None => return Comms::refuse(handle),
            },
            attr::Holder::Win => &mut self.windows.find_mut(handle)?.attrs,
        };
        Ok((attrs, &mut self.keyvals))
    }

    /// The attributes of an object.
    pub fn attrs(&self, kind: attr::Holder, handle: Handle) -> Result<&AttrMap> {
        match kind {
            attr::Holder::Type => Ok(&self.types.get(handle)?.attrs),
            attr::Holder::Comm => {
                self.comms.get(handle).map_or_else(|| Comms::refuse(handle), |comm| Ok(&comm.attrs))
            }
            attr::Holder::Win => Ok(&self.windows.find(handle)?.attrs),
        }
    }

    /// The value `MPI_*_get_attr` gives: for a predefined key the address of an `int`. Those of
    /// communicators answer on every communicator, since programs ask those they made as often
    /// as the world.
    pub fn attr(&self, kind: attr::Holder, handle: Handle, keyval: Handle) -> Result<Option<usize>> {
        let attrs = self.attrs(kind, handle)?;
        match keyval {
            _ if kind == attr::Holder::Win && win::is_attribute(keyval) => {
                return Ok(self.windows.attr(handle, keyval));
            }
            _ if kind != attr::Holder::Comm => {}
            attr::LASTUSEDCODE => return Ok(Some(self.last_used_code)),
            _ if (attr::TAG_UB..=attr::UNIVERSE_SIZE).contains(&keyval) => {
                return Ok(self.predefined.address(keyval));
            }
            _ => {}
        }
        self.keyvals.check(kind, keyval)?;
        Ok(attrs.get(keyval))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::{Forced, Spread, State, Tariff};
    use crate::comm::{COMM_SELF, COMM_WORLD, Comm, Place};

    #[test]
    fn predefined_handles_resolve_and_survive_being_freed() {
        let mut objects = Objects::default();
        assert!(objects.group(GROUP_EMPTY).unwrap().is_empty());
        assert_eq!(objects.add_group(Group::EMPTY).unwrap(), GROUP_EMPTY);
        objects.free_group(GROUP_EMPTY).unwrap();
    }

    #[test]
    fn unusable_handles_are_told_apart() {
        let mut objects = Objects::default();
        let group = objects.add_group(Group::range(0, 2)).unwrap();
        objects.free_group(group).unwrap();
        let error = objects.group(group).unwrap_err();
        assert!(error.class == Class::GROUP && error.text.contains("freed"), "{error}");
        assert_eq!(objects.group(GROUP_NULL).unwrap_err().text, "is MPI_GROUP_NULL");
        assert!(
            objects.group(Handle(0x131)).unwrap_err().text.contains("0x131 is not a handle of this kind")
        );
    }

    fn with_comms() -> Objects {
        let mut objects = Objects::default();
        let place = Place::within(0, Arc::new(Group::range(0, 1)), 0);
        let comm =
            || Comm::new(place.clone(), State::new(Tariff::default(), Forced::default(), Spread::OneHost));
        objects.comms.start(comm(), comm());
        objects
    }

    #[test]
    fn predefined_attributes_answer_on_every_communicator() {
        let mut objects = with_comms();
        objects.predefined.set(attr::TAG_UB, i32::MAX);
        objects.last_used_code = 0x1000;
        for comm in [COMM_WORLD, COMM_SELF] {
            let value = |keyval| objects.attr(attr::Holder::Comm, comm, keyval);
            assert!(value(attr::TAG_UB).unwrap().is_some());
            assert_eq!(value(attr::LASTUSEDCODE), Ok(Some(0x1000)));
            assert_eq!(value(attr::APPNUM), Ok(None));
            assert_eq!(value(attr::KEYVAL_INVALID).unwrap_err().class, Class::KEYVAL);
        }
        let freed = Handle(1 << 20 | 7);
        assert_eq!(objects.attr(attr::Holder::Comm, freed, attr::TAG_UB).unwrap_err().class, Class::COMM);
        let on_a_type = objects.attr(attr::Holder::Type, Handle(0x209), attr::TAG_UB);
        assert_eq!(on_a_type.unwrap_err().class, Class::KEYVAL);
    }
}
