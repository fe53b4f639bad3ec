//! «002», chapter 4: speculative rendezvous, on `ne020`.
//!
//! «Current» is plain RGET, «new» the speculative rendezvous.

mod exchanges;
mod overlap;

use proto::Protocol;
use proto::channel::Settings;
use sim::Cluster;

use crate::sim::figure::Study;
use crate::sim::lab::Variant;

pub use exchanges::{CASES, PATTERNS, SHORT, SKEWS_NS, iteration_of, run_time};

/// «Rendezvous for messages larger than 128KB» (section 4.3), their header included: the exchanges of section 4.4.1, of
/// 128 KB, go by rendezvous.
const EAGER: usize = (128 << 10) - 64;

/// Runs it.
pub fn study() -> Result<Study, String> {
    let cluster = Cluster::find("ne020")?;
    let title = "chapter 4: speculative rendezvous, cluster ne020";
    let mut study = Study { name: "002", title, claims: Vec::new(), figures: Vec::new() };
    overlap::overlap(&cluster, &mut study)?;
    overlap::progress(&cluster, &mut study)?;
    exchanges::models(&cluster, &mut study)?;
    exchanges::applications(&cluster, &mut study)?;
    exchanges::crossing(&cluster, &mut study)?;
    Ok(study)
}

/// All messages above the limit by one protocol, in frames that reach it.
fn forced(name: &'static str, protocol: Protocol) -> Variant {
    let mut way = Variant::forced(name, protocol, EAGER);
    way.setup.channel.frame_bytes = EAGER;
    let usual = Settings::default();
    way.setup.channel.slot_bytes = EAGER + usual.slot_bytes - usual.frame_bytes;
    way
}

fn current() -> Variant {
    forced("current", Protocol::Rget)
}

fn new() -> Variant {
    forced("new", Protocol::Speculative)
}

/// The new protocol without adaptation.
fn stubborn() -> Variant {
    let mut way = Variant { name: "new, without adaptation", ..new() };
    way.setup.limits.adapt = false;
    way
}
