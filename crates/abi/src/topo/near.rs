//! Which processes of a host share a cache, for topologies whose nodes the library may deal out.

use std::fs;

/// Stands for processes of which nothing is known: they may run where they like, or the kernel does not tell.
pub const UNKNOWN: u64 = u64::MAX;

/// A number that processes of this host have in common if all CPUs they may run on share one cache of the last level.
pub fn cache() -> u64 {
    let known = || {
        let cpus = launch::sys::process::allowed_cpus().ok()?;
        let shared = last_level(*cpus.first()?)?;
        let lowest = shared.first()?.0;
        let is_shared = |cpu: &usize| shared.iter().any(|(first, last)| (first..=last).contains(&cpu));
        cpus.iter().all(is_shared).then_some(lowest as u64)
    };
    known().unwrap_or(UNKNOWN)
}

/// The CPUs that share the last cache of this one, in runs.
fn last_level(cpu: usize) -> Option<Vec<(usize, usize)>> {
    let read = |index: usize, name: &str| {
        fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}")).ok()
    };
    let level = |index| Some((read(index, "level")?.trim().parse::<u32>().ok()?, index));
    let (_, last) = (0..).map_while(level).max()?;
    runs(read(last, "shared_cpu_list")?.trim())
}

/// A list of CPUs as the kernel writes it: `0-3,8`.
fn runs(list: &str) -> Option<Vec<(usize, usize)>> {
    let run = |run: &str| {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    list.split(',').map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_and_nonsense_is_not() {
        assert_eq!(runs("0-3,8"), Some(vec![(0, 3), (8, 8)]));
        assert_eq!(runs("5"), Some(vec![(5, 5)]));
        assert_eq!(runs(""), None);
        assert_eq!(runs("0-,3"), None);
    }

    #[test]
    fn who_is_bound_to_one_cpu_is_in_the_cache_of_that_cpu() {
        // Whatever this machine has: a process that may run on all CPUs of a cache has its number, or none is known.
        let first = launch::sys::process::allowed_cpus().unwrap()[0];
        if let Some(shared) = last_level(first) {
            assert!(shared.iter().any(|(from, to)| (from..=to).contains(&&first)), "{shared:?}");
            assert!(cache() == UNKNOWN || cache() == shared[0].0 as u64);
        }
    }
}
