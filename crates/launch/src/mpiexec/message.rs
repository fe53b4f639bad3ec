//! What a launcher and the ranks of one host tell each other: events of the ranks, and orders to them.
//!
//! On one host both sides are in one process, and this is a call. In a job of several hosts it is what travels
//! between `mpiexec` and its [agents](super::agent): a length, a kind, a rank and the rest, little-endian.
use crate::sys::process::Ended;

/// Something has happened to a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It runs, as this process, on these CPUs.
    Started {
        /// The rank.
        rank: usize,
        /// Its process id on its host.
        pid: i32,
        /// Its CPUs as people read them.
        cpus: String,
    },
    /// A line of PMI.
    Pmi {
        /// The rank.
        rank: usize,
        /// The line without its newline; one that is longer than any may be, as far as it was read.
        line: Vec<u8>,
    },
    /// It does not read the answers on its PMI channel.
    Deaf {
        /// The rank.
        rank: usize,
    },
    /// A packet on the control channel.
    Control {
        /// The rank.
        rank: usize,
        /// A [line](crate::report::Line).
        packet: Vec<u8>,
    },
    /// It has closed its control channel.
    Silent {
        /// The rank.
        rank: usize,
    },
    /// It has written.
    Output {
        /// The rank.
        rank: usize,
        /// 0 for the standard output, 1 for the error output.
        which: usize,
        /// What; nothing at the end.
        bytes: Vec<u8>,
    },
    /// The last [`Order::Input`] has been taken: there is room for the next.
    InputTaken,
    /// Nobody reads the input any more.
    InputClosed,
    /// The answer to [`Order::Look`].
    Looked {
        /// The rank.
        rank: usize,
        /// What its process does; nothing if that cannot be seen.
        text: String,
    },
    /// Its process has ended.
    Ended {
        /// The rank.
        rank: usize,
        /// How.
        how: Ended,
    },
    /// Nothing could be started on this host.
    Refused {
        /// The exit code of the job.
        code: u8,
        /// Why.
        text: String,
    },
    /// The ranks of [`Order::Start`] run.
    Begun {
        /// The first process of their job.
        first: usize,
    },
    /// None of them runs.
    NotBegun {
        /// The first process of their job.
        first: usize,
        /// Why.
        text: String,
    },
}

/// Something is to be done to the ranks of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Send a line (with its newline) to a rank on its PMI channel.
    Pmi {
        /// The rank.
        rank: usize,
        /// The line.
        line: String,
    },
    /// Close both channels of a rank.
    Drop {
        /// The rank.
        rank: usize,
    },
    /// Say what the process of a rank is doing.
    Look {
        /// The rank.
        rank: usize,
    },
    /// Send a signal to all processes of all ranks.
    Signal {
        /// The signal.
        signal: i32,
    },
    /// Write the number of a question on the board.
    Ask {
        /// The number.
        question: u32,
    },
    /// Pass these bytes on to the rank that reads the input; none are its end.
    Input {
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Read no output of this kind, or read it again.
    Pause {
        /// 0 for the standard output, 1 for the error output.
        which: usize,
        /// Whether to pause.
        paused: bool,
    },
    /// Nobody reads what this rank writes.
    Close {
        /// The rank.
        rank: usize,
        /// 0 for the standard output, 1 for the error output.
        which: usize,
    },
    /// All ranks of the job have ended: clean up and leave.
    Finish,
    /// Start more ranks, of a job that ranks have asked for.
    Start {
        /// The first process of their job.
        first: usize,
        /// A [task](super::task).
        task: Vec<u8>,
    },
    /// Get rid of the ranks from this one on, whose job could not be started elsewhere.
    Forget {
        /// The first process of their job.
        first: usize,
    },
}

/// Longest message after its length: the first one of a job holds an environment, which the kernel keeps
/// below a quarter of this.
pub const MESSAGE_MAX: usize = 16 << 20;
/// Bytes in front of each message.
pub const PREFIX: usize = 4;

/// Puts the length in front of a message.
pub fn framed(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("messages are short").to_le_bytes();
    [&length, body].concat()
}

/// The length of the message behind a prefix, or why there is none.
pub fn length(prefix: [u8; PREFIX]) -> Result<usize, String> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MESSAGE_MAX {
        return Err(format!("a message of {length} bytes is longer than {MESSAGE_MAX}"));
    }
    Ok(length)
}

/// Fields one after the other.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// A small number.
    pub fn byte(&mut self, value: u8) -> &mut Writer {
        self.0.push(value);
        self
    }

    /// A number.
    pub fn number(&mut self, value: usize) -> &mut Writer {
        self.0.extend((value as u64).to_le_bytes());
        self
    }

    /// Bytes with their length.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Writer {
        self.number(value.len());
        self.0.extend(value);
        self
    }
}

/// Reads fields; an error says which one is cut.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (head, rest) = self.0.split_at_checked(count).ok_or("it is cut")?;
        self.0 = rest;
        Ok(head)
    }

    /// A small number.
    pub fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    /// A number.
    pub fn number(&mut self) -> Result<usize, String> {
        let bytes = self.take(8)?.try_into().expect("eight were taken");
        usize::try_from(u64::from_le_bytes(bytes)).map_err(|_| "a number is too large".into())
    }

    /// A number of things of which each takes a byte at least.
    pub fn count(&mut self) -> Result<usize, String> {
        let count = self.number()?;
        if count > self.0.len() { Err("it is cut".into()) } else { Ok(count) }
    }

    /// Bytes with their length.
    pub fn bytes(&mut self) -> Result<&'a [u8], String> {
        let count = self.number()?;
        self.take(count)
    }

    /// Text; what is no text is replaced.
    pub fn text(&mut self) -> Result<String, String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// A number that stands for one of two things.
    pub fn flag(&mut self) -> Result<bool, String> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(format!("{other} is neither yes nor no")),
        }
    }

    /// Whether all has been read.
    pub fn end(&self) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("{} bytes too many", self.0.len())) }
    }
}

impl Event {
    /// The message as it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Event::Started { rank, pid, cpus } => {
                out.byte(0).number(*rank).number(*pid as u32 as usize).bytes(cpus.as_bytes())
            }
            Event::Pmi { rank, line } => out.byte(1).number(*rank).bytes(line),
            Event::Deaf { rank } => out.byte(2).number(*rank),
            Event::Control { rank, packet } => out.byte(3).number(*rank).bytes(packet),
            Event::Silent { rank } => out.byte(4).number(*rank),
            Event::Output { rank, which, bytes } => out.byte(5).number(*rank).byte(*which as u8).bytes(bytes),
            Event::InputTaken => out.byte(6),
            Event::InputClosed => out.byte(7),
            Event::Looked { rank, text } => out.byte(8).number(*rank).bytes(text.as_bytes()),
            Event::Ended { rank, how } => {
                let (kind, number, core) = match how {
                    Ended::Code(code) => (0, *code, false),
                    Ended::Signal(signal, core) => (1, *signal, *core),
                };
                out.byte(9).number(*rank).byte(kind).number(number as u32 as usize).byte(u8::from(core))
            }
            Event::Refused { code, text } => out.byte(10).byte(*code).bytes(text.as_bytes()),
            Event::Begun { first } => out.byte(11).number(*first),
            Event::NotBegun { first, text } => out.byte(12).number(*first).bytes(text.as_bytes()),
        };
        out.0
    }

    /// Reads a message; an error says what is wrong with it.
    pub fn decode(message: &[u8]) -> Result<Event, String> {
        let mut fields = Reader(message);
        let event = match fields.byte()? {
            0 => Event::Started { rank: fields.number()?, pid: small(&mut fields)?, cpus: fields.text()? },
            1 => Event::Pmi { rank: fields.number()?, line: fields.bytes()?.into() },
            2 => Event::Deaf { rank: fields.number()? },
            3 => Event::Control { rank: fields.number()?, packet: fields.bytes()?.into() },
            4 => Event::Silent { rank: fields.number()? },
            5 => Event::Output {
                rank: fields.number()?,
                which: usize::from(fields.flag()?),
                bytes: fields.bytes()?.into(),
            },
            6 => Event::InputTaken,
            7 => Event::InputClosed,
            8 => Event::Looked { rank: fields.number()?, text: fields.text()? },
            9 => {
                let (rank, killed, number) = (fields.number()?, fields.flag()?, small(&mut fields)?);
                let core = fields.flag()?;
                let how = if killed { Ended::Signal(number, core) } else { Ended::Code(number) };
                Event::Ended { rank, how }
            }
            10 => Event::Refused { code: fields.byte()?, text: fields.text()? },
            11 => Event::Begun { first: fields.number()? },
            12 => Event::NotBegun { first: fields.number()?, text: fields.text()? },
            kind => return Err(format!("an event of kind {kind}")),
        };
        fields.end().map(|()| event)
    }

    /// The rank it is about, if it is about one.
    pub fn rank(&self) -> Option<usize> {
        match self {
            Event::Started { rank, .. }
            | Event::Pmi { rank, .. }
            | Event::Deaf { rank }
            | Event::Control { rank, .. }
            | Event::Silent { rank }
            | Event::Output { rank, .. }
            | Event::Looked { rank, .. }
            | Event::Ended { rank, .. } => Some(*rank),
            Event::InputTaken
            | Event::InputClosed
            | Event::Refused { .. }
            | Event::Begun { .. }
            | Event::NotBegun { .. } => None,
        }
    }
}

impl Order {
    /// The message as it travels.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Order::Pmi { rank, line } => out.byte(0).number(*rank).bytes(line.as_bytes()),
            Order::Drop { rank } => out.byte(1).number(*rank),
            Order::Look { rank } => out.byte(2).number(*rank),
            Order::Signal { signal } => out.byte(3).number(*signal as u32 as usize),
            Order::Ask { question } => out.byte(4).number(*question as usize),
            Order::Input { bytes } => out.byte(5).bytes(bytes),
            Order::Pause { which, paused } => out.byte(6).byte(*which as u8).byte(u8::from(*paused)),
            Order::Close { rank, which } => out.byte(7).number(*rank).byte(*which as u8),
            Order::Finish => out.byte(8),
            Order::Start { first, task } => out.byte(9).number(*first).bytes(task),
            Order::Forget { first } => out.byte(10).number(*first),
        };
        out.0
    }

    /// Reads a message; an error says what is wrong with it.
    pub fn decode(message: &[u8]) -> Result<Order, String> {
        let mut fields = Reader(message);
        let order = match fields.byte()? {
            0 => Order::Pmi { rank: fields.number()?, line: fields.text()? },
            1 => Order::Drop { rank: fields.number()? },
            2 => Order::Look { rank: fields.number()? },
            3 => Order::Signal { signal: small(&mut fields)? },
            4 => Order::Ask { question: small(&mut fields)? as u32 },
            5 => Order::Input { bytes: fields.bytes()?.into() },
            6 => Order::Pause { which: usize::from(fields.flag()?), paused: fields.flag()? },
            7 => Order::Close { rank: fields.number()?, which: usize::from(fields.flag()?) },
            8 => Order::Finish,
            9 => Order::Start { first: fields.number()?, task: fields.bytes()?.into() },
            10 => Order::Forget { first: fields.number()? },
            kind => return Err(format!("an order of kind {kind}")),
        };
        fields.end().map(|()| order)
    }
}

/// A number of 32 bits, with or without a sign.
fn small(fields: &mut Reader) -> Result<i32, String> {
    let number = u32::try_from(fields.number()?).map_err(|_| "a number is too large")?;
    Ok(number as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<Event> {
        vec![
            Event::Started { rank: 1, pid: 77, cpus: "0-3".into() },
            Event::Pmi { rank: 2, line: b"cmd=x".into() },
            Event::Deaf { rank: 3 },
            Event::Control { rank: 4, packet: b"ready".into() },
            Event::Silent { rank: 5 },
            Event::Output { rank: 6, which: 1, bytes: vec![0, 255] },
            Event::InputTaken,
            Event::InputClosed,
            Event::Looked { rank: 7, text: "asleep".into() },
            Event::Ended { rank: 8, how: Ended::Code(-1) },
            Event::Ended { rank: 8, how: Ended::Signal(9, true) },
            Event::Refused { code: 127, text: "no".into() },
            Event::Begun { first: 4 },
            Event::NotBegun { first: 4, text: "no".into() },
        ]
    }

    fn orders() -> Vec<Order> {
        vec![
            Order::Pmi { rank: 1, line: "cmd=y\n".into() },
            Order::Drop { rank: 2 },
            Order::Look { rank: 3 },
            Order::Signal { signal: 15 },
            Order::Ask { question: u32::MAX },
            Order::Input { bytes: vec![] },
            Order::Pause { which: 1, paused: true },
            Order::Close { rank: 4, which: 0 },
            Order::Finish,
            Order::Start { first: 4, task: vec![1, 2] },
            Order::Forget { first: 4 },
        ]
    }

    #[test]
    fn messages_survive() {
        for event in events() {
            assert_eq!(Event::decode(&event.encode()), Ok(event));
        }
        for order in orders() {
            assert_eq!(Order::decode(&order.encode()), Ok(order));
        }
        let frame = framed(b"abc");
        assert_eq!(length(frame[..4].try_into().unwrap()), Ok(3));
        assert!(length([255; 4]).unwrap_err().contains("longer"));
    }

    /// What is cut is refused, what is changed is read or refused, and nothing crashes or allocates without bound.
    #[test]
    fn wrong_messages_are_refused() {
        let refused = |good: &[u8], wrong: &dyn Fn(&[u8]) -> bool| {
            let cut = (0..good.len()).all(|end| wrong(&good[..end]));
            assert!(cut && wrong(&[good, b"x"].concat()), "{good:?}");
        };
        events().iter().for_each(|e| refused(&e.encode(), &|bytes| Event::decode(bytes).is_err()));
        orders().iter().for_each(|o| refused(&o.encode(), &|bytes| Order::decode(bytes).is_err()));
        for good in events().iter().map(Event::encode).chain(orders().iter().map(Order::encode)) {
            for at in 0..good.len() {
                for byte in 0..=255 {
                    let mut changed = good.clone();
                    changed[at] = byte;
                    let _ = (Event::decode(&changed), Order::decode(&changed));
                }
            }
        }
    }
}
