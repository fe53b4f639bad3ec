//! MPI 5.0, chapter 6 Collective communication.

use crate::kind::array::{Counts, Datatypes, Displs};
use crate::kind::function::UserFn;
use crate::kind::handle::{Comm, Datatype, InfoOrNull, MaybeDatatype, Op, OpRef};
use crate::kind::output::{FlagOut, OpOut, RequestOut};
use crate::kind::scalar::{BufIn, BufOut, Count, Flag, MaybeCount, Root};
use crate::table::rows;

rows! { "6 Collective communication";
    MPI_Allgather(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm) large => missing;
    MPI_Allgather_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, info: InfoOrNull, request: RequestOut) large
        => missing;
    MPI_Allgatherv(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: Datatype, comm: Comm) large => missing;
    MPI_Allgatherv_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: Datatype, comm: Comm, info: InfoOrNull,
        request: RequestOut) large => missing;
    MPI_Allreduce(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm) large
        => missing;
    MPI_Allreduce_init(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op,
        comm: Comm, info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Alltoall(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm) large => missing;
    MPI_Alltoall_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, info: InfoOrNull, request: RequestOut) large
        => missing;
    MPI_Alltoallv(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtype: Datatype, comm: Comm) large
        => missing;
    MPI_Alltoallv_init(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtype: Datatype, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Alltoallw(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtypes: Datatypes,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtypes: Datatypes, comm: Comm) large
        => missing;
    MPI_Alltoallw_init(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtypes: Datatypes,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtypes: Datatypes, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Barrier(comm: Comm) => missing;
    MPI_Barrier_init(comm: Comm, info: InfoOrNull, request: RequestOut) => missing;
    MPI_Bcast(buffer: BufOut, count: Count, datatype: Datatype, root: Root, comm: Comm) large => missing;
    MPI_Bcast_init(buffer: BufOut, count: Count, datatype: Datatype, root: Root, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Exscan(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm) large
        => missing;
    MPI_Exscan_init(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Gather(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm) large => missing;
    MPI_Gather_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm, info: InfoOrNull,
        request: RequestOut) large => missing;
    MPI_Gatherv(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: MaybeDatatype, root: Root, comm: Comm) large
        => missing;
    MPI_Gatherv_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: MaybeDatatype, root: Root, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Iallgather(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, request: RequestOut) large => missing;
    MPI_Iallgatherv(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: Datatype, comm: Comm, request: RequestOut) large
        => missing;
    MPI_Iallreduce(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Ialltoall(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, request: RequestOut) large => missing;
    MPI_Ialltoallv(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtype: Datatype, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Ialltoallw(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtypes: Datatypes,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtypes: Datatypes, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Ibarrier(comm: Comm, request: RequestOut) => missing;
    MPI_Ibcast(buffer: BufOut, count: Count, datatype: Datatype, root: Root, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Iexscan(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Igather(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm, request: RequestOut) large
        => missing;
    MPI_Igatherv(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: MaybeDatatype, root: Root, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Ireduce(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, root: Root,
        comm: Comm, request: RequestOut) large => missing;
    MPI_Ireduce_scatter(sendbuf: BufIn, recvbuf: BufOut, recvcounts: Counts, datatype: Datatype, op: Op,
        comm: Comm, request: RequestOut) large => missing;
    MPI_Ireduce_scatter_block(sendbuf: BufIn, recvbuf: BufOut, recvcount: Count, datatype: Datatype,
        op: Op, comm: Comm, request: RequestOut) large => missing;
    MPI_Iscan(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Iscatter(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm, request: RequestOut) large
        => missing;
    MPI_Iscatterv(sendbuf: BufIn, sendcounts: Counts, displs: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Op_commutative(op: Op, commute: FlagOut) => missing;
    MPI_Op_create(user_fn: UserFn, commute: Flag, op: OpOut) large => missing;
    MPI_Op_free(op: OpRef) => missing;
    MPI_Reduce(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, root: Root,
        comm: Comm) large => missing;
    MPI_Reduce_init(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, root: Root,
        comm: Comm, info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Reduce_local(inbuf: BufIn, inoutbuf: BufOut, count: Count, datatype: Datatype, op: Op) large
        => missing;
    MPI_Reduce_scatter(sendbuf: BufIn, recvbuf: BufOut, recvcounts: Counts, datatype: Datatype, op: Op,
        comm: Comm) large => missing;
    MPI_Reduce_scatter_block(sendbuf: BufIn, recvbuf: BufOut, recvcount: Count, datatype: Datatype,
        op: Op, comm: Comm) large => missing;
    MPI_Reduce_scatter_block_init(sendbuf: BufIn, recvbuf: BufOut, recvcount: Count, datatype: Datatype,
        op: Op, comm: Comm, info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Reduce_scatter_init(sendbuf: BufIn, recvbuf: BufOut, recvcounts: Counts, datatype: Datatype,
        op: Op, comm: Comm, info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Scan(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm) large
        => missing;
    MPI_Scan_init(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => missing;
    MPI_Scatter(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm) large => missing;
    MPI_Scatter_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm, info: InfoOrNull,
        request: RequestOut) large => missing;
    MPI_Scatterv(sendbuf: BufIn, sendcounts: Counts, displs: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm) large
        => missing;
    MPI_Scatterv_init(sendbuf: BufIn, sendcounts: Counts, displs: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => missing;
}
