//! The fast path: slots that one peer writes by RDMA, polled words, credits.
//!
//! A frame lies at the end of its slot, so its last word, the tail, is always in the same place: the
//! receiver polls one address per peer, learns from the word how long the frame is, and clears it
//! when the frame has been taken. No other word need be cleared, since nothing but the tail says
//! that a frame is there, and its last byte is the last to become visible.
//!
//! A frame names the slot of the one after it. So the sender can use the lowest slot that is free, and
//! an exchange of short messages stays within two slots, warm in caches, where a ring would walk
//! through all of them. In return one slot is always kept for the next frame.
//!
//! Credits are a count of frames taken, of both paths, so it does not matter which news of it comes
//! first. It rides on frames of the other direction; when half of the slots or buffers are owed and
//! no frame went, it is written into the sender's mailbox. A write needs no slot and no buffer, so
//! credits never wait for credits. Where writes have no order a later count could be overwritten by an
//! earlier one: there it is sent, and read as soon as it comes.

use super::peer::{FramePath, Front};
use super::slots::{RAIL, RingIn};
use super::{Channel, TOLD_AFTER, Work, trailer};
use crate::event::Event;
use fabric::{Charge, Fault, Local, Rank, Span, Verbs};
use wire::Malformed;
use wire::slot::{FrameKind, Tail};

impl<V: Verbs> Channel<V> {
    /// Shows the frame in the oldest slot if it is the next one; whether it is.
    pub(super) fn fetch_slot(&mut self, p: usize) -> Result<bool, Malformed> {
        let peer = &mut self.peers[p];
        let Some(ring) = &mut peer.ring_in else { return Ok(false) };
        let (end, slots) = (ring.end(), ring.slots());
        let Some(tail) = landed(&self.verbs, end, slots)? else { return Ok(false) };
        if !ring.is_read() {
            ring.read_one(tail.next);
            peer.acknowledged(tail.ack)?;
        }
        if peer.before(tail.seq)? != 0 {
            return Ok(false); // one that went by Send/Recv comes first
        }
        if peer.their_mailbox.is_none() {
            return Err(Malformed("a frame before the introduction".into()));
        }
        let ring = peer.ring_in.as_ref().expect("as above");
        let len = tail.len as usize;
        if len > self.settings.frame_bytes || len + tail.kind.trailer_len() > ring.slot_bytes() {
            return Err(Malformed(format!("{len} bytes in a slot of {}", ring.slot_bytes())));
        }
        let head = match tail.kind {
            FrameKind::Full => header(&self.verbs, end),
            known => ring.headers.header(known)?,
        };
        self.verbs.charge(Charge::Header);
        peer.ring_in.as_mut().expect("as above").headers.keep(head, len as u64);
        let data = Span { addr: end - tail.kind.trailer_len() - len, len };
        peer.front = Some(Front { path: FramePath::Fast, head, data, place: tail.next as u32 });
        Ok(true)
    }

    /// Credits have run out: reads all news of them, also from frames that nobody has asked for
    /// yet, which may be why the peer has written no more.
    pub(super) fn refresh(&mut self, p: usize) {
        self.read_news(p);
        self.pump();
    }

    /// Reads what has been written of credits, without asking the adapter what else has come.
    pub(super) fn read_news(&mut self, p: usize) {
        if let Err(what) = self.read_credits(p) {
            self.fail(p, what);
        }
    }

    fn read_credits(&mut self, p: usize) -> Result<(), Malformed> {
        let peer = &mut self.peers[p];
        while let Some(ring) = &mut peer.ring_in {
            let Some(end) = ring.unread_end() else { break };
            let Some(tail) = landed(&self.verbs, end, ring.slots())? else { break };
            ring.read_one(tail.next);
            peer.acknowledged(tail.ack)?;
        }
        let taken = self.verbs.load(peer.mailbox.addr as usize);
        peer.acknowledged_all(taken)
    }

    /// Gives slots to a peer, if the budget and the adapter allow; whether it has some now. Where others have them all it is
    /// decided later: theirs may come back.
    pub(super) fn give_slots(&mut self, p: usize) -> bool {
        let (slots, slot_bytes) = (self.settings.slots, self.settings.slot_bytes);
        let bytes = slots * slot_bytes;
        // Of those of the last connection some may still be full.
        if slots < 2 || self.peers[p].ring_in.is_some() || !self.budget.has(bytes) {
            return false;
        }
        self.peers[p].ring_decided = true;
        // Without a registration the peer stays with Send/Recv, which has what it needs.
        let Ok(memory) = self.budget.take(&mut self.verbs, bytes) else { return false };
        self.peers[p].ring_in = Some(Box::new(RingIn::new(&mut self.verbs, memory, slots, slot_bytes)));
        self.peers[p].introduce = true;
        self.counters.count(Event::SlotsGiven);
        true
    }

    /// The connection with a peer has ended, and with it the slots of both sides.
    #[cold]
    pub(super) fn parted(&mut self, from: Rank) {
        let Some(p) = self.index.get(from) else { return };
        self.peers[p].part();
        self.give_slots_back(p);
    }

    /// Gives back the slots of a connection that has ended, when all frames in them have been taken.
    #[cold]
    pub(super) fn give_slots_back(&mut self, p: usize) {
        let verbs = &mut self.verbs;
        let is_over = |ring: &mut Box<RingIn>| ring.is_closed && ring.is_empty(verbs);
        if let Some(ring) = self.peers[p].ring_in.take_if(is_over) {
            self.budget.give_back(&mut self.verbs, *ring);
        }
    }

    /// Whether as much has been taken unannounced as a peer should be told of: half of what it may have under way at most.
    pub(super) fn owes_much(&self, p: usize) -> bool {
        let peer = &self.peers[p];
        let slots = peer.ring_in.as_ref().map_or(usize::MAX, |ring| ring.slots());
        let most = TOLD_AFTER.0.min(self.settings.window.div_ceil(2) as u16);
        2 * peer.slots_owed as usize >= slots || peer.buffers_owed >= most || peer.long_owed >= TOLD_AFTER.1
    }

    /// Tells the peer what it waits for: slots, credits. What cannot be posted is owed.
    pub(super) fn tell_or_owe(&mut self, p: usize) {
        let told = self.tell(p).unwrap_or_else(|fault| {
            self.went_wrong(&fault);
            true
        });
        if !told && !self.peers[p].due {
            self.peers[p].due = true;
            self.due.push(p as u32);
        }
    }

    /// Sends what is owed.
    pub(super) fn pay(&mut self) {
        for p in std::mem::take(&mut self.due) {
            self.peers[p as usize].due = false;
            self.tell_or_owe(p as usize);
        }
    }

    fn tell(&mut self, p: usize) -> Result<bool, Fault> {
        let peer = &self.peers[p];
        if peer.failed {
            return Ok(true);
        }
        // An introduction needs a buffer of the peer, which may wait for these very credits.
        let introduced = !peer.introduce || peer.ring_in.is_none() || self.introduce(p)?;
        let in_order = self.verbs.caps().writes_in_order;
        let told =
            !self.owes_much(p) || if in_order { self.write_credits(p)? } else { self.send_credits(p)? };
        Ok(introduced && told)
    }

    /// Writes the number of frames taken into the mailbox of the peer.
    fn write_credits(&mut self, p: usize) -> Result<bool, Fault> {
        let peer = &self.peers[p];
        let (rank, taken) = (peer.rank, peer.taken.to_le_bytes());
        let mailbox = peer.their_mailbox.expect("whose frames were taken has introduced itself");
        let posted = if self.verbs.caps().inline_bytes >= taken.len() {
            let word = Local { span: Span { addr: taken.as_ptr() as usize, len: taken.len() }, key: 0 };
            self.verbs.post_write(rank, RAIL, &[word], mailbox, Work::Inline.encode())?
        } else {
            let Some((index, note)) = self.take_note(RAIL)? else { return Ok(false) };
            self.verbs.poke_bytes(note.span.addr, &taken);
            let word = Local { span: note.span.part(0, taken.len()), key: note.key };
            let work = Work::Note(RAIL, index).encode();
            let posted = self.verbs.post_write(rank, RAIL, &[word], mailbox, work)?;
            if !posted {
                self.notes[RAIL].give_back(index);
            }
            posted
        };
        self.credits_told(p, posted);
        Ok(posted)
    }

    /// Sends the number of frames taken. No frame waits for this one, so it needs no credit.
    fn send_credits(&mut self, p: usize) -> Result<bool, Fault> {
        let Some((index, note)) = self.take_note(RAIL)? else { return Ok(false) };
        let trailer = trailer(&self.peers[p], FrameKind::Credit, [0; 2], 0, 0);
        self.verbs.poke_bytes(note.span.addr, &trailer[16..]);
        let word = Local { span: note.span.part(0, 8), key: note.key };
        let work = Work::Note(RAIL, index).encode();
        let posted = self.verbs.post_send(self.peers[p].rank, RAIL, &[word], work)?;
        if !posted {
            self.notes[RAIL].give_back(index);
        }
        self.credits_told(p, posted);
        Ok(posted)
    }

    fn credits_told(&mut self, p: usize, posted: bool) {
        if posted {
            self.peers[p].told();
            self.counters.count(Event::CreditsWritten);
        } else {
            self.try_later();
        }
    }
}

/// The tail of the frame that ends here, if it has landed.
fn landed(verbs: &impl Verbs, end: usize, slots: usize) -> Result<Option<Tail>, Malformed> {
    match verbs.load(end - 8) {
        word if word >> 56 == 0 => Ok(None),
        word => match Tail::decode(word)? {
            Tail { kind: kind @ (FrameKind::Meet | FrameKind::Credit), .. } => {
                Err(Malformed(format!("{kind:?} in a slot")))
            }
            Tail { next, .. } if next as usize >= slots => {
                Err(Malformed(format!("the next frame in slot {next} of {slots}")))
            }
            tail => Ok(Some(tail)),
        },
    }
}

/// The header words before the tail of the frame that ends here.
pub(super) fn header(verbs: &impl Verbs, end: usize) -> [u64; 2] {
    let mut bytes = [0; 16];
    verbs.peek_bytes(Span { addr: end - 24, len: 16 }, &mut bytes);
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    [word(0), word(8)]
}
