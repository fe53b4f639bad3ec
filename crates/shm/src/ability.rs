//! What this device can do on this machine, for people: `tern info` prints it.

use crate::cma::{self, Direction};
use crate::nap;
use crate::sync::{AtomicU64, Ordering};
use fabric::{Fault, Span};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the device needs of a machine, tried just now.
pub struct Ability {
    /// Whether the kernel copies between ranks, or who forbids it.
    pub single_copy: Result<(), String>,
    /// Whether sleepers can be woken without a fence on the sender's path, or why not.
    pub membarrier: Result<(), String>,
    /// Bytes that the directory has, and how many of them are free, or why it cannot be used.
    pub space: Result<(u64, u64), String>,
}

/// Tries everything; the directory is where shared memory is to be.
pub fn ability(dir: &Path) -> Ability {
    let membarrier = match nap::register_barrier() {
        true => Ok(()),
        false => Err(io::Error::last_os_error().to_string()),
    };
    Ability { single_copy: copy_by_child(), membarrier, space: space(dir) }
}

/// A few lines on single copy, waiting, memory and cores; `single_copy` is the setting.
pub fn describe(dir: &Path, single_copy: bool) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let found = ability(dir);
    let membarrier = match found.membarrier {
        Ok(()) => {
            "membarrier: there; waiting ranks sleep until woken, and progress beside the program is possible"
                .to_string()
        }
        Err(why) => {
            format!("membarrier: missing ({why}); waiting ranks wake by themselves many times a second")
        }
    };
    let copying = match found.single_copy {
        _ if !single_copy => "switched off by TERN_SINGLE_COPY".into(),
        Ok(()) => "permitted (process_vm_readv); long messages are copied once, by both sides".into(),
        Err(why) => format!("not permitted, long messages go through shared memory: {why}"),
    };
    let space = match found.space {
        Ok((total, free)) => {
            format!("{} has {} MiB, {} MiB of them free", dir.display(), total >> 20, free >> 20)
        }
        Err(why) => why,
    };
    [
        "ranks of one host, through shared memory".to_string(),
        format!("single copy: {copying}"),
        membarrier,
        format!("memory: {space}"),
        format!("cores: {cores} for this process; with more ranks than cores waiting ranks yield at once"),
    ]
    .join("\n")
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
            let code = match copy(Direction::Read).and_then(|()| copy(Direction::Write)) {
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

fn space(dir: &Path) -> Result<(u64, u64), String> {
    let failed = |error: io::Error| {
        Err(format!("{} cannot be used ({error}); TERN_SHM_DIR names another directory", dir.display()))
    };
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
    Ok((found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize))
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
