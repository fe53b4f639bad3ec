//! From a checked call to the program of this rank.
use super::account::Chosen;
use super::blocks::{Blocks, Ints};
use super::build::{Builder, View};
use super::cost::{Algorithm, Forced, Problem, choose, segment};
use super::inter::{self, Across};
use super::levels::Spread;
use super::overlap::Reach;
use super::rates::Tariff;
use super::schedule::{Base, Buf, Program};
use super::tag::Collective;
use super::two_level::{self, Places};
use super::ty::Type;
use super::{allgather, alltoall, barrier, bcast, gather, linear, reduce, scan, uneven};
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
    pub kind: Collective,
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
    /// The root, 0 where there is none; on intercommunicators also [`inter::ROOT`] and [`inter::NOBODY`].
    pub root: usize,
    /// The other group, on an intercommunicator: `rank` and `size` are those of this one.
    pub across: Option<Across>,
}

impl Call<'_> {
    /// What the choice of the algorithm depends on.
    pub fn problem<'s>(&self, spread: &'s Spread) -> Problem<'s> {
        let commutes = self.op.is_none_or(Op::commutes);
        Problem { size: self.size, bytes: self.bytes(), commutes, root: self.root, spread }
    }

    fn bytes(&self) -> u64 {
        let of = |side: &Side| match *side {
            Side::Absent => 0,
            Side::Even { count, ty } => count * ty.size,
            Side::Varied { counts, ty, .. } => counts.iter().sum::<i64>() as u64 * ty.size,
            Side::Mixed { .. } => 0,
        };
        match self.kind {
            Collective::Barrier
            | Collective::Gatherv
            | Collective::Scatterv
            | Collective::Alltoallv
            | Collective::Alltoallw => 0,
            Collective::ReduceScatterBlock => of(&self.recv) * self.size as u64,
            Collective::Gather | Collective::Reduce => {
                of(if self.in_place { &self.recv } else { &self.send })
            }
            Collective::Scatter => of(if self.in_place { &self.send } else { &self.recv }),
            _ => of(&self.recv),
        }
    }

    /// How many blocks a buffer has in collectives with a block per rank: on intercommunicators those are for the
    /// other group, but for the parts of a reduction, which stay in this one.
    pub fn blocks(&self) -> usize {
        match self.across {
            Some(across) if self.kind != Collective::ReduceScatterBlock => across.remote,
            _ => self.size,
        }
    }

    fn is_root(&self) -> bool {
        self.rank == self.root
    }
}

/// How a call is run.
struct Plan<'a> {
    algorithm: Algorithm,
    /// Of a chain.
    segment: u64,
    /// Where the algorithm has two levels.
    places: Option<Places<'a>>,
}

/// The program of this rank, by the algorithm of least cost or the forced one.
pub fn compile(call: &Call, spread: &Spread, tariff: &Tariff, forced: &Forced) -> Program {
    if let Some(across) = call.across {
        return inter::compile(call, across, spread, tariff, forced);
    }
    let problem = call.problem(spread);
    let choice = choose(call.kind, &problem, tariff, forced.get(call.kind));
    let algorithm = choice.winner;
    let levels = spread.levels().filter(|_| algorithm == Algorithm::TwoLevel);
    let places = levels.map(|levels| Places::new(levels, tariff, call.rank, call.root));
    let plan = Plan { algorithm, segment: segment(&problem, tariff), places };
    let mut b = Builder::reducing(call.op, spread);
    let v = View::all(call.rank, call.size);
    match call.kind {
        Collective::Barrier => match &plan.places {
            Some(places) => two_level::barrier(&mut b, places),
            None => barrier::by(&mut b, &v, algorithm),
        },
        Collective::Bcast => broadcast(&mut b, &v, call, &plan),
        Collective::Gather | Collective::Gatherv | Collective::Scatter | Collective::Scatterv => {
            rooted(&mut b, &v, call, &plan)
        }
        Collective::Allgather | Collective::Allgatherv => gather_to_all(&mut b, &v, call, &plan),
        Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => {
            all_to_all(&mut b, &v, call, &plan)
        }
        Collective::Reduce | Collective::Allreduce | Collective::Scan | Collective::Exscan => {
            reduction(&mut b, &v, call, &plan)
        }
        Collective::ReduceScatterBlock | Collective::ReduceScatter => reduce_scatter(&mut b, &v, call, &plan),
        Collective::NeighborAllgather
        | Collective::NeighborAllgatherv
        | Collective::NeighborAlltoall
        | Collective::NeighborAlltoallv
        | Collective::NeighborAlltoallw => unreachable!("written along edges"),
    }
    // What every rank does with every other is the same by any flat algorithm of these.
    let free = matches!(call.kind, Collective::Alltoallv | Collective::Alltoallw) && plan.places.is_none();
    let algorithm = (!free).then_some(algorithm);
    let root = call.kind.is_rooted().then_some(call.root as u32);
    let chosen = Some(Chosen::new(&problem, choice));
    Program { reach: Reach::of(call), chosen, ..b.finish(call.kind, algorithm, root, call.op.cloned()) }
}

/// A side as one buffer of elements.
pub fn plain(b: &mut Builder, base: Base, side: &Side) -> Option<Buf> {
    match *side {
        Side::Even { count, ty } => Some(b.buf(base, count, ty)),
        _ => None,
    }
}

/// A side as a block per rank; `types` holds the program's indices of a mixed side's types.
pub fn blocks<'a>(
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

fn broadcast(b: &mut Builder, v: &View, call: &Call, plan: &Plan) {
    let buf = plain(b, Base::Recv, &call.recv).expect("Bcast has a buffer");
    if b.bytes(buf) == 0 || v.size == 1 {
        return;
    }
    match &plan.places {
        Some(places) => two_level::bcast(b, places, buf),
        None => bcast_by(plan.algorithm, b, v, buf, call.root, plan.segment),
    }
}

/// A broadcast by one level.
pub(super) fn bcast_by(algorithm: Algorithm, b: &mut Builder, v: &View, buf: Buf, root: usize, segment: u64) {
    match algorithm {
        Algorithm::ScatterAllgather => bcast::scatter_allgather(b, v, buf, root),
        Algorithm::Chain => bcast::chain(b, v, buf, root, segment),
        Algorithm::Linear => bcast::linear(b, v, buf, root),
        _ => bcast::binomial(b, v, buf, root),
    }
}

fn rooted(b: &mut Builder, v: &View, call: &Call, plan: &Plan) {
    let gathers = matches!(call.kind, Collective::Gather | Collective::Gatherv);
    let (one, one_base, many, many_base) = if gathers {
        (&call.send, Base::Send, &call.recv, Base::Recv)
    } else {
        (&call.recv, Base::Recv, &call.send, Base::Send)
    };
    let mine = plain(b, one_base, one);
    let mut types = Vec::new();
    let all = if call.is_root() { blocks(b, many_base, many, v.size, &mut types) } else { None };
    let (all, each) = (all.as_ref(), call.bytes());
    let is_uneven = matches!(call.kind, Collective::Gatherv | Collective::Scatterv);
    match (gathers, &plan.places) {
        (true, Some(places)) if is_uneven => uneven::gather(b, places, mine, all, places.through(call.kind)),
        (false, Some(places)) if is_uneven => {
            uneven::scatter(b, places, mine, all, places.through(call.kind))
        }
        (true, Some(places)) => two_level::gather(b, places, mine, all, each),
        (true, None) => gather_by(plan.algorithm, b, v, mine, all, each, call.root),
        (false, Some(places)) => two_level::scatter(b, places, mine, all, each),
        (false, None) => scatter_by(plan.algorithm, b, v, mine, all, each, call.root),
    }
}

/// A gather by one level, of blocks of `each` bytes.
pub(super) fn gather_by(
    algorithm: Algorithm,
    b: &mut Builder,
    v: &View,
    mine: Option<Buf>,
    all: Option<&Blocks>,
    each: u64,
    root: usize,
) {
    match algorithm {
        Algorithm::Binomial => gather::gather_binomial(b, v, mine, all, each, root),
        _ => gather::gather_linear(b, v, mine, all, root),
    }
}

/// A scatter by one level, of blocks of `each` bytes.
pub(super) fn scatter_by(
    algorithm: Algorithm,
    b: &mut Builder,
    v: &View,
    mine: Option<Buf>,
    all: Option<&Blocks>,
    each: u64,
    root: usize,
) {
    match algorithm {
        Algorithm::Binomial => gather::scatter_binomial(b, v, mine, all, each, root),
        _ => gather::scatter_linear(b, v, mine, all, root),
    }
}

fn gather_to_all(b: &mut Builder, v: &View, call: &Call, plan: &Plan) {
    let mut types = Vec::new();
    let all = blocks(b, Base::Recv, &call.recv, v.size, &mut types).expect("Allgather has a receive buffer");
    let mine = plain(b, Base::Send, &call.send);
    match &plan.places {
        Some(places) => two_level::allgather(b, places, mine, &all),
        None => allgather_by(plan.algorithm, b, v, mine, &all),
    }
}

/// An allgather by one level.
pub(super) fn allgather_by(algorithm: Algorithm, b: &mut Builder, v: &View, mine: Option<Buf>, all: &Blocks) {
    match algorithm {
        Algorithm::RecursiveDoubling => allgather::recursive_doubling(b, v, mine, all),
        Algorithm::Bruck => allgather::bruck(b, v, mine, all),
        Algorithm::Neighbour => allgather::neighbour(b, v, mine, all),
        Algorithm::Linear => allgather::linear(b, v, mine, all),
        _ => allgather::ring(b, v, mine, all),
    }
}

fn all_to_all(b: &mut Builder, v: &View, call: &Call, plan: &Plan) {
    let (mut send_types, mut recv_types) = (Vec::new(), Vec::new());
    let recv =
        blocks(b, Base::Recv, &call.recv, v.size, &mut recv_types).expect("Alltoall has a receive buffer");
    let send = blocks(b, Base::Send, &call.send, v.size, &mut send_types);
    // By two levels and in Bruck's algorithm the blocks leave the buffer before any is received into it.
    let from = send.unwrap_or(recv);
    match &plan.places {
        Some(places) if call.kind == Collective::Alltoall => {
            return two_level::alltoall(b, places, &from, &recv, call.bytes());
        }
        Some(places) => {
            return uneven::alltoall(b, places, &from, &recv, send.is_none(), places.through(call.kind));
        }
        None => {}
    }
    match (send, plan.algorithm) {
        (_, Algorithm::Bruck) => alltoall::bruck(b, v, &from, &recv, call.bytes()),
        (None, _) => alltoall::in_place(b, v, &recv),
        (Some(send), Algorithm::Pairwise) => alltoall::pairwise(b, v, &send, &recv),
        (Some(send), _) => alltoall::linear(b, v, &send, &recv),
    }
}

fn reduction(b: &mut Builder, v: &View, call: &Call, plan: &Plan) {
    let output = plain(b, Base::Recv, &call.recv);
    let input = if call.in_place { output } else { plain(b, Base::Send, &call.send) };
    let input = input.expect("a reduction has an input");
    let commutes = call.op.is_none_or(Op::commutes);
    if input.count == 0 {
        return;
    }
    if call.kind == Collective::Reduce {
        let output = output.filter(|_| call.is_root());
        return match &plan.places {
            Some(places) => two_level::reduce(b, places, input, output, commutes),
            None => reduce_by(plan.algorithm, b, v, input, output, call.root),
        };
    }
    let output = output.expect("only Reduce has ranks without result");
    let exclusive = call.kind == Collective::Exscan;
    match (call.kind, plan.algorithm, &plan.places) {
        (Collective::Scan | Collective::Exscan, _, Some(places)) => {
            two_level::scan(b, places, input, output, exclusive)
        }
        (Collective::Allreduce, _, Some(places)) => two_level::allreduce(b, places, input, output, commutes),
        (Collective::Allreduce, algorithm, None) => allreduce_by(algorithm, b, v, input, output, commutes),
        (_, algorithm, _) => scan_by(algorithm, b, v, input, output, exclusive),
    }
}

/// A prefix reduction by one level.
pub(super) fn scan_by(
    algorithm: Algorithm,
    b: &mut Builder,
    v: &View,
    input: Buf,
    output: Buf,
    exclusive: bool,
) {
    match algorithm {
        Algorithm::RecursiveDoubling => scan::recursive_doubling(b, v, input, output, exclusive),
        _ => scan::linear(b, v, input, output, exclusive),
    }
}

/// A reduction to one rank by one level.
pub(super) fn reduce_by(
    algorithm: Algorithm,
    b: &mut Builder,
    v: &View,
    input: Buf,
    output: Option<Buf>,
    root: usize,
) {
    match algorithm {
        Algorithm::Rabenseifner => reduce::rabenseifner(b, v, input, output, root),
        Algorithm::InOrder => reduce::in_order(b, v, input, output, root),
        Algorithm::Linear => linear::reduce(b, v, input, output, root),
        _ => reduce::binomial(b, v, input, output, root),
    }
}

/// A reduction to all ranks by one level.
pub(super) fn allreduce_by(
    algorithm: Algorithm,
    b: &mut Builder,
    v: &View,
    input: Buf,
    output: Buf,
    commutes: bool,
) {
    match algorithm {
        Algorithm::Rabenseifner => reduce::rabenseifner_all(b, v, input, output),
        Algorithm::Ring => reduce::ring(b, v, input, output),
        Algorithm::ReduceBcast => reduce::reduce_bcast(b, v, input, output, commutes),
        Algorithm::Linear => linear::allreduce(b, v, input, output),
        Algorithm::Star => linear::allreduce_by_star(b, v, input, output),
        Algorithm::TwoShot => linear::allreduce_by_shares(b, v, input, output),
        _ => reduce::recursive_doubling(b, v, input, output, commutes),
    }
}

fn reduce_scatter(b: &mut Builder, v: &View, call: &Call, plan: &Plan) {
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
    match &plan.places {
        Some(places) => {
            let commutes = call.op.is_none_or(Op::commutes);
            two_level::reduce_scatter(b, places, input, output, &cuts, commutes);
        }
        None => reduce_scatter_by(plan.algorithm, b, v, input, output, &cuts),
    }
}

/// A reduction of which each rank gets a part, by one level; `cuts(i)` is where rank `i`'s part begins.
pub(super) fn reduce_scatter_by(
    algorithm: Algorithm,
    b: &mut Builder,
    v: &View,
    input: Buf,
    output: Buf,
    cuts: &dyn Fn(usize) -> u64,
) {
    match algorithm {
        Algorithm::RecursiveHalving => reduce::scatter_halving(b, v, input, output, cuts),
        Algorithm::Pairwise => reduce::scatter_pairwise(b, v, input, output, cuts),
        Algorithm::Ring => reduce::scatter_ring(b, v, input, output, cuts),
        Algorithm::Linear => linear::scatter(b, v, input, output, cuts),
        _ => reduce::scatter_in_order(b, v, input, output, cuts),
    }
}
