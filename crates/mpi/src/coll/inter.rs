//! Collectives on intercommunicators (MPI 5.0 section 6.2.3): data goes from each group to the other.
//!
//! Ranks of a program are those of both groups in one row, which is the same on both sides; a view of each
//! group is where its members stand in it. Blocks go from rank to rank directly: only the two ranks know how
//! much they are. What is reduced or spread goes through the first rank of each group, so that the way between
//! the groups, which may be the slow one, is taken once; inside a group the known algorithms do the rest.
//! Each group chooses these for itself, so messages carry no algorithm.
use super::blocks::Blocks;
use super::build::{Builder, View};
use super::compile::{Call, Side, bcast_by, blocks, plain};
use super::cost::{Algorithm, Forced, Problem, choose, segment};
use super::gather::Window;
use super::levels::Spread;
use super::overlap::Reach;
use super::rates::Tariff;
use super::schedule::{Base, Buf, Program};
use super::tag::Collective;
use super::{linear, reduce};
use crate::error::{Class, Result, fail};
use crate::op::Op;

/// The root of a call that gave `MPI_ROOT`: this rank.
pub const ROOT: usize = usize::MAX;
/// The root of a call that gave `MPI_PROC_NULL`: another rank of this group.
pub const NOBODY: usize = usize::MAX - 1;

/// `MPI_ROOT` and `MPI_PROC_NULL` as the application gives them.
const GIVEN_ROOT: i32 = -4;
const GIVEN_NOBODY: i32 = crate::group::PROC_NULL;

/// The other group of an intercommunicator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Across {
    /// How many ranks it has.
    pub remote: usize,
    /// Whether this rank's group comes first in the row of both.
    pub is_first: bool,
}

impl Across {
    /// What a call gave as its root: a rank of the other group, or who of this one it is.
    pub fn root(&self, root: i32) -> Result<usize> {
        match root {
            GIVEN_ROOT => Ok(ROOT),
            GIVEN_NOBODY => Ok(NOBODY),
            _ => match usize::try_from(root) {
                Ok(root) if root < self.remote => Ok(root),
                _ => fail(
                    Class::ROOT,
                    format!(
                        "argument `root` is {root}, must be a rank of the remote group (0 to {}), MPI_ROOT or \
                         MPI_PROC_NULL",
                        self.remote - 1
                    ),
                ),
            },
        }
    }
}

/// Both groups, as a rank of one sees them.
struct Sides<'a> {
    /// Its own.
    own: View<'a>,
    /// The other one; it is nobody there.
    others: View<'a>,
    tariff: &'a Tariff,
    forced: &'a Forced,
}

/// The program of this rank; `spread` is that of both groups in one row.
pub fn compile(call: &Call, across: Across, spread: &Spread, tariff: &Tariff, forced: &Forced) -> Program {
    let (size, remote) = (call.size as u32, across.remote as u32);
    let (own, others) = match across.is_first {
        true => (0..size, size..size + remote),
        false => (remote..remote + size, 0..remote),
    };
    if call.kind == Collective::Barrier {
        // All wait for all: more than the standard asks for, which has no rank wait for its own group.
        let (rank, size) = (own.start as usize + call.rank, call.size + across.remote);
        return super::compile(&Call { rank, size, across: None, ..call.clone() }, spread, tariff, forced);
    }
    let (own, others): (Vec<u32>, Vec<u32>) = (own.collect(), others.collect());
    let s = Sides { own: View::of(&own, call.rank), others: View::of(&others, 0), tariff, forced };
    let mut b = Builder::reducing(call.op, spread);
    match call.kind {
        Collective::Bcast => bcast(&mut b, &s, call),
        Collective::Gather | Collective::Gatherv => gather(&mut b, &s, call),
        Collective::Scatter | Collective::Scatterv => scatter(&mut b, &s, call),
        Collective::Allgather | Collective::Allgatherv => gather_to_all(&mut b, &s, call),
        Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => all_to_all(&mut b, &s, call),
        Collective::Reduce => reduction(&mut b, &s, call),
        Collective::Allreduce => reduce_to_all(&mut b, &s, call),
        Collective::ReduceScatterBlock | Collective::ReduceScatter => reduce_scatter(&mut b, &s, call),
        _ => unreachable!("done above, refused by `check`, or of topologies, which have one group"),
    }
    // The root is the same number on both sides: its own rank.
    let root = match call.root {
        _ if !call.kind.is_rooted() => None,
        ROOT => Some(call.rank as u32),
        NOBODY => None,
        rank => Some(rank as u32),
    };
    Program { reach: Reach::of(call), ..b.finish(call.kind, None, root, call.op.cloned()) }
}

/// What intercommunicators have no meaning for.
pub fn check(kind: Collective, in_place: bool) -> Result {
    if matches!(kind, Collective::Scan | Collective::Exscan) {
        let name = kind.name();
        return fail(
            Class::COMM,
            format!("argument `comm` is an intercommunicator, for which there is no {name}"),
        );
    }
    if in_place {
        let arg =
            if kind == Collective::Scatter || kind == Collective::Scatterv { "recvbuf" } else { "sendbuf" };
        return fail(
            Class::BUFFER,
            format!("argument `{arg}` is MPI_IN_PLACE, which has no meaning on an intercommunicator"),
        );
    }
    Ok(())
}

/// The root tells the first rank of the other group, which tells the rest.
fn bcast(b: &mut Builder, s: &Sides, call: &Call) {
    let Some(buf) = plain(b, Base::Recv, &call.recv) else { return };
    match call.root {
        NOBODY => {}
        ROOT => {
            b.send(&s.others, 0, buf);
        }
        root => {
            if s.own.me == 0 {
                let come = b.recv(&s.others, root, buf);
                b.wait(come);
            }
            spread(b, s, call.recv);
        }
    }
}

/// Broadcasts within this group what its first rank has in its receive buffer.
fn spread(b: &mut Builder, s: &Sides, recv: Side) {
    let size = s.own.size;
    let Some(buf) = plain(b, Base::Recv, &recv) else { return };
    if size == 1 || b.bytes(buf) == 0 {
        return;
    }
    let problem = flat(size, b.bytes(buf), true);
    let algorithm = choose(Collective::Bcast, &problem, s.tariff, s.forced.get(Collective::Bcast)).winner;
    bcast_by(algorithm, b, &s.own, buf, 0, segment(&problem, s.tariff));
}

/// Inside one group there is one level: a way between hosts is not told apart there.
fn flat(size: usize, bytes: u64, commutes: bool) -> Problem<'static> {
    Problem { size, bytes, commutes, root: 0, spread: &Spread::OneHost }
}

fn gather(b: &mut Builder, s: &Sides, call: &Call) {
    match call.root {
        NOBODY => {}
        ROOT => {
            let mut types = Vec::new();
            let Some(all) = blocks(b, Base::Recv, &call.recv, s.others.size, &mut types) else { return };
            let mut window = Window::default();
            for from in 0..s.others.size {
                let into = all.get(b, from);
                let posted = b.recv(&s.others, from, into);
                window.push(b, posted);
            }
        }
        root => {
            let mine = plain(b, Base::Send, &call.send).expect("whoever is no root sends");
            b.send(&s.others, root, mine);
        }
    }
}

fn scatter(b: &mut Builder, s: &Sides, call: &Call) {
    match call.root {
        NOBODY => {}
        ROOT => {
            let mut types = Vec::new();
            let Some(all) = blocks(b, Base::Send, &call.send, s.others.size, &mut types) else { return };
            let mut window = Window::default();
            for to in 0..s.others.size {
                let out = all.get(b, to);
                let posted = b.send(&s.others, to, out);
                window.push(b, posted);
            }
        }
        root => {
            let mine = plain(b, Base::Recv, &call.recv).expect("whoever is no root receives");
            b.recv(&s.others, root, mine);
        }
    }
}

/// Exchanges a block with every rank of the other group, in rounds in which each rank has one partner at most.
/// Both partners number the round alike, so that of all messages that are waited for the first can end.
fn exchange_blocks(
    b: &mut Builder,
    s: &Sides,
    out: impl Fn(&Builder, usize) -> Buf,
    into: impl Fn(&Builder, usize) -> Buf,
) {
    let rounds = s.own.size.max(s.others.size);
    let mut window = Window::default();
    for round in 0..rounds {
        let peer = (round + rounds - s.own.me) % rounds;
        if peer < s.others.size {
            let (out, into) = (out(b, peer), into(b, peer));
            let posted = b.recv(&s.others, peer, into);
            window.push(b, posted);
            let posted = b.send(&s.others, peer, out);
            window.push(b, posted);
        }
    }
}

fn gather_to_all(b: &mut Builder, s: &Sides, call: &Call) {
    let mut types = Vec::new();
    let all = received(b, s, call, &mut types);
    let mine = plain(b, Base::Send, &call.send).expect("every rank sends");
    exchange_blocks(b, s, |_, _| mine, |b, peer| all.get(b, peer));
}

fn all_to_all(b: &mut Builder, s: &Sides, call: &Call) {
    let (mut send_types, mut recv_types) = (Vec::new(), Vec::new());
    let recv = received(b, s, call, &mut recv_types);
    let send = blocks(b, Base::Send, &call.send, s.others.size, &mut send_types).expect("every rank sends");
    exchange_blocks(b, s, |b, peer| send.get(b, peer), |b, peer| recv.get(b, peer));
}

fn received<'a>(b: &mut Builder, s: &Sides, call: &Call<'a>, types: &'a mut Vec<u32>) -> Blocks<'a> {
    blocks(b, Base::Recv, &call.recv, s.others.size, types).expect("every rank receives")
}

/// Combines what the ranks of this group have at its first rank, which is told where the result lies.
fn reduce_to_first(b: &mut Builder, s: &Sides, input: Buf, op: Option<&Op>) -> Option<Buf> {
    let v = &s.own;
    if v.size == 1 {
        return Some(input);
    }
    let commutes = op.is_none_or(Op::commutes);
    let output = (v.me == 0).then(|| b.temp_like(input));
    let problem = flat(v.size, b.bytes(input), commutes);
    match choose(Collective::Reduce, &problem, s.tariff, s.forced.get(Collective::Reduce)).winner {
        Algorithm::Rabenseifner => reduce::rabenseifner(b, v, input, output, 0),
        Algorithm::InOrder => reduce::in_order(b, v, input, output, 0),
        Algorithm::Linear => linear::reduce(b, v, input, output, 0),
        _ => reduce::binomial(b, v, input, output, 0),
    }
    b.wait_all();
    output
}

fn reduction(b: &mut Builder, s: &Sides, call: &Call) {
    match call.root {
        NOBODY => {}
        ROOT => {
            let Some(output) = plain(b, Base::Recv, &call.recv) else { return };
            b.recv(&s.others, 0, output);
        }
        root => {
            let input = plain(b, Base::Send, &call.send).expect("whoever is no root sends");
            if input.count == 0 {
                return;
            }
            if let Some(result) = reduce_to_first(b, s, input, call.op) {
                b.send(&s.others, root, result);
            }
        }
    }
}

fn reduce_to_all(b: &mut Builder, s: &Sides, call: &Call) {
    let input = plain(b, Base::Send, &call.send).expect("every rank sends");
    let output = plain(b, Base::Recv, &call.recv).expect("every rank receives");
    if input.count == 0 {
        return;
    }
    if let Some(result) = reduce_to_first(b, s, input, call.op) {
        b.exchange(&s.others, 0, result, 0, output);
    }
    spread(b, s, call.recv);
}

/// The first ranks exchange the results of their groups and deal out what they get.
fn reduce_scatter(b: &mut Builder, s: &Sides, call: &Call) {
    let (counts, ty): (Vec<u64>, _) = match call.recv {
        Side::Varied { counts, ty, .. } => (counts.iter().map(|count| count as u64).collect(), ty),
        Side::Even { count, ty } => (vec![count; s.own.size], ty),
        _ => unreachable!("Reduce_scatter has counts"),
    };
    let total = counts.iter().sum();
    if total == 0 {
        return;
    }
    let input = b.buf(Base::Send, total, ty);
    let output = b.buf(Base::Recv, counts[s.own.me], ty);
    let Some(result) = reduce_to_first(b, s, input, call.op) else {
        b.recv(&s.own, 0, output);
        return;
    };
    let landing = b.temp_like(input);
    b.exchange(&s.others, 0, result, 0, landing);
    let mut start = 0;
    for (rank, count) in counts.iter().enumerate() {
        let part = b.part(landing, start, *count);
        if rank == 0 {
            b.copy(part, output);
        } else {
            b.send(&s.own, rank, part);
        }
        start += count;
    }
}
