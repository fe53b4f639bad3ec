//! The same type of elements that take other numbers of bytes: how a type lies in a file whose representation is not
//! that of memory (MPI 5.0 section 14.5.1). What constructors count in elements grows and shrinks with these;
//! displacements in bytes mean bytes of the file as they are.

use std::sync::Arc;

use super::array::{Distribution, Order};
use super::basic::{BYTE, Basic};
use super::contents::{Combiner, Contents, Form};
use super::{Datatype, of_basic};
use crate::error::{Class, Result, fail};

impl Datatype {
    /// The type if an element of a predefined datatype, given by its position in the table, has `size` bytes.
    pub fn refitted(self: &Arc<Self>, size: &impl Fn(u8) -> u64) -> Result<Arc<Datatype>> {
        let contents = self.contents();
        if contents.types.is_empty() {
            let bytes = self.size_by(size);
            return if bytes == self.size() { Ok(self.clone()) } else { element(bytes) };
        }
        // Also where nothing lies there is an extent of elements.
        let parts = contents.types.iter().map(|part| part.refitted(size)).collect::<Result<Vec<_>>>()?;
        let is_same = parts.iter().zip(&contents.types).all(|(new, old)| Arc::ptr_eq(new, old));
        if is_same { Ok(self.clone()) } else { contents.constructed(&parts) }
    }
}

/// An element of so many bytes, aligned as machine types of that size are.
fn element(bytes: u64) -> Result<Arc<Datatype>> {
    let known = [Basic::Byte, Basic::I16, Basic::I32, Basic::I64];
    match known.into_iter().find(|basic| u64::from(basic.size()) == bytes) {
        Some(basic) => Ok(of_basic(basic).clone()),
        None => Datatype::contiguous(bytes as i64, Datatype::of(BYTE).expect("predefined"), Form::Large),
    }
}

impl Contents {
    /// What the constructor makes of these parts with the arguments it had.
    pub(super) fn constructed(&self, parts: &[Arc<Datatype>]) -> Result<Arc<Datatype>> {
        let is_large = !self.large_counts.is_empty();
        let form = if is_large { Form::Large } else { Form::Small };
        // In the order of the standard, which both bindings keep but for arrays.
        let integers: Vec<i64> = self.integers.iter().map(|n| i64::from(*n)).collect();
        let words =
            if is_large { self.large_counts.clone() } else { [&integers, &self.addresses[..]].concat() };
        // Behind a count a list of lengths and one of displacements.
        let lengths = || &words[1..][..words[0] as usize];
        let places = || &words[1..][words[0] as usize..];
        if self.combiner == Combiner::Struct {
            return Datatype::structure(lengths(), places(), parts, form);
        }
        let [old] = parts else { return fail(Class::INTERN, "this constructor takes one datatype") };
        match self.combiner {
            Combiner::Dup => Datatype::dup(old),
            Combiner::Contiguous => Datatype::contiguous(words[0], old, form),
            Combiner::Vector => Datatype::vector(words[0], words[1], words[2], old, form),
            Combiner::Hvector => Datatype::hvector(words[0], words[1], words[2], old, form),
            Combiner::Indexed => Datatype::indexed(lengths(), places(), old, form),
            Combiner::Hindexed => Datatype::hindexed(lengths(), places(), old, form),
            Combiner::IndexedBlock => Datatype::indexed_block(words[1], &words[2..], old, form),
            Combiner::HindexedBlock => Datatype::hindexed_block(words[1], &words[2..], old, form),
            Combiner::Resized => Datatype::resized(old, words[0], words[1], form),
            Combiner::Subarray => self.subarray(old, form),
            Combiner::Darray => self.darray(old, form),
            _ => fail(Class::INTERN, "a predefined datatype has no parts"),
        }
    }

    fn subarray(&self, old: &Arc<Datatype>, form: Form) -> Result<Arc<Datatype>> {
        let (integers, counts) = self.array_arguments(1, 3);
        let list = |at: usize| &counts[at * counts.len() / 3..(at + 1) * counts.len() / 3];
        Datatype::subarray(list(0), list(1), list(2), Order::from_abi(integers[1])?, old, form)
    }

    fn darray(&self, old: &Arc<Datatype>, form: Form) -> Result<Arc<Datatype>> {
        let (integers, gsizes) = self.array_arguments(3, 1);
        let [size, rank, ndims] = [0, 1, 2].map(|at| integers[at]);
        let list = |at: usize| &integers[3..][at * ndims as usize..][..ndims as usize];
        let distribs =
            list(0).iter().map(|value| Distribution::from_abi(*value)).collect::<Result<Vec<_>>>()?;
        let order = Order::from_abi(integers[3 + 3 * ndims as usize])?;
        Datatype::darray(size, rank, &gsizes, &distribs, list(1), list(2), order, old, form)
    }

    /// The integers of an array's type without those that are counts, and these: so many lists, which stand behind the first
    /// `head` integers, the last of which is their length, or among the large counts.
    fn array_arguments(&self, head: usize, lists: usize) -> (Vec<i32>, Vec<i64>) {
        if !self.large_counts.is_empty() {
            return (self.integers.clone(), self.large_counts.clone());
        }
        let (head, rest) = self.integers.split_at(head);
        let (counts, rest) = rest.split_at(lists * head[head.len() - 1] as usize);
        ([head, rest].concat(), counts.iter().map(|n| i64::from(*n)).collect())
    }
}
