//! Distributed graph topologies (MPI 5.0 section 8.5.4): a rank knows the edges that begin or end at it. They are
//! named by any rank, so creating the topology is sending each edge to both of its ends.

use super::graph::ends;
use crate::error::{Class, Result, fail};

/// The edges of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dist {
    /// Where edges to this rank come from.
    pub sources: Vec<i32>,
    /// Where edges from this rank go.
    pub destinations: Vec<i32>,
    /// Their weights, in the same order, if the graph has any.
    pub weights: Option<[Vec<i32>; 2]>,
}

impl Dist {
    /// As it is told other ranks.
    pub fn to_words(&self) -> Vec<u64> {
        let degrees = [self.sources.len() as u64, self.destinations.len() as u64];
        let [before, behind] = self.weights.as_ref().map_or([&[][..], &[]], |[a, b]| [&a[..], &b[..]]);
        let numbers = [&self.sources, &self.destinations, before, behind].concat();
        degrees.into_iter().chain(numbers.into_iter().map(|number| number as u32 as u64)).collect()
    }

    /// What a rank has told of a graph of `size` nodes with weights, or without; `None` if no rank tells this.
    pub fn from_words(words: &[u64], is_weighted: bool, size: u32) -> Option<Dist> {
        let ([indegree, outdegree], rest) = words.split_first_chunk()?;
        let numbers = rest.iter().map(|word| i32::try_from(*word).ok()).collect::<Option<Vec<i32>>>()?;
        let (sources, rest) = numbers.split_at_checked(usize::try_from(*indegree).ok()?)?;
        let (destinations, rest) = rest.split_at_checked(usize::try_from(*outdegree).ok()?)?;
        let (before, behind) = rest.split_at_checked(if is_weighted { sources.len() } else { 0 })?;
        let is_whole = behind.len() == if is_weighted { destinations.len() } else { 0 };
        let are_nodes = sources.iter().chain(destinations).all(|node| (*node as u32) < size);
        let weights = is_weighted.then(|| [before.to_vec(), behind.to_vec()]);
        let dist = Dist { sources: sources.to_vec(), destinations: destinations.to_vec(), weights };
        (is_whole && are_nodes).then_some(dist)
    }

    /// The edges that leave node `from`, with how much each counts.
    pub fn leaving(&self, from: u32) -> impl Iterator<Item = (u32, u32, u64)> {
        let weight = |at: usize| self.weights.as_ref().map_or(1, |[_, weights]| weights[at].max(0) as u64);
        self.destinations.iter().enumerate().map(move |(at, to)| (from, *to as u32, weight(at)))
    }
}

/// An edge as one rank tells of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Where it begins.
    pub from: i32,
    /// Where it ends.
    pub to: i32,
    /// Its weight; 1 in a graph without weights.
    pub weight: i32,
}

impl Edge {
    /// As two words of a message.
    pub fn words(self) -> [u64; 2] {
        [u64::from(self.from as u32) << 32 | u64::from(self.to as u32), self.weight as u64]
    }

    /// From the words of a message.
    fn from_words([ends, weight]: [u64; 2]) -> Option<Edge> {
        let edge = Edge { from: (ends >> 32) as i32, to: ends as u32 as i32, weight: weight as i32 };
        (edge.words() == [ends, weight] && edge.weight >= 0).then_some(edge)
    }

    /// The edges that a rank has told node `me` of `size` of, which it is an end of; `None` if no rank tells this.
    pub fn told(words: &[u64], me: u32, size: u32) -> Option<Vec<Edge>> {
        let (edges, rest) = words.as_chunks();
        let edges = edges.iter().map(|words| Edge::from_words(*words)).collect::<Option<Vec<Edge>>>()?;
        let is_one = |edge: &Edge| {
            let ends = [edge.from as u32, edge.to as u32];
            ends.contains(&me) && ends.iter().all(|end| *end < size)
        };
        (rest.is_empty() && edges.iter().all(is_one)).then_some(edges)
    }
}

/// Weights must not be negative.
fn weights_ok(weights: Option<&[i32]>, arg: &str) -> Result {
    match weights.unwrap_or(&[]).iter().enumerate().find(|(_, weight)| **weight < 0) {
        None => Ok(()),
        Some((i, weight)) => {
            fail(Class::ARG, format!("argument `{arg}`[{i}] is {weight}, must not be negative"))
        }
    }
}

impl Dist {
    /// `MPI_Dist_graph_create_adjacent`: every rank tells its own edges.
    pub fn adjacent(
        sources: (&[i32], Option<&[i32]>),
        destinations: (&[i32], Option<&[i32]>),
        size: u32,
    ) -> Result<Dist> {
        weights_ok(sources.1, "sourceweights")?;
        weights_ok(destinations.1, "destweights")?;
        let weights = match (sources.1, destinations.1) {
            (None, None) => None,
            (Some(a), Some(b)) => Some([a.to_vec(), b.to_vec()]),
            _ => {
                return fail(
                    Class::ARG,
                    "only one of the arguments `sourceweights` and `destweights` is MPI_UNWEIGHTED",
                );
            }
        };
        Ok(Dist {
            sources: ends(sources.0, size, "sources")?,
            destinations: ends(destinations.0, size, "destinations")?,
            weights,
        })
    }

    /// The edges that a rank tells `MPI_Dist_graph_create` of; there are as many destinations as the degrees say.
    pub fn edges(
        sources: &[i32],
        degrees: &[i32],
        destinations: &[i32],
        weights: Option<&[i32]>,
        size: u32,
    ) -> Result<Vec<Edge>> {
        weights_ok(weights, "weights")?;
        let (sources, destinations) =
            (ends(sources, size, "sources")?, ends(destinations, size, "destinations")?);
        let from = sources.iter().zip(degrees).flat_map(|(from, n)| std::iter::repeat_n(*from, *n as usize));
        let weight = |i: usize| weights.map_or(1, |weights| weights[i]);
        let edge = |(i, (from, &to)): (usize, (i32, &i32))| Edge { from, to, weight: weight(i) };
        Ok(from.zip(&destinations).enumerate().map(edge).collect())
    }

    /// How many edges the degrees tell of.
    pub fn edges_of(degrees: &[i32]) -> Result<usize> {
        match degrees.iter().enumerate().find(|(_, degree)| **degree < 0) {
            None => Ok(degrees.iter().map(|degree| *degree as usize).sum()),
            Some((i, degree)) => {
                fail(Class::ARG, format!("argument `degrees`[{i}] is {degree}, must not be negative"))
            }
        }
    }

    /// The edges of one rank, from those that all ranks have told it of. Both ends of several edges between the
    /// same ranks are told of in the same order, so that they agree on which is which.
    pub fn gathered(me: u32, told: impl Iterator<Item = Edge> + Clone, weighted: bool) -> Dist {
        let me = me as i32;
        let arriving = told.clone().filter(|edge| edge.to == me);
        let leaving = told.filter(|edge| edge.from == me);
        let weights = weighted.then(|| {
            [arriving.clone().map(|e| e.weight).collect(), leaving.clone().map(|e| e.weight).collect()]
        });
        Dist {
            sources: arriving.map(|e| e.from).collect(),
            destinations: leaving.map(|e| e.to).collect(),
            weights,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_come_back_from_their_words() {
        for edge in
            [Edge { from: 0, to: i32::MAX, weight: 0 }, Edge { from: i32::MAX, to: 3, weight: i32::MAX }]
        {
            assert_eq!(Edge::from_words(edge.words()), Some(edge));
        }
    }

    #[test]
    fn what_no_rank_tells_is_refused() {
        let dist = Dist { sources: vec![2, 0], destinations: vec![1], weights: Some([vec![5, 6], vec![7]]) };
        let words = dist.to_words();
        assert_eq!(Dist::from_words(&words, true, 3), Some(dist));
        assert_eq!(Dist::from_words(&words, false, 3), None, "behind the edges");
        assert_eq!(Dist::from_words(&words, true, 2), None, "there is no node 2");
        for (at, word) in [(0, 9), (1, u64::MAX), (2, 3), (4, 1 << 32), (7, u64::MAX)] {
            let mut wrong = words.clone();
            wrong[at] = word;
            assert_eq!(Dist::from_words(&wrong, true, 3), None, "{at}");
        }
        assert!((0..words.len()).all(|len| Dist::from_words(&words[..len], true, 3).is_none()));
        let edge = Edge { from: 2, to: 1, weight: 4 }.words();
        let told = |words: &[u64], me, size| Edge::told(words, me, size).map(|edges| edges.len());
        assert_eq!([told(&edge, 1, 3), told(&edge, 2, 3), told(&[], 0, 3)], [Some(1), Some(1), Some(0)]);
        assert_eq!([told(&edge, 0, 3), told(&edge, 1, 2), told(&edge[..1], 1, 3)], [None; 3]);
        assert_eq!(told(&[edge[0], u64::MAX], 1, 3), None, "a weight below zero");
    }

    #[test]
    fn every_edge_is_known_at_both_ends_and_nowhere_else() {
        let told = Dist::edges(&[0, 2], &[2, 1], &[1, 1, 0], Some(&[5, 6, 7]), 3).unwrap();
        let at = |rank| Dist::gathered(rank, told.iter().copied(), true);
        assert_eq!((at(0).sources, at(0).destinations), (vec![2], vec![1, 1]));
        assert_eq!(at(0).weights, Some([vec![7], vec![5, 6]]));
        assert_eq!((at(1).sources, at(1).weights), (vec![0, 0], Some([vec![5, 6], vec![]])));
        assert_eq!((at(2).sources, at(2).destinations), (vec![], vec![0]));
        let own = Dist::gathered(1, [Edge { from: 1, to: 1, weight: 1 }].into_iter(), false);
        assert_eq!((own.sources, own.destinations, own.weights), (vec![1], vec![1], None));
    }

    #[test]
    fn wrong_edges_are_refused_by_name() {
        let refused = |a: Result<Vec<Edge>>| a.unwrap_err().text.clone();
        assert!(refused(Dist::edges(&[3], &[1], &[0], None, 3)).starts_with("argument `sources`[0] is 3"));
        assert!(
            refused(Dist::edges(&[0], &[1], &[-1], None, 3)).starts_with("argument `destinations`[0] is -1")
        );
        assert!(
            refused(Dist::edges(&[0], &[1], &[1], Some(&[-1]), 3)).starts_with("argument `weights`[0] is -1")
        );
        assert!(Dist::edges_of(&[1, -1]).unwrap_err().text.starts_with("argument `degrees`[1] is -1"));
        let one = Dist::adjacent((&[0], Some(&[1])), (&[0], None), 1).unwrap_err();
        assert!(one.text.contains("MPI_UNWEIGHTED"));
    }
}
