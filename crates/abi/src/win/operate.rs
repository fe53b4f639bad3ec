//! MPI 5.0 section 12.3: operations on memory of other ranks.
#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use std::sync::Arc;

use mpi::comm::COMM_NULL;
use mpi::datatype::{Datatype, TypeSlot};
use mpi::error::{Class, Error, Result, fail};
use mpi::group::PROC_NULL;
use mpi::handle::Handle;
use mpi::op::{Op, Predefined};
use mpi::request::{Body, Buffer};
use mpi::win::active::Ticket;
use mpi::win::operation::{Area, Operation, Verb, compares, element};
use mpi::win::sync;

use crate::cx::Cx;
use crate::global::World;
use crate::kind::handle::live;
use crate::kind::output::Out;
use crate::object::Object;

/// A buffer as it was passed: address, count, datatype, name of the argument.
type Passed = (usize, u64, Handle, &'static str);

/// Where an operation goes: window, rank, displacement, count, datatype.
#[derive(Clone, Copy)]
struct Goal {
    win: Handle,
    rank: i32,
    disp: i64,
    count: u64,
    datatype: Handle,
}

/// What an operation is made of.
#[derive(Clone, Copy)]
struct Parts {
    verb: Verb,
    goal: Goal,
    data: Option<Passed>,
    result: Option<Passed>,
    compare: usize,
}

fn area(world: &World, goal: &Goal) -> Result<Area> {
    let ty = world.objects.datatype(goal.datatype).and_then(TypeSlot::committed);
    let ty =
        ty.map_err(|error| Error::new(error.class, format!("argument `target_datatype` {}", error.text)))?;
    let area = Area { disp: goal.disp, count: goal.count, ty: ty.clone() };
    let bytes = area.ty.size().checked_mul(area.count);
    if bytes.is_none_or(|bytes| bytes > isize::MAX as u64) {
        let Goal { rank, disp, count, .. } = goal;
        let text = format!(
            "{count} elements of {} bytes at displacement {disp} of target {rank} do not fit the address space",
            area.ty.size()
        );
        return fail(Class::COUNT, text);
    }
    Ok(area)
}

fn buffer(world: &World, passed: Option<Passed>, area: &Area) -> Result<Option<Buffer>> {
    let Some((addr, count, datatype, arg)) = passed else { return Ok(None) };
    let buffer = world.buffer(addr, count, datatype, arg)?;
    let bytes = buffer.ty.size() * buffer.count;
    if bytes != area.len() {
        let text = format!("`{arg}` has {bytes} bytes, but {} bytes are named at the target", area.len());
        return fail(Class::TYPE, text);
    }
    Ok(Some(buffer))
}

/// Checks everything the origin can and begins the operation.
fn begin(cx: &Cx, parts: Parts, asks: bool) -> Result<Option<Arc<Ticket>>> {
    let Parts { verb, goal, data, result, compare } = parts;
    let mut world = cx.world();
    let ranks = world.window(goal.win)?.members.len();
    if goal.rank != PROC_NULL && goal.rank as usize >= ranks {
        let text =
            format!("argument `target_rank` is {}, window {:#x} has {ranks} ranks", goal.rank, goal.win.0);
        return fail(Class::RANK, text);
    }
    let area = area(&world, &goal)?;
    let data = if verb.carries() { buffer(&world, data, &area)? } else { None };
    let result = buffer(&world, result, &area)?;
    if let Verb::Accumulate(op) | Verb::Fetch(op) = verb
        && !area.is_empty()
    {
        element(op, &area, data.as_ref().map(|data| &*data.ty))?;
    }
    if goal.rank == PROC_NULL {
        return Ok(None);
    }
    let nothing = || Buffer {
        addr: 0,
        count: 0,
        ty: Datatype::of(mpi::datatype::basic::BYTE).expect("predefined").clone(),
    };
    let data = data.unwrap_or_else(nothing);
    let operation = Operation { verb, target: goal.rank as u32, area, data, result, compare };
    drop(world);
    sync::begin(cx, goal.win, &operation, asks)
}

fn run(cx: &Cx, parts: Parts) -> Result {
    begin(cx, parts, false).map(drop)
}

/// As [`run`] with a request.
fn run_asking(cx: &Cx, parts: Parts, request: Out<Handle>) -> Result {
    cx.world().objects.requests.room()?;
    let begun = begin(cx, parts, true)?;
    let mut world = cx.world();
    let requests = &mut world.objects.requests;
    request.set(match begun {
        Some(ticket) => requests.add(COMM_NULL, Body::OneSided(ticket))?,
        None => requests.sent()?,
    });
    Ok(())
}

/// The predefined operation behind a handle: no other accumulates (MPI 5.0 section 12.3.4).
fn predefined(cx: &Cx, op: Handle) -> Result<Predefined> {
    match cx.objects().ops.get(op)? {
        Op::Predefined(op) => Ok(op),
        Op::User(_) => {
            fail(Class::OP, "argument `op` was made by the program; only predefined ones accumulate")
        }
    }
}

fn put_parts(data: Passed, goal: Goal) -> Parts {
    Parts { verb: Verb::Put, goal, data: Some(data), result: None, compare: 0 }
}

fn get_parts(result: Passed, goal: Goal) -> Parts {
    Parts { verb: Verb::Get, goal, data: None, result: Some(result), compare: 0 }
}

fn accumulate_parts(cx: &Cx, data: Passed, goal: Goal, op: Handle) -> Result<Parts> {
    let op = predefined(cx, op)?;
    if op == Predefined::NoOp {
        return fail(Class::OP, "argument `op` is MPI_NO_OP, which is for operations that fetch");
    }
    Ok(Parts { verb: Verb::Accumulate(op), goal, data: Some(data), result: None, compare: 0 })
}

/// Of `MPI_NO_OP` nothing of the origin is looked at (MPI 5.0 section 12.3.4).
fn fetch_parts(
    cx: &Cx,
    (addr, count, datatype): (usize, u64, usize),
    (result_addr, result_count, result_ty): (usize, u64, Handle),
    goal: Goal,
    op: Handle,
) -> Result<Parts> {
    let op = predefined(cx, op)?;
    let data = match op {
        Predefined::NoOp => None,
        _ => Some((addr, count, live(Object::Datatype, datatype, "origin_datatype", cx)?, "origin_addr")),
    };
    let result = Some((result_addr, result_count, result_ty, "result_addr"));
    Ok(Parts { verb: Verb::Fetch(op), goal, data, result, compare: 0 })
}

/// `MPI_Put`.
pub fn put(
    cx: &Cx,
    addr: usize,
    count: u64,
    ty: Handle,
    rank: i32,
    disp: i64,
    target_count: u64,
    target_ty: Handle,
    win: Handle,
) -> Result {
    let goal = Goal { win, rank, disp, count: target_count, datatype: target_ty };
    run(cx, put_parts((addr, count, ty, "origin_addr"), goal))
}

/// `MPI_Rput`.
pub fn rput(
    cx: &Cx,
    addr: usize,
    count: u64,
    ty: Handle,
    rank: i32,
    disp: i64,
    target_count: u64,
    target_ty: Handle,
    win: Handle,
    request: Out<Handle>,
) -> Result {
    let goal = Goal { win, rank, disp, count: target_count, datatype: target_ty };
    run_asking(cx, put_parts((addr, count, ty, "origin_addr"), goal), request)
}

/// `MPI_Get`.
pub fn get(
    cx: &Cx,
    addr: usize,
    count: u64,
    ty: Handle,
    rank: i32,
    disp: i64,
    target_count: u64,
    target_ty: Handle,
    win: Handle,
) -> Result {
    let goal = Goal { win, rank, disp, count: target_count, datatype: target_ty };
    run(cx, get_parts((addr, count, ty, "origin_addr"), goal))
}

/// `MPI_Rget`.
pub fn rget(
    cx: &Cx,
    addr: usize,
    count: u64,
    ty: Handle,
    rank: i32,
    disp: i64,
    target_count: u64,
    target_ty: Handle,
    win: Handle,
    request: Out<Handle>,
) -> Result {
    let goal = Goal { win, rank, disp, count: target_count, datatype: target_ty };
    run_asking(cx, get_parts((addr, count, ty, "origin_addr"), goal), request)
}

/// `MPI_Accumulate`.
pub fn accumulate(
    cx: &Cx,
    addr: usize,
    count: u64,
    ty: Handle,
    rank: i32,
    disp: i64,
    target_count: u64,
    target_ty: Handle,
    op: Handle,
    win: Handle,
) -> Result {
    let goal = Goal { win, rank, disp, count: target_count, datatype: target_ty };
    run(cx, accumulate_parts(cx, (addr, count, ty, "origin_addr"), goal, op)?)
}

/// `MPI_Raccumulate`.
pub fn raccumulate(
    cx: &Cx,
    addr: usize,
    count: u64,
    ty: Handle,
    rank: i32,
    disp: i64,
    target_count: u64,
    target_ty: Handle,
    op: Handle,
    win: Handle,
    request: Out<Handle>,
) -> Result {
    let goal = Goal { win, rank, disp, count: target_count, datatype: target_ty };
    run_asking(cx, accumulate_parts(cx, (addr, count, ty, "origin_addr"), goal, op)?, request)
}

/// `MPI_Get_accumulate`.
pub fn get_accumulate(
    cx: &Cx,
    addr: usize,
    count: u64,
    ty: usize,
    result_addr: usize,
    result_count: u64,
    result_ty: Handle,
    rank: i32,
    disp: i64,
    target_count: u64,
    target_ty: Handle,
    op: Handle,
    win: Handle,
) -> Result {
    let goal = Goal { win, rank, disp, count: target_count, datatype: target_ty };
    run(cx, fetch_parts(cx, (addr, count, ty), (result_addr, result_count, result_ty), goal, op)?)
}

/// `MPI_Rget_accumulate`.
pub fn rget_accumulate(
    cx: &Cx,
    addr: usize,
    count: u64,
    ty: usize,
    result_addr: usize,
    result_count: u64,
    result_ty: Handle,
    rank: i32,
    disp: i64,
    target_count: u64,
    target_ty: Handle,
    op: Handle,
    win: Handle,
    request: Out<Handle>,
) -> Result {
    let goal = Goal { win, rank, disp, count: target_count, datatype: target_ty };
    let parts = fetch_parts(cx, (addr, count, ty), (result_addr, result_count, result_ty), goal, op)?;
    run_asking(cx, parts, request)
}

/// Refuses what is no predefined datatype.
fn check_element(datatype: Handle) -> Result<&'static Arc<Datatype>> {
    match Datatype::of(datatype) {
        Some(ty) => Ok(ty),
        None => fail(Class::TYPE, "argument `datatype` is derived, must be a predefined datatype"),
    }
}

/// `MPI_Fetch_and_op`.
pub fn fetch_and_op(
    cx: &Cx,
    addr: usize,
    result: usize,
    datatype: Handle,
    rank: i32,
    disp: i64,
    op: Handle,
    win: Handle,
) -> Result {
    check_element(datatype)?;
    let goal = Goal { win, rank, disp, count: 1, datatype };
    run(cx, fetch_parts(cx, (addr, 1, datatype.0 as usize), (result, 1, datatype), goal, op)?)
}

/// `MPI_Compare_and_swap`.
pub fn compare_and_swap(
    cx: &Cx,
    addr: usize,
    compare: usize,
    result: usize,
    datatype: Handle,
    rank: i32,
    disp: i64,
    win: Handle,
) -> Result {
    let ty = check_element(datatype)?;
    if !ty.basic().is_some_and(compares) {
        let text =
            "argument `datatype` is neither integer, logical nor byte, which MPI_Compare_and_swap compares";
        return fail(Class::TYPE, text);
    }
    if compare == 0 {
        return fail(Class::BUFFER, "argument `compare_addr` is NULL");
    }
    let goal = Goal { win, rank, disp, count: 1, datatype };
    let (data, result) = ((addr, 1, datatype, "origin_addr"), (result, 1, datatype, "result_addr"));
    run(cx, Parts { verb: Verb::Swap, goal, data: Some(data), result: Some(result), compare })
}
