//! The way of a message: posted, arriving at the other adapter, landing in memory, acknowledged.

use fabric::{Done, Fault, Local, Remote, Rights, Span};
use mpi::mem;

use crate::adapter::Passage;
use crate::message::{GATHER, Message, Opcode, PIECE};
use crate::net::Net;
use crate::queue::{Event, Ps};
use crate::seat::State;

/// What a rank posts.
pub struct Post<'a> {
    /// What it does.
    pub kind: Opcode,
    /// Who posts it.
    pub from: u32,
    /// To whom.
    pub to: u32,
    /// Through which adapter.
    pub rail: u16,
    /// The poster's memory.
    pub parts: &'a [Local],
    /// The peer's memory.
    pub remote: Remote,
    /// Whether the payload has gone into the work request.
    pub is_inline: bool,
    /// For the completion.
    pub work: u64,
}

impl Net {
    /// Sends a message on its way at `at`, the time of its rank.
    pub fn post(&mut self, post: &Post, at: Ps) {
        let index = self.messages.open();
        self.number += 1;
        let message = self.messages.at_mut(index);
        let mut parts = [Local::default(); GATHER];
        parts[..post.parts.len()].copy_from_slice(post.parts);
        let len = post.parts.iter().map(|part| part.span.len).sum();
        let mut inline = std::mem::take(&mut message.inline);
        inline.clear();
        let is_datagram = post.kind == Opcode::Datagram;
        let keeps = post.is_inline || is_datagram;
        if keeps {
            for part in post.parts {
                mem::with(part.span.addr, part.span.len, |bytes| inline.extend_from_slice(bytes));
            }
        }
        *message = Message {
            kind: post.kind,
            from: post.from,
            to: post.to,
            rail: post.rail,
            label: self.seats[post.from as usize].label,
            len,
            parts,
            count: post.parts.len(),
            inline,
            is_inline: keeps,
            remote: post.remote,
            work: post.work,
            landing: Passage::default(),
            landed: 0,
            number: self.number,
            completes: !is_datagram,
        };
        self.counters.posted(post.kind, len);
        let seat = &mut self.seats[post.from as usize];
        seat.outstanding += 1;
        seat.pair(post.to, post.rail).outstanding += 1;
        self.depart(index, post.from, at);
    }

    /// Gives a message to the adapter of `from`, which sends it as soon as it is free.
    fn depart(&mut self, index: u32, from: u32, ready: Ps) {
        let message = self.messages.at(index);
        let rail = message.rail as usize;
        if self.is_local(message.from, message.to) {
            let len = message.on_wire();
            let sent = self.seats[from as usize].leave(&self.local, ready, len);
            return self.departed(index, from, sent, self.local.latency);
        }
        let ready = ready + if message.is_inline { 0 } else { self.costs[rail].fetch };
        if !self.costs[rail].is_bus_limited() {
            return self.leave(index, from, ready);
        }
        let at = self.host(from) * self.costs.len() + rail;
        self.seats[from as usize].expect(ready);
        self.waiting[at].push_back((index, from, ready));
        if self.waiting[at].len() == 1 {
            self.queue.push(self.adapters[at].starts(ready), Event::Leave(at as u32));
        }
    }

    /// An adapter with a limited bus is free for its next message.
    pub fn leave_next(&mut self, adapter: usize) {
        let Some((index, from, ready)) = self.waiting[adapter].pop_front() else { return };
        self.leave(index, from, ready);
        if let Some(&(_, _, ready)) = self.waiting[adapter].front() {
            self.queue.push(self.adapters[adapter].starts(ready), Event::Leave(adapter as u32));
        }
    }

    fn leave(&mut self, index: u32, from: u32, ready: Ps) {
        let message = self.messages.at(index);
        let (rail, count, len) = (message.rail as usize, message.count, message.on_wire());
        let at = self.host(from) * self.costs.len() + rail;
        let costs = &self.costs[rail];
        let (sent, latency) = (self.adapters[at].send(costs, ready, len, count), costs.latency);
        self.departed(index, from, sent, latency);
    }

    /// A message leaves the adapter of `from`, and with it the time at which it arrives is known.
    fn departed(&mut self, index: u32, from: u32, sent: Passage, latency: Ps) {
        let message = self.messages.at(index);
        let (rail, kind, work) = (message.rail, message.kind, message.work);
        let peer = message.from ^ message.to ^ from;
        let late = if self.random.happens(self.faults.delay) {
            self.random.below(self.faults.delay_ns * 1000 + 1)
        } else {
            0
        };
        let mut coming = Passage { first: sent.first + latency + late, last: sent.last + latency + late };
        if kind != Opcode::Datagram {
            // What one queue pair carries stays in order: the adapter that receives takes one message after the
            // other, but inside a host there is none.
            let is_local = self.is_local(from, peer);
            let pair = self.seats[from as usize].pair(peer, rail);
            coming.last += pair.last.saturating_sub(coming.first);
            coming.first = coming.first.max(pair.last);
            pair.last = if is_local { coming.last } else { coming.first };
        }
        self.messages.at_mut(index).landing = coming;
        let (host, is_local) = (self.host(from), self.is_local(from, peer));
        match &mut self.trace {
            Some(trace) if is_local => trace.left_inside(host, self.messages.at(index), sent.first),
            Some(trace) => trace.left(host, self.messages.at(index), sent.first, sent.last),
            None => {}
        }
        if kind == Opcode::Datagram {
            let poster = &mut self.seats[from as usize];
            poster.end(sent.last, Some((peer, rail)), work, Done::Sent, Ok(()));
            self.tell_at(from, sent.last);
            return self.scatter(index);
        }
        self.expect(index);
        self.queue.push(coming.first, Event::Arrive(index));
    }

    /// Both ends of a message must look again when it has come this far.
    fn expect(&mut self, index: u32) {
        let message = self.messages.at(index);
        let (from, to, kind, rail) = (message.from, message.to, message.kind, message.rail);
        let Passage { first, last } = message.landing;
        let seen = if message.len > PIECE || kind == Opcode::ReadRequest { first } else { last };
        let target = message.target();
        self.seats[target as usize].expect(seen);
        if target != from && kind != Opcode::Datagram {
            let latency =
                if self.is_local(from, to) { self.local.latency } else { self.costs[rail as usize].latency };
            self.seats[from as usize].expect(last + latency);
        }
    }

    /// Lets a datagram arrive, or be lost, or doubled, or late.
    fn scatter(&mut self, index: u32) {
        let datagram = self.datagram;
        let copies = if self.random.happens(datagram.duplication) { 2 } else { 1 };
        for copy in 0..copies {
            self.counters.doubled += copy;
            if self.random.happens(datagram.loss) {
                self.counters.lost += 1;
                continue;
            }
            let slot = self.messages.open();
            let mut message = self.messages.at(index).clone();
            if self.random.happens(datagram.reorder) {
                let late = (datagram.delay_ns * 1000.0) as Ps;
                message.landing =
                    Passage { first: message.landing.first + late, last: message.landing.last + late };
                self.counters.reordered += 1;
            }
            self.queue.push(message.landing.first, Event::Arrive(slot));
            *self.messages.at_mut(slot) = message;
            self.expect(slot);
        }
        self.messages.close(index);
    }

    /// The first byte is at the adapter of the receiver.
    pub fn arrive(&mut self, index: u32) {
        let message = self.messages.at(index);
        let (target, rail, kind, len) = (message.target(), message.rail, message.kind, message.len);
        let (coming, is_local) = (message.landing, self.is_local(message.from, message.to));
        let on_wire = message.on_wire();
        let landing = if is_local {
            coming
        } else {
            let at = self.host(target) * self.costs.len() + rail as usize;
            self.adapters[at].receive(&self.costs[rail as usize], coming, on_wire)
        };
        if kind == Opcode::ReadRequest {
            return self.answer(index, landing.last);
        }
        self.messages.at_mut(index).landing = landing;
        self.expect(index);
        self.queue.push(landing.last, Event::Land(index));
        if len > PIECE && matches!(kind, Opcode::Write | Opcode::ReadData) {
            self.seats[target as usize].landing.push(index);
            if self.seats[target as usize].state == State::Napping
                && let Some(at) = self.watched_lands(target, self.now)
            {
                self.tell_at(target, at);
            }
        }
    }

    /// The adapter of the target of a read sends the data back.
    fn answer(&mut self, index: u32, ready: Ps) {
        let message = self.messages.at_mut(index);
        let (to, remote, len) = (message.to, message.remote, message.len);
        let wanted = Local { span: Span { addr: remote.addr as usize, len }, key: remote.key };
        let rail = message.rail;
        if !self.seats[to as usize].is_alive() {
            return self.refuse(index, Fault::PeerGone(to as usize));
        }
        if let Err(text) =
            self.seats[to as usize].regions.check(Some(rail as usize), wanted, Rights::REMOTE_READ)
        {
            let from = self.messages.at(index).from;
            let text = format!("read by rank {from} from rank {to}: {text}");
            return self.refuse(index, Fault::Device(text));
        }
        let from = self.messages.at(index).from;
        let serve = if self.is_local(from, to) { 0 } else { self.costs[rail as usize].serve };
        self.messages.at_mut(index).kind = Opcode::ReadData;
        self.depart(index, to, ready + serve);
    }

    /// The last byte is in.
    pub fn land(&mut self, index: u32) {
        let message = self.messages.at(index);
        let (from, to, kind, rail) = (message.from, message.to, message.kind, message.rail);
        let target = message.target();
        self.counters.landed += 1;
        self.mix([self.now, (from as u64) << 32 | to as u64, (message.len as u64) << 3 | kind as u64]);
        self.seats[target as usize].landing.retain(|other| *other != index);
        let host = self.host(target);
        let is_local = self.is_local(from, to);
        if let Some(trace) = self.trace.as_mut().filter(|_| !is_local) {
            trace.landed(host, self.messages.at(index));
        }
        if !self.seats[target as usize].is_alive() {
            return self.refuse(index, Fault::PeerGone(to as usize));
        }
        if matches!(kind, Opcode::Send | Opcode::Write) && self.seats[from as usize].pair(to, rail).held > 0 {
            return self.hold(index);
        }
        self.deliver(index);
    }

    /// Puts a message where it belongs and tells both sides.
    fn deliver(&mut self, index: u32) {
        let message = self.messages.at(index);
        let (from, target, kind, len) = (message.from, message.target(), message.kind, message.len);
        let done = match kind {
            Opcode::Send | Opcode::Datagram => return self.deliver_send(index),
            Opcode::ReadRequest => unreachable!("a request is answered when it arrives"),
            Opcode::Write => Done::Written,
            Opcode::ReadData => Done::Read,
        };
        if let Err(text) = self.copy_until(index, len) {
            return self.refuse(index, Fault::Device(text));
        }
        if kind == Opcode::Write {
            self.seats[target as usize].touch(from);
            self.tell(target);
        }
        self.finish(index, done, Ok(()));
    }

    fn deliver_send(&mut self, index: u32) {
        let message = self.messages.at(index);
        let (from, to, len, kind) = (message.from, message.to, message.len, message.kind);
        let is_datagram = kind == Opcode::Datagram;
        let rail = message.rail as usize;
        let Some((buffer, work)) = self.seats[to as usize].receives[rail].pop_front() else {
            if is_datagram {
                self.counters.dropped += 1;
                return self.messages.close(index);
            }
            return self.hold(index);
        };
        let done = Done::Received { from: from as usize, len, datagram: is_datagram };
        let result = if len > buffer.span.len {
            Err(format!(
                "message of {len} bytes from rank {from}: the receive buffer has {}",
                buffer.span.len
            ))
        } else {
            self.messages.at_mut(index).remote = Remote { addr: buffer.span.addr as u64, key: buffer.key };
            self.copy_until(index, len)
        };
        let result = result.map_err(Fault::Device);
        self.seats[to as usize].end(self.now, None, work, done, result.clone());
        self.tell(to);
        if is_datagram {
            return self.messages.close(index);
        }
        self.finish(index, Done::Sent, result);
    }

    /// A message waits for a receive buffer, and all behind it.
    fn hold(&mut self, index: u32) {
        let message = self.messages.at(index);
        let (from, to, rail) = (message.from, message.to, message.rail);
        self.counters.held += 1;
        self.seats[from as usize].pair(to, rail).held += 1;
        self.seats[to as usize].held.push_back(index);
    }

    /// A rank has given a receive buffer: what was refused is sent again.
    pub fn has_room(&mut self, rank: u32, at: Ps) {
        let Some(first) = self.seats[rank as usize].held.front() else { return };
        let message = self.messages.at(*first);
        let latency = match self.is_local(message.from, rank) {
            true => self.local.latency,
            false => self.costs[message.rail as usize].latency,
        };
        self.seats[rank as usize].expect(at + 2 * latency);
        self.queue.push(at + 2 * latency, Event::Retry(rank));
    }

    /// Delivers what was held as far as there are buffers.
    pub fn retry(&mut self, rank: u32) {
        for rail in 0..self.costs.len() as u16 {
            let of_rail = |net: &Net| {
                let held = &net.seats[rank as usize].held;
                held.iter().position(|index| net.messages.at(*index).rail == rail)
            };
            while let Some(at) = of_rail(self) {
                let seat = &mut self.seats[rank as usize];
                let message = self.messages.at(seat.held[at]);
                if message.kind == Opcode::Send && seat.receives[rail as usize].is_empty() {
                    break;
                }
                let from = message.from;
                let index = seat.held.remove(at).expect("it was found");
                self.seats[from as usize].pair(rank, rail).held -= 1;
                self.deliver(index);
            }
        }
    }

    /// Copies a message to its target as far as `upto`, after both ends' memory has been checked.
    fn copy_until(&mut self, index: u32, upto: usize) -> Result<(), String> {
        let message = self.messages.at(index);
        let Message { kind, from, to, rail, len, remote, landed, .. } = *message;
        let there = Local { span: Span { addr: remote.addr as usize, len }, key: remote.key };
        let rail = (kind != Opcode::Send && kind != Opcode::Datagram).then_some(rail as usize);
        let about = |text| format!("{} of {len} bytes by rank {from} at rank {to}: {text}", kind.name());
        if len > 0 {
            let needed = match kind {
                Opcode::Write => Rights::REMOTE_WRITE,
                Opcode::ReadRequest | Opcode::ReadData => Rights::REMOTE_READ,
                Opcode::Send | Opcode::Datagram => Rights::LOCAL_WRITE,
            };
            self.seats[to as usize].regions.check(rail, there, needed).map_err(about)?;
        }
        if !message.is_inline {
            let needed = if kind == Opcode::ReadData { Rights::LOCAL_WRITE } else { Rights::NONE };
            for part in &message.parts[..message.count] {
                let mine = &self.seats[from as usize].regions;
                mine.check(Some(message.rail as usize), *part, needed)
                    .map_err(|text| about(format!("own memory: {text}")))?;
            }
        }
        let target = remote.addr as usize;
        if message.is_inline {
            mem::write(target + landed, &message.inline[landed..upto]);
        } else if kind == Opcode::ReadData {
            message.pieces(landed, upto, |offset, addr, len| mem::copy(addr, target + offset, len));
        } else {
            message.pieces(landed, upto, |offset, addr, len| mem::copy(target + offset, addr, len));
        }
        self.messages.at_mut(index).landed = upto;
        Ok(())
    }

    /// Makes visible to `rank` what has landed of long messages at its time.
    pub fn show_landing(&mut self, rank: u32, now: Ps) {
        for at in 0..self.seats[rank as usize].landing.len() {
            let index = self.seats[rank as usize].landing[at];
            let message = self.messages.at(index);
            let upto = message.landed_at(now);
            if upto > message.landed {
                // A message that may not be copied ends as a fault when it has landed.
                let _refused_later = self.copy_until(index, upto);
            }
        }
    }

    /// When the next word lands that a rank has looked at and that is on its way.
    pub fn watched_lands(&self, rank: u32, now: Ps) -> Option<Ps> {
        let seat = &self.seats[rank as usize];
        let mut soonest = None;
        for &index in &seat.landing {
            let message = self.messages.at(index);
            if message.kind != Opcode::Write {
                continue;
            }
            for &addr in seat.watched() {
                let offset = addr.wrapping_sub(message.remote.addr as usize);
                if offset < message.len {
                    let at = message.lands((offset + 7).min(message.len - 1));
                    if at > now && soonest.is_none_or(|soonest| at < soonest) {
                        soonest = Some(at);
                    }
                }
            }
        }
        soonest
    }

    /// A message could not be delivered: its poster hears of it.
    pub fn refuse(&mut self, index: u32, fault: Fault) {
        let done = match self.messages.at(index).kind {
            Opcode::Send | Opcode::Datagram => Done::Sent,
            Opcode::Write => Done::Written,
            Opcode::ReadRequest | Opcode::ReadData => Done::Read,
        };
        self.counters.refused += 1;
        self.finish(index, done, Err(fault));
    }

    /// The poster's completion, when the acknowledgement is there.
    fn finish(&mut self, index: u32, done: Done, result: Result<(), Fault>) {
        let message = self.messages.at(index);
        let (from, to, rail, work, completes) =
            (message.from, message.to, message.rail, message.work, message.completes);
        let (latency, retry) = match self.is_local(from, to) {
            true => (self.local.latency, self.limits[rail as usize].1),
            false => (self.costs[rail as usize].latency, self.limits[rail as usize].1),
        };
        let at = self.now
            + match (&result, done) {
                (Err(Fault::PeerGone(_)), _) => retry.max(latency),
                (Ok(()), Done::Read) => 0,
                _ => latency,
            };
        self.messages.close(index);
        if completes && self.seats[from as usize].is_alive() {
            self.seats[from as usize].end(at, Some((to, rail)), work, done, result);
            self.tell_at(from, at);
        }
    }
}
