//! Datagrams that leave together: several to one peer by one system call, which the kernel cuts apart (GSO).
//!
//! What it cuts has one length. So one that is a little shorter than those before it is filled up with zeros ([`wire::datagram::padding`]), and more may
//! follow it. Where the kernel cannot cut each leaves by a call of its own.

use super::talk::Talk;
use rustix::io::Errno;
use std::net::SocketAddr;

/// Datagrams that one call takes (`UDP_MAX_SEGMENTS` of the kernels that have it), and bytes.
const MANY: usize = 64;
const BYTES: usize = 65_000;
/// What a datagram may be filled up with: such a part of its length.
const FILLED: usize = 16;

/// See the [module](self).
pub struct Outbox {
    bytes: Vec<u8>,
    to: Option<SocketAddr>,
    /// Length of all but the last, which is not longer; how many there are.
    each: usize,
    count: usize,
    /// The last one is shorter: none may follow.
    is_closed: bool,
    /// Length at which the socket cuts.
    cuts_at: usize,
    /// Whether the kernel cuts.
    can_cut: bool,
}

impl Outbox {
    /// For this port, where nobody else sends.
    pub fn new(talk: &mut Talk) -> Outbox {
        Outbox {
            bytes: Vec::new(),
            to: None,
            each: 0,
            count: 0,
            is_closed: false,
            cuts_at: 0,
            can_cut: talk.cut(0),
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the datagram that `write` appends, if it does; what it does not fit together with leaves before.
    pub fn add(&mut self, talk: &mut Talk, to: SocketAddr, write: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        if self.to != Some(to) || self.is_closed || self.count >= MANY {
            self.send(talk);
        }
        let before = self.bytes.len();
        if !write(&mut self.bytes) {
            return false;
        }
        let len = self.bytes.len() - before;
        if self.count > 0 && (len > self.each || self.bytes.len() > BYTES) {
            self.send_first(talk, before);
        }
        if self.count == 0 {
            (self.to, self.each) = (Some(to), len);
        }
        self.count += 1;
        self.is_closed = len < self.each;
        let filled = before + self.each;
        if self.is_closed && self.can_cut && self.each - len <= self.each / FILLED && filled <= BYTES {
            self.bytes.resize(filled, 0);
            self.is_closed = false;
        }
        true
    }

    /// All leave. What the socket does not take is lost as on the way.
    pub fn send(&mut self, talk: &mut Talk) {
        let all = self.bytes.len();
        self.send_first(talk, all);
    }

    fn send_first(&mut self, talk: &mut Talk, len: usize) {
        if let Some(to) = self.to
            && self.count > 0
            && !(self.can_cut && self.send_together(talk, to, len))
        {
            for one in self.bytes[..len].chunks(self.each) {
                let _ = talk.send(one, to);
            }
        }
        self.bytes.drain(..len);
        (self.count, self.is_closed) = (0, false);
    }

    /// Whether they have left by one call, or are lost by it.
    fn send_together(&mut self, talk: &mut Talk, to: SocketAddr, len: usize) -> bool {
        let cuts_wrongly = if self.count > 1 {
            self.cuts_at != self.each
        } else {
            self.cuts_at > 0 && self.each > self.cuts_at
        };
        if cuts_wrongly {
            if !talk.cut(self.each) {
                return self.cannot(talk);
            }
            self.cuts_at = self.each;
        }
        let Err(error) = talk.send(&self.bytes[..len], to) else { return true };
        match error {
            // The device has no checksums to leave to it.
            Errno::IO | Errno::OPNOTSUPP => self.cannot(talk),
            // The way takes shorter ones only; pieces of pieces are for datagrams that leave alone.
            Errno::INVAL | Errno::MSGSIZE => {
                (self.cuts_at, self.can_cut) = (0, talk.cut(0));
                false
            }
            _ => true,
        }
    }

    #[cold]
    fn cannot(&mut self, talk: &mut Talk) -> bool {
        talk.cut(0);
        (self.cuts_at, self.can_cut) = (0, false);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::options;
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    fn sockets() -> [UdpSocket; 2] {
        [0, 1].map(|_| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            socket
        })
    }

    /// Lengths as a stream of messages has them: equal, shorter, by little or by much, longer, for two peers, more than one call takes.
    #[test]
    fn datagrams_come_as_they_were_added_whether_the_kernel_cuts_or_not() {
        for can_cut in [true, false] {
            let [out, first] = sockets();
            let mut out = Talk::new(out);
            let [second, _] = sockets();
            let mut outbox = Outbox::new(&mut out);
            outbox.can_cut &= can_cut;
            let lens = (0..150)
                .map(|at| [72, 72, 70, 40, 1400, 1400, 1390, 9000, 72, 30_000, 30_000, 30_000][at % 12]);
            let mut expected: [Vec<Vec<u8>>; 2] = Default::default();
            for (at, len) in lens.enumerate() {
                let to = usize::from(at % 50 > 40);
                let datagram = vec![at as u8; len];
                expected[to].push(datagram.clone());
                let peer = [&first, &second][to].local_addr().unwrap();
                assert!(outbox.add(&mut out, peer, |bytes| {
                    bytes.extend_from_slice(&datagram);
                    true
                }));
                let ([socket], [left]) = ([[&first, &second][to]], [&mut expected[to]]);
                if at % 3 == 0 {
                    outbox.send(&mut out);
                    take(socket, left);
                }
            }
            outbox.send(&mut out);
            assert!(outbox.is_empty() && !outbox.add(&mut out, first.local_addr().unwrap(), |_| false));
            take(&first, &mut expected[0]);
            take(&second, &mut expected[1]);
        }
    }

    fn take(socket: &UdpSocket, expected: &mut Vec<Vec<u8>>) {
        let mut room = vec![0; 1 << 16];
        for datagram in expected.drain(..) {
            let (got, _) = socket.recv_from(&mut room).expect("it comes");
            let (all, padding) = room[..got].split_at(datagram.len());
            assert_eq!((all, padding.len() <= all.len() / FILLED), (&datagram[..], true), "{got}");
            assert_eq!(wire::datagram::padding(padding), padding.len());
        }
    }

    #[test]
    fn datagrams_that_left_together_may_come_together() {
        let [out, socket] = sockets();
        let mut out = Talk::new(out);
        if !options::join(&socket) || !out.cut(0) {
            return; // a kernel older than 5.0
        }
        let mut outbox = Outbox::new(&mut out);
        for at in 0..40u8 {
            outbox.add(&mut out, socket.local_addr().unwrap(), |bytes| {
                bytes.extend_from_slice(&[at; 100]);
                true
            });
        }
        outbox.send(&mut out);
        let (mut room, mut all) = (vec![0; 1 << 16], Vec::new());
        while all.len() < 4000 {
            let (got, _) = socket.recv_from(&mut room).expect("they come");
            all.extend_from_slice(&room[..got]);
        }
        assert!((0..40u8).flat_map(|at| [at; 100]).eq(all));
    }
}
