//! See `decoders/reliable.rs`.
#![no_main]

#[path = "../decoders/reliable.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
