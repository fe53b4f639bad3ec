//! MPI 5.0, chapter 7 Communicators.

use crate::kind::handle::{Comm, CommRef, Group, InfoOrNull, MaybeComm};
use crate::kind::output::{CommOut, FlagOut, GroupOut, InfoOut, IntOut, RequestOut};
use crate::kind::scalar::{Flag, Int, Tag};
use crate::kind::text::{StrIn, StrOut};
use crate::table::rows;

rows! { "7 Communicators";
    MPI_Comm_compare(comm1: Comm, comm2: Comm, result: IntOut) => missing;
    MPI_Comm_create(comm: Comm, group: Group, newcomm: CommOut) => missing;
    MPI_Comm_create_group(comm: Comm, group: Group, tag: Tag, newcomm: CommOut) => missing;
    MPI_Comm_dup(comm: Comm, newcomm: CommOut) => missing;
    MPI_Comm_dup_with_info(comm: Comm, info: InfoOrNull, newcomm: CommOut) => missing;
    MPI_Comm_free(comm: CommRef) => missing;
    MPI_Comm_get_info(comm: Comm, info_used: InfoOut) => missing;
    MPI_Comm_get_name(comm: Comm, comm_name: StrOut, resultlen: IntOut) => missing;
    MPI_Comm_group(comm: Comm, group: GroupOut) => missing;
    MPI_Comm_idup(comm: Comm, newcomm: CommOut, request: RequestOut) => missing;
    MPI_Comm_idup_with_info(comm: Comm, info: InfoOrNull, newcomm: CommOut, request: RequestOut) => missing;
    MPI_Comm_rank(comm: Comm, rank: IntOut) => missing;
    MPI_Comm_remote_group(comm: Comm, group: GroupOut) => missing;
    MPI_Comm_remote_size(comm: Comm, size: IntOut) => missing;
    MPI_Comm_set_info(comm: Comm, info: InfoOrNull) => missing;
    MPI_Comm_set_name(comm: Comm, comm_name: StrIn) => missing;
    MPI_Comm_size(comm: Comm, size: IntOut) => missing;
    MPI_Comm_split(comm: Comm, color: Int, key: Int, newcomm: CommOut) => missing;
    MPI_Comm_split_type(comm: Comm, split_type: Int, key: Int, info: InfoOrNull, newcomm: CommOut) => missing;
    MPI_Comm_test_inter(comm: Comm, flag: FlagOut) => missing;
    MPI_Intercomm_create(local_comm: Comm, local_leader: Int, peer_comm: MaybeComm, remote_leader: Int,
        tag: Tag, newintercomm: CommOut) => missing;
    MPI_Intercomm_merge(intercomm: Comm, high: Flag, newintracomm: CommOut) => missing;
}
