//! The vocabulary below the protocols: memory spans, the [`Device`] contract, settings.
#![forbid(unsafe_code)]

pub mod device;
pub mod settings;

pub use device::{Bell, Caps, Device, Exchange, Fault, Frame, Nap, Rank, Share, ShareWord, Span};
