//! How a datatype was constructed: envelope and contents (MPI 5.0 section 5.1.13).

use std::sync::Arc;

use super::Datatype;
use crate::error::{Class, Result, fail};

/// Which constructor made a datatype; the numbers are those of the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
#[allow(missing_docs, reason = "each is the constructor of the same name")]
pub enum Combiner {
    Named = 101,
    Dup = 102,
    Contiguous = 103,
    Vector = 104,
    Hvector = 105,
    Indexed = 106,
    Hindexed = 107,
    IndexedBlock = 108,
    HindexedBlock = 109,
    Struct = 110,
    Subarray = 111,
    Darray = 112,
    F90Real = 113,
    F90Complex = 114,
    F90Integer = 115,
    Resized = 116,
    ValueIndex = 117,
}

/// Which of its two C bindings a constructor was called through: it decides whether counts and
/// displacements are reported as integers and addresses or as large counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// `int` counts, `MPI_Aint` displacements.
    Small,
    /// The `_c` binding: `MPI_Count` throughout.
    Large,
}

/// The arguments of the constructor as `MPI_Type_get_contents` returns them.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The constructor.
    pub combiner: Combiner,
    /// `array_of_integers`.
    pub integers: Vec<i32>,
    /// `array_of_addresses`.
    pub addresses: Vec<i64>,
    /// `array_of_large_counts`.
    pub large_counts: Vec<i64>,
    /// `array_of_datatypes`.
    pub types: Vec<Arc<Datatype>>,
}

/// The lengths of the four arrays and the combiner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Length of `array_of_integers`.
    pub integers: usize,
    /// Length of `array_of_addresses`.
    pub addresses: usize,
    /// Length of `array_of_large_counts`.
    pub large_counts: usize,
    /// Length of `array_of_datatypes`.
    pub types: usize,
    /// The constructor.
    pub combiner: Combiner,
}

impl Contents {
    /// The lengths of the arrays.
    pub fn envelope(&self) -> Envelope {
        Envelope {
            integers: self.integers.len(),
            addresses: self.addresses.len(),
            large_counts: self.large_counts.len(),
            types: self.types.len(),
            combiner: self.combiner,
        }
    }
}

/// Collects arguments in the order the standard lists them.
pub(super) struct Record {
    form: Form,
    contents: Contents,
}

impl Record {
    pub fn new(combiner: Combiner, form: Form) -> Record {
        let contents = Contents {
            combiner,
            integers: Vec::new(),
            addresses: Vec::new(),
            large_counts: Vec::new(),
            types: Vec::new(),
        };
        Record { form, contents }
    }

    /// Arguments that are `int` in both bindings.
    pub fn integers(mut self, values: &[i32]) -> Self {
        self.contents.integers.extend(values);
        self
    }

    /// Arguments that are `int` in one binding and `MPI_Count` in the other.
    pub fn counts(mut self, values: &[i64]) -> Result<Self> {
        if self.form == Form::Large {
            self.contents.large_counts.extend(values);
            return Ok(self);
        }
        for &value in values {
            match i32::try_from(value) {
                Ok(value) => self.contents.integers.push(value),
                Err(_) => {
                    return fail(
                        Class::COUNT,
                        format!("{value} exceeds an int, use the large count binding"),
                    );
                }
            }
        }
        Ok(self)
    }

    /// Arguments that are `MPI_Aint` in one binding and `MPI_Count` in the other.
    pub fn addresses(mut self, values: &[i64]) -> Self {
        match self.form {
            Form::Large => self.contents.large_counts.extend(values),
            Form::Small => self.contents.addresses.extend(values),
        }
        self
    }

    pub fn types(mut self, types: &[Arc<Datatype>]) -> Contents {
        self.contents.types.extend_from_slice(types);
        self.contents
    }
}
