//! The agents of a job on several hosts, seen by `mpiexec`: each is started through the launcher, connects back,
//! proves that it knows the secret of the job, and is told what to start when all are there.
use super::arguments::Plan;
use super::callers::{self, Callers};
use super::hello::Secret;
use super::hosts::is_here;
use super::job::Shape;
use super::link::Link;
use super::message::{Event, Order};
use super::placement::{Launcher, Network, Reaching};
use super::start::Refusal;
use super::task;
use super::token::Token;
use crate::sys::event::Epoll;
use crate::sys::net;
use crate::sys::process::{self, Birth, Ended, OpenFiles, Reaped};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What both sides must be to understand each other.
pub(super) const KIND: &str = concat!("Tern ", env!("CARGO_PKG_VERSION"));

/// What is heard of a host: an event, or why nothing more will come.
type Heard = Vec<(usize, Result<Event, String>)>;

/// Where the agent of a host has come to.
enum State {
    /// There are no ranks on this host, and so there is none.
    Idle,
    /// It has not connected yet.
    Awaited,
    /// It is there, and has not said yet what it is.
    Connected(Link),
    /// It waits for the others.
    Ready(Link),
    /// It has been told what to start.
    Running(Link),
    /// Nothing more is heard of it.
    Gone,
}

struct Agent {
    name: String,
    /// The process that has been started to start it, until that ends, and how it was called.
    launcher: Option<i32>,
    called: String,
    /// What it will be told.
    task: Vec<u8>,
    /// What it is told behind that.
    later: Vec<Vec<u8>>,
    state: State,
    way: Route,
    /// How many ranks it takes, as the user says.
    slots: Option<usize>,
}

/// All agents of a job.
pub(super) struct Agents {
    agents: Vec<Agent>,
    callers: Callers,
    addresses: Vec<IpAddr>,
    secret: [u8; 16],
    reaching: Reaching,
    open_files: OpenFiles,
    /// How long agents may take to come.
    until: Instant,
    /// All ranks have ended: agents leave.
    finishing: bool,
}

impl Agents {
    /// Listens for agents and starts one on each host. Call it before signals are blocked.
    pub(super) fn start(
        network: &Network,
        plan: &Plan,
        shape: &Shape,
        epoll: &Epoll,
    ) -> Result<Agents, Refusal> {
        let count = network.names.len();
        let open_files = OpenFiles::current().map_err(|e| format!("limit of open files: {e}"))?;
        open_files.reserve(callers::descriptors(count) + count as u64 + 64)?;
        let ways = ways(network)?;
        let addresses: Vec<IpAddr> =
            ways.iter().map(|way| way.own).collect::<BTreeSet<_>>().into_iter().collect();
        let callers = Callers::listen(&addresses, count, Secret::new(shape.secret), epoll)?;
        let reaching = &network.reaching;
        let mut agents = Agents {
            agents: Vec::with_capacity(count),
            callers,
            addresses,
            secret: shape.secret,
            reaching: reaching.clone(),
            open_files,
            until: Instant::now() + reaching.patience,
            finishing: false,
        };
        for (host, (name, way)) in network.names.iter().zip(ways).enumerate() {
            let ranks: Vec<(usize, usize)> = (0..shape.programs.len())
                .filter(|rank| shape.hosts[*rank] == host)
                .map(|rank| (rank, shape.programs[rank]))
                .collect();
            let task = task::encode(plan, &shape.kvsname, [0, shape.programs.len()], &ranks);
            let (slots, state) = (network.slots(host), State::Idle);
            let (launcher, called, later) = Default::default();
            agents.agents.push(Agent {
                name: name.clone(),
                launcher,
                called,
                task,
                later,
                state,
                way,
                slots,
            });
            // A host without ranks needs no agent.
            if !ranks.is_empty() {
                agents.call(host)?;
            }
        }
        Ok(agents)
    }

    /// Starts the agent of a host.
    fn call(&mut self, host: usize) -> Result<(), String> {
        let agent = &mut self.agents[host];
        let which = self.addresses.iter().position(|address| *address == agent.way.own);
        let address = self.callers.address(which.expect("it is among them"))?;
        let line = handover(host, &self.secret, address);
        let (pid, called) = launch(&self.reaching, &agent.name, agent.way.direct, &line, self.open_files)?;
        (agent.launcher, agent.called, agent.state) = (Some(pid), called, State::Awaited);
        Ok(())
    }

    /// Queues an order to the agent of a host for a job that is started later; if the host has none, starts one,
    /// which is told when it has come.
    pub(super) fn order_start(&mut self, host: usize, order: &Order, epoll: &Epoll) -> Result<(), String> {
        match &mut self.agents[host].state {
            State::Running(link) => link.push(&order.encode()),
            State::Idle => {
                if self.callers.is_closed() {
                    let (most, secret) = (self.agents.len(), Secret::new(self.secret));
                    self.callers = Callers::listen(&self.addresses, most, secret, epoll)?;
                }
                self.call(host)?;
                self.until = Instant::now() + self.reaching.patience;
                self.agents[host].later = vec![order.encode()];
            }
            _ => return Err(format!("host {}: its agent is gone", self.agents[host].name)),
        }
        Ok(())
    }

    /// Whether an agent is on its way to a host, for a job that is started later.
    pub(super) fn is_called(&self, host: usize) -> bool {
        let agent = &self.agents[host];
        !agent.later.is_empty() && !matches!(agent.state, State::Running(_))
    }

    /// Whether there is one, which has been told what to start.
    pub(super) fn is_running(&self, host: usize) -> bool {
        matches!(self.agents[host].state, State::Running(_))
    }

    /// Waits no more for such an agent: the host may be tried again.
    pub(super) fn call_off(&mut self, host: usize, epoll: &Epoll) {
        self.forget(host, epoll);
        self.agents[host].later.clear();
        self.agents[host].state = State::Idle;
    }

    /// How many hosts there are.
    pub(super) fn count(&self) -> usize {
        self.agents.len()
    }

    /// How many ranks a host takes, as the user says.
    pub(super) fn slots(&self, host: usize) -> Option<usize> {
        self.agents[host].slots
    }

    /// What the user calls a host.
    pub(super) fn name(&self, host: usize) -> &str {
        &self.agents[host].name
    }

    /// Handles a descriptor that is ready.
    pub(super) fn on_ready(&mut self, token: Token, epoll: &Epoll) -> Heard {
        match token {
            Token::Listener(which) => self.callers.on_listener(which, epoll),
            Token::Caller(id) => {
                if let Some((host, stream)) = self.callers.on_caller(id, epoll) {
                    return self.admit(host, stream, epoll);
                }
            }
            Token::Link(host) => return self.on_link(host, epoll),
            other => unreachable!("{other:?} is nothing of an agent"),
        }
        Vec::new()
    }

    fn admit(&mut self, host: usize, stream: TcpStream, epoll: &Epoll) -> Heard {
        // One that is there already cannot come again.
        let Some(agent) = self.agents.get_mut(host).filter(|a| matches!(a.state, State::Awaited)) else {
            return Vec::new();
        };
        match Link::new(stream, Token::Link(host).pack(), epoll) {
            Ok(link) => {
                agent.state = State::Connected(link);
                Vec::new()
            }
            Err(error) => vec![(host, Err(error.to_string()))],
        }
    }

    fn on_link(&mut self, host: usize, epoll: &Epoll) -> Heard {
        let agent = &mut self.agents[host];
        let (State::Connected(link) | State::Ready(link) | State::Running(link)) = &mut agent.state else {
            return Vec::new();
        };
        let (messages, more) = link.receive();
        let mut heard = Vec::new();
        for message in messages {
            match &agent.state {
                State::Connected(_) if message == kind().as_bytes() => agent.welcome(),
                State::Connected(_) => {
                    let other = String::from_utf8_lossy(&message);
                    let why =
                        format!("its mpiexec is {other}, and this one is {}: both must be the same", kind());
                    return vec![(host, Err(why))];
                }
                State::Running(_) => heard.push((host, Event::decode(&message))),
                _ => heard.push((host, Err("it spoke before it was asked".into()))),
            }
        }
        match more {
            Err(_) if self.finishing => self.forget(host, epoll),
            Err(why) => heard.push((host, Err(format!("its agent is gone: {why}")))),
            Ok(()) => {}
        }
        self.tell_tasks(epoll);
        heard
    }

    /// When all agents are there, tells each what to start.
    fn tell_tasks(&mut self, epoll: &Epoll) {
        if self.awaits() {
            return;
        }
        for agent in &mut self.agents {
            match std::mem::replace(&mut agent.state, State::Gone) {
                State::Ready(mut link) => {
                    link.push(&agent.task);
                    agent.later.drain(..).for_each(|order| link.push(&order));
                    agent.state = State::Running(link);
                }
                state => agent.state = state,
            }
        }
        self.callers.close(epoll);
    }

    /// Queues an order to the agent of a host.
    pub(super) fn order(&mut self, host: usize, order: &Order) {
        if let State::Running(link) = &mut self.agents[host].state {
            link.push(&order.encode());
        }
    }

    /// Queues an order to all agents.
    pub(super) fn order_all(&mut self, order: &Order) {
        self.finishing |= *order == Order::Finish;
        (0..self.agents.len()).for_each(|host| self.order(host, order));
    }

    /// Sends what is queued.
    pub(super) fn flush(&mut self, epoll: &Epoll) -> Heard {
        let mut heard = Vec::new();
        for (host, agent) in self.agents.iter_mut().enumerate() {
            // What cannot be sent to one that leaves is not missed.
            if let State::Running(link) = &mut agent.state
                && let Err(why) = link.flush(epoll)
                && !self.finishing
            {
                heard.push((host, Err(format!("its agent is gone: {why}"))));
            }
        }
        heard
    }

    /// A child has ended. If it should have started an agent that is not there, none will come.
    pub(super) fn on_child(&mut self, child: Reaped) -> Heard {
        let Some(host) = self.agents.iter().position(|agent| agent.launcher == Some(child.pid)) else {
            return Vec::new();
        };
        let agent = &mut self.agents[host];
        agent.launcher = None;
        let how = match child.how {
            // It may have put the agent into the background.
            Ended::Code(0) => return Vec::new(),
            Ended::Code(code) => format!("exited with code {code}"),
            Ended::Signal(signal, _) => format!("was killed by {}", crate::sys::signal::name(signal)),
        };
        match agent.state {
            State::Awaited => {
                let why = format!(
                    "'{}' {how} before the agent had come; can that be run by hand, and is mpiexec there at the same \
                     place (--launcher-path)?",
                    agent.called
                );
                vec![(host, Err(why))]
            }
            _ => Vec::new(),
        }
    }

    /// Loses patience with those that have not come.
    pub(super) fn on_time(&mut self, now: Instant, epoll: &Epoll) -> Heard {
        self.callers.on_time(now, epoll);
        if !self.awaits() || now < self.until {
            return Vec::new();
        }
        let refused = match self.callers.refused {
            0 => String::new(),
            count => format!("; {count} callers that do not know the secret of the job were refused"),
        };
        let late = |agent: &Agent| matches!(agent.state, State::Awaited | State::Connected(_));
        let late = self.agents.iter().enumerate().filter(|(_, agent)| late(agent));
        late.map(|(host, agent)| {
            let why = format!(
                "no agent has come within {} s (--launch-timeout), started with '{}'{refused}",
                self.reaching.patience.as_secs_f64(),
                agent.called
            );
            (host, Err(why))
        })
        .collect()
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        let starting = self.awaits().then_some(self.until);
        starting.into_iter().chain(self.callers.next_time()).min()
    }

    /// Whether agents are waited for.
    fn awaits(&self) -> bool {
        self.agents.iter().any(|agent| matches!(agent.state, State::Awaited | State::Connected(_)))
    }

    /// Whether there are agents, but none that has been told what to start, and so no rank. Those that are ready count: when
    /// the last one that was awaited is lost, they are told nothing any more.
    pub(super) fn starting(&self) -> bool {
        let any = |is: fn(&State) -> bool| self.agents.iter().any(|agent| is(&agent.state));
        any(|state| matches!(state, State::Awaited | State::Connected(_) | State::Ready(_)))
            && !any(|state| matches!(state, State::Running(_)))
    }

    /// Whether there is an agent, or a process that has started one.
    pub(super) fn any_left(&self) -> bool {
        self.agents
            .iter()
            .any(|agent| agent.launcher.is_some() || !matches!(agent.state, State::Gone | State::Idle))
    }

    /// Hears no more of a host. An agent whose connection ends kills its ranks and leaves.
    pub(super) fn forget(&mut self, host: usize, epoll: &Epoll) {
        let agent = &mut self.agents[host];
        match std::mem::replace(&mut agent.state, State::Gone) {
            State::Connected(link) | State::Ready(link) | State::Running(link) => link.leave(epoll),
            State::Awaited => {
                if let Some(pid) = agent.launcher {
                    // It may have ended by itself since.
                    let _ = process::kill_group(pid, libc::SIGKILL);
                }
            }
            State::Gone | State::Idle => {}
        }
    }
}

impl Agent {
    fn welcome(&mut self) {
        if let State::Connected(link) = std::mem::replace(&mut self.state, State::Gone) {
            self.state = State::Ready(link);
        }
    }
}

/// What this is.
pub(super) fn kind() -> String {
    format!("{KIND} for {}", std::env::consts::ARCH)
}

/// What an agent is given on its standard input: who it is, the secret of the job, and where to connect.
fn handover(host: usize, secret: &[u8; 16], address: SocketAddr) -> String {
    let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("tern-agent {host} {secret} {address}\n")
}

/// The way to a host.
struct Route {
    /// The address of this host that the agent connects to.
    own: IpAddr,
    /// Whether the agent is started without a launcher, because the host is this one.
    direct: bool,
}

fn ways(network: &Network) -> Result<Vec<Route>, String> {
    let reaching = &network.reaching;
    let commanded = matches!(reaching.launcher, Launcher::Command(_));
    let given = given(reaching)?;
    let mut ways = Vec::new();
    for name in &network.names {
        let here = is_here(name);
        let (own, same) = match given {
            Some(own) => (Some(own), false),
            None if here => (None, true),
            None => found(name).map(|(own, same)| (Some(own), same))?,
        };
        ways.push((own, (here || same) && !commanded));
    }
    // An agent of this host connects to the address that the others see: it is how they reach its ranks.
    let seen = ways.iter().find_map(|(own, _)| *own).unwrap_or(Ipv4Addr::LOCALHOST.into());
    Ok(ways.into_iter().map(|(own, direct)| Route { own: own.unwrap_or(seen), direct }).collect())
}

/// The address of this host that the user has chosen.
fn given(reaching: &Reaching) -> Result<Option<IpAddr>, String> {
    match (reaching.address, &reaching.interface) {
        (Some(address), _) => Ok(Some(address)),
        (None, None) => Ok(None),
        (None, Some(interface)) => {
            let found = net::addresses(interface).map_err(|error| format!("option --iface: {error}"))?;
            let first = found.first().copied();
            first
                .map(Some)
                .ok_or_else(|| format!("option --iface: no interface '{interface}' with an address"))
        }
    }
}

/// The address of this host from which another is reached, and whether it is that of the other.
fn found(name: &str) -> Result<(IpAddr, bool), String> {
    let remedy = "(--host-address says which of our addresses it is to connect to)";
    let resolved = (name, 0).to_socket_addrs();
    let resolved =
        resolved.map_err(|error| format!("host {name}: the name cannot be resolved: {error} {remedy}"))?;
    let mut last = String::from("the name has no address");
    for address in resolved.map(|address| address.ip()) {
        match net::towards(address) {
            Ok(own) => return Ok((own, own == address)),
            Err(error) => last = format!("no way to {address}: {error}"),
        }
    }
    Err(format!("host {name}: {last} {remedy}"))
}

/// Starts the process that starts an agent, and gives it the handover; its id, and how it was called.
fn launch(
    reaching: &Reaching,
    host: &str,
    direct: bool,
    handover: &str,
    open_files: OpenFiles,
) -> Result<(i32, String), String> {
    let own = std::env::current_exe().map_err(|error| format!("/proc/self/exe: {error}"))?;
    let own = own.to_str().ok_or("the path of mpiexec is no text")?;
    let program = reaching.path.as_deref().unwrap_or(own);
    let words: Vec<String> = match &reaching.launcher {
        _ if direct => [own, "--agent"].map(String::from).into(),
        Launcher::Ssh => {
            let program = shell_word(program);
            ["ssh", "-x", "-o", "BatchMode=yes", host, &program, "--agent"].map(String::from).into()
        }
        Launcher::Srun => {
            let node = format!("--nodelist={host}");
            let words =
                ["srun", "--nodes=1", "--ntasks=1", &node, "--overlap", "--cpu-bind=none", "--mpi=none"];
            words.iter().chain(&["--quiet", program, "--agent"]).map(|word| word.to_string()).collect()
        }
        Launcher::Command(words) => {
            let rest = [host.to_string(), shell_word(program), "--agent".into()];
            words.iter().cloned().chain(rest).collect()
        }
    };
    let called = words.join(" ");
    let mut command = Command::new(&words[0]);
    // What the launcher has to say about itself it says on its error output.
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::null());
    let birth = Birth { inherited: Vec::new(), cpus: Vec::new(), open_files, strictly: None };
    process::prepare(&mut command, birth);
    let failed = |error: std::io::Error| format!("host {host}: cannot start '{called}': {error}");
    let mut child = command.spawn().map_err(failed)?;
    // So short a line fits into the pipe, whoever reads it or not.
    let given = child.stdin.take().expect("it is a pipe").write_all(handover.as_bytes());
    if let Err(error) = given
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        return Err(failed(error));
    }
    Ok((child.id() as i32, called))
}

/// A word that a shell on the other side leaves as it is.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.+,@%=:".contains(c);
    if word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell() {
        assert_eq!(shell_word("/opt/tern-1.0/bin/mpiexec"), "/opt/tern-1.0/bin/mpiexec");
        assert_eq!(shell_word("/a b/it's"), "'/a b/it'\\''s'");
    }

    #[test]
    fn ways_to_hosts() {
        let reaching =
            |interface: &str| Reaching { interface: Some(interface.into()), ..Reaching::default() };
        assert_eq!(given(&reaching("lo")), Ok(Some(Ipv4Addr::LOCALHOST.into())));
        assert!(given(&reaching("nonesuch0")).unwrap_err().contains("nonesuch0"));
        let error = found("no.such.host.invalid").unwrap_err();
        assert!(error.contains("no.such.host.invalid") && error.contains("--host-address"), "{error}");
        assert_eq!(found("127.0.0.1"), Ok((Ipv4Addr::LOCALHOST.into(), true)));
    }
}
