//! Early receivers between hosts in virtual time: on what both sides settle.

use proto::{Event, Protocol};
use sim::rank::Setup;
use sim::{Cluster, Job};

fn plain() -> Cluster {
    let text = include_str!("support/plain.toml").replace("regions = 4", "regions = 400");
    Cluster::parse("plain.toml", &text).unwrap()
}

const ROUNDS: u64 = 200;

/// A ping-pong of 64 KiB, in which each rank computes for so long between its receive and its send, and between its send and
/// its receive: nanoseconds one way in the second half, and RTRs sent and taken by rank 0 meanwhile.
fn ping_pong(
    cluster: &Cluster,
    force: Option<Protocol>,
    rtr: bool,
    len: usize,
    [before, after]: [u64; 2],
) -> (u64, u64, u64) {
    let mut cluster = cluster.clone();
    cluster.cores = 1;
    let mut setup = Setup::default();
    (setup.limits.force, setup.limits.rtr) = (force, rtr);
    let report = Job::new(&cluster, 2).program(&setup, move |rank| {
        let (me, out, into) = (rank.rank(), rank.buffer(len), rank.buffer(len));
        let (mut start, mut counts) = (0, (0, 0));
        for round in 0..2 * ROUNDS {
            if round == ROUNDS {
                let counters = rank.world().engine.counters();
                counts = (counters.get(Event::RtrSent), counters.get(Event::RtrTaken));
                start = rank.now_ns();
            }
            if me == 1 {
                rank.recv(into, 0, 0)?;
            }
            rank.compute(before);
            rank.send(out, 1 - me, 0)?;
            rank.compute(after);
            if me == 0 {
                rank.recv(into, 1, 0)?;
            }
        }
        let took_ns = (rank.now_ns() - start) / (2 * ROUNDS);
        let counters = rank.world().engine.counters();
        Ok((took_ns, counters.get(Event::RtrSent) - counts.0, counters.get(Event::RtrTaken) - counts.1))
    });
    *report.unwrap().all().unwrap()[0].as_ref().unwrap()
}

/// A receiver posts its receive when it has sent a token, and the sender sends when that comes: RTR and RTS cross. Computes for
/// so long before it waits. How long a message takes from the token on, at the receiver, in the second half; with the RTRs
/// that were taken then.
fn crossing(force: Option<Protocol>, computes_ns: u64) -> (Vec<u64>, u64) {
    let mut setup = Setup::default();
    setup.limits.force = force;
    let mut cluster = plain();
    cluster.cores = 1;
    let report = Job::new(&cluster, 2).program(&setup, move |rank| {
        let (me, data, token) = (rank.rank(), rank.buffer(64 << 10), rank.buffer(8));
        let (mut times, mut before) = (Vec::new(), 0);
        for round in 0..2 * ROUNDS {
            if round == ROUNDS {
                before = rank.world().engine.counters().get(Event::RtrTaken);
            }
            if me == 0 {
                rank.recv(token, 1, 0)?;
                let request = rank.isend(data, 1, 1)?;
                rank.compute(computes_ns);
                rank.wait(request)?;
            } else {
                rank.compute(100_000 + 2 * computes_ns);
                let start = rank.now_ns();
                rank.send(token, 0, 0)?;
                rank.recv(data, 0, 1)?;
                if round >= ROUNDS {
                    times.push(rank.now_ns() - start);
                }
            }
        }
        Ok((times, rank.world().engine.counters().get(Event::RtrTaken) - before))
    });
    let mut ranks = report.unwrap().all().unwrap();
    let (times, _) = ranks.pop().unwrap().unwrap();
    (times, ranks.pop().unwrap().unwrap().1)
}

#[test]
fn two_ranks_that_take_turns_settle_on_rtrs() {
    for name in ["plain", "graphene", "infini", "ndr-2026", "eth-25g", "ne020", "poweredge-ddr"] {
        let cluster = if name == "plain" { plain() } else { Cluster::find(name).unwrap() };
        for len in [32 << 10, 64 << 10, 256 << 10] {
            let (read_ns, ..) = ping_pong(&cluster, Some(Protocol::Rget), true, len, [0, 0]);
            let (ns, sent, taken) = ping_pong(&cluster, Some(Protocol::Speculative), true, len, [0, 0]);
            assert_eq!((sent, taken), (ROUNDS, ROUNDS), "{name}, {len} bytes");
            assert!(ns < read_ns, "{name}, {len} bytes: {ns} ns, read {read_ns} ns");
            let (ns, sent, taken) = ping_pong(&cluster, None, true, len, [0, 0]);
            println!("{name}, {len} bytes: {ns} ns by choice, {sent} RTRs, {taken} taken; read {read_ns} ns");
        }
    }
    for name in ["graphene", "infini", "ndr-2026", "ne020"] {
        let cluster = Cluster::find(name).unwrap();
        let (without_ns, ..) = ping_pong(&cluster, None, false, 64 << 10, [0, 0]);
        let (ns, _, taken) = ping_pong(&cluster, None, true, 64 << 10, [0, 0]);
        assert!(taken > ROUNDS * 9 / 10 && ns < without_ns, "{name}: {taken}, {ns} ns, {without_ns} ns");
    }
}

/// Both begin at the same time: a sender that waits writes, one that computes is read from, at once.
#[test]
fn an_rtr_that_crosses_is_answered_by_who_is_there() {
    let (read_ns, _) = crossing(Some(Protocol::Rget), 0);
    let (ns, taken) = crossing(Some(Protocol::Speculative), 0);
    assert_eq!(taken, ROUNDS);
    assert!(ns.iter().zip(&read_ns).all(|(ns, read_ns)| ns < read_ns), "{ns:?}, read {read_ns:?}");
    for force in [None, Some(Protocol::Speculative)] {
        let (ns, taken) = crossing(force, 1_000_000);
        assert_eq!(taken, 0);
        assert!(ns.iter().all(|ns| *ns < 100_000), "{force:?}: {ns:?}");
    }
}
