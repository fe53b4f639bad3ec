//! How much of what a connection is given may wait in the kernel.
//!
//! What is written lies in the kernel's memory until it is acknowledged. Left to itself the kernel takes megabytes, the more the longer a
//! program writes without a pause, and copies the end of a long message to memory that is in no cache any more, and that who receives it fetches from
//! there again: over a link that needs little under way that is all loss, with BBR above all
//! (`docs/results/hosts.md`, «How much waits in the kernel»). What a link needs is its rate times its shortest round trip, both as the kernel measures them
//! (`TCP_INFO`). Where so much and the same again does not fit any more, twice as much may wait, and beyond [`MOST`] as much as the kernel likes.

use super::options;
use rustix::net::sockopt;
use std::net::TcpStream;

/// Bytes to begin with. The kernel allows twice as much, for what it keeps of its own beside them.
const LEAST: usize = 128 << 10;
/// From here on the kernel is left to itself: it may take more than programs may ask for (`net.core.wmem_max`).
const MOST: usize = 1 << 20;

/// Of one connection.
#[derive(Debug)]
pub struct Backlog {
    /// Bytes that may wait; 0: what the kernel likes.
    limit: usize,
    /// Bytes that the socket has taken since it was last asked what the link needs.
    taken: usize,
}

impl Backlog {
    /// Of a connection that has carried nothing.
    pub fn new(socket: &TcpStream) -> Backlog {
        let mut backlog = Backlog { limit: 0, taken: 0 };
        backlog.limit_to(socket, LEAST);
        backlog
    }

    /// The socket has taken so many bytes.
    #[inline]
    pub fn took(&mut self, bytes: usize) {
        self.taken += bytes;
    }

    /// The socket takes no more for now: on a way that needs more under way it gets it.
    pub fn full(&mut self, socket: &TcpStream) {
        if self.limit == 0 || self.taken < self.limit {
            return;
        }
        self.taken = 0;
        if let Some(bytes) = under_way(socket) {
            self.needs(socket, bytes);
        }
    }

    /// The link needs so many bytes under way.
    fn needs(&mut self, socket: &TcpStream, bytes: usize) {
        if bytes > self.limit {
            self.limit_to(socket, bytes.next_power_of_two());
        }
    }

    /// While it is wide all that is written may wait, as far as programs may ask for that; what waits stays.
    pub fn widen(&self, socket: &TcpStream, is_wide: bool) {
        if self.limit != 0 {
            let bytes = if is_wide { 2 * MOST } else { self.limit };
            let _ = sockopt::set_socket_send_buffer_size(socket, bytes);
        }
    }

    fn limit_to(&mut self, socket: &TcpStream, bytes: usize) {
        if bytes <= MOST && allow(socket, bytes) {
            self.limit = bytes;
            return;
        }
        self.limit = 0;
        // Where the kernel cannot be given it back it is as wide as a program may have it.
        if !options::let_buffers_grow(socket) {
            let _ = sockopt::set_socket_send_buffer_size(socket, i32::MAX as usize / 2);
        }
    }
}

/// So many bytes may wait. False if the kernel allows no program so many, and takes fewer.
fn allow(socket: &TcpStream, bytes: usize) -> bool {
    let asked = sockopt::set_socket_send_buffer_size(socket, bytes);
    asked.is_ok() && sockopt::socket_send_buffer_size(socket).is_ok_and(|allowed| allowed >= 2 * bytes)
}

/// Bytes that are under way on a link that is as fast as what has arrived, and has no queue; none where the kernel does not say.
fn under_way(socket: &TcpStream) -> Option<usize> {
    let (min_rtt_us, rate) = options::way(socket)?;
    Some((rate as f64 * 1e-6 * f64::from(min_rtt_us)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Two ends of a connection over which so many bytes have come.
    fn after(bytes: usize) -> (TcpStream, TcpStream) {
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(door.local_addr().unwrap()).unwrap();
        let (mut other, _) = door.accept().unwrap();
        let written = std::thread::spawn(move || one.write_all(&vec![1; bytes]).map(|()| one));
        other.read_exact(&mut vec![0; bytes]).unwrap();
        (written.join().unwrap().unwrap(), other)
    }

    fn allowed(socket: &TcpStream) -> usize {
        sockopt::socket_send_buffer_size(socket).unwrap()
    }

    #[test]
    fn it_begins_with_little_and_asks_once_that_much_was_taken() {
        let (socket, _other) = after(1 << 20);
        let mut backlog = Backlog::new(&socket);
        assert_eq!(allowed(&socket), 2 * LEAST);
        backlog.took(LEAST - 1);
        backlog.full(&socket);
        assert_eq!((backlog.limit, backlog.taken), (LEAST, LEAST - 1));
        backlog.took(1);
        backlog.full(&socket);
        assert_eq!(backlog.taken, 0);
    }

    #[test]
    fn it_is_wide_for_a_while() {
        let (socket, _other) = after(1000);
        let backlog = Backlog::new(&socket);
        backlog.widen(&socket, true);
        assert!(allowed(&socket) > 2 * LEAST, "programs may ask for more than {LEAST}");
        backlog.widen(&socket, false);
        assert_eq!(allowed(&socket), 2 * LEAST);
    }

    #[test]
    fn a_link_that_needs_more_gets_it() {
        let (socket, _other) = after(1 << 20);
        let needs = under_way(&socket).expect("the kernel tells of both");
        assert!(needs > 0, "a megabyte has arrived");
        let mut backlog = Backlog { limit: 1, taken: 1 };
        sockopt::set_socket_send_buffer_size(&socket, 1).unwrap();
        let least = allowed(&socket);
        backlog.full(&socket);
        assert!(
            backlog.limit >= needs && backlog.limit.is_power_of_two() || backlog.limit == 0,
            "{backlog:?}"
        );
        assert!(allowed(&socket) >= least);
        assert!(allowed(&socket) >= 2 * backlog.limit);
    }

    /// Beyond the longest the kernel has both buffers again, or the socket as much as a program may ask for.
    #[test]
    fn a_long_way_is_left_to_the_kernel() {
        let (socket, _other) = after(1000);
        let mut backlog = Backlog::new(&socket);
        backlog.needs(&socket, 3 * MOST);
        assert_eq!(backlog.limit, 0);
        assert!(options::let_buffers_grow(&socket) || allowed(&socket) > 2 * LEAST);
        backlog.took(10 * MOST);
        backlog.full(&socket);
        assert_eq!(backlog.limit, 0, "it is not asked again");
        let before = allowed(&socket);
        backlog.widen(&socket, true);
        assert_eq!(allowed(&socket), before, "nor set again");
    }
}
