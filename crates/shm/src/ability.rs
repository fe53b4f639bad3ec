//! What this device can do on this machine, for people: `tern info` prints it.

use crate::cma::{self, Way};
use crate::nap;
use crate::sync::{AtomicU64, Ordering};
use fabric::{Fault, Span};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A few lines on single copy, waiting, memory and cores; `single_copy` is the setting.
pub fn describe(dir: &Path, single_copy: bool) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let membarrier = match nap::register_barrier() {
        true => {
            "membarrier: there; waiting ranks sleep until woken, and progress beside the program is possible"
                .to_string()
        }
        false => format!(
            "membarrier: missing ({}); waiting ranks wake by themselves many times a second",
            io::Error::last_os_error()
        ),
    };
    [
        "ranks of one host, through shared memory".to_string(),
        format!("single copy: {}", copying(single_copy)),
        membarrier,
        format!("memory: {}", space(dir)),
        format!("cores: {cores} for this process; with more ranks than cores waiting ranks yield at once"),
    ]
    .join("\n")
}

fn copying(single_copy: bool) -> String {
    if !single_copy {
        return "switched off by TERN_SINGLE_COPY".into();
    }
    match copy_by_child() {
        Ok(()) => "permitted (process_vm_readv); long messages are copied once, by both sides".into(),
        Err(why) => format!("not permitted, long messages go through shared memory: {why}"),
    }
}

/// A child reads and writes memory of this process, as a rank does of another: security modules and filters
/// that would refuse the ranks refuse this.
fn copy_by_child() -> Result<(), String> {
    let value = AtomicU64::new(0x7465_726e);
    // SAFETY: plain system calls; descendants of this process may trace it, as `permit_siblings`
    // lets those of a launcher.
    let (parent, child) = unsafe {
        libc::prctl(libc::PR_SET_PTRACER, libc::getpid() as libc::c_ulong, 0, 0, 0);
        (libc::getpid(), libc::fork())
    };
    match child {
        -1 => Err(format!("cannot be tried: fork: {}", io::Error::last_os_error())),
        0 => {
            let mut seen = 0u64;
            let local = Span { addr: &raw mut seen as usize, len: 8 };
            let copy = |way| cma::transfer(way, parent, 0, local, value.as_ptr() as usize);
            let code = match copy(Way::Read).and_then(|()| copy(Way::Write)) {
                Ok(()) if seen == value.load(Ordering::Relaxed) => 0,
                Err(Fault::NotPermitted) => 1,
                _ => 2,
            };
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(code) }
        }
        pid => {
            let mut status = 0;
            // SAFETY: our own child, and a place for its status.
            let reaped = unsafe { libc::waitpid(pid, &raw mut status, 0) };
            match (reaped == pid && libc::WIFEXITED(status)).then(|| libc::WEXITSTATUS(status)) {
                Some(0) => Ok(()),
                Some(1) => Err(refusal()),
                _ => Err("process_vm_readv fails on this system".into()),
            }
        }
    }
}

/// Who may have refused.
fn refusal() -> String {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "2" | "3" => format!("kernel.yama.ptrace_scope is {}", scope.trim()),
        _ => "a filter (seccomp of a container) or a security module refuses process_vm_readv".into(),
    }
}

fn space(dir: &Path) -> String {
    let shown = dir.display();
    let failed =
        |error: io::Error| format!("{shown} cannot be used ({error}); TERN_SHM_DIR names another directory");
    let Ok(path) = CString::new(dir.as_os_str().as_bytes()) else {
        return failed(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: all zero is a valid value of this plain struct.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a terminated path and a place for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut found) } != 0 {
        return failed(io::Error::last_os_error());
    }
    // SAFETY: a terminated path.
    if unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) } != 0 {
        return failed(io::Error::last_os_error());
    }
    let mib = |blocks: u64| (blocks * found.f_frsize) >> 20;
    format!("{shown} has {} MiB, {} MiB of them free", mib(found.f_blocks), mib(found.f_bavail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_there_is_and_what_is_not() {
        let text = describe(Path::new("/tmp"), true);
        assert!(
            text.contains("single copy: permitted") || text.contains("single copy: not permitted"),
            "{text}"
        );
        assert!(text.contains("membarrier: ") && text.contains("memory: /tmp has "), "{text}");
        let text = describe(Path::new("/nowhere/at/all"), false);
        assert!(text.contains("switched off by TERN_SINGLE_COPY"), "{text}");
        assert!(text.contains("/nowhere/at/all cannot be used (No such file"), "{text}");
    }
}
