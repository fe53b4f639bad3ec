//! The elementwise loops.
//!
//! Buffers of the application may be unaligned, so elements are read and written as byte arrays
//! of their width; the compiler turns such loops into unaligned vector instructions.
use super::Predefined;
use super::soft::{Binary128, Extended};
use crate::datatype::basic::Basic;
use crate::mem;

#[cfg(target_arch = "x86_64")]
type LongDouble = Extended;
#[cfg(not(target_arch = "x86_64"))]
type LongDouble = Binary128;

/// What SUM, PROD, MIN and MAX need of a number.
pub(super) trait Number: Copy {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn less(self, other: Self) -> bool;
}

/// Numbers of a fixed width in memory.
pub(super) trait Stored<const N: usize>: Copy {
    fn load(bytes: [u8; N]) -> Self;
    fn store(self) -> [u8; N];
}

/// Bytes from which on the widest vectors pay for asking which there are.
const WIDE_BYTES: usize = 256;

#[inline(always)]
fn each<const N: usize>(input: &[u8], inout: &mut [u8], f: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let is_long = input.len() >= WIDE_BYTES;
    let (input, inout) = (input.as_chunks::<N>().0, inout.as_chunks_mut::<N>().0);
    if is_long {
        mem::in_vectors(
            #[inline(always)]
            || combine(input, inout, f),
        );
    } else {
        combine(input, inout, f);
    }
}

#[inline(always)]
fn combine<const N: usize>(
    input: &[[u8; N]],
    inout: &mut [[u8; N]],
    f: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    // By index: what iterators do before the first step shows in short vectors.
    let len = input.len().min(inout.len());
    let (input, inout) = (&input[..len], &mut inout[..len]);
    for i in 0..len {
        inout[i] = f(input[i], inout[i]);
    }
}

macro_rules! integers {
    ($($t:ty, $n:literal;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }
        }
        native!($t, $n);
    )*};
}

macro_rules! native {
    ($t:ty, $n:literal) => {
        impl Stored<$n> for $t {
            #[inline(always)]
            fn load(bytes: [u8; $n]) -> Self {
                <$t>::from_ne_bytes(bytes)
            }
            #[inline(always)]
            fn store(self) -> [u8; $n] {
                self.to_ne_bytes()
            }
        }
    };
}

macro_rules! floats {
    ($($t:ty, $n:literal;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool {
                self < other
            }
        }
        native!($t, $n);
    )*};
}

integers! { i8, 1; i16, 2; i32, 4; i64, 8; i128, 16; u8, 1; u16, 2; u32, 4; u64, 8; }
floats! { f32, 4; f64, 8; }

impl Number for Extended {
    fn add(self, other: Self) -> Self {
        Extended::add(self, other)
    }
    fn mul(self, other: Self) -> Self {
        Extended::mul(self, other)
    }
    fn less(self, other: Self) -> bool {
        Extended::less(self, other)
    }
}

impl Number for Binary128 {
    fn add(self, other: Self) -> Self {
        Binary128::add(self, other)
    }
    fn mul(self, other: Self) -> Self {
        Binary128::mul(self, other)
    }
    fn less(self, other: Self) -> bool {
        Binary128::less(self, other)
    }
}

impl Stored<16> for Extended {
    fn load(bytes: [u8; 16]) -> Self {
        Extended(u128::from_ne_bytes(bytes))
    }
    fn store(self) -> [u8; 16] {
        self.0.to_ne_bytes()
    }
}

impl Stored<16> for Binary128 {
    fn load(bytes: [u8; 16]) -> Self {
        Binary128(u128::from_ne_bytes(bytes))
    }
    fn store(self) -> [u8; 16] {
        self.0.to_ne_bytes()
    }
}

/// IEEE 754 binary16, computed in binary32: its 24 bits are at least twice 11 plus 2, so rounding
/// twice gives what rounding once would (Figueroa 1995).
#[derive(Clone, Copy)]
struct Half(u16);

impl Half {
    fn wide(self) -> f32 {
        let (sign, exponent, fraction) = (self.0 >> 15, self.0 >> 10 & 31, self.0 & 1023);
        let magnitude = match exponent {
            0 => f32::from(fraction) * 2f32.powi(-24),
            31 if fraction == 0 => f32::INFINITY,
            31 => f32::NAN,
            _ => f32::from_bits((u32::from(exponent) + 112) << 23 | u32::from(fraction) << 13),
        };
        if sign == 1 { -magnitude } else { magnitude }
    }

    fn narrow(value: f32) -> Half {
        let sign = (value.to_bits() >> 16 & 0x8000) as u16;
        let magnitude = value.abs();
        if magnitude.is_nan() {
            return Half(sign | 0x7e00);
        }
        if magnitude >= 65520.0 {
            return Half(sign | 0x7c00);
        }
        if magnitude < 2f32.powi(-14) {
            // Adding 0.5 puts the unit of the subnormals, 2^-24, at the last bit of binary32.
            let shifted = (magnitude + 0.5).to_bits() - 0.5f32.to_bits();
            return Half(sign | shifted as u16);
        }
        let bits = magnitude.to_bits();
        let rounded = bits + 0xfff + (bits >> 13 & 1);
        Half(sign | ((rounded >> 13) - (112 << 10)) as u16)
    }
}

impl Number for Half {
    fn add(self, other: Self) -> Self {
        Half::narrow(self.wide() + other.wide())
    }
    fn mul(self, other: Self) -> Self {
        Half::narrow(self.wide() * other.wide())
    }
    fn less(self, other: Self) -> bool {
        self.wide() < other.wide()
    }
}

impl Stored<2> for Half {
    fn load(bytes: [u8; 2]) -> Self {
        Half(u16::from_ne_bytes(bytes))
    }
    fn store(self) -> [u8; 2] {
        self.0.to_ne_bytes()
    }
}

/// SUM, PROD, MIN and MAX.
pub(super) fn numeric(op: Predefined, basic: Basic, input: &[u8], inout: &mut [u8]) {
    match basic {
        Basic::Char => real::<std::ffi::c_char, 1>(op, input, inout),
        Basic::I8 => real::<i8, 1>(op, input, inout),
        Basic::I16 => real::<i16, 2>(op, input, inout),
        Basic::I32 => real::<i32, 4>(op, input, inout),
        Basic::I64 => real::<i64, 8>(op, input, inout),
        Basic::I128 => real::<i128, 16>(op, input, inout),
        Basic::U8 => real::<u8, 1>(op, input, inout),
        Basic::U16 => real::<u16, 2>(op, input, inout),
        Basic::U32 => real::<u32, 4>(op, input, inout),
        Basic::U64 => real::<u64, 8>(op, input, inout),
        Basic::F16 => real::<Half, 2>(op, input, inout),
        Basic::F32 => real::<f32, 4>(op, input, inout),
        Basic::F64 => real::<f64, 8>(op, input, inout),
        Basic::F128 => real::<Binary128, 16>(op, input, inout),
        Basic::LongDouble => real::<LongDouble, 16>(op, input, inout),
        Basic::ComplexF16 => complex::<Half, 2>(op, input, inout),
        Basic::ComplexF32 => complex::<f32, 4>(op, input, inout),
        Basic::ComplexF64 => complex::<f64, 8>(op, input, inout),
        Basic::ComplexF128 => complex::<Binary128, 16>(op, input, inout),
        Basic::ComplexLongDouble => complex::<LongDouble, 16>(op, input, inout),
        other => unreachable!("{} does not take {other:?}", op.name()),
    }
}

#[inline(never)]
fn real<T: Number + Stored<N>, const N: usize>(op: Predefined, input: &[u8], inout: &mut [u8]) {
    match op {
        Predefined::Sum => each(input, inout, |a, b| T::load(a).add(T::load(b)).store()),
        Predefined::Prod => each(input, inout, |a, b| T::load(a).mul(T::load(b)).store()),
        Predefined::Min => each(input, inout, |a, b| if T::load(a).less(T::load(b)) { a } else { b }),
        Predefined::Max => each(input, inout, |a, b| if T::load(b).less(T::load(a)) { a } else { b }),
        other => unreachable!("{} is not numeric", other.name()),
    }
}

#[inline(never)]
fn complex<T: Number + Stored<N> + Negate, const N: usize>(op: Predefined, input: &[u8], inout: &mut [u8]) {
    if op == Predefined::Sum {
        return real::<T, N>(op, input, inout);
    }
    let (input, inout) = (input.as_chunks::<N>().0, inout.as_chunks_mut::<N>().0);
    for (x, y) in input.as_chunks::<2>().0.iter().zip(inout.as_chunks_mut::<2>().0) {
        let ([a, b], [c, d]) = (x.map(T::load), y.map(T::load));
        let (re, im) = (a.mul(c).add(b.mul(d).negate()), a.mul(d).add(b.mul(c)));
        *y = [re.store(), im.store()];
    }
}

/// Change of sign, for complex products.
trait Negate {
    fn negate(self) -> Self;
}

impl Negate for f32 {
    fn negate(self) -> Self {
        -self
    }
}

impl Negate for f64 {
    fn negate(self) -> Self {
        -self
    }
}

impl Negate for Half {
    fn negate(self) -> Self {
        Half(self.0 ^ 0x8000)
    }
}

impl Negate for Extended {
    fn negate(self) -> Self {
        Extended(self.0 ^ 1 << 79)
    }
}

impl Negate for Binary128 {
    fn negate(self) -> Self {
        Binary128(self.0 ^ 1 << 127)
    }
}

/// BAND, BOR, BXOR: the width of the type does not matter.
#[inline(never)]
pub(super) fn bits(input: &[u8], inout: &mut [u8], f: impl Fn(u8, u8) -> u8) {
    each::<1>(input, inout, |[a], [b]| [f(a, b)]);
}

/// LAND, LOR, LXOR: anything but zero is true, the result is 0 or 1.
#[inline(never)]
pub(super) fn logical(basic: Basic, input: &[u8], inout: &mut [u8], f: impl Fn(bool, bool) -> bool) {
    match basic.size() {
        1 => each(input, inout, |a, b| u8::from(f(a != [0; 1], b != [0; 1])).to_ne_bytes()),
        2 => each(input, inout, |a, b| u16::from(f(a != [0; 2], b != [0; 2])).to_ne_bytes()),
        4 => each(input, inout, |a, b| u32::from(f(a != [0; 4], b != [0; 4])).to_ne_bytes()),
        8 => each(input, inout, |a, b| u64::from(f(a != [0; 8], b != [0; 8])).to_ne_bytes()),
        16 => each(input, inout, |a, b| u128::from(f(a != [0; 16], b != [0; 16])).to_ne_bytes()),
        size => unreachable!("no truth value has {size} bytes"),
    }
}

/// MINLOC (`least`) and MAXLOC; of equal values the lower index wins.
pub(super) fn locate(basic: Basic, input: &[u8], inout: &mut [u8], least: bool) {
    match basic {
        Basic::FloatInt => pairs::<f32, 4, i32, 4, 8>(basic, input, inout, least),
        Basic::DoubleInt => pairs::<f64, 8, i32, 4, 16>(basic, input, inout, least),
        Basic::LongInt => pairs::<i64, 8, i32, 4, 16>(basic, input, inout, least),
        Basic::IntInt => pairs::<i32, 4, i32, 4, 8>(basic, input, inout, least),
        Basic::ShortInt => pairs::<i16, 2, i32, 4, 8>(basic, input, inout, least),
        Basic::LongDoubleInt => pairs::<LongDouble, 16, i32, 4, 32>(basic, input, inout, least),
        Basic::FloatFloat => pairs::<f32, 4, f32, 4, 8>(basic, input, inout, least),
        Basic::DoubleDouble => pairs::<f64, 8, f64, 8, 16>(basic, input, inout, least),
        other => unreachable!("{other:?} is not a pair"),
    }
}

fn pairs<V, const NV: usize, I, const NI: usize, const N: usize>(
    basic: Basic,
    input: &[u8],
    inout: &mut [u8],
    least: bool,
) where
    V: Number + Stored<NV>,
    I: Number + Stored<NI>,
{
    let at = basic.index_offset().expect("a pair") as usize;
    debug_assert_eq!(basic.extent() as usize, N);
    let parts = |element: &[u8; N]| {
        let value = V::load(element[..NV].try_into().expect("value lies inside the pair"));
        let index = I::load(element[at..at + NI].try_into().expect("index lies inside the pair"));
        (value, index)
    };
    for (a, b) in input.as_chunks::<N>().0.iter().zip(inout.as_chunks_mut::<N>().0) {
        let ((va, ia), (vb, ib)) = (parts(a), parts(b));
        let (better, worse) = if least { (va.less(vb), vb.less(va)) } else { (vb.less(va), va.less(vb)) };
        if better || !worse && ia.less(ib) {
            *b = *a;
        }
    }
}
