//! MPI 5.0 chapter 10: info objects.

use std::ffi::CStr;

use fabric::settings::told;
use launch::pmi::environment::Launcher;
use mpi::anytime::{Anytime, INFO_NULL};
use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;
use mpi::info::{Environment, Info};
use mpi::kinds;

use crate::cx::Cx;
use crate::kind::handle::HandleRef;
use crate::kind::output::{IntRef, Out};
use crate::kind::text::{MaybeTextOut, Text, TextOut};
use crate::layout::MAX_INFO_KEY;

/// `MPI_Info_create`.
pub fn create(cx: &Cx, info: Out<Handle>) -> Result {
    info.set(cx.anytime().infos.insert(Info::new())?);
    Ok(())
}

/// `MPI_Info_dup`.
pub fn dup(cx: &Cx, info: Handle, newinfo: Out<Handle>) -> Result {
    let mut anytime = cx.anytime();
    let copy = anytime.info(info)?.clone();
    newinfo.set(anytime.infos.insert(copy)?);
    Ok(())
}

/// `MPI_Info_free`.
pub fn free(cx: &Cx, info: HandleRef) -> Result {
    cx.anytime().free_info(info.handle)?;
    info.set(INFO_NULL);
    Ok(())
}

/// `MPI_Info_set`.
pub fn set(cx: &Cx, info: Handle, key: Text, value: Text) -> Result {
    // SAFETY: not kept beyond this call.
    let (key, value) = unsafe { (key.bytes(), value.bytes()) };
    cx.anytime().info_mut(info)?.set(key, value)
}

/// `MPI_Info_delete`.
pub fn delete(cx: &Cx, info: Handle, key: Text) -> Result {
    // SAFETY: not kept beyond this call.
    cx.anytime().info_mut(info)?.delete(unsafe { key.bytes() })
}

/// `MPI_Info_get`, deprecated: `valuelen` does not count the terminating zero.
pub fn get(cx: &Cx, info: Handle, key: Text, valuelen: usize, value: TextOut, flag: Out<bool>) -> Result {
    let anytime = cx.anytime();
    // SAFETY: not kept beyond this call.
    let found = anytime.info(info)?.get(unsafe { key.bytes() })?;
    flag.set(found.is_some());
    if let Some(found) = found {
        // SAFETY: MPI 4.1 section 16.3 says the buffer has room for `valuelen` and the zero.
        unsafe { value.set(found, valuelen + 1) };
    }
    Ok(())
}

/// `MPI_Info_get_valuelen`, deprecated.
pub fn get_valuelen(cx: &Cx, info: Handle, key: Text, valuelen: Out<i32>, flag: Out<bool>) -> Result {
    let anytime = cx.anytime();
    // SAFETY: not kept beyond this call.
    let found = anytime.info(info)?.get(unsafe { key.bytes() })?;
    flag.set(found.is_some());
    if let Some(found) = found {
        valuelen.set(found.len() as i32);
    }
    Ok(())
}

/// `MPI_Info_get_string`: `buflen` counts the terminating zero, on the way in as the room in
/// `value` (none: only the length is asked for), on the way out as the room the value needs.
pub fn get_string(
    cx: &Cx,
    info: Handle,
    key: Text,
    buflen: IntRef,
    value: MaybeTextOut,
    flag: Out<bool>,
) -> Result {
    let Ok(room) = usize::try_from(buflen.get()) else {
        return fail(Class::ARG, format!("argument `buflen` is {}, must not be negative", buflen.get()));
    };
    let anytime = cx.anytime();
    // SAFETY: not kept beyond this call.
    let found = anytime.info(info)?.get(unsafe { key.bytes() })?;
    flag.set(found.is_some());
    if let Some(found) = found {
        if room > 0 {
            // SAFETY: MPI says the buffer has room for `buflen` bytes.
            unsafe { value.get()?.set(found, room) };
        }
        buflen.set(found.len() as i32 + 1);
    }
    Ok(())
}

/// `MPI_Info_get_nkeys`.
pub fn get_nkeys(cx: &Cx, info: Handle, nkeys: Out<i32>) -> Result {
    nkeys.set(cx.anytime().info(info)?.len() as i32);
    Ok(())
}

/// `MPI_Info_get_nthkey`.
pub fn get_nthkey(cx: &Cx, info: Handle, n: usize, key: TextOut) -> Result {
    let anytime = cx.anytime();
    let found = anytime.info(info)?.nth_key(n)?;
    // SAFETY: MPI says the buffer has room for `MPI_MAX_INFO_KEY` bytes.
    unsafe { key.set(found, MAX_INFO_KEY) };
    Ok(())
}

/// `MPI_Info_create_env`: what `MPI_INFO_ENV` says, with the command line given.
pub fn create_env(cx: &Cx, argc: i32, argv: usize, info: Out<Handle>) -> Result {
    let given = arguments(argc, argv)?;
    let mut anytime = cx.anytime();
    let mut env = anytime.info_env.clone();
    if env.is_empty() {
        env = environment(ranks_started()).to_info();
    }
    if let Some((command, rest)) = given.split_first() {
        env.provide("command", command);
        if env.get(b"argv")?.is_some() {
            env.delete(b"argv")?;
        }
        env.provide("argv", &rest.join(" "));
    }
    info.set(anytime.infos.insert(env)?);
    Ok(())
}

/// Fills `MPI_INFO_ENV` at MPI_Init.
pub fn describe_environment(anytime: &mut Anytime, maxprocs: usize) {
    anytime.info_env = environment(Some(maxprocs)).to_info();
}

/// What the launcher has left in the environment; a server that is reached through a connection
/// tells it at MPI_Init only.
fn ranks_started() -> Option<usize> {
    match Launcher::detect(|name| std::env::var(name).ok()) {
        Ok(Launcher::Descriptor { size, .. }) => Some(size),
        Ok(Launcher::None) => Some(1),
        Ok(Launcher::Port { .. } | Launcher::Pmix { .. }) | Err(_) => None,
    }
}

/// What this process knows of its start.
fn environment(maxprocs: Option<usize>) -> Environment {
    let mut argv: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let command = if argv.is_empty() { String::new() } else { argv.remove(0) };
    Environment {
        command,
        argv,
        maxprocs: maxprocs.and_then(|n| u32::try_from(n).ok()),
        host: crate::env::host_name().unwrap_or_default(),
        arch: std::env::consts::ARCH.to_string(),
        initial_errhandler: told("TERN_INITIAL_ERRHANDLER").unwrap_or_default(),
        memory_alloc_kinds: told("TERN_MEMORY_ALLOC_KINDS")
            .map(|kinds| kinds::provided(&kinds))
            .unwrap_or_default(),
        wdir: std::env::current_dir().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default(),
        ..Environment::default()
    }
}

/// The strings of an argument vector in C.
fn arguments(argc: i32, argv: usize) -> Result<Vec<String>> {
    if argc < 0 {
        return fail(Class::ARG, format!("argument `argc` is {argc}, must not be negative"));
    }
    let mut arguments = Vec::new();
    if argv == 0 {
        return Ok(arguments);
    }
    for i in 0..argc as usize {
        // SAFETY: the application passes `argc` pointers, each to a terminated string or NULL.
        let text = unsafe { (argv as *const *const libc::c_char).add(i).read() };
        if text.is_null() {
            break;
        }
        // SAFETY: as above.
        arguments.push(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
    }
    Ok(arguments)
}
