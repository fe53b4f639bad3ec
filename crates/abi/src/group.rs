//! MPI 5.0 section 7.3: groups.

use mpi::error::Result;
use mpi::group::{Group, UNDEFINED};
use mpi::handle::Handle;
use mpi::objects::GROUP_NULL;

use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::handle::HandleRef;
use crate::kind::output::Out;
use crate::layout::{self, Set};

/// `MPI_Group_size`.
pub fn size(cx: &Cx, group: Handle, size: Out<i32>) -> Result {
    size.set(cx.objects().group(group)?.size() as i32);
    Ok(())
}

/// `MPI_Group_rank`.
pub fn rank(cx: &Cx, group: Handle, rank: Out<i32>) -> Result {
    let world = cx.world();
    let mine = world.objects.group(group)?.rank_of(world.rank());
    rank.set(mine.map_or(UNDEFINED, |rank| rank as i32));
    Ok(())
}

/// `MPI_Group_compare`.
pub fn compare(cx: &Cx, group1: Handle, group2: Handle, result: Out<i32>) -> Result {
    let objects = cx.objects();
    result.set(objects.group(group1)?.compare(objects.group(group2)?) as i32);
    Ok(())
}

/// `MPI_Group_translate_ranks`.
pub fn translate_ranks(
    cx: &Cx,
    group1: Handle,
    n: usize,
    ranks1: Array<i32>,
    group2: Handle,
    ranks2: Array<i32>,
) -> Result {
    let objects = cx.objects();
    let (from, to) = (objects.group(group1)?, objects.group(group2)?);
    // SAFETY: MPI says both arrays have `n` elements; the first is not used beyond this line, so
    // that an application that passes one array for both does no harm.
    let translated: Vec<i32> = unsafe { ranks1.slice(n)? }
        .iter()
        .map(|rank| from.translate(layout::read(Set::Rank, *rank), to))
        .collect::<Result<_>>()?;
    // SAFETY: as above.
    let places = unsafe { ranks2.slice_mut(n)? };
    places.iter_mut().zip(translated).for_each(|(place, rank)| *place = layout::write(Set::Rank, rank));
    Ok(())
}

/// `MPI_Group_incl`.
pub fn incl(cx: &Cx, group: Handle, n: usize, ranks: Array<i32>, newgroup: Out<Handle>) -> Result {
    // SAFETY: MPI says the array has `n` elements.
    let ranks = unsafe { ranks.slice(n)? };
    make(cx, newgroup, group, |group| group.incl(ranks))
}

/// `MPI_Group_excl`.
pub fn excl(cx: &Cx, group: Handle, n: usize, ranks: Array<i32>, newgroup: Out<Handle>) -> Result {
    // SAFETY: MPI says the array has `n` elements.
    let ranks = unsafe { ranks.slice(n)? };
    make(cx, newgroup, group, |group| group.excl(ranks))
}

/// `MPI_Group_range_incl`.
pub fn range_incl(
    cx: &Cx,
    group: Handle,
    n: usize,
    ranges: Array<[i32; 3]>,
    newgroup: Out<Handle>,
) -> Result {
    // SAFETY: MPI says the array has `n` triplets.
    let ranges = unsafe { ranges.slice(n)? };
    make(cx, newgroup, group, |group| group.range_incl(ranges))
}

/// `MPI_Group_range_excl`.
pub fn range_excl(
    cx: &Cx,
    group: Handle,
    n: usize,
    ranges: Array<[i32; 3]>,
    newgroup: Out<Handle>,
) -> Result {
    // SAFETY: MPI says the array has `n` triplets.
    let ranges = unsafe { ranges.slice(n)? };
    make(cx, newgroup, group, |group| group.range_excl(ranges))
}

/// `MPI_Group_union`.
pub fn union(cx: &Cx, group1: Handle, group2: Handle, newgroup: Out<Handle>) -> Result {
    combine(cx, group1, group2, newgroup, Group::union)
}

/// `MPI_Group_intersection`.
pub fn intersection(cx: &Cx, group1: Handle, group2: Handle, newgroup: Out<Handle>) -> Result {
    combine(cx, group1, group2, newgroup, Group::intersection)
}

/// `MPI_Group_difference`.
pub fn difference(cx: &Cx, group1: Handle, group2: Handle, newgroup: Out<Handle>) -> Result {
    combine(cx, group1, group2, newgroup, Group::difference)
}

/// `MPI_Group_free`.
pub fn free(cx: &Cx, group: HandleRef) -> Result {
    cx.objects().free_group(group.handle)?;
    group.set(GROUP_NULL);
    Ok(())
}

fn combine(
    cx: &Cx,
    a: Handle,
    b: Handle,
    newgroup: Out<Handle>,
    f: impl Fn(&Group, &Group) -> Group,
) -> Result {
    let other = cx.objects().group(b)?.clone();
    make(cx, newgroup, a, |group| Ok(f(group, &other)))
}

fn make(cx: &Cx, newgroup: Out<Handle>, group: Handle, f: impl FnOnce(&Group) -> Result<Group>) -> Result {
    let mut objects = cx.objects();
    let made = f(objects.group(group)?)?;
    let session = objects.origins.get(&group).copied();
    newgroup.set(objects.add_group_of(made, session)?);
    Ok(())
}
