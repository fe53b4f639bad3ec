//! `tern info`: version, devices, and every setting with its value, default and origin.

use std::ffi::OsString;

use fabric::settings::{self, Settings};
use launch::links;
use launch::pmi::client::Client;
use mpi::coll::Link;

use crate::chosen;

const HELP: &str = "\
usage: tern info [--settings | --devices]

Prints the version, the devices with what each can do on this machine, which of them carries messages between
whom, and every setting with the value in force, its default and where the value comes from. As the program of a
job (mpiexec --hosts a,b tern info) it says for whom what is chosen there, once.";

/// One device as `tern info` shows it.
pub struct DeviceReport {
    /// Name of the device.
    pub name: &'static str,
    /// Looks at this machine and says in a line or several what the device can do on it.
    pub describe: fn(&Settings) -> String,
}

/// The devices built into this Tern.
const DEVICES: &[DeviceReport] = &[
    DeviceReport { name: "shm", describe: describe_shm },
    DeviceReport { name: "rnic", describe: chosen::adapter },
    DeviceReport { name: "ibv", describe: chosen::system },
];

/// Runs `tern info`.
pub fn run(arguments: Vec<OsString>) -> Result<(), String> {
    let (mut show_devices, mut show_settings) = (true, true);
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|e| e.to_string())? {
        match argument {
            lexopt::Arg::Long("settings") => show_devices = false,
            lexopt::Arg::Long("devices") => show_settings = false,
            lexopt::Arg::Long("help") | lexopt::Arg::Short('h') => {
                println!("{HELP}");
                return Ok(());
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    let in_force = Settings::from_env()?;
    let mut chosen = chosen::alone(&in_force);
    if let Some(mut client) = Client::from_env()? {
        let is_first = client.rank() == 0;
        chosen = chosen::in_job(&in_force, &mut client)?;
        client.finalize()?;
        if !is_first {
            return Ok(());
        }
    }
    println!("Tern {}, MPI 5.0 standard ABI (libmpi_abi.so.1)", env!("CARGO_PKG_VERSION"));
    if show_devices {
        print!("\n{}", devices_text(DEVICES, &in_force));
        print!("\nChosen (TERN_DEVICES={})\n{chosen}", in_force.text("TERN_DEVICES"));
        print!("\n{}", links_text(&in_force));
        print!("\nRegistered memory\n  {}\n", memhook::describe().replace('\n', "\n  "));
    }
    if show_settings {
        print!("\n{}", settings_text(&in_force));
    }
    Ok(())
}

fn describe_shm(in_force: &Settings) -> String {
    shm::describe(in_force.text("TERN_SHM_DIR").as_ref(), in_force.flag("TERN_SINGLE_COPY"))
}

/// What jobs have measured of links: collectives between these hosts are chosen by it.
fn links_text(in_force: &Settings) -> String {
    let Some(file) = links::path(in_force) else {
        return "Links between hosts\n  costs are assumed: nothing is kept (TERN_LINKS)\n".into();
    };
    let mut text = format!("Links between hosts, as kept in {}\n", file.display());
    let kept = links::read(&file);
    for (between, link) in kept.iter().filter_map(|(between, line)| Some((between, Link::parse(line)?))) {
        let [bare_us, .., long_us] = link.trips_ns.map(|ns| ns / 1000.0);
        let jobs = link.jobs;
        text +=
            &format!("  {between}: 8 bytes {bare_us:.1} us, 1 MB {long_us:.0} us, measured by {jobs} jobs\n");
    }
    text + "  others: costs are assumed\n"
}

fn devices_text(devices: &[DeviceReport], in_force: &Settings) -> String {
    let mut text = String::from("Devices\n");
    for device in devices {
        let described = (device.describe)(in_force).replace('\n', "\n            ");
        text += &format!("  {:<10}{described}\n", device.name);
    }
    text
}

/// Every setting: name, value in force, origin, default, explanation.
fn settings_text(in_force: &Settings) -> String {
    let mut text = String::from("Settings\n");
    for setting in settings::ALL {
        let value = in_force.value(setting.name);
        let origin = if value.from_environment { "environment" } else { "default" };
        text += &format!("  {}={}  ({origin})\n", setting.name, shown(&value.text));
        text += &format!("      {}; default {}\n", setting.kind.describe(), shown(setting.default));
        for line in wrapped(setting.doc, 90) {
            text += &format!("      {line}\n");
        }
    }
    text
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "\"\"" } else { text }
}

/// `text` in lines of at most `width` characters, broken at spaces.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_appears_with_its_origin() {
        let set = |name: &str| (name == settings::ALL[0].name).then(|| "1".to_string());
        let in_force = match Settings::read(set, std::iter::empty()) {
            Ok(in_force) => in_force,
            Err(_) => Settings::read(|_| None, std::iter::empty()).unwrap(),
        };
        let text = settings_text(&in_force);
        for setting in settings::ALL {
            let value = in_force.value(setting.name);
            let origin = if value.from_environment { "environment" } else { "default" };
            let line = format!("  {}={}  ({origin})", setting.name, shown(&value.text));
            assert!(text.lines().any(|l| l == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn what_is_kept_of_links_is_shown() {
        let file = std::env::temp_dir().join(format!("tern-info-links-{}", std::process::id()));
        let set = |text: &str| {
            let text = text.to_string();
            let set = move |name: &str| (name == "TERN_LINKS").then(|| text.clone());
            Settings::read(set, std::iter::empty()).unwrap()
        };
        let line = ["1 65536 1000 500 5000 9000 70000 260000", "nonsense"];
        let kept = line.map(|line| (format!("rc a/1 {}/2", &line[..1]), line.to_string()));
        links::write(&file, &kept).unwrap();
        let text = links_text(&set(file.to_str().unwrap()));
        std::fs::remove_file(&file).unwrap();
        assert!(text.contains("  rc a/1 1/2: 8 bytes 5.0 us, 1 MB 260 us, measured by 1 jobs\n"), "{text}");
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(links_text(&set("off")).contains("nothing is kept"));
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), Vec::<String>::new());
    }
}
