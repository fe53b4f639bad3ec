//! The engine and what is below it over adapters with registered memory. One program: the engine is compiled once for it.

#[path = "../adapter/mod.rs"]
mod adapter;
mod epochs;
mod exchange;
mod frequent;
mod hostile;
#[path = "../random/mod.rs"]
mod random;
mod registrations;
mod reliable;
