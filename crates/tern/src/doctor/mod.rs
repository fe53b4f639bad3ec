//! `tern doctor`: what this host, others and a program lack, and the command that mends it.

mod among;
mod echo;
mod host;
pub mod network;
mod program;

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use fabric::settings::Settings;
use launch::pmi::client::Client;
use launch::text::{escape, unescape};

const HELP: &str = "\
usage: tern doctor [--hosts a,b [--launcher COMMAND] [--iface NAME]] [PROGRAM]

Tries what jobs need of this host, and of PROGRAM. A line for each:
  pass   as it should be
  weak   jobs run, but less well than they could
  FAIL   jobs fail, or do not start
and below the last two the command that mends it.

  --hosts a,b         the same on these hosts, and whether they reach each other, by connections and by datagrams
  --launcher COMMAND  how hosts are reached, as for mpiexec (ssh)
  --iface NAME        where mpiexec listens, as for mpiexec

As the program of a job (mpiexec -ppn 1 --hosts a,b tern doctor; srun, mpirun) it looks at the hosts of the job.
The exit code is 1 if anything fails.";

/// How a check ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Pass,
    Weak,
    Fail,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Weak => "weak",
            Verdict::Fail => "FAIL",
        }
    }
}

/// What was found of one thing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    verdict: Verdict,
    what: String,
    found: String,
    /// The command that mends it.
    mend: String,
}

impl Check {
    fn pass(what: &str, found: impl Into<String>) -> Check {
        Check { verdict: Verdict::Pass, what: what.into(), found: found.into(), mend: String::new() }
    }

    fn weak(what: &str, found: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { verdict: Verdict::Weak, what: what.into(), found: found.into(), mend: mend.into() }
    }

    fn fail(what: &str, found: impl Into<String>, mend: impl Into<String>) -> Check {
        Check { verdict: Verdict::Fail, ..Check::weak(what, found, mend) }
    }

    fn text(&self) -> String {
        let mend =
            if self.mend.is_empty() { String::new() } else { format!("        mend: {}\n", self.mend) };
        format!("  {}  {:<16}{}\n{mend}", self.verdict.name(), self.what, self.found)
    }

    /// As one line for another rank.
    fn line(&self) -> String {
        let words = [self.verdict.name(), &self.what, &self.found, &self.mend];
        words.map(|word| escape(word.as_bytes())).join(" ")
    }

    fn read(line: &str) -> Option<Check> {
        let words: Vec<String> = line.split(' ').map(word).collect::<Option<_>>()?;
        let [verdict, what, found, mend] = words.try_into().ok()?;
        let all = [Verdict::Pass, Verdict::Weak, Verdict::Fail];
        let verdict = all.into_iter().find(|known| known.name() == verdict)?;
        Some(Check { verdict, what, found, mend })
    }
}

fn word(text: &str) -> Option<String> {
    String::from_utf8(unescape(text)?).ok()
}

#[derive(Default)]
struct Options {
    hosts: Option<OsString>,
    launcher: Option<OsString>,
    interface: Option<OsString>,
    program: Option<PathBuf>,
}

/// Runs `tern doctor`.
pub fn run(arguments: Vec<OsString>) -> Result<ExitCode, String> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|e| e.to_string())? {
        match argument {
            lexopt::Arg::Long("hosts" | "host") => options.hosts = Some(value(&mut parser)?),
            lexopt::Arg::Long("launcher") => options.launcher = Some(value(&mut parser)?),
            lexopt::Arg::Long("iface") => options.interface = Some(value(&mut parser)?),
            lexopt::Arg::Long("help") | lexopt::Arg::Short('h') => {
                println!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            lexopt::Arg::Value(program) if options.program.is_none() => {
                options.program = Some(program.into());
            }
            other => return Err(other.unexpected().to_string()),
        }
    }
    if let Some(hosts) = &options.hosts {
        return on_hosts(hosts, &options);
    }
    let settings = Settings::from_env();
    let mut checks = examine(&settings, options.program.as_deref());
    let client = match Client::from_env() {
        Ok(client) => client,
        Err(why) => {
            checks.push(Check::fail("launcher", why, "unset the variables of the launcher, or use another"));
            None
        }
    };
    match client {
        Some(client) => among::run(client, &settings, checks),
        None => Ok(print(&format!("host {}", launch::sys::hostname()), &checks)),
    }
}

fn value(parser: &mut lexopt::Parser) -> Result<OsString, String> {
    parser.value().map_err(|e| e.to_string())
}

/// All that needs no other host.
fn examine(settings: &Result<Settings, String>, program: Option<&Path>) -> Vec<Check> {
    let mut checks = host::checks(settings);
    checks.extend(network::checks(settings));
    checks.extend(program::launchers());
    checks.extend(program.map(program::checks).into_iter().flatten());
    checks
}

/// Prints what was found in one place.
fn print(place: &str, checks: &[Check]) -> ExitCode {
    println!("{place}");
    checks.iter().for_each(|check| print!("{}", check.text()));
    ExitCode::from(u8::from(checks.iter().any(|check| check.verdict == Verdict::Fail)))
}

/// Has `mpiexec` run this command once on each host: so starting is examined as well.
fn on_hosts(hosts: &OsString, options: &Options) -> Result<ExitCode, String> {
    let own = std::env::current_exe().map_err(|e| format!("/proc/self/exe: {e}"))?;
    let mpiexec = own.with_file_name("mpiexec");
    let mut command = Command::new(&mpiexec);
    command.arg("--hosts").arg(hosts).args(["-ppn", "1"]);
    for (option, value) in [("--launcher", &options.launcher), ("--iface", &options.interface)] {
        if let Some(value) = value {
            command.arg(option).arg(value);
        }
    }
    command.arg(&own).arg("doctor").args(&options.program).stderr(Stdio::piped());
    let failed = |e: std::io::Error| format!("{}: {e}", mpiexec.display());
    let mut child = command.spawn().map_err(failed)?;
    let (told, heard) = std::sync::mpsc::channel();
    let said = BufReader::new(child.stderr.take().expect("it is a pipe"));
    std::thread::spawn(move || pass_on(said, |line| drop(told.send(line))));
    let status = child.wait().map_err(failed)?;
    // What a launcher leaves behind, as the connections that ssh keeps, may hold the pipe open.
    let lost: Vec<String> = std::iter::from_fn(|| heard.recv_timeout(LAST_WORDS).ok()).collect();
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    if let Some(remedy) = lost.first().and_then(|line| remedy(line, &mpiexec)) {
        eprintln!("tern doctor: {remedy}");
    } else if code != 0 {
        eprintln!("tern doctor: something fails; what mends it stands below it");
    }
    Ok(ExitCode::from(code))
}

/// How long what `mpiexec` has said may take to be read when it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How a line of `mpiexec` begins that says of a host that it cannot be started on.
const OF_HOST: &str = "mpiexec: host ";

/// Passes on what `mpiexec` says; tells the lines that are about a host.
fn pass_on(said: impl BufRead, tell: impl Fn(String)) {
    for line in said.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        eprintln!("{line}");
        if line.starts_with(OF_HOST) {
            tell(line);
        }
    }
}

/// What mends a host that cannot be started on, as a line of `mpiexec` says it.
fn remedy(line: &str, mpiexec: &Path) -> Option<String> {
    let (host, why) = line.strip_prefix(OF_HOST)?.split_once(": ")?;
    if why.contains("cannot be resolved") {
        return Some(format!(
            "'getent ahosts {host}' must answer: a name of DNS, of /etc/hosts, or an address"
        ));
    }
    Some(format!(
        "'ssh -o BatchMode=yes {host} {} --version' must ask nothing and answer, for each host (ssh-copy-id {host}; the same \
         tree in the same place)",
        mpiexec.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_go_between_ranks_and_to_people() {
        let check = Check::fail("single copy", "refused = 1 %", "sysctl -w a=b");
        assert_eq!(Check::read(&check.line()), Some(check.clone()));
        assert_eq!(check.text(), "  FAIL  single copy     refused = 1 %\n        mend: sysctl -w a=b\n");
        let good = Check::pass("a", "");
        assert_eq!(Check::read(&good.line()), Some(good));
        for line in ["", "pass a b", "pass a b c d", "well a b c", "pass % b c"] {
            assert_eq!(Check::read(line), None, "{line}");
        }
    }

    #[test]
    fn the_remedy_is_for_the_host_that_failed() {
        let said =
            "warning\nmpiexec: host b: no agent has come within 30 s\nmpiexec: host c: its agent is gone\n";
        let (told, heard) = std::sync::mpsc::channel();
        pass_on(said.as_bytes(), |line| told.send(line).unwrap());
        let told = remedy(&heard.recv().unwrap(), Path::new("/opt/mpiexec")).unwrap();
        assert!(told.starts_with("'ssh -o BatchMode=yes b /opt/mpiexec --version' must"), "{told}");
        let line =
            "mpiexec: host nohost.invalid: the name cannot be resolved: failed to lookup (--host-address)";
        assert!(remedy(line, Path::new("m")).unwrap().contains("'getent ahosts nohost.invalid'"));
        pass_on("mpiexec: rank 1 exited with code 3\n".as_bytes(), |line| panic!("{line}"));
    }

    /// Whatever a check has to say against a host, it says how to mend it.
    #[test]
    fn who_complains_knows_a_remedy() {
        let checks = examine(&Settings::from_env(), Some(Path::new("/bin/true")));
        assert!(checks.len() > 12, "{checks:?}");
        for check in checks {
            assert_eq!(check.verdict == Verdict::Pass, check.mend.is_empty(), "{check:?}");
        }
    }
}
