//! What /proc says about processes.
use std::fs;

/// What a process is doing, in words, for one that does not answer itself.
pub fn activity(pid: i32) -> String {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return "gone".into() };
    // The name is in parentheses and may itself hold any character.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('?');
    let waits = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    let place = match waits.trim() {
        "" | "0" => String::new(),
        place => format!(" in {place}"),
    };
    match state {
        'R' => "running".into(),
        'S' => format!("sleeping{place}"),
        'D' => format!("waiting for the kernel{place}"),
        'T' => "stopped by a signal".into(),
        't' => "stopped by a debugger".into(),
        'Z' => "ended".into(),
        other => format!("in state {other}"),
    }
}

/// The children of this process, which must have one thread.
pub fn children() -> Vec<i32> {
    let own = std::process::id() as i32;
    match fs::read_to_string(format!("/proc/self/task/{own}/children")) {
        Ok(list) => list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // Kernels without this file: ask every process for its parent.
        Err(_) => processes().filter(|pid| parent(*pid) == Some(own)).collect(),
    }
}

/// All processes in whose environment the line `mark` is; only those of this user can be looked at.
pub fn marked(mark: &str) -> Vec<i32> {
    processes().filter(|pid| is_marked(*pid, mark)).collect()
}

/// Whether the line `mark` is in the environment of a process.
pub fn is_marked(pid: i32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|b| *b == 0).any(|line| line == mark.as_bytes())
}

/// The processes of a group.
pub fn members(group: i32) -> Vec<i32> {
    processes().filter(|pid| field(*pid, 2) == Some(group)).collect()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: i32) -> Option<i32> {
    field(pid, 1)
}

/// A number of /proc/PID/stat, counted from the state.
fn field(pid: i32, index: usize) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split_whitespace().nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_is_seen() {
        let own = std::process::id() as i32;
        assert!(processes().any(|pid| pid == own));
        assert!(parent(own).is_some_and(|parent| parent > 0));
        assert!(members(field(own, 2).unwrap()).contains(&own));
        assert_eq!(activity(i32::MAX), "gone");
    }

    /// Asked by thread: the process's first one may wait for anything, this one must be running to ask.
    #[test]
    fn who_asks_is_running() {
        let thread = fs::read_link("/proc/thread-self").unwrap();
        let own = thread.file_name().unwrap().to_str().unwrap().parse().unwrap();
        assert_eq!(activity(own), "running");
    }

    #[test]
    fn who_waits_sleeps() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = child.id() as i32;
        let asleep = (0..6_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            activity(own).starts_with("sleeping")
        });
        child.kill().unwrap();
        let unreaped = (0..6_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            activity(own) == "ended"
        });
        child.wait().unwrap();
        assert!(asleep && unreaped);
    }
}
