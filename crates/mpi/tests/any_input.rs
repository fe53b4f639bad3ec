//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/mpi.rs"]
mod mpi_decoders;
#[path = "../../../fuzz/decoders/peers.rs"]
mod peer_decoders;
#[path = "../../../fuzz/decoders/types.rs"]
mod types_decoders;

use fabric::settings::Settings;
use mpi::coll::{Agreed, Tariff, agreed, agreement};
use mpi::datatype::{Datatype, Form};
use mpi::error::Class;
use mpi::handle::Handle;
use mpi::win::active::Refused;
use mpi::win::epoch::LockType;
use mpi::win::message::{Record, Told, TypeName, push};
use mpi::win::operation::Verb;

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

#[test]
fn whatever_peers_say_is_read_or_refused() {
    let int = Datatype::of(Handle(0x209)).expect("MPI_INT");
    let vector = Datatype::vector(3, 2, 5, int, Form::Large).unwrap();
    let ty = Datatype::indexed(&[1, 3, 2], &[7, 0, 20], &vector, Form::Large).unwrap().describe();
    let ty: Vec<u8> = ty.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let told = |verb, ty| Record::Operate(Told { verb, reply: 5, disp: -3, count: 9, ty, data: &[7; 13] });
    let mut records = Vec::new();
    push(&mut records, &Record::Lock(LockType::Exclusive, 1 << 29));
    push(&mut records, &told(Verb::Put, TypeName::New(3, &ty)));
    push(&mut records, &told(Verb::Swap, TypeName::Known(3)));
    push(&mut records, &Record::Unlock(7));
    let settings = Settings::read(|_| None, std::iter::empty()).unwrap();
    let all = Agreed { tariff: Tariff::default(), measured: vec![4, 8] };
    let agreement = agreement(&settings, &all);
    assert_eq!(agreed(&agreement, &settings, 1), Ok(all));
    let refused = Refused::encode(Some(Refused { class: Class::RMA_RANGE, disp: 7 }));
    // One word in each byte.
    let small = [0u8, 24, 3, 0, 3, 0, 4, 1, 3, 8, 0, 2, 2, 0, 64, 1];
    let good: &[&[u8]] = &[agreement.as_bytes(), &records, &ty, &refused, &small];
    inputs::try_many(good, 100_000, peer_decoders::decode);
}
