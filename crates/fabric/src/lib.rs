//! The vocabulary below the protocols: memory spans, the [`Device`] contract, settings, what is learnt and chosen by it.
#![forbid(unsafe_code)]

pub mod arms;
pub mod costs;
pub mod device;
pub mod either;
pub mod estimate;
pub mod pair;
mod rate;
pub mod rights;
pub mod settings;
pub mod shares;
pub mod spread;
pub mod table;
pub mod transfers;
pub mod verbs;
pub mod waiting;

pub use costs::{COPY_LEVELS, Costs, Distance, Source};
pub use device::{Caps, Device, Exchange, Fault, Frame, PIECE_STEP, READ_MANY, Rank, Reading, Span};
pub use either::Either;
pub use pair::{Pair, PairNap};
pub use rate::Rate;
pub use rights::{Region, Rights};
pub use shares::{NoShares, Share, ShareWord, Shares};
pub use table::{Table, begin_with_one};
pub use transfers::{Immediate, Transfers};
pub use verbs::{Atomic, Charge, Completion, Done, Local, Remote, Verbs, VerbsCaps};
pub use waiting::{Bell, Nap};
