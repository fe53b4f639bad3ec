//! Tests that are run again by this program as an ordinary user.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Whether this is one already.
pub fn is_ordinary() -> bool {
    // SAFETY: the call has no arguments.
    unsafe { libc::geteuid() != 0 }
}

/// An ignored test of this program passes as one. The program is copied to where such a user may run it, under this name.
pub fn passes(test: &str, name: &str) {
    let copy = std::env::temp_dir().join(format!("tern-{name}-{}", std::process::id()));
    std::fs::copy("/proc/self/exe", &copy).unwrap();
    let mut command = Command::new(&copy);
    let output = command.args(["--ignored", "--exact", test]).uid(65534).gid(65534).output();
    std::fs::remove_file(&copy).unwrap();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
