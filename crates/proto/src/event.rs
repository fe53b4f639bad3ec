//! What happens inside the protocols, declared once: counters, reports and tests read this.

macro_rules! events {
    ($($name:ident: $doc:literal,)*) => {
        /// Something a protocol did.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Event { $(#[doc = $doc] $name,)* }

        impl Event {
            /// Every event with its name and meaning.
            pub const ALL: &'static [(Event, &'static str, &'static str)] =
                &[$((Event::$name, stringify!($name), $doc),)*];
        }
    };
}

events! {
    Eager: "a message left by copy eager",
    EagerZeroCopy: "a message left eagerly from where the application has it",
    FrequentBuffer: "a buffer had come often enough to be registered for eager messages",
    FrequentGone: "the registration of such a buffer had gone, or was refused: its uses are counted anew",
    FrequentCopied: "an eager message was copied though its buffer is registered, because that was faster or to see if it is",
    UsageRefused: "a buffer was not taken into the table of usage, which had stopped to grow",
    EagerQueued: "an eager message had to wait for room at the receiver",
    Unexpected: "a message arrived before its receive was posted",
    RtsSent: "a rendezvous was opened by the sender",
    RtrSent: "an early receiver offered its buffer",
    RtrTaken: "a sender took the offer of an early receiver",
    RtrDropped: "an offer crossed a message or was not usable",
    PiecePulled: "the receiver copied a piece of a message",
    PiecePushed: "the sender copied a piece of a message",
    FastPath: "a frame was written into a slot of its receiver",
    SendRecvPath: "a frame went into a receive buffer that all peers share",
    CreditsOut: "no slot of the receiver was known to be free: the frame went by Send/Recv or waited",
    HeaderCached: "a frame left without its header, which the receiver knew",
    ZeroCopy: "the payload of a frame was gathered from where the application has it",
    CreditsWritten: "half of the credits were owed and no frame went the other way to take them along",
    SlotsGiven: "a peer was given slots for the fast path",
    CacheHit: "memory was found registered",
    CacheMiss: "memory had to be registered",
    CacheEvicted: "a registration that nobody used made room",
    CacheInvalidated: "a registration ended because its memory had gone away",
    RegistrationRefused: "the adapter could register no more though nothing was kept: the message was copied",
    PostRefused: "the queue of the adapter was full, or a receiver had no buffer",
    FrameSent: "a piece of a long message was copied through a slot",
    ChunkWritten: "a chunk of a copy pipeline was handed to its adapter",
    BlockWritten: "a registered block of a pipeline was handed to its adapter",
}

/// How often each event happened: plain increments.
#[derive(Clone, Debug)]
pub struct Counters([u64; Event::ALL.len()]);

impl Default for Counters {
    fn default() -> Self {
        Counters([0; Event::ALL.len()])
    }
}

impl Counters {
    /// Counts one.
    #[inline(always)]
    pub fn count(&mut self, event: Event) {
        self.0[event as usize] += 1;
    }

    /// How often it happened.
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize]
    }
}
