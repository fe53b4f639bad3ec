//! Hosts on the command line and in files: all must be this one.
use super::files::read_text;
use crate::sys;
use std::ffi::OsStr;

/// The ranks that a list such as `localhost:4,here` gives to this host, if it says any number.
pub(super) fn from_list(option: &str, list: &str) -> Result<Option<usize>, String> {
    sum(list.split(',').map(|entry| {
        let (name, ranks) = numbered(entry.trim());
        local(option, name)?;
        Ok(ranks)
    }))
}

/// The same from a file: a host to a line, as `host`, `host:4` or `host slots=4`; `#` begins a comment.
pub(super) fn from_file(option: &str, path: &OsStr) -> Result<Option<usize>, String> {
    let text = read_text(option, path)?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err(format!("option {option}: there is no host in '{}'", path.display()));
    }
    sum(lines.into_iter().map(|line| {
        let mut words = line.split_whitespace();
        let (name, ranks) = numbered(words.next().unwrap_or_default());
        local(option, name)?;
        let slots = words.find_map(|word| word.strip_prefix("slots=")?.parse().ok());
        Ok(slots.or(ranks))
    }))
}

/// A host and the number behind its colon; an address of IPv6 has colons of its own.
fn numbered(entry: &str) -> (&str, Option<usize>) {
    match entry.rsplit_once(':') {
        Some((name, number)) if !name.contains(':') => (name, number.parse().ok()),
        _ => (entry, None),
    }
}

/// The sum of those that say a number.
fn sum(entries: impl Iterator<Item = Result<Option<usize>, String>>) -> Result<Option<usize>, String> {
    let numbers: Vec<usize> = entries.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    Ok(numbers.into_iter().reduce(usize::saturating_add))
}

fn local(option: &str, name: &str) -> Result<(), String> {
    let here = sys::hostname();
    // With and without the domain is the same host.
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_string();
    let one_is_short = !name.contains('.') || !here.contains('.');
    let same = name == here || (one_is_short && short(name) == short(&here));
    if same || name.starts_with("127.") || ["localhost", "localhost.localdomain", "::1"].contains(&name) {
        return Ok(());
    }
    Err(format!(
        "option {option}: '{name}' is another host; this mpiexec starts ranks on this host ({here}) only; Tern has no way between hosts yet"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_host_will_do() {
        let here = sys::hostname();
        for list in ["localhost", "127.0.0.1,127.0.1.1", "::1", &here, &format!("{here}.example.org")] {
            assert_eq!(from_list("-host", list), Ok(None), "{list}");
        }
        assert_eq!(from_list("-host", "localhost:4,localhost:2"), Ok(Some(6)));
        for list in ["far", "localhost,far:2", "10.0.0.1"] {
            assert!(from_list("-host", list).unwrap_err().contains("this host"), "{list}");
        }
    }
}
