//! Predefined handles of Open MPI's ABI: each is the address of an object with a name, and has a number in Fortran.

/// The mark of a function of Fortran, which gets handles as numbers: `libmpi_mpifh.so.40` sets this bit in the addresses of those
/// for operations and of error handlers, which have no state of theirs to know it by. No address has it.
pub const FORTRAN: usize = 1 << 62;

/// The objects that predefined handles point to. A program may have a copy, of the size that it had in the library the
/// program was linked with: then that one is it for all, so its address must be asked for, as the loader has found it. What
/// lies there nobody looks at; it is the name, for who reads memory. No larger than in any library, or the loader would warn.
#[cfg(feature = "openmpi")]
#[repr(C, align(16))]
pub struct Place(&'static str);

macro_rules! predefined {
    ($($name:ident $symbol:ident $fortran:literal;)*) => {
        /// The predefined handles: name, name of the object, number in Fortran.
        pub const NAMES: &[(&str, &str, i32)] = &[$((stringify!($name), stringify!($symbol), $fortran)),*];

        $(
            #[cfg(feature = "openmpi")]
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            static $symbol: Place = Place(stringify!($name));
        )*

        /// The object of each of [`NAMES`].
        #[cfg(feature = "openmpi")]
        pub static PLACES: [&Place; NAMES.len()] = [$(&$symbol),*];
    };
}

/// Objects that Open MPI has, and which are no handles here: programs that have these names are linked all the same.
#[cfg(feature = "openmpi")]
mod others {
    use super::Place;

    macro_rules! places {
        ($($symbol:ident)*) => { $(
            #[unsafe(no_mangle)]
            #[allow(non_upper_case_globals)]
            static $symbol: Place = Place(stringify!($symbol));
        )* };
    }

    places! {
        ompi_mpi_lb ompi_mpi_ub ompi_mpi_2cplex ompi_mpi_2dblcplex ompi_mpi_ldblcplex ompi_mpi_errors_throw_exceptions
        ompi_mpi_short_float ompi_mpi_c_short_float_complex ompi_mpi_cxx_sfltcplex
    }
}

predefined! {
    MPI_COMM_NULL ompi_mpi_comm_null 2;
    MPI_COMM_WORLD ompi_mpi_comm_world 0;
    MPI_COMM_SELF ompi_mpi_comm_self 1;
    MPI_GROUP_NULL ompi_mpi_group_null 0;
    MPI_GROUP_EMPTY ompi_mpi_group_empty 1;
    MPI_REQUEST_NULL ompi_request_null 0;
    MPI_MESSAGE_NULL ompi_message_null 0;
    MPI_MESSAGE_NO_PROC ompi_message_no_proc 1;
    MPI_FILE_NULL ompi_mpi_file_null 0;
    MPI_INFO_NULL ompi_mpi_info_null 0;
    MPI_INFO_ENV ompi_mpi_info_env 1;
    MPI_ERRHANDLER_NULL ompi_mpi_errhandler_null 0;
    MPI_ERRORS_ARE_FATAL ompi_mpi_errors_are_fatal 1;
    MPI_ERRORS_RETURN ompi_mpi_errors_return 2;
    MPI_ERRORS_ABORT ompi_mpi_errors_abort 3;
    MPI_SESSION_NULL ompi_mpi_instance_null 0;
    MPI_WIN_NULL ompi_mpi_win_null 0;
    MPI_OP_NULL ompi_mpi_op_null 0;
    MPI_MAX ompi_mpi_op_max 1;
    MPI_MIN ompi_mpi_op_min 2;
    MPI_SUM ompi_mpi_op_sum 3;
    MPI_PROD ompi_mpi_op_prod 4;
    MPI_LAND ompi_mpi_op_land 5;
    MPI_BAND ompi_mpi_op_band 6;
    MPI_LOR ompi_mpi_op_lor 7;
    MPI_BOR ompi_mpi_op_bor 8;
    MPI_LXOR ompi_mpi_op_lxor 9;
    MPI_BXOR ompi_mpi_op_bxor 10;
    MPI_MINLOC ompi_mpi_op_minloc 12;
    MPI_MAXLOC ompi_mpi_op_maxloc 11;
    MPI_REPLACE ompi_mpi_op_replace 13;
    MPI_NO_OP ompi_mpi_op_no_op 14;
    MPI_DATATYPE_NULL ompi_mpi_datatype_null 0;
    MPI_CHAR ompi_mpi_char 34;
    MPI_UNSIGNED_CHAR ompi_mpi_unsigned_char 35;
    MPI_SHORT ompi_mpi_short 37;
    MPI_UNSIGNED_SHORT ompi_mpi_unsigned_short 38;
    MPI_INT ompi_mpi_int 39;
    MPI_UNSIGNED ompi_mpi_unsigned 40;
    MPI_LONG ompi_mpi_long 41;
    MPI_UNSIGNED_LONG ompi_mpi_unsigned_long 42;
    MPI_LONG_LONG_INT ompi_mpi_long_long_int 43;
    MPI_FLOAT ompi_mpi_float 45;
    MPI_DOUBLE ompi_mpi_double 46;
    MPI_LONG_DOUBLE ompi_mpi_long_double 47;
    MPI_BYTE ompi_mpi_byte 1;
    MPI_WCHAR ompi_mpi_wchar 33;
    MPI_PACKED ompi_mpi_packed 2;
    MPI_FLOAT_INT ompi_mpi_float_int 48;
    MPI_DOUBLE_INT ompi_mpi_double_int 49;
    MPI_LONG_INT ompi_mpi_long_int 51;
    MPI_SHORT_INT ompi_mpi_short_int 53;
    MPI_LONG_DOUBLE_INT ompi_mpi_longdbl_int 50;
    MPI_2INT ompi_mpi_2int 52;
    MPI_SIGNED_CHAR ompi_mpi_signed_char 36;
    MPI_UNSIGNED_LONG_LONG ompi_mpi_unsigned_long_long 44;
    MPI_CHARACTER ompi_mpi_character 5;
    MPI_INTEGER ompi_mpi_integer 7;
    MPI_REAL ompi_mpi_real 13;
    MPI_LOGICAL ompi_mpi_logical 6;
    MPI_COMPLEX ompi_mpi_cplex 18;
    MPI_DOUBLE_PRECISION ompi_mpi_dblprec 17;
    MPI_2INTEGER ompi_mpi_2integer 25;
    MPI_2REAL ompi_mpi_2real 23;
    MPI_DOUBLE_COMPLEX ompi_mpi_dblcplex 22;
    MPI_2DOUBLE_PRECISION ompi_mpi_2dblprec 24;
    MPI_REAL2 ompi_mpi_real2 28;
    MPI_REAL4 ompi_mpi_real4 14;
    MPI_COMPLEX8 ompi_mpi_complex8 19;
    MPI_REAL8 ompi_mpi_real8 15;
    MPI_COMPLEX16 ompi_mpi_complex16 20;
    MPI_REAL16 ompi_mpi_real16 16;
    MPI_COMPLEX32 ompi_mpi_complex32 21;
    MPI_INTEGER1 ompi_mpi_integer1 8;
    MPI_COMPLEX4 ompi_mpi_complex4 73;
    MPI_INTEGER2 ompi_mpi_integer2 9;
    MPI_INTEGER4 ompi_mpi_integer4 10;
    MPI_INTEGER8 ompi_mpi_integer8 11;
    MPI_INTEGER16 ompi_mpi_integer16 12;
    MPI_CXX_BOOL ompi_mpi_cxx_bool 54;
    MPI_CXX_FLOAT_COMPLEX ompi_mpi_cxx_cplex 55;
    MPI_CXX_DOUBLE_COMPLEX ompi_mpi_cxx_dblcplex 56;
    MPI_CXX_LONG_DOUBLE_COMPLEX ompi_mpi_cxx_ldblcplex 57;
    MPI_INT8_T ompi_mpi_int8_t 58;
    MPI_INT16_T ompi_mpi_int16_t 60;
    MPI_INT32_T ompi_mpi_int32_t 62;
    MPI_INT64_T ompi_mpi_int64_t 64;
    MPI_UINT8_T ompi_mpi_uint8_t 59;
    MPI_UINT16_T ompi_mpi_uint16_t 61;
    MPI_UINT32_T ompi_mpi_uint32_t 63;
    MPI_UINT64_T ompi_mpi_uint64_t 65;
    MPI_C_BOOL ompi_mpi_c_bool 68;
    MPI_C_COMPLEX ompi_mpi_c_float_complex 69;
    MPI_C_DOUBLE_COMPLEX ompi_mpi_c_double_complex 70;
    MPI_C_LONG_DOUBLE_COMPLEX ompi_mpi_c_long_double_complex 71;
    MPI_AINT ompi_mpi_aint 66;
    MPI_OFFSET ompi_mpi_offset 67;
    MPI_COUNT ompi_mpi_count 72;
    MPI_LOGICAL1 ompi_mpi_logical1 29;
    MPI_LOGICAL2 ompi_mpi_logical2 30;
    MPI_LOGICAL4 ompi_mpi_logical4 31;
    MPI_LOGICAL8 ompi_mpi_logical8 32;
    MPI_LOGICAL16 ompi_mpi_logical16 74;
}
