//! How fast the simulator is and what an idle rank costs: `cargo run --release -p sim --example speed`.

use std::time::Instant;

use sim::rank::Rank;
use sim::{Cluster, Job, Setup};

fn main() {
    messages("ping-pong of 8 bytes", 2, |rank| {
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
    });
    messages("windows of 64 messages of 8 bytes", 2, |rank| {
        let (buffer, peer) = (rank.buffer(8), 1 - rank.rank());
        for _ in 0..10_000 {
            let receives =
                (0..64).map(|_| rank.irecv(buffer, peer as i32, 0)).collect::<Result<Vec<_>, _>>()?;
            for _ in 0..64 {
                rank.send(buffer, peer, 0)?;
            }
            rank.waitall(receives)?;
        }
        Ok(())
    });
    messages("halo exchange of 1 KiB with two neighbours, 1024 ranks", 1024, |rank| {
        let (me, n) = (rank.rank(), rank.size());
        let (out, into) = (rank.buffer(1024), [rank.buffer(1024), rank.buffer(1024)]);
        let (left, right) = ((me + n - 1) % n, (me + 1) % n);
        for _ in 0..500 {
            let receives = [rank.irecv(into[0], left as i32, 0)?, rank.irecv(into[1], right as i32, 0)?];
            let sends = [rank.isend(out, right, 0)?, rank.isend(out, left, 0)?];
            rank.waitall(receives)?;
            rank.waitall(sends)?;
        }
        Ok(())
    });
    messages("allreduce of 8 bytes, 4096 ranks, 10 times", 4096, |rank| {
        let (out, into) = (rank.buffer(8), rank.buffer(8));
        (0..10).try_for_each(|_| rank.allreduce(out, into, sim::rank::INT64, sim::rank::SUM))
    });
    for ranks in [64, 4096] {
        let before = resident_kib();
        let cluster = Cluster { hosts: ranks, cores: 1, ..Cluster::find("graphene").expect("it is known") };
        let report = Job::new(&cluster, ranks).program(&Setup::default(), move |rank| {
            // Ranks begin in turn: when the last one does, all others have been set up and compute.
            rank.compute(1_000_000);
            Ok(resident_kib())
        });
        let report = report.expect("it fits").all().expect("it ends");
        let with = *report[ranks - 1].as_ref().expect("it has no reason to fail");
        println!("{ranks} idle ranks: {:.1} KiB each", (with - before) as f64 / ranks as f64);
    }
}

fn messages(what: &str, ranks: usize, body: impl Fn(&mut Rank<'_>) -> mpi::Result<()> + 'static) {
    let cluster = Cluster { hosts: ranks, cores: 1, ..Cluster::find("graphene").expect("it is known") };
    let start = Instant::now();
    let report = Job::new(&cluster, ranks).program(&Setup::default(), body).expect("it fits");
    let (seconds, counters, end_ns) = (start.elapsed().as_secs_f64(), report.counters, report.end_ns);
    for result in report.all().expect("it ends") {
        result.expect("it succeeds");
    }
    let messages = counters.messages();
    println!(
        "{what}: {messages} messages in {seconds:.2} s, {:.2} M/s; {:.1} events and {:.1} switches each; {end_ns} ns virtual",
        messages as f64 / seconds / 1e6,
        counters.events as f64 / messages as f64,
        counters.switches as f64 / messages as f64
    );
}

/// Memory of this process.
fn resident_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}
