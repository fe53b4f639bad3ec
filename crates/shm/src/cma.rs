//! Single copy between processes by the kernel (process_vm_readv and process_vm_writev).

use fabric::{Fault, READ_MANY, Span};

/// Direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the peer's memory.
    Read,
    /// To the peer's memory.
    Write,
}

/// Copies `local.len` bytes from or to `remote` in process `pid`: by way of other memory where the kernel would take many times as
/// long for the way straight on ([`memcopy`]).
pub fn transfer(way: Direction, pid: i32, peer: usize, local: Span, remote: usize) -> Result<(), Fault> {
    let (to, from) = match way {
        Direction::Read => (local.addr, remote),
        Direction::Write => (remote, local.addr),
    };
    if !memcopy::wants_detour(to, from, local.len) {
        return straight(way, pid, peer, local, remote);
    }
    memcopy::by_way_of(remote, |room| {
        for at in (0..local.len).step_by(room.len()) {
            let mine = local.part(at, room.len());
            touch(way, pid, peer, mine, remote + at)?;
            let other = Span { addr: room.as_mut_ptr() as usize, len: mine.len };
            // SAFETY: `mine` is part of a buffer the application gave to MPI, `other` of memory of this thread.
            let copy = |to: Span, from: Span| unsafe { memcopy::copy(to.addr, from.addr, to.len) };
            if way == Direction::Write {
                copy(other, mine);
            }
            straight(way, pid, peer, other, remote + at)?;
            if way == Direction::Read {
                copy(mine, other);
            }
        }
        Ok(())
    })
}

/// Has the kernel copy a byte of each page: an address that the application must not have given is an error then, and does not end
/// this process when it copies itself.
fn touch(way: Direction, pid: i32, peer: usize, local: Span, remote: usize) -> Result<(), Fault> {
    let next_page = memcopy::PAGE - local.addr % memcopy::PAGE;
    let places = std::iter::once(0).chain((next_page..local.len).step_by(memcopy::PAGE));
    let bytes = |start: usize| -> Vec<libc::iovec> {
        places.clone().map(|at| libc::iovec { iov_base: (start + at) as *mut _, iov_len: 1 }).collect()
    };
    if once(way, pid, &bytes(local.addr), &bytes(remote)) == places.clone().count() as isize {
        return Ok(());
    }
    places.clone().try_for_each(|at| straight(way, pid, peer, local.part(at, 1), remote + at))
}

/// A call of the kernel's.
fn once(way: Direction, pid: i32, mine: &[libc::iovec], theirs: &[libc::iovec]) -> isize {
    let (count, their_count) = (mine.len() as u64, theirs.len() as u64);
    // SAFETY: `mine` are buffers the application gave to MPI, or of this thread; the kernel checks both.
    unsafe {
        match way {
            Direction::Read => {
                libc::process_vm_readv(pid, mine.as_ptr(), count, theirs.as_ptr(), their_count, 0)
            }
            Direction::Write => {
                libc::process_vm_writev(pid, mine.as_ptr(), count, theirs.as_ptr(), their_count, 0)
            }
        }
    }
}

/// Reads pieces of the memory of process `pid`, in one call of the kernel: how many are there as a whole, from the first on. What would take long by the
/// way straight on ends them, as what cannot be read does.
pub fn read_many(pid: i32, pieces: &[(Span, usize)]) -> usize {
    let mut mine = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; READ_MANY];
    let mut theirs = mine;
    let is_straight =
        |(local, remote): &&(Span, usize)| !memcopy::wants_detour(local.addr, *remote, local.len);
    let mut count = 0;
    for (local, remote) in pieces.iter().take(READ_MANY).take_while(is_straight) {
        mine[count] = libc::iovec { iov_base: local.addr as *mut _, iov_len: local.len };
        theirs[count] = libc::iovec { iov_base: *remote as *mut _, iov_len: local.len };
        count += 1;
    }
    let mut moved =
        usize::try_from(once(Direction::Read, pid, &mine[..count], &theirs[..count])).unwrap_or(0);
    let is_whole = |(local, _): &&(Span, usize)| {
        let is_whole = local.len <= moved;
        moved = moved.saturating_sub(local.len);
        is_whole
    };
    pieces[..count].iter().take_while(is_whole).count()
}

/// The same by the kernel alone; continues after partial copies.
fn straight(way: Direction, pid: i32, peer: usize, local: Span, remote: usize) -> Result<(), Fault> {
    let mut done = 0;
    while done < local.len {
        let mine = libc::iovec { iov_base: (local.addr + done) as *mut _, iov_len: local.len - done };
        let theirs = libc::iovec { iov_base: (remote + done) as *mut _, iov_len: local.len - done };
        let moved = once(way, pid, &[mine], &[theirs]);
        if moved > 0 {
            done += moved as usize;
            continue;
        }
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            _ if moved == 0 => {
                return Err(Fault::Device(format!("copy from or to rank {peer} stopped after {done} bytes")));
            }
            Some(libc::EINTR) => {}
            Some(libc::EPERM | libc::ENOSYS | libc::EACCES) => return Err(Fault::NotPermitted),
            Some(libc::ESRCH) => return Err(Fault::PeerGone(peer)),
            Some(libc::EFAULT) => {
                let local = if way == Direction::Read {
                    is_readable(pid, remote + done)
                } else {
                    !is_readable(std::process::id() as i32, local.addr + done)
                };
                return Err(Fault::BadAddress { local });
            }
            _ => {
                return Err(Fault::Device(format!(
                    "copy of {} bytes from or to rank {peer}: {error}",
                    local.len
                )));
            }
        }
    }
    Ok(())
}

/// Whether a byte can be read there: a copy that stops where its source can be read was stopped by
/// its destination.
fn is_readable(pid: i32, addr: usize) -> bool {
    let mut byte = 0u8;
    let mine = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let theirs = libc::iovec { iov_base: addr as *mut _, iov_len: 1 };
    // SAFETY: `mine` is a variable of this function; the kernel checks `theirs`.
    unsafe { libc::process_vm_readv(pid, &mine, 1, &theirs, 1, 0) == 1 }
}

/// Lets the other ranks of the job, as descendants of our parent (the launcher), copy from and
/// to this process where the Yama security module restricts that; without Yama it does nothing.
pub fn permit_siblings() {
    if cfg!(miri) {
        return; // which has one process
    }
    // SAFETY: plain system calls.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::getppid() as libc::c_ulong, 0, 0, 0) };
}

#[cfg(test)]
#[path = "../../../tests/require.rs"]
mod require;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_and_says_whose_address_it_was_when_it_cannot() {
        let from: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
        let mut to = vec![0u8; from.len()];
        let local = Span { addr: to.as_mut_ptr() as usize, len: to.len() };
        let pid = std::process::id() as i32;
        if transfer(Direction::Read, pid, 0, local, from.as_ptr() as usize) == Err(Fault::NotPermitted) {
            // A container that forbids it: the device then reports it as a capability.
            return require::missing("single-copy", &"process_vm_readv is not permitted");
        }
        assert_eq!(from, to);
        to[5] = 99;
        transfer(Direction::Write, pid, 0, local, from.as_ptr() as usize).unwrap();
        assert_eq!(from[5], 99);
        // What lies close behind its source goes by way of other memory, in parts, where that is slow.
        memcopy::assume_slow(true);
        let mut far = vec![0u8; from.len() + memcopy::PAGE];
        let behind = |place: usize, like: usize| place + (like + 16).wrapping_sub(place) % memcopy::PAGE;
        let read = Span { addr: behind(far.as_mut_ptr() as usize, from.as_ptr() as usize), len: from.len() };
        transfer(Direction::Read, pid, 0, read, from.as_ptr() as usize).unwrap();
        let start = read.addr - far.as_ptr() as usize;
        assert_eq!(far[start..start + from.len()], from);
        far.fill(0);
        let written = behind(far.as_mut_ptr() as usize, local.addr);
        transfer(Direction::Write, pid, 0, local, written).unwrap();
        let start = written - far.as_ptr() as usize;
        assert_eq!(far[start..start + to.len()], to);
        // Where a copy stops, it says whose address it was: the peer's, then the own.
        let good = local.addr;
        let bad = Span { addr: 1, len: 10 };
        for way in [Direction::Read, Direction::Write] {
            let fault = |local| Err(Fault::BadAddress { local });
            assert_eq!(transfer(way, pid, 7, local, 1), fault(false));
            assert_eq!(transfer(way, pid, 7, bad, good), fault(true));
            // By way of other memory, too.
            let no_page = 16 * memcopy::PAGE;
            let behind = |place: usize, like: usize| place + (like + 16).wrapping_sub(place) % memcopy::PAGE;
            let (mine, theirs) = match way {
                Direction::Read => (behind(no_page, good), good),
                Direction::Write => (no_page, behind(good, no_page)),
            };
            assert_eq!(transfer(way, pid, 7, Span { addr: mine, len: 5000 }, theirs), fault(true));
        }
    }

    /// What can be read of several pieces is there up to the first that cannot, or is to go another way.
    #[test]
    fn several_pieces_are_read_up_to_the_first_that_is_not_there() {
        const PAGE: usize = memcopy::PAGE;
        let from: Vec<u8> = (0..60_000u32).map(|i| (i % 251) as u8).collect();
        let (pid, start) = (std::process::id() as i32, from.as_ptr() as usize);
        // Pieces one behind the other, into a place so many bytes further behind a page than where they come from.
        let read = |lens: &[usize], bad: usize, further: usize| {
            let mut room = vec![0u8; from.len() + PAGE];
            let skipped = (start + further).wrapping_sub(room.as_ptr() as usize) % PAGE;
            let to = &mut room[skipped..][..from.len()];
            let mut at = 0;
            let piece = |(i, len): (usize, &usize)| {
                let local = Span { addr: to.as_mut_ptr() as usize + at, len: *len };
                at += len;
                (local, if i == bad { 1 } else { start + at - len })
            };
            let pieces: Vec<(Span, usize)> = lens.iter().enumerate().map(piece).collect();
            let count = read_many(pid, &pieces);
            let bytes = lens[..count].iter().sum();
            (count, to[..bytes] == from[..bytes])
        };
        let none = usize::MAX;
        if read(&[8], none, 0).0 == 0 {
            return require::missing("single-copy", &"process_vm_readv is not permitted");
        }
        memcopy::assume_slow(true);
        assert_eq!(read(&[1000, 1, 20_000, 8192], none, 0), (4, true));
        for bad in 0..4 {
            assert_eq!(read(&[5000, 1, 20_000, 8192], bad, 0), (bad, true));
        }
        assert_eq!(read(&[100; 40], none, 0), (READ_MANY, true));
        assert_eq!(read(&[], none, 0), (0, true));
        // To what lies close behind its source the kernel takes long, but for what is short.
        assert_eq!(read(&[8, 20_000, 8], none, 16), (1, true));
    }
}
