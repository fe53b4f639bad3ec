//! MPI 5.0, chapter 9 Error handling.

use crate::kind::function::{CommErrhandlerFn, FileErrhandlerFn, SessionErrhandlerFn, WinErrhandlerFn};
use crate::kind::handle::{Comm, Errhandler, ErrhandlerRef, FileOrNull, Session, Win};
use crate::kind::output::{CodeOut, ErrhandlerOut, IntOut};
use crate::kind::scalar::Code;
use crate::kind::text::{StrIn, StrOut};
use crate::table::rows;

rows! { "9 Error handling";
    MPI_Add_error_class(errorclass: CodeOut) anytime => crate::codes::add_class;
    MPI_Add_error_code(errorclass: Code, errorcode: CodeOut) anytime => crate::codes::add_code;
    MPI_Add_error_string(errorcode: Code, string: StrIn) anytime => crate::codes::add_string;
    MPI_Comm_call_errhandler(comm: Comm, errorcode: Code) => crate::errhandler::comm_call;
    MPI_Comm_create_errhandler(comm_errhandler_fn: CommErrhandlerFn, errhandler: ErrhandlerOut)
        => crate::errhandler::comm_create;
    MPI_Comm_get_errhandler(comm: Comm, errhandler: ErrhandlerOut) => crate::errhandler::comm_get;
    MPI_Comm_set_errhandler(comm: Comm, errhandler: Errhandler) => crate::errhandler::comm_set;
    MPI_Errhandler_free(errhandler: ErrhandlerRef) anytime => crate::errhandler::free;
    MPI_Error_class(errorcode: Code, errorclass: CodeOut) anytime => crate::codes::class;
    MPI_Error_string(errorcode: Code, string: StrOut, resultlen: IntOut) anytime => crate::codes::string;
    MPI_File_call_errhandler(fh: FileOrNull, errorcode: Code) => crate::errhandler::file_call;
    MPI_File_create_errhandler(file_errhandler_fn: FileErrhandlerFn, errhandler: ErrhandlerOut)
        => crate::errhandler::file_create;
    MPI_File_get_errhandler(file: FileOrNull, errhandler: ErrhandlerOut) => crate::file::get_errhandler;
    MPI_File_set_errhandler(file: FileOrNull, errhandler: Errhandler) => crate::file::set_errhandler;
    MPI_Remove_error_class(errorclass: Code) anytime => crate::codes::remove_class;
    MPI_Remove_error_code(errorcode: Code) anytime => crate::codes::remove_code;
    MPI_Remove_error_string(errorcode: Code) anytime => crate::codes::remove_string;
    MPI_Session_call_errhandler(session: Session, errorcode: Code) anytime => crate::errhandler::session_call;
    MPI_Session_create_errhandler(session_errhandler_fn: SessionErrhandlerFn, errhandler: ErrhandlerOut) anytime
        => crate::errhandler::session_create;
    MPI_Session_get_errhandler(session: Session, errhandler: ErrhandlerOut) => crate::errhandler::session_get;
    MPI_Session_set_errhandler(session: Session, errhandler: Errhandler) => crate::errhandler::session_set;
    MPI_Win_call_errhandler(win: Win, errorcode: Code) => crate::errhandler::win_call;
    MPI_Win_create_errhandler(win_errhandler_fn: WinErrhandlerFn, errhandler: ErrhandlerOut)
        => crate::errhandler::win_create;
    MPI_Win_get_errhandler(win: Win, errhandler: ErrhandlerOut) => crate::errhandler::win_get;
    MPI_Win_set_errhandler(win: Win, errhandler: Errhandler) => crate::errhandler::win_set;
}
