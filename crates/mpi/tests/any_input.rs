//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/mpi.rs"]
mod mpi_decoders;
#[path = "../../../fuzz/decoders/types.rs"]
mod types_decoders;

#[test]
fn any_input_is_read_or_refused() {
    let good: &[&[u8]] = &[&[9; 40], &[0x0b; 100], &[0x0c; 100], b"3 65536 400 250 1500 9000 70000 900000"];
    inputs::try_many(good, 100_000, mpi_decoders::decode);
}

#[test]
fn any_datatype_is_built_or_refused() {
    let good: &[&[u8]] = &[
        &[9, 2, 3, 4, 0, 25, 3, 1, 7, 9, 35, 2, 2, 0xf8, 16, 47, 1, 32, 0, 0, 6, 1, 1, 0, 24],
        b"\x09\x80\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x80\x00\x00\x00\x00\x00\x00\x00\x80\x02",
    ];
    inputs::try_many(good, 100_000, types_decoders::decode);
}
