//! Collectives in which every rank has the same amount of data.
#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use mpi::coll::{Collective, Key};
use mpi::error::Result;
use mpi::handle::Handle;

use super::run::{self, Part, Site};
use super::{Form, amount, forms, keyed};
use crate::cx::Cx;
use crate::kind::output::Out;

const PLAIN: Key =
    Key { kind: Collective::Barrier, in_place: false, root: 0, send: None, recv: None, op: None };

forms! {
    read_barrier => "Barrier" barrier ibarrier barrier_init (comm: Handle);
    read_bcast => "Bcast" bcast ibcast bcast_init
        (buffer: usize, count: u64, datatype: Handle, root: i32, comm: Handle);
    read_gather => "Gather" gather igather gather_init
        (sendbuf: usize, sendcount: i64, sendtype: usize, recvbuf: usize, recvcount: i64, recvtype: usize,
         root: i32, comm: Handle);
    read_scatter => "Scatter" scatter iscatter scatter_init
        (sendbuf: usize, sendcount: i64, sendtype: usize, recvbuf: usize, recvcount: i64, recvtype: usize,
         root: i32, comm: Handle);
    read_allgather => "Allgather" allgather iallgather allgather_init
        (sendbuf: usize, sendcount: i64, sendtype: usize, recvbuf: usize, recvcount: u64, recvtype: Handle,
         comm: Handle);
    read_alltoall => "Alltoall" alltoall ialltoall alltoall_init
        (sendbuf: usize, sendcount: i64, sendtype: usize, recvbuf: usize, recvcount: u64, recvtype: Handle,
         comm: Handle);
    read_reduce => "Reduce" reduce ireduce reduce_init
        (sendbuf: usize, recvbuf: usize, count: u64, datatype: Handle, op: Handle, root: i32, comm: Handle);
    read_allreduce => "Allreduce" allreduce iallreduce allreduce_init
        (sendbuf: usize, recvbuf: usize, count: u64, datatype: Handle, op: Handle, comm: Handle);
    read_reduce_scatter_block => "Reduce_scatter_block"
        reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init
        (sendbuf: usize, recvbuf: usize, recvcount: u64, datatype: Handle, op: Handle, comm: Handle);
    read_scan => "Scan" scan iscan scan_init
        (sendbuf: usize, recvbuf: usize, count: u64, datatype: Handle, op: Handle, comm: Handle);
    read_exscan => "Exscan" exscan iexscan exscan_init
        (sendbuf: usize, recvbuf: usize, count: u64, datatype: Handle, op: Handle, comm: Handle);
}

fn read_barrier(cx: &Cx, form: Form, comm: Handle) -> Result {
    let site = run::site(cx, comm)?;
    keyed(cx, form, comm, site, PLAIN, 0, 0)
}

fn read_bcast(
    cx: &Cx,
    form: Form,
    buffer: usize,
    count: u64,
    datatype: Handle,
    root: i32,
    comm: Handle,
) -> Result {
    let site = run::site(cx, comm)?;
    let part = site.part(root)?;
    site.in_place(Collective::Bcast, 0, buffer, part.is_root)?;
    let recv = (part.is_root || part.takes_part).then_some((count, datatype));
    let key = Key { kind: Collective::Bcast, root: part.root, recv, ..PLAIN };
    keyed(cx, form, comm, site, key, 0, buffer)
}

fn read_gather(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcount: i64,
    sendtype: usize,
    recvbuf: usize,
    recvcount: i64,
    recvtype: usize,
    root: i32,
    comm: Handle,
) -> Result {
    let site = run::site(cx, comm)?;
    let Part { root, is_root, takes_part } = site.part(root)?;
    let in_place = site.in_place(Collective::Gather, sendbuf, recvbuf, is_root)?;
    let sends = takes_part && !in_place;
    let send = if sends { amount(cx, (sendcount, "sendcount"), (sendtype, "sendtype"))? } else { None };
    let recv = if is_root { amount(cx, (recvcount, "recvcount"), (recvtype, "recvtype"))? } else { None };
    keyed(
        cx,
        form,
        comm,
        site,
        Key { kind: Collective::Gather, root, in_place, send, recv, op: None },
        sendbuf,
        recvbuf,
    )
}

fn read_scatter(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcount: i64,
    sendtype: usize,
    recvbuf: usize,
    recvcount: i64,
    recvtype: usize,
    root: i32,
    comm: Handle,
) -> Result {
    let site = run::site(cx, comm)?;
    let Part { root, is_root, takes_part } = site.part(root)?;
    let in_place = site.in_place(Collective::Scatter, sendbuf, recvbuf, is_root)?;
    let send = if is_root { amount(cx, (sendcount, "sendcount"), (sendtype, "sendtype"))? } else { None };
    let receives = takes_part && !in_place;
    let recv = if receives { amount(cx, (recvcount, "recvcount"), (recvtype, "recvtype"))? } else { None };
    keyed(
        cx,
        form,
        comm,
        site,
        Key { kind: Collective::Scatter, root, in_place, send, recv, op: None },
        sendbuf,
        recvbuf,
    )
}

fn read_allgather(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcount: i64,
    sendtype: usize,
    recvbuf: usize,
    recvcount: u64,
    recvtype: Handle,
    comm: Handle,
) -> Result {
    let recv = (recvbuf, recvcount, recvtype);
    all(cx, form, Collective::Allgather, (sendbuf, sendcount, sendtype), recv, comm)
}

fn read_alltoall(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcount: i64,
    sendtype: usize,
    recvbuf: usize,
    recvcount: u64,
    recvtype: Handle,
    comm: Handle,
) -> Result {
    let recv = (recvbuf, recvcount, recvtype);
    all(cx, form, Collective::Alltoall, (sendbuf, sendcount, sendtype), recv, comm)
}

fn all(
    cx: &Cx,
    form: Form,
    kind: Collective,
    send: (usize, i64, usize),
    recv: (usize, u64, Handle),
    comm: Handle,
) -> Result {
    let site = run::site(cx, comm)?;
    let in_place = site.in_place(kind, send.0, recv.0, false)?;
    let sent = if in_place { None } else { amount(cx, (send.1, "sendcount"), (send.2, "sendtype"))? };
    let key = Key { kind, root: 0, in_place, send: sent, recv: Some((recv.1, recv.2)), op: None };
    keyed(cx, form, comm, site, key, send.0, recv.0)
}

fn read_reduce(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    recvbuf: usize,
    count: u64,
    datatype: Handle,
    op: Handle,
    root: i32,
    comm: Handle,
) -> Result {
    let site = run::site(cx, comm)?;
    let Part { root, is_root, takes_part } = site.part(root)?;
    let in_place = site.in_place(Collective::Reduce, sendbuf, recvbuf, is_root)?;
    let vector = Some((count, datatype));
    let send = if takes_part && !in_place { vector } else { None };
    let recv = if is_root { vector } else { None };
    let key = Key { kind: Collective::Reduce, root, in_place, send, recv, op: Some(op) };
    keyed(cx, form, comm, site, key, sendbuf, recvbuf)
}

#[inline]
fn read_allreduce(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    recvbuf: usize,
    count: u64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result {
    combine(cx, form, Collective::Allreduce, (sendbuf, recvbuf), (count, datatype), op, comm)
}

fn read_reduce_scatter_block(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    recvbuf: usize,
    recvcount: u64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result {
    combine(cx, form, Collective::ReduceScatterBlock, (sendbuf, recvbuf), (recvcount, datatype), op, comm)
}

fn read_scan(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    recvbuf: usize,
    count: u64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result {
    combine(cx, form, Collective::Scan, (sendbuf, recvbuf), (count, datatype), op, comm)
}

fn read_exscan(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    recvbuf: usize,
    count: u64,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result {
    combine(cx, form, Collective::Exscan, (sendbuf, recvbuf), (count, datatype), op, comm)
}

#[inline]
fn combine(
    cx: &Cx,
    form: Form,
    kind: Collective,
    (sendbuf, recvbuf): (usize, usize),
    vector: (u64, Handle),
    op: Handle,
    comm: Handle,
) -> Result {
    let site: Site = run::site(cx, comm)?;
    let in_place = site.in_place(kind, sendbuf, recvbuf, false)?;
    let send = if in_place { None } else { Some(vector) };
    let key = Key { kind, root: 0, in_place, send, recv: Some(vector), op: Some(op) };
    keyed(cx, form, comm, site, key, sendbuf, recvbuf)
}
