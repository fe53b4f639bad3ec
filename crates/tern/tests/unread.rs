//! What nobody reads to its end.

use std::process::{Command, Stdio};

#[test]
fn a_reader_that_stops_is_no_failure_of_the_library() {
    for arguments in [&["info"][..], &["explain", "--size", "64K", "--cluster", "graphene"], &["--help"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tern"));
        // Gone before anything is written: who stops later may have read all.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = command.args(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let text = String::from_utf8_lossy(&said.stderr);
        assert!(!said.status.success() && text.is_empty(), "{arguments:?}: {:?}: {text}", said.status);
    }
}
