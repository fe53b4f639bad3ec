//! Data representations (MPI 5.0 section 14.5): how elements lie in a file.

use std::sync::Arc;

use crate::datatype::{Datatype, basic};
use crate::error::{Class, Result, fail};

/// A function of the application that converts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conversion {
    /// Its address.
    pub address: usize,
    /// Whether it takes counts as `MPI_Count`.
    pub large: bool,
}

/// A representation of the application (`MPI_Register_datarep`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserRep {
    /// Its name.
    pub name: Box<[u8]>,
    /// From the file to memory; `None`: as it lies.
    pub read: Option<Conversion>,
    /// From memory to the file; `None`: as it lies.
    pub write: Option<Conversion>,
    /// Says how many bytes an element takes in the file.
    pub extent: usize,
    /// First passed to all three.
    pub extra_state: usize,
}

/// How elements lie in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datarep {
    /// As in memory.
    Native,
    /// As in memory too: every rank that can open the file reads what others wrote.
    Internal,
    /// Big-endian, of fixed sizes.
    External32,
    /// As functions of the application say.
    User(Arc<UserRep>),
}

impl Datarep {
    /// The name the program knows it by.
    pub fn name(&self) -> &[u8] {
        match self {
            Datarep::Native => b"native",
            Datarep::Internal => b"internal",
            Datarep::External32 => b"external32",
            Datarep::User(user) => &user.name,
        }
    }

    /// The representation of a name, among those that were registered.
    pub fn of(name: &[u8], registered: &[Arc<UserRep>]) -> Result<Datarep> {
        match name {
            b"native" => Ok(Datarep::Native),
            b"internal" => Ok(Datarep::Internal),
            b"external32" => Ok(Datarep::External32),
            _ => match registered.iter().find(|rep| *rep.name == *name) {
                Some(rep) => Ok(Datarep::User(rep.clone())),
                None => {
                    let name = String::from_utf8_lossy(name);
                    let text = format!("argument `datarep` is \"{name}\", which was not registered");
                    fail(Class::UNSUPPORTED_DATAREP, text)
                }
            },
        }
    }

    /// Whether bytes lie in the file as in memory.
    pub fn is_plain(&self) -> bool {
        match self {
            Datarep::Native | Datarep::Internal => true,
            Datarep::External32 => false,
            Datarep::User(user) => user.read.is_none() && user.write.is_none(),
        }
    }
}

/// How many bytes a predefined datatype, by its position in the table, takes in memory and in the file.
#[derive(Clone, Debug, Default)]
pub struct Sizes(pub Vec<(u8, u64)>);

impl Sizes {
    /// Those that external32 has for the elements of a type.
    pub fn external(ty: &Datatype) -> Sizes {
        let size = |kind: &u8| (*kind, u64::from(basic::PREDEFINED[*kind as usize].external_size));
        Sizes(ty.kinds().iter().map(size).collect())
    }

    fn of(&self, kind: u8) -> u64 {
        let known = self.0.iter().find(|size| size.0 == kind).map(|size| size.1);
        known.unwrap_or(u64::from(basic::PREDEFINED[kind as usize].basic.size()))
    }

    /// Bytes of one item of a type in the file.
    pub fn item(&self, ty: &Datatype) -> u64 {
        ty.size_by(&|kind| self.of(kind))
    }

    /// How items of a type lie in the file.
    pub fn refit(&self, ty: &Arc<Datatype>) -> Result<Arc<Datatype>> {
        ty.refitted(&|kind| self.of(kind))
    }
}
