//! The client side of PMI-1: what a rank asks its launcher.
use super::environment::Launcher;
use super::line::{self, Command, LINE_MAX};
use super::value::{self, Maxes};
use crate::sys::{self, event};
use crate::text::{Lines, quoted};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a launcher may take for an answer that does not depend on other ranks. It is far above
/// what a loaded host needs, and an end to the wait for one that hangs.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection to `PMI_PORT` may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to the launcher, from init to finalize.
pub struct Client {
    server: File,
    lines: Lines,
    rank: usize,
    size: usize,
    maxes: Option<Maxes>,
    kvsname: Option<String>,
}

impl Client {
    /// Connects to the launcher that the environment of this process names and agrees on the
    /// version; `None` if there is none: the process is a job of one rank.
    pub fn from_env() -> Result<Option<Client>, String> {
        let connected = match Launcher::detect(|name| std::env::var(name).ok())? {
            Launcher::None => return Ok(None),
            Launcher::Descriptor { fd, rank, size } => {
                let server = sys::adopt(fd).map_err(|error| {
                    format!(
                        "PMI_FD={fd} is not an open descriptor ({error}): the launcher's environment is there \
                         but a program between it and this process closed its connection"
                    )
                })?;
                Client::over(server, rank, size)
            }
            Launcher::Port { host, port, id } => Client::connect(&host, port, &id)?,
        };
        connected.init().map(Some)
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks of the job.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The limits of the key-value space.
    pub fn get_maxes(&mut self) -> Result<Maxes, String> {
        if let Some(maxes) = self.maxes {
            return Ok(maxes);
        }
        let answer = self.ask("get_maxes", "", "maxes")?;
        let read = |key| {
            let number = answer.number(key).map_err(|why| corrupt("get_maxes", &why))?;
            usize::try_from(number).map_err(|_| corrupt("get_maxes", &format!("{key}={number} is negative")))
        };
        let maxes = Maxes {
            name_bytes: read("kvsname_max")?,
            key_bytes: read("keylen_max")?,
            value_bytes: read("vallen_max")?,
        };
        self.maxes = Some(maxes);
        Ok(maxes)
    }

    /// Which of the programs of a job of several programs this is.
    pub fn get_appnum(&mut self) -> Result<i64, String> {
        let answer = self.ask("get_appnum", "", "appnum")?;
        answer.number("appnum").map_err(|why| corrupt("get_appnum", &why))
    }

    /// The name of the job's key-value space.
    pub fn get_my_kvsname(&mut self) -> Result<String, String> {
        if let Some(name) = &self.kvsname {
            return Ok(name.clone());
        }
        let answer = self.ask("get_my_kvsname", "", "my_kvsname")?;
        let name = answer.field("kvsname").filter(|name| !name.is_empty() && !name.contains(' '));
        let name = name.ok_or_else(|| corrupt("get_my_kvsname", "it has no kvsname="))?.to_string();
        self.kvsname = Some(name.clone());
        Ok(name)
    }

    /// How many ranks the launcher could run in all, if it knows.
    pub fn get_universe_size(&mut self) -> Result<Option<usize>, String> {
        let answer = self.ask("get_universe_size", "", "universe_size")?;
        let size = answer.number("size").map_err(|why| corrupt("get_universe_size", &why))?;
        Ok(usize::try_from(size).ok().filter(|size| *size > 0))
    }

    /// Makes `value` known under `key` to all who call [`Client::get`] after the next barrier.
    /// Any bytes and any length will do; a key is put once.
    pub fn put(&mut self, key: &str, value: &[u8]) -> Result<(), String> {
        let space = self.get_my_kvsname()?;
        for (key, word) in value::split(key, value, self.get_maxes()?)? {
            self.ask("put", &format!(" kvsname={space} key={key} value={word}"), "put_result")?;
        }
        Ok(())
    }

    /// The value that a rank has put under `key` before the last barrier.
    pub fn get(&mut self, key: &str) -> Result<Vec<u8>, String> {
        let space = self.get_my_kvsname()?;
        let maxes = self.get_maxes()?;
        value::join(key, maxes, |key| {
            let answer = self.ask("get", &format!(" kvsname={space} key={key}"), "get_result")?;
            let value = answer.field("value").ok_or_else(|| corrupt("get", "it has no value="))?;
            Ok(value.to_string())
        })
    }

    /// Waits until every rank of the job is here.
    pub fn barrier(&mut self) -> Result<(), String> {
        // Other ranks may be slow to come; that the launcher is gone is seen at once.
        self.send("barrier_in", "")?;
        self.answer("barrier_in", "barrier_out", None).map(drop)
    }

    /// Tells the launcher that this rank is about to end as it should.
    pub fn finalize(mut self) -> Result<(), String> {
        self.ask("finalize", "", "finalize_ack").map(drop)
    }

    /// Has the launcher end the whole job; the caller exits after this.
    pub fn abort(&mut self, code: i32) -> Result<(), String> {
        self.send("abort", &format!(" exitcode={code}"))
    }

    fn over(server: OwnedFd, rank: usize, size: usize) -> Client {
        Client { server: server.into(), lines: Lines::default(), rank, size, maxes: None, kvsname: None }
    }

    /// The handshake of `PMI_PORT`: the server answers with the rank and the size.
    fn connect(host: &str, port: u16, id: &str) -> Result<Client, String> {
        let stream = dial(host, port).map_err(|error| format!("PMI_PORT={host}:{port}: {error}"))?;
        // Requests are small and each is waited for: nothing can be gained by delaying them.
        stream.set_nodelay(true).map_err(|error| format!("PMI_PORT={host}:{port}: {error}"))?;
        let mut client = Client::over(stream.into(), 0, 0);
        client.send("initack", &format!(" pmiid={id}"))?;
        client.answer("initack", "initack", Some(ANSWER_TIMEOUT))?;
        let (mut rank, mut size) = (None, None);
        loop {
            let set = client.answer("initack", "set", Some(ANSWER_TIMEOUT))?;
            let number = |key| set.number(key).map_err(|why| corrupt("initack", &why));
            if set.field("size").is_some() {
                size = Some(number("size")?);
            } else if set.field("rank").is_some() {
                rank = Some(number("rank")?);
            } else if set.field("debug").is_some() {
                break;
            }
        }
        match (rank.map(usize::try_from), size.map(usize::try_from)) {
            (Some(Ok(rank)), Some(Ok(size))) if rank < size => Ok(Client { rank, size, ..client }),
            _ => {
                let told = |number: Option<i64>| number.map_or("unknown".into(), |number| number.to_string());
                Err(corrupt("initack", &format!("rank {} of size {}", told(rank), told(size))))
            }
        }
    }

    fn init(mut self) -> Result<Client, String> {
        let answer = self.ask("init", " pmi_version=1 pmi_subversion=1", "response_to_init")?;
        match answer.number("pmi_version").map_err(|why| corrupt("init", &why))? {
            1 => Ok(self),
            version => Err(format!("the launcher speaks PMI version {version}; this library speaks PMI-1")),
        }
    }

    fn ask(&mut self, command: &str, fields: &str, expected: &str) -> Result<Command, String> {
        self.send(command, fields)?;
        self.answer(command, expected, Some(ANSWER_TIMEOUT))
    }

    fn send(&mut self, command: &str, fields: &str) -> Result<(), String> {
        let line = format!("cmd={command}{fields}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match sys::send(self.server.as_fd(), rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    match event::wait_one(self.server.as_fd(), event::WRITE, Some(ANSWER_TIMEOUT)) {
                        Ok(true) => {}
                        _ => return Err(lost(command, "it does not read")),
                    }
                }
                Err(error) => return Err(lost(command, &error.to_string())),
            }
        }
        Ok(())
    }

    /// Reads one line and takes nothing for granted in it.
    fn answer(
        &mut self,
        command: &str,
        expected: &str,
        timeout: Option<Duration>,
    ) -> Result<Command, String> {
        let line = self.read_line(command, timeout)?;
        let received = quoted(&line);
        let answer = line::parse_line(&line)
            .map_err(|malformed| corrupt(command, &format!("{malformed}; received {received}")))?;
        if answer.name != expected {
            return Err(corrupt(command, &format!("cmd={expected} was expected; received {received}")));
        }
        // `barrier_out` and `set` carry no rc with some launchers.
        match answer.field("rc").map(|_| answer.number("rc")) {
            None | Some(Ok(0)) => Ok(answer),
            Some(Ok(rc)) => {
                Err(format!("PMI {command} was refused by the launcher (rc={rc}): received {received}"))
            }
            Some(Err(why)) => Err(corrupt(command, &format!("{why}; received {received}"))),
        }
    }

    fn read_line(&mut self, command: &str, timeout: Option<Duration>) -> Result<Vec<u8>, String> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut buffer = [0u8; 4096];
        loop {
            if let Some(line) = self.lines.next_line() {
                return Ok(line);
            }
            if self.lines.partial().len() > LINE_MAX {
                let begin = quoted(self.lines.partial());
                return Err(corrupt(command, &format!("the line is too long; it begins {begin}")));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match event::wait_one(self.server.as_fd(), event::READ, left) {
                Ok(true) => {}
                Ok(false) => {
                    let waited = timeout.unwrap_or_default().as_secs();
                    return Err(lost(command, &format!("no answer in {waited} s")));
                }
                Err(error) => return Err(lost(command, &error.to_string())),
            }
            match self.server.read(&mut buffer) {
                Ok(0) => return Err(lost(command, "it closed the connection")),
                Ok(count) => self.lines.push(&buffer[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(error) => return Err(lost(command, &error.to_string())),
            }
        }
    }
}

fn corrupt(command: &str, why: &str) -> String {
    format!("PMI {command}: the launcher's answer is corrupt: {why}")
}

fn lost(command: &str, why: &str) -> String {
    format!("PMI {command}: the launcher is gone or does not answer: {why}")
}

/// Connects to the first address that works. Launchers announce the name of their host; where no
/// name service knows it, the name of this host still means this host.
fn dial(host: &str, port: u16) -> Result<TcpStream, String> {
    let found = match (host, port).to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(_) if host == sys::hostname() => vec![std::net::SocketAddr::from(([127, 0, 0, 1], port))],
        Err(error) => return Err(format!("the name cannot be resolved: {error}")),
    };
    let mut last = String::from("the name has no address");
    for address in found {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("{address}: {error}"),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    /// A client whose server says `script` whatever it is asked, and then closes.
    fn scripted(script: &str) -> Client {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(script.as_bytes()).unwrap();
        // Closing with unread requests would reset the connection before the answers are read.
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        std::mem::forget(theirs);
        Client::over(ours.into(), 0, 2)
    }

    #[test]
    fn a_good_conversation() {
        let mut client = scripted(
            "cmd=maxes rc=0 vallen_max=1024 kvsname_max=256 keylen_max=64\n\
             cmd=appnum rc=0 appnum=1\ncmd=my_kvsname kvsname=kvs_1 rc=0\ncmd=universe_size rc=0 size=-1\n\
             cmd=put_result rc=0\ncmd=barrier_out tag=0\ncmd=get_result rc=0 msg=success value=sa%20b\n\
             cmd=finalize_ack rc=0\n",
        );
        assert_eq!(client.get_maxes().unwrap().key_bytes, 64);
        assert_eq!(client.get_appnum(), Ok(1));
        assert_eq!(client.get_my_kvsname().unwrap(), "kvs_1");
        assert_eq!(client.get_universe_size(), Ok(None));
        client.put("key", b"v").unwrap();
        client.barrier().unwrap();
        assert_eq!(client.get("key").unwrap(), b"a b");
        client.finalize().unwrap();
    }

    #[test]
    fn corrupt_answers_name_the_command_and_what_was_received() {
        let long = "x".repeat(LINE_MAX + 10);
        let cases = [
            ("cmd=maxes rc=0 kvsname_max=256 keylen_max=64\n", "vallen_max"),
            ("cmd=maxes rc=0 kvsname_max=256 keylen_max=-1 vallen_max=9\n", "keylen_max=-1"),
            ("cmd=maxes rc=0 kvsname_max=2x6 keylen_max=64 vallen_max=1024\n", "2x6"),
            ("cmd=appnum rc=0 appnum=1\n", "cmd=appnum"),
            ("cmd=maxes rc=-1 msg=no space\n", "rc=-1"),
            ("cmd=maxes rc=zero\n", "rc='zero'"),
            ("\u{7f}ELF\n", "7f"),
            (long.as_str(), "too long"),
            ("cmd=ma", "closed"),
            ("", "closed"),
        ];
        for (script, named) in cases {
            // A script longer than a socket holds is written while the client reads.
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let bytes = script.as_bytes().to_vec();
            let writer = std::thread::spawn(move || {
                let _ = theirs.write_all(&bytes);
                let _ = theirs.shutdown(std::net::Shutdown::Write);
                theirs
            });
            let error = Client::over(ours.into(), 0, 1).get_maxes().unwrap_err();
            assert!(error.contains("get_maxes") && error.contains(named), "{named}: {error}");
            drop(writer.join());
        }
    }

    #[test]
    fn a_launcher_of_another_version_is_refused() {
        let error =
            scripted("cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n").init().err().unwrap();
        assert!(error.contains("version 2"), "{error}");
        let error = scripted("cmd=response_to_init rc=-1 pmi_version=2\n").init().err().unwrap();
        assert!(error.contains("rc=-1"), "{error}");
    }
}
