//! The decoders survive any input: what the fuzz target does, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/verbs.rs"]
mod verbs_decoders;

#[test]
fn any_private_data_are_read_or_refused() {
    let ends = [&b"TVq\x01"[..], &[1; 16]].concat();
    let answer = [&b"TVu\x01"[..], &[2; 24], b"private"].concat();
    let mapped = [&b"TVu\x01"[..], &[3; 8], &[0; 10], &[0xff; 2], &[10, 0, 0, 1]].concat();
    inputs::try_many(&[&ends, &answer, &mapped, &[5; 40]], 100_000, verbs_decoders::decode);
}
