//! The registration cache against a slow model, and what it must never do: name pages that are gone.

use crate::adapter::{Adapter, Net, Shared};
use fabric::{Rights, Span};
use proptest::prelude::*;
use proto::channel::{Channel, Settings};
use proto::memory::rcache::{CacheLimits, Held, Rcache};
use proto::{Counters, Event};

const PAGE: usize = 4096;
/// Addresses are only compared: nothing reads there.
const BASE: usize = 1 << 32;
const NO_LIMIT: CacheLimits = CacheLimits { bytes: usize::MAX, regions: usize::MAX };

/// A cache over an adapter of which the channel has taken its part.
struct Bench {
    net: Shared,
    dev: Channel<Adapter>,
    cache: Rcache,
    counters: Counters,
    /// Bytes that the channel has registered.
    own: usize,
}

impl Bench {
    fn new(limits: CacheLimits, lockable: usize, is_watched: bool) -> Bench {
        let net = Net::shared(1);
        net.get().is_watched = is_watched;
        net.get().caps.lockable_bytes = lockable;
        let dev = Channel::new(Adapter::new(0, &net), Settings::default()).unwrap();
        let own = net.get().registered(0);
        Bench { net, dev, cache: Rcache::new(limits), counters: Counters::default(), own }
    }

    fn hold(&mut self, span: Span, keep: bool) -> Option<Held> {
        self.hold_for(span, Rights::NONE, keep)
    }

    fn hold_for(&mut self, span: Span, rights: Rights, keep: bool) -> Option<Held> {
        self.cache.hold(&mut self.dev, &mut self.counters, 0, span, rights, keep).ok()
    }

    fn release(&mut self, held: Held) {
        self.cache.release(&mut self.dev, held);
    }

    fn use_once(&mut self, span: Span) -> Held {
        self.use_for(span, Rights::NONE)
    }

    fn use_for(&mut self, span: Span, rights: Rights) -> Held {
        let held = self.hold_for(span, rights, true).unwrap();
        self.release(held);
        held
    }

    fn registered(&self) -> usize {
        self.net.get().registered(0) - self.own
    }

    fn count(&self, event: Event) -> u64 {
        self.counters.get(event)
    }
}

fn span(page: usize, pages: usize) -> Span {
    Span { addr: BASE + page * PAGE, len: pages * PAGE }
}

#[test]
fn what_lies_inside_a_registration_is_found() {
    let mut b = Bench::new(NO_LIMIT, usize::MAX, true);
    let whole = b.use_once(Span { addr: BASE + 100, len: 3 * PAGE });
    assert_eq!(b.registered(), 4 * PAGE, "whole pages");
    assert_eq!(b.use_once(Span { addr: BASE + 5, len: 10 }), whole);
    assert_eq!(b.use_once(span(1, 3)), whole);
    assert_ne!(b.use_once(span(1, 4)), whole);
    assert_eq!(b.use_once(span(0, 4)), whole, "overlapping registrations are kept side by side");
    assert_eq!((b.count(Event::CacheHit), b.count(Event::CacheMiss)), (3, 2));
    b.use_once(span(0, 5));
    assert_eq!((b.cache.len(), b.registered()), (1, 5 * PAGE), "the larger one takes the place of both");
}

#[test]
fn what_is_in_use_stays_until_its_last_release() {
    let mut b = Bench::new(NO_LIMIT, usize::MAX, true);
    let first = b.hold(span(0, 1), true).unwrap();
    assert_eq!(b.hold(span(0, 1), true), Some(first));
    b.net.get().unmap(0, span(0, 1));
    let second = b.hold(span(0, 1), true).unwrap();
    assert_ne!(second, first, "the old pages are not used again");
    b.release(first);
    assert_eq!(b.cache.len(), 2);
    b.release(first);
    assert_eq!(b.cache.len(), 1);
    b.release(second);
    assert_eq!(b.hold(span(0, 1), true), Some(second));
}

#[test]
fn nothing_outlives_its_use_where_nobody_tells() {
    let mut b = Bench::new(NO_LIMIT, usize::MAX, false);
    let (first, second) = (b.hold(span(0, 4), true).unwrap(), b.hold(span(1, 2), true).unwrap());
    assert_eq!(first, second, "but it is shared while it is used");
    b.release(first);
    assert_eq!(b.registered(), 4 * PAGE);
    b.release(second);
    assert_eq!(b.registered(), 0);
}

#[test]
fn nothing_is_kept_that_need_not_be() {
    for (limits, keep) in [(NO_LIMIT, false), (CacheLimits { bytes: 0, regions: 9 }, true)] {
        let mut b = Bench::new(limits, usize::MAX, true);
        let held = b.hold(Span { addr: BASE + 1, len: 5 }, keep).unwrap();
        assert_eq!(b.registered(), 5);
        b.release(held);
        assert_eq!(b.registered(), 0);
    }
}

#[test]
fn the_least_recently_used_makes_room() {
    let limits = CacheLimits { bytes: 4 * PAGE, regions: 3 };
    let mut b = Bench::new(limits, usize::MAX, true);
    let keys: Vec<Held> = (0..3).map(|k| b.use_once(span(10 * k, 1))).collect();
    assert_eq!(b.use_once(span(0, 1)), keys[0]);
    b.use_once(span(50, 1));
    assert!(
        b.cache.has(0, span(0, 1), Rights::NONE)
            && !b.cache.has(0, span(10, 1), Rights::NONE)
            && b.cache.has(0, span(20, 1), Rights::NONE)
    );
    b.use_once(span(60, 3));
    assert_eq!((b.cache.len(), b.cache.bytes()), (2, 4 * PAGE));
    // What is in use is not touched; what does not fit beside it ends with its use.
    let held = b.hold(span(60, 3), true).unwrap();
    let large = b.hold(span(70, 2), true).unwrap();
    assert_eq!(b.cache.len(), 2);
    b.release(large);
    b.release(held);
    assert_eq!((b.cache.len(), b.cache.bytes()), (1, 3 * PAGE));
}

#[test]
fn an_adapter_that_has_no_more_gets_back_what_is_idle() {
    let mut b = Bench::new(NO_LIMIT, 64 * 1024, true);
    let left = 6; // the channel leaves 3/8
    for k in 0..left {
        b.use_once(span(2 * k, 1));
    }
    assert_eq!(b.registered(), left * PAGE);
    let held = b.hold(span(100, 3), true).unwrap();
    assert_eq!(b.count(Event::CacheEvicted), 3);
    assert_eq!(b.cache.advice(), None);
    assert_eq!(b.hold(span(200, left), true), None);
    assert_eq!((b.cache.len(), b.count(Event::RegistrationRefused)), (1, 1));
    let advice = b.cache.advice().unwrap();
    assert!(advice.contains("can be locked") && advice.contains("ulimit -l"), "{advice}");
    b.release(held);
    assert!(b.hold(span(200, left), true).is_some());
}

const READ: Rights = Rights::REMOTE_READ;
const WRITE: Rights = Rights::REMOTE_WRITE;

/// What is kept is registered for any protocol by which such a buffer may go.
fn kept_for(rights: Rights) -> Rights {
    rights | if rights.include(Rights::LOCAL_WRITE) { WRITE } else { READ }
}

#[test]
fn another_protocol_finds_what_one_has_registered() {
    for (one, another) in [(Rights::NONE, READ), (Rights::LOCAL_WRITE, WRITE)] {
        let mut b = Bench::new(NO_LIMIT, usize::MAX, true);
        let held = b.use_for(span(0, 2), one);
        assert_eq!((b.use_for(span(0, 2), another), b.count(Event::CacheMiss)), (held, 1));
        assert_eq!(b.net.get().rights(0, span(0, 2)), [another]);
        // What ends with its transfer is for that alone.
        let narrow = b.hold_for(span(4, 1), one, false).unwrap();
        assert_eq!(b.net.get().rights(0, span(4, 1)), [one]);
        b.release(narrow);
    }
}

#[test]
fn what_is_sent_and_received_in_turn_is_registered_for_both_and_found() {
    for turns in [[READ, WRITE], [WRITE, READ], [Rights::NONE, WRITE], [Rights::LOCAL_WRITE, READ]] {
        let mut b = Bench::new(NO_LIMIT, usize::MAX, true);
        let first = b.use_for(span(0, 2), turns[0]);
        assert!(
            b.cache.has(0, span(0, 2), turns[0]) && !b.cache.has(0, span(0, 2), turns[1]),
            "no more than that"
        );
        let wide = b.use_for(span(0, 2), turns[1]);
        assert_ne!(wide, first);
        (0..10).for_each(|turn| assert_eq!(b.use_for(span(0, 2), turns[turn % 2]), wide));
        assert_eq!((b.count(Event::CacheMiss), b.count(Event::CacheHit)), (2, 10));
        assert_eq!((b.cache.len(), b.registered()), (1, 2 * PAGE), "the one takes the place of the other");
        assert_eq!(b.net.get().rights(0, span(0, 2)), [kept_for(turns[0]) | kept_for(turns[1])], "{turns:?}");
    }
}

#[test]
fn who_may_be_written_to_can_be_filled() {
    let mut b = Bench::new(NO_LIMIT, usize::MAX, true);
    let held = b.use_for(span(0, 1), WRITE);
    assert_eq!((b.use_for(span(0, 1), Rights::LOCAL_WRITE), b.use_once(span(0, 1))), (held, held));
}

#[test]
fn a_part_that_lacks_something_widens_all_of_it() {
    let mut b = Bench::new(NO_LIMIT, usize::MAX, true);
    b.use_for(span(0, 8), READ);
    let wide = b.use_for(span(3, 1), WRITE);
    assert_eq!((b.cache.len(), b.registered(), b.cache.whole(wide)), (1, 8 * PAGE, span(0, 8)));
    assert_eq!((b.use_for(span(0, 8), READ), b.use_for(span(7, 1), WRITE)), (wide, wide));
    // What is larger has what it was asked for, and is widened when a part comes again.
    b.use_for(span(0, 9), WRITE);
    let whole = b.use_for(span(3, 1), READ);
    assert_eq!((b.use_for(span(0, 9), WRITE), b.cache.len(), b.registered()), (whole, 1, 9 * PAGE));
}

#[test]
fn what_is_in_use_keeps_its_rights_while_another_is_wider() {
    let mut b = Bench::new(NO_LIMIT, usize::MAX, true);
    let sent = b.hold_for(span(0, 1), READ, true).unwrap();
    let other = b.use_for(span(0, 1), WRITE);
    assert_eq!(b.net.get().rights(0, span(0, 1)), [READ, READ | WRITE]);
    assert_eq!(b.use_for(span(0, 1), READ), other);
    b.release(sent);
    assert_eq!((b.cache.len(), b.registered()), (1, PAGE));
    assert_eq!(b.use_for(span(0, 1), READ), other);
}

#[test]
fn what_is_kept_is_kept_when_it_is_widened() {
    let mut b = Bench::new(NO_LIMIT, usize::MAX, true);
    b.use_for(Span { addr: BASE, len: 100 }, READ);
    let wide = b.hold_for(Span { addr: BASE, len: 100 }, WRITE, false).unwrap();
    b.release(wide);
    assert_eq!((b.use_for(span(0, 1), WRITE), b.registered()), (wide, PAGE));
    // And where nothing is, it is shared while it is used.
    let mut b = Bench::new(NO_LIMIT, usize::MAX, false);
    let narrow = b.hold_for(span(0, 1), READ, true).unwrap();
    let wide = b.hold_for(span(0, 1), WRITE, true).unwrap();
    assert_eq!(b.hold_for(span(0, 1), READ, true), Some(wide));
    [narrow, wide, wide].into_iter().for_each(|held| b.release(held));
    assert_eq!(b.registered(), 0);
}

#[test]
fn to_widen_takes_no_more_room() {
    let mut b = Bench::new(NO_LIMIT, 64 * 1024, true);
    b.use_for(span(0, 2), READ);
    b.use_for(span(10, 4), READ); // all that the channel leaves
    b.use_for(span(10, 4), WRITE);
    assert_eq!((b.cache.len(), b.count(Event::CacheEvicted)), (2, 0));
    let limits = CacheLimits { bytes: 4 * PAGE, regions: 1 };
    let mut b = Bench::new(limits, usize::MAX, true);
    b.use_for(span(0, 4), READ);
    b.use_for(span(0, 4), WRITE);
    assert_eq!((b.cache.len(), b.cache.bytes(), b.count(Event::CacheEvicted)), (1, 4 * PAGE, 0));
}

/// One registration of the model.
#[derive(Clone, Debug)]
struct Known {
    held: Held,
    span: Span,
    rights: Rights,
    holders: usize,
    is_found: bool,
    is_kept: bool,
}

#[derive(Clone, Debug)]
enum Call {
    Hold(Span, Rights, bool),
    Release(usize),
    Unmap(Span),
}

fn any_span() -> impl Strategy<Value = Span> {
    (0usize..40 * PAGE, 1usize..12 * PAGE).prop_map(|(at, len)| Span { addr: BASE + at, len })
}

fn any_rights() -> impl Strategy<Value = Rights> {
    prop::sample::select(vec![Rights::NONE, Rights::LOCAL_WRITE, READ, WRITE])
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (any_span(), any_rights(), any::<bool>()).prop_map(|(span, rights, keep)| Call::Hold(span, rights, keep)),
        4 => any::<usize>().prop_map(Call::Release),
        1 => any_span().prop_map(Call::Unmap),
    ]
}

fn overlaps(a: Span, b: Span) -> bool {
    a.addr < b.addr + b.len && b.addr < a.addr + a.len
}

fn contains(a: Span, b: Span) -> bool {
    a.addr <= b.addr && b.addr + b.len <= a.addr + a.len
}

/// What is registered for one that wants this, instead of one that lacks some of it.
fn registered(held: Held, wanted: Span, rights: Rights, keep: bool, narrow: Option<Known>) -> Known {
    let (wanted, rights, keep) = match narrow {
        Some(narrow) => (narrow.span, rights | narrow.rights, keep || narrow.is_kept),
        None => (wanted, rights, keep),
    };
    let addr = wanted.addr / PAGE * PAGE;
    let pages = Span { addr, len: (wanted.addr + wanted.len).next_multiple_of(PAGE) - addr };
    let (span, rights) = if keep { (pages, kept_for(rights)) } else { (wanted, rights) };
    Known { held, span, rights, holders: 1, is_found: true, is_kept: keep }
}

/// A new one takes the place of those inside it if it is kept, and is found then, or if there are none.
fn place(mut new: Known, known: &mut Vec<Known>) {
    let inner = known.iter_mut().filter(|k| k.is_found && contains(new.span, k.span));
    let inner: Vec<&mut Known> = inner.collect();
    new.is_found = new.is_kept || inner.is_empty();
    if new.is_found {
        inner.into_iter().for_each(|k| k.is_found = false);
    }
    known.push(new);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Without limits: every hold finds what a list that is searched from end to end would find, and
    /// what is registered is what that list holds.
    #[test]
    fn it_finds_what_a_list_would(calls in prop::collection::vec(any_call(), 1..120)) {
        let mut b = Bench::new(NO_LIMIT, usize::MAX, true);
        let (mut known, mut in_use): (Vec<Known>, Vec<Held>) = (Vec::new(), Vec::new());
        for call in calls {
            match call {
                Call::Hold(wanted, rights, keep) => {
                    let found = known.iter_mut().filter(|k| k.is_found && contains(k.span, wanted));
                    let found = found.max_by_key(|k| k.span.addr);
                    let held = b.hold_for(wanted, rights, keep).unwrap();
                    in_use.push(held);
                    match found {
                        Some(found) if found.rights.include(rights) => {
                            prop_assert_eq!(found.held, held, "{:?} is registered", wanted);
                            found.holders += 1;
                        }
                        found => {
                            let narrow = found.map(|found| {
                                found.is_found = false;
                                found.clone()
                            });
                            let new = registered(held, wanted, rights, keep, narrow);
                            place(new, &mut known);
                        }
                    }
                }
                Call::Release(which) if !in_use.is_empty() => {
                    let held = in_use.swap_remove(which % in_use.len());
                    b.release(held);
                    known.iter_mut().filter(|k| k.held == held).for_each(|k| k.holders -= 1);
                }
                Call::Release(_) => {}
                Call::Unmap(span) => {
                    b.net.get().unmap(0, span);
                    b.cache.heed(&mut b.dev, &mut b.counters);
                    known.iter_mut().filter(|k| overlaps(k.span, span)).for_each(|k| k.is_found = false);
                }
            }
            known.retain(|k| k.holders > 0 || k.is_found && k.is_kept);
            prop_assert_eq!(b.cache.len(), known.len());
            prop_assert_eq!(b.cache.bytes(), known.iter().map(|k| k.span.len).sum::<usize>());
            prop_assert_eq!(b.registered(), b.cache.bytes());
        }
    }

    /// With limits: they hold for all that is not in use, and nothing is lost.
    #[test]
    fn limits_hold(calls in prop::collection::vec(any_call(), 1..120), pages in 0usize..30, regions in 0usize..6) {
        let limits = CacheLimits { bytes: pages * PAGE, regions };
        let mut b = Bench::new(limits, usize::MAX, true);
        let mut in_use: Vec<Held> = Vec::new();
        for call in calls {
            match call {
                Call::Hold(span, rights, keep) => in_use.push(b.hold_for(span, rights, keep).unwrap()),
                Call::Release(which) if !in_use.is_empty() => {
                    let held = in_use.swap_remove(which % in_use.len());
                    b.release(held);
                }
                Call::Release(_) => {}
                Call::Unmap(span) => b.net.get().unmap(0, span),
            }
            prop_assert_eq!(b.registered(), b.cache.bytes());
            if in_use.is_empty() {
                prop_assert!(b.cache.bytes() <= limits.bytes && b.cache.len() <= limits.regions);
            }
        }
        in_use.into_iter().for_each(|held| b.cache.release(&mut b.dev, held));
        b.cache.clear(&mut b.dev);
        prop_assert_eq!(b.registered(), 0);
    }
}
