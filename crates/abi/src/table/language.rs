//! MPI 5.0, chapters 19 and 20 Languages and ABI.

use crate::kind::handle::{
    Comm, Datatype, Errhandler, File, Group, Info, InfoOrNull, Message, Op, Request, Session, Win,
};
use crate::kind::output::{DatatypeOut, FlagOut, InfoOut, IntOut};
use crate::kind::scalar::{Addr, ClassOfType, Int, Length};
use crate::table::{plain_rows, rows};

rows! { "19 and 20 Languages and ABI";
    MPI_Abi_get_fortran_booleans(logical_size: Length, logical_true: Addr, logical_false: Addr,
        is_set: FlagOut) anytime => crate::language::abi_get_fortran_booleans;
    MPI_Abi_get_fortran_info(info: InfoOut) anytime => crate::language::abi_get_fortran_info;
    MPI_Abi_get_info(info: InfoOut) anytime => crate::language::abi_get_info;
    MPI_Abi_get_version(abi_major: IntOut, abi_minor: IntOut) anytime => crate::language::abi_get_version;
    MPI_Abi_set_fortran_booleans(logical_size: Length, logical_true: Addr, logical_false: Addr) anytime
        => crate::language::abi_set_fortran_booleans;
    MPI_Abi_set_fortran_info(info: InfoOrNull) anytime => crate::language::abi_set_fortran_info;
    MPI_Type_create_f90_complex(p: Int, r: Int, newtype: DatatypeOut) => crate::datatype::create::f90_complex;
    MPI_Type_create_f90_integer(r: Int, newtype: DatatypeOut) => crate::datatype::create::f90_integer;
    MPI_Type_create_f90_real(p: Int, r: Int, newtype: DatatypeOut) => crate::datatype::create::f90_real;
    MPI_Type_match_size(typeclass: ClassOfType, size: Int, datatype: DatatypeOut) => crate::datatype::match_type_size;
}

plain_rows! { "19 and 20 Languages and ABI";
    MPI_Comm_fromint(comm: Int) -> "MPI_Comm" as usize => crate::language::from_int;
    MPI_Comm_toint(comm: Comm) -> "int" as i32 => crate::language::to_int;
    MPI_Errhandler_fromint(errhandler: Int) -> "MPI_Errhandler" as usize => crate::language::from_int;
    MPI_Errhandler_toint(errhandler: Errhandler) -> "int" as i32 => crate::language::to_int;
    MPI_File_fromint(file: Int) -> "MPI_File" as usize => crate::language::from_int;
    MPI_File_toint(file: File) -> "int" as i32 => crate::language::to_int;
    MPI_Group_fromint(group: Int) -> "MPI_Group" as usize => crate::language::from_int;
    MPI_Group_toint(group: Group) -> "int" as i32 => crate::language::to_int;
    MPI_Info_fromint(info: Int) -> "MPI_Info" as usize => crate::language::from_int;
    MPI_Info_toint(info: Info) -> "int" as i32 => crate::language::to_int;
    MPI_Message_fromint(message: Int) -> "MPI_Message" as usize => crate::language::from_int;
    MPI_Message_toint(message: Message) -> "int" as i32 => crate::language::to_int;
    MPI_Op_fromint(op: Int) -> "MPI_Op" as usize => crate::language::from_int;
    MPI_Op_toint(op: Op) -> "int" as i32 => crate::language::to_int;
    MPI_Request_fromint(request: Int) -> "MPI_Request" as usize => crate::language::from_int;
    MPI_Request_toint(request: Request) -> "int" as i32 => crate::language::to_int;
    MPI_Session_fromint(session: Int) -> "MPI_Session" as usize => crate::language::from_int;
    MPI_Session_toint(session: Session) -> "int" as i32 => crate::language::to_int;
    MPI_Type_fromint(datatype: Int) -> "MPI_Datatype" as usize => crate::language::from_int;
    MPI_Type_toint(datatype: Datatype) -> "int" as i32 => crate::language::to_int;
    MPI_Win_fromint(win: Int) -> "MPI_Win" as usize => crate::language::from_int;
    MPI_Win_toint(win: Win) -> "int" as i32 => crate::language::to_int;
}
