//! Handles: checked against the predefined ones first, then against the tables of the rank.

use mpi::error::Result;
use mpi::handle::Handle;

use super::{Role, kinds, not_null};
use crate::cx::Cx;
use crate::layout;
use crate::lookup;
use crate::object::Object;

/// A raw handle that must name a live object.
#[inline(always)]
pub fn live(object: Object, raw: usize, arg: &'static str, _: &Cx) -> Result<Handle> {
    let handle = Handle(raw as u32);
    if raw <= u32::MAX as usize && (object.is_predefined(handle) || known(object, handle)) {
        Ok(handle)
    } else {
        Err(lookup::refuse(object, raw, arg))
    }
}

/// As [`live`], for arguments where the null handle has a meaning.
#[inline(always)]
pub fn live_or_null(object: Object, raw: usize, arg: &'static str, cx: &Cx) -> Result<Handle> {
    if raw == object.null().0.0 as usize { Ok(object.null().0) } else { live(object, raw, arg, cx) }
}

#[inline]
fn known(object: Object, handle: Handle) -> bool {
    !handle.is_predefined() && lookup::is_live(object, handle)
}

/// A variable of the application that holds a handle, which the operation reads and replaces.
#[derive(Debug)]
pub struct HandleRef {
    place: usize,
    /// The handle it held when the operation was called.
    pub handle: Handle,
}

impl HandleRef {
    #[inline(always)]
    fn read(
        object: Object,
        place: usize,
        arg: &'static str,
        check: impl FnOnce(usize) -> Result<Handle>,
    ) -> Result<Self> {
        let place = not_null(place, arg)?;
        // SAFETY: not null, and the application passes the address of a variable for such a handle.
        let raw = unsafe { layout::load(object, place) };
        Ok(HandleRef { place, handle: check(raw)? })
    }

    /// Replaces the handle in the application's variable.
    #[inline(always)]
    pub fn set(&self, handle: Handle) {
        // SAFETY: `read` read the variable at this address during this call.
        unsafe { layout::store(self.place, handle) }
    }
}

macro_rules! handles {
    ($($name:ident $reference:ident $c:literal $c_reference:literal;)*) => { kinds! { $(
        #[doc = concat!("A live handle of type `", $c, "`.")]
        $name: usize, $c, Role::Handle(Object::$name), Handle, |raw, arg, cx| live(Object::$name, raw, arg, cx);
        #[doc = concat!("A variable that holds a live handle of type `", $c, "`.")]
        $reference: usize, $c_reference, Role::Address, HandleRef,
            |raw, arg, cx| HandleRef::read(Object::$name, raw, arg, |raw| live(Object::$name, raw, arg, cx));
    )* } };
}

handles! {
    Comm CommRef "MPI_Comm" "MPI_Comm *";
    Group GroupRef "MPI_Group" "MPI_Group *";
    Win WinRef "MPI_Win" "MPI_Win *";
    File FileRef "MPI_File" "MPI_File *";
    Session SessionRef "MPI_Session" "MPI_Session *";
    Message MessageRef "MPI_Message" "MPI_Message *";
    Info InfoRef "MPI_Info" "MPI_Info *";
    Errhandler ErrhandlerRef "MPI_Errhandler" "MPI_Errhandler *";
    Request RequestRef "MPI_Request" "MPI_Request *";
    Op OpRef "MPI_Op" "MPI_Op *";
    Datatype DatatypeRef "MPI_Datatype" "MPI_Datatype *";
}

kinds! {
    /// An info object or `MPI_INFO_NULL`.
    InfoOrNull: usize, "MPI_Info", Role::Handle(Object::Info), Handle,
        |raw, arg, cx| live_or_null(Object::Info, raw, arg, cx);
    /// An info object or `MPI_INFO_NULL`, significant at the root alone: that checks it.
    RootInfo: usize, "MPI_Info", Role::Handle(Object::Info), usize, |raw, arg, cx| Ok(raw);
    /// A communicator or `MPI_COMM_NULL`.
    CommOrNull: usize, "MPI_Comm", Role::Handle(Object::Comm), Handle,
        |raw, arg, cx| live_or_null(Object::Comm, raw, arg, cx);
    /// A window or `MPI_WIN_NULL`.
    WinOrNull: usize, "MPI_Win", Role::Handle(Object::Win), Handle,
        |raw, arg, cx| live_or_null(Object::Win, raw, arg, cx);
    /// A file or `MPI_FILE_NULL`.
    FileOrNull: usize, "MPI_File", Role::Handle(Object::File), Handle,
        |raw, arg, cx| live_or_null(Object::File, raw, arg, cx);
    /// A request or `MPI_REQUEST_NULL`.
    RequestOrNull: usize, "MPI_Request", Role::Handle(Object::Request), Handle,
        |raw, arg, cx| live_or_null(Object::Request, raw, arg, cx);
    /// A variable that holds a request or `MPI_REQUEST_NULL`.
    RequestRefOrNull: usize, "MPI_Request *", Role::Address, HandleRef,
        |raw, arg, cx| HandleRef::read(Object::Request, raw, arg, |raw| live_or_null(Object::Request, raw, arg, cx));
    /// A datatype or `MPI_DATATYPE_NULL`.
    DatatypeOrNull: usize, "MPI_Datatype", Role::Handle(Object::Datatype), Handle,
        |raw, arg, cx| live_or_null(Object::Datatype, raw, arg, cx);
    /// A datatype that counts only on some ranks or with some buffers: the handler checks it
    /// with [`live`] where it is significant.
    MaybeDatatype: usize, "MPI_Datatype", Role::Handle(Object::Datatype), usize, |raw, arg, cx| Ok(raw);
    /// A group that counts only on some ranks, as [`MaybeDatatype`].
    MaybeGroup: usize, "MPI_Group", Role::Handle(Object::Group), usize, |raw, arg, cx| Ok(raw);
    /// A communicator that counts only on some ranks, as [`MaybeDatatype`].
    MaybeComm: usize, "MPI_Comm", Role::Handle(Object::Comm), usize, |raw, arg, cx| Ok(raw);
}
