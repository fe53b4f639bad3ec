//! The client side of PMI-2, as Slurm's plugin `pmi2` and MPICH's launchers speak it.
//!
//! A message is its length in six characters, and fields `key=value;` of which the first is `cmd`; a semicolon in a value
//! is doubled.
use super::channel::{ANSWER_TIMEOUT, Channel, corrupt};
use super::client::{Ender, Space};
use super::line::LINE_MAX;
use super::value::{self, Maxes};
use crate::text::quoted;
use std::time::Duration;

/// `PMI2_MAX_KEYLEN` and `PMI2_MAX_VALLEN`; no message tells them.
const MAXES: Maxes = Maxes { name_bytes: 64, key_bytes: 64, value_bytes: 1024 };
/// Characters of the length.
const LENGTH_BYTES: usize = 6;

/// A connection to a launcher that speaks PMI-2.
pub(super) struct Two {
    channel: Channel,
    rank: usize,
    size: usize,
    appnum: i64,
    job: String,
}

impl Two {
    /// What follows when both sides have agreed on the version.
    pub(super) fn begin(channel: Channel, rank: usize) -> Result<Two, String> {
        let mut client = Two { channel, rank, size: 0, appnum: 0, job: String::new() };
        let job = std::env::var("PMI_JOBID").unwrap_or_default();
        let (rank, job) = (rank.to_string(), job);
        let fields = [("pmijobid", job.as_str()), ("pmirank", rank.as_str()), ("threaded", "FALSE")];
        let answer = client.ask("fullinit", &fields)?;
        let (at, size) = (answer.number("rank")?, answer.number("size")?);
        client.appnum = answer.number("appnum").unwrap_or(0);
        match (usize::try_from(at), usize::try_from(size)) {
            (Ok(at), Ok(size)) if at < size => (client.rank, client.size) = (at, size),
            _ => return Err(corrupt("fullinit", &format!("rank {at} of size {size}"))),
        }
        client.job = client.ask("job-getid", &[])?.field("jobid")?.to_string();
        Ok(client)
    }

    fn ask(&mut self, command: &str, fields: &[(&str, &str)]) -> Result<Answer, String> {
        self.ask_within(command, fields, Some(ANSWER_TIMEOUT))
    }

    fn ask_within(
        &mut self,
        command: &str,
        fields: &[(&str, &str)],
        timeout: Option<Duration>,
    ) -> Result<Answer, String> {
        self.send(command, fields)?;
        let answer = self.read(command, timeout)?;
        let expected = format!("{command}-response");
        if answer.field("cmd")? != expected {
            return Err(answer.corrupt(&format!("cmd={expected} was expected")));
        }
        match answer.number("rc")? {
            0 => Ok(answer),
            rc => Err(format!(
                "PMI {command} was refused by the launcher (rc={rc}): received {}",
                answer.received
            )),
        }
    }

    fn send(&mut self, command: &str, fields: &[(&str, &str)]) -> Result<(), String> {
        self.channel.send(command, message(command, fields).as_bytes())
    }

    fn read(&mut self, command: &str, timeout: Option<Duration>) -> Result<Answer, String> {
        let length = self.channel.exactly(LENGTH_BYTES, command, timeout)?;
        let count = std::str::from_utf8(&length).ok().and_then(|text| text.trim().parse::<usize>().ok());
        let count = count.filter(|count| *count <= LINE_MAX);
        let count = count.ok_or_else(|| corrupt(command, &format!("{} is not a length", quoted(&length))))?;
        let body = self.channel.exactly(count, command, Some(ANSWER_TIMEOUT))?;
        Answer::parse(command, &body)
    }
}

/// A message of the launcher.
pub struct Answer {
    command: String,
    received: String,
    /// In the order in which they stand there, with their values as they were meant.
    pub fields: Vec<(String, String)>,
}

impl Answer {
    /// What follows the length, as the answer to a command.
    pub fn parse(command: &str, body: &[u8]) -> Result<Answer, String> {
        let mut answer = Answer { command: command.into(), received: quoted(body), fields: Vec::new() };
        if !body.iter().all(|byte| (b' '..=b'~').contains(byte)) {
            return Err(answer.corrupt("it is not text"));
        }
        let mut rest = std::str::from_utf8(body).expect("ASCII was checked");
        while !rest.is_empty() {
            let (key, behind) = rest.split_once('=').ok_or_else(|| answer.corrupt("a field has no ="))?;
            let (value, behind) =
                until_semicolon(behind).ok_or_else(|| answer.corrupt("a field has no end"))?;
            if answer.fields.iter().any(|(known, _)| known == key) {
                return Err(answer.corrupt(&format!("field {key} occurs twice")));
            }
            answer.fields.push((key.into(), value));
            rest = behind;
        }
        Ok(answer)
    }

    fn field(&self, key: &str) -> Result<&str, String> {
        let found = self.fields.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str());
        found.ok_or_else(|| self.corrupt(&format!("it has no {key}=")))
    }

    fn number(&self, key: &str) -> Result<i64, String> {
        self.field(key)?.parse().map_err(|_| self.corrupt(&format!("{key} is not a number")))
    }

    fn corrupt(&self, why: &str) -> String {
        corrupt(&self.command, &format!("{why}; received {}", self.received))
    }
}

/// A value and what follows its semicolon; two of them are one of the value.
fn until_semicolon(text: &str) -> Option<(String, &str)> {
    let (mut value, mut rest) = (String::new(), text);
    loop {
        let (piece, behind) = rest.split_once(';')?;
        value += piece;
        match behind.strip_prefix(';') {
            Some(further) => {
                value.push(';');
                rest = further;
            }
            None => return Some((value, behind)),
        }
    }
}

impl Space for Two {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn name(&mut self) -> Result<String, String> {
        Ok(self.job.clone())
    }

    fn appnum(&mut self) -> Result<i64, String> {
        Ok(self.appnum)
    }

    fn universe(&mut self) -> Result<Option<usize>, String> {
        let answer = self.ask("info-getjobattr", &[("key", "universeSize")])?;
        let size = if answer.field("found")? == "TRUE" { answer.number("value")? } else { 0 };
        Ok(usize::try_from(size).ok().filter(|size| *size > 0))
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), String> {
        for (key, word) in value::split(key, value, MAXES)? {
            self.ask("kvs-put", &[("key", &key), ("value", &word)])?;
        }
        Ok(())
    }

    fn get(&mut self, key: &str) -> Result<Vec<u8>, String> {
        let job = self.job.clone();
        value::join(key, MAXES, |key| {
            let answer = self.ask("kvs-get", &[("jobid", &job), ("srcid", "-1"), ("key", key)])?;
            match answer.field("found")? {
                "TRUE" => Ok(answer.field("value")?.to_string()),
                _ => Err(format!("PMI kvs-get: no rank has put {key}")),
            }
        })
    }

    fn barrier(&mut self) -> Result<(), String> {
        // Other ranks may be slow to come.
        self.ask_within("kvs-fence", &[], None).map(drop)
    }

    fn finalize(&mut self) -> Result<(), String> {
        self.ask("finalize", &[]).map(drop)
    }

    fn ender(&self) -> Ender {
        self.channel.ender(|code| {
            message("abort", &[("isworld", "TRUE"), ("msg", "MPI_Abort"), ("exitcode", &code.to_string())])
        })
    }
}

/// A command with these fields behind it, as it is sent.
pub fn message(command: &str, fields: &[(&str, &str)]) -> String {
    let mut body = format!("cmd={command};");
    for (key, value) in fields {
        body += &format!("{key}={};", value.replace(';', ";;"));
    }
    format!("{:6}{body}", body.len())
}

#[cfg(test)]
mod tests;
