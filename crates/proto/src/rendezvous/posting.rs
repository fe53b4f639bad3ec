//! What messages over registered memory have posted: the port of an operation, and transfers that wait for room.

use crate::choice::eager_limit::EagerLimit;
use crate::choice::facts::Path;
use crate::choice::tuning::Tuning;
use crate::event::{Amount, Counters, Event};
use crate::memory::rcache::{Held, Rcache};
use crate::memory::staging::{Slab, Staging, Use};
use crate::message::op::OpId;
use crate::message::peers::{How, Peers};
use crate::message::work::Work;
use crate::rendezvous::ahead::Ahead;
use crate::rendezvous::lead::Leads;
use crate::rendezvous::learner::Learner;
use crate::rendezvous::movers::port::{Aside, Port, Turn};
use fabric::{Device, Distance, Fault, Local, Rank, Remote, Rights, Span};
use std::collections::VecDeque;
use wire::head::{FrameType, Head};
use wire::long::{Fragment, LongRts};

/// What one side of a message has posted.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Posted {
    /// Transfers that have not completed, those that wait for room included.
    pub open: u32,
    /// The adapters that were written over, a bit each.
    pub rails: u32,
}

/// A transfer that waits for room in the queue of its adapter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    pub write: bool,
    pub peer: Rank,
    pub rail: usize,
    pub local: Local,
    pub remote: Remote,
    pub op: OpId,
    /// As its machine counts.
    pub number: u32,
}

impl Post {
    pub fn work(&self) -> Work {
        Work::Transfer(self.op, self.number)
    }
}

/// Transfers that wait for room, by peer and adapter: a queue that is full stops no other.
#[derive(Default, Debug)]
pub(crate) struct Backlog {
    queues: Vec<((Rank, usize), VecDeque<Post>)>,
    /// Transfers that are posted in pieces: their operation and number, and how many pieces have not completed.
    cut: Vec<(OpId, u32, u32)>,
}

impl Backlog {
    fn holds(&self, post: &Post) -> bool {
        self.queues.iter().any(|(key, _)| *key == (post.peer, post.rail))
    }

    fn push(&mut self, post: Post) {
        let key = (post.peer, post.rail);
        match self.queues.iter_mut().find(|(known, _)| *known == key) {
            Some((_, queue)) => queue.push_back(post),
            None => self.queues.push((key, VecDeque::from([post]))),
        }
    }

    /// Hands over what there is room for; what became of it, with the work.
    pub fn go_on<D: Device>(&mut self, dev: &mut D, mut left: impl FnMut(&mut D, Post, Result<(), Fault>)) {
        for (_, queue) in &mut self.queues {
            while let Some(post) = queue.front().copied() {
                let result = match hand_over(dev, &post) {
                    Ok(false) => break,
                    Ok(true) => Ok(()),
                    Err(fault) => Err(fault),
                };
                queue.pop_front();
                left(dev, post, result);
            }
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
    }

    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// A transfer has completed, or a piece of one: whether more of it are under way.
    pub fn has_more(&mut self, op: OpId, number: u32) -> bool {
        let is_it = |cut: &(OpId, u32, u32)| (cut.0, cut.1) == (op, number);
        let Some(at) = self.cut.iter().position(is_it) else { return false };
        self.cut[at].2 -= 1;
        if self.cut[at].2 > 0 {
            return true;
        }
        self.cut.swap_remove(at);
        false
    }

    /// Forgets what an operation waits with; how much that was.
    pub fn forget(&mut self, op: OpId) -> u32 {
        self.cut.retain(|(known, ..)| *known != op);
        let mut count = 0;
        for (_, queue) in &mut self.queues {
            let before = queue.len();
            queue.retain(|post| post.op != op);
            count += (before - queue.len()) as u32;
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
        count
    }
}

/// The port of one operation of a rank.
pub(crate) struct RankPort<'a, D: Device> {
    pub dev: &'a mut D,
    pub cache: &'a mut Rcache,
    pub staging: &'a mut Staging,
    pub peers: &'a mut Peers,
    pub counters: &'a mut Counters,
    pub backlog: &'a mut Backlog,
    pub learner: &'a mut Learner,
    pub ahead: &'a mut Ahead,
    pub leads: &'a mut Leads,
    pub posted: &'a mut Posted,
    /// By distance.
    pub eager_limits: &'a mut [EagerLimit; Distance::ALL.len()],
    /// The look beside the application that this is; `None` inside MPI.
    pub aside: &'a mut Option<Aside>,
    pub turn: Turn,
    /// The first transfer that could not be posted for another reason than room.
    pub fault: Option<Fault>,
    pub peer: Rank,
    pub op: u32,
    pub peer_op: u32,
    /// Envelope of the message: tag and context.
    pub envelope: (i32, u64),
    /// Flags of the RTS.
    pub flags: u16,
    pub local: Span,
}

impl<D: Device> RankPort<'_, D> {
    pub(super) fn path(&self) -> &Path {
        self.learner.facts.path(self.dev.distance(self.peer))
    }

    /// Posts a transfer, in pieces if it is longer than what one work request moves.
    fn post(&mut self, whole: Post) {
        let (most, len) = (self.path().transfer_bytes, whole.local.span.len);
        if len <= most {
            return self.post_one(whole);
        }
        self.backlog.cut.push((whole.op, whole.number, len.div_ceil(most) as u32));
        for from in (0..len).step_by(most) {
            let local = Local { span: whole.local.span.part(from, most), key: whole.local.key };
            let remote = Remote { addr: whole.remote.addr + from as u64, key: whole.remote.key };
            self.post_one(Post { local, remote, ..whole });
            if self.fault.is_some() {
                return;
            }
        }
    }

    fn post_one(&mut self, post: Post) {
        let result = if self.backlog.holds(&post) { Ok(false) } else { hand_over(self.dev, &post) };
        match result {
            Ok(true) => self.learner.is_posted(self.dev, &post),
            Ok(false) => self.backlog.push(post),
            Err(fault) => {
                self.fault = self.fault.take().or(Some(fault));
                return;
            }
        }
        self.posted.open += 1;
        self.posted.rails |= u32::from(post.write) << post.rail;
    }
}

/// Hands a transfer to the device; false if it has no room.
fn hand_over(dev: &mut impl Device, w: &Post) -> Result<bool, Fault> {
    let work = w.work().encode();
    if w.write {
        dev.post_write(w.peer, w.rail, w.local, w.remote, work)
    } else {
        dev.post_read(w.peer, w.rail, w.local, w.remote, work)
    }
}

impl<D: Device> Port for RankPort<'_, D> {
    fn tuning(&self) -> &Tuning {
        &self.path().tuning
    }

    fn rails(&self) -> usize {
        self.dev.rails()
    }

    fn hold(&mut self, rail: usize, span: Span, rights: Rights, keep: bool) -> Result<Held, Fault> {
        if !self.path().registration {
            return Ok(Held { rail, region: self.dev.register(rail, span, rights)? });
        }
        let misses = self.counters.get(Event::CacheMiss);
        let start = self.dev.now_ns();
        let held = self.cache.hold(self.dev, self.counters, rail, span, rights, keep)?;
        if self.counters.get(Event::CacheMiss) > misses {
            let now_ns = self.dev.now_ns();
            self.counters.add(Amount::RegisterNs, now_ns - start);
            // Of what is widened more may be registered than is needed here; else the rest are parts of pages.
            let (whole, page) = (self.cache.whole(held).len, self.dev.page_bytes());
            let len = if whole - span.len < 2 * page { span.len } else { whole };
            self.learner.registered(held, len, now_ns - start, now_ns);
        }
        Ok(held)
    }

    fn release(&mut self, held: Held) {
        if !self.path().registration {
            return self.dev.deregister(held.rail, held.region);
        }
        let known = self.cache.len();
        let start = self.dev.now_ns();
        self.cache.release(self.dev, held);
        self.learner.released(held, self.dev.now_ns() - start, self.cache.len() < known);
    }

    fn stage(&mut self, wanted: Use) -> Result<Option<Slab>, Fault> {
        self.staging.take(self.dev, wanted)
    }

    fn unstage(&mut self, slab: Slab) {
        self.staging.give(slab);
    }

    fn writes_in_order(&self) -> bool {
        self.dev.writes_in_order(self.peer)
    }

    fn load(&self, addr: usize) -> u64 {
        self.dev.load(self.peer, addr)
    }

    fn store(&mut self, addr: usize, value: u64) {
        self.dev.store(self.peer, addr, value);
    }

    fn write(&mut self, rail: usize, local: Local, remote: Remote, number: u32) {
        let (peer, op) = (self.peer, OpId(self.op));
        self.post(Post { write: true, peer, rail, local, remote, op, number });
    }

    fn read(&mut self, rail: usize, local: Local, remote: Remote, number: u32) {
        let (peer, op) = (self.peer, OpId(self.op));
        self.post(Post { write: false, peer, rail, local, remote, op, number });
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        if !self.path().registration || !self.learner.times_copy(len) {
            return self.dev.copy(to, from, len);
        }
        let start = self.dev.now_ns();
        self.dev.copy(to, from, len);
        self.learner.facts.copied(self.local.len.max(len), len, self.dev.now_ns() - start);
    }

    fn request(&mut self, rts: LongRts, along: usize) -> bool {
        let report = self.peers[self.peer].reports.front().copied().unwrap_or_default();
        let body = LongRts { op: self.op, flags: self.flags, report, ..rts }.encode();
        let head = Head::new(FrameType::LongRts, self.envelope.0, self.envelope.1).encode();
        let has_left = if along == 0 {
            self.dev.try_send(self.peer, head, span_of(&body))
        } else {
            let mut bytes = body.to_vec();
            bytes.resize(body.len() + along, 0);
            self.dev.copy(bytes.as_mut_ptr() as usize + body.len(), self.local.addr, along);
            self.dev.try_send(self.peer, head, span_of(&bytes))
        };
        if has_left {
            self.peers[self.peer].reports.pop_front();
        }
        has_left
    }

    fn frame_bytes(&self) -> usize {
        self.path().frame_bytes
    }

    fn frame(&mut self, data: Span, offset: u64) -> bool {
        let head = Head::new(FrameType::Data, self.peer_op as i32, offset).encode();
        let sent = self.dev.try_send(self.peer, head, data);
        if sent {
            self.counters.count(Event::FrameSent);
            self.leads.sent(self.peer, data.len);
        }
        sent
    }

    fn keeps_back(&mut self, len: usize) -> bool {
        self.leads.keeps_back(self.peer, len, || self.dev.now_ns())
    }

    fn tell(&mut self, kind: FrameType, fragment: Fragment) {
        let head = Head::new(kind, self.peer_op as i32, self.op as u64).encode();
        self.peers.control(self.dev, self.peer, head, &fragment.encode());
    }

    fn tell_with_next(&mut self, kind: FrameType, fragment: Fragment) {
        let head = Head::new(kind, self.peer_op as i32, self.op as u64).encode();
        self.peers.control_as(self.dev, self.peer, How::WithNext, head, &fragment.encode());
    }

    fn fin(&mut self, fragment: Fragment) {
        let head = Head::new(FrameType::Fin, self.peer_op as i32, self.op as u64).encode();
        let behind = How::Behind(Some(fragment.rail as usize));
        self.peers.control_as(self.dev, self.peer, behind, head, &fragment.encode());
    }

    fn emit(&mut self, event: Event) {
        self.counters.count(event);
    }
}

fn span_of(bytes: &[u8]) -> Span {
    Span { addr: bytes.as_ptr() as usize, len: bytes.len() }
}
