//! Info objects: ordered pairs of strings that carry hints (MPI 5.0 chapter 10).
//!
//! Strings are bytes, because C strings need not be UTF-8; lengths here never count the
//! terminating zero of C, while the limits of the standard do.

use crate::error::{Class, Result, fail};

/// `MPI_MAX_INFO_KEY`: the longest key with its terminating zero in C.
pub const MAX_KEY: usize = 256;
/// `MPI_MAX_INFO_VAL`: the longest value with its terminating zero in C.
pub const MAX_VALUE: usize = 1024;

/// An info object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Few enough that a linear search beats any index.
    pairs: Vec<Pair>,
}

/// Key and value.
type Pair = (Box<[u8]>, Box<[u8]>);

impl Info {
    /// An empty object.
    pub const fn new() -> Info {
        Info { pairs: Vec::new() }
    }

    /// `MPI_Info_set`: adds a pair or replaces its value, which keeps its place.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result {
        check_key(key)?;
        if value.len() >= MAX_VALUE {
            let (length, limit) = (value.len(), MAX_VALUE - 1);
            return fail(
                Class::INFO_VALUE,
                format!("the value of key {} has {length} bytes; at most {limit} are allowed", shown(key)),
            );
        }
        match self.pairs.iter_mut().find(|pair| *pair.0 == *key) {
            Some(pair) => pair.1 = value.into(),
            None => self.pairs.push((key.into(), value.into())),
        }
        Ok(())
    }

    /// The value of a key, if it is there. A key no object can hold is an error.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        check_key(key)?;
        Ok(self.pairs.iter().find(|pair| *pair.0 == *key).map(|pair| &*pair.1))
    }

    /// The value of a hint the library looks for, if it is there and is text.
    pub fn hint(&self, key: &str) -> Option<&str> {
        let pair = self.pairs.iter().find(|pair| *pair.0 == *key.as_bytes())?;
        std::str::from_utf8(&pair.1).ok()
    }

    /// `MPI_Info_delete`; a key that is not there is an error.
    pub fn delete(&mut self, key: &[u8]) -> Result {
        check_key(key)?;
        match self.pairs.iter().position(|pair| *pair.0 == *key) {
            Some(at) => {
                self.pairs.remove(at);
                Ok(())
            }
            None => fail(Class::INFO_NOKEY, format!("key {} is not in the info object", shown(key))),
        }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// `MPI_Info_get_nthkey`: keys in the order of their first setting.
    pub fn nth_key(&self, n: usize) -> Result<&[u8]> {
        match self.pairs.get(n) {
            Some(pair) => Ok(&pair.0),
            None => fail(Class::ARG, format!("`n` is {n}; the info object has {} keys", self.len())),
        }
    }

    /// All pairs in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.pairs.iter().map(|pair| (&*pair.0, &*pair.1))
    }

    /// Replaces the value of a pair the library itself provides; what does not fit is cut, since
    /// nobody can correct a command line that is longer than the standard allows.
    pub fn provide(&mut self, key: &str, value: &str) {
        let value = &value.as_bytes()[..value.len().min(MAX_VALUE - 1)];
        if !value.is_empty() {
            self.set(key.as_bytes(), value).expect("the library's own keys are within the limits");
        }
    }
}

/// How the program was started, for `MPI_INFO_ENV` (MPI 5.0 section 11.2.3). What is not known
/// stays empty and gives no key. `thread_level` is none of them: it is the level that was asked for
/// before the program started, which no launcher has a way to do.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Name of the program.
    pub command: String,
    /// Its arguments.
    pub argv: Vec<String>,
    /// The number of processes started with this one.
    pub maxprocs: Option<u32>,
    /// The error handler that it begins with.
    pub initial_errhandler: String,
    /// The kinds of memory that there are of those that were asked for.
    pub memory_alloc_kinds: String,
    /// The number of processes that were asked for, in the syntax of the key.
    pub soft: String,
    /// Host name.
    pub host: String,
    /// Architecture.
    pub arch: String,
    /// Working directory.
    pub wdir: String,
    /// A file with further arguments for the start.
    pub file: String,
}

impl Environment {
    /// The info object with these values: `MPI_INFO_ENV` or that of `MPI_Info_create_env`.
    pub fn to_info(&self) -> Info {
        let mut info = Info::new();
        info.provide("command", &self.command);
        info.provide("argv", &self.argv.join(" "));
        if let Some(maxprocs) = self.maxprocs {
            info.provide("maxprocs", &maxprocs.to_string());
        }
        info.provide("mpi_initial_errhandler", &self.initial_errhandler);
        info.provide("mpi_memory_alloc_kinds", &self.memory_alloc_kinds);
        info.provide("soft", &self.soft);
        info.provide("host", &self.host);
        info.provide("arch", &self.arch);
        info.provide("wdir", &self.wdir);
        info.provide("file", &self.file);
        info
    }
}

fn check_key(key: &[u8]) -> Result {
    if key.is_empty() {
        return fail(Class::INFO_KEY, "the key is empty");
    }
    if key.len() >= MAX_KEY {
        let (length, limit) = (key.len(), MAX_KEY - 1);
        return fail(Class::INFO_KEY, format!("the key has {length} bytes; at most {limit} are allowed"));
    }
    Ok(())
}

/// A key for a message: quoted, with anything unprintable escaped.
fn shown(key: &[u8]) -> String {
    format!("\"{}\"", key.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order_of_their_first_setting() {
        let mut info = Info::new();
        info.set(b"b", b"1").unwrap();
        info.set(b"a", b"2").unwrap();
        info.set(b"b", b"3").unwrap();
        assert_eq!(info.iter().collect::<Vec<_>>(), [(&b"b"[..], &b"3"[..]), (&b"a"[..], &b"2"[..])]);
        assert_eq!((info.nth_key(0).unwrap(), info.nth_key(1).unwrap()), (&b"b"[..], &b"a"[..]));
        for n in [2, usize::MAX] {
            assert_eq!(info.nth_key(n).unwrap_err().class, Class::ARG);
        }
        info.delete(b"b").unwrap();
        assert_eq!((info.get(b"b").unwrap(), info.len()), (None, 1));
        assert_eq!(info.delete(b"b").unwrap_err().class, Class::INFO_NOKEY);
        assert_eq!((info.hint("a"), info.hint("b")), (Some("2"), None));
    }

    #[test]
    fn the_limits_count_the_zero_of_c() {
        let mut info = Info::new();
        let key = |len: usize| vec![b'k'; len];
        info.set(&key(MAX_KEY - 1), b"").unwrap();
        assert_eq!(info.get(&key(MAX_KEY - 1)).unwrap(), Some(&b""[..]));
        for bad in [key(0), key(MAX_KEY)] {
            assert_eq!(info.set(&bad, b"v").unwrap_err().class, Class::INFO_KEY);
            assert_eq!(info.get(&bad).unwrap_err().class, Class::INFO_KEY);
            assert_eq!(info.delete(&bad).unwrap_err().class, Class::INFO_KEY);
        }
        info.set(b"v", &vec![0xff; MAX_VALUE - 1]).unwrap();
        assert_eq!(info.hint("v"), None, "not text");
        assert_eq!(info.set(b"v", &vec![b'v'; MAX_VALUE]).unwrap_err().class, Class::INFO_VALUE);
        info.provide("command", &"x".repeat(5000));
        assert_eq!(info.hint("command").unwrap().len(), MAX_VALUE - 1);
        info.provide("host", "");
        assert_eq!(info.len(), 3);
    }

    #[test]
    fn the_environment_gives_the_keys_it_knows() {
        let environment = Environment {
            command: "heat".into(),
            argv: vec!["-n".into(), "4".into()],
            maxprocs: Some(7),
            ..Environment::default()
        };
        let info = environment.to_info();
        assert_eq!((info.hint("command"), info.hint("argv")), (Some("heat"), Some("-n 4")));
        assert_eq!((info.hint("maxprocs"), info.hint("host"), info.len()), (Some("7"), None, 3));
    }
}
