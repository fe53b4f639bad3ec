//! Constants of Open MPI's ABI, beside those of the standard one that the library works with.

use crate::layout::Set;
use crate::layout::values::{Row, Values};

/// Names that the header of Open MPI 5.0 lacks: their values are free there, and Tern's choice.
pub const OWN: &[&str] = &[
    "MPI_ERR_ERRHANDLER",
    "MPI_ERR_ABI",
    "MPI_T_ERR_NOT_ACCESSIBLE",
    "MPI_T_ERR_NOT_SUPPORTED",
    "MPI_COMM_TYPE_RESOURCE_GUIDED",
    "MPI_COMBINER_VALUE_INDEX",
    "MPI_T_BIND_MPI_SESSION",
];

/// All constants, but ranks and tags, which differ in the special ones only.
pub const SETS: &[(Set, &[Row])] = &[
    (
        Set::Code,
        &[
            ("MPI_ERR_BUFFER", 1, 1),
            ("MPI_ERR_COUNT", 2, 2),
            ("MPI_ERR_TYPE", 3, 3),
            ("MPI_ERR_TAG", 4, 4),
            ("MPI_ERR_COMM", 5, 5),
            ("MPI_ERR_RANK", 6, 6),
            ("MPI_ERR_REQUEST", 7, 7),
            ("MPI_ERR_ROOT", 8, 8),
            ("MPI_ERR_GROUP", 9, 9),
            ("MPI_ERR_OP", 10, 10),
            ("MPI_ERR_TOPOLOGY", 11, 11),
            ("MPI_ERR_DIMS", 12, 12),
            ("MPI_ERR_ARG", 13, 13),
            ("MPI_ERR_UNKNOWN", 14, 14),
            ("MPI_ERR_TRUNCATE", 15, 15),
            ("MPI_ERR_OTHER", 16, 16),
            ("MPI_ERR_INTERN", 17, 17),
            ("MPI_ERR_PENDING", 18, 19),
            ("MPI_ERR_IN_STATUS", 19, 18),
            ("MPI_ERR_ACCESS", 20, 20),
            ("MPI_ERR_AMODE", 21, 21),
            ("MPI_ERR_ASSERT", 22, 22),
            ("MPI_ERR_BAD_FILE", 23, 23),
            ("MPI_ERR_BASE", 24, 24),
            ("MPI_ERR_CONVERSION", 25, 25),
            ("MPI_ERR_DISP", 26, 26),
            ("MPI_ERR_DUP_DATAREP", 27, 27),
            ("MPI_ERR_FILE_EXISTS", 28, 28),
            ("MPI_ERR_FILE_IN_USE", 29, 29),
            ("MPI_ERR_FILE", 30, 30),
            ("MPI_ERR_INFO_KEY", 31, 31),
            ("MPI_ERR_INFO_NOKEY", 32, 32),
            ("MPI_ERR_INFO_VALUE", 33, 33),
            ("MPI_ERR_INFO", 34, 34),
            ("MPI_ERR_IO", 35, 35),
            ("MPI_ERR_KEYVAL", 36, 36),
            ("MPI_ERR_LOCKTYPE", 37, 37),
            ("MPI_ERR_NAME", 38, 38),
            ("MPI_ERR_NO_MEM", 39, 39),
            ("MPI_ERR_NOT_SAME", 40, 40),
            ("MPI_ERR_NO_SPACE", 41, 41),
            ("MPI_ERR_NO_SUCH_FILE", 42, 42),
            ("MPI_ERR_PORT", 43, 43),
            ("MPI_ERR_QUOTA", 44, 44),
            ("MPI_ERR_READ_ONLY", 45, 45),
            ("MPI_ERR_RMA_ATTACH", 46, 69),
            ("MPI_ERR_RMA_CONFLICT", 47, 46),
            ("MPI_ERR_RMA_RANGE", 48, 68),
            ("MPI_ERR_RMA_SHARED", 49, 71),
            ("MPI_ERR_RMA_SYNC", 50, 47),
            ("MPI_ERR_SERVICE", 51, 48),
            ("MPI_ERR_SIZE", 52, 49),
            ("MPI_ERR_SPAWN", 53, 50),
            ("MPI_ERR_UNSUPPORTED_DATAREP", 54, 51),
            ("MPI_ERR_UNSUPPORTED_OPERATION", 55, 52),
            ("MPI_ERR_WIN", 56, 53),
            ("MPI_ERR_RMA_FLAVOR", 57, 70),
            ("MPI_ERR_PROC_ABORTED", 58, 74),
            ("MPI_ERR_VALUE_TOO_LARGE", 59, 79),
            ("MPI_ERR_SESSION", 60, 78),
            ("MPI_ERR_ERRHANDLER", 61, 80),
            ("MPI_ERR_ABI", 62, 81),
            ("MPI_ERR_LASTCODE", 16383, 92),
            ("MPI_T_ERR_CANNOT_INIT", 1001, 56),
            ("MPI_T_ERR_NOT_ACCESSIBLE", 1002, 82),
            ("MPI_T_ERR_NOT_INITIALIZED", 1003, 55),
            ("MPI_T_ERR_NOT_SUPPORTED", 1004, 83),
            ("MPI_T_ERR_MEMORY", 1005, 54),
            ("MPI_T_ERR_INVALID", 1006, 72),
            ("MPI_T_ERR_INVALID_INDEX", 1007, 57),
            ("MPI_T_ERR_INVALID_ITEM", 1008, 58),
            ("MPI_T_ERR_INVALID_SESSION", 1009, 62),
            ("MPI_T_ERR_INVALID_HANDLE", 1010, 59),
            ("MPI_T_ERR_INVALID_NAME", 1011, 73),
            ("MPI_T_ERR_OUT_OF_HANDLES", 1012, 60),
            ("MPI_T_ERR_OUT_OF_SESSIONS", 1013, 61),
            ("MPI_T_ERR_CVAR_SET_NOT_NOW", 1014, 63),
            ("MPI_T_ERR_CVAR_SET_NEVER", 1015, 64),
            ("MPI_T_ERR_PVAR_NO_WRITE", 1016, 66),
            ("MPI_T_ERR_PVAR_NO_STARTSTOP", 1017, 65),
            ("MPI_T_ERR_PVAR_NO_ATOMIC", 1018, 67),
        ],
    ),
    (
        Set::Keyval,
        &[
            ("MPI_KEYVAL_INVALID", 0, -1),
            ("MPI_TAG_UB", 501, 0),
            ("MPI_IO", 502, 2),
            ("MPI_HOST", 503, 1),
            ("MPI_WTIME_IS_GLOBAL", 504, 3),
            ("MPI_APPNUM", 505, 4),
            ("MPI_LASTUSEDCODE", 506, 5),
            ("MPI_UNIVERSE_SIZE", 507, 6),
            ("MPI_WIN_BASE", 601, 7),
            ("MPI_WIN_DISP_UNIT", 602, 9),
            ("MPI_WIN_SIZE", 603, 8),
            ("MPI_WIN_CREATE_FLAVOR", 604, 10),
            ("MPI_WIN_MODEL", 605, 11),
        ],
    ),
    (
        Set::Comparison,
        &[("MPI_IDENT", 201, 0), ("MPI_CONGRUENT", 202, 1), ("MPI_SIMILAR", 203, 2), ("MPI_UNEQUAL", 204, 3)],
    ),
    (
        Set::ThreadLevel,
        &[
            ("MPI_THREAD_SINGLE", 0, 0),
            ("MPI_THREAD_FUNNELED", 1024, 1),
            ("MPI_THREAD_SERIALIZED", 2048, 2),
            ("MPI_THREAD_MULTIPLE", 4096, 3),
        ],
    ),
    (
        Set::SplitType,
        &[
            ("MPI_COMM_TYPE_SHARED", 221, 0),
            ("MPI_COMM_TYPE_HW_UNGUIDED", 222, 12),
            ("MPI_COMM_TYPE_HW_GUIDED", 223, 13),
            ("MPI_COMM_TYPE_RESOURCE_GUIDED", 224, 14),
        ],
    ),
    (Set::Topology, &[("MPI_CART", 211, 1), ("MPI_GRAPH", 212, 2), ("MPI_DIST_GRAPH", 213, 3)]),
    (
        Set::Combiner,
        &[
            ("MPI_COMBINER_NAMED", 101, 0),
            ("MPI_COMBINER_DUP", 102, 1),
            ("MPI_COMBINER_CONTIGUOUS", 103, 2),
            ("MPI_COMBINER_VECTOR", 104, 3),
            ("MPI_COMBINER_HVECTOR", 105, 5),
            ("MPI_COMBINER_INDEXED", 106, 6),
            ("MPI_COMBINER_HINDEXED", 107, 8),
            ("MPI_COMBINER_INDEXED_BLOCK", 108, 9),
            ("MPI_COMBINER_HINDEXED_BLOCK", 109, 18),
            ("MPI_COMBINER_STRUCT", 110, 11),
            ("MPI_COMBINER_SUBARRAY", 111, 12),
            ("MPI_COMBINER_DARRAY", 112, 13),
            ("MPI_COMBINER_F90_REAL", 113, 14),
            ("MPI_COMBINER_F90_COMPLEX", 114, 15),
            ("MPI_COMBINER_F90_INTEGER", 115, 16),
            ("MPI_COMBINER_RESIZED", 116, 17),
            ("MPI_COMBINER_VALUE_INDEX", 117, 19),
        ],
    ),
    (Set::Order, &[("MPI_ORDER_C", 12, 0), ("MPI_ORDER_FORTRAN", 15, 1)]),
    (
        Set::Distribution,
        &[("MPI_DISTRIBUTE_NONE", 16, 2), ("MPI_DISTRIBUTE_BLOCK", 17, 0), ("MPI_DISTRIBUTE_CYCLIC", 18, 1)],
    ),
    (Set::DistributionArgument, &[("MPI_DISTRIBUTE_DFLT_DARG", 19, -1)]),
    (
        Set::TypeClass,
        &[
            ("MPI_TYPECLASS_INTEGER", 192, 1),
            ("MPI_TYPECLASS_REAL", 193, 2),
            ("MPI_TYPECLASS_COMPLEX", 194, 3),
        ],
    ),
    (Set::Whence, &[("MPI_SEEK_SET", 403, 600), ("MPI_SEEK_CUR", 401, 602), ("MPI_SEEK_END", 402, 604)]),
    (Set::LockType, &[("MPI_LOCK_EXCLUSIVE", 301, 1), ("MPI_LOCK_SHARED", 302, 2)]),
    (
        Set::Amode,
        &[
            ("MPI_MODE_APPEND", 1, 128),
            ("MPI_MODE_CREATE", 2, 1),
            ("MPI_MODE_DELETE_ON_CLOSE", 4, 16),
            ("MPI_MODE_EXCL", 8, 64),
            ("MPI_MODE_RDONLY", 16, 2),
            ("MPI_MODE_RDWR", 32, 8),
            ("MPI_MODE_SEQUENTIAL", 64, 256),
            ("MPI_MODE_UNIQUE_OPEN", 128, 32),
            ("MPI_MODE_WRONLY", 256, 4),
        ],
    ),
    (
        Set::Assert,
        &[
            ("MPI_MODE_NOCHECK", 1024, 1),
            ("MPI_MODE_NOPRECEDE", 2048, 2),
            ("MPI_MODE_NOPUT", 4096, 4),
            ("MPI_MODE_NOSTORE", 8192, 8),
            ("MPI_MODE_NOSUCCEED", 16384, 16),
        ],
    ),
    (Set::Displacement, &[("MPI_DISPLACEMENT_CURRENT", -1, -54278278)]),
    (
        Set::Flavor,
        &[
            ("MPI_WIN_FLAVOR_CREATE", 311, 1),
            ("MPI_WIN_FLAVOR_ALLOCATE", 312, 2),
            ("MPI_WIN_FLAVOR_DYNAMIC", 313, 3),
            ("MPI_WIN_FLAVOR_SHARED", 314, 4),
        ],
    ),
    (Set::Model, &[("MPI_WIN_UNIFIED", 321, 0), ("MPI_WIN_SEPARATE", 322, 1)]),
    (
        Set::Verbosity,
        &[
            ("MPI_T_VERBOSITY_USER_BASIC", 9, 0),
            ("MPI_T_VERBOSITY_USER_DETAIL", 10, 1),
            ("MPI_T_VERBOSITY_USER_ALL", 12, 2),
            ("MPI_T_VERBOSITY_TUNER_BASIC", 17, 3),
            ("MPI_T_VERBOSITY_TUNER_DETAIL", 18, 4),
            ("MPI_T_VERBOSITY_TUNER_ALL", 20, 5),
            ("MPI_T_VERBOSITY_MPIDEV_BASIC", 33, 6),
            ("MPI_T_VERBOSITY_MPIDEV_DETAIL", 34, 7),
            ("MPI_T_VERBOSITY_MPIDEV_ALL", 36, 8),
        ],
    ),
    (
        Set::Bind,
        &[
            ("MPI_T_BIND_NO_OBJECT", 1, 0),
            ("MPI_T_BIND_MPI_COMM", 2, 1),
            ("MPI_T_BIND_MPI_DATATYPE", 3, 2),
            ("MPI_T_BIND_MPI_ERRHANDLER", 4, 3),
            ("MPI_T_BIND_MPI_FILE", 5, 4),
            ("MPI_T_BIND_MPI_GROUP", 6, 5),
            ("MPI_T_BIND_MPI_OP", 7, 6),
            ("MPI_T_BIND_MPI_REQUEST", 8, 7),
            ("MPI_T_BIND_MPI_WIN", 9, 8),
            ("MPI_T_BIND_MPI_MESSAGE", 10, 9),
            ("MPI_T_BIND_MPI_INFO", 11, 10),
            ("MPI_T_BIND_MPI_SESSION", 12, 11),
        ],
    ),
    (
        Set::Scope,
        &[
            ("MPI_T_SCOPE_CONSTANT", 1, 0),
            ("MPI_T_SCOPE_READONLY", 2, 1),
            ("MPI_T_SCOPE_LOCAL", 3, 2),
            ("MPI_T_SCOPE_GROUP", 4, 3),
            ("MPI_T_SCOPE_GROUP_EQ", 5, 4),
            ("MPI_T_SCOPE_ALL", 6, 5),
            ("MPI_T_SCOPE_ALL_EQ", 7, 6),
        ],
    ),
    (
        Set::VariableClass,
        &[
            ("MPI_T_PVAR_CLASS_STATE", 1, 0),
            ("MPI_T_PVAR_CLASS_LEVEL", 2, 1),
            ("MPI_T_PVAR_CLASS_SIZE", 3, 2),
            ("MPI_T_PVAR_CLASS_PERCENTAGE", 4, 3),
            ("MPI_T_PVAR_CLASS_HIGHWATERMARK", 5, 4),
            ("MPI_T_PVAR_CLASS_LOWWATERMARK", 6, 5),
            ("MPI_T_PVAR_CLASS_COUNTER", 7, 6),
            ("MPI_T_PVAR_CLASS_AGGREGATE", 8, 7),
            ("MPI_T_PVAR_CLASS_TIMER", 9, 8),
            ("MPI_T_PVAR_CLASS_GENERIC", 10, 9),
        ],
    ),
];

const VALUES: Values = Values { sets: SETS, program_code: 0, program_keyval: 0 };

/// A constant from C.
#[inline(always)]
pub fn read(set: Set, value: i32) -> i32 {
    match (set, value) {
        (Set::Rank | Set::Tag, _) | (Set::Code, 0) => special(set, value),
        _ => VALUES.read(set, value),
    }
}

/// A constant as C has it.
#[inline(always)]
pub fn write(set: Set, value: i32) -> i32 {
    match (set, value) {
        (Set::Rank | Set::Tag, _) | (Set::Code, 0) => special(set, value),
        _ => VALUES.write(set, value),
    }
}

/// Ranks and tags that stand for something, there and back: of those that differ two change places.
#[inline(always)]
fn special(set: Set, value: i32) -> i32 {
    match (set, value) {
        (Set::Rank, -2) => -3, // MPI_PROC_NULL
        (Set::Rank, -3) => -2,
        (Set::Tag, -1) => -2, // MPI_ANY_TAG
        (Set::Tag, -2) => -1,
        _ => value,
    }
}
