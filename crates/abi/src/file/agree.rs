//! What the ranks of a file tell each other in collective calls: an error of one is an error of all, and none waits
//! for one that has gone.

use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;

use crate::coll::run;
use crate::cx::Cx;

/// The class of an error, 0 for none.
pub fn class_of<T>(outcome: &Result<T>) -> u64 {
    outcome.as_ref().err().map_or(0, |error| error.class.0 as u64)
}

/// The error of this rank, or else that of the first that has failed.
pub fn all_well<T>(mine: Result<T>, classes: impl Iterator<Item = u64>) -> Result<T> {
    let value = mine?;
    match classes.enumerate().find_map(|(rank, class)| Some((rank, Class::told(class)?))) {
        None => Ok(value),
        Some((rank, class)) => {
            fail(class, format!("rank {rank} of the file's communicator failed with {}", class.name()))
        }
    }
}

/// Waits for all, of which each says how it has fared.
pub fn agree<T>(cx: &Cx, comm: Handle, mine: Result<T>) -> Result<T> {
    let all = run::exchange_words(cx, comm, [class_of(&mine)])?;
    all_well(mine, all.into_iter().map(|[class]| class))
}

/// Most arguments of one call that must be equal.
const MOST: usize = 3;

/// An argument that must be equal on all ranks.
#[derive(Clone, Copy)]
pub enum Word {
    Number(i64),
    /// Of a name, of which the number says nothing to people.
    Digest(i64),
}

impl Word {
    fn bits(self) -> u64 {
        let (Word::Number(value) | Word::Digest(value)) = self;
        value as u64
    }
}

/// As [`agree`], for arguments that must be equal on all ranks.
pub fn same<T, const N: usize>(
    cx: &Cx,
    comm: Handle,
    mine: Result<T>,
    values: [(Word, &'static str); N],
) -> Result<T> {
    let mut words = [0; 1 + MOST];
    words[0] = class_of(&mine);
    words[1..].iter_mut().zip(&values).for_each(|(word, value)| *word = value.0.bits());
    let all = run::exchange_words(cx, comm, words)?;
    let value = all_well(mine, all.iter().map(|words| words[0]))?;
    for (at, (here, name)) in values.into_iter().enumerate() {
        if let Some(rank) = all.iter().position(|words| words[1 + at] != here.bits()) {
            let there = all[rank][1 + at] as i64;
            let text = match here {
                Word::Number(here) => {
                    format!("argument `{name}` is {here} on this rank and {there} on rank {rank}")
                }
                Word::Digest(_) => format!("argument `{name}` is another one on rank {rank}"),
            };
            return fail(Class::NOT_SAME, text);
        }
    }
    Ok(value)
}
