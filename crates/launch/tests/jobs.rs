//! `mpiexec` with programs that are no MPI programs: what it starts, passes on, ends and says.
mod common;
use common::*;
use std::io::Write;
use std::process::Stdio;

#[test]
fn ranks_know_who_they_are() {
    let outcome = run(&mut mpiexec_sh("-n 3", "echo $PMI_RANK/$PMI_SIZE $MPI_LOCALRANKID ${#TERN_JOB}"));
    let mut lines: Vec<&str> = outcome.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0/3 0 36", "1/3 1 36", "2/3 2 36"]);
    assert_eq!(outcome.code, 0);
}

#[test]
fn three_times_more_ranks_than_cores() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let outcome = run(&mut mpiexec(&format!("-n {} hostname", 3 * cores)));
    assert_eq!((outcome.code, outcome.out.lines().count()), (0, 3 * cores));
}

#[test]
fn several_programs_with_their_own_environment() {
    let mut command = mpiexec("-genv ALL 1 -n 1 -env A one sh -c");
    command.args([
        "echo $PMI_RANK $ALL $A $B",
        ":",
        "-n",
        "2",
        "-x",
        "B=two",
        "sh",
        "-c",
        "echo $PMI_RANK $ALL $A $B",
    ]);
    let outcome = run(&mut command);
    let mut lines: Vec<&str> = outcome.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 1 one", "1 1 two", "2 1 two"]);
}

#[test]
fn outer_launchers_are_forgotten() {
    let mut command = mpiexec_sh("-n 1", "echo $PMI_PORT$PMIX_RANK.$PMI_SIZE");
    let outcome = run(command.env("PMI_PORT", "host:1").env("PMIX_RANK", "5").env("PMI_SIZE", "77"));
    assert_eq!(outcome.out, ".1\n");
}

#[test]
fn working_directory() {
    let scratch = Scratch::new("wdir");
    let mut command = mpiexec("-n 1 -wdir");
    let outcome = run(command.arg(&scratch.0).arg("pwd"));
    assert_eq!(outcome.out.trim(), scratch.0.canonicalize().unwrap().to_str().unwrap());
    let outcome = run(&mut mpiexec("-wdir /does/not/exist hostname"));
    assert!(outcome.code == 1 && outcome.err.contains("/does/not/exist"), "{outcome:?}");
}

#[test]
fn labels_and_whole_lines() {
    let outcome = run(&mut mpiexec_sh(
        "-n 3 --label",
        "i=0; while [ $i -lt 300 ]; do printf ab; printf 'cd\\n'; i=$((i+1)); done; printf end",
    ));
    assert_eq!(outcome.out.matches("abcd\n").count(), 900);
    for rank in 0..3 {
        assert_eq!(outcome.out.matches(&format!("[{rank}] abcd\n")).count(), 300);
        assert!(outcome.out.contains(&format!("[{rank}] end")));
    }
}

#[test]
fn much_output_arrives_complete() {
    let script = "head -c 20000000 /dev/zero | tr '\\0' x | fold -w 999; echo";
    let outcome = run(&mut mpiexec_sh("-n 2", script));
    assert_eq!(outcome.code, 0);
    assert_eq!(outcome.out.bytes().filter(|b| *b == b'x').count(), 40_000_000);
    assert!(outcome.out.lines().all(|line| line.len() <= 999 && line.bytes().all(|b| b == b'x')));
}

#[test]
fn a_reader_that_leaves_ends_the_job() {
    let mut child = start(&mut mpiexec_sh("-n 2", "yes"));
    drop(child.child().stdout.take());
    let outcome = finish(child);
    assert_eq!(outcome.code, 128 + libc::SIGPIPE, "{outcome:?}");
}

#[test]
fn input_goes_to_rank_0() {
    let mut command = mpiexec_sh("-n 3", "echo $PMI_RANK $(wc -c)");
    let mut child = start(command.stdin(Stdio::piped()));
    child.child().stdin.take().unwrap().write_all(&[b'x'; 200_000]).unwrap();
    let outcome = finish(child);
    let mut lines: Vec<&str> = outcome.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 200000", "1 0", "2 0"]);
}

#[test]
fn input_that_no_rank_reads_is_left_for_others() {
    let mut command = shell("\"$0\" -n 2 true; cat");
    let mut child = start(command.arg(env!("CARGO_BIN_EXE_mpiexec")).stdin(Stdio::piped()));
    child.child().stdin.take().unwrap().write_all(b"for cat").unwrap();
    assert_eq!(finish(child).out, "for cat");
}

#[test]
fn exit_codes_and_who_failed() {
    let outcome = run(&mut mpiexec_sh("-n 3", "[ $PMI_RANK != 1 ] || exit 7; sleep 1000"));
    assert_eq!(outcome.code, 7);
    assert_eq!(outcome.err.lines().count(), 1, "{outcome:?}");
    assert!(outcome.err.contains("rank 1 (sh, process ") && outcome.err.contains("exited with code 7"));
}

#[test]
fn a_killed_rank_ends_the_others() {
    let outcome = run(&mut mpiexec_sh("-n 3", "[ $PMI_RANK != 2 ] || kill -KILL $$; sleep 1000"));
    assert_eq!(outcome.code, 128 + libc::SIGKILL);
    let line = "was killed by signal 9 (SIGKILL); ending the job";
    assert!(outcome.err.contains("rank 2") && outcome.err.contains(line), "{outcome:?}");
}

#[test]
fn ranks_that_ignore_sigterm_are_killed() {
    let outcome =
        run(&mut mpiexec_sh("-n 2", "trap '' TERM; [ $PMI_RANK = 0 ] || exit 3; while :; do sleep 1; done"));
    assert_eq!(outcome.code, 3);
}

#[test]
fn commands_that_cannot_be_started() {
    let scratch = Scratch::new("commands");
    let file = scratch.file("data");
    std::fs::write(&file, "no program").unwrap();
    let script = scratch.file("script");
    std::fs::write(&script, "#!/does/not/exist\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let rubbish = executable(&scratch, "rubbish", &[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0]);
    let cases = [
        ("no-such-command-here".to_string(), 127, "PATH"),
        ("/no/such/file".to_string(), 127, "/no/such/file"),
        (file.display().to_string(), 126, "not executable"),
        (scratch.0.display().to_string(), 126, "directory"),
        (script.display().to_string(), 127, "interpreter"),
        (rubbish.clone(), 126, "a damaged program"),
    ];
    for (program, code, named) in cases {
        let outcome = run(&mut mpiexec(&format!("-n 2 hostname : -n 2 {program}")));
        assert_eq!(outcome.code, code, "{outcome:?}");
        assert!(outcome.err.contains(named) && outcome.err.contains(&program), "{outcome:?}");
    }
    assert!(run(&mut mpiexec("-n 1 -wdir /no/such true")).err.contains("option -wdir"));
    assert!(run(&mut mpiexec("-n 1 -path /no/such true")).err.contains("-path, '/no/such'"));
}

/// A script that does not name a shell is one all the same (POSIX: execvp), with its own name, arguments and variables.
#[test]
fn scripts_without_a_first_line_are_run_by_a_shell() {
    let scratch = Scratch::new("plain-script");
    let script = executable(&scratch, "script", b"echo \"$PMI_RANK $1 $X\"\n");
    let outcome = run(&mut mpiexec(&format!("-n 1 -env X=y {script} word")));
    assert!(outcome.code == 0 && outcome.out == "0 word y\n", "{outcome:?}");
}

fn executable(scratch: &Scratch, name: &str, bytes: &[u8]) -> String {
    let path = scratch.file(name);
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn options_that_are_wrong() {
    let outcome = run(&mut mpiexec("--lable -n 2 hostname"));
    assert!(outcome.code == 1 && outcome.err.contains("--label") && outcome.out.is_empty(), "{outcome:?}");
    let outcome = run(&mut mpiexec("--help"));
    assert!(outcome.code == 0 && outcome.out.contains("--timeout"));
    assert!(run(&mut mpiexec("--version")).out.contains(env!("CARGO_PKG_VERSION")));
    // A reader that has left is no reason for a panic.
    let mut child = start(&mut mpiexec("--help"));
    drop(child.child().stdout.take());
    let code = finish(child).code;
    assert!(code == 0 || code == 1, "{code}");
}

#[test]
fn too_few_open_files_is_an_error_with_a_remedy() {
    let outcome = run(shell("ulimit -n 64; exec \"$0\" -n 100 true").arg(env!("CARGO_BIN_EXE_mpiexec")));
    assert!(outcome.code == 1 && outcome.err.contains("ulimit"), "{outcome:?}");
    // A soft limit is raised for the launcher and left alone for the ranks.
    let script = "ulimit -Sn 64; exec \"$0\" -n 40 sh -c 'ulimit -n'";
    let outcome = run(shell(script).arg(env!("CARGO_BIN_EXE_mpiexec")));
    assert_eq!(outcome.out, "64\n".repeat(40), "{outcome:?}");
}

fn shell(script: &str) -> std::process::Command {
    let mut shell = plain("sh");
    shell.args(["-c", script]);
    shell
}

#[test]
fn binding() {
    let cpus = |arguments: &str| {
        let outcome = run(&mut mpiexec_sh(arguments, "grep Cpus_allowed_list /proc/self/status"));
        let mut lines: Vec<String> =
            outcome.out.lines().map(|l| l.split(':').nth(1).unwrap().trim().into()).collect();
        lines.sort();
        lines
    };
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = own.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_string();
    assert_eq!(cpus("-n 2 --bind none"), [own.clone(), own.clone()]);
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!(cpus(&format!("-n {}", 2 * cores)).iter().all(|list| *list == own));
    if cores > 1 {
        let two = cpus("-n 2 --bind core");
        assert!(two[0] != two[1] && two.iter().all(|list| *list != own), "{two:?}");
    }
}

#[test]
fn nothing_is_left_behind() {
    // An argument that no other process has marks the sleepers of this test.
    let mark = format!("{}.25", 100_000 + std::process::id());
    let script = format!("sleep {mark} & setsid sleep {mark} & sleep 0.1");
    let outcome = run(&mut mpiexec_sh("-n 2", &script));
    assert_eq!(outcome.code, 0);
    assert_eq!(processes(&format!("sleep {mark}")), Vec::<String>::new());
}

#[test]
fn nothing_is_left_behind_when_the_launcher_is_killed() {
    let mark = format!("{}.5", 200_000 + std::process::id());
    let script = format!("sleep {mark} & setsid sleep {mark} & wait");
    let child = start(&mut mpiexec_sh("-n 2", &script));
    let sleepers = || processes(&format!("sleep {mark}")).iter().filter(|l| !l.contains("-c")).count();
    wait_for("four sleepers", || sleepers() == 4);
    signal(child.id(), libc::SIGKILL);
    wait_for("no sleepers", || sleepers() == 0);
    finish(child);
}

#[test]
fn time_that_is_over() {
    let outcome = run(&mut mpiexec_sh("-n 2 --timeout 0.3", "sleep 1000"));
    assert_eq!(outcome.code, 124);
    assert!(outcome.err.contains("0.3 s (--timeout)"), "{outcome:?}");
    assert!(outcome.err.contains("rank 1 is before MPI_Init or after MPI_Finalize: process"), "{outcome:?}");
    assert_eq!(run(&mut mpiexec("-n 2 --timeout 100 true")).code, 0);
}
