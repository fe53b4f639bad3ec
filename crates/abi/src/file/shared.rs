//! Where the shared pointer of a file lies: see docs/protocols/files.md.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use disk::Counter;
use mpi::error::{Class, Result, fail};
use mpi::file::refused;
use mpi::handle::Handle;

use super::{agree, is_on_one_host};
use crate::coll::run;
use crate::cx::Cx;

/// The shared pointer as an open file has it: why there is none is told whoever uses it.
pub type Shared = std::result::Result<Counter, String>;

/// Makes the shared pointer of a file, at 0. Where that cannot be, as beside a file in a directory that must not be
/// written, the file can be used without it.
pub fn open(cx: &Cx, comm: Handle, path: &Path) -> Result<Shared> {
    let site = run::site(cx, comm)?;
    if site.size == 1 {
        return Ok(Ok(Counter::alone()));
    }
    let one_host = is_on_one_host(cx, comm)?;
    let token = RandomState::new().build_hasher().finish();
    let name = |token: u64| if one_host { in_memory(token) } else { beside(path, token) };
    let made = (site.rank == 0).then(|| Counter::create(&name(token)).map_err(refused));
    let told = vec![token, made.as_ref().map_or(0, agree::class_of)];
    let told = run::spread_words(cx, comm, 0, told)?;
    let joined = match (made, Class::told(told[1])) {
        (Some(made), _) => made,
        (None, Some(class)) => fail(class, "rank 0 could not make it"),
        (None, None) => Counter::join(&name(told[0])).map_err(refused),
    };
    let is_mine = site.rank == 0 && joined.is_ok();
    let agreed = agree::agree(cx, comm, joined);
    // Those who have opened it keep it. Over several hosts a file whose name has gone may be gone for the others.
    if is_mine && (one_host || agreed.is_err()) {
        let _ = disk::remove(&name(token));
    }
    Ok(agreed.map_err(|error| error.text.clone()))
}

/// The file goes: so does the name of the pointer if it has one still.
pub fn close(shared: &Shared) {
    if let Some(path) = shared.as_ref().ok().and_then(Counter::path) {
        // On one host it has none since it was opened.
        let _ = disk::remove(&path);
    }
}

/// The pointer, which has to be there.
pub fn counter(shared: &Shared) -> Result<&Counter> {
    match shared {
        Ok(counter) => Ok(counter),
        Err(text) => fail(Class::UNSUPPORTED_OPERATION, format!("the file has no shared pointer: {text}")),
    }
}

/// On one host it lies in memory, as the rest of the job does.
fn in_memory(token: u64) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
    directory.join(format!("tern-pointer-{token:016x}"))
}

/// Over several hosts beside the file, which all of them reach.
fn beside(path: &Path, token: u64) -> PathBuf {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    path.with_file_name(format!(".{name}.tern-pointer-{token:016x}"))
}
