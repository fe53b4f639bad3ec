//! MPI 5.0 sections 14.3 and 14.5: views and data representations.

use std::sync::Arc;

use mpi::datatype::Datatype;
use mpi::error::{Class, Result, fail};
use mpi::file::{Amode, Conversion, Datarep, UserRep, View, refused};
use mpi::handle::Handle;

use super::agree::{Word, same};
use super::convert::sizes;
use super::{run_as_first, shared};
use crate::coll::run;
use crate::cx::Cx;
use crate::kind::function::SizedFunction;
use crate::kind::output::Out;
use crate::kind::text::{Text, TextOut};

/// `MPI_DISPLACEMENT_CURRENT`.
const CURRENT: i64 = -1;
/// `MPI_MAX_DATAREP_STRING`: the longest name with its terminating zero in C.
const MAX_DATAREP: usize = 128;

/// The type of an argument of a view: committed.
fn committed(cx: &Cx, datatype: Handle, arg: &str) -> Result<Arc<Datatype>> {
    match cx.objects().datatype(datatype)?.committed() {
        Ok(ty) => Ok(ty.clone()),
        Err(error) => fail(error.class, format!("argument `{arg}` {}", error.text)),
    }
}

/// The view that the arguments describe. A displacement that says «here» is 0 until all have come.
fn view(cx: &Cx, fh: Handle, disp: i64, types: (Handle, Handle), datarep: &[u8]) -> Result<View> {
    let etype = committed(cx, types.0, "etype")?;
    let filetype = committed(cx, types.1, "filetype")?;
    let (datarep, amode) = {
        let objects = cx.objects();
        let file = objects.file(fh)?;
        file.check_whole()?;
        (Datarep::of(datarep, &objects.datareps)?, file.amode)
    };
    let is_sequential = amode.has(Amode::SEQUENTIAL);
    if disp == CURRENT && !is_sequential {
        let text = "argument `disp` is MPI_DISPLACEMENT_CURRENT, which only files opened with \
                    MPI_MODE_SEQUENTIAL have";
        return fail(Class::ARG, text);
    }
    if disp != CURRENT && is_sequential {
        let text = format!(
            "argument `disp` is {disp}, must be MPI_DISPLACEMENT_CURRENT in files opened with MPI_MODE_SEQUENTIAL"
        );
        return fail(Class::ARG, text);
    }
    let sizes = sizes(cx, &datarep, &etype)?;
    let writes = !amode.has(Amode::RDONLY);
    View::new(if disp == CURRENT { 0 } else { disp }, etype, filetype, datarep, sizes, writes)
}

/// `MPI_File_set_view`. Both pointers go to its start: the shared one when all have come, and before any leaves.
pub fn set_view(
    cx: &Cx,
    fh: Handle,
    disp: i64,
    etype: Handle,
    filetype: Handle,
    datarep: Text,
    info: Handle,
) -> Result {
    let (comm, pointer) = {
        let objects = cx.objects();
        let file = objects.file(fh)?;
        (file.comm, file.shared.clone())
    };
    // SAFETY: not kept beyond this call.
    let made = view(cx, fh, disp, (etype, filetype), unsafe { datarep.bytes() });
    let (extent, name) = match &made {
        Ok(view) => (view.etype.extent(), number_of(view.datarep.name())),
        Err(_) => (0, 0),
    };
    let mut view =
        same(cx, comm, made, [(Word::Number(extent), "extent of etype"), (Word::Digest(name), "datarep")])?;
    if disp == CURRENT {
        let old = cx.objects().file(fh)?.view.clone();
        view.disp = old.offset_of(shared::counter(&pointer)?.get().map_err(refused)?)?;
        run::barrier(cx, comm)?;
    }
    if let (true, Ok(counter)) = (run_as_first(cx, comm)?, &*pointer) {
        counter.set(0).map_err(refused)?;
    }
    run::barrier(cx, comm)?;
    {
        let mut objects = cx.objects();
        let file = objects.file_mut(fh)?;
        file.view = Arc::new(view);
        file.position = 0;
    }
    let mut hints = cx.objects().file(fh)?.hints.clone();
    if let Some(info) = cx.anytime().optional_info(info)? {
        hints.update(info);
    }
    let mut objects = cx.objects();
    let file = objects.file_mut(fh)?;
    file.disk.will_be_read_in(hints.style());
    file.hints = hints;
    Ok(())
}

/// A number of a name, to be compared: FNV-1a.
fn number_of(name: &[u8]) -> i64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    name.iter().fold(0xcbf2_9ce4_8422_2325, step) as i64
}

/// `MPI_File_get_view`: the datatypes are handles of the program's own, but for predefined ones.
pub fn get_view(
    cx: &Cx,
    fh: Handle,
    disp: Out<i64>,
    etype: Out<Handle>,
    filetype: Out<Handle>,
    datarep: TextOut,
) -> Result {
    let view = cx.objects().file(fh)?.view.clone();
    let handle = |ty: &Arc<Datatype>| -> Result<Handle> {
        if let Some(row) = ty.predefined() {
            return Ok(row.handle);
        }
        let mut objects = cx.objects();
        let new = objects.types.add(ty.clone())?;
        objects.types.commit(new)?;
        Ok(new)
    };
    etype.set(handle(&view.etype)?);
    filetype.set(handle(&view.filetype)?);
    disp.set(view.disp);
    // SAFETY: MPI says the buffer has room for MPI_MAX_DATAREP_STRING bytes.
    unsafe { datarep.set(view.datarep.name(), MAX_DATAREP) };
    Ok(())
}

/// `MPI_File_get_type_extent`.
pub fn get_type_extent(cx: &Cx, fh: Handle, datatype: Handle, extent: Out<i64>) -> Result {
    let (view, ty) = {
        let objects = cx.objects();
        (objects.file(fh)?.view.clone(), objects.datatype(datatype)?.ty.clone())
    };
    let sizes = sizes(cx, &view.datarep, &ty)?;
    extent.set(view.extent_of(&ty, &sizes)?);
    Ok(())
}

/// `MPI_Register_datarep`.
pub fn register_datarep(
    cx: &Cx,
    datarep: Text,
    read: SizedFunction,
    write: SizedFunction,
    extent: usize,
    extra_state: usize,
) -> Result {
    // SAFETY: copied below.
    let name = unsafe { datarep.bytes() };
    if name.is_empty() || name.len() >= MAX_DATAREP {
        let (len, most) = (name.len(), MAX_DATAREP - 1);
        return fail(Class::ARG, format!("argument `datarep` has {len} bytes, must have 1 to {most}"));
    }
    if extent == 0 {
        return fail(Class::ARG, "argument `dtype_file_extent_fn` is NULL");
    }
    let mut objects = cx.objects();
    if Datarep::of(name, &objects.datareps).is_ok() {
        let name = String::from_utf8_lossy(name);
        return fail(Class::DUP_DATAREP, format!("argument `datarep` is \"{name}\", which is there already"));
    }
    let function =
        |f: SizedFunction| (f.address != 0).then_some(Conversion { address: f.address, large: f.large });
    let rep =
        UserRep { name: name.into(), read: function(read), write: function(write), extent, extra_state };
    objects.datareps.push(Arc::new(rep));
    Ok(())
}
