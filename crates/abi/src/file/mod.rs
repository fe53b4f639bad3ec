//! MPI 5.0 chapter 14: files. Opening, closing, and what is asked of a file as a whole; see docs/protocols/files.md.

pub mod access;
mod agree;
mod beside;
mod convert;
pub mod pointer;
mod shared;
pub mod split;
mod together;
pub mod view;

pub use beside::stop as stop_beside;

use std::path::PathBuf;
use std::sync::Arc;

use mpi::coll::Spread;
use mpi::comm::Place;
use mpi::errhandler::Raiser;
use mpi::error::{Class, Error, Result, fail};
use mpi::file::{Amode, FILE_NULL, File, Hints, View, of_file, path_of, refused};
use mpi::group::Group;
use mpi::handle::Handle;

use crate::coll::run;
use crate::cx::Cx;
use crate::kind::handle::HandleRef;
use crate::kind::output::Out;
use crate::kind::text::Text;
use crate::object::Object;
use crate::{comm as comms, inter};
use agree::{Word, agree, same};

/// What MPI_File_open was asked for.
struct Asked {
    amode: Amode,
    path: PathBuf,
    hints: Hints,
}

fn asked(cx: &Cx, filename: Text, amode: i32, info: Handle) -> Result<Asked> {
    let amode = Amode::new(amode)?;
    let path = path(filename)?;
    let mut hints = Hints::default();
    if let Some(info) = cx.anytime().optional_info(info)? {
        hints.update(info);
    }
    Ok(Asked { amode, path, hints })
}

/// A path of the system has any bytes.
fn path(filename: Text) -> Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: copied at once.
    let bytes = unsafe { filename.bytes() };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PathBuf::from(path_of(text)?)),
        Err(_) => Ok(PathBuf::from(std::ffi::OsStr::from_bytes(bytes))),
    }
}

/// `MPI_File_open`. Errors concern MPI_FILE_NULL (MPI 5.0 section 14.7).
pub fn open(cx: &Cx, comm: Handle, filename: Text, amode: i32, info: Handle, fh: Out<Handle>) -> Result {
    cx.concerns(Object::File, FILE_NULL);
    fh.set(FILE_NULL);
    if inter::is_inter(cx, comm)? {
        return fail(Class::COMM, "argument `comm` is an intercommunicator, must be an intracommunicator");
    }
    let asked = same(cx, comm, asked(cx, filename, amode, info), [(Word::Number(amode.into()), "amode")])?;
    let own = duplicate(cx, comm)?;
    match open_on(cx, own, asked) {
        Ok(file) => {
            let new = cx.objects().files.insert(file)?;
            cx.anytime().errhandlers.inherit(Raiser::File, FILE_NULL, new);
            fh.set(new);
            Ok(())
        }
        Err(error) => {
            comms::remove(cx, own)?;
            Err(error)
        }
    }
}

/// A communicator for the file, of which no program knows: no attributes are copied.
fn duplicate(cx: &Cx, comm: Handle) -> Result<Handle> {
    let context = cx.world().new_context();
    let context = run::spread_words(cx, comm, 0, vec![context])?[0];
    let (group, rank, session) = {
        let world = cx.world();
        let held = world.comm(comm)?;
        (held.place.mine.clone(), held.place.rank, held.session)
    };
    let own = comms::put(cx, Place::within(context, group, rank))?;
    cx.world().comm_mut(own)?.session = session;
    Ok(own)
}

fn open_on(cx: &Cx, comm: Handle, asked: Asked) -> Result<File> {
    let site = run::site(cx, comm)?;
    let locking = cx.objects().locking;
    let how = |create, exclusive| disk::How {
        locking,
        read: !asked.amode.has(Amode::WRONLY),
        write: !asked.amode.has(Amode::RDONLY),
        create,
        exclusive,
        permissions: asked.hints.permissions,
    };
    let creates = asked.amode.has(Amode::CREATE);
    let open = |exclusive| disk::File::open(&asked.path, how(creates, exclusive)).map_err(refused);
    let mut opened = None;
    // One rank makes the file, so that only one needs to find that it is not there.
    if creates && site.rank == 0 {
        opened = Some(open(asked.amode.has(Amode::EXCL)));
    }
    if creates && site.size > 1 {
        let made = opened.as_ref().map_or(0, agree::class_of);
        let told = run::spread_words(cx, comm, 0, vec![made])?[0];
        if let Some(class) = Class::told(told) {
            return match opened {
                Some(Err(error)) => Err(error),
                _ => agree::all_well(Err(not_made(class, &asked)), std::iter::empty()),
            };
        }
    }
    let opened = opened.unwrap_or_else(|| open(false));
    let file = agree(cx, comm, opened)?;
    check_one_file(cx, comm, &file)?;
    file.will_be_read_in(asked.hints.style());
    let shared = shared::open(cx, comm, &asked.path)?;
    let mut file = File {
        comm,
        disk: Arc::new(file),
        amode: asked.amode,
        view: Arc::new(View::bytes()),
        position: 0,
        shared: Arc::new(shared),
        atomic: false,
        hints: asked.hints,
        split: None,
    };
    if asked.amode.has(Amode::APPEND) {
        let size = agree(cx, comm, file.disk.size().map_err(refused))? as i64;
        file.position = size;
        if let (0, Ok(counter)) = (site.rank, &*file.shared) {
            counter.set(size).map_err(refused)?;
        }
        run::barrier(cx, comm)?;
    }
    Ok(file)
}

fn not_made(class: Class, asked: &Asked) -> Error {
    Error::new(class, format!("rank 0 could not make {}: {}", asked.path.display(), class.name()))
}

/// On one host all ranks must have opened the same file; over several nothing says which files are the same.
fn check_one_file(cx: &Cx, comm: Handle, file: &disk::File) -> Result {
    if !is_on_one_host(cx, comm)? {
        return Ok(());
    }
    let (device, number) = file.identity().map_err(refused)?;
    let all = run::exchange_words(cx, comm, [device, number])?;
    match all.iter().position(|other| *other != [device, number]) {
        None => Ok(()),
        Some(rank) => {
            let path = file.path().display();
            fail(Class::NOT_SAME, format!("argument `filename`, {path}, is another file on rank {rank}"))
        }
    }
}

fn is_on_one_host(cx: &Cx, comm: Handle) -> Result<bool> {
    run::with_state(cx, comm, |state| matches!(state.spread, Spread::OneHost))
}

/// `MPI_File_close`. Whoever closes a file waits for the others, so that what any of them has written is there for
/// all when the call returns.
pub fn close(cx: &Cx, fh: HandleRef) -> Result {
    cx.concerns(Object::File, fh.handle);
    let (comm, delete) = {
        let objects = cx.objects();
        let file = objects.file(fh.handle)?;
        file.check_whole()?;
        (file.comm, file.amode.has(Amode::DELETE_ON_CLOSE))
    };
    run::barrier(cx, comm)?;
    let is_first = run_as_first(cx, comm)?;
    let removed = cx.objects().files.remove(fh.handle);
    let removed = match removed {
        Some(file) if is_first => {
            shared::close(&file.shared);
            if delete { disk::remove(file.disk.path()).map_err(refused) } else { Ok(()) }
        }
        _ => Ok(()),
    };
    fh.set(FILE_NULL);
    let outcome = if delete { agree(cx, comm, removed) } else { Ok(()) };
    comms::remove(cx, comm)?;
    // An error is the file's still: what handles it stays until MPI_Finalize.
    if outcome.is_ok() {
        cx.anytime().errhandlers.release(Raiser::File, fh.handle);
    }
    outcome
}

fn run_as_first(cx: &Cx, comm: Handle) -> Result<bool> {
    Ok(run::site(cx, comm)?.rank == 0)
}

/// `MPI_File_delete`; hints say nothing about it.
pub fn delete(cx: &Cx, filename: Text, _info: Handle) -> Result {
    cx.concerns(Object::File, FILE_NULL);
    disk::remove(&path(filename)?).map_err(refused)
}

/// The communicator of a file and what is below it.
fn below(cx: &Cx, fh: Handle) -> Result<(Handle, Arc<disk::File>)> {
    let objects = cx.objects();
    let file = objects.file(fh)?;
    Ok((file.comm, file.disk.clone()))
}

fn check_size(cx: &Cx, fh: Handle, size: i64) -> Result {
    let objects = cx.objects();
    let file = objects.file(fh)?;
    file.check_whole()?;
    if size < 0 {
        return fail(Class::ARG, format!("argument `size` is {size}, must not be negative"));
    }
    of_file(&file.disk, file.amode.check_random().and_then(|()| file.amode.check_write()))
}

fn resize(cx: &Cx, fh: Handle, size: i64, change: impl FnOnce(&disk::File) -> disk::Result) -> Result {
    let (comm, disk) = below(cx, fh)?;
    same(cx, comm, check_size(cx, fh, size), [(Word::Number(size), "size")])?;
    let changed = if run_as_first(cx, comm)? { change(&disk).map_err(refused) } else { Ok(()) };
    agree(cx, comm, changed)
}

/// `MPI_File_set_size`.
pub fn set_size(cx: &Cx, fh: Handle, size: i64) -> Result {
    resize(cx, fh, size, |disk| disk.set_size(size as u64))
}

/// `MPI_File_preallocate`.
pub fn preallocate(cx: &Cx, fh: Handle, size: i64) -> Result {
    resize(cx, fh, size, |disk| disk.preallocate(size as u64))
}

/// `MPI_File_get_size`.
pub fn get_size(cx: &Cx, fh: Handle, size: Out<i64>) -> Result {
    size.set(below(cx, fh)?.1.size().map_err(refused)? as i64);
    Ok(())
}

/// `MPI_File_get_group`.
pub fn get_group(cx: &Cx, fh: Handle, group: Out<Handle>) -> Result {
    let mut world = cx.world();
    let comm = world.objects.file(fh)?.comm;
    let members = Group::clone(&world.comm(comm)?.place.mine);
    group.set(world.objects.add_group(members)?);
    Ok(())
}

/// `MPI_File_get_amode`.
pub fn get_amode(cx: &Cx, fh: Handle, amode: Out<i32>) -> Result {
    amode.set(cx.objects().file(fh)?.amode.bits());
    Ok(())
}

/// `MPI_File_set_info`.
pub fn set_info(cx: &Cx, fh: Handle, info: Handle) -> Result {
    let mut hints = cx.objects().file(fh)?.hints.clone();
    if let Some(info) = cx.anytime().optional_info(info)? {
        hints.update(info);
    }
    let mut objects = cx.objects();
    let file = objects.file_mut(fh)?;
    file.disk.will_be_read_in(hints.style());
    file.hints = hints;
    drop(objects);
    run::barrier(cx, below(cx, fh)?.0)
}

/// `MPI_File_get_info`.
pub fn get_info(cx: &Cx, fh: Handle, info_used: Out<Handle>) -> Result {
    use std::os::unix::ffi::OsStrExt;
    let (mut used, comm) = {
        let world = cx.world();
        let file = world.objects.file(fh)?;
        let (size, name) = (world.comm(file.comm)?.place.size(), file.disk.path().as_os_str().as_bytes());
        (file.hints.to_info(size.into(), name, file.disk.permissions().ok())?, file.comm)
    };
    used.provide(mpi::kinds::KEY, &comms::memory_kinds(cx, comm)?);
    info_used.set(cx.anytime().infos.insert(used)?);
    Ok(())
}

/// `MPI_File_set_atomicity`.
pub fn set_atomicity(cx: &Cx, fh: Handle, flag: bool) -> Result {
    let comm = below(cx, fh)?.0;
    same(cx, comm, Ok(()), [(Word::Number(flag.into()), "flag")])?;
    cx.objects().file_mut(fh)?.atomic = flag;
    Ok(())
}

/// `MPI_File_get_atomicity`.
pub fn get_atomicity(cx: &Cx, fh: Handle, flag: Out<bool>) -> Result {
    flag.set(cx.objects().file(fh)?.atomic);
    Ok(())
}

/// `MPI_File_sync`.
pub fn sync(cx: &Cx, fh: Handle) -> Result {
    let (comm, disk) = below(cx, fh)?;
    let whole = cx.objects().file(fh)?.check_whole();
    agree(cx, comm, whole.and_then(|()| disk.sync().map_err(refused)))
}

/// `MPI_File_set_errhandler`.
pub fn set_errhandler(cx: &Cx, file: Handle, errhandler: Handle) -> Result {
    crate::attr::named("errhandler", cx.anytime().errhandlers.set(Raiser::File, file, errhandler))
}

/// `MPI_File_get_errhandler`.
pub fn get_errhandler(cx: &Cx, file: Handle, errhandler: Out<Handle>) -> Result {
    errhandler.set(cx.anytime().errhandlers.get(Raiser::File, file));
    Ok(())
}
