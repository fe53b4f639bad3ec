//! The predefined datatypes of the standard ABI (MPI 5.0 sections 3.2.2 and 20.3) and the
//! machine types behind them.
//!
//! Several MPI names stand for one machine type: reductions, packing and type matching work on
//! [`Basic`], the table [`PREDEFINED`] leads from a handle to it. Sizes are those of Linux on
//! x86-64 and aarch64, where `long` has 8 bytes and `long double` occupies 16.

use crate::handle::Handle;

/// What the memory of one element holds, as far as arithmetic and conversion care.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[repr(u8)]
pub enum Basic {
    /// Uninterpreted bytes (`MPI_BYTE`).
    Byte,
    /// Output of `MPI_Pack`.
    Packed,
    /// C `char`. The standard calls it a printable character and allows no arithmetic; other MPIs
    /// take it as the integer that it is in C, and programs rely on that.
    Char,
    /// A character of Fortran: no arithmetic.
    Character,
    /// `wchar_t`, 4 bytes on Linux: no arithmetic.
    Wchar,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 128-bit signed integer (Fortran `INTEGER*16`).
    I128,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE 754 binary16.
    F16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary128 (Fortran `REAL*16`): transfer only, Rust has no such type.
    F128,
    /// C `long double`: x87 extended in 16 bytes on x86-64, binary128 on aarch64.
    LongDouble,
    /// Two [`Basic::F16`].
    ComplexF16,
    /// Two [`Basic::F32`].
    ComplexF32,
    /// Two [`Basic::F64`].
    ComplexF64,
    /// Two [`Basic::F128`].
    ComplexF128,
    /// Two [`Basic::LongDouble`].
    ComplexLongDouble,
    /// Truth value in 1 byte: C `_Bool`, C++ `bool`, Fortran `LOGICAL*1`.
    Logical8,
    /// Truth value in 2 bytes.
    Logical16,
    /// Truth value in 4 bytes, also the default Fortran `LOGICAL`.
    Logical32,
    /// Truth value in 8 bytes.
    Logical64,
    /// Truth value in 16 bytes.
    Logical128,
    /// `struct { float value; int index; }`.
    FloatInt,
    /// `struct { double value; int index; }`, 4 bytes of padding at the end.
    DoubleInt,
    /// `struct { long value; int index; }`, 4 bytes of padding at the end.
    LongInt,
    /// `struct { int value; int index; }`, also Fortran's pair of `INTEGER`.
    IntInt,
    /// `struct { short value; int index; }`, 2 bytes of padding in the middle.
    ShortInt,
    /// `struct { long double value; int index; }`, 12 bytes of padding at the end.
    LongDoubleInt,
    /// Fortran's pair of `REAL`, for MINLOC and MAXLOC.
    FloatFloat,
    /// Fortran's pair of `DOUBLE PRECISION`, for MINLOC and MAXLOC.
    DoubleDouble,
}

/// The groups of MPI 5.0 section 6.9.2 that decide which operation takes which type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// C and Fortran integers, the address-sized ones, and C `char`.
    Integer,
    /// Real floating point.
    Float,
    /// Complex floating point.
    Complex,
    /// Truth values.
    Logical,
    /// `MPI_BYTE`.
    Byte,
    /// Value and index, for MINLOC and MAXLOC.
    Pair,
    /// Characters but C `char`, and packed data: no operation of the standard takes them.
    Opaque,
}

impl Group {
    /// Its bit in a set of groups.
    #[inline]
    pub const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Basic {
    /// Bytes of data in one element, without padding.
    #[inline]
    pub const fn size(self) -> u32 {
        use Basic::*;
        match self {
            Byte | Packed | Char | Character | I8 | U8 | Logical8 => 1,
            I16 | U16 | F16 | Logical16 => 2,
            Wchar | I32 | U32 | F32 | Logical32 | ComplexF16 => 4,
            ShortInt => 6,
            I64 | U64 | F64 | Logical64 | ComplexF32 | FloatInt | IntInt | FloatFloat => 8,
            DoubleInt | LongInt => 12,
            I128 | F128 | LongDouble | Logical128 | ComplexF64 | DoubleDouble => 16,
            LongDoubleInt => 20,
            ComplexF128 | ComplexLongDouble => 32,
        }
    }

    /// The boundary on which C places an element.
    #[inline]
    pub const fn align(self) -> u32 {
        use Basic::*;
        match self {
            ComplexF16 => 2,
            ComplexF32 | FloatInt | IntInt | ShortInt | FloatFloat => 4,
            ComplexF64 | DoubleInt | LongInt | DoubleDouble => 8,
            ComplexF128 | ComplexLongDouble | LongDoubleInt => 16,
            plain => plain.size(),
        }
    }

    /// Distance between consecutive elements of an array: size and padding.
    #[inline]
    pub const fn extent(self) -> u32 {
        // A boundary is a power of two: no division, for this is asked in every reduction.
        let align = self.align();
        (self.size() + align - 1) & !(align - 1)
    }

    /// Whether an array of these has no gaps.
    pub const fn is_dense(self) -> bool {
        self.size() == self.extent()
    }

    /// Which operations of the standard take it.
    #[inline]
    pub const fn group(self) -> Group {
        use Basic::*;
        match self {
            Byte => Group::Byte,
            Packed | Character | Wchar => Group::Opaque,
            Char | I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 => Group::Integer,
            F16 | F32 | F64 | F128 | LongDouble => Group::Float,
            ComplexF16 | ComplexF32 | ComplexF64 | ComplexF128 | ComplexLongDouble => Group::Complex,
            Logical8 | Logical16 | Logical32 | Logical64 | Logical128 => Group::Logical,
            FloatInt | DoubleInt | LongInt | IntInt | ShortInt | LongDoubleInt | FloatFloat
            | DoubleDouble => Group::Pair,
        }
    }

    /// Value and index of a pair, `None` for all others.
    pub const fn pair(self) -> Option<(Basic, Basic)> {
        use Basic::*;
        Some(match self {
            FloatInt => (F32, I32),
            DoubleInt => (F64, I32),
            LongInt => (I64, I32),
            IntInt => (I32, I32),
            ShortInt => (I16, I32),
            LongDoubleInt => (LongDouble, I32),
            FloatFloat => (F32, F32),
            DoubleDouble => (F64, F64),
            _ => return None,
        })
    }

    /// Offset of the index inside a pair, in bytes.
    pub const fn index_offset(self) -> Option<u32> {
        match self.pair() {
            Some((value, index)) => Some(value.size().next_multiple_of(index.align())),
            None => None,
        }
    }

    /// The real type of which a complex one holds two.
    pub const fn component(self) -> Option<Basic> {
        match self {
            Basic::ComplexF16 => Some(Basic::F16),
            Basic::ComplexF32 => Some(Basic::F32),
            Basic::ComplexF64 => Some(Basic::F64),
            Basic::ComplexF128 => Some(Basic::F128),
            Basic::ComplexLongDouble => Some(Basic::LongDouble),
            _ => None,
        }
    }
}

/// One predefined datatype.
#[derive(Clone, Copy, Debug)]
pub struct Predefined {
    /// The handle the standard ABI assigns.
    pub handle: Handle,
    /// Its name in C, which `MPI_Type_get_name` returns.
    pub name: &'static str,
    /// What its memory holds.
    pub basic: Basic,
    /// Bytes in the external32 representation (MPI 5.0 table 14.2).
    pub external_size: u32,
}

/// `MPI_DATATYPE_NULL`.
pub const DATATYPE_NULL: Handle = Handle(0x200);
/// `MPI_BYTE`.
pub const BYTE: Handle = Handle(0x247);

const fn row(handle: u32, name: &'static str, basic: Basic) -> Predefined {
    narrowed(handle, name, basic, basic.size())
}

/// A row whose external32 width differs from its width in memory.
const fn narrowed(handle: u32, name: &'static str, basic: Basic, external_size: u32) -> Predefined {
    Predefined { handle: Handle(handle), name, basic, external_size }
}

/// All predefined datatypes in the order of their handles. Of two names for one handle the one is
/// given that the standard does not call the synonym (MPI 5.0 section 3.2.2), as every MPI does.
pub static PREDEFINED: &[Predefined] = &[
    row(0x201, "MPI_AINT", Basic::I64),
    row(0x202, "MPI_COUNT", Basic::I64),
    row(0x203, "MPI_OFFSET", Basic::I64),
    row(0x207, "MPI_PACKED", Basic::Packed),
    row(0x208, "MPI_SHORT", Basic::I16),
    row(0x209, "MPI_INT", Basic::I32),
    narrowed(0x20a, "MPI_LONG", Basic::I64, 4),
    row(0x20b, "MPI_LONG_LONG_INT", Basic::I64),
    row(0x20c, "MPI_UNSIGNED_SHORT", Basic::U16),
    row(0x20d, "MPI_UNSIGNED", Basic::U32),
    narrowed(0x20e, "MPI_UNSIGNED_LONG", Basic::U64, 4),
    row(0x20f, "MPI_UNSIGNED_LONG_LONG", Basic::U64),
    row(0x210, "MPI_FLOAT", Basic::F32),
    row(0x212, "MPI_C_COMPLEX", Basic::ComplexF32),
    row(0x213, "MPI_CXX_FLOAT_COMPLEX", Basic::ComplexF32),
    row(0x214, "MPI_DOUBLE", Basic::F64),
    row(0x216, "MPI_C_DOUBLE_COMPLEX", Basic::ComplexF64),
    row(0x217, "MPI_CXX_DOUBLE_COMPLEX", Basic::ComplexF64),
    row(0x218, "MPI_LOGICAL", Basic::Logical32),
    row(0x219, "MPI_INTEGER", Basic::I32),
    row(0x21a, "MPI_REAL", Basic::F32),
    row(0x21b, "MPI_COMPLEX", Basic::ComplexF32),
    row(0x21c, "MPI_DOUBLE_PRECISION", Basic::F64),
    row(0x21d, "MPI_DOUBLE_COMPLEX", Basic::ComplexF64),
    row(0x21e, "MPI_CHARACTER", Basic::Character),
    row(0x220, "MPI_LONG_DOUBLE", Basic::LongDouble),
    row(0x224, "MPI_C_LONG_DOUBLE_COMPLEX", Basic::ComplexLongDouble),
    row(0x225, "MPI_CXX_LONG_DOUBLE_COMPLEX", Basic::ComplexLongDouble),
    row(0x228, "MPI_FLOAT_INT", Basic::FloatInt),
    row(0x229, "MPI_DOUBLE_INT", Basic::DoubleInt),
    narrowed(0x22a, "MPI_LONG_INT", Basic::LongInt, 8),
    row(0x22b, "MPI_2INT", Basic::IntInt),
    row(0x22c, "MPI_SHORT_INT", Basic::ShortInt),
    row(0x22d, "MPI_LONG_DOUBLE_INT", Basic::LongDoubleInt),
    row(0x230, "MPI_2REAL", Basic::FloatFloat),
    row(0x231, "MPI_2DOUBLE_PRECISION", Basic::DoubleDouble),
    row(0x232, "MPI_2INTEGER", Basic::IntInt),
    row(0x238, "MPI_C_BOOL", Basic::Logical8),
    row(0x239, "MPI_CXX_BOOL", Basic::Logical8),
    narrowed(0x23c, "MPI_WCHAR", Basic::Wchar, 2),
    row(0x240, "MPI_INT8_T", Basic::I8),
    row(0x241, "MPI_UINT8_T", Basic::U8),
    row(0x243, "MPI_CHAR", Basic::Char),
    row(0x244, "MPI_SIGNED_CHAR", Basic::I8),
    row(0x245, "MPI_UNSIGNED_CHAR", Basic::U8),
    row(BYTE.0, "MPI_BYTE", Basic::Byte),
    row(0x248, "MPI_INT16_T", Basic::I16),
    row(0x249, "MPI_UINT16_T", Basic::U16),
    row(0x250, "MPI_INT32_T", Basic::I32),
    row(0x251, "MPI_UINT32_T", Basic::U32),
    row(0x258, "MPI_INT64_T", Basic::I64),
    row(0x259, "MPI_UINT64_T", Basic::U64),
    row(0x2c0, "MPI_LOGICAL1", Basic::Logical8),
    row(0x2c1, "MPI_INTEGER1", Basic::I8),
    row(0x2c8, "MPI_LOGICAL2", Basic::Logical16),
    row(0x2c9, "MPI_INTEGER2", Basic::I16),
    row(0x2ca, "MPI_REAL2", Basic::F16),
    row(0x2d0, "MPI_LOGICAL4", Basic::Logical32),
    row(0x2d1, "MPI_INTEGER4", Basic::I32),
    row(0x2d2, "MPI_REAL4", Basic::F32),
    row(0x2d3, "MPI_COMPLEX4", Basic::ComplexF16),
    row(0x2d8, "MPI_LOGICAL8", Basic::Logical64),
    row(0x2d9, "MPI_INTEGER8", Basic::I64),
    row(0x2da, "MPI_REAL8", Basic::F64),
    row(0x2db, "MPI_COMPLEX8", Basic::ComplexF32),
    row(0x2e0, "MPI_LOGICAL16", Basic::Logical128),
    row(0x2e1, "MPI_INTEGER16", Basic::I128),
    row(0x2e2, "MPI_REAL16", Basic::F128),
    row(0x2e3, "MPI_COMPLEX16", Basic::ComplexF64),
    row(0x2eb, "MPI_COMPLEX32", Basic::ComplexF128),
];

/// Handles 0x200 to 0x2ff are datatypes (MPI 5.0 table 20.2).
const FIRST: u32 = 0x200;
const SPAN: usize = 0x100;

/// Position in [`PREDEFINED`] plus one by handle, 0 where there is no type.
static POSITIONS: [u8; SPAN] = {
    let mut positions = [0; SPAN];
    let mut i = 0;
    while i < PREDEFINED.len() {
        positions[(PREDEFINED[i].handle.0 - FIRST) as usize] = i as u8 + 1;
        i += 1;
    }
    positions
};

/// The bit of its [`Group`] by handle, 0 where there is no type.
static GROUPS: [u8; SPAN] = {
    let mut groups = [0; SPAN];
    let mut i = 0;
    while i < PREDEFINED.len() {
        let row = &PREDEFINED[i];
        groups[(row.handle.0 - FIRST) as usize] = row.basic.group().bit();
        i += 1;
    }
    groups
};

/// Size by handle, 0 where there is no type or its arrays have gaps.
static DENSE_SIZES: [u8; SPAN] = {
    let mut sizes = [0; SPAN];
    let mut i = 0;
    while i < PREDEFINED.len() {
        let row = &PREDEFINED[i];
        if row.basic.is_dense() {
            sizes[(row.handle.0 - FIRST) as usize] = row.basic.size() as u8;
        }
        i += 1;
    }
    sizes
};

/// Bytes of one element when `handle` is a predefined datatype whose arrays have no gaps, else 0:
/// the question a small message asks, answered by one load.
#[inline]
pub fn basic_size(handle: Handle) -> u32 {
    match DENSE_SIZES.get(handle.0.wrapping_sub(FIRST) as usize) {
        Some(&size) => u32::from(size),
        None => 0,
    }
}

/// The bit of the [`Group`] of a predefined datatype, 0 for any other: the question a reduction asks, answered by one load.
#[inline]
pub fn group_bit(handle: Handle) -> u8 {
    GROUPS.get(handle.0.wrapping_sub(FIRST) as usize).copied().unwrap_or(0)
}

/// The predefined datatype behind `handle`, if it is one.
#[inline]
pub fn predefined(handle: Handle) -> Option<&'static Predefined> {
    index_of(handle).map(|index| &PREDEFINED[index])
}

/// The position of `handle` in [`PREDEFINED`].
#[inline]
pub fn index_of(handle: Handle) -> Option<usize> {
    let position = *POSITIONS.get(handle.0.wrapping_sub(FIRST) as usize)?;
    (position as usize).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_carry_the_size_the_abi_encodes_in_them() {
        // Handles with bit 0x40 set hold log2 of the size in bits 3 to 5 (fixed-size types).
        for row in PREDEFINED {
            assert_eq!(predefined(row.handle).unwrap().name, row.name);
            if row.handle.0 >= 0x240 {
                assert_eq!(row.basic.size(), 1 << (row.handle.0 >> 3 & 7), "{}", row.name);
            }
        }
        assert!(PREDEFINED.windows(2).all(|w| w[0].handle < w[1].handle));
    }

    #[test]
    fn only_arrays_without_gaps_have_a_basic_size() {
        assert_eq!(basic_size(Handle(0x209)), 4);
        assert_eq!(basic_size(Handle(0x220)), 16);
        assert_eq!(basic_size(Handle(0x22b)), 8);
        for gap in [0x229, 0x22a, 0x22c, 0x22d, 0x200, 0x204, 0x100, 0, 0x300, 1 << 20, u32::MAX] {
            assert_eq!(basic_size(Handle(gap)), 0, "{gap:#x}");
        }
        assert!(predefined(DATATYPE_NULL).is_none());
    }

    #[test]
    fn pairs_have_the_layout_of_c() {
        assert_eq!((Basic::DoubleInt.extent(), Basic::DoubleInt.index_offset()), (16, Some(8)));
        assert_eq!((Basic::ShortInt.extent(), Basic::ShortInt.index_offset()), (8, Some(4)));
        assert_eq!((Basic::LongDoubleInt.extent(), Basic::LongDoubleInt.index_offset()), (32, Some(16)));
        for row in PREDEFINED {
            if let Some((value, index)) = row.basic.pair() {
                assert_eq!(row.basic.size(), value.size() + index.size());
                assert_eq!(row.basic.group(), Group::Pair);
            }
            if let Some(part) = row.basic.component() {
                assert_eq!(row.basic.size(), 2 * part.size());
            }
        }
    }
}
