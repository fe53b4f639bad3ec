//! MPI 5.0, chapter 7 Communicators.

use crate::kind::handle::{Comm, CommOrNull, CommRef, Group, InfoOrNull, MaybeComm};
use crate::kind::output::{CommOut, ComparisonOut, FlagOut, GroupOut, InfoOut, IntOut, RequestOut};
use crate::kind::scalar::{AnyRank, Flag, Int, SplitType, Tag};
use crate::kind::text::{StrIn, StrOut};
use crate::table::rows;

rows! { "7 Communicators";
    MPI_Comm_compare(comm1: Comm, comm2: Comm, result: ComparisonOut) => crate::comm::compare;
    MPI_Comm_create(comm: Comm, group: Group, newcomm: CommOut) => crate::comm::create;
    MPI_Comm_create_group(comm: Comm, group: Group, tag: Tag, newcomm: CommOut) => crate::comm::create_group;
    MPI_Comm_dup(comm: Comm, newcomm: CommOut) => crate::comm::dup;
    MPI_Comm_dup_with_info(comm: Comm, info: InfoOrNull, newcomm: CommOut) => crate::comm::dup_with_info;
    MPI_Comm_free(comm: CommRef) => crate::comm::free;
    MPI_Comm_get_info(comm: Comm, info_used: InfoOut) => crate::comm::get_info;
    MPI_Comm_get_name(comm: CommOrNull, comm_name: StrOut, resultlen: IntOut) => crate::comm::get_name;
    MPI_Comm_group(comm: Comm, group: GroupOut) => crate::comm::group;
    MPI_Comm_idup(comm: Comm, newcomm: CommOut, request: RequestOut) => crate::comm::idup;
    MPI_Comm_idup_with_info(comm: Comm, info: InfoOrNull, newcomm: CommOut, request: RequestOut) => crate::comm::idup_with_info;
    MPI_Comm_rank(comm: Comm, rank: IntOut) => crate::comm::rank;
    MPI_Comm_remote_group(comm: Comm, group: GroupOut) => crate::inter::remote_group;
    MPI_Comm_remote_size(comm: Comm, size: IntOut) => crate::inter::remote_size;
    MPI_Comm_set_info(comm: Comm, info: InfoOrNull) => crate::comm::set_info;
    MPI_Comm_set_name(comm: Comm, comm_name: StrIn) => crate::comm::set_name;
    MPI_Comm_size(comm: Comm, size: IntOut) => crate::comm::size;
    MPI_Comm_split(comm: Comm, color: Int, key: Int, newcomm: CommOut) => crate::comm::split;
    MPI_Comm_split_type(comm: Comm, split_type: SplitType, key: Int, info: InfoOrNull, newcomm: CommOut) => crate::comm::split_type;
    MPI_Comm_test_inter(comm: Comm, flag: FlagOut) => crate::inter::test;
    MPI_Intercomm_create(local_comm: Comm, local_leader: AnyRank, peer_comm: MaybeComm, remote_leader: AnyRank,
        tag: Tag, newintercomm: CommOut) => crate::inter::create;
    MPI_Intercomm_merge(intercomm: Comm, high: Flag, newintracomm: CommOut) => crate::inter::merge;
}
