//! Which path a frame takes, and the credits of both.

use super::{arrive, connected, look, pair, settings, settle, span, take};
use crate::adapter::{Adapter, Net};
use fabric::{Device, Rank, Rights, Span, Transfers};
use proto::Event;
use proto::channel::{Channel, Settings};

#[test]
fn the_first_frames_introduce_and_then_slots_are_used() {
    let (net, mut channels) = pair(&Settings { fast_after: 3, ..settings() });
    for number in 0..6u64 {
        assert!(channels[0].try_send(1, [7, number], span(b"hello")));
        settle(&net, &mut channels);
        assert_eq!(take(&mut channels[1], 0), Some(([7, number], b"hello".to_vec())));
        settle(&net, &mut channels);
    }
    let counters = channels[0].counters();
    assert_eq!((counters.get(Event::SendRecvPath), counters.get(Event::FastPath)), (3, 3));
    assert_eq!(channels[1].counters().get(Event::SlotsGiven), 1);
    assert_eq!(channels[0].counters().get(Event::SlotsGiven), 0, "rank 1 has sent nothing");
}

#[test]
fn an_introduction_without_a_buffer_does_not_hold_credits_back() {
    let (net, mut channels) = pair(&Settings { fast_after: settings().window as u32, ..settings() });
    let fill = |channel: &mut Channel<Adapter>, to| {
        (0..).take_while(|n| channel.try_send(to, [7, *n], Span::EMPTY)).count()
    };
    let mut passed = 0;
    for _ in 0..4 {
        // Both fill all buffers of the other, in which the offers of slots would travel.
        let sent = [fill(&mut channels[0], 1), fill(&mut channels[1], 0)];
        passed += sent[0];
        settle(&net, &mut channels);
        for (from, to) in [(0, 1), (1, 0)] {
            assert_eq!((0..).take_while(|_| take(&mut channels[to], from).is_some()).count(), sent[from]);
        }
        settle(&net, &mut channels);
    }
    assert!(passed > 2 * settings().window, "{passed} frames and then none");
}

#[test]
fn without_a_budget_there_are_no_slots() {
    let settings = [
        Settings { fast_peers: 0, ..settings() },
        Settings { fast_bytes: 100, ..settings() },
        Settings { slots: 0, ..settings() },
    ];
    for settings in settings {
        let (net, mut channels) = connected(&settings);
        for _ in 0..20 {
            assert!(channels[0].try_send(1, [7, 7], span(b"hello")));
            settle(&net, &mut channels);
            assert!(take(&mut channels[1], 0).is_some());
        }
        assert_eq!(channels[0].counters().get(Event::FastPath), 0);
    }
}

#[test]
fn when_credits_run_out_send_recv_takes_over_and_then_the_sender_waits() {
    let (net, mut channels) = connected(&settings());
    let sent =
        |channels: &mut [Channel<Adapter>; 2], number| channels[0].try_send(1, [7, number], Span::EMPTY);
    let before = [Event::FastPath, Event::SendRecvPath].map(|event| channels[0].counters().get(event));
    let mut number = 0;
    while sent(&mut channels, number) {
        number += 1;
        settle(&net, &mut channels);
    }
    let counters = channels[0].counters();
    let paths = [Event::FastPath, Event::SendRecvPath].map(|event| counters.get(event));
    assert_eq!(paths[0] - before[0], 7, "all slots are full but the one kept for the next");
    // The introduction of rank 0 and its first frame have not been acknowledged yet.
    assert_eq!(paths[1] - before[1], number - 7);
    assert!((1..=4).contains(&(number - 7)));
    for expected in 0..number {
        assert_eq!(take(&mut channels[1], 0), Some(([7, expected], vec![])), "in order over both paths");
    }
    // Nothing goes the other way: the credits must come by themselves.
    settle(&net, &mut channels);
    assert!(channels[1].counters().get(Event::CreditsWritten) > 0);
    let fast = channels[0].counters().get(Event::FastPath);
    assert!(sent(&mut channels, number));
    assert_eq!(channels[0].counters().get(Event::FastPath), fast + 1);
}

/// Each question to the adapter ends a burst of frames that leave together.
#[test]
fn a_frame_behind_full_slots_asks_the_adapter_nothing_while_there_is_room() {
    let (net, mut channels) = connected(&settings());
    let passed = |channels: &[Channel<Adapter>; 2]| channels[0].counters().get(Event::SendRecvPath);
    let (before, mut number) = (passed(&channels), 0);
    let polls = net.get().polls;
    while passed(&channels) == before {
        assert!(channels[0].try_send(1, [7, number], Span::EMPTY));
        number += 1;
    }
    assert_eq!((number, net.get().polls), (8, polls), "seven slots, and one buffer");
    while channels[0].try_send(1, [7, number], Span::EMPTY) {
        number += 1;
    }
    assert!(net.get().polls > polls, "credits of a peer that takes nothing");
}

#[test]
fn credits_ride_on_frames_of_the_other_direction() {
    let (net, mut channels) = connected(&settings());
    for round in 0..100u64 {
        for (from, to) in [(0, 1), (1, 0)] {
            assert!(channels[from].try_send(to, [7, round], Span::EMPTY));
            settle(&net, &mut channels);
            assert_eq!(take(&mut channels[to], from), Some(([7, round], vec![])));
        }
    }
    for channel in &channels {
        assert!(channel.counters().get(Event::FastPath) >= 100);
        assert_eq!(channel.counters().get(Event::CreditsWritten), 0);
    }
}

#[test]
fn credits_are_read_from_frames_that_nobody_has_taken() {
    let (net, mut channels) = connected(&settings());
    let send = |channels: &mut [Channel<Adapter>; 2], from: Rank, kind| {
        assert!(channels[from].try_send(1 - from, [kind, 0], Span::EMPTY));
    };
    // Rank 0 leaves this one where it is: what follows it cannot be taken.
    send(&mut channels, 1, 8);
    (0..7).for_each(|_| send(&mut channels, 0, 7));
    settle(&net, &mut channels);
    (0..3).for_each(|_| assert!(take(&mut channels[1], 0).is_some()));
    send(&mut channels, 1, 9);
    settle(&net, &mut channels);
    assert_eq!(channels[1].counters().get(Event::CreditsWritten), 0);
    let fast = channels[0].counters().get(Event::FastPath);
    (0..3).for_each(|_| send(&mut channels, 0, 7));
    assert_eq!(channels[0].counters().get(Event::FastPath), fast + 3);
    settle(&net, &mut channels);
    assert_eq!(
        [take(&mut channels[0], 1), take(&mut channels[0], 1)].map(|f| f.map(|f| f.0[0])),
        [Some(8), Some(9)]
    );
}

#[test]
fn credits_that_could_not_be_posted_are_owed() {
    let net = Net::shared(2);
    net.get().caps.depth = 3;
    let channel = |me| Channel::new(Adapter::new(me, &net), settings()).unwrap();
    let mut channels = [channel(0), channel(1)];
    for (from, to) in [(0, 1), (1, 0)] {
        assert!(channels[from].try_send(to, [1, 1], Span::EMPTY));
        settle(&net, &mut channels);
        assert!(take(&mut channels[to], from).is_some());
    }
    settle(&net, &mut channels);
    for _ in 0..4 {
        assert!(channels[0].try_send(1, [7, 7], Span::EMPTY));
        settle(&net, &mut channels);
    }
    // The queue of rank 1 is full with other work while it takes the frames.
    let near = channels[1].allocate(8);
    let near = channels[1].register(0, near, Rights::NONE).unwrap().local(near);
    let far = channels[0].allocate(8);
    let remote = channels[0].register(0, far, Rights::REMOTE_WRITE).unwrap().remote(far.addr);
    let mut work = 0;
    while channels[1].post_write(0, 0, near, remote, work).unwrap() {
        work += 1;
    }
    while take(&mut channels[1], 0).is_some() {}
    assert_eq!(channels[1].counters().get(Event::CreditsWritten), 0);
    settle(&net, &mut channels);
    assert_eq!(channels[1].counters().get(Event::CreditsWritten), 1);
}

#[test]
fn a_rank_that_only_sends_finds_out_that_it_has_slots() {
    let (net, mut channels) = pair(&Settings { fast_after: 2, ..settings() });
    for number in 0..40u64 {
        assert!(channels[0].try_send(1, [7, number], Span::EMPTY));
        arrive(&net);
        look(&mut channels[1]);
        assert_eq!(take(&mut channels[1], 0), Some(([7, number], vec![])));
        arrive(&net);
    }
    assert!(channels[0].counters().get(Event::FastPath) > 20);
}

/// However many short frames came before, a long one leaves once these are taken, though the peer says nothing of its own: and no more
/// of them are under way than their window.
#[test]
fn long_frames_have_a_window_of_their_own_and_wait_behind_no_short_ones_for_ever() {
    let wide = Settings { slots: 0, window: 64, buffers: 64, frame_bytes: 64 << 10, ..settings() };
    let long = vec![5u8; 32 << 10];
    for short in 0..=40u64 {
        let (net, mut channels) = connected(&wide);
        // A queue that is full for a moment is none of the windows.
        let send = |channels: &mut [Channel<Adapter>; 2], head, data| {
            channels[0].try_send(1, head, data) || {
                settle(&net, channels);
                channels[0].try_send(1, head, data)
            }
        };
        for number in 0..short {
            assert!(send(&mut channels, [1, number], Span::EMPTY));
        }
        settle(&net, &mut channels);
        while take(&mut channels[1], 0).is_some() {}
        settle(&net, &mut channels);
        let mut under_way = 0;
        while send(&mut channels, [2, under_way], span(&long)) {
            under_way += 1;
        }
        assert!((1..=16).contains(&under_way), "{under_way} long frames behind {short} short ones");
        settle(&net, &mut channels);
        for number in 0..under_way {
            assert_eq!(take(&mut channels[1], 0).map(|frame| frame.0), Some([2, number]));
        }
    }
}
