//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/mpi.rs"]
mod mpi_decoders;

#[test]
fn any_input_is_read_or_refused() {
    let good: &[&[u8]] = &[&[9; 40], &[0x0b; 100], &[0x0c; 100]];
    inputs::try_many(good, 100_000, mpi_decoders::decode);
}
