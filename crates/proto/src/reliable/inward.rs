//! From packets to what they are for.

use super::outward::Job;
use super::stream::Taken;
use super::{Kept, Packet, RAIL, READS, Ways, Work};
use fabric::{Completion, Done, Fault, Local, Rank, Rights, Span, Verbs};
use wire::packet::{ASKS, HEAD_LEN, LAST, Opcode};

/// Completions taken from the adapter in one look: what is due to be sent waits for it.
const COMPLETIONS: usize = 64;

impl Ways {
    /// Takes in what the adapter has, sends what that asks for, and deals with what is due; whether the adapter may have more.
    pub(super) fn look(&mut self, verbs: &mut impl Verbs) -> Result<bool, Fault> {
        let mut has_more = true;
        for _ in 0..COMPLETIONS {
            let Some(completion) = verbs.poll() else {
                has_more = false;
                break;
            };
            self.complete(completion, verbs)?;
        }
        self.find_buffers(verbs)?;
        let mut at = 0;
        while at < self.heard.len() {
            self.send(self.heard[at], verbs)?;
            at += 1;
        }
        self.heard.clear();
        if !self.waiting.is_empty() {
            self.send_waiting(verbs)?;
        }
        let now_ns = verbs.now_ns();
        if self.due_ns <= now_ns {
            self.tick(now_ns, verbs)?;
        }
        self.give_back_idle(now_ns, verbs)?;
        Ok(has_more)
    }

    fn tick(&mut self, now_ns: u64, verbs: &mut impl Verbs) -> Result<(), Fault> {
        self.due_ns = u64::MAX;
        for at in 0..self.known.len() {
            let rank = self.known[at];
            let peer = self.peer(rank);
            match peer.stream.due_ns() {
                Some(due_ns) if due_ns <= now_ns => {
                    peer.repeated += u32::from(peer.stream.tick(now_ns) && peer.said_bye);
                    self.send(rank, verbs)?;
                }
                due_ns => self.due_ns = self.due_ns.min(due_ns.unwrap_or(u64::MAX)),
            }
        }
        Ok(())
    }

    fn complete(&mut self, completion: Completion, verbs: &mut impl Verbs) -> Result<(), Fault> {
        let Completion { work, done, result } = completion;
        match Work::decode(work) {
            Work::Packet(index) => self.packet_left(index),
            Work::Note(index) => {
                self.notes.give_back(index);
            }
            Work::Through(index) => {
                let (to, work) = self.through[index as usize];
                self.through_free.push(index);
                self.ended.push_back(Completion { work, done, result });
                self.passed(to, verbs)?;
            }
            Work::Last => {}
            Work::Receive(index) => {
                if let (Done::Received { from, len, datagram }, Ok(())) = (done, &result) {
                    match datagram {
                        true => self.packet_came(from, index, len, verbs)?,
                        false => self.held.push_back((from, index, len)),
                    }
                    return Ok(());
                }
                self.post_buffer(index, verbs);
                result?;
            }
        }
        Ok(())
    }

    pub(super) fn post_buffer(&mut self, index: u32, verbs: &mut impl Verbs) {
        verbs.post_receive(RAIL, self.buffers[index as usize], Work::Receive(index).encode());
    }

    /// Hands on messages of connections, and packets, that waited for receive buffers.
    pub(super) fn find_buffers(&mut self, verbs: &mut impl Verbs) -> Result<(), Fault> {
        while let Some((from, index, len)) = self.held.front().copied() {
            if len == 0 {
                // Packets of this peer may come from here on: nothing of it waits in front of them.
                self.last_came(from, verbs)?;
            } else {
                let Some((buffer, work)) = self.receives.pop() else { break };
                self.message_came(from, index, len, (buffer, work), verbs);
            }
            self.held.pop_front();
            self.post_buffer(index, verbs);
        }
        if !self.stalled.is_empty() && !self.receives.is_empty() {
            for rank in std::mem::take(&mut self.stalled) {
                self.peer(rank).is_stalled = false;
                self.follow(rank, None, verbs)?;
                self.heard.push(rank);
            }
        }
        Ok(())
    }

    /// Hands on a message that came over a connection: where buffers are as long as each other with the buffer that it lies in.
    fn message_came(
        &mut self,
        from: Rank,
        index: u32,
        len: usize,
        (buffer, work): (Local, u64),
        verbs: &mut impl Verbs,
    ) {
        if len > buffer.span.len {
            return self.fail(from, format!("{len} bytes for a receive buffer of {}", buffer.span.len));
        }
        let own = self.buffers[index as usize];
        if own.span.len == buffer.span.len {
            self.buffers[index as usize] = buffer;
            self.exchanged.push((work, own));
        } else {
            verbs.copy(buffer.span.addr, own.span.addr, len);
        }
        let done = Done::Received { from, len, datagram: false };
        self.ended.push_back(Completion { work, done, result: Ok(()) });
    }

    fn packet_came(
        &mut self,
        from: Rank,
        index: u32,
        len: usize,
        verbs: &mut impl Verbs,
    ) -> Result<(), Fault> {
        if self.peer(from).lost.is_some() {
            self.post_buffer(index, verbs);
            return Ok(());
        }
        let packet = match self.head(index, len, verbs) {
            Ok(packet) => packet,
            Err(what) => {
                self.fail(from, what);
                self.post_buffer(index, verbs);
                return Ok(());
            }
        };
        let now_ns = verbs.now_ns();
        let mut freed = std::mem::take(&mut self.freed);
        let is_ours = self.peer(from).stream.acknowledge(now_ns, packet.ack, packet.came, &mut freed);
        freed.drain(..).for_each(|slot| self.packet_is_there(slot));
        self.freed = freed;
        if self.heard.last() != Some(&from) {
            self.heard.push(from);
        }
        if !is_ours || packet.kind == Opcode::Ack {
            self.post_buffer(index, verbs);
            return Ok(());
        }
        match self.peer(from).stream.take(packet.seq) {
            Taken::Dropped => self.post_buffer(index, verbs),
            Taken::Early if 2 * (self.kept + 1) > self.buffers.len() => self.post_buffer(index, verbs),
            Taken::Early => {
                self.kept += 1;
                self.peer(from).stream.keep(packet.seq, (index, len));
            }
            Taken::Next => {
                self.kept += 1;
                self.follow(from, Some((index, len)), verbs)?;
            }
        }
        Ok(())
    }

    fn head(&self, index: u32, len: usize, verbs: &impl Verbs) -> Result<Packet, String> {
        let mut bytes = [0; HEAD_LEN];
        let head = self.buffers[index as usize].span.part(0, len.min(HEAD_LEN));
        verbs.peek_bytes(head, &mut bytes[..head.len]);
        Packet::decode(&bytes[..head.len]).map_err(|what| what.0)
    }

    /// The head of the packet that is next. Peers with connections may write to all that the adapter has registered, buffers
    /// too: it may not be what it was when it came.
    fn head_of_next(
        &mut self,
        from: Rank,
        index: u32,
        len: usize,
        verbs: &impl Verbs,
    ) -> Result<Packet, String> {
        let packet = self.head(index, len, verbs)?;
        let is_next = packet.seq == self.peer(from).stream.expected();
        is_next.then_some(packet).ok_or_else(|| "its number has changed since it came".into())
    }

    /// Deals with the packets of a peer that are next: the one that has just come, and those that are kept. The one that a
    /// receive buffer is missing for is kept.
    fn follow(&mut self, from: Rank, mut next: Option<Kept>, verbs: &mut impl Verbs) -> Result<(), Fault> {
        while let Some((index, len)) = next.take().or_else(|| self.peer(from).stream.follow()) {
            let payload = self.buffers[index as usize].span.part(HEAD_LEN, len - HEAD_LEN);
            let (asks, dealt) = match self.head_of_next(from, index, len, verbs) {
                Ok(packet) => (packet.flags & ASKS != 0, self.deal(from, &packet, payload, verbs)),
                Err(what) => (false, Err(what)),
            };
            match dealt {
                Ok(true) => self.peer(from).stream.accept(verbs.now_ns(), asks),
                Ok(false) if 4 * self.kept <= 3 * self.buffers.len() => {
                    self.stall(from, (index, len));
                    return Ok(());
                }
                // It comes again; acknowledgements need buffers, too.
                Ok(false) => {}
                Err(what) => self.fail(from, what),
            }
            self.kept -= 1;
            self.post_buffer(index, verbs);
            if self.fault.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn stall(&mut self, from: Rank, kept: Kept) {
        let peer = self.peers[from].as_mut().expect("it is known");
        peer.stream.keep(peer.stream.expected(), kept);
        if !std::mem::replace(&mut peer.is_stalled, true) {
            self.stalled.push(from);
        }
    }

    /// Deals with the next packet; false if there is no receive buffer for it.
    fn deal(
        &mut self,
        from: Rank,
        packet: &Packet,
        payload: Span,
        verbs: &mut impl Verbs,
    ) -> Result<bool, String> {
        match packet.kind {
            Opcode::Ack => {}
            Opcode::Send => return self.send_came(from, packet, payload, verbs),
            Opcode::Write => {
                if payload.len > 0 {
                    let to = self.permitted(packet, payload.len, Rights::REMOTE_WRITE)?;
                    verbs.copy(to.addr, payload.addr, payload.len);
                }
                if self.touched.last() != Some(&from) {
                    self.touched.push(from);
                }
            }
            Opcode::Read => self.read_came(from, packet, payload, verbs)?,
            Opcode::Data => self.data_came(from, packet, payload, verbs)?,
            Opcode::Want => self.want_came(from),
            Opcode::Refuse => self.refuse_came(from),
            Opcode::Parted => self.parted_came(from, verbs),
            Opcode::Bye => self.peer(from).said_bye = true,
        }
        Ok(true)
    }

    fn send_came(
        &mut self,
        from: Rank,
        packet: &Packet,
        payload: Span,
        verbs: &mut impl Verbs,
    ) -> Result<bool, String> {
        let begun = self.peer(from).filling.take();
        let Some((buffer, work, at)) =
            begun.or_else(|| self.receives.pop().map(|(buffer, work)| (buffer, work, 0)))
        else {
            return Ok(false);
        };
        if at + payload.len > buffer.span.len {
            self.receives.push((buffer, work));
            return Err(format!("{} bytes for a receive buffer of {}", at + payload.len, buffer.span.len));
        }
        verbs.copy(buffer.span.addr + at, payload.addr, payload.len);
        let len = at + payload.len;
        if packet.flags & LAST == 0 {
            self.peer(from).filling = Some((buffer, work, len));
        } else {
            let done = Done::Received { from, len, datagram: false };
            self.ended.push_back(Completion { work, done, result: Ok(()) });
        }
        Ok(true)
    }

    /// Memory of which a peer names so many bytes, if it may access it so.
    fn permitted(&self, packet: &Packet, len: usize, needed: Rights) -> Result<Span, String> {
        let Packet { key, addr, .. } = *packet;
        let region = self.regions.get(&key).ok_or_else(|| format!("no region has the key {key:#x}"))?;
        let (whole, rights) = *region;
        if !rights.include(needed) {
            let what = if needed == Rights::REMOTE_READ { "read" } else { "written to" };
            return Err(format!("the region {key:#x} is not registered to be {what}"));
        }
        match usize::try_from(addr) {
            Ok(addr) if whole.includes(addr, len) => Ok(Span { addr, len }),
            _ => Err(format!("{len} bytes at {addr:#x} are not in the region {key:#x}")),
        }
    }

    fn read_came(
        &mut self,
        from: Rank,
        packet: &Packet,
        payload: Span,
        verbs: &impl Verbs,
    ) -> Result<(), String> {
        if payload.len != 8 {
            return Err(format!("a request of {} bytes", payload.len));
        }
        let mut bytes = [0; 8];
        verbs.peek_bytes(payload, &mut bytes);
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let span = self.permitted(packet, word(4) as usize, Rights::REMOTE_READ)?;
        let jobs = &mut self.peer(from).jobs;
        if jobs.iter().filter(|job| job.is_answer()).count() >= READS {
            return Err(format!("more than {READS} reads"));
        }
        jobs.push_back(Job::answer(word(0), packet.key, span));
        Ok(())
    }

    fn data_came(
        &mut self,
        from: Rank,
        packet: &Packet,
        payload: Span,
        verbs: &mut impl Verbs,
    ) -> Result<(), String> {
        let peer = self.peer(from);
        let at = peer.reads.iter().position(|read| read.id == packet.key);
        let at = at.ok_or_else(|| format!("an answer to the read {}, of which there is none", packet.key))?;
        let read = &mut peer.reads[at];
        if packet.addr != read.got as u64 || payload.len > read.to.len - read.got {
            return Err(format!("byte {} of an answer of {}", packet.addr, read.to.len));
        }
        verbs.copy(read.to.addr + read.got, payload.addr, payload.len);
        read.got += payload.len;
        if packet.flags & LAST != 0 {
            if read.got != read.to.len {
                return Err(format!("{} bytes of an answer of {}", read.got, read.to.len));
            }
            let read = peer.reads.remove(at);
            self.ended.push_back(Completion { work: read.work, done: Done::Read, result: Ok(()) });
        }
        Ok(())
    }
}
