//! MPI 5.0 sections 14.4.3 and 14.4.4: where the pointers are.

use std::sync::Arc;

use mpi::error::{Class, Result, fail};
use mpi::file::{View, Whence, of_file, refused};
use mpi::handle::Handle;

use super::agree::{Word, agree, same};
use super::shared;
use crate::coll::run;
use crate::cx::Cx;
use crate::kind::output::Out;

/// Where a pointer goes that is at `current`.
fn target(
    view: &View,
    disk: &disk::File,
    offset: i64,
    whence: i32,
    current: impl FnOnce() -> Result<i64>,
) -> Result<i64> {
    let from = match Whence::new(whence)? {
        Whence::Start => 0,
        Whence::Current => current()?,
        Whence::End => view.etypes_before(disk.size().map_err(refused)?),
    };
    let wrong = |what| fail(Class::ARG, format!("argument `offset` is {offset} from etype {from}: {what}"));
    match from.checked_add(offset) {
        Some(target) if target >= 0 => Ok(target),
        Some(_) => wrong("before the view"),
        None => wrong("beyond the largest file offset"),
    }
}

/// `MPI_File_seek`.
pub fn seek(cx: &Cx, fh: Handle, offset: i64, whence: i32) -> Result {
    let mut objects = cx.objects();
    let file = objects.file_mut(fh)?;
    of_file(&file.disk, file.amode.check_random())?;
    file.position = target(&file.view, &file.disk, offset, whence, || Ok(file.position))?;
    Ok(())
}

/// `MPI_File_get_position`.
pub fn get_position(cx: &Cx, fh: Handle, offset: Out<i64>) -> Result {
    let objects = cx.objects();
    let file = objects.file(fh)?;
    of_file(&file.disk, file.amode.check_random())?;
    offset.set(file.position);
    Ok(())
}

/// `MPI_File_get_byte_offset`.
pub fn get_byte_offset(cx: &Cx, fh: Handle, offset: i64, disp: Out<i64>) -> Result {
    let objects = cx.objects();
    let file = objects.file(fh)?;
    of_file(&file.disk, file.amode.check_random())?;
    disp.set(file.view.offset_of(offset)?);
    Ok(())
}

/// `MPI_File_seek_shared`: all give the same arguments, and the first rank moves the pointer.
pub fn seek_shared(cx: &Cx, fh: Handle, offset: i64, whence: i32) -> Result {
    let (comm, view, disk, pointer, amode) = {
        let objects = cx.objects();
        let file = objects.file(fh)?;
        (file.comm, file.view.clone(), file.disk.clone(), file.shared.clone(), file.amode)
    };
    let counter = of_file(&disk, amode.check_random()).and_then(|()| shared::counter(&pointer));
    let counter =
        same(cx, comm, counter, [(Word::Number(offset), "offset"), (Word::Number(whence.into()), "whence")])?;
    let moved = match run::site(cx, comm)?.rank {
        0 => target(&view, &disk, offset, whence, || counter.get().map_err(refused))
            .and_then(|target| counter.set(target).map_err(refused)),
        _ => Ok(()),
    };
    agree(cx, comm, moved)
}

/// `MPI_File_get_position_shared`.
pub fn get_position_shared(cx: &Cx, fh: Handle, offset: Out<i64>) -> Result {
    let pointer = {
        let objects = cx.objects();
        let file = objects.file(fh)?;
        of_file(&file.disk, file.amode.check_random())?;
        Arc::clone(&file.shared)
    };
    offset.set(shared::counter(&pointer)?.get().map_err(refused)?);
    Ok(())
}
