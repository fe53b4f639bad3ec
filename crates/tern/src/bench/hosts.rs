//! Two hosts to measure between: those the user names, or two network namespaces joined by a cable.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::library::{Kind, Library};

/// What `--hosts` is given to have namespaces made.
pub const MADE: &str = "namespaces";

/// Two hosts, and how commands get there.
pub struct Hosts {
    names: [String; 2],
    made: Option<Namespaces>,
}

/// Two network namespaces; dropping this removes them.
struct Namespaces {
    names: [String; 2],
    device: String,
    scratch: PathBuf,
}

impl Hosts {
    /// Hosts as `--hosts` names them; the MTU is that of the cable if namespaces are to be made.
    pub fn open(text: &str, mtu: u32) -> Result<Hosts, String> {
        if text == MADE {
            let made = Namespaces::make(mtu)?;
            return Ok(Hosts { names: ADDRESSES.map(str::to_string), made: Some(made) });
        }
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_string()).collect();
        match <[String; 2]>::try_from(names) {
            Ok(names) if names.iter().all(|name| !name.is_empty()) && names[0] != names[1] => {
                Ok(Hosts { names, made: None })
            }
            _ => Err(format!("--hosts {text}: must be two hosts, as in a,b, or {MADE}")),
        }
    }

    /// The first host as others reach it.
    pub fn first(&self) -> &str {
        &self.names[0]
    }

    /// What they are, for the record.
    pub fn about(&self) -> String {
        match &self.made {
            Some(made) => format!("two network namespaces joined by veth, MTU {}", made.mtu()),
            None => format!("{} and {}", self.names[0], self.names[1]),
        }
    }

    /// `library`'s launcher with what places half of `ranks` on each host, the lower half on the first.
    pub fn launcher(&self, library: &Library, ranks: u32) -> Command {
        let each = ranks.div_ceil(2).to_string();
        let mut command = match &self.made {
            Some(made) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &made.names[0]]).arg(&library.mpiexec);
                command
            }
            None => Command::new(&library.mpiexec),
        };
        let script = self.made.as_ref().map(|made| made.scratch.join("launcher"));
        command.args(placement(library.kind, &self.names, &each, script.as_deref()));
        if let (Some(made), Kind::Hydra | Kind::Intel) = (&self.made, library.kind) {
            command.args(["-iface", &made.device]);
        }
        command
    }
}

/// How a launcher is told hosts, ranks on each, and the command in place of ssh.
fn placement(kind: Kind, hosts: &[String; 2], each: &str, script: Option<&Path>) -> Vec<String> {
    let list = hosts.join(",");
    let script = script.map(|path| path.display().to_string());
    let mut words: Vec<String> = match kind {
        Kind::Tern => vec!["--hosts".into(), list, "-ppn".into(), each.into()],
        Kind::Hydra | Kind::Intel => vec!["-hosts".into(), list, "-ppn".into(), each.into()],
        Kind::OpenMpi => {
            let slots: Vec<String> = hosts.iter().map(|host| format!("{host}:{each}")).collect();
            vec!["--host".into(), slots.join(",")]
        }
    };
    if let Some(script) = script {
        words.extend(match kind {
            Kind::Tern => vec!["--launcher".into(), script],
            Kind::Hydra | Kind::Intel => {
                vec!["-launcher".into(), "ssh".into(), "-launcher-exec".into(), script]
            }
            Kind::OpenMpi => vec!["--mca".into(), "plm_rsh_agent".into(), script],
        });
    }
    words
}

const ADDRESSES: [&str; 2] = ["10.77.31.1", "10.77.31.2"];

impl Namespaces {
    fn make(mtu: u32) -> Result<Namespaces, String> {
        let own = std::process::id();
        let names = [format!("ternbench{own}a"), format!("ternbench{own}b")];
        let scratch = std::env::temp_dir().join(format!("tern-bench-{own}"));
        std::fs::create_dir(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
        let made = Namespaces { names, device: format!("tb{own}"), scratch };
        made.write_launcher()?;
        let (a, b, device, mtu) = (&made.names[0], &made.names[1], &made.device, mtu.to_string());
        for command in [
            vec!["netns", "add", a],
            vec!["netns", "add", b],
            vec![
                "link", "add", device, "mtu", &mtu, "netns", a, "type", "veth", "peer", "name", device,
                "netns", b,
            ],
            vec!["-n", b, "link", "set", device, "mtu", &mtu],
            vec!["-n", a, "addr", "add", "10.77.31.1/24", "dev", device],
            vec!["-n", b, "addr", "add", "10.77.31.2/24", "dev", device],
            vec!["-n", a, "link", "set", device, "up"],
            vec!["-n", b, "link", "set", device, "up"],
            vec!["-n", a, "link", "set", "lo", "up"],
            vec!["-n", b, "link", "set", "lo", "up"],
        ] {
            ip(&command)?;
        }
        Ok(made)
    }

    /// What stands in for ssh: [OPTIONS] HOST COMMAND.
    fn write_launcher(&self) -> Result<(), String> {
        let [a, b] = &self.names;
        let text = format!(
            "#!/bin/sh\n\
             while case $1 in -*) true ;; *) false ;; esac; do shift; done\n\
             case $1 in *.1) n={a} ;; *) n={b} ;; esac\n\
             shift\n\
             exec ip netns exec $n unshare --uts --mount sh -c \
             'mount -t tmpfs tmpfs /dev/shm && hostname '$n' && exec sh -c \"$*\"' x \"$@\"\n"
        );
        let path = self.scratch.join("launcher");
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        std::fs::write(&path, text).map_err(failed)?;
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&path, rights).map_err(failed)
    }

    fn mtu(&self) -> String {
        let path = format!("/sys/class/net/{}/mtu", self.device);
        let said = Command::new("ip").args(["netns", "exec", &self.names[0], "cat", &path]).output();
        said.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_string()).unwrap_or_default()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // What is left of them can only be told, not mended.
        for name in &self.names {
            let _ =
                Command::new("ip").args(["netns", "del", name]).stderr(std::process::Stdio::null()).status();
        }
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let said = Command::new("ip").args(arguments).output().map_err(|e| {
        format!("--hosts {MADE}: ip: {e} (Debian's package iproute2; namespaces are made by root)")
    })?;
    if said.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&said.stderr).trim().to_string();
    Err(format!("--hosts {MADE}: ip {}: {why}", arguments.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launcher_is_told_in_its_own_words() {
        let hosts = ["a".to_string(), "b".to_string()];
        let words =
            |kind, script: Option<&str>| placement(kind, &hosts, "2", script.map(Path::new)).join(" ");
        assert_eq!(words(Kind::Tern, None), "--hosts a,b -ppn 2");
        assert_eq!(words(Kind::Tern, Some("/s")), "--hosts a,b -ppn 2 --launcher /s");
        assert_eq!(words(Kind::Hydra, Some("/s")), "-hosts a,b -ppn 2 -launcher ssh -launcher-exec /s");
        assert_eq!(words(Kind::OpenMpi, Some("/s")), "--host a:2,b:2 --mca plm_rsh_agent /s");
    }

    #[test]
    fn two_different_hosts_are_needed() {
        for text in ["", "a", "a,a", "a,b,c", "a,"] {
            let error = Hosts::open(text, 1500).err().expect(text);
            assert!(error.contains(&format!("--hosts {text}")), "{error}");
        }
        assert_eq!(Hosts::open("a, b", 1500).unwrap().first(), "a");
    }
}
