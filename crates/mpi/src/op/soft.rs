//! Floating point formats the language has no type for: x87 extended (C `long double` on x86-64)
//! and IEEE 754 binary128 (Fortran `REAL*16`, `long double` elsewhere).
//!
//! One core computes on unpacked numbers and rounds to nearest, ties to even, once. It takes the
//! format as a value, so that the tests can hold it against binary64 and binary32 of the machine.
// Only x86-64 has x87 numbers, but the core is the same and is tested everywhere.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

/// The numbers of a binary format (IEEE 754 section 3.3).
#[derive(Clone, Copy)]
struct Format {
    /// Bits of the significand with its leading one.
    precision: u32,
    /// The largest exponent; also the bias.
    emax: i32,
}

const EXTENDED: Format = Format { precision: 64, emax: 16383 };
const BINARY128: Format = Format { precision: 113, emax: 16383 };

/// An unpacked number: `significand / 2^127 * 2^exponent`, with the top bit set.
#[derive(Clone, Copy)]
enum Number {
    Nan,
    Infinite { negative: bool },
    Zero { negative: bool },
    Finite { negative: bool, exponent: i32, significand: u128 },
}

/// Sign, biased exponent and the `precision` bits of the significand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Packed {
    negative: bool,
    biased: u32,
    significand: u128,
}

impl Format {
    fn biased_max(self) -> u32 {
        2 * self.emax as u32 + 1
    }

    fn unpack(self, p: Packed) -> Number {
        let Packed { negative, biased, significand } = p;
        let leading = 1 << (self.precision - 1);
        if biased == self.biased_max() {
            return if significand & (leading - 1) == 0 {
                Number::Infinite { negative }
            } else {
                Number::Nan
            };
        }
        if significand == 0 {
            return Number::Zero { negative };
        }
        let top = significand.leading_zeros();
        let unit = biased.max(1) as i32 - self.emax;
        let exponent = unit - (top as i32 - (128 - self.precision as i32));
        Number::Finite { negative, exponent, significand: significand << top }
    }

    fn pack(self, number: Number) -> Packed {
        let leading = 1 << (self.precision - 1);
        match number {
            Number::Nan => {
                Packed { negative: false, biased: self.biased_max(), significand: leading | leading >> 1 }
            }
            Number::Infinite { negative } => {
                Packed { negative, biased: self.biased_max(), significand: leading }
            }
            Number::Zero { negative } => Packed { negative, biased: 0, significand: 0 },
            Number::Finite { negative, exponent, significand } => self.round(negative, exponent, significand),
        }
    }

    fn round(self, negative: bool, mut exponent: i32, mut significand: u128) -> Packed {
        let leading: u128 = 1 << (self.precision - 1);
        let emin = 1 - self.emax;
        let subnormal = exponent < emin;
        if subnormal {
            significand = shift_right_sticky(significand, (emin - exponent) as u32);
            exponent = emin;
        }
        let dropped = 128 - self.precision;
        let (rest, half) = (significand & ((1 << dropped) - 1), 1 << (dropped - 1));
        significand >>= dropped;
        if rest > half || rest == half && significand & 1 == 1 {
            significand += 1;
        }
        if significand == leading << 1 {
            significand >>= 1;
            exponent += 1;
        }
        if exponent > self.emax {
            return self.pack(Number::Infinite { negative });
        }
        let biased = if significand < leading { 0 } else { (exponent + self.emax) as u32 };
        Packed { negative, biased, significand }
    }
}

/// Shifts right and keeps in the last bit whether anything but zeros fell out.
fn shift_right_sticky(value: u128, by: u32) -> u128 {
    if by == 0 {
        value
    } else if by > 127 {
        u128::from(value != 0)
    } else {
        value >> by | u128::from(value << (128 - by) != 0)
    }
}

fn add(a: Number, b: Number) -> Number {
    use Number::*;
    match (a, b) {
        (Nan, _) | (_, Nan) => Nan,
        (Infinite { negative: x }, Infinite { negative: y }) if x != y => Nan,
        (Infinite { .. }, _) => a,
        (_, Infinite { .. }) => b,
        (Zero { negative: x }, Zero { negative: y }) => Zero { negative: x && y },
        (Zero { .. }, _) => b,
        (_, Zero { .. }) => a,
        (
            Finite { negative: na, exponent: ea, significand: sa },
            Finite { negative: nb, exponent: eb, significand: sb },
        ) => {
            if (ea, sa) >= (eb, sb) {
                add_finite((na, ea, sa), (nb, eb, sb))
            } else {
                add_finite((nb, eb, sb), (na, ea, sa))
            }
        }
    }
}

/// Sum of two numbers of which the first is not smaller in magnitude.
fn add_finite(
    (negative, exponent, large): (bool, i32, u128),
    (other, lower, small): (bool, i32, u128),
) -> Number {
    let small = shift_right_sticky(small, (exponent - lower) as u32);
    if negative == other {
        let (sum, carried) = large.overflowing_add(small);
        if carried {
            let significand = shift_right_sticky(sum, 1) | 1 << 127;
            return Number::Finite { negative, exponent: exponent + 1, significand };
        }
        return Number::Finite { negative, exponent, significand: sum };
    }
    let difference = large - small;
    if difference == 0 {
        return Number::Zero { negative: false };
    }
    let up = difference.leading_zeros();
    Number::Finite { negative, exponent: exponent - up as i32, significand: difference << up }
}

fn mul(a: Number, b: Number) -> Number {
    use Number::*;
    let sign = |n: Number| match n {
        Nan => false,
        Infinite { negative } | Zero { negative } | Finite { negative, .. } => negative,
    };
    let negative = sign(a) != sign(b);
    match (a, b) {
        (Nan, _) | (_, Nan) | (Infinite { .. }, Zero { .. }) | (Zero { .. }, Infinite { .. }) => Nan,
        (Infinite { .. }, _) | (_, Infinite { .. }) => Infinite { negative },
        (Zero { .. }, _) | (_, Zero { .. }) => Zero { negative },
        (Finite { exponent: ea, significand: sa, .. }, Finite { exponent: eb, significand: sb, .. }) => {
            let (high, low) = wide_product(sa, sb);
            let high = high | u128::from(low != 0);
            if high >> 127 == 1 {
                Finite { negative, exponent: ea + eb + 1, significand: high }
            } else {
                // The bit that should move in from below is one of the sticky ones by now: 15 bits
                // lie between it and the precision of any format here.
                Finite { negative, exponent: ea + eb, significand: high << 1 }
            }
        }
    }
}

/// The 256 bits of a product.
fn wide_product(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = u64::MAX as u128;
    let (a1, a0, b1, b0) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (p00, p01, p10, p11) = (a0 * b0, a0 * b1, a1 * b0, a1 * b1);
    let middle = (p00 >> 64) + (p01 & LOW) + (p10 & LOW);
    (p11 + (p01 >> 64) + (p10 >> 64) + (middle >> 64), middle << 64 | p00 & LOW)
}

fn less(a: Number, b: Number) -> bool {
    use Number::*;
    let rank = |n: Number| match n {
        Infinite { negative: true } => -2,
        Finite { negative: true, .. } => -1,
        Nan | Zero { .. } => 0,
        Finite { .. } => 1,
        Infinite { .. } => 2,
    };
    match (a, b) {
        (Nan, _) | (_, Nan) => false,
        (
            Finite { negative: x, exponent: ea, significand: sa },
            Finite { negative: y, exponent: eb, significand: sb },
        ) if x == y => {
            if x {
                (eb, sb) < (ea, sa)
            } else {
                (ea, sa) < (eb, sb)
            }
        }
        _ => rank(a) < rank(b),
    }
}

/// x87 extended precision in 16 bytes: 64 bits of significand with its leading one, 15 of
/// exponent, the sign, 48 of padding.
#[derive(Clone, Copy)]
pub(super) struct Extended(pub u128);

impl Extended {
    fn unpack(self) -> Number {
        let packed = Packed {
            negative: self.0 >> 79 & 1 == 1,
            biased: (self.0 >> 64) as u32 & 0x7fff,
            significand: self.0 & u128::from(u64::MAX),
        };
        EXTENDED.unpack(packed)
    }

    fn pack(number: Number) -> Extended {
        let p = EXTENDED.pack(number);
        Extended(u128::from(p.negative) << 79 | u128::from(p.biased) << 64 | p.significand)
    }

    pub(super) fn add(self, other: Self) -> Self {
        Self::pack(add(self.unpack(), other.unpack()))
    }

    pub(super) fn mul(self, other: Self) -> Self {
        Self::pack(mul(self.unpack(), other.unpack()))
    }

    pub(super) fn less(self, other: Self) -> bool {
        less(self.unpack(), other.unpack())
    }
}

/// IEEE 754 binary128: the leading one is not stored.
#[derive(Clone, Copy)]
pub(super) struct Binary128(pub u128);

const FRACTION: u128 = (1 << 112) - 1;

impl Binary128 {
    fn unpack(self) -> Number {
        let biased = (self.0 >> 112) as u32 & 0x7fff;
        let leading = u128::from(biased != 0) << 112;
        let significand = self.0 & FRACTION | leading;
        BINARY128.unpack(Packed { negative: self.0 >> 127 == 1, biased, significand })
    }

    fn pack(number: Number) -> Binary128 {
        let p = BINARY128.pack(number);
        Binary128(u128::from(p.negative) << 127 | u128::from(p.biased) << 112 | p.significand & FRACTION)
    }

    pub(super) fn add(self, other: Self) -> Self {
        Self::pack(add(self.unpack(), other.unpack()))
    }

    pub(super) fn mul(self, other: Self) -> Self {
        Self::pack(mul(self.unpack(), other.unpack()))
    }

    pub(super) fn less(self, other: Self) -> bool {
        less(self.unpack(), other.unpack())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY64: Format = Format { precision: 53, emax: 1023 };

    fn number64(value: f64) -> Number {
        let bits = value.to_bits();
        let biased = (bits >> 52) as u32 & 0x7ff;
        let significand = u128::from(bits & ((1 << 52) - 1) | u64::from(biased != 0) << 52);
        BINARY64.unpack(Packed { negative: bits >> 63 == 1, biased, significand })
    }

    fn float64(number: Number) -> f64 {
        let p = BINARY64.pack(number);
        let bits =
            u64::from(p.negative) << 63 | u64::from(p.biased) << 52 | p.significand as u64 & ((1 << 52) - 1);
        f64::from_bits(bits)
    }

    /// Numbers that meet: near each other, subnormal, huge, special.
    fn samples() -> Vec<f64> {
        let mut values = vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::MAX,
            f64::MIN_POSITIVE,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for i in 0..600 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state ^ state >> 29;
            let exponent = match i % 4 {
                0 => bits >> 52 & 0x7ff,
                1 => 1023 - 30 + (bits >> 52) % 60,
                2 => (bits >> 52) % 3,
                _ => 0x7fe - (bits >> 52) % 2,
            };
            values.push(f64::from_bits(bits & 0x800f_ffff_ffff_ffff | exponent << 52));
            values.push(f64::from_bits(bits & 0x8000_0000_0000_0003 | exponent << 52));
        }
        values
    }

    fn same(a: f64, b: f64) -> bool {
        a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits()
    }

    #[test]
    fn rounding_is_that_of_the_machine() {
        let values = samples();
        for &a in &values {
            for &b in &values {
                let (x, y) = (number64(a), number64(b));
                assert!(same(float64(add(x, y)), a + b), "{a:e} + {b:e}");
                assert!(same(float64(mul(x, y)), a * b), "{a:e} * {b:e}");
                assert_eq!(less(x, y), a < b, "{a:e} < {b:e}");
            }
        }
    }

    #[test]
    fn formats_come_back_from_memory() {
        // 1, 1/3, the largest and the smallest positive number as gcc stores them.
        let extended =
            [0x3fff_8000_0000_0000_0000_u128, 0x3ffd_aaaa_aaaa_aaaa_aaab, 0x7ffe_ffff_ffff_ffff_ffff, 1];
        for bits in extended {
            assert_eq!(Extended::pack(Extended(bits).unpack()).0, bits);
            assert_eq!(Extended(bits).mul(Extended(extended[0])).0, bits);
        }
        let quad = [
            0x3fff_u128 << 112,
            0x3ffd_5555_5555_5555_5555_5555_5555_5555,
            0x7ffe_ffff_ffff_ffff_ffff_ffff_ffff_ffff,
            1,
        ];
        for bits in quad {
            assert_eq!(Binary128::pack(Binary128(bits).unpack()).0, bits);
            assert_eq!(Binary128(bits).mul(Binary128(quad[0])).0, bits);
        }
        // 1/3 + 1/3 + 1/3 rounds to 1 in both formats.
        let third = Extended(extended[1]);
        assert_eq!(third.add(third).add(third).0, extended[0]);
        let third = Binary128(quad[1]);
        assert_eq!(third.add(third).add(third).0, quad[0]);
    }
}
