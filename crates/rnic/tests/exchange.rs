//! Two connections back to back over a pipe: whatever is posted, and however the stream is cut, bytes
//! arrive, in order, and everything completes once.

mod pair;

use pair::{BASE, DOMAIN, Host, carry, settings, settle};
use proptest::prelude::*;
use rnic::stack::*;

/// A quarter of a host's memory each: what it sends, what peers write to, what it reads into, buffers.
const QUARTER: u64 = 1 << 14;
const OWN: u64 = BASE;
const WRITTEN: u64 = BASE + QUARTER;
const READ: u64 = BASE + 2 * QUARTER;
const BUFFERS: u64 = BASE + 3 * QUARTER;

#[derive(Clone, Debug)]
enum Item {
    Send { len: u32, solicited: bool, invalidate: bool },
    Write { len: u32, immediate: Option<(u64, bool)> },
    Read { len: u32 },
    Atomic { atomic: u8 },
}

#[derive(Clone, Debug)]
struct Plan {
    proposals: [(bool, bool, u16, u16); 2],
    peer_to_peer: bool,
    segment_max: [usize; 2],
    interleave: bool,
    straight: bool,
    late_buffers: bool,
    items: [Vec<Item>; 2],
    /// How many bytes go at a time, and how many FPDUs are cut before, in turn.
    chunks: Vec<(usize, usize)>,
}

fn item() -> impl Strategy<Value = Item> {
    let len = || prop_oneof![2 => 0..40u32, 1 => 0..1500u32];
    prop_oneof![
        (len(), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(len, solicited, invalidate)| Item::Send { len, solicited, invalidate }),
        (len(), any::<Option<(u64, bool)>>()).prop_map(|(len, immediate)| Item::Write { len, immediate }),
        len().prop_map(|len| Item::Read { len }),
        (0..3u8).prop_map(|atomic| Item::Atomic { atomic }),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let proposal = || (any::<bool>(), any::<bool>(), 1..4u16, 1..4u16);
    let max =
        || prop_oneof![Just(SEGMENT_MIN), Just(509), Just(1446), Just(SEGMENT_MAX), SEGMENT_MIN..2000usize];
    let items = || prop::collection::vec(item(), 0..10);
    let chunk = prop_oneof![1..8usize, 1..600usize, 1..9000usize];
    (
        (proposal(), proposal(), any::<[bool; 4]>()),
        (max(), max()),
        (items(), items()),
        prop::collection::vec((chunk, 0..5usize), 1..20),
    )
        .prop_map(
            |((one, other, [peer_to_peer, interleave, straight, late_buffers]), (a, b), (c, d), chunks)| {
                Plan {
                    proposals: [one, other],
                    peer_to_peer,
                    segment_max: [a, b],
                    interleave,
                    straight,
                    late_buffers,
                    items: [c, d],
                    chunks,
                }
            },
        )
}

fn hosts(plan: &Plan) -> [Host; 2] {
    let [one, other] = plan.proposals.map(|(crc, markers, ird, ord)| Proposal {
        crc,
        markers,
        peer_to_peer: plan.peer_to_peer,
        ird,
        ord,
        ..Proposal::default()
    });
    let (mut here, mut there) = settings(&one, &other);
    (here.segment_max, there.segment_max) = (plan.segment_max[0], plan.segment_max[1]);
    (here.interleave, there.interleave) = (plan.interleave, plan.interleave);
    let mut hosts = [Host::new(here), Host::new(there)];
    for (host, salt) in hosts.iter_mut().zip([1u8, 101]) {
        for (at, byte) in host.memory.bytes[..QUARTER as usize].iter_mut().enumerate() {
            *byte = (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8).wrapping_add(salt);
        }
        host.memory.straight = plan.straight;
        host.memory.without = Receive::Later;
    }
    hosts
}

/// Where what is expected lies and what it is.
#[derive(Default)]
struct Expected {
    /// In memory of the side that posts, and in that of the other.
    own: Vec<(u64, Vec<u8>)>,
    other: Vec<(u64, Vec<u8>)>,
    arrivals: Vec<Arrived>,
    done: Vec<Completion>,
}

/// Posts the items of one side: each with memory of its own, so that all can be looked at in the end.
fn post(items: &[Item], host: &mut Host, peer: &mut Host) -> Expected {
    let mut expected = Expected::default();
    let (mut own, mut written, mut read, mut buffer) = (OWN, WRITTEN, READ, BUFFERS);
    let mut words = WRITTEN + QUARTER - 8 * items.len() as u64;
    for (id, item) in items.iter().enumerate() {
        let id = id as u64;
        let (stag, mine) = (peer.stag, host.stag);
        let place = buffer;
        let mut arrives = |len: u32, solicited, invalidated, immediate, peer: &mut Host| {
            expected.arrivals.push(Arrived { id: buffer, len, solicited, invalidated, immediate });
            peer.memory.buffers.push_back((buffer, len as usize));
            buffer += u64::from(len);
        };
        let (work, done) = match *item {
            Item::Send { len, solicited, invalidate } => {
                let invalidate =
                    invalidate.then(|| peer.regions.register(0, 1, Rights::ALL, DOMAIN).unwrap());
                expected.other.push((place, host.memory.at(own, len as usize).to_vec()));
                arrives(len, solicited, invalidate, None, peer);
                (Work::Send { len, solicited, invalidate }, Done::Sent)
            }
            Item::Write { len, immediate } => {
                let to = written;
                written += u64::from(len);
                expected.other.push((to, host.memory.at(own, len as usize).to_vec()));
                if let Some((value, solicited)) = immediate {
                    arrives(0, solicited, None, Some(value), peer);
                }
                (Work::Write { len, stag, to, immediate }, Done::Written)
            }
            Item::Read { len } => {
                let sink_to = read;
                read += u64::from(len);
                expected.own.push((sink_to, peer.memory.at(own, len as usize).to_vec()));
                (Work::Read { len, sink_stag: mine, sink_to, stag, to: own }, Done::Read)
            }
            Item::Atomic { atomic } => {
                let to = words;
                words += 8;
                let old = 0x0101_0101_0101_0101u64 * (id + 1);
                peer.memory.at(to, 8).copy_from_slice(&old.to_ne_bytes());
                let atomic = match atomic {
                    0 => Atomic::FetchAdd { add: 5, mask: 0 },
                    1 => Atomic::Swap { swap: 77, mask: u64::MAX },
                    _ => Atomic::CompareSwap {
                        swap: 9,
                        swap_mask: u64::MAX,
                        compare: old,
                        compare_mask: u64::MAX,
                    },
                };
                expected.other.push((to, atomic.apply(old).to_ne_bytes().to_vec()));
                (Work::Atomic { stag, to, atomic }, Done::Atomic(old))
            }
        };
        assert!(host.post(id, own, work));
        expected.done.push(Completion { id, result: Ok(done) });
        own += match *item {
            Item::Send { len, .. } | Item::Write { len, .. } | Item::Read { len } => u64::from(len),
            Item::Atomic { .. } => 0,
        };
    }
    expected
}

fn check(expected: &Expected, host: &mut Host, peer: &mut Host) -> Result<(), TestCaseError> {
    prop_assert_eq!(&host.done, &expected.done);
    prop_assert_eq!(&peer.memory.arrived, &expected.arrivals);
    for (addr, bytes) in &expected.own {
        prop_assert_eq!(&*host.memory.at(*addr, bytes.len()), &bytes[..]);
    }
    for (addr, bytes) in &expected.other {
        prop_assert_eq!(&*peer.memory.at(*addr, bytes.len()), &bytes[..]);
    }
    for tag in expected.arrivals.iter().filter_map(|arrived| arrived.invalidated) {
        prop_assert_eq!(peer.regions.check(tag, 0, 1, Rights::NONE, DOMAIN), Err(Denied::Stag));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn everything_arrives_and_completes_once(plan in plan()) {
        let [mut one, mut other] = hosts(&plan);
        // Without the peer-to-peer model nothing moves before the side that connects has sent something.
        let mut plan = plan;
        if !plan.peer_to_peer {
            plan.items[0].insert(0, Item::Send { len: 3, solicited: false, invalidate: false });
        }
        let from_one = post(&plan.items[0], &mut one, &mut other);
        let from_other = post(&plan.items[1], &mut other, &mut one);
        let late: [_; 2] = [&mut one, &mut other]
            .map(|host| if plan.late_buffers { std::mem::take(&mut host.memory.buffers) } else { Default::default() });
        for (at, &(bytes, fpdus)) in plan.chunks.iter().cycle().take(300).enumerate() {
            let (from, to) = if at % 2 == 0 { (&mut one, &mut other) } else { (&mut other, &mut one) };
            let _ = (0..fpdus).take_while(|_| from.cut()).count();
            carry(from, to, bytes);
        }
        for (host, late) in [&mut one, &mut other].into_iter().zip(late) {
            host.memory.buffers.extend(late);
            host.feed(&[]);
        }
        settle(&mut one, &mut other);
        prop_assert_eq!((one.connection.failure(), other.connection.failure()), (None, None));
        check(&from_one, &mut one, &mut other)?;
        check(&from_other, &mut other, &mut one)?;
        prop_assert_eq!((one.connection.posted(), other.connection.posted()), (0, 0));
        one.connection.closed();
        prop_assert_eq!(one.connection.failure(), Some(&Failure::Closed));
    }
}

#[test]
fn requests_over_the_limit_wait_and_are_passed() {
    let proposal = Proposal { ird: 1, ord: 1, ..Proposal::default() };
    let (here, there) = settings(&proposal, &proposal);
    let (mut one, mut other) = (Host::new(here), Host::new(there));
    other.memory.buffers.push_back((BUFFERS, 8));
    let stag = other.stag;
    for id in 0..3 {
        let read = Work::Read { len: 4, sink_stag: one.stag, sink_to: READ, stag, to: OWN };
        assert!(one.post(id, OWN, read));
    }
    assert!(one.post(3, OWN, Work::Send { len: 8, solicited: false, invalidate: None }));
    // What opens the stream, one request, the message.
    assert!(one.cut() && one.cut() && one.cut() && !one.cut());
    carry(&mut one, &mut other, usize::MAX);
    assert_eq!((other.memory.arrived.len(), one.done.len()), (1, 0), "the message has passed two requests");
    settle(&mut one, &mut other);
    let ids: Vec<u64> = one.done.iter().map(|done| done.id).collect();
    assert_eq!(ids, [0, 1, 2, 3], "completions in the order of posting");
}

#[test]
fn answers_and_own_work_take_turns() {
    for interleave in [true, false] {
        let (mut here, mut there) = settings(&Proposal::default(), &Proposal::default());
        (here.interleave, there.interleave) = (interleave, interleave);
        let (mut one, mut other) = (Host::new(here), Host::new(there));
        let (mine, theirs) = (one.stag, other.stag);
        assert!(one.post(
            0,
            OWN,
            Work::Read { len: 2000, sink_stag: mine, sink_to: READ, stag: theirs, to: OWN }
        ));
        while one.cut() {}
        carry(&mut one, &mut other, usize::MAX);
        assert!(other.post(0, OWN, Work::Write { len: 2000, stag: mine, to: WRITTEN, immediate: None }));
        let mut opcodes = Vec::new();
        while other.cut() {
            opcodes.push(other.out[3] & 0xf);
            carry(&mut other, &mut one, usize::MAX);
        }
        let changes = opcodes.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, if interleave { opcodes.len() - 1 } else { 1 }, "{opcodes:?}");
        assert_eq!((one.done.len(), other.done.len()), (1, 1));
    }
}

#[test]
fn a_request_that_has_waited_does_not_step_into_a_message() {
    let proposal = Proposal { ird: 1, ord: 1, ..Proposal::default() };
    let (here, there) = settings(&proposal, &proposal);
    let (mut one, mut other) = (Host::new(here), Host::new(there));
    let stag = other.stag;
    let read = Work::Read { len: 4, sink_stag: one.stag, sink_to: READ, stag, to: OWN };
    let write = Work::Write { len: 400, stag, to: WRITTEN, immediate: None };
    assert!(one.post(0, OWN, read) && one.post(1, OWN, read) && one.post(2, OWN, write));
    // What opens the stream, the first request, the first segment of the Write.
    assert!(one.cut() && one.cut() && one.cut());
    carry(&mut one, &mut other, usize::MAX);
    while other.cut() {}
    carry(&mut other, &mut one, usize::MAX);
    assert_eq!(one.done.len(), 1, "the second request may go");
    let mut opcodes = Vec::new();
    while one.cut() {
        opcodes.push(one.out[3] & 0xf);
        carry(&mut one, &mut other, usize::MAX);
    }
    assert_eq!(opcodes, [0, 0, 0, 1]);
}

#[test]
fn a_full_queue_takes_nothing_and_no_requests_go_to_a_peer_that_answers_none() {
    let (here, _) = settings(&Proposal { ord: 0, ..Proposal::default() }, &Proposal::default());
    let mut one = Host::new(Settings { depth: 2, ..here });
    while one.cut() {}
    carry_away(&mut one);
    let read = Work::Read { len: 4, sink_stag: 1, sink_to: 2, stag: 3, to: 4 };
    let send = Work::Send { len: 4, solicited: false, invalidate: None };
    assert!(one.post(1, OWN, read) && one.post(2, OWN, send) && !one.post(3, OWN, send));
    one.poll();
    assert_eq!(one.done, [Completion { id: 1, result: Err(NotDone::NoRequests) }]);
    assert!(one.post(3, OWN, send));
}

fn carry_away(host: &mut Host) {
    let len = host.out.len();
    host.out.clear();
    host.connection.written(len);
    host.poll();
}

#[test]
fn what_is_flushed_completes_once_each() {
    let (here, there) = settings(&Proposal::default(), &Proposal::default());
    let (mut one, mut other) = (Host::new(here), Host::new(there));
    other.memory.buffers.extend([(BUFFERS, 100), (BUFFERS, 100)]);
    let send = Work::Send { len: 100, solicited: false, invalidate: None };
    for id in 0..4 {
        assert!(one.post(id, OWN, send));
    }
    // What opens the stream, a whole message, and a part of the second.
    assert!(one.cut() && one.cut() && one.cut());
    carry(&mut one, &mut other, 20 + 124 + 60);
    assert_eq!((one.done.len(), other.memory.arrived.len()), (1, 1));
    one.connection.closed();
    other.connection.closed();
    assert_eq!(other.connection.failure(), Some(&Failure::Lost));
    assert_eq!((other.connection.unfinished(), other.connection.unfinished()), (Some(BUFFERS), None));
    assert!(one.post(4, OWN, send), "taken, and flushed");
    one.poll();
    let flushed = |id| Completion { id, result: Err(NotDone::Flushed) };
    assert_eq!(one.done[1..], [flushed(1), flushed(2), flushed(3), flushed(4)]);
    assert!(!one.cut());
}
