//! Beyond the papers: the adaptive choice against the best fixed protocol of each case (the oracle) and the worst.

use fabric::Span;
use proto::Protocol;
use sim::{Cluster, Rank, Setup};

use super::p002::{CASES as EXCHANGES, PATTERNS, SHORT, SKEWS_NS, iteration_of, run_time};
use crate::sim::figure::{Basis, Claim, Curve, Figure, Paper, Study};
use crate::sim::lab::{self, Buffers, Variant, mean};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;
/// Messages above are long.
pub const EAGER: usize = 16 * KB;
/// Rounds, of which the second half counts: what is learnt is learnt then.
const ROUNDS: usize = 60;
const LENGTHS: [usize; 3] = [32 * KB, 256 * KB, MB];
/// Those of the ring, and of the table that is kept.
const SHORTER: [usize; 2] = [32 * KB, 256 * KB];
/// Rounds of the ring, whose ranks send two messages in each.
const RING_ROUNDS: usize = 60;
/// Rounds of a pattern whose ranks learn against each other, and take longer to know what is best for all.
const LONGER: (usize, usize) = (200, 240);
const CLUSTERS: [&str; 7] =
    ["graphene", "infini", "lioncub", "ne020", "poweredge-ddr", "ndr-2026", "eth-25g"];

/// How often buffers come again, and its name.
pub const CASES: [(Buffers, &str); 2] = [(Buffers::Same, "same"), (Buffers::Fresh, "fresh")];

/// How far the choice is from the best and from the worst.
struct Distance {
    /// In per cent.
    behind: f64,
    /// How many times as fast.
    ahead: f64,
    /// The best one where it is most behind.
    best: &'static str,
}

impl Distance {
    /// The most of both.
    fn most(self, other: &Distance) -> Distance {
        let worse = if self.behind > other.behind { &self } else { other };
        Distance { behind: worse.behind, ahead: self.ahead.max(other.ahead), best: worse.best }
    }
}

/// Adaptive against oracle and worst on the platforms of the papers and today's.
pub fn oracle() -> Result<Study, String> {
    part(&LENGTHS)
}

/// What of it takes little time.
pub fn quick() -> Result<Study, String> {
    part(&SHORTER)
}

fn part(lengths: &[usize]) -> Result<Study, String> {
    let title = "adaptive choice against the best and the worst fixed protocol, after warm-up";
    let mut study = Study { name: "oracle", title, claims: Vec::new(), figures: Vec::new() };
    for name in CLUSTERS {
        let cluster = Cluster::find(name)?;
        for (buffers, words) in CASES {
            ping_pongs(&cluster, buffers, words, lengths, &mut study)?;
        }
    }
    let cluster = Cluster::find("ne020")?;
    for (model, name, _) in EXCHANGES {
        let time = |way: &Variant| iteration_of(&cluster, way, model);
        say(&mut study, format!("ne020, exchange {name}"), &compared(time)?);
    }
    for (pattern, name) in PATTERNS {
        for skew_ns in SKEWS_NS {
            let time = |way: &Variant| run_time(&cluster, way, pattern, skew_ns, SHORT);
            say(&mut study, format!("{name}, {skew_ns} ns apart"), &compared(time)?);
        }
        let skew_ns = SKEWS_NS[SKEWS_NS.len() / 2];
        let time = |way: &Variant| run_time(&cluster, way, pattern, skew_ns, LONGER);
        say(&mut study, format!("{name}, {skew_ns} ns apart, rounds 201 to 240"), &compared(time)?);
    }
    let cluster = Cluster::find("lioncub")?;
    for (buffers, words) in CASES {
        let mut most = Distance { behind: f64::MIN, ahead: 0.0, best: "" };
        for len in SHORTER {
            most = most.most(&compared(|way: &Variant| ring(&cluster, way, len, buffers))?);
        }
        say(&mut study, format!("lioncub, ring of 8 both ways, {words} buffers"), &most);
    }
    Ok(study)
}

/// What is further behind the best than the goal: by how many points more, and why.
const EXCEPTIONS: [(&str, f64, &str); 14] = [
    ("CG-like, 1500 ns apart", 11.5, AGAINST),
    ("CG-like, 5000 ns apart", 22.0, AGAINST),
    ("CG-like, 15000 ns apart", 19.5, AGAINST),
    ("CG-like, 50000 ns apart", 5.0, AGAINST),
    ("CG-like, 5000 ns apart, rounds 201 to 240", 13.0, AGAINST),
    ("BT-like, 1500 ns apart", 6.5, AGAINST),
    ("BT-like, 5000 ns apart", 4.0, AGAINST),
    ("BT-like, 15000 ns apart", 3.0, AGAINST),
    ("BT-like, 50000 ns apart", 4.0, AGAINST),
    ("BT-like, 5000 ns apart, rounds 201 to 240", 0.4, AGAINST),
    ("LU-like, 1500 ns apart", 13.0, AGAINST),
    ("LU-like, 5000 ns apart", 3.5, AGAINST),
    ("LU-like, 15000 ns apart", 10.5, AGAINST),
    ("lioncub, ring of 8 both ways, fresh buffers", 8.5, NOBODYS),
];
const AGAINST: &str = "Ranks that learn against each other: what a protocol takes depends on what the others try at that \
    time, and on whether all are in step.";
const NOBODYS: &str = "Per message the superpipeline and RGET take as long; that registering for one message keeps the \
    processor from the others is nobody's time.";

fn say(study: &mut Study, what: String, distance: &Distance) {
    let claim =
        |what: String, unit, paper, tern| Claim::new("oracle", what, unit, paper, tern).is(Basis::Goal);
    let best = format!("{what}: most behind the best ({})", distance.best);
    let behind = claim(best, "%", Paper::AtMost(5.0), distance.behind);
    let known = EXCEPTIONS.iter().find(|(case, ..)| *case == what);
    study.claims.extend([
        match known {
            Some((_, until, reason)) => behind.except(*until, reason),
            None => behind,
        },
        claim(format!("{what}: most ahead of the worst"), "×", Paper::Silent, distance.ahead),
    ]);
}

/// The choice beside every fixed protocol.
fn compared(time: impl Fn(&Variant) -> Result<f64, String>) -> Result<Distance, String> {
    let chosen = time(&auto())?;
    let times = fixed().iter().map(time).collect::<Result<Vec<f64>, String>>()?;
    let best = (0..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).ok_or("no protocol")?;
    let worst = times.iter().copied().fold(0.0, f64::max);
    let behind = 100.0 * (chosen / times[best] - 1.0);
    Ok(Distance { behind, ahead: worst / chosen, best: fixed()[best].name })
}

fn ping_pongs(
    cluster: &Cluster,
    buffers: Buffers,
    words: &str,
    lengths: &[usize],
    study: &mut Study,
) -> Result<(), String> {
    let mut ways = fixed();
    ways.push(auto());
    let mut curves: Vec<Curve> = ways.iter().map(|way| Curve::new(way.name, [])).collect();
    let (mut most, mut learning) = (Distance { behind: f64::MIN, ahead: 0.0, best: "" }, 0.0f64);
    for &len in lengths {
        let runs = ways.iter().map(|way| lab::ping_pong(cluster, way, len, ROUNDS, buffers));
        let runs = runs.collect::<Result<Vec<_>, String>>()?;
        let settled: Vec<f64> = runs.iter().map(|times| mean(&times[ROUNDS / 2..])).collect();
        let chosen = ways.len() - 1;
        let best = (0..chosen).min_by(|a, b| settled[*a].total_cmp(&settled[*b])).ok_or("no protocol")?;
        let worst = settled[..chosen].iter().copied().fold(0.0, f64::max);
        let behind = 100.0 * (settled[chosen] / settled[best] - 1.0);
        most = most.most(&Distance { behind, ahead: worst / settled[chosen], best: ways[best].name });
        let first = |run: usize| runs[run][..ROUNDS / 2].iter().sum::<f64>();
        learning = learning.max((first(chosen) - first(best)) / settled[best]);
        for (curve, time) in curves.iter_mut().zip(&settled) {
            curve.points.push((len as f64, 100.0 * settled[best] / time));
        }
    }
    let what = format!("{}, ping-pong, {words} buffers", cluster.name);
    say(study, what.clone(), &most);
    let what = format!("{what}: first {} messages cost", ROUNDS / 2);
    study.claims.push(Claim::new("oracle", what, "messages", Paper::Silent, learning));
    let name = format!("oracle-{}-{words}", cluster.name);
    let title = format!("{}, {words} buffers: speed, of the best fixed protocol's", cluster.name);
    study.figures.push(Figure::by_size(&name, title, "%", curves));
    Ok(())
}

/// Every protocol, forced.
pub fn fixed() -> Vec<Variant> {
    Protocol::ALL.iter().map(|(protocol, name)| Variant::forced(name, *protocol, EAGER)).collect()
}

/// The choice.
pub fn auto() -> Variant {
    Variant { name: "choice", setup: Setup::default() }
}

/// Time of an exchange with both neighbours in a ring of 8 hosts, in the second half of the rounds.
fn ring(cluster: &Cluster, way: &Variant, len: usize, buffers: Buffers) -> Result<f64, String> {
    let times = lab::run(&lab::spread(cluster), 8, way, move |rank| {
        lab::acquaint(rank)?;
        let (me, n) = (rank.rank(), rank.size());
        let mut memory = four(rank, len);
        let mut start = 0;
        for round in 0..RING_ROUNDS {
            if buffers == Buffers::Fresh {
                memory = four(rank, len);
            }
            if round == RING_ROUNDS / 2 {
                rank.barrier()?;
                start = rank.now_ns();
            }
            let [left, right] = [(me + n - 1) % n, (me + 1) % n];
            let requests = [
                rank.irecv(memory[0], left as i32, 0)?,
                rank.irecv(memory[1], right as i32, 1)?,
                rank.isend(memory[2], right, 0)?,
                rank.isend(memory[3], left, 1)?,
            ];
            rank.waitall(requests)?;
        }
        Ok((rank.now_ns() - start) as f64)
    })?;
    Ok(times.into_iter().fold(0.0, f64::max))
}

fn four(rank: &mut Rank<'_>, len: usize) -> [Span; 4] {
    [(); 4].map(|()| rank.buffer(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_finds_best_and_worst() {
        let order = |way: &Variant| Protocol::ALL.iter().position(|(_, name)| *name == way.name);
        let distance = compared(|way| Ok(order(way).map_or(2.0, |at| 1.0 + at as f64))).unwrap();
        assert_eq!((distance.behind, distance.ahead, distance.best), (100.0, 3.5, "rget"));
    }
}
