//! How the constants of an ABI are found that are not those of the standard one.

use super::Set;

/// A constant: its name, its value in the standard ABI, its value in the other one.
pub type Row = (&'static str, i32, i32);

/// The constants of an ABI.
pub struct Values {
    /// All constants of each set.
    pub sets: &'static [(Set, &'static [Row])],
    /// By how much codes that a program adds are larger than in the standard ABI.
    pub program_code: i32,
    /// What the keys that a program makes have and no predefined key has, or 0.
    pub program_keyval: i32,
}

/// The last code that the standard reserves: those that a program adds come behind it.
const LAST_CODE: i32 = 0x3fff;

/// Stands for constants from C that have a meaning in the standard ABI alone. No constant of any ABI has this value.
const NONE: i32 = -0x7fff_0000;

/// What is refused in a set of bits.
const NO_MODE: i32 = 1 << 30;

impl Values {
    /// A constant from C.
    #[inline(never)]
    pub fn read(&self, set: Set, value: i32) -> i32 {
        match set {
            Set::Amode | Set::Assert => return self.bits(set, value, |row| (row.2, row.1)),
            Set::Code if value > LAST_CODE + self.program_code => return value - self.program_code,
            Set::Keyval if value & self.program_keyval != 0 => return value & !self.program_keyval,
            _ => {}
        }
        let rows = self.rows(set);
        match rows.iter().find(|row| row.2 == value) {
            Some(row) => row.1,
            None if rows.iter().any(|row| row.1 == value) => NONE,
            None => value,
        }
    }

    /// A constant as C has it.
    #[inline(never)]
    pub fn write(&self, set: Set, value: i32) -> i32 {
        match set {
            Set::Amode | Set::Assert => return self.bits(set, value, |row| (row.1, row.2)),
            Set::Code if value > LAST_CODE => return value + self.program_code,
            _ => {}
        }
        match self.rows(set).iter().find(|row| row.1 == value) {
            Some(row) => row.2,
            None if set == Set::Keyval => value | self.program_keyval,
            None => value,
        }
    }

    /// Each bit of a mode by itself; one that has no meaning becomes [`NO_MODE`].
    fn bits(&self, set: Set, value: i32, pair: impl Fn(&Row) -> (i32, i32)) -> i32 {
        let (mut rest, mut found) = (value, 0);
        for (from, to) in self.rows(set).iter().map(pair) {
            if rest & from != 0 {
                rest &= !from;
                found |= to;
            }
        }
        if rest == 0 { found } else { found | NO_MODE }
    }

    fn rows(&self, set: Set) -> &'static [Row] {
        self.sets.iter().find(|found| found.0 == set).map_or(&[], |found| found.1)
    }
}
