//! `MPI_T_event_*` and `MPI_T_source_*`: what tools are told of as it happens.
//!
//! The protocols keep what has happened of the types that somebody listens to (`proto::event`). It is told at the end of the
//! next call of MPI that may make progress, or before a blocking one sleeps, when no guard is alive: so a callback may do
//! all that the application may, needs no safety, and is told in order, one at a time. What happens in callbacks is told later.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mpi::error::{Result, fail};
use mpi::handle::Handle;
use mpi::info::Info;
use mpi::tools::{self, Callback, SAFETY, class};
use proto::event::{Kept, Record, types};

use super::{BIND_NO_OBJECT, USER_BASIC};
use crate::cx::Cx;
use crate::global::{self, World};
use crate::kind::array::Array;
use crate::kind::output::Out;
use crate::kind::text::Text;
use crate::kind::tool::{MaybeOut, ToolLength, ToolText, handle};
use crate::layout::Slot;

/// `MPI_T_SOURCE_ORDERED`.
const ORDERED: i32 = 1;
const TICKS_PER_SECOND: i64 = 1_000_000_000;
/// Bytes of an element.
const WORD: usize = size_of::<u64>();

/// Whether somebody listens, or did and the rank has not been told yet.
static HEARD: AtomicBool = AtomicBool::new(false);
/// The types that somebody listens to.
static WANTED: AtomicU64 = AtomicU64::new(0);
/// Whether a thread is telling: others leave it what has happened meanwhile.
static TELLING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The event that this thread's callback is told of.
    static CURRENT: Cell<*const Record> = const { Cell::new(std::ptr::null()) };
}

type Tell = extern "C" fn(usize, usize, i32, usize);
type TellDropped = extern "C" fn(i64, usize, i32, i32, usize);
type TellFreed = extern "C" fn(usize, i32, usize);

/// Whether there may be something to tell.
#[inline(always)]
pub fn are_heard() -> bool {
    HEARD.load(Ordering::Relaxed)
}

/// A rank begins its life: tools may have been first.
pub fn begin(world: &mut World) {
    if are_heard() {
        world.engine.listen(WANTED.load(Ordering::Relaxed), clock_ns);
    }
}

fn clock_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes a local variable; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * TICKS_PER_SECOND as u64 + now.tv_nsec as u64
}

/// Tells tools what has happened; no guard may be alive.
#[cold]
#[inline(never)]
pub fn deliver() {
    if !global::is_active() || TELLING.swap(true, Ordering::Acquire) {
        return;
    }
    let wanted = WANTED.load(Ordering::Relaxed);
    let kept = {
        let mut world = global::world();
        let kept = world.engine.take_kept();
        world.engine.listen(wanted, clock_ns);
        kept
    };
    if let Some(kept) = kept {
        tell(&kept);
    }
    if wanted == 0 && WANTED.load(Ordering::Relaxed) == 0 {
        HEARD.store(false, Ordering::Relaxed);
    }
    TELLING.store(false, Ordering::Release);
}

fn tell(kept: &Kept) {
    for record in &kept.records {
        // Anew for each: a callback may end another.
        let listeners = global::anytime().tools.listeners(record.kind);
        for (registration, callback) in
            listeners.iter().filter_map(|(handle, one)| Some((handle, one.callback()?)))
        {
            let before = CURRENT.replace(record);
            // SAFETY: the application has registered the address as that of a function of this type.
            let function = unsafe { std::mem::transmute::<usize, Tell>(callback.function) };
            let instance = std::ptr::from_ref(record) as usize;
            function(instance, registration.0 as usize, SAFETY[0], callback.user_data);
            CURRENT.set(before);
        }
    }
    for (kind, count) in kept.dropped.iter().enumerate().filter(|(_, count)| **count > 0) {
        let listeners = global::anytime().tools.listeners(kind);
        for (registration, one) in listeners.iter().filter(|(_, one)| one.dropped != 0) {
            // SAFETY: as above.
            let function = unsafe { std::mem::transmute::<usize, TellDropped>(one.dropped) };
            let user_data = one.callback().map_or(0, |callback| callback.user_data);
            function(*count as i64, registration.0 as usize, 0, SAFETY[0], user_data);
        }
    }
}

/// Who listens has changed: the rank is told, now if that can be.
fn heed(cx: &Cx) {
    let wanted = cx.anytime().tools.wanted();
    WANTED.store(wanted, Ordering::Relaxed);
    HEARD.store(true, Ordering::Relaxed);
    if global::is_active() {
        global::borrow(|world| world.engine.listen(wanted, clock_ns));
    }
}

/// `MPI_T_event_get_num`.
pub fn get_num(_: &Cx, num_events: Out<i32>) -> Result {
    num_events.set(types().len() as i32);
    Ok(())
}

/// `MPI_T_event_get_index`.
pub fn get_index(_: &Cx, name: Text, event_index: Out<i32>) -> Result {
    // SAFETY: not kept beyond this call.
    event_index.set(tools::event_named(unsafe { name.bytes() })?);
    Ok(())
}

/// `MPI_T_event_get_info`: the elements are numbers of 64 bits, one behind the other.
#[allow(clippy::too_many_arguments)] // as many as the operation has
pub fn get_info(
    cx: &Cx,
    event_index: i32,
    name: ToolText,
    name_len: ToolLength,
    verbosity: MaybeOut<i32>,
    array_of_datatypes: Array<Slot>,
    array_of_displacements: Array<i64>,
    num_elements: ToolLength,
    enumtype: MaybeOut<usize>,
    info: MaybeOut<Handle>,
    desc: ToolText,
    desc_len: ToolLength,
    bind: MaybeOut<i32>,
) -> Result {
    let found = tools::event_type(event_index)?;
    name.set(name_len, &found.name);
    desc.set(desc_len, found.doc);
    verbosity.set(USER_BASIC);
    let room = found.fields.len().min(num_elements.room());
    if !array_of_datatypes.is_null() {
        // SAFETY: the application says that the array has so many elements.
        unsafe { array_of_datatypes.slice_mut(room)? }.fill(Slot::from(tools::UNSIGNED_LONG_LONG));
    }
    if !array_of_displacements.is_null() {
        // SAFETY: as above.
        let places = unsafe { array_of_displacements.slice_mut(room)? };
        (0..).zip(places).for_each(|(at, place)| *place = at * WORD as i64);
    }
    num_elements.set_count(found.fields.len());
    enumtype.set(0);
    if info.is_wanted() {
        info.set(no_hints(cx)?);
    }
    bind.set(BIND_NO_OBJECT);
    Ok(())
}

fn no_hints(cx: &Cx) -> Result<Handle> {
    cx.anytime().infos.insert(Info::new())
}

/// `MPI_T_event_handle_alloc`: types are bound to no object, and there are no hints.
pub fn handle_alloc(cx: &Cx, event_index: i32, _: usize, _: Handle, event_registration: usize) -> Result {
    if event_registration == 0 {
        return fail(class::INVALID, "argument `event_registration` is NULL");
    }
    let registration = cx.anytime().tools.register(event_index)?;
    // SAFETY: not null, and the application passes the address of a variable of this type.
    unsafe { (event_registration as *mut usize).write(registration.0 as usize) };
    Ok(())
}

/// `MPI_T_event_handle_free`.
pub fn handle_free(cx: &Cx, event_registration: usize, user_data: usize, free_cb_function: usize) -> Result {
    let safety = cx.anytime().tools.unregister(handle(event_registration))?;
    heed(cx);
    if free_cb_function != 0 {
        // SAFETY: the application passes the address of a function of this type.
        let function = unsafe { std::mem::transmute::<usize, TellFreed>(free_cb_function) };
        function(event_registration, safety, user_data);
    }
    Ok(())
}

/// `MPI_T_event_handle_get_info`.
pub fn handle_get_info(cx: &Cx, event_registration: usize, info_used: Out<Handle>) -> Result {
    cx.anytime().tools.registration(handle(event_registration))?;
    info_used.set(no_hints(cx)?);
    Ok(())
}

/// `MPI_T_event_handle_set_info`: no hint is known.
pub fn handle_set_info(cx: &Cx, event_registration: usize, _: Handle) -> Result {
    cx.anytime().tools.registration(handle(event_registration)).map(drop)
}

/// `MPI_T_event_callback_get_info`.
pub fn callback_get_info(
    cx: &Cx,
    event_registration: usize,
    cb_safety: i32,
    info_used: Out<Handle>,
) -> Result {
    cx.anytime().tools.check_callback(handle(event_registration), cb_safety)?;
    info_used.set(no_hints(cx)?);
    Ok(())
}

/// `MPI_T_event_callback_set_info`: no hint is known.
pub fn callback_set_info(cx: &Cx, event_registration: usize, cb_safety: i32, _: Handle) -> Result {
    cx.anytime().tools.check_callback(handle(event_registration), cb_safety)
}

/// `MPI_T_event_register_callback`.
pub fn register_callback(
    cx: &Cx,
    event_registration: usize,
    cb_safety: i32,
    _: Handle,
    user_data: usize,
    event_cb_function: usize,
) -> Result {
    let callback = Callback { function: event_cb_function, user_data, safety: cb_safety };
    cx.anytime().tools.set_callback(handle(event_registration), callback)?;
    heed(cx);
    Ok(())
}

/// `MPI_T_event_set_dropped_handler`.
pub fn set_dropped_handler(cx: &Cx, event_registration: usize, dropped_cb_function: usize) -> Result {
    cx.anytime().tools.registration(handle(event_registration))?.dropped = dropped_cb_function;
    Ok(())
}

/// The event that a callback is told of, which asks.
fn current(event_instance: usize) -> Result<Record> {
    let current = CURRENT.get();
    if current.is_null() || current as usize != event_instance {
        return fail(
            class::INVALID_HANDLE,
            "argument `event_instance` is none that a callback of this thread is told of now",
        );
    }
    // SAFETY: set while the callback runs, by who has the record.
    Ok(unsafe { *current })
}

/// `MPI_T_event_read`.
pub fn read(_: &Cx, event_instance: usize, element_index: i32, buffer: usize) -> Result {
    let record = current(event_instance)?;
    let fields = types()[record.kind].fields;
    let Some(at) = usize::try_from(element_index).ok().filter(|at| *at < fields.len()) else {
        let text = format!("argument `element_index` is {element_index}, there are {}", fields.len());
        return fail(class::INVALID_INDEX, text);
    };
    copy_out(&record.fields[at..=at], buffer)
}

/// `MPI_T_event_copy`.
pub fn copy(_: &Cx, event_instance: usize, buffer: usize) -> Result {
    let record = current(event_instance)?;
    copy_out(&record.fields[..types()[record.kind].fields.len()], buffer)
}

fn copy_out(words: &[u64], buffer: usize) -> Result {
    if buffer == 0 {
        return fail(class::INVALID, "argument `buffer` is NULL");
    }
    // SAFETY: not null, and the application has room for the elements as it was told.
    unsafe {
        std::ptr::copy_nonoverlapping(words.as_ptr().cast::<u8>(), buffer as *mut u8, size_of_val(words))
    };
    Ok(())
}

/// `MPI_T_event_get_timestamp`.
pub fn get_timestamp(_: &Cx, event_instance: usize, event_timestamp: Out<i64>) -> Result {
    event_timestamp.set(current(event_instance)?.at_ns as i64);
    Ok(())
}

/// `MPI_T_event_get_source`.
pub fn get_source(_: &Cx, event_instance: usize, source_index: Out<i32>) -> Result {
    current(event_instance)?;
    source_index.set(0);
    Ok(())
}

/// `MPI_T_source_get_num`: the library is the only one.
pub fn source_get_num(_: &Cx, num_sources: Out<i32>) -> Result {
    num_sources.set(1);
    Ok(())
}

/// `MPI_T_source_get_info`.
#[allow(clippy::too_many_arguments)] // as many as the operation has
pub fn source_get_info(
    cx: &Cx,
    source_index: i32,
    name: ToolText,
    name_len: ToolLength,
    desc: ToolText,
    desc_len: ToolLength,
    ordering: usize,
    ticks_per_second: MaybeOut<i64>,
    max_ticks: MaybeOut<i64>,
    info: MaybeOut<Handle>,
) -> Result {
    the_source(source_index)?;
    name.set(name_len, "tern");
    desc.set(desc_len, "this process's rank; times are those of CLOCK_MONOTONIC, in ns");
    if ordering != 0 {
        // SAFETY: not null, and the application passes the address of a variable of this type.
        unsafe { (ordering as *mut i32).write(ORDERED) };
    }
    ticks_per_second.set(TICKS_PER_SECOND);
    max_ticks.set(i64::MAX);
    if info.is_wanted() {
        info.set(no_hints(cx)?);
    }
    Ok(())
}

/// `MPI_T_source_get_timestamp`.
pub fn source_get_timestamp(_: &Cx, source_index: i32, timestamp: Out<i64>) -> Result {
    the_source(source_index)?;
    timestamp.set(clock_ns() as i64);
    Ok(())
}

fn the_source(index: i32) -> Result {
    match index {
        0 => Ok(()),
        _ => fail(class::INVALID_INDEX, format!("there is no source of events {index}, only 0")),
    }
}
