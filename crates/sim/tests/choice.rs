//! The choice among protocols in virtual time: what it takes, against each protocol forced.

use proto::{EagerBy, Protocol};
use sim::rank::Setup;
use sim::{Cluster, Job};

/// Where the sent and received bytes of a ping-pong lie.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Buffers {
    Same,
    Fresh,
}

/// Rounds that count, and those before: until short buffers are known to come again it takes more.
const ROUNDS: usize = 30;
const WARM: [(usize, usize); 2] = [(16 << 10, 200), (usize::MAX, 30)];

/// Nanoseconds one way, in the last rounds of a ping-pong between two hosts.
fn one_way(cluster: &str, force: Option<Protocol>, len: usize, buffers: Buffers) -> f64 {
    let mut cluster = Cluster::find(cluster).unwrap();
    cluster.cores = 1;
    let mut setup = Setup::default();
    setup.limits.force = force;
    let report = Job::new(&cluster, 2).program(&setup, move |rank| {
        let (me, mut start) = (rank.rank(), 0);
        let same = [rank.buffer(len), rank.buffer(len)];
        let warm = WARM.iter().find(|(up_to, _)| len <= *up_to).expect("the last has no limit").1;
        for round in 0..warm + ROUNDS {
            if round == warm {
                start = rank.now_ns();
            }
            let [out, into] = match buffers {
                Buffers::Same => same,
                Buffers::Fresh => [rank.buffer(len), rank.buffer(len)],
            };
            if me == 0 {
                rank.send(out, 1, 0)?;
                rank.recv(into, 1, 0)?;
            } else {
                rank.recv(into, 0, 0)?;
                rank.send(out, 0, 0)?;
            }
        }
        Ok(rank.now_ns() - start)
    });
    let times = report.unwrap().all().unwrap();
    *times[0].as_ref().unwrap() as f64 / (2 * ROUNDS) as f64
}

/// After warm-up never more than 5 % behind the best of all protocols, wherever that is.
#[test]
fn never_far_behind_the_best() {
    for cluster in ["graphene", "lioncub", "ndr-2026", "poweredge-ddr"] {
        for buffers in [Buffers::Same, Buffers::Fresh] {
            for len in [8 << 10, 32 << 10, 256 << 10, 2 << 20] {
                let auto_ns = one_way(cluster, None, len, buffers);
                let forced = Protocol::ALL.map(|(p, name)| (one_way(cluster, Some(p), len, buffers), name));
                let (best_ns, best) = forced.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
                assert!(
                    auto_ns <= best_ns * 1.05,
                    "{cluster}, {buffers:?} buffers, {len} bytes: {auto_ns:.0} ns, {best} {best_ns:.0} ns"
                );
            }
        }
    }
}

/// What an application does with short messages.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Pattern {
    /// Each waits for an answer.
    PingPong,
    /// Each send waits for nothing but its own end.
    Stream,
    /// Broadcasts, with a barrier behind each.
    Tree,
}

/// Nanoseconds of a round, after warm-up.
fn short(cluster: &str, pattern: Pattern, eager_by: EagerBy, len: usize) -> f64 {
    const WARM: usize = 1200;
    const COUNTED: usize = 1200;
    let mut cluster = Cluster::find(cluster).unwrap();
    cluster.cores = 1;
    let mut setup = Setup::default();
    setup.limits.eager_by = eager_by;
    let ranks = if pattern == Pattern::Tree { 4 } else { 2 };
    let report = Job::new(&cluster, ranks).program(&setup, move |rank| {
        let (me, mut start) = (rank.rank(), 0);
        let (out, into) = (rank.buffer(len), rank.buffer(len));
        for round in 0..WARM + COUNTED {
            if round == WARM {
                rank.barrier()?;
                start = rank.now_ns();
            }
            match (pattern, me) {
                (Pattern::Tree, _) => {
                    rank.bcast(out, 0)?;
                    rank.barrier()?;
                }
                (_, 0) => rank.send(out, 1, 0)?,
                (_, _) => drop(rank.recv(into, 0, 0)?),
            }
            match (pattern, me) {
                (Pattern::PingPong, 0) => drop(rank.recv(into, 1, 0)?),
                (Pattern::PingPong, _) => rank.send(out, 0, 0)?,
                _ => {}
            }
        }
        rank.barrier()?;
        Ok(rank.now_ns() - start)
    });
    let times = report.unwrap().all().unwrap();
    *times[0].as_ref().unwrap() as f64 / COUNTED as f64
}

/// Whether a buffer that comes again is copied or gathered: close to the better of both, whatever the
/// application does.
#[test]
fn short_messages_are_never_far_behind_the_better_way() {
    for cluster in ["poweredge-ddr", "graphene", "ndr-2026"] {
        for pattern in [Pattern::PingPong, Pattern::Stream, Pattern::Tree] {
            for len in [512, 2048, 8192] {
                let [auto, copy, gather] = [EagerBy::Choice, EagerBy::Copy, EagerBy::ZeroCopy]
                    .map(|eager_by| short(cluster, pattern, eager_by, len));
                println!("{cluster:>14} {pattern:>9?} {len:>5}: {auto:>8.0} {copy:>8.0} {gather:>8.0}");
                assert!(
                    auto <= copy.min(gather) * 1.05,
                    "{cluster}, {pattern:?}, {len} bytes: {auto:.0} ns, copied {copy:.0}, gathered {gather:.0}"
                );
            }
        }
    }
}
