//! Files that the command line names: small ones that are read, and those that ranks write to.
use crate::sys;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The longest file of hosts or programs that is read.
const TEXT_MAX: u64 = 1 << 20;

/// The text of a file that an option names.
pub(super) fn read_text(option: &str, path: &OsStr) -> Result<String, String> {
    let failed = |why: &dyn std::fmt::Display| format!("option {option}: '{}': {why}", path.display());
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(TEXT_MAX + 1).read_to_string(&mut text));
    match read {
        Ok(count) if count as u64 > TEXT_MAX => Err(failed(&format!("it is longer than {TEXT_MAX} bytes"))),
        Ok(_) => Ok(text),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(failed(&"it is no text (UTF-8)")),
        Err(error) => Err(failed(&error)),
    }
}

/// The programs of a `-configfile`: a line for each, in words as a shell divides them.
pub(super) fn programs(option: &str, path: &OsStr) -> Result<Vec<Vec<OsString>>, String> {
    let text = read_text(option, path)?;
    let mut programs = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words = words(line).ok_or_else(|| {
            format!(
                "option {option}: line {} of '{}' has a quote without its end",
                number + 1,
                path.display()
            )
        })?;
        if !words.is_empty() {
            programs.push(words);
        }
    }
    if programs.is_empty() {
        return Err(format!("option {option}: there is no program in '{}'", path.display()));
    }
    Ok(programs)
}

/// The words of a line: separated by blanks, kept together by quotes or backslashes, up to a `#`.
pub(super) fn words(line: &str) -> Option<Vec<OsString>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('\''), letter) => word.get_or_insert_default().push(letter),
            (_, '\\') => word.get_or_insert_default().push(letters.next()?),
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            (None, '#') if word.is_none() => break,
            (None, letter) if letter.is_whitespace() => words.extend(word.take().map(OsString::from)),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.map(OsString::from));
    quote.is_none().then_some(words)
}

/// Opens the files that ranks write to.
#[derive(Default)]
pub(super) struct Files {
    /// Those that a rank of this job writes to: a later one adds to what is there.
    begun: BTreeSet<PathBuf>,
}

impl Files {
    /// The file that `pattern` names for `rank`, empty when it is opened first.
    pub(super) fn open(&mut self, pattern: &OsStr, rank: usize) -> Result<File, String> {
        let path = name(pattern, rank)?;
        let failed = |error: std::io::Error| format!("'{}': {error}", path.display());
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        // Ranks that share a file append, so that none writes over another's lines.
        let first = self.begun.insert(path.clone());
        let file = File::options().append(true).create(true).open(&path).map_err(failed)?;
        if first && file.metadata().is_ok_and(|meta| meta.is_file()) {
            file.set_len(0).map_err(failed)?;
        }
        Ok(file)
    }
}

/// The name that a pattern gives the file of `rank`.
fn name(pattern: &OsStr, rank: usize) -> Result<PathBuf, String> {
    let mut name = Vec::new();
    let mut bytes = pattern.as_bytes().iter();
    while let Some(byte) = bytes.next() {
        match (byte, (*byte == b'%').then(|| bytes.next())) {
            (byte, None) => name.push(*byte),
            (_, Some(Some(b'%'))) => name.push(b'%'),
            (_, Some(Some(b'r'))) => name.extend(rank.to_string().into_bytes()),
            (_, Some(Some(b'h'))) => name.extend(sys::hostname().into_bytes()),
            // The number of the group and of the host: there is one of each.
            (_, Some(Some(b'g' | b'p'))) => name.push(b'0'),
            _ => {
                return Err(format!(
                    "'{}': behind % stands r (rank), h (host), g, p (both 0) or %",
                    pattern.display()
                ));
            }
        }
    }
    Ok(OsString::from_vec(name).into())
}

/// Whether every rank can be given a file by this pattern.
pub(super) fn check_pattern(pattern: &OsStr) -> Result<(), String> {
    name(pattern, 0).map(drop)
}

/// `directory` as a part of a pattern.
pub(super) fn literal(directory: &OsStr) -> OsString {
    let doubled = directory
        .as_bytes()
        .iter()
        .flat_map(|b| if *b == b'%' { &b"%%"[..] } else { std::slice::from_ref(b) });
    OsString::from_vec(doubled.copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_divided_as_a_shell_does_it() {
        let divided =
            |line: &str| words(line).map(|words| words.join(OsStr::new("|")).into_string().unwrap());
        for (line, expected) in [
            ("", ""),
            ("  # nothing", ""),
            ("-n 2 ./a  b\t'c d' # e", "-n|2|./a|b|c d"),
            (r#"a "b 'c\" " '' d\ e f#g"#, r#"a|b 'c" ||d e|f#g"#),
        ] {
            assert_eq!(divided(line).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(divided("'a"), None);
        assert_eq!(divided("a\\"), None);
    }

    #[test]
    fn patterns_name_files() {
        let named = |pattern: &str| name(OsStr::new(pattern), 12);
        let host = sys::hostname();
        assert_eq!(named("out.%r.%h.%g%p%%"), Ok(format!("out.12.{host}.00%").into()));
        for pattern in ["%", "out.%x"] {
            assert!(named(pattern).unwrap_err().contains("behind %"), "{pattern}");
        }
        assert_eq!(name(&literal(OsStr::new("50%r")), 1), Ok("50%r".into()));
    }
}
