//! The exported C ABI of MPI 5.0.
