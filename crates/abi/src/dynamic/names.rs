//! MPI 5.0 section 11.9.4: names of ports, by which jobs of one user on one host find each other.
//!
//! There is no server. A name is a file that nobody else may read, in a directory of the user's alone, locked by the
//! process that has published it: what has ended without taking its names back has lost its locks, and its names are
//! nobody's.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use mpi::error::{Class, Error, Result, fail};
use mpi::handle::Handle;

use super::port::MAX_PORT_NAME;
use crate::cx::Cx;
use crate::kind::text::{Text, TextOut};

/// Longest name of a service.
const NAME_MAX: usize = 100;

/// The names that this process has published, with the port and the locked file of each.
static PUBLISHED: Mutex<BTreeMap<String, (String, File)>> = Mutex::new(BTreeMap::new());

fn published() -> MutexGuard<'static, BTreeMap<String, (String, File)>> {
    PUBLISHED.lock().unwrap_or_else(|e| e.into_inner())
}

/// `MPI_Publish_name`.
pub fn publish(_: &Cx, service_name: Text, _info: Handle, port_name: Text) -> Result {
    let (service, port) = (service_name.to_text(), port_name.to_text());
    let path = place(&service)?;
    // Whether it is one that MPI_Open_port has given only who connects there has to know: programs publish other addresses as well.
    if port.is_empty() || port.len() >= MAX_PORT_NAME {
        let (len, most) = (port.len(), MAX_PORT_NAME - 1);
        return fail(
            Class::PORT,
            format!("argument `port_name` has {len} characters, must have 1 to {most}"),
        );
    }
    let mut published = published();
    let failed = |error: std::io::Error| other(&path, &error);
    let taken = || {
        let text = format!("argument `service_name` is `{service}`, which is published already");
        Error::new(Class::SERVICE, text)
    };
    if published.contains_key(&service) {
        return Err(taken());
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(taken()),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    file.set_len(0).and_then(|()| file.write_all(port.as_bytes())).map_err(failed)?;
    published.insert(service, (port, file));
    Ok(())
}

/// `MPI_Unpublish_name`, by the process that has published it.
pub fn unpublish(_: &Cx, service_name: Text, _info: Handle, port_name: Text) -> Result {
    let (service, port) = (service_name.to_text(), port_name.to_text());
    let path = place(&service)?;
    let mut published = published();
    match published.get(&service) {
        Some((known, _)) if *known == port => {}
        Some(_) => {
            let text = format!("argument `port_name` is not the port that `{service}` is published with");
            return fail(Class::SERVICE, text);
        }
        None => {
            let text =
                format!("argument `service_name` is `{service}`, which this process has not published");
            return fail(Class::SERVICE, text);
        }
    }
    std::fs::remove_file(&path).map_err(|error| other(&path, &error))?;
    published.remove(&service);
    Ok(())
}

/// `MPI_Lookup_name`.
pub fn lookup(_: &Cx, service_name: Text, _info: Handle, port_name: TextOut) -> Result {
    let service = service_name.to_text();
    let path = place(&service)?;
    let port = match published().get(&service) {
        Some((port, _)) => Some(port.clone()),
        None => read(&path).map_err(|error| other(&path, &error))?,
    };
    let Some(port) = port.filter(|port| !port.is_empty()) else {
        let text = format!("argument `service_name` is `{service}`, which nobody has published on this host");
        return fail(Class::NAME, text);
    };
    // SAFETY: MPI says the buffer has room for MPI_MAX_PORT_NAME bytes.
    unsafe { port_name.set(port.as_bytes(), MAX_PORT_NAME) };
    Ok(())
}

/// What the file says, if whoever has written it is still there.
fn read(path: &Path) -> std::io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            file.take(MAX_PORT_NAME as u64).read_to_string(&mut text)?;
            Ok(Some(text))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn other(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Class::OTHER, format!("{}: {error}", path.display()))
}

/// Where the name of a service is.
fn place(service: &str) -> Result<PathBuf> {
    if service.is_empty() || service.len() > NAME_MAX {
        let len = service.len();
        return fail(
            Class::ARG,
            format!("argument `service_name` has {len} characters, must have 1 to {NAME_MAX}"),
        );
    }
    let name: String = service.bytes().map(|byte| format!("{byte:02x}")).collect();
    Ok(directory()?.join(name))
}

/// The directory of names, which is this user's alone.
fn directory() -> Result<PathBuf> {
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let path = match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_dir()) {
        Some(dir) => PathBuf::from(dir).join("tern-names"),
        None => PathBuf::from(format!("/tmp/tern-names-{user}")),
    };
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(other(&path, &error)),
        _ => {}
    }
    let found = std::fs::symlink_metadata(&path).map_err(|error| other(&path, &error))?;
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        let text =
            format!("{}: names of ports need a directory that is this user's alone (0700)", path.display());
        return fail(Class::OTHER, text);
    }
    Ok(path)
}
