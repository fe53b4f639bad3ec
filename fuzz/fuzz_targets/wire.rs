//! See `decoders/wire.rs`.
#![no_main]

#[path = "../decoders/wire.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
