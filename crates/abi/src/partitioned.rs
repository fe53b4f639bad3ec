//! MPI 5.0 chapter 4: partitioned communication.
#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use mpi::comm::Place;
use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;
use mpi::partitioned::Parts;

use crate::cx::Cx;
use crate::global::World;
use crate::kind::array::Array;
use crate::kind::output::Out;
use crate::object::Object;
use crate::{engine, wait};

/// The partitions of a buffer: so many of `count` elements each, and at least one (MPI 5.0 section 4.2.1).
fn parts(world: &World, buf: usize, partitions: usize, count: u64, datatype: Handle) -> Result<Parts> {
    if partitions == 0 {
        return fail(Class::ARG, "argument `partitions` is 0, must be positive");
    }
    let all = count.checked_mul(partitions as u64).filter(|all| i64::try_from(*all).is_ok());
    let Some(all) = all else {
        let text = format!("{partitions} partitions of {count} elements do not fit the address space");
        return fail(Class::COUNT, text);
    };
    Ok(Parts::new(world.buffer(buf, all, datatype, "buf")?, partitions))
}

/// Makes the request of either side.
fn init(
    cx: &Cx,
    (buf, partitions, count, datatype): (usize, usize, u64, Handle),
    comm: Handle,
    request: Out<Handle>,
    make: impl FnOnce(&mut World, Place, Parts) -> Result<Handle>,
) -> Result {
    let mut world = cx.world();
    let place = world.comm(comm)?.place.clone();
    let parts = parts(&world, buf, partitions, count, datatype)?;
    request.set(make(&mut world, place, parts)?);
    engine::leave(&world);
    Ok(())
}

/// `MPI_Psend_init`; no hint is known.
pub fn send_init(
    cx: &Cx,
    buf: usize,
    partitions: usize,
    count: u64,
    datatype: Handle,
    dest: i32,
    tag: i32,
    comm: Handle,
    _info: Handle,
    request: Out<Handle>,
) -> Result {
    init(cx, (buf, partitions, count, datatype), comm, request, |world, place, parts| {
        world.partitioned_send(place, comm, parts, dest, tag)
    })
}

/// `MPI_Precv_init`; no hint is known.
pub fn receive_init(
    cx: &Cx,
    buf: usize,
    partitions: usize,
    count: u64,
    datatype: Handle,
    source: i32,
    tag: i32,
    comm: Handle,
    _info: Handle,
    request: Out<Handle>,
) -> Result {
    init(cx, (buf, partitions, count, datatype), comm, request, |world, place, parts| {
        world.partitioned_receive(place, comm, parts, source, tag)
    })
}

/// Makes partitions ready, and looks around where they have left something under way.
fn make_ready(cx: &Cx, request: Handle, partitions: impl Iterator<Item = i32>, arg: &str) -> Result {
    let mut world = cx.world();
    if let Some(request) = world.objects.requests.get(request) {
        cx.concerns(Object::Comm, request.comm);
    }
    world.ready(request, partitions, arg)?;
    world.engine.note();
    engine::leave(&world);
    Ok(())
}

/// `MPI_Pready`.
pub fn ready(cx: &Cx, partition: i32, request: Handle) -> Result {
    make_ready(cx, request, std::iter::once(partition), "partition")
}

/// `MPI_Pready_range`.
pub fn ready_range(cx: &Cx, low: i32, high: i32, request: Handle) -> Result {
    if low > high {
        let text = format!("argument `partition_low` is {low}, above `partition_high`, which is {high}");
        return fail(Class::ARG, text);
    }
    for (end, arg) in [(low, "partition_low"), (high, "partition_high")] {
        cx.world().check_partition(request, end, arg)?;
    }
    make_ready(cx, request, low..=high, "partition_low")
}

/// `MPI_Pready_list`.
pub fn ready_list(cx: &Cx, length: usize, partitions: Array<i32>, request: Handle) -> Result {
    // SAFETY: MPI says the array has `length` elements; not used beyond the call.
    let partitions = unsafe { partitions.slice(length)? };
    make_ready(cx, request, partitions.iter().copied(), "array_of_partitions")
}

/// `MPI_Parrived`.
pub fn arrived(cx: &Cx, request: Handle, partition: i32, flag: Out<bool>) -> Result {
    let arrived = |world: &mut World| Ok(world.has_arrived(request, partition)?.then_some(()));
    flag.set(wait::once(cx, arrived)?.is_some());
    Ok(())
}
