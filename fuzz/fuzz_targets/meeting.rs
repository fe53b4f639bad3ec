//! See `decoders/meeting.rs`.
#![no_main]

#[path = "../decoders/meeting.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
