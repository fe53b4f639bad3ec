//! The vocabulary below the protocols: spans, the [`Device`] contract, settings.
#![forbid(unsafe_code)]
pub mod settings;
