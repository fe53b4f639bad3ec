//! Measuring programs that several studies use.

use std::cell::RefCell;
use std::rc::Rc;

use fabric::{Nap, Region, Remote, Rights, Span, Verbs};
use proto::{EagerBy, Event, Figures, Protocol, Tuning};
use sim::{Cluster, Counters, Job, Nic, Rank, Setup};

/// Result of a program of a rank.
pub type Ran<T> = mpi::error::Result<T>;

/// Short exchanges before measuring, until the peers know each other's slots.
const ACQUAINTED: usize = 24;

/// How messages are to travel.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What to call it.
    pub name: &'static str,
    /// Limits, frames, pipelines, collectives.
    pub setup: Setup,
}

impl Variant {
    /// All messages above `eager_bytes` by one protocol, the others by copy.
    pub fn forced(name: &'static str, protocol: Protocol, eager_bytes: usize) -> Variant {
        let mut setup = Setup::default();
        setup.limits.force = Some(protocol);
        setup.limits.eager_bytes = eager_bytes;
        setup.limits.eager_by = EagerBy::Copy;
        Variant { name, setup }
    }

    /// The same with other pipelines.
    pub fn tuned(mut self, tuning: Tuning) -> Variant {
        self.setup.tuning = tuning;
        self
    }
}

/// What a library would measure on this cluster.
pub fn facts(cluster: &Cluster) -> Figures {
    let (rail, (register_ns, page_ns)) = (&cluster.rails[0], cluster.registration.register_ns);
    Figures {
        copy_bytes_per_us: 1e9 / cluster.copy_time_ns(1_000_000, usize::MAX),
        net_bytes_per_us: rail.path.bandwidth * 1000.0,
        latency_ns: rail.path.latency_ns + rail.post_ns + rail.fetch_ns,
        gap_ns: rail.gap_ns,
        register_ns,
        register_bytes_per_us: cluster.registration.page_bytes as f64 / page_ns.max(1e-6) * 1000.0,
    }
}

/// The cluster with one rank per host.
pub fn spread(cluster: &Cluster) -> Cluster {
    Cluster { cores: 1, ..cluster.clone() }
}

/// Runs a program on `ranks` ranks, each of which must succeed.
pub fn run<R: 'static>(
    cluster: &Cluster,
    ranks: usize,
    way: &Variant,
    body: impl Fn(&mut Rank<'_>) -> Ran<R> + 'static,
) -> Result<Vec<R>, String> {
    run_counted(cluster, ranks, way, body).map(|(results, _)| results)
}

/// The same, and what happened in the network.
pub fn run_counted<R: 'static>(
    cluster: &Cluster,
    ranks: usize,
    way: &Variant,
    body: impl Fn(&mut Rank<'_>) -> Ran<R> + 'static,
) -> Result<(Vec<R>, Counters), String> {
    let report = Job::new(cluster, ranks).program(&way.setup, body)?;
    let counters = report.counters;
    let results = report.all()?.into_iter().collect::<Ran<Vec<R>>>();
    let results = results.map_err(|error| format!("{} on {}: {}", way.name, cluster.name, error.text))?;
    Ok((results, counters))
}

/// Which buffers a program uses in its rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Buffers {
    /// The same in all.
    Same,
    /// Others in each.
    Fresh,
}

/// A ping-pong between two hosts: half of every round trip, in nanoseconds.
pub fn ping_pong(
    cluster: &Cluster,
    way: &Variant,
    len: usize,
    rounds: usize,
    buffers: Buffers,
) -> Result<Vec<f64>, String> {
    let mut all = run(&spread(cluster), 2, way, move |rank| {
        acquaint(rank)?;
        let (me, peer) = (rank.rank(), 1 - rank.rank());
        let (mut out, mut into) = (rank.buffer(len), rank.buffer(len));
        // What the protocol itself needs, such as staging memory, is there before the first round.
        rank.sendrecv(out, peer, into, peer as i32, 0)?;
        (out, into) = (rank.buffer(len), rank.buffer(len));
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            if buffers == Buffers::Fresh {
                (out, into) = (rank.buffer(len), rank.buffer(len));
            }
            rank.barrier()?;
            let start = rank.now_ns();
            if me == 0 {
                rank.send(out, peer, 0)?;
                rank.recv(into, peer as i32, 0)?;
            } else {
                rank.recv(into, peer as i32, 0)?;
                rank.send(out, peer, 0)?;
            }
            times.push((rank.now_ns() - start) as f64 / 2.0);
        }
        Ok(times)
    })?;
    Ok(all.swap_remove(0))
}

/// Exchanges short messages with the neighbours of a ring until they use the fast path.
pub fn acquaint(rank: &mut Rank<'_>) -> Ran<()> {
    let (me, n) = (rank.rank(), rank.size());
    let (out, into) = (rank.buffer(8), rank.buffer(8));
    for to in [(me + 1) % n, (me + n - 1) % n] {
        let from = (2 * n + me - to + me) % n;
        for _ in 0..ACQUAINTED {
            rank.sendrecv(out, to, into, from as i32, 0)?;
        }
    }
    rank.barrier()
}

/// Mean time of a call, in nanoseconds, after some that do not count.
pub fn timed(
    rank: &mut Rank<'_>,
    warm: usize,
    rounds: usize,
    mut what: impl FnMut(&mut Rank<'_>) -> Ran<()>,
) -> Ran<f64> {
    for _ in 0..warm {
        what(rank)?;
    }
    rank.barrier()?;
    let start = rank.now_ns();
    for _ in 0..rounds {
        what(rank)?;
    }
    Ok((rank.now_ns() - start) as f64 / rounds as f64)
}

/// How often something happened on the sending rank while one message of this length went to the other.
pub fn count(cluster: &Cluster, way: &Variant, len: usize, event: Event) -> Result<u64, String> {
    let counts = run(&spread(cluster), 2, way, move |rank| {
        acquaint(rank)?;
        let buffer = rank.buffer(len);
        let before = rank.world().engine.counters().get(event);
        match rank.rank() {
            0 => rank.send(buffer, 1, 0)?,
            _ => drop(rank.recv(buffer, 0, 0)?),
        }
        Ok(rank.world().engine.counters().get(event) - before)
    })?;
    Ok(counts[0])
}

/// What lies between a buffer and the wire in a program written to the verbs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Raw {
    /// Nothing: both buffers are registered.
    Registered,
    /// Both sides register for the transfer, at the same time, and deregister.
    RegisterEach,
    /// Both sides copy the whole message.
    CopyEach,
}

/// Time of one RDMA write from buffer to buffer, seen at the receiver, without any rendezvous: both sides begin at
/// the same time and know where to write.
pub fn raw_write(cluster: &Cluster, raw: Raw, len: usize) -> Result<f64, String> {
    const BEGIN_NS: u64 = 1_000_000_000;
    let keys = Rc::new(RefCell::new([Remote::default(); 2]));
    let report = sim::run(&spread(cluster), 2, 0, move |mut nic| {
        let (user, staging) = (nic.allocate(len), nic.allocate(len));
        let me = nic.me();
        let mut key = match raw {
            Raw::Registered => Some(registered(&mut nic, user)),
            Raw::CopyEach => Some(registered(&mut nic, staging)),
            Raw::RegisterEach => None,
        };
        sleep_until(&mut nic, BEGIN_NS);
        let region = *key.get_or_insert_with(|| registered(&mut nic, user));
        let wire = if raw == Raw::CopyEach { staging } else { user };
        keys.borrow_mut()[me] = region.remote(wire.addr);
        if me == 0 {
            if raw == Raw::CopyEach {
                nic.copy(staging.addr, user.addr, len);
            }
            let flag = wire.addr + len - 8;
            nic.store(flag, 1);
            // The receiver has come as far as this rank; then its key is known.
            let now = nic.now_ns();
            sleep_until(&mut nic, now + 1);
            let remote = keys.borrow()[1];
            let posted = nic.post_write(1, 0, &[region.local(wire)], remote, 1);
            assert!(posted.expect("the memory is registered"), "the queue is empty");
            while nic.poll().is_none() {
                nic.idle(0).take();
            }
        } else {
            while nic.load(wire.addr + len - 8) != 1 {
                nic.idle(0).take();
            }
            if raw == Raw::CopyEach {
                nic.copy(user.addr, staging.addr, len);
            }
        }
        if raw == Raw::RegisterEach {
            nic.deregister(0, region);
        }
        let end = nic.now_ns();
        sleep_until(&mut nic, 10 * BEGIN_NS);
        (end - BEGIN_NS) as f64
    })?;
    Ok(report.all()?[1])
}

fn registered(nic: &mut Nic<'_>, span: Span) -> Region {
    nic.register(0, span, Rights::REMOTE_WRITE).expect("one buffer can be registered")
}

fn sleep_until(nic: &mut Nic<'_>, at_ns: u64) {
    while nic.now_ns() < at_ns {
        nic.alarm(at_ns);
        nic.idle(0).take();
    }
}

/// Lengths from `low` to `high`, `per_octave` for each doubling, in whole words.
pub fn sizes(low: usize, high: usize, per_octave: u32) -> Vec<usize> {
    let steps = ((high as f64 / low as f64).log2() * f64::from(per_octave)).round() as u32;
    let size = |step: u32| low as f64 * 2f64.powf(f64::from(step) / f64::from(per_octave));
    (0..=steps).map(|step| (size(step) / 8.0).round() as usize * 8).collect()
}

/// The median.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Bytes and nanoseconds as 10^6 bytes per second.
pub fn mb_s(bytes: usize, ns: f64) -> f64 {
    bytes as f64 / ns * 1000.0
}
