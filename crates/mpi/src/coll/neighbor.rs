//! Collectives along the edges of a topology (MPI 5.0 section 8.6): a message per edge, all of them in flight at
//! once. Nobody relays for others: a neighbourhood is small, and its ranks know nothing of the edges beyond it.
//!
//! All messages have one tag, so that several edges between two ranks are told apart by their order. They leave in
//! the order of the send buffer; receives are posted in the order that the topology says belongs to it
//! ([`Neighbors::receive_order`]). An edge from a rank to itself is a copy.
use super::args::{IN_PLACE, measure, present};
use super::build::{Builder, View};
use super::compile::{Side, blocks};
use super::overlap::Sides;
use super::schedule::{Base, Program};
use super::tag::Collective;
use crate::error::{Class, Result, fail};
use crate::topo::Neighbors;

/// A call, its arguments read.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Which collective: one of [`Collective::NEIGHBOR`].
    pub kind: Collective,
    /// This rank.
    pub rank: usize,
    /// Ranks of the communicator.
    pub size: usize,
    /// With whom it speaks.
    pub around: &'a Neighbors,
    /// The send buffer: one block for all, or one for each destination.
    pub send: Side<'a>,
    /// The receive buffer: a block for each source.
    pub recv: Side<'a>,
}

impl Call<'_> {
    /// Whether all destinations get the same.
    fn gathers(&self) -> bool {
        matches!(self.kind, Collective::NeighborAllgather | Collective::NeighborAllgatherv)
    }

    fn sent_blocks(&self) -> usize {
        if self.gathers() {
            usize::from(!self.around.destinations.is_empty())
        } else {
            self.around.destinations.len()
        }
    }

    fn sides(&self) -> Sides<'_> {
        let some = |side, blocks| if blocks == 0 { (Side::Absent, 0) } else { (side, blocks as u64) };
        Sides {
            rank: self.rank,
            send: some(self.send, self.sent_blocks()),
            recv: some(self.recv, self.around.sources.len()),
        }
    }

    /// The edges from this rank to itself: which block of the send buffer becomes which of the receive buffer.
    fn loops(&self) -> impl Iterator<Item = (usize, usize)> {
        let me = Some(self.rank as u32);
        let out = (0..self.around.destinations.len()).filter(move |i| self.around.destinations[*i] == me);
        out.zip(self.around.receive_order().filter(move |i| self.around.sources[*i] == me))
    }
}

/// `MPI_IN_PLACE` has no meaning for neighbours, which have no block of this rank.
pub fn not_in_place(send: usize, recv: usize) -> Result {
    for (arg, addr) in [("sendbuf", send), ("recvbuf", recv)] {
        if addr == IN_PLACE {
            return fail(
                Class::BUFFER,
                format!("argument `{arg}` is MPI_IN_PLACE, which neighbourhood collectives do not have"),
            );
        }
    }
    Ok(())
}

/// Checks a call with its buffers.
pub fn check(call: &Call, send: usize, recv: usize) -> Result {
    let (sent, received) = (call.sent_blocks(), call.around.sources.len());
    measure(&call.send, sent, "sendbuf")?;
    measure(&call.recv, received, "recvbuf")?;
    if sent > 0 {
        present(&call.send, send, "sendbuf", sent, !call.gathers())?;
    }
    if received > 0 {
        present(&call.recv, recv, "recvbuf", received, true)?;
    }
    call.sides().check(send, recv)?;
    let bytes = |side: &Side, i: usize| match *side {
        Side::Absent => 0,
        Side::Even { count, ty } => count * ty.size,
        Side::Varied { counts, ty, .. } => counts.at(i) as u64 * ty.size,
        Side::Mixed { counts, types, .. } => counts.at(i) as u64 * types[i].size,
    };
    for (out, into) in call.loops() {
        let (sent, expected) = (bytes(&call.send, out), bytes(&call.recv, into));
        if sent != expected {
            return fail(
                Class::TRUNCATE,
                format!(
                    "this rank sends {sent} bytes to itself (block {out}) and expects {expected} (block {into}): counts and datatypes differ"
                ),
            );
        }
    }
    Ok(())
}

/// The program of this rank for a checked call.
pub fn compile(call: &Call) -> Program {
    let mut b = Builder::default();
    let v = View::all(call.rank, call.size);
    let around = call.around;
    let (mut send_types, mut recv_types) = (Vec::new(), Vec::new());
    let recv = blocks(&mut b, Base::Recv, &call.recv, around.sources.len(), &mut recv_types);
    let send = blocks(&mut b, Base::Send, &call.send, call.sent_blocks(), &mut send_types);
    let block = |to: usize| if call.gathers() { 0 } else { to };
    let loops: Vec<(usize, usize)> = call.loops().collect();
    for from in around.receive_order() {
        if let (Some(peer), Some(recv)) = (around.sources[from], &recv)
            && !loops.iter().any(|(_, into)| *into == from)
        {
            let into = recv.get(&b, from);
            b.recv(&v, peer as usize, into);
        }
    }
    for (to, peer) in around.destinations.iter().enumerate() {
        if let (Some(peer), Some(send)) = (*peer, &send)
            && !loops.iter().any(|(out, _)| *out == to)
        {
            let out = send.get(&b, block(to));
            b.send(&v, peer as usize, out);
        }
    }
    // Others are on their way meanwhile.
    if let (Some(send), Some(recv)) = (&send, &recv) {
        for (out, into) in loops {
            let (from, to) = (send.get(&b, block(out)), recv.get(&b, into));
            b.copy(from, to);
        }
    }
    Program { reach: call.sides().reach(), ..b.finish(call.kind, None, None, None) }
}
