//! Epochs in virtual time: exact times of small plans, early issue, frequent buffers, and the choice against every
//! forced schedule.

#[allow(dead_code)] // shared with tests of adapters
mod support;

use mpi::error::Result;
use proto::epoch::{Action, Schedule};
use proto::{EagerBy, Event};
use sim::{Cluster, Job, Rank, Setup};
use support::plain;

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
