//! Places in programs, from module and offset to a file and line: what ranks say of the calls that
//! they wait in is looked up here, when a report is printed.
//!
//! `addr2line` of the binutils reads the debug information, because a reader of our own would be a
//! large dependency for a few lines of a report. Without it, or without debug information, the
//! place keeps what is known: the function, or the offset in the module.
use crate::report::Pending;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the ranks' output may wait for all names.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most places that are looked up in one module: the answer must fit into a pipe.
const PLACES_MAX: usize = 32;

/// Gives the places of operations names for people.
pub fn name<'a>(operations: impl Iterator<Item = &'a mut Pending>) {
    let mut operations: Vec<&mut Pending> = operations.filter(|p| p.address.is_some()).collect();
    let raw: BTreeSet<String> = operations.iter().filter_map(|p| p.address.clone()).collect();
    let named = look_up(&raw, Instant::now() + PATIENCE);
    for operation in &mut operations {
        operation.address = operation.address.take().map(|raw| named.get(&raw).cloned().unwrap_or(raw));
    }
}

/// The names of places, by their raw form `module+0xoffset`.
fn look_up(raw: &BTreeSet<String>, until: Instant) -> BTreeMap<String, String> {
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (module, offset) in raw.iter().filter_map(|place| place.rsplit_once('+')) {
        modules.entry(module).or_default().push(offset);
    }
    let mut named = BTreeMap::new();
    for (module, offsets) in modules {
        let answer = ask(module, &offsets[..offsets.len().min(PLACES_MAX)], until).unwrap_or_default();
        let mut lines = answer.lines();
        for offset in offsets {
            let (function, line) = (lines.next().unwrap_or("??"), lines.next().unwrap_or("??"));
            named.insert(format!("{module}+{offset}"), words(module, offset, function, line));
        }
    }
    named
}

/// Two lines for every offset: function, then file and line.
fn ask(module: &str, offsets: &[&str], until: Instant) -> Option<String> {
    // Only what a rank writes as an offset becomes an argument.
    let is_offset =
        |text: &&str| text.strip_prefix("0x").is_some_and(|hex| u64::from_str_radix(hex, 16).is_ok());
    if !Path::new(module).is_absolute() || !offsets.iter().all(is_offset) {
        return None;
    }
    let mut command = Command::new("addr2line");
    command.args(["--basenames", "--functions", "--demangle", "--exe", module]).args(offsets);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    finish(command.spawn().ok()?, until)
}

/// The output of a program that writes little, if it ends in time.
fn finish(mut child: Child, until: Instant) -> Option<String> {
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= until {
            // It ends by this signal alone.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    Some(text)
}

fn words(module: &str, offset: &str, function: &str, line: &str) -> String {
    let line = line.split(" (discriminator").next().unwrap_or(line);
    let file = Path::new(module).file_name().map_or(module.into(), |name| name.to_string_lossy());
    match (function, line.starts_with('?') || line.ends_with(":?") || line.ends_with(":0")) {
        ("??", true) => format!("{file}+{offset}"),
        (function, true) => format!("{function} ({file}+{offset})"),
        ("??", false) => line.to_string(),
        (function, false) => format!("{line} ({function})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_said() {
        let say = |function, line| words("/usr/bin/heat", "0x11", function, line);
        assert_eq!(say("step", "heat.c:77"), "heat.c:77 (step)");
        assert_eq!(say("step", "heat.c:77 (discriminator 2)"), "heat.c:77 (step)");
        assert_eq!(say("step", "heat.c:?"), "step (heat+0x11)");
        assert_eq!(say("step", "??:0"), "step (heat+0x11)");
        assert_eq!(say("??", "??:0"), "heat+0x11");
        assert_eq!(say("??", "heat.c:77"), "heat.c:77");
    }

    #[test]
    fn odd_places_stay_what_they_are() {
        let until = Instant::now() + PATIENCE;
        let raw = ["nonsense", "relative+0x1", "/no/such/module+0x10", "/bin/sh+--help"].map(String::from);
        let named = look_up(&raw.into(), until);
        let expected = [
            ("relative+0x1", "relative+0x1"),
            ("/no/such/module+0x10", "module+0x10"),
            ("/bin/sh+--help", "sh+--help"),
        ];
        assert_eq!(named, expected.map(|(raw, name)| (raw.to_string(), name.to_string())).into());
    }
}
