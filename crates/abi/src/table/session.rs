//! MPI 5.0, chapter 11 Sessions.

use crate::kind::handle::{Errhandler, Group, InfoOrNull, MaybeGroup, Session, SessionRef};
use crate::kind::output::{
    BufferOut, CommOut, CountOut, GroupOut, InfoOut, IntInOut, IntOut, RequestOut, SessionOut,
};
use crate::kind::scalar::{AnyRank, BufAttached, Count, Length};
use crate::kind::text::{MaybeStrOut, StrIn};
use crate::table::rows;

rows! { "11 Sessions";
    MPI_Comm_create_from_group(group: Group, stringtag: StrIn, info: InfoOrNull, errhandler: Errhandler,
        newcomm: CommOut) => crate::session::comm_from_group;
    MPI_Group_from_session_pset(session: Session, pset_name: StrIn, newgroup: GroupOut) => crate::session::group_from_pset;
    MPI_Intercomm_create_from_groups(local_group: Group, local_leader: AnyRank, remote_group: MaybeGroup,
        remote_leader: AnyRank, stringtag: StrIn, info: InfoOrNull, errhandler: Errhandler,
        newintercomm: CommOut) => crate::session::inter_from_groups;
    MPI_Session_attach_buffer(session: Session, buffer: BufAttached, size: Count) large => crate::session::attach_buffer;
    MPI_Session_detach_buffer(session: Session, buffer_addr: BufferOut, size: CountOut) large => crate::session::detach_buffer;
    MPI_Session_finalize(session: SessionRef) => crate::session::finalize;
    MPI_Session_flush_buffer(session: Session) => crate::session::flush_buffer;
    MPI_Session_get_info(session: Session, info_used: InfoOut) => crate::session::get_info;
    MPI_Session_get_nth_pset(session: Session, info: InfoOrNull, n: Length, pset_len: IntInOut,
        pset_name: MaybeStrOut) => crate::session::get_nth_pset;
    MPI_Session_get_num_psets(session: Session, info: InfoOrNull, npset_names: IntOut) => crate::session::get_num_psets;
    MPI_Session_get_pset_info(session: Session, pset_name: StrIn, info: InfoOut) => crate::session::get_pset_info;
    MPI_Session_iflush_buffer(session: Session, request: RequestOut) => crate::session::iflush_buffer;
    MPI_Session_init(info: InfoOrNull, errhandler: Errhandler, session: SessionOut) anytime => crate::session::init;
}
