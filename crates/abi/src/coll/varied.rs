//! Collectives with a count, and mostly a displacement, per rank.
#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use mpi::coll::{Asked, Call, Collective, Given, Ints, Known, Listed, Lists, Side, Type};
use mpi::error::Result;
use mpi::handle::Handle;

use super::run::{self, Part, Site};
use super::{Form, again, committed, compiled, forms, go, plausible};
use crate::cx::Cx;
use crate::kind::array::{Array, CountArray, Counts64};
use crate::kind::handle::live;
use crate::kind::output::Out;
use crate::kind::scalar::count;
use crate::layout::{self, Slot};
use crate::object::Object;

forms! {
    read_gatherv => "Gatherv" gatherv igatherv gatherv_init
        (sendbuf: usize, sendcount: i64, sendtype: usize, recvbuf: usize, recvcounts: CountArray,
         displs: CountArray, recvtype: usize, root: i32, comm: Handle);
    read_scatterv => "Scatterv" scatterv iscatterv scatterv_init
        (sendbuf: usize, sendcounts: CountArray, displs: CountArray, sendtype: usize, recvbuf: usize,
         recvcount: i64, recvtype: usize, root: i32, comm: Handle);
    read_allgatherv => "Allgatherv" allgatherv iallgatherv allgatherv_init
        (sendbuf: usize, sendcount: i64, sendtype: usize, recvbuf: usize, recvcounts: CountArray,
         displs: CountArray, recvtype: Handle, comm: Handle);
    read_alltoallv => "Alltoallv" alltoallv ialltoallv alltoallv_init
        (sendbuf: usize, sendcounts: CountArray, sdispls: CountArray, sendtype: usize, recvbuf: usize,
         recvcounts: CountArray, rdispls: CountArray, recvtype: Handle, comm: Handle);
    read_alltoallw => "Alltoallw" alltoallw ialltoallw alltoallw_init
        (sendbuf: usize, sendcounts: CountArray, sdispls: CountArray, sendtypes: Array<Slot>, recvbuf: usize,
         recvcounts: CountArray, rdispls: CountArray, recvtypes: Array<Slot>, comm: Handle);
    read_reduce_scatter => "Reduce_scatter" reduce_scatter ireduce_scatter reduce_scatter_init
        (sendbuf: usize, recvbuf: usize, recvcounts: CountArray, datatype: Handle, op: Handle, comm: Handle);
}

/// A call of which nothing is known yet but who takes part.
fn rooted<'a>(
    cx: &Cx,
    comm: Handle,
    kind: Collective,
    send: usize,
    recv: usize,
    root: i32,
) -> Result<(Listed<'a>, Site, Part)> {
    let site = run::site(cx, comm)?;
    let part = site.part(root)?;
    let in_place = site.in_place(kind, send, recv, part.is_root)?;
    Ok((listed(kind, site, part.root, in_place), site, part))
}

fn rootless<'a>(
    cx: &Cx,
    comm: Handle,
    kind: Collective,
    send: usize,
    recv: usize,
) -> Result<(Listed<'a>, Site)> {
    let site = run::site(cx, comm)?;
    let in_place = site.in_place(kind, send, recv, false)?;
    Ok((listed(kind, site, 0, in_place), site))
}

fn listed<'a>(kind: Collective, site: Site, root: usize, in_place: bool) -> Listed<'a> {
    Listed {
        kind,
        in_place,
        size: site.size.max(site.blocks()),
        root,
        send: Given::Absent,
        recv: Given::Absent,
        op: None,
    }
}

/// Runs a call, from a schedule that is kept of an equal one if there is one: then nothing of it needs a check
/// but its buffers.
fn call(cx: &Cx, form: Form, comm: Handle, call: &Listed, names: Names, send: usize, recv: usize) -> Result {
    let plausible = plausible(call.send.is_absent(), call.recv.is_absent(), send, recv);
    match again(cx, form, comm, plausible.then_some(Asked::Listed(call)), send, recv)? {
        Some(form) => first_time(cx, form, comm, call, names, send, recv),
        None => Ok(()),
    }
}

/// What the datatype arguments are called.
pub(crate) struct Names {
    pub send: &'static str,
    pub recv: &'static str,
}

pub(crate) const NAMES: Names = Names { send: "sendtype", recv: "recvtype" };

#[inline(never)]
fn first_time(
    cx: &Cx,
    form: Form,
    comm: Handle,
    listed: &Listed,
    names: Names,
    send: usize,
    recv: usize,
) -> Result {
    let (send_types, recv_types) =
        (types(cx, &listed.send, names.send)?, types(cx, &listed.recv, names.recv)?);
    let op = listed.op.map(|op| cx.objects().ops.get(op)).transpose()?;
    let site = run::site(cx, comm)?;
    let call = Call {
        kind: listed.kind,
        rank: site.rank,
        size: site.size,
        send: side(&listed.send, &send_types),
        recv: side(&listed.recv, &recv_types),
        in_place: listed.in_place,
        op: op.as_ref(),
        root: listed.root,
        across: site.across,
    };
    let known = match form {
        Form::Persistent(_) => None,
        _ => Lists::of(listed).map(Known::Lists),
    };
    go(cx, form, comm, compiled(cx, comm, &call, send, recv)?, known)
}

/// The datatypes of a side.
pub(crate) fn types(cx: &Cx, side: &Given, name: &'static str) -> Result<Vec<Type>> {
    let handles = match side {
        Given::Absent => &[],
        Given::Even { ty, .. } | Given::Varied { ty, .. } => std::slice::from_ref(ty),
        Given::Mixed { types, .. } => *types,
    };
    handles.iter().map(|&raw| committed(cx, live(Object::Datatype, raw, name, cx)?)).collect()
}

pub(crate) fn side<'a>(given: &Given<'a>, types: &'a [Type]) -> Side<'a> {
    match *given {
        Given::Absent => Side::Absent,
        Given::Even { count, .. } => Side::Even { count, ty: &types[0] },
        Given::Varied { counts, displs, .. } => Side::Varied { counts, displs, ty: &types[0] },
        Given::Mixed { counts, displs, .. } => Side::Mixed { counts, displs, types },
    }
}

fn ints(values: Counts64<'_>) -> Ints<'_> {
    match values {
        Counts64::Narrow(v) => Ints::Small(v),
        Counts64::Wide(v) => Ints::Large(v),
    }
}

/// A side with counts and displacements for all whom data goes to or comes from.
pub(crate) fn varied<'a>(
    counts: CountArray,
    displs: CountArray,
    ty: usize,
    size: usize,
) -> Result<Given<'a>> {
    // SAFETY: MPI says both arrays have an element per rank of the communicator, and the slices
    // are not used beyond the call.
    unsafe { Ok(Given::Varied { counts: ints(counts.counts(size)?), displs: ints(displs.get(size)?), ty }) }
}

/// As [`varied`] with a datatype for each.
pub(crate) fn mixed<'a>(
    counts: CountArray,
    displs: CountArray,
    types: Array<Slot>,
    size: usize,
    keep: &'a mut Vec<usize>,
) -> Result<Given<'a>> {
    // SAFETY: as in `varied`; there is a datatype for each count.
    unsafe {
        Ok(Given::Mixed {
            counts: ints(counts.counts(size)?),
            displs: ints(displs.get(size)?),
            types: layout::words(Object::Datatype, types.slice(size)?, keep),
        })
    }
}

fn even<'a>(n: (i64, &'static str), ty: usize) -> Result<Given<'a>> {
    Ok(Given::Even { count: count(n.0, n.1)?, ty })
}

fn raw(handle: Handle) -> usize {
    handle.0 as usize
}

fn read_gatherv(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcount: i64,
    sendtype: usize,
    recvbuf: usize,
    recvcounts: CountArray,
    displs: CountArray,
    recvtype: usize,
    root: i32,
    comm: Handle,
) -> Result {
    let (mut listed, site, part) = rooted(cx, comm, Collective::Gatherv, sendbuf, recvbuf, root)?;
    if part.takes_part && !listed.in_place {
        listed.send = even((sendcount, "sendcount"), sendtype)?;
    }
    if part.is_root {
        listed.recv = varied(recvcounts, displs, recvtype, site.blocks())?;
    }
    call(cx, form, comm, &listed, NAMES, sendbuf, recvbuf)
}

fn read_scatterv(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcounts: CountArray,
    displs: CountArray,
    sendtype: usize,
    recvbuf: usize,
    recvcount: i64,
    recvtype: usize,
    root: i32,
    comm: Handle,
) -> Result {
    let (mut listed, site, part) = rooted(cx, comm, Collective::Scatterv, sendbuf, recvbuf, root)?;
    if part.is_root {
        listed.send = varied(sendcounts, displs, sendtype, site.blocks())?;
    }
    if part.takes_part && !listed.in_place {
        listed.recv = even((recvcount, "recvcount"), recvtype)?;
    }
    call(cx, form, comm, &listed, NAMES, sendbuf, recvbuf)
}

fn read_allgatherv(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcount: i64,
    sendtype: usize,
    recvbuf: usize,
    recvcounts: CountArray,
    displs: CountArray,
    recvtype: Handle,
    comm: Handle,
) -> Result {
    let (mut listed, site) = rootless(cx, comm, Collective::Allgatherv, sendbuf, recvbuf)?;
    if !listed.in_place {
        listed.send = even((sendcount, "sendcount"), sendtype)?;
    }
    listed.recv = varied(recvcounts, displs, raw(recvtype), site.blocks())?;
    call(cx, form, comm, &listed, NAMES, sendbuf, recvbuf)
}

fn read_alltoallv(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcounts: CountArray,
    sdispls: CountArray,
    sendtype: usize,
    recvbuf: usize,
    recvcounts: CountArray,
    rdispls: CountArray,
    recvtype: Handle,
    comm: Handle,
) -> Result {
    let (mut listed, site) = rootless(cx, comm, Collective::Alltoallv, sendbuf, recvbuf)?;
    if !listed.in_place {
        listed.send = varied(sendcounts, sdispls, sendtype, site.blocks())?;
    }
    listed.recv = varied(recvcounts, rdispls, raw(recvtype), site.blocks())?;
    call(cx, form, comm, &listed, NAMES, sendbuf, recvbuf)
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
    let (mut send, mut recv) = (Vec::new(), Vec::new());
    let (mut listed, site) = rootless(cx, comm, Collective::Alltoallw, sendbuf, recvbuf)?;
    if !listed.in_place {
        listed.send = mixed(sendcounts, sdispls, sendtypes, site.blocks(), &mut send)?;
    }
    listed.recv = mixed(recvcounts, rdispls, recvtypes, site.blocks(), &mut recv)?;
    let names = Names { send: "sendtypes", recv: "recvtypes" };
    call(cx, form, comm, &listed, names, sendbuf, recvbuf)
}

fn read_reduce_scatter(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    recvbuf: usize,
    recvcounts: CountArray,
    datatype: Handle,
    op: Handle,
    comm: Handle,
) -> Result {
    let (mut listed, site) = rootless(cx, comm, Collective::ReduceScatter, sendbuf, recvbuf)?;
    // SAFETY: MPI says there is a count per rank of the communicator; not used beyond the call.
    let counts = ints(unsafe { recvcounts.counts(site.size)? });
    let ty = raw(datatype);
    if !listed.in_place {
        let total = counts.iter().try_fold(0i64, |sum, n| sum.checked_add(n)).unwrap_or(i64::MAX) as u64;
        listed.send = Given::Even { count: total, ty };
    }
    listed.recv = Given::Varied { counts, displs: Ints::Small(&[]), ty };
    listed.op = Some(op);
    let names = Names { send: "datatype", recv: "datatype" };
    call(cx, form, comm, &listed, names, sendbuf, recvbuf)
}
