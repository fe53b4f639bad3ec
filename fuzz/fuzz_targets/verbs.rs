//! See `decoders/verbs.rs`.
#![no_main]

#[path = "../decoders/verbs.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
