//! Collectives in which this rank moves nothing: no message leaves and none is awaited, so all that is left is to see
//! that the call can be meant, and to count it.
//!
//! Whatever is not plainly right (a handle that was made by the application, `MPI_IN_PLACE`, a root that is none) goes
//! the general way, which says what is wrong.
#![allow(non_snake_case, clippy::too_many_arguments)]

use mpi::coll::{Collective, args};
use mpi::datatype::basic;
use mpi::op;

use super::{handle, store, unheard};
use crate::layout::Slot;
use crate::object::Object;

/// A number of elements, as either width has it.
pub trait Number: Into<i64> + Copy {}
impl<T: Into<i64> + Copy> Number for T {}

/// This rank in a communicator, and the size of that.
type Seat = (usize, usize);

/// A collective that is over when it is called.
#[inline(always)]
fn over(kind: Collective, comm: usize, moves_nothing: impl FnOnce(Seat) -> bool) -> Option<i32> {
    unheard()?.empty_now(kind, handle(comm), moves_nothing).then_some(0)
}

/// As [`over`], of the form that gives a request.
#[inline(always)]
fn begun(
    kind: Collective,
    comm: usize,
    request: usize,
    moves_nothing: impl FnOnce(Seat) -> bool,
) -> Option<i32> {
    if request == 0 {
        return None;
    }
    let mut world = unheard()?;
    let collected = world.objects.requests.collected().ok()?;
    if !world.empty_now(kind, handle(comm), moves_nothing) {
        return None;
    }
    store(request, collected);
    Some(0)
}

#[inline(always)]
fn is_rank(root: i32, size: usize) -> bool {
    (root as u32 as usize) < size
}

/// Whether this is a predefined datatype.
#[inline(always)]
fn is_type(datatype: usize) -> bool {
    basic::index_of(handle(datatype)).is_some()
}

/// Whether a buffer is one, of no elements.
#[inline(always)]
fn none(buf: usize, n: i64, datatype: usize) -> bool {
    n == 0 && buf != args::IN_PLACE && is_type(datatype)
}

/// As [`none`] of two buffers between which elements are reduced.
#[inline(always)]
fn reduces_none(bufs: [usize; 2], n: i64, datatype: usize, op: usize) -> bool {
    n == 0 && !bufs.contains(&args::IN_PLACE) && reduces(datatype, op)
}

#[inline(always)]
fn reduces(datatype: usize, op: usize) -> bool {
    op::reduces(handle(op), handle(datatype))
}

/// Whether an array of counts, of this width, has nothing but zeros.
#[inline(always)]
fn zeros<const LARGE: bool>(counts: usize, size: usize) -> bool {
    if counts == 0 {
        return false;
    }
    // SAFETY: not NULL, and MPI says it has an element for each rank of the communicator.
    unsafe {
        match LARGE {
            true => std::slice::from_raw_parts(counts as *const i64, size).iter().all(|n| *n == 0),
            false => std::slice::from_raw_parts(counts as *const i32, size).iter().all(|n| *n == 0),
        }
    }
}

/// Whether a buffer with a block for each rank is one, and all blocks are empty.
#[inline(always)]
fn all_none<const LARGE: bool>(
    buf: usize,
    counts: usize,
    displs: usize,
    datatype: usize,
    size: usize,
) -> bool {
    buf != args::IN_PLACE && displs != 0 && is_type(datatype) && zeros::<LARGE>(counts, size)
}

/// As [`all_none`] with a datatype for each.
#[inline(always)]
fn mixed_none<const LARGE: bool>(
    buf: usize,
    counts: usize,
    displs: usize,
    types: usize,
    size: usize,
) -> bool {
    if buf == args::IN_PLACE || displs == 0 || types == 0 || !zeros::<LARGE>(counts, size) {
        return false;
    }
    // SAFETY: not NULL, and there is a datatype for each count.
    let slots = unsafe { std::slice::from_raw_parts(types as *const Slot, size) };
    slots.iter().all(|slot| is_type(slot.get(Object::Datatype)))
}

/// Both forms of a collective: what to see before anything is looked up, and what of this rank's place.
macro_rules! empty {
    ($($kind:ident $blocking:ident $started:ident [$($large:ident)?] ($($arg:ident: $ty:ty),*)
       $first:expr, |$seat:pat_param| $nothing:expr;)*) => {$(
        #[doc = concat!("`", stringify!($blocking), "` of nothing.")]
        #[inline(always)]
        pub fn $blocking<$(const $large: bool)?>($($arg: $ty,)* comm: usize) -> Option<i32> {
            if !$first {
                return None;
            }
            over(
                Collective::$kind,
                comm,
                #[inline(always)]
                |$seat| $nothing,
            )
        }

        #[doc = concat!("`", stringify!($started), "` of nothing.")]
        #[inline(always)]
        pub fn $started<$(const $large: bool)?>($($arg: $ty,)* comm: usize, request: usize) -> Option<i32> {
            if !$first {
                return None;
            }
            begun(
                Collective::$kind,
                comm,
                request,
                #[inline(always)]
                |$seat| $nothing,
            )
        }
    )*};
}

empty! {
    Bcast MPI_Bcast MPI_Ibcast [] (buf: usize, n: impl Number, datatype: usize, root: i32)
        none(buf, n.into(), datatype), |(_, size)| is_rank(root, size);
    Gather MPI_Gather MPI_Igather [] (sendbuf: usize, sendcount: impl Number, sendtype: usize,
        recvbuf: usize, recvcount: impl Number, recvtype: usize, root: i32)
        none(sendbuf, sendcount.into(), sendtype), |(rank, size)| is_rank(root, size)
            && (root as usize != rank || none(recvbuf, recvcount.into(), recvtype));
    Scatter MPI_Scatter MPI_Iscatter [] (sendbuf: usize, sendcount: impl Number, sendtype: usize,
        recvbuf: usize, recvcount: impl Number, recvtype: usize, root: i32)
        none(recvbuf, recvcount.into(), recvtype), |(rank, size)| is_rank(root, size)
            && (root as usize != rank || none(sendbuf, sendcount.into(), sendtype));
    Allgather MPI_Allgather MPI_Iallgather [] (sendbuf: usize, sendcount: impl Number, sendtype: usize,
        recvbuf: usize, recvcount: impl Number, recvtype: usize)
        none(sendbuf, sendcount.into(), sendtype) && none(recvbuf, recvcount.into(), recvtype), |_| true;
    Alltoall MPI_Alltoall MPI_Ialltoall [] (sendbuf: usize, sendcount: impl Number, sendtype: usize,
        recvbuf: usize, recvcount: impl Number, recvtype: usize)
        none(sendbuf, sendcount.into(), sendtype) && none(recvbuf, recvcount.into(), recvtype), |_| true;
    Reduce MPI_Reduce MPI_Ireduce [] (sendbuf: usize, recvbuf: usize, n: impl Number, datatype: usize,
        op: usize, root: i32)
        reduces_none([sendbuf, recvbuf], n.into(), datatype, op), |(_, size)| is_rank(root, size);
    Allreduce MPI_Allreduce MPI_Iallreduce [] (sendbuf: usize, recvbuf: usize, n: impl Number,
        datatype: usize, op: usize)
        reduces_none([sendbuf, recvbuf], n.into(), datatype, op), |_| true;
    ReduceScatterBlock MPI_Reduce_scatter_block MPI_Ireduce_scatter_block [] (sendbuf: usize,
        recvbuf: usize, n: impl Number, datatype: usize, op: usize)
        reduces_none([sendbuf, recvbuf], n.into(), datatype, op), |_| true;
    Scan MPI_Scan MPI_Iscan [] (sendbuf: usize, recvbuf: usize, n: impl Number, datatype: usize, op: usize)
        reduces_none([sendbuf, recvbuf], n.into(), datatype, op), |_| true;
    Exscan MPI_Exscan MPI_Iexscan [] (sendbuf: usize, recvbuf: usize, n: impl Number, datatype: usize,
        op: usize)
        reduces_none([sendbuf, recvbuf], n.into(), datatype, op), |_| true;
    Gatherv MPI_Gatherv MPI_Igatherv [LARGE] (sendbuf: usize, sendcount: impl Number, sendtype: usize,
        recvbuf: usize, recvcounts: usize, displs: usize, recvtype: usize, root: i32)
        none(sendbuf, sendcount.into(), sendtype), |(rank, size)| is_rank(root, size)
            && (root as usize != rank || all_none::<LARGE>(recvbuf, recvcounts, displs, recvtype, size));
    Scatterv MPI_Scatterv MPI_Iscatterv [LARGE] (sendbuf: usize, sendcounts: usize, displs: usize,
        sendtype: usize, recvbuf: usize, recvcount: impl Number, recvtype: usize, root: i32)
        none(recvbuf, recvcount.into(), recvtype), |(rank, size)| is_rank(root, size)
            && (root as usize != rank || all_none::<LARGE>(sendbuf, sendcounts, displs, sendtype, size));
    Allgatherv MPI_Allgatherv MPI_Iallgatherv [LARGE] (sendbuf: usize, sendcount: impl Number,
        sendtype: usize, recvbuf: usize, recvcounts: usize, displs: usize, recvtype: usize)
        none(sendbuf, sendcount.into(), sendtype), |(_, size)|
            all_none::<LARGE>(recvbuf, recvcounts, displs, recvtype, size);
    Alltoallv MPI_Alltoallv MPI_Ialltoallv [LARGE] (sendbuf: usize, sendcounts: usize, sdispls: usize,
        sendtype: usize, recvbuf: usize, recvcounts: usize, rdispls: usize, recvtype: usize)
        sendbuf != args::IN_PLACE, |(_, size)| all_none::<LARGE>(sendbuf, sendcounts, sdispls, sendtype, size)
            && all_none::<LARGE>(recvbuf, recvcounts, rdispls, recvtype, size);
    Alltoallw MPI_Alltoallw MPI_Ialltoallw [LARGE] (sendbuf: usize, sendcounts: usize, sdispls: usize,
        sendtypes: usize, recvbuf: usize, recvcounts: usize, rdispls: usize, recvtypes: usize)
        sendbuf != args::IN_PLACE, |(_, size)| mixed_none::<LARGE>(sendbuf, sendcounts, sdispls, sendtypes, size)
            && mixed_none::<LARGE>(recvbuf, recvcounts, rdispls, recvtypes, size);
    ReduceScatter MPI_Reduce_scatter MPI_Ireduce_scatter [LARGE] (sendbuf: usize, recvbuf: usize,
        recvcounts: usize, datatype: usize, op: usize)
        reduces_none([sendbuf, recvbuf], 0, datatype, op), |(_, size)| zeros::<LARGE>(recvcounts, size);
}
