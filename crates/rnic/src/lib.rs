//! The software RDMA adapter for plain Ethernet: iWARP over TCP.
#![forbid(unsafe_code)]
