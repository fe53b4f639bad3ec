//! What ranks say to each other above messages: what rank 0 lets all go by, records to the target of a window, datatypes that are told,
//! memory that is exposed, partitioned sends, edges of graphs, lengths that leaders learn, and accesses of a file by all.

use std::sync::LazyLock;

use disk::round::{self, Room, Said, Turn};
use fabric::settings::Settings;
use mpi::coll::program::{Base, Buf, Program, Step};
use mpi::coll::{
    Algorithm, Call, Collective, Forced, Ints, Side, Spread, Tariff, Type, agreed, agreement, compile,
    laid_out,
};
use mpi::datatype::Datatype;
use mpi::partitioned::Hello;
use mpi::topo::dist::{Dist, Edge};
use mpi::win::active::Refused;
use mpi::win::far::{self, exposed};
use mpi::win::message::{Record, TypeName, push, split};

static SETTINGS: LazyLock<Settings> =
    LazyLock::new(|| Settings::read(|_| None, std::iter::empty()).expect("all have defaults"));

/// The input as each of them.
pub fn decode(input: &[u8]) {
    read_agreement(&String::from_utf8_lossy(input));
    read_records(input);
    let words: Vec<u64> = input.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    // Small numbers, one in each byte.
    let small: Vec<u64> = input.iter().map(|byte| u64::from(*byte)).collect();
    for words in [&words, &small, &numbers(input)] {
        read_type(words);
        read_exposed(words);
        read_hello(words);
        read_edges(words);
        read_lists(words);
        read_access(words);
    }
    read_lengths(input);
    if let Some(bytes) = input.first_chunk()
        && let Some(refused) = Refused::decode(bytes)
    {
        assert_eq!(Refused::decode(&Refused::encode(Some(refused))), Some(refused));
    }
}

fn read_agreement(text: &str) {
    if let Ok(all) = agreed(text, &SETTINGS, 1) {
        assert_eq!(agreed(&agreement(&SETTINGS, &all), &SETTINGS, 1), Ok(all));
    }
}

fn read_records(input: &[u8]) {
    let mut rest = input;
    while let Ok((record, further)) = split(rest) {
        assert!(further.len() < rest.len());
        if let Record::Operate(told) = &record
            && let TypeName::New(_, ty) = told.ty
        {
            read_type(&ty.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect::<Vec<_>>());
        }
        let mut again = Vec::new();
        push(&mut again, &record);
        assert!(matches!(split(&again), Ok((same, [])) if same == record));
        rest = further;
    }
}

fn read_type(words: &[u64]) {
    let Ok(ty) = Datatype::described(words) else { return };
    let again = Datatype::described(&ty.describe()).expect("it was made by this library");
    assert_eq!((again.size(), again.extent(), again.lb()), (ty.size(), ty.extent(), ty.lb()));
    assert_eq!((again.true_lb(), again.true_extent()), (ty.true_lb(), ty.true_extent()));
    assert_eq!(again.basic(), ty.basic());
}

/// Numbers of any size: a byte each, but for one behind `0x80`, which is of eight, and pages behind `0x81`.
fn numbers(mut input: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    while let Some((first, rest)) = input.split_first() {
        let (number, further) = match (first, rest.split_first_chunk(), rest.split_first()) {
            (0x80, Some((word, rest)), _) => (u64::from_le_bytes(*word), rest),
            (0x81, _, Some((pages, rest))) => (u64::from(*pages) << 12, rest),
            _ => (u64::from(*first), rest),
        };
        numbers.push(number);
        input = further;
    }
    numbers
}

fn read_exposed(words: &[u64]) {
    let Some((words, rest)) = words.split_first_chunk::<{ far::WORDS }>() else { return };
    let size = rest.first().copied().unwrap_or(words[1]);
    match exposed(3, words, size) {
        Ok(theirs) => {
            assert!(theirs.window == 0 || theirs.len == size);
            assert!(theirs.addr.checked_add(theirs.len).is_some());
            let again: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(theirs.encode()[..], again);
        }
        Err(error) => assert!(error.text.contains("rank 3"), "{error}"),
    }
}

fn read_hello(words: &[u64]) {
    let Some(words) = words.first_chunk() else { return };
    let Some(hello) = Hello::from_words(*words) else { return };
    assert_eq!(hello.words(), *words);
    let messages = hello.partitions.div_ceil(hello.term.together).max(1);
    assert!(messages <= hello.bytes.max(1));
    assert_eq!(hello.partitions.max(1) * (hello.bytes / hello.partitions.max(1)), hello.bytes);
}

fn read_edges(words: &[u64]) {
    const SIZE: u32 = 7;
    for is_weighted in [false, true] {
        let Some(dist) = Dist::from_words(words, is_weighted, SIZE) else { continue };
        assert_eq!((&dist.to_words()[..], dist.weights.is_some()), (words, is_weighted));
        let edges: Vec<_> = dist.leaving(2).collect();
        assert_eq!(mpi::topo::reorder::order(&[(0, 0); SIZE as usize], &edges).len(), SIZE as usize);
        assert_eq!(mpi::topo::reorder::order(&PLACES, &edges).len(), SIZE as usize);
    }
    let Some(edges) = Edge::told(words, 2, SIZE) else { return };
    assert_eq!(edges.iter().flat_map(|edge| edge.words()).collect::<Vec<_>>(), words);
    let dist = Dist::gathered(2, edges.iter().copied(), true);
    assert_eq!(Dist::from_words(&dist.to_words(), true, SIZE), Some(dist));
}

/// Two hosts, of which one has two caches.
const PLACES: [(u32, u64); 7] = [(0, 1), (1, 3), (0, 1), (0, 2), (1, 3), (0, 2), (1, 3)];

fn read_lists(words: &[u64]) {
    match laid_out(words.iter().copied()) {
        Ok((counts, displs)) => {
            let end = counts.iter().zip(&displs).fold(0, |end, (count, displ)| {
                assert!(*count >= 0 && *displ == end);
                end + count
            });
            assert!(end <= isize::MAX as i64 / 8);
        }
        Err(error) => assert!(error.text.contains("rank"), "{error}"),
    }
}

/// What the first ranks say of an access, and then a list in each of some rounds.
fn read_access(words: &[u64]) {
    let Some((ranks, words)) = words.split_first() else { return };
    let (said, rest) = words.as_chunks::<{ Said::WORDS }>();
    let ranks = 1 + *ranks as usize % 4;
    let read = |words: &[u64; Said::WORDS]| Said::from_words(words, ranks);
    let Some(all) = said.iter().take(ranks).map(read).collect::<Option<Vec<Said>>>() else { return };
    assert!(all.iter().zip(said).all(|(said, words)| said.to_words() == *words));
    let rest = if said.len() > ranks { said[ranks..].as_flattened() } else { rest };
    let settled = [false, true].map(|writes| round::settle(&all, writes));
    let Some((plan, ..)) = settled[0] else { return };
    assert!((1..=ranks).contains(&plan.owners()));
    let buffer = all[0].buffer.max(4096);
    let last = plan.rounds() - 1;
    for (owner, round) in (0..plan.owners()).flat_map(|owner| [0, 1, last].map(|round| (owner, round))) {
        let turn = Turn { plan: &plan, owner, round };
        let brought = turn.brought(rest).map(|(pieces, words)| {
            let mut len = 8 * words.len();
            pieces.iter().for_each(|piece| len -= piece.len as usize);
            assert!(len < 8);
            pieces
        });
        for pieces in [turn.asked(rest), brought].into_iter().flatten() {
            let room = Room::of(pieces.clone());
            assert!(room.len <= buffer && room.range().end <= i64::MAX as u64);
            for piece in pieces {
                assert!(plan.deals(&piece, owner, round));
                assert!(room.place(&piece) as u64 + piece.len <= room.len);
            }
        }
    }
    if let Some((len, words)) = round::answered(rest, buffer) {
        assert!(len <= 8 * words.len() && len as u64 <= buffer);
    }
}

/// Lengths as the members of a leader tell it; the first byte chooses the collective, and who leads.
fn read_lengths(input: &[u8]) {
    let Some((which, lengths)) = input.split_first() else { return };
    let kinds = [Collective::Gatherv, Collective::Scatterv, Collective::Alltoallv];
    let kind = kinds[usize::from(which % 3)];
    let first = leader(kind, usize::from(which / 3 % 2));
    let Some(sequel) = &first.sequel else { panic!("a leader learns lengths") };
    let len = sequel.words.count as usize / 8;
    let mut words: Vec<u64> =
        lengths.as_chunks().0.iter().map(|word| u64::from(u16::from_le_bytes(*word))).collect();
    words.resize(len, 0);
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    // What it tells itself is copied there.
    for step in &first.steps {
        if let Step::Copy { from: Buf { base: Base::Words, offset, count, .. }, to } = step {
            let own = &first.words[*offset as usize / 8..][..*count as usize / 8];
            let at = (to.offset - sequel.words.offset) as usize;
            bytes[at..at + *count as usize]
                .copy_from_slice(&own.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>());
        }
    }
    match sequel.follow(&first, &bytes) {
        Ok(rest) => check(&rest, HOSTS.len() as u32),
        Err(error) => assert!(error.text.contains("rank"), "{error}"),
    }
}

/// Ranks 3 and 4 lead the second host and the third.
const HOSTS: [u32; 7] = [0, 0, 0, 1, 2, 1, 2];

/// The program of a leader that is not the root.
fn leader(kind: Collective, which: usize) -> Program {
    let (counts, displs) = ([3, 1, 4, 1, 5, 9, 2], [0, 3, 4, 8, 9, 14, 23]);
    let (rank, size, ty) = (3 + which, HOSTS.len(), Type::bytes());
    let all = Side::Varied { counts: Ints::Small(&counts), displs: Ints::Small(&displs), ty: &ty };
    let one = Side::Even { count: counts[rank] as u64, ty: &ty };
    let (send, recv) = match kind {
        Collective::Gatherv => (one, Side::Absent),
        Collective::Scatterv => (Side::Absent, one),
        _ => (all, all),
    };
    let call = Call { kind, rank, size, send, recv, in_place: false, op: None, root: 0, across: None };
    let mut forced = Forced::default();
    forced.set(kind, Some(Algorithm::TwoLevel));
    compile(&call, &Spread::of(size, |rank| HOSTS[rank]), &Tariff::default(), &forced)
}

/// Whether whatever a program touches is there.
fn check(program: &Program, ranks: u32) {
    let bytes = |buf: &Buf| buf.count * program.types[buf.ty as usize].size;
    let is_there = |buf: &Buf| {
        let end = buf.offset as u64 + bytes(buf);
        let most = match buf.base {
            Base::Temp => program.temp_bytes as u64,
            Base::Words => 8 * program.words.len() as u64,
            Base::Send | Base::Recv => 25,
        };
        buf.offset >= 0 && end <= most
    };
    for step in &program.steps {
        match step {
            Step::Send { peer, buf } | Step::Recv { peer, buf, .. } => {
                assert!(*peer < ranks && is_there(buf))
            }
            Step::Copy { from, to } => assert!(is_there(from) && is_there(to) && bytes(from) == bytes(to)),
            Step::Expect { word, .. } => assert!(is_there(word)),
            Step::Wait(message) => assert!(*message < program.messages),
            Step::WaitAll => {}
            Step::Reduce { .. } | Step::Combine { .. } => panic!("{step:?}"),
        }
    }
}
