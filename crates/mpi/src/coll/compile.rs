//! From a checked call to the program of this rank.
use super::blocks::{Blocks, Ints};
use super::build::{Builder, View};
use super::cost::{Algorithm, Facts, Forced, LinkCosts, choose, segment};
use super::overlap::Reach;
use super::schedule::{Base, Buf, Program};
use super::tag::Kind;
use super::ty::Type;
use super::{allgather, alltoall, barrier, bcast, gather, linear, reduce, scan};
use crate::op::Op;

/// One side of a call: what a buffer holds. Where it lies is not part of the program.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a> {
    /// Not significant on this rank, or `MPI_IN_PLACE`.
    Absent,
    /// `count` elements; per rank where the collective has a block per rank.
    Even {
        /// Elements.
        count: u64,
        /// Their type.
        ty: &'a Type,
    },
    /// A count and a displacement per rank. Reduce_scatter has no displacements.
    Varied {
        /// Elements per rank.
        counts: Ints<'a>,
        /// In extents of the type.
        displs: Ints<'a>,
        /// The type of all.
        ty: &'a Type,
    },
    /// A count, a displacement and a type per rank (Alltoallw).
    Mixed {
        /// Elements per rank.
        counts: Ints<'a>,
        /// In bytes.
        displs: Ints<'a>,
        /// One per rank.
        types: &'a [Type],
    },
}

/// A collective call, its arguments checked.
///
/// Bcast and Barrier use `recv` (their only buffer). In a call with `MPI_IN_PLACE` the side it
/// stands for is [`Side::Absent`], and `in_place` is set.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// Which collective.
    pub kind: Kind,
    /// This rank.
    pub rank: usize,
    /// Ranks of the communicator.
    pub size: usize,
    /// The send buffer.
    pub send: Side<'a>,
    /// The receive buffer.
    pub recv: Side<'a>,
    /// Whether `MPI_IN_PLACE` was given on this rank.
    pub in_place: bool,
    /// The reduction operation.
    pub op: Option<&'a Op>,
    /// The root, 0 where there is none.
    pub root: usize,
}

impl Call<'_> {
    /// What the choice of the algorithm depends on.
    pub fn facts(&self) -> Facts {
        let of = |side: &Side| match *side {
            Side::Absent => 0,
            Side::Even { count, ty } => count * ty.size,
            Side::Varied { counts, ty, .. } => counts.iter().sum::<i64>() as u64 * ty.size,
            Side::Mixed { .. } => 0,
        };
        let bytes = match self.kind {
            Kind::Barrier | Kind::Gatherv | Kind::Scatterv | Kind::Alltoallv | Kind::Alltoallw => 0,
            Kind::ReduceScatterBlock => of(&self.recv) * self.size as u64,
            Kind::Gather | Kind::Reduce => of(if self.in_place { &self.recv } else { &self.send }),
            Kind::Scatter => of(if self.in_place { &self.send } else { &self.recv }),
            _ => of(&self.recv),
        };
        Facts { size: self.size, bytes, commutes: self.op.is_none_or(Op::commutes) }
    }

    fn is_root(&self) -> bool {
        self.rank == self.root
    }
}

/// The program of this rank, by the algorithm of least cost or the forced one.
pub fn compile(call: &Call, link: &LinkCosts, forced: &Forced) -> Program {
    let facts = call.facts();
    let algorithm = choose(call.kind, &facts, link, forced.get(call.kind)).winner;
    let mut b = Builder::default();
    let v = View::all(call.rank, call.size);
    match call.kind {
        Kind::Barrier => match algorithm {
            Algorithm::RecursiveDoubling => barrier::recursive_doubling(&mut b, &v),
            Algorithm::Linear => barrier::linear(&mut b, &v),
            Algorithm::Star => barrier::star(&mut b, &v),
            _ => barrier::dissemination(&mut b, &v),
        },
        Kind::Bcast => broadcast(&mut b, &v, call, algorithm, segment(&facts, link)),
        Kind::Gather | Kind::Gatherv | Kind::Scatter | Kind::Scatterv => rooted(&mut b, &v, call, algorithm),
        Kind::Allgather | Kind::Allgatherv => gather_to_all(&mut b, &v, call, algorithm),
        Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw => all_to_all(&mut b, &v, call, algorithm),
        Kind::Reduce | Kind::Allreduce | Kind::Scan | Kind::Exscan => reduction(&mut b, &v, call, algorithm),
        Kind::ReduceScatterBlock | Kind::ReduceScatter => reduce_scatter(&mut b, &v, call, algorithm),
    }
    // What every rank does with every other is the same by any of these algorithms.
    let free = matches!(call.kind, Kind::Alltoallv | Kind::Alltoallw);
    let algorithm = (!free).then_some(algorithm);
    let root = call.kind.is_rooted().then_some(call.root as u32);
    Program { reach: Reach::of(call), ..b.finish(call.kind, algorithm, root, call.op.cloned()) }
}

/// A side as one buffer of elements.
fn plain(b: &mut Builder, base: Base, side: &Side) -> Option<Buf> {
    match *side {
        Side::Even { count, ty } => Some(b.buf(base, count, ty)),
        _ => None,
    }
}

/// A side as a block per rank; `types` holds the program's indices of a mixed side's types.
fn blocks<'a>(
    b: &mut Builder,
    base: Base,
    side: &Side<'a>,
    size: usize,
    types: &'a mut Vec<u32>,
) -> Option<Blocks<'a>> {
    Some(match *side {
        Side::Absent => return None,
        Side::Even { count, ty } => Blocks::Even { all: b.buf(base, count * size as u64, ty), each: count },
        Side::Varied { counts, displs, ty } => Blocks::Varied { base, ty: b.ty(ty), counts, displs },
        Side::Mixed { counts, displs, types: given } => {
            types.extend(given.iter().map(|ty| b.ty(ty)));
            Blocks::Mixed { base, types, counts, displs }
        }
    })
}

fn broadcast(b: &mut Builder, v: &View, call: &Call, algorithm: Algorithm, segment: u64) {
    let buf = plain(b, Base::Recv, &call.recv).expect("Bcast has a buffer");
    if b.bytes(buf) == 0 || v.size == 1 {
        return;
    }
    match algorithm {
        Algorithm::ScatterAllgather => bcast::scatter_allgather(b, v, buf, call.root),
        Algorithm::Chain => bcast::chain(b, v, buf, call.root, segment),
        Algorithm::Linear => bcast::linear(b, v, buf, call.root),
        _ => bcast::binomial(b, v, buf, call.root),
    }
}

fn rooted(b: &mut Builder, v: &View, call: &Call, algorithm: Algorithm) {
    let gathers = matches!(call.kind, Kind::Gather | Kind::Gatherv);
    let (one, one_base, many, many_base) = if gathers {
        (&call.send, Base::Send, &call.recv, Base::Recv)
    } else {
        (&call.recv, Base::Recv, &call.send, Base::Send)
    };
    let mine = plain(b, one_base, one);
    let mut types = Vec::new();
    let all = if call.is_root() { blocks(b, many_base, many, v.size, &mut types) } else { None };
    let each = call.facts().bytes;
    match (gathers, algorithm) {
        (true, Algorithm::Binomial) => gather::gather_binomial(b, v, mine, all.as_ref(), each, call.root),
        (true, _) => gather::gather_linear(b, v, mine, all.as_ref(), call.root),
        (false, Algorithm::Binomial) => gather::scatter_binomial(b, v, mine, all.as_ref(), each, call.root),
        (false, _) => gather::scatter_linear(b, v, mine, all.as_ref(), call.root),
    }
}

fn gather_to_all(b: &mut Builder, v: &View, call: &Call, algorithm: Algorithm) {
    let mut types = Vec::new();
    let all = blocks(b, Base::Recv, &call.recv, v.size, &mut types).expect("Allgather has a receive buffer");
    let mine = plain(b, Base::Send, &call.send);
    match algorithm {
        Algorithm::RecursiveDoubling => allgather::recursive_doubling(b, v, mine, &all),
        Algorithm::Bruck => allgather::bruck(b, v, mine, &all),
        Algorithm::Neighbour => allgather::neighbour(b, v, mine, &all),
        Algorithm::Linear => allgather::linear(b, v, mine, &all),
        _ => allgather::ring(b, v, mine, &all),
    }
}

fn all_to_all(b: &mut Builder, v: &View, call: &Call, algorithm: Algorithm) {
    let (mut send_types, mut recv_types) = (Vec::new(), Vec::new());
    let recv =
        blocks(b, Base::Recv, &call.recv, v.size, &mut recv_types).expect("Alltoall has a receive buffer");
    let send = blocks(b, Base::Send, &call.send, v.size, &mut send_types);
    match (send, algorithm) {
        // In Bruck's algorithm the blocks leave the buffer before any is received into it.
        (_, Algorithm::Bruck) => alltoall::bruck(b, v, &send.unwrap_or(recv), &recv, call.facts().bytes),
        (None, _) => alltoall::in_place(b, v, &recv),
        (Some(send), Algorithm::Pairwise) => alltoall::pairwise(b, v, &send, &recv),
        (Some(send), _) => alltoall::linear(b, v, &send, &recv),
    }
}

fn reduction(b: &mut Builder, v: &View, call: &Call, algorithm: Algorithm) {
    let output = plain(b, Base::Recv, &call.recv);
    let input = if call.in_place { output } else { plain(b, Base::Send, &call.send) };
    let input = input.expect("a reduction has an input");
    let commutes = call.op.is_none_or(Op::commutes);
    if input.count == 0 {
        return;
    }
    if call.kind == Kind::Reduce {
        let output = output.filter(|_| call.is_root());
        return match algorithm {
            Algorithm::Rabenseifner => reduce::rabenseifner(b, v, input, output, call.root),
            Algorithm::InOrder => reduce::in_order(b, v, input, output, call.root),
            Algorithm::Linear => linear::reduce(b, v, input, output, call.root),
            _ => reduce::binomial(b, v, input, output, call.root),
        };
    }
    let output = output.expect("only Reduce has ranks without result");
    let exclusive = call.kind == Kind::Exscan;
    match (call.kind, algorithm) {
        (Kind::Allreduce, Algorithm::Rabenseifner) => reduce::rabenseifner_all(b, v, input, output),
        (Kind::Allreduce, Algorithm::Ring) => reduce::ring(b, v, input, output),
        (Kind::Allreduce, Algorithm::ReduceBcast) => reduce::reduce_bcast(b, v, input, output, commutes),
        (Kind::Allreduce, Algorithm::Linear) => linear::allreduce(b, v, input, output),
        (Kind::Allreduce, Algorithm::Star) => linear::allreduce_by_star(b, v, input, output),
        (Kind::Allreduce, _) => reduce::recursive_doubling(b, v, input, output, commutes),
        (_, Algorithm::RecursiveDoubling) => scan::recursive_doubling(b, v, input, output, exclusive),
        (_, _) => scan::linear(b, v, input, output, exclusive),
    }
}

fn reduce_scatter(b: &mut Builder, v: &View, call: &Call, algorithm: Algorithm) {
    let mut starts = Vec::with_capacity(v.size + 1);
    let mut total = 0;
    for rank in 0..v.size {
        starts.push(total);
        total += match call.recv {
            Side::Varied { counts, .. } => counts.at(rank) as u64,
            Side::Even { count, .. } => count,
            _ => unreachable!("Reduce_scatter has counts"),
        };
    }
    starts.push(total);
    let ty = match call.recv {
        Side::Varied { ty, .. } | Side::Even { ty, .. } => ty,
        _ => unreachable!("Reduce_scatter has a type"),
    };
    if total == 0 {
        return;
    }
    let cuts = |rank: usize| starts[rank];
    let output = b.buf(Base::Recv, cuts(v.me + 1) - cuts(v.me), ty);
    let input = b.buf(if call.in_place { Base::Recv } else { Base::Send }, total, ty);
    match algorithm {
        Algorithm::RecursiveHalving => reduce::scatter_halving(b, v, input, output, &cuts),
        Algorithm::Pairwise => reduce::scatter_pairwise(b, v, input, output, &cuts),
        Algorithm::Ring => reduce::scatter_ring(b, v, input, output, &cuts),
        Algorithm::Linear => linear::scatter(b, v, input, output, &cuts),
        _ => reduce::scatter_in_order(b, v, input, output, &cuts),
    }
}
