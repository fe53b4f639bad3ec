//! Which rank runs on which host, and how it gets there.
use super::arguments::Plan;
use super::hosts::{Host, is_here};
use std::net::IpAddr;
use std::time::Duration;

/// How agents are started on other hosts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Launcher {
    /// `ssh HOST`, without questions.
    #[default]
    Ssh,
    /// A step of one task on the host, in a job of Slurm.
    Srun,
    /// These words, which the host and the command follow.
    Command(Vec<String>),
}

/// How ranks are numbered when all have their hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ranking {
    /// As they were placed.
    #[default]
    Placed,
    /// Host by host, and on each as they were placed.
    Slots,
    /// Host by host, and on each by the order of its cores.
    Cores,
    /// In turn over the hosts.
    Nodes,
}

/// What the command line says about reaching hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reaching {
    /// How agents are started.
    pub launcher: Launcher,
    /// `mpiexec` on the other hosts, if it is not where it is here.
    pub path: Option<String>,
    /// The interface that agents connect to.
    pub interface: Option<String>,
    /// The address that agents connect to.
    pub address: Option<IpAddr>,
    /// How long agents may take to come.
    pub patience: Duration,
}

impl Default for Reaching {
    fn default() -> Reaching {
        let (launcher, path, interface, address) = Default::default();
        Reaching { launcher, path, interface, address, patience: Duration::from_secs(30) }
    }
}

/// The hosts of a job of several.
#[derive(Debug)]
pub struct Network {
    /// The names of all hosts.
    pub names: Vec<String>,
    /// The hosts of each program.
    lists: Vec<Vec<Slots>>,
    /// How they are reached.
    pub reaching: Reaching,
}

/// What a program finds on a host.
#[derive(Debug)]
struct Slots {
    host: usize,
    count: Option<usize>,
}

/// How many ranks run a program where only the hosts say so.
pub(super) fn ranks(hosts: &[Host], per_host: Option<usize>) -> usize {
    hosts.iter().map(|host| per_host.or(host.slots).unwrap_or(1)).fold(0, usize::saturating_add)
}

impl Network {
    /// The hosts of a job; `None` if all its ranks are children of this process.
    pub(super) fn of(plan: &Plan) -> Option<Network> {
        let mut all = plan.segments.iter().flat_map(|segment| &segment.hosts);
        // Whoever gives a command wants it to be used.
        let commanded =
            matches!(plan.reaching.launcher, Launcher::Command(_)) && all.clone().next().is_some();
        if !commanded && all.all(|host| is_here(&host.name)) {
            return None;
        }
        let mut names: Vec<String> = Vec::new();
        let mut number = |name: &str| match names.iter().position(|known| known == name) {
            Some(number) => number,
            None => {
                names.push(name.into());
                names.len() - 1
            }
        };
        let mut lists = Vec::new();
        for segment in &plan.segments {
            let here = [Host { name: "localhost".into(), slots: None }];
            let hosts = if segment.hosts.is_empty() { &here[..] } else { &segment.hosts };
            let slots =
                |host: &Host| Slots { host: number(&host.name), count: segment.per_host.or(host.slots) };
            lists.push(hosts.iter().map(slots).collect());
        }
        Some(Network { names, lists, reaching: plan.reaching.clone() })
    }

    /// How many ranks a host takes, if that is said: the most that any program may have there.
    pub(super) fn slots(&self, host: usize) -> Option<usize> {
        let all = self.lists.iter().flatten().filter(|slots| slots.host == host);
        all.filter_map(|slots| slots.count).max()
    }

    /// The host of each rank.
    pub fn place(&self, plan: &Plan) -> Vec<usize> {
        let mut used = vec![0; self.names.len()];
        let mut hosts = Vec::with_capacity(plan.ranks());
        for (segment, list) in plan.segments.iter().zip(&self.lists) {
            let begin = hosts.len();
            place(list, segment.count, plan.cyclic, &mut used, &mut hosts);
            number(&mut hosts[begin..], self.names.len(), plan.ranking);
        }
        hosts
    }
}

/// Places the ranks of one program: as many on each host as it takes, and when all are full as many again. Where no
/// host says how many it takes, all take the same number.
fn place(list: &[Slots], count: usize, cyclic: bool, used: &mut [usize], placed: &mut Vec<usize>) {
    let even = list.iter().all(|slots| slots.count.is_none());
    let share = |i: usize| count / list.len() + usize::from(i < count % list.len());
    // A program that comes later finds the places of hosts taken that those before it have got.
    let before: Vec<usize> = if even { used.to_vec() } else { vec![0; used.len()] };
    let mut left = count;
    let mut rounds = 1;
    while left > 0 {
        let mut full = true;
        for (i, slots) in list.iter().enumerate() {
            let most = if even { share(i) } else { slots.count.unwrap_or(1) };
            let free = (before[slots.host] + most * rounds).saturating_sub(used[slots.host]);
            let taken = free.min(left).min(if cyclic { 1 } else { usize::MAX });
            placed.extend(std::iter::repeat_n(slots.host, taken));
            used[slots.host] += taken;
            left -= taken;
            full &= taken == 0 || !cyclic;
        }
        rounds += usize::from(full);
    }
}

/// Numbers the ranks of one program, whose hosts stand in `placed`: each host keeps as many as it has.
fn number(placed: &mut [usize], hosts: usize, ranking: Ranking) {
    if ranking == Ranking::Placed {
        return;
    }
    let (mut first, mut seen) = (vec![usize::MAX; hosts], vec![0; hosts]);
    let mut ranks: Vec<(usize, usize, usize)> = Vec::with_capacity(placed.len());
    for (at, host) in placed.iter().copied().enumerate() {
        first[host] = first[host].min(at);
        let round = if ranking == Ranking::Nodes { seen[host] } else { 0 };
        seen[host] += 1;
        ranks.push((round, first[host], host));
    }
    ranks.sort_unstable();
    placed.iter_mut().zip(ranks).for_each(|(place, (_, _, host))| *place = host);
}

#[cfg(test)]
mod tests {
    use super::super::arguments::{self, Request};
    use std::ffi::OsString;

    fn placed(line: &str) -> String {
        let words = line.split_whitespace().map(OsString::from).collect();
        let Ok(Request::Run(plan)) = arguments::parse(words) else { panic!("{line}") };
        let network = plan.network.as_ref().expect("there are several hosts");
        let hosts = network.place(&plan);
        assert_eq!(hosts.len(), plan.ranks());
        hosts.iter().map(|host| network.names[*host].as_str()).collect()
    }

    #[test]
    fn by_block_in_turn_and_by_number() {
        for (line, expected) in [
            ("-hosts a,b p", "ab"),
            ("-hosts a:2,b:2 p", "aabb"),
            ("-hosts a:2,b:2 -n 3 p", "aab"),
            ("-hosts a:2,b:1 -n 7 p", "aabaaba"),
            ("-hosts a,b -n 4 p", "aabb"),
            ("-hosts a,b,c -n 5 p", "aabbc"),
            ("-hosts a,b -n 1 p", "a"),
            ("-hosts a,b -ppn 2 p", "aabb"),
            ("-hosts a:8,b:8 -ppn 1 -n 4 p", "abab"),
            ("-hosts a:0,b:2 p", "bb"),
            ("-hosts a:2,b:2 --map-by node p", "abab"),
            ("-hosts a:1,b:3 -rr p", "abbb"),
            ("-hosts a:3,b:1 -rr -n 6 p", "abaaab"),
            ("-hosts a,b -n 5 --map-by node p", "ababa"),
            ("-hosts a:2,b:2 --map-by block p", "aabb"),
            ("-hosts a,b -pernode p", "ab"),
            ("-hosts a,b --map-by ppr:2:node p", "aabb"),
            ("-hosts a:2,b:2 -n 1 p : -n 3 q", "aabb"),
            ("-host a -n 2 p : -host b -n 2 q", "aabb"),
            ("-n 1 p : -host b -n 2 q", "localhostbb"),
            ("-hosts a,b -n 2 p : -n 2 q", "abab"),
            ("-np 2 -H a:1,a:1,b p", "aa"),
            ("-hosts a:2,b:2 --rank-by node p", "abab"),
            ("-hosts a:3,b:3 -n 4 --rank-by node p", "abaa"),
            ("-hosts a,b -n 3 --rank-by=NODE p", "aba"),
            ("-hosts a:1,b:3,c:2 --rank-by node --map-by socket p", "abcbcb"),
            ("-hosts a:2,b:2 --map-by node --rank-by slot p", "aabb"),
            ("-hosts a:3,b:3 -n 3 --map-by node --rank-by core p", "aab"),
            ("-hosts b:2,a:2 --rank-by slot p", "bbaa"),
            ("-hosts a:2,b:2 --rank-by fill p", "aabb"),
            ("-hosts a:2,b:2 -n 1 --rank-by node p : -n 3 q", "aabb"),
        ] {
            assert_eq!(placed(line), expected, "{line}");
        }
    }
}
