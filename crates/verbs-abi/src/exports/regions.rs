//! Memory regions: given to the adapter, and taken back.

use super::{code, errno, none};
use crate::layout::*;
use memcopy::PAGE;
use rnic::stack::Rights;
use std::ffi::{c_int, c_uint, c_void};

const ACCESS_LOCAL_WRITE: c_uint = 1;
const ACCESS_REMOTE_WRITE: c_uint = 2;
const ACCESS_REMOTE_READ: c_uint = 4;
const ACCESS_REMOTE_ATOMIC: c_uint = 8;
const ACCESS_ZERO_BASED: c_uint = 32;
/// `IBV_ACCESS_OPTIONAL_RANGE`: what may be left out, as relaxed order is.
const ACCESS_OPTIONAL: c_uint = 0x3ff0_0000;

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr(pd: *mut Pd, addr: *mut c_void, length: usize, access: c_int) -> *mut Mr {
    // SAFETY: as the caller says.
    unsafe { register(pd, addr, length, addr as u64, access as c_uint) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr_iova(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_int,
) -> *mut Mr {
    // SAFETY: as the caller says.
    unsafe { register(pd, addr, length, iova, access as c_uint) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr_iova2(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut Mr {
    // SAFETY: as the caller says.
    unsafe { register(pd, addr, length, iova, access) }
}

/// Whether there is memory at all of these addresses, whatever its rights: what need not be synchronised is only looked up.
fn is_there(at: usize, len: usize) -> bool {
    let (first, end) = (at & !(PAGE - 1), at.checked_add(len));
    // What exceeds the addresses is refused for that.
    let Some(end) = end.filter(|_| len > 0) else { return true };
    // SAFETY: changes nothing, whatever is there.
    let result = unsafe { libc::msync(first as *mut c_void, end - first, libc::MS_ASYNC) };
    result == 0 || errno() != libc::ENOMEM
}

/// Whether the first page and the last of this memory may be read, and written if it `is_written`. As an adapter does who keeps pages
/// where they are, this makes them this process's own.
fn is_open(at: usize, len: usize, is_written: bool) -> bool {
    let Some(end) = at.checked_add(len).filter(|_| len > 0) else { return true };
    let words = [at & !3, (end - 1) & !3];
    if is_written { words.into_iter().all(can_write) } else { can_read(words) }
}

fn can_read(words: [usize; 2]) -> bool {
    let mut room = [0u8; 2];
    let to = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    let from = words.map(|word| libc::iovec { iov_base: word as *mut c_void, iov_len: 1 });
    // SAFETY: room for two bytes; the kernel looks whether those can be read.
    let got = unsafe { libc::process_vm_readv(libc::getpid(), &to, 1, from.as_ptr(), 2, 0) };
    // Where the call itself is forbidden nothing is known.
    if got < 0 { errno() != libc::EFAULT } else { got == room.len() as isize }
}

/// Whether a word can be written: a bit that is none is set in it by the kernel, atomically, which therefore changes nothing that
/// anybody writes meanwhile, and is refused instead of a signal.
fn can_write(word: usize) -> bool {
    // Or with 0; wakes those who sleep on the word if it was -1, who look again.
    let operation: c_int = libc::FUTEX_OP(libc::FUTEX_OP_OR, 0, libc::FUTEX_OP_CMP_EQ, -1);
    let own = 0u32;
    // SAFETY: a word of this side on which nobody sleeps, and one that the kernel looks at.
    let result = unsafe {
        let call = libc::FUTEX_WAKE_OP | libc::FUTEX_PRIVATE_FLAG;
        libc::syscall(libc::SYS_futex, &raw const own, call, 0, 0usize, word, operation)
    };
    result >= 0 || errno() != libc::EFAULT
}

/// Registers memory. Remote addresses are those of this process, so no others can be given to it.
unsafe fn register(pd: *mut Pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint) -> *mut Mr {
    let access = access & !ACCESS_OPTIONAL;
    let known = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
    if access & !known != 0 || access & ACCESS_ZERO_BASED != 0 || iova != addr as u64 {
        return none(libc::EOPNOTSUPP);
    }
    // Who may be changed from afar may be changed from here (`man ibv_reg_mr`).
    let needs_local = access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC) != 0;
    if needs_local && access & ACCESS_LOCAL_WRITE == 0 {
        return none(libc::EINVAL);
    }
    let mut rights = Rights::NONE;
    for (bit, right) in [
        (ACCESS_LOCAL_WRITE, Rights::LOCAL_WRITE),
        (ACCESS_REMOTE_WRITE, Rights::REMOTE_WRITE),
        (ACCESS_REMOTE_READ, Rights::REMOTE_READ),
        (ACCESS_REMOTE_ATOMIC, Rights::REMOTE_ATOMIC),
    ] {
        if access & bit != 0 {
            rights = rights | right;
        }
    }
    // SAFETY: a domain of `ibv_alloc_pd`.
    let (context, domain) = unsafe { ((*pd).context, (*pd).handle) };
    if !is_there(addr as usize, length) || !is_open(addr as usize, length, access & ACCESS_LOCAL_WRITE != 0) {
        return none(libc::EFAULT);
    }
    let mut adapter = match crate::adapter() {
        Ok(adapter) => adapter,
        Err(error) => return none(code(&error)),
    };
    if adapter.domains.get(domain).is_none() {
        return none(libc::EINVAL);
    }
    match adapter.regions.register(addr as u64, length as u64, rights, domain) {
        Some(key) => {
            // The region keeps its domain; what came to nothing does not.
            if let Some(users) = adapter.domains.get(domain) {
                *users += 1;
            }
            let mr = Mr { context, pd, addr, length, handle: key, lkey: key, rkey: key };
            let mr = Box::into_raw(Box::new(mr));
            adapter.registered.insert(mr as usize, (key, domain));
            mr
        }
        None => none(libc::ENOMEM),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dereg_mr(mr: *mut Mr) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // What is in there is not looked at before it is known to be a region: it may have been given back.
    let Some((key, domain)) = adapter.registered.remove(&(mr as usize)) else { return libc::EINVAL };
    adapter.regions.deregister(key);
    if let Some(users) = adapter.domains.get(domain) {
        *users -= 1;
    }
    // SAFETY: made by `ibv_reg_mr`, and given back once, for else it was not known.
    drop(unsafe { Box::from_raw(mr) });
    0
}
