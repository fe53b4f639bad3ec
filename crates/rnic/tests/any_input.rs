//! A connection survives any stream: what the fuzz target does, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/greeting.rs"]
mod greeting_decoders;
#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
mod pair;
#[path = "../../../fuzz/decoders/seals.rs"]
mod seal_decoders;
#[path = "../../../fuzz/decoders/rnic.rs"]
mod stack_decoders;

use pair::raw::{tagged, untagged};
use rnic::stack::{Proposal, Side, Start};
use wire::iwarp::ddp::queue;
use wire::iwarp::rdmap::{Atomic, AtomicRequest, AtomicResponse, Opcode, ReadRequest};

/// The tag that the connection of the target gives its region.
const STAG: u32 = 0x101;

#[test]
fn any_input_is_taken_or_refused() {
    let read = ReadRequest { sink_stag: 5, sink_to: 6, len: 300, source_stag: STAG, source_to: 0x1000 };
    let add = Some(Atomic::FetchAdd { add: 1, mask: 0 });
    let atomic = AtomicRequest { id: 9, stag: STAG, to: 0x1008, atomic: add };
    let answer = AtomicResponse { id: 1, original: 4 };
    let pieces = [
        untagged(Opcode::Send, false, 0, 1, 0, &[1; 33]),
        tagged(Opcode::Write, true, STAG, 0x1010, &[2; 66]),
        untagged(Opcode::Send, true, 0, 1, 33, &[3; 40]),
        untagged(Opcode::ReadRequest, true, queue::REQUEST, 1, 0, &read.encode()),
        untagged(Opcode::AtomicRequest, true, queue::REQUEST, 2, 0, &atomic.encode()),
        tagged(Opcode::ReadResponse, false, STAG, 0x1000, &[4; 120]),
        tagged(Opcode::ReadResponse, true, STAG, 0x1078, &[5; 80]),
        untagged(Opcode::AtomicResponse, true, queue::ATOMIC_RESPONSE, 1, 0, &answer.encode()),
        untagged(Opcode::ImmediateSolicited, true, 0, 2, 0, &[6; 8]),
        untagged(Opcode::Terminate, true, queue::TERMINATE, 1, 0, &[0x01, 0x02, 0, 0]),
    ];
    let stream = pieces.concat();
    let mut good = Vec::new();
    for (flags, chunk) in [(0x08, 255), (0x09, 1), (0x00, 40), (0x29, 100)] {
        good.push([&[flags, chunk][..], &stream].concat());
        good.extend(pieces.iter().map(|piece| [&[flags, chunk][..], piece].concat()));
    }
    // Both sides of a set-up, of either revision.
    for flags in [0x3e, 0x3d, 0x0a, 0x31] {
        let side = |len| Proposal {
            revision: if flags & 4 != 0 { 2 } else { 1 },
            crc: flags & 1 != 0,
            markers: flags & 2 != 0,
            peer_to_peer: flags & 8 != 0,
            ird: 2,
            ord: 2,
            private: vec![7; len],
        };
        let request = side(9).request();
        let (start, _) = Start::decode(Side::Request, &request).unwrap().unwrap();
        let (reply, _) = side(0).reply(&start, &[8; 5]);
        let refusal = Proposal::reject(&start, b"no");
        good.push([&[flags | 0x80, 255][..], &request, &stream].concat());
        good.push([&[flags | 0x40, 255][..], &reply, &stream].concat());
        good.extend([[&[flags | 0x80, 9][..], &request].concat(), [&[flags | 0x40, 9][..], &reply].concat()]);
        good.push([&[flags | 0x40, 1][..], &refusal].concat());
    }
    let good: Vec<&[u8]> = good.iter().map(|input| &input[..]).collect();
    good.iter().for_each(|input| stack_decoders::decode(input));
    inputs::try_many(&good, 100_000, stack_decoders::decode);
}

#[test]
fn any_greeting_is_taken_or_refused() {
    let port = [&b"tern-port:"[..], &[b'1'; 120]].concat();
    let good: &[&[u8]] =
        &[&[0x12; 53], &[0x31; 48], &[5; 91], &[0x80; 160], &[0xff; 7 * 16 + 40], &port, &[b'e'; 120]];
    inputs::try_many(good, 100_000, greeting_decoders::decode);
}

#[test]
fn any_message_is_opened_once_or_not_at_all() {
    let good: &[&[u8]] = &[
        &[1, 0, 2, 0, 3, 1, 0, 1, 0x20, 0, 0, 3, 0, 2, 0, 2],
        &[3, 9, 255, 0, 0x40, 0, 0x40, 127, 0x40, 128, 0x40, 129, 0, 200],
        &[0x62, 0, 0x22, 0, 2, 0, 2, 0, 0x43, 0],
    ];
    inputs::try_many(good, 4_000, seal_decoders::decode);
}
