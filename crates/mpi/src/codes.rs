//! Error classes, codes and strings a program adds (MPI 5.0 section 9.5).
//!
//! Numbers are given out upwards and never twice, so that `MPI_LASTUSEDCODE` only grows and a
//! code removed in one part of a program is not another one elsewhere.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{Class, Error, Result, fail};

/// `MPI_MAX_ERROR_STRING`: the longest error string with its terminating zero in C.
pub const MAX_STRING: usize = 512;

/// The classes of the tools interface (MPI 5.0 section 15.3.10): number, name, text.
const TOOLS: &[(i32, &str, &str)] = &[
    (1001, "MPI_T_ERR_CANNOT_INIT", "the tools interface cannot be initialized now"),
    (1002, "MPI_T_ERR_NOT_ACCESSIBLE", "the feature cannot be accessed"),
    (1003, "MPI_T_ERR_NOT_INITIALIZED", "the tools interface is not initialized"),
    (1004, "MPI_T_ERR_NOT_SUPPORTED", "the feature is not supported"),
    (1005, "MPI_T_ERR_MEMORY", "out of memory"),
    (1006, "MPI_T_ERR_INVALID", "invalid argument of the tools interface"),
    (1007, "MPI_T_ERR_INVALID_INDEX", "invalid index"),
    (1008, "MPI_T_ERR_INVALID_ITEM", "the item index is out of range"),
    (1009, "MPI_T_ERR_INVALID_SESSION", "not a valid session of the tools interface"),
    (1010, "MPI_T_ERR_INVALID_HANDLE", "not a valid handle of the tools interface"),
    (1011, "MPI_T_ERR_INVALID_NAME", "no variable or category has this name"),
    (1012, "MPI_T_ERR_OUT_OF_HANDLES", "no more handles are available"),
    (1013, "MPI_T_ERR_OUT_OF_SESSIONS", "no more sessions are available"),
    (1014, "MPI_T_ERR_CVAR_SET_NOT_NOW", "the control variable cannot be set at this moment"),
    (1015, "MPI_T_ERR_CVAR_SET_NEVER", "the control variable cannot be set before the program ends"),
    (1016, "MPI_T_ERR_PVAR_NO_WRITE", "the performance variable cannot be written or reset"),
    (1017, "MPI_T_ERR_PVAR_NO_STARTSTOP", "the performance variable cannot be started or stopped"),
    (1018, "MPI_T_ERR_PVAR_NO_ATOMIC", "the performance variable cannot be read and written atomically"),
];

/// Codes of errors that have a text of their own: so many for each class of the standard, of which the one given
/// out longest ago is given out again. A program is told which file and where by MPI_Error_string.
const TOLD: Range<i32> = 0x3000..0x3fc0;
const TOLD_PER_CLASS: i32 = 64;

/// The error classes and codes of one rank.
#[derive(Debug)]
pub struct ErrorCodes {
    added: BTreeMap<i32, Added>,
    /// Texts of the codes in [`TOLD`], by class: the newest last, and how many there have been.
    told: BTreeMap<i32, (u32, Vec<String>)>,
    /// Boxed, because `MPI_LASTUSEDCODE` hands out its address.
    last_used: Box<AtomicI32>,
}

/// One class or code the program added.
#[derive(Debug)]
struct Added {
    /// The class of a code; a class is its own.
    class: i32,
    text: Option<Box<[u8]>>,
}

impl Default for ErrorCodes {
    fn default() -> Self {
        ErrorCodes {
            added: BTreeMap::new(),
            told: BTreeMap::new(),
            last_used: Box::new(AtomicI32::new(Class::LAST.0)),
        }
    }
}

impl ErrorCodes {
    /// The largest class or code in use, the value of `MPI_LASTUSEDCODE`.
    pub fn last_used(&self) -> i32 {
        self.last_used.load(Ordering::Relaxed)
    }

    /// Where C reads `MPI_LASTUSEDCODE`; the address stays for the life of this value.
    pub fn last_used_address(&self) -> usize {
        std::ptr::from_ref(&*self.last_used).addr()
    }

    /// `MPI_Add_error_class`.
    pub fn add_class(&mut self) -> Result<i32> {
        let class = self.next()?;
        self.added.insert(class, Added { class, text: None });
        Ok(class)
    }

    /// `MPI_Add_error_code`: a new code of a class of the standard or of the program.
    pub fn add_code(&mut self, class: i32) -> Result<i32> {
        match self.known(class) {
            None => return Err(unknown(class)),
            Some(own) if own != class => {
                return fail(Class::ARG, format!("{class} is an error code, not an error class"));
            }
            Some(_) => {}
        }
        let code = self.next()?;
        self.added.insert(code, Added { class, text: None });
        Ok(code)
    }

    /// `MPI_Add_error_string`: sets or replaces the text of a class or code the program added.
    pub fn add_string(&mut self, code: i32, text: &[u8]) -> Result {
        if text.len() >= MAX_STRING {
            let (length, limit) = (text.len(), MAX_STRING - 1);
            return fail(
                Class::ARG,
                format!("the error string has {length} bytes; at most {limit} are allowed"),
            );
        }
        self.added_mut(code)?.text = Some(text.into());
        Ok(())
    }

    /// `MPI_Remove_error_class`: refused while the class has a string or codes.
    pub fn remove_class(&mut self, class: i32) -> Result {
        if self.added_mut(class)?.class != class {
            return fail(Class::ARG, format!("{class} is an error code, not an error class"));
        }
        if let Some((code, _)) =
            self.added.iter().find(|(code, added)| added.class == class && **code != class)
        {
            return fail(Class::ARG, format!("error class {class} still has error code {code}"));
        }
        self.remove(class)
    }

    /// `MPI_Remove_error_code`: refused while the code has a string.
    pub fn remove_code(&mut self, code: i32) -> Result {
        if self.added_mut(code)?.class == code {
            return fail(Class::ARG, format!("{code} is an error class, not an error code"));
        }
        self.remove(code)
    }

    /// `MPI_Remove_error_string`.
    pub fn remove_string(&mut self, code: i32) -> Result {
        match self.added_mut(code)?.text.take() {
            Some(_) => Ok(()),
            None => fail(Class::ARG, format!("error code {code} has no error string")),
        }
    }

    /// The class of a code, or of a class, which is its own; `None` if it is neither.
    pub fn known(&self, code: i32) -> Option<i32> {
        if standard(code).is_some() {
            return Some(code);
        }
        if TOLD.contains(&code) {
            return self.text_told(code).map(|_| (code - TOLD.start) / TOLD_PER_CLASS);
        }
        self.added.get(&code).map(|added| added.class)
    }

    /// A code of this error's class with its text; of equal errors the same one.
    pub fn tell(&mut self, error: &Error) -> i32 {
        let class = error.class.0;
        let first = TOLD.start + class * TOLD_PER_CLASS;
        if class <= 0 || !TOLD.contains(&(first + TOLD_PER_CLASS - 1)) {
            return class;
        }
        let (count, texts) = self.told.entry(class).or_default();
        if let Some(known) = texts.iter().position(|text| *text == error.text) {
            return first + known as i32;
        }
        let slot = *count as usize % TOLD_PER_CLASS as usize;
        *count = count.wrapping_add(1);
        match texts.get_mut(slot) {
            Some(text) => text.clone_from(&error.text),
            None => texts.push(error.text.clone()),
        }
        first + slot as i32
    }

    fn text_told(&self, code: i32) -> Option<&str> {
        let at = TOLD.contains(&code).then(|| code - TOLD.start)?;
        let (_, texts) = self.told.get(&(at / TOLD_PER_CLASS))?;
        texts.get((at % TOLD_PER_CLASS) as usize).map(String::as_str)
    }

    /// `MPI_Error_class`. Of what is no code it says so: programs pass on what another library
    /// or a broken call has given them, and want to print it, not to end.
    pub fn class_of(&self, code: i32) -> i32 {
        self.known(code).unwrap_or(Class::UNKNOWN.0)
    }

    /// `MPI_Error_string`: the text of a class or code; empty if the program gave none.
    pub fn string_of(&self, code: i32) -> Vec<u8> {
        if let Some(added) = self.added.get(&code) {
            return added.text.as_deref().unwrap_or_default().to_vec();
        }
        if let (Some(text), Some(class)) = (self.text_told(code), self.known(code)) {
            let mut text = format!("{}: {text}", Class(class).name());
            let end = text.floor_char_boundary(MAX_STRING - 1);
            text.truncate(end);
            return text.into_bytes();
        }
        match self.known(code).and_then(standard) {
            Some((name, text)) => format!("{name}: {text}").into_bytes(),
            None => format!("unknown error code {code}").into_bytes(),
        }
    }

    /// The error a callback of the program stands for that returned `code`: its own code if it is
    /// one, `MPI_ERR_OTHER` if it is not.
    pub fn from_callback(&self, code: i32, text: impl Into<String>) -> Error {
        let known = code != 0 && self.known(code).is_some();
        Error::new(if known { Class(code) } else { Class::OTHER }, text)
    }

    fn next(&mut self) -> Result<i32> {
        let Some(next) = self.last_used().checked_add(1) else {
            return fail(Class::INTERN, "no error codes are left");
        };
        self.last_used.store(next, Ordering::Relaxed);
        Ok(next)
    }

    fn added_mut(&mut self, code: i32) -> Result<&mut Added> {
        if code <= Class::LAST.0 {
            return fail(
                Class::ARG,
                format!("error code {code} belongs to the standard and cannot be changed"),
            );
        }
        self.added.get_mut(&code).ok_or_else(|| unknown(code))
    }

    fn remove(&mut self, code: i32) -> Result {
        if self.added_mut(code)?.text.is_some() {
            return fail(Class::ARG, format!("error code {code} still has an error string"));
        }
        self.added.remove(&code);
        Ok(())
    }
}

/// Name and text of a class of the standard.
fn standard(code: i32) -> Option<(&'static str, &'static str)> {
    let of_mpi = Class::STANDARD.iter().find(|row| row.0.0 == code).map(|row| (row.1, row.2));
    of_mpi.or_else(|| TOOLS.iter().find(|row| row.0 == code).map(|row| (row.1, row.2)))
}

fn unknown(code: i32) -> Error {
    Error::new(Class::ARG, format!("{code} is not an error class or code"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_with_a_text_of_their_own_keep_their_class() {
        let mut codes = ErrorCodes::default();
        let told =
            |codes: &mut ErrorCodes, i: i32| codes.tell(&Error::new(Class::IO, format!("at offset {i}")));
        let first = told(&mut codes, 0);
        assert_eq!(told(&mut codes, 0), first);
        assert_eq!(codes.string_of(first), b"MPI_ERR_IO: at offset 0");
        for i in 1..=TOLD_PER_CLASS {
            let code = told(&mut codes, i);
            assert_eq!(codes.class_of(code), Class::IO.0);
        }
        assert_eq!(codes.string_of(first), format!("MPI_ERR_IO: at offset {TOLD_PER_CLASS}").as_bytes());
        let last = Class::STANDARD.last().unwrap().0;
        let code = codes.tell(&Error::new(last, "x"));
        assert!(codes.class_of(code) == last.0 && code < Class::LAST.0, "{code:#x}");
        assert_eq!(codes.tell(&Error::new(Class(0x4001), "of the program")), 0x4001);
        assert_eq!(codes.known(TOLD.start + 1), None);
    }

    #[test]
    fn classes_codes_and_strings_are_removed_from_the_outside_in() {
        let mut codes = ErrorCodes::default();
        assert_eq!(codes.last_used(), 0x3fff);
        let class = codes.add_class().unwrap();
        let code = codes.add_code(class).unwrap();
        assert_eq!((class, code, codes.last_used()), (0x4000, 0x4001, 0x4001));
        assert_eq!(codes.string_of(code), b"");
        codes.add_string(class, b"class").unwrap();
        codes.add_string(code, b"code").unwrap();
        assert_eq!((codes.class_of(code), codes.class_of(class)), (class, class));
        assert_eq!(codes.string_of(code), b"code");

        assert!(codes.remove_class(class).unwrap_err().text.contains("still has error code 16385"));
        assert!(codes.remove_code(code).unwrap_err().text.contains("still has an error string"));
        codes.remove_string(code).unwrap();
        assert_eq!(codes.remove_string(code).unwrap_err().class, Class::ARG);
        codes.remove_code(code).unwrap();
        assert_eq!(codes.remove_code(code).unwrap_err().class, Class::ARG);
        assert!(codes.remove_class(class).is_err());
        codes.remove_string(class).unwrap();
        codes.remove_class(class).unwrap();
        assert_eq!((codes.known(class), codes.class_of(class)), (None, Class::UNKNOWN.0));
        assert_eq!(codes.add_code(class).unwrap_err().class, Class::ARG);
        assert_eq!(codes.add_class().unwrap(), 0x4002, "numbers are not given out twice");
    }

    #[test]
    fn the_standard_classes_are_fixed() {
        let mut codes = ErrorCodes::default();
        for fixed in [0, Class::RANK.0, Class::LAST.0] {
            assert!(codes.remove_class(fixed).is_err() && codes.remove_code(fixed).is_err());
            assert!(codes.remove_string(fixed).is_err() && codes.add_string(fixed, b"x").is_err());
        }
        assert_eq!(codes.class_of(1007), 1007);
        for row in Class::STANDARD {
            let text = codes.string_of(row.0.0);
            assert!(text.len() < MAX_STRING && text.starts_with(row.1.as_bytes()));
        }
        let code = codes.add_code(Class::OTHER.0).unwrap();
        assert!(codes.add_code(code).is_err(), "a code has no codes");
        assert!(codes.add_string(code, &[b'x'; MAX_STRING - 1]).is_ok());
        assert_eq!(codes.add_string(code, &[b'x'; MAX_STRING]).unwrap_err().class, Class::ARG);
    }

    #[test]
    fn what_is_no_code_has_a_class_and_a_text_all_the_same() {
        let codes = ErrorCodes::default();
        for code in [-1, 63, 999, Class::LAST.0, Class::LAST.0 + 1, i32::MAX, i32::MIN] {
            assert_eq!((codes.known(code), codes.class_of(code)), (None, Class::UNKNOWN.0));
            assert_eq!(codes.string_of(code), format!("unknown error code {code}").into_bytes());
        }
    }

    #[test]
    fn callbacks_may_return_their_own_codes_but_no_nonsense() {
        let mut codes = ErrorCodes::default();
        let code = codes.add_code(Class::OTHER.0).unwrap();
        assert_eq!(codes.from_callback(code, "").class, Class(code));
        assert_eq!(codes.from_callback(Class::IO.0, "").class, Class::IO);
        assert_eq!(codes.from_callback(123_456, "").class, Class::OTHER);
    }
}
