//! Rendezvous: messages whose sender and receiver agree before the payload moves.

mod cancel;
pub(crate) mod decide;
mod draining;
mod drive;
pub mod movers;
mod recent;
pub(crate) mod rtr_account;
mod rtr_registered;
mod rtr_shares;
pub(crate) mod state;
