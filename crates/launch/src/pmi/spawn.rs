//! The request of PMI-1 for more processes: `mcmd=spawn`, a line per field, `endcmd`; for several programs one behind the
//! other, of which each says how many there are.
use super::line::LINE_MAX;
use crate::address::is_this_host;
use crate::image;
use crate::program::{self, Wanted, Words};
use crate::text::{escape, quoted, unescape};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// What a process may ask for at once, in programs, words and bytes: far above what a command line has room for.
const PROGRAMS_MAX: usize = 4096;
const FIELDS_MAX: usize = 1 << 16;
/// Says that values are escaped, so that they may be any bytes: Tern's own launcher reads that.
const ESCAPED: &str = "tern_escaped";

/// One program that is to be started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Its name.
    pub command: Vec<u8>,
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
    /// How many processes run it.
    pub count: usize,
    /// Hints: working directory, where to look for it, host.
    pub info: Vec<(String, Vec<u8>)>,
}

/// Programs that become one job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// The programs.
    pub programs: Vec<Program>,
    /// What their processes find in their key-value space: keys and words.
    pub pairs: Vec<(String, String)>,
}

impl Request {
    /// Leaves out what launchers other than Tern's do not know, and refuses what they would end the job for (Hydra 5.0.2
    /// does where a program cannot be started). Relative names begin at `base`; `inherited` is PATH.
    pub fn make_plain(&mut self, base: &Path, inherited: Option<OsString>) -> Result<(), String> {
        for program in &mut self.programs {
            if program.info.iter().any(|(key, _)| key == "env") {
                return Err("info key `env` is unknown to this launcher, Tern's mpiexec knows it".into());
            }
            if program.arguments.iter().any(Vec::is_empty) {
                return Err("an argument is empty, for which this launcher would end the job".into());
            }
            program.info.retain(|(key, _)| ["wdir", "path", "host"].contains(&key.as_str()));
            program.locate(base, inherited.clone())?;
        }
        Ok(())
    }

    /// The lines. Launchers other than Tern's know no escapes: what does not fit into a line is an error then.
    pub fn lines(&self, is_escaped: bool) -> Result<String, String> {
        let word = |bytes: &[u8]| match is_escaped {
            true => Ok(escape(bytes)),
            false if is_printable(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            false => Err(format!("this launcher cannot be told {}, which is not printable", quoted(bytes))),
        };
        let mut lines = String::new();
        for (at, program) in self.programs.iter().enumerate() {
            lines += &format!("mcmd=spawn\nnprocs={}\nexecname={}\n", program.count, word(&program.command)?);
            lines += &format!("totspawns={}\nspawnssofar={}\n", self.programs.len(), at + 1);
            // Hydra reads a list only behind its length.
            lines += &format!("argcnt={}\n", program.arguments.len());
            for (number, argument) in program.arguments.iter().enumerate() {
                lines += &format!("arg{}={}\n", number + 1, word(argument)?);
            }
            lines += &format!("preput_num={}\n", self.pairs.len());
            for (number, (key, value)) in self.pairs.iter().enumerate() {
                lines += &format!("preput_key_{number}={key}\npreput_val_{number}={value}\n");
            }
            lines += &format!("info_num={}\n", program.info.len());
            for (number, (key, value)) in program.info.iter().enumerate() {
                let (key, value) = (word(key.as_bytes())?, word(value)?);
                lines += &format!("info_key_{number}={key}\ninfo_val_{number}={value}\n");
            }
            if is_escaped {
                lines += &format!("{ESCAPED}=1\n");
            }
            lines += "endcmd\n";
        }
        if lines.lines().any(|line| line.len() > LINE_MAX) {
            return Err(format!("a name, an argument or a hint takes more than {LINE_MAX} bytes"));
        }
        Ok(lines)
    }
}

impl Program {
    /// Names the program and its working directory by their places, unless they are another host's: Hydra 5.0.2 takes what
    /// `path` says for one directory, and looks in a PATH that this process may have changed.
    fn locate(&mut self, base: &Path, inherited: Option<OsString>) -> Result<(), String> {
        let hint = |key: &str| {
            let known = self.info.iter().find(|(known, _)| known == key);
            known.map(|(_, value)| OsStr::from_bytes(value))
        };
        let (directory, path) = (hint("wdir").map(Path::new), hint("path"));
        let hosts = hint("host").unwrap_or_default().to_string_lossy();
        if hosts.split(',').map(str::trim).any(|name| !name.is_empty() && !is_this_host(name)) {
            return match path.filter(|path| std::env::split_paths(path).count() > 1) {
                Some(path) => Err(format!(
                    "info key `path` is '{}': on another host this launcher looks in one directory only",
                    path.display()
                )),
                None => Ok(()),
            };
        }
        let program = Path::new(OsStr::from_bytes(&self.command));
        let wanted = Wanted { program, base, directory, path, inherited };
        let found = program::find(&wanted, &Words::HINTS).map_err(|(_, why)| why)?;
        if let Some(why) = image::refusal(&found) {
            return Err(format!("cannot start '{}': {why}", program.display()));
        }
        let found = found.into_os_string().into_vec();
        // What this launcher cannot be told it has to find itself.
        if is_printable(&found) || path.is_some() {
            self.command = found;
        }
        self.info.retain(|(key, _)| key != "path");
        for (_, directory) in self.info.iter_mut().filter(|(key, _)| key == "wdir") {
            *directory = base.join(OsStr::from_bytes(directory)).into_os_string().into_vec();
        }
        Ok(())
    }
}

fn is_printable(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| (b' '..=b'~').contains(byte))
}

/// A request that is coming in.
#[derive(Debug, Default)]
pub struct Incoming {
    request: Request,
    fields: Vec<(String, String)>,
    is_open: bool,
}

impl Incoming {
    /// Whether lines belong to it.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// `mcmd=spawn` has come.
    pub fn begin(&mut self) {
        self.is_open = true;
    }

    /// Takes a line in; the request when it is whole. An error says what is wrong with it; it is over then.
    pub fn line(&mut self, line: &[u8]) -> Result<Option<Request>, String> {
        if line == b"endcmd" {
            self.is_open = false;
            let fields = std::mem::take(&mut self.fields);
            let taken = self.program(&fields).inspect_err(|_| self.request = Request::default())?;
            return Ok(taken.then(|| std::mem::take(&mut self.request)));
        }
        let text = std::str::from_utf8(line).map_err(|_| format!("{} is not text", quoted(line)))?;
        let (key, value) = text.split_once('=').ok_or_else(|| format!("{} is not a field", quoted(line)))?;
        if self.fields.len() >= FIELDS_MAX || line.len() > LINE_MAX {
            return Err("a request for processes is too long".into());
        }
        self.fields.push((key.into(), value.into()));
        Ok(None)
    }

    /// Takes one program in; whether it was the last.
    fn program(&mut self, fields: &[(String, String)]) -> Result<bool, String> {
        let field =
            |key: &str| fields.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
        let number = |key: &str, least: usize, most: usize| {
            let value = field(key).unwrap_or("0").parse().ok().filter(|n| (least..=most).contains(n));
            value.ok_or_else(|| format!("{key}={} of a request for processes", field(key).unwrap_or("")))
        };
        let is_escaped = field(ESCAPED).is_some();
        let bytes = |text: &str| match is_escaped {
            true => unescape(text).ok_or_else(|| format!("{} is not escaped", quoted(text.as_bytes()))),
            false => Ok(text.as_bytes().to_vec()),
        };
        let needed = |key: &str| field(key).ok_or_else(|| format!("a request for processes has no {key}="));
        let command = bytes(needed("execname")?)?;
        let arguments = (1..=number("argcnt", 0, FIELDS_MAX)?)
            .map(|at| bytes(needed(&format!("arg{at}"))?))
            .collect::<Result<_, String>>()?;
        let info = (0..number("info_num", 0, FIELDS_MAX)?)
            .map(|at| {
                let key = bytes(needed(&format!("info_key_{at}"))?)?;
                let key = String::from_utf8(key).map_err(|_| "the key of an info is not text")?;
                Ok((key, bytes(needed(&format!("info_val_{at}"))?)?))
            })
            .collect::<Result<_, String>>()?;
        let count = number("nprocs", 1, usize::MAX)?;
        self.request.programs.push(Program { command, arguments, count, info });
        if self.request.programs.len() == 1 {
            self.request.pairs = (0..number("preput_num", 0, FIELDS_MAX)?)
                .map(|at| {
                    let key = needed(&format!("preput_key_{at}"))?;
                    Ok((key.into(), needed(&format!("preput_val_{at}"))?.into()))
                })
                .collect::<Result<_, String>>()?;
        }
        let all = number("totspawns", 1, PROGRAMS_MAX)?;
        Ok(self.request.programs.len() >= all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Request {
        let program = |command: &str, count| Program {
            command: command.into(),
            arguments: vec![b"a b".into(), b"".into(), b"x=\n%".into()],
            count,
            info: vec![("wdir".into(), b"/tmp/a b".into())],
        };
        Request {
            programs: vec![program("one", 2), Program { arguments: Vec::new(), ..program("two", 1) }],
            pairs: vec![("key".into(), "value".into())],
        }
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let mut incoming = Incoming::default();
        let mut read = None;
        for line in example().lines(true).unwrap().lines() {
            assert!(read.is_none());
            match line {
                "mcmd=spawn" => incoming.begin(),
                line => read = incoming.line(line.as_bytes()).unwrap(),
            }
            assert_eq!(incoming.is_open(), line != "endcmd");
        }
        assert_eq!(read, Some(example()));
        assert!(example().lines(false).unwrap_err().contains("printable"));
        let mut long = example();
        long.programs[0].arguments.push(vec![b'x'; LINE_MAX]);
        assert!(long.lines(true).unwrap_err().contains("more than"));
    }

    /// A program with hints.
    fn hinted(command: &str, hints: &[(&str, &str)]) -> Request {
        let info = hints.iter().map(|(key, value)| (key.to_string(), value.as_bytes().to_vec())).collect();
        let program = Program { command: command.into(), count: 1, info, ..Program::default() };
        Request { programs: vec![program], pairs: Vec::new() }
    }

    fn plain(command: &str, hints: &[(&str, &str)]) -> Result<Request, String> {
        let mut request = hinted(command, hints);
        request.make_plain(Path::new("/"), Some("/no/such/place:/bin".into())).map(|()| request)
    }

    #[test]
    fn other_launchers_are_asked_for_what_they_know() {
        let asked = plain("/bin/sh", &[("wdir", "/tmp"), ("soft", "1"), ("my_own", "x")]).unwrap();
        assert_eq!(asked, hinted("/bin/sh", &[("wdir", "/tmp")]));
        let lines = asked.lines(false).unwrap();
        assert!(lines.contains("argcnt=0\npreput_num=0\ninfo_num=1\ninfo_key_0=wdir\n"), "{lines}");
        assert!(plain("/bin/sh", &[("env", "A=b")]).unwrap_err().contains("`env`"));
        let mut empty = hinted("/bin/sh", &[]);
        empty.programs[0].arguments.push(Vec::new());
        assert!(empty.make_plain(Path::new("/"), None).unwrap_err().contains("empty"));
    }

    #[test]
    fn other_launchers_are_told_where_a_program_is() {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let found = [
            ("sh", vec![], "/bin/sh", vec![]),
            ("sh", vec![("path", "/no/such/place:/usr/bin")], "/usr/bin/sh", vec![]),
            ("bin/sh", vec![], "/bin/sh", vec![]),
            ("./sh", vec![("wdir", "bin")], "/bin/./sh", vec![("wdir", "/bin")]),
            ("sh", vec![("wdir", "/usr"), ("path", "bin")], "/usr/bin/sh", vec![("wdir", "/usr")]),
            ("sh", vec![("host", own.trim())], "/bin/sh", vec![("host", own.trim())]),
        ];
        for (command, hints, place, left) in found {
            assert_eq!(plain(command, &hints).unwrap(), hinted(place, &left), "{command} {hints:?}");
        }
    }

    #[test]
    fn what_other_launchers_would_end_the_job_for_is_refused() {
        let refused = [
            ("/no/such/program", vec![], "cannot start '/no/such/program'"),
            ("no-such-program", vec![], "cannot start 'no-such-program': it is in no directory of PATH"),
            ("sh", vec![("path", "/no/such/place:/proc")], "info key `path`, '/no/such/place:/proc'"),
            ("/bin/sh", vec![("wdir", "/no/such/place")], "`wdir`"),
            ("/dev/null", vec![], "not executable"),
            ("/bin", vec![], "directory"),
            ("sh", vec![("host", "elsewhere.invalid"), ("path", "/bin:/usr/bin")], "another host"),
        ];
        for (command, hints, why) in refused {
            let told = plain(command, &hints).unwrap_err();
            assert!(told.contains(why), "{command} {hints:?}: {told}");
        }
        // What another host has nobody knows here.
        for hints in [
            vec![("host", "elsewhere.invalid")],
            vec![("host", "localhost,elsewhere.invalid"), ("path", "/x")],
        ] {
            assert_eq!(plain("no-such-program", &hints).unwrap(), hinted("no-such-program", &hints));
        }
    }

    #[test]
    fn wrong_requests_are_refused() {
        for lines in [
            "endcmd",
            "nprocs=0\nexecname=a\ntotspawns=1\nendcmd",
            "nprocs=1\nexecname=a\ntotspawns=0\nendcmd",
            "nprocs=1\nexecname=a\ntotspawns=1\nargcnt=1\nendcmd",
            "nprocs=1\nexecname=a\ntotspawns=1\ninfo_num=x\nendcmd",
            "nonsense",
        ] {
            let mut incoming = Incoming::default();
            incoming.begin();
            assert!(lines.lines().any(|line| incoming.line(line.as_bytes()).is_err()), "{lines}");
        }
    }
}
