//! MPI 5.0 chapter 9: environmental management, as far as it needs no other rank.

use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;
use mpi::info::Info;

use crate::cx::Cx;
use crate::global::{self, Model};
use crate::kind::output::Out;
use crate::kind::text::TextOut;
use crate::layout;

const VERSION: (i32, i32) = (5, 0);
/// What the kernel says of names of hosts.
const MAX_HOST_NAME: usize = 256;

/// Memory from `MPI_Alloc_mem` starts on a cache line unless the info asks for more.
const DEFAULT_ALIGNMENT: usize = 64;

/// `MPI_Get_version`.
pub fn get_version(_: &Cx, version: Out<i32>, subversion: Out<i32>) -> Result {
    version.set(VERSION.0);
    subversion.set(VERSION.1);
    Ok(())
}

/// `MPI_Get_library_version`.
pub fn get_library_version(_: &Cx, version: TextOut, resultlen: Out<i32>) -> Result {
    let text = format!("Tern MPI {}, MPI 5.0, {}", env!("CARGO_PKG_VERSION"), layout::NAME);
    // SAFETY: MPI says the buffer has this size.
    let len = unsafe { version.set(text.as_bytes(), layout::MAX_LIBRARY_VERSION_STRING) };
    resultlen.set(len as i32);
    Ok(())
}

/// `MPI_Get_processor_name`: the host's name.
pub fn get_processor_name(_: &Cx, name: TextOut, resultlen: Out<i32>) -> Result {
    let host = host_name()?;
    // SAFETY: MPI says the buffer has this size.
    let len = unsafe { name.set(host.as_bytes(), layout::MAX_PROCESSOR_NAME) };
    resultlen.set(len as i32);
    Ok(())
}

/// The host's name.
pub fn host_name() -> Result<String> {
    let mut buffer = [0u8; MAX_HOST_NAME];
    // SAFETY: writes at most as many bytes as the buffer has.
    if unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) } != 0 {
        return fail(Class::OTHER, format!("gethostname: {}", std::io::Error::last_os_error()));
    }
    let host = buffer.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(host).into_owned())
}

/// `MPI_Get_hw_resource_info`: an empty object, because `MPI_Comm_split_type` knows no hardware
/// resource by name.
pub fn get_hw_resource_info(cx: &Cx, info: Out<Handle>) -> Result {
    info.set(cx.anytime().infos.insert(Info::new())?);
    Ok(())
}

/// `MPI_Initialized`: still true after MPI_Finalize.
pub fn initialized(_: &Cx, flag: Out<bool>) -> Result {
    flag.set(global::model() != Model::Before);
    Ok(())
}

/// `MPI_Finalized`.
pub fn finalized(_: &Cx, flag: Out<bool>) -> Result {
    flag.set(global::model() == Model::After);
    Ok(())
}

/// `MPI_Query_thread`.
pub fn query_thread(_: &Cx, provided: Out<i32>) -> Result {
    let has_model = global::model() != Model::Before;
    provided.set(if has_model { global::model_level() } else { global::thread_level() });
    Ok(())
}

/// `MPI_Is_thread_main`.
pub fn is_thread_main(_: &Cx, flag: Out<bool>) -> Result {
    flag.set(global::is_main_thread());
    Ok(())
}

/// `MPI_Pcontrol`: for tools that interpose it; the library itself does nothing.
pub fn pcontrol(_: &Cx, _level: i32) -> Result {
    Ok(())
}

/// `MPI_Alloc_mem`; honours the info key `mpi_minimum_memory_alignment`.
pub fn alloc_mem(cx: &Cx, size: u64, info: Handle, base: Out<usize>) -> Result {
    let alignment = alignment(cx, info)?;
    let mut place = std::ptr::null_mut();
    // SAFETY: the alignment is a power of two of at least 64.
    let code = unsafe { libc::posix_memalign(&raw mut place, alignment, (size as usize).max(1)) };
    if code != 0 {
        let reason = std::io::Error::from_raw_os_error(code);
        return fail(Class::NO_MEM, format!("no {size} bytes aligned to {alignment}: {reason}"));
    }
    base.set(place as usize);
    Ok(())
}

fn alignment(cx: &Cx, info: Handle) -> Result<usize> {
    let anytime = cx.anytime();
    let hint = anytime.optional_info(info)?.and_then(|info| info.hint("mpi_minimum_memory_alignment"));
    match hint.and_then(|text| text.trim().parse::<usize>().ok()) {
        Some(wanted) if wanted.is_power_of_two() => Ok(wanted.max(DEFAULT_ALIGNMENT)),
        _ => Ok(DEFAULT_ALIGNMENT),
    }
}

/// `MPI_Free_mem`.
pub fn free_mem(_: &Cx, base: usize) -> Result {
    if base == 0 {
        return fail(Class::BASE, "argument `base` is NULL");
    }
    // SAFETY: the application passes what MPI_Alloc_mem gave it.
    unsafe { libc::free(base as *mut libc::c_void) };
    Ok(())
}

/// `MPI_Wtime`: seconds of the monotonic clock, the same on all ranks of a host.
pub fn wtime() -> f64 {
    let now = monotonic();
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

fn monotonic() -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the struct; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now
}

/// Nanoseconds of the clock of `MPI_Wtime`.
pub fn now_ns() -> u64 {
    let now = monotonic();
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// `MPI_Wtick`: the clock counts nanoseconds.
pub fn wtick() -> f64 {
    1e-9
}

/// `MPI_Get_address`.
pub fn get_address(_: &Cx, location: usize, address: Out<i64>) -> Result {
    address.set(location as i64);
    Ok(())
}

/// `MPI_Aint_add`.
pub fn aint_add(base: i64, disp: i64) -> i64 {
    base.wrapping_add(disp)
}

/// `MPI_Aint_diff`.
pub fn aint_diff(addr1: i64, addr2: i64) -> i64 {
    addr1.wrapping_sub(addr2)
}
