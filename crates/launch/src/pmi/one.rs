//! The client side of PMI-1.
use super::channel::{ANSWER_TIMEOUT, Channel, corrupt};
use super::client::{Ender, Space};
use super::line::{self, Command};
use super::spawn::{Program, Request};
use super::two::Two;
use super::value::{self, Maxes};
use crate::report::CONTROL_FD;
use crate::text::{quoted, unescape};
use std::path::PathBuf;
use std::time::Duration;

/// A connection to a launcher that speaks PMI-1.
pub(super) struct One {
    channel: Channel,
    rank: usize,
    size: usize,
    maxes: Option<Maxes>,
    kvsname: Option<String>,
    /// Where this process has begun: the launcher's directory too, unless it was told another.
    base: PathBuf,
}

impl Space for One {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn name(&mut self) -> Result<String, String> {
        if let Some(name) = &self.kvsname {
            return Ok(name.clone());
        }
        let answer = self.ask("get_my_kvsname", "", "my_kvsname")?;
        let name = answer.field("kvsname").filter(|name| !name.is_empty() && !name.contains(' '));
        let name = name.ok_or_else(|| corrupt("get_my_kvsname", "it has no kvsname="))?.to_string();
        self.kvsname = Some(name.clone());
        Ok(name)
    }

    fn appnum(&mut self) -> Result<i64, String> {
        let answer = self.ask("get_appnum", "", "appnum")?;
        answer.number("appnum").map_err(|why| corrupt("get_appnum", &why))
    }

    fn universe(&mut self) -> Result<Option<usize>, String> {
        let answer = self.ask("get_universe_size", "", "universe_size")?;
        let size = answer.number("size").map_err(|why| corrupt("get_universe_size", &why))?;
        Ok(usize::try_from(size).ok().filter(|size| *size > 0))
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), String> {
        let space = self.name()?;
        for (key, word) in value::split(key, value, self.maxes()?)? {
            self.ask("put", &format!(" kvsname={space} key={key} value={word}"), "put_result")?;
        }
        Ok(())
    }

    fn get(&mut self, key: &str) -> Result<Vec<u8>, String> {
        let space = self.name()?;
        let maxes = self.maxes()?;
        value::join(key, maxes, |key| {
            let answer = self.ask("get", &format!(" kvsname={space} key={key}"), "get_result")?;
            let value = answer.field("value").ok_or_else(|| corrupt("get", "it has no value="))?;
            Ok(value.to_string())
        })
    }

    fn barrier(&mut self) -> Result<(), String> {
        // Other ranks may be slow to come; that the launcher is gone is seen at once.
        self.send("barrier_in", "")?;
        self.answer("barrier_in", "barrier_out", None).map(drop)
    }

    fn finalize(&mut self) -> Result<(), String> {
        self.ask("finalize", "", "finalize_ack").map(drop)
    }

    fn spawn(&mut self, programs: Vec<Program>, key: &str, value: &[u8]) -> Result<(), String> {
        let pairs = value::split(key, value, self.maxes()?)?;
        let is_tern = std::env::var_os(CONTROL_FD).is_some();
        let mut request = Request { programs, pairs };
        if !is_tern {
            request.make_plain(&self.base, std::env::var_os("PATH"))?;
        }
        let lines = request.lines(is_tern)?;
        self.channel.send("spawn", lines.as_bytes())?;
        let (answer, received) = self.read("spawn", "spawn_result", Some(ANSWER_TIMEOUT))?;
        match (answer.number("rc"), answer.field("errmsg")) {
            (Ok(0), _) => Ok(()),
            (_, Some(why)) if is_tern => {
                let why = unescape(why).unwrap_or_default();
                Err(String::from_utf8_lossy(&why).into_owned())
            }
            _ => Err(format!("the launcher has refused it: received {received}")),
        }
    }

    fn ender(&self) -> Ender {
        self.channel.ender(|code| message("abort", &format!(" exitcode={code}")))
    }
}

impl One {
    /// The limits of the key-value space.
    fn maxes(&mut self) -> Result<Maxes, String> {
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

    /// A rank that knows who it is.
    pub(super) fn over(channel: Channel, rank: usize, size: usize) -> One {
        let base = std::env::current_dir().unwrap_or_default();
        One { channel, rank, size, maxes: None, kvsname: None, base }
    }

    /// The handshake of `PMI_PORT`: the server answers with the rank and the size.
    pub(super) fn introduced(channel: Channel, id: &str) -> Result<One, String> {
        let mut client = One::over(channel, 0, 0);
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
            (Some(Ok(rank)), Some(Ok(size))) if rank < size => Ok(One { rank, size, ..client }),
            _ => {
                let told = |number: Option<i64>| number.map_or("unknown".into(), |number| number.to_string());
                Err(corrupt("initack", &format!("rank {} of size {}", told(rank), told(size))))
            }
        }
    }

    /// Agrees on a version, which is of all connections the first line; `prefers_two` says which is offered first.
    pub(super) fn agree(mut self, prefers_two: bool) -> Result<Box<dyn Space>, String> {
        let mut refusal = String::new();
        for version in if prefers_two { [2, 1] } else { [1, 2] } {
            match self.offer(version) {
                Ok(Offered::Taken) if version == 1 => return Ok(Box::new(self)),
                Ok(Offered::Taken) => return Ok(Box::new(Two::begin(self.channel, self.rank)?)),
                Ok(Offered::Refused(received)) => refusal = received,
                // After a refusal the launcher need not go on: what it said first says why.
                Err(_) if !refusal.is_empty() => break,
                Err(why) => return Err(why),
            }
        }
        Err(format!("the launcher speaks neither PMI-1 nor PMI-2: received {refusal}"))
    }

    fn offer(&mut self, version: i64) -> Result<Offered, String> {
        let subversion = i64::from(version == 1);
        self.send("init", &format!(" pmi_version={version} pmi_subversion={subversion}"))?;
        let (answer, received) = self.read("init", "response_to_init", Some(ANSWER_TIMEOUT))?;
        let number =
            |key| answer.number(key).map_err(|why| corrupt("init", &format!("{why}; received {received}")));
        let is_taken = number("rc")? == 0 && number("pmi_version")? == version;
        Ok(if is_taken { Offered::Taken } else { Offered::Refused(received) })
    }

    fn ask(&mut self, command: &str, fields: &str, expected: &str) -> Result<Command, String> {
        self.send(command, fields)?;
        self.answer(command, expected, Some(ANSWER_TIMEOUT))
    }

    fn send(&mut self, command: &str, fields: &str) -> Result<(), String> {
        self.channel.send(command, message(command, fields).as_bytes())
    }

    /// Reads one line and takes nothing for granted in it; with it the line for people.
    fn read(
        &mut self,
        command: &str,
        expected: &str,
        timeout: Option<Duration>,
    ) -> Result<(Command, String), String> {
        let line = self.channel.line(command, timeout)?;
        let received = quoted(&line);
        let answer = line::parse_line(&line)
            .map_err(|malformed| corrupt(command, &format!("{malformed}; received {received}")))?;
        if answer.name != expected {
            return Err(corrupt(command, &format!("cmd={expected} was expected; received {received}")));
        }
        Ok((answer, received))
    }

    /// Reads the answer to a command that was not refused.
    fn answer(
        &mut self,
        command: &str,
        expected: &str,
        timeout: Option<Duration>,
    ) -> Result<Command, String> {
        let (answer, received) = self.read(command, expected, timeout)?;
        // `barrier_out` and `set` carry no rc with some launchers.
        match answer.field("rc").map(|_| answer.number("rc")) {
            None | Some(Ok(0)) => Ok(answer),
            Some(Ok(rc)) => {
                Err(format!("PMI {command} was refused by the launcher (rc={rc}): received {received}"))
            }
            Some(Err(why)) => Err(corrupt(command, &format!("{why}; received {received}"))),
        }
    }
}

fn message(command: &str, fields: &str) -> String {
    format!("cmd={command}{fields}\n")
}

/// What became of a version that was offered.
enum Offered {
    Taken,
    /// With what the launcher said.
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::super::line::LINE_MAX;
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;

    /// A client whose server says `script` whatever it is asked, and then closes.
    fn scripted(script: &str) -> One {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(script.as_bytes()).unwrap();
        // Closing with unread requests would reset the connection before the answers are read.
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        std::mem::forget(theirs);
        One::over(Channel::over(ours.into()), 0, 2)
    }

    #[test]
    fn a_good_conversation() {
        let mut client = scripted(
            "cmd=maxes rc=0 vallen_max=1024 kvsname_max=256 keylen_max=64\n\
             cmd=appnum rc=0 appnum=1\ncmd=my_kvsname kvsname=kvs_1 rc=0\ncmd=universe_size rc=0 size=-1\n\
             cmd=put_result rc=0\ncmd=barrier_out tag=0\ncmd=get_result rc=0 msg=success value=sa%20b\n\
             cmd=finalize_ack rc=0\n",
        );
        assert_eq!(client.maxes().unwrap().key_bytes, 64);
        assert_eq!(client.appnum(), Ok(1));
        assert_eq!(client.name().unwrap(), "kvs_1");
        assert_eq!(client.universe(), Ok(None));
        client.put("key", b"v").unwrap();
        client.barrier().unwrap();
        assert_eq!(client.get("key").unwrap(), b"a b");
        client.finalize().unwrap();
    }

    #[test]
    fn the_job_can_be_ended_while_others_are_waited_for() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut client = One::over(Channel::over(ours.into()), 0, 2);
        let ender = client.ender();
        let waits = std::thread::spawn(move || client.barrier());
        let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "cmd=barrier_in");
        ender.end(7).unwrap();
        assert_eq!(lines.next().unwrap(), "cmd=abort exitcode=7");
        theirs.write_all(b"cmd=barrier_out\n").unwrap();
        waits.join().unwrap().unwrap();
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
            let error = One::over(Channel::over(ours.into()), 0, 1).maxes().unwrap_err();
            assert!(error.contains("get_maxes") && error.contains(named), "{named}: {error}");
            drop(writer.join());
        }
    }

    #[test]
    fn a_launcher_of_another_version_is_refused() {
        let three = "cmd=response_to_init rc=0 pmi_version=3 pmi_subversion=0\n";
        for script in [three.to_string(), three.repeat(2)] {
            let error = scripted(&script).agree(false).err().unwrap();
            assert!(error.contains("neither") && error.contains("pmi_version=3"), "{error}");
        }
        let error = scripted("cmd=response_to_init rc=zero pmi_version=1\n").agree(false).err().unwrap();
        assert!(error.contains("rc='zero'"), "{error}");
    }
}
