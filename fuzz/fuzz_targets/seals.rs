//! See `decoders/seals.rs`.
#![no_main]

#[path = "../decoders/seals.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
