//! Memory that adapters know: registrations, staging memory, and which buffers come again.

pub mod bounce;
pub mod pool;
pub mod rcache;
pub mod reuse;
pub mod staging;
