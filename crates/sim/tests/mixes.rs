//! Properties of the choice for any cluster and mix of messages: the bytes are the same as by each fixed protocol, by
//! which all messages go or those too long for eager; it is never worse than the worst; and it is at most 5 % behind
//! the best of those for long messages, but for the mixes named here. Of the first 200 it keeps what
//! `docs/results/papers.md` says. `TERN_SIM_SEEDS=1000` for a night, `=6..7` for one; a failure prints the seed.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use proto::Protocol;
use sim::rank::Setup;
use sim::{Cluster, Job, Rank};

/// Rounds before and while the time is taken.
const WARM: usize = 30;
const ROUNDS: usize = 30;

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }
}

/// A number that follows from another one and all bytes.
fn digest(seed: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words =
        words.iter().map(|word| u64::from_le_bytes(*word)).chain(rest.iter().map(|byte| u64::from(*byte)));
    words.fold(seed, |sum, word| (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23))
}

/// What an application does, drawn from a seed.
#[derive(Clone, Debug)]
struct Mix {
    cluster: &'static str,
    ranks: usize,
    /// Lengths of its messages, in turn.
    lens: Vec<usize>,
    /// How many of four messages use a buffer for the first time.
    fresh: usize,
    /// How long ranks with an even number compute before each round, in ns.
    late_ns: u64,
    /// Both sides send at once, or one answers the other.
    exchanges: bool,
}

impl Mix {
    fn draw(seed: u64) -> Mix {
        let mut random = Random::new(seed);
        let names: Vec<&'static str> = sim::cluster::names().collect();
        let lens = (0..1 + random.below(3)).map(|_| {
            let scale = 10 + random.below(10);
            (1 << scale) + random.below(1 << scale)
        });
        Mix {
            lens: lens.collect(),
            cluster: names[random.below(names.len())],
            ranks: 2 + 2 * random.below(2),
            fresh: random.below(5),
            late_ns: [0, 0, 20_000, 500_000][random.below(4)],
            exchanges: random.below(2) == 0,
        }
    }

    /// Its rounds, as one rank goes through them: time of the last ones, and a number that follows from all
    /// bytes received.
    fn play(&self, rank: &mut Rank<'_>) -> mpi::Result<(u64, u64)> {
        let me = rank.rank();
        let peer = me ^ 1;
        let longest = *self.lens.iter().max().expect("there is a length");
        let kept = [rank.buffer(longest), rank.buffer(longest)];
        let pattern: Vec<u8> = (0..longest + 256).map(|k| (k * 7 + k / 251) as u8).collect();
        let (mut seen, mut start_ns) = (0, 0);
        for round in 0..WARM + ROUNDS {
            if round == WARM {
                rank.barrier()?;
                start_ns = rank.now_ns();
            }
            let len = self.lens[round % self.lens.len()];
            let [out, into] =
                if round % 4 < self.fresh { [rank.buffer(len), rank.buffer(len)] } else { kept };
            let (out, into) = (out.part(0, len), into.part(0, len));
            rank.write(out, &pattern[(round * 31 + me) % 256..][..len]);
            if me.is_multiple_of(2) {
                rank.compute(self.late_ns);
            }
            if self.exchanges {
                rank.sendrecv(out, peer, into, peer as i32, 0)?;
            } else if me < peer {
                rank.send(out, peer, 0)?;
                rank.recv(into, peer as i32, 0)?;
            } else {
                rank.recv(into, peer as i32, 0)?;
                rank.send(out, peer, 0)?;
            }
            seen = digest(seen, &rank.read(into));
        }
        Ok((rank.now_ns() - start_ns, seen))
    }

    /// Time until all ranks are done, and what each has seen.
    fn run(&self, force: Option<Protocol>, eager: bool) -> (u64, Vec<u64>) {
        let mut setup = Setup::default();
        setup.limits.force = force;
        if !eager {
            setup.limits.eager_bytes = 0;
        }
        let cluster = Cluster::find(self.cluster).expect("it was listed");
        let mix = self.clone();
        let job = Job::new(&cluster, self.ranks).per_host(1);
        let report = job.program(&setup, move |rank| mix.play(rank));
        let results = report.expect("the cluster has room").all().expect("no rank dies");
        let results: Vec<(u64, u64)> = results.into_iter().map(|result| result.expect("no error")).collect();
        let took_ns = results.iter().map(|(took_ns, _)| *took_ns).max().expect("there are ranks");
        (took_ns, results.into_iter().map(|(_, seen)| seen).collect())
    }
}

/// What one mix showed.
#[derive(Debug)]
struct Outcome {
    seed: u64,
    mix: Mix,
    /// How far the choice is behind the best protocol for all long messages, in per cent.
    behind: f64,
    best: &'static str,
    /// What is wrong whatever the mix.
    fault: Option<String>,
}

fn outcome(seed: u64) -> Outcome {
    let mix = Mix::draw(seed);
    let (auto_ns, seen) = mix.run(None, true);
    let (mut best, mut worst) = ((u64::MAX, "none"), (0, "none"));
    let mut fault = None;
    for ((protocol, name), eager) in Protocol::ALL.iter().flat_map(|p| [(p, true), (p, false)]) {
        let (took_ns, bytes) = mix.run(Some(*protocol), eager);
        if bytes != seen {
            fault = Some(format!("by {name} other bytes than by choice"));
        }
        worst = worst.max((took_ns, *name));
        if eager {
            best = best.min((took_ns, *name));
        }
    }
    if auto_ns > worst.0 {
        fault = Some(format!("{auto_ns} ns by choice, {worst:?} at worst"));
    }
    let behind = 100.0 * (auto_ns as f64 / best.0 as f64 - 1.0);
    Outcome { seed, mix, behind, best: best.1, fault }
}

/// The outcomes of seeds, on two processors.
fn outcomes(seeds: Range<u64>) -> Vec<Outcome> {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut done = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return done;
            }
            done.push(outcome(seed));
        }
    };
    let mut all = thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.map(|worker| worker.join().expect("no mix panics")).into_iter().flatten().collect::<Vec<_>>()
    });
    all.sort_by_key(|outcome| outcome.seed);
    all
}

/// Seeds that are always tried.
const SEEDS: Range<u64> = 0..48;
/// How far the choice may be behind the best, in per cent.
const GOAL: f64 = 5.0;

const STEP: &str = "an exchange in which one side comes late: whether the two directions fall into step decides more \
                    than the protocol";
const FEW: &str = "lengths that have been seen only ten times each: it is still learning";
/// Mixes in which it is further behind: by how much, and why.
const EXCEPTIONS: [(u64, f64, &str); 10] = [
    (6, 11.0, FEW),
    (12, 7.0, STEP),
    (15, 6.5, STEP),
    (16, 10.0, STEP),
    (18, 18.0, STEP),
    (20, 46.0, STEP),
    (26, 6.0, FEW),
    (27, 29.0, STEP),
    (32, 6.0, STEP),
    (38, 31.0, STEP),
];
/// What `docs/results/papers.md` says of the first 200 mixes: share of them, and how far behind they are at most.
const OF_200: [(f64, f64); 5] = [(0.5, 0.1), (0.75, 2.5), (0.9, 11.0), (0.97, 31.0), (1.0, 59.0)];
const MEAN_OF_200: f64 = 2.5;

/// «1000» or «160..200».
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("TERN_SIM_SEEDS") else { return SEEDS };
    let number = |text: &str| text.parse().expect("TERN_SIM_SEEDS is a number or first..end");
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => 0..number(&text),
    }
}

#[test]
fn close_to_the_best_protocol_and_the_same_bytes() {
    let outcomes = outcomes(seeds());
    let mut faults = Vec::new();
    for Outcome { seed, mix, behind, best, fault } in &outcomes {
        println!("seed {seed}: {behind:.1} % behind {best}; {mix:?}");
        faults.extend(fault.iter().map(|fault| format!("seed {seed}: {fault}; {mix:?}")));
        let known = EXCEPTIONS.iter().find(|known| known.0 == *seed);
        let (most, why) = known.map_or((GOAL, "the goal"), |(_, most, why)| (*most, *why));
        if SEEDS.contains(seed) && *behind > most {
            faults.push(format!("seed {seed}: {behind:.2} % behind {best}, at most {most} ({why}); {mix:?}"));
        }
    }
    if seeds().start == 0 && outcomes.len() >= 200 {
        let mut behind: Vec<f64> = outcomes[..200].iter().map(|outcome| outcome.behind).collect();
        behind.sort_by(f64::total_cmp);
        for (share, most) in OF_200 {
            let at = behind[(share * 199.0) as usize];
            println!("{share} of 200: {at:.2} % behind at most");
            if at > most {
                faults.push(format!("{share} of 200 mixes: {at:.2} % behind, at most {most}"));
            }
        }
        let mean = behind.iter().sum::<f64>() / 200.0;
        println!("mean of 200: {mean:.2} %");
        if mean > MEAN_OF_200 {
            faults.push(format!("mean of 200 mixes: {mean:.2} % behind, at most {MEAN_OF_200}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
