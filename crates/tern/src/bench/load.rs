//! Whether something else used the machine during a run: what the kernel counted as busy less what
//! the run itself has used. Figures measured beside other work are kept apart.

use std::time::Instant;

/// Ticks of `/proc/stat` and `/proc/self/stat` in a second; the kernel's interface fixes it.
const TICKS_PER_SECOND: f64 = 100.0;
/// The counters are sampled, so a little is always unexplained.
const ALLOWED_S: f64 = 0.03;
/// And in long runs daemons and interrupts use their share of every core.
const ALLOWED_SHARE: f64 = 0.02;

/// The counters at one moment.
pub struct Snapshot {
    busy_ticks: u64,
    own_ticks: u64,
    at: Instant,
}

impl Snapshot {
    /// The counters now; nothing if the system does not tell.
    pub fn take() -> Option<Snapshot> {
        let all = std::fs::read_to_string("/proc/stat").ok()?;
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        Some(Snapshot { busy_ticks: busy_ticks(&all)?, own_ticks: own_ticks(&own)?, at: Instant::now() })
    }

    /// Whether more has been used since than by this process and the children it has waited for.
    pub fn was_disturbed(&self) -> bool {
        let Some(now) = Snapshot::take() else { return false };
        let busy = now.busy_ticks.saturating_sub(self.busy_ticks);
        let own = now.own_ticks.saturating_sub(self.own_ticks);
        let others_s = busy.saturating_sub(own) as f64 / TICKS_PER_SECOND;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get()) as f64;
        others_s > ALLOWED_S + ALLOWED_SHARE * cores * (now.at - self.at).as_secs_f64()
    }
}

/// Everything but idle and waiting for disks, over all cores; time stolen by the host counts.
fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guests are contained in user and nice.
    (ticks.len() >= 8).then(|| ticks[..3].iter().chain(&ticks[5..8]).sum())
}

/// User and system time of this process and of the children it has waited for.
fn own_ticks(stat: &str) -> Option<u64> {
    // The second field, the command in parentheses, may itself hold blanks and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks: Vec<u64> =
        rest.split_whitespace().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_kernel_are_read() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 1000 8 16 32 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n"), Some(63));
        assert_eq!(busy_ticks("cpu 1 2\n"), None);
        let line = "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 100 200 300 400 20 0\n";
        assert_eq!(own_ticks(line), Some(1000));
        assert_eq!(own_ticks("nothing"), None);
        assert!(Snapshot::take().is_some());
    }
}
