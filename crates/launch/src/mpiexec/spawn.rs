//! More processes, which ranks have asked for: each request becomes a job of its own beside those that run, with a
//! key-value space of its own. The launcher numbers all processes on; what becomes of one of them concerns all, for
//! they are connected.
use super::arguments::{Bind, Inherit, Plan, Reader, Segment};
use super::job::{Job, Rank, Reach};
use super::message::Order;
use super::start::{self, Input};
use super::task::Task;
use crate::address::{host_name, is_this_host};
use crate::asked;
use crate::pmi::server::{Action, Server, Stage, spawned};
use crate::pmi::spawn::{Program, Request};
use crate::program::Words;
use crate::report::Pending;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::rc::Rc;

/// Most processes of all jobs of a launcher.
const PROCESSES_MAX: usize = 16384;

/// The key-value spaces of all jobs: each with the number of its first process.
pub(super) struct Servers(Vec<(usize, Server)>);

impl Servers {
    pub(super) fn new(first: Server) -> Servers {
        Servers(vec![(0, first)])
    }

    /// The job of a process.
    pub(super) fn job_of(&self, rank: usize) -> usize {
        self.0.partition_point(|(first, _)| *first <= rank) - 1
    }

    /// What numbers mean that a process says; `count` is the number of all.
    pub(super) fn numbers(&self, rank: usize, count: usize) -> Numbers {
        let job = self.job_of(rank);
        let end = self.0.get(job + 1).map_or(count, |(first, _)| *first);
        Numbers { job, all: self.0[job].0..end, is_only: self.0.len() == 1 }
    }

    /// How many jobs there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// How far a process has come.
    pub(super) fn stage(&self, rank: usize) -> Stage {
        let (first, server) = &self.0[self.job_of(rank)];
        server.stage(rank - first)
    }

    /// Whether processes of the job of this one wait in a barrier.
    pub(super) fn has_barrier(&self, rank: usize) -> bool {
        self.0[self.job_of(rank)].1.in_barrier() > 0
    }

    /// Handles a line of a process; what follows is said of processes as they are numbered here.
    pub(super) fn on_line(&mut self, rank: usize, line: &[u8]) -> Result<Vec<Action>, String> {
        let job = self.job_of(rank);
        let (first, server) = &mut self.0[job];
        let numbered = |action| match action {
            Action::Send(to, line) => Action::Send(to + *first, line),
            Action::Spawn(by, request) => Action::Spawn(by + *first, request),
            other => other,
        };
        Ok(server.on_line(rank - *first, line)?.into_iter().map(numbered).collect())
    }
}

/// What numbers that a process says mean here, where there are several jobs.
pub(super) struct Numbers {
    job: usize,
    /// Of the job's processes here.
    all: std::ops::Range<usize>,
    is_only: bool,
}

/// The bit of contexts that are of several jobs (`mpi::World::new_context`).
const MIXED: u64 = 1 << 61;
/// Above the bits of contexts of a job.
const JOB_SHIFT: u32 = 58;

impl Numbers {
    /// Contexts of different jobs are different ones.
    pub(super) fn of_context(&self, context: u64) -> u64 {
        if context & MIXED != 0 || self.job > 7 { context } else { context | (self.job as u64) << JOB_SHIFT }
    }

    /// Of whom the process waits for only those are known that are of its job.
    pub(super) fn of_pending(&self, mut pending: Pending) -> Pending {
        if self.is_only {
            return pending;
        }
        let here = |rank: usize| (rank < self.all.len()).then_some(self.all.start + rank);
        let own = here(pending.rank).unwrap_or(self.all.start);
        let members = match pending.members.take() {
            _ if pending.context & MIXED != 0 => vec![own],
            Some(members) => members.into_iter().filter_map(here).collect(),
            None => self.all.clone().collect(),
        };
        Pending {
            rank: own,
            world_peer: pending.world_peer.and_then(here),
            members: Some(members),
            context: self.of_context(pending.context),
            ..pending
        }
    }
}

impl Job {
    /// Starts what a rank has asked for, all or nothing, and answers it.
    pub(super) fn spawn(&mut self, by: usize, request: Request) {
        match &self.reach {
            Reach::Hosts(_) => self.spread(by, request),
            Reach::Here(_) => {
                let result = self.start_more(request);
                self.answer_spawn(by, result);
            }
        }
    }

    /// Tells a rank what has become of its request.
    pub(super) fn answer_spawn(&mut self, by: usize, result: Result<usize, String>) {
        self.order(by, Order::Pmi { rank: by, line: spawned(result) });
    }

    /// How many processes are asked for, if they can be started now.
    pub(super) fn check_spawn(&self, request: &Request) -> Result<usize, String> {
        if self.kill_at.is_some() || self.verdict.is_some() {
            return Err("the job is ending".into());
        }
        let first = self.ranks.len();
        let count = request.programs.iter().map(|program| program.count).fold(0, usize::saturating_add);
        if count > PROCESSES_MAX - first.min(PROCESSES_MAX) {
            return Err(format!("{count} processes beside {first} are more than {PROCESSES_MAX}"));
        }
        Ok(count)
    }

    /// The key-value space of a job that starts now, whose processes run programs of these numbers on these hosts.
    pub(super) fn add_server(
        &mut self,
        first: usize,
        numbers: &[usize],
        hosts: &[usize],
        pairs: Vec<(String, String)>,
    ) {
        let name = format!("{}.{}", self.kvsname, self.servers.count());
        let server = Server::new(name, numbers, self.universe).on_hosts(hosts).with(pairs);
        self.servers.0.push((first, server));
    }

    /// Forgets the last of them, none of whose processes has run.
    pub(super) fn drop_server(&mut self, first: usize) {
        let last = self.servers.0.pop_if(|(of, _)| *of == first);
        debug_assert!(last.is_some(), "it is the last one");
    }

    fn start_more(&mut self, request: Request) -> Result<usize, String> {
        let count = self.check_spawn(&request)?;
        for (_, host) in request.programs.iter().flat_map(|p| &p.info).filter(|(key, _)| key == "host") {
            check_host(host)?;
        }
        let first = self.ranks.len();
        let mut plan = self.plan_for(&request)?;
        start::locate(&mut plan, &Words::HINTS).map_err(|refusal| refusal.text)?;
        let numbers: Vec<usize> =
            plan.segments.iter().enumerate().flat_map(|(i, s)| vec![i; s.count]).collect();
        let task = Task {
            plan: Rc::new(plan),
            size: count,
            first,
            ranks: numbers.iter().enumerate().map(|(at, program)| (first + at, *program)).collect(),
            kvsname: self.kvsname.clone(),
            secret: self.secret,
            address: None,
            input: Input::Pipe,
        };
        let known = |(rank, number): &(usize, usize)| {
            let program = task.plan.segments[*number].program.to_string_lossy().into_owned();
            Rank::new(program, 0, task.plan.streams(*rank))
        };
        self.ranks.extend(task.ranks.iter().map(known));
        self.add_server(first, &numbers, &vec![0; count], request.pairs);
        let Reach::Here(hands) = &mut self.reach else { unreachable!("whoever calls this has looked") };
        match hands.start(&task, &self.epoll) {
            Ok(events) => {
                self.on_events(events);
                Ok(count)
            }
            Err(refusal) => {
                hands.forget_from(first, &self.epoll);
                self.ranks.truncate(first);
                self.drop_server(first);
                Err(refusal.text)
            }
        }
    }

    /// What the processes run: as the ranks do, but for what was asked for.
    pub(super) fn plan_for(&self, request: &Request) -> Result<Plan, String> {
        let segments = request.programs.iter().map(segment).collect::<Result<_, String>>()?;
        let plan = &self.plan;
        Ok(Plan {
            segments,
            inherited: plan.inherited.clone(),
            inherit: plan.inherit.clone(),
            environment: plan.environment.clone(),
            // The cores are those of the ranks that run.
            bind: Bind::None,
            label: plan.label,
            merge: plan.merge,
            files: plan.files.clone(),
            reader: Reader::Nobody,
            show_places: plan.show_places,
            ..Plan::default()
        })
    }
}

/// A program with the hints of MPI 5.0 section 11.8.4 that are known here.
fn segment(program: &Program) -> Result<Segment, String> {
    let mut segment = Segment {
        count: program.count,
        program: OsString::from_vec(program.command.clone()),
        arguments: program.arguments.iter().cloned().map(OsString::from_vec).collect(),
        ..Segment::default()
    };
    let mut environment = Vec::new();
    for (key, value) in &program.info {
        let word = OsString::from_vec(value.clone());
        match key.as_str() {
            "wdir" => segment.directory = Some(PathBuf::from(word)),
            "path" => segment.path = Some(word),
            // Variables, a line each, as Open MPI has it.
            "env" => {
                for line in value.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let at = line.iter().position(|byte| *byte == b'=');
                    let at = at.ok_or("info key `env` has a line without `=`")?;
                    let [name, value] =
                        [&line[..at], &line[at + 1..]].map(|part| OsString::from_vec(part.into()));
                    environment.push((name, value));
                }
            }
            _ => {
                let told = asked::variable(key, value);
                environment.extend(told.map_err(|why| format!("info key `{key}`: {why}"))?);
            }
        }
    }
    segment.environment = environment;
    segment.inherit = None::<Inherit>;
    Ok(segment)
}

/// A job on one host has no other.
fn check_host(host: &[u8]) -> Result<(), String> {
    let host = String::from_utf8_lossy(host);
    match host.split(',').map(str::trim).find(|name| !is_this_host(name)) {
        None => Ok(()),
        Some(other) => {
            let own = host_name();
            Err(format!("info key `host`: {other} is not this host, {own}, where the whole job is"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_numbered_on_and_jobs_are_told_apart() {
        let server = |size: usize| Server::new("kvs".into(), &vec![0; size], size);
        let mut servers = Servers::new(server(3));
        servers.0.push((3, server(2)));
        servers.0.push((5, server(1)));
        assert_eq!([0, 2, 3, 4, 5].map(|rank| servers.job_of(rank)), [0, 0, 1, 1, 2]);
        let actions = servers.on_line(4, b"cmd=init pmi_version=1 pmi_subversion=1").unwrap();
        assert!(matches!(&actions[..], [Action::Send(4, _)]));
        assert_eq!(
            (servers.stage(4), servers.stage(3), servers.stage(1)),
            (Stage::Inside, Stage::Outside, Stage::Outside)
        );
        let numbers = servers.numbers(4, 6);
        assert_eq!((numbers.all.clone(), numbers.of_context(0)), (3..5, 1 << JOB_SHIFT));
        assert_eq!(numbers.of_context(MIXED | 7), MIXED | 7);
    }

    #[test]
    fn only_this_host_is_known() {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        check_host(own.trim().as_bytes()).unwrap();
        check_host(b"localhost").unwrap();
        assert!(check_host(b"localhost,elsewhere.invalid").unwrap_err().contains("elsewhere.invalid"));
    }
}
