//! The objects of the tools interface (MPI 5.0 chapter 15), and its results that may be left out. The
//! objects are pointers in C without predefined values but NULL; here they are numbers, of handles
//! or of enumerations, which the handlers check.

use mpi::handle::Handle;
use mpi::tools::ALL_HANDLES;

use super::output::{IntRef, Out, Stored};
use super::text::TextOut;
use super::{Role, kinds, not_null};
use crate::layout::{self, Set};

/// A variable of the application that holds an object of the tools interface.
#[derive(Clone, Copy, Debug)]
pub struct ToolPlace(usize);

impl ToolPlace {
    /// The object in it.
    pub fn get(self) -> Handle {
        // SAFETY: not null, and the application passes the address of a variable of this type.
        handle(unsafe { (self.0 as *const usize).read() })
    }

    /// Replaces it.
    pub fn set(self, handle: Handle) {
        // SAFETY: as in `get`.
        unsafe { (self.0 as *mut usize).write(handle.0 as usize) }
    }
}

/// The handle in a pointer; one that no handle has stands for those that are out of range.
pub fn handle(raw: usize) -> Handle {
    match raw {
        layout::ALL_HANDLES => Handle(ALL_HANDLES as u32),
        _ => Handle(u32::try_from(raw).unwrap_or(0)),
    }
}

/// A result that is not stored if the application passes NULL (MPI 5.0 section 15.3.6 and others:
/// "if any OUT parameter is a NULL pointer, the implementation will ignore the parameter").
#[derive(Clone, Copy, Debug)]
pub struct MaybeOut<T>(Option<Out<T>>);

impl<T: Stored> MaybeOut<T> {
    fn at(place: usize, arg: &'static str) -> Self {
        MaybeOut(Out::at(place, arg).ok())
    }

    /// Whether the result is wanted.
    pub fn is_wanted(self) -> bool {
        self.0.is_some()
    }

    /// Stores the result if it is wanted.
    pub fn set(self, value: T) {
        if let Some(out) = self.0 {
            out.set(value)
        }
    }
}

/// A string that is returned into a buffer (MPI 5.0 section 15.3.3).
#[derive(Clone, Copy, Debug)]
pub struct ToolText(Option<TextOut>);

/// The room in a [`ToolText`], and then what the string needs; both with the terminating zero.
#[derive(Clone, Copy, Debug)]
pub struct ToolLength(Option<IntRef>);

impl ToolLength {
    /// The room; none if it is not given.
    pub fn room(self) -> usize {
        self.0.map_or(0, |length| usize::try_from(length.get()).unwrap_or(0))
    }

    /// Stores how much there is.
    pub fn set_count(self, count: usize) {
        if let Some(length) = self.0 {
            length.set(count as i32);
        }
    }
}

impl ToolText {
    /// Stores as much of `text` as there is room for, and how much room it needs. Without a length
    /// nothing is stored, and without room only the length.
    pub fn set(self, length: ToolLength, text: &str) {
        let Some(length) = length.0 else { return };
        if let (Some(place), Ok(room @ 1..)) = (self.0, usize::try_from(length.get())) {
            // SAFETY: the application says that there is so much room.
            unsafe { place.set(text.as_bytes(), room) };
        }
        length.set(text.len() as i32 + 1);
    }
}

macro_rules! tool_kinds {
    ($($name:ident $c:literal;)*) => { kinds! { $(
        #[doc = concat!("An `", $c, "`.")]
        $name: usize, $c, Role::Address, usize, |raw, arg, cx| Ok(raw);
    )* } };
}

macro_rules! tool_handles {
    ($($name:ident $c:literal $reference:ident $c_reference:literal;)*) => { kinds! { $(
        #[doc = concat!("An `", $c, "`, which the handler checks.")]
        $name: usize, $c, Role::Address, Handle, |raw, arg, cx| Ok(handle(raw));
        #[doc = concat!("A variable of type `", $c, "`.")]
        $reference: usize, $c_reference, Role::Address, ToolPlace, |raw, arg, cx| not_null(raw, arg).map(ToolPlace);
    )* } };
}

tool_handles! {
    ToolCvar "MPI_T_cvar_handle" ToolCvarRef "MPI_T_cvar_handle *";
    ToolPvar "MPI_T_pvar_handle" ToolPvarRef "MPI_T_pvar_handle *";
    ToolPvarSession "MPI_T_pvar_session" ToolPvarSessionRef "MPI_T_pvar_session *";
}

tool_kinds! {
    ToolEnum "MPI_T_enum";
    ToolEventRegistration "MPI_T_event_registration";
    ToolEventRegistrationOut "MPI_T_event_registration *";
    ToolEventInstance "MPI_T_event_instance";
    ToolSourceOrderOut "MPI_T_source_order *";
    ToolEventFn "MPI_T_event_cb_function *";
    ToolEventFreeFn "MPI_T_event_free_cb_function *";
    ToolEventDroppedFn "MPI_T_event_dropped_cb_function *";
}

kinds! {
    /// How careful a callback is.
    ToolCbSafety: i32, "MPI_T_cb_safety", Role::Number, i32, |raw, arg, cx| Ok(raw);
    /// Receives an `int` if it is wanted.
    ToolIntOut: usize, "int *", Role::Address, MaybeOut<i32>, |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives for whom a variable is, if that is wanted.
    ToolVerbosityOut: usize, "int *", Role::Result(Set::Verbosity), MaybeOut<i32>, |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives what a variable belongs to, if that is wanted.
    ToolBindOut: usize, "int *", Role::Result(Set::Bind), MaybeOut<i32>, |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives where a variable is changed, if that is wanted.
    ToolScopeOut: usize, "int *", Role::Result(Set::Scope), MaybeOut<i32>, |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives the class of a performance variable if it is wanted.
    ToolVariableClassOut: usize, "int *", Role::Result(Set::VariableClass), MaybeOut<i32>,
        |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives a truth value if it is wanted.
    ToolFlagOut: usize, "int *", Role::Address, MaybeOut<bool>, |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives a datatype if it is wanted.
    ToolDatatypeOut: usize, "MPI_Datatype *", Role::Address, MaybeOut<Handle>, |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives an enumeration if it is wanted.
    ToolEnumOut: usize, "MPI_T_enum *", Role::Address, MaybeOut<usize>, |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives an info object if it is wanted.
    ToolInfoOut: usize, "MPI_Info *", Role::Address, MaybeOut<Handle>, |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives an `MPI_Count` if it is wanted.
    ToolCountOut: usize, "MPI_Count *", Role::Address, MaybeOut<i64>, |raw, arg, cx| Ok(MaybeOut::at(raw, arg));
    /// Receives a string if it is wanted.
    ToolStrOut: usize, "char *", Role::Address, ToolText, |raw, arg, cx| Ok(ToolText(TextOut::at(raw)));
    /// The room for a string, and then what it needs.
    ToolLengthInOut: usize, "int *", Role::Address, ToolLength, |raw, arg, cx| Ok(ToolLength(IntRef::at(raw)));
    /// A buffer for the value of a variable.
    ToolBufOut: usize, "void *", Role::Address, usize, |raw, arg, cx| not_null(raw, arg);
    /// A buffer with the value of a variable.
    ToolBufIn: usize, "const void *", Role::Address, usize, |raw, arg, cx| not_null(raw, arg);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_cut_and_their_room_is_told() {
        let set = |buffer: Option<&mut [u8]>, mut length: i32| {
            let place = buffer.map_or(0, |buffer| buffer.as_mut_ptr() as usize);
            ToolText(TextOut::at(place)).set(ToolLength(IntRef::at(&raw mut length as usize)), "eager");
            length
        };
        let mut buffer = *b"........";
        assert_eq!(set(None, 8), 6);
        assert_eq!((set(Some(&mut buffer), 0), set(Some(&mut buffer), -1)), (6, 6));
        assert_eq!(&buffer, b"........");
        assert_eq!(set(Some(&mut buffer), 3), 6);
        assert_eq!(&buffer, b"ea\0.....");
        assert_eq!(set(Some(&mut buffer), 8), 6);
        assert_eq!(&buffer, b"eager\0..");
        ToolText(TextOut::at(buffer.as_mut_ptr() as usize)).set(ToolLength(None), "other");
        assert_eq!(&buffer, b"eager\0..");
    }

    #[test]
    fn pointers_that_are_no_handle_name_none() {
        assert_eq!(handle(1 << 40 | 1 << 20), Handle(0));
        assert_eq!(handle(1 << 20), Handle(1 << 20));
    }
}
