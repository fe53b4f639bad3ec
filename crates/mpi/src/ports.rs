//! Ports of this process (MPI 5.0 section 11.9): who comes to one that is closed is told so.
//!
//! ```text
//! who connects                                   whose port it is
//!   HELLO, the port's number  ─────▶   open: stays until MPI_Comm_accept asks for it
//!                             ◀─────   closed: REFUSED, the same number
//! ```
//! Processes of other jobs with which there is no connection yet are turned away by the adapter already. A number is not
//! used twice, so a refusal that comes when nobody waits for it any more does no harm.

use crate::world::{Detached, World};
use fabric::{Device, Rank, Span};
use proto::{Mode, Want};
use std::collections::BTreeSet;

/// The context of the first word of who connects; its tag is the number of the port. No communicator has it.
pub const HELLO: u64 = 1 << 62;
/// That of a refusal, an empty message.
const REFUSED: u64 = HELLO | 3;

/// Ports of a process.
#[derive(Default, Debug)]
pub(crate) struct Ports {
    open: BTreeSet<u32>,
    /// Whether one has ever been open: else nobody can come.
    any: bool,
}

impl<D: Device> World<D> {
    /// Opens a port of this process.
    pub fn open_port(&mut self, number: u32) {
        self.ports.open.insert(number);
        self.ports.any = true;
    }

    /// Closes a port; whoever has come there already is turned away.
    pub fn close_port(&mut self, number: u32) {
        self.ports.open.remove(&number);
        self.turn_away();
    }

    /// Closes all ports and returns their numbers.
    pub fn close_ports(&mut self) -> BTreeSet<u32> {
        let open = std::mem::take(&mut self.ports.open);
        self.turn_away();
        open
    }

    /// Whether a port of this process is open.
    pub fn is_port_open(&self, number: u32) -> bool {
        self.ports.open.contains(&number)
    }

    /// Whether a process has said that its port is closed.
    pub fn is_turned_away(&mut self, by: Rank, number: u32) -> bool {
        let want = Want { source: Some(by), context: REFUSED, tag: Some(number as i32) };
        self.engine.probe_matched(&want).is_some()
    }

    /// Tells those who have come to closed ports.
    pub(crate) fn turn_away(&mut self) {
        if !self.ports.any {
            return;
        }
        let ports = &self.ports.open;
        let found = self.engine.arrived().filter(|(envelope, _)| {
            envelope.context == HELLO && !u32::try_from(envelope.tag).is_ok_and(|port| ports.contains(&port))
        });
        let found: Vec<_> = found.map(|(envelope, len)| (*envelope, len as usize)).collect();
        for (envelope, len) in found {
            let (from, tag) = (envelope.source, envelope.tag);
            let room = vec![0; len].into_boxed_slice();
            let span = Span { addr: room.as_ptr() as usize, len };
            let want = Want { source: Some(from), context: HELLO, tag: Some(tag) };
            // Where there is no room for an operation more, the next look finds it again.
            let Ok(op) = self.engine.receive(want, span) else { return };
            self.detached.push((op, Detached::Unwanted(room)));
            if let Ok(Some(op)) = self.engine.send(from, REFUSED, tag, Span::EMPTY, Mode::Standard) {
                self.detached.push((op, Detached::Send(crate::request::Keep::Nothing)));
            }
        }
    }
}
