//! How fast the simulator is and what a rank costs: `cargo run --release -p sim --example speed [NAME…]`.
//!
//! Each program runs in a process of its own, so that its memory can be told.

use std::process::Command;
use std::time::Instant;

use sim::rank::{INT64, Rank, SUM};
use sim::{Cluster, Job, Setup};

type Program = fn(&mut Rank<'_>) -> mpi::Result<()>;

/// Name, ranks, program.
const PROGRAMS: &[(&str, usize, Program)] = &[
    ("ping-pong", 2, ping_pong),
    ("windows", 2, windows),
    ("halo-4", 4, |rank| halo(rank, 100_000)),
    ("halo-64", 64, |rank| halo(rank, 5000)),
    ("halo-256", 256, |rank| halo(rank, 1500)),
    // What the second takes more than the first is what messages take once pages are there and choices made.
    ("halo-1024-begin", 1024, |rank| halo(rank, 100)),
    ("halo-1024", 1024, |rank| halo(rank, 500)),
    ("halo-4096", 4096, |rank| halo(rank, 200)),
    ("allreduce-4096", 4096, |rank| {
        let (out, into) = (rank.buffer(8), rank.buffer(8));
        (0..100).try_for_each(|_| rank.allreduce(out, into, INT64, SUM))
    }),
    ("first-allreduces-4096", 4096, |rank| {
        let (out, into) = (rank.buffer(8), rank.buffer(8));
        (0..10).try_for_each(|_| rank.allreduce(out, into, INT64, SUM))
    }),
    ("alltoall-256", 256, |rank| {
        let (out, into) = (rank.buffer(256 * 64), rank.buffer(256 * 64));
        (0..20).try_for_each(|_| rank.alltoall(out, into))
    }),
    ("idle-4096", 4096, idle),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let [word, name] = &wanted[..]
        && word == "--one"
    {
        return one(name);
    }
    let own = std::env::current_exe().expect("a program has a name");
    println!(
        "{:>22} {:>9} {:>7} {:>7} {:>7} {:>9} {:>10}  virtual",
        "program", "messages", "s", "M/s", "events", "switches", "KiB/rank"
    );
    for (name, ..) in PROGRAMS {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())) {
            let status = Command::new(&own).args(["--one", name]).status().expect("it can be started");
            assert!(status.success(), "{name} failed");
        }
    }
}

fn one(name: &str) {
    let (name, ranks, program) = *PROGRAMS.iter().find(|(known, ..)| *known == name).expect("a program");
    let cluster = Cluster { hosts: ranks, cores: 1, ..Cluster::find("graphene").expect("it is known") };
    let before = memory_kib("VmRSS:");
    let start = Instant::now();
    let report = Job::new(&cluster, ranks).program(&Setup::default(), program).expect("it fits");
    let (seconds, counters, end_ns) = (start.elapsed().as_secs_f64(), report.counters, report.end_ns);
    let (hash, most) = (report.trace_hash, memory_kib("VmHWM:"));
    for result in report.all().expect("it ends") {
        result.expect("it succeeds");
    }
    let messages = counters.messages();
    let each = |count: u64| count as f64 / messages as f64;
    println!(
        "{name:>22} {messages:>9} {seconds:>7.2} {:>7.2} {:>7.1} {:>9.1} {:>10.1}  {end_ns} ns, {hash:016x}",
        messages as f64 / seconds / 1e6,
        each(counters.events),
        each(counters.switches),
        (most - before) as f64 / ranks as f64,
    );
}

fn ping_pong(rank: &mut Rank<'_>) -> mpi::Result<()> {
    let (buffer, peer) = (rank.buffer(8), 1 - rank.rank());
    for _ in 0..500_000 {
        if rank.rank() == 0 {
            rank.send(buffer, peer, 0)?;
        }
        rank.recv(buffer, peer as i32, 0)?;
        if rank.rank() == 1 {
            rank.send(buffer, peer, 0)?;
        }
    }
    Ok(())
}

/// Nothing. Ranks begin in turn: when the last one does, all others have been set up.
fn idle(rank: &mut Rank<'_>) -> mpi::Result<()> {
    if rank.rank() + 1 == rank.size() {
        let most = memory_kib("VmHWM:") as f64 / rank.size() as f64;
        println!("{:>22} {most:.1} KiB/rank before the barrier of MPI_Finalize", "idle");
    }
    rank.compute(1_000_000);
    Ok(())
}

/// 64 messages at a time one way.
fn windows(rank: &mut Rank<'_>) -> mpi::Result<()> {
    let (buffer, peer) = (rank.buffer(8), 1 - rank.rank());
    for _ in 0..10_000 {
        let receives = (0..64).map(|_| rank.irecv(buffer, peer as i32, 0)).collect::<Result<Vec<_>, _>>()?;
        for _ in 0..64 {
            rank.send(buffer, peer, 0)?;
        }
        rank.waitall(receives)?;
    }
    Ok(())
}

/// 1 KiB to each of two neighbours.
fn halo(rank: &mut Rank<'_>, rounds: usize) -> mpi::Result<()> {
    let (me, n) = (rank.rank(), rank.size());
    let (out, into) = (rank.buffer(1024), [rank.buffer(1024), rank.buffer(1024)]);
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    for _ in 0..rounds {
        let receives = [rank.irecv(into[0], left as i32, 0)?, rank.irecv(into[1], right as i32, 0)?];
        let sends = [rank.isend(out, right, 0)?, rank.isend(out, left, 0)?];
        rank.waitall(receives)?;
        rank.waitall(sends)?;
    }
    Ok(())
}

/// A line of what the system says of this process.
fn memory_kib(what: &str) -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}
