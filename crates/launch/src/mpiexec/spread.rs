//! More processes for a job on several hosts: where each goes, and the agents that start them. The processes are numbered
//! when the request comes, and it is answered when every host has said what became of it; requests that come
//! meanwhile wait.
use super::hosts::is_here;
use super::job::{Job, Rank, Reach};
use super::message::Order;
use super::task;
use crate::pmi::spawn::{Program, Request};
use crate::sys::process::Ended;
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, ToSocketAddrs};
use std::ops::Range;

/// How processes count that could not be started, or were ended because others could not: nobody misses them.
const NEVER_RUN: Ended = Ended::Signal(libc::SIGKILL, false);

/// The requests of a job on several hosts.
#[derive(Default)]
pub(super) struct Spreading {
    current: Option<Spread>,
    waiting: VecDeque<(usize, Request)>,
}

/// A request whose processes are being started.
struct Spread {
    /// Who has asked.
    by: usize,
    /// The processes.
    all: Range<usize>,
    /// The hosts that have not answered yet.
    unheard: BTreeSet<usize>,
    /// Those whose processes run.
    begun: Vec<usize>,
    failed: Option<String>,
}

impl Job {
    /// Takes a request up, or keeps it until those before it are through.
    pub(super) fn spread(&mut self, by: usize, request: Request) {
        self.spreading.waiting.push_back((by, request));
        self.next_spread();
    }

    fn next_spread(&mut self) {
        while self.spreading.current.is_none() {
            let Some((by, request)) = self.spreading.waiting.pop_front() else { return };
            if let Err(why) = self.begin_spread(by, request) {
                self.answer_spawn(by, Err(why));
            }
        }
    }

    fn begin_spread(&mut self, by: usize, request: Request) -> Result<(), String> {
        let count = self.check_spawn(&request)?;
        let plan = self.plan_for(&request)?;
        let hosts = self.place_more(&request.programs)?;
        let numbers: Vec<usize> =
            plan.segments.iter().enumerate().flat_map(|(i, s)| vec![i; s.count]).collect();
        let first = self.ranks.len();
        for (at, (number, host)) in numbers.iter().zip(&hosts).enumerate() {
            let program = plan.segments[*number].program.to_string_lossy().into_owned();
            self.ranks.push(Rank::new(program, *host, plan.streams(first + at)));
        }
        self.add_server(first, &numbers, &hosts, request.pairs);
        let concerned: BTreeSet<usize> = hosts.iter().copied().collect();
        let mut spread = Spread {
            by,
            all: first..first + count,
            unheard: BTreeSet::new(),
            begun: Vec::new(),
            failed: None,
        };
        for host in concerned {
            let here = (0..count).filter(|at| hosts[*at] == host);
            let ranks: Vec<(usize, usize)> = here.map(|at| (first + at, numbers[at])).collect();
            let task = task::encode(&plan, &self.kvsname, [first, count], &ranks);
            let Reach::Hosts(agents) = &mut self.reach else { unreachable!("the job has several hosts") };
            match agents.order_start(host, &Order::Start { first, task }, &self.epoll) {
                Ok(()) => drop(spread.unheard.insert(host)),
                Err(why) => {
                    spread.failed = Some(why);
                    break;
                }
            }
        }
        self.spreading.current = Some(spread);
        self.conclude_spread();
        Ok(())
    }

    /// A host has said what became of its processes, or will not say it any more.
    pub(super) fn on_begun(&mut self, host: usize, first: usize, result: Result<(), String>) {
        if result.is_err() {
            let theirs = self.ranks.iter_mut().skip(first).filter(|rank| rank.host == host);
            theirs.for_each(|rank| rank.ended = Some(NEVER_RUN));
        }
        let result = result.map_err(|why| format!("host {}: {why}", self.host_name(host)));
        let Some(spread) = self.spreading.current.as_mut().filter(|spread| spread.all.start == first) else {
            return;
        };
        if !spread.unheard.remove(&host) {
            return;
        }
        match result {
            Ok(()) => spread.begun.push(host),
            Err(why) => drop(spread.failed.get_or_insert(why)),
        }
        self.conclude_spread();
    }

    /// Whether a host is lost to the request only, for its agent had not come yet; then the request has failed.
    pub(super) fn is_lost_to_spread(&mut self, host: usize, why: &str) -> bool {
        let Reach::Hosts(agents) = &mut self.reach else { return false };
        if !agents.is_called(host) {
            return false;
        }
        agents.call_off(host, &self.epoll);
        if let Some(first) = self.spreading.current.as_ref().map(|spread| spread.all.start) {
            self.on_begun(host, first, Err(why.into()));
        }
        true
    }

    /// Waits no more for agents that are on their way: the job ends.
    pub(super) fn end_spread(&mut self) {
        self.spreading.waiting.clear();
        if let Some(spread) = self.spreading.current.take() {
            self.call_off(&spread.unheard);
        }
    }

    fn call_off(&mut self, hosts: &BTreeSet<usize>) {
        for host in hosts {
            let Reach::Hosts(agents) = &mut self.reach else { return };
            if agents.is_called(*host) {
                agents.call_off(*host, &self.epoll);
                self.take_for_ended(*host);
            }
        }
    }

    /// Answers the request when nothing more is to be heard of it.
    fn conclude_spread(&mut self) {
        let Some(spread) = &mut self.spreading.current else { return };
        if spread.failed.is_some() {
            // Who has not come yet is not waited for.
            let unheard = std::mem::take(&mut spread.unheard);
            self.call_off(&unheard);
            let Reach::Hosts(agents) = &self.reach else { return };
            let left = unheard.into_iter().filter(|host| agents.is_running(*host)).collect();
            let Some(spread) = &mut self.spreading.current else { return };
            spread.unheard = left;
        }
        let Some(spread) = self.spreading.current.take_if(|spread| spread.unheard.is_empty()) else { return };
        let result = match spread.failed {
            None => Ok(spread.all.len()),
            Some(why) => {
                self.undo_spread(&spread.all, &spread.begun);
                Err(why)
            }
        };
        self.answer_spawn(spread.by, result);
        self.next_spread();
    }

    /// Gets rid of what runs of a job that could not be started as a whole.
    fn undo_spread(&mut self, all: &Range<usize>, begun: &[usize]) {
        if begun.is_empty() {
            // Nothing was and will be heard of them.
            self.ranks.truncate(all.start);
            self.drop_server(all.start);
            return;
        }
        let Reach::Hosts(agents) = &mut self.reach else { return };
        begun.iter().for_each(|host| agents.order(*host, &Order::Forget { first: all.start }));
        for rank in all.clone() {
            (0..2).for_each(|which| self.on_output(rank, which, &[]));
            self.ranks[rank].silent = true;
            self.ranks[rank].ended = Some(NEVER_RUN);
            self.on_silence(rank);
        }
    }

    fn host_name(&self, host: usize) -> String {
        match &self.reach {
            Reach::Hosts(agents) => agents.name(host).into(),
            Reach::Here(_) => String::new(),
        }
    }

    /// The host of each process: of those that the program names, else of all.
    fn place_more(&self, programs: &[Program]) -> Result<Vec<usize>, String> {
        let Reach::Hosts(agents) = &self.reach else { unreachable!("the job has several hosts") };
        let names: Vec<&str> = (0..agents.count()).map(|host| agents.name(host)).collect();
        let mut used = vec![0; names.len()];
        self.ranks.iter().filter(|rank| rank.ended.is_none()).for_each(|rank| used[rank.host] += 1);
        let mut placed = Vec::new();
        for program in programs {
            let hosts = match program.info.iter().find(|(key, _)| key == "host") {
                None => (0..names.len()).collect(),
                Some((_, value)) => named(&String::from_utf8_lossy(value), &names)?,
            };
            let slots: Vec<(usize, usize)> =
                hosts.into_iter().map(|host| (host, agents.slots(host).unwrap_or(1))).collect();
            place(&slots, program.count, &mut used, &mut placed);
        }
        Ok(placed)
    }
}

/// The hosts of the job that the info key `host` lists, by name or address.
fn named(list: &str, names: &[&str]) -> Result<Vec<usize>, String> {
    let addresses = |name: &str| -> Vec<IpAddr> {
        (name, 0).to_socket_addrs().map(|all| all.map(|one| one.ip()).collect()).unwrap_or_default()
    };
    let mut found = Vec::new();
    for name in list.split(',').map(str::trim) {
        let same = |known: &&str| {
            let theirs = addresses(known);
            is_here(name) && is_here(known) || addresses(name).iter().any(|one| theirs.contains(one))
        };
        let host = names.iter().position(|known| *known == name).or_else(|| names.iter().position(same));
        match host {
            Some(host) if found.contains(&host) => {}
            Some(host) => found.push(host),
            None => {
                let all = names.join(", ");
                return Err(format!(
                    "info key `host`: {name} is none of the hosts of this job, which are {all}"
                ));
            }
        }
    }
    Ok(found)
}

/// Places processes: first where there is room, what is left evenly; those of one host one behind the other.
fn place(slots: &[(usize, usize)], count: usize, used: &mut [usize], placed: &mut Vec<usize>) {
    let mut left = count;
    let mut taken: Vec<usize> = Vec::with_capacity(slots.len());
    for (host, slots) in slots {
        let room = slots.saturating_sub(used[*host]).min(left);
        taken.push(room);
        left -= room;
    }
    for (at, ((host, _), taken)) in slots.iter().zip(&taken).enumerate() {
        let share = left / slots.len() + usize::from(at < left % slots.len());
        used[*host] += taken + share;
        placed.extend(std::iter::repeat_n(*host, taken + share));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_go_where_there_is_room() {
        for (slots, used, count, expected) in [
            (&[(0, 2), (1, 2)][..], [2, 0], 2, &[1, 1][..]),
            (&[(0, 2), (1, 2)], [1, 0], 3, &[0, 1, 1]),
            (&[(0, 2), (1, 2)], [2, 2], 3, &[0, 0, 1]),
            (&[(1, 2)], [0, 2], 2, &[1, 1]),
            (&[(1, 1), (0, 1)], [0, 0], 4, &[1, 1, 0, 0]),
        ] {
            let (mut used, mut placed) = (used.to_vec(), Vec::new());
            let before: usize = used.iter().sum();
            place(slots, count, &mut used, &mut placed);
            assert_eq!(placed, expected);
            assert_eq!(used.iter().sum::<usize>(), before + count);
        }
    }

    #[test]
    fn hosts_are_known_by_name_and_by_address() {
        let names = ["127.0.0.1", "10.0.0.2", "b"];
        assert_eq!(named("b", &names), Ok(vec![2]));
        assert_eq!(named("10.0.0.2, localhost,b,b", &names), Ok(vec![1, 0, 2]));
        let why = named("b,elsewhere.invalid", &names).unwrap_err();
        assert!(why.contains("elsewhere.invalid") && why.contains("127.0.0.1, 10.0.0.2, b"), "{why}");
    }
}
