//! The tables of the objects of one rank that do not depend on its devices.
//!
//! Lookups turn a handle of the application into the object, or into an error of the right class
//! whose text says what is wrong with the handle; the caller puts the argument's name in front.

use std::sync::Arc;

use crate::attr::{self, AttrMap, Keyvals, Predefined};
use crate::bsend::Bsend;
use crate::codes::ErrorCodes;
use crate::comm::{COMM_SELF, Comms};
use crate::datatype::{TypeSlot, Types};
use crate::errhandler::{self, Errhandlers};
use crate::error::{Class, Result, fail};
use crate::group::Group;
use crate::handle::{Handle, Slab};
use crate::info::Info;
use crate::op::Ops;
use crate::p2p::Message;
use crate::request::Requests;
use crate::tools::Tools;

/// `MPI_GROUP_NULL`.
pub const GROUP_NULL: Handle = Handle(0x108);
/// `MPI_GROUP_EMPTY`.
pub const GROUP_EMPTY: Handle = Handle(0x109);
/// `MPI_INFO_NULL`.
pub const INFO_NULL: Handle = Handle(0x130);
/// `MPI_INFO_ENV`.
pub const INFO_ENV: Handle = Handle(0x131);

/// The objects of one rank.
#[derive(Debug, Default)]
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
    /// Values of the predefined attributes of communicators.
    pub predefined: Predefined,
    /// What `MPI_INFO_ENV` holds.
    pub info_env: Info,
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
    /// The tools interface.
    pub tools: Tools,
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

    /// `MPI_Group_free`. The empty group may be freed, which leaves it alone (operations that
    /// find no members return it, and programs free what operations return).
    pub fn free_group(&mut self, handle: Handle) -> Result {
        self.group(handle)?;
        self.groups.remove(handle);
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

/// Attributes and error handlers of the objects that have them.
impl Objects {
    /// The attributes of an object and the keys they belong to.
    pub fn attrs_mut(&mut self, kind: attr::Kind, handle: Handle) -> Result<(&mut AttrMap, &mut Keyvals)> {
        let attrs = match kind {
            attr::Kind::Type => &mut self.types.get_mut(handle)?.attrs,
            attr::Kind::Comm => match self.comms.get_mut(handle) {
                Some(comm) => &mut comm.attrs,
                None => return Comms::refuse(handle),
            },
            attr::Kind::Win => return fail(Class::WIN, "windows have no table yet"),
        };
        Ok((attrs, &mut self.keyvals))
    }

    /// The attributes of an object.
    pub fn attrs(&self, kind: attr::Kind, handle: Handle) -> Result<&AttrMap> {
        match kind {
            attr::Kind::Type => Ok(&self.types.get(handle)?.attrs),
            attr::Kind::Comm => {
                self.comms.get(handle).map_or_else(|| Comms::refuse(handle), |comm| Ok(&comm.attrs))
            }
            attr::Kind::Win => fail(Class::WIN, "windows have no table yet"),
        }
    }

    /// Where an object keeps which error handler it uses.
    fn errhandler_slot(&mut self, kind: errhandler::Kind, handle: Handle) -> Result<&mut Handle> {
        match kind {
            errhandler::Kind::Comm => match self.comms.get_mut(handle) {
                Some(comm) => Ok(&mut comm.errhandler),
                None => Comms::refuse(handle),
            },
            errhandler::Kind::Win => fail(Class::WIN, "windows have no table yet"),
            errhandler::Kind::File => fail(Class::FILE, "files have no table yet"),
            errhandler::Kind::Session => fail(Class::SESSION, "sessions have no table yet"),
        }
    }

    /// `MPI_*_set_errhandler`.
    pub fn set_errhandler(&mut self, kind: errhandler::Kind, handle: Handle, new: Handle) -> Result {
        self.errhandler_slot(kind, handle)?;
        self.errhandlers.attach(new, kind)?;
        let old = std::mem::replace(self.errhandler_slot(kind, handle)?, new);
        self.errhandlers.detach(old);
        self.comms.own_errhandler_is_set |= kind == errhandler::Kind::Comm && handle == COMM_SELF;
        Ok(())
    }

    /// `MPI_*_get_errhandler`: a handle that the program frees.
    pub fn get_errhandler(&mut self, kind: errhandler::Kind, handle: Handle) -> Result<Handle> {
        let used = *self.errhandler_slot(kind, handle)?;
        Ok(self.errhandlers.hold(used))
    }

    /// The value `MPI_*_get_attr` gives: for a predefined key the address of an `int`. Those of
    /// communicators answer on every communicator, since programs ask those they made as often
    /// as the world.
    pub fn attr(&self, kind: attr::Kind, handle: Handle, keyval: Handle) -> Result<Option<usize>> {
        let attrs = self.attrs(kind, handle)?;
        match keyval {
            _ if kind != attr::Kind::Comm => {}
            attr::LASTUSEDCODE => return Ok(Some(self.codes.last_used_address())),
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
    use crate::coll::{Forced, LinkCosts, State};
    use crate::comm::{COMM_WORLD, Comm, Place};

    #[test]
    fn predefined_handles_resolve_and_survive_being_freed() {
        let mut objects = Objects::default();
        assert!(objects.group(GROUP_EMPTY).unwrap().is_empty());
        assert_eq!(objects.add_group(Group::EMPTY).unwrap(), GROUP_EMPTY);
        objects.free_group(GROUP_EMPTY).unwrap();
        objects.info_env.provide("wdir", "/");
        assert_eq!(objects.info(INFO_ENV).unwrap().hint("wdir"), Some("/"));
        assert!(objects.free_info(INFO_ENV).is_err() && objects.info_mut(INFO_ENV).is_err());
        assert_eq!(objects.optional_info(INFO_NULL), Ok(None));
    }

    #[test]
    fn unusable_handles_are_told_apart() {
        let mut objects = Objects::default();
        let group = objects.add_group(Group::range(0, 2)).unwrap();
        objects.free_group(group).unwrap();
        let error = objects.group(group).unwrap_err();
        assert!(error.class == Class::GROUP && error.text.contains("freed"), "{error}");
        assert_eq!(objects.group(GROUP_NULL).unwrap_err().text, "is MPI_GROUP_NULL");
        assert!(objects.group(INFO_ENV).unwrap_err().text.contains("0x131 is not a handle of this kind"));
        let info = objects.infos.insert(Info::new()).unwrap();
        objects.free_info(info).unwrap();
        assert_eq!(objects.free_info(info).unwrap_err().class, Class::INFO);
        assert_eq!(objects.info(INFO_NULL).unwrap_err().text, "is MPI_INFO_NULL");
    }

    fn with_comms() -> Objects {
        let mut objects = Objects::default();
        let place = Place::new(0, Arc::new(Group::range(0, 1)), 0);
        let link = LinkCosts::HOST;
        let comm = || Comm::new(place.clone(), errhandler::ARE_FATAL, State::new(link, Forced::default()));
        objects.comms.start(comm(), comm());
        objects
    }

    #[test]
    fn predefined_attributes_answer_on_every_communicator() {
        let mut objects = with_comms();
        objects.predefined.set(attr::TAG_UB, i32::MAX);
        for comm in [COMM_WORLD, COMM_SELF] {
            let value = |keyval| objects.attr(attr::Kind::Comm, comm, keyval);
            assert!(value(attr::TAG_UB).unwrap().is_some());
            assert_eq!(value(attr::LASTUSEDCODE), Ok(Some(objects.codes.last_used_address())));
            assert_eq!(value(attr::APPNUM), Ok(None));
            assert_eq!(value(attr::KEYVAL_INVALID).unwrap_err().class, Class::KEYVAL);
        }
        let freed = Handle(1 << 20 | 7);
        assert_eq!(objects.attr(attr::Kind::Comm, freed, attr::TAG_UB).unwrap_err().class, Class::COMM);
        let on_a_type = objects.attr(attr::Kind::Type, Handle(0x209), attr::TAG_UB);
        assert_eq!(on_a_type.unwrap_err().class, Class::KEYVAL);
    }

    #[test]
    fn a_communicator_keeps_the_handler_it_was_given() {
        let mut objects = with_comms();
        let kind = errhandler::Kind::Comm;
        let handler = objects.errhandlers.create(kind, 0x1000).unwrap();
        assert!(!objects.comms.own_errhandler_is_set);
        objects.set_errhandler(kind, COMM_SELF, handler).unwrap();
        assert!(objects.comms.own_errhandler_is_set);
        objects.errhandlers.free(handler).unwrap();
        assert_eq!(objects.get_errhandler(kind, COMM_WORLD), Ok(errhandler::ARE_FATAL));
        let again = objects.get_errhandler(kind, COMM_SELF).unwrap();
        assert_eq!(again, handler);
        objects.set_errhandler(kind, COMM_SELF, errhandler::RETURN).unwrap();
        objects.set_errhandler(kind, COMM_WORLD, again).unwrap();
        objects.errhandlers.free(again).unwrap();
        let for_files = objects.errhandlers.create(errhandler::Kind::File, 0x2000).unwrap();
        for bad in [for_files, errhandler::NULL] {
            let error = objects.set_errhandler(kind, COMM_WORLD, bad).unwrap_err();
            assert_eq!(error.class, Class::ERRHANDLER);
        }
        assert_eq!(objects.get_errhandler(kind, COMM_WORLD), Ok(again), "a refused handler changes nothing");
    }
}
