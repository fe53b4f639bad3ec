//! `tern bench`: the same C programs on Tern and on other MPI libraries, side by side.
//!
//! Virtual machines move their cores about and other load comes and goes, so the libraries are
//! never measured one after the other: in every round each case runs on each library in turn (the
//! order rotates), with a flag ping-pong before and after each run that tells where the cores are.
mod bar;
mod build;
mod case;
mod hosts;
mod library;
mod load;
mod options;
mod peers;
mod plot;
mod process;
mod results;
mod standing;
mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use bar::Bar;
use case::{Case, Reading};
use hosts::Hosts;
use library::Library;
use load::Snapshot;
use options::Options;
use process::Interrupt;
use results::{Failure, Point, Printed, Results, State, parse_line};

/// Case name of the flag ping-pong, which runs beside all others.
const FLAG: &str = "flag";

/// Where the sockets without MPI meet; nothing else is there at that time.
const RAW_PORT: &str = "47311";

/// Median by fast readings above which the flag ping-pong shared its cores with other work.
const DISTURBED: f64 = 1.5;

/// Runs `tern bench`.
pub fn run(arguments: Vec<OsString>) -> Result<(), String> {
    let Some(options) = Options::parse(arguments)? else {
        println!("{}", options::HELP);
        return Ok(());
    };
    if options.list {
        case::ALL
            .iter()
            .for_each(|case| println!("{:<16}{:>4} ranks  {}", case.name, case.ranks, case.about));
        return Ok(());
    }
    // With SIGCHLD ignored, as some daemons hand it down, nobody learns how a program ended.
    launch::sys::signal::reset_ignored();
    if options.install_peers {
        peers::install(&options.peers_dir())?;
    }
    let cases = case::select(&options.only, options.quick, options.hosts.is_some())?;
    let libraries = library::find_all(&options.peers, options.tern.as_deref(), &options.peers_dir())?;
    if libraries.is_empty() {
        return Err(
            "no MPI library found; name one with --peer NAME=PREFIX or use --install-peers".to_string()
        );
    }
    let mut session = Session::prepare(options, libraries, cases)?;
    session.measure();
    session.write()
}

/// One run of `tern bench`.
struct Session {
    options: Options,
    libraries: Vec<Library>,
    cases: Vec<Case>,
    hosts: Option<Hosts>,
    sources: PathBuf,
    flag: Option<PathBuf>,
    interrupt: Interrupt,
    results: Results,
}

impl Session {
    /// Puts Tern first, compiles the flag ping-pong, and says what will be compared.
    fn prepare(options: Options, mut libraries: Vec<Library>, cases: Vec<Case>) -> Result<Session, String> {
        libraries.sort_by_key(|library| !library.is_tern());
        for library in &libraries {
            eprintln!("{:<12}{}  {}", library.name, library.mpiexec.display(), library.version);
        }
        if !libraries.iter().any(Library::is_tern) {
            eprintln!(
                "Tern is not among them: it needs mpicc and mpiexec beside this command, or --tern PREFIX"
            );
        }
        let sources = options.source.clone().map_or_else(build::find_sources, Ok)?;
        let flag = build::compile_flag(&sources, &options.out.join("bin"))?;
        let interrupt = Interrupt::install()?;
        let hosts = options.hosts.as_deref().map(|text| Hosts::open(text, options.mtu)).transpose()?;
        if hosts.is_some() {
            libraries = between_hosts(&libraries, &options.transports);
        }
        let names = libraries.iter().map(|library| library.name.clone()).collect();
        let own = libraries.iter().filter(|library| library.is_tern()).count().max(1);
        let results = Results::new(names, own);
        Ok(Session { options, libraries, cases, hosts, sources, flag: Some(flag), interrupt, results })
    }

    fn measure(&mut self) {
        let count = self.libraries.len();
        let mut bar = Bar::new(self.options.rounds * self.cases.len() * count);
        for round in 0..self.options.rounds {
            for case in self.cases.clone() {
                for turn in 0..count {
                    let library = (round + turn) % count;
                    if self.interrupt.is_set() {
                        bar.say("interrupted; what has been measured is kept");
                        return;
                    }
                    bar.begin(&format!("{} {}", case.name, self.libraries[library].name));
                    if let Err(text) = self.visit(case, library) {
                        let library = self.libraries[library].name.clone();
                        bar.say(&format!("{library} failed in {}: {text}", case.name));
                        self.results.failures.push(Failure { library, case: case.name, text });
                    }
                    bar.end();
                }
            }
        }
    }

    /// Runs one case once on one library, unless it has failed there before: a library that hangs
    /// would otherwise cost its time limit in every round.
    fn visit(&mut self, case: Case, index: usize) -> Result<(), String> {
        let library = self.libraries[index].clone();
        let failed = |f: &Failure| f.library == library.name && f.case == case.name;
        if self.results.failures.iter().any(failed) || (case.name == case::RAW && index != 0) {
            return Ok(());
        }
        let dir = self.options.out.join("bin").join(library.name.replace([' ', '/'], "-"));
        let program = build::compile(&library, &self.sources, case.program, &dir)?;
        let load = Snapshot::take();
        let before = self.flag_us(index);
        let found = self.run_case(case, &library, &program)?;
        let after = self.flag_us(index);
        let disturbed = load.is_some_and(|load| load.was_disturbed());
        let state = self.state(disturbed, before, after);
        if found.is_empty() {
            return Err("it printed no figures".to_string());
        }
        for (point, value) in found {
            self.results.add(point, state, index, value);
        }
        Ok(())
    }

    fn run_case(&self, case: Case, library: &Library, program: &Path) -> Result<Vec<(Point, f64)>, String> {
        let limit = Duration::from_secs(case.limit_s);
        let mut found = Vec::new();
        let runs = if let Reading::Timed(runs) = case.reading { runs } else { 1 };
        for _ in 0..runs {
            let mut command = self.command(case, library, program);
            let output = process::run(&mut command, limit, &self.interrupt)?;
            let printed = output.text.lines().filter_map(|line| parse_line(case.name, line));
            found.extend(printed.map(|printed| (printed.point, printed.value)));
            if case.reading != Reading::Printed {
                found.push((whole_run(case), output.elapsed.as_secs_f64()));
            }
        }
        Ok(found)
    }

    fn command(&self, case: Case, library: &Library, program: &Path) -> Command {
        let mut command = match &self.hosts {
            Some(hosts) => hosts.launcher(library, case.ranks),
            None => Command::new(&library.mpiexec),
        };
        command.envs(library.environment.iter().map(|(name, value)| (name, value)));
        command.args(&library.options).arg("-n").arg(case.ranks.to_string()).arg(program);
        if let (Some(hosts), case::RAW) = (&self.hosts, case.name) {
            command.args([hosts.first(), RAW_PORT]);
        }
        command.args(case.arguments);
        if self.options.quick {
            command.args(["--quick", "--seconds", "0.05"]);
        }
        if let Some(seconds) = self.options.seconds {
            command.args(["--seconds", &seconds.to_string()]);
        }
        command
    }

    /// Under which state a reading is filed.
    fn state(&self, disturbed: bool, before_us: Option<f64>, after_us: Option<f64>) -> State {
        match (self.options.pool, disturbed) {
            (true, _) => State::Unknown,
            (false, true) => State::Busy,
            (false, false) => State::of(before_us, after_us),
        }
    }

    /// Half a round trip of the flag; the readings are counted for the library that runs now, so
    /// that they also show whether one library had better conditions than another.
    fn flag_us(&mut self, library: usize) -> Option<f64> {
        let mut command = Command::new(self.flag.as_ref()?);
        let output = process::run(&mut command, Duration::from_secs(10), &self.interrupt).ok()?;
        let printed: Vec<Printed> = output.text.lines().filter_map(|line| parse_line(FLAG, line)).collect();
        // The fast readings tell where the cores are; the median also suffers from other load.
        let one_line = printed.iter().find(|p| p.point.variant == "one_line").map(|p| p.low);
        for Printed { point, value, low } in printed {
            let state = self.state(value > DISTURBED * low, one_line, one_line);
            self.results.add(point, state, library, value);
        }
        one_line
    }

    /// Prints the table and writes `results.md`, `results.json` and the plots.
    fn write(&self) -> Result<(), String> {
        let out = &self.options.out;
        let about = self.about();
        print!("{}", table::terminal(&self.results, !self.options.only.is_empty()));
        print!("{}", standing::text(&self.results));
        save(&out.join("results.md"), &table::markdown(&self.results, &about))?;
        let json = self.results.to_json(json!(about));
        save(&out.join("results.json"), &format!("{json:#}\n"))?;
        let plots = plot::all(&self.results);
        match std::fs::remove_dir_all(out.join("plots")) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("plots of an earlier run: {e}"));
            }
            _ => {}
        }
        for (name, svg) in &plots {
            save(&out.join(name), svg)?;
        }
        println!("\nresults.md, results.json and {} plots are in {}", plots.len(), out.display());
        Ok(())
    }

    /// Where and how this was measured.
    fn about(&self) -> Vec<String> {
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("");
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let model = model.trim_start_matches([' ', '\t', ':']);
        let mut lines = vec![
            format!("machine: {model}, {cores} cores, Linux {}", kernel.trim()),
            format!("command: `{}`", self.options.command_line),
            format!("rounds: {}", self.options.rounds),
        ];
        lines.extend(self.hosts.as_ref().map(|hosts| format!("hosts: {}", hosts.about())));
        lines.extend(self.libraries.iter().map(|library| format!("{}: {}", library.name, library.version)));
        lines
    }
}

/// The libraries as they are started between hosts, Tern with its own choice of transports first, then with those asked for.
fn between_hosts(libraries: &[Library], transports: &[String]) -> Vec<Library> {
    let (tern, others): (Vec<&Library>, Vec<&Library>) =
        libraries.iter().partition(|library| library.is_tern());
    let forms = tern.iter().flat_map(|own| transports.iter().map(|transport| own.over(transport)));
    let own = tern.iter().map(|library| library.between_hosts());
    own.chain(forms).chain(others.iter().map(|library| library.between_hosts())).collect()
}

/// The point that stands for the duration of a whole run.
fn whole_run(case: Case) -> Point {
    Point {
        case: case.name,
        bench: "startup".to_string(),
        variant: String::new(),
        size: u64::from(case.ranks),
        unit: "s".to_string(),
    }
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    let dir = path.parent().expect("a file in a directory");
    std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
