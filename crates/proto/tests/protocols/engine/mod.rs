//! The engine over devices that do what the test says, and what it decides by. One program: the engine is compiled once for it.

mod ahead;
mod choices;
mod early;
mod in_step;
mod journals;
mod looks;
mod malformed;
mod offers;
mod over;
mod pipelines;
mod plans;
mod pulled;

use fabric::{Caps, Costs};
use proto::choice::facts::Facts;

/// What is known of an adapter with these costs, which keeps registrations or does not.
fn facts_of(costs: Costs, keeps: bool) -> Facts {
    let caps = Caps {
        name: "test",
        inline_bytes: 100,
        frame_bytes: 16 << 10,
        registration: true,
        ..Caps::default()
    };
    let mut facts = Facts::new([costs; 2], [&caps; 2], 1, 16 << 10);
    facts.keep(keeps);
    facts
}
