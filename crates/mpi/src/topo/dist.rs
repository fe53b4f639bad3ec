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

    /// What a rank has told of a graph with weights, or without.
    pub fn from_words(words: &[u64], is_weighted: bool) -> Dist {
        let (degrees, rest) = words.split_at(2);
        let numbers: Vec<i32> = rest.iter().map(|word| *word as u32 as i32).collect();
        let (sources, rest) = numbers.split_at(degrees[0] as usize);
        let (destinations, rest) = rest.split_at(degrees[1] as usize);
        let weights = is_weighted.then(|| {
            let (before, behind) = rest.split_at(sources.len());
            [before.to_vec(), behind.to_vec()]
        });
        Dist { sources: sources.to_vec(), destinations: destinations.to_vec(), weights }
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
    pub fn from_words([ends, weight]: [u64; 2]) -> Edge {
        Edge { from: (ends >> 32) as i32, to: ends as u32 as i32, weight: weight as i32 }
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
            assert_eq!(Edge::from_words(edge.words()), edge);
        }
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
