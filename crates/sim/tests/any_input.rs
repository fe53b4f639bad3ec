//! Any file of a cluster is read or refused: what the fuzz target does, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/cluster.rs"]
mod cluster_decoders;
#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;

#[test]
fn any_file_is_read_or_refused() {
    let good: &[&[u8]] = &[
        include_bytes!("../../../clusters/c1.toml"),
        include_bytes!("../../../clusters/eth-25g.toml"),
        include_bytes!("../../../clusters/infini.toml"),
    ];
    good.iter().for_each(|file| assert!(sim::Cluster::parse("file", &String::from_utf8_lossy(file)).is_ok()));
    // They are long, and the texts of inputs have to be read by a parser of TOML each.
    inputs::try_many(good, 10_000, cluster_decoders::decode);
}
