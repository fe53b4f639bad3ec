//! See `decoders/rnic.rs`.
#![no_main]

#[path = "../decoders/rnic.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
