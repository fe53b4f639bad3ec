//! See `decoders/cluster.rs`.
#![no_main]

#[path = "../decoders/cluster.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
