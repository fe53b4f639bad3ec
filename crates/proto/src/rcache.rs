//! Registrations of application memory.
//!
//! A protocol *holds* a registration while a transfer needs it and *releases* it afterwards.

use fabric::{Device, Fault, Span};

/// A registration that is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The adapter it is registered with.
    pub rail: usize,
    /// Its key.
    pub key: u32,
}

/// The registrations of one rank.
#[derive(Debug, Default)]
pub struct Rcache {}

impl Rcache {
    /// Registers memory, or finds that it is. With `keep` the registration may outlive its use, so
    /// that the next one finds it; without, it ends with its release.
    pub fn hold(
        &mut self,
        dev: &mut impl Device,
        rail: usize,
        span: Span,
        _keep: bool,
    ) -> Result<Held, Fault> {
        Ok(Held { rail, key: dev.register(rail, span)? })
    }

    /// The transfer is over.
    pub fn release(&mut self, dev: &mut impl Device, held: Held) {
        dev.deregister(held.rail, held.key);
    }
}
