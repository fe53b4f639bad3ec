//! Beyond the papers: the adaptive choice against the best protocol per case (the oracle), the worst, and what a
//! library with fixed thresholds does; and which protocol wins where on today's hardware.

use proto::Protocol;
use sim::{Cluster, Setup};

use crate::sim::chart::size;
use crate::sim::figure::{Claim, Curve, Figure, Paper, Study};
use crate::sim::lab::{self, Buffers, Way, mb_s};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;
/// Messages above are long.
const EAGER: usize = 16 * KB;
/// Rounds of a ping-pong, of which the second half counts: what is learnt is learnt then.
const ROUNDS: usize = 60;

const CASES: [(Buffers, &str); 2] = [(Buffers::Same, "same buffers"), (Buffers::Fresh, "fresh buffers")];

/// Adaptive against oracle and worst on the platforms of the papers and today's.
pub fn oracle() -> Result<Study, String> {
    let title = "adaptive choice against the best and the worst fixed protocol, ping-pong after warm-up";
    let mut study = Study { name: "oracle", title, claims: Vec::new(), figures: Vec::new() };
    for name in ["graphene", "infini", "lioncub", "ne020", "poweredge-ddr", "ndr-2026", "eth-25g"] {
        let cluster = Cluster::find(name)?;
        for (buffers, words) in CASES {
            let (mut behind, mut gain) = (f64::MIN, 0.0f64);
            for len in [32 * KB, 256 * KB, 2 * MB] {
                let auto = settled(&cluster, &auto(), len, buffers)?;
                let fixed = Protocol::ALL.iter().map(|(protocol, name)| {
                    settled(&cluster, &Way::forced(name, *protocol, EAGER), len, buffers)
                });
                let fixed = fixed.collect::<Result<Vec<f64>, String>>()?;
                behind =
                    behind.max(100.0 * (auto / fixed.iter().copied().fold(f64::INFINITY, f64::min) - 1.0));
                gain = gain.max(fixed.iter().copied().fold(0.0, f64::max) / auto);
            }
            let what = |what: &str| format!("{name}, {words}, 32 KB to 2 MB: {what}");
            study.claims.extend([
                Claim::new("oracle", what("most behind the best"), "%", Paper::AtMost(5.0), behind),
                Claim::new("oracle", what("most ahead of the worst"), "×", Paper::Silent, gain),
            ]);
        }
    }
    Ok(study)
}

/// Which protocol wins where on today's hardware.
pub fn today() -> Result<Study, String> {
    let title =
        "which protocol wins where on ndr-2026 and eth-25g; the choice against «RGET and cache above 16 KB»";
    let mut study = Study { name: "today", title, claims: Vec::new(), figures: Vec::new() };
    for name in ["ndr-2026", "eth-25g"] {
        let cluster = Cluster::find(name)?;
        for (buffers, words) in CASES {
            today_on(&cluster, buffers, words, &mut study)?;
        }
    }
    Ok(study)
}

fn today_on(cluster: &Cluster, buffers: Buffers, words: &str, study: &mut Study) -> Result<(), String> {
    let lengths = [32 * KB, 128 * KB, 512 * KB, 2 * MB, 4 * MB];
    let curve = |way: &Way| -> Result<Curve, String> {
        let point = |len: &usize| Ok((*len as f64, mb_s(*len, settled(cluster, way, *len, buffers)?)));
        Ok(Curve::new(way.name, lengths.iter().map(point).collect::<Result<Vec<_>, String>>()?))
    };
    let ways = Protocol::ALL.iter().map(|(protocol, name)| Way::forced(name, *protocol, EAGER));
    let mut curves = ways.map(|way| curve(&way)).collect::<Result<Vec<_>, String>>()?;
    let auto = curve(&auto())?;
    for len in lengths {
        let at = |curve: &Curve| curve.at(len as f64);
        let best = curves.iter().max_by(|a, b| at(a).total_cmp(&at(b))).ok_or("there are protocols")?;
        let rget = curves.iter().find(|curve| curve.name == Protocol::Rget.name()).ok_or("rget is one")?;
        let gain = 100.0 * (at(&auto) / at(rget) - 1.0);
        let what = format!(
            "{}, {words}, {}: {} wins; choice against RGET",
            cluster.name,
            size(len as u64),
            best.name
        );
        study.claims.push(Claim::new("today", what, "%", Paper::Silent, gain));
    }
    curves.push(auto);
    let kind = words.split(' ').next().unwrap_or(words);
    let title = format!("{}, {words}", cluster.name);
    study.figures.push(Figure::by_size(&format!("today-{}-{kind}", cluster.name), title, "MB/s", curves));
    Ok(())
}

fn auto() -> Way {
    Way { name: "choice", setup: Setup::default() }
}

/// Mean time of a message in the second half of a ping-pong.
fn settled(cluster: &Cluster, way: &Way, len: usize, buffers: Buffers) -> Result<f64, String> {
    let times = lab::ping_pong(cluster, way, len, ROUNDS, buffers)?;
    Ok(times[ROUNDS / 2..].iter().sum::<f64>() / (ROUNDS / 2) as f64)
}
