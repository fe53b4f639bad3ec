//! Bytes as one word of a line: what both PMI values and hang reports are written in.

/// Bytes that stand for themselves; all others become `%` and two hexadecimal digits. Neither `=`
/// nor blanks nor `~` are among them, so that they can separate words; nor `;`, which ends a value of
/// PMI-2: Slurm does not heed that it is doubled in one.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.,:/@+()[]<>*".contains(&byte)
}

/// Appends `bytes` to `out` as one word without blanks.
pub fn escape_into(out: &mut String, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// `bytes` as one word without blanks.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    escape_into(&mut out, bytes);
    out
}

/// The bytes behind a word that [`escape`] made; `None` if it did not make it.
pub fn unescape(word: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(word.len());
    let mut bytes = word.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            out.push((high * 16 + low) as u8);
        } else if is_plain(byte) {
            out.push(byte);
        } else {
            return None;
        }
    }
    Some(out)
}

/// `bytes` as a person may read them in a message: printable, quoted, cut to a bounded length.
pub fn quoted(bytes: &[u8]) -> String {
    const SHOWN: usize = 120;
    let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii();
    let rest = if bytes.len() > SHOWN { format!("… ({} bytes)", bytes.len()) } else { String::new() };
    format!("'{shown}'{rest}")
}

/// Collects bytes and hands out whole lines.
#[derive(Default)]
pub struct Lines {
    held: Vec<u8>,
    taken: usize,
}

impl Lines {
    /// Adds what has been read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.taken);
        self.taken = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next whole line, without its newline.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        let rest = &self.held[self.taken..];
        let end = rest.iter().position(|b| *b == b'\n')?;
        let line = rest[..end].to_vec();
        self.taken += end + 1;
        Some(line)
    }

    /// The next bytes, if so many have come.
    pub fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        let bytes = self.partial().get(..count)?.to_vec();
        self.taken += count;
        Some(bytes)
    }

    /// What has come of a line that is not whole yet.
    pub fn partial(&self) -> &[u8] {
        &self.held[self.taken..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_as_one_word() {
        let all: Vec<u8> = (0..=255).collect();
        let word = escape(&all);
        assert!(word.bytes().all(|b| b.is_ascii_graphic() && b != b'=' && b != b'~'));
        assert_eq!(unescape(&word).unwrap(), all);
        assert_eq!(escape(b"shm:/dev-1.2"), "shm:/dev-1.2");
        assert_eq!(escape(b"a;b"), "a%3bb");
    }

    #[test]
    fn foreign_words_are_refused() {
        for word in ["%", "%4", "%zz", "a b", "a=b", "ü", "%+1"] {
            assert_eq!(unescape(word), None, "{word}");
        }
    }

    #[test]
    fn lines_come_whole_however_they_arrive() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for byte in b"one\n\ntwo\nrest" {
            lines.push(&[*byte]);
            seen.extend(lines.next_line());
        }
        assert_eq!(seen, [b"one".to_vec(), b"".to_vec(), b"two".to_vec()]);
        assert_eq!(lines.partial(), b"rest");
    }

    #[test]
    fn quoting_bounds_the_length() {
        assert_eq!(quoted(b"a\x01"), "'a\\x01'");
        assert!(quoted(&[b'x'; 5000]).len() < 200);
    }
}
