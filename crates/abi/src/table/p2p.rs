//! MPI 5.0, chapter 3 Point-to-point communication.

use crate::kind::array::{IntsOut, Requests, RequestsIn, StatusesOut};
use crate::kind::handle::{Comm, Datatype, MessageRef, RequestOrNull, RequestRef, RequestRefOrNull};
use crate::kind::output::{CountOut, FlagOut, IntOut, MessageOut, PtrOut, RequestOut};
use crate::kind::scalar::{Addr, BufIn, BufOut, Count, Dest, IntCount, Source, Tag, TagOrAny};
use crate::kind::text::StatusOut;
use crate::table::rows;

rows! { "3 Point-to-point communication";
    MPI_Bsend(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm) large
        => missing;
    MPI_Bsend_init(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Buffer_attach(buffer: Addr, size: Count) large => missing;
    MPI_Buffer_detach(buffer_addr: PtrOut, size: CountOut) large => missing;
    MPI_Buffer_flush() => missing;
    MPI_Buffer_iflush(request: RequestOut) => missing;
    MPI_Cancel(request: RequestRef) => missing;
    MPI_Comm_attach_buffer(comm: Comm, buffer: Addr, size: Count) large => missing;
    MPI_Comm_detach_buffer(comm: Comm, buffer_addr: PtrOut, size: CountOut) large => missing;
    MPI_Comm_flush_buffer(comm: Comm) => missing;
    MPI_Comm_iflush_buffer(comm: Comm, request: RequestOut) => missing;
    MPI_Ibsend(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Improbe(source: Source, tag: TagOrAny, comm: Comm, flag: FlagOut, message: MessageOut,
        status: StatusOut) => missing;
    MPI_Imrecv(buf: BufOut, count: Count, datatype: Datatype, message: MessageRef, request: RequestOut) large
        => missing;
    MPI_Iprobe(source: Source, tag: TagOrAny, comm: Comm, flag: FlagOut, status: StatusOut) => missing;
    MPI_Irecv(buf: BufOut, count: Count, datatype: Datatype, source: Source, tag: TagOrAny, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Irsend(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Isend(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Isendrecv(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, dest: Dest, sendtag: Tag,
        recvbuf: BufOut, recvcount: Count, recvtype: Datatype, source: Source, recvtag: TagOrAny,
        comm: Comm, request: RequestOut) large => missing;
    MPI_Isendrecv_replace(buf: BufOut, count: Count, datatype: Datatype, dest: Dest, sendtag: Tag,
        source: Source, recvtag: TagOrAny, comm: Comm, request: RequestOut) large => missing;
    MPI_Issend(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Mprobe(source: Source, tag: TagOrAny, comm: Comm, message: MessageOut, status: StatusOut) => missing;
    MPI_Mrecv(buf: BufOut, count: Count, datatype: Datatype, message: MessageRef, status: StatusOut) large
        => missing;
    MPI_Probe(source: Source, tag: TagOrAny, comm: Comm, status: StatusOut) => missing;
    MPI_Recv(buf: BufOut, count: Count, datatype: Datatype, source: Source, tag: TagOrAny, comm: Comm,
        status: StatusOut) large => missing;
    MPI_Recv_init(buf: BufOut, count: Count, datatype: Datatype, source: Source, tag: TagOrAny,
        comm: Comm, request: RequestOut) large => missing;
    MPI_Request_free(request: RequestRef) => missing;
    MPI_Request_get_status(request: RequestOrNull, flag: FlagOut, status: StatusOut) => missing;
    MPI_Request_get_status_all(count: IntCount, array_of_requests: RequestsIn, flag: FlagOut,
        array_of_statuses: StatusesOut) => missing;
    MPI_Request_get_status_any(count: IntCount, array_of_requests: RequestsIn, index: IntOut,
        flag: FlagOut, status: StatusOut) => missing;
    MPI_Request_get_status_some(incount: IntCount, array_of_requests: RequestsIn, outcount: IntOut,
        array_of_indices: IntsOut, array_of_statuses: StatusesOut) => missing;
    MPI_Rsend(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm) large
        => missing;
    MPI_Rsend_init(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Send(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm) large => missing;
    MPI_Send_init(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Sendrecv(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, dest: Dest, sendtag: Tag,
        recvbuf: BufOut, recvcount: Count, recvtype: Datatype, source: Source, recvtag: TagOrAny,
        comm: Comm, status: StatusOut) large => missing;
    MPI_Sendrecv_replace(buf: BufOut, count: Count, datatype: Datatype, dest: Dest, sendtag: Tag,
        source: Source, recvtag: TagOrAny, comm: Comm, status: StatusOut) large => missing;
    MPI_Ssend(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm) large
        => missing;
    MPI_Ssend_init(buf: BufIn, count: Count, datatype: Datatype, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => missing;
    MPI_Start(request: RequestRef) => missing;
    MPI_Startall(count: IntCount, array_of_requests: Requests) => missing;
    MPI_Test(request: RequestRefOrNull, flag: FlagOut, status: StatusOut) => missing;
    MPI_Testall(count: IntCount, array_of_requests: Requests, flag: FlagOut,
        array_of_statuses: StatusesOut) => missing;
    MPI_Testany(count: IntCount, array_of_requests: Requests, index: IntOut, flag: FlagOut,
        status: StatusOut) => missing;
    MPI_Testsome(incount: IntCount, array_of_requests: Requests, outcount: IntOut,
        array_of_indices: IntsOut, array_of_statuses: StatusesOut) => missing;
    MPI_Wait(request: RequestRefOrNull, status: StatusOut) => missing;
    MPI_Waitall(count: IntCount, array_of_requests: Requests, array_of_statuses: StatusesOut) => missing;
    MPI_Waitany(count: IntCount, array_of_requests: Requests, index: IntOut, status: StatusOut) => missing;
    MPI_Waitsome(incount: IntCount, array_of_requests: Requests, outcount: IntOut,
        array_of_indices: IntsOut, array_of_statuses: StatusesOut) => missing;
}
