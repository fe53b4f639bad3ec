//! The kinds of MPI objects and their predefined handles (MPI 5.0 section 20.3).

use mpi::datatype::basic;
use mpi::error::Class;
use mpi::handle::Handle;

/// A kind of object that a handle names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Object {
    /// `MPI_Comm`.
    Comm,
    /// `MPI_Group`.
    Group,
    /// `MPI_Win`.
    Win,
    /// `MPI_File`.
    File,
    /// `MPI_Session`.
    Session,
    /// `MPI_Message`.
    Message,
    /// `MPI_Info`.
    Info,
    /// `MPI_Errhandler`.
    Errhandler,
    /// `MPI_Request`.
    Request,
    /// `MPI_Op`.
    Op,
    /// `MPI_Datatype`.
    Datatype,
}

/// `MPI_COMM_WORLD`.
pub const COMM_WORLD: Handle = Handle(0x101);
/// `MPI_COMM_SELF`.
pub const COMM_SELF: Handle = Handle(0x102);
/// `MPI_REQUEST_NULL`.
pub const REQUEST_NULL: Handle = Handle(0x180);
/// `MPI_INFO_NULL`.
pub const INFO_NULL: Handle = Handle(0x130);

/// All predefined handles but datatypes, which [`basic::PREDEFINED`] lists, in the order of
/// their values.
pub const PREDEFINED: &[(&str, Handle)] = &[
    ("MPI_OP_NULL", Handle(0x20)),
    ("MPI_SUM", Handle(0x21)),
    ("MPI_MIN", Handle(0x22)),
    ("MPI_MAX", Handle(0x23)),
    ("MPI_PROD", Handle(0x24)),
    ("MPI_BAND", Handle(0x28)),
    ("MPI_BOR", Handle(0x29)),
    ("MPI_BXOR", Handle(0x2a)),
    ("MPI_LAND", Handle(0x30)),
    ("MPI_LOR", Handle(0x31)),
    ("MPI_LXOR", Handle(0x32)),
    ("MPI_MINLOC", Handle(0x38)),
    ("MPI_MAXLOC", Handle(0x39)),
    ("MPI_REPLACE", Handle(0x3c)),
    ("MPI_NO_OP", Handle(0x3d)),
    ("MPI_COMM_NULL", Handle(0x100)),
    ("MPI_COMM_WORLD", COMM_WORLD),
    ("MPI_COMM_SELF", COMM_SELF),
    ("MPI_GROUP_NULL", Handle(0x108)),
    ("MPI_GROUP_EMPTY", Handle(0x109)),
    ("MPI_WIN_NULL", Handle(0x110)),
    ("MPI_FILE_NULL", Handle(0x118)),
    ("MPI_SESSION_NULL", Handle(0x120)),
    ("MPI_MESSAGE_NULL", Handle(0x128)),
    ("MPI_MESSAGE_NO_PROC", Handle(0x129)),
    ("MPI_INFO_NULL", INFO_NULL),
    ("MPI_INFO_ENV", Handle(0x131)),
    ("MPI_ERRHANDLER_NULL", Handle(0x140)),
    ("MPI_ERRORS_ARE_FATAL", Handle(0x141)),
    ("MPI_ERRORS_ABORT", Handle(0x142)),
    ("MPI_ERRORS_RETURN", Handle(0x143)),
    ("MPI_REQUEST_NULL", REQUEST_NULL),
    ("MPI_DATATYPE_NULL", basic::DATATYPE_NULL),
];

/// One bit for each predefined operation, by its distance from `MPI_OP_NULL`.
const OPS: u32 = {
    let (mut bits, mut i) = (0, 0);
    while i < PREDEFINED.len() {
        let value = PREDEFINED[i].1.0;
        if value > 0x20 && value < 0x40 {
            bits |= 1 << (value - 0x20);
        }
        i += 1;
    }
    bits
};

/// The name in C of a predefined handle.
pub fn name_of(handle: Handle) -> Option<&'static str> {
    match PREDEFINED.iter().find(|row| row.1 == handle) {
        Some(row) => Some(row.0),
        None => basic::predefined(handle).map(|row| row.name),
    }
}

impl Object {
    /// All kinds.
    pub const ALL: [Object; 11] = [
        Object::Comm,
        Object::Group,
        Object::Win,
        Object::File,
        Object::Session,
        Object::Message,
        Object::Info,
        Object::Errhandler,
        Object::Request,
        Object::Op,
        Object::Datatype,
    ];

    /// The null handle and its name in C.
    pub const fn null(self) -> (Handle, &'static str) {
        match self {
            Object::Comm => (Handle(0x100), "MPI_COMM_NULL"),
            Object::Group => (Handle(0x108), "MPI_GROUP_NULL"),
            Object::Win => (Handle(0x110), "MPI_WIN_NULL"),
            Object::File => (Handle(0x118), "MPI_FILE_NULL"),
            Object::Session => (Handle(0x120), "MPI_SESSION_NULL"),
            Object::Message => (Handle(0x128), "MPI_MESSAGE_NULL"),
            Object::Info => (INFO_NULL, "MPI_INFO_NULL"),
            Object::Errhandler => (Handle(0x140), "MPI_ERRHANDLER_NULL"),
            Object::Request => (REQUEST_NULL, "MPI_REQUEST_NULL"),
            Object::Op => (Handle(0x20), "MPI_OP_NULL"),
            Object::Datatype => (basic::DATATYPE_NULL, "MPI_DATATYPE_NULL"),
        }
    }

    /// The class of an error about a handle of this kind.
    pub const fn class(self) -> Class {
        match self {
            Object::Comm => Class::COMM,
            Object::Group => Class::GROUP,
            Object::Win => Class::WIN,
            Object::File => Class::FILE,
            Object::Session => Class::SESSION,
            Object::Message | Object::Request => Class::REQUEST,
            Object::Info => Class::INFO,
            Object::Errhandler => Class::ERRHANDLER,
            Object::Op => Class::OP,
            Object::Datatype => Class::TYPE,
        }
    }

    /// "a communicator", for messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Object::Comm => "a communicator",
            Object::Group => "a group",
            Object::Win => "a window",
            Object::File => "a file",
            Object::Session => "a session",
            Object::Message => "a message",
            Object::Info => "an info object",
            Object::Errhandler => "an error handler",
            Object::Request => "a request",
            Object::Op => "an operation",
            Object::Datatype => "a datatype",
        }
    }

    /// Whether `handle` is a predefined object of this kind, not its null handle.
    #[inline(always)]
    pub fn is_predefined(self, handle: Handle) -> bool {
        match self {
            Object::Comm => handle == COMM_WORLD || handle == COMM_SELF,
            Object::Datatype => basic::index_of(handle).is_some(),
            Object::Op => matches!(handle.0, 0x20..=0x3f) && OPS >> (handle.0 - 0x20) & 1 != 0,
            Object::Group => handle.0 == 0x109,
            Object::Message => handle.0 == 0x129,
            Object::Info => handle.0 == 0x131,
            Object::Errhandler => matches!(handle.0, 0x141..=0x143),
            Object::Win | Object::File | Object::Session | Object::Request => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_predefined_handle_is_null_or_an_object_of_exactly_one_kind() {
        for &(name, handle) in PREDEFINED {
            let kinds =
                Object::ALL.iter().filter(|kind| kind.is_predefined(handle) || kind.null() == (handle, name));
            assert_eq!(kinds.count(), 1, "{name}");
            assert_eq!(name_of(handle), Some(name));
        }
        for row in basic::PREDEFINED {
            assert!(
                Object::ALL.iter().all(|k| k.is_predefined(row.handle) == (*k == Object::Datatype)),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn gaps_between_operations_are_no_operations() {
        assert!(!Object::Op.is_predefined(Handle(0x25)) && !Object::Op.is_predefined(Handle(0x20)));
    }
}
