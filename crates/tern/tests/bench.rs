//! `tern bench` as a user sees it, with made-up libraries: its compiler wrapper writes a script in
//! place of a program, so that neither an MPI nor time is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A library whose programs all run `body` as a shell script.
fn fake_library(dir: &Path, version: &str, body: &str) {
    let program = format!("#!/bin/sh\n{body}\n");
    fs::create_dir_all(dir.join("bin")).unwrap();
    fs::write(dir.join("program"), program).unwrap();
    let from = dir.join("program").display().to_string();
    // mpicc FLAGS… -o OUTPUT FILES…
    let mpicc = format!("while [ \"$1\" != -o ]; do shift; done; cp '{from}' \"$2\" && chmod +x \"$2\"");
    script(&dir.join("bin/mpicc"), &mpicc);
    let mpiexec = format!(
        "if [ \"$1\" = --version ]; then echo '{version}'; exit; fi\n\
         while [ \"$1\" != -n ]; do shift; done; shift 2; exec \"$@\""
    );
    script(&dir.join("bin/mpiexec"), &mpiexec);
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn point(value: f64) -> String {
    format!(
        "echo 'a warning nobody asked for'\n\
         echo '{{\"bench\":\"latency\",\"variant\":\"plain\",\"size\":8,\"value\":{value},\"unit\":\"us\",\
         \"low\":{value},\"high\":{value},\"readings\":1}}'"
    )
}

fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir).unwrap();
    }
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// From a parent that ignores SIGCHLD, as some shells and daemons do, which hands that down.
fn tern(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' CHLD; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tern")]);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    command.arg("bench").args(arguments).arg("--source").arg(sources).current_dir(dir);
    command.output().unwrap()
}

#[test]
fn tern_is_compared_with_the_best_peer_and_a_failing_one_does_not_stop_the_others() {
    let dir = scratch("compare");
    fake_library(&dir.join("tern"), "mpiexec (Tern MPI) 9.9", &point(0.5));
    fake_library(&dir.join("slow"), "HYDRA build details: 1.0", &point(4.0));
    fake_library(&dir.join("good"), "HYDRA build details: 1.0", &point(2.0));
    fake_library(&dir.join("bad"), "mpiexec (Open MPI) 1.0", "echo 'no such device' >&2; exit 7");
    let arguments = ["--tern", "tern", "--peer", "Slow=slow", "--peer", "Good=good", "--peer", "Bad=bad"];
    let output = tern(&dir, &[&arguments[..], &["--pool", "--rounds", "1", "--only", "latency"]].concat());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let heading = said.lines().next().unwrap();
    assert!(heading.find("Tern") < heading.find("Good"), "{said}");
    let row = said.lines().find(|line| line.starts_with("latency plain")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    for value in ["0.500", "4.00", "2.00", "–", "0.25"] {
        assert!(cells.contains(&value), "{value} is missing in: {row}");
    }
    assert!(said.contains("Bad failed in latency: exit code 7: no such device"), "{said}");
    let json = fs::read_to_string(dir.join("build/bench/results.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["failures"][0]["library"], "Bad");
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.iter().filter(|p| p["case"] == "latency").count(), 3);
    assert!(
        fs::read_to_string(dir.join("build/bench/results.md")).unwrap().contains("| latency plain | 8 |")
    );
}

#[test]
fn what_cannot_be_used_is_named() {
    let dir = scratch("errors");
    for (arguments, part) in [
        (vec!["--only", "no-such-case"], "no-such-case"),
        (vec!["--peer", "X=nowhere"], "nowhere"),
        (vec!["--bogus"], "--bogus"),
    ] {
        let output = tern(&dir, &arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn a_library_that_does_not_compile_is_reported_with_the_compiler_s_words() {
    let dir = scratch("compile");
    fake_library(&dir.join("broken"), "HYDRA build details: 1.0", "true");
    script(&dir.join("broken/bin/mpicc"), "echo 'mpi.h: no such file' >&2; exit 1");
    let output = tern(&dir, &["--peer", "Broken=broken", "--rounds", "1", "--only", "stall"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("Broken failed in stall") && said.contains("mpi.h: no such file"), "{said}");
}
