//! Predefined handles of MPICH's ABI, and handles from and to those that the library works with.

use mpi::datatype::basic;
use mpi::handle::Handle;

use crate::object::{Object, PREDEFINED};

/// The predefined handles by name. Those of files are pointers and not here; `MPI_MESSAGE_NULL` is
/// `MPI_REQUEST_NULL`.
pub const NAMES: &[(&str, u32)] = &[
    ("MPI_COMM_NULL", 0x0400_0000),
    ("MPI_COMM_WORLD", 0x4400_0000),
    ("MPI_COMM_SELF", 0x4400_0001),
    ("MPI_GROUP_NULL", 0x0800_0000),
    ("MPI_GROUP_EMPTY", 0x4800_0000),
    ("MPI_REQUEST_NULL", 0x2c00_0000),
    ("MPI_MESSAGE_NULL", 0x2c00_0000),
    ("MPI_MESSAGE_NO_PROC", 0x6c00_0000),
    ("MPI_INFO_NULL", 0x1c00_0000),
    ("MPI_INFO_ENV", 0x5c00_0001),
    ("MPI_ERRHANDLER_NULL", 0x1400_0000),
    ("MPI_ERRORS_ARE_FATAL", 0x5400_0000),
    ("MPI_ERRORS_RETURN", 0x5400_0001),
    ("MPI_ERRORS_ABORT", 0x5400_0003),
    ("MPI_SESSION_NULL", 0x3800_0000),
    ("MPI_WIN_NULL", 0x2000_0000),
    ("MPI_OP_NULL", 0x1800_0000),
    ("MPI_MAX", 0x5800_0001),
    ("MPI_MIN", 0x5800_0002),
    ("MPI_SUM", 0x5800_0003),
    ("MPI_PROD", 0x5800_0004),
    ("MPI_LAND", 0x5800_0005),
    ("MPI_BAND", 0x5800_0006),
    ("MPI_LOR", 0x5800_0007),
    ("MPI_BOR", 0x5800_0008),
    ("MPI_LXOR", 0x5800_0009),
    ("MPI_BXOR", 0x5800_000a),
    ("MPI_MINLOC", 0x5800_000b),
    ("MPI_MAXLOC", 0x5800_000c),
    ("MPI_REPLACE", 0x5800_000d),
    ("MPI_NO_OP", 0x5800_000e),
    ("MPI_DATATYPE_NULL", 0x0c00_0000),
    ("MPI_CHAR", 0x4c00_0101),
    ("MPI_UNSIGNED_CHAR", 0x4c00_0102),
    ("MPI_SHORT", 0x4c00_0203),
    ("MPI_UNSIGNED_SHORT", 0x4c00_0204),
    ("MPI_INT", 0x4c00_0405),
    ("MPI_UNSIGNED", 0x4c00_0406),
    ("MPI_LONG", 0x4c00_0807),
    ("MPI_UNSIGNED_LONG", 0x4c00_0808),
    ("MPI_LONG_LONG_INT", 0x4c00_0809),
    ("MPI_FLOAT", 0x4c00_040a),
    ("MPI_DOUBLE", 0x4c00_080b),
    ("MPI_LONG_DOUBLE", 0x4c00_100c),
    ("MPI_BYTE", 0x4c00_010d),
    ("MPI_WCHAR", 0x4c00_040e),
    ("MPI_PACKED", 0x4c00_010f),
    ("MPI_FLOAT_INT", 0x8c00_0000),
    ("MPI_DOUBLE_INT", 0x8c00_0001),
    ("MPI_LONG_INT", 0x8c00_0002),
    ("MPI_SHORT_INT", 0x8c00_0003),
    ("MPI_LONG_DOUBLE_INT", 0x8c00_0004),
    ("MPI_2INT", 0x4c00_0816),
    ("MPI_SIGNED_CHAR", 0x4c00_0118),
    ("MPI_UNSIGNED_LONG_LONG", 0x4c00_0819),
    ("MPI_CHARACTER", 0x4c00_011a),
    ("MPI_INTEGER", 0x4c00_041b),
    ("MPI_REAL", 0x4c00_041c),
    ("MPI_LOGICAL", 0x4c00_041d),
    ("MPI_COMPLEX", 0x4c00_081e),
    ("MPI_DOUBLE_PRECISION", 0x4c00_081f),
    ("MPI_2INTEGER", 0x4c00_0820),
    ("MPI_2REAL", 0x4c00_0821),
    ("MPI_DOUBLE_COMPLEX", 0x4c00_1022),
    ("MPI_2DOUBLE_PRECISION", 0x4c00_1023),
    ("MPI_REAL2", 0x4c00_0226),
    ("MPI_REAL4", 0x4c00_0427),
    ("MPI_COMPLEX8", 0x4c00_0828),
    ("MPI_REAL8", 0x4c00_0829),
    ("MPI_COMPLEX16", 0x4c00_102a),
    ("MPI_REAL16", 0x4c00_102b),
    ("MPI_COMPLEX32", 0x4c00_202c),
    ("MPI_INTEGER1", 0x4c00_012d),
    ("MPI_COMPLEX4", 0x4c00_042e),
    ("MPI_INTEGER2", 0x4c00_022f),
    ("MPI_INTEGER4", 0x4c00_0430),
    ("MPI_INTEGER8", 0x4c00_0831),
    ("MPI_INTEGER16", 0x4c00_1032),
    ("MPI_CXX_BOOL", 0x4c00_0133),
    ("MPI_CXX_FLOAT_COMPLEX", 0x4c00_0834),
    ("MPI_CXX_DOUBLE_COMPLEX", 0x4c00_1035),
    ("MPI_CXX_LONG_DOUBLE_COMPLEX", 0x4c00_2036),
    ("MPI_INT8_T", 0x4c00_0137),
    ("MPI_INT16_T", 0x4c00_0238),
    ("MPI_INT32_T", 0x4c00_0439),
    ("MPI_INT64_T", 0x4c00_083a),
    ("MPI_UINT8_T", 0x4c00_013b),
    ("MPI_UINT16_T", 0x4c00_023c),
    ("MPI_UINT32_T", 0x4c00_043d),
    ("MPI_UINT64_T", 0x4c00_083e),
    ("MPI_C_BOOL", 0x4c00_013f),
    ("MPI_C_COMPLEX", 0x4c00_0840),
    ("MPI_C_DOUBLE_COMPLEX", 0x4c00_1041),
    ("MPI_C_LONG_DOUBLE_COMPLEX", 0x4c00_2042),
    ("MPI_AINT", 0x4c00_0843),
    ("MPI_OFFSET", 0x4c00_0844),
    ("MPI_COUNT", 0x4c00_0845),
    ("MPI_LOGICAL1", 0x4c00_0147),
    ("MPI_LOGICAL2", 0x4c00_0248),
    ("MPI_LOGICAL4", 0x4c00_0449),
    ("MPI_LOGICAL8", 0x4c00_084a),
    ("MPI_LOGICAL16", 0x4c00_104b),
];

/// Set in handles that are not predefined.
const DYNAMIC: u32 = 1 << 31;
/// Datatypes that have that bit nevertheless, and how many there are. A handle of the library that would look like one
/// of them takes the place of one whose generation is 0, which is never given out.
const PAIRS: u32 = 0x8c00_0000;
const PAIR_COUNT: u32 = 5;

/// Where the predefined handles of the library end.
const END: usize = 0x400;
/// Positions in [`FROM_C`]: four bits for the kind of object, one for what is predefined, eight for which.
const POSITIONS: usize = 1 << 13;

const fn position(raw: u32) -> usize {
    ((raw >> 26 & 0xf) << 9 | (raw >> 30 & 1) << 8 | raw & 0xff) as usize
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// The handle of this name in the standard ABI.
const fn standard(name: &str) -> u32 {
    let mut i = 0;
    while i < PREDEFINED.len() {
        if same(PREDEFINED[i].0, name) {
            return PREDEFINED[i].1.0;
        }
        i += 1;
    }
    i = 0;
    while i < basic::PREDEFINED.len() {
        if same(basic::PREDEFINED[i].name, name) {
            return basic::PREDEFINED[i].handle.0;
        }
        i += 1;
    }
    panic!("a name that the library does not have")
}

/// In C, by predefined handle of the library; 0 where there is none.
static TO_C: [u32; END] = {
    let (mut table, mut i) = ([0; END], 0);
    while i < NAMES.len() {
        table[standard(NAMES[i].0) as usize] = NAMES[i].1;
        i += 1;
    }
    table
};

/// Predefined handles of the library by [`position`], 0 where there is none. Of null handles that are the same in C
/// the first.
static FROM_C: [u16; POSITIONS] = {
    let (mut table, mut i) = ([0; POSITIONS], 0);
    while i < NAMES.len() {
        let at = position(NAMES[i].1);
        if table[at] == 0 && NAMES[i].1 & DYNAMIC == 0 {
            table[at] = standard(NAMES[i].0) as u16;
        }
        i += 1;
    }
    table
};

/// The five datatypes of [`PAIRS`].
static PAIR_TYPES: [u16; PAIR_COUNT as usize] = {
    let (mut table, mut i) = ([0; PAIR_COUNT as usize], 0);
    while i < NAMES.len() {
        if NAMES[i].1 & DYNAMIC != 0 {
            table[(NAMES[i].1 - PAIRS) as usize] = standard(NAMES[i].0) as u16;
        }
        i += 1;
    }
    table
};

/// A handle as C has it.
#[inline]
pub fn write(handle: Handle) -> i32 {
    let raw = match handle.0 {
        0x118 => 0, // MPI_FILE_NULL
        predefined if (predefined as usize) < END => TO_C[predefined as usize],
        dynamic => match dynamic | DYNAMIC {
            pair if pair >= PAIRS && pair - PAIRS < PAIR_COUNT => (pair - PAIRS) | DYNAMIC,
            other => other,
        },
    };
    raw as i32
}

/// The handle that C has for an object of this kind, not a file. What no handle can be is beyond 32 bits, with the value from C below.
#[inline]
pub fn read(object: Object, raw: i32) -> usize {
    let raw = raw as u32;
    if raw & DYNAMIC != 0 {
        return dynamic(raw);
    }
    let found = FROM_C[position(raw)];
    if found != 0 && TO_C[found as usize] == raw {
        match object {
            Object::Message if found == 0x180 => Object::Message.null().0.0 as usize,
            _ => found.into(),
        }
    } else {
        1 << 32 | raw as usize
    }
}

#[inline]
fn dynamic(raw: u32) -> usize {
    match raw {
        PAIRS.. if raw < PAIRS + PAIR_COUNT => PAIR_TYPES[(raw - PAIRS) as usize].into(),
        _ if raw < DYNAMIC + PAIR_COUNT => (raw - DYNAMIC + (PAIRS - DYNAMIC)) as usize,
        _ => (raw & !DYNAMIC) as usize,
    }
}

/// As [`read`] of a file, which is a pointer.
#[inline]
pub fn read_file(raw: usize) -> usize {
    match u32::try_from(raw) {
        Ok(0) => Object::File.null().0.0 as usize,
        Ok(raw) if raw & DYNAMIC != 0 => dynamic(raw),
        _ => 1 << 32 | raw,
    }
}
