//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/settings.rs"]
mod settings_decoders;

#[test]
fn any_input_is_read_or_refused() {
    let good: &[&[u8]] = &[b"\x0a16K", b"\x0b1", b"\x0dno", b"\x0e4G", b"\x01ring", b"\x0c/dev/shm"];
    inputs::try_many(good, 100_000, settings_decoders::decode);
}
