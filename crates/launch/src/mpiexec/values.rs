//! The words that follow an option, and how they are read. An error names the option as the user wrote it.
use super::arguments::{Map, Plan};
use super::files::words;
use super::options::MAPS;
use super::placement::{Launcher, Ranking};
use crate::asked;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The words that follow an option.
pub struct Values<'a> {
    /// The option as the user wrote it.
    pub(super) option: &'a str,
    /// What stood behind its equal sign.
    pub(super) attached: Option<OsString>,
    /// The rest of the command line.
    pub(super) words: &'a mut VecDeque<OsString>,
}

/// A time that an option or a variable says.
pub(super) fn seconds(of: &str, text: &str) -> Result<Duration, String> {
    /// A year; it also keeps sums of times in range.
    const MAX: f64 = 365.0 * 86400.0;
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= MAX => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("{of} needs a number of seconds above 0; '{text}' is none")),
    }
}

impl Values<'_> {
    /// The next word; `what` it should be is said when there is none.
    pub(super) fn next(&mut self, what: &str) -> Result<OsString, String> {
        let value = self.attached.take().or_else(|| self.words.pop_front());
        value.ok_or_else(|| format!("option {} needs {what}", self.option))
    }

    pub(super) fn text(&mut self, what: &str) -> Result<String, String> {
        Ok(self.next(what)?.to_string_lossy().into_owned())
    }

    pub(super) fn count(&mut self) -> Result<usize, String> {
        let text = self.text("a number of ranks")?;
        self.number(&text)
    }

    pub(super) fn number(&self, text: &str) -> Result<usize, String> {
        text.parse().map_err(|_| format!("option {} needs a number of ranks; '{text}' is none", self.option))
    }

    /// One of several words; upper and lower case are alike.
    pub(super) fn word<T: Copy>(&mut self, words: &[(&str, T)]) -> Result<T, String> {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        let text = self.text(&format!("one of {}", names.join(", ")))?;
        let found = words.iter().find(|(name, _)| name.eq_ignore_ascii_case(&text));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let instead = instead(&text);
            format!("option {} takes {}; '{text}' is none of them{instead}", self.option, names.join(", "))
        })
    }

    /// The variable by which programs find the library that speaks the ABI they were built for.
    pub(super) fn abi(&mut self) -> Result<Option<(OsString, OsString)>, String> {
        let mpich = Some(("mpich", "libmpi.so.12"));
        let openmpi = Some(("openmpi", "libmpi.so.40"));
        let Some((name, library)) =
            self.word(&[("standard", None), ("mpich", mpich), ("openmpi", openmpi)])?
        else {
            return Ok(None);
        };
        let own = std::env::current_exe().map_err(|error| format!("/proc/self/exe: {error}"))?;
        // bin/mpiexec, and beside bin/ the library.
        let prefix = own.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let folder = prefix.join("lib/tern").join(name);
        if !folder.join(library).exists() {
            let folder = folder.display();
            return Err(format!(
                "option {}: there is no {library} in {folder}; install Tern whole",
                self.option
            ));
        }
        let mut path = folder.into_os_string();
        if let Some(before) = std::env::var_os("LD_LIBRARY_PATH").filter(|before| !before.is_empty()) {
            path.push(":");
            path.push(before);
        }
        Ok(Some(("LD_LIBRARY_PATH".into(), path)))
    }

    /// The variable by which ranks are told what the key of that name says.
    pub(super) fn told(&mut self, key: &str) -> Result<Option<(OsString, OsString)>, String> {
        let value = self.next("a value")?;
        asked::variable(key, value.as_bytes()).map_err(|why| format!("option {}: {why}", self.option))
    }

    /// The one architecture that a job has.
    pub(super) fn arch(&mut self) -> Result<(), String> {
        let (text, own) = (self.text("an architecture")?, std::env::consts::ARCH);
        match text == own {
            true => Ok(()),
            false => Err(format!("option {}: all hosts of a job are {own}, not {text}", self.option)),
        }
    }

    /// Words separated by commas.
    pub(super) fn list(&mut self) -> Result<Vec<OsString>, String> {
        let list = self.next("names of variables separated by commas")?;
        let names = list.as_bytes().split(|b| *b == b',').filter(|name| !name.is_empty());
        let names: Vec<OsString> = names.map(|name| OsStr::from_bytes(name).into()).collect();
        names.iter().try_for_each(|name| self.check_name(name))?;
        Ok(names)
    }

    /// `NAME VALUE` or `NAME=VALUE`.
    pub(super) fn name_and_value(&mut self) -> Result<(OsString, OsString), String> {
        let word = self.next("NAME VALUE")?;
        let (name, value) = match divided(&word) {
            Some((name, value)) => (name, value),
            None => {
                let value = self.next("NAME VALUE")?;
                (word, value)
            }
        };
        self.check_name(&name)?;
        Ok((name, value))
    }

    /// `NAME` or `NAME=VALUE`. A name alone passes on what the launcher has.
    pub(super) fn exported(
        &mut self,
        warnings: &mut Vec<String>,
    ) -> Result<Option<(OsString, OsString)>, String> {
        let word = self.next("NAME or NAME=VALUE")?;
        let (name, value) = match divided(&word) {
            Some((name, value)) => (name, Some(value)),
            None => (word.clone(), std::env::var_os(&word)),
        };
        self.check_name(&name)?;
        if value.is_none() {
            warnings.push(format!("{} {}: there is no such variable", self.option, name.display()));
        }
        Ok(value.map(|value| (name, value)))
    }

    fn check_name(&self, name: &OsStr) -> Result<(), String> {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.contains(&b'=') || bytes.contains(&0) {
            return Err(format!("option {}: '{}' is no name of a variable", self.option, name.display()));
        }
        Ok(())
    }

    pub(super) fn seconds(&mut self) -> Result<Duration, String> {
        let text = self.text("a number of seconds")?;
        seconds(&format!("option {}", self.option), &text)
    }

    /// What `--map-by` says: the order of places, ranks per host if `ppr` says so, and whether hosts take turns.
    pub(super) fn placement(&mut self) -> Result<(Map, Option<usize>, bool), String> {
        let text = self.text("a kind of place")?;
        let lower = text.to_ascii_lowercase();
        let mut parts = lower.split(':');
        let kind = match parts.next().unwrap_or_default() {
            "" | "block" => "slot",
            kind => kind,
        };
        let placement = if kind == "ppr" {
            match (parts.next().and_then(|number| number.parse().ok()), parts.next()) {
                (Some(ranks), Some("node" | "host")) => Some((Map::InOrder, Some(ranks))),
                _ => None,
            }
        } else {
            MAPS.iter().find(|(name, _)| *name == kind).map(|(_, map)| (*map, None))
        };
        let mut cyclic = ["node", "host"].contains(&kind);
        // Of the modifiers of Open MPI the first two say what is so anyway.
        let known = parts.all(|modifier| match modifier {
            "oversubscribe" | "hwtcpus" | "block" => true,
            "cyclic" | "span" => {
                cyclic = true;
                true
            }
            _ => false,
        });
        let placement = placement.map(|(map, ranks)| (map, ranks, cyclic));
        placement.filter(|_| known).ok_or_else(|| {
            if text.to_lowercase().contains("pe=") {
                return format!(
                    "option {}: leave PE= out of '{text}': the ranks share the CPUs evenly (--bind-to auto)",
                    self.option
                );
            }
            if kind == "ppr" {
                return format!(
                    "option {}: '{text}' does not count the ranks of a host, as ppr:RANKS:node does; '-ppn RANKS --map-by \
                     socket' deals those of each host out to its sockets in turn, numa to its NUMA nodes",
                    self.option
                );
            }
            let names: Vec<&str> = MAPS.iter().map(|(name, _)| *name).collect();
            format!(
                "option {} takes {} or ppr:RANKS:node, with :cyclic behind it or not; '{text}' is none of them{}",
                self.option,
                names.join(", "),
                instead(kind)
            )
        })
    }

    /// What `--rank-by` says.
    pub(super) fn ranking(&mut self) -> Result<Ranking, String> {
        let text = self.text("slot, core, hwthread, fill or node")?;
        let lower = text.to_ascii_lowercase();
        let instead = match lower.as_str() {
            "slot" => return Ok(Ranking::Slots),
            "core" | "hwthread" | "fill" => return Ok(Ranking::Cores),
            "node" | "host" => return Ok(Ranking::Nodes),
            "socket" | "package" | "numa" => format!(
                ": '--map-by {lower}' numbers the ranks of a host in turn over its {}",
                if lower == "numa" { "NUMA nodes" } else { "sockets" }
            ),
            "span" => ": '--map-by socket' or numa, with :cyclic behind it, goes over hosts, too".into(),
            _ => String::new(),
        };
        Err(format!(
            "option {} takes slot, core, hwthread, fill or node; '{text}' is none of them{instead}",
            self.option
        ))
    }

    /// What `--stream-buffering` says: Tern changes nothing in how programs buffer what they print.
    pub(super) fn buffering(&mut self) -> Result<(), String> {
        let text = self.text("a number from 0 to 2")?;
        let how = match text.as_str() {
            "2" => return Ok(()),
            "1" => "-oL",
            _ => "-o0",
        };
        Err(format!(
            "option {}: Tern does 2 only, not '{text}'; stdbuf does it: 'mpiexec -n RANKS stdbuf {how} PROGRAM'",
            self.option
        ))
    }

    /// How agents are started: a launcher by its name, or a command.
    pub(super) fn launcher(&mut self) -> Result<Launcher, String> {
        /// Names that other launchers know, and Tern does not.
        const OTHERS: &[&str] = &["ll", "lsf", "sge", "pbs", "pbsdsh", "blaunch", "manual", "persist"];
        let text = self.text("ssh, srun or a command")?;
        match text.to_ascii_lowercase().as_str() {
            // Hosts that are this one need none anyway.
            "ssh" | "fork" => return Ok(Launcher::Ssh),
            "srun" | "slurm" => return Ok(Launcher::Srun),
            other if OTHERS.contains(&other) => {
                return Err(format!(
                    "option {}: '{text}' is not among the launchers of Tern; use ssh, srun, or a command that takes \
                     a host and a command line as ssh does",
                    self.option
                ));
            }
            _ => {}
        }
        let words = words(&text).unwrap_or_default();
        let words: Vec<String> = words.into_iter().filter_map(|word| word.into_string().ok()).collect();
        match words.is_empty() {
            true => Err(format!("option {} needs ssh, srun or a command; '{text}' is none", self.option)),
            false => Ok(Launcher::Command(words)),
        }
    }

    /// What `--output` of Open MPI 5 says.
    pub(super) fn output(&mut self, plan: &mut Plan) -> Result<(), String> {
        let list = self.text("tag, merge or dir=DIR")?;
        for word in list.split(',') {
            match word.split_once('=').unwrap_or((word, "")) {
                ("tag" | "rank", "") => plan.label = true,
                ("merge" | "merge-stderr-to-stdout", "") => plan.merge = true,
                ("dir", directory) if !directory.is_empty() => plan.write_below(OsStr::new(directory)),
                _ => {
                    return Err(format!(
                        "option {} takes tag, merge and dir=DIR; '{word}' is none of them",
                        self.option
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What to write in place of a kind of place that other launchers know.
fn instead(word: &str) -> &'static str {
    match word.to_ascii_lowercase().as_str() {
        "l1" | "l1cache" | "l1dcache" | "l1icache" | "l2" | "l2cache" => {
            ": a cache of this level is a core's, as a rule; use core"
        }
        "l3" | "l3cache" | "l4" | "l4cache" => {
            ": cores with one cache of this level are of one NUMA node; use numa, or core for less"
        }
        "board" | "group" => ": use socket, or numa for less",
        "machine" | "host" | "cluster" => ": a rank may use all CPUs of its host with none",
        _ => "",
    }
}

/// Both sides of the first equal sign.
fn divided(word: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|b| *b == b'=')?;
    Some((OsStr::from_bytes(&bytes[..at]).into(), OsStr::from_bytes(&bytes[at + 1..]).into()))
}
