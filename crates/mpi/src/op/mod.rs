//! Reduction operations (MPI 5.0 section 6.9).
//!
//! All of them combine elementwise as `inout[i] = in[i] op inout[i]`, where `in` comes from lower
//! ranks: the order matters only for operations of the application that do not commute.
mod arith;
mod soft;
mod table;

use std::sync::Arc;

use crate::datatype::basic::{self, Basic, Group};
use crate::error::{Class, Result, fail};
use crate::handle::Handle;

pub use table::Ops;

/// The operations the standard defines; the numbers are their handles in the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u32)]
pub enum Predefined {
    /// `MPI_SUM`
    Sum = 0x21,
    /// `MPI_MIN`
    Min = 0x22,
    /// `MPI_MAX`
    Max = 0x23,
    /// `MPI_PROD`
    Prod = 0x24,
    /// `MPI_BAND`
    Band = 0x28,
    /// `MPI_BOR`
    Bor = 0x29,
    /// `MPI_BXOR`
    Bxor = 0x2a,
    /// `MPI_LAND`
    Land = 0x30,
    /// `MPI_LOR`
    Lor = 0x31,
    /// `MPI_LXOR`
    Lxor = 0x32,
    /// `MPI_MINLOC`
    Minloc = 0x38,
    /// `MPI_MAXLOC`
    Maxloc = 0x39,
    /// `MPI_REPLACE`, for one-sided accumulation only
    Replace = 0x3c,
    /// `MPI_NO_OP`, for one-sided accumulation only
    NoOp = 0x3d,
}

/// An operation of the application (`MPI_Op_create`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct User {
    /// Address of the C function; the C binding calls it, nothing here does.
    pub function: usize,
    /// Whether the application promises that it commutes.
    pub commutes: bool,
    /// Whether its length argument is `MPI_Count *` (`MPI_Op_create_c`).
    pub large: bool,
}

/// A reduction operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// One of the standard's.
    Predefined(Predefined),
    /// One of the application's.
    User(Arc<User>),
}

impl Op {
    /// Which of the standard's it is.
    pub fn predefined(&self) -> Option<Predefined> {
        match self {
            Op::Predefined(op) => Some(*op),
            Op::User(_) => None,
        }
    }
}

/// `MPI_OP_NULL`.
pub const OP_NULL: Handle = Handle(0x20);

impl Predefined {
    /// All of them.
    pub const ALL: [Predefined; 14] = {
        use Predefined::*;
        [Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor, Minloc, Maxloc, Replace, NoOp]
    };

    /// The operation with this handle.
    #[inline]
    pub fn from_handle(handle: Handle) -> Option<Predefined> {
        *Self::BY_HANDLE.get(handle.0 as usize)?
    }

    /// All of them where their handles say.
    const BY_HANDLE: [Option<Predefined>; 64] = {
        let mut by_handle = [None; 64];
        let mut i = 0;
        while i < Self::ALL.len() {
            by_handle[Self::ALL[i] as usize] = Some(Self::ALL[i]);
            i += 1;
        }
        by_handle
    };

    /// Its name in C.
    pub fn name(self) -> &'static str {
        match self {
            Predefined::Sum => "MPI_SUM",
            Predefined::Min => "MPI_MIN",
            Predefined::Max => "MPI_MAX",
            Predefined::Prod => "MPI_PROD",
            Predefined::Band => "MPI_BAND",
            Predefined::Bor => "MPI_BOR",
            Predefined::Bxor => "MPI_BXOR",
            Predefined::Land => "MPI_LAND",
            Predefined::Lor => "MPI_LOR",
            Predefined::Lxor => "MPI_LXOR",
            Predefined::Minloc => "MPI_MINLOC",
            Predefined::Maxloc => "MPI_MAXLOC",
            Predefined::Replace => "MPI_REPLACE",
            Predefined::NoOp => "MPI_NO_OP",
        }
    }

    /// Whether it takes elements of this type (MPI 5.0 section 6.9.2; one-sided: 12.3.4). `MPI_CHAR`
    /// is taken as an integer, though the standard does not define that.
    #[inline]
    pub fn takes(self, basic: Basic) -> bool {
        self.groups() & basic.group().bit() != 0
    }

    /// The groups of types that it takes.
    #[inline]
    const fn groups(self) -> u8 {
        use Group::*;
        match self {
            Predefined::Min | Predefined::Max => Integer.bit() | Float.bit(),
            Predefined::Sum | Predefined::Prod => Integer.bit() | Float.bit() | Complex.bit(),
            Predefined::Band | Predefined::Bor | Predefined::Bxor => Integer.bit() | Byte.bit(),
            Predefined::Land | Predefined::Lor | Predefined::Lxor => Integer.bit() | Logical.bit(),
            Predefined::Minloc | Predefined::Maxloc => Pair.bit(),
            Predefined::Replace | Predefined::NoOp => u8::MAX,
        }
    }

    /// The groups of types that a collective reduction may use it on, by its handle; none where there is no operation.
    const REDUCED: [u8; 64] = {
        let mut groups = [0; 64];
        let mut i = 0;
        while i < Self::ALL.len() {
            let op = Self::ALL[i];
            if !matches!(op, Predefined::Replace | Predefined::NoOp) {
                groups[op as usize] = op.groups();
            }
            i += 1;
        }
        groups
    };
}

/// Whether both are the standard's, and a collective reduction may use this operation on that type.
#[inline]
pub fn reduces(op: Handle, datatype: Handle) -> bool {
    static REDUCED: [u8; 64] = Predefined::REDUCED;
    REDUCED.get(op.0 as usize).is_some_and(|groups| groups & basic::group_bit(datatype) != 0)
}

impl Op {
    /// Whether the order of operands may be changed.
    pub fn commutes(&self) -> bool {
        match self {
            Op::Predefined(_) => true,
            Op::User(user) => user.commutes,
        }
    }

    /// Whether a collective reduction may use it on this type; `basic` is the one machine type a
    /// datatype is made of, if there is one.
    pub fn check(&self, basic: Option<Basic>, datatype: Handle) -> Result {
        match self {
            Op::User(_) => Ok(()),
            Op::Predefined(op @ (Predefined::Replace | Predefined::NoOp)) => {
                fail(Class::OP, format!("{} is for one-sided accumulation, not for reductions", op.name()))
            }
            Op::Predefined(op) => element(*op, basic, datatype).map(|_| ()),
        }
    }
}

/// The machine type `op` works on, or why it cannot.
#[inline]
pub fn element(op: Predefined, basic: Option<Basic>, datatype: Handle) -> Result<Basic> {
    match basic {
        Some(basic) if op.takes(basic) => Ok(basic),
        _ => refuse(op, datatype),
    }
}

#[cold]
fn refuse(op: Predefined, datatype: Handle) -> Result<Basic> {
    let name = match basic::predefined(datatype) {
        Some(row) => row.name.to_string(),
        None => "this derived datatype".to_string(),
    };
    fail(Class::OP, format!("{} is not defined for {name}", op.name()))
}

/// `inout[i] = input[i] op inout[i]` for the elements of two slices of equal length, which need
/// not be aligned.
#[inline]
pub fn apply(op: Predefined, basic: Basic, input: &[u8], inout: &mut [u8]) {
    assert!(input.len() == inout.len(), "vectors of different lengths");
    debug_assert!(op.takes(basic));
    match op {
        Predefined::Sum | Predefined::Prod | Predefined::Min | Predefined::Max => {
            arith::numeric(op, basic, input, inout);
        }
        Predefined::Band => arith::bits(input, inout, |a, b| a & b),
        Predefined::Bor => arith::bits(input, inout, |a, b| a | b),
        Predefined::Bxor => arith::bits(input, inout, |a, b| a ^ b),
        Predefined::Land => arith::logical(basic, input, inout, |a, b| a & b),
        Predefined::Lor => arith::logical(basic, input, inout, |a, b| a | b),
        Predefined::Lxor => arith::logical(basic, input, inout, |a, b| a ^ b),
        Predefined::Minloc => arith::locate(basic, input, inout, true),
        Predefined::Maxloc => arith::locate(basic, input, inout, false),
        Predefined::Replace => inout.copy_from_slice(input),
        Predefined::NoOp => {}
    }
}

#[cfg(test)]
mod tests;
