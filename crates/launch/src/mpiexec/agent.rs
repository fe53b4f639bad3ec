//! `mpiexec --agent`: starts the ranks of one host of several, and does what the `mpiexec` at the root of the job
//! orders. It decides nothing itself but this: when its connection is lost, its ranks end.
use super::hands::Hands;
use super::hello::{self, CHALLENGE, Nonce, PROOF, Secret};
use super::job::{DRAIN, SIGNALS};
use super::link::Link;
use super::message::{self, Event, MESSAGE_MAX, Order, PREFIX};
use super::start::{self, Refusal};
use super::task::{self, Task};
use super::token::Token;
use super::{agents, complain};
use crate::program::Words;
use crate::sys::event::{self, Epoll};
use crate::sys::signal::Signals;
use crate::sys::{self, process};
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long each step of the beginning may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the first message may take, which comes when all agents are there.
const TASK_PATIENCE: Duration = Duration::from_secs(600);
/// How long the launcher may take to read the last output: a user who reads slowly has all the time.
const LAST_WORDS: Duration = Duration::from_secs(3600);
/// The longest handover.
const HANDOVER_MAX: u64 = 256;

/// Runs an agent; returns its exit code.
pub(super) fn run() -> u8 {
    match begin() {
        Ok((stream, task)) => match Agent::start(stream, task) {
            Ok(Some(agent)) => agent.run(),
            Ok(None) => 1,
            Err(why) => fail(&why),
        },
        Err(why) => fail(&why),
    }
}

fn fail(why: &str) -> u8 {
    complain(&format!("agent on {}: {why}", sys::hostname()));
    1
}

/// Connects to the root of the job and hears what to start.
fn begin() -> Result<(TcpStream, Result<Task, Refusal>), String> {
    let mut line = String::new();
    let read = io::stdin().lock().take(HANDOVER_MAX).read_line(&mut line);
    read.map_err(|error| format!("standard input: {error}"))?;
    let (host, secret, address) = read_handover(&line).ok_or(
        "option --agent is for mpiexec itself, which starts agents on other hosts; what came on the standard input \
         is not from it",
    )?;
    let lost = |error: io::Error| format!("{address}, where mpiexec listens: {error}");
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(lost)?;
    let set = stream.set_read_timeout(Some(PATIENCE)).and(stream.set_write_timeout(Some(PATIENCE)));
    set.and(stream.set_nodelay(true)).map_err(lost)?;
    prove(&mut stream, host, secret).map_err(|why| format!("{address}: {why}"))?;
    stream.write_all(&message::framed(agents::kind().as_bytes())).map_err(lost)?;
    stream.set_read_timeout(Some(TASK_PATIENCE)).map_err(lost)?;
    let message = read_message(&mut stream)?;
    let own = stream.local_addr().map_err(lost)?.ip();
    let task = task::decode(&message, secret, own).map_err(|why| format!("a malformed task: {why}"))?;
    Ok((stream, prepare(task)))
}

/// The host, the secret and the address in a handover.
pub fn read_handover(line: &str) -> Option<(u32, [u8; 16], SocketAddr)> {
    let mut words = line.lines().next()?.split(' ');
    let word = words.next()?;
    let host = words.next()?.parse().ok()?;
    let digits = words.next().filter(|digits| digits.len() == 32 && digits.is_ascii())?;
    let address = words.next()?.parse().ok()?;
    let mut secret = [0; 16];
    for (i, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
    }
    (word == "tern-agent" && words.next().is_none()).then_some((host, secret, address))
}

fn prove(stream: &mut TcpStream, host: u32, secret: [u8; 16]) -> Result<(), String> {
    let secret = Secret::new(secret);
    let mut challenge = [0; CHALLENGE];
    stream.read_exact(&mut challenge).map_err(|error| error.to_string())?;
    let challenge = hello::read_challenge(&challenge)?;
    let mut own = Nonce::default();
    sys::random(&mut own).map_err(|error| format!("random numbers: {error}"))?;
    stream.write_all(&secret.answer(host, &challenge, &own)).map_err(|error| error.to_string())?;
    let mut proof = [0; PROOF];
    let read = stream.read_exact(&mut proof);
    read.map_err(
        |_| "mpiexec does not know the secret that this agent was given, and closed the connection",
    )?;
    match secret.check_proof(host, &challenge, &own, &proof) {
        true => Ok(()),
        false => Err("what listens there does not know the secret of the job".into()),
    }
}

fn read_message(stream: &mut TcpStream) -> Result<Vec<u8>, String> {
    let ended = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "mpiexec has ended the job before it began".to_string(),
        _ => error.to_string(),
    };
    let mut prefix = [0; PREFIX];
    stream.read_exact(&mut prefix).map_err(ended)?;
    let mut message = vec![0; message::length(prefix)?.min(MESSAGE_MAX)];
    stream.read_exact(&mut message).map_err(ended)?;
    Ok(message)
}

/// Goes where the launcher was, and looks for the programs.
fn prepare((mut task, directory): (Task, std::path::PathBuf)) -> Result<Task, Refusal> {
    if task.ranks.is_empty() {
        // What it starts it is told later.
        return Ok(task);
    }
    let moved = std::env::set_current_dir(&directory);
    let plan = Rc::get_mut(&mut task.plan).expect("nobody else has the new plan");
    let needed = plan.segments.iter().any(|s| s.directory.as_ref().is_none_or(|own| own.is_relative()));
    if let (Err(error), true) = (moved, needed) {
        let place = directory.display();
        return Err(format!("the working directory '{place}' (-wdir chooses another): {error}").into());
    }
    let words = if task.first == 0 { Words::OPTIONS } else { Words::HINTS };
    start::locate(plan, &words)?;
    Ok(task)
}

/// An agent whose ranks run.
struct Agent {
    epoll: Epoll,
    signals: Signals,
    /// Until the connection is lost.
    link: Option<Link>,
    hands: Hands,
    /// What is needed to read more tasks.
    secret: [u8; 16],
    own: IpAddr,
    /// Outputs that the root does not want to be read.
    paused: [bool; 2],
    answers: Answers,
    finishing: bool,
}

impl Agent {
    /// Starts the ranks; a refusal is the root's to tell, and then there is no agent.
    fn start(stream: TcpStream, task: Result<Task, Refusal>) -> Result<Option<Agent>, String> {
        let set = |error: io::Error| error.to_string();
        stream.set_read_timeout(None).and(stream.set_write_timeout(None)).map_err(set)?;
        let prepared = task.and_then(|task| Hands::prepare(&task).map(|hands| (task, hands)));
        let epoll = Epoll::new().map_err(set)?;
        let mut link = Link::new(stream, Token::Link(0).pack(), &epoll).map_err(set)?;
        let refuse = |mut link: Link, epoll: &Epoll, refusal: Refusal| {
            link.push(&Event::Refused { code: refusal.code, text: refusal.text }.encode());
            link.close(PATIENCE, epoll);
            Ok(None)
        };
        let (task, mut hands) = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => return refuse(link, &epoll, refusal),
        };
        let signals = Signals::take(SIGNALS).map_err(set)?;
        epoll.add(signals.as_raw_fd(), Token::Signals.pack(), event::READ).map_err(set)?;
        match hands.start(&task, &epoll) {
            Ok(events) => {
                events.iter().for_each(|event| link.push(&event.encode()));
                let link = Some(link);
                let answers = Answers::default();
                let paused = [false; 2];
                let (secret, own) = (task.secret, task.address.expect("an agent has one"));
                let finishing = false;
                Ok(Some(Agent { epoll, signals, link, hands, secret, own, paused, answers, finishing }))
            }
            Err(refusal) => {
                hands.signal(libc::SIGKILL);
                clean_up(&mut hands);
                hands.release();
                refuse(link, &epoll, refusal)
            }
        }
    }

    fn run(mut self) -> u8 {
        while !self.finishing && self.link.is_some() {
            self.step(None);
        }
        // Without the root nobody knows these ranks any more.
        self.hands.signal(libc::SIGKILL);
        let until = Instant::now() + DRAIN;
        while self.hands.kill_leftovers() && Instant::now() < until {
            self.step(Some(Duration::from_millis(5)));
        }
        self.hands.remove_remains();
        self.drain();
        if let Some(link) = self.link.take() {
            link.close(LAST_WORDS, &self.epoll);
        }
        self.hands.release();
        u8::from(!self.finishing)
    }

    /// Passes on what is still in pipes; a descriptor that was handed out of the job is waited for only while the
    /// output moves, or cannot.
    fn drain(&mut self) {
        let mut until = Instant::now() + DRAIN;
        while self.link.is_some() && self.hands.open_outputs() {
            if self.held() {
                until = Instant::now() + DRAIN;
            } else if Instant::now() >= until {
                return;
            }
            self.step(Some(until.saturating_duration_since(Instant::now())));
        }
    }

    /// Whether somebody on the way to the user has no room.
    fn held(&self) -> bool {
        self.paused.contains(&true) || self.link.as_ref().is_some_and(|link| !link.is_empty())
    }

    fn step(&mut self, timeout: Option<Duration>) {
        if let Some(Err(_)) = self.link.as_mut().map(|link| link.flush(&self.epoll)) {
            self.link = None;
        }
        self.balance();
        let ready = self.epoll.wait(timeout).expect("the epoll set is valid");
        for event in ready {
            match Token::unpack(event.token) {
                Token::Signals => self.on_signals(),
                Token::Link(_) => self.on_link(),
                token => {
                    let events = self.hands.on_ready(token, &self.epoll);
                    self.tell(events);
                }
            }
        }
    }

    /// Reads no more of what ranks write than the connection takes.
    fn balance(&mut self) {
        let full = self.link.as_ref().is_some_and(Link::full);
        for which in [0, 1] {
            self.hands.pause(which, full || self.paused[which], &self.epoll);
        }
    }

    fn on_signals(&mut self) {
        while let Some(signal) = self.signals.take_next() {
            match signal {
                libc::SIGCHLD => {
                    while let Some(child) = process::reap() {
                        let events = self.hands.on_child(child, &self.epoll);
                        self.tell(events);
                    }
                }
                // Whoever ends an agent ends its ranks; the root sees the connection end.
                libc::SIGTERM | libc::SIGINT | libc::SIGHUP | libc::SIGQUIT => self.link = None,
                // The others are for the root of the job.
                _ => {}
            }
        }
    }

    fn on_link(&mut self) {
        let Some(link) = &mut self.link else { return };
        let (messages, more) = link.receive();
        for message in messages {
            match Order::decode(&message) {
                Ok(order) => self.carry_out(order),
                Err(_) => self.link = None,
            }
        }
        if more.is_err() {
            self.link = None;
        }
    }

    fn carry_out(&mut self, order: Order) {
        match &order {
            Order::Finish => self.finishing = true,
            Order::Pause { which, paused } => self.paused[*which] = *paused,
            Order::Pmi { rank, line } => self.answers.learn(*rank, line),
            Order::Signal { signal: libc::SIGTSTP } => {
                // Who stops a job at its root has no terminal here: what stops a process for certain does it.
                return self.hands.signal(libc::SIGSTOP);
            }
            _ => {}
        }
        let events = match order {
            Order::Finish | Order::Pause { .. } => Vec::new(),
            Order::Start { first, task } => self.start_more(first, &task),
            order => self.hands.carry_out(order, &self.epoll),
        };
        self.tell(events);
    }

    /// Starts ranks of another job, all or none.
    fn start_more(&mut self, first: usize, message: &[u8]) -> Vec<Event> {
        let task = task::decode(message, self.secret, self.own).map_err(Refusal::from).and_then(prepare);
        match task.and_then(|task| self.hands.start(&task, &self.epoll)) {
            Ok(mut events) => {
                events.push(Event::Begun { first });
                events
            }
            Err(refusal) => {
                self.hands.forget_from(first, &self.epoll);
                vec![Event::NotBegun { first, text: refusal.text }]
            }
        }
    }

    /// Tells the root what has happened, but for questions that are answered here.
    fn tell(&mut self, events: Vec<Event>) {
        for event in events {
            let known = match &event {
                Event::Pmi { rank, line } => self.answers.known(*rank, line),
                _ => None,
            };
            match (known, event) {
                (Some(line), Event::Pmi { rank, .. }) => {
                    let deaf = self.hands.carry_out(Order::Pmi { rank, line }, &self.epoll);
                    self.tell(deaf);
                }
                (_, event) => {
                    if let Some(link) = &mut self.link {
                        link.push(&event.encode());
                    }
                }
            }
        }
    }
}

/// Kills and waits for what has been started, for a bounded time.
fn clean_up(hands: &mut Hands) {
    let until = Instant::now() + DRAIN;
    while hands.kill_leftovers() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    hands.remove_remains();
}

/// What the root has answered to `get`: a pair is put once, so all ranks of this host get the same.
#[derive(Default)]
struct Answers {
    asked: HashMap<usize, Vec<u8>>,
    known: HashMap<Vec<u8>, String>,
    bytes: usize,
}

impl Answers {
    /// Most bytes of answers that are kept.
    const BYTES_MAX: usize = 64 << 20;

    /// The answer to a line of a rank; if there is none, the answer of the root will be one.
    fn known(&mut self, rank: usize, line: &[u8]) -> Option<String> {
        if !line.starts_with(b"cmd=get ") {
            return None;
        }
        let known = self.known.get(line).cloned();
        if known.is_none() {
            self.asked.insert(rank, line.to_vec());
        }
        known
    }

    /// Keeps what the root answers to a rank; a refusal may become an answer later.
    fn learn(&mut self, rank: usize, answer: &str) {
        let Some(line) = self.asked.remove(&rank) else { return };
        let bytes = line.len() + answer.len();
        if answer.starts_with("cmd=get_result rc=0 ") && self.bytes + bytes <= Answers::BYTES_MAX {
            self.bytes += bytes;
            self.known.insert(line, answer.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handovers() {
        let good = "tern-agent 3 000102030405060708090a0b0c0d0eff 10.0.0.1:77\n";
        let (host, secret, address) = read_handover(good).unwrap();
        assert_eq!((host, secret[15], address), (3, 255, "10.0.0.1:77".parse().unwrap()));
        for wrong in
            ["", "tern-agent 3", "x 3 00 1", &good.replace("00010", "0x010"), &good.replace(":77", "")]
        {
            assert_eq!(read_handover(wrong), None, "{wrong}");
        }
        assert!(read_handover(&good.replace("10.0.0.1", "[fe::1]")).is_some());
    }

    #[test]
    fn answers_are_kept_and_refusals_are_not() {
        let mut answers = Answers::default();
        let line = b"cmd=get kvsname=k key=a";
        assert_eq!(answers.known(1, line), None);
        answers.learn(1, "cmd=get_result rc=-1 msg=no_such_key\n");
        assert_eq!(answers.known(2, line), None);
        answers.learn(2, "cmd=get_result rc=0 value=v\n");
        assert_eq!(answers.known(1, line).as_deref(), Some("cmd=get_result rc=0 value=v\n"));
        assert_eq!(answers.known(1, b"cmd=put kvsname=k key=a value=b"), None);
        answers.learn(1, "cmd=put_result rc=0\n");
        assert_eq!(answers.known.len(), 1);
    }
}
