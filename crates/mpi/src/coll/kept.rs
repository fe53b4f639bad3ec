//! What a communicator remembers of its collectives.
use super::tag::Kind;
use crate::handle::Handle;
use crate::request::Running;

/// One side of a call with equal blocks: its count and datatype, or nothing.
pub type Amount = Option<(u64, Handle)>;

/// A call that is the same for equal keys, wherever its buffers are: everything but addresses.
/// Calls with an array of counts have no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Which collective.
    pub kind: Kind,
    /// Whether this rank gave `MPI_IN_PLACE`.
    pub in_place: bool,
    /// The root, 0 where there is none.
    pub root: usize,
    /// What is sent.
    pub send: Amount,
    /// What is received.
    pub recv: Amount,
    /// The operation.
    pub op: Option<Handle>,
}

impl Key {
    /// Whether equal keys mean equal calls for good: handles of the application may be freed and
    /// given out again for something else.
    fn lasts(&self) -> bool {
        let predefined = |side: Amount| side.is_none_or(|(_, ty)| ty.is_predefined());
        predefined(self.send) && predefined(self.recv) && self.op.is_none_or(Handle::is_predefined)
    }
}

/// Programs kept: programs of applications repeat a few collectives in turn.
const KEPT: usize = 4;
/// Scratch memory and steps above which a program is not kept: there the work outweighs what
/// writing the program costs, and a rank's memory is limited.
const KEPT_BYTES: usize = 32 << 10;
const KEPT_STEPS: usize = 256;

/// Collectives done, kept for the next equal call: blocking calls of one kind come again and again,
/// and writing a program costs several times what a short one costs to run.
#[derive(Debug, Default)]
pub struct Kept(Vec<(Key, Box<Running>)>);

impl Kept {
    /// A collective kept from an equal call, moved to these buffers, not started.
    #[inline]
    pub fn take(&mut self, key: &Key, send: usize, recv: usize) -> Option<Box<Running>> {
        let index = self.0.iter().position(|kept| kept.0 == *key)?;
        let (_, mut running) = self.0.swap_remove(index);
        running.schedule.rebase(send, recv);
        Some(running)
    }

    /// Keeps a collective that is done.
    #[inline]
    pub fn keep(&mut self, key: Key, running: Box<Running>) {
        let program = running.schedule.program();
        if !key.lasts() || program.temp_bytes > KEPT_BYTES || program.steps.len() > KEPT_STEPS {
            return;
        }
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push((key, running));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::compile::{Call, Side, compile};
    use super::super::cost::{Forced, LinkCosts};
    use super::super::schedule::Schedule;
    use super::super::ty::Type;
    use super::*;
    use crate::comm::Place;
    use crate::group::Group;
    use crate::request::Then;

    const INT: Handle = Handle(0x209);

    fn key(count: u64, ty: Handle) -> Key {
        Key { kind: Kind::Bcast, in_place: false, root: 0, send: None, recv: Some((count, ty)), op: None }
    }

    fn running(count: u64) -> Box<Running> {
        let link = LinkCosts {
            latency_ns: 100.0,
            overhead_ns: 20.0,
            ns_per_byte: 0.1,
            reduce_ns_per_byte: 0.1,
            copy_ns_per_byte: 0.05,
        };
        let ty = Type::predefined(INT).unwrap();
        let recv = Side::Even { count, ty: &ty };
        let send = Side::Absent;
        let call =
            Call { kind: Kind::Bcast, rank: 0, size: 2, send, recv, in_place: false, op: None, root: 0 };
        let schedule = Schedule::new(Arc::new(compile(&call, &link, &Forced::default())), 0, 64);
        let place = Place { context: 7, group: Arc::new(Group::range(0, 2)), rank: 0 };
        Box::new(Running { schedule, packed: Vec::new(), place, then: Then::Nothing })
    }

    #[test]
    fn few_are_kept_and_only_those_whose_handles_last() {
        let mut kept = Kept::default();
        for count in 1..=5 {
            kept.keep(key(count, INT), running(count));
        }
        assert!(kept.take(&key(1, INT), 0, 64).is_none());
        let again = kept.take(&key(5, INT), 0, 128).unwrap();
        assert!(kept.take(&key(5, INT), 0, 128).is_none());
        let derived = Handle(Handle::FIRST_DYNAMIC);
        kept.keep(key(9, derived), again);
        assert!(kept.take(&key(9, derived), 0, 64).is_none());
    }
}
