//! Every setting, declared once: it feeds the environment, `tern info` and the manual page.
use std::ffi::OsString;

/// How the text of a setting is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Any text.
    Text,
    /// `0`/`1`, `no`/`yes`, `off`/`on`, `false`/`true`.
    Flag,
    /// A number of bytes with an optional suffix `K`, `M` or `G` (powers of 1024).
    Bytes,
    /// A plain number.
    Number,
    /// One of the words listed.
    Word(&'static [&'static str]),
}

/// The declaration of one setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The environment variable, `TERN_…`.
    pub name: &'static str,
    /// How its text is read.
    pub kind: Type,
    /// The text that stands for it when the variable is not set.
    pub default: &'static str,
    /// What it does and why the default is what it is.
    pub doc: &'static str,
}

/// All settings in alphabetical order.
pub const ALL: &[Setting] = &[
    Setting {
        name: "TERN_ADAPT",
        kind: Type::Flag,
        default: "1",
        doc: "Whether messages longer than 4K go as the application gets on fastest with in shared memory: copied twice (eager, up to TERN_EAGER_MAX) or once (rendezvous), by the receiver or by both sides; 0: eagerly up to TERN_EAGER_MAX.",
    },
    Setting {
        name: "TERN_COLL_ALLGATHER",
        kind: Type::Word(&[
            "auto",
            "recursive-doubling",
            "bruck",
            "neighbour",
            "ring",
            "linear",
            "two-level",
        ]),
        default: "auto",
        doc: "Algorithm for Allgather and Allgatherv; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_COLL_ALLREDUCE",
        kind: Type::Word(&[
            "auto",
            "recursive-doubling",
            "rabenseifner",
            "ring",
            "reduce-bcast",
            "linear",
            "star",
            "two-shot",
            "two-level",
        ]),
        default: "auto",
        doc: "Algorithm for Allreduce; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_COLL_ALLTOALL",
        kind: Type::Word(&["auto", "bruck", "linear", "pairwise", "two-level"]),
        default: "auto",
        doc: "Algorithm for Alltoall, Alltoallv and Alltoallw; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_COLL_BARRIER",
        kind: Type::Word(&["auto", "dissemination", "recursive-doubling", "linear", "star", "two-level"]),
        default: "auto",
        doc: "Algorithm for Barrier; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_COLL_BCAST",
        kind: Type::Word(&["auto", "binomial", "scatter-allgather", "chain", "linear", "two-level"]),
        default: "auto",
        doc: "Algorithm for Bcast; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_COLL_GATHER",
        kind: Type::Word(&["auto", "binomial", "linear", "two-level"]),
        default: "auto",
        doc: "Algorithm for Gather; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_COLL_REDUCE",
        kind: Type::Word(&["auto", "binomial", "rabenseifner", "in-order", "linear", "two-level"]),
        default: "auto",
        doc: "Algorithm for Reduce; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_COLL_REDUCE_SCATTER",
        kind: Type::Word(&[
            "auto",
            "recursive-halving",
            "pairwise",
            "ring",
            "in-order",
            "linear",
            "two-level",
        ]),
        default: "auto",
        doc: "Algorithm for Reduce_scatter and Reduce_scatter_block; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_COLL_SCAN",
        kind: Type::Word(&["auto", "recursive-doubling", "linear", "two-level"]),
        default: "auto",
        doc: "Algorithm for Scan and Exscan; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_COLL_SCATTER",
        kind: Type::Word(&["auto", "binomial", "linear", "two-level"]),
        default: "auto",
        doc: "Algorithm for Scatter; auto takes the one of least predicted cost. One that does not apply (number of ranks, operation that does not commute) gives way to auto. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_CONNECTIONS",
        kind: Type::Number,
        default: "64",
        doc: "Connections that a rank has at a time with TERN_TRANSPORT=hybrid, if TERN_CONNECTION_BYTES suffices for them; the peers that most is sent to get them. 64: more than the neighbours of any grid.",
    },
    Setting {
        name: "TERN_CONNECTION_BYTES",
        kind: Type::Bytes,
        default: "8M",
        doc: "Memory that all connections of a rank may take with TERN_TRANSPORT=hybrid, with what peers write to: about 128 KB each.",
    },
    Setting {
        name: "TERN_DECISIONS",
        kind: Type::Text,
        default: "",
        doc: "Journal whose choices are made again, at the same messages and in the same epochs of windows; `last:FILE` takes for every kind of them the last choice from the first one on. Must be readable on all hosts.",
    },
    Setting {
        name: "TERN_DEVICES",
        kind: Type::Word(&["auto", "shm", "rnic", "ibv", "shm+rnic", "shm+ibv"]),
        default: "auto",
        doc: "What carries messages. Inside a host auto takes shared memory; between hosts RDMA adapters of the system (InfiniBand, RoCE) if each rank has one in hardware whose port is active, or one that TERN_IBV_PORTS names, and else the software adapter (iWARP over TCP). shm+rnic and shm+ibv take the one or the other between hosts; shm, rnic and ibv are taken between all ranks. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_EAGER_MAX",
        kind: Type::Bytes,
        default: "1M",
        doc: "Longest message that may leave before its receive is known (eager), for a second copy, instead of when both sides have met (rendezvous). At most 256K in shared memory (a block), 1M over connections of the software adapter (what their sockets take at once, also while the receiver computes), 64K over its reliable datagrams, 16K over others.",
    },
    Setting {
        name: "TERN_EXPLAIN",
        kind: Type::Word(&["off", "used", "all"]),
        default: "off",
        doc: "Whether every rank says at the end, on the standard error output, which protocols its messages took, how many, what was predicted and observed, and why: `used` by peer class and size range, `all` also what is in force for each kind of message. Counting costs every message two looks at the clock.",
    },
    Setting {
        name: "TERN_FILE_LOCKS",
        kind: Type::Word(&["auto", "always", "never"]),
        default: "auto",
        doc: "Whether every access of a file by MPI locks what it reads or writes, atomic or not: auto does so on NFS, whose clients keep pages for themselves and write them back whole unless a lock says that others write there too; always on all file systems, for others that are like it. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_IBV_LIBRARY",
        kind: Type::Text,
        default: "libibverbs.so.1",
        doc: "The library by which adapters of the system are reached (TERN_DEVICES=auto, ibv, shm+ibv): a file, or a name that the loader of the system finds. Tern's own libibverbs.so.1 (lib/tern/verbs) makes an adapter of each network interface.",
    },
    Setting {
        name: "TERN_IBV_PARTITION",
        kind: Type::Text,
        default: "",
        doc: "The partition key (P_Key) of InfiniBand that is used, in hexadecimal, with or without the bit of full members; without it the first key that makes a port a full member.",
    },
    Setting {
        name: "TERN_IBV_PORTS",
        kind: Type::Text,
        default: "",
        doc: "The ports of adapters that are used, with commas between: name, name:port or name:port:index of the address (GID), as ibv_devinfo shows them; long messages go over all of them. Without it the active port that is nearest to the rank, and its best address: RoCE v2 before v1, IPv4 before IPv6.",
    },
    Setting {
        name: "TERN_IBV_SERVICE_LEVEL",
        kind: Type::Number,
        default: "0",
        doc: "The service level of InfiniBand, 0 to 15, that messages over adapters of the system have.",
    },
    Setting {
        name: "TERN_IBV_TRAFFIC_CLASS",
        kind: Type::Number,
        default: "0",
        doc: "The traffic class, 0 to 255, that messages over RoCE v2 have: the byte of differentiated services and congestion notification of their packets.",
    },
    Setting {
        name: "TERN_INITIAL_ERRHANDLER",
        kind: Type::Word(&["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"]),
        default: "mpi_errors_are_fatal",
        doc: "The error handler that MPI_COMM_WORLD, MPI_COMM_SELF and the communicator with a parent have at first, and that errors before MPI_Init and after MPI_Finalize go to (MPI 5.0 section 9.3). mpiexec -initial-errhandler and the key mpi_initial_errhandler of MPI_Comm_spawn set it.",
    },
    Setting {
        name: "TERN_INTEGRITY",
        kind: Type::Word(&["auto", "crc", "mac"]),
        default: "auto",
        doc: "How the software adapter knows that what comes is what was sent: auto by what each transport has (the checksum of TCP, a CRC32c in each datagram), crc by a CRC32c in each segment over TCP as well, mac by a keyed MAC behind each message, so that nobody on the network can have anything changed, left out, moved or played again. What they cost: docs/results.md. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_INTERFACE",
        kind: Type::Text,
        default: "",
        doc: "The interface that the software adapter listens at, by name, address or subnet (10.1.0.0/16, fd00:1::/64); without it the address that the launcher gives, or the first of the interface with the default route.",
    },
    Setting {
        name: "TERN_JOURNAL",
        kind: Type::Text,
        default: "",
        doc: "File to which every change of a choice among protocols, and of how the operations of epochs of windows are planned, is written with its evidence when the job ends; rank 0 makes it, the others add their lines. Only devices with registered memory have such choices.",
    },
    Setting {
        name: "TERN_LINKS",
        kind: Type::Text,
        default: "off",
        doc: "File in which jobs on several hosts keep what messages take between them, by which the algorithms of collectives are chosen in later jobs, and protocols until messages have shown what they take: auto for tern/links in XDG_CACHE_HOME or ~/.cache, on the host of rank 0; off: nothing is read or kept, and costs are assumed. With a file the first four jobs between two hosts measure that in MPI_Finalize, in a few milliseconds. Not with TERN_ADAPT=0 or a forced TERN_PROTOCOL. The file may be removed at any time.",
    },
    Setting {
        name: "TERN_LOADS",
        kind: Type::Word(&["auto", "ordinary", "prefetched", "side-by-side"]),
        default: "auto",
        doc: "How payloads from 8 KiB on are read out of shared memory: by ordinary copies, by such whose lines are asked for before, or, from 16 KiB on, line by line of four pages at once; auto takes for each peer what is measured to take the least time. What was written past the caches (TERN_STORES) is read side by side.",
    },
    Setting {
        name: "TERN_MANNER",
        kind: Type::Word(&["auto", "blocks", "shared", "pulled"]),
        default: "auto",
        doc: "How messages longer than 4K are copied in shared memory: through blocks of it (eager up to TERN_EAGER_MAX, longer ones once they are asked for), by whichever side is there, or pulled by the receiver; auto takes for each habit what the application gets on fastest with.",
    },
    Setting {
        name: "TERN_MEMORY_ALLOC_KINDS",
        kind: Type::Text,
        default: "",
        doc: "The kinds of memory that the program asks for (MPI 5.0 section 11.4.3), with commas between: mpi and system, of which mpi may be said more exactly (mpi:alloc_mem, mpi:win_allocate, mpi:win_allocate_shared); others are not there. mpiexec -memory-alloc-kinds and the key mpi_memory_alloc_kinds of MPI_Comm_spawn set it.",
    },
    Setting {
        name: "TERN_PROGRESS",
        kind: Type::Word(&["engine", "inside"]),
        default: "engine",
        doc: "Who goes on with collectives and long messages while the program computes: a thread of each rank that sleeps until a peer rings (engine), or nobody until the program calls MPI again (inside). engine: a rank that computes holds nobody up, and programs that leave nothing pending have no thread.",
    },
    Setting {
        name: "TERN_PROTOCOL",
        kind: Type::Word(&[
            "auto",
            "eager-copy",
            "eager-zero-copy",
            "rget",
            "rput",
            "speculative",
            "pipeline",
            "caching-pipeline",
            "superpipeline",
            "copy-pipeline",
        ]),
        default: "auto",
        doc: "Protocol for messages that are too long for eager; auto takes the one of least predicted cost. eager-copy and eager-zero-copy are for short messages, of which auto gathers those whose buffers come again and copies the others; of longer ones they leave the choice. Where the memory of a peer cannot be reached the payload goes by frames all the same.",
    },
    Setting {
        name: "TERN_REGISTERED_MAX",
        kind: Type::Bytes,
        default: "4G",
        doc: "Bytes of application memory that may stay registered with an adapter after the message that needed it, so that the next one from there need not register it; 0: none. 4G: more than most programs send from, and a bound on what cannot be swapped. Where nobody can tell when memory goes away nothing stays registered. Shared memory needs no registration.",
    },
    Setting {
        name: "TERN_REGISTERED_VERIFY",
        kind: Type::Flag,
        default: "0",
        doc: "Whether each use of memory that stayed registered (TERN_REGISTERED_MAX) is verified: whether the mapping is the one that was watched (Linux 6.7), and, for who has CAP_SYS_ADMIN, whether its pages lie in the frames that they were in when it was registered. That finds also what nobody tells of, as a file that is cut while it is mapped. What is stale is registered anew and counted (tern_cache_stale), and MPI_Finalize says how often and what the first was. 0: it costs a look at each page of a message, and is there to find faults with. Adapters that go by addresses, as the software adapter, have nothing to verify.",
    },
    Setting {
        name: "TERN_RTR",
        kind: Type::Flag,
        default: "1",
        doc: "Whether an early receiver offers its buffer to the sender, which can then push while the receiver computes.",
    },
    Setting {
        name: "TERN_SHM_DIR",
        kind: Type::Text,
        default: "/dev/shm",
        doc: "Directory in which the shared memory of a job is created (mode 0600, random name, unlinked as soon as it is mapped).",
    },
    Setting {
        name: "TERN_SINGLE_COPY",
        kind: Type::Flag,
        default: "1",
        doc: "Whether ranks may copy from and to each other's memory (process_vm_readv) where the kernel permits it.",
    },
    Setting {
        name: "TERN_STORES",
        kind: Type::Word(&["auto", "ordinary", "prefetched", "streaming"]),
        default: "auto",
        doc: "How payloads from 1 KiB on are written into shared memory: by ordinary stores, by such whose lines are asked for before (where the processor can be asked), or by such that go past the caches (x86-64); auto takes for each peer what is measured to take the least time.",
    },
    Setting {
        name: "TERN_TRANSPORT",
        kind: Type::Word(&["rc", "rd", "ud", "hybrid"]),
        default: "rc",
        doc: "How adapters carry messages: rc by a connection with each peer (of the software adapter TCP); through one socket or queue pair for all: rd, the software adapter alone, by datagrams that it makes reliable, ud by unreliable ones that the library makes reliable; hybrid by those of ud, and by connections with the peers that much is sent to (TERN_CONNECTIONS). Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_UNEXPECTED",
        kind: Type::Bytes,
        default: "64M",
        doc: "Bytes of messages without a receive that a rank keeps before it lets senders wait.",
    },
    Setting {
        name: "TERN_UNEXPECTED_MAX",
        kind: Type::Bytes,
        default: "4G",
        doc: "Bytes of messages without a receive at which a rank that can make no other progress gives the job up.",
    },
    Setting {
        name: "TERN_WIN",
        kind: Type::Word(&["auto", "direct", "active"]),
        default: "auto",
        doc: "How one-sided operations get to their target: direct by the processor of their origin, where the library has allocated the memory and all ranks of the window share a host, and Put and Get also where target and origin do, or the kernel copies a long run on one host, and by the target elsewhere, also between hosts; active by the target, which looks around in its engine while it computes; auto as direct, but Put and Get between hosts by the adapter. Must be the same on all ranks.",
    },
    Setting {
        name: "TERN_WIN_FENCE",
        kind: Type::Word(&["auto", "told", "asked"]),
        default: "auto",
        doc: "How ranks meet in MPI_Win_fence where they do not share the window's memory: told each by each other one, behind the last operation; asked whether all is there, with a barrier behind; auto as predicted to take less time, and from the 16th fence of a window on as measured. What counts is the setting of the window's rank 0.",
    },
    Setting {
        name: "TERN_WIN_SCHEDULE",
        kind: Type::Word(&[
            "auto",
            "original",
            "gets-first",
            "interleaved",
            "merge-last",
            "aggregate",
            "hybrid",
            "early",
            "early-hybrid",
        ]),
        default: "auto",
        doc: "What of the Puts and Gets to other hosts is done in which order when an epoch ends: auto as predicted to cost least; original each by itself as called; gets-first, interleaved (with Puts) each by itself; merge-last the last one together with the synchronisation; aggregate all that fit in messages; hybrid short ones in messages; early each when it is called, early-hybrid short ones together. For tests and comparisons.",
    },
];

/// Variables that `mpiexec` hands to the ranks it starts: no settings, and not for users.
pub const INTERNAL: &[&str] =
    &["TERN_BOARD_FD", "TERN_CONTROL_FD", "TERN_HOST_ADDRESS", "TERN_JOB", "TERN_JOB_CPUS"];

/// How variables begin that are for the tests of the project, which start programs of their own.
const OF_TESTS: &str = "TERN_TEST_";

/// The value of one setting and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The text in force.
    pub text: String,
    /// Whether it came from the environment rather than from the default.
    pub from_environment: bool,
}

/// The settings in force in this process.
#[derive(Clone, Debug)]
pub struct Settings(Vec<Value>);

impl Settings {
    /// Reads the settings with `lookup`; every unknown `TERN_*` name among `names` and every
    /// unreadable value is an error that names the variable.
    pub fn read<'a>(
        lookup: impl Fn(&str) -> Option<String>,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<Settings, String> {
        for name in names.filter(|n| n.starts_with("TERN_")) {
            let is_other = INTERNAL.contains(&name) || name.starts_with(OF_TESTS);
            if !is_other && !ALL.iter().any(|s| s.name == name) {
                return Err(format!("unknown setting {name}; the nearest known one is {}", nearest(name)));
            }
        }
        let mut values = Vec::with_capacity(ALL.len());
        for setting in ALL {
            let found = lookup(setting.name).filter(|text| !text.is_empty());
            let from_environment = found.is_some();
            let text = found.unwrap_or_else(|| setting.default.to_string());
            setting.check(&text)?;
            values.push(Value { text, from_environment });
        }
        Ok(Settings(values))
    }

    /// The settings from this process's environment.
    pub fn from_env() -> Result<Settings, String> {
        Settings::from_variables(std::env::vars_os())
    }

    /// The settings from these variables; what is not UTF-8 is an error like any other wrong value.
    fn from_variables(all: impl Iterator<Item = (OsString, OsString)>) -> Result<Settings, String> {
        let mut variables = Vec::new();
        for (name, value) in all.filter(|(name, _)| name.as_encoded_bytes().starts_with(b"TERN_")) {
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => variables.push((name, value)),
                (Ok(name), Err(value)) => return Err(format!("setting {name}={value:?}: it is not UTF-8")),
                (Err(name), _) => return Err(format!("unknown setting {name:?}: its name is not UTF-8")),
            }
        }
        let lookup = |wanted: &str| variables.iter().find(|(name, _)| name == wanted).map(|(_, v)| v.clone());
        Settings::read(lookup, variables.iter().map(|(name, _)| name.as_str()))
    }

    /// The value in force of a declared setting.
    pub fn value(&self, name: &str) -> &Value {
        let index = ALL.iter().position(|s| s.name == name);
        &self.0[index.unwrap_or_else(|| panic!("setting {name} is not declared"))]
    }

    /// The text of a declared setting.
    pub fn text(&self, name: &str) -> &str {
        &self.value(name).text
    }

    /// The value of a flag.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), "1" | "yes" | "on" | "true")
    }

    /// The value of a number or a number of bytes.
    pub fn number(&self, name: &str) -> u64 {
        parse_bytes(self.text(name)).expect("checked when read")
    }
}

/// What this process's environment says of one setting, whatever it says of others; `None` if nothing that can be read.
pub fn told(name: &str) -> Option<String> {
    let setting = ALL.iter().find(|setting| setting.name == name)?;
    std::env::var(name).ok().filter(|text| !text.is_empty() && setting.check(text).is_ok())
}

impl Setting {
    /// Whether a text is one that the setting may have; an error names both.
    pub fn check(&self, text: &str) -> Result<(), String> {
        let ok = match self.kind {
            Type::Text => true,
            Type::Flag => matches!(text, "0" | "1" | "no" | "yes" | "off" | "on" | "false" | "true"),
            Type::Bytes => parse_bytes(text).is_some(),
            Type::Number => text.parse::<u64>().is_ok(),
            Type::Word(words) => words.contains(&text),
        };
        if ok {
            Ok(())
        } else {
            Err(format!("setting {}={text}: must be {}", self.name, self.kind.describe()))
        }
    }
}

impl Type {
    /// What a value of this type looks like, for messages and the manual page.
    pub fn describe(self) -> String {
        match self {
            Type::Text => "text".into(),
            Type::Flag => "0 or 1".into(),
            Type::Bytes => "a number of bytes such as 65536, 64K or 1M".into(),
            Type::Number => "a number".into(),
            Type::Word(words) => format!("one of {}", words.join(", ")),
        }
    }
}

/// A number of bytes with an optional suffix `K`, `M` or `G`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn nearest(name: &str) -> &'static str {
    ALL.iter().map(|s| s.name).min_by_key(|known| distance(name, known)).unwrap_or("none")
}

/// Levenshtein's edit distance.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_and_bad_values_name_the_variable() {
        let none = |_: &str| None;
        let error = Settings::read(none, ["TERN_SHM_DIRS"].into_iter()).unwrap_err();
        assert!(error.contains("TERN_SHM_DIRS") && error.contains("TERN_SHM_DIR"), "{error}");
        Settings::read(none, INTERNAL.iter().copied().chain(["TERN_TEST_REQUIRE"])).unwrap();
        assert_eq!(parse_bytes("64K"), Some(65536));
        assert_eq!(parse_bytes("x"), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[cfg(unix)]
    #[test]
    fn text_that_is_not_utf_8_is_an_error_that_names_the_variable() {
        use std::os::unix::ffi::OsStringExt;
        let wrong = || OsString::from_vec(b"TERN_\xff".to_vec());
        let read = |name: OsString, value: OsString| Settings::from_variables([(name, value)].into_iter());
        let error = read("TERN_SHM_DIR".into(), wrong()).unwrap_err();
        assert!(error.contains("TERN_SHM_DIR") && error.contains("not UTF-8"), "{error}");
        assert!(read(wrong(), "1".into()).unwrap_err().contains("TERN_\\xFF"));
        let good = read("TERN_RTR".into(), "0".into()).unwrap();
        assert!(!good.flag("TERN_RTR") && read("OTHER".into(), wrong()).is_ok());
    }

    #[test]
    fn every_default_is_readable_and_the_table_is_sorted() {
        Settings::read(|_| None, std::iter::empty()).unwrap();
        assert!(ALL.windows(2).all(|w| w[0].name < w[1].name));
    }
}
