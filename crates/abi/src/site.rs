//! Where in the program the MPI call was made that this thread is in.
//!
//! The stack is walked when somebody asks, so the calls themselves keep nothing for it. The place is
//! the innermost frame outside this library, as module and offset: names of files and lines are
//! looked up by `mpiexec`, which has time for it and no state of MPI that a child would inherit.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What the unwinder of the platform's C ABI is asked for.
#[repr(C)]
struct Frame {
    _opaque: [u8; 0],
}

/// Codes of `_Unwind_Reason_Code`.
const GO_ON: c_int = 0;
const STOP: c_int = 4;

unsafe extern "C" {
    fn _Unwind_Backtrace(each: extern "C" fn(*mut Frame, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(frame: *mut Frame) -> usize;
}

/// The place as `module+0xoffset`, with the offset that debug information counts by.
pub fn caller() -> Option<String> {
    let mut walk = Walk { own: module_of(caller as *const () as usize)?, found: None };
    // SAFETY: `each_frame` gets the pointer to `walk` back, which outlives the call.
    unsafe { _Unwind_Backtrace(each_frame, (&raw mut walk).cast()) };
    let (module, address) = walk.found?;
    Some(format!("{}+{:#x}", module.path().display(), address.wrapping_sub(module.bias)))
}

struct Walk {
    own: Module,
    found: Option<(Module, usize)>,
}

extern "C" fn each_frame(frame: *mut Frame, walk: *mut c_void) -> c_int {
    // SAFETY: `caller` passes its `Walk`, which nothing else uses meanwhile.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    // The call is before the address it returns to, which may belong to the next line.
    // SAFETY: the unwinder passes a frame that is valid during this call.
    let address = unsafe { _Unwind_GetIP(frame) }.wrapping_sub(1);
    match module_of(address) {
        Some(module) if module.bias == walk.own.bias => GO_ON,
        found => {
            walk.found = found.map(|module| (module, address));
            STOP
        }
    }
}

/// A program or library in memory.
struct Module {
    /// What was added to the addresses in its file.
    bias: usize,
    /// As the loader knows it; empty for the program itself.
    name: Vec<u8>,
}

impl Module {
    fn path(&self) -> PathBuf {
        match self.name.as_slice() {
            [] => std::fs::read_link("/proc/self/exe").unwrap_or_default(),
            name => {
                let path = PathBuf::from(OsStr::from_bytes(name));
                // The directory that a relative name counts from is not `mpiexec`'s.
                path.canonicalize().unwrap_or(path)
            }
        }
    }
}

/// The module that an address is in.
fn module_of(address: usize) -> Option<Module> {
    let mut search = Search { address, found: None };
    // SAFETY: `each_module` gets the pointer to `search` back, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(each_module), (&raw mut search).cast()) };
    search.found
}

struct Search {
    address: usize,
    found: Option<Module>,
}

extern "C" fn each_module(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: `module_of` passes its `Search`; the loader passes a description valid during this call.
    let (search, info) = unsafe { (&mut *search.cast::<Search>(), &*info) };
    let bias = info.dlpi_addr as usize;
    let headers = match info.dlpi_phnum {
        0 => &[],
        // SAFETY: the loader gives the address and number of the module's program headers.
        count => unsafe { std::slice::from_raw_parts(info.dlpi_phdr, count as usize) },
    };
    let holds = |header: &libc::Elf64_Phdr| {
        let begin = bias.wrapping_add(header.p_vaddr as usize);
        header.p_type == libc::PT_LOAD && search.address.wrapping_sub(begin) < header.p_memsz as usize
    };
    if !headers.iter().any(holds) {
        return 0;
    }
    let name = match info.dlpi_name.is_null() {
        true => Vec::new(),
        // SAFETY: a string of the loader, valid during this call.
        false => unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes().to_vec(),
    };
    search.found = Some(Module { bias, name });
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_its_module() {
        let own = module_of(an_address_is_found_in_its_module as *const () as usize).unwrap();
        assert_eq!(own.path(), std::env::current_exe().unwrap());
        let libc = module_of(libc::getpid as *const () as usize).unwrap();
        assert_ne!(libc.bias, own.bias);
        assert!(libc.path().is_absolute() && libc.path().to_string_lossy().contains("libc"));
        assert!(module_of(16).is_none());
    }

    #[test]
    fn the_caller_is_the_first_frame_of_another_module() {
        // Here the tests are part of the library: the C library, which started the thread, called.
        let place = caller().unwrap();
        let (module, offset) = place.rsplit_once("+0x").unwrap();
        assert!(module.contains("libc"), "{place}");
        assert!(usize::from_str_radix(offset, 16).unwrap() > 0);
    }
}
