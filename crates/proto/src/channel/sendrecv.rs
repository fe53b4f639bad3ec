//! The Send/Recv path: receive buffers that all peers share.
//!
//! One pool of buffers serves any number of peers, so it is what the first contact goes by and what
//! is left for peers without slots. A sender may fill `Settings::window` of them; that keeps one
//! peer, whose messages nobody receives, from blocking all others. Where more peers send at once
//! than there are buffers, the adapter refuses the post and it is tried again.
//!
//! A message says, when it has come, that everything is placed that was written before over its
//! adapter. So the frame that announces what other adapters than the usual one have written goes
//! this way, over that adapter.

use super::Channel;
use super::fast::header;
use super::peer::{Arrived, COPIED, FramePath, Front};
use super::slots::{RAIL, RingOut};
use super::{NOTE_BYTES, SLOTS_MAX, Work, trailer};
use crate::event::Event;
use fabric::{Charge, Fault, Local, Rank, Span, Verbs};
use wire::Malformed;
use wire::slot::{FrameKind, Meet, Tail};

impl<V: Verbs> Channel<V> {
    /// A message has come into a receive buffer.
    pub(super) fn arrive(&mut self, from: Rank, buffer: u32, len: usize) {
        let p = match self.contact(from) {
            Ok(p) => p,
            Err(fault) => {
                self.went_wrong(&fault);
                return self.receives.post(&mut self.verbs, buffer);
            }
        };
        if self.peers[p].failed {
            return self.receives.post(&mut self.verbs, buffer);
        }
        match self.inspect(p, buffer, len) {
            Ok(Tail { kind: FrameKind::Credit, .. }) => self.receives.post(&mut self.verbs, buffer),
            Ok(tail) => {
                let message = self.in_turn_or_copied(p, buffer, tail, len);
                self.peers[p].arrived(message);
                self.mark_ready(p);
            }
            Err(what) => {
                self.fail(p, what);
                self.receives.post(&mut self.verbs, buffer);
            }
        }
    }

    /// A message as it waits for its turn. Over one adapter they come in order.
    fn in_turn_or_copied(&mut self, p: usize, buffer: u32, tail: Tail, len: usize) -> Arrived {
        if self.verbs.rails() == 1 || self.peers[p].before(tail.seq) == Ok(0) {
            return Arrived { buffer, tail, copy: None, is_past: false };
        }
        let mut copy = vec![0; len].into_boxed_slice();
        self.verbs.peek_bytes(self.receives.span(buffer).part(0, len), &mut copy);
        self.receives.post(&mut self.verbs, buffer);
        Arrived { buffer: COPIED, tail, copy: Some(copy), is_past: false }
    }

    /// Checks a message and takes the credits it brings, whenever its turn comes.
    fn inspect(&mut self, p: usize, buffer: u32, len: usize) -> Result<Tail, Malformed> {
        let span = self.receives.span(buffer);
        if len < FrameKind::Meet.trailer_len() || len > span.len {
            return Err(Malformed(format!("a message of {len} bytes")));
        }
        let mut word = [0; 8];
        self.verbs.peek_bytes(Span { addr: span.addr + len - 8, len: 8 }, &mut word);
        let tail = Tail::decode(u64::from_le_bytes(word))?;
        if !matches!(tail.kind, FrameKind::Full | FrameKind::Meet | FrameKind::Credit) {
            return Err(Malformed(format!("{:?} header outside of the slots", tail.kind)));
        }
        if tail.len as usize + tail.kind.trailer_len() != len {
            return Err(Malformed(format!("{} bytes announced in a message of {len}", tail.len)));
        }
        let peer = &mut self.peers[p];
        if tail.kind != FrameKind::Credit {
            peer.before(tail.seq)?;
        }
        peer.acknowledged(tail.ack)?;
        Ok(tail)
    }

    /// Shows the oldest frame that came by Send/Recv if it is the next one; whether it is. The
    /// channel's own are dealt with at once.
    pub(super) fn fetch_arrived(&mut self, p: usize) -> Result<bool, Malformed> {
        while let Some(tail) = self.peers[p].arrived.front().map(|message| message.tail) {
            if self.peers[p].before(tail.seq)? != 0 {
                return Ok(false);
            }
            let Some(Arrived { buffer, copy, is_past, .. }) = self.peers[p].arrived.pop_front() else {
                break;
            };
            let span = match &copy {
                Some(copy) => Span { addr: copy.as_ptr() as usize, len: copy.len() },
                None => self.receives.span(buffer),
            };
            let data = span.part(0, tail.len as usize);
            self.peers[p].front_copy = copy;
            if tail.kind == FrameKind::Full {
                if self.peers[p].their_mailbox.is_none() {
                    self.post_again(buffer);
                    return Err(Malformed("a frame before the introduction".into()));
                }
                self.verbs.charge(Charge::Header);
                let head = header(&self.verbs, data.addr + data.len + tail.kind.trailer_len());
                self.peers[p].front = Some(Front { path: FramePath::SendRecv, head, data, place: buffer });
                return Ok(true);
            }
            if let Err(what) = self.meet(p, data, is_past) {
                self.post_again(buffer);
                return Err(what);
            }
            self.taken(p, FramePath::SendRecv, buffer, 0);
        }
        Ok(false)
    }

    /// What lay in a receive buffer has been read.
    pub(super) fn post_again(&mut self, buffer: u32) {
        if buffer != COPIED {
            self.receives.post(&mut self.verbs, buffer);
        }
    }

    /// The peer introduces itself, or gives slots, which are gone if the connection that they were given with is past.
    fn meet(&mut self, p: usize, data: Span, is_past: bool) -> Result<(), Malformed> {
        let mut bytes = [0; Meet::LEN];
        let len = data.len.min(bytes.len());
        self.verbs.peek_bytes(data.part(0, len), &mut bytes[..len]);
        let meet = Meet::decode(if data.len == len { &bytes[..len] } else { &[] })?;
        let ours = (self.settings.frame_bytes, self.settings.window);
        if (meet.frame_bytes as usize, meet.window as usize) != ours {
            return Err(Malformed(format!(
                "frames of {} bytes and {} at a time, here {} and {}: settings must be the same on all ranks",
                meet.frame_bytes, meet.window, ours.0, ours.1
            )));
        }
        let peer = &mut self.peers[p];
        peer.their_mailbox = Some(fabric::Remote { addr: meet.mailbox, key: meet.mailbox_key });
        if let Some(ring) = meet.ring.filter(|_| !is_past) {
            if peer.ring_out.is_some() || !(2..=SLOTS_MAX).contains(&ring.slots) {
                return Err(Malformed(format!(
                    "{} slots offered, once more or no possible number",
                    ring.slots
                )));
            }
            peer.ring_out = Some(Box::new(RingOut::new(ring)));
        }
        Ok(())
    }

    /// Sends a short frame behind what was written over an adapter that carries no other frames.
    pub(super) fn send_behind(
        &mut self,
        to: Rank,
        rail: usize,
        head: [u64; 2],
        data: Span,
    ) -> Result<bool, Fault> {
        assert!(data.len + FrameKind::Full.trailer_len() <= NOTE_BYTES, "such a frame is short");
        let Some(p) = self.open(to)? else { return Ok(false) };
        if !self.has_buffer(p) {
            return Ok(false);
        }
        let Some((index, note)) = self.take_note(rail)? else { return Ok(false) };
        let trailer = trailer(&self.peers[p], FrameKind::Full, head, data.len, 0);
        self.verbs.charge(Charge::Header);
        self.verbs.copy(note.span.addr, data.addr, data.len);
        self.verbs.poke_bytes(note.span.addr + data.len, &trailer);
        let frame = Local { span: note.span.part(0, data.len + trailer.len()), key: note.key };
        if !self.verbs.post_send(to, rail, &[frame], Work::Note(rail, index).encode())? {
            self.notes[rail].give_back(index);
            self.try_later();
            return Ok(false);
        }
        self.peers[p].posted(FramePath::SendRecv, 0);
        self.counters.count(Event::SendRecvPath);
        Ok(true)
    }

    /// Whether the peer lets this rank fill one more buffer.
    fn has_buffer(&mut self, p: usize) -> bool {
        let window = self.settings.window as u32;
        if self.peers[p].buffers_held >= window {
            self.refresh(p);
        }
        !self.peers[p].failed && self.peers[p].buffers_held < window
    }

    /// Introduces this rank to a peer, with slots if it has decided to give some.
    pub(super) fn introduce(&mut self, p: usize) -> Result<bool, Fault> {
        if !self.has_buffer(p) {
            return Ok(false);
        }
        let Some((index, note)) = self.take_note(RAIL)? else { return Ok(false) };
        let peer = &self.peers[p];
        let meet = Meet {
            frame_bytes: self.settings.frame_bytes as u32,
            window: self.settings.window as u16,
            mailbox: peer.mailbox.addr,
            mailbox_key: peer.mailbox.key,
            ring: peer.ring_in.as_ref().map(|ring| ring.offer()),
        };
        let trailer = trailer(peer, FrameKind::Meet, [0; 2], Meet::LEN, 0);
        self.verbs.poke_bytes(note.span.addr, &meet.encode());
        self.verbs.poke_bytes(note.span.addr + Meet::LEN, &trailer[16..]);
        let frame = Local { span: note.span.part(0, Meet::LEN + 8), key: note.key };
        if !self.launch(p, FramePath::SendRecv, &[frame], Work::Note(RAIL, index))? {
            self.notes[RAIL].give_back(index);
            return Ok(false);
        }
        let peer = &mut self.peers[p];
        peer.posted(FramePath::SendRecv, 0);
        peer.introduce = false;
        peer.introduced = true;
        Ok(true)
    }
}
