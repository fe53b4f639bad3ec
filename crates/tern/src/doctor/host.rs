//! What jobs need of a host: memory, processes, and what the kernel permits.

use std::fs;
use std::path::Path;
use std::process::Command;

use fabric::settings::Settings;
use rustix::process::{Resource, getrlimit};

use super::Check;

/// Memory that a rank may want in the directory for shared memory: its arena and rings.
const PER_RANK_BYTES: u64 = 8 << 20;

/// What there is to say of this host.
pub fn checks(settings: &Result<Settings, String>) -> Vec<Check> {
    let dir = settings.as_ref().map_or("/dev/shm", |settings| settings.text("TERN_SHM_DIR")).to_string();
    let ability = shm::ability(Path::new(&dir));
    let mut checks = vec![match settings {
        Ok(_) => Check::pass("settings", "every TERN_ variable is known"),
        Err(why) => {
            Check::fail("settings", why, "unset the variable, or correct it: tern info --settings lists all")
        }
    }];
    checks.push(space(&dir, &ability.space));
    checks.push(may_run(&dir));
    checks.push(match &ability.single_copy {
        Ok(()) => Check::pass("single copy", "process_vm_readv between processes is permitted"),
        Err(why) => Check::weak("single copy", format!("long messages are copied twice: {why}"), mend_copy()),
    });
    checks.push(match &ability.membarrier {
        Ok(()) => Check::pass("membarrier", "there"),
        Err(why) => Check::weak(
            "membarrier",
            format!("missing ({why}): who waits wakes many times a second, nothing progresses beside the program"),
            "docker run --security-opt seccomp=unconfined … (or a profile that allows membarrier); Linux 4.14 or newer",
        ),
    });
    checks.push(match memhook::Monitor::start(true) {
        Ok(_) => Check::pass("userfaultfd", "tells when memory goes away: registrations are kept"),
        Err(why) => Check::weak(
            "userfaultfd",
            format!("memory is registered anew for each message: {why}"),
            "sysctl -w vm.unprivileged_userfaultfd=1 (docker: a seccomp profile that allows userfaultfd)",
        ),
    });
    checks.push(fork());
    checks.push(locked());
    checks.push(limit("open files", Resource::Nofile, 1024, "ulimit -n 65536"));
    checks.push(limit("processes", Resource::Nproc, 1024, "ulimit -u 65536"));
    checks.push(maps());
    checks
}

fn space(dir: &str, found: &Result<(u64, u64), String>) -> Check {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let wanted = cores * PER_RANK_BYTES;
    match found {
        Err(why) => {
            Check::fail("shared memory", why, format!("mount -t tmpfs tmpfs {dir}; or TERN_SHM_DIR=/tmp"))
        }
        Ok((total, free)) => {
            let text = format!("{dir} has {} MiB, {} MiB of them free", total >> 20, free >> 20);
            if *free >= wanted {
                return Check::pass("shared memory", text);
            }
            let text = format!("{text}; a rank for each of {cores} cores may want {} MiB", wanted >> 20);
            let mend = format!("mount -o remount,size=50% {dir} (docker run --shm-size=1g)");
            Check::weak("shared memory", text, mend)
        }
    }
}

/// Tern runs nothing from there; some programs do (just-in-time compilers).
fn may_run(dir: &str) -> Check {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut options = mounts.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(1) == Some(&dir)).then(|| words.get(3).copied().unwrap_or_default().to_string())
    });
    let is_forbidden =
        options.next_back().is_some_and(|options| options.split(',').any(|option| option == "noexec"));
    match is_forbidden {
        true => Check::pass("exec in it", format!("{dir} is mounted noexec, which Tern does not mind")),
        false => Check::pass("exec in it", "permitted"),
    }
}

fn mend_copy() -> &'static str {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "2" | "3" => "sysctl -w kernel.yama.ptrace_scope=1 (3 holds until the next boot)",
        _ => "docker run --cap-add=SYS_PTRACE … (or a seccomp profile that allows process_vm_readv)",
    }
}

fn fork() -> Check {
    let own = std::env::current_exe().unwrap_or_default();
    match Command::new(own).arg("--version").output() {
        Ok(output) if output.status.success() => Check::pass("fork", "processes can be started"),
        Ok(output) => Check::fail("fork", format!("a child ended with {}", output.status), "dmesg | tail"),
        Err(why) => {
            Check::fail("fork", format!("no process can be started: {why}"), "ulimit -u 65536; free -m")
        }
    }
}

fn locked() -> Check {
    match getrlimit(Resource::Memlock).current {
        None => Check::pass("memlock", "unlimited"),
        Some(bytes) => Check::weak(
            "memlock",
            format!(
                "{} KiB may be locked; RDMA adapters of hardware would need more, the software one needs none",
                bytes >> 10
            ),
            "ulimit -l unlimited (for all: echo '* - memlock unlimited' > /etc/security/limits.d/memlock.conf; \
             docker run --ulimit memlock=-1; systemd: LimitMEMLOCK=infinity)",
        ),
    }
}

fn limit(what: &str, resource: Resource, least: u64, mend: &str) -> Check {
    match getrlimit(resource).current {
        Some(number) if number < least => Check::weak(what, format!("{number} at most"), mend),
        Some(number) => Check::pass(what, format!("{number} at most")),
        None => Check::pass(what, "unlimited"),
    }
}

/// What Linux begins with.
const MAPS_USUAL: u64 = 65530;

fn maps() -> Check {
    let path = "/proc/sys/vm/max_map_count";
    let number = fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match number {
        Some(number) if number < MAPS_USUAL => Check::weak(
            "max_map_count",
            format!("{number}: programs with many mappings run out of them"),
            "sysctl -w vm.max_map_count=262144",
        ),
        Some(number) => Check::pass("max_map_count", number.to_string()),
        None => Check::pass("max_map_count", "not told here"),
    }
}
