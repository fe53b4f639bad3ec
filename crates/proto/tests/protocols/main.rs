//! The engine over devices that do what the test says, and what is below it. One program: the engine is compiled once for each device.

mod adapter;
mod adapters;
mod channel;
mod engine;
mod fake;
mod lost;
mod races;
mod random;
mod rules;
mod swarm;
