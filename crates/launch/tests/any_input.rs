//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/launch.rs"]
mod launch_decoders;

#[test]
fn any_input_is_read_or_refused() {
    let good: &[&[u8]] = &[
        b"cmd=put kvsname=job key=a value=b",
        b"cmd=get kvsname=job key=a",
        b"cmd=barrier_in",
        b"ready pid=7",
        b"end left=3",
        b"idle",
        b"pending rank=0 op=MPI_Recv kind=recv blocking=1 peer=1 world=1 tag=4 comm=w ctx=0 bytes=8 ms=9",
    ];
    inputs::try_many(good, 100_000, launch_decoders::decode);
}
