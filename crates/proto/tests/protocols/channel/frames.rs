//! What a device promises of each frame, and the memory that frames take.

use super::{arrive, connected, look, pair, settings, settle, span, take};
use crate::adapter::{Adapter, Net};
use fabric::{Device, Distance, Fault, Local, Rights, Span, Transfers};
use proto::Event;
use proto::channel::{Channel, Settings};

#[test]
fn a_frame_that_was_shown_is_shown_until_it_is_popped() {
    // The first ones go by Send/Recv, being longer than a slot.
    for (long, all) in [(2, 2), (2, 5), (0, 3)] {
        let (net, mut channels) = connected(&settings());
        for number in 0..all {
            let data = vec![1u8; if number < long { 300 } else { 10 }];
            assert!(channels[0].try_send(1, [7, number], span(&data)));
        }
        arrive(&net);
        for number in 0..all {
            for _ in 0..3 {
                assert_eq!(channels[1].peek(0).map(|frame| frame.head), Some([7, number]));
                assert_eq!(channels[1].source(0), Some(0), "it is still there");
            }
            channels[1].pop(0);
        }
        assert!(channels[1].peek(0).is_none());
        channels[1].source(0);
        assert_eq!(channels[1].source(0), None);
    }
}

#[test]
fn frames_longer_than_a_slot_keep_their_place() {
    let (net, mut channels) = connected(&settings());
    let long = [9u8; 400];
    assert!(channels[0].try_send(1, [1, 0], span(&long[..200])));
    assert!(channels[0].try_send(1, [2, 0], span(&long)));
    assert!(channels[0].try_send(1, [3, 0], span(&long[..3])));
    arrive(&net); // and nobody has looked: the slot is seen before the message
    for (kind, len) in [(1, 200), (2, 400), (3, 3)] {
        assert_eq!(take(&mut channels[1], 0), Some(([kind, 0], long[..len].to_vec())));
    }
    assert_eq!(channels[0].counters().get(Event::CreditsOut), 0);
}

#[test]
fn a_frame_leaves_with_its_next() {
    let (net, mut channels) = connected(&settings());
    let before = net.get().flushes;
    assert!(channels[0].try_send_with_next(1, [1, 0], span(&[1])));
    assert_eq!(net.get().flushes, before);
    assert!(channels[0].try_send(1, [2, 0], span(&[2])));
    assert_eq!(net.get().flushes, before + 1);
    settle(&net, &mut channels);
    for number in [1u8, 2] {
        assert_eq!(take(&mut channels[1], 0), Some(([number.into(), 0], vec![number])));
    }
}

#[test]
fn known_headers_stay_at_home() {
    for (cache_headers, cached) in [(true, 10), (false, 0)] {
        let (net, mut channels) = connected(&Settings { cache_headers, slots: 16, ..settings() });
        let piece = [5u8; 100];
        // The same header five times more, then a stream of six pieces.
        let offsets = (0..6).map(|_| [8, 42]).chain((0..6).map(|k| [9, k * 100]));
        for head in offsets.clone() {
            assert!(channels[0].try_send(1, head, span(&piece)));
        }
        settle(&net, &mut channels);
        for head in offsets {
            assert_eq!(take(&mut channels[1], 0), Some((head, piece.to_vec())));
        }
        assert_eq!(channels[0].counters().get(Event::HeaderCached), cached);
    }
}

#[test]
fn gathered_memory_is_busy_until_its_work_has_ended() {
    let (net, mut channels) = connected(&settings());
    for len in [200, 400] {
        let memory = channels[0].allocate(len);
        let local = channels[0].register(0, memory, Rights::NONE).unwrap().local(memory);
        channels[0].copy(memory.addr, span(&vec![1u8; len]).addr, len);
        assert_eq!(channels[0].try_send_from(1, [7, 7], local, 55), Ok(true));
        assert_eq!(channels[0].completed(), None);
        net.get().advance(0, 1, None);
        assert_eq!(channels[0].completed(), None);
        net.get().finish(0);
        assert_eq!(channels[0].completed(), Some((55, Ok(()))));
        channels[0].copy(memory.addr, span(&vec![2u8; len]).addr, len);
        channels[1].source(0);
        assert_eq!(take(&mut channels[1], 0), Some(([7, 7], vec![1; len])));
    }
    assert_eq!(channels[0].counters().get(Event::ZeroCopy), 2);
    // What the processor hands over with the work is free at once.
    let small = [3u8; 8];
    assert_eq!(channels[0].try_send_from(1, [7, 7], Local { span: span(&small), key: 99 }, 56), Ok(true));
    assert_eq!(channels[0].completed(), Some((56, Ok(()))));
}

#[test]
fn work_of_the_engine_passes_through() {
    let (net, mut channels) = connected(&settings());
    let near = channels[0].allocate(4096);
    let far = channels[1].allocate(4096);
    let local = channels[0].register(0, near, Rights::LOCAL_WRITE).unwrap().local(near);
    let rights = Rights::REMOTE_READ | Rights::REMOTE_WRITE;
    let remote = channels[1].register(0, far, rights).unwrap().remote(far.addr);
    channels[0].store(1, near.addr, 77);
    assert_eq!(channels[0].post_write(1, 0, local, remote, 3), Ok(true));
    settle(&net, &mut channels);
    assert_eq!(channels[1].load(0, far.addr), 77);
    channels[1].store(0, far.addr, 78);
    assert_eq!(channels[0].post_read(1, 0, local, remote, 4), Ok(true));
    settle(&net, &mut channels);
    assert_eq!(channels[0].load(1, near.addr), 78);
    assert_eq!([channels[0].completed(), channels[0].completed()], [Some((3, Ok(()))), Some((4, Ok(())))]);
}

#[test]
fn a_rank_sends_to_itself() {
    let (_net, mut channels) = pair(&settings());
    let mut sent = 0;
    while channels[0].try_send(0, [sent, 0], span(b"me")) {
        sent += 1;
    }
    assert_eq!(channels[0].source(0), Some(0));
    for number in 0..sent {
        assert_eq!(take(&mut channels[0], 0), Some(([number, 0], b"me".to_vec())));
    }
    assert_eq!(channels[0].source(0), None);
}

#[test]
fn ranks_that_never_meet_cost_nothing() {
    let net = Net::shared(4096);
    let mut channel = Channel::new(Adapter::new(0, &net), settings()).unwrap();
    let before = net.get().registered(0);
    assert!(before < 8 * 1024, "{before} bytes");
    let _peer = Channel::new(Adapter::new(4000, &net), settings()).unwrap();
    assert!(channel.try_send(4000, [1, 1], Span::EMPTY));
    assert_eq!(channel.contacts(), 1);
}

#[test]
fn little_under_way_touches_little_memory() {
    let many = Settings { slots: 40, buffers: 40, ..settings() };
    let (net, mut channels) = connected(&many);
    let mut places = std::collections::BTreeSet::new();
    for round in 0..200u64 {
        for (from, to) in [(0, 1), (1, 0)] {
            // Two of three go by Send/Recv, being longer than a slot.
            let data = vec![1; if round % 3 == 0 { 10 } else { 400 }];
            assert!(channels[from].try_send(to, [7, round], span(&data)));
            settle(&net, &mut channels);
            places.extend((to == 1).then(|| channels[to].peek(from).unwrap().data.addr));
            assert_eq!(take(&mut channels[to], from), Some(([7, round], data)));
        }
    }
    assert!(places.len() <= 2 + 5, "{} places for one frame at a time", places.len());
}

#[test]
fn more_buffers_are_posted_when_they_are_needed() {
    let net = Net::shared(9);
    let settings = Settings { slots: 0, buffers: 32, window: 4, ..settings() };
    let mut channels: Vec<_> =
        (0..9).map(|me| Channel::new(Adapter::new(me, &net), settings.clone()).unwrap()).collect();
    // Nobody takes anything: eight peers fill four buffers each.
    let mut sent = [0; 9];
    for _ in 0..100 {
        (1..9).for_each(|from| sent[from] += channels[from].try_send(0, [1, 1], Span::EMPTY) as usize);
        settle(&net, &mut channels);
    }
    // The introduction came first; it was taken, but not half of the window.
    assert_eq!(sent[1..], [3; 8]);
}

#[test]
fn little_memory_that_can_be_registered_is_shared_with_the_application() {
    let net = Net::shared(2);
    net.get().caps.lockable_bytes = 64 * 1024;
    let channel = |me| Channel::new(Adapter::new(me, &net), Settings::default()).unwrap();
    let mut channels = [channel(0), channel(1)];
    let longest = vec![8u8; channels[0].caps(Distance::Network).frame_bytes];
    for number in 0..200u64 {
        assert!(channels[0].try_send(1, [7, number], span(&longest)));
        settle(&net, &mut channels);
        assert_eq!(take(&mut channels[1], 0), Some(([7, number], longest.clone())));
    }
    for rank in 0..2 {
        let registered = net.get().registered(rank);
        assert!(registered <= 32 * 1024, "rank {rank} has registered {registered} bytes for frames");
    }
}

#[test]
fn a_frame_that_is_landing_is_not_taken() {
    let (net, mut channels) = connected(&settings());
    let piece = [7u8; 100];
    assert!(channels[0].try_send(1, [7, 1], span(&piece)));
    for part in [1, 50, 117, 123] {
        net.get().advance(0, 1, Some(part));
        look(&mut channels[1]);
        assert_eq!(take(&mut channels[1], 0), None, "{part} bytes are there");
    }
    net.get().advance(0, 1, None);
    look(&mut channels[1]);
    assert_eq!(take(&mut channels[1], 0), Some(([7, 1], piece.to_vec())));
}

#[test]
fn a_guest_that_has_died_is_told_of_once() {
    let (net, mut channels) = connected(&settings());
    (net.get().guests, net.get().missed) = (vec![1], Some(1));
    for _ in 0..3 {
        assert_eq!(channels[0].check(), Ok(()), "whoever polls is told of it");
    }
    assert_eq!(channels[0].take_lost(), Some((1, Fault::GuestGone(1))));
    assert_eq!(channels[0].check(), Ok(()));
    assert_eq!(channels[0].take_lost(), None);
    let refused = channels[0].try_send_from(1, [1, 0], Local { span: span(&[1]), key: 0 }, 5).unwrap_err();
    assert_eq!(refused.to_string(), "a rank of a joined job has died");
    // A rank of the same job is not to leave: its launcher ends the others.
    net.get().guests.clear();
    assert_eq!(channels[0].check(), Err(Fault::PeerGone(1)));
}
