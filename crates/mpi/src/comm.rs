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
use crate::topo::{Neighbors, Topology};

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
    /// Partitioned communication.
    Partitioned = 3,
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
    is_first: bool,
    /// World rank of peer 0, if the others follow one by one.
    first: Option<u32>,
}

impl Place {
    /// Member `rank` of `group` in this context.
    pub fn within(context: u64, group: Arc<Group>, rank: u32) -> Place {
        Place::between(context, group.clone(), group, rank)
    }

    /// Member `rank` of `mine`, which speaks to `peers` in this context: that group comes first whose first member
    /// does in the job.
    pub fn between(context: u64, mine: Arc<Group>, peers: Arc<Group>, rank: u32) -> Place {
        let first = |group: &Group| (group.size() > 0).then(|| group.world_rank(0));
        let is_first = Arc::ptr_eq(&mine, &peers) || first(&mine) < first(&peers);
        Place::in_order(context, mine, peers, rank, is_first)
    }

    /// The same where it was agreed on which group comes first, for processes of several jobs have no ranks that say so.
    pub fn in_order(context: u64, mine: Arc<Group>, peers: Arc<Group>, rank: u32, is_first: bool) -> Place {
        let (size, peers_size) = (mine.size(), peers.size());
        let first = (peers_size > 0).then(|| peers.world_rank(0));
        let follow = |first: &u32| peers.compare(&Group::range(*first, peers_size)) == Comparison::Ident;
        let first = first.filter(follow);
        Place { context, mine, peers, rank, size, peers_size, is_first, first }
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

    /// Whether it is that of an intercommunicator: ranks in calls name another group than its own.
    #[inline(always)]
    pub fn is_inter(&self) -> bool {
        !Arc::ptr_eq(&self.mine, &self.peers)
    }

    /// Whether the members of its own group come first where both groups of an intercommunicator stand in
    /// one row. Both sides say the same of a group.
    pub fn is_first(&self) -> bool {
        !self.is_inter() || self.is_first
    }

    /// Whether members are processes of other jobs than this rank's, which has so many ranks.
    pub fn has_others(&self, job_size: u32) -> bool {
        self.mine.iter().chain(self.peers.iter()).any(|process| process >= job_size)
    }

    /// All whom a collective joins, in one row that is the same for all of them: where to find them, and this
    /// process's number in it.
    fn crowd(&self) -> Place {
        if !self.is_inter() {
            return self.clone();
        }
        let (one, other) =
            if self.is_first() { (&self.mine, &self.peers) } else { (&self.peers, &self.mine) };
        let row: Vec<u32> = one.iter().chain(other.iter()).collect();
        let before = if self.is_first() { 0 } else { self.peers_size };
        Place::between(self.context, self.mine.clone(), Arc::new(Group::from_ranks(row)), before + self.rank)
    }

    /// What to call number `number` in the row of all whom a collective joins.
    pub fn name_in_crowd(&self, number: u32) -> String {
        let process = self.world_rank(number);
        let is_mine_first = || self.mine.rank_of(self.world_rank(0)).is_some();
        match self.mine.rank_of(process) {
            Some(rank) => format!("rank {rank}"),
            None if is_mine_first() => format!("rank {} of the remote group", number - self.size),
            None => format!("rank {number} of the remote group"),
        }
    }

    /// The context of messages for this purpose.
    #[inline(always)]
    pub fn context_for(&self, purpose: Purpose) -> u64 {
        self.context << 2 | purpose as u64
    }
}

/// A communicator.
#[derive(Debug)]
pub struct Comm {
    /// Context, members, own rank.
    pub place: Place,
    /// The same for collectives, whose messages go to both groups of an intercommunicator: its peers are all
    /// whom they join, in a row that is the same on all of them.
    pub crowd: Place,
    /// Cached attributes.
    pub attrs: AttrMap,
    /// Hints in force.
    pub info: Info,
    /// Buffer attached to it for buffered sends.
    pub bsend: Bsend,
    /// The session that it comes from.
    pub session: Option<Handle>,
    /// What it remembers for its collectives.
    pub coll: coll::State,
    /// Its topology, if it has one, and who is next to this rank in it.
    pub topology: Option<Arc<(Topology, Neighbors)>>,
    name: Box<[u8]>,
}

impl Comm {
    /// A communicator without name, hints and attributes.
    pub fn new(place: Place, coll: coll::State) -> Comm {
        Comm {
            crowd: place.crowd(),
            place,
            attrs: AttrMap::default(),
            info: Info::default(),
            bsend: Bsend::default(),
            session: None,
            coll,
            topology: None,
            name: Box::default(),
        }
    }

    /// Gives it the context that was agreed on.
    pub fn set_context(&mut self, context: u64) {
        self.place.context = context;
        self.crowd.context = context;
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// `MPI_Comm_set_name`.
    pub fn set_name(&mut self, name: &[u8]) {
        self.name = name.into();
    }

    /// Its topology.
    #[inline]
    pub fn topology(&self) -> Option<&Topology> {
        self.topology.as_deref().map(|both| &both.0)
    }

    /// Gives it a topology.
    pub fn arrange(&mut self, topology: Topology) {
        let around = topology.neighbors(self.place.rank);
        self.topology = Some(Arc::new((topology, around)));
    }

    /// Who is next to this rank.
    pub fn neighbors(&self) -> Result<&Neighbors> {
        match &self.topology {
            Some(both) => Ok(&both.1),
            None => fail(Class::TOPOLOGY, "argument `comm` has no topology, so that no rank has neighbours"),
        }
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
        if matches!(handle, COMM_WORLD | COMM_SELF) {
            let name = if handle == COMM_WORLD { "MPI_COMM_WORLD" } else { "MPI_COMM_SELF" };
            return fail(Class::COMM, format!("{name} is there from MPI_Init to MPI_Finalize only"));
        }
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

    #[test]
    fn both_groups_stand_in_one_row_that_is_the_same_on_both_sides() {
        let group = |ranks: &[u32]| Arc::new(Group::from_ranks(ranks.to_vec()));
        let (small, large) = ([4, 1], [5, 2, 7]);
        for (one, other) in [(&small[..], &large[..]), (&[0, 9, 8], &[3])] {
            let row: Vec<u32> = one.iter().chain(other).copied().collect();
            for (mine, peers, before) in [(one, other, 0), (other, one, one.len() as u32)] {
                let place = Place::between(9, group(mine), group(peers), 0);
                let crowd = place.crowd();
                assert!(place.is_inter() && place.is_first() == (before == 0));
                assert_eq!((crowd.rank, crowd.peers_size() as usize), (before, row.len()));
                for (number, process) in (0..).zip(&row) {
                    assert_eq!(crowd.world_rank(number), *process);
                    let at = |ranks: &[u32]| ranks.iter().position(|rank| rank == process);
                    let name = match at(mine) {
                        Some(rank) => format!("rank {rank}"),
                        None => format!("rank {} of the remote group", at(peers).unwrap()),
                    };
                    assert_eq!(crowd.name_in_crowd(number), name);
                }
            }
        }
    }
}
