//! The engine and what is below it over adapters with registered memory. One program: the engine is compiled once for it.

mod epochs;
mod exchange;
mod frequent;
mod hostile;
mod registrations;
mod reliable;
mod software;

use crate::adapter::{Net, Shared};
use fabric::Span;
use proto::channel::Settings;

/// Adapters that honour nothing but the contract. Of so many posts one fails; 0: none does.
fn hostile_net(size: usize, seed: u64, (rails, in_order): (usize, bool), fails_one_in: usize) -> Shared {
    let shared = Net::shared(size);
    {
        let net = &mut *shared.get();
        (net.hostile, net.rails, net.random) = (true, rails, seed);
        net.fails_one_in = fails_one_in;
        net.caps.writes_in_order = in_order;
        net.caps.transfer_bytes = if in_order { usize::MAX } else { 20_000 };
    }
    shared
}

/// A channel that has little of everything.
fn scarce() -> Settings {
    Settings { slots: 6, fast_after: 2, buffers: 24, window: 8, staged: 16, ..Settings::default() }
}

fn span(bytes: &mut [u8]) -> Span {
    Span { addr: bytes.as_mut_ptr() as usize, len: bytes.len() }
}
