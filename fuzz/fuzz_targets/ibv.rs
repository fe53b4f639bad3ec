//! See `decoders/ibv.rs`.
#![no_main]

#[path = "../decoders/ibv.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
