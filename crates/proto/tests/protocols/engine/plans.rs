//! Properties of every plan of an epoch.

use fabric::{Costs, Distance};
use proptest::prelude::*;
use proto::choice::facts::Facts;
use proto::epoch::cost::Gone;
use proto::epoch::plan::{Item, Kept, Limits, Memory, Plan, Step, of_form, plan};
use proto::epoch::{Action, Bundling, Order, Schedule};

fn facts(scale: f64) -> Facts {
    let base = Costs::default();
    let costs = Costs { latency_ns: base.latency_ns * scale, gap_ns: base.gap_ns / scale, ..base };
    super::facts_of(costs, true)
}

fn item() -> impl Strategy<Value = Item> {
    let len = prop_oneof![1usize..64, 1usize..4096, 1usize..200_000];
    (any::<bool>(), len, 0usize..3).prop_map(|(get, len, memory)| Item {
        action: if get { Action::Get } else { Action::Put },
        len,
        memory: [Memory::Copied, Memory::Registered, Memory::Fresh][memory],
    })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    (0usize..4, 0usize..5).prop_map(|(order, bundling)| Schedule {
        order: Order::ALL.get(order).map(|(order, _)| *order),
        bundling: Bundling::ALL.get(bundling).map(|(bundling, _)| *bundling),
        ..Schedule::CHOICE
    })
}

/// Every byte once; one synchronisation, at the end; no message nor answer longer than allowed.
fn check(items: &[Item], limits: &Limits, plan: &Plan) {
    let mut moved = vec![0; items.len()];
    let mut syncs = 0;
    for (at, step) in plan.steps.iter().enumerate() {
        let is_last = at + 1 == plan.steps.len();
        match step {
            Step::Direct(op) => {
                assert!(limits.direct);
                moved[*op] += items[*op].len;
            }
            Step::Message(parts, sync) => {
                assert!(!parts.is_empty());
                let (mut out, mut into) = (0, 0);
                for part in parts {
                    assert_eq!(part.from, moved[part.op], "parts of an operation come in order");
                    moved[part.op] += part.len;
                    let is_put = items[part.op].action == Action::Put;
                    out += 24 + if is_put { part.len } else { 0 };
                    into += if is_put { 0 } else { 8 + part.len };
                }
                assert!(out <= limits.message_bytes && into <= limits.message_bytes, "{out} {into}");
                assert!(!sync || is_last);
                syncs += usize::from(*sync);
            }
            Step::Sync => {
                assert!(is_last);
                syncs += 1;
            }
        }
    }
    assert!(items.iter().zip(&moved).all(|(item, moved)| item.len == *moved), "{moved:?}");
    assert_eq!(syncs, usize::from(limits.ends));
    assert!(plan.predicted.total_ns().is_finite() && plan.predicted.total_ns() >= 0.0);
}

proptest! {
    #[test]
    fn every_byte_moves_once_and_the_end_is_told_once(
        items in proptest::collection::vec(item(), 0..40),
        schedule in schedule(),
        (direct, ends) in (any::<bool>(), any::<bool>()),
        scale in 0.1f64..10.0,
    ) {
        let limits = Limits { distance: Distance::Network, message_bytes: 4096, direct, ends, meets_once: false, lands: false, alternates: false };
        let plan = plan(&items, &[], &schedule, &limits, &facts(scale));
        check(&items, &limits, &plan);
        prop_assert!(schedule.order.is_none_or(|order| order == plan.form.order));
        prop_assert_eq!(&of_form(&items, &[], &plan.form, &limits, &facts(scale)), &plan);
        if direct && schedule.bundling == Some(Bundling::Never) {
            prop_assert_eq!((plan.bundled, plan.merged), (0, false));
        }
        if direct && schedule.bundling == Some(Bundling::Last) {
            prop_assert!(plan.bundled <= 1);
        }
    }

    /// The choice is never predicted to be worse than what is forced.
    #[test]
    fn the_choice_is_the_best_prediction(
        items in proptest::collection::vec(item(), 1..30),
        forced in schedule(),
        scale in 0.1f64..10.0,
    ) {
        let limits = Limits { distance: Distance::Network, message_bytes: 4096, direct: true, ends: true, meets_once: false, lands: false, alternates: false };
        let facts = facts(scale);
        let free = plan(&items, &[], &Schedule::CHOICE, &limits, &facts).predicted.total_ns();
        let fixed = plan(&items, &[], &forced, &limits, &facts).predicted.total_ns();
        prop_assert!(free <= fixed * (1.0 + 1e-6), "{free} {fixed}");
    }

    /// Gets come first, or in turn with Puts so that neither direction is ahead by more than an operation.
    #[test]
    fn orders_are_what_they_say(items in proptest::collection::vec(item(), 1..40)) {
        let limits = Limits { distance: Distance::Network, message_bytes: 4096, direct: true, ends: true, meets_once: false, lands: false, alternates: false };
        let order = |order| {
            let fixed = Schedule::fixed(order, Bundling::Never, false);
            let steps = plan(&items, &[], &fixed, &limits, &facts(1.0)).steps;
            let op = |step: &Step| if let Step::Direct(op) = step { Some(*op) } else { None };
            steps.iter().filter_map(op).collect::<Vec<usize>>()
        };
        prop_assert!(order(Order::Issue).is_sorted());
        let first = order(Order::GetsFirst);
        prop_assert!(first.is_sorted_by_key(|op| items[*op].action == Action::Put));
        let (mut moved, mut left) = ([0usize; 2], [0usize; 2]);
        items.iter().for_each(|item| left[item.action as usize - 1] += 1);
        let most = items.iter().map(|item| item.len).max().unwrap();
        for op in order(Order::Interleaved) {
            let way = items[op].action as usize - 1;
            moved[way] += items[op].len;
            left[way] -= 1;
            if left[0] > 0 && left[1] > 0 {
                prop_assert!(moved[0].abs_diff(moved[1]) <= most);
            }
        }
    }
}

const LIMITS: Limits = Limits {
    distance: Distance::Network,
    message_bytes: 4096,
    direct: true,
    ends: false,
    meets_once: false,
    lands: false,
    alternates: false,
};

#[test]
fn what_has_left_before_the_end_takes_as_long_as_is_left_of_it() {
    let facts = facts(1.0);
    let get = Item { action: Action::Get, len: 1 << 20, memory: Memory::Registered };
    let schedule = Schedule::CHOICE;
    let planned_ns = plan(&[get], &[], &schedule, &LIMITS, &facts).predicted.total_ns();
    let left_ns = |since_ns| {
        let gone = [Gone { item: get, since_ns, direct: true }];
        plan(&[], &gone, &schedule, &LIMITS, &facts).predicted.total_ns()
    };
    assert!((left_ns(0.0) - planned_ns).abs() < 1.0, "{} {planned_ns}", left_ns(0.0));
    assert!((left_ns(planned_ns / 2.0) - planned_ns / 2.0).abs() < 1.0, "{}", left_ns(planned_ns / 2.0));
    let nothing_ns = plan(&[], &[], &schedule, &LIMITS, &facts).predicted.total_ns();
    assert_eq!(left_ns(10.0 * planned_ns), nothing_ns);
    // What is called behind it waits for the link.
    let gone = [Gone { item: get, since_ns: 0.0, direct: true }];
    let both_ns = plan(&[get], &gone, &schedule, &LIMITS, &facts).predicted.total_ns();
    assert!(both_ns > 1.5 * planned_ns, "{both_ns} {planned_ns}");
}

#[test]
fn a_plan_is_kept_for_epochs_that_are_alike_and_for_no_others() {
    let (mut kept, mut known) = (Kept::default(), facts(1.0));
    let put = |len| Item { action: Action::Put, len, memory: Memory::Copied };
    let mut planned = |items: &[Item], limits: &Limits, facts: &Facts| {
        let got = kept.plan(items.to_vec(), &[], &Schedule::CHOICE, limits, facts);
        check(items, limits, &got);
        let fresh = plan(items, &[], &Schedule::CHOICE, limits, facts);
        (got == fresh, got.steps == fresh.steps)
    };
    let ends = Limits { ends: true, ..LIMITS };
    assert!(planned(&[put(8), put(64)], &ends, &known).0);
    assert!(planned(&[put(8), put(64)], &LIMITS, &known).0, "under other conditions");
    assert!(planned(&[put(8), put(65)], &LIMITS, &known).0, "another length");
    // What becomes known is heeded in the end, not at once.
    known.paths[Distance::Network as usize].latency.value *= 3.0;
    let (is_fresh, goes_alike) = planned(&[put(8), put(65)], &LIMITS, &known);
    assert!(!is_fresh && goes_alike);
    assert!((0..100).any(|_| planned(&[put(8), put(65)], &LIMITS, &known).0));
}
