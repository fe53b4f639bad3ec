//! `tern explain --collective`: which algorithm a collective would take, what each would cost, and why.

use fabric::settings::Settings;
use fabric::{Distance, Source};
use mpi::coll::cost::{Algorithm, algorithms, choose, price, setting};
use mpi::coll::{Collective, Cores, Forced, Problem, Rates, Spread, Tariff};
use proto::choice::explain::table;
use proto::choice::facts::Facts;
use proto::choice::journal::{bytes, time};

/// What is asked.
pub struct Question {
    pub kind: Collective,
    pub bytes: u64,
    pub ranks: usize,
    pub hosts: usize,
    /// Ranks are dealt out to the hosts in turn.
    pub in_turn: bool,
    /// The operation does not commute.
    pub ordered: bool,
}

/// The collective with this MPI name, with or without its prefix.
pub fn named(text: &str) -> Result<Collective, String> {
    let lower = text.to_lowercase();
    let name = lower.strip_prefix("mpi_").unwrap_or(&lower);
    let found = Collective::ALL.into_iter().find(|kind| kind.name().to_lowercase() == name);
    found.ok_or_else(|| {
        let all = Collective::ALL.map(|kind| kind.name().to_lowercase()).join(", ");
        format!("--collective {text}: must be one of {all}")
    })
}

/// What messages cost on a modelled cluster, whose ranks have a core each: those of a host by its adapters, unless they
/// share memory.
pub fn tariff(facts: &Facts, is_shared: bool) -> Tariff {
    let cores = Cores { count: u32::MAX, switch_ns: 0.0, crowding: 0.0, reduce: 1.0 };
    let [host, network] =
        [Distance::Host, Distance::Network].map(|distance| Rates::of(facts, distance, cores));
    Tariff { host: if is_shared { host } else { network }, network, source: Source::Cluster }
}

/// The answer for ranks that are `place`.
pub fn answer(question: &Question, tariff: &Tariff, settings: &Settings, place: &str) -> String {
    let each = question.ranks.div_ceil(question.hosts);
    let host = |rank| if question.in_turn { rank % question.hosts } else { rank / each };
    let spread = Spread::of(question.ranks, |rank| host(rank) as u32);
    let Question { kind, bytes: len, ranks: size, .. } = *question;
    let problem = Problem { size, bytes: len, commutes: !question.ordered, root: 0, spread: &spread };
    let choice = choose(kind, &problem, tariff, Forced::read(settings).get(kind));
    let mut all: Vec<Algorithm> =
        std::iter::once(choice.winner).chain(choice.others().map(|a| a.0)).collect();
    let total = |a: &Algorithm| price(kind, *a, &problem, tariff).total();
    all.sort_by(|a, b| total(a).total_cmp(&total(b)));
    let mut lines =
        vec![["algorithm", "total", "latency", "transfer", "reduction", "copy"].map(String::from).to_vec()];
    let shown = |ns: f64| if ns == 0.0 { "-".into() } else { time(ns) };
    for algorithm in &all {
        let price = price(kind, *algorithm, &problem, tariff);
        let terms = [price.latency_ns, price.transfer_ns, price.reduce_ns, price.copy_ns].map(shown);
        let mut line = vec![algorithm.word().to_string(), time(price.total())];
        line.extend(terms);
        lines.push(line);
    }
    let hosts = if question.hosts == 1 { "1 host".into() } else { format!("{} hosts", question.hosts) };
    let mut text = format!(
        "MPI_{} of {} bytes, {size} ranks on {hosts}, {place}: {}\n\n",
        kind.name(),
        bytes(len),
        choice.winner.word()
    );
    text += &table("", &lines);
    text += &match choice.runner_up {
        _ if choice.forced => {
            format!("\nasked for by {}; {} would be the cheapest\n", setting(kind), all[0].word())
        }
        Some((other, _)) => {
            let ahead = 100.0 * choice.margin_ns / choice.price.total().max(1.0);
            format!("\n{ahead:.0} % ahead of {}\n", other.word())
        }
        None => "\nno other applies\n".into(),
    };
    let missing: Vec<&str> = algorithms(kind).iter().filter(|a| !all.contains(a)).map(|a| a.word()).collect();
    if !missing.is_empty() {
        text += &format!("these do not apply to this case: {}\n", missing.join(", "));
    }
    text
}
