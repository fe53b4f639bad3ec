//! Datatypes found by what a program asks of them: Fortran's parametrised kinds and
//! `MPI_Type_match_size` (MPI 5.0 section 19.1.9), and pairs (section 6.9.4).
//!
//! The kinds are those of gfortran, whose `real(10)` is the `long double` of x86-64.

use std::sync::Arc;

use super::Datatype;
use super::contents::{Combiner, Form, Record};
use crate::error::{Class, Result, fail};
use crate::handle::Handle;

/// `MPI_UNDEFINED`.
const UNDEFINED: i32 = -32766;

/// `MPI_TYPECLASS_*`; the numbers are those of the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum TypeClass {
    /// `MPI_TYPECLASS_LOGICAL`, an extension some programs use.
    Logical = 191,
    /// `MPI_TYPECLASS_INTEGER`.
    Integer = 192,
    /// `MPI_TYPECLASS_REAL`.
    Real = 193,
    /// `MPI_TYPECLASS_COMPLEX`.
    Complex = 194,
}

impl TypeClass {
    /// The class of an ABI constant.
    pub fn from_abi(value: i32) -> Result<TypeClass> {
        match value {
            191 => Ok(TypeClass::Logical),
            192 => Ok(TypeClass::Integer),
            193 => Ok(TypeClass::Real),
            194 => Ok(TypeClass::Complex),
            _ => fail(Class::ARG, format!("argument `typeclass` is {value}, not one of MPI_TYPECLASS_*")),
        }
    }
}

/// `MPI_Type_match_size`: the predefined datatype of a Fortran variable of this class and size.
pub fn match_size(class: TypeClass, size_bytes: i32) -> Result<Handle> {
    let handle = match (class, size_bytes) {
        (TypeClass::Logical, 1) => 0x2c0,
        (TypeClass::Logical, 2) => 0x2c8,
        (TypeClass::Logical, 4) => 0x2d0,
        (TypeClass::Logical, 8) => 0x2d8,
        (TypeClass::Logical, 16) => 0x2e0,
        (TypeClass::Integer, 1) => 0x2c1,
        (TypeClass::Integer, 2) => 0x2c9,
        (TypeClass::Integer, 4) => 0x2d1,
        (TypeClass::Integer, 8) => 0x2d9,
        (TypeClass::Integer, 16) => 0x2e1,
        (TypeClass::Real, 2) => 0x2ca,
        (TypeClass::Real, 4) => 0x2d2,
        (TypeClass::Real, 8) => 0x2da,
        (TypeClass::Real, 16) => 0x2e2,
        (TypeClass::Complex, 4) => 0x2d3,
        (TypeClass::Complex, 8) => 0x2db,
        (TypeClass::Complex, 16) => 0x2e3,
        (TypeClass::Complex, 32) => 0x2eb,
        _ => {
            return fail(
                Class::ARG,
                format!("argument `size` is {size_bytes}: there is no {class:?} type of that size"),
            );
        }
    };
    Ok(Handle(handle))
}

/// Which of the four real kinds has at least precision `p` and range `r`.
fn real_kind(p: i32, r: i32) -> Result<usize> {
    const KINDS: [(i32, i32); 4] = [(6, 37), (15, 307), (18, 4931), (33, 4931)];
    if p == UNDEFINED && r == UNDEFINED {
        return fail(Class::ARG, "arguments `p` and `r` are both MPI_UNDEFINED");
    }
    for (name, value) in [("p", p), ("r", r)] {
        if value < 0 && value != UNDEFINED {
            return fail(Class::ARG, format!("argument `{name}` is {value}, must not be negative"));
        }
    }
    // MPI_UNDEFINED is negative, so it asks for nothing.
    let enough = |&(precision, range): &(i32, i32)| p <= precision && r <= range;
    match KINDS.iter().position(enough) {
        Some(2) if !cfg!(target_arch = "x86_64") => Ok(3),
        Some(kind) => Ok(kind),
        None => fail(
            Class::ARG,
            format!("no real kind has {p} digits and exponents up to {r} (`p` at most 33, `r` at most 4931)"),
        ),
    }
}

impl Datatype {
    /// `MPI_Type_create_f90_real`. Equal arguments must give the same handle, which the caller
    /// sees to.
    pub fn f90_real(p: i32, r: i32) -> Result<Arc<Datatype>> {
        let handle = [0x2d2, 0x2da, 0x220, 0x2e2][real_kind(p, r)?];
        parametrised(handle, Combiner::F90Real, &[p, r])
    }

    /// `MPI_Type_create_f90_complex`.
    pub fn f90_complex(p: i32, r: i32) -> Result<Arc<Datatype>> {
        let handle = [0x2db, 0x2e3, 0x224, 0x2eb][real_kind(p, r)?];
        parametrised(handle, Combiner::F90Complex, &[p, r])
    }

    /// `MPI_Type_create_f90_integer`.
    pub fn f90_integer(r: i32) -> Result<Arc<Datatype>> {
        let handle = match r {
            ..0 => return fail(Class::ARG, format!("argument `r` is {r}, must not be negative")),
            0..=2 => 0x2c1,
            3..=4 => 0x2c9,
            5..=9 => 0x2d1,
            10..=18 => 0x2d9,
            19..=38 => 0x2e1,
            _ => return fail(Class::ARG, format!("no integer kind has {r} decimal digits (at most 38)")),
        };
        parametrised(handle, Combiner::F90Integer, &[r])
    }

    /// Whether the type is predefined without a name: made by a query that returns the same
    /// handle for equal arguments, committed, never freed.
    pub fn is_unnamed_predefined(&self) -> bool {
        matches!(
            self.contents().combiner,
            Combiner::F90Real | Combiner::F90Complex | Combiner::F90Integer | Combiner::ValueIndex
        )
    }

    /// `MPI_Type_get_value_index`: the pair of a value and an index type for MINLOC and MAXLOC,
    /// `None` (`MPI_DATATYPE_NULL`) where there is none.
    pub fn value_index(value: Handle, index: Handle) -> Option<Handle> {
        let handle = match (value.0, index.0) {
            (0x210, 0x209) => 0x228,
            (0x214, 0x209) => 0x229,
            (0x20a, 0x209) => 0x22a,
            (0x209, 0x209) => 0x22b,
            (0x208, 0x209) => 0x22c,
            (0x220, 0x209) => 0x22d,
            (0x21a, 0x21a) => 0x230,
            (0x21c, 0x21c) => 0x231,
            (0x219, 0x219) => 0x232,
            _ => return None,
        };
        Some(Handle(handle))
    }
}

fn parametrised(handle: u32, combiner: Combiner, arguments: &[i32]) -> Result<Arc<Datatype>> {
    let like = Datatype::of(Handle(handle)).expect("a predefined handle");
    Datatype::new(like.body.clone(), Record::new(combiner, Form::Small).integers(arguments).types(&[]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Basic;

    #[test]
    fn kinds_are_the_smallest_that_suffice() {
        let basic = |ty: Result<Arc<Datatype>>| ty.unwrap().basic().unwrap();
        assert_eq!(basic(Datatype::f90_real(6, UNDEFINED)), Basic::F32);
        assert_eq!(basic(Datatype::f90_real(6, 38)), Basic::F64);
        assert_eq!(basic(Datatype::f90_real(UNDEFINED, 307)), Basic::F64);
        assert_eq!(basic(Datatype::f90_complex(15, 307)), Basic::ComplexF64);
        assert_eq!(basic(Datatype::f90_real(33, 4931)), Basic::F128);
        assert_eq!(basic(Datatype::f90_integer(9)), Basic::I32);
        assert_eq!(basic(Datatype::f90_integer(10)), Basic::I64);
        let refused = [
            Datatype::f90_real(34, 1),
            Datatype::f90_real(UNDEFINED, UNDEFINED),
            Datatype::f90_real(-1, 3),
            Datatype::f90_integer(39),
            Datatype::f90_integer(UNDEFINED),
        ];
        for result in refused {
            assert_eq!(result.unwrap_err().class, Class::ARG);
        }
    }

    #[test]
    fn matched_sizes_are_sizes_of_the_class() {
        use crate::datatype::{Group, predefined};
        for (class, group) in [
            (TypeClass::Integer, Group::Integer),
            (TypeClass::Real, Group::Float),
            (TypeClass::Complex, Group::Complex),
            (TypeClass::Logical, Group::Logical),
        ] {
            for size in 1..=32 {
                if let Ok(handle) = match_size(class, size) {
                    let row = predefined(handle).unwrap();
                    assert_eq!((row.basic.size(), row.basic.group()), (size as u32, group));
                }
            }
            assert!(match_size(class, 8).is_ok());
            assert_eq!(match_size(class, 3).unwrap_err().class, Class::ARG);
        }
    }

    #[test]
    fn pairs_are_found_by_their_parts() {
        for handle in [0x228, 0x229, 0x22a, 0x22b, 0x22c, 0x22d] {
            let pair = Datatype::of(Handle(handle)).unwrap();
            let (value, _) = pair.basic().unwrap().pair().unwrap();
            let of_value = [0x210, 0x214, 0x20a, 0x209, 0x208, 0x220]
                .into_iter()
                .find(|&v| Datatype::of(Handle(v)).unwrap().basic() == Some(value))
                .unwrap();
            assert_eq!(Datatype::value_index(Handle(of_value), Handle(0x209)), Some(Handle(handle)));
        }
        assert_eq!(Datatype::value_index(Handle(0x243), Handle(0x209)), None);
    }
}
