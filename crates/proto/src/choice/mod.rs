//! The choice: what is known, what each way would cost, which one is taken and why.
//!
//! Pure: facts and a message go in, a way and its reason come out. Whoever asks says what became of it.

pub mod choose;
pub(crate) mod comparison;
pub mod eager_limit;
pub mod edge;
pub mod explain;
pub mod facts;
pub(crate) mod habits;
pub mod journal;
pub mod partitions;
pub mod terms;
pub mod tuning;
pub mod way;
