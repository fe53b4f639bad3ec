//! The exported C ABI of MPI 5.0.
//!
//! [`table`] holds one row per operation, [`kind`] what each parameter means and how it is
//! checked, [`cx`] what a handler runs in. A handler is a plain Rust function of parsed
//! values; it never sees which of the names (`MPI_X`, `PMPI_X`) or widths (`X`, `X_c`) was called.
#![recursion_limit = "256"]

pub mod attr;
pub mod bsend;
pub mod codes;
pub mod coll;
pub mod comm;
pub mod connect;
pub mod copies;
pub mod cx;
pub mod datatype;
pub mod device;
mod dynamic;
pub mod engine;
pub mod env;
pub mod errhandler;
mod explain;
mod file;
mod floating;
pub mod global;
pub mod grequest;
pub mod group;
pub mod info;
pub mod inter;
pub mod kind;
pub mod language;
pub mod layout;
pub mod leaders;
pub mod letter;
mod links;
pub mod lookup;
pub mod object;
pub mod op;
pub mod p2p;
pub mod partitioned;
mod persistent;
pub mod places;
pub mod probe;
pub mod quick;
pub mod raise;
pub mod report;
pub mod request;
pub mod session;
pub mod site;
pub mod start;
pub mod status;
pub mod table;
pub mod tools;
pub mod topo;
pub mod wait;
pub mod win;
pub mod withdraw;

pub use cx::Cx;
