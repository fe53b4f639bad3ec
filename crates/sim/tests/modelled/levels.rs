//! Hosts with several ranks: shared memory beside adapters, and collectives of two levels, in virtual time.

use fabric::Span;
use mpi::coll::cost::{Algorithm, algorithms};
use mpi::coll::{Collective, Forced};
use mpi::error::Result;
use sim::rank::{INT64, SUM};
use sim::{Cluster, Job, Rank, Setup};

/// The collectives with a table of algorithms that a simulated rank can call.
const KINDS: [Collective; 12] = [
    Collective::Barrier,
    Collective::Bcast,
    Collective::Gather,
    Collective::Gatherv,
    Collective::Scatter,
    Collective::Scatterv,
    Collective::Allgather,
    Collective::Alltoall,
    Collective::Alltoallv,
    Collective::Reduce,
    Collective::Allreduce,
    Collective::Scan,
];

/// A collective of `len` bytes, as [`mpi::coll::Problem`] counts them.
fn call(rank: &mut Rank<'_>, kind: Collective, one: Span, all: [Span; 2]) -> Result<()> {
    let lens = vec![one.len as i64; rank.size()];
    match kind {
        Collective::Barrier => rank.barrier(),
        Collective::Bcast => rank.bcast(one, 0),
        Collective::Gather => rank.gather(one, all[0], 0),
        Collective::Gatherv => rank.gatherv(one, all[0], &lens, 0),
        Collective::Scatter => rank.scatter(all[0], one, 0),
        Collective::Scatterv => rank.scatterv(all[0], &lens, one, 0),
        Collective::Allgather => rank.allgather(one, all[0]),
        Collective::Alltoall => rank.alltoall(all[0], all[1]),
        Collective::Alltoallv => rank.alltoallv((all[0], &lens), (all[1], &lens)),
        Collective::Reduce => rank.reduce(one, all[0].part(0, one.len), INT64, SUM, 0),
        Collective::Scan => rank.scan(one, all[0].part(0, one.len), INT64, SUM),
        _ => rank.allreduce(one, all[0].part(0, one.len), INT64, SUM),
    }
}

/// Nanoseconds of a call after warm-up: from the first one's start to the last one's end.
fn time(cluster: &Cluster, ranks: usize, kind: Collective, len: usize, forced: Option<Algorithm>) -> f64 {
    const WARM: usize = 12;
    const ROUNDS: usize = 8;
    let mut setup = Setup { forced: Forced::default(), ..Setup::default() };
    setup.forced.set(kind, forced);
    let report = Job::new(cluster, ranks).program(&setup, move |rank| {
        let (one, size) = (rank.buffer(len), rank.size());
        let all = [(); 2].map(|()| rank.buffer(len * size));
        let mut start = 0;
        for round in 0..WARM + ROUNDS {
            if round == WARM {
                start = rank.now_ns();
            }
            call(rank, kind, one, all)?;
            // Ranks that need not wait for others would run ahead.
            rank.barrier()?;
        }
        Ok(rank.now_ns() - start)
    });
    let times = report.unwrap().all().unwrap().into_iter().map(|time| time.unwrap());
    times.max().unwrap() as f64 / ROUNDS as f64
}

/// How far the choice may be behind the best algorithm, in per cent.
const GOAL: f64 = 30.0;

/// What is further behind: case, and by how much at most. Of long messages the handshake is priced, and not what
/// registers memory or waits for a pipeline. The last two differ from run to run with where memory lies: mostly 13 and 28 %, and
/// up to 44 and 31 % in some of ten runs.
const EXCEPTIONS: [(&str, f64); 4] = [
    ("c1, Bcast, 262144", 70.0),
    ("c2, Allreduce, 262144", 70.0),
    ("c1, Alltoall, 1024", 50.0),
    ("c1, Gatherv, 16384", 35.0),
];

/// Lengths, as [`mpi::coll::Problem`] counts them. Where each rank has a block for each the longest is left out.
fn lengths(kind: Collective) -> &'static [usize] {
    match kind {
        Collective::Barrier => &[0],
        Collective::Bcast | Collective::Reduce | Collective::Allreduce | Collective::Scan => {
            &[8, 1024, 16 << 10, 256 << 10]
        }
        _ => &[8, 1024, 16 << 10],
    }
}

/// Every algorithm forced on ranks that fill the cluster, and what is chosen against the best of them.
fn never_far_behind(name: &str) {
    let cluster = Cluster::find(name).unwrap();
    let (ranks, mut faults, mut two_level) = (cluster.capacity(), Vec::new(), 0);
    for kind in KINDS {
        for &len in lengths(kind) {
            // What has all vectors at one rank, or all at all, would take most of the time of this test.
            let is_tried =
                |a: &&Algorithm| len <= 16 << 10 || !matches!(a, Algorithm::Linear | Algorithm::Star);
            let forced = algorithms(kind).iter().filter(is_tried);
            let forced = forced.map(|a| (time(&cluster, ranks, kind, len, Some(*a)), a.word()));
            let mut forced: Vec<_> = forced.collect();
            forced.sort_by(|a, b| a.0.total_cmp(&b.0));
            let case = format!("{name}, {kind:?}, {len}");
            let most = EXCEPTIONS.iter().find(|known| known.0 == case).map_or(GOAL, |known| known.1);
            let behind_of = |auto_ns: f64| 100.0 * (auto_ns / forced[0].0 - 1.0);
            let mut auto_ns = time(&cluster, ranks, kind, len, None);
            if behind_of(auto_ns) > most {
                // Memory lies elsewhere each time, and with it what is registered together: one run in ten is a quarter longer.
                let again = || time(&cluster, ranks, kind, len, None);
                let mut three = [auto_ns, again(), again()];
                three.sort_by(f64::total_cmp);
                auto_ns = three[1];
            }
            let behind = behind_of(auto_ns);
            let times: Vec<String> =
                forced.iter().map(|(ns, word)| format!("{word} {:.0}", ns / 1e3)).collect();
            println!("{case}: {:.0} us, {behind:+.0} %; {}", auto_ns / 1e3, times.join(", "));
            two_level += usize::from(forced[0].1 == Algorithm::TwoLevel.word());
            if behind > most {
                faults.push(format!("{case}: {behind:.1} % behind {}, at most {most}", forced[0].1));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(two_level >= 10, "two levels are the best in {two_level} cases");
}

#[test]
fn the_choice_on_4_hosts_of_8_cores_is_never_far_behind_the_best() {
    never_far_behind("c1");
}

#[test]
#[ignore = "a minute of a processor: make nightly"]
fn the_choice_on_16_hosts_of_4_cores_is_never_far_behind_the_best() {
    never_far_behind("c2");
}

/// When measuring begins.
const START_NS: u64 = 1_000_000;

/// The cluster of round numbers, whose ranks share memory.
fn sharing(more: &str) -> Cluster {
    let shared = "[shared]\nlatency_ns = 100\nbandwidth_mb_s = 2000\nslots = 4\nframe_bytes = 4096\n";
    let text = include_str!("../support/plain.toml").replace("[copy]", &format!("{shared}{more}\n[copy]"));
    Cluster::parse("plain.toml", &text).unwrap()
}

/// When each of the odd ranks has what the even one before it sends at a known time, all at once.
fn one_way(cluster: &Cluster, ranks: usize, len: usize) -> Vec<u64> {
    let report = Job::new(cluster, ranks).program(&Setup::default(), move |rank| {
        let (me, buffer) = (rank.rank(), rank.buffer(len));
        rank.barrier()?;
        rank.compute(START_NS - rank.now_ns());
        if me % 2 == 0 {
            rank.send(buffer, me + 1, 0)?;
        } else {
            rank.recv(buffer, me as i32 - 1, 0)?;
        }
        Ok(rank.now_ns() - START_NS)
    });
    report.unwrap().all().unwrap().into_iter().map(|time| time.unwrap()).collect()
}

#[test]
fn a_message_in_shared_memory_is_two_copies_and_a_latency() {
    let times = one_way(&sharing(""), 2, 1000);
    // Header 10, and 10 + 1000 bytes at 10 B/ns; latency 100; header 10, and 10 + 1000 bytes at 2 B/ns. What the
    // receiver looks at besides takes less than 35.
    assert!((120..=125).contains(&times[0]) && (740..775).contains(&times[1]), "{times:?}");
}

#[test]
fn ranks_of_a_host_share_its_memory() {
    let [free, limited] = ["", "memory_mb_s = 2000"].map(|more| one_way(&sharing(more), 2, 1 << 20)[1]);
    // 1 MiB at 2 B/ns out of the other core's cache; or both copies of it through memory, one after the other.
    assert!((524_288..800_000).contains(&free), "{free}");
    assert!((1_030_000..1_500_000).contains(&limited), "{limited}");
}
