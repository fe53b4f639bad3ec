//! What the tests of adapters share.

use fabric::{Completion, Local, Nap, Rank, Region, Remote, Rights, Span, Verbs};
use sim::{Cluster, Nic};

/// A cluster of round numbers, with `change` made to its file.
pub fn cluster(change: (&str, &str)) -> Cluster {
    let text = include_str!("plain.toml").replace(change.0, change.1);
    Cluster::parse("plain.toml", &text).unwrap()
}

/// The cluster as it is.
pub fn plain() -> Cluster {
    cluster(("", ""))
}

/// Registered memory of the library's.
pub struct Memory {
    pub local: Local,
    pub region: Region,
}

impl Memory {
    pub fn new(nic: &mut Nic<'_>, rail: usize, len: usize) -> Memory {
        let span = nic.allocate(len);
        let region = nic.register(rail, span, Rights::ALL).unwrap();
        Memory { local: region.local(span), region }
    }

    pub fn part(&self, offset: usize, len: usize) -> Local {
        Local { span: self.local.span.part(offset, len), key: self.local.key }
    }

    pub fn addr(&self, offset: usize) -> usize {
        self.local.span.addr + offset
    }
}

/// What ranks must know of each other before they can write; in a real job it comes with the connection.
#[derive(Clone, Default)]
pub struct Board(std::rc::Rc<std::cell::RefCell<Vec<Remote>>>);

impl Board {
    pub fn new(ranks: usize) -> Board {
        Board(std::rc::Rc::new(std::cell::RefCell::new(vec![Remote::default(); ranks])))
    }

    /// Shows where this rank's memory is and waits until a time at which all have.
    pub fn publish(&self, nic: &mut Nic<'_>, memory: &Memory) {
        let Local { span, key } = memory.local;
        self.0.borrow_mut()[nic.me()] = Remote { addr: span.addr as u64, key };
        sleep_until(nic, START_NS);
    }

    pub fn at(&self, rank: Rank, offset: usize) -> Remote {
        let Remote { addr, key } = self.0.borrow()[rank];
        Remote { addr: addr + offset as u64, key }
    }
}

/// When measuring begins.
pub const START_NS: u64 = 1_000_000;

/// Naps until a time, whatever happens.
pub fn sleep_until(nic: &mut Nic<'_>, at_ns: u64) {
    while nic.now_ns() < at_ns {
        nic.alarm(at_ns);
        nic.idle(0).take();
    }
}

/// Waits for the next completion.
pub fn completion(nic: &mut Nic<'_>) -> Completion {
    loop {
        if let Some(completion) = nic.poll() {
            return completion;
        }
        nic.idle(0).take();
    }
}

/// Waits until the word at `addr` is `value`.
pub fn until(nic: &mut Nic<'_>, addr: usize, value: u64) {
    while nic.load(addr) != value {
        nic.idle(0).take();
    }
}

/// An inline part: no key.
pub fn inline(addr: usize, len: usize) -> Local {
    Local { span: Span { addr, len }, key: 0 }
}
