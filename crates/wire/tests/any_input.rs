//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/iwarp.rs"]
mod iwarp_decoders;
#[path = "../../../fuzz/decoders/wire.rs"]
mod wire_decoders;

use wire::epoch::{Action, OpHead};

#[test]
fn any_input_is_read_or_refused() {
    let mut introduction = [8; 40];
    introduction[..2].copy_from_slice(&wire::slot::VERSION.to_le_bytes());
    let mut packet = [0; wire::packet::HEAD_LEN];
    packet[..2].copy_from_slice(&[wire::packet::VERSION, 2]);
    let put = OpHead { action: Action::Put, token: 7, offset: 1 << 40, len: 5 }.encode();
    let get = OpHead { action: Action::Get, ..OpHead::decode(&put).unwrap() }.encode();
    let good: &[&[u8]] = &[
        &packet,
        &put,
        &get,
        &[1, 1, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0],
        &[2; 32],
        &[1; 48],
        &[3; 52],
        &introduction,
    ];
    inputs::try_many(good, 100_000, wire_decoders::decode);
}

#[test]
fn any_input_of_iwarp_is_read_or_refused() {
    let good: &[&[u8]] = &[
        b"MPA ID Req Frame\x10\x02\x00\x04\x00\x01\x00\x01",
        b"MPA ID Rep Frame\x50\x02\x00\x08\x80\x01\x80\x01name",
        b"\x41\x43\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00",
        b"\xc1\x40\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x10\x00",
        &[0; 28],
        &[0; 52],
        &[2; 12],
        &[0x12, 4, 0xe0, 0, 0, 46, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0],
    ];
    inputs::try_many(good, 100_000, iwarp_decoders::decode);
}
