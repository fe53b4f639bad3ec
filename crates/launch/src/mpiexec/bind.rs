//! Which cores a rank may run on.
//!
//! The default shares the cores out evenly and in order: with as many ranks as cores each has one
//! to itself, which keeps its caches warm and its memory near; with fewer, a rank has several, so
//! that its threads (OpenMP, Python, BLAS) have room and a second job on the same host does not
//! land on the same core as the first. With more ranks than CPUs any fixed share is wrong as soon
//! as ranks wait for different times, so nothing is bound and the scheduler balances.
use super::arguments::Bind;
use std::fs;

/// The CPUs of each of `ranks` ranks, an empty list for «all», given the CPUs that this process
/// may use, grouped by core.
pub fn shares(bind: Bind, ranks: usize, cores: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let cpus: usize = cores.iter().map(Vec::len).sum();
    match bind {
        _ if cpus == 0 => vec![Vec::new(); ranks],
        Bind::None => vec![Vec::new(); ranks],
        Bind::Core => (0..ranks).map(|rank| cores[rank % cores.len()].clone()).collect(),
        Bind::Auto if ranks > cpus => vec![Vec::new(); ranks],
        // A single rank has all there is: to bind it to that says nothing.
        Bind::Auto if ranks == 1 => vec![Vec::new()],
        Bind::Auto if ranks <= cores.len() => {
            split(cores, ranks).map(|share| share.iter().flatten().copied().collect()).collect()
        }
        Bind::Auto => {
            let flat: Vec<usize> = cores.iter().flatten().copied().collect();
            split(&flat, ranks).map(<[usize]>::to_vec).collect()
        }
    }
}

/// `parts` runs of nearly equal length.
fn split<T>(items: &[T], parts: usize) -> impl Iterator<Item = &[T]> {
    (0..parts).map(move |i| &items[i * items.len() / parts..(i + 1) * items.len() / parts])
}

/// Groups CPUs by the core that they are threads of, near ones next to each other. A kernel that
/// does not tell (some containers hide it) makes each CPU a core.
pub fn cores(allowed: &[usize]) -> Vec<Vec<usize>> {
    let mut placed: Vec<((usize, usize), usize)> = allowed.iter().map(|cpu| (place(*cpu), *cpu)).collect();
    placed.sort_unstable();
    placed.chunk_by(|a, b| a.0 == b.0).map(|core| core.iter().map(|(_, cpu)| *cpu).collect()).collect()
}

/// Package and core of a CPU.
fn place(cpu: usize) -> (usize, usize) {
    let read = |name: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
        fs::read_to_string(path).ok()?.trim().parse::<usize>().ok()
    };
    match (read("physical_package_id"), read("core_id")) {
        (Some(package), Some(core)) => (package, core),
        _ => (0, cpu),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Vec<usize>> {
        vec![vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]]
    }

    #[test]
    fn auto_shares_cores_then_cpus_then_nothing() {
        assert_eq!(shares(Bind::Auto, 2, &machine()), [[0, 4, 1, 5], [2, 6, 3, 7]]);
        assert_eq!(shares(Bind::Auto, 4, &machine())[3], [3, 7]);
        let eight = shares(Bind::Auto, 8, &machine());
        assert!(eight.iter().all(|share| share.len() == 1));
        assert_eq!(shares(Bind::Auto, 9, &machine()), vec![Vec::<usize>::new(); 9]);
        assert_eq!(shares(Bind::Auto, 1, &machine()), [[0usize; 0]]);
    }

    #[test]
    fn shares_cover_every_cpu_once() {
        for ranks in 2..=8 {
            let mut all: Vec<usize> = shares(Bind::Auto, ranks, &machine()).concat();
            all.sort_unstable();
            assert_eq!(all, (0..8).collect::<Vec<_>>(), "{ranks} ranks");
        }
    }

    #[test]
    fn core_wraps_around_and_none_is_none() {
        assert_eq!(shares(Bind::Core, 5, &machine())[4], [0, 4]);
        assert_eq!(shares(Bind::None, 2, &machine()), [[0usize; 0], []]);
        assert_eq!(shares(Bind::Core, 2, &[]), [[0usize; 0], []]);
    }
}
