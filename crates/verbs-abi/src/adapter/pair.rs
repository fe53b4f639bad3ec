//! A queue pair: what is posted to it, what it is known to be, and its transport.

use super::constants::*;
use super::events::Owner;
use super::meeting::{Ends, UNTOLD};
use super::queues::Ended;
use super::rc::{self, Phase, Rc, Sent};
use super::ud::Ud;
use super::{Adapter, Buffer};
use crate::layout::QpAttr;
use fabric::{Local, Span};
use rnic::driver::{Link, Payload};
use rnic::stack::{Agreed, Atomic, Connection, Regions, Rights, SEGMENT_MAX, Settings, Work};
use smallvec::SmallVec;
use std::net::{IpAddr, TcpStream};

/// How long a peer that has gone is waited for at most.
const PATIENCE_MAX_NS: u64 = 4_000_000_000;

/// `IBV_WC_LOC_LEN_ERR`.
const WC_LOC_LEN_ERR: i32 = 1;
/// How long one that has not come is waited for at least: it connects when its program has a turn.
const MEETING_MIN_NS: u64 = 2_000_000_000;

/// Where a queue pair's peer is.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Its address.
    pub at: IpAddr,
    /// Its number.
    pub number: u32,
}

/// How a queue pair reaches others.
#[derive(Debug)]
pub enum Transport {
    /// RC.
    Connection(Box<Rc>),
    /// UD.
    Datagrams(Box<Ud>),
}

/// See the [module](self).
#[derive(Debug)]
pub struct Pair {
    /// Its number, by which peers name it.
    pub number: u32,
    /// Its address.
    pub at: IpAddr,
    /// Its protection domain.
    pub domain: u32,
    /// `enum ibv_qp_state`.
    pub state: i32,
    /// What the program has said of it.
    pub attr: QpAttr,
    /// Where its peer is (RC).
    pub route: Option<Route>,
    /// Completion queues.
    pub send_queue: u32,
    /// See [`Pair::send_queue`].
    pub receive_queue: u32,
    /// The queue of its receive buffers, and whether others take from it, too.
    pub receives: u32,
    /// See [`Pair::receives`].
    pub shares_receives: bool,
    /// The identifier of its connection, if it has one.
    pub identifier: Option<u32>,
    /// Whether all work is told when it ends well.
    pub tells_all: bool,
    /// Who is told of what happens to it.
    pub owner: Owner,
    /// See [`Transport`].
    pub transport: Transport,
}

/// Memory as a program lists it, with its keys; mostly in a piece or two.
pub type Parts = SmallVec<[Local; 2]>;

/// Work as it is posted.
#[derive(Clone, Debug)]
pub struct Request {
    /// As the program names it.
    pub id: u64,
    /// `enum ibv_wr_opcode`.
    pub opcode: i32,
    /// `enum ibv_send_flags`.
    pub flags: u32,
    /// Immediate data, or the key that ends.
    pub word: u32,
    /// Memory of this side with its keys.
    pub parts: Parts,
    /// Address and key there, or of a datagram the receiver's number and key.
    pub there: (u64, u32),
    /// Operands of an atomic operation: added or compared, stored.
    pub operands: (u64, u64),
    /// Where a datagram goes.
    pub to: Option<IpAddr>,
}

impl Pair {
    /// Its first packet number, as far as the program has told it.
    pub fn sends_from(&self) -> u32 {
        if matches!(self.state, STATE_RTS | STATE_SQD) { self.attr.sq_psn } else { UNTOLD }
    }

    /// Requests of the peer that are kept, and own ones under way at a time.
    pub fn limits(&self) -> (u16, u16) {
        // Before it may send, nobody has said how many: the peer's limit holds then.
        let own = if matches!(self.state, STATE_RTS | STATE_SQD) {
            self.attr.max_rd_atomic.max(1)
        } else {
            u8::MAX
        };
        (self.attr.max_dest_rd_atomic.into(), own.into())
    }

    /// Whether it waits for this peer: `None` if it does not know yet.
    pub fn expects(&self, from: IpAddr, ends: &Ends) -> Option<bool> {
        let Transport::Connection(rc) = &self.transport else { return Some(false) };
        if !matches!(rc.phase, Phase::Apart { .. }) || self.state == STATE_ERR {
            return Some(false);
        }
        let route = self.route?;
        let agrees = |told: u32, known: u32| told == UNTOLD || known == UNTOLD || told == known;
        let is_it = route.number == ends.from && route.at == from;
        Some(is_it && agrees(ends.sends, self.attr.rq_psn) && agrees(ends.expects, self.sends_from()))
    }

    /// The connection to its peer is there; `interleave` as [`Settings`] have it.
    pub fn connect(&mut self, socket: TcpStream, agreed: Agreed, early: &[u8], interleave: bool) {
        let Transport::Connection(rc) = &mut self.transport else { return };
        if !matches!(rc.phase, Phase::Apart { .. }) || self.state == STATE_ERR {
            return;
        }
        // Two pieces of work at most are made of one request.
        let depth = 2 * self.attr.cap.max_send_wr as usize + 2;
        let (segment_max, domain) = (SEGMENT_MAX, self.domain);
        let settings = Settings { segment_max, depth, domain, interleave, ..Settings::from(agreed) };
        rc.phase = Phase::Connected(Box::new(Link::new(socket, Connection::new(settings), early, None)));
        rc.let_go();
    }

    /// Its connection, if it has one.
    pub fn link(&self) -> Option<&Link> {
        match &self.transport {
            Transport::Connection(rc) => match &rc.phase {
                Phase::Connected(link) => Some(link),
                _ => None,
            },
            Transport::Datagrams(_) => None,
        }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        matches!(&self.transport, Transport::Connection(rc) if rc.sent.is_empty())
    }

    /// Its peer has gone.
    pub fn part(&mut self) {
        if let Transport::Connection(rc) = &mut self.transport {
            rc.phase = Phase::Parted { until_ns: None };
        }
    }

    /// How long what is posted to a peer that has gone is tried again, in nanoseconds: 4.096 µs · 2^timeout for each of its
    /// tries, as InfiniBand has it, but never for ever.
    fn patience_ns(&self) -> u64 {
        let (timeout, tries) = (u32::from(self.attr.timeout), u64::from(self.attr.retry_cnt) + 1);
        // 0 stands for ever.
        if timeout == 0 { PATIENCE_MAX_NS } else { ((4096 << timeout.min(31)) * tries).min(PATIENCE_MAX_NS) }
    }

    /// Something is posted that its peer, who has gone or has not come, does not take: until when it is tried, if that is new.
    pub fn begin_to_give_up(&mut self, now_ns: u64) -> Option<u64> {
        let patience_ns = self.patience_ns();
        let Transport::Connection(rc) = &mut self.transport else { return None };
        let (until_ns, patience_ns) = match &mut rc.phase {
            Phase::Parted { until_ns: until_ns @ None } => (until_ns, patience_ns),
            Phase::Apart { until_ns: until_ns @ None } => (until_ns, patience_ns.max(MEETING_MIN_NS)),
            _ => return None,
        };
        *until_ns = Some(now_ns + patience_ns);
        *until_ns
    }

    /// Until when what is posted is tried, if its peer has gone or has not come.
    pub fn gives_up_ns(&self) -> Option<u64> {
        match &self.transport {
            Transport::Connection(rc) => match rc.phase {
                Phase::Parted { until_ns } | Phase::Apart { until_ns } => until_ns,
                _ => None,
            },
            Transport::Datagrams(_) => None,
        }
    }

    /// Ends its connection; what had not ended, the buffers that were being filled, and the connection, if there was one.
    pub fn give_up(&mut self) -> (Vec<Ended>, Vec<Buffer>, Option<Box<Link>>) {
        let Transport::Connection(rc) = &mut self.transport else {
            return (Vec::new(), Vec::new(), None);
        };
        let link = match std::mem::replace(&mut rc.phase, Phase::Gone) {
            Phase::Connected(link) => Some(link),
            _ => None,
        };
        rc.forget();
        rc.requests = 0;
        let sent = rc.sent.drain(..).filter(|sent| !sent.is_part).map(|sent| sent.ended);
        (sent.collect(), rc.arrivals.take_back(), link)
    }

    /// Begins anew (`IBV_QPS_RESET`).
    pub fn reset(&mut self) {
        self.route = None;
        if let Transport::Connection(rc) = &mut self.transport {
            **rc = Rc::default();
        }
    }
}

impl Adapter {
    /// Posts work to a queue pair; an error number if it is refused, and then nothing has happened. It leaves with the next
    /// [`Adapter::send`].
    pub fn post(&mut self, handle: u32, request: Request) -> Result<(), i32> {
        let Some(pair) = self.pairs.get(handle) else { return Err(libc::EINVAL) };
        let (queue, domain) = (pair.send_queue, pair.domain);
        let is_told = pair.tells_all || request.flags & SEND_SIGNALED != 0;
        let len: usize = request.parts.iter().map(|part| part.span.len).sum();
        if has_no_room(&pair.attr, &request, len) {
            return Err(libc::EINVAL);
        }
        let opcode = completion_of(request.opcode).ok_or(libc::EINVAL)?;
        let ended = Ended { id: request.id, opcode, number: pair.number, ..Ended::default() };
        match pair.state {
            STATE_RTS | STATE_SQD => {}
            STATE_ERR | STATE_SQE => {
                self.queues.complete(queue, Ended { status: WC_WR_FLUSH_ERR, ..ended }, true);
                return Ok(());
            }
            _ => return Err(libc::EINVAL),
        }
        if is_denied(&self.regions, domain, &request) {
            self.fail_with(handle, Ended { status: WC_LOC_PROT_ERR, ..ended }, queue);
            return Ok(());
        }
        match &mut pair.transport {
            Transport::Datagrams(ud) => {
                if !send_datagram(ud, &request, len, &mut self.out)? {
                    self.fail_with(handle, Ended { status: WC_LOC_LEN_ERR, ..ended }, queue);
                } else if is_told {
                    self.queues.complete(queue, ended, false);
                }
            }
            Transport::Connection(rc) => {
                if rc.requests >= pair.attr.cap.max_send_wr as usize {
                    return Err(libc::ENOMEM);
                }
                let has_peer = matches!(rc.phase, Phase::Connected(_));
                hand_over(rc, &request, len as u32, ended, is_told)?;
                if !has_peer {
                    self.begin_to_give_up(handle);
                }
            }
        }
        Ok(())
    }

    /// Ends work with what is wrong with it, and all that stands behind it.
    fn fail_with(&mut self, handle: u32, ended: Ended, queue: u32) {
        self.queues.complete(queue, ended, true);
        self.fail(handle, WC_WR_FLUSH_ERR);
    }

    /// Posts a receive buffer of these pieces; an error number if it is refused. What the program may not have filled is refused
    /// to the message that would take it, not here: as adapters do it.
    pub fn post_receive(&mut self, queue: u32, id: u64, pieces: &[Local]) -> Result<(), i32> {
        let Some(receives) = self.receives.get(queue) else { return Err(libc::EINVAL) };
        if receives.free.len() >= receives.room as usize {
            return Err(libc::ENOMEM);
        }
        if pieces.len() > receives.pieces.max(1) as usize {
            return Err(libc::EINVAL);
        }
        let is_denied = |Local { span, key }: &Local| {
            let (addr, len) = (span.addr as u64, span.len as u64);
            len > 0 && self.regions.check(*key, addr, len, Rights::LOCAL_WRITE, receives.domain).is_err()
        };
        let is_denied = pieces.iter().any(is_denied);
        let pieces = pieces.iter().map(|piece| piece.span).collect();
        receives.free.push_back(Buffer { id, pieces, is_denied });
        Ok(())
    }
}

/// Whether a request has more pieces, or more bytes to be taken along, than its queue pair takes.
fn has_no_room(attr: &QpAttr, request: &Request, len: usize) -> bool {
    let is_inline = request.flags & SEND_INLINE != 0;
    request.parts.len() > attr.cap.max_send_sge.max(1) as usize
        || is_inline && len > attr.cap.max_inline_data as usize
}

/// Whether a piece of a request is not memory that may be used for it.
fn is_denied(regions: &Regions, domain: u32, request: &Request) -> bool {
    let needed = if takes_data(request.opcode) { Rights::LOCAL_WRITE } else { Rights::NONE };
    let is_denied = |Local { span, key }: &Local| {
        regions.check(*key, span.addr as u64, span.len as u64, needed, domain).is_err()
    };
    request.flags & SEND_INLINE == 0 && request.parts.iter().any(is_denied)
}

/// Lets a datagram leave; false if it is too long.
fn send_datagram(ud: &mut Ud, request: &Request, len: usize, out: &mut Vec<u8>) -> Result<bool, i32> {
    let immediate = match request.opcode {
        WR_SEND => None,
        WR_SEND_WITH_IMMEDIATE => Some(request.word),
        _ => return Err(libc::EINVAL),
    };
    let to = request.to.ok_or(libc::EINVAL)?;
    if len > ud.message_max {
        return Ok(false);
    }
    let there = (to, request.there.0 as u32, request.there.1);
    ud.send(there, &request.parts, immediate, request.flags & SEND_SOLICITED != 0, out);
    Ok(true)
}

/// `enum ibv_wc_opcode` of work; `None` if such is not done here.
fn completion_of(opcode: i32) -> Option<i32> {
    Some(match opcode {
        WR_SEND | WR_SEND_WITH_IMMEDIATE | WR_SEND_WITH_INVALIDATE => OP_SEND,
        WR_WRITE | WR_WRITE_WITH_IMMEDIATE => OP_WRITE,
        WR_READ => OP_READ,
        WR_COMPARE_SWAP => OP_COMPARE_SWAP,
        WR_FETCH_ADD => OP_FETCH_ADD,
        _ => return None,
    })
}

/// Whether work brings data to this side.
fn takes_data(opcode: i32) -> bool {
    matches!(opcode, WR_READ | WR_COMPARE_SWAP | WR_FETCH_ADD)
}

/// Makes work of the connection of a request.
fn hand_over(rc: &mut Rc, request: &Request, len: u32, ended: Ended, is_told: bool) -> Result<(), i32> {
    let (solicited, is_fenced) = (request.flags & SEND_SOLICITED != 0, request.flags & SEND_FENCE != 0);
    let (to, stag) = request.there;
    let mut payload = Payload::Lent([Span::EMPTY; 2]);
    let one = |parts: &[Local]| parts.first().copied().unwrap_or_default();
    let work = match request.opcode {
        WR_READ if request.parts.len() > 1 => return Err(libc::EINVAL),
        WR_READ => {
            let Local { span, key } = one(&request.parts);
            Work::Read { len, sink_stag: key, sink_to: span.addr as u64, stag, to }
        }
        WR_COMPARE_SWAP | WR_FETCH_ADD => {
            let into = one(&request.parts).span;
            if to % 8 != 0 || request.parts.len() != 1 || into.len < 8 {
                return Err(libc::EINVAL);
            }
            payload = Payload::Lent([Span { addr: into.addr, len: 8 }, Span::EMPTY]);
            let (first, second) = request.operands;
            let atomic = match request.opcode {
                WR_FETCH_ADD => Atomic::FetchAdd { add: first, mask: 0 },
                _ => Atomic::CompareSwap { compare: first, compare_mask: !0, swap: second, swap_mask: !0 },
            };
            Work::Atomic { stag, to, atomic }
        }
        opcode => {
            payload = payload_of(request, len);
            let immediate = rc::behind_write(request.word, len);
            match opcode {
                WR_WRITE => Work::Write { len, stag, to, immediate: None },
                WR_WRITE_WITH_IMMEDIATE => {
                    Work::Write { len, stag, to, immediate: Some((immediate, solicited)) }
                }
                WR_SEND_WITH_INVALIDATE => Work::Send { len, solicited, invalidate: Some(request.word) },
                _ => Work::Send { len, solicited, invalidate: None },
            }
        }
    };
    if request.opcode == WR_SEND_WITH_IMMEDIATE {
        let word = (rc::before_send(request.word), false);
        let mark = Work::Write { len: 0, stag: 0, to: 0, immediate: Some(word) };
        let sent = Sent { ended, is_told: false, is_part: true, is_fenced, asks: false };
        if !rc.post(Payload::Lent([Span::EMPTY; 2]), mark, sent) {
            return Err(libc::ENOMEM);
        }
    }
    let sent = Sent { ended, is_told, is_part: false, is_fenced, asks: rc::asks(&work) };
    if rc.post(payload, work, sent) { Ok(()) } else { Err(libc::ENOMEM) }
}

/// The payload of a request, copied where it must be or lies in more than two pieces.
fn payload_of(request: &Request, len: u32) -> Payload {
    let parts = &request.parts;
    if request.flags & SEND_INLINE == 0 && parts.len() <= 2 {
        return Payload::of(parts);
    }
    let mut bytes = Vec::with_capacity(len as usize);
    parts.iter().for_each(|part| bytes.extend_from_slice(rnic::driver::memory::bytes(part.span)));
    Payload::Inline(bytes.into())
}
