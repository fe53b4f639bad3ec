//! Hosts to measure between: those the user names, or network namespaces joined by cables (`scripts/hosts.sh`).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::library::{Library, Vendor};

/// What `--hosts` is given to have namespaces made, two, or as many as stand behind a colon.
pub const MADE: &str = "namespaces";

/// The script that makes them.
const SCRIPT: &str = include_str!("../../../../scripts/hosts.sh");

/// What the script says by its exit code where they cannot be made.
const NOT_HERE: i32 = 77;

/// The first net of the script's hosts, and the interface that each has in it.
const NET: &str = "10.77.31";
const DEVICE: &str = "tv31";

/// The most hosts that are made.
const MOST: usize = 64;

/// The hosts, and how commands get there.
pub struct Hosts {
    names: Vec<String>,
    made: Option<Namespaces>,
}

/// Network namespaces; dropping this removes them.
struct Namespaces {
    name: String,
    mtu: u32,
    scratch: PathBuf,
}

impl Hosts {
    /// Hosts as `--hosts` names them; the MTU is that of the cables if namespaces are to be made.
    pub fn open(text: &str, mtu: u32) -> Result<Hosts, String> {
        let wrong =
            || format!("--hosts {text}: must be two hosts or more, as in a,b, or {MADE}, or {MADE}:8");
        if let Some(count) = text.strip_prefix(MADE) {
            let count = match count.strip_prefix(':') {
                Some(count) => count.parse().map_err(|_| wrong())?,
                None if count.is_empty() => 2,
                None => return Err(wrong()),
            };
            if !(2..=MOST).contains(&count) {
                return Err(format!("--hosts {text}: {MADE} can be 2 to {MOST}"));
            }
            let made = Namespaces::make(count, mtu)?;
            let names = (1..=count).map(|host| format!("{NET}.{host}")).collect();
            return Ok(Hosts { names, made: Some(made) });
        }
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_string()).collect();
        let twice = (1..names.len()).any(|at| names[..at].contains(&names[at]));
        if names.len() < 2 || names.iter().any(String::is_empty) || twice {
            return Err(wrong());
        }
        Ok(Hosts { names, made: None })
    }

    /// The first host as others reach it.
    pub fn first(&self) -> &str {
        &self.names[0]
    }

    /// What they are, for the record.
    pub fn about(&self) -> String {
        match &self.made {
            Some(made) => {
                format!("{} network namespaces joined by veth, MTU {}", self.names.len(), made.mtu)
            }
            None => self.names.join(", "),
        }
    }

    /// `library`'s launcher with what places as many of `ranks` on each host, the first of them on the first.
    pub fn launcher(&self, library: &Library, ranks: u32) -> Command {
        let each = ranks.div_ceil(self.names.len() as u32).to_string();
        let mut command = match &self.made {
            Some(made) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &format!("{}1", made.name)]).arg(&library.mpiexec);
                command
            }
            None => Command::new(&library.mpiexec),
        };
        let script = self.made.as_ref().map(|made| made.scratch.join("launcher"));
        command.args(placement(library.kind, &self.names, &each, script.as_deref()));
        if let (Some(_), Vendor::Hydra | Vendor::Intel) = (&self.made, library.kind) {
            command.args(["-iface", DEVICE]);
        }
        command
    }
}

/// How a launcher is told hosts, ranks on each, and the command in place of ssh.
fn placement(kind: Vendor, hosts: &[String], each: &str, script: Option<&Path>) -> Vec<String> {
    let list = hosts.join(",");
    let script = script.map(|path| path.display().to_string());
    let mut words: Vec<String> = match kind {
        Vendor::Tern => vec!["--hosts".into(), list, "-ppn".into(), each.into()],
        Vendor::Hydra | Vendor::Intel => vec!["-hosts".into(), list, "-ppn".into(), each.into()],
        Vendor::OpenMpi => {
            let slots: Vec<String> = hosts.iter().map(|host| format!("{host}:{each}")).collect();
            vec!["--host".into(), slots.join(",")]
        }
    };
    if let Some(script) = script {
        words.extend(match kind {
            Vendor::Tern => vec!["--launcher".into(), script],
            Vendor::Hydra | Vendor::Intel => {
                vec!["-launcher".into(), "ssh".into(), "-launcher-exec".into(), script]
            }
            Vendor::OpenMpi => vec!["--mca".into(), "plm_rsh_agent".into(), script],
        });
    }
    words
}

impl Namespaces {
    fn make(count: usize, mtu: u32) -> Result<Namespaces, String> {
        let own = std::process::id();
        let scratch = std::env::temp_dir().join(format!("tern-bench-{own}"));
        std::fs::create_dir(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
        let made = Namespaces { name: format!("ternbench{own}h"), mtu, scratch };
        made.write("hosts.sh", SCRIPT)?;
        let launcher = format!("#!/bin/sh\nexec '{}' reach {} \"$@\"\n", made.script().display(), made.name);
        made.write("launcher", &launcher)?;
        let said = made.run("make").args([count.to_string(), mtu.to_string()]).output();
        let said = said.map_err(|e| format!("{}: {e}", made.script().display()))?;
        if said.status.success() {
            return Ok(made);
        }
        let text = if said.status.code() == Some(NOT_HERE) { said.stdout } else { said.stderr };
        let text = String::from_utf8_lossy(&text);
        Err(format!("--hosts {MADE}: {} (it takes root and Debian's package iproute2)", text.trim()))
    }

    fn script(&self) -> PathBuf {
        self.scratch.join("hosts.sh")
    }

    fn run(&self, verb: &str) -> Command {
        let mut command = Command::new(self.script());
        command.args([verb, &self.name]);
        command
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.scratch.join(name);
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        std::fs::write(&path, text).map_err(failed)?;
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&path, rights).map_err(failed)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // What is left of them can only be told, not mended.
        let _ = self.run("remove").stderr(std::process::Stdio::null()).status();
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launcher_is_told_in_its_own_words() {
        let hosts = ["a".to_string(), "b".to_string()];
        let words =
            |kind, script: Option<&str>| placement(kind, &hosts, "2", script.map(Path::new)).join(" ");
        assert_eq!(words(Vendor::Tern, None), "--hosts a,b -ppn 2");
        assert_eq!(words(Vendor::Tern, Some("/s")), "--hosts a,b -ppn 2 --launcher /s");
        assert_eq!(words(Vendor::Hydra, Some("/s")), "-hosts a,b -ppn 2 -launcher ssh -launcher-exec /s");
        assert_eq!(words(Vendor::OpenMpi, Some("/s")), "--host a:2,b:2 --mca plm_rsh_agent /s");
    }

    #[test]
    fn different_hosts_are_needed() {
        for text in ["", "a", "a,a", "a,b,a", "a,", "namespaces:1", "namespaces:x", "namespaces2"] {
            let error = Hosts::open(text, 1500).err().expect(text);
            assert!(error.contains(&format!("--hosts {text}")), "{error}");
        }
        assert_eq!(Hosts::open("a, b,c", 1500).unwrap().about(), "a, b, c");
    }
}
