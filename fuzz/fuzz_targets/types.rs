//! See `decoders/types.rs`.
#![no_main]

#[path = "../decoders/types.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
