//! MPI semantics over the protocols: everything the standard says that does not
//! depend on the C binding. A rank is a value; nothing here is process-global.
pub mod anytime;
pub mod attr;
pub mod bsend;
pub mod codes;
pub mod coll;
pub mod collio;
pub mod comm;
pub mod datatype;
pub mod errhandler;
pub mod error;
pub mod file;
pub mod grequest;
pub mod group;
pub mod handle;
pub mod info;
pub mod kinds;
mod lost;
pub mod mem;
pub mod objects;
pub mod op;
mod others;
pub mod p2p;
pub mod partitioned;
mod persistent;
pub mod ports;
pub mod request;
mod running;
pub mod session;
pub mod status;
pub mod tools;
pub mod topo;
pub mod win;

pub mod world;

pub use error::{Class, Error, Result};
pub use handle::{Handle, Slab};
pub use objects::Objects;
pub use world::World;
