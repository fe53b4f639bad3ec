//! Views against a map of the file's bytes.

use proptest::prelude::*;

use super::*;
use crate::datatype::Form;
use crate::handle::Handle;

const INT: Handle = Handle(0x209);
const LONG: Handle = Handle(0x20a);

fn named(handle: Handle) -> Arc<Datatype> {
    Datatype::of(handle).unwrap().clone()
}

/// Blocks of ints with these gaps between them, and a tile that is so much longer.
fn tile(blocks: &[(i64, i64)], behind: i64) -> Arc<Datatype> {
    let (mut lens, mut displs, mut at) = (Vec::new(), Vec::new(), 0);
    for (gap, len) in blocks {
        lens.push(*len);
        displs.push(at + gap);
        at += gap + len;
    }
    let ty = Datatype::indexed(&lens, &displs, &named(INT), Form::Small).unwrap();
    Datatype::resized(&ty, 0, (at + behind) * 4, Form::Small).unwrap()
}

/// The file offset of every byte of the stream, one by one.
fn map(disp: i64, ty: &Datatype, tiles: i64) -> Vec<u64> {
    let item = |i: i64| ty.runs((disp + i * ty.extent()) as usize, 1, 0);
    let bytes = |(at, len): (usize, u64)| (at as u64..at as u64 + len).collect::<Vec<u64>>();
    (0..tiles).flat_map(item).flat_map(bytes).collect()
}

proptest! {
    #[test]
    fn pieces_are_those_of_the_byte_map(
        blocks in prop::collection::vec((0i64..4, 1i64..5), 1..5),
        behind in 0i64..4,
        disp in 0i64..50,
        from in 0usize..40,
        len in 0usize..200,
    ) {
        let ty = tile(&blocks, behind);
        let view = View::new(disp, named(INT), ty.clone(), Datarep::Native, Sizes::default(), true).unwrap();
        let map = map(disp, &ty, 150);
        let start = view.stretch(from as i64, len as u64).unwrap();
        prop_assert_eq!(start as usize, from * 4);
        let pieces: Vec<Piece> = view.pieces(start, len as u64).collect();
        let bytes: Vec<u64> = pieces.iter().flat_map(|piece| piece.offset..piece.end()).collect();
        prop_assert_eq!(&bytes[..], &map[start as usize..start as usize + len]);
        prop_assert!(pieces.windows(2).all(|pair| pair[0].end() < pair[1].offset), "pieces that touch are one");
        prop_assert_eq!(view.offset_of(from as i64).unwrap() as u64, map[from * 4]);
        let size = len as u64 * 3;
        let before = map.chunks(4).position(|etype| etype[0] >= size).unwrap();
        prop_assert_eq!(view.etypes_before(size), before as i64);
    }

    /// A type of longs in external32: half the length, and the displacements of a portable type half as far.
    #[test]
    fn a_portable_type_is_scaled(
        count in 1i64..6, len in 1i64..4, gap in 0i64..5, from in 0i64..20, etypes in 0u64..20,
    ) {
        let vector = |unit| Datatype::vector(count, len, len + gap, &named(unit), Form::Small).unwrap();
        let sizes = Sizes::external(&vector(LONG));
        let scaled = View::new(7, named(LONG), vector(LONG), Datarep::External32, sizes, true).unwrap();
        let plain = View::new(7, named(INT), vector(INT), Datarep::Native, Sizes::default(), true).unwrap();
        prop_assert_eq!((scaled.unit(), plain.unit()), (4, 4));
        let list = |view: &View| {
            let start = view.stretch(from, etypes * 4).unwrap();
            view.pieces(start, etypes * 4).collect::<Vec<Piece>>()
        };
        prop_assert_eq!(list(&scaled), list(&plain));
    }
}

#[test]
fn types_that_no_view_has_are_refused() {
    let opened = |writes, disp, etype: &Arc<Datatype>, filetype: &Arc<Datatype>| {
        View::new(disp, etype.clone(), filetype.clone(), Datarep::Native, Sizes::default(), writes).map(drop)
    };
    let view = |disp, etype: &Arc<Datatype>, filetype: &Arc<Datatype>| opened(true, disp, etype, filetype);
    let int = named(INT);
    let falls = Datatype::hindexed(&[1, 1], &[8, 0], &int, Form::Small).unwrap();
    let negative = Datatype::hindexed(&[1, 1], &[-8, 0], &int, Form::Small).unwrap();
    let nothing = Datatype::contiguous(0, &int, Form::Small).unwrap();
    let five = Datatype::contiguous(5, &named(basic::BYTE), Form::Small).unwrap();
    let class = |result: Result| result.unwrap_err().class;
    assert_eq!(class(view(0, &int, &falls)), Class::TYPE);
    assert_eq!(class(view(0, &int, &negative)), Class::TYPE);
    assert_eq!(class(view(0, &nothing, &nothing)), Class::TYPE);
    assert_eq!(class(view(0, &int, &five)), Class::TYPE);
    assert_eq!(class(view(-1, &int, &int)), Class::ARG);
    view(0, &int, &nothing).unwrap();
    // Of three in a row one again: only who writes may not.
    let again = |disp| Datatype::hindexed(&[3, 1], &[0, disp], &int, Form::Small).unwrap();
    for disp in [4, 8] {
        assert_eq!(class(view(0, &int, &again(disp))), Class::TYPE);
        assert_eq!(class(view(0, &again(disp), &again(disp))), Class::TYPE);
        opened(false, 0, &int, &again(disp)).unwrap();
    }
    view(0, &int, &again(12)).unwrap();
}

#[test]
fn of_tiles_that_overlap_the_first_can_be_accessed() {
    let back = Datatype::hindexed(&[1, 2], &[0, 8], &named(INT), Form::Small).unwrap();
    let back = Datatype::resized(&back, 0, 4, Form::Small).unwrap();
    let view = View::new(100, named(INT), back, Datarep::Native, Sizes::default(), true).unwrap();
    let pieces: Vec<Piece> = view.pieces(view.stretch(0, 12).unwrap(), 12).collect();
    assert_eq!(pieces, [Piece { offset: 100, len: 4 }, Piece { offset: 108, len: 8 }]);
    assert_eq!(view.stretch(1, 12).unwrap_err().class, Class::TYPE);
    assert_eq!((view.etypes_before(104), view.etypes_before(1000)), (1, 3));
}

#[test]
fn offsets_have_an_end() {
    let view = View::bytes();
    assert_eq!(view.stretch(i64::MAX - 10, 5).unwrap(), i64::MAX as u64 - 10);
    assert_eq!(view.stretch(i64::MAX, 5).unwrap_err().class, Class::ARG);
    assert_eq!(view.stretch(-1, 0).unwrap_err().class, Class::ARG);
    let int = named(INT);
    let nothing = Datatype::contiguous(0, &int, Form::Small).unwrap();
    let empty = View::new(0, int, nothing, Datarep::Native, Sizes::default(), true).unwrap();
    assert_eq!((empty.stretch(3, 0).unwrap(), empty.pieces(0, 0).count(), empty.etypes_before(9)), (0, 0, 0));
    assert_eq!(empty.stretch(0, 4).unwrap_err().class, Class::ARG);
}

#[test]
fn several_kinds_of_other_sizes_keep_their_bytes_apart() {
    let external = |etype: &Arc<Datatype>, filetype: &Arc<Datatype>| {
        View::new(3, etype.clone(), filetype.clone(), Datarep::External32, Sizes::external(filetype), true)
            .unwrap()
    };
    let pieces = |view: &View, len: u64| view.pieces(0, len).collect::<Vec<Piece>>();
    // Displacements in bytes are those of the file, where a long has 4: a tile of 16 bytes with a gap of 4.
    let mixed = Datatype::structure(&[1, 2], &[0, 8], &[named(INT), named(LONG)], Form::Small).unwrap();
    let view = external(&mixed, &mixed);
    assert_eq!(view.unit(), 12);
    let tiles = [(3, 4), (11, 12), (27, 8)].map(|(offset, len)| Piece { offset, len });
    assert_eq!(pieces(&view, 24), tiles);
    assert_eq!((view.offset_of(2), view.extent_of(&mixed, &Sizes::external(&mixed))), (Ok(35), Ok(16)));
    // Constructors that count in elements count those of the file, whatever they are made of.
    let spread = Datatype::vector(2, 1, 2, &mixed, Form::Small).unwrap();
    assert_eq!(
        pieces(&external(&mixed, &spread), 24),
        [(3, 4), (11, 8), (35, 4), (43, 8)].map(|(offset, len)| Piece { offset, len })
    );
    let spread = Datatype::resized(&named(LONG), 0, 24, Form::Small).unwrap();
    let view = external(&named(LONG), &spread);
    assert_eq!(pieces(&view, 8), [Piece { offset: 3, len: 4 }, Piece { offset: 27, len: 4 }]);
    assert_eq!(view.extent_of(&named(LONG), &Sizes::external(&named(LONG))), Ok(4));
}
