//! A port that writes down what it is asked for, and does nothing.

use crate::choice::tuning::Tuning;
use crate::event::Event;
use crate::memory::rcache::Held;
use crate::memory::staging::{BUFFERS, Slab, Use};
use crate::message::op::Side;
use crate::rendezvous::movers::Message;
use crate::rendezvous::movers::port::{Port, Sharing, Turn};
use fabric::{Fault, Local, Region, Remote, Rights, Share, ShareWord, Span};
use std::collections::BTreeMap;
use wire::head::{FrameType, Offer};
use wire::long::{Fragment, LongRts};

/// Where the buffer of every scripted message lies.
pub const BUFFER: usize = 0x10_0000;
/// Where the staging memory lies.
pub const STAGING: usize = 0x80_0000;

#[derive(Default)]
pub struct Script {
    pub tuning: Tuning,
    pub rails: usize,
    /// What was asked for, one line each.
    pub log: Vec<String>,
    /// Words of staging memory.
    pub words: BTreeMap<usize, u64>,
    /// Registrations held, and slabs that are in use.
    pub held: Vec<Held>,
    pub slabs: Vec<Slab>,
    pub refuses_to_register: bool,
    pub has_no_room: bool,
    pub has_no_slab: bool,
    pub keeps_back: bool,
    pub is_disordered: bool,
    pub keys: u32,
    /// The words of the one share there is.
    pub share: [u64; ShareWord::ALL.len()],
    pub has_no_share: bool,
    /// Whether the other side has taken the share.
    pub was_taken: bool,
    /// How copies across end; well if it is not said.
    pub copies: Option<Result<(), Fault>>,
    pub turn: Turn,
}

impl Script {
    fn note(&mut self, line: String) {
        self.log.push(line);
    }
}

/// An address, by what lies there.
fn place(addr: usize) -> String {
    if addr >= STAGING { format!("staging+{}", addr - STAGING) } else { format!("buffer+{}", addr - BUFFER) }
}

impl Sharing for Script {
    fn open_share(&mut self) -> Option<Share> {
        let share = (!self.has_no_share).then_some(Share { owner: 0, index: 3 })?;
        self.note("open a share".into());
        Some(share)
    }

    fn close_share(&mut self, share: Share) {
        self.note(format!("close share {}", share.index));
    }

    fn take_share(&mut self, _share: Share) -> bool {
        !self.was_taken
    }

    fn word(&self, share: Share, word: ShareWord) -> u64 {
        assert_eq!(share.index, 3);
        self.share[word as usize]
    }

    fn set_words(&mut self, share: Share, words: &[(ShareWord, u64)]) {
        assert_eq!(share.index, 3);
        for (word, value) in words {
            self.share[*word as usize] = *value;
            self.note(format!("{word:?} := {value:#x}"));
        }
    }

    fn add_word(&mut self, share: Share, word: ShareWord, value: u64) -> u64 {
        assert_eq!(share.index, 3);
        let before = self.share[word as usize];
        self.share[word as usize] = before.wrapping_add(value);
        before
    }

    fn wake(&mut self) {
        self.note("wake".into());
    }

    fn reaches(&mut self) -> bool {
        self.copies != Some(Err(Fault::NotPermitted))
    }

    fn copy_across(&mut self, side: Side, local: Span, remote: usize) -> Result<(), Fault> {
        self.note(format!("{side:?} {}..+{} across from {remote:#x}", place(local.addr), local.len));
        self.copies.clone().unwrap_or(Ok(()))
    }

    fn was_written(&mut self, _span: Span) {}

    fn announce(&mut self, kind: FrameType, offer: Offer) -> bool {
        if !self.has_no_room {
            self.note(format!("{kind:?} {} bytes", offer.len));
        }
        !self.has_no_room
    }

    fn turn(&self) -> Turn {
        self.turn
    }
}

impl Port for Script {
    fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    fn rails(&self) -> usize {
        self.rails.max(1)
    }

    fn hold(&mut self, rail: usize, span: Span, rights: Rights, keep: bool) -> Result<Held, Fault> {
        if self.refuses_to_register {
            return Err(Fault::Device("refused".into()));
        }
        self.keys += 1;
        let held = Held { rail, region: Region { local: self.keys, remote: 100 + self.keys } };
        let kept = if keep { ", to keep" } else { "" };
        let purpose = match rights {
            Rights::NONE => "",
            Rights::LOCAL_WRITE => ", to be filled",
            Rights::REMOTE_READ => ", to be read",
            Rights::REMOTE_WRITE => ", to be written to",
            _ => panic!("no message needs {rights:?}"),
        };
        self.note(format!("register {}..+{} rail {rail}{purpose}{kept}", place(span.addr), span.len));
        self.held.push(held);
        Ok(held)
    }

    fn release(&mut self, held: Held) {
        let at = self.held.iter().position(|h| *h == held).expect("held once");
        self.held.remove(at);
        self.note(format!("release key {}", held.region.local));
    }

    fn stage(&mut self, wanted: Use) -> Result<Option<Slab>, Fault> {
        if self.refuses_to_register {
            return Err(Fault::Device("refused".into()));
        }
        if self.has_no_slab {
            return Ok(None);
        }
        let span = Span { addr: STAGING, len: BUFFERS * self.tuning.staging_bytes };
        let slab = Slab { span, regions: [Region { local: 7, remote: 107 }; 4], wanted, number: 5 };
        self.slabs.push(slab);
        self.note(format!("stage {wanted:?}"));
        Ok(Some(slab))
    }

    fn unstage(&mut self, slab: Slab) {
        let at = self.slabs.iter().position(|s| *s == slab).expect("staged once");
        self.slabs.remove(at);
        self.note("unstage".into());
    }

    fn writes_in_order(&self) -> bool {
        !self.is_disordered
    }

    fn load(&self, addr: usize) -> u64 {
        *self.words.get(&addr).unwrap_or(&0)
    }

    fn store(&mut self, addr: usize, value: u64) {
        self.words.insert(addr, value);
        self.note(format!("{} := {value:#x}", place(addr)));
    }

    fn write(&mut self, rail: usize, local: Local, remote: Remote, work: u32) {
        let Local { span, .. } = local;
        let from = place(span.addr);
        self.note(format!("write {work}: {from}..+{} to {:#x} rail {rail}", span.len, remote.addr));
    }

    fn read(&mut self, rail: usize, local: Local, remote: Remote, work: u32) {
        let Local { span, .. } = local;
        self.note(format!(
            "read {work}: {:#x} to {}..+{} rail {rail}",
            remote.addr,
            place(span.addr),
            span.len
        ));
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        let from = if from < BUFFER { "frame".into() } else { place(from) };
        self.note(format!("copy {from}..+{len} to {}", place(to)));
    }

    fn request(&mut self, rts: LongRts, along: usize) -> bool {
        if !self.has_no_room {
            self.note(format!("RTS {} bytes, {along} along", rts.len));
        }
        !self.has_no_room
    }

    fn frame_bytes(&self) -> usize {
        1040
    }

    fn keeps_back(&mut self, _len: usize) -> bool {
        self.keeps_back
    }

    fn frame(&mut self, data: Span, offset: u64) -> bool {
        if !self.has_no_room {
            self.note(format!("frame {}..+{} to {offset}", place(data.addr), data.len));
        }
        !self.has_no_room
    }

    fn tell(&mut self, kind: FrameType, f: Fragment) {
        self.note(format!("{kind:?} {}..+{} rail {} flags {}", f.offset, f.len, f.rail, f.flags));
    }

    fn fin(&mut self, fragment: Fragment) {
        self.tell(FrameType::Fin, fragment);
    }

    fn emit(&mut self, _event: Event) {}
}

/// A message of this length.
pub fn message(protocol: Option<crate::choice::way::Protocol>, len: usize) -> Message {
    Message { protocol, peer: 1, local: Span { addr: BUFFER, len }, peer_op: 9, len: len as u64 }
}
