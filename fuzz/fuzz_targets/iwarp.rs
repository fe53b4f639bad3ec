//! See `decoders/iwarp.rs`.
#![no_main]

#[path = "../decoders/iwarp.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
