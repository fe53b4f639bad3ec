//! MPI semantics over the protocols: everything the standard says that does not
//! depend on the C binding. A rank is a value; nothing here is process-global.
pub mod coll;
pub mod datatype;
pub mod error;
pub mod handle;
pub mod mem;
pub mod op;

pub use error::{Class, Error, Result};
pub use handle::{Handle, Slab};
