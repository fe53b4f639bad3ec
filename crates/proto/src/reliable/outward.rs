//! From posted work to packets.

use super::{MINE, Packet, RAIL, Ways, Work};
use fabric::spread::SpreadMap;
use fabric::verbs::FIRST_BYTES;
use fabric::{Completion, Done, Fault, Local, Rank, Rights, Span, Verbs};
use smallvec::SmallVec;
use wire::packet::{ASKS, HEAD_LEN, LAST, Opcode};

/// What a job carries of its own without memory for that.
const SHORT: usize = 64;

/// What a job carries.
#[derive(Clone, Debug)]
enum Payload {
    /// Copied when it was posted.
    Inline(SmallVec<[u8; SHORT]>),
    /// In memory of who posted it, or of a region.
    Lent([Span; 2]),
}

/// Work that is to be cut into packets.
#[derive(Clone, Debug)]
pub(super) struct Job {
    kind: Opcode,
    key: u32,
    addr: u64,
    payload: Payload,
    len: usize,
    /// How much has been cut.
    at: usize,
    /// What is told when all has been cut.
    tells: Option<(u64, Done)>,
    /// The region that it is cut from, which may end before.
    region: Option<u32>,
}

impl Job {
    /// Work of who posts; what is at most `inline` bytes long is copied.
    pub(super) fn new(kind: Opcode, parts: &[Local], inline: usize, verbs: &impl Verbs) -> Job {
        let len = parts.iter().map(|part| part.span.len).sum();
        let span = |at: usize| parts.get(at).map_or(Span::EMPTY, |part| part.span);
        let payload = if len <= inline {
            let mut bytes = SmallVec::from_elem(0, len);
            let mut at = 0;
            for part in parts {
                verbs.peek_bytes(part.span, &mut bytes[at..at + part.span.len]);
                at += part.span.len;
            }
            Payload::Inline(bytes)
        } else {
            assert!(parts.len() <= 2, "a gather list has two entries");
            Payload::Lent([span(0), span(1)])
        };
        Job { kind, key: 0, addr: 0, payload, len, at: 0, tells: None, region: None }
    }

    /// With these numbers in its packets.
    pub(super) fn naming(self, key: u32, addr: u64) -> Job {
        Job { key, addr, ..self }
    }

    /// Told as this when all has been cut.
    pub(super) fn telling(self, work: u64, done: Done) -> Job {
        Job { tells: Some((work, done)), ..self }
    }

    /// A packet without payload.
    pub(super) fn word(kind: Opcode) -> Job {
        Job::bytes(kind, &[])
    }

    /// A packet with this payload.
    pub(super) fn bytes(kind: Opcode, bytes: &[u8]) -> Job {
        let payload = Payload::Inline(bytes.into());
        Job { kind, key: 0, addr: 0, payload, len: bytes.len(), at: 0, tells: None, region: None }
    }

    /// The answer to a read.
    pub(super) fn answer(id: u32, region: u32, span: Span) -> Job {
        let payload = Payload::Lent([span, Span::EMPTY]);
        let (kind, region) = (Opcode::Data, Some(region));
        Job { kind, key: id, addr: 0, payload, len: span.len, at: 0, tells: None, region }
    }

    pub(super) fn is_answer(&self) -> bool {
        self.kind == Opcode::Data
    }

    /// Whether it says how this rank is reached.
    pub(super) fn is_of_route(&self) -> bool {
        matches!(self.kind, Opcode::Want | Opcode::Refuse | Opcode::Parted)
    }

    /// Whether the memory that it is cut from is there, and is what it was.
    fn has_memory(&self, regions: &SpreadMap<u32, (Span, Rights)>) -> bool {
        let (Some(key), Payload::Lent([span, _])) = (self.region, &self.payload) else { return true };
        regions.get(&key).is_some_and(|(whole, _)| whole.includes(span.addr, span.len))
    }

    /// Copies the next part to `to`, at most as long as that.
    fn copy(&self, to: Span, verbs: &mut impl Verbs) {
        match &self.payload {
            Payload::Inline(bytes) => verbs.poke_bytes(to.addr, &bytes[self.at..self.at + to.len]),
            Payload::Lent([first, second]) => {
                let head = first.part(self.at, to.len);
                let tail = second.part(self.at.saturating_sub(first.len), to.len - head.len);
                for (at, part) in [(0, head), (head.len, tail)] {
                    if part.len > 0 {
                        verbs.copy(to.addr + at, part.addr, part.len);
                    }
                }
            }
        }
    }
}

/// A packet that is kept until it is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    span: Span,
    key: u32,
    /// It is given back when the adapter is done with it.
    is_over: bool,
    /// The adapter has it.
    is_posted: bool,
}

impl Ways {
    /// Takes work of who posts, if there is room.
    pub(super) fn post(&mut self, to: Rank, job: Job, verbs: &mut impl Verbs) -> Result<bool, Fault> {
        let bytes = job.len as u64;
        let peer = self.peer(to);
        if let Some(why) = &peer.lost {
            return Err(Fault::clone(why));
        }
        if !peer.route.takes_datagrams() || peer.jobs.len() >= super::DEPTH {
            return Ok(false);
        }
        fabric::begin_with_one(&mut peer.jobs);
        peer.jobs.push_back(job);
        self.used(to, bytes, verbs.now_ns());
        self.send(to, verbs)?;
        Ok(true)
    }

    /// Sends what there is for a peer, as far as it may leave.
    pub(super) fn send(&mut self, to: Rank, verbs: &mut impl Verbs) -> Result<(), Fault> {
        if self.peer(to).lost.is_some() {
            return Ok(());
        }
        let now_ns = verbs.now_ns();
        self.send_again(to, now_ns, verbs)?;
        let mut first = self.peer(to).stream.is_acknowledged().then(|| FIRST_BYTES.div_ceil(self.room));
        while self.peer(to).stream.may_send() && self.has_job(to) {
            let Some((index, slot)) = self.pool.take(verbs)? else {
                let peer = self.peers[to].as_mut().expect("it is known");
                if !std::mem::replace(&mut peer.waits, true) {
                    self.waiting.push(to);
                }
                break;
            };
            self.cut(to, index, slot, now_ns, verbs)?;
            first = first.map(|packets| packets - 1);
            if first == Some(0) {
                verbs.flush(to);
                first = None;
            }
        }
        if self.peer(to).stream.answers() {
            self.answer(to, verbs)?;
        }
        let due_ns = self.peer(to).stream.due_ns();
        self.due_ns = self.due_ns.min(due_ns.unwrap_or(u64::MAX));
        self.turn(to, verbs)
    }

    /// Whether there is something to cut. What was asked for of a region that has ended since is not there any more, though
    /// another one may have its key.
    fn has_job(&mut self, to: Rank) -> bool {
        let Some(job) = self.peers[to].as_ref().and_then(|peer| peer.jobs.front()) else { return false };
        if job.has_memory(&self.regions) {
            return true;
        }
        let region = job.region.unwrap_or_default();
        self.fail(to, format!("a read of the region {region:#x}, which has ended"));
        false
    }

    fn send_again(&mut self, to: Rank, now_ns: u64, verbs: &mut impl Verbs) -> Result<(), Fault> {
        while let Some((_, index)) = self.peer(to).stream.again(now_ns) {
            if self.slots[index as usize].is_posted {
                continue; // it comes again when that has ended, by the timer
            }
            let addr = self.slots[index as usize].span.addr;
            let mut bytes = [0; HEAD_LEN];
            verbs.peek_bytes(Span { addr, len: HEAD_LEN }, &mut bytes);
            let Ok(mut packet) = Packet::decode(&bytes) else {
                let what =
                    || Fault::Device(format!("a peer has changed a packet that is kept for rank {to}"));
                self.fault.get_or_insert_with(what);
                return Ok(());
            };
            (packet.ack, packet.came) = self.peer(to).stream.answer();
            packet.flags |= ASKS;
            verbs.poke_bytes(addr, &packet.encode());
            self.launch(to, index, verbs)?;
        }
        Ok(())
    }

    /// Cuts the next packet from the oldest job.
    fn cut(
        &mut self,
        to: Rank,
        index: u32,
        slot: Local,
        now_ns: u64,
        verbs: &mut impl Verbs,
    ) -> Result<(), Fault> {
        let room = self.room;
        let peer = self.peer(to);
        let job = peer.jobs.front_mut().expect("there is one");
        // In packets of one length, as far as it goes: those of several messages leave by one call then.
        let left = job.len - job.at;
        let len = left.div_ceil(left.div_ceil(room).max(1));
        job.copy(Span { addr: slot.span.addr + HEAD_LEN, len }, verbs);
        let is_last = job.at + len == job.len;
        let (seq, asks) = peer.stream.push(now_ns, index);
        let (ack, came) = peer.stream.answer();
        let flags = if is_last { LAST } else { 0 } | if asks { ASKS } else { 0 };
        let addr = match job.kind {
            Opcode::Write | Opcode::Data => job.addr + job.at as u64,
            _ => job.addr,
        };
        let packet = Packet { kind: job.kind, flags, seq, ack, came, key: job.key, addr };
        verbs.poke_bytes(slot.span.addr, &packet.encode());
        job.at += len;
        let tells = job.tells;
        if is_last {
            peer.jobs.pop_front();
            if peer.jobs.is_empty() {
                peer.jobs.shrink_to(0);
            }
            if let Some((work, done)) = tells {
                self.ended.push_back(Completion { work, done, result: Ok(()) });
            }
        }
        let span = slot.span.part(0, HEAD_LEN + len);
        self.slots[index as usize] = Slot { span, key: slot.key, is_over: false, is_posted: false };
        self.launch(to, index, verbs)
    }

    /// Hands a packet to the adapter.
    fn launch(&mut self, to: Rank, index: u32, verbs: &mut impl Verbs) -> Result<(), Fault> {
        let slot = &mut self.slots[index as usize];
        let part = Local { span: slot.span, key: slot.key };
        slot.is_posted = verbs.post_datagram(to, RAIL, &[part], Work::Packet(index).encode())?;
        Ok(())
    }

    /// Sends an acknowledgement that goes with nothing.
    pub(super) fn answer(&mut self, to: Rank, verbs: &mut impl Verbs) -> Result<(), Fault> {
        let Some((index, note)) = self.notes.take(verbs)? else {
            return Ok(()); // at the next look
        };
        let (ack, came) = self.peer(to).stream.answer();
        let packet = Packet { kind: Opcode::Ack, flags: 0, seq: 0, ack, came, key: 0, addr: 0 };
        verbs.poke_bytes(note.span.addr, &packet.encode());
        let part = Local { span: note.span.part(0, HEAD_LEN), key: note.key };
        if !verbs.post_datagram(to, RAIL, &[part], Work::Note(index).encode())? {
            self.notes.give_back(index);
        }
        Ok(())
    }

    /// The adapter is done with a packet.
    pub(super) fn packet_left(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.is_posted = false;
        if slot.is_over {
            self.pool.give_back(index);
        }
    }

    /// A packet is acknowledged.
    pub(super) fn packet_is_there(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.is_over = true;
        if !slot.is_posted {
            self.pool.give_back(index);
        }
    }

    /// There is no way to a peer any more: what is under way with it ends, and what it still sends is dropped.
    pub(super) fn lose(&mut self, rank: Rank, why: &Fault, verbs: &mut impl Verbs) {
        let peer = self.peer(rank);
        if peer.lost.replace(Box::new(why.clone())).is_some() {
            return;
        }
        let told = peer.jobs.drain(..).filter_map(|job| job.tells);
        let read = peer.reads.drain(..).map(|read| (read.work, Done::Read));
        let ended: Vec<_> = told.chain(read).collect();
        let begun = peer.filling.take();
        let mut freed = Vec::new();
        let kept: Vec<_> = peer.stream.end(&mut freed).collect();
        self.lose_route(rank);
        self.ended.extend(ended.into_iter().map(|(work, done)| Completion {
            work,
            done,
            result: Err(why.clone()),
        }));
        if let Some((buffer, work, _)) = begun {
            self.receives.push((buffer, work));
        }
        freed.into_iter().for_each(|slot| self.packet_is_there(slot));
        for (index, _) in kept {
            self.kept -= 1;
            self.post_buffer(index, verbs);
        }
        self.find_due();
    }

    /// Finds out anew when something is due.
    pub(super) fn find_due(&mut self) {
        let due_ns = self.known.iter().filter_map(|rank| self.peers[*rank].as_ref()?.stream.due_ns()).min();
        self.due_ns = due_ns.unwrap_or(u64::MAX);
    }

    /// Goes on with those that waited for slots.
    pub(super) fn send_waiting(&mut self, verbs: &mut impl Verbs) -> Result<(), Fault> {
        for to in std::mem::take(&mut self.waiting) {
            self.peer(to).waits = false;
            self.send(to, verbs)?;
        }
        Ok(())
    }

    /// Number for work that goes over a connection.
    pub(super) fn passes(&mut self, to: Rank, work: u64) -> u32 {
        assert!(work & MINE == 0, "bit 61 of work is not for who posts");
        match self.through_free.pop() {
            Some(index) => {
                self.through[index as usize] = (to, work);
                index
            }
            None => {
                self.through.push((to, work));
                self.through.len() as u32 - 1
            }
        }
    }
}
