//! See `decoders/settings.rs`.
#![no_main]

#[path = "../decoders/settings.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
