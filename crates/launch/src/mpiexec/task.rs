//! What is started on one host, and how an agent is told.
use super::arguments::{Bind, Inherit, Map, Plan, Reader as InputReader, Segment};
use super::message::{Reader, Writer};
use super::start::Input;
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;

/// What is to be started on a host.
#[derive(Debug)]
pub struct Task {
    /// The job.
    pub(super) plan: Rc<Plan>,
    /// The number of its ranks.
    pub(super) size: usize,
    /// The number of the first of them: that of a rank in its job is less by so much.
    pub(super) first: usize,
    /// The ranks of this host in ascending order, with the number of the program of each.
    pub(super) ranks: Vec<(usize, usize)>,
    /// The name of the job's key-value space.
    pub(super) kvsname: String,
    /// The secret of the job, which does not travel.
    pub(super) secret: [u8; 16],
    /// The address at which other hosts reach this one, if there are any.
    pub(super) address: Option<IpAddr>,
    /// What the rank that reads the input gets.
    pub(super) input: Input,
}

impl Task {
    /// What marks the processes of this host: agents that share one, as in tests, have marks of their own.
    pub(super) fn mark(&self) -> String {
        match (self.address, self.ranks.first()) {
            (Some(_), Some((first, _))) => format!("{}.{first}", self.kvsname),
            _ => self.kvsname.clone(),
        }
    }
}

const BINDS: [Bind; 7] =
    [Bind::Auto, Bind::None, Bind::Core, Bind::Thread, Bind::Cpu, Bind::Package, Bind::Numa];
const MAPS: [Map; 3] = [Map::InOrder, Map::Package, Map::Numa];

/// What the agent of a host is told.
pub fn encode(plan: &Plan, kvsname: &str, [first, size]: [usize; 2], ranks: &[(usize, usize)]) -> Vec<u8> {
    let mut out = Writer::default();
    let directory = std::env::current_dir().unwrap_or_default();
    out.bytes(kvsname.as_bytes()).number(first).number(size).bytes(directory.as_os_str().as_bytes());
    out.number(ranks.len());
    for (rank, program) in ranks {
        out.number(*rank).number(*program);
    }
    put_pairs(&mut out, plan.inherited.iter().filter(|(name, _)| !of_one_host(name)));
    put_inherit(&mut out, &plan.inherit);
    put_pairs(&mut out, plan.environment.iter());
    out.byte(index(&BINDS, plan.bind)).byte(index(&MAPS, plan.map));
    out.byte(u8::from(plan.undersubscribed)).byte(u8::from(plan.merge));
    plan.files.iter().for_each(|file| put_optional(&mut out, file.as_deref()));
    out.number(match plan.reader {
        InputReader::Rank(rank) => rank,
        InputReader::Nobody => size,
    });
    out.number(plan.segments.len());
    for segment in &plan.segments {
        out.bytes(segment.program.as_bytes());
        put_words(&mut out, &segment.arguments);
        out.byte(u8::from(segment.inherit.is_some()));
        put_inherit(&mut out, segment.inherit.as_ref().unwrap_or(&Inherit::All));
        put_pairs(&mut out, segment.environment.iter());
        put_optional(&mut out, segment.directory.as_ref().map(|directory| directory.as_os_str()));
        put_optional(&mut out, segment.path.as_deref());
    }
    out.0
}

/// What an agent reads, and the working directory of the launcher.
pub fn decode(message: &[u8], secret: [u8; 16], address: IpAddr) -> Result<(Task, PathBuf), String> {
    let mut fields = Reader(message);
    let (kvsname, first, size) = (fields.text()?, fields.number()?, fields.number()?);
    let directory = PathBuf::from(take_word(&mut fields)?);
    let ranks = (0..fields.count()?)
        .map(|_| Ok((fields.number()?, fields.number()?)))
        .collect::<Result<Vec<_>, String>>()?;
    let mut plan = Plan {
        inherited: take_pairs(&mut fields)?,
        inherit: take_inherit(&mut fields)?,
        environment: take_pairs(&mut fields)?,
        bind: *BINDS.get(usize::from(fields.byte()?)).ok_or("an unknown way to bind")?,
        map: *MAPS.get(usize::from(fields.byte()?)).ok_or("an unknown order of places")?,
        undersubscribed: fields.flag()?,
        merge: fields.flag()?,
        files: [take_optional(&mut fields)?, take_optional(&mut fields)?],
        ..Plan::default()
    };
    let reader = fields.number()?;
    plan.reader = if reader < size { InputReader::Rank(reader) } else { InputReader::Nobody };
    plan.segments = (0..fields.count()?).map(|_| take_segment(&mut fields)).collect::<Result<_, String>>()?;
    fields.end()?;
    if !ranks.is_sorted()
        || ranks.iter().any(|(rank, number)| {
            rank.checked_sub(first).is_none_or(|rank| rank >= size) || *number >= plan.segments.len()
        })
    {
        return Err("its ranks are not those of the job".into());
    }
    add_own(&mut plan.inherited);
    let address = Some(address);
    let task = Task { plan: Rc::new(plan), size, first, ranks, kvsname, secret, address, input: Input::Pipe };
    Ok((task, directory))
}

fn take_segment(fields: &mut Reader) -> Result<Segment, String> {
    let program = take_word(fields)?;
    let arguments = take_words(fields)?;
    let own = fields.flag()?;
    let inherit = take_inherit(fields)?;
    Ok(Segment {
        program,
        arguments,
        inherit: own.then_some(inherit),
        environment: take_pairs(fields)?,
        directory: take_optional(fields)?.map(PathBuf::from),
        path: take_optional(fields)?,
        ..Segment::default()
    })
}

/// Variables that say something about one host or one login, and so nothing about another.
fn of_one_host(name: &OsStr) -> bool {
    const NAMES: [&str; 10] = [
        "HOSTNAME",
        "HOST",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "XDG_RUNTIME_DIR",
        "XDG_SESSION_ID",
        "WINDOWID",
        "TTY",
    ];
    let bytes = name.as_bytes();
    NAMES.iter().any(|known| known.as_bytes() == bytes)
        || [&b"SSH_"[..], b"SLURM_", b"SLURMD_"].iter().any(|prefix| bytes.starts_with(prefix))
}

/// Adds the variables of this process that were not sent: what its host says of itself.
fn add_own(inherited: &mut Vec<(OsString, OsString)>) {
    let sent = inherited.len();
    for (name, value) in std::env::vars_os() {
        if !inherited[..sent].iter().any(|(known, _)| *known == name) {
            inherited.push((name, value));
        }
    }
}

fn index<T: PartialEq>(all: &[T], one: T) -> u8 {
    all.iter().position(|known| *known == one).expect("all are listed") as u8
}

fn put_pairs<'a>(out: &mut Writer, pairs: impl Iterator<Item = &'a (OsString, OsString)>) {
    let pairs: Vec<_> = pairs.collect();
    out.number(pairs.len());
    for (name, value) in pairs {
        out.bytes(name.as_bytes()).bytes(value.as_bytes());
    }
}

fn put_words(out: &mut Writer, words: &[OsString]) {
    out.number(words.len());
    for word in words {
        out.bytes(word.as_bytes());
    }
}

fn put_inherit(out: &mut Writer, inherit: &Inherit) {
    let (only, names) = match inherit {
        Inherit::All => (0, &[][..]),
        Inherit::Only(names) => (1, &names[..]),
    };
    put_words(out.byte(only), names);
}

fn put_optional(out: &mut Writer, word: Option<&OsStr>) {
    out.byte(u8::from(word.is_some())).bytes(word.unwrap_or_default().as_bytes());
}

fn take_word(fields: &mut Reader) -> Result<OsString, String> {
    Ok(OsStr::from_bytes(fields.bytes()?).into())
}

fn take_words(fields: &mut Reader) -> Result<Vec<OsString>, String> {
    (0..fields.count()?).map(|_| take_word(fields)).collect()
}

fn take_pairs(fields: &mut Reader) -> Result<Vec<(OsString, OsString)>, String> {
    (0..fields.count()?).map(|_| Ok((take_word(fields)?, take_word(fields)?))).collect()
}

fn take_inherit(fields: &mut Reader) -> Result<Inherit, String> {
    let only = fields.flag()?;
    let names = take_words(fields)?;
    Ok(if only { Inherit::Only(names) } else { Inherit::All })
}

fn take_optional(fields: &mut Reader) -> Result<Option<OsString>, String> {
    let there = fields.flag()?;
    let word = take_word(fields)?;
    Ok(there.then_some(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Plan {
        let segment = |program: &str| Segment {
            count: 2,
            program: program.into(),
            arguments: vec!["a b".into(), "".into()],
            inherit: Some(Inherit::Only(vec!["PATH".into()])),
            environment: vec![("A".into(), "1=2".into())],
            directory: Some("/tmp".into()),
            ..Segment::default()
        };
        Plan {
            segments: vec![segment("one"), Segment { inherit: None, ..segment("two") }],
            inherited: vec![("LANG".into(), "C".into()), ("SSH_TTY".into(), "x".into())],
            environment: vec![("B".into(), "".into())],
            bind: Bind::Numa,
            map: Map::Package,
            merge: true,
            files: [Some("out.%r".into()), None],
            ..Plan::default()
        }
    }

    #[test]
    fn an_agent_reads_what_was_meant() {
        let plan = example();
        let sent = encode(&plan, "kvs", [0, 4], &[(1, 0), (3, 1)]);
        let address: IpAddr = [10, 0, 0, 1].into();
        let (task, directory) = decode(&sent, [9; 16], address).unwrap();
        assert_eq!(directory, std::env::current_dir().unwrap());
        assert_eq!((task.size, task.kvsname.as_str(), &task.ranks[..]), (4, "kvs", &[(1, 0), (3, 1)][..]));
        assert_eq!((task.secret, task.address, task.input), ([9; 16], Some(address), Input::Pipe));
        let got = &task.plan;
        assert!(got.inherited[0] == ("LANG".into(), "C".into()));
        assert!(got.inherited.iter().all(|(name, value)| name != "SSH_TTY" || value != "x"));
        assert_eq!((got.bind, got.map, got.merge, got.undersubscribed), (plan.bind, plan.map, true, false));
        assert_eq!((&got.files, got.reader), (&plan.files, InputReader::Rank(0)));
        for (got, sent) in got.segments.iter().zip(&plan.segments) {
            assert_eq!((&got.program, &got.arguments), (&sent.program, &sent.arguments));
            assert_eq!((&got.inherit, &got.environment), (&sent.inherit, &sent.environment));
            assert_eq!((&got.directory, &got.path), (&sent.directory, &sent.path));
        }
        for end in 0..sent.len() {
            assert!(decode(&sent[..end], [0; 16], address).is_err(), "{end}");
        }
        for at in 0..sent.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut changed = sent.clone();
                changed[at] = byte;
                let _ = decode(&changed, [0; 16], address);
            }
        }
        for span in [[0, 2], [2, 4]] {
            let foreign = encode(&plan, "kvs", span, &[(1, 0), (3, 1)]);
            assert!(decode(&foreign, [0; 16], address).is_err());
        }
        let later = encode(&plan, "kvs", [4, 2], &[(4, 0), (5, 1)]);
        assert_eq!(decode(&later, [0; 16], address).unwrap().0.first, 4);
    }
}
