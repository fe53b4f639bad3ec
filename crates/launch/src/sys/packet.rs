//! A pair of sockets that keeps packets apart and knows who sent them.
use super::check;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A connected pair; neither end is inherited by programs that this one starts. The first end is told
/// by the kernel which process sent a packet, and does not wait.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: `ends` is writable for two descriptors.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    // SAFETY: both descriptors are new and owned by nobody else.
    let ends = unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) };
    super::set_nonblocking(std::os::fd::AsFd::as_fd(&ends.0))?;
    let yes: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PASSCRED);
    // SAFETY: `yes` is readable for the size given.
    check(unsafe { libc::setsockopt(ends.0.as_raw_fd(), level, name, (&raw const yes).cast(), size) })?;
    Ok(ends)
}

/// A packet that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Its length; 0 says that the other side has closed.
    pub len: usize,
    /// The process that sent it, by its number in the namespace of this one; `None` if it has none
    /// there.
    pub sender: Option<i32>,
}

/// Control data with the alignment that the kernel asks for.
#[repr(C, align(8))]
struct Room([u8; 64]);

/// Takes one packet; what is longer than `buffer` is cut.
pub fn receive(socket: BorrowedFd, buffer: &mut [u8]) -> io::Result<Packet> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut room = Room([0; 64]);
    // SAFETY: all-zero is a valid header without name, parts and control data.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut part, 1);
    (header.msg_control, header.msg_controllen) = ((&raw mut room).cast(), size_of::<Room>());
    // SAFETY: the header names a buffer and room for control data, both writable for their lengths.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) };
    let len = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    Ok(Packet { len, sender: sender(&header).filter(|pid| *pid > 0) })
}

fn sender(header: &libc::msghdr) -> Option<i32> {
    // SAFETY: recvmsg has filled the header's control data and set its length.
    let first = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: not null, so it points to the first entry in the control data.
    let entry = unsafe { first.as_ref() }?;
    let is_ours = entry.cmsg_level == libc::SOL_SOCKET && entry.cmsg_type == libc::SCM_CREDENTIALS;
    // SAFETY: an entry of this type holds the sender's credentials; they may lie unaligned.
    is_ours.then(|| unsafe { libc::CMSG_DATA(first).cast::<libc::ucred>().read_unaligned() }.pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn packets_stay_apart_and_name_their_sender() {
        let (ours, theirs) = pair().unwrap();
        for text in ["one", "two"] {
            assert_eq!(super::super::send(theirs.as_fd(), text.as_bytes()).unwrap(), 3);
        }
        let own = Some(std::process::id() as i32);
        let mut buffer = [0u8; 8];
        for text in ["one", "two"] {
            let packet = receive(ours.as_fd(), &mut buffer).unwrap();
            assert_eq!((packet.sender, &buffer[..packet.len]), (own, text.as_bytes()));
        }
        let nothing = receive(ours.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        drop(theirs);
        assert_eq!(receive(ours.as_fd(), &mut buffer).unwrap().len, 0);
    }
}
