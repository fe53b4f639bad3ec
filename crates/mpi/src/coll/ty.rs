//! What a schedule needs to know of a datatype, at hand without following it.
use std::sync::Arc;

use crate::datatype::basic::{self, BYTE, Basic};
use crate::datatype::{self, Buffer, Datatype};
use crate::handle::Handle;
use crate::mem;

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
    /// The machine type a predefined operation works on.
    pub basic: Option<Basic>,
    /// A derived datatype keeps its layout alive; predefined ones live as long as the process.
    derived: Option<Arc<Datatype>>,
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
        let basic = Some(basic);
        Some(Type { handle, size, extent, true_lb: 0, true_extent: extent, dense, basic, derived: None })
    }

    /// Any datatype.
    ///
    /// The standard restricts predefined operations to predefined datatypes (MPI 5.0 section
    /// 6.9.2); copies of these (MPI_Type_dup, the Fortran 90 types) are taken as well.
    pub fn of(handle: Handle, datatype: &Arc<Datatype>) -> Type {
        if let Some(ty) = Type::predefined(handle) {
            return ty;
        }
        let copied = datatype.elements() == 1 && datatype.is_contiguous();
        Type {
            handle,
            size: datatype.size(),
            extent: datatype.extent(),
            true_lb: datatype.true_lb(),
            true_extent: datatype.true_extent(),
            dense: datatype.is_contiguous(),
            basic: if copied { datatype.basic() } else { None },
            derived: Some(datatype.clone()),
        }
    }

    /// Whether it is one of the standard's.
    pub fn is_predefined(&self) -> bool {
        self.derived.is_none()
    }

    /// The datatype itself.
    pub fn datatype(&self) -> &Arc<Datatype> {
        match &self.derived {
            Some(datatype) => datatype,
            None => Datatype::of(self.handle).expect("a type without layout is predefined"),
        }
    }

    /// Whether two uses may share one entry of a program.
    pub fn same(&self, other: &Type) -> bool {
        match (&self.derived, &other.derived) {
            (None, None) => self.handle == other.handle,
            (Some(a), Some(b)) => self.handle == other.handle && Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Copies elements, packing or unpacking where the layouts differ: (type, count, address).
    pub fn copy(from: (&Type, u64, usize), to: (&Type, u64, usize)) {
        if from.0.dense && to.0.dense {
            return mem::copy(to.2, from.2, (from.1 * from.0.size) as usize);
        }
        datatype::copy(
            Buffer { base: from.2, count: from.1, ty: from.0.datatype() },
            Buffer { base: to.2, count: to.1, ty: to.0.datatype() },
        );
    }
}
