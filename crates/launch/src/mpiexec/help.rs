//! The options, declared once for `--help`, for the search of the nearest name, and for the test
//! that compares the manual page.

/// One option.
pub struct Opt {
    /// Its names without dashes.
    pub names: &'static [&'static str],
    /// What follows it.
    pub values: &'static str,
    /// What it does.
    pub doc: &'static str,
}

const fn opt(names: &'static [&'static str], values: &'static str, doc: &'static str) -> Opt {
    Opt { names, values, doc }
}

/// All options.
pub const OPTIONS: &[Opt] = &[
    opt(&["n", "np", "c"], "RANKS", "number of ranks that run the program (default 1)"),
    opt(&["env"], "NAME VALUE", "set a variable for the ranks of this program"),
    opt(&["genv"], "NAME VALUE", "set a variable for all ranks"),
    opt(&["x"], "NAME[=VALUE]", "the same in Open MPI's notation"),
    opt(&["wdir", "wd"], "DIR", "working directory of the ranks of this program"),
    opt(
        &["bind", "bind-to"],
        "none|core|auto",
        "tie ranks to cores (default auto: share the cores evenly,\nunless there are more ranks than CPUs)",
    ),
    opt(&["label", "l", "prepend-rank", "tag-output"], "", "begin every line of output with [rank]"),
    opt(&["timeout"], "SECONDS", "end the job after this time, say who waits for whom, exit with 124"),
    opt(&["host", "hosts", "H"], "HOST", "accepted for this host only"),
    opt(&["f", "hostfile", "machinefile"], "FILE", "refused: this mpiexec serves one host"),
    opt(
        &["oversubscribe", "allow-run-as-root", "envall", "genvall"],
        "",
        "accepted, nothing to do: always so",
    ),
    opt(&["h", "help"], "", "show this text"),
    opt(&["V", "version", "info"], "", "show the version"),
];

/// What `mpiexec --help` prints.
pub fn text() -> String {
    let mut out = String::from(
        "Usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM [ARGUMENTS]]...\n\
         Starts an MPI program on this host.\n\nOptions (one dash or two):\n",
    );
    for option in OPTIONS {
        let names: Vec<String> = option.names.iter().map(|name| dashed(name)).collect();
        out.push_str(&format!("  {} {}\n", names.join(", "), option.values).replace(" \n", "\n"));
        out.push_str(&format!("        {}\n", option.doc.replace('\n', "\n        ")));
    }
    out.push_str(
        "\nSIGUSR1 sent to mpiexec prints what every rank waits for. SIGINT, SIGTERM, SIGHUP, SIGQUIT,\n\
         SIGTSTP, SIGCONT and SIGUSR2 are passed on to the ranks; a second SIGINT kills them.\n\
         The exit code is that of the first rank that failed, or 128 and the signal that killed it.\n",
    );
    out
}

/// An option as it is usually written.
pub fn dashed(name: &str) -> String {
    format!("{}{name}", if name.len() > 2 { "--" } else { "-" })
}
