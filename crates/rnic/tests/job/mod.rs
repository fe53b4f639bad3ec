//! What tests of ranks with an adapter each have in common.

use fabric::{Local, Rights, Verbs};
use rnic::{Listening, Rnic, Secret};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

pub const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub const SECRET: Secret = [7; 16];
pub const LONG: Duration = Duration::from_secs(60);

pub type Listen = fn(IpAddr) -> Result<Listening, String>;

/// Memory of a rank that its adapter knows, filled with this byte.
pub fn memory(rank: &mut Rnic, len: usize, byte: u8) -> Local {
    let span = rank.allocate(len);
    (0..len).for_each(|at| rank.poke_bytes(span.addr + at, &[byte]));
    rank.register(0, span, Rights::ALL).unwrap().local(span)
}

pub fn bytes(rank: &Rnic, local: Local) -> Vec<u8> {
    let mut out = vec![0; local.span.len];
    rank.peek_bytes(local.span, &mut out);
    out
}
