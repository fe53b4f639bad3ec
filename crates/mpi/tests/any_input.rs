//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/mpi.rs"]
mod mpi_decoders;
#[path = "../../../fuzz/decoders/peers.rs"]
mod peer_decoders;
#[path = "../../../fuzz/decoders/types.rs"]
mod types_decoders;

use disk::Piece;
use disk::experience::{Advice, Spell};
use disk::phase::{Plan, RoundCosts, Wish};
use disk::round::{self, Said, Turn};
use fabric::settings::Settings;
use mpi::coll::{Agreed, Tariff, agreed, agreement, laid_out};
use mpi::datatype::{Datatype, Form};
use mpi::error::Class;
use mpi::handle::Handle;
use mpi::partitioned::{Hello, Term};
use mpi::topo::dist::{Dist, Edge};
use mpi::win::active::Refused;
use mpi::win::epoch::LockType;
use mpi::win::far::exposed;
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

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// What a rank says that wants these bytes of a file.
fn said(first: u64, end: u64) -> Said {
    Said {
        class: 0,
        wish: Wish { first, end, bytes: end - first, calls: 3, moved: end - first },
        host: 1,
        last: Spell { begun_ns: 5, ended_ns: 9 },
        tariff: RoundCosts { call_ps: 4_000_000, byte_ps: 200, round_ps: 3_000_000, swap_ps: 250 },
        advice: Advice { alone_ps: 70, phases_ps: 0, tries: 4 },
        owners: 2,
        buffer: 8192,
        block: 0,
        phases: None,
        is_atomic: false,
    }
}

const EXPOSED: [u64; 5] = [0x7f00_1000, 96, 7 << 32 | 9, 0, 5 << 32 | 1];

#[test]
fn whatever_ranks_tell_in_words_is_read_or_refused() {
    let hello =
        Hello { channel: 7 << 2 | 3, bytes: 80, partitions: 4, term: Term { together: 2, rounds: 1 } };
    let dist =
        Dist { sources: vec![2, 0], destinations: vec![1, 6], weights: Some([vec![5, 6], vec![7, 1]]) };
    let edges: Vec<u64> = [(2, 5, 1), (4, 2, 9)]
        .into_iter()
        .flat_map(|(from, to, weight)| Edge { from, to, weight }.words())
        .collect();
    assert!(exposed(0, &EXPOSED, 96).is_ok() && Hello::from_words(hello.words()).is_some());
    // An access of two ranks, and what one of them asks for in the first round of the second owner.
    let both = [said(0, 40_000), said(100, 60_000)];
    let (plan, ..) = round::settle(&both, true).unwrap();
    let cut = plan.cut([Piece { offset: 100, len: 50_000 }].into_iter());
    let mut list = Vec::new();
    round::push_pieces(
        &mut list,
        cut.iter()
            .filter(|cut| (cut.owner, cut.round) == (1, 0))
            .map(|cut| cut.piece)
            .collect::<Vec<_>>()
            .into_iter(),
    );
    assert!(Turn { plan: &plan, owner: 1, round: 0 }.asked(&list).is_some_and(|pieces| pieces.len() == 1));
    let access = [&[1], both.map(Said::to_words).as_flattened(), &list].concat();
    let short: Vec<u8> = access.iter().flat_map(|word| [&[0x80][..], &word.to_le_bytes()].concat()).collect();
    let lengths = [0, 3, 0, 1, 0, 4, 0, 200, 1, 0, 0].repeat(8);
    let good = [
        bytes(&EXPOSED),
        bytes(&hello.words()),
        bytes(&dist.to_words()),
        bytes(&edges),
        bytes(&access),
        short,
        lengths,
        dist.to_words().iter().map(|word| *word as u8).collect(),
    ];
    let good: Vec<&[u8]> = good.iter().map(|input| &input[..]).collect();
    good.iter().for_each(|input| peer_decoders::decode(input));
    inputs::try_many(&good, 100_000, peer_decoders::decode);
}

/// A count beyond the list, fewer bytes than a piece has, and pieces that are not this owner's: each ended the process, or had it read and
/// write elsewhere in the file.
#[test]
fn lists_of_an_access_that_no_rank_sends_are_refused() {
    let wish = said(0, 16_384).wish;
    let plan = Plan::new(&[wish, wish], 2, 8192, 0).unwrap();
    let turn = Turn { plan: &plan, owner: 1, round: 0 };
    assert_eq!(turn.asked(&[1, 8192, 16]), Some(vec![Piece { offset: 8192, len: 16 }]));
    assert!(turn.brought(&[1, 8192, 16, 7, 7]).is_some());
    for wrong in [
        &[2, 8192, 16][..],
        &[u64::MAX, 8192, 16],
        &[1 << 63, 8192, 16],
        &[1, 0, 16],
        &[1, 8192, 8193],
        &[1, u64::MAX, 16],
        &[1, 8192, u64::MAX],
        &[1, 8192, 0],
        &[1, 16_384, 1],
    ] {
        assert_eq!((turn.asked(wrong), turn.brought(wrong)), (None, None), "{wrong:?}");
    }
    assert_eq!([&[1, 8192, 16, 7][..], &[1, 8192, 16, 7, 7, 7]].map(|list| turn.brought(list)), [None, None]);
    assert_eq!(turn.asked(&[1, 8192, 16, 7, 7]), None);
    assert_eq!(round::answered(&[9, 1, 2], 9), Some((9, &[1, 2][..])));
    assert_eq!([round::answered(&[17, 1, 2], 20), round::answered(&[9, 1, 2], 8)], [None, None]);
    assert_eq!([round::answered(&[], 8), round::answered(&[u64::MAX], u64::MAX)], [Some((0, &[][..])), None]);
}

/// An end before the beginning, more owners than ranks, and costs that overflow.
#[test]
fn what_no_rank_says_of_an_access_is_refused() {
    let good = said(4096, 70_000);
    assert_eq!(Said::from_words(&good.to_words(), 2), Some(good));
    for (at, word) in [(1, 70_000), (2, 4096), (2, 1 << 63), (16, 3), (19, 3), (19, 1 << 9)] {
        let mut wrong = good.to_words();
        wrong[at] = word;
        assert_eq!(Said::from_words(&wrong, 2), None, "{at}");
    }
    let wish = Wish { bytes: u64::MAX, calls: u64::MAX, moved: u64::MAX, ..good.wish };
    let tariff = RoundCosts { call_ps: u64::MAX, byte_ps: u64::MAX, round_ps: u64::MAX, swap_ps: u64::MAX };
    let advice = Advice { alone_ps: u64::MAX, phases_ps: u64::MAX, tries: u64::MAX };
    let dear = Said { wish, tariff, advice, ..good };
    for writes in [false, true] {
        assert!(round::settle(&[dear, dear], writes).is_some_and(|(_, costs, _)| costs.alone_ps == u64::MAX));
    }
}

/// Edges to no rank, and fewer words than the degrees say.
#[test]
fn edges_that_no_rank_tells_are_refused() {
    for wrong in [&[][..], &[1], &[1, 0], &[u64::MAX, 0, 1], &[0, 1, 7], &[1, 0, 1 << 32], &[0, 1, 2, 3]] {
        assert_eq!(Dist::from_words(wrong, false, 7), None, "{wrong:?}");
    }
    for wrong in [[2 << 32 | 7, 0], [8 << 32 | 2, 0], [1 << 32 | 1, 0], [2 << 32 | 2, 1 << 31]] {
        assert_eq!(Edge::told(&wrong, 2, 7), None, "{wrong:?}");
    }
}

/// Bytes that are no whole partitions would never have come, and an empty message in two billion parts would have filled the memory.
#[test]
fn partitioned_sends_that_nobody_makes_are_refused() {
    let hello = |bytes, partitions, together| [7 << 2 | 3, bytes, partitions, together, 1];
    assert!(
        [hello(80, 4, 2), hello(0, 4, 4), hello(0, 0, 1)].iter().all(|h| Hello::from_words(*h).is_some())
    );
    for wrong in [hello(81, 4, 2), hello(80, 0, 1), hello(0, i32::MAX as u64, 1), hello(80, 4, u64::MAX)] {
        assert_eq!(Hello::from_words(wrong), None, "{wrong:?}");
    }
}

/// Memory that ends behind all addresses, that is longer than the window, and marks that are none.
#[test]
fn memory_that_no_rank_exposes_is_refused() {
    for (at, word) in [(0, u64::MAX), (1, 97), (1, u64::MAX), (4, 5 << 32 | 2), (4, 5 << 32 | 1 << 8)] {
        let mut wrong = EXPOSED;
        wrong[at] = word;
        let error = exposed(3, &wrong, if at == 1 && word == 97 { 96 } else { wrong[1] }).unwrap_err();
        assert!(error.class == Class::INTERN && error.text.contains("rank 3"), "{error}");
    }
}

/// Of a block between ranks of one host, which go straight, its leader copied more bytes than there was room for.
#[test]
fn lengths_inside_of_a_host_are_no_business_of_its_leader() {
    // An Alltoallv, and the words of two members, of which the second says that it sends to the first.
    let mut input = vec![2];
    (0..28u16).for_each(|at| input.extend(if at == 14 + 3 { 152u16 } else { 0 }.to_le_bytes()));
    peer_decoders::decode(&input);
}

/// Lengths that add up to more than there are addresses.
#[test]
fn lists_longer_than_memory_are_refused() {
    assert_eq!(laid_out([3, 0, 5].into_iter()), Ok((vec![3, 0, 5], vec![0, 3, 3])));
    for wrong in [[1, u64::MAX], [1, 1 << 60], [1 << 59, 1 << 59]] {
        assert!(laid_out(wrong.into_iter()).unwrap_err().text.contains("rank 1"), "{wrong:?}");
    }
}
