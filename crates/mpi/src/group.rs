//! Groups: ordered lists of processes, named by their rank in the world (MPI 5.0 chapter 7.3).
//!
//! Most groups of real programs are the world, one process or an arithmetic progression, so
//! those are stored as three numbers: no memory per process and both translations in O(1).
//! Other lists are kept with an inverse index that is built on the first reverse lookup.

use std::sync::{Arc, OnceLock};

use crate::error::{Class, Result, fail};

/// `MPI_PROC_NULL`: the process that is not there.
pub const PROC_NULL: i32 = -3;
/// `MPI_UNDEFINED`: no rank, no value.
pub const UNDEFINED: i32 = -32766;

/// How two groups or communicators relate (`MPI_IDENT` and so on).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Comparison {
    /// The same members in the same order (for communicators: the same object).
    Ident = 201,
    /// Communicators only: the same group, another context.
    Congruent = 202,
    /// The same members in another order.
    Similar = 203,
    /// Different members.
    Unequal = 204,
}

/// An ordered set of processes; cheap to clone.
#[derive(Clone, Debug)]
pub struct Group(Members);

#[derive(Clone, Debug)]
enum Members {
    /// `first`, `first + stride`, …: `size` members. `stride` is not zero.
    Strided {
        first: u32,
        stride: i32,
        size: u32,
    },
    List(Arc<List>),
}

#[derive(Debug)]
struct List {
    ranks: Box<[u32]>,
    inverse: OnceLock<Inverse>,
}

/// From world rank to group rank.
#[derive(Debug)]
enum Inverse {
    /// Dense members: `table[world - base]`, `ABSENT` where no member is.
    Table { base: u32, table: Box<[u32]> },
    /// Sparse members: pairs (world rank, group rank) sorted by world rank.
    Sorted(Box<[(u32, u32)]>),
}

const ABSENT: u32 = u32::MAX;
/// A table may be this many times longer than the list before sorting is preferred.
const DENSE_ENOUGH: usize = 4;

impl Default for Group {
    fn default() -> Self {
        Group::EMPTY
    }
}

impl Group {
    /// The group without members.
    pub const EMPTY: Group = Group(Members::Strided { first: 0, stride: 1, size: 0 });

    /// The members `first .. first + size`.
    pub fn range(first: u32, size: u32) -> Group {
        Group(Members::Strided { first, stride: 1, size })
    }

    /// The members in this order; arithmetic progressions are recognised.
    ///
    /// Every world rank may occur once only: that is the caller's promise, as everywhere in MPI
    /// where groups come from checked operations.
    pub fn from_ranks(ranks: impl Into<Box<[u32]>>) -> Group {
        let ranks: Box<[u32]> = ranks.into();
        match progression(&ranks) {
            Some((first, stride)) => Group(Members::Strided { first, stride, size: ranks.len() as u32 }),
            None => Group(Members::List(Arc::new(List { ranks, inverse: OnceLock::new() }))),
        }
    }

    /// How many members there are.
    #[inline]
    pub fn size(&self) -> u32 {
        match &self.0 {
            Members::Strided { size, .. } => *size,
            Members::List(list) => list.ranks.len() as u32,
        }
    }

    /// Whether the other one is this group or a copy of it, without a look at lists of members.
    #[inline]
    pub fn is_same_object(&self, other: &Group) -> bool {
        match (&self.0, &other.0) {
            (Members::List(one), Members::List(other)) => Arc::ptr_eq(one, other),
            (
                &Members::Strided { first, stride, size },
                &Members::Strided { first: other_first, stride: other_stride, size: other_size },
            ) => (first, stride, size) == (other_first, other_stride, other_size),
            _ => false,
        }
    }

    /// Whether there are no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// The world rank of member `rank`, which must be below [`Group::size`].
    #[inline]
    pub fn world_rank(&self, rank: u32) -> u32 {
        match &self.0 {
            Members::Strided { first, stride, size } => {
                assert!(rank < *size, "rank {rank} in a group of {size}");
                first.wrapping_add_signed(rank as i32 * stride)
            }
            Members::List(list) => list.ranks[rank as usize],
        }
    }

    /// The rank in this group of the process with this world rank.
    #[inline]
    pub fn rank_of(&self, world: u32) -> Option<u32> {
        match &self.0 {
            Members::Strided { first, stride, size } => {
                let distance = i64::from(world) - i64::from(*first);
                let stride = i64::from(*stride);
                let rank = if stride == 1 { distance } else { distance / stride };
                (rank >= 0 && rank < i64::from(*size) && rank * stride == distance).then_some(rank as u32)
            }
            Members::List(list) => list.inverse.get_or_init(|| invert(&list.ranks)).find(world),
        }
    }

    /// World ranks of the members in group order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        (0..self.size()).map(|rank| self.world_rank(rank))
    }

    /// How `other` relates to this group; never [`Comparison::Congruent`].
    pub fn compare(&self, other: &Group) -> Comparison {
        if self.size() != other.size() {
            Comparison::Unequal
        } else if self.iter().eq(other.iter()) {
            Comparison::Ident
        } else if self.iter().all(|world| other.rank_of(world).is_some()) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }
}

/// First member and stride, if the ranks form an arithmetic progression.
fn progression(ranks: &[u32]) -> Option<(u32, i32)> {
    let (first, stride) = match ranks {
        [] => return Some((0, 1)),
        [only] => return Some((*only, 1)),
        [first, second, ..] => (*first, i64::from(*second) - i64::from(*first)),
    };
    let follows = ranks.windows(2).all(|pair| i64::from(pair[1]) - i64::from(pair[0]) == stride);
    assert!(stride != 0, "process {first} twice in a group");
    if follows { Some((first, i32::try_from(stride).ok()?)) } else { None }
}

fn invert(ranks: &[u32]) -> Inverse {
    let base = ranks.iter().copied().min().unwrap_or(0);
    let span = (ranks.iter().copied().max().unwrap_or(0) - base) as usize + 1;
    if span <= DENSE_ENOUGH * ranks.len() {
        let mut table = vec![ABSENT; span].into_boxed_slice();
        for (rank, world) in ranks.iter().enumerate() {
            table[(world - base) as usize] = rank as u32;
        }
        return Inverse::Table { base, table };
    }
    let mut pairs: Box<[(u32, u32)]> = ranks.iter().enumerate().map(|(r, w)| (*w, r as u32)).collect();
    pairs.sort_unstable();
    Inverse::Sorted(pairs)
}

impl Inverse {
    #[inline]
    fn find(&self, world: u32) -> Option<u32> {
        match self {
            Inverse::Table { base, table } => {
                let rank = *table.get(world.checked_sub(*base)? as usize)?;
                (rank != ABSENT).then_some(rank)
            }
            Inverse::Sorted(pairs) => {
                let at = pairs.binary_search_by_key(&world, |pair| pair.0).ok()?;
                Some(pairs[at].1)
            }
        }
    }
}

/// The operations that make groups from groups (MPI 5.0 section 7.3.2).
impl Group {
    /// `MPI_Group_incl`: the members with these ranks, in this order.
    pub fn incl(&self, ranks: &[i32]) -> Result<Group> {
        let mut chosen = Selection::new(self.size());
        let mut members = Vec::with_capacity(ranks.len().min(self.size() as usize));
        for (i, rank) in ranks.iter().enumerate() {
            let rank = self.checked(*rank, || format!("`ranks[{i}]`"))?;
            chosen.add(rank, || format!("`ranks[{i}]`"))?;
            members.push(self.world_rank(rank));
        }
        Ok(Group::from_ranks(members))
    }

    /// `MPI_Group_excl`: the members without those of these ranks, in the old order.
    pub fn excl(&self, ranks: &[i32]) -> Result<Group> {
        let mut left_out = Selection::new(self.size());
        for (i, rank) in ranks.iter().enumerate() {
            let rank = self.checked(*rank, || format!("`ranks[{i}]`"))?;
            left_out.add(rank, || format!("`ranks[{i}]`"))?;
        }
        Ok(self.without(&left_out))
    }

    /// `MPI_Group_range_incl`: as [`Group::incl`], ranks given as (first, last, stride).
    pub fn range_incl(&self, ranges: &[[i32; 3]]) -> Result<Group> {
        let mut chosen = Selection::new(self.size());
        let mut members = Vec::new();
        for (i, range) in ranges.iter().enumerate() {
            for rank in self.expand(i, *range)? {
                chosen.add(rank, || format!("`ranges[{i}]`"))?;
                members.push(self.world_rank(rank));
            }
        }
        Ok(Group::from_ranks(members))
    }

    /// `MPI_Group_range_excl`: as [`Group::excl`], ranks given as (first, last, stride).
    pub fn range_excl(&self, ranges: &[[i32; 3]]) -> Result<Group> {
        let mut left_out = Selection::new(self.size());
        for (i, range) in ranges.iter().enumerate() {
            for rank in self.expand(i, *range)? {
                left_out.add(rank, || format!("`ranges[{i}]`"))?;
            }
        }
        Ok(self.without(&left_out))
    }

    /// `MPI_Group_union`: all members of this group, then those of `other` not in it.
    pub fn union(&self, other: &Group) -> Group {
        let added = other.iter().filter(|world| self.rank_of(*world).is_none());
        Group::from_ranks(self.iter().chain(added).collect::<Vec<_>>())
    }

    /// `MPI_Group_intersection`: the members also in `other`, in this group's order.
    pub fn intersection(&self, other: &Group) -> Group {
        Group::from_ranks(self.iter().filter(|world| other.rank_of(*world).is_some()).collect::<Vec<_>>())
    }

    /// `MPI_Group_difference`: the members not in `other`, in this group's order.
    pub fn difference(&self, other: &Group) -> Group {
        Group::from_ranks(self.iter().filter(|world| other.rank_of(*world).is_none()).collect::<Vec<_>>())
    }

    /// One step of `MPI_Group_translate_ranks`: the rank in `other` of the process that has
    /// `rank` here; [`PROC_NULL`] stays, [`UNDEFINED`] if it is not a member of `other`.
    pub fn translate(&self, rank: i32, other: &Group) -> Result<i32> {
        if rank == PROC_NULL {
            return Ok(PROC_NULL);
        }
        let world = self.world_rank(self.checked(rank, || "`ranks1`".into())?);
        Ok(other.rank_of(world).map_or(UNDEFINED, |rank| rank as i32))
    }

    fn checked(&self, rank: i32, argument: impl Fn() -> String) -> Result<u32> {
        if rank >= 0 && (rank as u32) < self.size() {
            return Ok(rank as u32);
        }
        fail(
            Class::RANK,
            format!("rank {rank} in {} is not in the group of {} processes", argument(), self.size()),
        )
    }

    /// The ranks of one (first, last, stride) triplet.
    fn expand(&self, index: usize, [first, last, stride]: [i32; 3]) -> Result<impl Iterator<Item = u32>> {
        if stride == 0 {
            return fail(Class::ARG, format!("the stride in `ranges[{index}]` is 0"));
        }
        let count = (i64::from(last) - i64::from(first)) / i64::from(stride);
        if count < 0 || (i64::from(last) - i64::from(first)).signum() * i64::from(stride).signum() < 0 {
            return fail(
                Class::ARG,
                format!("`ranges[{index}]` goes from {first} to {last} with stride {stride}: an empty range"),
            );
        }
        self.checked(first, || format!("(first of `ranges[{index}]`)"))?;
        let end = i64::from(first) + count * i64::from(stride);
        self.checked(end as i32, || format!("(last of `ranges[{index}]`)"))?;
        Ok((0..=count).map(move |step| (i64::from(first) + step * i64::from(stride)) as u32))
    }

    fn without(&self, left_out: &Selection) -> Group {
        let kept = (0..self.size()).filter(|rank| !left_out.has(*rank));
        Group::from_ranks(kept.map(|rank| self.world_rank(rank)).collect::<Vec<_>>())
    }
}

/// Which ranks were already named, one bit each.
struct Selection(Vec<u64>);

impl Selection {
    fn new(size: u32) -> Selection {
        Selection(vec![0; size.div_ceil(64) as usize])
    }

    fn has(&self, rank: u32) -> bool {
        self.0[rank as usize / 64] >> (rank % 64) & 1 == 1
    }

    fn add(&mut self, rank: u32, argument: impl Fn() -> String) -> Result {
        if self.has(rank) {
            return fail(Class::RANK, format!("rank {rank} is named twice, again in {}", argument()));
        }
        self.0[rank as usize / 64] |= 1 << (rank % 64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The ranks a naive reading of the standard gives for (first, last, stride).
    fn naive_range([first, last, stride]: [i32; 3]) -> Vec<i32> {
        let mut ranks = Vec::new();
        let mut rank = first;
        while if stride > 0 { rank <= last } else { rank >= last } {
            ranks.push(rank);
            rank += stride;
        }
        ranks
    }

    fn members(group: &Group) -> Vec<u32> {
        group.iter().collect()
    }

    /// Ordered subsets of a small world, of all shapes.
    fn any_members() -> impl Strategy<Value = Vec<u32>> {
        let shuffled = Just((0..12u32).collect::<Vec<_>>()).prop_shuffle();
        let list = (shuffled, 0usize..=12, 1u32..1000).prop_map(|(mut ranks, size, spread)| {
            ranks.truncate(size);
            ranks.iter().map(|rank| rank * spread).collect::<Vec<_>>()
        });
        let progression = (0u32..8, 1u32..3, 0u32..8)
            .prop_map(|(first, stride, size)| (0..size).map(|i| first + i * stride).collect::<Vec<_>>());
        let falling = progression.clone().prop_map(|ranks| ranks.into_iter().rev().collect());
        prop_oneof![list, progression, falling]
    }

    proptest! {
        #[test]
        fn a_group_is_the_list_it_was_made_from(list in any_members(), probe in 0u32..13_000) {
            let group = Group::from_ranks(list.clone());
            prop_assert_eq!(members(&group), list.clone());
            for world in list.iter().copied().chain([probe, 0, 5]) {
                let rank = list.iter().position(|member| *member == world);
                prop_assert_eq!(group.rank_of(world), rank.map(|rank| rank as u32));
            }
        }

        #[test]
        fn set_operations_equal_those_on_lists(a in any_members(), b in any_members()) {
            let (x, y) = (Group::from_ranks(a.clone()), Group::from_ranks(b.clone()));
            let only_b = b.iter().copied().filter(|m| !a.contains(m));
            prop_assert_eq!(members(&x.union(&y)), a.iter().copied().chain(only_b).collect::<Vec<_>>());
            let both: Vec<u32> = a.iter().copied().filter(|m| b.contains(m)).collect();
            prop_assert_eq!(members(&x.intersection(&y)), both);
            let only_a: Vec<u32> = a.iter().copied().filter(|m| !b.contains(m)).collect();
            prop_assert_eq!(members(&x.difference(&y)), only_a);
            let sorted = |list: &[u32]| { let mut list = list.to_vec(); list.sort(); list };
            let expected = match () {
                _ if a == b => Comparison::Ident,
                _ if sorted(&a) == sorted(&b) => Comparison::Similar,
                _ => Comparison::Unequal,
            };
            prop_assert_eq!(x.compare(&y), expected);
            for (rank, member) in a.iter().enumerate() {
                let there = b.iter().position(|m| m == member).map_or(UNDEFINED, |r| r as i32);
                prop_assert_eq!(x.translate(rank as i32, &y).unwrap(), there);
            }
        }

        #[test]
        fn selections_equal_those_on_lists(list in any_members(), picks in prop::collection::vec(-1i32..13, 0..6)) {
            let group = Group::from_ranks(list.clone());
            let legal = picks.iter().all(|p| *p >= 0 && (*p as usize) < list.len())
                && (1..picks.len()).all(|i| !picks[..i].contains(&picks[i]));
            let (incl, excl) = (group.incl(&picks), group.excl(&picks));
            if legal {
                let chosen: Vec<u32> = picks.iter().map(|p| list[*p as usize]).collect();
                prop_assert_eq!(members(&incl.unwrap()), chosen.clone());
                let rest: Vec<u32> = list.iter().copied().filter(|m| !chosen.contains(m)).collect();
                prop_assert_eq!(members(&excl.unwrap()), rest);
            } else {
                prop_assert_eq!(incl.unwrap_err().class, Class::RANK);
                prop_assert_eq!(excl.unwrap_err().class, Class::RANK);
            }
        }

        #[test]
        fn ranges_equal_their_expansion(
            list in any_members(),
            ranges in prop::collection::vec((-1i32..9, -1i32..9, -3i32..4).prop_map(|(a, b, c)| [a, b, c]), 0..3),
        ) {
            let group = Group::from_ranks(list);
            let (incl, excl) = (group.range_incl(&ranges), group.range_excl(&ranges));
            if ranges.iter().any(|range| range[2] == 0 || naive_range(*range).is_empty()) {
                // A rank error of an earlier range may come first.
                prop_assert!(incl.is_err() && excl.is_err());
                return Ok(());
            }
            let expanded: Vec<i32> = ranges.iter().flat_map(|range| naive_range(*range)).collect();
            match group.incl(&expanded) {
                Ok(expected) => {
                    prop_assert_eq!(members(&incl.unwrap()), members(&expected));
                    prop_assert_eq!(members(&excl.unwrap()), members(&group.excl(&expanded).unwrap()));
                }
                Err(_) => {
                    prop_assert_eq!(incl.unwrap_err().class, Class::RANK);
                    prop_assert_eq!(excl.unwrap_err().class, Class::RANK);
                }
            }
        }
    }

    #[test]
    fn errors_name_the_argument_and_the_cause() {
        let group = Group::range(10, 4);
        let text = |result: Result<Group>| result.unwrap_err().to_string();
        assert_eq!(
            text(group.incl(&[0, 4])),
            "MPI_ERR_RANK: rank 4 in `ranks[1]` is not in the group of 4 processes"
        );
        assert!(text(group.excl(&[1, -1])).contains("rank -1 in `ranks[1]`"));
        assert!(text(group.incl(&[2, 2])).contains("rank 2 is named twice, again in `ranks[1]`"));
        assert_eq!(text(group.range_incl(&[[0, 3, 0]])), "MPI_ERR_ARG: the stride in `ranges[0]` is 0");
        assert!(text(group.range_incl(&[[0, 1, 1], [3, 0, 1]])).starts_with("MPI_ERR_ARG: `ranges[1]`"));
        assert!(text(group.range_excl(&[[0, 1, 1], [1, 2, 1]])).contains("named twice"));
        assert!(group.translate(PROC_NULL, &Group::EMPTY) == Ok(PROC_NULL));
        assert_eq!(group.translate(4, &group).unwrap_err().class, Class::RANK);
        let extreme = group.range_incl(&[[i32::MAX, i32::MIN, -1]]).unwrap_err();
        assert_eq!(extreme.class, Class::RANK);
    }

    #[test]
    fn a_range_that_ends_between_strides_is_legal() {
        // MPI 5.0 section 7.3.2: last need not be reached exactly.
        let group = Group::range(0, 7);
        assert_eq!(members(&group.range_incl(&[[0, 6, 5]]).unwrap()), [0, 5]);
        assert_eq!(members(&group.range_incl(&[[6, 1, -2]]).unwrap()), [6, 4, 2]);
        // So it may lie outside the group, as long as the ranks computed do not.
        assert_eq!(members(&group.range_incl(&[[5, 8, 5]]).unwrap()), [5]);
    }

    #[test]
    fn progressions_take_no_list() {
        let strided = Group::range(0, 1000).range_incl(&[[999, 0, -3]]).unwrap();
        assert!(matches!(strided.0, Members::Strided { first: 999, stride: -3, size: 334 }));
        assert!(matches!(strided.union(&Group::EMPTY).0, Members::Strided { .. }));
        assert!(matches!(Group::from_ranks(vec![3, 1, 2]).0, Members::List(_)));
    }
}
