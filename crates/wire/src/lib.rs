//! Every byte that leaves a process: message headers and the start-up blob.
#![forbid(unsafe_code)]
