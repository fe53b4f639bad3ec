//! What a rank keeps of its windows: what is exposed, what is held, what is under way.

use crate::epoch::early::EpochHabit;
use crate::epoch::journal::EpochKind;
use crate::epoch::plan::{Kept, Step};
use crate::epoch::{Action, Ending, Held, Mark, Schedule};
use crate::memory::bounce::{Bounce, Slot};
use crate::memory::rcache;
use fabric::{Fault, Local, Rank, Region, Remote, Span};
use std::collections::{BTreeMap, VecDeque};
use wire::Malformed;
use wire::long::RAILS;

/// Memory that a rank has exposed, as the others must know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exposed {
    /// Where it begins in that rank's process.
    pub addr: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Its keys for the others, by adapter.
    pub keys: [u32; RAILS],
    /// Whether adapters may touch it; if not everything goes in messages.
    pub registered: bool,
    /// What that rank calls the window: messages about it say so.
    pub window: u32,
}

impl Exposed {
    /// Length of the encoded form in bytes.
    pub const LEN: usize = 40;

    /// The bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.addr.to_le_bytes());
        out[8..16].copy_from_slice(&self.len.to_le_bytes());
        for (at, key) in self.keys.iter().enumerate() {
            out[16 + 4 * at..20 + 4 * at].copy_from_slice(&key.to_le_bytes());
        }
        out[32] = u8::from(self.registered);
        out[36..].copy_from_slice(&self.window.to_le_bytes());
        out
    }

    /// Reads bytes of any content; what no rank says is refused.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Result<Exposed, Malformed> {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let keys = std::array::from_fn(|at| half(16 + 4 * at));
        let (addr, len) = (word(0), word(8));
        let exposed = Exposed { addr, len, keys, registered: bytes[32] == 1, window: half(36) };
        if addr.checked_add(len).is_none() {
            return Err(Malformed(format!("{len} bytes at {addr:#x} end beyond any address")));
        }
        if exposed.encode() != *bytes {
            return Err(Malformed(format!("exposed memory with marks {:?}", &bytes[32..36])));
        }
        Ok(exposed)
    }
}

/// The memory that a transfer uses here.
#[derive(Debug)]
pub(crate) enum Memory {
    /// That of the application.
    Own(rcache::Held),
    /// Memory of the library; what was read into it goes there.
    Slot(Slot, Span),
}

/// A transfer that was posted, or waits for room.
#[derive(Debug)]
pub(crate) struct Flight {
    pub window: u32,
    pub rank: Rank,
    pub write: bool,
    pub rail: usize,
    pub local: Local,
    pub remote: Remote,
    pub memory: Memory,
}

/// What an operation was like that is held until its epoch ends, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Alike {
    pub action: Action,
    pub len: usize,
    /// Most bytes of the message that it will share with others, if it will.
    pub shares: Option<usize>,
}

/// One access epoch at one target.
#[derive(Debug, Default)]
pub(crate) struct Access {
    /// Nothing leaves before the target has let this origin in.
    pub gated: bool,
    /// All operations of the epoch.
    pub ops: Vec<Held>,
    /// Those that no plan has yet.
    pub waiting: Vec<usize>,
    /// Those among them that will share a message, and the bytes they take there.
    pub small: (Vec<usize>, usize),
    /// The last operation that was held; others like it are held as well.
    pub alike: Option<Alike>,
    /// How many have left before the end.
    pub early: usize,
    pub steps: VecDeque<Step>,
    /// Transfers that wait for room.
    pub posts: VecDeque<u32>,
    /// A message that waits for room.
    pub message: Option<([u64; 2], Vec<u8>)>,
    pub ending: Option<Ending>,
    /// Of what kind it was when its end was called.
    pub kind: Option<EpochKind>,
    /// Not zero once the end was called.
    pub closed_ns: u64,
    /// RDMA reads that have not ended.
    pub reads: u32,
    /// RDMA writes from memory of the application that have not ended.
    pub writes: u32,
    /// Gets that are here and have to be copied out.
    pub copies: u32,
    /// Where answers go, by token.
    pub answers: Vec<Option<Span>>,
    /// Those that have not come.
    pub unanswered: u32,
    /// Adapters that were written over, a bit each.
    pub rails: u32,
    /// The synchronisation has left.
    pub told: bool,
    /// How many questions the target has been asked, this epoch's the last of them.
    pub asked: u64,
    /// When what is to be answered left last.
    pub asked_ns: u64,
    /// The target has said that all is placed.
    pub placed: bool,
    /// What goes with the word of the end.
    pub mark: Mark,
    /// That is one of a fence.
    pub is_fence: bool,
    /// Puts went in messages, which the target scatters when it looks, and no answer that ends this epoch comes from behind them.
    pub scattered: bool,
    /// Gets that are answered in messages have their place in a window of this rank.
    pub lands: bool,
    /// The epoch cannot succeed any more.
    pub fault: Option<Fault>,
}

impl Access {
    /// Whether nothing is left to do here, the target's word aside.
    pub fn is_quiet(&self) -> bool {
        self.steps.is_empty()
            && self.posts.is_empty()
            && self.message.is_none()
            && self.reads == 0
            && self.writes == 0
            && self.copies == 0
            && self.unanswered == 0
    }

    /// Whether nothing of what was called is left to do here, the end aside.
    pub fn is_done_here(&self) -> bool {
        self.waiting.is_empty() && self.is_quiet()
    }

    /// Whether the target has to be asked before it is known that everything is placed.
    pub fn needs_word(&self) -> bool {
        self.fault.is_some() || self.ops.iter().any(|op| op.action == Action::Put)
    }

    /// Whether the epoch is over.
    pub fn is_over(&self) -> bool {
        match self.ending {
            None => false,
            Some(Ending::Complete) => self.told && self.is_quiet(),
            Some(Ending::Flush) => self.told && self.is_quiet() && (self.placed || self.fault.is_some()),
        }
    }

    /// Whether the transfer that is posted next is the last one, and a frame follows it at once; `waits` if that waits for Puts.
    pub fn ends_with_this_post(&self, waits: bool) -> bool {
        let is_ready = self.reads == 0 && self.copies == 0 && !waits;
        let follows = match self.steps.front() {
            Some(Step::Message(_, ends)) => is_ready || !ends,
            Some(Step::Sync) => is_ready,
            _ => false,
        };
        self.posts.len() == 1 && follows
    }

    /// Whether something may be done for it now.
    pub fn has_work(&self) -> bool {
        !self.posts.is_empty() || self.message.is_some() || !self.steps.is_empty()
    }
}

/// What a window knows of a rank.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Its memory.
    pub exposed: Option<Exposed>,
    /// Epochs for which it has let this origin in.
    pub posts: u64,
    /// Notes sent there, and come from there.
    pub notes_sent: u64,
    pub notes_seen: u64,
    /// Ends of its epochs here that wait for this many notes, and their flags.
    pub dones: VecDeque<(u64, u16)>,
    /// Ends that nobody has asked for, and what went with them.
    pub ended: VecDeque<Mark>,
    /// What went with the last end of this rank's epochs there.
    pub mark: Mark,
    /// Questions whether all is placed that wait for this many notes.
    pub asks: VecDeque<u64>,
    /// Questions asked there, and answers come from there.
    pub asked: u64,
    pub answered: u64,
    /// An epoch of it has ended here since the last one there was planned.
    pub was_origin: bool,
    /// An epoch of it has failed.
    pub failed: bool,
    /// It is lost, and why.
    pub lost: Option<Fault>,
    /// RDMA writes from memory of the library that have not ended: epochs do not wait for them.
    pub copied_writes: u32,
    /// One of those failed when its epoch was over: the next epoch tells.
    pub late: Option<Fault>,
    pub access: Option<Access>,
}

/// A window.
#[derive(Debug)]
pub(crate) struct Window {
    /// This rank's memory, and by adapter how it is registered.
    pub span: Span,
    pub regions: [Region; RAILS],
    pub registered: bool,
    pub schedule: Schedule,
    pub peers: BTreeMap<Rank, Peer>,
    pub habit: EpochHabit,
    /// Longest operation of which the last plan made messages.
    pub small_bytes: Option<usize>,
    /// The last plan.
    pub kept: Kept,
}

/// Words of windows that adapters are changing, by number: window, rank, where the answer comes, and where it goes then.
#[derive(Debug, Default)]
pub(crate) struct Words {
    pub under_way: BTreeMap<u32, (u32, Rank, Slot, Span)>,
    pub next: u32,
    /// What went wrong and nobody was told.
    pub failed: Vec<(u32, Rank, Fault)>,
}

/// The windows of a rank.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    pub windows: BTreeMap<u32, Window>,
    pub flights: Vec<Option<Flight>>,
    free: Vec<u32>,
    /// What was read into memory of the library: it goes out when nothing has to be issued.
    pub copies: Vec<(u32, Rank, Slot, Span)>,
    pub bounce: Bounce,
    pub words: Words,
    /// Something may be there to be issued.
    pub works: bool,
}

impl Peer {
    /// What messages about the window call it there.
    pub fn number(&self) -> u32 {
        self.exposed.map_or(0, |theirs| theirs.window)
    }
}

impl Epochs {
    /// Whether memory here is part of a window.
    pub fn is_exposed(&self, memory: Span) -> bool {
        let meets = |span: Span| span.addr < memory.addr + memory.len && memory.addr < span.addr + span.len;
        self.windows.values().any(|window| meets(window.span))
    }

    /// No windows; operations up to this length are copied.
    pub fn new(slot_bytes: usize) -> Epochs {
        Epochs { bounce: Bounce::new(slot_bytes), ..Epochs::default() }
    }

    /// A transfer gets a number.
    pub fn launch(&mut self, flight: Flight) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.flights[at as usize] = Some(flight);
                at
            }
            None => {
                self.flights.push(Some(flight));
                self.flights.len() as u32 - 1
            }
        }
    }

    /// A transfer has ended.
    pub fn land(&mut self, at: u32) -> Option<Flight> {
        let flight = self.flights.get_mut(at as usize)?.take()?;
        self.free.push(at);
        Some(flight)
    }

    /// Whether something is under way that gets on only if this rank looks.
    pub fn needs_care(&self) -> bool {
        self.free.len() < self.flights.len()
            || !self.words.under_way.is_empty()
            || self.windows.values().any(|window| {
                window.peers.values().any(|peer| {
                    peer.access.as_ref().is_some_and(|access| access.has_work() || access.ending.is_some())
                })
            })
    }

    /// The window of this number.
    pub fn window(&mut self, window: u32) -> Result<&mut Window, Fault> {
        self.windows.get_mut(&window).ok_or_else(|| Fault::Device(format!("there is no window {window}")))
    }

    /// The epoch under way at a target.
    pub fn access(&mut self, window: u32, rank: Rank) -> Option<&mut Access> {
        self.windows.get_mut(&window)?.peers.get_mut(&rank)?.access.as_mut()
    }
}
