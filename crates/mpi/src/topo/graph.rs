//! Graph topologies (MPI 5.0 section 8.5.3): every rank knows all edges.

use super::{end, member};
use crate::error::{Class, Result, fail};

/// A graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// How many edges the nodes up to each one have, as the application gave them.
    pub index: Vec<i32>,
    /// The ends of all edges, node by node.
    pub edges: Vec<i32>,
}

impl Graph {
    /// How many edges an index tells of; it must not fall.
    pub fn edges_of(index: &[i32], room: u32) -> Result<usize> {
        if index.len() > room as usize {
            return fail(
                Class::ARG,
                format!(
                    "argument `nnodes` is {}, more than the communicator's {room} processes",
                    index.len()
                ),
            );
        }
        let mut before = 0;
        for (i, &upto) in index.iter().enumerate() {
            if upto < before {
                return fail(
                    Class::ARG,
                    format!("argument `index`[{i}] is {upto}, must be at least {before}"),
                );
            }
            before = upto;
        }
        Ok(before as usize)
    }

    /// A graph; there are as many `edges` as [`Graph::edges_of`] says.
    pub fn new(index: &[i32], edges: &[i32]) -> Result<Graph> {
        for (i, &to) in edges.iter().enumerate() {
            if to < 0 || to as usize >= index.len() {
                return fail(
                    Class::ARG,
                    format!("argument `edges`[{i}] is {to}, the graph has nodes 0 to {}", index.len() - 1),
                );
            }
        }
        Ok(Graph { index: index.to_vec(), edges: edges.to_vec() })
    }

    /// Number of nodes.
    pub fn size(&self) -> u32 {
        self.index.len() as u32
    }

    /// The ends of the edges of a node.
    pub fn neighbors(&self, rank: u32) -> &[i32] {
        let rank = rank as usize;
        let from = if rank == 0 { 0 } else { self.index[rank - 1] };
        &self.edges[from as usize..self.index[rank] as usize]
    }

    /// All edges.
    pub fn pairs(&self) -> Vec<(u32, u32)> {
        let around = |rank| self.neighbors(rank).iter().map(move |other| (rank, *other as u32));
        (0..self.size()).flat_map(around).collect()
    }

    /// As [`Graph::neighbors`] of a rank that the application gave.
    pub fn neighbors_of(&self, rank: i32) -> Result<&[i32]> {
        Ok(self.neighbors(member(rank, self.size())?))
    }
}

/// Checks the ends of edges that lie on one rank.
pub(super) fn ends(ranks: &[i32], size: u32, arg: &str) -> Result<Vec<i32>> {
    ranks.iter().enumerate().map(|(at, rank)| end(*rank, size, arg, at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard() {
        let (index, edges) = ([2, 3, 4, 6], [1, 3, 0, 3, 0, 2]);
        assert_eq!(Graph::edges_of(&index, 4), Ok(6));
        let graph = Graph::new(&index, &edges).unwrap();
        assert_eq!(graph.neighbors(0), [1, 3]);
        assert_eq!(graph.neighbors_of(3).unwrap(), [0, 2]);
        assert_eq!(graph.neighbors_of(4).unwrap_err().class, Class::RANK);
    }

    #[test]
    fn wrong_graphs_are_refused_by_name() {
        assert!(Graph::edges_of(&[2, 1], 4).unwrap_err().text.starts_with("argument `index`[1] is 1"));
        assert!(Graph::edges_of(&[-1], 4).unwrap_err().text.starts_with("argument `index`[0] is -1"));
        assert!(Graph::edges_of(&[0, 0, 0], 2).unwrap_err().text.starts_with("argument `nnodes` is 3"));
        assert!(Graph::new(&[1, 2], &[1, 2]).unwrap_err().text.starts_with("argument `edges`[1] is 2"));
        assert!(Graph::new(&[1], &[-1]).unwrap_err().text.starts_with("argument `edges`[0] is -1"));
    }
}
