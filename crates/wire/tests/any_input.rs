//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/wire.rs"]
mod wire_decoders;

#[test]
fn any_input_is_read_or_refused() {
    let mut introduction = [8; 40];
    introduction[..2].copy_from_slice(&wire::slot::VERSION.to_le_bytes());
    let good: &[&[u8]] =
        &[&[1, 1, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0], &[2; 32], &[1; 48], &[3; 52], &introduction];
    inputs::try_many(good, 100_000, wire_decoders::decode);
}
