//! See `decoders/peers.rs`.
#![no_main]

#[path = "../decoders/peers.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
