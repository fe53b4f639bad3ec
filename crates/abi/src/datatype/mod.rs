//! MPI 5.0 chapter 5: datatypes, and the questions about a status that need one.

pub mod create;
pub mod pack;

use std::sync::Arc;

use mpi::attr::Holder;
use mpi::datatype::{Combiner, Datatype, TypeClass, basic_size, match_size, small_form_only};
use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;
use mpi::status::Status;

use crate::attr;
use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::handle::HandleRef;
use crate::kind::output::{CountVar, Out};
use crate::kind::text::{StatusVar, Text, TextOut};
use crate::layout::{self, MAX_OBJECT_NAME, Set, Slot};
use crate::object::Object;

/// The datatype of a handle that was found alive when the arguments were parsed.
pub fn shared(cx: &Cx, handle: Handle) -> Result<Arc<Datatype>> {
    match Datatype::of(handle) {
        Some(ty) => Ok(ty.clone()),
        None => Ok(cx.objects().datatype(handle)?.ty.clone()),
    }
}

/// Runs `ask` on the datatype of a handle.
#[inline]
fn with<R>(cx: &Cx, handle: Handle, ask: impl FnOnce(&Datatype) -> R) -> Result<R> {
    match Datatype::of(handle) {
        Some(ty) => Ok(ask(ty)),
        None => Ok(ask(&cx.objects().datatype(handle)?.ty)),
    }
}

/// `MPI_Type_commit`.
pub fn commit(cx: &Cx, datatype: HandleRef) -> Result {
    cx.objects().types.commit(datatype.handle)
}

/// `MPI_Type_free`: if a delete function of an attribute fails, the type stays.
pub fn free(cx: &Cx, datatype: HandleRef) -> Result {
    let handle = datatype.handle;
    if let Err(error) = cx.objects().types.check_free(handle) {
        return fail(error.class, format!("argument `datatype` {}", error.text));
    }
    attr::delete_all(cx, Holder::Type, handle)?;
    cx.objects().types.free(handle)?;
    datatype.set(Object::Datatype.null().0);
    Ok(())
}

/// `MPI_Type_dup`.
pub fn dup(cx: &Cx, oldtype: Handle, newtype: Out<Handle>) -> Result {
    let attrs = attr::copy_all(cx, Holder::Type, oldtype)?;
    let mut objects = cx.objects();
    let copy = objects.types.dup(oldtype)?;
    objects.datatype_mut(copy)?.attrs = attrs;
    newtype.set(copy);
    Ok(())
}

/// `MPI_Type_size`.
pub fn size(cx: &Cx, datatype: Handle, size: CountVar) -> Result {
    size.set_or_undefined(Some(with(cx, datatype, Datatype::size)? as i64));
    Ok(())
}

/// `MPI_Type_size_x`.
pub fn size_x(cx: &Cx, datatype: Handle, size: Out<i64>) -> Result {
    size.set(with(cx, datatype, Datatype::size)? as i64);
    Ok(())
}

/// `MPI_Type_get_extent` and `MPI_Type_get_extent_x`.
pub fn get_extent(cx: &Cx, datatype: Handle, lb: Out<i64>, extent: Out<i64>) -> Result {
    let bounds = with(cx, datatype, |ty| (ty.lb(), ty.extent()))?;
    lb.set(bounds.0);
    extent.set(bounds.1);
    Ok(())
}

/// `MPI_Type_get_true_extent` and `MPI_Type_get_true_extent_x`.
pub fn get_true_extent(cx: &Cx, datatype: Handle, true_lb: Out<i64>, true_extent: Out<i64>) -> Result {
    let bounds = with(cx, datatype, |ty| (ty.true_lb(), ty.true_extent()))?;
    true_lb.set(bounds.0);
    true_extent.set(bounds.1);
    Ok(())
}

/// `MPI_Type_get_name`; also of `MPI_DATATYPE_NULL`.
pub fn get_name(cx: &Cx, datatype: Handle, type_name: TextOut, resultlen: Out<i32>) -> Result {
    let (null, null_name) = Object::Datatype.null();
    let objects = cx.objects();
    let name = if datatype == null { null_name.as_bytes() } else { objects.datatype(datatype)?.name() };
    // SAFETY: MPI says the buffer has this size.
    let len = unsafe { type_name.set(name, MAX_OBJECT_NAME) };
    resultlen.set(len as i32);
    Ok(())
}

/// `MPI_Type_set_name`; longer names are cut as MPI 5.0 section 7.8 says.
pub fn set_name(cx: &Cx, datatype: Handle, type_name: Text) -> Result {
    // SAFETY: not kept beyond this call.
    let name = unsafe { type_name.bytes() };
    let name = &name[..name.len().min(MAX_OBJECT_NAME - 1)];
    cx.objects().datatype_mut(datatype)?.set_name(name);
    Ok(())
}

/// `MPI_Type_match_size`.
pub fn match_type_size(_: &Cx, typeclass: i32, size: i32, datatype: Out<Handle>) -> Result {
    datatype.set(match_size(TypeClass::from_abi(typeclass)?, size)?);
    Ok(())
}

/// `MPI_Type_get_value_index`.
pub fn get_value_index(_: &Cx, value_type: Handle, index_type: Handle, pair_type: Out<Handle>) -> Result {
    let pair = Datatype::value_index(value_type, index_type);
    pair_type.set(pair.unwrap_or(Object::Datatype.null().0));
    Ok(())
}

/// `MPI_Type_get_envelope`.
pub fn get_envelope(
    cx: &Cx,
    datatype: Handle,
    num_integers: Out<i32>,
    num_addresses: Out<i32>,
    num_datatypes: Out<i32>,
    combiner: Out<i32>,
) -> Result {
    let ty = shared(cx, datatype)?;
    small(&ty)?;
    let envelope = ty.contents().envelope();
    num_integers.set(envelope.integers as i32);
    num_addresses.set(envelope.addresses as i32);
    num_datatypes.set(envelope.types as i32);
    combiner.set(envelope.combiner as i32);
    Ok(())
}

/// `MPI_Type_get_envelope_c`.
pub fn get_envelope_large(
    cx: &Cx,
    datatype: Handle,
    num_integers: Out<i64>,
    num_addresses: Out<i64>,
    num_large_counts: Out<i64>,
    num_datatypes: Out<i64>,
    combiner: Out<i32>,
) -> Result {
    let envelope = with(cx, datatype, |ty| ty.contents().envelope())?;
    num_integers.set(envelope.integers as i64);
    num_addresses.set(envelope.addresses as i64);
    num_large_counts.set(envelope.large_counts as i64);
    num_datatypes.set(envelope.types as i64);
    combiner.set(envelope.combiner as i32);
    Ok(())
}

fn small(ty: &Datatype) -> Result {
    small_form_only(ty).or_else(|error| fail(error.class, format!("argument `datatype` {}", error.text)))
}

/// `MPI_Type_get_contents`.
#[expect(clippy::too_many_arguments, reason = "the parameters are those of the standard")]
pub fn get_contents(
    cx: &Cx,
    datatype: Handle,
    max_integers: usize,
    max_addresses: usize,
    max_datatypes: usize,
    integers: Array<i32>,
    addresses: Array<i64>,
    datatypes: Array<Slot>,
) -> Result {
    let ty = shared(cx, datatype)?;
    small(&ty)?;
    check_contents(&ty, [max_integers, max_addresses, usize::MAX, max_datatypes])?;
    store("array_of_integers", integers, &integers_of(&ty))?;
    store("array_of_addresses", addresses, &ty.contents().addresses)?;
    store_types(cx, datatypes, &ty)
}

/// `MPI_Type_get_contents_c`.
#[expect(clippy::too_many_arguments, reason = "the parameters are those of the standard")]
pub fn get_contents_large(
    cx: &Cx,
    datatype: Handle,
    max_integers: u64,
    max_addresses: u64,
    max_large_counts: u64,
    max_datatypes: u64,
    integers: Array<i32>,
    addresses: Array<i64>,
    large_counts: Array<i64>,
    datatypes: Array<Slot>,
) -> Result {
    let ty = shared(cx, datatype)?;
    let room = [max_integers, max_addresses, max_large_counts, max_datatypes].map(|max| max as usize);
    check_contents(&ty, room)?;
    store("array_of_integers", integers, &integers_of(&ty))?;
    store("array_of_addresses", addresses, &ty.contents().addresses)?;
    store("array_of_large_counts", large_counts, &ty.contents().large_counts)?;
    store_types(cx, datatypes, &ty)
}

/// The integers, of which some are constants.
fn integers_of(ty: &Datatype) -> Vec<i32> {
    let mut integers = ty.contents().integers.clone();
    let last = integers.len().saturating_sub(1);
    if matches!(ty.contents().combiner, Combiner::Subarray | Combiner::Darray) {
        integers[last] = layout::write(Set::Order, integers[last]);
    }
    if ty.contents().combiner == Combiner::Darray {
        // Size, rank and dimensions; the global sizes unless they are large; distributions, their arguments, processes.
        let (dims, large) = (integers[2] as usize, !ty.contents().large_counts.is_empty());
        let from = 3 + if large { 0 } else { dims };
        let (distribs, dargs) = integers[from..].split_at_mut(dims);
        distribs.iter_mut().for_each(|n| *n = layout::write(Set::Distribution, *n));
        dargs[..dims].iter_mut().for_each(|n| *n = layout::write(Set::DistributionArgument, *n));
    }
    integers
}

/// Room for integers, addresses, large counts and datatypes.
fn check_contents(ty: &Datatype, room: [usize; 4]) -> Result {
    let envelope = ty.contents().envelope();
    if !envelope.combiner.has_contents() {
        return fail(Class::TYPE, "argument `datatype` is a named predefined datatype: it has no contents");
    }
    let needed = [envelope.integers, envelope.addresses, envelope.large_counts, envelope.types];
    let names = ["max_integers", "max_addresses", "max_large_counts", "max_datatypes"];
    for ((name, needed), room) in names.iter().zip(needed).zip(room) {
        if room < needed {
            return fail(Class::ARG, format!("argument `{name}` is {room}, the datatype has {needed}"));
        }
    }
    Ok(())
}

fn store<T: Copy>(name: &str, array: Array<T>, values: &[T]) -> Result {
    if array.is_null() && !values.is_empty() {
        return fail(Class::ARG, format!("argument `{name}` is NULL"));
    }
    // SAFETY: the application says it has room for at least this many, which was checked.
    unsafe { array.slice_mut(values.len())? }.copy_from_slice(values);
    Ok(())
}

fn store_types(cx: &Cx, array: Array<Slot>, ty: &Datatype) -> Result {
    let mut objects = cx.objects();
    let handles: Result<Vec<Slot>> =
        ty.contents().types.iter().map(|ty| Ok(objects.types.reveal(ty)?.into())).collect();
    store("array_of_datatypes", array, &handles?)
}

fn received(status: StatusVar) -> u64 {
    Status::from_ints(status.get()).count_bytes()
}

/// `MPI_Get_count`.
pub fn get_count(cx: &Cx, status: StatusVar, datatype: Handle, count: CountVar) -> Result {
    let bytes = received(status);
    let items = match u64::from(basic_size(datatype)) {
        0 => with(cx, datatype, |ty| ty.items_in(bytes))?,
        size => bytes.is_multiple_of(size).then_some(bytes / size),
    };
    count.set_or_undefined(items.map(|n| n as i64));
    Ok(())
}

/// `MPI_Get_elements`.
pub fn get_elements(cx: &Cx, status: StatusVar, datatype: Handle, count: CountVar) -> Result {
    let elements = with(cx, datatype, |ty| ty.elements_in(received(status)))?;
    count.set_or_undefined(elements.map(|n| n as i64));
    Ok(())
}

/// `MPI_Get_elements_x`.
pub fn get_elements_x(cx: &Cx, status: StatusVar, datatype: Handle, count: Out<i64>) -> Result {
    const UNDEFINED: i64 = -32766;
    let elements = with(cx, datatype, |ty| ty.elements_in(received(status)))?;
    count.set(elements.map_or(UNDEFINED, |n| n as i64));
    Ok(())
}

/// `MPI_Status_set_elements` and `MPI_Status_set_elements_x`.
pub fn status_set_elements(cx: &Cx, status: StatusVar, datatype: Handle, count: u64) -> Result {
    let bytes = with(cx, datatype, |ty| ty.bytes_of(count))??;
    let mut content = Status::from_ints(status.get());
    content.set_count_bytes(bytes);
    status.set(content.to_ints());
    Ok(())
}
