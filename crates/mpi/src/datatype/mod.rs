//! Datatypes (MPI 5.0 chapter 5).
pub mod basic;

pub use basic::{Basic, Predefined, basic_size, predefined};
