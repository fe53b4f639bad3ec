//! MPI 5.0 chapter 11: processes of other jobs, which are started or met. See docs/protocols/dynamic.md.
//!
//! A process numbers its peers itself: the ranks of its job first, those of others behind them as it gets to know
//! them. So no number of a process travels between jobs; what does is its [`Card`].

mod meet;
mod names;
mod port;
mod spawn;

pub use names::{lookup as lookup_name, publish as publish_name, unpublish as unpublish_name};
pub use port::{accept, close as close_port, connect, end_all as close_ports, join, open as open_port};
pub use spawn::{find_parent, get_parent, spawn, spawn_multiple};

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use mpi::error::{Class, Error, Result};
use mpi::handle::Handle;
use mpi::ports::HELLO;
use rnic::Card;

use crate::coll::run;
use crate::cx::Cx;
use crate::global::World;
use crate::{connect, device, letter, wait};

/// Contexts of what the library says to processes of other jobs. No communicator has them: those of jobs are below,
/// those of several jobs above.
const ANSWER: u64 = HELLO | 1;
const FAREWELL: u64 = HELLO | 2;

/// What this process's job is called in others.
static JOB: OnceLock<[u8; 16]> = OnceLock::new();

/// Names the job; one without a launcher has no name that others could know.
pub fn name_job(name: Option<&str>) -> std::result::Result<(), String> {
    let mut bytes = [0; 16];
    match name {
        Some(name) => {
            // All ranks find the same. It says who is who, not who may do what.
            for (half, bytes) in bytes.chunks_exact_mut(8).enumerate() {
                let mut hasher = DefaultHasher::new();
                (half, name).hash(&mut hasher);
                bytes.copy_from_slice(&hasher.finish().to_be_bytes());
            }
        }
        None => launch::sys::random(&mut bytes).map_err(|error| format!("random numbers: {error}"))?,
    }
    JOB.get_or_init(|| bytes);
    Ok(())
}

/// The card of this process, which others can reach from here on. Those of its job first.
pub fn own_card(cx: &Cx) -> Result<Card> {
    connect::job(cx)?;
    let fail =
        |text: String| Error::new(Class::OTHER, format!("no process of another job can be met: {text}"));
    let job = *JOB.get().expect("named when the process arrived");
    let mut seed = [0; 8];
    launch::sys::random(&mut seed).map_err(|error| fail(format!("random numbers: {error}")))?;
    let mut world = cx.world();
    let rank = world.rank();
    let card = world.engine.extend(|device| device::receive_guests(device, job, rank)).map_err(fail)?;
    world.meet_others(u64::from_ne_bytes(seed));
    Ok(card)
}

/// The number that the process with this card has here.
pub fn admit(world: &mut World, card: &Card) -> u32 {
    if Some(&card.job) == JOB.get() {
        return card.rank;
    }
    world.engine.extend(|device| device::introduce(device, card)) as u32
}

/// What all processes call the one that has this number here.
pub fn name(world: &mut World, process: u32) -> ([u8; 16], u32) {
    match process < world.job_size() {
        true => (*JOB.get().expect("named when the process arrived"), process),
        false => world.engine.extend(|device| device::adapter(device).name_of(process as usize)),
    }
}

/// Before a communicator goes for good: those of other jobs wait for each other, so that nothing is under way.
pub fn disconnect(cx: &Cx, comm: Handle) -> Result {
    // What has been started on it and not waited for ends before (MPI 5.0 section 11.10.4).
    wait::until(cx, |world| {
        let requests: Vec<Handle> = {
            let pending = world.objects.requests.iter().filter(|(_, request)| request.comm == comm);
            pending.filter(|(_, request)| request.body.is_some()).map(|(handle, _)| handle).collect()
        };
        for request in requests {
            if !world.settle(request)? {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })?;
    run::barrier(cx, comm)
}

/// A communicator has gone: processes with which there is none any more may go as well.
pub fn part(world: &mut World) {
    let (size, all) = (world.job_size() as usize, fabric::Device::size(world.engine.device()));
    if all > size {
        let connected = world.others();
        let is_parted = |peer: usize| !connected.contains(&(peer as u32));
        world.engine.extend(|device| {
            (size..all).for_each(|peer| device::adapter(device).part(peer, is_parted(peer)));
        });
    }
}

/// Processes that have died may go as well, whoever is missed next.
#[inline]
pub fn heed_losses(world: &mut World) {
    if world.has_losses() {
        part(world);
    }
}

/// At the end: MPI_Finalize joins all connected processes (MPI 5.0 section 11.2.4), so each waits for those with which
/// it shares a communicator, which know of it by that.
pub fn take_leave(cx: &Cx) -> Result {
    let others: BTreeSet<u32> = cx.world().others();
    if others.is_empty() {
        return Ok(());
    }
    letter::post(cx, FAREWELL, 0, others.iter().map(|other| (*other, vec![0])))?;
    for other in &others {
        letter::hear(cx, *other, FAREWELL, 0, 1)?;
    }
    let mut world = cx.world();
    world.engine.extend(|device| {
        others.iter().for_each(|other| device::adapter(device).part(*other as usize, true));
    });
    Ok(())
}
