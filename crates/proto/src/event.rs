//! What happens inside the protocols, declared once: counters, the performance variables of the tools
//! interface, reports and tests read this.
//!
//! [`Event`]s are counted. [`Amount`]s are added up: bytes, and time. [`Gauge`]s are kept anyway and only
//! read. Together they are the [`variables`]. Tools may also be told of each event as it happens, and of
//! [`Notice`]s, which are not counted: those are the [`types`] of events; what is kept for tools that listen is a [`Record`] each. Amounts belong to steps that take microseconds, and to
//! sleep: those of a short message are counted at most.

use std::sync::OnceLock;

/// Which part of the protocols a variable speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// How messages travel between ranks.
    Messages,
    /// What ranks wait for.
    Waiting,
    /// Frames and blocks over adapters.
    Adapters,
    /// Memory registered with adapters.
    Registrations,
    /// One-sided operations and their synchronisation.
    Windows,
}

impl Group {
    /// Every group with its name and meaning.
    pub const ALL: [(Group, &'static str, &'static str); 5] = [
        (Group::Messages, "messages", "how messages travel between ranks"),
        (Group::Waiting, "waiting", "what this rank waits for, and what it keeps for receives to come"),
        (Group::Adapters, "adapters", "frames and blocks over adapters; all 0 in shared memory"),
        (Group::Registrations, "registrations", "memory registered with adapters; all 0 in shared memory"),
        (Group::Windows, "windows", "one-sided operations of this rank, and what ends their epochs"),
    ];
}

/// What a variable counts, and how it behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Grows by one with every event.
    Counter,
    /// Grows by bytes.
    Sum,
    /// Grows by nanoseconds.
    Time,
    /// What there is now; goes up and down.
    Level,
    /// The highest value so far.
    Most,
    /// A size that the library sets itself.
    Size,
}

macro_rules! events {
    ($([$group:ident] $($name:ident: $doc:literal,)*)*) => {
        /// Something a protocol did.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Event { $($(#[doc = $doc] $name,)*)* }

        impl Event {
            /// Every event with its name and meaning.
            pub const ALL: &'static [(Event, &'static str, &'static str)] =
                &[$($((Event::$name, stringify!($name), $doc),)*)*];
            const GROUPS: &'static [Group] = &[$($({ let _ = Event::$name; Group::$group },)*)*];
        }
    };
}

macro_rules! measures {
    ($(#[$meta:meta])* $enum:ident $([$group:ident] $($name:ident $class:ident: $doc:literal,)*)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum $enum { $($(#[doc = $doc] $name,)*)* }

        impl $enum {
            const ALL: &'static [($enum, &'static str, Class, Group, &'static str)] =
                &[$($(($enum::$name, stringify!($name), Class::$class, Group::$group, $doc),)*)*];
        }
    };
}

events! {
    [Messages]
    Eager: "a message left by copy eager",
    EagerZeroCopy: "a message left eagerly from where the application has it",
    FrequentBuffer: "a buffer had come often enough to be registered for eager messages",
    FrequentGone: "the registration of such a buffer had gone, or was refused: its uses are counted anew",
    FrequentCopied: "an eager message was copied though its buffer comes often, because that was faster or to see if it is",
    UsageRefused: "a buffer was not taken into the table of usage, which had stopped to grow",
    EagerQueued: "an eager message had to wait for room at the receiver",
    Unexpected: "a message arrived before its receive was posted",
    InPlace: "such a message stayed where it lay, in memory of its sender",
    ReadInPlace: "a message was combined with others where it lay",
    MovedOut: "one that had stayed so was copied before its receive came, because its sender needed the memory",
    RtsSent: "a rendezvous was opened by the sender",
    RtrSent: "an early receiver offered its buffer",
    RtrTaken: "a sender took the offer of an early receiver",
    RtrDropped: "an offer of this rank was of no use: it crossed a message, or its message went another way",
    PiecePulled: "the receiver copied a piece of a message",
    PiecePushed: "the sender copied a piece of a message",
    [Adapters]
    FastPath: "a frame was written into a slot of its receiver",
    SendRecvPath: "a frame went into a receive buffer that all peers share",
    CreditsOut: "no slot of the receiver was known to be free: the frame went by Send/Recv or waited",
    HeaderCached: "a frame left without its header, which the receiver knew",
    ZeroCopy: "the payload of a frame was gathered from where the application has it",
    CreditsWritten: "half of the credits were owed and no frame went the other way to take them along",
    SlotsGiven: "a peer was given slots for the fast path",
    [Registrations]
    CacheHit: "memory was found registered",
    CacheMiss: "memory had to be registered",
    CacheEvicted: "a registration that nobody used made room",
    CacheInvalidated: "a registration ended because its memory had gone away",
    CacheStale: "a kept registration was found stale when it was to be used, of which nobody had told (TERN_REGISTERED_VERIFY)",
    RegistrationRefused: "the adapter could register no more though nothing was kept: the message was copied",
    [Adapters]
    PostRefused: "the queue of the adapter was full, or a receiver had no buffer",
    [Messages]
    FrameSent: "a piece of a long message was copied through a slot",
    [Adapters]
    ChunkWritten: "a chunk of a copy pipeline was handed to its adapter",
    BlockWritten: "a registered block of a pipeline was handed to its adapter",
    [Messages]
    PutDirect: "a Put was written to its window by the adapter",
    GetDirect: "a Get was read from its window by the adapter",
    EpochZeroCopy: "a short Put or Get used the memory of the application, which comes often",
    EpochMessage: "one-sided operations left together in a message",
    EpochMerged: "the end of an epoch rode with its last operations",
    EpochReordered: "a one-sided operation left later than one that was called behind it",
    EpochEarly: "a one-sided operation left before the end of its epoch",
    [Waiting]
    LongWait: "a wait looked around many times, or slept, before something came",
    [Windows]
    WindowDirect: "a window was made whose operations their origin carries out, in shared memory",
    WindowActive: "a window was made whose operations are carried out by their target, or written and read by an adapter",
    WindowPut: "a Put was stored by its origin in shared memory",
    WindowGet: "a Get was loaded by its origin from shared memory",
    WindowAtomic: "an accumulate, fetch or swap was carried out by its origin in shared memory",
    WindowCopied: "an operation of a window that is not in memory of all was carried out by its origin, by copies",
    WindowTold: "an operation was handed over, to its target or to an adapter",
    WindowAlong: "a Put at a target behind an adapter went with the accumulates of its epoch, in their message",
    WindowWord: "an atomic operation on a word of 8 bytes was handed to the adapter of its target",
    WindowFence: "a fence ended",
    WindowFenceTold: "a fence of a window whose memory is not shared was begun by telling each other rank, not by asking targets",
    WindowPost: "this rank exposed its memory by MPI_Win_post",
    WindowStart: "an access epoch was started by MPI_Win_start",
    WindowLock: "a lock of one target was asked for, by MPI_Win_lock or as one of those of MPI_Win_lock_all",
    WindowLockWaited: "a lock in shared memory was not free",
    WindowFlush: "a flush was called",
}

measures! {
    /// Something that is added up.
    Amount
    [Messages]
    PulledBytes Sum: "bytes that this rank as receiver copied out of its senders' memory",
    PushedBytes Sum: "bytes that this rank as sender copied into its receivers' memory",
    [Waiting]
    WaitedNs Time: "time in long waits, in ns",
    [Registrations]
    RegisterNs Time: "time spent registering memory, in ns",
}

measures! {
    /// Something that is kept anyway.
    Gauge
    [Messages]
    EagerMaxBytes Size: "length up to which messages are copied twice (eager) at present, in bytes",
    PendingOperations Level: "sends and receives under way",
    [Waiting]
    UnexpectedWaiting Level: "messages here that no receive has asked for",
    UnexpectedBytes Level: "bytes of memory for messages that no receive has asked for",
    UnexpectedBytesMost Most: "the most bytes of memory there ever were for messages that no receive had asked for",
    [Registrations]
    RegisteredRegions Level: "registrations, in use or kept",
    RegisteredBytes Level: "bytes registered, in use or kept",
}

macro_rules! notices {
    ($([$group:ident] $($name:ident ($($field:ident),*): $doc:literal,)*)*) => {
        /// What tools are told of beside events, with what is known of it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Notice { $($(#[doc = $doc] $name,)*)* }

        impl Notice {
            const ALL: &'static [(Notice, &'static str, Group, &'static [&'static str], &'static str)] = &[$($(
                (Notice::$name, stringify!($name), Group::$group, &[$(stringify!($field)),*], $doc),
            )*)*];
        }
    };
}

notices! {
    [Messages]
    Matched (source, tag, bytes, unexpected): "a message has met its receive: from which rank of the job, its tag, its length, and whether it was there first",
    RendezvousBegun (peer, bytes, sends): "a rendezvous begins: with which rank of the job, the length, and whether this rank is the sender",
    RendezvousEnded (peer, bytes, sends, way): "a rendezvous is over: with which rank of the job, the length, whether this rank was the sender, and the way (docs/tools.md lists their numbers)",
    ChoiceChanged (bytes, before, after): "another way is taken for messages like one of this length: the ways (docs/tools.md lists their numbers)",
    EpochEnded (window, kind): "an epoch of a window is over: its handle, and whether it ended by a fence (0), a complete (1), a wait (2) or an unlock (3)",
    [Waiting]
    PeerLost (peer): "a rank of the job is lost",
}

/// A type of events of which tools may be told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Type {
    /// Its name, `tern_…`.
    pub name: String,
    /// Which part it speaks of.
    pub group: Group,
    /// What is known of one: numbers of 64 bits.
    pub fields: &'static [&'static str],
    /// Its meaning.
    pub doc: &'static str,
}

/// Number of types of events.
const TYPES: usize = Event::ALL.len() + Notice::ALL.len();
/// Most fields of one.
pub const FIELDS: usize = 4;
// A word has a bit for each.
const _: () = assert!(TYPES <= u64::BITS as usize);

/// All types of events, in the order of their numbers.
pub fn types() -> &'static [Type] {
    static ALL: OnceLock<Vec<Type>> = OnceLock::new();
    ALL.get_or_init(|| {
        let counted = Event::ALL.iter().zip(Event::GROUPS);
        let counted =
            counted.map(|(&(_, name, doc), &group)| Type { name: snake(name), group, fields: &[], doc });
        let others = Notice::ALL.iter().map(|&(_, name, group, fields, doc)| Type {
            name: snake(name),
            group,
            fields,
            doc,
        });
        counted.chain(others).collect()
    })
}

/// Something that has happened while a tool listened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The number of its type in [`types`].
    pub kind: usize,
    /// When, by the clock of whoever listens.
    pub at_ns: u64,
    /// What is known of it, as its type says.
    pub fields: [u64; FIELDS],
}

/// Most records that wait to be taken; of what comes beyond only the number is kept.
const RECORDS_MAX: usize = 4096;

/// What is kept for tools that listen.
#[derive(Clone, Debug)]
pub struct Kept {
    /// In the order in which it happened.
    pub records: Vec<Record>,
    /// How many there was no room for, by type.
    pub dropped: [u64; TYPES],
    clock: fn() -> u64,
}

impl Kept {
    fn new(clock: fn() -> u64) -> Kept {
        Kept { records: Vec::new(), dropped: [0; TYPES], clock }
    }

    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.dropped == [0; TYPES]
    }
}

/// Where the value of a variable is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// How often it happened.
    Event(Event),
    /// What it adds up to.
    Amount(Amount),
    /// How it stands.
    Gauge(Gauge),
}

/// Something a tool can watch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Its name, `tern_…`.
    pub name: String,
    /// Where its value is.
    pub source: Source,
    /// How it behaves.
    pub class: Class,
    /// Which part it speaks of.
    pub group: Group,
    /// Its meaning.
    pub doc: &'static str,
}

/// All variables: those of a group need not stand together.
pub fn variables() -> &'static [Variable] {
    static VARIABLES: OnceLock<Vec<Variable>> = OnceLock::new();
    VARIABLES.get_or_init(|| {
        let variable =
            |source, name, class, group, doc| Variable { name: snake(name), source, class, group, doc };
        let events = Event::ALL.iter().zip(Event::GROUPS).map(|(&(event, name, doc), &group)| {
            variable(Source::Event(event), name, Class::Counter, group, doc)
        });
        let amounts = Amount::ALL.iter().map(|&(amount, name, class, group, doc)| {
            variable(Source::Amount(amount), name, class, group, doc)
        });
        let gauges = Gauge::ALL
            .iter()
            .map(|&(gauge, name, class, group, doc)| variable(Source::Gauge(gauge), name, class, group, doc));
        events.chain(amounts).chain(gauges).collect()
    })
}

/// `RtsSent` as `tern_rts_sent`.
fn snake(name: &str) -> String {
    let mut text = String::from("tern");
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// How often each event happened, and what amounts add up to: plain increments; what tools are to be told of is kept.
#[derive(Clone, Debug)]
pub struct Counters {
    /// A bit for each type of events that a tool listens to.
    wanted: u64,
    events: [u64; Event::ALL.len()],
    amounts: [u64; Amount::ALL.len()],
    kept: Option<Box<Kept>>,
}

impl Default for Counters {
    fn default() -> Self {
        Counters { wanted: 0, events: [0; Event::ALL.len()], amounts: [0; Amount::ALL.len()], kept: None }
    }
}

impl Counters {
    /// Counts one.
    #[inline(always)]
    pub fn count(&mut self, event: Event) {
        self.events[event as usize] += 1;
        if self.wanted & 1 << event as usize != 0 {
            self.keep(event as usize, [0; FIELDS]);
        }
    }

    /// Adds to an amount.
    #[inline(always)]
    pub fn add(&mut self, amount: Amount, more: u64) {
        self.amounts[amount as usize] += more;
    }

    /// How often it happened.
    pub fn get(&self, event: Event) -> u64 {
        self.events[event as usize]
    }

    /// What it adds up to.
    pub fn sum(&self, amount: Amount) -> u64 {
        self.amounts[amount as usize]
    }

    /// Keeps what happened if a tool listens.
    #[inline]
    pub fn happened<const N: usize>(&mut self, what: Notice, known: [u64; N]) {
        if self.wants(what) {
            let mut fields = [0; FIELDS];
            fields[..N].copy_from_slice(&known);
            self.keep(Event::ALL.len() + what as usize, fields);
        }
    }

    /// Whether a tool listens.
    #[inline]
    pub fn wants(&self, what: Notice) -> bool {
        self.wanted >> (Event::ALL.len() + what as usize) & 1 != 0
    }

    /// From here on these types are listened to, a bit for each; times are those of this clock.
    pub fn listen(&mut self, wanted: u64, clock: fn() -> u64) {
        self.wanted = wanted;
        self.kept.get_or_insert_with(|| Box::new(Kept::new(clock)));
    }

    /// What has happened since the last call, of types that are listened to.
    pub fn take_kept(&mut self) -> Option<Box<Kept>> {
        let kept = self.kept.as_mut().filter(|kept| !kept.is_empty())?;
        let clock = kept.clock;
        Some(std::mem::replace(kept, Box::new(Kept::new(clock))))
    }

    #[cold]
    #[inline(never)]
    fn keep(&mut self, kind: usize, fields: [u64; FIELDS]) {
        let Some(kept) = &mut self.kept else { return };
        if kept.records.len() < RECORDS_MAX {
            kept.records.push(Record { kind, at_ns: (kept.clock)(), fields });
        } else {
            kept.dropped[kind] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_listened_to_is_kept_up_to_a_bound() {
        let names: Vec<&str> = types().iter().map(|one| &*one.name).collect();
        assert_eq!(names.len(), TYPES);
        assert!(types().iter().all(|one| one.fields.len() <= FIELDS));
        let number = |name| names.iter().position(|known| *known == name).expect("declared");
        let (eager, matched) = (number("tern_eager"), number("tern_matched"));
        let mut counters = Counters::default();
        counters.count(Event::Eager);
        counters.listen(1 << matched, || 7);
        counters.count(Event::Eager);
        assert!(counters.take_kept().is_none(), "nobody listens to that");
        counters.happened(Notice::Matched, [3, 4, 5, 0]);
        counters.happened(Notice::PeerLost, [1]);
        counters.listen(1 << eager, || 8);
        counters.count(Event::Eager);
        counters.happened(Notice::Matched, [3, 4, 5, 0]);
        let kept = counters.take_kept().unwrap();
        let records = [
            Record { kind: matched, at_ns: 7, fields: [3, 4, 5, 0] },
            Record { kind: eager, at_ns: 7, fields: [0; FIELDS] },
        ];
        assert_eq!(kept.records, records);
        (0..RECORDS_MAX + 3).for_each(|_| counters.count(Event::Eager));
        let kept = counters.take_kept().unwrap();
        assert_eq!((kept.records.len(), kept.dropped[eager]), (RECORDS_MAX, 3));
        assert!(counters.take_kept().is_none());
        assert_eq!(counters.get(Event::Eager), RECORDS_MAX as u64 + 6);
    }

    #[test]
    fn variables_have_names_of_their_own_and_every_group_has_some() {
        let all = variables();
        assert_eq!(all.len(), Event::ALL.len() + Amount::ALL.len() + Gauge::ALL.len());
        let mut names: Vec<&str> = all.iter().map(|variable| &*variable.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        assert!(
            names.contains(&"tern_rts_sent") && names.contains(&"tern_unexpected_bytes_most"),
            "{names:?}"
        );
        assert!(Group::ALL.iter().all(|(group, ..)| all.iter().any(|variable| variable.group == *group)));
    }
}
