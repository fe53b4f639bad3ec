//! Starting a job: the embedded `mpiexec` and the PMI-1 client.
