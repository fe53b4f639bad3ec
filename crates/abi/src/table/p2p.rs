//! MPI 5.0, chapter 3 Point-to-point communication.

use crate::kind::array::{IntsOut, Requests, RequestsIn, StatusesOut};
use crate::kind::handle::{Comm, DatatypeOrNull, MessageRef, RequestOrNull, RequestRef, RequestRefOrNull};
use crate::kind::output::{BufferOut, CountOut, FlagOut, IntOut, MessageOut, RequestOut};
use crate::kind::scalar::{BufAttached, BufIn, BufOut, Count, Dest, IntCount, Source, Tag, TagOrAny};
use crate::kind::text::StatusOut;
use crate::table::rows;

rows! { "3 Point-to-point communication";
    MPI_Bsend(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm) large
        => crate::p2p::bsend;
    MPI_Bsend_init(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => crate::p2p::bsend_init;
    MPI_Buffer_attach(buffer: BufAttached, size: Count) large => crate::bsend::attach;
    MPI_Buffer_detach(buffer_addr: BufferOut, size: CountOut) large => crate::bsend::detach;
    MPI_Buffer_flush() => crate::bsend::flush;
    MPI_Buffer_iflush(request: RequestOut) => crate::bsend::iflush;
    MPI_Cancel(request: RequestRef) => crate::withdraw::cancel;
    MPI_Comm_attach_buffer(comm: Comm, buffer: BufAttached, size: Count) large => crate::bsend::comm_attach;
    MPI_Comm_detach_buffer(comm: Comm, buffer_addr: BufferOut, size: CountOut) large => crate::bsend::comm_detach;
    MPI_Comm_flush_buffer(comm: Comm) => crate::bsend::comm_flush;
    MPI_Comm_iflush_buffer(comm: Comm, request: RequestOut) => crate::bsend::comm_iflush;
    MPI_Ibsend(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => crate::p2p::ibsend;
    MPI_Improbe(source: Source, tag: TagOrAny, comm: Comm, flag: FlagOut, message: MessageOut,
        status: StatusOut) => crate::probe::improbe;
    MPI_Imrecv(buf: BufOut, count: Count, datatype: DatatypeOrNull, message: MessageRef, request: RequestOut) large
        => crate::probe::imrecv;
    MPI_Iprobe(source: Source, tag: TagOrAny, comm: Comm, flag: FlagOut, status: StatusOut) => crate::probe::iprobe;
    MPI_Irecv(buf: BufOut, count: Count, datatype: DatatypeOrNull, source: Source, tag: TagOrAny, comm: Comm,
        request: RequestOut) large quick => crate::p2p::irecv;
    MPI_Irsend(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large quick => crate::p2p::isend;
    MPI_Isend(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large quick => crate::p2p::isend;
    MPI_Isendrecv(sendbuf: BufIn, sendcount: Count, sendtype: DatatypeOrNull, dest: Dest, sendtag: Tag,
        recvbuf: BufOut, recvcount: Count, recvtype: DatatypeOrNull, source: Source, recvtag: TagOrAny,
        comm: Comm, request: RequestOut) large => crate::p2p::isendrecv;
    MPI_Isendrecv_replace(buf: BufOut, count: Count, datatype: DatatypeOrNull, dest: Dest, sendtag: Tag,
        source: Source, recvtag: TagOrAny, comm: Comm, request: RequestOut) large => crate::p2p::isendrecv_replace;
    MPI_Issend(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => crate::p2p::issend;
    MPI_Mprobe(source: Source, tag: TagOrAny, comm: Comm, message: MessageOut, status: StatusOut) => crate::probe::mprobe;
    MPI_Mrecv(buf: BufOut, count: Count, datatype: DatatypeOrNull, message: MessageRef, status: StatusOut) large
        => crate::probe::mrecv;
    MPI_Probe(source: Source, tag: TagOrAny, comm: Comm, status: StatusOut) => crate::probe::probe;
    MPI_Recv(buf: BufOut, count: Count, datatype: DatatypeOrNull, source: Source, tag: TagOrAny, comm: Comm,
        status: StatusOut) large quick => crate::p2p::recv;
    MPI_Recv_init(buf: BufOut, count: Count, datatype: DatatypeOrNull, source: Source, tag: TagOrAny,
        comm: Comm, request: RequestOut) large => crate::p2p::recv_init;
    MPI_Request_free(request: RequestRef) => crate::withdraw::free;
    MPI_Request_get_status(request: RequestOrNull, flag: FlagOut, status: StatusOut) => crate::request::get_status;
    MPI_Request_get_status_all(count: IntCount, array_of_requests: RequestsIn, flag: FlagOut,
        array_of_statuses: StatusesOut) => crate::request::get_status_all;
    MPI_Request_get_status_any(count: IntCount, array_of_requests: RequestsIn, index: IntOut,
        flag: FlagOut, status: StatusOut) => crate::request::get_status_any;
    MPI_Request_get_status_some(incount: IntCount, array_of_requests: RequestsIn, outcount: IntOut,
        array_of_indices: IntsOut, array_of_statuses: StatusesOut) => crate::request::get_status_some;
    MPI_Rsend(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm) large quick
        => crate::p2p::send;
    MPI_Rsend_init(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => crate::p2p::send_init;
    MPI_Send(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm) large quick => crate::p2p::send;
    MPI_Send_init(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => crate::p2p::send_init;
    MPI_Sendrecv(sendbuf: BufIn, sendcount: Count, sendtype: DatatypeOrNull, dest: Dest, sendtag: Tag,
        recvbuf: BufOut, recvcount: Count, recvtype: DatatypeOrNull, source: Source, recvtag: TagOrAny,
        comm: Comm, status: StatusOut) large => crate::p2p::sendrecv;
    MPI_Sendrecv_replace(buf: BufOut, count: Count, datatype: DatatypeOrNull, dest: Dest, sendtag: Tag,
        source: Source, recvtag: TagOrAny, comm: Comm, status: StatusOut) large => crate::p2p::sendrecv_replace;
    MPI_Ssend(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm) large
        => crate::p2p::ssend;
    MPI_Ssend_init(buf: BufIn, count: Count, datatype: DatatypeOrNull, dest: Dest, tag: Tag, comm: Comm,
        request: RequestOut) large => crate::p2p::ssend_init;
    MPI_Start(request: RequestRef) quick => crate::persistent::start;
    MPI_Startall(count: IntCount, array_of_requests: Requests) quick => crate::persistent::startall;
    MPI_Test(request: RequestRefOrNull, flag: FlagOut, status: StatusOut) => crate::request::test;
    MPI_Testall(count: IntCount, array_of_requests: Requests, flag: FlagOut,
        array_of_statuses: StatusesOut) => crate::request::testall;
    MPI_Testany(count: IntCount, array_of_requests: Requests, index: IntOut, flag: FlagOut,
        status: StatusOut) => crate::request::testany;
    MPI_Testsome(incount: IntCount, array_of_requests: Requests, outcount: IntOut,
        array_of_indices: IntsOut, array_of_statuses: StatusesOut) => crate::request::testsome;
    MPI_Wait(request: RequestRefOrNull, status: StatusOut) quick => crate::request::wait;
    MPI_Waitall(count: IntCount, array_of_requests: Requests, array_of_statuses: StatusesOut) => crate::request::waitall;
    MPI_Waitany(count: IntCount, array_of_requests: Requests, index: IntOut, status: StatusOut) => crate::request::waitany;
    MPI_Waitsome(incount: IntCount, array_of_requests: Requests, outcount: IntOut,
        array_of_indices: IntsOut, array_of_statuses: StatusesOut) => crate::request::waitsome;
}
