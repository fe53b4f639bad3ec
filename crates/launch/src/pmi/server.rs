//! The server side of PMI-1 without I/O: lines in, lines out.
use super::line::{Command, LINE_MAX, parse_line};
use super::spawn::{Incoming, Request};
use crate::text::{escape, quoted};
use std::collections::HashMap;

/// What other PMI-1 clients have room for; the same limits as Hydra's.
const NAME_MAX: usize = 256;
const KEY_MAX: usize = 64;
const VALUE_MAX: usize = 1024;
/// Most pairs that a job may store; far above one set of addresses per rank.
const PAIRS_MAX: usize = 1 << 20;

/// How far a rank has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It has not said `init`: it may be no MPI program at all.
    Outside,
    /// It is between `init` and `finalize`.
    Inside,
    /// It has said `finalize`.
    Finalized,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Stage::Outside => "has not said init",
            Stage::Inside => "is between init and finalize",
            Stage::Finalized => "has said finalize",
        })
    }
}

/// What the launcher has to do after a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send a line (with its newline) to a rank.
    Send(usize, String),
    /// End the job: the rank called abort with this code.
    Abort(i32),
    /// Start these programs as another job, and tell the rank what has become of it ([`spawned`]).
    Spawn(usize, Request),
}

/// The answer to a rank that has asked for processes: how many there are, or why there are none.
pub fn spawned(result: Result<usize, String>) -> String {
    match result {
        Ok(count) => {
            let codes: Vec<&str> = vec!["0"; count.min(ERRCODES_MAX)];
            format!("cmd=spawn_result rc=0 errcodes={}\n", codes.join(","))
        }
        Err(why) => format!("cmd=spawn_result rc=-1 errmsg={}\n", escape(why.as_bytes())),
    }
}

/// Error codes that a line has room for; there are none but 0.
const ERRCODES_MAX: usize = 16384;

struct Member {
    stage: Stage,
    in_barrier: bool,
    /// What it asks for between `mcmd=spawn` and `endcmd`.
    asks: Incoming,
    appnum: usize,
}

/// The key-value space of one job.
pub struct Server {
    members: Vec<Member>,
    kvsname: String,
    universe: usize,
    pairs: HashMap<String, String>,
}

impl Server {
    /// A server for ranks whose programs have these numbers, in a universe that has room for so many.
    pub fn new(kvsname: String, appnums: &[usize], universe: usize) -> Server {
        let member = |appnum: &usize| Member {
            stage: Stage::Outside,
            in_barrier: false,
            asks: Incoming::default(),
            appnum: *appnum,
        };
        Server { members: appnums.iter().map(member).collect(), kvsname, universe, pairs: HashMap::new() }
            .on_hosts(&vec![0; appnums.len()])
    }

    /// The same for ranks on the hosts with these numbers.
    pub fn on_hosts(mut self, hosts: &[usize]) -> Server {
        let mapping = mapping(hosts);
        // A client would not read a longer one. It only loses a hint.
        if mapping.len() < VALUE_MAX {
            self.pairs.insert(MAPPING.into(), mapping);
        } else {
            self.pairs.remove(MAPPING);
        }
        self
    }

    /// What the ranks find from the start.
    pub fn with(mut self, pairs: Vec<(String, String)>) -> Server {
        self.pairs.extend(pairs);
        self
    }

    /// How far `rank` has come.
    pub fn stage(&self, rank: usize) -> Stage {
        self.members[rank].stage
    }

    /// The ranks that wait in a barrier.
    pub fn in_barrier(&self) -> usize {
        self.members.iter().filter(|m| m.in_barrier).count()
    }

    /// Handles one line from `rank`. An error says what is wrong with it; the connection cannot be
    /// trusted after that.
    pub fn on_line(&mut self, rank: usize, line: &[u8]) -> Result<Vec<Action>, String> {
        if self.members[rank].asks.is_open() {
            let request = self.members[rank].asks.line(line)?;
            return Ok(request.map(|request| Action::Spawn(rank, request)).into_iter().collect());
        }
        let command =
            parse_line(line).map_err(|malformed| format!("{malformed}; received {}", quoted(line)))?;
        if command.multi_line && command.name == "spawn" {
            self.members[rank].asks.begin();
            return Ok(Vec::new());
        }
        self.on_command(rank, &command).map_err(|why| format!("{why}; received {}", quoted(line)))
    }

    fn on_command(&mut self, rank: usize, command: &Command) -> Result<Vec<Action>, String> {
        let expected = if command.name == "init" { Stage::Outside } else { Stage::Inside };
        let stage = self.members[rank].stage;
        let again = command.name == "init" && stage == Stage::Finalized;
        if stage != expected && !again && command.name != "abort" {
            return Err(format!("{} is out of order (the rank {stage})", command.name));
        }
        let answer = match command.name.as_str() {
            "init" => return self.init(rank, command),
            "get_maxes" => {
                format!("maxes rc=0 kvsname_max={NAME_MAX} keylen_max={KEY_MAX} vallen_max={VALUE_MAX}")
            }
            "get_appnum" => format!("appnum rc=0 appnum={}", self.members[rank].appnum),
            "get_my_kvsname" => format!("my_kvsname rc=0 kvsname={}", self.kvsname),
            "get_universe_size" => format!("universe_size rc=0 size={}", self.universe),
            "put" => self.put(command)?,
            "get" => self.get(command)?,
            "barrier_in" => return Ok(self.barrier(rank)),
            "finalize" => {
                self.members[rank].stage = Stage::Finalized;
                "finalize_ack rc=0".into()
            }
            "abort" => {
                let code = command.number("exitcode").unwrap_or(1);
                return Ok(vec![Action::Abort(i32::try_from(code).unwrap_or(1))]);
            }
            "publish_name" | "unpublish_name" | "lookup_name" => {
                let verb = command.name.trim_end_matches("_name");
                format!("{verb}_result rc=1 msg=not_supported")
            }
            unknown => return Err(format!("unknown command {}", quoted(unknown.as_bytes()))),
        };
        Ok(vec![Action::Send(rank, format!("cmd={answer}\n"))])
    }

    /// A shell that is a rank may run one MPI program after the other: init follows finalize.
    fn init(&mut self, rank: usize, command: &Command) -> Result<Vec<Action>, String> {
        let version = command.number("pmi_version")?;
        let rc = if version == 1 { 0 } else { -1 };
        if rc == 0 {
            self.members[rank].stage = Stage::Inside;
        }
        let line = format!("cmd=response_to_init rc={rc} pmi_version=1 pmi_subversion=1\n");
        Ok(vec![Action::Send(rank, line)])
    }

    fn put(&mut self, command: &Command) -> Result<String, String> {
        let key = self.key(command)?;
        let value = command.field("value").ok_or("it has no value=")?;
        if key.len() >= KEY_MAX || value.len() > LINE_MAX || self.pairs.len() >= PAIRS_MAX {
            return Ok("put_result rc=-1 msg=limit_reached".into());
        }
        self.pairs.insert(key, value.into());
        Ok("put_result rc=0".into())
    }

    fn get(&mut self, command: &Command) -> Result<String, String> {
        let key = self.key(command)?;
        Ok(match self.pairs.get(&key) {
            Some(value) => format!("get_result rc=0 value={value}"),
            None => "get_result rc=-1 msg=no_such_key".into(),
        })
    }

    fn key(&self, command: &Command) -> Result<String, String> {
        match command.field("kvsname") {
            Some(name) if name == self.kvsname => {}
            Some(name) => return Err(format!("key-value space {} is unknown", quoted(name.as_bytes()))),
            None => return Err("it has no kvsname=".into()),
        }
        Ok(command.field("key").filter(|key| !key.is_empty()).ok_or("it has no key=")?.into())
    }

    fn barrier(&mut self, rank: usize) -> Vec<Action> {
        self.members[rank].in_barrier = true;
        if !self.members.iter().all(|m| m.in_barrier) {
            return Vec::new();
        }
        self.members.iter_mut().for_each(|m| m.in_barrier = false);
        (0..self.members.len()).map(|rank| Action::Send(rank, "cmd=barrier_out rc=0\n".into())).collect()
    }
}

/// The key under which MPICH's library looks up where ranks run.
const MAPPING: &str = "PMI_process_mapping";

/// Where ranks run, in Hydra's notation: blocks of a first host, a number of hosts, and ranks on each of them.
fn mapping(hosts: &[usize]) -> String {
    let mut blocks: Vec<(usize, usize, usize)> = Vec::new();
    for run in hosts.chunk_by(|a, b| a == b) {
        match blocks.last_mut() {
            Some((first, count, each)) if *first + *count == run[0] && *each == run.len() => *count += 1,
            _ => blocks.push((run[0], 1, run.len())),
        }
    }
    let blocks: String =
        blocks.iter().map(|(first, count, each)| format!(",({first},{count},{each})")).collect();
    format!("(vector{blocks})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(size: usize) -> Server {
        let mut server = Server::new("kvs".into(), &vec![0; size], size);
        for rank in 0..size {
            server.on_line(rank, b"cmd=init pmi_version=1 pmi_subversion=1").unwrap();
        }
        server
    }

    fn answer(server: &mut Server, line: &str) -> String {
        match &server.on_line(0, line.as_bytes()).unwrap()[..] {
            [Action::Send(0, line)] => line.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_one_puts_another_gets_after_the_barrier() {
        let mut server = started(2);
        assert!(answer(&mut server, "cmd=put kvsname=kvs key=k value=a=b").contains("rc=0"));
        assert_eq!(server.on_line(0, b"cmd=barrier_in").unwrap(), []);
        assert_eq!(server.in_barrier(), 1);
        assert_eq!(server.on_line(1, b"cmd=barrier_in").unwrap().len(), 2);
        let got = server.on_line(1, b"cmd=get kvsname=kvs key=k").unwrap();
        assert_eq!(got, [Action::Send(1, "cmd=get_result rc=0 value=a=b\n".into())]);
        assert!(answer(&mut server, "cmd=get kvsname=kvs key=other").contains("rc=-1"));
        assert!(answer(&mut server, "cmd=finalize").contains("finalize_ack"));
        assert_eq!(server.stage(0), Stage::Finalized);
        assert!(answer(&mut server, "cmd=init pmi_version=1 pmi_subversion=1").contains("rc=0"));
    }

    #[test]
    fn where_ranks_run() {
        assert_eq!(mapping(&[0, 0, 0]), "(vector,(0,1,3))");
        assert_eq!(mapping(&[0, 0, 1, 1, 2]), "(vector,(0,2,2),(2,1,1))");
        assert_eq!(mapping(&[0, 1, 2, 0, 1, 2]), "(vector,(0,3,1),(0,3,1))");
        let scattered: Vec<usize> = (0..400).map(|rank| rank * 7 % 31).collect();
        assert!(!Server::new("kvs".into(), &[0; 400], 400).on_hosts(&scattered).pairs.contains_key(MAPPING));
    }

    #[test]
    fn wrong_lines_are_errors_that_quote_them() {
        let lines: &[&[u8]] = &[
            b"",
            b"hello",
            b"cmd=barrier",
            b"cmd=put kvsname=kvs key=k",
            b"cmd=put kvsname=other key=k value=v",
            b"cmd=get kvsname=kvs",
            b"cmd=init pmi_version=1 pmi_subversion=1",
            b"cmd=get kvsname=kvs key=k key=l",
            b"\xff\xfe",
        ];
        for line in lines {
            let error = started(1).on_line(0, line).unwrap_err();
            assert!(error.contains("received"), "{error}");
        }
        let mut fresh = Server::new("kvs".into(), &[0], 1);
        assert!(fresh.on_line(0, b"cmd=get_maxes").unwrap_err().contains("out of order"));
        assert_eq!(fresh.on_line(0, b"cmd=abort exitcode=7"), Ok(vec![Action::Abort(7)]));
    }

    #[test]
    fn what_a_rank_asks_for_is_passed_on_and_the_connection_goes_on() {
        let mut server = started(1);
        for line in ["mcmd=spawn", "nprocs=1", "execname=a b c", "totspawns=1"] {
            assert_eq!(server.on_line(0, line.as_bytes()).unwrap(), []);
        }
        let [Action::Spawn(0, request)] = &server.on_line(0, b"endcmd").unwrap()[..] else { panic!() };
        assert_eq!((&request.programs[0].command[..], request.programs[0].count), (&b"a b c"[..], 1));
        assert!(answer(&mut server, "cmd=get_appnum").contains("appnum=0"));
        assert_eq!(spawned(Ok(2)), "cmd=spawn_result rc=0 errcodes=0,0\n");
        assert!(parse_line(spawned(Err("no way\n".into())).trim_end().as_bytes()).is_ok());
    }
}
