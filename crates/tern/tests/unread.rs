//! What nobody reads to its end.

use std::process::{Command, Stdio};

#[test]
fn a_reader_that_stops_is_no_failure_of_the_library() {
    for arguments in [&["info"][..], &["explain", "--size", "64K", "--cluster", "graphene"], &["--help"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tern"));
        let mut child =
            command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let said = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(!said.status.success() && text.is_empty(), "{arguments:?}: {:?}: {text}", said.status);
    }
}
