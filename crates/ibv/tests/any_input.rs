//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/ibv.rs"]
mod ibv_decoders;
#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;

const CARDS: &[&str] = &[
    "[fd00::1]:7;eth,2,abababababababababababababababab,3,5,70000,0,1",
    "10.0.0.1:7;ib,4294967295,00000000000000000000ffff0a000001,3,5,7,9,0;eth,256,00000000000000000000ffff0a000001,0,3,7,0,0",
];

#[test]
fn any_card_and_datagram_is_read_or_refused() {
    // Mutations of what is wrong already would try little.
    assert!(CARDS.iter().all(|card| ibv::card::read(card).is_some() && ibv::door(card).is_some()));
    let good: &[&[u8]] = &[
        CARDS[0].as_bytes(),
        CARDS[1].as_bytes(),
        b"none: no port",
        b"mlx5_0:1,mlx5_1:2:3",
        &[0x12; 40],
        &[0x31; 20],
    ];
    inputs::try_many(good, 100_000, ibv_decoders::decode);
}

/// The engine has keys of four adapters; more were taken, and the first long Put over the fifth ended the process.
#[test]
fn more_ports_than_keys_are_refused() {
    ibv_decoders::decode(b"a,b,c,d,e");
    assert!(ibv::listed("a:1,a:2,b:1,b:2").is_ok());
    assert!(ibv::listed("a,b,c,d,e").unwrap_err().contains("5 ports"));
}
