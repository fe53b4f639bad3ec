//! Options that other launchers have: what those that mean something on one host do.
mod common;
use common::*;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

#[test]
fn only_the_listed_variables_are_passed_on() {
    let variables = |arguments: &str| {
        let mut command = mpiexec(arguments);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        let outcome = run(command.env("A", "1").env("B", "2").env("PMI_X", "3").arg("env"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let names = outcome.out.lines().map(|line| line.split('=').next().unwrap().to_string());
        let own = |name: &String| {
            ["PMI_", "TERN_", "MPI_LOCAL"].iter().any(|begin| name.starts_with(begin)) && name != "PMI_X"
        };
        let mut names: Vec<String> = names.filter(|name| !own(name)).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(variables("-n 1"), "A B PATH");
    assert_eq!(variables("-genvlist B,NONE"), "B");
    assert_eq!(variables("-envlist A,B -env C 3"), "A B C");
    assert_eq!(variables("-genvnone -genv D=4"), "D");
    assert_eq!(variables("-genvnone -envall"), "A B PATH");
    assert_eq!(variables("-envnone -x A"), "A");
}

#[test]
fn what_is_written_to_files() {
    let scratch = Scratch::new("files");
    let script = "echo out $PMI_RANK; echo err $PMI_RANK >&2";
    let read = |name: &str| std::fs::read_to_string(scratch.file(name)).unwrap();
    let mut command = mpiexec("-n 2 -outfile-pattern");
    command.arg(scratch.file("sub/o.%r")).arg("-errfile-pattern").arg(scratch.file("all"));
    for _ in 0..2 {
        // The second job writes anew.
        let outcome = run(command.args(["sh", "-c", script]));
        assert_eq!((outcome.code, outcome.out.as_str(), outcome.err.as_str()), (0, "", ""));
        assert_eq!((read("sub/o.0"), read("sub/o.1")), ("out 0\n".into(), "out 1\n".into()));
        let mut lines: Vec<String> = read("all").lines().map(String::from).collect();
        lines.sort();
        assert_eq!(lines, ["err 0", "err 1"]);
    }
    let mut command = mpiexec("-n 2 --output-filename");
    assert_eq!(run(command.arg(&scratch.0).args(["sh", "-c", script])).code, 0);
    assert_eq!((read("1/rank.1/stdout"), read("1/rank.0/stderr")), ("out 1\n".into(), "err 0\n".into()));
    let outcome = run(&mut mpiexec("-outfile-pattern /dev/null/x hostname"));
    assert!(outcome.code == 1 && outcome.err.contains("'/dev/null/x'"), "{outcome:?}");
}

#[test]
fn errors_among_the_output() {
    let outcome = run(&mut mpiexec_sh("--merge-stderr-to-stdout -label", "echo a; echo b >&2; echo c"));
    assert_eq!((outcome.out.as_str(), outcome.err.as_str()), ("[0] a\n[0] b\n[0] c\n", ""));
}

#[test]
fn another_rank_or_none_reads_the_input() {
    for (who, expected) in [("-stdin 1", ["0 0", "1 5", "2 0"]), ("-s none", ["0 0", "1 0", "2 0"])] {
        let mut command = mpiexec_sh(&format!("-n 3 {who}"), "echo $PMI_RANK $(wc -c)");
        let mut child = start(command.stdin(Stdio::piped()));
        child.child().stdin.take().unwrap().write_all(b"input").unwrap();
        let outcome = finish(child);
        let mut lines: Vec<&str> = outcome.out.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, expected);
    }
}

#[test]
fn places_and_codes_are_told() {
    let outcome = run(&mut mpiexec_sh("--report-bindings -bind-to none -n 2 -print-all-exitcodes", "exit 0"));
    let cpus = std::fs::read_to_string("/proc/self/status").unwrap();
    let cpus = cpus.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_string();
    for rank in 0..2 {
        assert!(outcome.err.contains(&format!("mpiexec: rank {rank}: sh on CPUs {cpus}\n")), "{outcome:?}");
    }
    assert!(outcome.err.ends_with("mpiexec: exit codes: 0 of rank 0-1\n"), "{outcome:?}");
    let outcome = run(&mut mpiexec_sh("-n 2 -print-all-exitcodes", "sleep $PMI_RANK; exit $PMI_RANK"));
    assert_eq!(outcome.code, 1);
    assert!(outcome.err.contains("exit codes: 0 of rank 0; 1 of rank 1\n"), "{outcome:?}");
}

#[test]
fn programs_from_a_file_on_hosts_from_a_file() {
    let scratch = Scratch::new("config");
    std::fs::write(scratch.file("hosts"), "# all of them\nlocalhost slots=2\n\nlocalhost:1 # more\n")
        .unwrap();
    let hosts = scratch.file("hosts").display().to_string();
    std::fs::write(
        scratch.file("config"),
        format!("-f {hosts} sh -c 'echo a $PMI_RANK' # three\n-n 1 echo \"b c\"\n"),
    )
    .unwrap();
    let mut command = mpiexec("-configfile");
    let outcome = run(command.arg(scratch.file("config")));
    let mut lines: Vec<&str> = outcome.out.lines().collect();
    lines.sort_unstable();
    assert_eq!((lines.as_slice(), outcome.code), (&["a 0", "a 1", "a 2", "b c"][..], 0));
    std::fs::write(scratch.file("hosts"), "localhost\nnode17.invalid\n").unwrap();
    let outcome = run(mpiexec("--hostfile").arg(scratch.file("hosts")).arg("hostname"));
    assert!(outcome.code == 1 && outcome.err.contains("host node17.invalid: the name cannot"));
}

/// A file of hosts that cannot be read, or makes no sense: mpiexec names it, with the line, and starts nothing.
#[test]
fn files_of_hosts_that_are_none_are_named() {
    let scratch = Scratch::new("no-hosts");
    let long = vec![b';'; (1 << 20) + 1];
    let cases: [(&str, Option<&[u8]>, &str); 11] = [
        ("missing", None, "No such file or directory"),
        ("empty", Some(b""), "there is no host in"),
        ("comments", Some(b"# localhost\n\n"), "there is no host in"),
        ("binary", Some(b"\x7fELF\x02\x01\x01\0\xff\xfe"), "it is no text"),
        ("zeros", Some(b"localhost\n\0\x1b[2J\n"), "'\\0\\u{1b}[2J' is no HOST"),
        ("one line", Some(&long[..1 << 20]), "line 1 of"),
        ("long", Some(&long), "it is longer than 1048576 bytes"),
        ("words", Some(b"# hosts\nlocalhost\n\nlocalhost 4\n"), "line 4 of"),
        ("slots", Some(b"localhost slots=many # all\n"), "line 1 of"),
        ("option", Some(b"localhost:2\n-oProxyCommand=x\n"), "line 2 of"),
        ("full", Some(b"localhost slots=0\n"), "no host takes a rank"),
    ];
    for (name, bytes, says) in cases {
        if let Some(bytes) = bytes {
            std::fs::write(scratch.file(name), bytes).unwrap();
        }
        refuses(&scratch.file(name), says);
    }
    refuses(&scratch.0, "Is a directory");
    let closed = scratch.file("empty");
    std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    // Permissions do not hold for root.
    if std::fs::File::open(&closed).is_err() {
        refuses(&closed, "Permission denied");
    }
}

/// An error of one line that names the file, at once.
fn refuses(file: &Path, says: &str) {
    for option in ["--hostfile", "-f", "-machinefile"] {
        let outcome = run(mpiexec(option).arg(file).args(["-n", "2", "echo", "started"]));
        assert_eq!((outcome.code, outcome.out.as_str()), (1, ""), "{outcome:?}");
        let named = outcome.err.contains(&format!("'{}'", file.display()));
        assert!(named && outcome.err.contains(option) && outcome.err.contains(says), "{says}: {outcome:?}");
        assert!(outcome.err.lines().count() == 1 && outcome.err.len() < 500, "{outcome:?}");
    }
}

#[test]
fn a_program_is_looked_for_where_the_user_says() {
    let scratch = Scratch::new("path");
    let program = scratch.file("only-here");
    std::fs::write(&program, "#!/bin/sh\necho found\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let outcome = run(mpiexec("-n 1 -path").arg(&scratch.0).arg("only-here"));
    assert_eq!(outcome.out, "found\n", "{outcome:?}");
    // What the ranks get of PATH does not matter.
    let mut command = mpiexec("-genvnone only-here");
    assert_eq!(run(command.env("PATH", format!("{}:/bin:/usr/bin", scratch.0.display()))).out, "found\n");
    let outcome = run(mpiexec("-path").arg(&scratch.0).arg("hostname"));
    assert!(outcome.code == 127 && outcome.err.contains("-path"), "{outcome:?}");
}

#[test]
fn too_many_ranks_are_refused_if_the_user_wants_that() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let outcome = run(&mut mpiexec(&format!("--nooversubscribe -n {} true", cpus + 1)));
    assert!(outcome.code == 1 && outcome.err.contains("--nooversubscribe"), "{outcome:?}");
    assert_eq!(run(&mut mpiexec(&format!("--nooversubscribe -n {cpus} true"))).code, 0);
}

#[test]
fn parameters_of_open_mpi_are_left_out_and_that_is_said_once() {
    let outcome = run(&mut mpiexec("--mca btl self,vader --mca pml ob1 -n 1 echo done"));
    assert_eq!((outcome.code, outcome.out.as_str()), (0, "done\n"));
    assert_eq!(outcome.err.matches("option --mca: left out").count(), 1, "{outcome:?}");
}

/// What other launchers have and Tern has not is answered in a line, by what to do.
#[test]
fn what_is_not_there_has_an_answer() {
    let cases = [
        ("--bind-to-core", "--bind-to core"),
        ("-npersocket 1", "--map-by socket"),
        ("--map-by socket:PE=2", "share the CPUs evenly"),
        ("-nolocal", "leave this host out"),
        ("--launch-agent x", "--launcher-path"),
        ("-ordered-output", "sort"),
        ("-membind x", "numactl"),
        ("-profile", "TERN_EXPLAIN"),
        ("--rank-by socket", "'--map-by socket' numbers"),
        ("--rank-by numa", "NUMA nodes"),
        ("--rank-by span", ":cyclic"),
        ("--rank-by board", "takes slot, core, hwthread, fill or node; 'board'"),
        ("--rank-by core --map-by numa", "--rank-by slot"),
        ("--stream-buffering 0", "stdbuf -o0"),
        ("--stream-buffering=1", "stdbuf -oL"),
    ];
    for (option, says) in cases {
        let outcome = run(&mut mpiexec(&format!("{option} -n 1 true")));
        assert!(outcome.code == 1 && outcome.err.contains(says), "{option}: {outcome:?}");
        assert_eq!(outcome.err.lines().count(), 1, "{option}: {outcome:?}");
    }
    for option in [
        "-topolib hwloc",
        "--silent",
        "--display-allocation",
        "--personality ompi",
        "--rank-by slot",
        "--stream-buffering 2",
    ] {
        assert_eq!(run(&mut mpiexec(&format!("{option} -n 1 true"))).code, 0, "{option}");
    }
}
