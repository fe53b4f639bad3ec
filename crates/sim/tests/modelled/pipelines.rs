//! The protocols for long messages in virtual time, on the cluster of the superpipeline paper.

use proto::{Figures, Protocol, Tuning};
use sim::rank::{Rank, Setup};
use sim::{Cluster, Job};

/// «graphene», as its file describes it.
const FACTS: Figures = Figures {
    copy_bytes_per_us: 5250.0,
    net_bytes_per_us: 1980.0,
    latency_ns: 1500.0,
    gap_ns: 300.0,
    register_ns: 68_000.0,
    register_bytes_per_us: 20_000.0,
};

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

/// Round trips of `len` bytes from buffers that are used once, between two hosts; half of the last
/// one, when the peers have long known each other, in nanoseconds.
fn fresh(protocol: Protocol, len: usize, cluster: &Cluster) -> u64 {
    let mut setup = Setup { tuning: Tuning::of(&FACTS), ..Setup::default() };
    setup.limits.force = Some(protocol);
    let body = move |rank: &mut Rank<'_>| -> mpi::error::Result<u64> {
        let (me, mut time) = (rank.rank(), 0);
        let other = if me == 0 { 4 } else { 0 };
        if me % 4 != 0 {
            return Ok(0);
        }
        for round in 0..12 {
            let (out, into) = (rank.buffer(len), rank.buffer(len));
            rank.write(out, &pattern(round + me, len));
            let start = rank.now_ns();
            if me == 0 {
                rank.send(out, other, 0)?;
                rank.recv(into, other as i32, 0)?;
            } else {
                rank.recv(into, other as i32, 0)?;
                rank.send(out, other, 0)?;
            }
            time = (rank.now_ns() - start) / 2;
            assert!(rank.read(into) == pattern(round + other, len), "{protocol:?}, {len} bytes");
        }
        Ok(time)
    };
    let report = Job::new(cluster, 8).program(&setup, body).unwrap();
    report.all().unwrap().into_iter().next().unwrap().unwrap()
}

/// Per cent of what the wire carries.
fn percent(protocol: Protocol, len: usize) -> f64 {
    let ns = fresh(protocol, len, &Cluster::find("graphene").unwrap());
    len as f64 / ns as f64 * 1000.0 / FACTS.net_bytes_per_us * 100.0
}

/// Buffers that are used once: where registration costs 68 µs copying wins, and registering block
/// by block wins over registering all. `--nocapture` shows the table.
#[test]
fn fresh_buffers() {
    for len in [32usize, 64, 128, 256, 512, 1024, 4096].map(|k| k << 10) {
        let all = Protocol::ALL.map(|(protocol, name)| (name, percent(protocol, len)));
        let cells = all.map(|(name, percent)| format!("{name} {percent:5.1}"));
        println!("{:5} KiB  {}", len >> 10, cells.join("  "));
        let of = |name| all.iter().find(|(known, _)| *known == name).expect("there").1;
        assert!(of("superpipeline") > of("copy-pipeline") && of("superpipeline") > of("pipeline"));
        assert!(of("pipeline") > of("rget") && of("pipeline") > of("rput"));
        assert!(len < 1 << 20 || of("superpipeline") > 98.0 && of("pipeline") > 95.0);
    }
}

/// Two adapters carry more than one; not twice as much, for one processor registers all blocks, a
/// block in 84 µs, and what lies below the RDMA offset goes by one adapter.
#[test]
fn blocks_go_over_all_adapters() {
    let text = include_str!("../../../../clusters/graphene.toml");
    let rail = &text[text.find("[[rails]]").unwrap()..text.find("[local]").unwrap()];
    let two = Cluster::parse("two.toml", &format!("{text}\n{rail}")).unwrap();
    let one = Cluster::find("graphene").unwrap();
    let time = |cluster: &Cluster| fresh(Protocol::Pipeline, 8 << 20, cluster);
    let (one, two) = (time(&one), time(&two));
    println!("one adapter {one} ns, two {two} ns");
    assert!(two < one * 4 / 5);
}
