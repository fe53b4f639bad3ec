//! The manual pages hold what the code declares: options and settings are written into them by
//! this test (`UPDATE_MAN=1 cargo test -p launch --test manual`) and compared by it.
use launch::mpiexec::options::OPTIONS;
use std::path::PathBuf;

fn page(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "man", name].iter().collect()
}

/// Text that roff does not take for a request or an escape.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('\n', " ");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// Compares what stands between the marks of `section` with `expected`, or writes it there.
fn compare(name: &str, section: &str, expected: &str) {
    let path = page(name);
    let old = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!(".\\\" begin {section}:"), format!(".\\\" end {section}"));
    let begin = old.find(&begin).unwrap_or_else(|| panic!("{name} has no '{begin}'"));
    let begin = begin + old[begin..].find('\n').unwrap() + 1;
    let end = begin + old[begin..].find(&end).unwrap_or_else(|| panic!("{name} has no '{end}'"));
    if std::env::var_os("UPDATE_MAN").is_some() {
        let new = format!("{}{expected}{}", &old[..begin], &old[end..]);
        std::fs::write(&path, new).unwrap();
    } else {
        assert_eq!(&old[begin..end], expected, "man/{name} is out of date: run with UPDATE_MAN=1");
    }
}

#[test]
fn options_of_mpiexec() {
    let mut text = String::from(".Bl -tag -width Ds\n");
    for option in OPTIONS {
        let flag = |name: &&str| format!("Fl {}{name}", if name.len() > 2 { "-" } else { "" });
        let names: Vec<String> = option.names.iter().map(flag).collect();
        let values = option.values.to_string();
        let values = if values.is_empty() { values } else { format!(" Ar {}", plain(&values)) };
        text.push_str(&format!(".It {}{values}\n{}.\n", names.join(" , "), sentence(option.doc)));
    }
    text.push_str(".El\n");
    compare("mpiexec.1", "options", &text);
}

/// With a capital letter at its beginning.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    plain(&(first + letters.as_str()))
}

#[test]
fn settings_of_the_library() {
    let mut text = String::from(".Bl -tag -width Ds\n");
    for setting in fabric::settings::ALL {
        let (kind, default) = (setting.kind.describe(), plain(setting.default));
        text.push_str(&format!(".It Ev {}\n{}\n", setting.name, plain(setting.doc)));
        text.push_str(&format!(".br\nValue: {}; default: {default}.\n", plain(&kind)));
    }
    text.push_str(".El\n");
    compare("tern.7", "settings", &text);
}
