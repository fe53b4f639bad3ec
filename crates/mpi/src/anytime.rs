//! What a program may use at any time and from any thread, whatever the level of thread support (MPI 5.0
//! sections 11.4.1 and 11.6): it belongs to the process and not to communication, so nothing of it
//! is in the rank ([`crate::World`]), and who uses it does not touch that.

use crate::codes::ErrorCodes;
use crate::errhandler::Errhandlers;
use crate::error::{Class, Result, fail};
use crate::handle::{Handle, Slab};
use crate::info::Info;
use crate::objects::unusable;
use crate::tools::Tools;

/// `MPI_INFO_NULL`.
pub const INFO_NULL: Handle = Handle(0x130);
/// `MPI_INFO_ENV`.
pub const INFO_ENV: Handle = Handle(0x131);

/// The objects that are there before MPI is initialised and after it is finalised.
#[derive(Debug, Default)]
pub struct Anytime {
    /// Info objects the program holds.
    pub infos: Slab<Info>,
    /// What `MPI_INFO_ENV` holds.
    pub info_env: Info,
    /// Error handlers, and which objects use them.
    pub errhandlers: Errhandlers,
    /// Error classes and codes.
    pub codes: ErrorCodes,
    /// The tools interface.
    pub tools: Tools,
}

impl Anytime {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predefined_infos_resolve_and_survive_being_freed() {
        let mut anytime = Anytime::default();
        anytime.info_env.provide("wdir", "/");
        assert_eq!(anytime.info(INFO_ENV).unwrap().hint("wdir"), Some("/"));
        assert!(anytime.free_info(INFO_ENV).is_err() && anytime.info_mut(INFO_ENV).is_err());
        assert_eq!(anytime.optional_info(INFO_NULL), Ok(None));
    }

    #[test]
    fn unusable_infos_are_told_apart() {
        let mut anytime = Anytime::default();
        let info = anytime.infos.insert(Info::new()).unwrap();
        anytime.free_info(info).unwrap();
        assert_eq!(anytime.free_info(info).unwrap_err().class, Class::INFO);
        assert_eq!(anytime.info(INFO_NULL).unwrap_err().text, "is MPI_INFO_NULL");
    }
}
