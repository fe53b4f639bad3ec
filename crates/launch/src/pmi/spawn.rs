//! The request of PMI-1 for more processes: `mcmd=spawn`, a line per field, `endcmd`; for several programs one behind the
//! other, of which each says how many there are.
use super::line::LINE_MAX;
use crate::text::{escape, quoted, unescape};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
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
    /// does where a program cannot be started).
    pub fn make_plain(&mut self) -> Result<(), String> {
        for program in &mut self.programs {
            if program.info.iter().any(|(key, _)| key == "env") {
                return Err("info key `env` is unknown to this launcher, Tern's mpiexec knows it".into());
            }
            if program.arguments.iter().any(Vec::is_empty) {
                return Err("an argument is empty, for which this launcher would end the job".into());
            }
            program.info.retain(|(key, _)| ["wdir", "path", "host"].contains(&key.as_str()));
            let is_here = program.info.iter().all(|(key, _)| key == "wdir");
            let path = Path::new(OsStr::from_bytes(&program.command));
            if is_here && path.is_absolute() && !is_executable(path) {
                let why =
                    "is no program that can be executed here, and this launcher would end the job for it";
                return Err(format!("{} {why}", path.display()));
            }
        }
        Ok(())
    }

    /// The lines. Launchers other than Tern's know no escapes: what does not fit into a line is an error then.
    pub fn lines(&self, is_escaped: bool) -> Result<String, String> {
        let word = |bytes: &[u8]| match is_escaped {
            true => Ok(escape(bytes)),
            false if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) => {
                Ok(String::from_utf8_lossy(bytes).into_owned())
            }
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

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
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

    #[test]
    fn other_launchers_are_asked_for_what_they_know() {
        let hint = |key: &str| (key.to_string(), b"x".to_vec());
        let program = Program { command: b"/bin/sh".into(), count: 1, ..Program::default() };
        let with = |program: &Program, keys: &[&str]| Request {
            programs: vec![Program { info: keys.iter().map(|key| hint(key)).collect(), ..program.clone() }],
            pairs: Vec::new(),
        };
        let mut plain = with(&program, &["wdir", "soft", "my_own"]);
        plain.make_plain().unwrap();
        assert_eq!(plain, with(&program, &["wdir"]));
        let lines = plain.lines(false).unwrap();
        assert!(lines.contains("argcnt=0\npreput_num=0\ninfo_num=1\ninfo_key_0=wdir\n"), "{lines}");
        assert!(with(&program, &["env"]).make_plain().unwrap_err().contains("`env`"));
        let none = Program { command: b"/no/such/program".into(), ..program.clone() };
        assert!(with(&none, &[]).make_plain().unwrap_err().contains("/no/such/program"));
        let mut empty = with(&program, &[]);
        empty.programs[0].arguments.push(Vec::new());
        assert!(empty.make_plain().unwrap_err().contains("empty"));
        // What another host has nobody knows here.
        with(&none, &["host"]).make_plain().unwrap();
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
