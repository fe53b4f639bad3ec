//! How values lie in C: handles, statuses and constants, in the ABI that this build of the crate speaks.
//!
//! Everything above sees those of the standard ABI. The crate is built several times from the same table: as itself, where
//! all of this is nothing, and as `crates/mpich` and `crates/openmpi` with the feature of that name, where an entry
//! translates its arguments by what their kinds say they mean ([`crate::kind::Role`]), and memory of the application is
//! read and written by [`Slot`], [`pack`] and their kin.

#[cfg(feature = "translated")]
mod attribute;
#[cfg(feature = "translated")]
mod entry;
#[cfg(feature = "translated")]
mod former;
#[cfg(feature = "mpich")]
pub mod mpich;
#[cfg(feature = "openmpi")]
pub mod openmpi;
#[cfg(feature = "translated")]
mod predefined;
pub mod values;
/// Of an ABI that is not this build's only the values, for the Fortran bindings that speak it.
#[cfg(not(feature = "mpich"))]
pub mod mpich {
    pub mod constants;
    pub mod names;
}
/// As [`mpich`].
#[cfg(not(feature = "openmpi"))]
pub mod openmpi {
    pub mod constants;
    pub mod names;
}
#[cfg(not(feature = "translated"))]
mod standard;

use mpi::handle::Handle;

use crate::object::Object;

#[cfg(feature = "translated")]
pub use attribute::attribute;
#[cfg(feature = "translated")]
pub use entry::{Given, Passed, enter, leave, words};
#[cfg(feature = "translated")]
pub(crate) use entry::{outer, plain_outer};
#[cfg(feature = "mpich")]
pub use mpich::*;
#[cfg(feature = "openmpi")]
pub use openmpi::*;
#[cfg(not(feature = "translated"))]
pub use standard::*;

/// A handle in an array of the application.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Slot(Word);

impl Slot {
    /// The handle in it, of an object of this kind.
    #[inline(always)]
    pub fn get(self, object: Object) -> usize {
        held(object, self.0)
    }
}

impl From<Handle> for Slot {
    #[inline(always)]
    fn from(handle: Handle) -> Slot {
        Slot(word(handle))
    }
}

/// A set of constants whose values an ABI chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Set {
    /// Ranks: `MPI_ANY_SOURCE`, `MPI_PROC_NULL`, `MPI_ROOT`.
    Rank,
    /// Tags: `MPI_ANY_TAG`.
    Tag,
    /// Error classes, and codes a program has added.
    Code,
    /// Keys of attributes.
    Keyval,
    /// `MPI_IDENT` and others.
    Comparison,
    /// `MPI_THREAD_…`.
    ThreadLevel,
    /// `MPI_COMM_TYPE_…`.
    SplitType,
    /// `MPI_CART` and others.
    Topology,
    /// `MPI_COMBINER_…`.
    Combiner,
    /// `MPI_ORDER_…`.
    Order,
    /// `MPI_DISTRIBUTE_…`.
    Distribution,
    /// `MPI_DISTRIBUTE_DFLT_DARG`.
    DistributionArgument,
    /// `MPI_TYPECLASS_…`.
    TypeClass,
    /// `MPI_SEEK_…`.
    Whence,
    /// `MPI_LOCK_…`.
    LockType,
    /// `MPI_MODE_…` of files, combined by or.
    Amode,
    /// `MPI_MODE_…` of windows, combined by or.
    Assert,
    /// `MPI_DISPLACEMENT_CURRENT`.
    Displacement,
    /// `MPI_WIN_FLAVOR_…`.
    Flavor,
    /// `MPI_WIN_UNIFIED`, `MPI_WIN_SEPARATE`.
    Model,
    /// `MPI_T_VERBOSITY_…`.
    Verbosity,
    /// `MPI_T_BIND_…`.
    Bind,
    /// `MPI_T_SCOPE_…`.
    Scope,
    /// `MPI_T_PVAR_CLASS_…`.
    VariableClass,
}

impl Set {
    /// All of them.
    pub const ALL: [Set; 24] = [
        Set::Rank,
        Set::Tag,
        Set::Code,
        Set::Keyval,
        Set::Comparison,
        Set::ThreadLevel,
        Set::SplitType,
        Set::Topology,
        Set::Combiner,
        Set::Order,
        Set::Distribution,
        Set::DistributionArgument,
        Set::TypeClass,
        Set::Whence,
        Set::LockType,
        Set::Amode,
        Set::Assert,
        Set::Displacement,
        Set::Flavor,
        Set::Model,
        Set::Verbosity,
        Set::Bind,
        Set::Scope,
        Set::VariableClass,
    ];
}
