//! Jobs on several hosts, which are this one several times: what their agents pass on, and what happens when one of
//! them does not come, is not what it says, or is lost.
mod common;
use common::*;
use launch::mpiexec::hello::{self, Secret};
use launch::mpiexec::message;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn ranks_know_their_place() {
    let script = "echo $PMI_RANK/$PMI_SIZE $MPI_LOCALRANKID/$MPI_LOCALNRANKS $TERN_HOST_ADDRESS";
    let outcome = run(&mut two_hosts("-n 4 --label", script));
    let expected = ["0/4 0/2", "1/4 1/2", "2/4 0/2", "3/4 1/2"];
    let expected: Vec<String> = (0..4).map(|rank| format!("[{rank}] {} 127.0.0.1", expected[rank])).collect();
    assert_eq!((sorted(&outcome.out), outcome.code), (expected.iter().map(String::as_str).collect(), 0));
    let outcome = run(&mut two_hosts("-rr -n 3", "echo $PMI_RANK $MPI_LOCALRANKID"));
    assert_eq!(sorted(&outcome.out), ["0 0", "1 0", "2 1"]);
    let outcome = run(&mut two_hosts("-ppn 1 --report-bindings", "true"));
    assert!(outcome.err.contains("rank 1: sh on 127.0.0.2 on CPUs "), "{outcome:?}");
}

#[test]
fn environment_and_directory_reach_all_hosts() {
    let scratch = Scratch::new("reach");
    let mut command = two_hosts("-n 2 -genv GIVEN g", "echo $GIVEN $OWN $(pwd)");
    let outcome = run(command.env("OWN", "o").current_dir(&scratch.0));
    let line = format!("g o {}", scratch.0.canonicalize().unwrap().display());
    assert_eq!(sorted(&outcome.out), [&line, &line]);
    let outcome = run(two_hosts("-n 2 -genvnone", "echo .$OWN").env("OWN", "o"));
    assert_eq!(outcome.out, ".\n.\n");
    // What another launcher says of this process is not true for its ranks, and the secret is for none to see.
    let outcome = run(two_hosts("-n 2", "env; tr '\\0' ' ' </proc/$PPID/cmdline").env("PMIX_RANK", "7"));
    assert!(!outcome.out.contains("PMIX_RANK") && outcome.out.contains("--agent"), "{outcome:?}");
}

#[test]
fn output_and_input_pass_through() {
    let script = "head -c 5000000 /dev/zero | tr '\\0' x | fold -w 999; echo";
    let outcome = run(&mut two_hosts("-n 4", script));
    assert_eq!(outcome.code, 0);
    assert_eq!(outcome.out.bytes().filter(|b| *b == b'x').count(), 20_000_000);
    assert!(outcome.out.lines().all(|line| line.len() <= 999 && line.bytes().all(|b| b == b'x')));

    let input = |stdin: Stdio| {
        let mut child = start(two_hosts("-n 2 -s 1", "echo $PMI_RANK $(wc -c)").stdin(stdin));
        if let Some(mut pipe) = child.child().stdin.take() {
            pipe.write_all(&[b'x'; 3_000_000]).unwrap();
        }
        finish(child).out
    };
    assert_eq!(sorted(&input(Stdio::piped())), ["0 0", "1 3000000"]);
    let scratch = Scratch::new("input");
    std::fs::write(scratch.file("in"), [b'x'; 200_000]).unwrap();
    assert_eq!(sorted(&input(std::fs::File::open(scratch.file("in")).unwrap().into())), ["0 0", "1 200000"]);
    assert_eq!(sorted(&input(Stdio::null())), ["0 0", "1 0"]);
    // Nobody waits for input that a rank does not read.
    let mut child = start(two_hosts("-n 2", "exec <&-; sleep 0.1; echo done").stdin(Stdio::piped()));
    let _open = child.child().stdin.take();
    assert_eq!(finish(child).out, "done\ndone\n");
}

#[test]
fn a_reader_that_leaves_or_is_slow() {
    let mut child = start(&mut two_hosts("-n 2", "yes"));
    drop(child.child().stdout.take());
    assert_eq!(finish(child).code, 128 + libc::SIGPIPE);
    // While nobody reads, ranks wait, and so does everything between; nothing is lost.
    let mut child = start(&mut two_hosts("-n 2", "yes | head -c 20000000"));
    std::thread::sleep(Duration::from_millis(500));
    let mut out = Vec::new();
    child.child().stdout.take().unwrap().read_to_end(&mut out).unwrap();
    assert_eq!((out.len(), finish(child).code), (40_000_000, 0));
    // Nor when the ranks have ended long before somebody reads: rank 0 fills all there is on the way, what the others
    // write fits into their pipes.
    let script =
        "[ $PMI_RANK = 0 ] && n=1150000 || { n=60000; sleep 1; }; head -c $n /dev/zero | tr '\\0' '\\n'";
    let mut child = start(&mut two_hosts("-n 8", script));
    std::thread::sleep(Duration::from_secs(7));
    out.clear();
    child.child().stdout.take().unwrap().read_to_end(&mut out).unwrap();
    assert_eq!((out.len(), finish(child).code), (1_150_000 + 7 * 60_000, 0));
}

#[test]
fn other_hosts_are_reached_by_ssh_and_srun() {
    let scratch = Scratch::new("programs");
    // Documentation's own addresses belong to nobody; what is started there connects to this host.
    let script = "#!/bin/sh\necho \"${0##*/} $*\" >>\"$LOG\"\nexec \"$MPIEXEC\" --agent\n";
    for (launcher, called) in [
        ("ssh", "ssh -x -o BatchMode=yes 192.0.2.1 /opt/mpiexec --agent\n"),
        (
            "srun",
            "srun --nodes=1 --ntasks=1 --nodelist=192.0.2.1 --overlap --cpu-bind=none --mpi=none --quiet /opt/mpiexec --agent\n",
        ),
    ] {
        let program = scratch.file(launcher);
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let log = scratch.file("log");
        std::fs::remove_file(&log).ok();
        let options = "--host-address 127.0.0.1 --launcher-path /opt/mpiexec";
        let arguments = format!("--launcher {launcher} {options} --hosts localhost,192.0.2.1 echo here");
        let mut command = mpiexec(&arguments);
        let path = format!("{}:/usr/bin:/bin", scratch.0.display());
        command.env("PATH", path).env("LOG", &log).env("MPIEXEC", env!("CARGO_BIN_EXE_mpiexec"));
        let outcome = run(&mut command);
        assert_eq!((outcome.code, outcome.out.as_str()), (0, "here\nhere\n"), "{outcome:?}");
        assert_eq!(std::fs::read_to_string(&log).unwrap(), called);
    }
}

#[test]
fn deaths_and_codes() {
    let outcome = run(&mut two_hosts("-n 4", "[ $PMI_RANK != 3 ] || exit 7; sleep 1000"));
    assert_eq!(outcome.code, 7);
    assert_eq!(outcome.err.lines().count(), 1, "{outcome:?}");
    assert!(
        outcome.err.contains("rank 3 (sh, process ")
            && outcome.err.contains(" on 127.0.0.2) exited with code 7")
    );
    let outcome = run(&mut two_hosts("-n 3", "[ $PMI_RANK != 0 ] || kill -KILL $$; sleep 1000"));
    assert_eq!(outcome.code, 128 + libc::SIGKILL);
    assert!(outcome.err.contains("was killed by signal 9 (SIGKILL); ending the job"), "{outcome:?}");
    let outcome = run(&mut two_hosts("-n 2 -print-all-exitcodes", "exit 0"));
    assert!(outcome.code == 0 && outcome.err.contains("exit codes: 0 of rank 0-1"), "{outcome:?}");
    let outcome = run(&mut two_hosts("-n 2 --timeout 5", "sleep 1000"));
    assert_eq!(outcome.code, 124);
    for rank in 0..2 {
        let line = format!("rank {rank} is before MPI_Init or after MPI_Finalize: process ");
        assert!(outcome.err.contains(&line), "{outcome:?}");
    }
}

#[test]
fn what_cannot_be_started_is_named_with_its_host() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let many = format!("-n {} --nooversubscribe true", 2 * cpus + 2);
    for (arguments, code, named) in [
        ("-n 2 no-such-command-here", 127, "cannot start 'no-such-command-here'"),
        ("-n 2 -wdir /no/such/place true", 1, "the working directory '/no/such/place'"),
        (&many, 1, "CPUs (--nooversubscribe)"),
    ] {
        let outcome = run(&mut mpiexec_at(PLACES[1], arguments));
        assert_eq!(outcome.code, code, "{outcome:?}");
        assert!(outcome.err.contains(named) && outcome.err.contains("mpiexec: host 127.0.0."), "{outcome:?}");
    }
    for (arguments, named) in [
        ("--hosts no.such.host.invalid true", "host no.such.host.invalid: the name cannot be resolved"),
        ("--hosts 192.0.2.1 --iface no-such0 true", "option --iface: no interface 'no-such0'"),
        ("--hosts 192.0.2.1 --host-address 192.0.2.7 true", "cannot listen on 192.0.2.7"),
        ("--hosts 127.0.0.1 --launcher /no/such/ssh true", "cannot start '/no/such/ssh 127.0.0.1"),
    ] {
        let outcome = run(&mut mpiexec(arguments));
        assert!(outcome.code == 1 && outcome.err.contains(named), "{outcome:?}");
    }
}

/// Processes of this test, which an argument that no other process has marks.
fn sleepers(mark: &str) -> usize {
    processes(&format!("sleep {mark}")).iter().filter(|line| !line.contains("-c")).count()
}

#[test]
fn nothing_is_left_behind() {
    let mark = format!("{}.75", 300_000 + std::process::id());
    let script = format!("sleep {mark} & setsid sleep {mark} & sleep 0.1");
    assert_eq!(run(&mut two_hosts("-n 4", &script)).code, 0);
    assert_eq!(processes(&format!("sleep {mark}")), Vec::<String>::new());
    // Neither when the root or an agent is killed.
    let script = format!("sleep {mark} & setsid sleep {mark} & wait");
    let child = start(&mut two_hosts("-n 2", &script));
    wait_for("four sleepers", || sleepers(&mark) == 4);
    signal(child.id(), libc::SIGKILL);
    wait_for("no sleepers", || sleepers(&mark) == 0);
    finish(child);

    let script = format!("setsid sleep {mark} & [ $PMI_RANK != 1 ] || kill -KILL $PPID; wait");
    let outcome = run(&mut two_hosts("-n 2", &script));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.err.contains("host 127.0.0.2: its agent is gone"), "{outcome:?}");
    wait_for("no sleepers", || sleepers(&mark) == 0);
}

#[test]
fn signals_reach_all_hosts() {
    let scratch = Scratch::new("interrupts");
    let both = |name: &str| (0..2).all(|rank| scratch.file(&format!("{name}{rank}")).exists());
    let place = scratch.0.display();
    let script = format!(
        "trap ': > {place}/int$PMI_RANK' INT; trap '' TERM; : > {place}/ready$PMI_RANK; while :; do sleep 0.05; done"
    );
    let child = start(&mut two_hosts("-n 2", &script));
    wait_for("both ranks", || both("ready"));
    signal(child.id(), libc::SIGINT);
    wait_for("both traps", || both("int"));
    signal(child.id(), libc::SIGINT);
    let outcome = finish(child);
    assert_eq!(outcome.code, 128 + libc::SIGINT, "{outcome:?}");
    assert!(outcome.err.contains("interrupted twice"), "{outcome:?}");

    let child = start(&mut two_hosts("-n 2", &format!(": > {place}/plain$PMI_RANK; sleep 1000")));
    wait_for("both ranks", || both("plain"));
    signal(child.id(), libc::SIGINT);
    let outcome = finish(child);
    assert_eq!((outcome.code, outcome.err.as_str()), (128 + libc::SIGINT, ""));
}

#[test]
fn a_host_that_does_not_answer_ends_the_job_in_time() {
    let begin = Instant::now();
    let outcome = run(two_hosts("-n 2 --launch-timeout 0.5", "true").env("FAKE", "silent"));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(
        outcome.err.contains("host 127.0.0.1: no agent has come within 0.5 s (--launch-timeout)"),
        "{outcome:?}"
    );
    assert!(begin.elapsed() < Duration::from_secs(60));
    // An interrupt does not wait for it.
    let child = start(two_hosts("-n 2 --launch-timeout 1000", "true").env("FAKE", "silent"));
    std::thread::sleep(Duration::from_millis(300));
    signal(child.id(), libc::SIGINT);
    assert_eq!(finish(child).code, 128 + libc::SIGINT);
}

#[test]
fn a_launcher_that_fails_is_named() {
    let outcome = run(two_hosts("-n 2", "true").env("FAKE", "broken"));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.err.contains("fake-launcher.sh 127.0.0."), "{outcome:?}");
    assert!(outcome.err.contains("exited with code 3 before the agent had come"), "{outcome:?}");
    let outcome = run(&mut two_hosts("-n 2 --launcher-path /no/such/mpiexec", "true"));
    assert!(outcome.code == 1 && outcome.err.contains("exited with code 127"), "{outcome:?}");
}

/// One host is as it should be, and its agent is there, while the other one fails in some way.
#[test]
fn a_host_that_fails_beside_one_that_is_ready_ends_the_job() {
    for host in ["127.0.0.1", "127.0.0.2"] {
        for (fake, named) in [
            ("broken", "exited with code 3 before the agent had come"),
            ("broken-later", "exited with code 3 before the agent had come"),
            ("silent", "no agent has come within 1.5 s (--launch-timeout)"),
            ("other-secret", "before the agent had come"),
        ] {
            let begin = Instant::now();
            let mut command = two_hosts("-n 2 --launch-timeout 1.5", "echo never");
            let outcome = run(command.env("FAKE", fake).env("FAKE_HOST", host));
            assert_eq!((outcome.code, outcome.out.as_str()), (1, ""), "{fake}: {outcome:?}");
            assert!(outcome.err.contains(&format!("host {host}: ")), "{fake}: {outcome:?}");
            assert!(outcome.err.contains(named), "{fake}: {outcome:?}");
            assert!(begin.elapsed() < Duration::from_secs(60), "{fake}: {:?}", begin.elapsed());
        }
    }
}

/// Whatever the agents are about: a job that is asked to end does so without anybody's help.
#[test]
fn a_signal_ends_the_start_in_time() {
    let scratch = Scratch::new("asked");
    for (round, number) in [libc::SIGTERM, libc::SIGINT].into_iter().enumerate() {
        // At the time of the signal: agents on their way to both hosts, to one, and ranks that begin. Of the first
        // moments, in which signals do what they do to all processes, there is no code.
        for (fake, host) in [("silent", ""), ("silent", "127.0.0.1"), ("silent", "127.0.0.2"), ("", "")] {
            for delay_ms in [0, 10, 30, 100, 1000] {
                let mut command = two_hosts("-n 2 --launch-timeout 1000", "sleep 1000");
                command.env("FAKE", fake);
                if !host.is_empty() {
                    command.env("FAKE_HOST", host);
                }
                let begin = Instant::now();
                let child = start(&mut command);
                std::thread::sleep(Duration::from_millis(delay_ms));
                signal(child.id(), number);
                let outcome = finish(child);
                let what = format!("'{fake}' on '{host}', signal {number} after {delay_ms} ms: {outcome:?}");
                assert!([-1, 128 + number].contains(&outcome.code), "{what}");
                assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
            }
        }
        // An agent that has come, and then does nothing more: it is told what to start, and nothing is heard of it.
        let place = scratch.file(&format!("round{round}"));
        std::fs::create_dir(&place).unwrap();
        let mut command = two_hosts("-n 2 --launch-timeout 1000", "sleep 1000");
        command.env("FAKE", "known").env("FAKE_HOST", "127.0.0.1").env("FAKE_ELSE", "late");
        let child = start(command.env("FAKE_PLACE", &place));
        let pid = place.join("127.0.0.1.pid");
        wait_for("the agent", || pid.exists());
        let pid: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        signal(pid, libc::SIGSTOP);
        std::fs::write(place.join("go"), "").unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let begin = Instant::now();
        signal(child.id(), number);
        let outcome = finish(child);
        signal(pid, libc::SIGKILL);
        assert_eq!(outcome.code, 128 + number, "{outcome:?}");
        let named = "mpiexec: host 127.0.0.1: its agent does not say that the ranks there have ended";
        assert!(outcome.err.contains(named), "{outcome:?}");
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    }
}

#[test]
fn an_agent_with_another_secret_is_refused() {
    let outcome = run(two_hosts("-n 2", "echo never").env("FAKE", "other-secret"));
    assert_eq!((outcome.code, outcome.out.as_str()), (1, ""), "{outcome:?}");
    assert!(outcome.err.contains("does not know the secret that this agent was given"), "{outcome:?}");
}

/// A job whose agents wait until the file `go` is there, and what the first of them was given.
fn late(scratch: &Scratch, arguments: &str) -> (Running, [u8; 16], SocketAddr) {
    let mut command: Command = two_hosts(arguments, "echo $PMI_RANK");
    let child = start(command.env("FAKE", "late").env("FAKE_PLACE", &scratch.0));
    wait_for("both handovers", || scratch.file("127.0.0.1").exists() && scratch.file("127.0.0.2").exists());
    let line = std::fs::read_to_string(scratch.file("127.0.0.1")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    // No command line shows it.
    assert_eq!(processes(words[2]), Vec::<String>::new());
    let digit = |i: usize| u8::from_str_radix(&words[2][2 * i..2 * i + 2], 16).unwrap();
    (child, std::array::from_fn(digit), words[3].parse().unwrap())
}

#[test]
fn strangers_disturb_nobody() {
    let scratch = Scratch::new("strangers");
    let (child, secret, address) = late(&scratch, "-n 2");
    let mut strangers = Vec::new();
    for i in 0..300 {
        let mut stranger = TcpStream::connect(address).unwrap();
        // Silent ones, ones that leave, and ones that say much, or nearly the right thing.
        match i % 4 {
            0 => drop(stranger),
            1 => strangers.push(stranger),
            2 => {
                let _ = stranger.write_all(&[b'x'; 10_000]);
                strangers.push(stranger);
            }
            _ => {
                let _ = stranger.write_all(&Secret::new([i as u8; 16]).answer(0, &[0; 16], &[0; 16]));
                strangers.push(stranger);
            }
        }
    }
    // One who knows the secret, but speaks of a host that there is not.
    let mut impossible = TcpStream::connect(address).unwrap();
    greet(&mut impossible, secret, 77);
    std::fs::write(scratch.file("go"), "").unwrap();
    let outcome = finish(child);
    assert_eq!((sorted(&outcome.out), outcome.code), (vec!["0", "1"], 0), "{outcome:?}");
    // Of no stranger more is known than what everybody is told.
    for mut stranger in strangers {
        let mut heard = Vec::new();
        let _ = stranger.read_to_end(&mut heard);
        assert!(heard.len() <= hello::CHALLENGE, "{heard:?}");
    }
}

/// Proves to be the agent of a host.
fn greet(stream: &mut TcpStream, secret: [u8; 16], host: u32) {
    let secret = Secret::new(secret);
    let mut challenge = [0; hello::CHALLENGE];
    stream.read_exact(&mut challenge).unwrap();
    let challenge = hello::read_challenge(&challenge).unwrap();
    stream.write_all(&secret.answer(host, &challenge, &[1; 16])).unwrap();
    let mut proof = [0; hello::PROOF];
    stream.read_exact(&mut proof).unwrap();
    assert!(secret.check_proof(host, &challenge, &[1; 16], &proof));
}

#[test]
fn another_version_and_wrong_messages_are_refused() {
    let huge = [255; 4];
    let cases: [(&[u8], &str); 4] = [
        (&message::framed(b"Tern 9.9.9 for vax"), "its mpiexec is Tern 9.9.9 for vax, and this one is Tern "),
        (&message::framed(&[7; 100_000]), "both must be the same"),
        (&huge, "is longer than"),
        (&[], "its agent is gone: the connection was closed"),
    ];
    for (i, (sent, named)) in cases.into_iter().enumerate() {
        let scratch = Scratch::new(&format!("version{i}"));
        let (child, secret, address) = late(&scratch, "-n 2");
        let mut stream = TcpStream::connect(address).unwrap();
        greet(&mut stream, secret, 0);
        stream.write_all(sent).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let outcome = finish(child);
        assert_eq!((outcome.code, outcome.out.as_str()), (1, ""), "{outcome:?}");
        assert!(outcome.err.contains("host 127.0.0.1: ") && outcome.err.contains(named), "{outcome:?}");
    }
}

#[test]
fn the_option_of_agents_is_for_mpiexec() {
    let outcome = run(&mut mpiexec("--agent"));
    assert!(outcome.code == 1 && outcome.err.contains("option --agent is for mpiexec itself"), "{outcome:?}");
}
