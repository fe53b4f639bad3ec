//! The options of `mpiexec`, one row each: names, what follows, what it does or the sentence that says what to do
//! instead. The parser, `--help` and the manual page are made from this table.
//!
//! Beside its own options it holds those of Hydra and Open MPI that fingers and scripts type. What they ask for
//! is done; what is so anyway is accepted; what would change nothing here is left out with a
//! warning; all else is refused with what to do instead.
use super::arguments::{Bind, Draft, Inherit, Map, Reader, Universe};
use super::hosts;
use super::values::Values;
use crate::asked;
use crate::sys::process;

/// One option.
pub struct Opt {
    /// Its names without dashes.
    pub names: &'static [&'static str],
    /// The words that follow it.
    pub values: &'static str,
    /// What it does, or what to do instead.
    pub doc: &'static str,
    /// What the parser does with it.
    pub effect: Effect,
}

/// What an option does.
pub enum Effect {
    /// It changes the job that is being described.
    Does(fn(&mut Draft, &mut Values) -> Result<(), String>),
    /// What it asks for is so anyway, or cannot be otherwise.
    SoAnyway,
    /// It means nothing here and is left out, and the user is told so.
    LeftOut,
    /// It asks for something that Tern does not have.
    Refused,
    /// The options are shown, and nothing is started.
    Help,
    /// The version is shown, and nothing is started.
    Version,
}

type Names = &'static [&'static str];

const fn does(
    names: Names,
    values: &'static str,
    doc: &'static str,
    change: fn(&mut Draft, &mut Values) -> Result<(), String>,
) -> Opt {
    Opt { names, values, doc, effect: Effect::Does(change) }
}

const fn row(names: Names, values: &'static str, effect: Effect, doc: &'static str) -> Opt {
    Opt { names, values, doc, effect }
}

/// All options, by effect.
pub const OPTIONS: &[Opt] = &[
    does(&["n", "np", "c"], "RANKS", "number of ranks that run the program (default 1)", |draft, values| {
        draft.count = Some(values.count()?);
        Ok(())
    }),
    does(
        &["ppn", "perhost", "N", "npernode", "grr"],
        "RANKS",
        "ranks per host; on one host the number of ranks that run the program if -n does not give it",
        |draft, values| {
            let ranks = values.count()?;
            if ranks == 0 {
                return Err(format!("option {}: 0 ranks per host are no job", values.option));
            }
            draft.per_host = Some(ranks);
            Ok(())
        },
    ),
    does(&["pernode"], "", "one rank per host, as -ppn 1", |draft, _| {
        draft.per_host = Some(1);
        Ok(())
    }),
    does(&["env"], "NAME VALUE", "set a variable for the ranks of this program", |draft, values| {
        draft.segment.environment.push(values.name_and_value()?);
        Ok(())
    }),
    does(&["genv"], "NAME VALUE", "set a variable for all ranks", |draft, values| {
        draft.plan.environment.push(values.name_and_value()?);
        Ok(())
    }),
    does(
        &["x"],
        "NAME[=VALUE]",
        "set a variable for the ranks of this program, or pass on that of mpiexec",
        |draft, values| {
            draft.segment.environment.extend(values.exported(&mut draft.plan.warnings)?);
            Ok(())
        },
    ),
    does(
        &["envlist"],
        "NAME,NAME...",
        "pass only these variables on to the ranks of this program",
        |draft, values| {
            draft.segment.inherit = Some(Inherit::Only(values.list()?));
            Ok(())
        },
    ),
    does(&["genvlist"], "NAME,NAME...", "pass only these variables on to all ranks", |draft, values| {
        draft.plan.inherit = Inherit::Only(values.list()?);
        Ok(())
    }),
    does(&["envnone"], "", "pass no variable on to the ranks of this program", |draft, _| {
        draft.segment.inherit = Some(Inherit::Only(Vec::new()));
        Ok(())
    }),
    does(&["genvnone"], "", "pass no variable on to any rank", |draft, _| {
        draft.plan.inherit = Inherit::Only(Vec::new());
        Ok(())
    }),
    does(&["envall"], "", "pass all variables on to the ranks of this program (default)", |draft, _| {
        draft.segment.inherit = Some(Inherit::All);
        Ok(())
    }),
    does(&["genvall"], "", "pass all variables on to all ranks (default)", |draft, _| {
        draft.plan.inherit = Inherit::All;
        Ok(())
    }),
    does(
        &["abi"],
        "standard|mpich|openmpi",
        "what the programs were built for (default standard); mpich: MPICH, Intel MPI or MVAPICH\n(libmpi.so.12), openmpi: \
         Open MPI (libmpi.so.40): they find Tern's library with that ABI by LD_LIBRARY_PATH",
        |draft, values| {
            draft.plan.environment.extend(values.abi()?);
            Ok(())
        },
    ),
    does(&["wdir", "wd"], "DIR", "working directory of the ranks of this program", |draft, values| {
        draft.segment.directory = Some(values.next("a directory")?.into());
        Ok(())
    }),
    does(
        &["soft"],
        "NUMBER|FIRST:LAST[:STEP],...",
        "numbers of ranks that will do as well: the largest that is not above -n is taken",
        |draft, values| {
            draft.soft = Some((values.option.into(), values.text("numbers of ranks")?));
            Ok(())
        },
    ),
    does(&["arch"], "NAME", "refuse to start this program on another architecture", |_, values| {
        values.arch()
    }),
    does(
        &["initial-errhandler"],
        "mpi_errors_are_fatal|mpi_errors_abort|mpi_errors_return",
        "the error handler that MPI_COMM_WORLD and MPI_COMM_SELF of this program begin with",
        |draft, values| {
            draft.segment.environment.extend(values.told(asked::ERRHANDLER)?);
            Ok(())
        },
    ),
    does(
        &["memory-alloc-kinds", "memory-allocation-kinds"],
        "KIND,...",
        "the kinds of memory that this program asks for: mpi, system",
        |draft, values| {
            draft.segment.environment.extend(values.told(asked::KINDS)?);
            Ok(())
        },
    ),
    does(&["path"], "DIR[:DIR...]", "where this program is looked for, instead of PATH", |draft, values| {
        draft.segment.path = Some(values.next("directories")?);
        Ok(())
    }),
    does(
        &["bind-to", "bind"],
        "none|core|hwthread|socket|numa|rr|auto",
        "tie ranks to cores, hardware threads, sockets or NUMA nodes, in turn; rr: to CPUs in the\nsystem's order \
         (default auto: share the cores evenly, unless there are more ranks than CPUs)",
        |draft, values| {
            const WORDS: &[(&str, Bind)] = &[
                ("none", Bind::None),
                ("core", Bind::Core),
                ("hwthread", Bind::Thread),
                ("socket", Bind::Package),
                ("package", Bind::Package),
                ("numa", Bind::Numa),
                ("rr", Bind::Cpu),
                ("auto", Bind::Auto),
            ];
            draft.plan.bind = values.word(WORDS)?;
            Ok(())
        },
    ),
    does(
        &["map-by"],
        "core|slot|hwthread|node|socket|numa|ppr:RANKS:node[:cyclic]",
        "which place the next rank gets: the next one of its host (default), or one of the next socket or\nNUMA \
         node; node, or :cyclic behind any: one of the next host; ppr: as -ppn",
        |draft, values| {
            let (map, ranks, cyclic) = values.placement()?;
            (draft.plan.map, draft.plan.cyclic) = (map, cyclic);
            draft.per_host = ranks.or(draft.per_host);
            Ok(())
        },
    ),
    does(
        &["rank-by"],
        "slot|core|hwthread|fill|node",
        "how ranks are numbered when all have their hosts: host by host, or node: in turn over the hosts\n(default: as \
         --map-by has placed them)",
        |draft, values| {
            draft.plan.ranking = values.ranking()?;
            Ok(())
        },
    ),
    does(&["rr", "bynode"], "", "the next rank goes to the next host, as --map-by node", |draft, _| {
        draft.plan.cyclic = true;
        Ok(())
    }),
    does(
        &[
            "report-bindings",
            "display-map",
            "display-allocation",
            "display-devel-map",
            "print-rank-map",
            "verbose",
            "v",
        ],
        "",
        "say which program and which CPUs each rank gets",
        |draft, _| {
            draft.plan.show_places = true;
            Ok(())
        },
    ),
    does(&["display"], "map|bind", "the same in the notation of Open MPI 5", |draft, values| {
        values.word(&[("map", ()), ("bind", ()), ("map-devel", ())])?;
        draft.plan.show_places = true;
        Ok(())
    }),
    does(
        &["label", "l", "prepend-rank", "tag-output"],
        "",
        "begin every line of output with [rank]",
        |draft, _| {
            draft.plan.label = true;
            Ok(())
        },
    ),
    does(
        &["outfile-pattern"],
        "FILE",
        "the ranks write their output to a file; %r in its name is the rank, %h the host, %% a percent sign",
        |draft, values| {
            draft.plan.files[0] = Some(values.next("the name of a file")?);
            Ok(())
        },
    ),
    does(&["errfile-pattern"], "FILE", "the same for the error output of the ranks", |draft, values| {
        draft.plan.files[1] = Some(values.next("the name of a file")?);
        Ok(())
    }),
    does(
        &["output-filename"],
        "DIR",
        "rank N writes to DIR/1/rank.N/stdout and DIR/1/rank.N/stderr",
        |draft, values| {
            let directory = values.next("a directory")?;
            draft.plan.write_below(&directory);
            Ok(())
        },
    ),
    does(
        &["merge-stderr-to-stdout"],
        "",
        "the error output of ranks goes where their output goes",
        |draft, _| {
            draft.plan.merge = true;
            Ok(())
        },
    ),
    does(
        &["output"],
        "tag|merge|dir=DIR,...",
        "-label, -merge-stderr-to-stdout, -output-filename in the notation of Open MPI 5",
        |draft, values| values.output(&mut draft.plan),
    ),
    does(&["stdin", "s"], "RANK|none", "the rank that reads the input (default 0)", |draft, values| {
        draft.plan.reader = match values.text("a rank or none")?.as_str() {
            "none" => Reader::Nobody,
            rank => Reader::Rank(rank.parse().map_err(|_| {
                format!(
                    "option {} takes the one rank that reads the input, or none; '{rank}' is neither",
                    values.option
                )
            })?),
        };
        Ok(())
    }),
    does(
        &["stream-buffering"],
        "2",
        "accepted: what ranks print is buffered as programs do it before a pipe; 0 and 1 are refused, for\nstdbuf does that: \
         'mpiexec -n RANKS stdbuf -oL PROGRAM'",
        |_, values| values.buffering(),
    ),
    does(
        &["timeout"],
        "SECONDS",
        "end the job after this time, say who waits for whom, exit with 124",
        |draft, values| {
            draft.plan.timeout = Some(values.seconds()?);
            Ok(())
        },
    ),
    does(&["print-all-exitcodes"], "", "say at the end with which code each rank ended", |draft, _| {
        draft.plan.show_codes = true;
        Ok(())
    }),
    does(
        &["usize"],
        "RANKS|SYSTEM|INFINITE",
        "the attribute MPI_UNIVERSE_SIZE (default INFINITE: the number of ranks; SYSTEM: of CPUs)",
        |draft, values| {
            draft.plan.universe = match values.text("a number of ranks, SYSTEM or INFINITE")?.as_str() {
                "INFINITE" => Universe::Job,
                "SYSTEM" => Universe::Ranks(process::allowed_cpus().map_or(1, |cpus| cpus.len())),
                number => Universe::Ranks(values.number(number)?),
            };
            Ok(())
        },
    ),
    does(&["nooversubscribe"], "", "refuse to start more ranks than CPUs", |draft, _| {
        draft.plan.undersubscribed = true;
        Ok(())
    }),
    does(
        &["host", "hosts", "H"],
        "HOST[:RANKS],...",
        "the hosts that this program and those behind it run on, and how many ranks each takes; without\n-n as many as \
         that, one where no number stands",
        |draft, values| {
            draft.hosts = hosts::from_list(values.option, &values.text("a host")?)?;
            Ok(())
        },
    ),
    does(
        &["f", "hostfile", "machinefile", "default-hostfile"],
        "FILE",
        "the same from a file, a line for each: HOST, HOST:RANKS or HOST slots=RANKS",
        |draft, values| {
            draft.hosts = hosts::from_file(values.option, &values.next("a file")?)?;
            Ok(())
        },
    ),
    does(
        &["launcher", "bootstrap", "launcher-exec", "bootstrap-exec"],
        "ssh|srun|COMMAND",
        "how other hosts are reached: ssh (default), a step of Slurm's job, or a command that takes a host\nand a command \
         line as ssh does, and then starts what runs on this host as well",
        |draft, values| {
            draft.plan.reaching.launcher = values.launcher()?;
            Ok(())
        },
    ),
    does(
        &["launcher-path"],
        "FILE",
        "where mpiexec is on the other hosts (default: where it is on this one)",
        |draft, values| {
            draft.plan.reaching.path = Some(values.text("a file")?);
            Ok(())
        },
    ),
    does(
        &["iface"],
        "INTERFACE",
        "the interface of this host that the others connect to (default: the one by which each is reached)",
        |draft, values| {
            draft.plan.reaching.interface = Some(values.text("an interface")?);
            Ok(())
        },
    ),
    does(
        &["host-address"],
        "ADDRESS",
        "the address of this host that the others connect to, instead of one that is found",
        |draft, values| {
            let text = values.text("an address")?;
            let address =
                text.parse().map_err(|_| format!("option {}: '{text}' is no address", values.option));
            draft.plan.reaching.address = Some(address?);
            Ok(())
        },
    ),
    does(
        &["launch-timeout"],
        "SECONDS",
        "how long other hosts may take to answer (default 30)",
        |draft, values| {
            draft.plan.reaching.patience = values.seconds()?;
            Ok(())
        },
    ),
    does(
        &["configfile", "app"],
        "FILE",
        "the programs of the job stand in a file, one to a line with its options",
        |draft, values| {
            draft.config = Some((values.option.into(), values.next("a file")?));
            Ok(())
        },
    ),
    row(&["h", "help"], "", Effect::Help, "show this text"),
    row(&["V", "version", "info"], "", Effect::Version, "show the version"),
    row(
        &[
            "oversubscribe",
            "allow-run-as-root",
            "use-hwthread-cpus",
            "quiet",
            "q",
            "silent",
            "abort-on-non-zero-status",
            "do-not-resolve",
        ],
        "",
        Effect::SoAnyway,
        "accepted: it is always so",
    ),
    row(&["byslot", "bycore"], "", Effect::SoAnyway, "accepted: it is so unless --map-by says otherwise"),
    row(
        &["rmk", "prefix", "topolib", "demux", "personality"],
        "WORD",
        Effect::SoAnyway,
        "accepted: it changes nothing here",
    ),
    row(
        &["mca", "gmca", "prtemca", "pmixmca"],
        "NAME VALUE",
        Effect::LeftOut,
        "left out: parameters of Open MPI mean nothing to Tern (for its own settings see man 7 tern)",
    ),
    row(
        &["tune", "am"],
        "FILE",
        Effect::LeftOut,
        "left out: parameters of Open MPI mean nothing to Tern (for its own settings see man 7 tern)",
    ),
    row(
        &["rankfile", "rf", "cpu-set", "cpu-list"],
        "LIST",
        Effect::Refused,
        "choose the CPUs of the job with 'taskset -c LIST mpiexec ...' and those of the ranks with --bind-to and --map-by",
    ),
    row(
        &["cpus-per-rank", "cpus-per-proc"],
        "NUMBER",
        Effect::Refused,
        "leave it out: the ranks share the CPUs evenly (--bind-to auto)",
    ),
    row(
        &["file"],
        "FILE",
        Effect::Refused,
        "--configfile FILE names a file with the programs of the job and their options",
    ),
    row(
        &["gdb", "debug", "tv", "xterm"],
        "",
        Effect::Refused,
        "run a debugger in each rank, 'mpiexec -n RANKS xterm -e gdb PROGRAM', or attach one to a process",
    ),
    row(
        &["bind-to-core", "bind-to-socket", "bind-to-none", "bysocket", "npersocket"],
        "",
        Effect::Refused,
        "written in two words: --bind-to core|socket|none, --map-by socket, --npernode RANKS",
    ),
    row(
        &["nolocal", "skip-launch-node"],
        "",
        Effect::Refused,
        "leave this host out of the list of hosts, --hosts or --hostfile",
    ),
    row(
        &["launch-agent"],
        "COMMAND",
        Effect::Refused,
        "--launcher-path FILE says where mpiexec is on the other hosts, --launcher how they are reached",
    ),
    row(
        &["localhost"],
        "NAME",
        Effect::Refused,
        "--host-address ADDRESS or --iface INTERFACE say where the other hosts find this one",
    ),
    row(
        &["membind"],
        "POLICY",
        Effect::Refused,
        "have the ranks started by numactl, 'mpiexec -n RANKS numactl --membind=NODES PROGRAM'",
    ),
    row(
        &["ordered-output"],
        "",
        Effect::Refused,
        "sort the labelled output, 'mpiexec --label ... | sort -sV -k1,1', or write a file for each rank with \
         -outfile-pattern",
    ),
    row(
        &["profile"],
        "",
        Effect::Refused,
        "TERN_EXPLAIN=used says at the end which way messages took and how long that was; see man 7 tern",
    ),
    row(&["report-pid"], "WHERE", Effect::Refused, "the shell knows the process, 'mpiexec ... & echo $!'"),
    row(
        &["timestamp-output"],
        "",
        Effect::Refused,
        "pass the output through a program that writes the time, 'mpiexec ... | ts'",
    ),
    row(
        &["disable-auto-cleanup", "enable-recovery", "continuous", "with-ft"],
        "",
        Effect::Refused,
        "leave it out: a rank that fails ends the job, Tern has no other way",
    ),
];

/// An option as it is usually written.
pub fn dashed(name: &str) -> String {
    format!("{}{name}", if name.len() > 2 { "--" } else { "-" })
}

/// The words of `--map-by`, whose modifiers follow a colon.
pub(super) const MAPS: &[(&str, Map)] = &[
    ("core", Map::InOrder),
    ("slot", Map::InOrder),
    ("hwthread", Map::InOrder),
    ("node", Map::InOrder),
    ("socket", Map::Package),
    ("package", Map::Package),
    ("numa", Map::Numa),
];
