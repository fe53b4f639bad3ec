//! Work that would be lost with nobody saying so: output that cannot be written, and processes that are not in the
//! job they were started for.
mod common;
use common::*;
use std::process::Command;

fn full() -> std::fs::File {
    std::fs::File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn output_on_a_full_disk_is_said_and_is_a_failure() {
    let scratch = Scratch::new("full");
    let mut command = mpiexec_sh("-n 2", "echo out; sleep 0.2; echo more; : > $DONE.$PMI_RANK");
    command.env("DONE", scratch.file("done")).stdout(full()).stderr(std::process::Stdio::piped());
    let outcome = finish(spawn(&mut command));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert_eq!(outcome.err.matches("standard output cannot be written").count(), 1, "{outcome:?}");
    assert!(outcome.err.contains("No space left on device"), "{outcome:?}");
    // The ranks themselves went on.
    assert!(scratch.file("done.0").exists() && scratch.file("done.1").exists());

    let outcome =
        finish(spawn(mpiexec_sh("-n 1", "echo err >&2").stdout(std::process::Stdio::piped()).stderr(full())));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    let outcome = finish(spawn(mpiexec_sh("-n 1", "echo out; exit 9").stdout(full()).stderr(full())));
    assert_eq!(outcome.code, 9, "what a rank says of itself comes first: {outcome:?}");
    for option in ["--help", "-info"] {
        let outcome = finish(spawn(mpiexec(option).stdout(full()).stderr(std::process::Stdio::piped())));
        assert!(outcome.code == 1 && outcome.err.contains("No space left"), "{outcome:?}");
    }
}

/// Builds a library with the name of Open MPI's, and programs that use it in different ways.
fn build(scratch: &Scratch) {
    let cc = |arguments: &[&str], source: &str| {
        let file = scratch.file("source.c");
        std::fs::write(&file, source).unwrap();
        let status =
            Command::new("cc").current_dir(&scratch.0).arg("source.c").args(arguments).status().unwrap();
        assert!(status.success(), "cc {arguments:?}");
    };
    let library = "int MPI_Init(int *a, char ***b) { return a == (void *)b; }";
    cc(&["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", "-o", "libmpi.so.40"], library);
    let program = "int MPI_Init(int *, char ***); int main(void) { return MPI_Init(0, 0) != 1; }";
    cc(&["-o", "linked", "-Wl,--no-as-needed", "./libmpi.so.40"], program);
    let program = "#include <dlfcn.h>\n#include <unistd.h>\n\
                   int main(void) { return !dlopen(\"./libmpi.so.40\", RTLD_NOW) || sleep(8); }";
    cc(&["-o", "loading", "-ldl"], program);
    let own = program.replace("./libmpi", "./tern/openmpi/libmpi").replace("sleep(8)", "sleep(2)");
    cc(&["-o", "loading_own", "-ldl"], &own);
}

#[test]
fn processes_of_open_mpi_do_not_run_alone_in_silence() {
    let scratch = Scratch::new("foreign");
    build(&scratch);
    let there = |arguments: &str| {
        let mut command = mpiexec(arguments);
        command.current_dir(&scratch.0).env("LD_LIBRARY_PATH", ".");
        command
    };
    // Those that load it later are looked at several times while they run.
    let programs = ["./linked", "./loading", "sh -c ./loading"];
    let running = programs.map(|program| start(&mut there(&format!("-n 3 {program}"))));
    for outcome in running.map(finish) {
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert_eq!(outcome.err.matches("it uses Open MPI (libmpi.so.40").count(), 1, "{outcome:?}");
    }
    // Of that name, and Tern's: it joins the job when it wants to.
    let own = scratch.0.join("tern/openmpi");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::copy(scratch.file("libmpi.so.40"), own.join("libmpi.so.40")).unwrap();
    for program in ["./linked", "./loading_own"] {
        let outcome = run(there(&format!("-n 3 {program}")).env("LD_LIBRARY_PATH", &own));
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""), "{program}");
    }
    // One rank is as well off alone, and programs that know no MPI have nothing to join.
    for arguments in ["-n 1 ./linked", "-n 3 hostname", "-n 3 sleep 1.5"] {
        let outcome = run(&mut there(arguments));
        assert_eq!((outcome.code, outcome.err.as_str()), (0, ""), "{arguments}");
    }
}
