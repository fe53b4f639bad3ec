//! Telling `mpiexec` what this rank waits for, and what killed it.

use std::sync::OnceLock;

use launch::control::Control;
use launch::report::{Kind, Pending};
use proto::{PendingOp, Side};

use crate::cx::Cx;
use crate::global::World;

static CONTROL: OnceLock<Control> = OnceLock::new();

/// Opens the channel to `mpiexec`, if it started this process.
pub fn connect() -> Result<(), String> {
    if let Some(control) = Control::from_env()?
        && CONTROL.set(control).is_ok()
        && let Some(control) = CONTROL.get()
    {
        control.install();
    }
    Ok(())
}

/// Hands the text of a fatal error over; false if the caller has to print it.
pub fn fatal(code: i32, text: &str) -> bool {
    CONTROL.get().is_some_and(|control| control.fatal(code, text))
}

/// Answers the question what is pending.
#[cold]
pub fn answer(cx: &Cx) {
    let Some(control) = CONTROL.get() else { return };
    let world = cx.world();
    let name = cx.name();
    let pending: Vec<Pending> = world.engine.pending().iter().map(|op| describe(&world, &name, op)).collect();
    drop(world);
    control.report(&pending);
}

fn describe(world: &World, operation: &str, op: &PendingOp) -> Pending {
    let found = world.objects.comms.by_context(op.context);
    let collective = op.context & 3 == 1;
    let group = found.map(|(_, comm)| &comm.place.group);
    let in_comm = |rank: usize| group.and_then(|group| group.rank_of(rank as u32)).map(|rank| rank as usize);
    let since_ns = match op.since_ns {
        0 => 0,
        since => fabric::Device::now_ns(world.engine.device()).saturating_sub(since),
    };
    Pending {
        rank: world.rank() as usize,
        operation: operation.to_string(),
        blocking: true,
        kind: match op.side {
            _ if collective => Kind::Collective,
            Side::Send => Kind::Send,
            Side::Receive => Kind::Recv,
        },
        peer: op.peer.and_then(in_comm),
        world_peer: op.peer,
        tag: if collective { None } else { op.tag },
        communicator: found.map_or_else(
            || "a freed communicator".to_string(),
            |(_, comm)| String::from_utf8_lossy(comm.name()).into_owned(),
        ),
        context: op.context >> 2,
        members: group.map(|group| group.iter().map(|rank| rank as usize).collect()),
        bytes: op.len as u64,
        since_ms: since_ns / 1_000_000,
        address: None,
    }
}
