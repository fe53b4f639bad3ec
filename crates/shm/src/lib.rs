//! Device between ranks of one host: rings in shared memory, single copy by the kernel.
