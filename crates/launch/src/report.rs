//! The lines of the control channel: what a rank tells `mpiexec` about itself.
//!
//! `mpiexec` asks by writing the number of its question on the board, a word of memory that all ranks
//! read; a rank answers, from inside MPI, with one `pending` line per operation, `begun` lines with how many
//! collectives it has begun on each communicator, and an `end`, which name the question. Unasked it says `ready` (it reads the board) and `fatal`. A line is a verb and
//! words `key=value`, escaped as in [`crate::text`], in a packet of its own: threads may send at once.
use crate::text::{escape, escape_into, quoted, unescape};
use std::fmt::{self, Write};

/// The environment variable with the descriptor of the control channel.
pub const CONTROL_FD: &str = "TERN_CONTROL_FD";
/// The environment variable with the descriptor of the board.
pub const BOARD_FD: &str = "TERN_BOARD_FD";
/// The environment variable that marks the processes of a job on one host.
pub const JOB: &str = "TERN_JOB";
/// The environment variable with the address at which ranks of other hosts reach those of this one. It is there
/// when Tern's `mpiexec` has started a job on several hosts.
pub const HOST_ADDRESS: &str = "TERN_HOST_ADDRESS";
/// The environment variable with the number of CPUs that the ranks of the job share. A rank that is
/// bound sees only its own.
pub const JOB_CPUS: &str = "TERN_JOB_CPUS";

/// How the names of shared memory segments of a job begin. `mpiexec` removes what a killed rank has
/// left under such a name; `kvsname` is the name of the job's key-value space.
pub fn segment_prefix(kvsname: &str) -> String {
    // The name is the launcher's: nothing in it may lead into another directory.
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("tern-{}-", kvsname.chars().map(plain).collect::<String>())
}

/// Longest line; a longer one is malformed.
pub const LINE_MAX: usize = 16 * 1024;
/// Most communicators that one `begun` line names: two numbers of up to 20 digits each.
pub const BEGUN_MAX: usize = 256;
/// Most pending operations that one report holds; the rest is only counted.
pub const PENDING_MAX: usize = 64;

/// What kind of operation is pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpType {
    /// A message that the peer has not taken yet.
    Send,
    /// A message that has not come yet.
    Recv,
    /// A collective operation; the peer is its root, if it has one.
    Collective,
    /// The call that the rank is blocked in, where its parts are listed as operations of their own.
    Wait,
    /// Not an operation of this rank: a message that has arrived and that no receive matches.
    Arrived,
}

const KINDS: [(OpType, &str); 5] = [
    (OpType::Send, "send"),
    (OpType::Recv, "recv"),
    (OpType::Collective, "collective"),
    (OpType::Wait, "wait"),
    (OpType::Arrived, "arrived"),
];

/// One pending operation of one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// The rank that reports, in the job (`MPI_COMM_WORLD`).
    pub rank: usize,
    /// The MPI function, `MPI_Recv`.
    pub operation: String,
    /// What kind of operation it is.
    pub kind: OpType,
    /// Whether the rank cannot go on before this is complete; a receive that is merely posted
    /// holds nobody up.
    pub blocking: bool,
    /// Rank of the peer in the communicator, for messages; `None`: any, or not applicable.
    pub peer: Option<usize>,
    /// Rank of the peer in the job; who waits for whom is found by this one.
    pub world_peer: Option<usize>,
    /// The tag; `None`: any, or not applicable.
    pub tag: Option<i32>,
    /// Name of the communicator.
    pub communicator: String,
    /// What tells communicators of one name apart; equal on all members.
    pub context: u64,
    /// Which call on the communicator it is, for collectives: counted alike on all members.
    pub run: Option<u64>,
    /// Ranks in the job of the members of the communicator; `None`: all ranks of the job.
    pub members: Option<Vec<usize>>,
    /// Bytes of the message, or of room for it.
    pub bytes: u64,
    /// Milliseconds since the operation began.
    pub since_ms: u64,
    /// Where in the program it was called, if known: `module+0xoffset`, which `mpiexec` looks up.
    pub address: Option<String>,
}

/// A line from a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// This process reads the board and answers.
    Ready,
    /// One pending operation.
    Pending {
        /// The question that this answers.
        question: u32,
        /// The operation.
        pending: Pending,
    },
    /// The last collective that the rank has begun on communicators it is a member of.
    Begun {
        /// The question that this answers.
        question: u32,
        /// By [context](Pending::context), the [run](Pending::run); 0 where there was none.
        runs: Vec<(u64, u64)>,
    },
    /// All pending operations have been listed.
    End {
        /// The question that this answers.
        question: u32,
        /// Changes with everything that moves: between two answers with the same number the rank
        /// has sent, received and completed nothing.
        moves: u64,
        /// Operations beyond [`PENDING_MAX`].
        left_out: u64,
    },
    /// The rank met an error that ends the job.
    Fatal {
        /// Exit code of the job.
        code: i32,
        /// What to tell the user.
        text: String,
    },
}

/// Why a line cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Line {
    /// The line as it is sent.
    pub fn encode(&self) -> String {
        match self {
            Line::Ready => "ready".into(),
            Line::Pending { question, pending } => encode(*question, pending),
            Line::Begun { question, runs } => {
                let mut out = format!("begun question={question} runs=");
                for (i, (context, run)) in runs.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    let _ = write!(out, "{comma}{context}:{run}");
                }
                out
            }
            Line::End { question, moves, left_out } => {
                format!("end question={question} moves={moves} left_out={left_out}")
            }
            Line::Fatal { code, text } => {
                // Escaping at most triples a byte; the text is cut so that the line keeps its limit.
                let mut end = text.len().min(LINE_MAX / 3 - 64);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                format!("fatal code={code} text={}", escape(&text.as_bytes()[..end]))
            }
        }
    }

    /// Reads a line.
    pub fn decode(line: &[u8]) -> Result<Line, Malformed> {
        read(line).map_err(|why| Malformed(format!("{why} in {}", quoted(line))))
    }
}

fn encode(question: u32, pending: &Pending) -> String {
    let mut out = format!("pending question={question} rank={} op=", pending.rank);
    escape_into(&mut out, pending.operation.as_bytes());
    let kind = KINDS.iter().find(|(kind, _)| *kind == pending.kind).expect("every kind is listed").1;
    let blocking = u8::from(pending.blocking);
    let _ = write!(out, " kind={kind} blocking={blocking} peer={}", or_any(pending.peer));
    let _ = write!(out, " world_peer={} tag={} comm=", or_any(pending.world_peer), or_any(pending.tag));
    escape_into(&mut out, pending.communicator.as_bytes());
    let _ = write!(out, " context={} bytes={}", pending.context, pending.bytes);
    let _ = write!(out, " since_ms={}", pending.since_ms);
    if let Some(run) = pending.run {
        let _ = write!(out, " run={run}");
    }
    if let Some(address) = &pending.address {
        out.push_str(" address=");
        escape_into(&mut out, address.as_bytes());
    }
    if let Some(members) = &pending.members {
        let ranges = ranges(members);
        // Members that would overrun the line are left out: then all ranks count as members.
        if out.len() + ranges.len() + 16 < LINE_MAX {
            let _ = write!(out, " members={ranges}");
        }
    }
    out
}

fn or_any<T: fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "any".into(), |value| value.to_string())
}

/// Ascending runs as `0-3,7`.
pub fn ranges(members: &[usize]) -> String {
    let mut out = String::new();
    let mut rest = members;
    while let Some(first) = rest.first() {
        let run =
            rest.iter().enumerate().take_while(|(i, rank)| first.checked_add(*i) == Some(**rank)).count();
        let comma = if out.is_empty() { "" } else { "," };
        let _ = match run {
            1 => write!(out, "{comma}{first}"),
            _ => write!(out, "{comma}{first}-{}", rest[run - 1]),
        };
        rest = &rest[run..];
    }
    out
}

fn read_ranges(text: &str) -> Option<Vec<usize>> {
    /// Bounds what one corrupt line can make us allocate.
    const MEMBERS_MAX: usize = 1 << 20;
    let mut members = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if last < first || last - first >= MEMBERS_MAX - members.len() {
            return None;
        }
        members.extend(first..=last);
    }
    Some(members)
}

fn read_runs(text: &str) -> Option<Vec<(u64, u64)>> {
    let read = |part: &str| {
        let (context, run) = part.split_once(':')?;
        Some((context.parse().ok()?, run.parse().ok()?))
    };
    text.split(',').filter(|part| !part.is_empty()).map(read).collect()
}

struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn word(&self, key: &str) -> Result<&'a str, String> {
        let found = self.0.iter().find(|(known, _)| *known == key);
        found.map(|(_, word)| *word).ok_or_else(|| format!("no {key}="))
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, String> {
        self.word(key)?.parse().map_err(|_| format!("{key}= is not a number"))
    }

    fn number_or_any<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, String> {
        if self.word(key)? == "any" { Ok(None) } else { self.number(key).map(Some) }
    }

    fn text(&self, key: &str) -> Result<String, String> {
        let bytes = unescape(self.word(key)?).ok_or_else(|| format!("{key}= is not escaped"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn read(line: &[u8]) -> Result<Line, String> {
    if line.len() > LINE_MAX {
        return Err(format!("longer than {LINE_MAX} bytes"));
    }
    let text = std::str::from_utf8(line).map_err(|_| "bytes that are not text")?;
    let mut words = text.split(' ');
    let verb = words.next().unwrap_or_default();
    let fields = words.map(|word| word.split_once('=').ok_or("a word without ="));
    let fields = Fields(fields.collect::<Result<_, _>>()?);
    match verb {
        "ready" => Ok(Line::Ready),
        "pending" => {
            Ok(Line::Pending { question: fields.number("question")?, pending: read_pending(&fields)? })
        }
        "begun" => {
            let runs = read_runs(fields.word("runs")?).ok_or("runs= are not numbers")?;
            Ok(Line::Begun { question: fields.number("question")?, runs })
        }
        "end" => Ok(Line::End {
            question: fields.number("question")?,
            moves: fields.number("moves")?,
            left_out: fields.number("left_out")?,
        }),
        "fatal" => Ok(Line::Fatal { code: fields.number("code")?, text: fields.text("text")? }),
        _ => Err("an unknown verb".into()),
    }
}

fn read_pending(fields: &Fields) -> Result<Pending, String> {
    let kind = fields.word("kind")?;
    let kind = KINDS.iter().find(|(_, name)| *name == kind).ok_or("an unknown kind=")?.0;
    let members = match fields.word("members") {
        Ok(text) => Some(read_ranges(text).ok_or("members= are not ranges")?),
        Err(_) => None,
    };
    Ok(Pending {
        rank: fields.number("rank")?,
        operation: fields.text("op")?,
        kind,
        blocking: fields.number::<u8>("blocking")? != 0,
        peer: fields.number_or_any("peer")?,
        world_peer: fields.number_or_any("world_peer")?,
        tag: fields.number_or_any("tag")?,
        communicator: fields.text("comm")?,
        context: fields.number("context")?,
        run: fields.word("run").is_ok().then(|| fields.number("run")).transpose()?,
        members,
        bytes: fields.number("bytes")?,
        since_ms: fields.number("since_ms")?,
        address: fields.word("address").is_ok().then(|| fields.text("address")).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Pending {
        Pending {
            rank: 2,
            operation: "MPI_Recv".into(),
            kind: OpType::Recv,
            blocking: true,
            peer: Some(0),
            world_peer: Some(4),
            tag: Some(-7),
            communicator: "my comm = ü".into(),
            context: 12,
            run: Some(7),
            members: Some(vec![0, 1, 2, 4, 9]),
            bytes: 1 << 40,
            since_ms: 3200,
            address: Some("heat.c:77".into()),
        }
    }

    #[test]
    fn every_line_survives() {
        let mut any = example();
        (any.peer, any.world_peer, any.tag, any.address, any.members) = (None, None, None, None, None);
        any.run = None;
        let mut lines = vec![
            Line::Ready,
            Line::End { question: 4, moves: u64::MAX, left_out: 3 },
            Line::Fatal { code: -1, text: "no = space\nhere".into() },
            Line::Begun { question: 4, runs: vec![] },
            Line::Begun { question: 4, runs: vec![(0, 0), (u64::MAX, 7)] },
            Line::Pending { question: 4, pending: any },
        ];
        let of_kind = |kind| Line::Pending { question: 5, pending: Pending { kind, ..example() } };
        lines.extend(KINDS.iter().map(|(kind, _)| of_kind(*kind)));
        for line in lines {
            let text = line.encode();
            assert!(!text.contains('\n'));
            assert_eq!(Line::decode(text.as_bytes()), Ok(line));
        }
        assert!(encode(1, &example()).contains("members=0-2,4,9"));
    }

    #[test]
    fn limits_hold_in_both_directions() {
        let text = "ü".repeat(LINE_MAX);
        let line = Line::Fatal { code: 1, text }.encode();
        assert!(line.len() <= LINE_MAX);
        assert!(matches!(Line::decode(line.as_bytes()), Ok(Line::Fatal { .. })));
        let odd: Vec<usize> = (0..10_000).map(|i| i * 2).collect();
        let line = encode(1, &Pending { members: Some(odd), ..example() });
        let read = Line::decode(line.as_bytes());
        assert!(matches!(read, Ok(Line::Pending { pending: Pending { members: None, .. }, .. })));
        assert!(Line::decode(format!("{line} members=0-99999999999").as_bytes()).is_err());
        assert!(Line::decode(&[b'x'; LINE_MAX + 1]).is_err());
        let begun = Line::Begun { question: u32::MAX, runs: vec![(u64::MAX, u64::MAX); BEGUN_MAX] };
        assert!(begun.encode().len() <= LINE_MAX);
    }

    #[test]
    fn one_changed_byte_never_crashes() {
        let line = encode(1, &example());
        for at in 0..line.len() {
            for byte in 0..=255 {
                let mut changed = line.clone().into_bytes();
                changed[at] = byte;
                if let Err(malformed) = Line::decode(&changed) {
                    assert!(malformed.to_string().contains(" in '"));
                }
            }
        }
    }
}
