//! See `decoders/greeting.rs`.
#![no_main]

#[path = "../decoders/greeting.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
