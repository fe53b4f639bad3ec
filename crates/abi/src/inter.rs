//! MPI 5.0 section 7.6: intercommunicators. All their members know both groups, so what is made of one is agreed
//! on by an exchange among all of them. What makes one of two groups that do not know each other goes through
//! their leaders: these meet in the peer communicator, in a context of its own and by tags that nothing else
//! has there, and each tells its group.

use std::sync::Arc;

use mpi::comm::{COMM_NULL, Place, Purpose};
use mpi::error::{Class, Result, fail};
use mpi::group::{Group, UNDEFINED};
use mpi::handle::Handle;

use crate::coll::run;
use crate::comm::add;
use crate::cx::Cx;
use crate::kind::handle::live;
use crate::kind::output::Out;
use crate::leaders::{self, Bridge, Circle};
use crate::object::Object;

/// Whether a communicator has two groups.
pub fn is_inter(cx: &Cx, comm: Handle) -> Result<bool> {
    Ok(cx.world().comm(comm)?.place.is_inter())
}

/// `MPI_Comm_test_inter`.
pub fn test(cx: &Cx, comm: Handle, flag: Out<bool>) -> Result {
    flag.set(is_inter(cx, comm)?);
    Ok(())
}

fn peers(cx: &Cx, comm: Handle, arg: &str) -> Result<Place> {
    let place = cx.world().comm(comm)?.place.clone();
    match place.is_inter() {
        true => Ok(place),
        false => {
            fail(Class::COMM, format!("argument `{arg}` is an intracommunicator, it has no remote group"))
        }
    }
}

/// `MPI_Comm_remote_size`.
pub fn remote_size(cx: &Cx, comm: Handle, size: Out<i32>) -> Result {
    size.set(peers(cx, comm, "comm")?.peers_size() as i32);
    Ok(())
}

/// `MPI_Comm_remote_group`.
pub fn remote_group(cx: &Cx, comm: Handle, group: Out<Handle>) -> Result {
    let peers = Group::clone(&peers(cx, comm, "comm")?.peers);
    let mut world = cx.world();
    let session = world.comm(comm)?.session;
    group.set(world.objects.add_group_of(peers, session)?);
    Ok(())
}

/// `MPI_Intercomm_create`.
pub fn create(
    cx: &Cx,
    local_comm: Handle,
    local_leader: i32,
    peer_comm: usize,
    remote_leader: i32,
    tag: i32,
    newintercomm: Out<Handle>,
) -> Result {
    newintercomm.set(COMM_NULL);
    let local = cx.world().comm(local_comm)?.place.clone();
    if local.is_inter() {
        return fail(
            Class::COMM,
            "argument `local_comm` is an intercommunicator, must be an intracommunicator",
        );
    }
    let Some(leader) = u32::try_from(local_leader).ok().filter(|leader| *leader < local.size()) else {
        let last = local.size() - 1;
        return fail(
            Class::RANK,
            format!(
                "argument `local_leader` is {local_leader}, must be a rank of `local_comm` (0 to {last})"
            ),
        );
    };
    let bridge = || bridge(cx, peer_comm, remote_leader, tag);
    let met = leaders::agree(cx, &Circle::Comm(local_comm), &local.mine, [local.rank, leader], bridge)?;
    newintercomm.set(add(cx, local_comm, met.place(local.mine, local.rank))?);
    Ok(())
}

/// Where the leaders meet. The tag is that of the program, but no other use of the context has it as it is sent.
fn bridge(cx: &Cx, peer_comm: usize, remote_leader: i32, tag: i32) -> Result<Bridge> {
    let peer_comm = live(Object::Comm, peer_comm, "peer_comm", cx)?;
    let bridge = cx.world().comm(peer_comm)?.place.clone();
    let Some(other) = mpi::p2p::peer(&bridge, remote_leader, "remote_leader")? else {
        return fail(Class::RANK, "argument `remote_leader` is MPI_PROC_NULL, must be a rank of `peer_comm`");
    };
    Ok(Bridge { other: other as u32, context: bridge.context_for(Purpose::Creation), tag: !tag })
}

/// What a member of an intercommunicator has told, and who it is.
struct Told<const N: usize> {
    process: u32,
    is_mine: bool,
    words: [u64; N],
}

/// Exchanges words among all members of both groups: in the order of their ranks, the first group first.
fn tell_all<const N: usize>(cx: &Cx, comm: Handle, words: [u64; N]) -> Result<Vec<Told<N>>> {
    let all = run::exchange_words(cx, comm, words)?;
    let world = cx.world();
    let comm = world.comm(comm)?;
    let told = |(number, words)| {
        let process = comm.crowd.world_rank(number);
        Told { process, is_mine: comm.place.mine.rank_of(process).is_some(), words }
    };
    Ok((0..).zip(all).map(told).collect())
}

/// An intercommunicator of some members of another one: those of each group for which `order` says a place, by
/// which they are sorted, and then by rank. Each has told the context it would give as its last word; that of
/// the first of all counts.
fn some_of<const N: usize, K: Ord>(
    cx: &Cx,
    comm: Handle,
    told: &[Told<N>],
    order: impl Fn(&Told<N>) -> Option<K>,
) -> Result<Handle> {
    let side = |is_mine: bool| {
        let mut members: Vec<_> = told
            .iter()
            .filter(|one| one.is_mine == is_mine)
            .filter_map(|one| order(one).map(|key| (key, one.process)))
            .collect();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        members.into_iter().map(|(_, process)| process).collect::<Vec<u32>>()
    };
    let (mine, peers) = (side(true), side(false));
    let (me, is_first) = {
        let world = cx.world();
        (world.rank(), world.comm(comm)?.place.is_first())
    };
    let Some(rank) = mine.iter().position(|process| *process == me) else { return Ok(COMM_NULL) };
    if peers.is_empty() {
        return Ok(COMM_NULL);
    }
    let context = told.iter().find(|one| order(one).is_some()).expect("this rank is among them").words[N - 1];
    let [mine, peers] = [mine, peers].map(|ranks| Arc::new(Group::from_ranks(ranks)));
    add(cx, comm, Place::in_order(context, mine, peers, rank as u32, is_first))
}

/// `MPI_Comm_create`: `members` are those of this rank's group.
pub fn create_some(cx: &Cx, comm: Handle, members: &Group) -> Result<Handle> {
    let (me, context) = {
        let mut world = cx.world();
        (world.rank(), world.new_context())
    };
    let place = members.rank_of(me).map_or(u64::MAX, u64::from);
    let told = tell_all(cx, comm, [place, context])?;
    some_of(cx, comm, &told, |one| (one.words[0] != u64::MAX).then_some(one.words[0]))
}

/// `MPI_Comm_split`: those of both groups that give one colour.
pub fn split(cx: &Cx, comm: Handle, color: i32, key: i32) -> Result<Handle> {
    let context = cx.world().new_context();
    let told = tell_all(cx, comm, [color as u32 as u64, key as u32 as u64, context])?;
    if color == UNDEFINED {
        return Ok(COMM_NULL);
    }
    some_of(cx, comm, &told, |one| {
        (one.words[0] as u32 as i32 == color).then_some(one.words[1] as u32 as i32)
    })
}

/// `MPI_Intercomm_merge`: the group that says it is high comes second; if both say the same, they stand as in
/// the row of both.
pub fn merge(cx: &Cx, intercomm: Handle, high: bool, newintracomm: Out<Handle>) -> Result {
    newintracomm.set(COMM_NULL);
    let place = peers(cx, intercomm, "intercomm")?;
    let context = cx.world().new_context();
    let told = tell_all(cx, intercomm, [high.into(), context])?;
    let high_of = |is_mine| told.iter().find(|one| one.is_mine == is_mine).map(|one| one.words[0]);
    if let Some(other) = told.iter().find(|one| Some(one.words[0]) != high_of(one.is_mine)) {
        return fail(
            Class::ARG,
            format!("argument `high` differs in the group of rank {} of the job", other.process),
        );
    }
    let mine_first = match (high_of(true), high_of(false)) {
        (Some(mine), Some(theirs)) if mine != theirs => mine == 0,
        _ => place.is_first(),
    };
    let (one, other) = if mine_first { (&place.mine, &place.peers) } else { (&place.peers, &place.mine) };
    let members = Group::from_ranks(one.iter().chain(other.iter()).collect::<Vec<u32>>());
    let rank = members.rank_of(cx.world().rank()).expect("this rank is in one of the groups");
    newintracomm.set(add(cx, intercomm, Place::within(told[0].words[1], Arc::new(members), rank))?);
    Ok(())
}
