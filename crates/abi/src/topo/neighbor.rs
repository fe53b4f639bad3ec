//! Neighbourhood collectives (MPI 5.0 sections 8.6 to 8.8), in the forms of the others ([`crate::coll`]).
#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use std::sync::Arc;

use mpi::coll::neighbor::{self, Call};
use mpi::coll::{Asked, Collective, Given, Key, Known, Listed, Lists, Schedule};
use mpi::error::Result;
use mpi::handle::Handle;
use mpi::topo::{Neighbors, Topology};

use crate::coll::run::Site;
use crate::coll::varied::{NAMES, Names, mixed, side, types, varied};
use crate::coll::{Form, again, forms, go, plausible};
use crate::cx::Cx;
use crate::kind::array::{Array, CountArray};
use crate::kind::output::Out;
use crate::layout::Slot;

forms! {
    read_allgather => "Neighbor_allgather" allgather iallgather allgather_init
        (sendbuf: usize, sendcount: u64, sendtype: Handle, recvbuf: usize, recvcount: u64, recvtype: Handle,
         comm: Handle);
    read_allgatherv => "Neighbor_allgatherv" allgatherv iallgatherv allgatherv_init
        (sendbuf: usize, sendcount: u64, sendtype: Handle, recvbuf: usize, recvcounts: CountArray,
         displs: CountArray, recvtype: Handle, comm: Handle);
    read_alltoall => "Neighbor_alltoall" alltoall ialltoall alltoall_init
        (sendbuf: usize, sendcount: u64, sendtype: Handle, recvbuf: usize, recvcount: u64, recvtype: Handle,
         comm: Handle);
    read_alltoallv => "Neighbor_alltoallv" alltoallv ialltoallv alltoallv_init
        (sendbuf: usize, sendcounts: CountArray, sdispls: CountArray, sendtype: Handle, recvbuf: usize,
         recvcounts: CountArray, rdispls: CountArray, recvtype: Handle, comm: Handle);
    read_alltoallw => "Neighbor_alltoallw" alltoallw ialltoallw alltoallw_init
        (sendbuf: usize, sendcounts: CountArray, sdispls: CountArray, sendtypes: Array<Slot>, recvbuf: usize,
         recvcounts: CountArray, rdispls: CountArray, recvtypes: Array<Slot>, comm: Handle);
}

/// This rank and its neighbours.
struct Around {
    site: Site,
    both: Arc<(Topology, Neighbors)>,
}

impl Around {
    fn of(cx: &Cx, comm: Handle) -> Result<Around> {
        let world = cx.world();
        let held = world.comm(comm)?;
        held.neighbors()?;
        let both = held.topology.clone().expect("who has neighbours has a topology");
        let (rank, size) = (held.place.rank as usize, held.place.size() as usize);
        Ok(Around { site: Site { rank, size, across: None }, both })
    }

    fn indegree(&self) -> usize {
        self.both.1.sources.len()
    }

    fn outdegree(&self) -> usize {
        self.both.1.destinations.len()
    }
}

/// A call as the application gave it.
struct Read<'a> {
    kind: Collective,
    around: &'a Around,
    send: Given<'a>,
    recv: Given<'a>,
    names: Names,
}

/// Does with a call what the form asks for, with a schedule that is kept of an equal one if there is one.
fn call(cx: &Cx, form: Form, comm: Handle, read: Read, sendbuf: usize, recvbuf: usize) -> Result {
    let plausible = plausible(false, false, sendbuf, recvbuf);
    let key = key(&read);
    let listed = listed(&read);
    let asked = key.as_ref().map_or(Asked::Listed(&listed), Asked::Key);
    match again(cx, form, comm, plausible.then_some(asked), sendbuf, recvbuf)? {
        Some(form) => {
            let schedule = compiled(cx, &read, sendbuf, recvbuf)?;
            let known = match form {
                Form::Persistent(_) => None,
                _ => key.map(Known::Key).or_else(|| Lists::of(&listed).map(Known::Lists)),
            };
            go(cx, form, comm, schedule, known)
        }
        None => Ok(()),
    }
}

/// What tells a call with one count for all neighbours from others.
fn key(read: &Read) -> Option<Key> {
    let (Given::Even { count: sent, ty: send_ty }, Given::Even { count: received, ty: recv_ty }) =
        (read.send, read.recv)
    else {
        return None;
    };
    let amount = |count, ty: usize| Some((count, Handle(ty as u32)));
    let (send, recv) = (amount(sent, send_ty), amount(received, recv_ty));
    Some(Key { kind: read.kind, in_place: false, root: 0, send, recv, op: None })
}

fn listed<'a>(read: &Read<'a>) -> Listed<'a> {
    let size = read.around.indegree().max(read.around.outdegree());
    Listed { kind: read.kind, in_place: false, size, root: 0, send: read.send, recv: read.recv, op: None }
}

#[inline(never)]
fn compiled(cx: &Cx, read: &Read, sendbuf: usize, recvbuf: usize) -> Result<Box<Schedule>> {
    neighbor::not_in_place(sendbuf, recvbuf)?;
    let send_types = types(cx, &read.send, read.names.send)?;
    let recv_types = types(cx, &read.recv, read.names.recv)?;
    let call = Call {
        kind: read.kind,
        rank: read.around.site.rank,
        size: read.around.site.size,
        around: &read.around.both.1,
        send: side(&read.send, &send_types),
        recv: side(&read.recv, &recv_types),
    };
    neighbor::check(&call, sendbuf, recvbuf)?;
    Ok(Box::new(Schedule::new(Arc::new(neighbor::compile(&call)), sendbuf, recvbuf)?))
}

fn even<'a>(count: u64, ty: Handle) -> Given<'a> {
    Given::Even { count, ty: ty.0 as usize }
}

fn read_allgather(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcount: u64,
    sendtype: Handle,
    recvbuf: usize,
    recvcount: u64,
    recvtype: Handle,
    comm: Handle,
) -> Result {
    let (send, recv) = ((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype));
    all(cx, form, Collective::NeighborAllgather, send, recv, comm)
}

fn read_alltoall(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcount: u64,
    sendtype: Handle,
    recvbuf: usize,
    recvcount: u64,
    recvtype: Handle,
    comm: Handle,
) -> Result {
    let (send, recv) = ((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype));
    all(cx, form, Collective::NeighborAlltoall, send, recv, comm)
}

/// A call with one count for all neighbours.
fn all(
    cx: &Cx,
    form: Form,
    kind: Collective,
    send: (usize, u64, Handle),
    recv: (usize, u64, Handle),
    comm: Handle,
) -> Result {
    let around = Around::of(cx, comm)?;
    let read =
        Read { kind, around: &around, send: even(send.1, send.2), recv: even(recv.1, recv.2), names: NAMES };
    call(cx, form, comm, read, send.0, recv.0)
}

fn read_allgatherv(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcount: u64,
    sendtype: Handle,
    recvbuf: usize,
    recvcounts: CountArray,
    displs: CountArray,
    recvtype: Handle,
    comm: Handle,
) -> Result {
    let around = Around::of(cx, comm)?;
    let send = even(sendcount, sendtype);
    let recv = varied(recvcounts, displs, recvtype.0 as usize, around.indegree())?;
    let read = Read { kind: Collective::NeighborAllgatherv, around: &around, send, recv, names: NAMES };
    call(cx, form, comm, read, sendbuf, recvbuf)
}

fn read_alltoallv(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcounts: CountArray,
    sdispls: CountArray,
    sendtype: Handle,
    recvbuf: usize,
    recvcounts: CountArray,
    rdispls: CountArray,
    recvtype: Handle,
    comm: Handle,
) -> Result {
    let around = Around::of(cx, comm)?;
    let send = varied(sendcounts, sdispls, sendtype.0 as usize, around.outdegree())?;
    let recv = varied(recvcounts, rdispls, recvtype.0 as usize, around.indegree())?;
    let read = Read { kind: Collective::NeighborAlltoallv, around: &around, send, recv, names: NAMES };
    call(cx, form, comm, read, sendbuf, recvbuf)
}

fn read_alltoallw(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcounts: CountArray,
    sdispls: CountArray,
    sendtypes: Array<Slot>,
    recvbuf: usize,
    recvcounts: CountArray,
    rdispls: CountArray,
    recvtypes: Array<Slot>,
    comm: Handle,
) -> Result {
    let (mut sends, mut recvs) = (Vec::new(), Vec::new());
    let around = Around::of(cx, comm)?;
    let send = mixed(sendcounts, sdispls, sendtypes, around.outdegree(), &mut sends)?;
    let recv = mixed(recvcounts, rdispls, recvtypes, around.indegree(), &mut recvs)?;
    let names = Names { send: "sendtypes", recv: "recvtypes" };
    let read = Read { kind: Collective::NeighborAlltoallw, around: &around, send, recv, names };
    call(cx, form, comm, read, sendbuf, recvbuf)
}
