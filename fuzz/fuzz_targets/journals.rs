//! See `decoders/journals.rs`.
#![no_main]

#[path = "../decoders/journals.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
