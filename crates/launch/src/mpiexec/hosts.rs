//! Hosts on the command line and in files.
use super::files::read_text;
use crate::sys;
use std::ffi::OsStr;

/// A host of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its name or address.
    pub name: String,
    /// How many ranks it takes, if that is said.
    pub slots: Option<usize>,
}

/// Most hosts of a list: more are no list of hosts.
const HOSTS_MAX: usize = 1 << 16;

/// The hosts of a list such as `a:4,b:2`. A host that stands there several times counts that often.
pub(super) fn from_list(option: &str, list: &str) -> Result<Vec<Host>, String> {
    let entries = list.split(',').map(str::trim);
    if entries.clone().any(str::is_empty) {
        return Err(format!("option {option}: '{list}' has an empty entry"));
    }
    merged(option, entries.map(|entry| one(option, entry)))
}

/// The same from a file.
pub(super) fn from_file(option: &str, path: &OsStr) -> Result<Vec<Host>, String> {
    from_lines(option, path, &read_text(option, path)?)
}

/// What the file at `path` says: a host to a line, as `host`, `host:4` or `host slots=4`; `#` begins a comment.
pub fn from_lines(option: &str, path: &OsStr, text: &str) -> Result<Vec<Host>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).enumerate();
    let lines: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err(format!("option {option}: there is no host in '{}'", path.display()));
    }
    let entries = lines.into_iter().map(|(index, line)| {
        read_line(&format!("{option}, line {} of '{}'", index + 1, path.display()), line)
    });
    merged(&format!("{option}, '{}'", path.display()), entries)
}

fn read_line(option: &str, line: &str) -> Result<Host, String> {
    let mut words = line.split_whitespace();
    let mut host = one(option, words.next().unwrap_or_default())?;
    for word in words {
        match word.split_once('=') {
            Some(("slots", number)) => host.slots = Some(slots(option, line, number)?),
            // Bounds above, users and interfaces are others' business.
            Some(("max_slots" | "max-slots", _)) => {}
            _ => {
                return Err(format!(
                    "option {option}: '{}' in the line '{}': behind a host stands slots=RANKS only; users \
                     and ports belong into the configuration of ssh",
                    shown(word),
                    shown(line)
                ));
            }
        }
    }
    Ok(host)
}

/// A host and the number behind its colon; an address of IPv6 has colons of its own, unless it is in brackets.
fn one(option: &str, entry: &str) -> Result<Host, String> {
    let (name, number) = match (entry.strip_prefix('['), entry.rsplit_once(':')) {
        (Some(rest), _) => {
            let (name, rest) = rest.split_once(']').ok_or_else(|| bad(option, entry))?;
            let number = rest.strip_prefix(':');
            if number.is_none() && !rest.is_empty() {
                return Err(bad(option, entry));
            }
            (name, number)
        }
        (None, Some((name, number))) if !name.contains(':') => (name, Some(number)),
        _ => (entry, None),
    };
    // What goes to ssh as an argument must not be taken for one of its options.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:@%".contains(c) || !c.is_ascii();
    if name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
        return Err(bad(option, entry));
    }
    let slots = number.map(|number| slots(option, entry, number)).transpose()?;
    Ok(Host { name: name.into(), slots })
}

fn bad(option: &str, entry: &str) -> String {
    format!("option {option}: '{}' is no HOST or HOST:RANKS", shown(entry))
}

/// What stands where a host should, as a terminal may be given it: a file of anything may have been named.
fn shown(text: &str) -> String {
    const LENGTH: usize = 60;
    let more = if text.chars().nth(LENGTH).is_some() { "..." } else { "" };
    let begin: String = text.chars().take(LENGTH).collect();
    format!("{}{more}", begin.escape_debug())
}

fn slots(option: &str, entry: &str, number: &str) -> Result<usize, String> {
    number.parse().map_err(|_| {
        format!("option {option}: '{}' in '{}' is no number of ranks", shown(number), shown(entry))
    })
}

fn merged(option: &str, entries: impl Iterator<Item = Result<Host, String>>) -> Result<Vec<Host>, String> {
    let mut hosts: Vec<Host> = Vec::new();
    for entry in entries {
        let entry = entry?;
        let full = hosts.len() == HOSTS_MAX;
        match hosts.iter_mut().find(|host| host.name == entry.name) {
            Some(host) => {
                let sum = host.slots.unwrap_or(1).saturating_add(entry.slots.unwrap_or(1));
                host.slots = Some(sum);
            }
            None if full => {
                return Err(format!("option {option}: there are more than {HOSTS_MAX} hosts"));
            }
            None => hosts.push(entry),
        }
    }
    if hosts.iter().all(|host| host.slots == Some(0)) {
        return Err(format!("option {option}: no host takes a rank"));
    }
    Ok(hosts)
}

/// Whether a name is one of this host, so that nobody need be asked to start something there.
pub(super) fn is_here(name: &str) -> bool {
    let here = sys::hostname();
    // With and without the domain is the same host; addresses have dots, too.
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_string();
    let one_is_short = !name.contains('.') || !here.contains('.');
    let same = name == here || (one_is_short && short(name) == short(&here));
    same || name.starts_with("127.") || ["localhost", "localhost.localdomain", "::1"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<(String, Option<usize>)> {
        from_list("-host", text).unwrap().into_iter().map(|host| (host.name, host.slots)).collect()
    }

    #[test]
    fn lists() {
        assert_eq!(list("a"), [("a".into(), None)]);
        assert_eq!(list("a:4, b:2,c"), [("a".into(), Some(4)), ("b".into(), Some(2)), ("c".into(), None)]);
        assert_eq!(list("a,b,a,a:2"), [("a".into(), Some(4)), ("b".into(), None)]);
        assert_eq!(list("fe::1,[fe::2]:3"), [("fe::1".into(), None), ("fe::2".into(), Some(3))]);
        for text in [
            "",
            "a,,b",
            "a:x",
            "a:-1",
            ":3",
            "-oProxyCommand=x",
            "a b",
            "a;b",
            "$(x)",
            "[a",
            "[fe::2]3",
            "a:0",
            "a:99999999999999999999",
        ] {
            let error = from_list("-host", text).unwrap_err();
            assert!(error.contains("option -host"), "{text}: {error}");
        }
    }

    #[test]
    fn lines_of_files() {
        let read = |line: &str| read_line("-f", line).map(|host| (host.name, host.slots));
        assert_eq!(read("a"), Ok(("a".into(), None)));
        assert_eq!(read("a:2"), Ok(("a".into(), Some(2))));
        assert_eq!(read("a slots=8 max_slots=16"), Ok(("a".into(), Some(8))));
        for line in ["a slots=x", "a user=me", "a 4"] {
            assert!(read(line).unwrap_err().contains("option -f"), "{line}");
        }
    }

    #[test]
    fn this_host_is_known() {
        let here = sys::hostname();
        for name in ["localhost", "127.0.0.1", "::1", &here, &format!("{here}.example.org")] {
            assert!(is_here(name), "{name}");
        }
        assert!(!is_here("10.0.0.1") && !is_here(&format!("{here}x")));
    }
}
