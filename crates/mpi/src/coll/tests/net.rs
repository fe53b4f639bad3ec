//! All ranks of a job in one process: messages wait, and meet in random order.
use std::collections::{HashMap, VecDeque};

use super::super::schedule::{Data, Io, OpId, Progress, Schedule, UserReduce};
use super::super::tag::Tag;
use crate::error::{Error, Result};
use crate::mem;
use fabric::{PIECE_STEP, Span};

/// A small generator with good low bits (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn mix(a: u64, b: u64) -> u64 {
        Random(a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b).next()
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// One side of a message, by addresses: rank memory outlives the run.
#[derive(Clone, Debug)]
enum Side {
    Bytes {
        addr: usize,
        len: u64,
    },
    Typed {
        addr: usize,
        count: u64,
        ty: super::Type,
    },
    /// Already taken from the sender's buffer.
    Copied(Vec<u8>),
    /// To be read where it lies.
    Lies,
}

impl Side {
    fn of(data: Data<'_>) -> Side {
        match data {
            Data::Bytes { addr, len } => Side::Bytes { addr, len },
            Data::Typed { addr, count, ty } => Side::Typed { addr, count, ty: ty.clone() },
        }
    }

    fn read(&self) -> Vec<u8> {
        match self {
            Side::Bytes { addr, len } => mem::with(*addr, *len as usize, <[u8]>::to_vec),
            Side::Typed { addr, count, ty } => {
                let mut out = vec![0; (count * ty.size) as usize];
                ty.datatype().pack(*addr, *count, 0, &mut out);
                out
            }
            Side::Copied(bytes) => bytes.clone(),
            Side::Lies => unreachable!("only receives lie"),
        }
    }

    fn write(&self, bytes: &[u8]) {
        match self {
            Side::Bytes { addr, len } => mem::write(*addr, &bytes[..bytes.len().min(*len as usize)]),
            Side::Typed { addr, count, ty } => {
                ty.datatype().unpack(*addr, *count, 0, bytes);
            }
            Side::Copied(_) | Side::Lies => unreachable!("receives are not copied"),
        }
    }
}

struct Posted {
    tag: Tag,
    op: usize,
    side: Side,
}

#[derive(Default)]
struct Channel {
    sends: VecDeque<Posted>,
    recvs: VecDeque<Posted>,
}

/// A message that is read where it lies.
struct Lying {
    bytes: Vec<u8>,
    /// How many of these have been read.
    done: usize,
    /// The receive's buffer, of which the call that started it says no more than this.
    landing: Side,
}

struct Net {
    size: usize,
    lying: HashMap<usize, Lying>,
    /// How many pieces of these have been read.
    pieces: usize,

    channels: Vec<Channel>,
    done: Vec<Option<Result<u64>>>,
    random: Random,
}

struct Port<'a> {
    net: &'a mut Net,
    rank: usize,
}

impl Net {
    fn new_op(&mut self) -> usize {
        self.done.push(None);
        self.done.len() - 1
    }

    /// Delivers one message of a random pair of ranks; whether there was one.
    fn deliver(&mut self) -> bool {
        let start = self.random.below(self.channels.len());
        for i in 0..self.channels.len() {
            let index = (start + i) % self.channels.len();
            let channel = &mut self.channels[index];
            let meet = |recv: &Posted| channel.sends.iter().position(|send| send.tag == recv.tag);
            let found = channel.recvs.iter().enumerate().find_map(|(r, recv)| meet(recv).map(|s| (r, s)));
            if let Some((r, s)) = found {
                let (recv, send) = (channel.recvs.remove(r).unwrap(), channel.sends.remove(s).unwrap());
                let bytes = send.side.read();
                self.done[recv.op] = Some(Ok(bytes.len() as u64));
                match recv.side {
                    Side::Lies => self.lying.get_mut(&recv.op).expect("it was posted").bytes = bytes,
                    side => side.write(&bytes),
                }
                self.done[send.op] = Some(Ok(0));
                return true;
            }
        }
        false
    }
}

impl Io for Port<'_> {
    fn isend(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        assert_ne!(peer, self.rank, "a message to itself");
        let op = self.net.new_op();
        let mut side = Side::of(data);
        let eager = self.net.random.below(2) == 0;
        if eager {
            side = Side::Copied(side.read());
        }
        self.net.channels[self.rank * self.net.size + peer].sends.push_back(Posted { tag, op, side });
        Ok(if eager { OpId::DONE } else { OpId(op as u64) })
    }

    fn send_all(&mut self, peers: &[usize], tag: Tag, data: Data<'_>) -> usize {
        assert!(peers.len() > 1, "one is sent to by isend");
        let left = self.net.random.below(peers.len() + 1);
        let bytes = Side::of(data).read();
        for &peer in &peers[..left] {
            assert_ne!(peer, self.rank, "a message to itself");
            let posted = Posted { tag, op: self.net.new_op(), side: Side::Copied(bytes.clone()) };
            self.net.channels[self.rank * self.net.size + peer].sends.push_back(posted);
        }
        left
    }

    fn irecv(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        assert_ne!(peer, self.rank, "a message from itself");
        let op = self.net.new_op();
        let side = Side::of(data);
        self.net.channels[peer * self.net.size + self.rank].recvs.push_back(Posted { tag, op, side });
        Ok(OpId(op as u64))
    }

    fn irecv_combined(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        if self.net.random.below(4) == 0 {
            return self.irecv(peer, tag, data);
        }
        let op = self.net.new_op();
        self.net.lying.insert(op, Lying { bytes: Vec::new(), done: 0, landing: Side::of(data) });
        let posted = Posted { tag, op, side: Side::Lies };
        self.net.channels[peer * self.net.size + self.rank].recvs.push_back(posted);
        Ok(OpId(op as u64))
    }

    /// Piece by piece, if it does not land.
    fn poll_combined(&mut self, op: OpId, each: &mut dyn FnMut(usize, Span)) -> Option<(Result<u64>, bool)> {
        let result = self.net.done[op.0 as usize].clone()?;
        let Some(lying) = self.net.lying.get_mut(&(op.0 as usize)) else { return Some((result, false)) };
        let len = lying.bytes.len();
        if lying.done == 0 && self.net.random.below(4) == 0 {
            lying.landing.write(&lying.bytes);
            return Some((result, false));
        }
        let data = Span { addr: lying.bytes.as_ptr() as usize, len };
        let piece = data.part(lying.done, PIECE_STEP * (1 + self.net.random.below(3)));
        each(lying.done, piece);
        lying.done += piece.len;
        self.net.pieces += 1;
        (lying.done == len).then_some((result, true))
    }

    fn poll(&mut self, op: OpId) -> Option<Result<u64>> {
        assert!(!self.net.lying.contains_key(&(op.0 as usize)), "what may lie is polled otherwise");
        self.net.done[op.0 as usize].clone()
    }

    fn unclaimed(&mut self, peer: usize) -> Option<Tag> {
        let channel = &self.net.channels[peer * self.net.size + self.rank];
        channel
            .sends
            .iter()
            .map(|send| send.tag)
            .find(|tag| channel.recvs.iter().all(|recv| recv.tag != *tag))
    }
}

fn new_net(size: usize, seed: u64) -> Net {
    let channels = std::iter::repeat_with(Channel::default).take(size * size).collect();
    Net { size, channels, lying: HashMap::new(), pieces: 0, done: Vec::new(), random: Random(seed) }
}

/// Runs the schedules of all ranks, of one or more collectives at once, to the end.
pub fn run(jobs: &mut [Vec<Schedule>], seed: u64, user: &mut dyn FnMut(UserReduce)) {
    let size = jobs[0].len();
    let mut net = new_net(size, seed);
    let mut open: Vec<(usize, usize)> =
        (0..jobs.len()).flat_map(|j| (0..size).map(move |r| (j, r))).collect();
    while !open.is_empty() {
        let at = net.random.below(open.len());
        let (job, rank) = open[at];
        let progress = jobs[job][rank].advance(&mut Port { net: &mut net, rank }).expect("no errors");
        match progress {
            Progress::Done => {
                assert_eq!(jobs[job][rank].in_flight().count(), 0);
                open.swap_remove(at);
            }
            Progress::Call(call) => {
                user(call);
                jobs[job][rank].called();
            }
            Progress::Pending => {
                let idle = !net.deliver();
                assert!(
                    !idle || net.random.below(64) != 0 || any_moves(jobs, &open, &mut net, user),
                    "deadlock"
                );
            }
        }
    }
    assert!(net.channels.iter().all(|c| c.sends.is_empty() && c.recvs.is_empty()), "messages left over");
}

/// Whether any rank can go on; called when nothing could be delivered.
fn any_moves(
    jobs: &mut [Vec<Schedule>],
    open: &[(usize, usize)],
    net: &mut Net,
    user: &mut dyn FnMut(UserReduce),
) -> bool {
    let mut moved = false;
    for &(job, rank) in open {
        let before = net.done.len() + net.pieces;
        match jobs[job][rank].advance(&mut Port { net, rank }).expect("no errors") {
            Progress::Pending => moved |= net.done.len() + net.pieces > before,
            Progress::Done => moved = true,
            Progress::Call(call) => {
                user(call);
                jobs[job][rank].called();
                moved = true;
            }
        }
    }
    moved || net.deliver()
}

/// Runs until no rank moves any more; the errors of those that failed.
pub fn run_to_error(mut schedules: Vec<Schedule>, seed: u64) -> Vec<Error> {
    let mut net = new_net(schedules.len(), seed);
    let mut errors = Vec::new();
    let mut open: Vec<usize> = (0..schedules.len()).collect();
    for schedule in &mut schedules {
        let kind = schedule.program().kind;
        schedule.start(Tag::new(kind, 5, false));
    }
    for _ in 0..5000 {
        open.retain(|&rank| match schedules[rank].advance(&mut Port { net: &mut net, rank }) {
            Ok(progress) => progress != Progress::Done,
            Err(error) => {
                errors.push(error);
                false
            }
        });
        net.deliver();
    }
    errors
}
