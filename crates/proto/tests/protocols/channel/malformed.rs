//! A peer that does not keep to the rules.

use super::{connected, pair, settings, settle, span, take};
use crate::adapter::{Adapter, Net};
use fabric::{Device, Fault, Local, Span, Transfers};
use proto::channel::{Channel, Settings};
use wire::slot::VERSION;

/// Rank 1 has found out that rank 0 does not keep to the rules, and will have no more to do with it.
fn broken(channels: &mut [Channel<Adapter>; 2], expected: &str) {
    channels[1].source(0);
    while take(&mut channels[1], 0).is_some() {}
    let fault = channels[1].check();
    let Err(Fault::Device(text)) = &fault else { panic!("{fault:?}, expected {expected}") };
    assert!(text.contains("malformed frame from rank 0") && text.contains(expected), "{text}");
    assert_eq!(channels[1].try_send_from(0, [1, 1], Local::default(), 1), fault.map(|()| true));
    assert!(!channels[1].try_send(0, [1, 1], Span::EMPTY));
}

fn tail(kind: u8, seq: u16, ack: u16, len: u32) -> u64 {
    seq as u64 | (ack as u64) << 16 | (len as u64) << 32 | (kind as u64) << 61
}

fn message(payload: &[u8], words: &[u64]) -> Vec<u8> {
    payload.iter().copied().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
}

#[test]
fn every_malformed_message_is_a_fault_that_names_the_peer() {
    let meet = |words: [u64; 5]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let version = VERSION as u64;
    let good = version | 4 << 16 | 512 << 32;
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "a message of 0 bytes"),
        (vec![1; 7], "a message of 7 bytes"),
        (message(&[], &[tail(7, 0, 0, 0)]), "unknown kind of frame 7"),
        (message(&[], &[tail(2, 0, 0, 0)]), "Same header outside of the slots"),
        (message(&[], &[tail(3, 0, 0, 0)]), "Next header outside of the slots"),
        (message(&[], &[1, 1, tail(1, 0, 0, 5)]), "5 bytes announced in a message of 24"),
        (message(&[], &[1, 1, tail(1, 0, 0, 0)]), "a frame before the introduction"),
        (message(&[], &[1, 1, tail(1, 64, 0, 0)]), "frame number 64"),
        (message(&[], &[1, 1, tail(1, 65535, 0, 0)]), "frame number 65535"),
        (message(&[], &[1, 1, tail(1, 0, 1, 0)]), "1 frames acknowledged of 0 sent"),
        (message(&[0; 8], &[tail(4, 0, 0, 8)]), "an introduction has 40 bytes"),
        (message(&[0; 48], &[tail(4, 0, 0, 48)]), "an introduction has 40 bytes"),
        (message(&meet([9, 0, 0, 0, 0]), &[tail(4, 0, 0, 40)]), "frame format version 9"),
        (message(&[], &[tail(5, 0, 1, 0)]), "1 frames acknowledged of 0 sent"),
        (message(&[0; 8], &[tail(5, 0, 0, 0)]), "0 bytes announced in a message of 16"),
        (message(&meet([good, 4, 0, 0, 0]), &[tail(4, 0, 0, 40)]), "no whole words"),
        (message(&meet([good, 8, 0, 0, 64 << 32 | 49]), &[tail(4, 0, 0, 40)]), "49 slots offered"),
        (
            message(&meet([version | 5 << 16 | 512 << 32, 8, 0, 0, 0]), &[tail(4, 0, 0, 40)]),
            "settings must be the same",
        ),
    ];
    for (bytes, expected) in cases {
        let (net, mut channels) = pair(&Settings { fast_after: 9, ..settings() });
        net.get().receive(0, 1, &bytes);
        broken(&mut channels, expected);
    }
}

#[test]
fn every_malformed_slot_is_a_fault_that_names_the_peer() {
    // So far: the introduction and a frame by Send/Recv; the first slot is still empty.
    let cases: Vec<(u64, &str)> = vec![
        (tail(7, 2, 2, 0), "unknown kind of frame 7"),
        (tail(4, 2, 2, 40), "Meet in a slot"),
        (tail(5, 2, 2, 0), "Credit in a slot"),
        (tail(1, 2, 2, 8 << 23), "the next frame in slot 8 of 8"),
        (tail(1, 2, 2, 233), "233 bytes in a slot of 256"),
        (tail(2, 2, 2, 249), "249 bytes in a slot of 256"),
        (tail(2, 2, 2, 0), "Same refers to a header that was never sent"),
        (tail(3, 2, 2, 0), "Next refers to a header that was never sent"),
        (tail(1, 1, 2, 0), "frame number 1"),
        (tail(1, 2 + 64, 2, 0), "frame number 66"),
        (tail(1, 2, 9, 0), "9 frames acknowledged of 2 sent"),
    ];
    for (word, expected) in cases {
        let (net, mut channels) = connected(&settings());
        let ring = net.get().region(1, 8 * 256);
        net.get().scribble(0, 1, ring.addr as u64 + 256 - 8, &word.to_le_bytes());
        broken(&mut channels, expected);
    }
}

#[test]
fn a_mailbox_that_tells_of_frames_never_sent_is_a_fault() {
    let (net, mut channels) = connected(&settings());
    let page = net.get().region(1, 4096);
    net.get().scribble(0, 1, page.addr as u64, &1000u64.to_le_bytes());
    // It is read when credits run out.
    while channels[1].try_send(0, [1, 1], Span::EMPTY) {}
    broken(&mut channels, "1000 frames acknowledged");
}

#[test]
fn a_broken_peer_does_no_harm_to_the_others() {
    let net = Net::shared(3);
    let channel = |me| Channel::new(Adapter::new(me, &net), settings()).unwrap();
    let mut channels = [channel(0), channel(1), channel(2)];
    for _ in 0..20 {
        net.get().receive(0, 1, &[1, 2, 3]);
        channels[1].source(0);
    }
    for number in 0..20u64 {
        assert!(channels[2].try_send(1, [7, number], span(b"fine")));
        settle(&net, &mut channels);
        assert_eq!(take(&mut channels[1], 2), Some(([7, number], b"fine".to_vec())));
    }
    assert!(channels[1].check().is_err());
}
