//! `mpiexec` with programs that speak PMI-1 and use the control channel. The ignored tests are
//! those programs: this binary starts itself as a rank.
mod common;
#[path = "../../../tests/require.rs"]
mod require;
use common::*;
use launch::control::{self, Control};
use launch::pmi::client::Client;
use launch::report::{OpType, Pending};
use std::io::Write;
use std::os::fd::FromRawFd;
use std::process::Command;

fn client() -> Client {
    Client::from_env().unwrap().expect("a launcher")
}

/// Bytes of every kind, longer than any value that PMI-1 stores.
fn card(rank: usize) -> Vec<u8> {
    (0..3000).map(|i| (i * 7 + rank) as u8).collect()
}

/// A line of standard error by one write: launchers of others hand parts of lines on as they come, among those of other ranks.
fn say(line: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
}

#[test]
#[ignore = "a rank, started by other tests"]
fn role_ring() {
    let mut client = client();
    let (rank, size) = (client.rank(), client.size());
    client.put(&format!("card of {rank}"), &card(rank)).unwrap();
    client.barrier().unwrap();
    let next = (rank + 1) % size;
    assert_eq!(client.get(&format!("card of {next}")).unwrap(), card(next));
    let error = client.get("nobody's").unwrap_err();
    assert!(error.contains("PMI get") && error.contains("rc="), "{error}");
    assert!(client.universe().unwrap().is_none_or(|n| n >= size));
    let appnum = client.appnum().unwrap();
    client.barrier().unwrap();
    client.finalize().unwrap();
    say(&format!("rank {rank} of {size}, program {appnum}: good\n"));
}

#[test]
#[ignore = "a rank, started by other tests"]
fn role_alone() {
    match Client::from_env() {
        Ok(None) => eprintln!("alone"),
        Ok(Some(_)) => eprintln!("launched"),
        Err(error) => eprintln!("error: {error}"),
    }
}

#[test]
#[ignore = "a rank, started by other tests"]
fn role_abort() {
    let mut client = client();
    client.barrier().unwrap();
    if client.rank() == 1 {
        client.ender().end(42).unwrap();
    }
    let _ = client.barrier();
    std::process::exit(1);
}

#[test]
#[ignore = "a rank, started by other tests"]
fn role_leaves() {
    let mut client = client();
    if client.rank() == 1 {
        std::process::exit(0);
    }
    let _ = client.barrier();
    std::process::exit(9);
}

#[test]
#[ignore = "a rank, started by other tests"]
fn role_late_failure() {
    let client = client();
    let rank = client.rank();
    client.finalize().unwrap();
    if rank == 1 {
        std::process::exit(5);
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    eprintln!("rank {rank} went on");
}

#[test]
#[ignore = "a rank, started by other tests"]
fn role_corrupt() {
    let rank: u32 = std::env::var("PMI_RANK").unwrap().parse().unwrap();
    if rank == 2 {
        let fd = std::env::var("CORRUPT_FD").unwrap();
        let fd: i32 = std::env::var(fd).unwrap().parse().unwrap();
        // SAFETY: the launcher opened the descriptor for this process; nothing else here uses it.
        let mut channel = unsafe { std::fs::File::from_raw_fd(fd) };
        channel.write_all(std::env::var("CORRUPT_LINE").unwrap().as_bytes()).unwrap();
        channel.write_all(b"\n").unwrap();
        std::mem::forget(channel);
    }
    std::thread::sleep(std::time::Duration::from_secs(1000));
}

#[test]
#[ignore = "a rank, started by other tests"]
fn role_fatal() {
    let _client = client();
    let control = Control::from_env().unwrap().unwrap();
    assert!(control.fatal(15, "MPI_Recv: the message is longer\nthan the buffer"));
    std::thread::sleep(std::time::Duration::from_secs(1000));
}

/// Ranks 0 and 1 wait for each other, rank 2 is in MPI with nothing to do, rank 3 gets on, rank 4 computes.
#[test]
#[ignore = "a rank, started by other tests"]
fn role_deadlock() {
    let mut client = client();
    let rank = client.rank();
    let control = Control::from_env().unwrap().unwrap();
    assert!(control.install());
    client.barrier().unwrap();
    eprintln!("rank {rank} is ready");
    let wait = Pending {
        rank,
        operation: "MPI_Recv".into(),
        kind: OpType::Recv,
        blocking: true,
        peer: Some(1 - rank.min(1)),
        world_peer: Some(1 - rank.min(1)),
        tag: Some(7),
        communicator: "MPI_COMM_WORLD".into(),
        context: 0,
        run: None,
        members: None,
        bytes: 8,
        since_ms: 1500,
        address: None,
    };
    let mut moves = 0;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(5));
        let Some(question) = control::asked().filter(|question| control::take(*question)) else { continue };
        moves += 1;
        match rank {
            0 | 1 => assert!(control.report(question, std::slice::from_ref(&wait), &[], 7)),
            2 => assert!(control.report(question, &[], &[], 0)),
            3 => assert!(control.report(question, &[], &[], moves)),
            _ => {}
        }
    }
}

#[test]
fn ranks_exchange_cards() {
    for place in PLACES {
        let outcome = run(with_role(&mut mpiexec_at(place, "-n 5"), "role_ring"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        for rank in 0..5 {
            assert!(outcome.err.contains(&format!("rank {rank} of 5, program 0: good")), "{outcome:?}");
        }
    }
}

/// Every rank of a job knows the same secret, which is in no environment.
#[test]
#[ignore = "a rank, started by other tests"]
fn role_secret() {
    let mut client = client();
    let control = Control::from_env().unwrap();
    assert_eq!(control.is_some(), std::env::var_os("TERN_JOB").is_some());
    client.offer_secret().unwrap();
    client.barrier().unwrap();
    let secret = client.secret().unwrap();
    let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(std::env::vars().all(|(_, value)| !value.contains(&digits)));
    client.put(&format!("secret {}", client.rank()), &secret).unwrap();
    client.barrier().unwrap();
    for rank in 0..client.size() {
        assert_eq!(client.get(&format!("secret {rank}")).unwrap(), secret);
    }
    client.finalize().unwrap();
    say(&format!("the secret is {digits}, good\n"));
}

#[test]
fn ranks_share_a_secret() {
    let secret = |command: &mut Command| {
        let outcome = run(with_role(command, "role_secret"));
        assert_eq!((outcome.code, outcome.err.matches(", good").count()), (0, 4), "{outcome:?}");
        outcome.err.split_once("the secret is ").unwrap().1[..32].to_string()
    };
    let secrets = PLACES.map(|place| secret(&mut mpiexec_at(place, "-n 4")));
    assert!(secrets[0] != secrets[1] && secrets.iter().all(|s| s != &"0".repeat(32)), "{secrets:?}");
    // A launcher of others has none: rank 0 makes one.
    if let Ok(hydra) = std::env::var("LAUNCH_TEST_HYDRA") {
        secret(Command::new(&hydra).args(["-n", "4"]));
    }
}

#[test]
fn programs_are_numbered_and_a_shell_may_run_one_after_the_other() {
    let mut command = mpiexec("-n 1");
    with_role(&mut command, "role_ring").args([":", "-n", "2", "sh", "-c", "\"$0\" \"$@\" && \"$0\" \"$@\""]);
    let outcome = run(with_role(&mut command, "role_ring"));
    assert!(outcome.err.contains("rank 2 of 3, program 1: good"), "{outcome:?}");
    // Rank 0 has no second program, so the second round of the others misses it.
    assert!(outcome.code == 1 && outcome.err.contains("while others wait for it"), "{outcome:?}");
    let mut command = mpiexec("-n 3 sh -c");
    command.arg("\"$0\" \"$@\" && \"$0\" \"$@\"");
    let outcome = run(with_role(&mut command, "role_ring"));
    assert_eq!((outcome.code, outcome.err.matches("good").count()), (0, 6), "{outcome:?}");
}

/// Hydra comes with MPICH (`pip install mpich`); CI sets the variable.
#[test]
fn hydra_starts_the_client() {
    let Ok(hydra) = std::env::var("LAUNCH_TEST_HYDRA") else {
        return require::missing("hydra", &"LAUNCH_TEST_HYDRA does not name its mpiexec");
    };
    for options in [&["-n", "4"][..], &["-pmi-port", "-n", "4"][..]] {
        let outcome = run(with_role(Command::new(&hydra).args(options), "role_ring"));
        assert_eq!(
            (outcome.code, outcome.err.matches("of 4, program 0: good").count()),
            (0, 4),
            "{outcome:?}"
        );
    }
    let outcome = run(with_role(Command::new(&hydra).args(["-n", "3"]), "role_abort"));
    assert_eq!(outcome.code, 42, "{outcome:?}");
}

#[test]
fn without_a_launcher_a_process_is_alone_and_with_half_of_one_it_is_an_error() {
    let alone = |variables: &[(&str, &str)]| {
        let mut command = Command::new("env");
        for name in ["PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_PORT", "PMI_ID"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        run(with_role(&mut command, "role_alone")).err
    };
    assert!(alone(&[]).contains("alone"));
    for (variables, named) in [
        (&[("PMI_RANK", "1")][..], "PMI_RANK is set but"),
        (&[("PMI_FD", "98"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")], "PMI_FD=98 is not an open descriptor"),
        (&[("PMI_PORT", "127.0.0.1:1"), ("PMI_ID", "0")], "PMI_PORT=127.0.0.1:1"),
        (&[("PMIX_RANK", "0")], "PMIX_RANK"),
        (&[("OMPI_COMM_WORLD_SIZE", "2")], "Open MPI"),
    ] {
        let error = alone(variables);
        assert!(error.contains("error: ") && error.contains(named), "{error}");
    }
}

#[test]
fn abort_ends_the_job_with_its_code() {
    for place in PLACES {
        let outcome = run(with_role(&mut mpiexec_at(place, "-n 3"), "role_abort"));
        assert_eq!(outcome.code, 42, "{outcome:?}");
        assert!(
            outcome.err.contains("rank 1") && outcome.err.contains("called MPI_Abort with code 42"),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_rank_that_leaves_without_finalize_is_missed() {
    for place in PLACES {
        let outcome = run(with_role(&mut mpiexec_at(place, "-n 2"), "role_leaves"));
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert!(outcome.err.contains("exited with code 0 without MPI_Finalize"), "{outcome:?}");
    }
    let outcome = run(with_role(mpiexec("-n 1 true : -n 1").arg("env"), "role_leaves"));
    assert_eq!(outcome.code, 0, "rank 1 left by itself, nobody misses it: {outcome:?}");
    let outcome = run(with_role(mpiexec("-n 1 true : -n 2").arg("env"), "role_ring"));
    assert!(outcome.code == 1 && outcome.err.contains("without MPI_Init"), "{outcome:?}");
}

#[test]
fn a_failure_after_finalize_leaves_the_others_alone() {
    for place in PLACES {
        let outcome = run(with_role(&mut mpiexec_at(place, "-n 2"), "role_late_failure"));
        assert_eq!(outcome.code, 5, "{outcome:?}");
        assert!(outcome.err.contains("rank 0 went on"), "{outcome:?}");
    }
}

#[test]
fn corrupt_lines_name_the_rank_and_end_the_job() {
    let long = "x".repeat(70_000);
    for (fd, line, named) in [
        ("PMI_FD", "hello", "'hello'"),
        ("PMI_FD", "cmd=get_maxes", "out of order"),
        ("PMI_FD", "cmd=init pmi_version=x", "not a number"),
        ("PMI_FD", &long, "longer than"),
        ("TERN_CONTROL_FD", "pending rank=x", "rank"),
        ("TERN_CONTROL_FD", &long, "longer than"),
    ] {
        for place in PLACES {
            let mut command = mpiexec_at(place, "-n 3");
            command.env("CORRUPT_FD", fd).env("CORRUPT_LINE", line);
            let outcome = run(with_role(&mut command, "role_corrupt"));
            assert_eq!(outcome.code, 1, "{outcome:?}");
            assert!(outcome.err.contains("rank 2") && outcome.err.contains("malformed line"), "{outcome:?}");
            assert!(outcome.err.contains(named), "{named}: {outcome:?}");
        }
    }
}

#[test]
fn a_fatal_error_is_printed_once() {
    for place in PLACES {
        let outcome = run(with_role(&mut mpiexec_at(place, "-n 4"), "role_fatal"));
        assert_eq!(outcome.code, 15, "{outcome:?}");
        assert_eq!(outcome.err.matches("the message is longer\nthan the buffer").count(), 1, "{outcome:?}");
    }
}

const CYCLE: &str = "cycle: rank 0 → rank 1 → rank 0: both wait in MPI_Recv";

#[test]
fn a_deadlock_is_named_when_the_time_is_over() {
    // Ranks 0 and 1, which wait for each other, are on one host and on two.
    for arguments in ["-n 5", &format!("{} -rr -n 5", PLACES[1])] {
        deadlock(&run(with_role(&mut mpiexec(&format!("{arguments} --timeout 2")), "role_deadlock")));
    }
}

fn deadlock(outcome: &Outcome) {
    assert_eq!(outcome.code, 124, "{outcome:?}");
    for line in [
        "rank 0 waits in MPI_Recv(source=1, tag=7, comm=MPI_COMM_WORLD, 8 bytes) since 1.5 s; rank 1 has no matching",
        "rank 2 is inside MPI with nothing pending",
        "rank 3 is moving",
        "rank 4 is not waiting in MPI (it computes, or is stopped): process ",
        CYCLE,
    ] {
        assert!(outcome.err.contains(line), "{line}: {outcome:?}");
    }
}

#[test]
fn a_report_on_request_lets_the_job_go_on() {
    let scratch = Scratch::new("report");
    let errors = scratch.file("errors");
    let mut command = mpiexec("-n 3");
    command.stdout(std::process::Stdio::null()).stderr(std::fs::File::create(&errors).unwrap());
    let child = spawn(with_role(&mut command, "role_deadlock"));
    let told = |text: &str| std::fs::read_to_string(&errors).unwrap().matches(text).count();
    wait_for("all ranks", || told("is ready") == 3);
    for round in 1..=2 {
        signal(child.id(), libc::SIGUSR1);
        wait_for("a report", || told(CYCLE) == round);
    }
    signal(child.id(), libc::SIGTERM);
    assert_eq!(finish(child).code, 128 + libc::SIGTERM);
}

/// Leaves a file as a rank does that is killed between creating and unlinking its segment.
#[test]
#[ignore = "a rank, started by other tests"]
fn role_segment() {
    let mut client = client();
    let prefix = launch::report::segment_prefix(&client.name().unwrap());
    let directory = std::path::PathBuf::from(std::env::var("TERN_SHM_DIR").unwrap());
    let file = directory.join(format!("{prefix}1"));
    std::fs::write(&file, "segment").unwrap();
    std::fs::write(directory.join("created"), file.to_str().unwrap()).unwrap();
    client.barrier().unwrap();
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

#[test]
fn shared_memory_of_killed_processes_is_removed() {
    for victim in ["rank", "launcher"] {
        let scratch = Scratch::new(victim);
        let mut command = mpiexec("-n 1");
        command.env("TERN_SHM_DIR", &scratch.0);
        let running = start(with_role(&mut command, "role_segment"));
        wait_for("a segment", || scratch.file("created").exists());
        std::fs::write(scratch.file("tern-other"), "of another job").unwrap();
        let children = format!("/proc/{0}/task/{0}/children", running.id());
        match victim {
            "rank" => {
                let children = || -> Vec<u32> {
                    let children = std::fs::read_to_string(&children).unwrap();
                    children.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
                };
                let is_guard = |pid: &u32| {
                    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
                    name.trim() == "tern-guard"
                };
                // It gives itself that name, maybe later than a rank gets here.
                wait_for("the guard", || children().iter().any(is_guard));
                signal(children().into_iter().find(|pid| !is_guard(pid)).unwrap(), libc::SIGKILL);
            }
            _ => signal(running.id(), libc::SIGKILL),
        }
        finish(running);
        let segment = std::fs::read_to_string(scratch.file("created")).unwrap();
        wait_for("its removal", || !std::path::Path::new(&segment).exists());
        assert!(scratch.file("tern-other").exists());
    }
}

#[test]
fn bound_ranks_know_how_many_cpus_they_share() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let outcome = run(&mut mpiexec_sh("-n 2 --bind core", "echo $TERN_JOB_CPUS"));
    assert_eq!(outcome.out, format!("{cpus}\n").repeat(2));
}
