//! What must hold for every datatype.

use proptest::prelude::*;

use super::oracle::{Map, Recipe, recipe};
use crate::datatype::basic::PREDEFINED;
use crate::datatype::{Basic, Buffer, Combiner, Datatype, Form, copy};

/// Memory around a buffer, large enough for `count` items of `map`.
struct Arena {
    bytes: Vec<u8>,
    origin: i64,
}

impl Arena {
    fn around(addresses: &[i64], seed: u8) -> Arena {
        let lo = addresses.iter().copied().min().unwrap_or(0).min(0);
        let hi = addresses.iter().copied().max().unwrap_or(0) + 1;
        let bytes = (0..hi - lo).map(|i| (i as u8).wrapping_mul(37) ^ (i >> 8) as u8 ^ seed).collect();
        Arena { bytes, origin: -lo }
    }

    fn base(&mut self) -> usize {
        (self.bytes.as_mut_ptr() as usize).wrapping_add_signed(self.origin as isize)
    }

    fn at(&self, address: i64) -> u8 {
        self.bytes[(address + self.origin) as usize]
    }
}

fn config() -> ProptestConfig {
    let cases = if cfg!(miri) { 12 } else { 400 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn bounds(ty: &Datatype) -> (u64, i64, i64, i64, i64) {
    (ty.size(), ty.lb(), ty.extent(), ty.true_lb(), ty.true_extent())
}

fn bounds_of(map: &Map) -> (u64, i64, i64, i64, i64) {
    (map.size(), map.lb(), map.extent(), map.true_lb(), map.true_ub() - map.true_lb())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bounds_and_element_counts_are_those_of_the_typemap(recipe in recipe()) {
        let (ty, map) = (recipe.build(Form::Small), recipe.map());
        prop_assert_eq!(bounds(&ty), bounds_of(&map));
        prop_assert_eq!(ty.elements(), map.entries.len() as u64);
    }

    #[test]
    fn packing_follows_the_typemap_wherever_it_is_cut(
        recipe in recipe(),
        count in 0..4u64,
        cuts in prop::collection::vec(1..40usize, 1..6),
    ) {
        let (ty, map) = (recipe.build(Form::Small), recipe.map());
        let addresses = map.bytes(count);
        let mut arena = Arena::around(&addresses, 0);
        let expected: Vec<u8> = addresses.iter().map(|&address| arena.at(address)).collect();
        let base = arena.base();
        let mut whole = vec![0; expected.len() + 3];
        prop_assert_eq!(ty.pack(base, count, 0, &mut whole), expected.len());
        prop_assert_eq!(&whole[..expected.len()], &expected[..]);

        let mut stream = Vec::new();
        for &cut in cuts.iter().cycle().take(expected.len() + 1) {
            let mut part = vec![0; cut];
            let len = ty.pack(base, count, stream.len() as u64, &mut part);
            stream.extend_from_slice(&part[..len]);
            if len < cut {
                break;
            }
        }
        prop_assert_eq!(stream, expected);
    }

    #[test]
    fn unpacking_what_was_packed_restores_it_and_touches_nothing_else(
        recipe in recipe(),
        count in 0..4u64,
        cut in 1..40usize,
    ) {
        let (ty, map) = (recipe.build(Form::Small), recipe.map());
        let addresses = map.bytes(count);
        let (mut from, mut to) = (Arena::around(&addresses, 0), Arena::around(&addresses, 0x5a));
        let mut expected = Arena::around(&addresses, 0x5a);
        for &address in &addresses {
            expected.bytes[(address + expected.origin) as usize] = from.at(address);
        }
        let mut stream = vec![0; addresses.len()];
        ty.pack(from.base(), count, 0, &mut stream);
        let base = to.base();
        let mut position = 0;
        for part in stream.chunks(cut) {
            prop_assert_eq!(ty.unpack(base, count, position, part), part.len());
            position += part.len() as u64;
        }
        prop_assert_eq!(&to.bytes, &expected.bytes);
    }

    #[test]
    fn runs_are_the_bytes_of_the_typemap_and_do_not_touch(recipe in recipe(), count in 0..4u64, skip in 0..9u64) {
        let (ty, map) = (recipe.build(Form::Small), recipe.map());
        let addresses = map.bytes(count);
        let base = 1 << 30;
        let runs: Vec<(usize, u64)> = ty.runs(base, count, skip).collect();
        let bytes: Vec<i64> = runs
            .iter()
            .flat_map(|&(addr, len)| (0..len as i64).map(move |i| addr as i64 - base as i64 + i))
            .collect();
        prop_assert_eq!(bytes, addresses.get(skip as usize..).unwrap_or(&[]));
        prop_assert!(runs.windows(2).all(|w| w[0].0 as u64 + w[0].1 != w[1].0 as u64));
        if ty.is_contiguous() {
            prop_assert!(addresses.iter().enumerate().all(|(i, &address)| i as i64 == address));
        }
    }

    #[test]
    fn other_elements_lie_where_constructors_put_them(recipe in recipe(), large in any::<bool>(), count in 0..3u64) {
        let is_long = |kind: usize| PREDEFINED[kind].basic == Basic::I64;
        let size = |kind: u8| if is_long(kind.into()) { 4 } else { u64::from(PREDEFINED[kind as usize].basic.size()) };
        let ty = recipe.build(if large { Form::Large } else { Form::Small }).refitted(&size).unwrap();
        let short = |kind| if is_long(kind) { Map { entries: vec![(Basic::I32, 0)], ..Map::default() } } else { Map::named(kind) };
        let map = recipe.map_by(&short);
        prop_assert_eq!(bounds(&ty), bounds_of(&map));
        let addresses = map.bytes(count);
        let runs = ty.runs(0, count, 0).flat_map(|(at, len)| at as i64..at as i64 + len as i64);
        prop_assert_eq!(runs.collect::<Vec<i64>>(), addresses);
    }

    #[test]
    fn contents_construct_the_same_type(recipe in recipe(), large in any::<bool>()) {
        let ty = recipe.build(if large { Form::Large } else { Form::Small });
        prop_assume!(ty.contents().combiner != Combiner::Named);
        let again = ty.contents().constructed(&ty.contents().types).unwrap();
        prop_assert_eq!(bounds(&again), bounds(&ty));
        prop_assert_eq!(again.digest(1), ty.digest(1));
        prop_assert_eq!(&again.body.layout, &ty.body.layout);
        prop_assert_eq!(again.contents().envelope(), ty.contents().envelope());
        if large {
            prop_assert!(ty.contents().addresses.is_empty());
        } else {
            prop_assert!(ty.contents().large_counts.is_empty());
        }
    }

    #[test]
    fn digests_agree_exactly_when_the_elements_do(a in recipe(), b in recipe(), n in 0..3u64, m in 0..3u64) {
        let elements = |recipe: &Recipe, count: u64| {
            let kinds: Vec<_> = recipe.map().entries.iter().map(|entry| entry.0).collect();
            kinds.repeat(count as usize)
        };
        let (left, right) = (a.build(Form::Small), b.build(Form::Small));
        prop_assert_eq!(left.digest(n) == right.digest(m), elements(&a, n) == elements(&b, m));
    }

    #[test]
    fn copying_is_packing_and_unpacking(a in recipe(), b in recipe(), n in 0..4u64, m in 0..4u64) {
        let (from_ty, to_ty) = (a.build(Form::Small), b.build(Form::Small));
        let (read, written) = (a.map().bytes(n), b.map().bytes(m));
        let (mut from, mut to) = (Arena::around(&read, 1), Arena::around(&written, 2));
        let mut expected = Arena::around(&written, 2);
        for (&source, &target) in read.iter().zip(&written) {
            expected.bytes[(target + expected.origin) as usize] = from.at(source);
        }
        let moved = copy(
            Buffer { base: from.base(), count: n, ty: &from_ty },
            Buffer { base: to.base(), count: m, ty: &to_ty },
        );
        prop_assert_eq!(moved as usize, read.len().min(written.len()));
        prop_assert_eq!(&to.bytes, &expected.bytes);
    }

    #[test]
    fn element_counts_and_bytes_convert_both_ways(recipe in recipe(), elements in 0..40u64) {
        let (ty, map) = (recipe.build(Form::Small), recipe.map());
        prop_assume!(!map.entries.is_empty());
        let sizes: Vec<u64> = map.entries.iter().map(|entry| u64::from(entry.0.size())).collect();
        let bytes: u64 = sizes.iter().cycle().take(elements as usize).sum();
        prop_assert_eq!(ty.bytes_of(elements).unwrap(), bytes);
        prop_assert_eq!(ty.elements_in(bytes), Some(elements));
        let next = sizes[elements as usize % sizes.len()];
        if next > 1 {
            prop_assert_eq!(ty.elements_in(bytes + next - 1), None);
        }
        let whole = elements.is_multiple_of(sizes.len() as u64);
        let items = whole.then_some(elements / sizes.len() as u64);
        prop_assert_eq!(ty.items_in(bytes), items);
    }

    #[test]
    fn external32_is_big_endian_and_survives_the_round_trip(recipe in recipe(), count in 0..4u64) {
        let (ty, map) = (recipe.build(Form::Small), recipe.map());
        let addresses = map.bytes(count);
        let (mut from, mut to) = (Arena::around(&addresses, 0), Arena::around(&addresses, 9));
        let distinct = addresses.iter().collect::<std::collections::HashSet<_>>().len() == addresses.len();
        let mut expected = Vec::new();
        let mut start = 0;
        for (basic, _) in map.entries.repeat(count as usize) {
            // Values that every type has in both representations: small positive ones, or 0
            // where elements overlap and would spoil each other.
            let parts = basic.component().map_or(1, |part| basic.size() / part.size());
            let width = (basic.size() / parts) as usize;
            for _ in 0..parts {
                for i in 0..width {
                    from.bytes[(addresses[start + i] + from.origin) as usize] = u8::from(distinct && i == 0) * 7;
                }
                start += width;
            }
        }
        let size = ty.external_size(count).unwrap() as usize;
        let mut stream = vec![0xee; size + 2];
        prop_assert_eq!(ty.pack_external(from.base(), count, &mut stream).unwrap(), size);
        ty.body.signature.repeat(count).unwrap().visit(&mut |kind, n| {
            let row = &crate::datatype::basic::PREDEFINED[kind as usize];
            expected.extend(vec![row.external_size as usize; n as usize]);
            Ok(())
        }).unwrap();
        prop_assert_eq!(expected.iter().sum::<usize>(), size);
        prop_assert_eq!(ty.unpack_external(to.base(), count, &stream).unwrap(), size);
        for &address in &addresses {
            prop_assert_eq!(from.at(address), to.at(address));
        }
        if size > 0 {
            let short = ty.unpack_external(to.base(), count, &stream[..size - 1]);
            prop_assert_eq!(short.unwrap_err().class, crate::Class::TRUNCATE);
        }
    }
}

#[test]
fn external32_has_the_bytes_of_the_standard() {
    let cases: [(u32, &[u8], &[u8]); 6] = [
        (0x209, &0x0102_0304i32.to_ne_bytes(), &[1, 2, 3, 4]),
        (0x214, &1.0f64.to_ne_bytes(), &[0x3f, 0xf0, 0, 0, 0, 0, 0, 0]),
        (0x20a, &(-1i64).to_ne_bytes(), &[0xff; 4]),
        (0x20b, &(-2i64).to_ne_bytes(), &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]),
        (0x23c, &0x20acu32.to_ne_bytes(), &[0x20, 0xac]),
        (0x22c, &[1u16.to_ne_bytes(), [0; 2], 3u16.to_ne_bytes(), [0; 2]].concat(), &[0, 1, 0, 0, 0, 3]),
    ];
    for (handle, native, external) in cases {
        let ty = Datatype::of(crate::Handle(handle)).unwrap();
        let mut out = vec![0; external.len()];
        ty.pack_external(native.as_ptr() as usize, 1, &mut out).unwrap();
        assert_eq!(out, external, "{}", ty.predefined().unwrap().name);
    }
}
