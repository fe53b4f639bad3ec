//! See `decoders/datagrams.rs`.
#![no_main]

#[path = "../decoders/datagrams.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
