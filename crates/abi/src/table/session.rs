//! MPI 5.0, chapter 11 Sessions.

use crate::kind::handle::{Errhandler, Group, InfoOrNull, Session, SessionRef};
use crate::kind::output::{
    CommOut, CountOut, GroupOut, InfoOut, IntInOut, IntOut, PtrOut, RequestOut, SessionOut,
};
use crate::kind::scalar::{Addr, Count, Int, Length};
use crate::kind::text::{StrIn, StrOut};
use crate::table::rows;

rows! { "11 Sessions";
    MPI_Comm_create_from_group(group: Group, stringtag: StrIn, info: InfoOrNull, errhandler: Errhandler,
        newcomm: CommOut) => missing;
    MPI_Group_from_session_pset(session: Session, pset_name: StrIn, newgroup: GroupOut) => missing;
    MPI_Intercomm_create_from_groups(local_group: Group, local_leader: Int, remote_group: Group,
        remote_leader: Int, stringtag: StrIn, info: InfoOrNull, errhandler: Errhandler,
        newintercomm: CommOut) => missing;
    MPI_Session_attach_buffer(session: Session, buffer: Addr, size: Count) large => missing;
    MPI_Session_detach_buffer(session: Session, buffer_addr: PtrOut, size: CountOut) large => missing;
    MPI_Session_finalize(session: SessionRef) => missing;
    MPI_Session_flush_buffer(session: Session) => missing;
    MPI_Session_get_info(session: Session, info_used: InfoOut) => missing;
    MPI_Session_get_nth_pset(session: Session, info: InfoOrNull, n: Length, pset_len: IntInOut,
        pset_name: StrOut) => missing;
    MPI_Session_get_num_psets(session: Session, info: InfoOrNull, npset_names: IntOut) => missing;
    MPI_Session_get_pset_info(session: Session, pset_name: StrIn, info: InfoOut) => missing;
    MPI_Session_iflush_buffer(session: Session, request: RequestOut) => missing;
    MPI_Session_init(info: InfoOrNull, errhandler: Errhandler, session: SessionOut) anytime => missing;
}
