//! Between memory and the stream of a file: packed where memory is not one run, and converted where the file has
//! another representation (MPI 5.0 section 14.5). Functions of the application are called with no guard alive.

use std::sync::Arc;

use mpi::datatype::{Datatype, basic};
use mpi::error::{Class, Result, fail};
use mpi::file::{Conversion, Datarep, Sizes, UserRep, View};
use mpi::handle::Handle;
use mpi::mem;
use mpi::request::Buffer;

use crate::cx::Cx;
use crate::layout;

/// The memory of one access: the buffer and the handle of its datatype, which functions of the application get.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Address, count, type.
    pub buffer: Buffer,
    /// The handle of the type.
    pub datatype: Handle,
}

/// The bytes of an access as they lie in the file, one behind the other.
pub enum Stream {
    /// In the application's memory.
    There(usize, usize),
    /// Made from it, or to be put there.
    Made(Box<[u8]>),
}

impl Stream {
    /// The bytes, to be written.
    pub fn with<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Stream::There(addr, len) => mem::with(*addr, *len, f),
            Stream::Made(bytes) => f(bytes),
        }
    }

    /// The bytes, to be read into.
    pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        match self {
            Stream::There(addr, len) => mem::with_mut(*addr, *len, f),
            Stream::Made(bytes) => f(bytes),
        }
    }
}

impl Memory {
    fn bytes(&self) -> u64 {
        self.buffer.ty.size() * self.buffer.count
    }

    fn lies(&self) -> bool {
        self.buffer.ty.is_contiguous() || self.bytes() == 0
    }

    /// How many bytes it takes in the file; a whole number of etypes.
    pub fn len_in(&self, cx: &Cx, view: &View) -> Result<u64> {
        if !self.bytes().is_multiple_of(view.etype.size()) {
            let (bytes, unit) = (self.bytes(), view.etype.size());
            let text = format!("{bytes} bytes are not a whole number of etypes, which have {unit} bytes");
            return fail(Class::TYPE, text);
        }
        Ok(self.item(cx, view)? * self.buffer.count)
    }

    /// Bytes of one item in the file.
    fn item(&self, cx: &Cx, view: &View) -> Result<u64> {
        let ty = &self.buffer.ty;
        if view.datarep.is_plain() { Ok(ty.size()) } else { Ok(sizes(cx, &view.datarep, ty)?.item(ty)) }
    }

    /// What is to be written.
    pub fn outgoing(&self, cx: &Cx, view: &View) -> Result<Stream> {
        let Buffer { addr, count, ty } = &self.buffer;
        match &view.datarep {
            Datarep::External32 => {
                let mut out = mem::zeroed(ty.external_size(*count)? as usize)?;
                ty.pack_external(*addr, *count, &mut out)?;
                Ok(Stream::Made(out))
            }
            Datarep::User(user) if let Some(convert) = user.write => {
                let mut out = mem::zeroed((self.item(cx, view)? * count) as usize)?;
                self.call(convert, user, *count, out.as_mut_ptr() as usize)?;
                Ok(Stream::Made(out))
            }
            _ => self.packed(cx, view, true),
        }
    }

    /// Room for what will be read.
    pub fn room(&self, cx: &Cx, view: &View) -> Result<Stream> {
        let is_converted = match &view.datarep {
            Datarep::External32 => true,
            Datarep::User(user) => user.read.is_some(),
            _ => false,
        };
        if is_converted {
            return Ok(Stream::Made(mem::zeroed((self.item(cx, view)? * self.buffer.count) as usize)?));
        }
        self.packed(cx, view, false)
    }

    /// As it lies in memory, without its gaps.
    fn packed(&self, cx: &Cx, view: &View, fill: bool) -> Result<Stream> {
        if !view.datarep.is_plain() && self.item(cx, view)? != self.buffer.ty.size() {
            let text = "the data representation has other sizes than memory, and no function that converts";
            return fail(Class::CONVERSION, text);
        }
        let len = self.bytes() as usize;
        if self.lies() {
            return Ok(Stream::There(self.buffer.addr, len));
        }
        let mut bytes = mem::zeroed(len)?;
        if fill {
            self.buffer.ty.pack(self.buffer.addr, self.buffer.count, 0, &mut bytes);
        }
        Ok(Stream::Made(bytes))
    }

    /// The first `got` bytes of the stream have been read: puts them into memory, and says how many that are there.
    pub fn finish(&self, cx: &Cx, view: &View, stream: Stream, got: u64) -> Result<u64> {
        match &view.datarep {
            Datarep::User(user) if let Some(convert) = user.read => {
                let Stream::Made(bytes) = stream else { return Ok(got) };
                let items = got.checked_div(self.item(cx, view)?).unwrap_or(0);
                self.call(convert, user, items, bytes.as_ptr() as usize)?;
                Ok(items * self.buffer.ty.size())
            }
            _ => self.finish_plainly(view, stream, got),
        }
    }

    /// Whether functions of the application take part, which only its own threads may call.
    pub fn is_converted_outside(&self, view: &View) -> bool {
        matches!(&view.datarep, Datarep::User(_))
    }

    /// As [`Memory::finish`], where they do not.
    pub fn finish_plainly(&self, view: &View, stream: Stream, got: u64) -> Result<u64> {
        let Stream::Made(bytes) = stream else { return Ok(got) };
        let Buffer { addr, count, ty } = &self.buffer;
        match &view.datarep {
            Datarep::External32 => ty.unpack_external_part(*addr, *count, &bytes[..got as usize]),
            _ => {
                ty.unpack(*addr, *count, 0, &bytes[..got as usize]);
                Ok(got)
            }
        }
    }

    /// Lets a function of the application convert `count` items between memory and the bytes at `file`.
    fn call(&self, convert: Conversion, user: &UserRep, count: u64, file: usize) -> Result {
        let (addr, datatype, extra) = (self.buffer.addr, layout::passed(self.datatype), user.extra_state);
        let name = String::from_utf8_lossy(&user.name).into_owned();
        // SAFETY: the application registered this address as a function of this type; no guard is alive.
        let code = unsafe {
            if convert.large {
                let function: unsafe extern "C" fn(usize, usize, i64, usize, i64, usize) -> i32 =
                    std::mem::transmute(convert.address);
                function(addr, datatype, count as i64, file, 0, extra)
            } else {
                let Ok(count) = i32::try_from(count) else {
                    let text = format!("{count} items are too many for the functions of \"{name}\"");
                    return fail(Class::CONVERSION, text);
                };
                let function: unsafe extern "C" fn(usize, usize, i32, usize, i64, usize) -> i32 =
                    std::mem::transmute(convert.address);
                function(addr, datatype, count, file, 0, extra)
            }
        };
        if code == 0 {
            return Ok(());
        }
        fail(Class::CONVERSION, format!("a conversion function of \"{name}\" returned {code}"))
    }
}

/// Bytes that the elements of a type take in a representation.
pub fn sizes(_: &Cx, datarep: &Datarep, ty: &Arc<Datatype>) -> Result<Sizes> {
    match datarep {
        Datarep::Native | Datarep::Internal => Ok(Sizes::default()),
        Datarep::External32 => Ok(Sizes::external(ty)),
        Datarep::User(user) => {
            let size = |kind: u8| Ok((kind, extent(user, basic::PREDEFINED[kind as usize].handle)?));
            Ok(Sizes(ty.kinds().into_iter().map(size).collect::<Result<_>>()?))
        }
    }
}

fn extent(user: &UserRep, datatype: Handle) -> Result<u64> {
    let mut extent: i64 = 0;
    // SAFETY: as in `Memory::call`.
    let code = unsafe {
        let function: unsafe extern "C" fn(usize, *mut i64, usize) -> i32 = std::mem::transmute(user.extent);
        function(layout::passed(datatype), &raw mut extent, user.extra_state)
    };
    let name = String::from_utf8_lossy(&user.name);
    match u64::try_from(extent) {
        _ if code != 0 => {
            fail(Class::CONVERSION, format!("the extent function of \"{name}\" returned {code}"))
        }
        Ok(extent) if extent > 0 => Ok(extent),
        _ => fail(Class::CONVERSION, format!("the extent function of \"{name}\" gave {extent} bytes")),
    }
}
