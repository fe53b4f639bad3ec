//! Collectives with a count, and mostly a displacement, per rank.
#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use mpi::coll::{Call, Ints, Kind, Side, Type, args};
use mpi::error::Result;
use mpi::handle::Handle;

use super::run::{self, Site};
use super::{Form, committed, forms, listed};
use crate::cx::Cx;
use crate::kind::array::{Array, CountArray, Counts64};
use crate::kind::handle::live;
use crate::kind::output::Out;
use crate::kind::scalar::count;
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
        (sendbuf: usize, sendcounts: CountArray, sdispls: CountArray, sendtypes: Array<usize>, recvbuf: usize,
         recvcounts: CountArray, rdispls: CountArray, recvtypes: Array<usize>, comm: Handle);
    read_reduce_scatter => "Reduce_scatter" reduce_scatter ireduce_scatter reduce_scatter_init
        (sendbuf: usize, recvbuf: usize, recvcounts: CountArray, datatype: Handle, op: Handle, comm: Handle);
}

/// What all calls here have in common.
struct Common {
    kind: Kind,
    site: Site,
    root: usize,
    in_place: bool,
}

impl Common {
    fn call<'a>(&self, send: Side<'a>, recv: Side<'a>) -> Call<'a> {
        let Common { kind, site, root, in_place } = *self;
        Call { kind, rank: site.rank, size: site.size, send, recv, in_place, op: None, root }
    }

    fn is_root(&self) -> bool {
        self.root == self.site.rank
    }
}

fn rooted(cx: &Cx, comm: Handle, kind: Kind, send: usize, recv: usize, root: i32) -> Result<Common> {
    let site = run::site(cx, comm)?;
    let root = args::root(root, site.size)?;
    let in_place = args::in_place(kind, send, recv, root == site.rank)?;
    Ok(Common { kind, site, root, in_place })
}

fn rootless(cx: &Cx, comm: Handle, kind: Kind, send: usize, recv: usize) -> Result<Common> {
    let site = run::site(cx, comm)?;
    let in_place = args::in_place(kind, send, recv, false)?;
    Ok(Common { kind, site, root: 0, in_place })
}

fn ints(values: Counts64<'_>) -> Ints<'_> {
    match values {
        Counts64::Narrow(v) => Ints::Small(v),
        Counts64::Wide(v) => Ints::Large(v),
    }
}

/// Counts and displacements for all ranks of the communicator.
fn arrays<'a>(counts: CountArray, displs: CountArray, size: usize) -> Result<(Ints<'a>, Ints<'a>)> {
    // SAFETY: MPI says both arrays have an element per rank of the communicator, and the slices
    // are not used beyond the call.
    unsafe { Ok((ints(counts.counts(size)?), ints(displs.get(size)?))) }
}

/// One count and datatype where they are significant.
fn single(cx: &Cx, n: (i64, &'static str), datatype: (usize, &'static str)) -> Result<(u64, Type)> {
    let handle = live(Object::Datatype, datatype.0, datatype.1, cx)?;
    Ok((count(n.0, n.1)?, committed(cx, handle)?))
}

fn even(side: &Option<(u64, Type)>) -> Side<'_> {
    side.as_ref().map_or(Side::Absent, |(count, ty)| Side::Even { count: *count, ty })
}

fn varied<'a>(side: &'a Option<((Ints<'a>, Ints<'a>), Type)>) -> Side<'a> {
    side.as_ref().map_or(Side::Absent, |((counts, displs), ty)| Side::Varied {
        counts: *counts,
        displs: *displs,
        ty,
    })
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
    let common = rooted(cx, comm, Kind::Gatherv, sendbuf, recvbuf, root)?;
    let send = match common.in_place {
        true => None,
        false => Some(single(cx, (sendcount, "sendcount"), (sendtype, "sendtype"))?),
    };
    let recv = match common.is_root() {
        true => {
            let handle = live(Object::Datatype, recvtype, "recvtype", cx)?;
            Some((arrays(recvcounts, displs, common.site.size)?, committed(cx, handle)?))
        }
        false => None,
    };
    listed(cx, form, comm, &common.call(even(&send), varied(&recv)), None, sendbuf, recvbuf)
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
    let common = rooted(cx, comm, Kind::Scatterv, sendbuf, recvbuf, root)?;
    let send = match common.is_root() {
        true => {
            let handle = live(Object::Datatype, sendtype, "sendtype", cx)?;
            Some((arrays(sendcounts, displs, common.site.size)?, committed(cx, handle)?))
        }
        false => None,
    };
    let recv = match common.in_place {
        true => None,
        false => Some(single(cx, (recvcount, "recvcount"), (recvtype, "recvtype"))?),
    };
    listed(cx, form, comm, &common.call(varied(&send), even(&recv)), None, sendbuf, recvbuf)
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
    let common = rootless(cx, comm, Kind::Allgatherv, sendbuf, recvbuf)?;
    let send = match common.in_place {
        true => None,
        false => Some(single(cx, (sendcount, "sendcount"), (sendtype, "sendtype"))?),
    };
    let recv = Some((arrays(recvcounts, displs, common.site.size)?, committed(cx, recvtype)?));
    listed(cx, form, comm, &common.call(even(&send), varied(&recv)), None, sendbuf, recvbuf)
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
    let common = rootless(cx, comm, Kind::Alltoallv, sendbuf, recvbuf)?;
    let send = match common.in_place {
        true => None,
        false => {
            let handle = live(Object::Datatype, sendtype, "sendtype", cx)?;
            Some((arrays(sendcounts, sdispls, common.site.size)?, committed(cx, handle)?))
        }
    };
    let recv = Some((arrays(recvcounts, rdispls, common.site.size)?, committed(cx, recvtype)?));
    listed(cx, form, comm, &common.call(varied(&send), varied(&recv)), None, sendbuf, recvbuf)
}

/// The datatypes of a mixed side.
fn types(cx: &Cx, handles: Array<usize>, counts: Ints) -> Result<Vec<Type>> {
    // SAFETY: MPI says there is a datatype per rank of the communicator, as there is a count.
    let handles = unsafe { handles.handles(counts.len(), Object::Datatype, cx)? };
    handles.into_iter().map(|handle| committed(cx, handle)).collect()
}

fn read_alltoallw(
    cx: &Cx,
    form: Form,
    sendbuf: usize,
    sendcounts: CountArray,
    sdispls: CountArray,
    sendtypes: Array<usize>,
    recvbuf: usize,
    recvcounts: CountArray,
    rdispls: CountArray,
    recvtypes: Array<usize>,
    comm: Handle,
) -> Result {
    let common = rootless(cx, comm, Kind::Alltoallw, sendbuf, recvbuf)?;
    let size = common.site.size;
    let send = match common.in_place {
        true => None,
        false => {
            let (counts, displs) = arrays(sendcounts, sdispls, size)?;
            Some((counts, displs, types(cx, sendtypes, counts)?))
        }
    };
    let (counts, displs) = arrays(recvcounts, rdispls, size)?;
    let recv_types = types(cx, recvtypes, counts)?;
    let recv = Side::Mixed { counts, displs, types: &recv_types };
    let send = send.as_ref().map_or(Side::Absent, |(counts, displs, types)| Side::Mixed {
        counts: *counts,
        displs: *displs,
        types,
    });
    listed(cx, form, comm, &common.call(send, recv), None, sendbuf, recvbuf)
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
    let common = rootless(cx, comm, Kind::ReduceScatter, sendbuf, recvbuf)?;
    // SAFETY: MPI says there is a count per rank of the communicator; not used beyond the call.
    let counts = ints(unsafe { recvcounts.counts(common.site.size)? });
    let ty = committed(cx, datatype)?;
    let operation = cx.objects().ops.get(op)?;
    let total = counts.iter().try_fold(0i64, |sum, n| sum.checked_add(n)).unwrap_or(i64::MAX) as u64;
    let send = if common.in_place { Side::Absent } else { Side::Even { count: total, ty: &ty } };
    let recv = Side::Varied { counts, displs: Ints::Small(&[]), ty: &ty };
    let call = Call { op: Some(&operation), ..common.call(send, recv) };
    listed(cx, form, comm, &call, Some(op), sendbuf, recvbuf)
}
