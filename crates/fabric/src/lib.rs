//! The vocabulary below the protocols: memory spans, the [`Device`] contract, settings.
#![forbid(unsafe_code)]

pub mod costs;
pub mod device;
pub mod settings;
pub mod verbs;

pub use costs::{COPY_LEVELS, Costs, Distance, Source};
pub use device::{Bell, Caps, Device, Exchange, Fault, Frame, Immediate, Nap, Rank, Share, ShareWord, Span};
pub use verbs::{Charge, Completion, Done, Local, Remote, Verbs, VerbsCaps};
