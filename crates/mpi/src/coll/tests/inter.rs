//! What each collective means between two groups (MPI 5.0 section 6.2.3), computed rank by rank, for groups of
//! equal and of unequal sizes.
use std::sync::Arc;

use super::super::inter::{NOBODY, ROOT};
use super::super::schedule::Schedule;
use super::super::{Across, Call, Collective, Forced, Ints, Side, Spread, Tag, Type, compile};
use super::net::{self, Random};
use super::oracle::{Memory, Words, combine, has_root, reduces, user_function};
use super::{INT, TARIFF, gappy, matrix_product, quad, user_sum};
use crate::mem;
use crate::op::{Op, Predefined};

/// One collective between two groups.
struct Case {
    kind: Collective,
    /// Ranks of the group that comes first in the row, and of the other.
    sizes: [usize; 2],
    /// The root: its group and its rank there.
    root: (usize, usize),
    count: usize,
    op: Option<Op>,
    ty: Type,
}

/// Words by the element that they begin at.
type Placed = Vec<(usize, Words)>;

/// A rank's buffers and what the receive buffer must hold: places and words.
struct Rank {
    send: Memory,
    recv: Memory,
    expect: Placed,
    rest: Vec<u8>,
    sent: Vec<u8>,
}

impl Case {
    fn words(&self) -> usize {
        self.ty.size as usize / 4
    }

    /// Elements that pass from a rank to one of the other group.
    fn amount(&self, side: usize, from: usize, to: usize) -> usize {
        use Collective::*;
        match self.kind {
            Gatherv | Allgatherv => self.count * ((from + side) % 3),
            Scatterv => self.count * (to % 3),
            Alltoallv | Alltoallw => self.count * ((from + 2 * to + side) % 3),
            _ => self.count,
        }
    }

    /// What a rank has for one of the other group.
    fn data(&self, side: usize, from: usize, to: usize) -> Words {
        use Collective::*;
        let each = matches!(self.kind, Scatter | Scatterv | Alltoall | Alltoallv | Alltoallw);
        let n = self.amount(side, from, to) * self.words();
        let seed = (side * 10_000 + from * 100 + if each { to + 1 } else { 0 }) as u64;
        (0..n).map(|i| Random::mix(seed, i as u64) as u32).collect()
    }

    /// Elements of the vectors that are reduced.
    fn total(&self) -> usize {
        match self.kind {
            Collective::ReduceScatterBlock | Collective::ReduceScatter => {
                self.count * self.sizes[0] * self.sizes[1]
            }
            _ => self.count,
        }
    }

    /// The share of a rank: in both groups they make up the same total.
    fn share(&self, side: usize, rank: usize) -> usize {
        let (size, fair) = (self.sizes[side], self.total() / self.sizes[side]);
        match self.kind {
            Collective::ReduceScatterBlock => fair,
            _ if rank + 1 == size => self.total() - fair / 2 * (size - 1),
            _ => fair / 2,
        }
    }

    fn vector(&self, side: usize, rank: usize) -> Words {
        let seed = (side * 77 + rank) as u64;
        (0..self.total() * self.words()).map(|i| Random::mix(seed, i as u64) as u32).collect()
    }

    /// The reduction of a group's vectors.
    fn reduced(&self, side: usize) -> Words {
        let op = self.op.as_ref().expect("a reduction has an operation");
        (1..self.sizes[side])
            .fold(self.vector(side, 0), |sum, rank| combine(op, &sum, &self.vector(side, rank)))
    }

    /// Where the block of peer number `i` begins: from the back, with gaps, where that can be said.
    fn at(&self, i: usize, peers: usize) -> usize {
        use Collective::*;
        match self.kind {
            Gatherv | Scatterv | Allgatherv | Alltoallv | Alltoallw => (peers - 1 - i) * (2 * self.count + 1),
            _ => i * self.count,
        }
    }

    /// What a rank brings, by place in its send buffer, and what it must get, by place in its receive buffer.
    fn meaning(&self, side: usize, me: usize) -> (Placed, Placed) {
        use Collective::*;
        let (other, peers) = (1 - side, self.sizes[1 - side]);
        let is_root = self.root == (side, me);
        let rooted = side != self.root.0;
        let nothing = Vec::new;
        let out = || (0..peers).map(|to| (self.at(to, peers), self.data(side, me, to))).collect();
        let all = |to| (0..peers).map(|from| (self.at(from, peers), self.data(other, from, to))).collect();
        let start = || (0..me).map(|rank| self.share(side, rank)).sum::<usize>() * self.words();
        match self.kind {
            Bcast if rooted => (nothing(), vec![(0, self.data(other, self.root.1, 0))]),
            Scatter | Scatterv if rooted => (nothing(), vec![(0, self.data(other, self.root.1, me))]),
            Scatter | Scatterv if is_root => (out(), nothing()),
            Gather | Gatherv if rooted => (vec![(0, self.data(side, me, 0))], nothing()),
            Gather | Gatherv if is_root => (nothing(), all(0)),
            Allgather | Allgatherv => (vec![(0, self.data(side, me, 0))], all(0)),
            Alltoall | Alltoallv | Alltoallw => (out(), all(me)),
            Reduce if rooted => (vec![(0, self.vector(side, me))], nothing()),
            Reduce if is_root => (nothing(), vec![(0, self.reduced(other))]),
            Allreduce => (vec![(0, self.vector(side, me))], vec![(0, self.reduced(other))]),
            ReduceScatter | ReduceScatterBlock => {
                let share = self.share(side, me) * self.words();
                let all = self.reduced(other);
                (vec![(0, self.vector(side, me))], vec![(0, all[start()..start() + share].to_vec())])
            }
            _ => (nothing(), nothing()),
        }
    }

    fn prepare(&self, side: usize, me: usize) -> Rank {
        let room = (2 * self.count + 1) * self.sizes[1 - side] + self.total() + 2;
        let (send, recv) = (Memory::new(room, &self.ty), Memory::new(room, &self.ty));
        let (bring, expect) = self.meaning(side, me);
        bring.iter().for_each(|(at, words)| send.put(*at, &self.ty, words));
        if self.kind == Collective::Bcast && self.root == (side, me) {
            recv.put(0, &self.ty, &self.data(side, me, 0));
        }
        let sent = send.bytes.clone();
        let rest = recv.rest(&self.used(&expect), &self.ty);
        Rank { send, recv, expect, rest, sent }
    }

    fn used(&self, expect: &[(usize, Words)]) -> Vec<(usize, usize)> {
        expect.iter().map(|(at, words)| (*at, words.len() / self.words())).collect()
    }

    fn schedule(&self, side: usize, me: usize, rank: &Rank) -> Schedule {
        use Collective::*;
        let (ty, other, peers) = (&self.ty, 1 - side, self.sizes[1 - side]);
        let (is_root, rooted) = (self.root == (side, me), side != self.root.0);
        let own = |n: usize| Side::Even { count: n as u64, ty };
        let counts = |f: &dyn Fn(usize) -> usize| (0..peers).map(|i| f(i) as i64).collect::<Vec<_>>();
        let (out, into) =
            (counts(&|to| self.amount(side, me, to)), counts(&|from| self.amount(other, from, me)));
        let displs = counts(&|i| self.at(i, peers));
        let bytes: Vec<i64> = displs.iter().map(|at| at * ty.extent).collect();
        let types = vec![ty.clone(); peers];
        let shares: Vec<i64> = (0..self.sizes[side]).map(|r| self.share(side, r) as i64).collect();
        let varied = |n| Side::Varied { counts: Ints::Large(n), displs: Ints::Large(&displs), ty };
        let mixed = |n| Side::Mixed { counts: Ints::Large(n), displs: Ints::Large(&bytes), types: &types };
        let none = Side::Absent;
        let (send, recv) = match self.kind {
            Bcast if is_root || rooted => (none, own(self.count)),
            Scatter if is_root => (own(self.count), none),
            Scatterv if is_root => (varied(&out), none),
            Scatter | Scatterv if rooted => (none, own(self.amount(other, self.root.1, me))),
            Gather if is_root => (none, own(self.count)),
            Gatherv if is_root => (none, varied(&into)),
            Gather | Gatherv if rooted => (own(self.amount(side, me, 0)), none),
            Allgather | Alltoall | Allreduce => (own(self.count), own(self.count)),
            Allgatherv => (own(self.amount(side, me, 0)), varied(&into)),
            Alltoallv => (varied(&out), varied(&into)),
            Alltoallw => (mixed(&out), mixed(&into)),
            Reduce if is_root => (none, own(self.count)),
            Reduce if rooted => (own(self.count), none),
            ReduceScatterBlock => (own(self.share(side, me)), own(self.share(side, me))),
            ReduceScatter => {
                let displs = Ints::Small(&[]);
                (own(self.total()), Side::Varied { counts: Ints::Large(&shares), displs, ty })
            }
            _ => (none, none),
        };
        let root = match (has_root(self.kind), is_root, rooted) {
            (false, ..) => 0,
            (_, true, _) => ROOT,
            (_, _, true) => self.root.1,
            _ => NOBODY,
        };
        let across = Some(Across { remote: peers, is_first: side == 0 });
        let (kind, size, op) = (self.kind, self.sizes[side], self.op.as_ref());
        let call = Call { kind, rank: me, size, send, recv, in_place: false, op, root, across };
        super::super::args::check(&call, rank.send.origin, rank.recv.origin).unwrap();
        let program = Arc::new(compile(&call, &Spread::OneHost, &TARIFF, &Forced::default()));
        Schedule::new(program, rank.send.origin, rank.recv.origin).unwrap()
    }

    /// Runs it beside another one of its kind, twice, and compares.
    fn check(&self) {
        let row: Vec<(usize, usize)> =
            (0..2).flat_map(|side| (0..self.sizes[side]).map(move |rank| (side, rank))).collect();
        let ranks = [0, 1].map(|_| row.iter().map(|at| self.prepare(at.0, at.1)).collect::<Vec<_>>());
        let with = |job: &Vec<Rank>| -> Vec<Schedule> {
            row.iter().zip(job).map(|(at, rank)| self.schedule(at.0, at.1, rank)).collect()
        };
        let mut jobs: Vec<Vec<Schedule>> = ranks.iter().map(with).collect();
        let seed = Random::mix(self.sizes[0] as u64 * 64 + self.sizes[1] as u64, self.count as u64);
        for round in 0..2 {
            for (job, schedules) in jobs.iter_mut().enumerate() {
                let run = if job == 0 { round } else { 0 };
                schedules.iter_mut().for_each(|s| s.start(Tag::new(self.kind, run, job == 1)));
            }
            net::run(&mut jobs, seed ^ u64::from(round), &mut user_function);
            for (at, rank) in ranks.iter().flat_map(|job| row.iter().zip(job)) {
                self.compare(*at, rank);
            }
        }
    }

    fn compare(&self, at: (usize, usize), rank: &Rank) {
        let label = format!(
            "{:?} of {:?}, root {:?}, count {}, op {:?}, type {:?}: rank {} of group {}",
            self.kind, self.sizes, self.root, self.count, self.op, self.ty.handle, at.1, at.0
        );
        for (place, words) in &rank.expect {
            let got = rank.recv.get(*place, &self.ty, words.len() / self.words());
            assert_eq!(&got, words, "element {place}: {label}");
        }
        let read =
            |memory: &Memory| mem::with(memory.bytes.as_ptr() as usize, memory.bytes.len(), <[u8]>::to_vec);
        assert_eq!(read(&rank.send), rank.sent, "changed its send buffer: {label}");
        assert_eq!(rank.recv.rest(&self.used(&rank.expect), &self.ty), rank.rest, "wrote elsewhere: {label}");
    }
}

const SIZES: [[usize; 2]; 9] = [[1, 1], [1, 4], [2, 1], [2, 3], [3, 3], [4, 7], [9, 2], [5, 8], [40, 3]];

fn all_cases(kinds: &[Collective], ops: &[Option<Op>], types: &[Type], counts: &[usize]) {
    for &kind in kinds {
        for sizes in SIZES {
            let last = |side: usize| (side, sizes[side] - 1);
            let roots = if has_root(kind) { vec![(0, 0), last(0), (1, 0), last(1)] } else { vec![(0, 0)] };
            for root in roots {
                for &count in counts {
                    for (op, ty) in ops.iter().flat_map(|op| types.iter().map(move |ty| (op, ty))) {
                        Case { kind, sizes, root, count, op: op.clone(), ty: ty.clone() }.check();
                    }
                }
            }
        }
    }
}

#[test]
fn data_goes_from_each_group_to_the_other() {
    let kinds = Collective::ALL.into_iter().filter(|kind| !reduces(*kind)).collect::<Vec<_>>();
    all_cases(&kinds, &[None], &[quad(), gappy()], &[0, 1, 5]);
    all_cases(&[Collective::Bcast], &[None], &[quad()], &[300]);
}

#[test]
fn each_group_gets_the_reduction_of_the_other() {
    let kinds = [
        Collective::Reduce,
        Collective::Allreduce,
        Collective::ReduceScatter,
        Collective::ReduceScatterBlock,
    ];
    all_cases(&kinds, &[Some(matrix_product()), Some(user_sum())], &[quad(), gappy()], &[0, 1, 4]);
    let int = Type::predefined(INT).unwrap();
    all_cases(&kinds, &[Some(Op::Predefined(Predefined::Sum))], &[int], &[1, 2, 300]);
}

#[test]
fn a_barrier_joins_both_groups() {
    for sizes in SIZES {
        Case { kind: Collective::Barrier, sizes, root: (0, 0), count: 0, op: None, ty: quad() }.check();
    }
}
