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
    let good: &[&[u8]] =
        &[CARDS[0].as_bytes(), CARDS[1].as_bytes(), b"none: no port", &[0x12; 40], &[0x31; 20]];
    inputs::try_many(good, 100_000, ibv_decoders::decode);
}
