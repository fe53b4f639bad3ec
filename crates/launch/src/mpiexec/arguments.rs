//! The command line.
use super::help::{OPTIONS, dashed};
use crate::sys;
use fabric::settings::distance;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// What the user wants.
#[derive(Debug)]
pub enum Request {
    /// Start a job.
    Run(Plan),
    /// Show the options.
    Help,
    /// Show the version.
    Version,
}

/// How ranks are tied to cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bind {
    /// See [`super::bind`].
    #[default]
    Auto,
    /// Not at all.
    None,
    /// One core for each rank, in turn.
    Core,
}

/// A job.
#[derive(Debug, Default)]
pub struct Plan {
    /// Its programs, in the order of ranks.
    pub segments: Vec<Segment>,
    /// Variables for all ranks.
    pub environment: Vec<(OsString, OsString)>,
    /// How ranks are tied to cores.
    pub bind: Bind,
    /// Whether lines are marked with the rank that wrote them.
    pub label: bool,
    /// After how long the job is ended.
    pub timeout: Option<Duration>,
}

/// One program of a job.
#[derive(Debug, Default)]
pub struct Segment {
    /// How many ranks run it.
    pub count: usize,
    /// The program, as the user wrote it.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables for its ranks.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub directory: Option<PathBuf>,
}

/// Most ranks of a job on one host; a larger number is a slip of the keyboard.
const RANKS_MAX: usize = 16384;

/// Reads the command line. An error names the option and says what it takes.
pub fn parse(arguments: Vec<OsString>) -> Result<Request, String> {
    let mut plan = Plan::default();
    for words in arguments.split(|word| word == ":") {
        let mut words: VecDeque<OsString> = words.iter().cloned().collect();
        let mut segment = Segment { count: 1, ..Segment::default() };
        while let Some(word) = words.pop_front() {
            let Some((name, attached)) = option(&word) else {
                segment.program = word;
                segment.arguments = words.into();
                break;
            };
            match apply(&name, attached, &mut words, &mut plan, &mut segment)? {
                Applied::Done => {}
                Applied::Instead(request) => return Ok(request),
            }
        }
        if segment.program.is_empty() {
            let which = if plan.segments.is_empty() { "no program" } else { "no program after ':'" };
            return Err(format!(
                "{which}: usage is mpiexec -n RANKS PROGRAM [ARGUMENTS]; see mpiexec --help"
            ));
        }
        plan.segments.push(segment);
    }
    let ranks: usize = plan.segments.iter().map(|s| s.count).fold(0, usize::saturating_add);
    match ranks {
        0 => Err("-n 0: there must be at least one rank".into()),
        1..=RANKS_MAX => Ok(Request::Run(plan)),
        _ => Err(format!("-n: {ranks} ranks are more than the {RANKS_MAX} that one host may run")),
    }
}

enum Applied {
    Done,
    Instead(Request),
}

/// An option without its dashes, and the value behind `=`; one dash is as good as two.
fn option(word: &OsStr) -> Option<(String, Option<OsString>)> {
    let bytes = word.as_bytes();
    let name = bytes.strip_prefix(b"--").or_else(|| bytes.strip_prefix(b"-"))?;
    let at = name.iter().position(|b| *b == b'=');
    let (name, value) = match at {
        Some(at) => (&name[..at], Some(OsStr::from_bytes(&name[at + 1..]).to_os_string())),
        None => (name, None),
    };
    Some((String::from_utf8_lossy(name).into_owned(), value))
}

/// The words that follow an option.
struct Values<'a> {
    option: &'a str,
    attached: Option<OsString>,
    words: &'a mut VecDeque<OsString>,
}

impl Values<'_> {
    fn next(&mut self, what: &str) -> Result<OsString, String> {
        let value = self.attached.take().or_else(|| self.words.pop_front());
        value.ok_or_else(|| format!("option -{} needs {what}", self.option))
    }

    fn text(&mut self, what: &str) -> Result<String, String> {
        Ok(self.next(what)?.to_string_lossy().into_owned())
    }
}

fn apply(
    name: &str,
    attached: Option<OsString>,
    words: &mut VecDeque<OsString>,
    plan: &mut Plan,
    segment: &mut Segment,
) -> Result<Applied, String> {
    let mut values = Values { option: name, attached, words };
    match name {
        "n" | "np" | "c" => segment.count = count(name, &values.text("a number of ranks")?)?,
        "env" => segment.environment.push(name_and_value(&mut values)?),
        "genv" => plan.environment.push(name_and_value(&mut values)?),
        "x" => segment.environment.extend(exported(&values.next("NAME or NAME=VALUE")?)?),
        "wdir" | "wd" => segment.directory = Some(values.next("a directory")?.into()),
        "bind" | "bind-to" => plan.bind = bind(&values.text("none, core or auto")?)?,
        "label" | "l" | "prepend-rank" | "tag-output" => plan.label = true,
        "timeout" => plan.timeout = Some(seconds(&values.text("a number of seconds")?)?),
        "host" | "hosts" | "H" => local_hosts(&values.text("a host")?)?,
        "f" | "hostfile" | "machinefile" => return Err(other_hosts(&format!("-{name}"))),
        "oversubscribe" | "allow-run-as-root" | "envall" | "genvall" => {}
        "h" | "help" => return Ok(Applied::Instead(Request::Help)),
        "V" | "version" | "info" => return Ok(Applied::Instead(Request::Version)),
        unknown => return Err(unknown_option(unknown)),
    }
    match values.attached {
        Some(value) => Err(format!("option -{name} takes no value, but '{}' was given", value.display())),
        None => Ok(Applied::Done),
    }
}

fn count(name: &str, text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("option -{name} needs a number of ranks; '{text}' is none"))
}

fn name_and_value(values: &mut Values) -> Result<(OsString, OsString), String> {
    let name = values.next("NAME VALUE")?;
    check_name(values.option, &name)?;
    Ok((name, values.next("NAME VALUE")?))
}

/// The whole environment reaches every rank anyway, so a name alone changes nothing.
fn exported(word: &OsStr) -> Result<Option<(OsString, OsString)>, String> {
    let bytes = word.as_bytes();
    let Some(at) = bytes.iter().position(|b| *b == b'=') else {
        check_name("x", word)?;
        if std::env::var_os(word).is_none() {
            eprintln!("mpiexec: warning: -x {}: there is no such variable", word.display());
        }
        return Ok(None);
    };
    let (name, value) = (OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..]));
    check_name("x", name)?;
    Ok(Some((name.into(), value.into())))
}

fn check_name(option: &str, name: &OsStr) -> Result<(), String> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.contains(&b'=') {
        return Err(format!("option -{option}: '{}' is no name of a variable", name.display()));
    }
    Ok(())
}

fn bind(text: &str) -> Result<Bind, String> {
    match text {
        "auto" => Ok(Bind::Auto),
        "none" => Ok(Bind::None),
        "core" => Ok(Bind::Core),
        _ => Err(format!("option --bind takes none, core or auto; '{text}' is neither")),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    /// A year; it also keeps sums of times in range.
    const MAX: f64 = 365.0 * 86400.0;
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= MAX => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("option --timeout needs a number of seconds above 0; '{text}' is none")),
    }
}

fn local_hosts(list: &str) -> Result<(), String> {
    let here = sys::hostname();
    for host in list.split(',') {
        let name = host.split(':').next().unwrap_or_default();
        if ![here.as_str(), "localhost", "127.0.0.1", "::1"].contains(&name) {
            return Err(other_hosts(&format!("host '{name}'")));
        }
    }
    Ok(())
}

fn other_hosts(what: &str) -> String {
    format!(
        "{what}: this mpiexec starts ranks on this host only; across hosts start the program with Hydra \
         ('mpiexec' of MPICH) or with 'srun --mpi=pmi2'"
    )
}

fn unknown_option(name: &str) -> String {
    let near = OPTIONS.iter().flat_map(|o| o.names).min_by_key(|known| distance(name, known));
    let near = near.expect("there are options");

    format!("unknown option -{name}; the nearest known one is {} (see mpiexec --help)", dashed(near))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, String> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    fn plan(line: &str) -> Plan {
        match parsed(line) {
            Ok(Request::Run(plan)) => plan,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_job_of_several_programs() {
        let plan = plan("-genv A 1 --label -n 2 -env B 2 -wdir /tmp a.out -n x : -np 3 -x C=3=4 b.out -l");
        assert_eq!(plan.segments.len(), 2);
        assert!(plan.label && plan.bind == Bind::Auto && plan.timeout.is_none());
        assert_eq!(plan.environment, [("A".into(), "1".into())]);
        let [a, b] = &plan.segments[..] else { unreachable!() };
        assert_eq!((a.count, a.program.to_str()), (2, Some("a.out")));
        assert_eq!(a.arguments, ["-n", "x"]);
        assert_eq!(a.environment, [("B".into(), "2".into())]);
        assert_eq!(a.directory.as_deref(), Some("/tmp".as_ref()));
        assert_eq!((b.count, b.arguments.len()), (3, 1));
        assert_eq!(b.environment, [("C".into(), "3=4".into())]);
        assert_eq!(b.directory, None);
    }

    #[test]
    fn both_dashes_and_attached_values() {
        let plan =
            plan("--n=4 --bind=core --timeout=1.5 --oversubscribe -allow-run-as-root -host localhost:4 a");
        assert_eq!((plan.segments[0].count, plan.bind), (4, Bind::Core));
        assert_eq!(plan.timeout, Some(Duration::from_millis(1500)));
        assert!(matches!(parsed("-h"), Ok(Request::Help)));
        assert!(matches!(parsed("-n 2 --version a"), Ok(Request::Version)));
        assert_eq!(self::plan("a.out").segments[0].count, 1);
    }

    #[test]
    fn errors_name_the_option() {
        let cases = [
            ("", "no program"),
            ("-n 2", "no program"),
            ("-n 2 a :", "after ':'"),
            ("-n two a", "'two'"),
            ("-n -1 a", "'-1'"),
            ("-n 0 a", "-n 0"),
            ("-n 99999999999 a", "more than"),
            ("-n", "-n needs"),
            ("-env A", "-env needs"),
            ("-env A=B c d", "'A=B'"),
            ("--bind socket a", "'socket'"),
            ("--timeout 0 a", "'0'"),
            ("--timeout nan a", "'nan'"),
            ("--label=3 a", "'3'"),
            ("-host far a", "'far'"),
            ("-f hosts a", "-f"),
            ("--timout 3 a", "--timeout"),
            ("--lable a", "--label"),
            ("- a", "unknown option"),
        ];
        for (line, named) in cases {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn every_documented_option_is_known() {
        for option in OPTIONS {
            for name in option.names {
                let line = format!("-{name}");
                if let Err(error) = parsed(&line) {
                    assert!(!error.contains("unknown option"), "{error}");
                }
            }
        }
    }
}
