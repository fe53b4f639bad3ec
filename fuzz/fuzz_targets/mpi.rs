//! See `decoders/mpi.rs`.
#![no_main]

#[path = "../decoders/mpi.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoders::decode(input));
