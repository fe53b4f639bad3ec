//! What the cost model chooses on the clusters of the papers and today's, by length and reuse, before anything was
//! observed.
//!
//! `TERN_UPDATE_SNAPSHOTS=1 cargo test -p sim --test choices` writes the tables anew.

use fabric::{Caps, Distance};
use proto::choice::choose::{Seen, choose};
use proto::choice::facts::Facts;
use proto::choice::journal::bytes;
use proto::choice::terms::Message;
use proto::choice::way::Way;
use sim::Cluster;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/choices.txt");
const CLUSTERS: [&str; 7] =
    ["graphene", "infini", "lioncub", "ne020", "poweredge-ddr", "ndr-2026", "eth-25g"];

/// What a rank knows at the start, from the cluster's file.
fn facts(cluster: &Cluster, keeps: bool) -> Facts {
    let caps = Caps {
        name: "test",
        inline_bytes: cluster.rails[0].inline_bytes,
        frame_bytes: 16 << 10,
        registration: true,
        ..Caps::default()
    };
    let costs = Distance::ALL.map(|(distance, _)| cluster.costs(distance));
    let mut facts = Facts::new(costs, [&caps; 2], cluster.rails.len(), 16 << 10);
    facts.keep(keeps);
    facts
}

fn message(len: usize) -> Message {
    Message { len, distance: Distance::Network, reuse: 0.0, rtr: false, late_ns: 0.0, eager: true }
}

fn winner(facts: &Facts, message: &Message) -> String {
    let choice = choose(facts, message, &Seen::default(), &Way::ALL.map(|(way, _)| way)).unwrap();
    let margin = 100.0 * choice.margin.min(9.99);
    format!("{:<22}", format!("{} +{margin:.0}%", choice.winner.name()))
}

/// What is chosen, and by how much the runner-up is dearer.
fn tables() -> String {
    let mut text = String::from("# Written by `TERN_UPDATE_SNAPSHOTS=1 cargo test -p sim --test choices`.\n");
    for name in CLUSTERS {
        let cluster = Cluster::find(name).unwrap();
        text += &format!("\n{name}\n");
        let columns = [
            "new buffer",
            "half registered",
            "registered",
            "RTR, registered",
            "new, late 1 ms",
            "nothing kept",
        ];
        let cells: String = columns.iter().map(|name| format!("{name:<22}")).collect();
        text += format!("{:>8}  {cells}", "bytes").trim_end();
        for size in 7..=24 {
            let m = message(1 << size);
            let keeps = facts(&cluster, true);
            let cells = [
                winner(&keeps, &m),
                winner(&keeps, &Message { reuse: 0.5, ..m }),
                winner(&keeps, &Message { reuse: 1.0, ..m }),
                winner(&keeps, &Message { reuse: 1.0, rtr: true, ..m }),
                winner(&keeps, &Message { late_ns: 1e6, ..m }),
                winner(&facts(&cluster, false), &m),
            ];
            text += &format!("\n{:>8}  {}", bytes(1 << size), cells.concat().trim_end());
        }
        text.push('\n');
    }
    text
}

#[test]
fn tables_of_choices() {
    let text = tables();
    if std::env::var_os("TERN_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(SNAPSHOT, &text).unwrap();
    }
    let known = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    let differs = text.lines().zip(known.lines()).find(|(new, old)| new != old);
    assert!(text == known, "choices differ: {differs:?}; TERN_UPDATE_SNAPSHOTS=1 writes them anew");
}
