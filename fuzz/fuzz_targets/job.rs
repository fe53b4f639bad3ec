//! See `decoders/job.rs`.
#![no_main]

#[path = "../decoders/job.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
