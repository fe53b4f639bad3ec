//! Which cores a rank may run on.
//!
//! The default shares the cores out evenly and in order: with as many ranks as cores each has one
//! to itself, which keeps its caches warm and its memory near; with fewer, a rank has several, so
//! that its threads (OpenMP, Python, BLAS) have room and a second job on the same host does not
//! land on the same core as the first. With more ranks than CPUs any fixed share is wrong as soon
//! as ranks wait for different times, so nothing is bound and the scheduler balances.
use super::arguments::{Bind, Map};
use std::fs;

/// A CPU that the job may use, and where it is. Where the kernel does not tell (some containers hide it)
/// each CPU is a core, and all are in one socket and NUMA node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cpu {
    package: usize,
    numa: usize,
    core: usize,
    id: usize,
}

/// Looks where the CPUs of this host are; near ones come next to each other.
pub fn machine(allowed: &[usize]) -> Vec<Cpu> {
    let mut cpus: Vec<Cpu> = allowed.iter().map(|id| place(*id)).collect();
    cpus.sort_unstable_by_key(|cpu| (cpu.package, cpu.numa, cpu.core, cpu.id));
    cpus
}

/// The CPUs of each of `ranks` ranks, an empty list for «all», given those of the job.
pub fn shares(bind: Bind, map: Map, ranks: usize, cpus: &[Cpu]) -> Vec<Vec<usize>> {
    let cores = groups(cpus, |cpu| (cpu.package, cpu.core));
    let places = match bind {
        // A single rank has all there is: to bind it to that says nothing.
        Bind::Auto if ranks == 1 || ranks > cpus.len() => Vec::new(),
        Bind::Auto if ranks <= cores.len() => split(&cores, ranks).map(<[_]>::concat).collect(),
        Bind::Auto => split(cpus, ranks).map(<[_]>::to_vec).collect(),
        Bind::None => Vec::new(),
        Bind::Core => cores,
        Bind::Thread => groups(cpus, |cpu| cpu.id),
        Bind::Cpu => {
            let mut ordered = groups(cpus, |cpu| cpu.id);
            ordered.sort_unstable_by_key(|place| place[0].id);
            ordered
        }
        Bind::Package => groups(cpus, |cpu| cpu.package),
        Bind::Numa => groups(cpus, |cpu| (cpu.package, cpu.numa)),
    };
    if places.is_empty() {
        return vec![Vec::new(); ranks];
    }
    let places = match map {
        Map::InOrder => places,
        Map::Package => in_turn(places, |cpu| (cpu.package, 0)),
        Map::Numa => in_turn(places, |cpu| (cpu.package, cpu.numa)),
    };
    (0..ranks).map(|rank| places[rank % places.len()].iter().map(|cpu| cpu.id).collect()).collect()
}

/// Runs of CPUs that have a key in common.
fn groups<K: PartialEq>(cpus: &[Cpu], key: impl Fn(&Cpu) -> K) -> Vec<Vec<Cpu>> {
    cpus.chunk_by(|a, b| key(a) == key(b)).map(<[_]>::to_vec).collect()
}

/// `parts` runs of nearly equal length.
fn split<T>(items: &[T], parts: usize) -> impl Iterator<Item = &[T]> {
    (0..parts).map(move |i| &items[i * items.len() / parts..(i + 1) * items.len() / parts])
}

/// The same places, one of each domain in turn; a place belongs where its first CPU is.
fn in_turn(places: Vec<Vec<Cpu>>, domain: impl Fn(&Cpu) -> (usize, usize)) -> Vec<Vec<Cpu>> {
    let mut domains: Vec<_> =
        places.chunk_by(|a, b| domain(&a[0]) == domain(&b[0])).map(|run| run.iter()).collect();
    let mut ordered = Vec::with_capacity(places.len());
    while ordered.len() < places.len() {
        ordered.extend(domains.iter_mut().filter_map(Iterator::next).cloned());
    }
    ordered
}

fn place(id: usize) -> Cpu {
    let directory = format!("/sys/devices/system/cpu/cpu{id}");
    let read = |name: &str| {
        fs::read_to_string(format!("{directory}/topology/{name}")).ok()?.trim().parse::<usize>().ok()
    };
    let node = || {
        let mut entries = fs::read_dir(&directory).ok()?.flatten();
        entries.find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
    };
    match (read("physical_package_id"), read("core_id")) {
        (Some(package), Some(core)) => Cpu { package, numa: node().unwrap_or(0), core, id },
        _ => Cpu { package: 0, numa: 0, core: id, id },
    }
}

/// CPUs as a person writes them: `0-3,8`.
pub fn listed(cpus: &[usize]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    let runs = sorted.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<String>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of two cores with two threads each.
    fn machine() -> Vec<Cpu> {
        let cpu = |id: usize| Cpu { package: id % 4 / 2, numa: id % 4 / 2, core: id % 2, id };
        [0, 4, 1, 5, 2, 6, 3, 7].map(cpu).to_vec()
    }

    fn shares(bind: Bind, ranks: usize, cpus: &[Cpu]) -> Vec<Vec<usize>> {
        super::shares(bind, Map::InOrder, ranks, cpus)
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

    #[test]
    fn threads_sockets_and_nodes() {
        assert_eq!(shares(Bind::Thread, 3, &machine()), [[0], [4], [1]]);
        assert_eq!(shares(Bind::Cpu, 3, &machine()), [[0], [1], [2]]);
        for bind in [Bind::Package, Bind::Numa] {
            assert_eq!(shares(bind, 3, &machine()), [[0, 4, 1, 5], [2, 6, 3, 7], [0, 4, 1, 5]]);
        }
    }

    #[test]
    fn ranks_are_dealt_out_to_sockets() {
        for map in [Map::Package, Map::Numa] {
            let dealt = super::shares(Bind::Core, map, 4, &machine());
            assert_eq!(dealt, [[0, 4], [2, 6], [1, 5], [3, 7]]);
        }
    }

    #[test]
    fn lists_are_short() {
        assert_eq!(listed(&[8, 0, 2, 1, 3]), "0-3,8");
        assert_eq!(listed(&[]), "");
    }
}
