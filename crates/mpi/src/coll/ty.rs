//! What a schedule needs to know of a datatype.
use crate::datatype::basic::{self, Basic};
use crate::handle::Handle;
use crate::mem;

/// `MPI_BYTE`.
const BYTE: Handle = Handle(0x247);

/// A datatype as a schedule sees it.
#[derive(Clone, Debug)]
pub struct Type {
    /// Its handle, for operations of the application.
    pub handle: Handle,
    /// Bytes of data in one element.
    pub size: u64,
    /// Distance between elements.
    pub extent: i64,
    /// First byte used, from the address of an element.
    pub true_lb: i64,
    /// Bytes from the first to the last used.
    pub true_extent: i64,
    /// Whether any number of elements is one run of bytes that starts at their address.
    pub dense: bool,
    /// The machine type all of it is made of.
    pub basic: Option<Basic>,
}

impl Type {
    /// Plain bytes, type 0 of every program.
    pub fn bytes() -> Type {
        Type::predefined(BYTE).expect("MPI_BYTE is predefined")
    }

    /// A predefined datatype.
    pub fn predefined(handle: Handle) -> Option<Type> {
        let basic = basic::predefined(handle)?.basic;
        let (size, extent) = (u64::from(basic.size()), i64::from(basic.extent()));
        let dense = basic.is_dense();
        Some(Type { handle, size, extent, true_lb: 0, true_extent: extent, dense, basic: Some(basic) })
    }

    /// Whether two uses may share one entry of a program.
    pub fn same(&self, other: &Type) -> bool {
        self.handle == other.handle
    }

    /// Copies elements, packing or unpacking where the layouts differ: (type, count, address).
    pub fn copy(from: (&Type, u64, usize), to: (&Type, u64, usize)) {
        mem::copy(to.2, from.2, (from.1 * from.0.size) as usize);
    }
}
