//! One line of PMI-1, read and written.
use crate::text::quoted;
use std::fmt;

/// Longest line that is read: room for the longest value that Hydra stores (it takes any length)
/// is not needed, since values are split, but other clients of our server may write longer ones.
pub const LINE_MAX: usize = 64 * 1024;

/// A command or an answer: its name and its fields in the order of the line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The value of `cmd` (or `mcmd`).
    pub name: String,
    /// Whether it was `mcmd`: more lines follow, up to `endcmd`.
    pub multi_line: bool,
    fields: Vec<(String, String)>,
}

/// Why a line is not a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Longer than [`LINE_MAX`].
    TooLong,
    /// It has a byte that is not printable ASCII.
    NotText(u8),
    /// A word without `=` where a field must begin.
    NoField(String),
    /// There is no `cmd=` in it, or nothing after it.
    NoCommand,
    /// A field occurs twice.
    Twice(String),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Malformed::TooLong => write!(f, "the line is longer than {LINE_MAX} bytes"),
            Malformed::NotText(byte) => write!(f, "byte {byte:#04x} is not text"),
            Malformed::NoField(word) => write!(f, "{} is not a field", quoted(word.as_bytes())),
            Malformed::NoCommand => write!(f, "it has no cmd="),
            Malformed::Twice(key) => write!(f, "field {key} occurs twice"),
        }
    }
}

/// Reads one line, without its newline. Fields come in any order. A word without `=` continues
/// the value before it: some servers put blanks into their messages.
pub fn parse_line(line: &[u8]) -> Result<Command, Malformed> {
    if line.len() > LINE_MAX {
        return Err(Malformed::TooLong);
    }
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some(byte) = line.iter().find(|b| !(b' '..=b'~').contains(*b)) {
        return Err(Malformed::NotText(*byte));
    }
    let text = std::str::from_utf8(line).expect("ASCII was checked");
    let mut fields: Vec<(String, String)> = Vec::new();
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        match (word.split_once('='), fields.last_mut()) {
            (Some((key, value)), _) if !key.is_empty() => {
                if fields.iter().any(|(known, _)| known == key) {
                    return Err(Malformed::Twice(key.into()));
                }
                fields.push((key.into(), value.into()));
            }
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            _ => return Err(Malformed::NoField(word.into())),
        }
    }
    let at = fields.iter().position(|(key, _)| key == "cmd" || key == "mcmd").ok_or(Malformed::NoCommand)?;
    let (key, name) = fields.remove(at);
    if name.is_empty() {
        return Err(Malformed::NoCommand);
    }
    Ok(Command { name, multi_line: key == "mcmd", fields })
}

impl Command {
    /// The text of a field.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The number in a field; an error says which field is missing or is no number.
    pub fn number(&self, key: &str) -> Result<i64, String> {
        let text = self.field(key).ok_or_else(|| format!("it has no {key}="))?;
        text.parse().map_err(|_| format!("{key}={} is not a number", quoted(text.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_any_order() {
        let a = parse_line(b"cmd=maxes rc=0 vallen_max=1024").unwrap();
        let b = parse_line(b" vallen_max=1024  cmd=maxes rc=0\r").unwrap();
        for command in [&a, &b] {
            assert_eq!(command.name, "maxes");
            assert_eq!(command.number("vallen_max"), Ok(1024));
            assert_eq!(command.number("rc"), Ok(0));
        }
    }

    #[test]
    fn values_keep_equal_signs_and_blanks() {
        let command = parse_line(b"cmd=get_result rc=-1 msg=no such key value=a=b=").unwrap();
        assert_eq!(command.field("msg"), Some("no such key"));
        assert_eq!(command.field("value"), Some("a=b="));
        assert!(parse_line(b"mcmd=spawn").unwrap().multi_line);
    }

    #[test]
    fn malformed_lines_say_why() {
        assert_eq!(parse_line(b""), Err(Malformed::NoCommand));
        assert_eq!(parse_line(b"cmd="), Err(Malformed::NoCommand));
        assert_eq!(parse_line(b"rc=0"), Err(Malformed::NoCommand));
        assert_eq!(parse_line(b"garbage"), Err(Malformed::NoField("garbage".into())));
        assert_eq!(parse_line(b"=1 cmd=x"), Err(Malformed::NoField("=1".into())));
        assert_eq!(parse_line(b"cmd=a\0"), Err(Malformed::NotText(0)));
        assert_eq!(parse_line(b"cmd=a rc=0 rc=1"), Err(Malformed::Twice("rc".into())));
        assert_eq!(parse_line(&vec![b'a'; LINE_MAX + 1]), Err(Malformed::TooLong));
    }

    #[test]
    fn numbers_that_are_none_name_the_field() {
        let command = parse_line(b"cmd=maxes keylen_max=abc").unwrap();
        assert!(command.number("keylen_max").unwrap_err().contains("keylen_max='abc'"));
        assert!(command.number("vallen_max").unwrap_err().contains("no vallen_max="));
    }

    /// Every line that one changed byte makes is read or refused, never a crash, and what is read
    /// has no field twice.
    #[test]
    fn one_changed_byte_never_crashes() {
        let line = b"cmd=get_result rc=0 msg=success value=s%20x";
        for at in 0..line.len() {
            for byte in 0..=255 {
                let mut changed = line.to_vec();
                changed[at] = byte;
                if let Ok(command) = parse_line(&changed) {
                    assert!(!command.name.is_empty());
                }
            }
        }
    }
}
