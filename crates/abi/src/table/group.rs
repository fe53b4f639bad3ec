//! MPI 5.0, chapter 7 Groups.

use crate::kind::array::{Ints, IntsOut, Ranges};
use crate::kind::handle::{Group, GroupRef};
use crate::kind::output::{GroupOut, IntOut};
use crate::kind::scalar::Length;
use crate::table::rows;

rows! { "7 Groups";
    MPI_Group_compare(group1: Group, group2: Group, result: IntOut) => missing;
    MPI_Group_difference(group1: Group, group2: Group, newgroup: GroupOut) => missing;
    MPI_Group_excl(group: Group, n: Length, ranks: Ints, newgroup: GroupOut) => missing;
    MPI_Group_free(group: GroupRef) => missing;
    MPI_Group_incl(group: Group, n: Length, ranks: Ints, newgroup: GroupOut) => missing;
    MPI_Group_intersection(group1: Group, group2: Group, newgroup: GroupOut) => missing;
    MPI_Group_range_excl(group: Group, n: Length, ranges: Ranges, newgroup: GroupOut) => missing;
    MPI_Group_range_incl(group: Group, n: Length, ranges: Ranges, newgroup: GroupOut) => missing;
    MPI_Group_rank(group: Group, rank: IntOut) => missing;
    MPI_Group_size(group: Group, size: IntOut) => missing;
    MPI_Group_translate_ranks(group1: Group, n: Length, ranks1: Ints, group2: Group, ranks2: IntsOut)
        => missing;
    MPI_Group_union(group1: Group, group2: Group, newgroup: GroupOut) => missing;
}
