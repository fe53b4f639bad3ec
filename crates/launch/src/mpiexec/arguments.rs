//! The command line: what a job is.
use super::files::{self, check_pattern};
use super::hosts::Host;
use super::options::{Effect, OPTIONS, dashed};
use super::output::Stream;
use super::placement::{self, Network, Ranking, Reaching};
use super::values::{self, Values};
use crate::asked;
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
    Run(Box<Plan>),
    /// Show the options.
    Help,
    /// Show the version.
    Version,
}

/// How ranks are tied to CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bind {
    /// See [`super::bind`].
    #[default]
    Auto,
    /// Not at all.
    None,
    /// One core for each rank, in turn.
    Core,
    /// One hardware thread, core by core.
    Thread,
    /// One CPU, in the order of their numbers.
    Cpu,
    /// All CPUs of one socket.
    Package,
    /// All CPUs of one NUMA node.
    Numa,
}

/// Which place the next rank gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Map {
    /// The next one.
    #[default]
    InOrder,
    /// One of the next socket.
    Package,
    /// One of the next NUMA node.
    Numa,
}

/// Which variables of the launcher ranks get.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Inherit {
    /// All of them.
    #[default]
    All,
    /// Those with these names.
    Only(Vec<OsString>),
}

/// Who reads the standard input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// One rank.
    Rank(usize),
    /// Nobody.
    Nobody,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader::Rank(0)
    }
}

/// What ranks are told of how many there could be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Universe {
    /// As many as there are.
    #[default]
    Job,
    /// So many.
    Ranks(usize),
}

/// A job.
#[derive(Debug, Default)]
pub struct Plan {
    /// Its programs, in the order of ranks.
    pub segments: Vec<Segment>,
    /// The variables that ranks may get from the launcher; known when the job starts.
    pub inherited: Vec<(OsString, OsString)>,
    /// Which of them all ranks get.
    pub inherit: Inherit,
    /// Variables for all ranks.
    pub environment: Vec<(OsString, OsString)>,
    /// How ranks are tied to CPUs.
    pub bind: Bind,
    /// Which place the next rank gets.
    pub map: Map,
    /// Whether there must be a CPU for each rank.
    pub undersubscribed: bool,
    /// Whether it is said which CPUs each rank gets.
    pub show_places: bool,
    /// Whether it is said with which code each rank ended.
    pub show_codes: bool,
    /// Whether lines are marked with the rank that wrote them.
    pub label: bool,
    /// Whether standard error goes where standard output goes.
    pub merge: bool,
    /// Patterns of files for standard output and error of ranks.
    pub files: [Option<OsString>; 2],
    /// Who reads the standard input.
    pub reader: Reader,
    /// After how long the job is ended.
    pub timeout: Option<Duration>,
    /// What ranks are told of how many there could be.
    pub universe: Universe,
    /// Whether the next rank goes to the next host rather than to the same one until it is full.
    pub cyclic: bool,
    /// How ranks are numbered when all have their hosts.
    pub ranking: Ranking,
    /// How other hosts are reached.
    pub reaching: Reaching,
    /// The hosts, if there are several.
    pub network: Option<Network>,
    /// What the user should know before the job runs.
    pub warnings: Vec<String>,
}

/// The variable that stands for `--timeout`.
pub const TIMEOUT: &str = "MPIEXEC_TIMEOUT";

/// One program of a job.
#[derive(Debug, Default)]
pub struct Segment {
    /// How many ranks run it.
    pub count: usize,
    /// Its hosts, if that is said, and how many ranks each of them gets at first.
    pub hosts: Vec<Host>,
    /// See [`Segment::hosts`].
    pub per_host: Option<usize>,
    /// The program, as the user wrote it.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Which variables of the launcher its ranks get, if not as all.
    pub inherit: Option<Inherit>,
    /// Variables for its ranks.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub directory: Option<PathBuf>,
    /// Where it is looked for, if not in PATH.
    pub path: Option<OsString>,
    /// What is executed, if that is not the program as the user wrote it; known when the job starts.
    pub found: Option<PathBuf>,
}

/// What options change while they are read: the job, and one of its programs.
#[derive(Default)]
pub struct Draft {
    pub(super) plan: Box<Plan>,
    pub(super) segment: Segment,
    /// Ranks of the program, and what holds where that is not said.
    pub(super) count: Option<usize>,
    pub(super) per_host: Option<usize>,
    /// The option that says what fewer ranks of the program will do, and which.
    pub(super) soft: Option<(String, String)>,
    /// The hosts of this program and of those that follow, until others are given.
    pub(super) hosts: Vec<Host>,
    /// The option that names a file of programs, and that file.
    pub(super) config: Option<(String, OsString)>,
}

impl Plan {
    /// Takes from the variable that mpiexec of MPICH and mpirun of Open MPI take it from when the job ends, where no option says so.
    pub fn heed(&mut self, timeout: Option<OsString>) -> Result<(), String> {
        if let (None, Some(text)) = (self.timeout, timeout.filter(|text| !text.is_empty())) {
            self.timeout = Some(values::seconds(&format!("variable {TIMEOUT}"), &text.to_string_lossy())?);
        }
        Ok(())
    }

    /// Lets rank N write to `directory/1/rank.N/stdout` and `stderr`, as Open MPI does.
    pub(super) fn write_below(&mut self, directory: &OsStr) {
        self.files = ["stdout", "stderr"].map(|name| {
            let mut pattern = files::literal(directory);
            pattern.push(format!("/1/rank.%r/{name}"));
            Some(pattern)
        });
    }

    /// The streams of a rank that come to the launcher.
    pub(super) fn streams(&self, rank: usize) -> [Option<Stream>; 2] {
        let label = if self.label { format!("[{rank}] ") } else { String::new() };
        let out = self.files[0].is_none();
        let err = !self.merge && self.files[1].is_none();
        [out, err].map(|comes| comes.then(|| Stream::new(label.clone())))
    }

    /// How many ranks the job has.
    pub fn ranks(&self) -> usize {
        self.segments.iter().map(|segment| segment.count).fold(0, usize::saturating_add)
    }
}

/// Most ranks of a job; a larger number is a slip of the keyboard.
const RANKS_MAX: usize = 16384;

/// Reads the command line. An error names the option and says what it takes.
pub fn parse(arguments: Vec<OsString>) -> Result<Request, String> {
    let mut draft = Draft::default();
    for words in arguments.split(|word| word == ":") {
        if let Some(instead) = draft.program(words)? {
            return Ok(instead);
        }
        let Some((option, file)) = draft.config.take() else { continue };
        for words in files::programs(&option, &file)? {
            let instead = draft.program(&words)?;
            if instead.is_some() || draft.config.is_some() {
                return Err(format!("option {option}: '{}' may hold programs only", file.display()));
            }
        }
    }
    let mut plan = draft.plan;
    check(&plan)?;
    plan.network = Network::of(&plan);
    Ok(Request::Run(plan))
}

/// What can be wrong only when the whole is known.
fn check(plan: &Plan) -> Result<(), String> {
    let ranks = plan.ranks();
    plan.files.iter().flatten().try_for_each(|pattern| check_pattern(pattern))?;
    match (plan.reader, plan.universe) {
        _ if ranks == 0 => Err("0 ranks: there must be at least one".into()),
        _ if ranks > RANKS_MAX => {
            Err(format!("{ranks} ranks are more than the {RANKS_MAX} that a job may have"))
        }
        (Reader::Rank(reader), _) if reader >= ranks => {
            Err(format!("rank {reader} cannot read the input: the job has {ranks} ranks"))
        }
        (_, Universe::Ranks(most)) if most < ranks => {
            Err(format!("a universe of {most} ranks is less than the {ranks} of the job"))
        }
        _ if plan.ranking == Ranking::Cores && plan.map != Map::InOrder => {
            Err("--map-by socket and numa number ranks in turn over these: with them --rank-by takes slot or node; \
                 '--rank-by slot' says what is so anyway"
                .into())
        }
        _ => Ok(()),
    }
}

impl Draft {
    /// Reads what one program is started with; what is to be done instead, if an option says so.
    fn program(&mut self, words: &[OsString]) -> Result<Option<Request>, String> {
        let mut words: VecDeque<OsString> = words.iter().cloned().collect();
        (self.segment, self.count, self.per_host, self.soft) = Default::default();
        while let Some(word) = words.pop_front() {
            let Some((typed, attached)) = option(&word) else {
                self.segment.program = word;
                self.segment.arguments = words.into();
                break;
            };
            let values = Values { option: &typed, attached, words: &mut words };
            if let Some(instead) = self.apply(values)? {
                return Ok(Some(instead));
            }
        }
        match (&self.config, self.segment.program.is_empty()) {
            (None, true) => {
                let which = if self.plan.segments.is_empty() { "no program" } else { "no program after ':'" };
                return Err(format!(
                    "{which}: usage is mpiexec -n RANKS PROGRAM [ARGUMENTS]; see mpiexec --help"
                ));
            }
            (Some((option, _)), false) => {
                return Err(format!(
                    "option {option} names the file with the programs; '{}' cannot stand here as well",
                    self.segment.program.display()
                ));
            }
            (Some(_), true) => {}
            (None, false) => {
                let counted = match self.hosts.is_empty() {
                    true => self.per_host.unwrap_or(1),
                    false => placement::ranks(&self.hosts, self.per_host),
                };
                let most = self.count.unwrap_or(counted);
                self.segment.count = match &self.soft {
                    None => most,
                    Some((option, text)) => {
                        asked::soft(text, most).map_err(|why| format!("option {option} is {why}"))?
                    }
                };
                (self.segment.hosts, self.segment.per_host) = (self.hosts.clone(), self.per_host);
                self.plan.segments.push(std::mem::take(&mut self.segment));
            }
        }
        Ok(None)
    }

    fn apply(&mut self, mut values: Values) -> Result<Option<Request>, String> {
        let typed = values.option;
        let name = typed.trim_start_matches('-');
        let option = OPTIONS.iter().find(|option| option.names.contains(&name));
        let option = option.ok_or_else(|| unknown_option(typed))?;
        match option.effect {
            Effect::Does(change) => change(self, &mut values)?,
            Effect::SoAnyway | Effect::LeftOut => {
                let words: Vec<&str> = option.values.split_whitespace().collect();
                words.iter().try_for_each(|word| values.next(word).map(drop))?;
                let warning = format!("option {typed}: {}", option.doc);
                if matches!(option.effect, Effect::LeftOut) && !self.plan.warnings.contains(&warning) {
                    self.plan.warnings.push(warning);
                }
            }
            Effect::Refused => return Err(format!("option {typed}: {}", option.doc)),
            Effect::Help => return Ok(Some(Request::Help)),
            Effect::Version => return Ok(Some(Request::Version)),
        }
        match values.attached {
            Some(value) => Err(format!("option {typed} takes no value, but '{}' was given", value.display())),
            None => Ok(None),
        }
    }
}

/// An option with its dashes, one or two, and the value behind `=`.
fn option(word: &OsStr) -> Option<(String, Option<OsString>)> {
    let bytes = word.as_bytes();
    if !bytes.starts_with(b"-") {
        return None;
    }
    let at = bytes.iter().position(|b| *b == b'=');
    let (name, value) = match at {
        Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]).to_os_string())),
        None => (bytes, None),
    };
    Some((String::from_utf8_lossy(name).into_owned(), value))
}

/// Names the nearest option if a slip of the keyboard leads there.
fn unknown_option(typed: &str) -> String {
    let name = typed.trim_start_matches('-');
    let names = OPTIONS.iter().flat_map(|option| option.names);
    let near = names.map(|known| (distance(name, known), known)).min().filter(|(slips, known)| {
        // Of a short name every letter counts.
        *slips <= known.len().max(name.len()) * 2 / 5
    });
    let near = near.map(|(_, known)| format!("did you mean {}? ", dashed(known))).unwrap_or_default();
    format!("unknown option {typed}; {near}mpiexec --help lists all")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, String> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    fn plan(line: &str) -> Plan {
        match parsed(line) {
            Ok(Request::Run(plan)) => *plan,
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
        assert_eq!(self::plan("-env A=B=C a").segments[0].environment, [("A".into(), "B=C".into())]);
    }

    #[test]
    fn what_the_standard_has_mpiexec_take() {
        let plan = plan("-n 8 -soft 2:9:3 -arch ARCH -initial-errhandler mpi_errors_return a : -n 2 --memory-alloc-kinds mpi,cuda b"
            .replace("ARCH", std::env::consts::ARCH).as_str());
        let [a, b] = &plan.segments[..] else { panic!("{plan:?}") };
        assert_eq!((a.count, b.count), (8, 2));
        assert_eq!(a.environment, [("TERN_INITIAL_ERRHANDLER".into(), "mpi_errors_return".into())]);
        assert_eq!(b.environment, [("TERN_MEMORY_ALLOC_KINDS".into(), "mpi,cuda".into())]);
        for (line, part) in [
            ("-n 4 -soft 5:9 a", "-soft is `5:9`, which allows no number from 1 to 4"),
            ("-arch sparc a", "not sparc"),
            ("-initial-errhandler ignore a", "'ignore' is not one of mpi_errors_are_fatal"),
            ("-file x a", "--configfile"),
        ] {
            let said = parsed(line).unwrap_err();
            assert!(said.contains(part), "{line}: {said}");
        }
    }

    #[test]
    fn what_hydra_and_open_mpi_call_things() {
        let count = |line: &str| plan(line).segments[0].count;
        for (line, expected) in [
            ("-ppn 3 a", 3),
            ("-perhost 3 -n 5 a", 5),
            ("-N 2 a", 2),
            ("--map-by ppr:4:node a", 4),
            ("-host localhost:2,localhost:4 a", 6),
            ("-rr -launcher ssh -iface lo -q -n 2 a", 2),
        ] {
            assert_eq!(count(line), expected, "{line}");
        }
        assert_eq!(plan("-N 2 a : b").segments[1].count, 1);
        let binds =
            [("socket", Bind::Package), ("hwthread", Bind::Thread), ("rr", Bind::Cpu), ("NUMA", Bind::Numa)];
        for (word, bind) in binds {
            assert_eq!(plan(&format!("-bind-to {word} a")).bind, bind);
        }
        assert_eq!(plan("--map-by socket:OVERSUBSCRIBE a").map, Map::Package);
        let shown =
            plan("--report-bindings --merge-stderr-to-stdout -print-all-exitcodes -usize 9 --stdin none a");
        assert!(shown.show_places && shown.merge && shown.show_codes);
        assert_eq!((shown.universe, shown.reader), (Universe::Ranks(9), Reader::Nobody));
        assert_eq!(plan("-usize INFINITE -s 1 -n 2 a").reader, Reader::Rank(1));
        assert_eq!(plan("--output tag,dir=o a").files[1], Some("o/1/rank.%r/stderr".into()));
        assert_eq!(plan("--output-filename o a").files[0], Some("o/1/rank.%r/stdout".into()));
        let only = plan("-genvnone -envlist A,B a : b");
        assert_eq!(only.inherit, Inherit::Only(Vec::new()));
        assert_eq!(only.segments[0].inherit, Some(Inherit::Only(vec!["A".into(), "B".into()])));
        assert_eq!(only.segments[1].inherit, None);
        let twice = plan("--mca btl self --mca pml ob1 -n 1 a");
        assert!(matches!(&twice.warnings[..], [one] if one.starts_with("option --mca: left out")));
    }

    #[test]
    fn errors_name_the_option() {
        let cases = [
            ("", "no program"),
            ("-n 2", "no program"),
            ("-n 2 a :", "after ':'"),
            ("-n two a", "'two'"),
            ("-n -1 a", "'-1'"),
            ("-n 0 a", "0 ranks"),
            ("-n 99999999999 a", "more than"),
            ("-n", "-n needs"),
            ("-env A", "-env needs"),
            ("-env =B c d", "''"),
            ("--bind-to sock a", "option --bind-to takes none, core"),
            ("-bind=sock a", "option -bind takes"),
            ("--map-by ppr:2:socket a", "'-ppn RANKS --map-by socket' deals"),
            ("--map-by ppr:x:node a", "'ppr:x:node' does not count"),
            (
                "--map-by l3cache a",
                "'l3cache' is none of them: cores with one cache of this level are of one NUMA node; use numa",
            ),
            ("--bind-to l3 a", "use numa, or core for less"),
            ("--bind-to L1cache a", "use core"),
            ("--bind-to board a", "use socket, or numa"),
            ("--map-by core:PE=2 a", "'core:PE=2'"),
            ("-timeout 0 a", "option -timeout needs a number of seconds above 0; '0'"),
            ("--timeout nan a", "'nan'"),
            ("--abi ompi a", "option --abi takes standard, mpich, openmpi; 'ompi' is none"),
            ("--abi mpich a", "there is no libmpi.so.12 in /"),
            ("--abi openmpi a", "there is no libmpi.so.40 in /"),
            ("--label=3 a", "option --label takes no value, but '3'"),
            ("-host a:b c", "option -host: 'b' in 'a:b'"),
            ("-host a,,b c", "option -host: 'a,,b' has an empty entry"),
            ("-ppn 0 -host a b", "option -ppn: 0 ranks"),
            ("-launcher pbs a", "option -launcher: 'pbs' is not among the launchers"),
            ("--launcher= a", "option --launcher needs"),
            ("--host-address x a", "option --host-address: 'x' is no address"),
            ("--launch-timeout 0 a", "option --launch-timeout needs"),
            ("--map-by :sideways a", "':sideways'"),
            ("-f /no/such/file a", "option -f: '/no/such/file': No such file"),
            ("-f /dev/null a", "there is no host in"),
            ("-configfile /dev/null", "there is no program in"),
            ("-configfile /dev/null a", "'a' cannot stand here"),
            ("--stdin all a", "'all'"),
            ("--stdin 2 -n 2 a", "rank 2 cannot read"),
            ("-usize 1 -n 2 a", "universe of 1"),
            ("-outfile-pattern %x a", "'%x'"),
            ("--rankfile r a", "option --rankfile: choose the CPUs of the job with 'taskset"),
            ("-genvlist A=B a", "option -genvlist: 'A=B'"),
            ("-x =B a", "option -x: ''"),
            ("--timout 3 a", "unknown option --timout; did you mean --timeout?"),
            ("--lable a", "did you mean --label?"),
            ("-ppm 3 a", "unknown option -ppm; did you mean --ppn?"),
            ("- a", "unknown option"),
        ];
        for (line, named) in cases {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(named), "{line}: {error}");
        }
    }

    #[test]
    fn nothing_is_proposed_for_a_word_that_is_near_to_none() {
        for line in ["--frobnicate a", "-z a", "--xyzzy a"] {
            let error = parsed(line).unwrap_err();
            assert!(error.starts_with("unknown option") && !error.contains("did you mean"), "{error}");
        }
    }

    #[test]
    fn no_name_stands_for_two_options() {
        let mut names: Vec<&str> = OPTIONS.iter().flat_map(|option| option.names).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn programs_from_a_file() {
        let path = std::env::temp_dir().join(format!("launch-programs-{}", std::process::id()));
        let file = path.to_str().unwrap();
        std::fs::write(&path, "# two programs\n-n 2 ./a 'b c'\n\n-n 3 -env D 1 ./e\n").unwrap();
        let two = plan(&format!("-genv A 1 -configfile {file}"));
        let shape: Vec<(usize, &str)> =
            two.segments.iter().map(|s| (s.count, s.program.to_str().unwrap())).collect();
        assert_eq!(shape, [(2, "./a"), (3, "./e")]);
        assert_eq!((two.ranks(), &two.segments[0].arguments[..]), (5, &["b c".into()][..]));
        std::fs::write(&path, format!("-configfile {file}\n")).unwrap();
        assert!(parsed(&format!("-configfile {file}")).unwrap_err().contains("programs only"));
        std::fs::remove_file(&path).unwrap();
    }
}
