//! The choice among protocols: margin and dwell, journal. What is chosen on the clusters of the papers is in
//! `crates/sim/tests/choices.rs`.

use fabric::{Costs, Distance, Source};
use proptest::prelude::*;
use proto::choice::choose::{Choices, Key, LONG, POLICY, Seen, choose};
use proto::choice::facts::Facts;
use proto::choice::journal;
use proto::choice::terms::{Message, cost};
use proto::choice::way::Way;

/// Costs of a platform: λ, 1/Bnet, g, registration, deregistration, copy in cache and out of it.
struct Platform(f64, f64, f64, (f64, f64), (f64, f64), f64, f64);

/// Platforms as different as what is to hold on all of them; none of them is a cluster.
const PLATFORMS: [Platform; 4] = [
    // Registration is dear to begin, or by the byte; it is cheap; the wire is faster than copies.
    Platform(1900.0, 0.505, 300.0, (68e3, 0.049), (0.0, 0.0), 0.11, 0.19),
    Platform(4000.0, 1.316, 500.0, (1e3, 0.5), (1e3, 0.25), 0.3, 0.6),
    Platform(1000.0, 0.1, 100.0, (500.0, 0.005), (200.0, 0.001), 0.05, 0.1),
    Platform(800.0, 0.02, 50.0, (20e3, 0.02), (5e3, 0.005), 0.04, 0.08),
];

fn facts(platform: &Platform, keeps: bool) -> Facts {
    let Platform(latency_ns, wire_ns_per_byte, gap_ns, register, deregister, near, far) = *platform;
    let costs = Costs {
        source: Source::Cluster,
        latency_ns,
        wire_ns_per_byte,
        bus_ns_per_byte: 0.0,
        gap_ns,
        post_ns: 250.0,
        read_ns: latency_ns,
        register,
        deregister,
        copy: [(32 << 10, near), (256 << 10, near), (8 << 20, (near + far) / 2.0), (usize::MAX, far)],
        search_ns: 40.0,
        single: (0.0, 0.0),
    };
    super::facts_of(costs, keeps)
}

fn message(len: usize) -> Message {
    Message { len, distance: Distance::Network, reuse: 0.0, rtr: false, late_ns: 0.0, eager: true }
}

fn all_ways() -> [Way; Way::ALL.len()] {
    Way::ALL.map(|(way, _)| way)
}

/// A message that goes by rget in all that follows, and its prediction.
fn predictable() -> (Facts, Message, f64) {
    let (facts, m) = (facts(&PLATFORMS[0], true), Message { reuse: 1.0, eager: false, ..message(1 << 20) });
    let choice = choose(&facts, &m, &Seen::default(), &LONG).unwrap();
    assert_eq!(choice.winner, Way::Rget);
    (facts, m, choice.cost_ns)
}

/// The ways of `count` messages that take `factor` times what was predicted of their way.
fn run(choices: &mut Choices, count: u32, factor: impl Fn(Way) -> f64) -> Vec<Way> {
    let (facts, m, _) = predictable();
    let mut ways = Vec::new();
    for _ in 0..count {
        let (way, predicted_ns) = choices.take(&facts, &m, &LONG).unwrap();
        choices.ended(Key::of(&m), way, predicted_ns, predicted_ns * factor(way));
        ways.push(way);
    }
    ways
}

/// Choices that keep a journal.
fn journalling() -> Choices {
    let mut choices = Choices::default();
    choices.journal.keep();
    choices
}

/// What came into force, the first choice included.
fn decisions(choices: &Choices) -> Vec<journal::Decision> {
    journal::parse("j", &format!("{}\n{}", journal::HEADER, choices.journal.text(3))).unwrap()
}

#[test]
fn a_change_needs_a_margin() {
    let mut choices = journalling();
    let (facts, m, _) = predictable();
    let rival = choose(&facts, &m, &Seen::default(), &LONG).unwrap();
    let slower = 1.0 + rival.margin + POLICY.margin / 2.0;
    run(&mut choices, 400, |way| if way == Way::Rget { slower } else { 1.0 });
    assert_eq!(decisions(&choices).len(), 1, "the rival is ahead by less than the margin");
    let mut choices = journalling();
    let slower = 1.0 + rival.margin + 3.0 * POLICY.margin;
    run(&mut choices, 400, |way| if way == Way::Rget { slower } else { 1.0 });
    let changes = decisions(&choices);
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(changes[1].at > POLICY.dwell && changes[1].way != Way::Rget);
}

/// However wildly times jump, a way stays in force for the dwell.
#[test]
fn a_change_needs_a_dwell() {
    let mut choices = journalling();
    let turn = std::cell::Cell::new(0u32);
    let wild = |_| {
        turn.set(turn.get().wrapping_mul(1664525).wrapping_add(1013904223));
        0.3 + (turn.get() >> 16 & 7) as f64
    };
    choices.journal.keep();
    run(&mut choices, 3000, wild);
    let decisions =
        journal::parse("j", &format!("{}\n{}", journal::HEADER, choices.journal.text(0))).unwrap();
    assert!(decisions.len() > 1, "nothing changed: the test says nothing");
    let steps: Vec<u32> = decisions.windows(2).map(|w| w[1].at - w[0].at).collect();
    assert!(steps.iter().all(|step| *step >= POLICY.dwell), "{steps:?}");
}

/// Messages of a kind by which all ways that may be worth it have been tried.
const SETTLED: usize = 24;

#[test]
fn after_the_first_ones_one_message_in_many_explores() {
    let mut choices = Choices::default();
    let ways = run(&mut choices, 4 * POLICY.tries.0, |_| 1.0);
    assert!(ways[SETTLED / 2..SETTLED].contains(&Way::Rget), "{ways:?}");
    assert_eq!(ways[SETTLED..].iter().filter(|way| **way != Way::Rget).count(), 4, "{ways:?}");
    let mut choices = Choices::default();
    let ways = run(&mut choices, 40 * POLICY.tries.0, |way| if way == Way::Rget { 1.0 } else { 5.0 });
    let explored = ways.iter().filter(|way| **way != Way::Rget).count();
    assert!(explored <= 2 * LONG.len(), "what costs more than twice as much is not tried again: {explored}");
}

/// Where receivers tell no times nothing is tried but now and then, and predictions decide.
#[test]
fn what_nobody_tells_the_time_of_is_predicted() {
    let (mut facts, m, _) = predictable();
    let mut choices = Choices::default();
    let mut ways =
        |facts: &Facts| (0..60).map(|_| choices.take(facts, &m, &LONG).unwrap().0).collect::<Vec<_>>();
    assert!(ways(&facts).iter().all(|way| *way == Way::Rget));
    facts.paths[Distance::Network as usize].read.value = 1e9;
    assert!(!ways(&facts)[30..].contains(&Way::Rget));
}

/// Where the wire is busy every way takes longer than predicted: that is no reason to go round them all.
#[test]
fn a_busy_wire_makes_all_ways_dearer() {
    let mut choices = journalling();
    let ways = run(&mut choices, 400, |_| 3.0);
    assert_eq!(decisions(&choices).len(), 1);
    let tried = ways.iter().filter(|way| **way != Way::Rget).count();
    assert!(tried <= 2 * LONG.len() + 400 / POLICY.tries.0 as usize, "{tried}");
}

/// What was learnt of messages of a length holds for other buffers too.
#[test]
fn what_is_known_from_other_buffers_is_not_tried_again() {
    let (facts, m, _) = predictable();
    let dear = |way| if way == Way::Rget { 1.0 } else { 1.6 };
    let tries = |choices: &mut Choices, m: &Message| {
        let ways = (0..SETTLED).map(|_| {
            let (way, predicted_ns) = choices.take(&facts, m, &LONG).unwrap();
            choices.ended(Key::of(m), way, predicted_ns, predicted_ns * dear(way));
            way
        });
        ways.filter(|way| *way != Way::Rget).count()
    };
    let mut choices = Choices::default();
    assert!(tries(&mut choices, &m) > 0);
    assert_eq!(tries(&mut choices, &Message { reuse: 0.96, ..m }), 0);
}

#[test]
fn a_journal_is_replayed_message_by_message() {
    let mut first = journalling();
    let ways = run(&mut first, 500, |way| if way == Way::Rget { 2.0 } else { 1.0 });
    let decisions = decisions(&first);
    assert!(decisions.len() >= 2, "nothing changed: the test says nothing");

    let mut again = journalling();
    again.journal.replay(3, &decisions);
    let replayed = run(&mut again, 500, |_| 1.0);
    let differs = ways.iter().zip(&replayed).filter(|(a, b)| a != b).count();
    assert!(
        differs <= 2 * LONG.len() + (500 / POLICY.tries.0) as usize,
        "only what was tried differs: {differs}"
    );
    let without_reasons = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split('#').next().unwrap_or_default().to_string()).collect()
    };
    assert_eq!(without_reasons(&again.journal.text(3)), without_reasons(&first.journal.text(3)));

    let mut pinned = Choices::default();
    pinned.journal.replay(3, &journal::last(decisions.clone()));
    let last = decisions.last().unwrap().way;
    assert!(run(&mut pinned, 500, |_| 9.0).iter().all(|way| *way == last));

    let mut other = Choices::default();
    other.journal.replay(4, &decisions);
    assert_eq!(run(&mut other, 1, |_| 1.0), [Way::Rget], "what rank 3 did is not what rank 4 does");
}

#[test]
fn wrong_journals_name_file_and_line() {
    let good = "rank=* at=0 to=network size=64K reuse=new receiver=late rtr=no mode=standard way=rget";
    assert_eq!(journal::parse("j", &format!("{}\n\n# a\n{good} # b\n", journal::HEADER)).unwrap().len(), 1);
    let wrong = |from: &str, to: &str| {
        let text = format!("{}\n# why\n{}\n", journal::HEADER, good.replace(from, to));
        journal::parse("my.journal", &text).unwrap_err()
    };
    for (from, to, part) in [
        ("rank=*", "rank=x", "rank `x` is neither a number nor `*`"),
        ("rank=*", "", "`at=0` stands where `rank=` should"),
        ("at=0", "at=-1", "`-1` is no number of a message"),
        ("to=network", "to=networks", "to `networks` is unknown; the nearest known one is `network`"),
        ("size=64K", "size=65K", "size `65K` is no power of two"),
        ("way=rget", "way=rgett", "way `rgett` is unknown; the nearest known one is `rget`"),
        ("way=rget", "", "`way=` is missing"),
        ("way=rget", "way=rget more", "`more` stands behind the end"),
    ] {
        assert_eq!(wrong(from, to), format!("my.journal:3: {part}"));
    }
    let other = journal::parse("j", "tern-decisions 1\n").unwrap_err();
    assert_eq!(other, "j:1: `tern-decisions 1` is another version; this Tern reads `tern-decisions 2`");
    assert!(journal::parse("j", "").unwrap_err().starts_with("j:1: no journal"));
}

prop_compose! {
    fn any_message()(
        len in 1usize..1 << 26, reuse in 0.0f64..=1.0, rtr: bool, late_ns in 0.0f64..1e6, eager: bool
    ) -> Message {
        Message { len, distance: Distance::Network, reuse, rtr, late_ns, eager }
    }
}

proptest! {
    /// A longer message never costs less by the same way.
    #[test]
    fn costs_grow_with_the_length(m in any_message(), more in 1usize..1 << 24, at in 0usize..4, keeps: bool) {
        let facts = facts(&PLATFORMS[at], keeps);
        for way in all_ways() {
            let longer = Message { len: m.len + more, ..m };
            if let (Some(short), Some(long)) = (cost(way, &facts, &m), cost(way, &facts, &longer)) {
                let (short, long) = (short.total_ns(), long.total_ns());
                prop_assert!(long >= short * 0.999, "{way:?}: {short} for {}, {long} for {}", m.len, longer.len);
            }
        }
    }

    /// A buffer that comes more often never makes a message dearer.
    #[test]
    fn costs_fall_with_reuse(m in any_message(), at in 0usize..4) {
        let facts = facts(&PLATFORMS[at], true);
        for way in all_ways() {
            let often = Message { reuse: 1.0, ..m };
            if let (Some(now), Some(often)) = (cost(way, &facts, &m), cost(way, &facts, &often)) {
                prop_assert!(often.total_ns() <= now.total_ns() + 1e-6, "{way:?}");
            }
        }
    }

    /// Nothing that can take the message is cheaper than the winner, nor the others than the runner-up.
    #[test]
    fn the_winner_is_the_cheapest(
        m in any_message(), at in 0usize..4, keeps: bool,
        seen in proptest::collection::vec((0usize..Way::ALL.len(), 0.2f64..5.0), 0..40),
    ) {
        let facts = facts(&PLATFORMS[at], keeps);
        let mut known = Seen::default();
        seen.iter().for_each(|(way, factor)| known.observe(Way::ALL[*way].0, 1000.0, 1000.0 * factor));
        let choice = choose(&facts, &m, &known, &all_ways()).unwrap();
        let (second, second_ns) = choice.runner_up.unwrap();
        prop_assert!(choice.cost_ns <= second_ns && choice.margin >= 0.0);
        for way in all_ways().into_iter().filter(|way| *way != choice.winner && *way != second) {
            if let Some(cost) = cost(way, &facts, &m) {
                prop_assert!(cost.total_ns() * known.correction(way) >= second_ns);
            }
        }
    }
}

#[test]
fn a_first_message_may_pay_for_what_stays() {
    let mut seen = Seen::default();
    seen.observe(Way::Superpipeline, 1000.0, 9000.0);
    assert_eq!(seen.correction(Way::Superpipeline), 9.0);
    seen.observe(Way::Superpipeline, 1000.0, 1000.0);
    assert_eq!((seen.correction(Way::Superpipeline), seen.count(Way::Superpipeline)), (1.0, 2));
    seen.observe(Way::Rget, 1000.0, 1800.0);
    seen.observe(Way::Rget, 1000.0, 1000.0);
    assert_eq!(seen.correction(Way::Rget), 1.4, "one that took not much longer counts as the others do");
}
