//! `MPI_Pack` and `MPI_Unpack`, native and external32 (MPI 5.0 sections 5.2 and 5.3).
//!
//! The native packed form is the bytes of the data, without a header: what one rank packs, every
//! rank of the same kind of machine unpacks.

use std::sync::Arc;

use mpi::datatype::Datatype;
use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;
use mpi::mem;

use crate::cx::Cx;
use crate::kind::output::{CountVar, Out};
use crate::kind::text::Text;

/// The type of an argument that describes a buffer: committed.
fn committed(cx: &Cx, datatype: Handle) -> Result<Arc<Datatype>> {
    if let Some(ty) = Datatype::of(datatype) {
        return Ok(ty.clone());
    }
    match cx.objects().datatype(datatype)?.committed() {
        Ok(ty) => Ok(ty.clone()),
        Err(error) => fail(error.class, format!("argument `datatype` {}", error.text)),
    }
}

/// Refuses NULL where data lies: with absolute displacements (`MPI_BOTTOM`) it lies elsewhere.
fn check_buffer(base: usize, count: u64, ty: &Datatype, arg: &str) -> Result {
    if base == 0 && count > 0 && ty.size() > 0 && ty.true_lb() == 0 {
        return fail(Class::BUFFER, format!("argument `{arg}` is NULL, but {count} items are described"));
    }
    Ok(())
}

/// The pack buffer from the position on: its address and length.
fn rest(buffer: usize, size: u64, position: CountVar, arg: &str) -> Result<(usize, usize)> {
    let at = position.get();
    if at < 0 || at as u64 > size {
        return fail(Class::ARG, format!("argument `position` is {at}, must be 0 to {size}"));
    }
    let left = size - at as u64;
    if buffer == 0 && left > 0 {
        return fail(Class::BUFFER, format!("argument `{arg}` is NULL"));
    }
    Ok((buffer.wrapping_add(at as usize), left as usize))
}

fn check_room(need: u64, left: usize, arg: &str) -> Result {
    if need > left as u64 {
        return fail(Class::TRUNCATE, format!("{need} bytes are needed, `{arg}` has {left} left"));
    }
    Ok(())
}

fn check_datarep(datarep: Text) -> Result {
    let name = datarep.to_text();
    if name == "external32" {
        return Ok(());
    }
    fail(Class::ARG, format!("argument `datarep` is \"{name}\", must be \"external32\""))
}

/// `MPI_Pack`.
#[expect(clippy::too_many_arguments, reason = "the parameters are those of the standard")]
pub fn pack(
    cx: &Cx,
    inbuf: usize,
    incount: u64,
    datatype: Handle,
    outbuf: usize,
    outsize: u64,
    position: CountVar,
    _comm: Handle,
) -> Result {
    let ty = committed(cx, datatype)?;
    check_buffer(inbuf, incount, &ty, "inbuf")?;
    let (to, left) = rest(outbuf, outsize, position, "outbuf")?;
    let need = ty.packed_size(incount)?;
    check_room(need, left, "outbuf")?;
    mem::with_mut(to, need as usize, |out| ty.pack(inbuf, incount, 0, out));
    position.set(position.get() + need as i64)
}

/// `MPI_Unpack`.
#[expect(clippy::too_many_arguments, reason = "the parameters are those of the standard")]
pub fn unpack(
    cx: &Cx,
    inbuf: usize,
    insize: u64,
    position: CountVar,
    outbuf: usize,
    outcount: u64,
    datatype: Handle,
    _comm: Handle,
) -> Result {
    let ty = committed(cx, datatype)?;
    check_buffer(outbuf, outcount, &ty, "outbuf")?;
    let (from, left) = rest(inbuf, insize, position, "inbuf")?;
    let need = ty.packed_size(outcount)?;
    check_room(need, left, "inbuf")?;
    mem::with(from, need as usize, |input| ty.unpack(outbuf, outcount, 0, input));
    position.set(position.get() + need as i64)
}

/// `MPI_Pack_size`: exact, as there is no header.
pub fn pack_size(cx: &Cx, incount: u64, datatype: Handle, _comm: Handle, size: CountVar) -> Result {
    let bytes = super::with(cx, datatype, |ty| ty.packed_size(incount))??;
    size.set_or_undefined(Some(bytes as i64));
    Ok(())
}

/// `MPI_Pack_external`.
#[expect(clippy::too_many_arguments, reason = "the parameters are those of the standard")]
pub fn pack_external(
    cx: &Cx,
    datarep: Text,
    inbuf: usize,
    incount: u64,
    datatype: Handle,
    outbuf: usize,
    outsize: u64,
    position: CountVar,
) -> Result {
    check_datarep(datarep)?;
    let ty = committed(cx, datatype)?;
    check_buffer(inbuf, incount, &ty, "inbuf")?;
    let (to, left) = rest(outbuf, outsize, position, "outbuf")?;
    let need = ty.external_size(incount)?;
    check_room(need, left, "outbuf")?;
    mem::with_mut(to, need as usize, |out| ty.pack_external(inbuf, incount, out))?;
    position.set(position.get() + need as i64)
}

/// `MPI_Unpack_external`.
#[expect(clippy::too_many_arguments, reason = "the parameters are those of the standard")]
pub fn unpack_external(
    cx: &Cx,
    datarep: Text,
    inbuf: usize,
    insize: u64,
    position: CountVar,
    outbuf: usize,
    outcount: u64,
    datatype: Handle,
) -> Result {
    check_datarep(datarep)?;
    let ty = committed(cx, datatype)?;
    check_buffer(outbuf, outcount, &ty, "outbuf")?;
    let (from, left) = rest(inbuf, insize, position, "inbuf")?;
    let need = ty.external_size(outcount)?;
    check_room(need, left, "inbuf")?;
    mem::with(from, need as usize, |input| ty.unpack_external(outbuf, outcount, input))?;
    position.set(position.get() + need as i64)
}

/// `MPI_Pack_external_size`.
pub fn pack_external_size(cx: &Cx, datarep: Text, incount: u64, datatype: Handle, size: Out<i64>) -> Result {
    check_datarep(datarep)?;
    size.set(super::with(cx, datatype, |ty| ty.external_size(incount))?? as i64);
    Ok(())
}
