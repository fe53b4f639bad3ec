//! The engine over devices that do what the test says, and what it decides by. One program: the engine is compiled once for it.

mod choices;
mod early;
mod journals;
mod looks;
mod malformed;
mod offers;
mod over;
mod pipelines;
mod plans;
