//! What `mpiexec --help` prints.
use super::options::{Effect, OPTIONS, Opt, dashed};

/// The text of `mpiexec --help`.
pub fn text() -> String {
    let mut out = String::from(
        "Usage: mpiexec [OPTIONS] PROGRAM [ARGUMENTS] [: [OPTIONS] PROGRAM [ARGUMENTS]]...\n\
         Starts an MPI program on this host, or on those of --hosts.\n\nOptions (one dash or two):\n",
    );
    let own = |option: &&Opt| matches!(option.effect, Effect::Does(_) | Effect::Help | Effect::Version);
    OPTIONS.iter().filter(own).for_each(|option| describe(option, &mut out));
    out.push_str("\nOptions of other launchers:\n");
    OPTIONS.iter().filter(|option| !own(option)).for_each(|option| describe(option, &mut out));
    out.push_str(
        "\nSIGUSR1 sent to mpiexec prints what every rank waits for. SIGINT, SIGTERM, SIGHUP, SIGQUIT,\n\
         SIGTSTP, SIGCONT and SIGUSR2 are passed on to the ranks; a second SIGINT kills them.\n\
         The exit code is that of the first rank that failed, or 128 and the signal that killed it.\n",
    );
    out
}

fn describe(option: &Opt, out: &mut String) {
    let names: Vec<String> = option.names.iter().map(|name| dashed(name)).collect();
    let head = format!("  {} {}", names.join(", "), option.values);
    out.push_str(head.trim_end());
    out.push_str(&format!("\n        {}\n", option.doc.replace('\n', "\n        ")));
}
