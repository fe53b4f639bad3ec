//! One-sided operations that are held until their epoch ends, and planned: paper 004.
//!
//! ```text
//! window ─ held operations ─▶ plan ─▶ steps ─▶ the engine posts them
//!             │                ▲
//!             └─ early         └─ cost, from facts
//! ```
//! Pure data: what touches the device is `crate::engine::issue` and `crate::engine::serve`.
//! See docs/protocols/epochs.md.

pub mod cost;
pub mod early;
pub mod journal;
pub mod plan;
pub(crate) mod window;

use fabric::{Rights, Span};

pub use wire::epoch::Action;

/// An operation that is held.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// What it does.
    pub action: Action,
    /// Where in the target's window, in bytes.
    pub offset: u64,
    /// The origin's memory.
    pub local: Span,
    /// When it was called.
    pub since_ns: u64,
}

/// What the origin's memory is registered for.
pub(crate) fn rights_of(action: Action) -> Rights {
    if action == Action::Get { Rights::LOCAL_WRITE } else { Rights::NONE }
}

/// In which order operations are issued that go directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As they were called: what libraries do without scheduling.
    Issue,
    /// All Gets, then all Puts: 004, section 4.1.2.
    GetsFirst,
    /// In turn, a Get first: the direction that has moved fewer bytes is next (section 4.1.1).
    Interleaved,
}

impl Order {
    /// All of them with the names of settings.
    pub const ALL: [(Order, &'static str); 3] =
        [(Order::Issue, "issue"), (Order::GetsFirst, "gets-first"), (Order::Interleaved, "interleaved")];
}

/// Which operations go together in messages that the target scatters: 004, section 4.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bundling {
    /// None: each goes directly.
    Never,
    /// The last one that fits, with the synchronisation.
    Last,
    /// All that fit a message.
    All,
    /// Those up to a length of least predicted cost; longer ones go directly.
    Hybrid,
}

impl Bundling {
    /// All of them with the names of settings.
    pub const ALL: [(Bundling, &'static str); 4] = [
        (Bundling::Never, "never"),
        (Bundling::Last, "last"),
        (Bundling::All, "all"),
        (Bundling::Hybrid, "hybrid"),
    ];
}

/// What is fixed of the plans of a window; the rest is chosen by predicted cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// The order.
    pub order: Option<Order>,
    /// What goes together.
    pub bundling: Option<Bundling>,
    /// Whether operations leave when they are called.
    pub early: Option<bool>,
    /// Whether the synchronisation waits for the completions of Puts as it does for those of Gets. Nothing needs that
    /// where messages come behind writes; the library of both papers does it («000», section 1: «once a message is
    /// transferred using RDMA Write, a flag is set»).
    pub waits: bool,
}

impl Schedule {
    /// Nothing is fixed.
    pub const CHOICE: Schedule = Schedule { order: None, bundling: None, early: None, waits: false };
    /// Directly, in the order of the calls, at the end: the original of paper 004.
    pub const ORIGINAL: Schedule =
        Schedule { waits: true, ..Schedule::fixed(Order::Issue, Bundling::Never, false) };

    /// The named ones.
    pub const ALL: [(Schedule, &'static str); 9] = [
        (Schedule::CHOICE, "auto"),
        (Schedule::ORIGINAL, "original"),
        (Schedule::fixed(Order::GetsFirst, Bundling::Never, false), "gets-first"),
        (Schedule::fixed(Order::Interleaved, Bundling::Never, false), "interleaved"),
        (Schedule::fixed(Order::GetsFirst, Bundling::Last, false), "merge-last"),
        (Schedule::fixed(Order::GetsFirst, Bundling::All, false), "aggregate"),
        (Schedule::fixed(Order::Interleaved, Bundling::Hybrid, false), "hybrid"),
        (Schedule::fixed(Order::Issue, Bundling::Never, true), "early"),
        (Schedule::fixed(Order::Interleaved, Bundling::Hybrid, true), "early-hybrid"),
    ];

    /// All of it.
    pub const fn fixed(order: Order, bundling: Bundling, early: bool) -> Schedule {
        Schedule { order: Some(order), bundling: Some(bundling), early: Some(early), waits: false }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Schedule> {
        Schedule::ALL.iter().find(|(_, known)| *known == name).map(|(schedule, _)| *schedule)
    }
}

/// What goes with the end of an epoch: docs/protocols/epochs.md, "Fences of two ranks".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// What the rank asserts, in two bits, if it is the end of a fence.
    pub said: u16,
    /// Another word has to follow before anything else may come to the target: what it was told could be overtaken.
    pub again: bool,
    /// The lowest bit of how many ends of epochs the rank has told the target of before, by whatever way: one by a message of the window above and
    /// the next one by an adapter may be seen in either order.
    pub turn: bool,
}

impl Mark {
    /// As flags of a message.
    pub fn flags(self) -> u16 {
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        self.said << wire::epoch::SAID
            | flag(self.again, wire::epoch::AGAIN)
            | flag(self.turn, wire::epoch::TURN)
    }

    /// What flags of a message say; any do.
    pub fn of_flags(flags: u16) -> Mark {
        let is_set = |flag: u16| flags & flag != 0;
        let said = flags >> wire::epoch::SAID & 3;
        Mark { said, again: is_set(wire::epoch::AGAIN), turn: is_set(wire::epoch::TURN) }
    }
}

/// How an access epoch ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The targets are told: complete, fence.
    Complete,
    /// The origin is told that all is placed: unlock, flush.
    Flush,
}
