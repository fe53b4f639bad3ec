//! Communicators (MPI 5.0 chapter 7): a group, a context of its own, and what the program hangs
//! on them.

use std::sync::Arc;

use crate::attr::AttrMap;
use crate::bsend::Bsend;
use crate::coll;
use crate::error::{Class, Result, fail};
use crate::group::{Comparison, Group};
use crate::handle::{Handle, Slab};
use crate::info::Info;
use crate::objects::unusable;

/// `MPI_COMM_NULL`.
pub const COMM_NULL: Handle = Handle(0x100);
/// `MPI_COMM_WORLD`.
pub const COMM_WORLD: Handle = Handle(0x101);
/// `MPI_COMM_SELF`.
pub const COMM_SELF: Handle = Handle(0x102);

/// Purposes that share the context id of a communicator: messages of one are never matched by
/// receives of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Point-to-point.
    Message = 0,
    /// Collectives.
    Collective = 1,
    /// Making communicators among some of the members (`MPI_Comm_create_group`).
    Creation = 2,
}

/// What travels with every message: the context, and two groups, which are the same for an intracommunicator. Cheap
/// to clone; requests keep it, so a communicator may be freed while they are pending.
#[derive(Clone, Debug)]
pub struct Place {
    /// Context id; unique in the job for ever.
    pub context: u64,
    /// The group of this process, in order.
    pub mine: Arc<Group>,
    /// Those that ranks in calls name, in order.
    pub peers: Arc<Group>,
    /// This process in its group.
    pub rank: u32,
    size: u32,
    peers_size: u32,
    /// World rank of peer 0, if the others follow one by one.
    first: Option<u32>,
}

impl Place {
    /// Member `rank` of `group` in this context.
    pub fn within(context: u64, group: Arc<Group>, rank: u32) -> Place {
        Place::between(context, group.clone(), group, rank)
    }

    /// Member `rank` of `mine`, which speaks to `peers` in this context.
    pub fn between(context: u64, mine: Arc<Group>, peers: Arc<Group>, rank: u32) -> Place {
        let (size, peers_size) = (mine.size(), peers.size());
        let first = (peers_size > 0).then(|| peers.world_rank(0));
        let follow = |first: &u32| peers.compare(&Group::range(*first, peers_size)) == Comparison::Ident;
        let first = first.filter(follow);
        Place { context, mine, peers, rank, size, peers_size, first }
    }

    /// Number of processes in its own group.
    #[inline(always)]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Number of those it can speak to.
    #[inline(always)]
    pub fn peers_size(&self) -> u32 {
        self.peers_size
    }

    /// The world rank of a peer.
    #[inline(always)]
    pub fn world_rank(&self, peer: u32) -> u32 {
        match self.first {
            Some(first) => first + peer,
            None => self.peers.world_rank(peer),
        }
    }

    /// The context of messages for this purpose.
    #[inline(always)]
    pub fn context_for(&self, purpose: Purpose) -> u64 {
        self.context << 2 | purpose as u64
    }
}

/// An intracommunicator.
#[derive(Debug)]
pub struct Comm {
    /// Context, members, own rank.
    pub place: Place,
    /// Cached attributes.
    pub attrs: AttrMap,
    /// Hints in force.
    pub info: Info,
    /// Buffer attached to it for buffered sends.
    pub bsend: Bsend,
    /// What it remembers for its collectives.
    pub coll: coll::State,
    name: Box<[u8]>,
}

impl Comm {
    /// A communicator without name, hints and attributes.
    pub fn new(place: Place, coll: coll::State) -> Comm {
        Comm {
            place,
            attrs: AttrMap::default(),
            info: Info::default(),
            bsend: Bsend::default(),
            coll,
            name: Box::default(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// `MPI_Comm_set_name`.
    pub fn set_name(&mut self, name: &[u8]) {
        self.name = name.into();
    }

    /// `MPI_Comm_compare` of two different handles.
    pub fn compare(&self, other: &Comm) -> Comparison {
        let [mine, peers] = [&self.place.mine, &self.place.peers].map(Arc::as_ref);
        match (mine.compare(&other.place.mine), peers.compare(&other.place.peers)) {
            (Comparison::Ident, Comparison::Ident) => Comparison::Congruent,
            (Comparison::Unequal, _) | (_, Comparison::Unequal) => Comparison::Unequal,
            _ => Comparison::Similar,
        }
    }
}

/// The communicators of one rank.
#[derive(Debug, Default)]
pub struct Comms {
    world: Option<Box<Comm>>,
    own: Option<Box<Comm>>,
    rest: Slab<Box<Comm>>,
}

impl Comms {
    /// Makes the two predefined ones.
    pub fn start(&mut self, world: Comm, own: Comm) {
        self.world = Some(Box::new(world));
        self.own = Some(Box::new(own));
        for (comm, name) in [(&mut self.world, "MPI_COMM_WORLD"), (&mut self.own, "MPI_COMM_SELF")] {
            comm.as_mut().expect("just made").set_name(name.as_bytes());
        }
    }

    /// The communicator of a handle.
    #[inline(always)]
    pub fn get(&self, handle: Handle) -> Option<&Comm> {
        match handle {
            COMM_WORLD => self.world.as_deref(),
            COMM_SELF => self.own.as_deref(),
            _ => self.rest.get(handle).map(|comm| &**comm),
        }
    }

    /// As [`Comms::get`], to change it.
    #[inline]
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut Comm> {
        match handle {
            COMM_WORLD => self.world.as_deref_mut(),
            COMM_SELF => self.own.as_deref_mut(),
            _ => self.rest.get_mut(handle).map(|comm| &mut **comm),
        }
    }

    /// A handle for a new communicator.
    pub fn add(&mut self, comm: Comm) -> Result<Handle> {
        self.rest.insert(Box::new(comm))
    }

    /// Takes a communicator out; the predefined ones only at the end.
    pub fn remove(&mut self, handle: Handle) -> Option<Comm> {
        match handle {
            COMM_WORLD => self.world.take().map(|comm| *comm),
            COMM_SELF => self.own.take().map(|comm| *comm),
            _ => self.rest.remove(handle).map(|comm| *comm),
        }
    }

    /// The communicator whose messages have this context, with its handle: for reports.
    pub fn by_context(&self, context: u64) -> Option<(Handle, &Comm)> {
        self.iter().find(|(_, comm)| comm.place.context == context >> 2)
    }

    /// All communicators, with their handles.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &Comm)> {
        let predefined = [(COMM_WORLD, &self.world), (COMM_SELF, &self.own)];
        let predefined = predefined.into_iter().filter_map(|(h, comm)| comm.as_deref().map(|comm| (h, comm)));
        let rest = self.rest.iter().map(|(h, comm)| (h, &**comm));
        predefined.chain(rest)
    }

    /// The error of a handle that is no communicator.
    #[cold]
    pub fn refuse<T>(handle: Handle) -> Result<T> {
        fail(Class::COMM, unusable(handle, COMM_NULL, "MPI_COMM_NULL", "a communicator"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks in calls name the other group's processes, wherever these are in the job.
    #[test]
    fn a_place_between_two_groups_names_the_peers_of_the_other() {
        let group = |ranks: &[u32]| Arc::new(Group::from_ranks(ranks.to_vec()));
        let place = Place::between(9, group(&[0, 1]), group(&[5, 2, 7]), 1);
        assert_eq!((place.size(), place.peers_size(), place.rank), (2, 3, 1));
        assert_eq!([0, 1, 2].map(|peer| place.world_rank(peer)), [5, 2, 7]);
        let within = Place::within(9, group(&[3, 4, 5]), 2);
        assert_eq!([0, 1, 2].map(|peer| within.world_rank(peer)), [3, 4, 5]);
        assert!(Arc::ptr_eq(&within.mine, &within.peers));
    }
}
