//! Values of any bytes and any length in a store that takes short words.
//!
//! A value becomes one word and, if that is too long, several pieces. The word under the key
//! itself begins with `s` (single) or is `m` and the number of pieces; piece `i` is under `key~i`.
//! `~` cannot occur in an escaped key, so no key of the user meets that of a piece.
use crate::text::{escape, unescape};

/// Limits of a key-value space, as the launcher states them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Maxes {
    /// Longest name of a space.
    pub name_bytes: usize,
    /// Longest key.
    pub key_bytes: usize,
    /// Longest value.
    pub value_bytes: usize,
}

/// Most pieces a value may have; it bounds what a corrupt answer can make a client ask for.
pub const PIECES_MAX: usize = 65536;
/// Room that the number of a piece and its `~` take behind a key.
const SUFFIX_MAX: usize = 6;
/// A PMI-1 client of the first hour reads lines of 1024 bytes. A piece of 768 leaves room on the
/// line for the command, the name of the space and the key.
const PIECE_MAX: usize = 768;

/// Pairs of words to put for one value.
pub fn split(key: &str, value: &[u8], maxes: Maxes) -> Result<Vec<(String, String)>, String> {
    let key = key_word(key, maxes)?;
    let word = format!("s{}", escape(value));
    let piece = piece_bytes(maxes)?;
    if word.len() <= piece {
        return Ok(vec![(key, word)]);
    }
    let pieces = word.as_bytes()[1..].chunks(piece);
    let count = pieces.len();
    if count > PIECES_MAX {
        return Err(format!(
            "the value of key {key} has {} bytes, more than {PIECES_MAX} pieces of {piece}",
            value.len()
        ));
    }
    if key.len() + SUFFIX_MAX >= maxes.key_bytes {
        return Err(format!("key {key} is too long for a value in pieces (keylen_max {})", maxes.key_bytes));
    }
    let mut pairs = vec![(key.clone(), format!("m{count}"))];
    for (index, piece) in pieces.enumerate() {
        pairs.push((piece_key(&key, index), String::from_utf8_lossy(piece).into_owned()));
    }
    Ok(pairs)
}

/// The value behind the words that `fetch` finds, or why it is none.
pub fn join(
    key: &str,
    maxes: Maxes,
    mut fetch: impl FnMut(&str) -> Result<String, String>,
) -> Result<Vec<u8>, String> {
    let key = key_word(key, maxes)?;
    let head = fetch(&key)?;
    let corrupt = |what: &str| format!("the value of key {key} is corrupt: {what}");
    let word = if let Some(word) = head.strip_prefix('s') {
        word.to_string()
    } else {
        let count = head.strip_prefix('m').and_then(|n| n.parse::<usize>().ok());
        let count = count.filter(|n| *n <= PIECES_MAX).ok_or_else(|| corrupt("no number of pieces"))?;
        (0..count).map(|index| fetch(&piece_key(&key, index))).collect::<Result<String, String>>()?
    };
    unescape(&word).ok_or_else(|| corrupt("it was not written by this library"))
}

fn key_word(key: &str, maxes: Maxes) -> Result<String, String> {
    let word = escape(key.as_bytes());
    if word.is_empty() || word.len() >= maxes.key_bytes {
        return Err(format!("key '{key}' has no length from 1 to {} (keylen_max)", maxes.key_bytes - 1));
    }
    Ok(word)
}

fn piece_key(key: &str, index: usize) -> String {
    format!("{key}~{index}")
}

fn piece_bytes(maxes: Maxes) -> Result<usize, String> {
    // One less than the limit: servers in C count the byte that ends the string.
    match maxes.value_bytes.saturating_sub(1).min(PIECE_MAX) {
        0..16 => Err(format!("the launcher's vallen_max {} is too small", maxes.value_bytes)),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const SMALL: Maxes = Maxes { name_bytes: 64, key_bytes: 32, value_bytes: 20 };

    fn there_and_back(key: &str, value: &[u8], maxes: Maxes) -> Vec<u8> {
        let store: HashMap<String, String> = split(key, value, maxes).unwrap().into_iter().collect();
        for (key, word) in &store {
            assert!(key.len() < maxes.key_bytes && word.len() < maxes.value_bytes);
            assert!(!key.contains(' ') && !word.contains(' '));
        }
        join(key, maxes, |key| store.get(key).cloned().ok_or("no key".into())).unwrap()
    }

    #[test]
    fn values_of_every_length_survive() {
        for len in [0, 1, 17, 18, 19, 20, 21, 37, 38, 39, 1000] {
            let value: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            assert_eq!(there_and_back("a key", &value, SMALL), value, "length {len}");
            let plain = vec![b'p'; len];
            assert_eq!(there_and_back("k", &plain, SMALL), plain, "length {len}");
        }
    }

    #[test]
    fn limits_are_errors_that_name_the_key() {
        assert!(split("", b"", SMALL).is_err());
        assert!(split(&"k".repeat(32), b"", SMALL).unwrap_err().contains("kkk"));
        assert!(split(&"k".repeat(30), &[0; 100], SMALL).unwrap_err().contains("pieces"));
        assert!(split("k", b"", Maxes { value_bytes: 3, ..SMALL }).unwrap_err().contains("vallen_max 3"));
        assert!(split("k", &[b'x'; 2_000_000], SMALL).unwrap_err().contains("more than"));
    }

    #[test]
    fn corrupt_words_are_errors() {
        for head in ["", "x", "m", "m-1", "m99999999", "s%", "sa b"] {
            let error = join("k", SMALL, |_| Ok(head.to_string())).unwrap_err();
            assert!(error.contains("key k"), "{head}: {error}");
        }
    }
}
