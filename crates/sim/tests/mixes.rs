//! A property of the choice: for any cluster and mix of messages it is never worse than the worst fixed
//! protocol, by which all messages go or those too long for eager, and the bytes are the same.
//! `TERN_SIM_SEEDS=1000` for a night; a failure prints the seed.

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
            let bytes: Vec<u8> = (0..len).map(|k| (k * 7 + round * 31 + me) as u8).collect();
            rank.write(out, &bytes);
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
            seen = rank
                .read(into)
                .iter()
                .fold(seen, |sum: u64, byte| (sum ^ *byte as u64).wrapping_mul(0x0000_0100_0000_01b3));
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

#[test]
fn never_worse_than_the_worst_protocol_and_the_same_bytes() {
    let seeds: u64 = std::env::var("TERN_SIM_SEEDS").map_or(8, |text| text.parse().expect("a number"));
    for seed in 0..seeds {
        let mix = Mix::draw(seed);
        let (auto_ns, seen) = mix.run(None, true);
        let mut worst = (0, "none");
        for ((protocol, name), eager) in Protocol::ALL.iter().flat_map(|p| [(p, true), (p, false)]) {
            let (took_ns, bytes) = mix.run(Some(*protocol), eager);
            assert_eq!(bytes, seen, "seed {seed}, {name}: other bytes than by choice; {mix:?}");
            worst = worst.max((took_ns, *name));
        }
        assert!(auto_ns <= worst.0, "seed {seed}: {auto_ns} ns by choice, {worst:?} at worst; {mix:?}");
    }
}
