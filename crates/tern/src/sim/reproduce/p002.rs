//! «002», chapter 4: speculative rendezvous, on `ne020`.
//!
//! «Current» is plain RGET, «new» the speculative rendezvous.

mod exchanges;
mod overlap;

use proto::Protocol;
use sim::Cluster;

use crate::sim::figure::Study;
use crate::sim::lab::Way;

pub use exchanges::{CASES, PATTERNS, SHORT, iteration_of, run_time};

/// Messages above go by rendezvous; the platform's limit is 128 KB, which eager frames here do not reach.
const EAGER: usize = 16 << 10;

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

fn current() -> Way {
    Way::forced("current", Protocol::Rget, EAGER)
}

fn new() -> Way {
    Way::forced("new", Protocol::Speculative, EAGER)
}

/// The new protocol without adaptation.
fn stubborn() -> Way {
    let mut way = Way { name: "new, without adaptation", ..new() };
    way.setup.limits.adapt = false;
    way
}
