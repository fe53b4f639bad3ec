//! Signals: what `mpiexec` and its ranks begin with, and what `mpiexec` passes on.
mod common;
use common::*;

/// A set of signals of a process, as /proc shows it; without those from 32 on, two of which the C library does not
/// let anybody touch.
fn shown(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap() & 0x7fff_ffff
}

fn bits(signals: &[i32]) -> u64 {
    signals.iter().map(|signal| 1 << (signal - 1)).sum()
}

#[test]
fn ranks_begin_with_default_signals() {
    const ODD: &[i32] =
        &[libc::SIGCHLD, libc::SIGUSR1, libc::SIGUSR2, libc::SIGPIPE, libc::SIGALRM, libc::SIGTSTP];
    let mut command = mpiexec("-n 1 cat /proc/self/status");
    let outcome = run(begin_with(&mut command, ODD, &[libc::SIGTERM, libc::SIGINT, libc::SIGCHLD]));
    assert_eq!((shown(&outcome.out, "SigIgn"), shown(&outcome.out, "SigBlk")), (0, 0), "{outcome:?}");
}

#[test]
fn what_the_user_ignores_stays_ignored() {
    const KEPT: &[i32] = &[libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];
    let mut command = mpiexec("-n 1 cat /proc/self/status");
    let outcome = run(begin_with(&mut command, KEPT, &[]));
    assert_eq!(shown(&outcome.out, "SigIgn"), bits(KEPT), "{outcome:?}");

    let scratch = Scratch::new("ignored");
    let script = format!(": > {}/$PMI_RANK; while [ ! -e {0}/go ]; do sleep 0.05; done", scratch.0.display());
    let child = start(begin_with(&mut mpiexec_sh("-n 2", &script), &[libc::SIGHUP, libc::SIGINT], &[]));
    wait_for("both ranks", || scratch.file("0").exists() && scratch.file("1").exists());
    // To the launcher and to the ranks, as a terminal does it.
    let ranks = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let ranks: Vec<u32> = ranks.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert!(ranks.len() >= 2, "{ranks:?}");
    for pid in ranks.into_iter().chain([child.id()]) {
        signal(pid, libc::SIGINT);
        signal(pid, libc::SIGHUP);
    }
    std::fs::write(scratch.file("go"), "").unwrap();
    let outcome = finish(child);
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
}

/// A parent that ignores SIGCHLD, as some shells and daemons do, hands that down; so it may a blocked one.
#[test]
fn the_end_of_ranks_is_seen_with_sigchld_ignored_or_blocked() {
    const CHILD: &[i32] = &[libc::SIGCHLD];
    for (ignored, blocked) in [(CHILD, &[][..]), (&[], CHILD), (CHILD, CHILD)] {
        let mut command = mpiexec_sh("-n 3 --timeout 60", "[ $PMI_RANK != 1 ] || exit 7; sleep 1000");
        let outcome = run(begin_with(&mut command, ignored, blocked));
        assert_eq!(outcome.code, 7, "{outcome:?}");
        let mut command = mpiexec("-n 2 true");
        assert_eq!(run(begin_with(&mut command, ignored, blocked)).code, 0);
    }
}

#[test]
fn signals_are_passed_on() {
    let scratch = Scratch::new("signals");
    let script = format!(
        "cd {}; trap 'echo usr2; : > u$PMI_RANK' USR2; trap 'echo term; exit 0' TERM; : > $PMI_RANK; while :; do sleep 0.05; done",
        scratch.0.display()
    );
    let child = start(&mut mpiexec_sh("-n 2", &script));
    wait_for("both ranks", || scratch.file("0").exists() && scratch.file("1").exists());
    signal(child.id(), libc::SIGUSR2);
    wait_for("both answers", || scratch.file("u0").exists() && scratch.file("u1").exists());
    signal(child.id(), libc::SIGTERM);
    let outcome = finish(child);
    assert_eq!(
        (outcome.out.matches("usr2").count(), outcome.out.matches("term").count()),
        (2, 2),
        "{outcome:?}"
    );
    assert_eq!(outcome.code, 0);
}

#[test]
fn an_interrupt_ends_the_job_quietly_and_a_second_one_by_force() {
    let scratch = Scratch::new("interrupt");
    let ready = |script: &str| {
        let script = format!("{script} : > {}/$PMI_RANK; while :; do sleep 0.05; done", scratch.0.display());
        let child = start(&mut mpiexec_sh("-n 2", &script));
        wait_for("both ranks", || scratch.file("0").exists() && scratch.file("1").exists());
        std::fs::remove_file(scratch.file("0")).unwrap();
        std::fs::remove_file(scratch.file("1")).unwrap();
        child
    };
    let child = ready("");
    signal(child.id(), libc::SIGINT);
    let outcome = finish(child);
    assert_eq!((outcome.code, outcome.err.as_str()), (128 + libc::SIGINT, ""));

    let child = ready(&format!("trap '' TERM; trap ': > {}/$PMI_RANK' INT;", scratch.0.display()));
    signal(child.id(), libc::SIGINT);
    wait_for("both traps", || scratch.file("0").exists() && scratch.file("1").exists());
    signal(child.id(), libc::SIGINT);
    let outcome = finish(child);
    assert_eq!(outcome.code, 128 + libc::SIGINT, "{outcome:?}");
    assert!(outcome.err.contains("interrupted twice"), "{outcome:?}");
}
