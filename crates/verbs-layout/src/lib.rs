//! The C structures and values of rdma-core's `infiniband/verbs.h` and `rdma/rdma_cma.h`, once for the library that offers them to programs
//! (`verbs-abi`) and for the device that uses the system's (`ibv`). Nothing here does anything but
//! lay addresses out.

pub mod address;
pub mod cm;
pub mod constants;
pub mod layout;
