//! The file in which jobs keep what they have measured of links between hosts, for those that come after.
//!
//! A cache: it may be removed or lie on a disk that is full or read-only, and of two jobs that end at once one may win.
//! Only rank 0 of a job reads it, once, and a file that is not understood is one that is not there.

use fabric::settings::Settings;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// The first line, which names the version of what follows.
const HEAD: &str =
    "tern links 2: transport, host/address twice, then jobs, longest eager message, and times in ns";
/// Links that are kept; of more those go first that were measured the longest ago.
const MOST: usize = 256;
/// No file of ours is longer, in bytes.
const LONGEST: u64 = 1 << 20;

/// Where it is, if anything is to be kept.
pub fn path(settings: &Settings) -> Option<PathBuf> {
    chosen(settings.text("TERN_LINKS"), |name| env::var_os(name))
}

fn chosen(text: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let dir = |name| variable(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    match text {
        "off" => None,
        "auto" => {
            let cache = dir("XDG_CACHE_HOME").or_else(|| Some(dir("HOME")?.join(".cache")))?;
            Some(cache.join("tern/links"))
        }
        file => Some(file.into()),
    }
}

/// What is known between these places, as `transport host/address host/address`, and what is known of it. In the order in which
/// they were measured.
pub fn read(file: &Path) -> Vec<(String, String)> {
    // Opening anything else than a file may wait for ever.
    let is_file = fs::metadata(file).is_ok_and(|found| found.is_file());
    let mut text = String::new();
    let mut read = |file| fs::File::open(file).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    if !is_file || read(file).is_err() {
        return Vec::new();
    }
    parse(&text)
}

/// What a file of this text says.
pub fn parse(text: &str) -> Vec<(String, String)> {
    let mut lines = text.split_terminator('\n');
    if lines.next() != Some(HEAD) {
        return Vec::new();
    }
    lines.filter_map(split).collect()
}

/// The text of a file that keeps these links, but for the oldest of too many.
pub fn text(links: &[(String, String)]) -> String {
    let newest = &links[links.len().saturating_sub(MOST)..];
    let lines = newest.iter().map(|(link, known)| format!("{link} {known}\n"));
    format!("{HEAD}\n{}", lines.collect::<String>())
}

/// A line, before and behind its third space.
fn split(line: &str) -> Option<(String, String)> {
    let (at, _) = line.match_indices(' ').nth(2)?;
    Some((line[..at].to_owned(), line[at + 1..].to_owned()))
}

/// Keeps these links; who reads meanwhile sees what was there before, or all of it.
pub fn write(file: &Path, links: &[(String, String)]) -> std::io::Result<()> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir)?;
    }
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}", process::id()));
    fs::write(&beside, text(links))?;
    fs::rename(&beside, file).inspect_err(|_| drop(fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_follows_the_setting_and_the_environment() {
        let none = |_: &str| None::<OsString>;
        let of = |known: &'static [(&'static str, &'static str)]| {
            move |name: &str| known.iter().find(|pair| pair.0 == name).map(|pair| OsString::from(pair.1))
        };
        assert_eq!(chosen("off", of(&[("HOME", "/h")])), None);
        assert_eq!(chosen("/x/y", none), Some("/x/y".into()));
        assert_eq!(chosen("auto", none), None);
        assert_eq!(chosen("auto", of(&[("HOME", "/h")])), Some("/h/.cache/tern/links".into()));
        assert_eq!(chosen("auto", of(&[("HOME", "h")])), None);
        let both = &[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")];
        assert_eq!(chosen("auto", of(both)), Some("/c/tern/links".into()));
    }

    #[test]
    fn what_is_written_is_read_and_the_oldest_go() {
        let dir = env::temp_dir().join(format!("tern-links-{}", process::id()));
        let file = dir.join("below/links");
        assert!(read(&file).is_empty());
        let links: Vec<_> = (0..MOST + 2).map(|n| (format!("rc a/{n} b/1"), format!("{n} 2 3"))).collect();
        write(&file, &links).unwrap();
        assert_eq!(read(&file), links[2..]);
        for bad in ["", "tern links 3\nrc a/1 b/1 1 2 3\n", "\u{0}\n"] {
            fs::write(&file, bad).unwrap();
            assert!(read(&file).is_empty(), "{bad}");
        }
        fs::write(&file, [HEAD.as_bytes(), b"\n\xff\xfe"].concat()).unwrap();
        assert!(read(&file).is_empty(), "no text");
        fs::write(&file, format!("{HEAD}\nrc a/1 b/1\n\nrc a/1 b/1 7\n")).unwrap();
        assert_eq!(read(&file), [("rc a/1 b/1".to_string(), "7".to_string())]);
        assert!(read(&dir).is_empty(), "a directory");
        assert!(write(&file.join("x"), &links).is_err(), "a file is in the way");
        fs::remove_dir_all(&dir).unwrap();
    }
}
