//! The ways that messages take: what the choice is among, and the protocols that settings and announcements name.

/// The ways a message can take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Way {
    /// Copied into a slot and out of it.
    Eager,
    /// Gathered from the user's buffer, which comes again and again, and copied out of a slot.
    Frequent,
    /// Both sides copy.
    Both,
    /// Into the buffer of a receiver that has sent an RTR.
    Write,
    /// The receiver reads.
    Rget,
    /// The sender writes.
    Rput,
    /// Blocks are registered while others travel.
    Pipeline,
    /// The same, and registrations are kept.
    CachingPipeline,
    /// Growing chunks are copied while others travel.
    Superpipeline,
    /// Chunks of one length are.
    CopyPipeline,
    /// Copied through slots, many of them, where ranks cannot reach each other's memory.
    Frames,
}

impl Way {
    /// All of them with the names reports and journals use.
    pub const ALL: [(Way, &'static str); 11] = [
        (Way::Eager, "eager"),
        (Way::Frequent, "frequent"),
        (Way::Both, "both"),
        (Way::Write, "write"),
        (Way::Rget, "rget"),
        (Way::Rput, "rput"),
        (Way::Pipeline, "pipeline"),
        (Way::CachingPipeline, "caching-pipeline"),
        (Way::Superpipeline, "superpipeline"),
        (Way::CopyPipeline, "copy-pipeline"),
        (Way::Frames, "frames"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Way::ALL[self as usize].1
    }

    /// The way of a name.
    pub fn named(name: &str) -> Option<Way> {
        Way::ALL.iter().find(|(_, known)| *known == name).map(|(way, _)| *way)
    }

    /// Whether the beginning of the message comes with its RTS.
    pub fn is_framed(self) -> bool {
        matches!(self, Way::Pipeline | Way::CachingPipeline)
    }

    /// Whether it goes through staging memory.
    pub fn is_staged(self) -> bool {
        matches!(self, Way::Superpipeline | Way::CopyPipeline)
    }

    /// The protocol of its RTS; `None` for those that have none.
    pub fn protocol(self) -> Option<Protocol> {
        Protocol::named(self.name())
    }

    /// The way of a protocol whose RTS leaves.
    pub fn of(protocol: Protocol) -> Way {
        Way::named(protocol.name()).unwrap_or(Way::Rget)
    }
}

/// The protocols by which a long message can travel over registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Protocol {
    /// The receiver reads.
    Rget = 1,
    /// The sender writes when the receiver has told where.
    Rput = 2,
    /// As [`Protocol::Rget`], and early receivers send an RTR.
    Speculative = 3,
    /// The sender writes blocks that are registered while others travel.
    Pipeline = 4,
    /// As the pipeline, but what is registered stays so.
    CachingPipeline = 5,
    /// Growing chunks are copied through staging memory.
    Superpipeline = 6,
    /// Chunks of one length are.
    CopyPipeline = 7,
}

impl Protocol {
    /// All of them with the names settings and reports use.
    pub const ALL: [(Protocol, &'static str); 7] = [
        (Protocol::Rget, "rget"),
        (Protocol::Rput, "rput"),
        (Protocol::Speculative, "speculative"),
        (Protocol::Pipeline, "pipeline"),
        (Protocol::CachingPipeline, "caching-pipeline"),
        (Protocol::Superpipeline, "superpipeline"),
        (Protocol::CopyPipeline, "copy-pipeline"),
    ];

    /// The protocol of a number on the wire.
    pub fn of(number: u16) -> Option<Protocol> {
        Protocol::ALL.iter().map(|(protocol, _)| *protocol).find(|p| *p as u16 == number)
    }

    /// The protocol of a name; `None` for others, such as «auto».
    pub fn named(name: &str) -> Option<Protocol> {
        Protocol::ALL.iter().find(|(_, known)| *known == name).map(|(protocol, _)| *protocol)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Protocol::ALL.iter().find(|(p, _)| *p == self).map_or("", |(_, name)| name)
    }
}
