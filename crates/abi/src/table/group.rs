//! MPI 5.0, chapter 7 Groups.

use crate::kind::array::{Ints, IntsOut, Ranges};
use crate::kind::handle::{Group, GroupRef};
use crate::kind::output::{ComparisonOut, GroupOut, IntOut};
use crate::kind::scalar::Length;
use crate::table::rows;

rows! { "7 Groups";
    MPI_Group_compare(group1: Group, group2: Group, result: ComparisonOut) => crate::group::compare;
    MPI_Group_difference(group1: Group, group2: Group, newgroup: GroupOut) => crate::group::difference;
    MPI_Group_excl(group: Group, n: Length, ranks: Ints, newgroup: GroupOut) => crate::group::excl;
    MPI_Group_free(group: GroupRef) => crate::group::free;
    MPI_Group_incl(group: Group, n: Length, ranks: Ints, newgroup: GroupOut) => crate::group::incl;
    MPI_Group_intersection(group1: Group, group2: Group, newgroup: GroupOut) => crate::group::intersection;
    MPI_Group_range_excl(group: Group, n: Length, ranges: Ranges, newgroup: GroupOut)
        => crate::group::range_excl;
    MPI_Group_range_incl(group: Group, n: Length, ranges: Ranges, newgroup: GroupOut)
        => crate::group::range_incl;
    MPI_Group_rank(group: Group, rank: IntOut) => crate::group::rank;
    MPI_Group_size(group: Group, size: IntOut) => crate::group::size;
    MPI_Group_translate_ranks(group1: Group, n: Length, ranks1: Ints, group2: Group, ranks2: IntsOut)
        => crate::group::translate_ranks;
    MPI_Group_union(group1: Group, group2: Group, newgroup: GroupOut) => crate::group::union;
}
