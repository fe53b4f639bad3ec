//! MPI 5.0, chapter 6 Collective communication.

use crate::kind::array::{Counts, Datatypes, Displs};
use crate::kind::function::UserFn;
use crate::kind::handle::{Comm, Datatype, InfoOrNull, MaybeDatatype, Op, OpRef};
use crate::kind::output::{FlagOut, OpOut, RequestOut};
use crate::kind::scalar::{BufIn, BufOut, Count, Flag, MaybeCount, Root};
use crate::table::rows;

rows! { "6 Collective communication";
    MPI_Allgather(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm) large quick => crate::coll::even::allgather;
    MPI_Allgather_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, info: InfoOrNull, request: RequestOut) large
        => crate::coll::even::allgather_init;
    MPI_Allgatherv(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: Datatype, comm: Comm) large listed => crate::coll::varied::allgatherv;
    MPI_Allgatherv_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: Datatype, comm: Comm, info: InfoOrNull,
        request: RequestOut) large => crate::coll::varied::allgatherv_init;
    MPI_Allreduce(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm) large quick
        => crate::coll::even::allreduce;
    MPI_Allreduce_init(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op,
        comm: Comm, info: InfoOrNull, request: RequestOut) large => crate::coll::even::allreduce_init;
    MPI_Alltoall(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm) large quick => crate::coll::even::alltoall;
    MPI_Alltoall_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, info: InfoOrNull, request: RequestOut) large
        => crate::coll::even::alltoall_init;
    MPI_Alltoallv(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtype: Datatype, comm: Comm) large listed
        => crate::coll::varied::alltoallv;
    MPI_Alltoallv_init(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtype: Datatype, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => crate::coll::varied::alltoallv_init;
    MPI_Alltoallw(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtypes: Datatypes,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtypes: Datatypes, comm: Comm) large listed
        => crate::coll::varied::alltoallw;
    MPI_Alltoallw_init(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtypes: Datatypes,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtypes: Datatypes, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => crate::coll::varied::alltoallw_init;
    MPI_Barrier(comm: Comm) => crate::coll::even::barrier;
    MPI_Barrier_init(comm: Comm, info: InfoOrNull, request: RequestOut) => crate::coll::even::barrier_init;
    MPI_Bcast(buffer: BufOut, count: Count, datatype: Datatype, root: Root, comm: Comm) large quick => crate::coll::even::bcast;
    MPI_Bcast_init(buffer: BufOut, count: Count, datatype: Datatype, root: Root, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => crate::coll::even::bcast_init;
    MPI_Exscan(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm) large quick
        => crate::coll::even::exscan;
    MPI_Exscan_init(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => crate::coll::even::exscan_init;
    MPI_Gather(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm) large quick => crate::coll::even::gather;
    MPI_Gather_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm, info: InfoOrNull,
        request: RequestOut) large => crate::coll::even::gather_init;
    MPI_Gatherv(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: MaybeDatatype, root: Root, comm: Comm) large listed
        => crate::coll::varied::gatherv;
    MPI_Gatherv_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: MaybeDatatype, root: Root, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => crate::coll::varied::gatherv_init;
    MPI_Iallgather(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, request: RequestOut) large quick => crate::coll::even::iallgather;
    MPI_Iallgatherv(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: Datatype, comm: Comm, request: RequestOut) large listed
        => crate::coll::varied::iallgatherv;
    MPI_Iallreduce(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        request: RequestOut) large quick => crate::coll::even::iallreduce;
    MPI_Ialltoall(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, request: RequestOut) large quick => crate::coll::even::ialltoall;
    MPI_Ialltoallv(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtype: Datatype, comm: Comm,
        request: RequestOut) large listed => crate::coll::varied::ialltoallv;
    MPI_Ialltoallw(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtypes: Datatypes,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtypes: Datatypes, comm: Comm,
        request: RequestOut) large listed => crate::coll::varied::ialltoallw;
    MPI_Ibarrier(comm: Comm, request: RequestOut) => crate::coll::even::ibarrier;
    MPI_Ibcast(buffer: BufOut, count: Count, datatype: Datatype, root: Root, comm: Comm,
        request: RequestOut) large quick => crate::coll::even::ibcast;
    MPI_Iexscan(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        request: RequestOut) large quick => crate::coll::even::iexscan;
    MPI_Igather(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm, request: RequestOut) large quick
        => crate::coll::even::igather;
    MPI_Igatherv(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: MaybeDatatype, root: Root, comm: Comm,
        request: RequestOut) large listed => crate::coll::varied::igatherv;
    MPI_Ireduce(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, root: Root,
        comm: Comm, request: RequestOut) large quick => crate::coll::even::ireduce;
    MPI_Ireduce_scatter(sendbuf: BufIn, recvbuf: BufOut, recvcounts: Counts, datatype: Datatype, op: Op,
        comm: Comm, request: RequestOut) large listed => crate::coll::varied::ireduce_scatter;
    MPI_Ireduce_scatter_block(sendbuf: BufIn, recvbuf: BufOut, recvcount: Count, datatype: Datatype,
        op: Op, comm: Comm, request: RequestOut) large quick => crate::coll::even::ireduce_scatter_block;
    MPI_Iscan(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        request: RequestOut) large quick => crate::coll::even::iscan;
    MPI_Iscatter(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm, request: RequestOut) large quick
        => crate::coll::even::iscatter;
    MPI_Iscatterv(sendbuf: BufIn, sendcounts: Counts, displs: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm,
        request: RequestOut) large listed => crate::coll::varied::iscatterv;
    MPI_Op_commutative(op: Op, commute: FlagOut) => crate::op::commutative;
    MPI_Op_create(user_fn: UserFn, commute: Flag, op: OpOut) large => crate::op::create;
    MPI_Op_free(op: OpRef) => crate::op::free;
    MPI_Reduce(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, root: Root,
        comm: Comm) large quick => crate::coll::even::reduce;
    MPI_Reduce_init(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, root: Root,
        comm: Comm, info: InfoOrNull, request: RequestOut) large => crate::coll::even::reduce_init;
    MPI_Reduce_local(inbuf: BufIn, inoutbuf: BufOut, count: Count, datatype: Datatype, op: Op) large quick
        => crate::op::reduce_local;
    MPI_Reduce_scatter(sendbuf: BufIn, recvbuf: BufOut, recvcounts: Counts, datatype: Datatype, op: Op,
        comm: Comm) large listed => crate::coll::varied::reduce_scatter;
    MPI_Reduce_scatter_block(sendbuf: BufIn, recvbuf: BufOut, recvcount: Count, datatype: Datatype,
        op: Op, comm: Comm) large quick => crate::coll::even::reduce_scatter_block;
    MPI_Reduce_scatter_block_init(sendbuf: BufIn, recvbuf: BufOut, recvcount: Count, datatype: Datatype,
        op: Op, comm: Comm, info: InfoOrNull, request: RequestOut) large => crate::coll::even::reduce_scatter_block_init;
    MPI_Reduce_scatter_init(sendbuf: BufIn, recvbuf: BufOut, recvcounts: Counts, datatype: Datatype,
        op: Op, comm: Comm, info: InfoOrNull, request: RequestOut) large => crate::coll::varied::reduce_scatter_init;
    MPI_Scan(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm) large quick
        => crate::coll::even::scan;
    MPI_Scan_init(sendbuf: BufIn, recvbuf: BufOut, count: Count, datatype: Datatype, op: Op, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => crate::coll::even::scan_init;
    MPI_Scatter(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm) large quick => crate::coll::even::scatter;
    MPI_Scatter_init(sendbuf: BufIn, sendcount: MaybeCount, sendtype: MaybeDatatype, recvbuf: BufOut,
        recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm, info: InfoOrNull,
        request: RequestOut) large => crate::coll::even::scatter_init;
    MPI_Scatterv(sendbuf: BufIn, sendcounts: Counts, displs: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm) large listed
        => crate::coll::varied::scatterv;
    MPI_Scatterv_init(sendbuf: BufIn, sendcounts: Counts, displs: Displs, sendtype: MaybeDatatype,
        recvbuf: BufOut, recvcount: MaybeCount, recvtype: MaybeDatatype, root: Root, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => crate::coll::varied::scatterv_init;
}
