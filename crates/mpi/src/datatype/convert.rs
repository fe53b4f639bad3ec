//! Elements between the machine's representation and external32 (MPI 5.0 section 14.5.2):
//! big-endian, two's complement, IEEE 754, `long` in 4 bytes, `wchar_t` in 2, `long double` as
//! binary128.

use super::basic::{Basic, PREDEFINED};
use crate::error::{Class, Result, fail};

/// How one part of an element is converted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Atom {
    /// Nothing.
    Empty,
    /// Equal widths: the order of the bytes.
    Swap(usize),
    /// An 8-byte signed integer in 4 bytes.
    Long,
    /// An 8-byte unsigned integer in 4 bytes.
    UnsignedLong,
    /// A character of 4 bytes in 2.
    Wide,
    /// The 80-bit format of x87 as binary128.
    Extended,
}

impl Atom {
    fn native(self) -> usize {
        match self {
            Atom::Empty => 0,
            Atom::Swap(width) => width,
            Atom::Long | Atom::UnsignedLong => 8,
            Atom::Wide => 4,
            Atom::Extended => 16,
        }
    }

    fn external(self) -> usize {
        match self {
            Atom::Long | Atom::UnsignedLong => 4,
            Atom::Wide => 2,
            same => same.native(),
        }
    }
}

/// The parts of one element of the predefined datatype at position `kind`.
fn atoms(kind: u8) -> [Atom; 2] {
    let row = &PREDEFINED[kind as usize];
    if let Some((value, index)) = row.basic.pair() {
        let width = row.external_size - index.size();
        return [atom(value, width), atom(index, index.size())];
    }
    match row.basic.component() {
        Some(part) => [atom(part, part.size()); 2],
        None => [atom(row.basic, row.external_size), Atom::Empty],
    }
}

fn atom(basic: Basic, external: u32) -> Atom {
    match basic {
        Basic::LongDouble if cfg!(target_arch = "x86_64") => Atom::Extended,
        Basic::I64 if external == 4 => Atom::Long,
        Basic::U64 if external == 4 => Atom::UnsignedLong,
        Basic::Wchar => Atom::Wide,
        plain => Atom::Swap(plain.size() as usize),
    }
}

/// Converts packed elements of `kind` to external32. Both slices hold the same number of them.
pub(super) fn encode(kind: u8, native: &[u8], external: &mut [u8]) -> Result {
    let parts = atoms(kind);
    if let [Atom::Swap(width), Atom::Empty] = parts {
        swap(width, native, external);
        return Ok(());
    }
    let mut out = external;
    let mut input = native;
    while !input.is_empty() {
        for part in parts {
            let (from, rest) = input.split_at(part.native());
            let (to, room) = out.split_at_mut(part.external());
            encode_one(part, from, to)?;
            (input, out) = (rest, room);
        }
    }
    Ok(())
}

/// Converts external32 elements of `kind` to the machine's representation.
pub(super) fn decode(kind: u8, external: &[u8], native: &mut [u8]) {
    let parts = atoms(kind);
    if let [Atom::Swap(width), Atom::Empty] = parts {
        return swap(width, external, native);
    }
    let mut out = native;
    let mut input = external;
    while !input.is_empty() {
        for part in parts {
            let (from, rest) = input.split_at(part.external());
            let (to, room) = out.split_at_mut(part.native());
            decode_one(part, from, to);
            (input, out) = (rest, room);
        }
    }
}

/// Copies elements of `width` bytes into the opposite order, or plainly on a big-endian machine.
fn swap(width: usize, from: &[u8], to: &mut [u8]) {
    fn fixed<const WIDTH: usize>(from: &[u8], to: &mut [u8]) {
        for (to, from) in to.as_chunks_mut::<WIDTH>().0.iter_mut().zip(from.as_chunks::<WIDTH>().0) {
            *to = *from;
            to.reverse();
        }
    }
    match width {
        _ if cfg!(target_endian = "big") => to.copy_from_slice(from),
        1 => to.copy_from_slice(from),
        2 => fixed::<2>(from, to),
        4 => fixed::<4>(from, to),
        8 => fixed::<8>(from, to),
        16 => fixed::<16>(from, to),
        _ => unreachable!("no element has {width} bytes"),
    }
}

fn array<const LEN: usize>(bytes: &[u8]) -> [u8; LEN] {
    bytes.try_into().expect("the caller has split off this many bytes")
}

fn encode_one(atom: Atom, from: &[u8], to: &mut [u8]) -> Result {
    match atom {
        Atom::Empty => {}
        Atom::Swap(width) => swap(width, from, to),
        Atom::Long => {
            let value = i64::from_ne_bytes(array(from));
            let Ok(narrow) = i32::try_from(value) else { return too_large(value, "4 bytes") };
            to.copy_from_slice(&narrow.to_be_bytes());
        }
        Atom::UnsignedLong => {
            let value = u64::from_ne_bytes(array(from));
            let Ok(narrow) = u32::try_from(value) else { return too_large(value, "4 bytes") };
            to.copy_from_slice(&narrow.to_be_bytes());
        }
        Atom::Wide => {
            let value = u32::from_ne_bytes(array(from));
            let Ok(narrow) = u16::try_from(value) else { return too_large(value, "2 bytes") };
            to.copy_from_slice(&narrow.to_be_bytes());
        }
        Atom::Extended => to.copy_from_slice(&quad_of_extended(array(from)).to_be_bytes()),
    }
    Ok(())
}

fn too_large(value: impl std::fmt::Display, room: &str) -> Result {
    fail(Class::CONVERSION, format!("the value {value} does not fit the {room} external32 has for its type"))
}

fn decode_one(atom: Atom, from: &[u8], to: &mut [u8]) {
    match atom {
        Atom::Empty => {}
        Atom::Swap(width) => swap(width, from, to),
        Atom::Long => to.copy_from_slice(&i64::from(i32::from_be_bytes(array(from))).to_ne_bytes()),
        Atom::UnsignedLong => to.copy_from_slice(&u64::from(u32::from_be_bytes(array(from))).to_ne_bytes()),
        Atom::Wide => to.copy_from_slice(&u32::from(u16::from_be_bytes(array(from))).to_ne_bytes()),
        Atom::Extended => to.copy_from_slice(&extended_of_quad(u128::from_be_bytes(array(from)))),
    }
}

/// Both formats have a sign, 15 bits of exponent with one bias, and then: x87 an explicit leading
/// bit and 63 bits of fraction, binary128 only 112 bits of fraction.
fn quad_of_extended(bytes: [u8; 16]) -> u128 {
    let value = u128::from_le_bytes(bytes);
    let fraction = value & ((1 << 63) - 1);
    let head = value >> 64 & 0xffff;
    head << 112 | fraction << 49
}

/// Rounds to nearest, ties to even; the six unused bytes are zero.
fn extended_of_quad(value: u128) -> [u8; 16] {
    const FRACTION: u128 = (1 << 112) - 1;
    let head = value >> 112;
    let exponent = head & 0x7fff;
    let fraction = value & FRACTION;
    let lead = u128::from(exponent != 0) << 63;
    if exponent == 0x7fff {
        // Infinity stays one; a NaN must not become one by losing its low bits.
        let quiet = u128::from(fraction != 0) << 62;
        return (head << 64 | lead | quiet | fraction >> 49).to_le_bytes();
    }
    let lost = fraction & ((1 << 49) - 1);
    let half = 1 << 48;
    let mut significand = lead | fraction >> 49;
    if lost > half || lost == half && significand & 1 == 1 {
        significand += 1;
    }
    // A carry out of the fraction moves to the next exponent, also from the smallest normal
    // number's neighbour below.
    let carried = significand >> 64 != 0 || exponent == 0 && significand >> 63 != 0;
    let significand = if carried { 1 << 63 } else { significand };
    ((head + u128::from(carried)) << 64 | significand).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(sign_exponent: u16, significand: u64) -> [u8; 16] {
        (u128::from(sign_exponent) << 64 | u128::from(significand)).to_le_bytes()
    }

    #[test]
    fn long_doubles_survive_the_way_through_binary128() {
        let one = extended(0x3fff, 1 << 63);
        assert_eq!(quad_of_extended(one), 0x3fff << 112);
        let minus_pi = extended(0xc000, 0xc90f_daa2_2168_c235);
        let smallest = extended(0, 1);
        let infinity = extended(0x7fff, 1 << 63);
        let nan = extended(0x7fff, 3 << 62);
        for value in [one, minus_pi, smallest, infinity, nan, [0; 16], extended(0x8000, 0)] {
            assert_eq!(extended_of_quad(quad_of_extended(value)), value);
        }
    }

    #[test]
    fn binary128_rounds_to_nearest_even() {
        let one: u128 = 0x3fff << 112;
        let ulp = 1 << 49;
        assert_eq!(extended_of_quad(one | (ulp / 2)), extended(0x3fff, 1 << 63));
        assert_eq!(extended_of_quad(one | ulp | (ulp / 2)), extended(0x3fff, (1 << 63) + 2));
        assert_eq!(extended_of_quad(one | (ulp / 2 + 1)), extended(0x3fff, (1 << 63) + 1));
        let just_below_two = one | ((1 << 112) - 1);
        assert_eq!(extended_of_quad(just_below_two), extended(0x4000, 1 << 63));
        let largest_subnormal = (1 << 112) - 1;
        assert_eq!(extended_of_quad(largest_subnormal), extended(1, 1 << 63));
        let largest = (0x7ffe << 112) | ((1 << 112) - 1);
        assert_eq!(extended_of_quad(largest), extended(0x7fff, 1 << 63), "rounds to infinity");
    }

    #[test]
    fn values_beyond_the_narrow_width_are_refused() {
        let long = super::super::basic::index_of(crate::Handle(0x20a)).unwrap() as u8;
        let mut out = [0; 4];
        encode(long, &(-2i64).to_ne_bytes(), &mut out).unwrap();
        assert_eq!(out, [0xff, 0xff, 0xff, 0xfe]);
        let error = encode(long, &(1i64 << 40).to_ne_bytes(), &mut out).unwrap_err();
        assert_eq!(error.class, Class::CONVERSION);
    }
}
