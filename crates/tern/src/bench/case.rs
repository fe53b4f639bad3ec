//! The table of what is measured: which program, on how many ranks, for how long at most.

/// How a run yields figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// The program prints its points as lines of JSON.
    Printed,
    /// The whole run is timed from outside, this many times per round.
    Timed(u32),
}

/// One thing to measure.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Name for `--only` and the tables.
    pub name: &'static str,
    /// Program in `bench/`, without `.c`.
    pub program: &'static str,
    /// Number of ranks.
    pub ranks: u32,
    /// Arguments besides `--quick` and `--seconds`.
    pub arguments: &'static [&'static str],
    /// Where the figures come from.
    pub reading: Reading,
    /// Whether it is measured between hosts (`--hosts`), as many ranks on each, or on one.
    pub between_hosts: bool,
    /// Whether `--quick` leaves it out.
    pub only_full: bool,
    /// Seconds after which the run is ended and counted as failed.
    pub limit_s: u64,
    /// What it shows, one line for the results.
    pub about: &'static str,
}

/// What threads of a rank do at once.
const THREADS: &str = "an allreduce by each of 1, 2 and 4 threads of each rank at once, with work of their own, and beside one that computes";
/// What more ranks than cores do.
const CROWDED: &[&str] = &["--only", "allreduce,alltoall,allreduce_polled,alltoall_polled", "--max", "1M"];

/// Every case, in the order of the tables.
pub const ALL: &[Case] = &[
    printed(
        "latency",
        "latency",
        2,
        &[],
        "half a ping-pong; `touched`: the sender writes and the receiver reads every byte; `behind`: what is received lies 16 bytes further \
         behind a page",
    ),
    printed(
        "stream",
        "stream",
        2,
        &[],
        "64 messages in flight: rate of 8 B messages, bandwidth, bandwidth both ways",
    ),
    printed("pairs", "stream", 4, &["--max", "1M"], "the same, sum over two pairs on four ranks"),
    printed("collectives", "collectives", 2, &[], "blocking collectives, average over the ranks"),
    printed(
        "oversubscribed",
        "collectives",
        8,
        CROWDED,
        "allreduce and alltoall of eight ranks; `polled`: begun, then MPI_Test until it is done",
    ),
    printed("oversubscribed4", "collectives", 4, CROWDED, "the same of four ranks"),
    printed("threads", "threads", 2, &[], THREADS),
    printed("threads4", "threads", 4, &[], "the same of four ranks"),
    printed("fresh", "fresh", 2, &[], "bandwidth from and into buffers mapped anew for every message"),
    printed(
        "overlap",
        "overlap",
        2,
        &[],
        "computation that fits beside a message; `hidden`: share of it that an equally long computation hides",
    ),
    printed(
        "progress",
        "progress",
        2,
        &[],
        "time until the receiver has the data, over the delay (size, in µs) on the computing side; `late`: share of the longest delay that shows",
    ),
    printed(
        "stall",
        "stall",
        2,
        &[],
        "how long the blocking side is held up while the other computes for 1 ms",
    ),
    printed(
        "icollectives",
        "icollectives",
        2,
        &[],
        "non-blocking collectives: share that an equally long computation hides; `alone`: their time without",
    ),
    printed(
        "lost",
        "lost",
        2,
        &[],
        "what a round of writing, exchanging, computing and reading takes beyond its computation; `alone`: without the exchange",
    ),
    printed(
        "distance",
        "distance",
        2,
        &[],
        "messages while the two cores are near each other and while they are far, which virtual machines change by the second",
    ),
    printed("lost4", "lost", 4, &["--max", "1M"], "the same on four ranks, each with two neighbours"),
    printed(
        "neighbours",
        "neighbours",
        2,
        &[],
        "MPI_Cart_shift, exchanges with the neighbours on a grid, partitioned sends with and without a computation",
    ),
    printed(
        "onesided",
        "onesided",
        2,
        &[],
        "Put, Get, accumulates and those with requests under flush, fence, post/start/complete/wait and lock; two patterns of epochs; beside a target that computes",
    ),
    printed(
        "counter4",
        "onesided",
        4,
        &[],
        "one counter that 4 ranks add to, and a fence of 4 (size: ranks)",
    ),
    Case { only_full: true, ..printed("counter16", "onesided", 16, &[], "the same by 16 ranks") },
    printed(
        "files",
        "files",
        2,
        &[],
        "bandwidth of files, contiguous, and in turn by independent and by collective accesses; `beside`: what a write beside a computation costs",
    ),
    printed("files8", "files", 8, &["--min", "1M", "--max", "1M"], "the same on eight ranks"),
    suite("definitions", "the point-to-point benchmarks of two suites as their descriptions define them"),
    suite("definitions_coll", "the same of collectives: blocking, non-blocking and persistent"),
    suite("definitions_rma", "the one-sided benchmarks of the OSU suite, by window and synchronisation"),
    timed("startup", 2, 5, "hello world from start to end; `init`: the part inside MPI_Init"),
    timed("startup64", 64, 1, "the same with 64 ranks"),
    printed(
        "memory16",
        "memory",
        16,
        &[],
        "proportional set size per rank after all have talked to all; `init`: before",
    ),
    Case { only_full: true, ..printed("memory", "memory", 128, &[], "the same with 128 ranks") },
    between(RAW, "raw", 2, &[], "sockets without MPI, in Tern's column: the limit"),
    between("hosts-latency", "latency", 2, &[], "half a ping-pong between two hosts"),
    between("hosts-stream", "stream", 2, &[], "64 messages in flight between two hosts"),
    between(
        "hosts-stall",
        "stall",
        2,
        &["--min", "64K"],
        "how long the blocking side is held up while the other, on another host, computes for 1 ms",
    ),
    between(
        "hosts-overlap",
        "overlap",
        2,
        &["--min", "64K"],
        "computation that fits beside a message between two hosts; `hidden`: share of it that an equally long computation hides",
    ),
    between(
        "hosts-connections",
        "connections",
        16,
        &[],
        "pairs of ranks at once: latency divided by their number, and throughput both ways",
    ),
    between(
        "hosts-collectives",
        "collectives",
        4,
        &["--max", "256K"],
        "blocking collectives, two ranks on each host",
    ),
    between(
        "hosts-neighbours",
        "neighbours",
        4,
        &["--max", "256K"],
        "exchanges with neighbours, two ranks on each host",
    ),
    between(
        "hosts-onesided",
        "onesided",
        2,
        &[],
        "Put, Get, accumulates and patterns of epochs between two hosts, and beside a target that computes",
    ),
    Case {
        between_hosts: true,
        ..suite_of(
            "hosts-definitions_rma",
            "definitions_rma",
            "the one-sided benchmarks of the OSU suite between two hosts, by window and synchronisation",
        )
    },
    between(
        "hosts-counter4",
        "onesided",
        4,
        &[],
        "one counter that 4 ranks on two hosts add to, and a fence of theirs (size: ranks)",
    ),
    between("hosts-threads", "threads", 4, &[], THREADS),
    between("hosts-stencil", "stencil", 4, &[], "an iteration of Jacobi's method, by the length of a row"),
    between(
        "hosts-applications",
        "kernels",
        4,
        &[],
        "an iteration of conjugate gradients, a cycle of multigrid, sweeps of SSOR in a pipeline (LU), a cycle of semicoarsening multigrid \
         (SMG2000), a radix sort; `in MPI`: the part that passes in sends, receives and waits",
    ),
    between("hosts-memory", "memory", 16, &[], "memory per rank after all have talked to all"),
    Case { only_full: true, ..between("hosts-memory64", "memory", 64, &[], "the same with 64 ranks") },
    Case {
        only_full: true,
        ..between(
            "hosts-memory128",
            "memory",
            128,
            &[],
            "the same with 128 ranks, on --hosts namespaces:8 16 each; `peer`: what each of the far ones adds",
        )
    },
    Case {
        between_hosts: true,
        only_full: true,
        ..timed("hosts-startup128", 128, 3, "hello world on 128 ranks from start to end; `init`: MPI_Init")
    },
];

/// The case that uses no MPI, and that only Tern's launcher starts.
pub const RAW: &str = "hosts-raw";

const fn between(
    name: &'static str,
    program: &'static str,
    ranks: u32,
    arguments: &'static [&'static str],
    about: &'static str,
) -> Case {
    Case { between_hosts: true, ..printed(name, program, ranks, arguments, about) }
}

/// Hundreds of points, asked for by name with `--quick`.
const fn suite(name: &'static str, about: &'static str) -> Case {
    suite_of(name, name, about)
}

const fn suite_of(name: &'static str, program: &'static str, about: &'static str) -> Case {
    Case { only_full: true, limit_s: 900, ..printed(name, program, 2, &[], about) }
}

const fn timed(name: &'static str, ranks: u32, runs: u32, about: &'static str) -> Case {
    let reading = Reading::Timed(runs);
    Case { reading, limit_s: 60, ..printed(name, "hello", ranks, &[], about) }
}

const fn printed(
    name: &'static str,
    program: &'static str,
    ranks: u32,
    arguments: &'static [&'static str],
    about: &'static str,
) -> Case {
    Case {
        name,
        program,
        ranks,
        arguments,
        reading: Reading::Printed,
        between_hosts: false,
        only_full: false,
        limit_s: 300,
        about,
    }
}

/// The cases to run, on one host or between several: all, or those whose names are in `only`.
pub fn select(only: &[String], quick: bool, between_hosts: bool) -> Result<Vec<Case>, String> {
    let here = || ALL.iter().filter(|case| case.between_hosts == between_hosts);
    for name in only {
        if !here().any(|case| case.name == name) {
            let known: Vec<&str> = here().map(|case| case.name).collect();
            let place = if between_hosts { "with --hosts" } else { "on one host (without --hosts)" };
            return Err(format!(
                "--only {name}: there is no such case {place}; there are {}",
                known.join(", ")
            ));
        }
    }
    let named = |case: &&Case| only.iter().any(|name| case.name == name);
    let wanted = |case: &&Case| if only.is_empty() { !(quick && case.only_full) } else { named(case) };
    Ok(here().filter(wanted).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_selectable() {
        for (i, case) in ALL.iter().enumerate() {
            assert!(ALL[..i].iter().all(|other| other.name != case.name), "{} twice", case.name);
            let selected = select(&[case.name.to_string()], true, case.between_hosts).unwrap();
            assert_eq!(selected.len(), 1);
        }
        assert!(select(&["no-such".to_string()], false, false).unwrap_err().contains("no-such"));
        assert!(select(&["latency".to_string()], false, true).unwrap_err().contains("hosts-latency"));
    }

    #[test]
    fn every_program_has_its_source() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
        for case in ALL {
            assert!(sources.join(case.program).with_extension("c").is_file(), "{}.c", case.program);
        }
    }
}
