//! Constants of MPICH's ABI, beside those of the standard one that the library works with.

use crate::layout::Set;

/// A constant: its name, its value in the standard ABI, its value here.
pub type Row = (&'static str, i32, i32);

/// Error classes.
pub const CODES: &[Row] = &[
    ("MPI_ERR_BUFFER", 1, 1),
    ("MPI_ERR_COUNT", 2, 2),
    ("MPI_ERR_TYPE", 3, 3),
    ("MPI_ERR_TAG", 4, 4),
    ("MPI_ERR_COMM", 5, 5),
    ("MPI_ERR_RANK", 6, 6),
    ("MPI_ERR_REQUEST", 7, 19),
    ("MPI_ERR_ROOT", 8, 7),
    ("MPI_ERR_GROUP", 9, 8),
    ("MPI_ERR_OP", 10, 9),
    ("MPI_ERR_TOPOLOGY", 11, 10),
    ("MPI_ERR_DIMS", 12, 11),
    ("MPI_ERR_ARG", 13, 12),
    ("MPI_ERR_UNKNOWN", 14, 13),
    ("MPI_ERR_TRUNCATE", 15, 14),
    ("MPI_ERR_OTHER", 16, 15),
    ("MPI_ERR_INTERN", 17, 16),
    ("MPI_ERR_PENDING", 18, 18),
    ("MPI_ERR_IN_STATUS", 19, 17),
    ("MPI_ERR_ACCESS", 20, 20),
    ("MPI_ERR_AMODE", 21, 21),
    ("MPI_ERR_ASSERT", 22, 53),
    ("MPI_ERR_BAD_FILE", 23, 22),
    ("MPI_ERR_BASE", 24, 46),
    ("MPI_ERR_CONVERSION", 25, 23),
    ("MPI_ERR_DISP", 26, 52),
    ("MPI_ERR_DUP_DATAREP", 27, 24),
    ("MPI_ERR_FILE_EXISTS", 28, 25),
    ("MPI_ERR_FILE_IN_USE", 29, 26),
    ("MPI_ERR_FILE", 30, 27),
    ("MPI_ERR_INFO_KEY", 31, 29),
    ("MPI_ERR_INFO_NOKEY", 32, 31),
    ("MPI_ERR_INFO_VALUE", 33, 30),
    ("MPI_ERR_INFO", 34, 28),
    ("MPI_ERR_IO", 35, 32),
    ("MPI_ERR_KEYVAL", 36, 48),
    ("MPI_ERR_LOCKTYPE", 37, 47),
    ("MPI_ERR_NAME", 38, 33),
    ("MPI_ERR_NO_MEM", 39, 34),
    ("MPI_ERR_NOT_SAME", 40, 35),
    ("MPI_ERR_NO_SPACE", 41, 36),
    ("MPI_ERR_NO_SUCH_FILE", 42, 37),
    ("MPI_ERR_PORT", 43, 38),
    ("MPI_ERR_QUOTA", 44, 39),
    ("MPI_ERR_READ_ONLY", 45, 40),
    ("MPI_ERR_RMA_ATTACH", 46, 56),
    ("MPI_ERR_RMA_CONFLICT", 47, 49),
    ("MPI_ERR_RMA_RANGE", 48, 55),
    ("MPI_ERR_RMA_SHARED", 49, 57),
    ("MPI_ERR_RMA_SYNC", 50, 50),
    ("MPI_ERR_SERVICE", 51, 41),
    ("MPI_ERR_SIZE", 52, 51),
    ("MPI_ERR_SPAWN", 53, 42),
    ("MPI_ERR_UNSUPPORTED_DATAREP", 54, 43),
    ("MPI_ERR_UNSUPPORTED_OPERATION", 55, 44),
    ("MPI_ERR_WIN", 56, 45),
    ("MPI_ERR_RMA_FLAVOR", 57, 58),
    ("MPI_ERR_PROC_ABORTED", 58, 76),
    ("MPI_ERR_VALUE_TOO_LARGE", 59, 77),
    ("MPI_ERR_SESSION", 60, 75),
    ("MPI_ERR_ERRHANDLER", 61, 80),
    ("MPI_ERR_ABI", 62, 81),
    ("MPI_ERR_LASTCODE", 16383, 1073741823),
    ("MPI_T_ERR_CANNOT_INIT", 1001, 61),
    ("MPI_T_ERR_NOT_ACCESSIBLE", 1002, 79),
    ("MPI_T_ERR_NOT_INITIALIZED", 1003, 60),
    ("MPI_T_ERR_NOT_SUPPORTED", 1004, 78),
    ("MPI_T_ERR_MEMORY", 1005, 59),
    ("MPI_T_ERR_INVALID", 1006, 74),
    ("MPI_T_ERR_INVALID_INDEX", 1007, 62),
    ("MPI_T_ERR_INVALID_ITEM", 1008, 63),
    ("MPI_T_ERR_INVALID_SESSION", 1009, 67),
    ("MPI_T_ERR_INVALID_HANDLE", 1010, 64),
    ("MPI_T_ERR_INVALID_NAME", 1011, 73),
    ("MPI_T_ERR_OUT_OF_HANDLES", 1012, 65),
    ("MPI_T_ERR_OUT_OF_SESSIONS", 1013, 66),
    ("MPI_T_ERR_CVAR_SET_NOT_NOW", 1014, 68),
    ("MPI_T_ERR_CVAR_SET_NEVER", 1015, 69),
    ("MPI_T_ERR_PVAR_NO_WRITE", 1016, 71),
    ("MPI_T_ERR_PVAR_NO_STARTSTOP", 1017, 70),
    ("MPI_T_ERR_PVAR_NO_ATOMIC", 1018, 72),
];

/// Keys of predefined attributes.
pub const KEYVALS: &[Row] = &[
    ("MPI_KEYVAL_INVALID", 0, 0x24000000),
    ("MPI_TAG_UB", 501, 0x64400001),
    ("MPI_IO", 502, 0x64400005),
    ("MPI_HOST", 503, 0x64400003),
    ("MPI_WTIME_IS_GLOBAL", 504, 0x64400007),
    ("MPI_APPNUM", 505, 0x6440000d),
    ("MPI_LASTUSEDCODE", 506, 0x6440000b),
    ("MPI_UNIVERSE_SIZE", 507, 0x64400009),
    ("MPI_WIN_BASE", 601, 0x66000001),
    ("MPI_WIN_DISP_UNIT", 602, 0x66000005),
    ("MPI_WIN_SIZE", 603, 0x66000003),
    ("MPI_WIN_CREATE_FLAVOR", 604, 0x66000007),
    ("MPI_WIN_MODEL", 605, 0x66000009),
];

/// Results of comparisons.
pub const COMPARISONS: &[Row] =
    &[("MPI_IDENT", 201, 0), ("MPI_CONGRUENT", 202, 1), ("MPI_SIMILAR", 203, 2), ("MPI_UNEQUAL", 204, 3)];

/// Levels of thread support.
pub const LEVELS: &[Row] = &[
    ("MPI_THREAD_SINGLE", 0, 0),
    ("MPI_THREAD_FUNNELED", 1024, 1),
    ("MPI_THREAD_SERIALIZED", 2048, 2),
    ("MPI_THREAD_MULTIPLE", 4096, 3),
];

/// Ways to split a communicator.
pub const SPLITS: &[Row] = &[
    ("MPI_COMM_TYPE_SHARED", 221, 1),
    ("MPI_COMM_TYPE_HW_UNGUIDED", 222, 3),
    ("MPI_COMM_TYPE_HW_GUIDED", 223, 2),
    ("MPI_COMM_TYPE_RESOURCE_GUIDED", 224, 4),
];

/// Topologies.
pub const TOPOLOGIES: &[Row] = &[("MPI_CART", 211, 2), ("MPI_GRAPH", 212, 1), ("MPI_DIST_GRAPH", 213, 3)];

/// How a datatype was made.
pub const COMBINERS: &[Row] = &[
    ("MPI_COMBINER_NAMED", 101, 1),
    ("MPI_COMBINER_DUP", 102, 2),
    ("MPI_COMBINER_CONTIGUOUS", 103, 3),
    ("MPI_COMBINER_VECTOR", 104, 4),
    ("MPI_COMBINER_HVECTOR", 105, 6),
    ("MPI_COMBINER_INDEXED", 106, 7),
    ("MPI_COMBINER_HINDEXED", 107, 9),
    ("MPI_COMBINER_INDEXED_BLOCK", 108, 10),
    ("MPI_COMBINER_HINDEXED_BLOCK", 109, 19),
    ("MPI_COMBINER_STRUCT", 110, 12),
    ("MPI_COMBINER_SUBARRAY", 111, 13),
    ("MPI_COMBINER_DARRAY", 112, 14),
    ("MPI_COMBINER_F90_REAL", 113, 15),
    ("MPI_COMBINER_F90_COMPLEX", 114, 16),
    ("MPI_COMBINER_F90_INTEGER", 115, 17),
    ("MPI_COMBINER_RESIZED", 116, 18),
    ("MPI_COMBINER_VALUE_INDEX", 117, 20),
];

/// Orders of arrays.
pub const ORDERS: &[Row] = &[("MPI_ORDER_C", 12, 56), ("MPI_ORDER_FORTRAN", 15, 57)];

/// Distributions of arrays.
pub const DISTRIBUTIONS: &[Row] = &[
    ("MPI_DISTRIBUTE_NONE", 16, 123),
    ("MPI_DISTRIBUTE_BLOCK", 17, 121),
    ("MPI_DISTRIBUTE_CYCLIC", 18, 122),
];

/// The argument of a distribution that is left to the library.
pub const DISTRIBUTION_ARGUMENTS: &[Row] = &[("MPI_DISTRIBUTE_DFLT_DARG", 19, -49767)];

/// Classes of types.
pub const TYPE_CLASSES: &[Row] =
    &[("MPI_TYPECLASS_INTEGER", 192, 2), ("MPI_TYPECLASS_REAL", 193, 1), ("MPI_TYPECLASS_COMPLEX", 194, 3)];

/// Origins of file positions.
pub const WHENCES: &[Row] =
    &[("MPI_SEEK_SET", 403, 600), ("MPI_SEEK_CUR", 401, 602), ("MPI_SEEK_END", 402, 604)];

/// Locks of windows.
pub const LOCK_TYPES: &[Row] = &[("MPI_LOCK_EXCLUSIVE", 301, 234), ("MPI_LOCK_SHARED", 302, 235)];

/// Modes of files.
pub const AMODES: &[Row] = &[
    ("MPI_MODE_APPEND", 1, 128),
    ("MPI_MODE_CREATE", 2, 1),
    ("MPI_MODE_DELETE_ON_CLOSE", 4, 16),
    ("MPI_MODE_EXCL", 8, 64),
    ("MPI_MODE_RDONLY", 16, 2),
    ("MPI_MODE_RDWR", 32, 8),
    ("MPI_MODE_SEQUENTIAL", 64, 256),
    ("MPI_MODE_UNIQUE_OPEN", 128, 32),
    ("MPI_MODE_WRONLY", 256, 4),
];

/// Assertions about windows.
pub const ASSERTS: &[Row] = &[
    ("MPI_MODE_NOCHECK", 1024, 1024),
    ("MPI_MODE_NOPRECEDE", 2048, 8192),
    ("MPI_MODE_NOPUT", 4096, 4096),
    ("MPI_MODE_NOSTORE", 8192, 2048),
    ("MPI_MODE_NOSUCCEED", 16384, 16384),
];

/// The displacement of a view that stays.
pub const DISPLACEMENTS: &[Row] = &[("MPI_DISPLACEMENT_CURRENT", -1, -54278278)];

/// How windows were made.
pub const FLAVORS: &[Row] = &[
    ("MPI_WIN_FLAVOR_CREATE", 311, 1),
    ("MPI_WIN_FLAVOR_ALLOCATE", 312, 2),
    ("MPI_WIN_FLAVOR_DYNAMIC", 313, 3),
    ("MPI_WIN_FLAVOR_SHARED", 314, 4),
];

/// Memory models of windows.
pub const MODELS: &[Row] = &[("MPI_WIN_UNIFIED", 321, 2), ("MPI_WIN_SEPARATE", 322, 1)];

/// For whom variables are.
pub const VERBOSITIES: &[Row] = &[
    ("MPI_T_VERBOSITY_USER_BASIC", 9, 221),
    ("MPI_T_VERBOSITY_USER_DETAIL", 10, 222),
    ("MPI_T_VERBOSITY_USER_ALL", 12, 223),
    ("MPI_T_VERBOSITY_TUNER_BASIC", 17, 224),
    ("MPI_T_VERBOSITY_TUNER_DETAIL", 18, 225),
    ("MPI_T_VERBOSITY_TUNER_ALL", 20, 226),
    ("MPI_T_VERBOSITY_MPIDEV_BASIC", 33, 227),
    ("MPI_T_VERBOSITY_MPIDEV_DETAIL", 34, 228),
    ("MPI_T_VERBOSITY_MPIDEV_ALL", 36, 229),
];

/// What variables belong to.
pub const BINDS: &[Row] = &[
    ("MPI_T_BIND_NO_OBJECT", 1, 9700),
    ("MPI_T_BIND_MPI_COMM", 2, 9701),
    ("MPI_T_BIND_MPI_DATATYPE", 3, 9702),
    ("MPI_T_BIND_MPI_ERRHANDLER", 4, 9703),
    ("MPI_T_BIND_MPI_FILE", 5, 9704),
    ("MPI_T_BIND_MPI_GROUP", 6, 9705),
    ("MPI_T_BIND_MPI_OP", 7, 9706),
    ("MPI_T_BIND_MPI_REQUEST", 8, 9707),
    ("MPI_T_BIND_MPI_WIN", 9, 9708),
    ("MPI_T_BIND_MPI_MESSAGE", 10, 9709),
    ("MPI_T_BIND_MPI_INFO", 11, 9710),
    ("MPI_T_BIND_MPI_SESSION", 12, 9711),
];

/// Where variables are changed.
pub const SCOPES: &[Row] = &[
    ("MPI_T_SCOPE_CONSTANT", 1, 60438),
    ("MPI_T_SCOPE_READONLY", 2, 60439),
    ("MPI_T_SCOPE_LOCAL", 3, 60440),
    ("MPI_T_SCOPE_GROUP", 4, 60441),
    ("MPI_T_SCOPE_GROUP_EQ", 5, 60442),
    ("MPI_T_SCOPE_ALL", 6, 60443),
    ("MPI_T_SCOPE_ALL_EQ", 7, 60444),
];

/// Classes of performance variables.
pub const VARIABLE_CLASSES: &[Row] = &[
    ("MPI_T_PVAR_CLASS_STATE", 1, 240),
    ("MPI_T_PVAR_CLASS_LEVEL", 2, 241),
    ("MPI_T_PVAR_CLASS_SIZE", 3, 242),
    ("MPI_T_PVAR_CLASS_PERCENTAGE", 4, 243),
    ("MPI_T_PVAR_CLASS_HIGHWATERMARK", 5, 244),
    ("MPI_T_PVAR_CLASS_LOWWATERMARK", 6, 245),
    ("MPI_T_PVAR_CLASS_COUNTER", 7, 246),
    ("MPI_T_PVAR_CLASS_AGGREGATE", 8, 247),
    ("MPI_T_PVAR_CLASS_TIMER", 9, 248),
    ("MPI_T_PVAR_CLASS_GENERIC", 10, 249),
];

/// The last class that the standard reserves, in both ABIs: codes that a program adds come behind it.
const LAST: [i32; 2] = [0x3fff, 0x3fff_ffff];

/// Stands for constants from C that have a meaning in the standard ABI alone. No constant of either has this value.
const NONE: i32 = -0x7fff_0000;

/// What is refused in a set of bits.
const NO_MODE: i32 = 1 << 30;

/// All constants of a set, but ranks and tags, which differ in the special ones only.
pub const fn rows(set: Set) -> &'static [Row] {
    match set {
        Set::Rank | Set::Tag => &[],
        Set::Code => CODES,
        Set::Keyval => KEYVALS,
        Set::Comparison => COMPARISONS,
        Set::ThreadLevel => LEVELS,
        Set::SplitType => SPLITS,
        Set::Topology => TOPOLOGIES,
        Set::Combiner => COMBINERS,
        Set::Order => ORDERS,
        Set::Distribution => DISTRIBUTIONS,
        Set::DistributionArgument => DISTRIBUTION_ARGUMENTS,
        Set::TypeClass => TYPE_CLASSES,
        Set::Whence => WHENCES,
        Set::LockType => LOCK_TYPES,
        Set::Amode => AMODES,
        Set::Assert => ASSERTS,
        Set::Displacement => DISPLACEMENTS,
        Set::Flavor => FLAVORS,
        Set::Model => MODELS,
        Set::Verbosity => VERBOSITIES,
        Set::Bind => BINDS,
        Set::Scope => SCOPES,
        Set::VariableClass => VARIABLE_CLASSES,
    }
}

/// A constant from C.
#[inline(always)]
pub fn read(set: Set, value: i32) -> i32 {
    match (set, value) {
        (Set::Rank, -2) => -1, // MPI_ANY_SOURCE
        (Set::Rank, -1) => -3, // MPI_PROC_NULL
        (Set::Rank, -3) => -4, // MPI_ROOT
        (Set::Rank, -4) => -2,
        (Set::Tag, -1) => -2, // MPI_ANY_TAG
        (Set::Tag, -2) => -1,
        (Set::Rank | Set::Tag, other) => other,
        (Set::Code, 0) => 0,
        _ => read_row(set, value),
    }
}

/// A constant as C has it.
#[inline(always)]
pub fn write(set: Set, value: i32) -> i32 {
    match (set, value) {
        (Set::Rank, -1) => -2,
        (Set::Rank, -3) => -1,
        (Set::Rank, -4) => -3,
        (Set::Rank, -2) => -4,
        (Set::Tag, -1) => -2,
        (Set::Tag, -2) => -1,
        (Set::Rank | Set::Tag, other) => other,
        (Set::Code, 0) => 0,
        _ => write_row(set, value),
    }
}

#[inline(never)]
fn read_row(set: Set, value: i32) -> i32 {
    match set {
        Set::Amode | Set::Assert => return bits(set, value, |row| (row.2, row.1)),
        Set::Code if value > LAST[1] => return value - LAST[1] + LAST[0],
        // As handles: the bit tells those of a program apart.
        Set::Keyval if value < 0 => return value & i32::MAX,
        _ => {}
    }
    let rows = rows(set);
    match rows.iter().find(|row| row.2 == value) {
        Some(row) => row.1,
        None if rows.iter().any(|row| row.1 == value) => NONE,
        None => value,
    }
}

#[inline(never)]
fn write_row(set: Set, value: i32) -> i32 {
    match set {
        Set::Amode | Set::Assert => return bits(set, value, |row| (row.1, row.2)),
        Set::Code if value > LAST[0] => return value - LAST[0] + LAST[1],
        _ => {}
    }
    match rows(set).iter().find(|row| row.1 == value) {
        Some(row) => row.2,
        None if set == Set::Keyval => value | i32::MIN,
        None => value,
    }
}

/// Each bit of a mode by itself; one that has no meaning becomes [`NO_MODE`].
fn bits(set: Set, value: i32, pair: impl Fn(&Row) -> (i32, i32)) -> i32 {
    let (mut rest, mut found) = (value, 0);
    for (from, to) in rows(set).iter().map(pair) {
        if rest & from != 0 {
            rest &= !from;
            found |= to;
        }
    }
    if rest == 0 { found } else { found | NO_MODE }
}
