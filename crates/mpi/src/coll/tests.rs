//! Every algorithm against a sequential oracle, on a simulated transport that delays and reorders
//! what may be delayed and reordered. All randomness comes from one seed per case, which a failure
//! prints.
mod inter;
mod net;
mod oracle;

use std::sync::{Arc, LazyLock};

use super::cost::{Algorithm, Forced, Problem, algorithms, applies};
use super::*;
use crate::handle::Handle;
use crate::op::{Op, Predefined, User};
use net::Random;
use oracle::Case;

const LINK: Rates = Rates { latency_ns: 100.0, overhead_ns: 20.0, ..Rates::HOST };
static TARIFF: LazyLock<Tariff> = LazyLock::new(|| Tariff { host: LINK, ..Tariff::default() });

/// Address that stands for the harness's own operation: a product of 2 x 2 matrices.
const MATRIX_PRODUCT: usize = 0x4d50;
/// Address that stands for a commutative operation of the application: a sum.
const USER_SUM: usize = 0x5553;

fn matrix_product() -> Op {
    Op::User(Arc::new(User { function: MATRIX_PRODUCT, commutes: false, large: false }))
}

fn user_sum() -> Op {
    Op::User(Arc::new(User { function: USER_SUM, commutes: true, large: true }))
}

const INT: Handle = Handle(0x209);

/// A type of four ints with gaps around and inside, of extent 40.
fn gappy() -> Type {
    use crate::datatype::{Datatype, Form};
    let int = Datatype::of(INT).unwrap();
    let vector = Datatype::hindexed(&[3, 1], &[4, 28], int, Form::Small).unwrap();
    let resized = Datatype::resized(&vector, -4, 40, Form::Small).unwrap();
    Type::of(Handle(Handle::FIRST_DYNAMIC + 1), &resized)
}

/// The same four ints without gaps.
fn quad() -> Type {
    use crate::datatype::{Datatype, Form};
    let quad = Datatype::contiguous(4, Datatype::of(INT).unwrap(), Form::Small).unwrap();
    Type::of(Handle(Handle::FIRST_DYNAMIC + 2), &quad)
}

fn sizes() -> impl Iterator<Item = usize> {
    1..=17
}

/// Runs `case` with every algorithm that applies, by several seeds; those of two levels on ranks placed by chance.
fn every_algorithm(case: &Case) {
    for &algorithm in algorithms(case.kind) {
        let mut forced = Forced::default();
        forced.set(case.kind, Some(algorithm));
        let seed =
            Random::mix(case.size as u64, (case.root * 64 + case.count) as u64 ^ (algorithm as u64) << 32);
        if algorithm == Algorithm::TwoLevel {
            for spread in placements(case.size, seed) {
                by(&Case { spread, ..case.clone() }, algorithm, &forced, seed);
            }
        } else {
            by(case, algorithm, &forced, seed);
        }
    }
}

fn by(case: &Case, algorithm: Algorithm, forced: &Forced, seed: u64) {
    let commutes = case.op.as_ref().is_none_or(Op::commutes);
    let problem = Problem { size: case.size, bytes: 1, commutes, root: case.root, spread: &case.spread };
    if applies(case.kind, algorithm, &problem) {
        oracle::check(case, forced, seed, &format!("{algorithm:?}"));
    }
}

/// Ranks on hosts: unequal blocks, in turn, and anyhow, by chance.
fn placements(size: usize, seed: u64) -> Vec<Spread> {
    let mut random = Random(seed);
    if size < 3 {
        return Vec::new();
    }
    let hosts = 2 + random.below(size - 2);
    let mut ends: Vec<usize> = (1..hosts).map(|_| 1 + random.below(size - 1)).collect();
    ends.sort_unstable();
    let blocks: Vec<u32> = (0..size).map(|rank| ends.partition_point(|end| *end <= rank) as u32).collect();
    let in_turn: Vec<u32> = (0..size).map(|rank| (rank % hosts) as u32).collect();
    let anyhow: Vec<u32> = (0..size).map(|_| random.below(hosts) as u32).collect();
    let one_of = [in_turn, anyhow][random.below(2)].clone();
    [blocks, one_of].into_iter().map(|hosts| Spread::of(size, |rank| hosts[rank])).collect()
}

fn all_cases(kind: Collective, ops: &[Option<Op>], types: &[Type], counts: &[usize]) {
    for size in sizes() {
        let roots = if oracle::has_root(kind) { vec![0, size / 2, size - 1] } else { vec![0] };
        for root in roots {
            for &count in counts {
                for op in ops {
                    for ty in types {
                        for &in_place in if kind == Collective::Bcast { &[false][..] } else { &[false, true] }
                        {
                            every_algorithm(&Case {
                                kind,
                                size,
                                root,
                                count,
                                op: op.clone(),
                                ty: ty.clone(),
                                in_place,
                                spread: Spread::OneHost,
                            });
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn barrier() {
    for size in sizes() {
        every_algorithm(&Case {
            kind: Collective::Barrier,
            size,
            root: 0,
            count: 0,
            op: None,
            ty: quad(),
            in_place: false,
            spread: Spread::OneHost,
        });
    }
}

#[test]
fn bcast() {
    all_cases(Collective::Bcast, &[None], &[quad(), gappy()], &[0, 1, 7, 300]);
}

#[test]
fn gather_and_scatter() {
    for kind in [Collective::Gather, Collective::Gatherv, Collective::Scatter, Collective::Scatterv] {
        all_cases(kind, &[None], &[quad(), gappy()], &[0, 1, 5]);
    }
}

/// Blocks that go through leaders beside such as are too long for it, and none: amounts differ by rank.
#[test]
fn long_and_short_blocks_on_two_levels() {
    let most = |kind, spread: &Spread| across::through_leaders(kind, spread.levels().unwrap(), &TARIFF);
    for kind in [Collective::Gatherv, Collective::Scatterv, Collective::Alltoallv, Collective::Alltoallw] {
        for size in [3, 4, 7, 12] {
            for (root, in_place) in [(0, false), (0, true), (size - 1, true)] {
                for spread in placements(size, (size + root) as u64) {
                    if spread.levels().is_none() {
                        continue;
                    }
                    let ty = [quad(), gappy()][root % 2].clone();
                    let count = (most(kind, &spread) / ty.size) as usize;
                    let case = Case { kind, size, root, count, op: None, ty, in_place, spread };
                    let mut forced = Forced::default();
                    forced.set(kind, Some(Algorithm::TwoLevel));
                    oracle::check(&case, &forced, 3, "TwoLevel");
                }
            }
        }
    }
}

/// The whole would fit: what one rank sends too much another one sends too little.
#[test]
fn lengths_that_differ_by_way_of_leaders_are_told() {
    let (ty, hosts) = (quad(), [0, 0, 1, 1, 1]);
    let spread = Spread::of(hosts.len(), |rank| hosts[rank]);
    let (counts, displs) = ([1, 1, 1, 2, 1], [0, 1, 2, 3, 5]);
    let mut forced = Forced::default();
    forced.set(Collective::Gatherv, Some(Algorithm::TwoLevel));
    let mut memory = vec![vec![0u8; 256]; hosts.len()];
    let schedules = (0..hosts.len()).map(|rank| {
        let count = [1, 1, 1, 1, 2][rank];
        let all = Side::Varied { counts: Ints::Small(&counts), displs: Ints::Small(&displs), ty: &ty };
        let call = Call {
            kind: Collective::Gatherv,
            rank,
            size: hosts.len(),
            send: Side::Even { count, ty: &ty },
            recv: if rank == 0 { all } else { Side::Absent },
            in_place: false,
            op: None,
            root: 0,
            across: None,
        };
        let program = Arc::new(compile(&call, &spread, &TARIFF, &forced));
        let at = memory[rank].as_mut_ptr() as usize;
        Schedule::new(program, at, at + 128).unwrap()
    });
    let errors = net::run_to_error(schedules.collect(), 1);
    let told = |e: &crate::Error| {
        e.class == crate::Class::TRUNCATE
            && e.text.contains("rank 3 sends 16 bytes to rank 0")
            && e.text.contains("32")
    };
    assert!(errors.iter().any(told), "{errors:?}");
}

#[test]
fn allgather() {
    for kind in [Collective::Allgather, Collective::Allgatherv] {
        all_cases(kind, &[None], &[quad(), gappy()], &[0, 1, 5, 130]);
    }
}

#[test]
fn alltoall() {
    for kind in [Collective::Alltoall, Collective::Alltoallv, Collective::Alltoallw] {
        all_cases(kind, &[None], &[quad(), gappy()], &[0, 1, 3]);
    }
}

#[test]
fn reductions_by_operations_of_the_application() {
    let ops = [Some(matrix_product()), Some(user_sum())];
    for kind in [Collective::Reduce, Collective::Allreduce, Collective::Scan, Collective::Exscan] {
        all_cases(kind, &ops, &[quad(), gappy()], &[0, 1, 3, 40]);
    }
    for kind in [Collective::ReduceScatter, Collective::ReduceScatterBlock] {
        all_cases(kind, &ops, &[quad(), gappy()], &[0, 1, 4]);
    }
}

#[test]
fn reductions_by_predefined_operations() {
    let ops = [Some(Op::Predefined(Predefined::Sum))];
    let int = Type::predefined(INT).unwrap();
    for kind in [
        Collective::Reduce,
        Collective::Allreduce,
        Collective::Scan,
        Collective::Exscan,
        Collective::ReduceScatter,
        Collective::ReduceScatterBlock,
    ] {
        all_cases(kind, &ops, std::slice::from_ref(&int), &[0, 1, 2, 5, 33]);
    }
}

#[test]
fn the_cheapest_algorithm_is_right_too() {
    for kind in Collective::ALL {
        for size in sizes() {
            let op = oracle::reduces(kind).then(user_sum);
            let spread = Spread::OneHost;
            let case =
                Case { kind, size, root: size - 1, count: 11, op, ty: quad(), in_place: false, spread };
            oracle::check(&case, &Forced::default(), 7, "auto");
            for spread in placements(size, size as u64) {
                oracle::check(&Case { spread, ..case.clone() }, &Forced::default(), 7, "auto");
            }
        }
    }
}

fn program(kind: Collective, rank: usize, count: u64) -> Arc<schedule::Program> {
    let ty = quad();
    let side = Side::Even { count, ty: &ty };
    let call = Call {
        kind,
        rank,
        size: 2,
        send: Side::Absent,
        recv: side,
        in_place: false,
        op: None,
        root: 0,
        across: None,
    };
    Arc::new(compile(&call, &Spread::OneHost, &TARIFF, &Forced::default()))
}

#[test]
fn mismatched_sizes_name_the_peer() {
    for (theirs, ours) in [(1, 2), (2, 1)] {
        let mut memory = [vec![0u8; 64], vec![0u8; 64]];
        let schedules = [(0, theirs), (1, ours)].map(|(rank, count)| {
            Schedule::new(program(Collective::Bcast, rank, count), 0, memory[rank].as_mut_ptr() as usize)
                .unwrap()
        });
        let errors = net::run_to_error(schedules.into(), 1);
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].class, crate::Class::TRUNCATE);
        assert!(errors[0].text.contains("rank 0"), "{}", errors[0].text);
        assert!(errors[0].text.contains("Bcast"), "{}", errors[0].text);
    }
}

#[test]
fn a_mismatched_collective_is_told() {
    let mut memory = [vec![0u8; 64], vec![0u8; 64]];
    let bcast = Schedule::new(program(Collective::Bcast, 1, 1), 0, memory[1].as_mut_ptr() as usize).unwrap();
    let barrier =
        Schedule::new(program(Collective::Barrier, 0, 0), 0, memory[0].as_mut_ptr() as usize).unwrap();
    let errors = net::run_to_error(vec![barrier, bcast], 1);
    let told =
        |e: &crate::Error| e.class == crate::Class::NOT_SAME && e.text.contains("rank 0 is in Barrier");
    assert!(errors.iter().any(told), "{errors:?}");
}

#[test]
fn counts_that_lead_to_other_algorithms_are_told() {
    let mut memory = vec![vec![0u8; 1 << 20]; 4];
    let ty = quad();
    let counts = [1 << 16, 1, 1, 1];
    let schedules = (0..4).map(|rank| {
        let recv = Side::Even { count: counts[rank], ty: &ty };
        let op = user_sum();
        let call = Call {
            kind: Collective::Allreduce,
            rank,
            size: 4,
            send: Side::Absent,
            recv,
            in_place: true,
            op: Some(&op),
            root: 0,
            across: None,
        };
        let program = Arc::new(compile(&call, &Spread::OneHost, &TARIFF, &Forced::default()));
        Schedule::new(program, 0, memory[rank].as_mut_ptr() as usize).unwrap()
    });
    let errors = net::run_to_error(schedules.collect(), 1);
    let told =
        |e: &crate::Error| e.class == crate::Class::TRUNCATE && e.text.contains("by another algorithm");
    assert!(errors.iter().any(told), "{errors:?}");
}

#[test]
fn a_long_chain_stays_bounded() {
    let spread = &Spread::OneHost;
    let problem = Problem { size: 1000, bytes: 1 << 36, commutes: true, root: 0, spread };
    let segment = cost::segment(&problem, &TARIFF);
    assert!(problem.bytes.div_ceil(segment) <= 1024);
    let forced = Some(Algorithm::Chain);
    assert_eq!(cost::choose(Collective::Bcast, &problem, &TARIFF, forced).winner, Algorithm::Chain);
}

/// Prices inside a host are those of one machine ([`Rates::HOST`]). What others would have chosen: of all kinds, numbers of ranks and lengths, how
/// many choices they change, and how many cost a tenth more, by the model.
#[test]
fn prices_of_one_host_suit_others_where_ranks_share_cores() {
    let rates = |latency_ns, link, copy| {
        let level =
            rates::Level { link, short: link, busy: link, reduce: copy, copy, ..Rates::HOST.levels[0] };
        Rates { latency_ns, levels: [level; rates::LEVELS], ..Rates::HOST }
    };
    let spread = &Spread::OneHost;
    let compare = |other: Rates, cores: u32| {
        let at = |rates| Tariff { host: Rates { cores, ..rates }, ..Tariff::default() };
        let (ours, theirs) = (at(Rates::HOST), at(other));
        let (mut all, mut changed, mut dearer, mut worst) = (0, 0, 0, 1.0f64);
        for kind in Collective::ALL.into_iter().filter(|kind| algorithms(*kind).len() > 1) {
            for (size, shift) in
                [2, 3, 4, 8, 16, 32, 64, 128].iter().flat_map(|size| (3..=22).map(|shift| (*size, shift)))
            {
                let problem = Problem { size, bytes: 1 << shift, commutes: true, root: 0, spread };
                let [mine, best] =
                    [&ours, &theirs].map(|tariff| cost::choose(kind, &problem, tariff, None).winner);
                let cost = |algorithm| cost::price(kind, algorithm, &problem, &theirs).total();
                let factor = cost(mine) / cost(best);
                (all, changed, worst) = (all + 1, changed + u32::from(mine != best), worst.max(factor));
                dearer += u32::from(factor > 1.1);
            }
        }
        println!(
            "{cores} cores, {} ns: of {all} choices {changed} others, {dearer} dearer by a tenth, {worst:.2} at most",
            other.latency_ns
        );
        (changed * 1000 / all, dearer * 1000 / all, worst)
    };
    let [near, far] = [rates(40.0, 0.06, 0.04), rates(300.0, 0.12, 0.05)];
    for other in [near, far] {
        let (changed, dearer, worst) = compare(other, 2);
        assert!(changed < 15 && dearer < 3 && worst < 1.4, "{changed} {dearer} {worst}");
        let (changed, dearer, worst) = compare(other, 64);
        assert!(changed < 100 && dearer < 70 && worst < 1.7, "{changed} {dearer} {worst}");
    }
}
