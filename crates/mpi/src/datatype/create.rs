//! The constructors of MPI 5.0 section 5.1.2 to 5.1.7 except those for arrays.
//!
//! Each checks its arguments, builds the typemap and records the arguments. `form` tells through
//! which binding the call came.

use std::sync::Arc;

use super::Datatype;
use super::body::{Body, Joiner, Span, fit};
use super::contents::{Combiner, Form, Record};
use crate::error::{Class, Result, fail};

type Shared = Arc<Datatype>;

/// `value` as a length, unless it is negative.
pub(super) fn length(value: i64, name: &str, class: Class) -> Result<u64> {
    match u64::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) => fail(class, format!("argument `{name}` is {value}, must not be negative")),
    }
}

/// `n` times the extent of `old`, in bytes.
fn extents(n: i64, old: &Datatype) -> Result<i64> {
    fit(i128::from(n) * i128::from(old.extent()), "displacement in bytes")
}

fn same_length(left: usize, right: usize, name: &str) -> Result {
    if left == right {
        return Ok(());
    }
    fail(Class::ARG, format!("argument `{name}` has {right} entries where `count` asks for {left}"))
}

impl Datatype {
    /// `MPI_Type_dup`.
    pub fn dup(old: &Shared) -> Result<Shared> {
        let record = Record::new(Combiner::Dup, Form::Small).types(std::slice::from_ref(old));
        Datatype::new(old.body.clone(), record)
    }

    /// `MPI_Type_contiguous`.
    pub fn contiguous(count: i64, old: &Shared, form: Form) -> Result<Shared> {
        let n = length(count, "count", Class::COUNT)?;
        let body = old.body.repeat(n, old.extent())?;
        let record = Record::new(Combiner::Contiguous, form).counts(&[count])?;
        Datatype::new(body, record.types(std::slice::from_ref(old)))
    }

    /// `MPI_Type_vector`: the stride is in extents of `old`.
    pub fn vector(count: i64, blocklength: i64, stride: i64, old: &Shared, form: Form) -> Result<Shared> {
        let body = blocks(count, blocklength, extents(stride, old)?, old)?;
        let record = Record::new(Combiner::Vector, form).counts(&[count, blocklength, stride])?;
        Datatype::new(body, record.types(std::slice::from_ref(old)))
    }

    /// `MPI_Type_create_hvector`: the stride is in bytes.
    pub fn hvector(count: i64, blocklength: i64, stride: i64, old: &Shared, form: Form) -> Result<Shared> {
        let body = blocks(count, blocklength, stride, old)?;
        let record = Record::new(Combiner::Hvector, form).counts(&[count, blocklength])?;
        Datatype::new(body, record.addresses(&[stride]).types(std::slice::from_ref(old)))
    }

    /// `MPI_Type_indexed`: displacements are in extents of `old`.
    pub fn indexed(blocklengths: &[i64], displacements: &[i64], old: &Shared, form: Form) -> Result<Shared> {
        same_length(blocklengths.len(), displacements.len(), "array_of_displacements")?;
        let mut joiner = Joiner::default();
        for (&blocklength, &at) in blocklengths.iter().zip(displacements) {
            let n = length(blocklength, "array_of_blocklengths", Class::ARG)?;
            joiner.add(extents(at, old)?, &old.body, n, old.extent())?;
        }
        let record = Record::new(Combiner::Indexed, form)
            .counts(&[blocklengths.len() as i64])?
            .counts(blocklengths)?
            .counts(displacements)?;
        Datatype::new(joiner.finish()?, record.types(std::slice::from_ref(old)))
    }

    /// `MPI_Type_create_hindexed`: displacements are in bytes.
    pub fn hindexed(blocklengths: &[i64], displacements: &[i64], old: &Shared, form: Form) -> Result<Shared> {
        same_length(blocklengths.len(), displacements.len(), "array_of_displacements")?;
        let mut joiner = Joiner::default();
        for (&blocklength, &at) in blocklengths.iter().zip(displacements) {
            let n = length(blocklength, "array_of_blocklengths", Class::ARG)?;
            joiner.add(at, &old.body, n, old.extent())?;
        }
        let record = Record::new(Combiner::Hindexed, form)
            .counts(&[blocklengths.len() as i64])?
            .counts(blocklengths)?
            .addresses(displacements);
        Datatype::new(joiner.finish()?, record.types(std::slice::from_ref(old)))
    }

    /// `MPI_Type_create_indexed_block`: displacements are in extents of `old`.
    pub fn indexed_block(
        blocklength: i64,
        displacements: &[i64],
        old: &Shared,
        form: Form,
    ) -> Result<Shared> {
        let n = length(blocklength, "blocklength", Class::ARG)?;
        let mut joiner = Joiner::default();
        for &at in displacements {
            joiner.add(extents(at, old)?, &old.body, n, old.extent())?;
        }
        let record = Record::new(Combiner::IndexedBlock, form)
            .counts(&[displacements.len() as i64, blocklength])?
            .counts(displacements)?;
        Datatype::new(joiner.finish()?, record.types(std::slice::from_ref(old)))
    }

    /// `MPI_Type_create_hindexed_block`: displacements are in bytes.
    pub fn hindexed_block(
        blocklength: i64,
        displacements: &[i64],
        old: &Shared,
        form: Form,
    ) -> Result<Shared> {
        let n = length(blocklength, "blocklength", Class::ARG)?;
        let mut joiner = Joiner::default();
        for &at in displacements {
            joiner.add(at, &old.body, n, old.extent())?;
        }
        let record = Record::new(Combiner::HindexedBlock, form)
            .counts(&[displacements.len() as i64, blocklength])?
            .addresses(displacements);
        Datatype::new(joiner.finish()?, record.types(std::slice::from_ref(old)))
    }

    /// `MPI_Type_create_struct`: displacements are in bytes.
    pub fn structure(
        blocklengths: &[i64],
        displacements: &[i64],
        types: &[Shared],
        form: Form,
    ) -> Result<Shared> {
        same_length(blocklengths.len(), displacements.len(), "array_of_displacements")?;
        same_length(blocklengths.len(), types.len(), "array_of_types")?;
        let mut joiner = Joiner::default();
        for ((&blocklength, &at), old) in blocklengths.iter().zip(displacements).zip(types) {
            let n = length(blocklength, "array_of_blocklengths", Class::ARG)?;
            joiner.add(at, &old.body, n, old.extent())?;
        }
        let record = Record::new(Combiner::Struct, form)
            .counts(&[blocklengths.len() as i64])?
            .counts(blocklengths)?
            .addresses(displacements);
        Datatype::new(joiner.finish()?, record.types(types))
    }

    /// `MPI_Type_create_resized`.
    pub fn resized(old: &Shared, lb: i64, extent: i64, form: Form) -> Result<Shared> {
        let hi = fit(i128::from(lb) + i128::from(extent), "upper bound of the datatype")?;
        let body = Body { mark: Some(Span { lo: lb, hi }), ..old.body.clone() };
        let record = Record::new(Combiner::Resized, form).addresses(&[lb, extent]);
        Datatype::new(body, record.types(std::slice::from_ref(old)))
    }
}

/// `count` blocks of `blocklength` items, `stride` bytes apart.
fn blocks(count: i64, blocklength: i64, stride: i64, old: &Shared) -> Result<Body> {
    let n = length(count, "count", Class::COUNT)?;
    let per_block = length(blocklength, "blocklength", Class::ARG)?;
    old.body.repeat(per_block, old.extent())?.repeat(n, stride)
}
