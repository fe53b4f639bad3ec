//! What each collective means, computed rank by rank from the standard's definitions.
use std::sync::Arc;

use super::super::compile::{Call, Side, compile};
use super::super::cost::Forced;
use super::super::schedule::{Schedule, UserReduce};
use super::super::tag::{Collective, Tag};
use super::super::{Ints, Spread, Type};
use super::net::{self, Random};
use super::{MATRIX_PRODUCT, TARIFF, USER_SUM, gappy, quad};
use crate::mem;
use crate::op::{Op, Predefined};

/// One collective on one communicator.
#[derive(Clone)]
pub struct Case {
    pub kind: Collective,
    pub size: usize,
    pub root: usize,
    pub count: usize,
    pub op: Option<Op>,
    pub ty: Type,
    pub in_place: bool,
    pub spread: Spread,
}

pub fn has_root(kind: Collective) -> bool {
    use Collective::*;
    matches!(kind, Bcast | Gather | Gatherv | Scatter | Scatterv | Reduce)
}

pub fn reduces(kind: Collective) -> bool {
    use Collective::*;
    matches!(kind, Reduce | Allreduce | ReduceScatter | ReduceScatterBlock | Scan | Exscan)
}

pub type Words = Vec<u32>;

/// Memory of one rank for one side: `words` of data per element, laid out as the type says.
pub struct Memory {
    pub bytes: Vec<u8>,
    pub origin: usize,
}

/// Space in front of the origin for lower bounds, and what unused bytes hold.
const FRONT: usize = 64;
const FILL: u8 = 0xa5;

impl Memory {
    pub fn new(elements: usize, ty: &Type) -> Memory {
        let len = 2 * FRONT + elements * ty.extent as usize;
        let mut bytes = vec![FILL; len];
        let origin = bytes.as_mut_ptr() as usize + FRONT;
        Memory { bytes, origin }
    }

    pub fn put(&self, at: usize, ty: &Type, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let count = bytes.len() as u64 / ty.size;
        ty.datatype().unpack(self.origin + at * ty.extent as usize, count, 0, &bytes);
    }

    pub fn get(&self, at: usize, ty: &Type, count: usize) -> Words {
        let mut bytes = vec![0; count * ty.size as usize];
        ty.datatype().pack(self.origin + at * ty.extent as usize, count as u64, 0, &mut bytes);
        bytes.as_chunks::<4>().0.iter().map(|w| u32::from_ne_bytes(*w)).collect()
    }

    /// Bytes that belong to no element.
    pub fn rest(&self, used: &[(usize, usize)], ty: &Type) -> Vec<u8> {
        let copy = Memory { bytes: self.bytes.clone(), origin: 0 };
        let copy = Memory { origin: copy.bytes.as_ptr() as usize + FRONT, ..copy };
        for &(at, count) in used {
            copy.put(at, ty, &vec![0; count * ty.size as usize / 4]);
        }
        copy.bytes
    }
}

/// Counts and displacements of varied blocks: in reverse order, with gaps.
struct Shape {
    counts: Vec<i64>,
    displs: Vec<i64>,
    elements: usize,
}

fn shape(case: &Case, count_of: impl Fn(usize) -> usize) -> Shape {
    let counts: Vec<i64> = (0..case.size).map(|r| count_of(r) as i64).collect();
    let mut displs = vec![0; case.size];
    let mut at = 1;
    for rank in (0..case.size).rev() {
        displs[rank] = at;
        at += counts[rank] + (rank as i64 % 2);
    }
    Shape { counts, displs, elements: at as usize }
}

/// How many elements pass from one rank to another in this case.
fn amount(case: &Case, from: usize, to: usize) -> usize {
    use Collective::*;
    match case.kind {
        Gatherv | Allgatherv => (case.count * (from % 3)).saturating_sub(from % 2),
        Scatterv | ReduceScatter => (case.count * (to % 3)).saturating_sub(to % 2),
        // In place both directions of a pair have the same amount.
        Alltoallv | Alltoallw if case.in_place => case.count * ((from + to) % 3),
        Alltoallv | Alltoallw => case.count * ((from + 2 * to) % 3),
        _ => case.count,
    }
}

/// Elements rank `from` has for rank `to`, one after the other.
fn data(case: &Case, from: usize, to: usize) -> Words {
    let words = case.ty.size as usize / 4;
    let to = if matches!(
        case.kind,
        Collective::Scatter
            | Collective::Scatterv
            | Collective::Alltoall
            | Collective::Alltoallv
            | Collective::Alltoallw
    ) {
        to
    } else {
        0
    };
    let n = amount(case, from, to) * words;
    (0..n).map(|i| Random::mix((from * 1000 + to) as u64, i as u64) as u32).collect()
}

/// The whole vector a rank brings to a reduction.
fn vector(case: &Case, rank: usize) -> Words {
    let elements: usize = match case.kind {
        Collective::ReduceScatter => (0..case.size).map(|to| amount(case, rank, to)).sum(),
        Collective::ReduceScatterBlock => case.count * case.size,
        _ => case.count,
    };
    (0..elements * case.ty.size as usize / 4).map(|i| Random::mix(rank as u64, i as u64) as u32).collect()
}

/// `a op b` elementwise, as the operation is defined.
pub fn combine(op: &Op, a: &[u32], b: &[u32]) -> Words {
    let matrices = matches!(op, Op::User(user) if user.function == MATRIX_PRODUCT);
    if !matrices {
        assert!(matches!(op, Op::Predefined(Predefined::Sum) | Op::User(_)));
        return a.iter().zip(b).map(|(x, y)| x.wrapping_add(*y)).collect();
    }
    let product = |x: &[u32; 4], y: &[u32; 4]| {
        let cell = |i: usize, j: usize| {
            x[2 * i].wrapping_mul(y[j]).wrapping_add(x[2 * i + 1].wrapping_mul(y[2 + j]))
        };
        [cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1)]
    };
    a.as_chunks::<4>().0.iter().zip(b.as_chunks::<4>().0).flat_map(|(x, y)| product(x, y)).collect()
}

/// The operation as the C layer would call it.
pub fn user_function(call: UserReduce) {
    let ty = [gappy(), quad()].into_iter().find(|t| t.handle == call.datatype).expect("a type of the tests");
    let read = |addr: usize| {
        let mut bytes = vec![0; (call.count * ty.size) as usize];
        ty.datatype().pack(addr, call.count, 0, &mut bytes);
        bytes.as_chunks::<4>().0.iter().map(|w| u32::from_ne_bytes(*w)).collect::<Words>()
    };
    let op = if call.function == MATRIX_PRODUCT { super::matrix_product() } else { super::user_sum() };
    assert_eq!(call.large, call.function == USER_SUM);
    let result = combine(&op, &read(call.in_addr), &read(call.inout_addr));
    let bytes: Vec<u8> = result.iter().flat_map(|w| w.to_ne_bytes()).collect();
    ty.datatype().unpack(call.inout_addr, call.count, 0, &bytes);
}

/// The reduction of the vectors of ranks `from..=to`.
fn reduced(case: &Case, to: usize) -> Words {
    let op = case.op.as_ref().expect("a reduction has an operation");
    (1..=to).fold(vector(case, 0), |sum, rank| combine(op, &sum, &vector(case, rank)))
}

/// One rank's buffers, what is expected of them, and which elements may change.
struct Rank {
    send: Memory,
    recv: Memory,
    send_shape: Shape,
    recv_shape: Shape,
    in_place: bool,
    /// (first element, expected words) in the receive buffer.
    expect: Vec<(usize, Words)>,
    /// Bytes of the receive buffer that must stay as they are.
    rest: Vec<u8>,
    used: Vec<(usize, usize)>,
    sent: Vec<u8>,
}

/// Where rank `r`'s block is in the buffer of this shape.
fn place(case: &Case, shape: &Shape, r: usize) -> usize {
    use Collective::*;
    match case.kind {
        Gatherv | Scatterv | Allgatherv | Alltoallv | Alltoallw => shape.displs[r] as usize,
        _ => r * case.count,
    }
}

fn prepare(case: &Case, me: usize) -> Rank {
    use Collective::*;
    let is_root = me == case.root;
    let in_place = case.in_place
        && match case.kind {
            Gather | Gatherv | Scatter | Scatterv | Reduce => is_root,
            Bcast | Barrier => false,
            _ => true,
        };
    let send_shape = shape(case, |to| amount(case, me, to));
    let recv_shape =
        shape(case, |from| amount(case, from, if case.kind == ReduceScatter { from } else { me }));
    let one_vector = matches!(case.kind, Barrier | Bcast | Reduce | Allreduce | Scan | Exscan);
    let blocks = if one_vector { 1 } else { 3 * case.size };
    let varied = if one_vector { 0 } else { send_shape.elements + recv_shape.elements };
    let room = case.count * blocks + varied + 2;
    let (send, recv) = (Memory::new(room, &case.ty), Memory::new(room, &case.ty));
    let mut rank = Rank {
        send,
        recv,
        send_shape,
        recv_shape,
        in_place,
        expect: vec![],
        rest: vec![],
        used: vec![],
        sent: vec![],
    };
    fill(case, me, &rank);
    rank.expect = expected(case, me, &rank);
    let words = case.ty.size as usize / 4;
    rank.used = rank.expect.iter().map(|(at, w)| (*at, w.len() / words)).collect();
    rank.rest = rank.recv.rest(&rank.used, &case.ty);
    rank.sent = rank.send.bytes.clone();
    rank
}

/// Puts this rank's contribution where the call will look for it.
fn fill(case: &Case, me: usize, rank: &Rank) {
    use Collective::*;
    let input = if rank.in_place { &rank.recv } else { &rank.send };
    match case.kind {
        Barrier => {}
        Bcast if me == case.root => rank.recv.put(0, &case.ty, &data(case, me, 0)),
        Bcast => {}
        Gather | Gatherv | Allgather | Allgatherv => {
            let at = if rank.in_place { place(case, &rank.recv_shape, me) } else { 0 };
            input.put(at, &case.ty, &data(case, me, 0));
        }
        // In place the root of a scatter keeps its block in the send buffer.
        Scatter | Scatterv if me == case.root => {
            for to in 0..case.size {
                rank.send.put(place(case, &rank.send_shape, to), &case.ty, &data(case, me, to));
            }
        }
        Scatter | Scatterv => {}
        Alltoall | Alltoallv | Alltoallw => {
            let shape = if rank.in_place { &rank.recv_shape } else { &rank.send_shape };
            for to in 0..case.size {
                input.put(place(case, shape, to), &case.ty, &data(case, me, to));
            }
        }
        Reduce | Allreduce | ReduceScatter | ReduceScatterBlock | Scan | Exscan => {
            input.put(0, &case.ty, &vector(case, me));
        }
        NeighborAllgather | NeighborAllgatherv | NeighborAlltoall | NeighborAlltoallv | NeighborAlltoallw => {
            unreachable!("no edges here")
        }
    }
}

/// What the receive buffer must hold afterwards.
fn expected(case: &Case, me: usize, rank: &Rank) -> Vec<(usize, Words)> {
    use Collective::*;
    let words = case.ty.size as usize / 4;
    let is_root = me == case.root;
    match case.kind {
        Barrier => vec![],
        Bcast => vec![(0, data(case, case.root, 0))],
        Gather | Gatherv if !is_root => vec![],
        Gather | Gatherv | Allgather | Allgatherv => {
            (0..case.size).map(|from| (place(case, &rank.recv_shape, from), data(case, from, 0))).collect()
        }
        Scatter | Scatterv if rank.in_place => vec![],
        Scatter | Scatterv => vec![(0, data(case, case.root, me))],
        Alltoall | Alltoallv | Alltoallw => {
            (0..case.size).map(|from| (place(case, &rank.recv_shape, from), data(case, from, me))).collect()
        }
        Reduce if !is_root => vec![],
        Reduce | Allreduce => vec![(0, reduced(case, case.size - 1))],
        Scan => vec![(0, reduced(case, me))],
        Exscan if me == 0 => vec![],
        Exscan => vec![(0, reduced(case, me - 1))],
        ReduceScatter | ReduceScatterBlock => {
            let start: usize = (0..me).map(|r| amount(case, 0, r)).sum();
            let all = reduced(case, case.size - 1);
            vec![(0, all[start * words..(start + amount(case, 0, me)) * words].to_vec())]
        }
        NeighborAllgather | NeighborAllgatherv | NeighborAlltoall | NeighborAlltoallv | NeighborAlltoallw => {
            unreachable!("no edges here")
        }
    }
}

fn schedule(case: &Case, me: usize, rank: &Rank, forced: &Forced) -> Schedule {
    use Collective::*;
    let ty = &case.ty;
    let even = Side::Even { count: case.count as u64, ty };
    let varied = |s: &'_ Shape| -> (Vec<i32>, Vec<i64>) {
        (s.counts.iter().map(|c| *c as i32).collect(), s.displs.clone())
    };
    let (send_counts, send_displs) = varied(&rank.send_shape);
    let (recv_counts, recv_displs) = varied(&rank.recv_shape);
    let in_bytes = |d: &[i64]| d.iter().map(|d| d * ty.extent).collect::<Vec<_>>();
    let (send_bytes, recv_bytes) = (in_bytes(&send_displs), in_bytes(&recv_displs));
    let types = vec![ty.clone(); case.size];
    let is_root = me == case.root;
    let send_varied =
        Side::Varied { counts: Ints::Small(&send_counts), displs: Ints::Large(&send_displs), ty };
    let recv_varied =
        Side::Varied { counts: Ints::Small(&recv_counts), displs: Ints::Large(&recv_displs), ty };
    let send_mixed =
        Side::Mixed { counts: Ints::Small(&send_counts), displs: Ints::Large(&send_bytes), types: &types };
    let recv_mixed =
        Side::Mixed { counts: Ints::Small(&recv_counts), displs: Ints::Large(&recv_bytes), types: &types };
    let own = |n: usize| Side::Even { count: n as u64, ty };
    let root_only = |side| if is_root { side } else { Side::Absent };
    let (send, recv) = match case.kind {
        Barrier => (Side::Absent, Side::Absent),
        Bcast => (Side::Absent, even),
        Gather => (even, root_only(even)),
        Gatherv => (own(amount(case, me, 0)), root_only(recv_varied)),
        Scatter => (root_only(even), even),
        Scatterv => (root_only(send_varied), own(amount(case, case.root, me))),
        Allgather | Alltoall | Allreduce | Scan | Exscan => (even, even),
        Reduce => (even, root_only(even)),
        Allgatherv => (own(amount(case, me, 0)), recv_varied),
        Alltoallv => (send_varied, recv_varied),
        Alltoallw => (send_mixed, recv_mixed),
        ReduceScatterBlock => (even, even),
        ReduceScatter => (even, recv_varied),
        NeighborAllgather | NeighborAllgatherv | NeighborAlltoall | NeighborAlltoallv | NeighborAlltoallw => {
            unreachable!("no edges here")
        }
    };
    let scatters = matches!(case.kind, Scatter | Scatterv);
    let (send, recv) = match (rank.in_place, scatters) {
        (false, _) => (send, recv),
        (true, true) => (send, Side::Absent),
        (true, false) => (Side::Absent, recv),
    };
    let call = Call {
        kind: case.kind,
        rank: me,
        size: case.size,
        send,
        recv,
        in_place: rank.in_place,
        op: case.op.as_ref(),
        root: case.root,
        across: None,
    };
    let program = Arc::new(compile(&call, &case.spread, &TARIFF, forced));
    Schedule::new(program, rank.send.origin, rank.recv.origin).unwrap()
}

/// Runs a case twice in a row on the same schedules, beside a second collective, and compares.
pub fn check(case: &Case, forced: &Forced, seed: u64, name: &str) {
    let label = format!(
        "{:?} by {name}: {} ranks, root {}, count {}, op {:?}, type {:?}, in place {}, {:?}, seed {seed}",
        case.kind, case.size, case.root, case.count, case.op, case.ty.handle, case.in_place, case.spread
    );
    let note = Label(&label);
    let ranks: [Vec<Rank>; 2] = [0, 1].map(|_| (0..case.size).map(|me| prepare(case, me)).collect());
    let mut jobs: Vec<Vec<Schedule>> = ranks
        .iter()
        .map(|job| job.iter().enumerate().map(|(me, rank)| schedule(case, me, rank, forced)).collect())
        .collect();
    for round in 0..2 {
        for (job, schedules) in jobs.iter_mut().enumerate() {
            for (me, schedule) in schedules.iter_mut().enumerate() {
                // Both rounds of the second job have one tag, as a persistent collective has.
                let run = if job == 0 { round } else { 0 };
                schedule.start(Tag::new(case.kind, run, job == 1));
                if round == 1 {
                    restore(case, me, &ranks[job][me]);
                }
            }
        }
        net::run(&mut jobs, seed ^ round as u64, &mut user_function);
        for job in &ranks {
            for (me, rank) in job.iter().enumerate() {
                compare(case, me, rank, &label);
            }
        }
    }
    std::mem::forget(note);
}

/// Prints the case when a panic passes through.
struct Label<'a>(&'a str);

impl Drop for Label<'_> {
    fn drop(&mut self) {
        eprintln!("failed: {}", self.0);
    }
}

/// Puts the input back, and rubbish where the result will come.
fn restore(case: &Case, me: usize, rank: &Rank) {
    if !rank.in_place {
        for (at, words) in &rank.expect {
            rank.recv.put(*at, &case.ty, &vec![0x0bad_0bad; words.len()]);
        }
    }
    fill(case, me, rank);
}

fn compare(case: &Case, me: usize, rank: &Rank, label: &str) {
    for (at, words) in &rank.expect {
        let got = rank.recv.get(*at, &case.ty, words.len() * 4 / case.ty.size as usize);
        assert_eq!(&got, words, "rank {me}, element {at}: {label}");
    }
    // Memory is compared through its address: it was written behind the compiler's back.
    let sent = mem::with(rank.send.bytes.as_ptr() as usize, rank.send.bytes.len(), <[u8]>::to_vec);
    assert_eq!(sent, rank.sent, "rank {me} changed its send buffer: {label}");
    assert_eq!(rank.recv.rest(&rank.used, &case.ty), rank.rest, "rank {me} wrote elsewhere: {label}");
}
