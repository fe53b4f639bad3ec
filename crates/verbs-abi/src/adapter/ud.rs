//! Unreliable datagrams (UD): a port of a queue pair's own.
//!
//! In front of a message stand eight bytes: immediate data (4), and whether there are any (4). What a datagram is
//! known by is the number of the queue pair it is for and its key.

use super::constants::*;
use super::number;
use super::queues::{Buffer, Ended, Receives};
use fabric::Local;
use rnic::driver::{Talk, memory};
use rnic::stack::ud::{Handle, QueuePair};
use rnic::stack::{Arrived, Atomic, Place, Receive, Regions, Sink};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use wire::datagram::{self, Head};

/// What stands in front of a message.
const PREFIX: usize = 8;
/// What stands in front of the data in a receive buffer: a global routing header.
pub const GRH: usize = 40;

/// How long what has come waits in the socket while no receive buffer is posted. An adapter would drop it at once; but there the
/// program that posts them does not share its core with the adapter.
const BARE_NS: u64 = 100_000_000;
/// How long a message waits for room in the socket: it sends as fast as the link takes, if it sends at all.
const ROOM: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A queue pair's socket, and what it has heard of.
#[derive(Debug)]
pub struct Ud {
    /// Its port.
    pub talk: Talk,
    /// Its address.
    at: IpAddr,
    pair: QueuePair,
    handles: BTreeMap<(SocketAddr, u32), Handle>,
    /// [`rnic::stack::ud::MESSAGES`] at most.
    filling: Vec<Filling>,
    next: u64,
    /// Since when there has been no receive buffer.
    bare_since_ns: Option<u64>,
    datagram_max: usize,
    /// Longest message: the port's MTU.
    pub message_max: usize,
}

/// What datagrams for this queue pair are known by.
pub fn name(number: u32, key: u32) -> u64 {
    u64::from(key) << 32 | u64::from(number)
}

/// A buffer that a message is filling.
#[derive(Debug)]
struct Filling {
    id: u64,
    buffer: Buffer,
    /// What stands in front of the message.
    prefix: [u8; PREFIX],
}

/// Takes out the buffer of a message.
fn take(filling: &mut Vec<Filling>, id: u64) -> Option<Filling> {
    filling.iter().position(|one| one.id == id).map(|at| filling.swap_remove(at))
}

struct Coming<'a> {
    receives: &'a mut Receives,
    filling: &'a mut Vec<Filling>,
    next: &'a mut u64,
    /// A buffer that may not be filled, by its program's name of it.
    denied: &'a mut Option<u64>,
}

impl Sink for Coming<'_> {
    fn receive(&mut self, _msn: u32) -> Receive {
        let buffer = match self.receives.take() {
            None => return Receive::None,
            Some(Err(denied)) => {
                *self.denied = Some(denied.id);
                return Receive::None;
            }
            Some(Ok(buffer)) => buffer,
        };
        let id = *self.next;
        *self.next += 1;
        let len = (buffer.room() + PREFIX).saturating_sub(GRH);
        self.filling.push(Filling { id, buffer, prefix: [0; PREFIX] });
        Receive::Buffer { id, len }
    }

    fn place(&mut self, place: Place, bytes: &[u8]) {
        let Place::Buffer { id, offset } = place else { return };
        let Some(filling) = self.filling.iter_mut().find(|one| one.id == id) else { return };
        let offset = offset as usize;
        let head = PREFIX.saturating_sub(offset).min(bytes.len());
        if head > 0 {
            filling.prefix[offset..offset + head].copy_from_slice(&bytes[..head]);
        }
        filling.buffer.fill(GRH + (offset + head).saturating_sub(PREFIX), &bytes[head..]);
    }

    fn arrived(&mut self, _arrived: Arrived) {}

    fn atomic(&mut self, _stag: u32, _to: u64, _atomic: &Atomic) -> u64 {
        0
    }
}

impl Ud {
    /// At this socket, which has this address and whose port the number names.
    pub fn new(
        socket: UdpSocket,
        at: IpAddr,
        number: u32,
        domain: u32,
        datagram_max: usize,
        message_max: usize,
    ) -> Ud {
        let pair = QueuePair::new(number, domain);
        Ud {
            talk: Talk::new(socket),
            at,
            pair,
            handles: BTreeMap::new(),
            filling: Vec::new(),
            next: 0,
            bare_since_ns: None,
            datagram_max,
            message_max,
        }
    }

    /// Sends a message, by datagrams that are put together in `out`; it is complete then, whatever becomes of it.
    pub fn send(
        &mut self,
        to: (IpAddr, u32, u32),
        parts: &[Local],
        immediate: Option<u32>,
        is_solicited: bool,
        out: &mut Vec<u8>,
    ) {
        let (at, there, key) = to;
        let address = SocketAddr::new(at, number::port(there));
        let mut prefix = [0; PREFIX];
        prefix[..4].copy_from_slice(&immediate.unwrap_or(0).to_ne_bytes());
        prefix[4..].copy_from_slice(&u32::from(immediate.is_some()).to_be_bytes());
        let message = std::iter::once(&prefix[..]).chain(parts.iter().map(|part| memory::bytes(part.span)));
        let datagram_max = self.datagram_max;
        let handle = self
            .handles
            .entry((address, there))
            .or_insert_with(|| Handle::new(name(there, key), datagram_max));
        handle.id = name(there, key);
        self.pair.send(handle, message, is_solicited, |append| {
            out.clear();
            append(out);
            send_to(&mut self.talk, out, address);
        });
    }

    /// Whether what has come is to wait for a receive buffer.
    fn is_held(&mut self, receives: &Receives, clock: impl Fn() -> u64) -> bool {
        if !receives.free.is_empty() {
            self.bare_since_ns = None;
            return false;
        }
        let now_ns = clock();
        now_ns - *self.bare_since_ns.get_or_insert(now_ns) < BARE_NS
    }

    /// Takes in what has come under this name, up to a message; that, with whether its sender asks for an event, and whether
    /// anything had come. See [`Talk::receive`] on `asks_all`.
    pub fn receive(
        &mut self,
        own: u64,
        receives: &mut Receives,
        regions: &Regions,
        clock: impl Fn() -> u64,
        (room, asks_all): (&mut [u8], bool),
    ) -> (Option<(Ended, bool)>, bool) {
        let (mut message, mut moved, mut denied) = (None, false, None);
        if self.is_held(receives, &clock) {
            return (None, false);
        }
        let mut answer = Vec::new();
        while let Ok((len, from)) = self.talk.receive(&mut *room, asks_all) {
            let from = from.ip();
            moved = true;
            let bytes = &room[..len];
            if Head::claims(bytes).is_none_or(|claims| claims.1 != own) {
                continue;
            }
            let Ok((head, content)) = Head::decode(bytes) else { continue };
            if head.kind != datagram::DatagramType::Unreliable {
                continue;
            }
            let (filling, next) = (&mut self.filling, &mut self.next);
            let mut sink = Coming { receives, filling, next, denied: &mut denied };
            let back = Handle::new(0, self.datagram_max);
            answer.clear();
            let received = self.pair.receive(clock(), &head, content, regions, &mut sink, &back, &mut answer);
            while let Some(id) = self.pair.returned() {
                // It was the next one, and is again.
                if let Some(filling) = take(&mut self.filling, id) {
                    receives.free.push_front(filling.buffer);
                }
            }
            if let Ok(Some(received)) = received
                && let Some(Filling { buffer, prefix, .. }) = take(&mut self.filling, received.arrived.id)
            {
                buffer.fill(0, &routing_header(from, self.at, received.arrived.len));
                message = Some((ended(&buffer, &received, prefix, own as u32), received.arrived.solicited));
                break;
            }
            if let Some(id) = denied {
                message = Some((Ended::denied(id, own as u32), true));
                break;
            }
        }
        (message, moved)
    }
}

/// Sends a datagram. A link that is slower than the program holds it back, as the send queue of an adapter does; what the socket
/// does not take otherwise is lost, as on the way.
fn send_to(talk: &mut Talk, bytes: &[u8], address: SocketAddr) {
    while talk.send(bytes, address) == Err(Errno::AGAIN) {
        let has_room = poll(&mut [PollFd::new(&talk.way_to(address), PollFlags::OUT)], Some(&ROOM));
        if has_room.is_ok_and(|ready| ready == 0) {
            return;
        }
    }
}

fn ended(buffer: &Buffer, received: &rnic::stack::ud::Received, prefix: [u8; PREFIX], number: u32) -> Ended {
    let has_immediate = prefix[PREFIX - 1] != 0;
    let immediate = u32::from_ne_bytes(prefix[..4].try_into().expect("four bytes"));
    let len = (received.arrived.len as usize).saturating_sub(PREFIX) + GRH;
    Ended {
        id: buffer.id,
        status: WC_SUCCESS,
        opcode: OP_RECEIVE,
        len: len as u32,
        immediate,
        number,
        source: received.from,
        flags: FLAG_GRH | if has_immediate { FLAG_IMMEDIATE } else { 0 },
    }
}

/// A global routing header (`struct ibv_grh`) that says who sent a datagram.
fn routing_header(from: IpAddr, to: IpAddr, len: u32) -> [u8; GRH] {
    let mut out = [0; GRH];
    out[0] = 6 << 4;
    out[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    (out[6], out[7]) = (27, 64);
    out[8..24].copy_from_slice(&number::gid(from));
    out[24..].copy_from_slice(&number::gid(to));
    out
}

#[cfg(test)]
mod tests {
    use super::super::Adapter;
    use super::*;
    use fabric::Span;
    use smallvec::smallvec;

    const KEY: u32 = 7;

    /// A queue pair's end on the loopback, and its number.
    fn end() -> (Ud, u32) {
        let at = IpAddr::from([127, 0, 0, 1]);
        let (socket, number) = Adapter::new().unwrap().number_for_datagrams(at).unwrap();
        (Ud::new(socket, at, number, 0, 1400, 4096), number)
    }

    /// Buffers of a program, one for each message.
    fn posted(memory: &mut [[u8; 128]]) -> Receives {
        let span = |bytes: &mut [u8; 128]| Span { addr: bytes.as_mut_ptr() as usize, len: bytes.len() };
        let buffers =
            memory.iter_mut().map(|bytes| Buffer { pieces: smallvec![span(bytes)], ..Buffer::default() });
        Receives { free: buffers.collect(), ..Receives::default() }
    }

    /// Messages that come now.
    fn taken(ud: &mut Ud, number: u32, receives: &mut Receives, now_ns: u64) -> usize {
        let (regions, mut room) = (Regions::new(), [0; 2048]);
        let mut next = || ud.receive(name(number, KEY), receives, &regions, || now_ns, (&mut room, true)).0;
        std::iter::from_fn(&mut next).count()
    }

    fn send(from: &mut Ud, to: u32, count: usize) {
        let payload = [1u8; 64];
        let span = Span { addr: payload.as_ptr() as usize, len: payload.len() };
        let part = Local { span, key: 0 };
        let mut out = Vec::new();
        (0..count).for_each(|_| from.send(([127, 0, 0, 1].into(), to, KEY), &[part], None, false, &mut out));
    }

    /// As `ib_send_bw -c UD` has it: the receiver gets a turn when all has been sent.
    #[test]
    fn a_burst_waits_for_its_receiver() {
        let ((mut from, _), (mut to, number)) = (end(), end());
        let mut memory = [[0; 128]; 500];
        send(&mut from, number, memory.len());
        assert_eq!(taken(&mut to, number, &mut posted(&mut memory), 0), 500);
    }

    #[test]
    fn what_finds_no_receive_buffer_waits_for_a_moment_and_is_dropped_then() {
        let ((mut from, _), (mut to, number)) = (end(), end());
        let (mut memory, mut none) = ([[0; 128]; 4], Receives::default());
        send(&mut from, number, 3);
        assert_eq!(taken(&mut to, number, &mut none, 5), 0);
        assert_eq!(taken(&mut to, number, &mut none, 4 + BARE_NS), 0);
        assert_eq!(taken(&mut to, number, &mut posted(&mut memory), 4 + BARE_NS), 3);
        send(&mut from, number, 3);
        assert_eq!(taken(&mut to, number, &mut none, BARE_NS), 0);
        assert_eq!(taken(&mut to, number, &mut none, 2 * BARE_NS), 0);
        assert_eq!(taken(&mut to, number, &mut posted(&mut memory), 2 * BARE_NS), 0);
    }
}
