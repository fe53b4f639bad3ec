//! Epochs in virtual time: exact times of small plans, early issue, frequent buffers; and under every schedule messages that are late, ranks
//! that lose their processor, and a target that dies.

use crate::support::plain;
use fabric::Span;
#[allow(dead_code)] // shared with tests of adapters
use mpi::error::Result;
use mpi::world::fault;
use proto::choice::journal::HEADER;
use proto::epoch::{Action, Ending, Schedule, journal};
use proto::{EagerBy, Event};
use sim::{Cluster, Faults, Job, Outcome, Rank, Setup};

fn setup() -> Setup {
    let mut setup = Setup::default();
    setup.limits.eager_bytes = 4096;
    setup.limits.eager_by = EagerBy::Copy;
    setup
}

fn run<R: 'static>(
    cluster: &Cluster,
    setup: &Setup,
    body: impl Fn(&mut Rank<'_>) -> Result<R> + 'static,
) -> Vec<R> {
    let cluster = Cluster { cores: 1, ..cluster.clone() };
    let report = Job::new(&cluster, 2).program(setup, body).unwrap();
    report.all().unwrap().into_iter().collect::<Result<Vec<R>>>().unwrap()
}

/// Epochs: what is registered once is registered before the last.
const ROUNDS: u64 = 3;

/// What an epoch of rank 0 at rank 1 takes, seen by both from the same moment on, in ns; the last of [`ROUNDS`].
fn epoch(schedule: Schedule, ops: &'static [(Action, usize)]) -> Vec<u64> {
    let mut cluster = plain();
    (cluster.registration.regions, cluster.registration.lockable_bytes) = (64, 64 << 20);
    run(&cluster, &setup(), move |rank| {
        let memory = rank.buffer(64 << 10);
        let buffers: Vec<_> = ops.iter().map(|(_, len)| rank.buffer(*len)).collect();
        let window = rank.window(1, memory, schedule)?;
        let mut took = 0;
        for round in 1..=ROUNDS {
            if rank.rank() == 1 {
                rank.win_post(&window, &[0])?;
            }
            // Both begin long behind the post.
            let start = round * 1_000_000;
            rank.compute(start - rank.now_ns());
            if rank.rank() == 0 {
                rank.progress()?;
                let start = rank.now_ns();
                rank.win_start(&window, &[1])?;
                let mut offset = 0;
                for ((action, len), buffer) in ops.iter().zip(&buffers) {
                    match action {
                        Action::Put => rank.put(&window, 1, offset, *buffer)?,
                        Action::Get => rank.get(&window, 1, offset, *buffer)?,
                    }
                    offset += len;
                }
                rank.win_complete(&window)?;
                took = rank.now_ns() - start;
            } else {
                rank.win_wait(&window, &[0])?;
                took = rank.now_ns() - start;
            }
        }
        rank.free(window)?;
        Ok(took)
    })
}

#[test]
fn times_of_small_plans_are_exact() {
    let times = |name: &str, ops| epoch(Schedule::named(name).unwrap(), ops);
    const PUT: &[(Action, usize)] = &[(Action::Put, 1000)];
    const GET: &[(Action, usize)] = &[(Action::Get, 1000)];
    const BOTH: &[(Action, usize)] = &[(Action::Put, 2000), (Action::Get, 2000)];
    let shown: Vec<String> = [
        ("gets-first", PUT),
        ("original", PUT),
        ("merge-last", PUT),
        ("gets-first", GET),
        ("original", BOTH),
        ("interleaved", BOTH),
    ]
    .into_iter()
    .map(|(name, ops)| format!("{name} {:?}", times(name, ops)))
    .collect();
    // A Put, at its origin: header 10, copy 10 + 100, post 100; then the end of the epoch, header 10, post 100 and 24
    // bytes in the processor's hands. The original waits for fetch 300, latency, 1000 bytes and the acknowledgement first.
    let expected = [
        "gets-first [354, 2768]",
        "original [3706, 4904]",
        "merge-last [353, 3065]",
        "gets-first [4006, 5094]",
        "original [7326, 8314]",
        "interleaved [5166, 6154]",
    ];
    assert_eq!(shown, expected);
}

/// Epochs of two kinds under a schedule; the lines of the origin's journal, without what is for people.
fn journalled(schedule: Schedule, replayed: Option<&str>) -> Vec<String> {
    let decisions = replayed.map(|lines| journal::parse("j", &format!("{HEADER}\n{lines}")).unwrap());
    let all = run(&Cluster::find("em64t-pcie").unwrap(), &setup(), move |rank| {
        let me = rank.rank();
        let planned = rank.world().engine.planned_mut();
        planned.keep();
        planned.replay(me, decisions.as_deref().unwrap_or_default());
        let (memory, data) = (rank.buffer(1 << 20), rank.buffer(64 << 10));
        let window = rank.window(1, memory, schedule)?;
        for round in 0..6 {
            if rank.rank() == 1 {
                rank.win_post(&window, &[0])?;
                rank.win_wait(&window, &[0])?;
                continue;
            }
            rank.win_start(&window, &[1])?;
            for op in 0..4 {
                let len = if op == round % 2 { 16 << 10 } else { 64 };
                rank.put(&window, 1, op << 14, Span { len, ..data })?;
            }
            if round % 2 == 1 {
                rank.get(&window, 1, 0, Span { len: 512, ..data })?;
            }
            rank.win_complete(&window)?;
        }
        rank.free(window)?;
        Ok(rank.world().engine.planned_mut().lines(me))
    });
    let decisions = all[0].lines().filter(|line| !line.starts_with('#'));
    decisions.map(|line| line.split(" #").next().unwrap_or_default().to_string()).collect()
}

#[test]
fn a_journal_of_epochs_makes_the_same_plans_where_others_would_be_made() {
    let held = |name: &str| Schedule { early: Some(false), ..Schedule::named(name).unwrap() };
    let (chosen, original) = (journalled(held("auto"), None), journalled(held("original"), None));
    assert!(chosen.len() >= 2 && chosen != original, "the test says nothing: {chosen:?}");
    assert_eq!(journalled(held("original"), Some(&chosen.join("\n"))), chosen);
    assert_eq!(journalled(held("auto"), Some(&original.join("\n"))), original);
}

/// A Put of 64 KB, then computation: from the second epoch on it leaves when it is called.
#[test]
fn what_computation_can_hide_leaves_early() {
    let took = |schedule: Schedule| {
        let all = run(&Cluster::find("em64t-pcie").unwrap(), &setup(), move |rank| {
            let (memory, data) = (rank.buffer(1 << 20), rank.buffer(64 << 10));
            let window = rank.window(1, memory, schedule)?;
            let mut times = Vec::new();
            for _ in 0..6 {
                rank.barrier()?;
                let start = rank.now_ns();
                if rank.rank() == 0 {
                    rank.win_start(&window, &[1])?;
                    // The post comes meanwhile.
                    rank.compute(50_000);
                    rank.progress()?;
                    rank.put(&window, 1, 0, data)?;
                    rank.compute(500_000);
                    rank.win_complete(&window)?;
                } else {
                    rank.win_post(&window, &[0])?;
                    rank.win_wait(&window, &[0])?;
                }
                times.push(rank.now_ns() - start);
            }
            let early = rank.world().engine.counters().get(Event::EpochEarly);
            rank.free(window)?;
            Ok((times, early))
        });
        (all[1].0.clone(), all[0].1)
    };
    let (chosen, early) = took(Schedule::CHOICE);
    let (held, never) = took(Schedule { early: Some(false), ..Schedule::CHOICE });
    assert_eq!((never, early), (0, 5), "the first epoch shows what the others are like");
    let wire = 60_000;
    assert!(
        chosen[1..].iter().zip(&held[1..]).all(|(chosen, held)| chosen + wire < *held),
        "{chosen:?} {held:?}"
    );
}

/// A buffer that comes again and again is registered, and then no longer copied.
#[test]
fn frequent_buffers_are_used_where_they_lie() {
    for action in [Action::Put, Action::Get] {
        let mut setup = setup();
        setup.limits.eager_bytes = 9 << 10;
        setup.limits.eager_by = EagerBy::Choice;
        let all = run(&Cluster::find("poweredge-ddr").unwrap(), &setup, move |rank| {
            let (memory, buffer) = (rank.buffer(8 << 10), rank.buffer(8 << 10));
            let schedule = Schedule::named("gets-first").unwrap();
            let window = rank.window(1, memory, schedule)?;
            rank.win_fence(&window)?;
            for _ in 0..60 {
                if rank.rank() == 0 {
                    match action {
                        Action::Put => rank.put(&window, 1, 0, buffer)?,
                        Action::Get => rank.get(&window, 1, 0, buffer)?,
                    }
                }
                rank.win_fence(&window)?;
            }
            rank.win_fence_last(&window)?;
            let counters = rank.world().engine.counters();
            Ok((counters.get(Event::FrequentBuffer), counters.get(Event::EpochZeroCopy)))
        });
        let (registered, used) = all[0];
        assert_eq!(registered, 1, "{action:?}");
        assert!((8..60).contains(&used), "{used} of 60 {action:?}");
    }
}

const LENGTHS: [usize; 4] = [8, 700, 9000, 40_000];
/// What a rank writes to each other one in an epoch.
const PART: usize = 50_000;

fn bytes(origin: usize, target: usize, epoch: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 13 + origin * 31 + target * 7 + epoch * 101) as u8).collect()
}

/// Every rank writes to both others and reads back what it wrote in the epoch before, and flushes one while the epoch
/// at the other one goes on.
fn flush_one_by_one(rank: &mut Rank<'_>, schedule: Schedule) -> Result<()> {
    let (me, n) = (rank.rank(), rank.size());
    let memory = rank.buffer(2 * n * PART);
    let window = rank.window(1, memory, schedule)?;
    let others: Vec<usize> = (0..n).filter(|other| *other != me).collect();
    for epoch in 0..4 {
        let half = |epoch: usize| (2 * me + epoch % 2) * PART;
        let mut back = Vec::new();
        for &target in &others {
            rank.win_lock(&window, target)?;
            let mut at = 0;
            for len in LENGTHS {
                let out = rank.buffer(len);
                rank.write(out, &bytes(me, target, epoch, PART)[at..at + len]);
                rank.put(&window, target, half(epoch) + at, out)?;
                if epoch > 0 {
                    let into = rank.buffer(len);
                    rank.get(&window, target, half(epoch - 1) + at, into)?;
                    back.push((target, at, into));
                }
                at += len;
            }
        }
        for &target in &others {
            rank.world().engine.close_at(1, &[target], Ending::Flush).map_err(fault)?;
            rank.until(|world| {
                let closed = world.engine.is_closed_at(1, &[target]).map_err(fault)?;
                Ok(closed.then_some(()))
            })?;
            for (_, at, into) in back.iter().filter(|(from, ..)| *from == target) {
                let expected = &bytes(me, target, epoch - 1, PART)[*at..at + into.len];
                assert!(rank.read(*into) == expected, "epoch {epoch}: rank {me} from {target} at {at}");
            }
        }
        rank.barrier()?;
        let (mine, len) = (rank.read(memory), LENGTHS.iter().sum());
        for &origin in &others {
            let at = (2 * origin + epoch % 2) * PART;
            let expected = bytes(origin, me, epoch, len);
            assert!(
                mine[at..at + len] == expected,
                "epoch {epoch}: rank {me} has been given this by {origin}"
            );
        }
        rank.barrier()?;
    }
    rank.free(window)
}

fn three() -> Cluster {
    let mut cluster = Cluster { cores: 1, ..plain() };
    (cluster.registration.regions, cluster.registration.lockable_bytes) = (64, 64 << 20);
    cluster
}

#[test]
fn late_messages_and_ranks_without_a_processor_change_no_byte() {
    for (schedule, name) in Schedule::ALL {
        for seed in 1..4 {
            let faults =
                Faults { delay: 0.2, delay_ns: 30_000, stall: 0.05, stall_ns: 50_000, ..Faults::default() };
            let job = Job::new(&three(), 3).seed(seed).faults(faults);
            let report = job.program(&setup(), move |rank| flush_one_by_one(rank, schedule)).unwrap();
            for (rank, outcome) in report.results.into_iter().enumerate() {
                assert!(
                    matches!(outcome, Outcome::Ended(Ok(()))),
                    "{name}, seed {seed}, rank {rank}: {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn a_target_that_dies_in_an_epoch_ends_it_with_an_error_that_names_it() {
    for (schedule, name) in Schedule::ALL {
        let faults = Faults { deaths: vec![(1, 3_000_000)], ..Faults::default() };
        let report = Job::new(&three(), 3).faults(faults).program(&setup(), move |rank| {
            let (memory, data) = (rank.buffer(1 << 20), rank.buffer(100_000));
            let window = rank.window(1, memory, schedule)?;
            loop {
                rank.compute(50_000);
                if rank.rank() == 0 {
                    rank.win_lock(&window, 1)?;
                    rank.put(&window, 1, 0, data)?;
                    rank.get(&window, 1, 0, data.part(0, 8))?;
                    rank.win_unlock(&window)?;
                } else {
                    rank.progress()?;
                }
            }
        });
        let results: Vec<Outcome<Result<()>>> = report.unwrap().results;
        assert!(matches!(results[1], Outcome::Died), "{name}: it dies inside");
        let Outcome::Ended(Err(error)) = &results[0] else { panic!("{name}: {:?}", results[0]) };
        assert!(error.text.contains("rank 1"), "{name}: {}", error.text);
    }
}
