//! See `decoders/launch.rs`.
#![no_main]

#[path = "../decoders/launch.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
