//! From nothing to a queue pair with a peer, and back.

use crate::card::Place;
use crate::contact::{Contact, Phase};
use crate::hello::Hello;
use crate::objects::{Handle, Order, PIECES, Pair, meaning};
use crate::rail::{HELLO_OUT, HELLOS_IN, Rail, id};
use fabric::{Fault, Rank};
use rnic::driver::{Secret, memory};
use verbs_layout::constants::attributes::{
    self, ACCESS, DEST, DEST_READS, PATH_MTU, PKEY, PORT, RETRIES, RNR_RETRIES, RNR_TIMER, ROUTE, RQ_PSN,
    SQ_PSN, STATE,
};
use verbs_layout::constants::*;
use verbs_layout::layout::{QpAttr, QpCap};

/// Reads of a peer that are kept at a time, and asked for at a time, as far as the adapters have it.
const READS: i32 = 16;
/// How long an acknowledgement is waited for: 4.096 µs times two to this, 67 ms; and how often it is, which makes half a second
/// or more (IBTA specification, section 9.7.6.1.3).
const TIMEOUT: u8 = 14;
const RETRIES_MOST: u8 = 7;
/// Without end: a receiver that is late is no error.
const RNR_WITHOUT_END: u8 = 7;
/// What a receiver without a buffer asks to be left alone for: 0.64 ms (IBTA table 45).
const RNR_PAUSE: u8 = 12;
/// Payload that goes with the order, as far as the adapter has it.
const INLINE: u32 = 256;

impl Rail {
    /// A peer.
    pub fn contact(&mut self, peer: Rank) -> &mut Contact {
        self.contacts[peer].get_or_insert_default()
    }

    pub(crate) fn fresh(&self) -> Result<Pair, String> {
        let max_send_sge = (PIECES as i32).min(self.port.device.max_sge) as u32;
        let cap = QpCap {
            max_send_wr: self.depth as u32,
            max_recv_wr: 0,
            max_send_sge,
            max_recv_sge: 0,
            max_inline_data: INLINE,
        };
        // Adapters with less room for payload refuse more: halved until it is taken.
        let less = |bytes: u32| Pair::new(&self.hub, TYPE_RC, QpCap { max_inline_data: bytes, ..cap });
        less(INLINE).or_else(|_| less(INLINE / 2)).or_else(|_| less(INLINE / 4)).or_else(|_| less(0))
    }

    /// Makes the queue pair for a peer.
    pub fn make_pair(&mut self, peer: Rank, now_ns: u64) -> Result<(), Fault> {
        let lost = |why: String| {
            Fault::PeerLost(
                peer,
                format!(
                    "{}: no queue pair for it: {why} (the adapter has {} in all): TERN_TRANSPORT=hybrid keeps to TERN_CONNECTIONS",
                    self.port.name(),
                    self.port.device.max_qp
                ),
            )
        };
        let pair = self.fresh().map_err(lost)?;
        let init = QpAttr {
            qp_state: STATE_INIT,
            pkey_index: self.port.partition,
            port_num: self.port.number,
            qp_access_flags: self.access() as u32,
            ..QpAttr::default()
        };
        let of_port = if self.line.is_some() { 0 } else { PKEY | PORT };
        pair.modify(init, STATE | of_port | ACCESS).map_err(lost)?;
        self.by_number.insert(pair.number(), peer);
        let contact = self.contact(peer);
        // Packets of an earlier connection that are late are not taken for those of this one.
        contact.packet = (now_ns as u32 ^ pair.number().rotate_left(12)) & 0xff_ffff;
        contact.pair = Some(pair);
        Ok(())
    }

    /// Says where the own queue pair is.
    pub fn tell(
        &mut self,
        me: Rank,
        peer: Rank,
        asks: bool,
        to: &Place,
        secret: &Secret,
    ) -> Result<(), String> {
        let reads = self.reads_kept();
        let Some(contact) = &self.contacts[peer] else { return Ok(()) };
        let (Some(pair), Some(_)) = (&contact.pair, &self.hellos) else { return Ok(()) };
        let hello = Hello {
            asks,
            from: me as u32,
            turn: contact.turn,
            number: pair.number(),
            packet: contact.packet,
            reads,
            rail: self.index,
        };
        // Where no slot is free it is as lost: it will be asked for again.
        let Some(slot) = self.hellos_free.pop() else { return Ok(()) };
        let note = self.note(HELLOS_IN + slot);
        let bytes = hello.encode(peer, secret);
        memory::copy(note.span.addr, bytes.as_ptr() as usize, bytes.len());
        self.open_handle(peer, to)?;
        let order = Order::Datagram(&[note], &self.handles[&peer], to.hellos, self.key, me as u32);
        let Some(hellos) = &self.hellos else { return Ok(()) };
        let posted = hellos.post(&order, id(HELLO_OUT, slot), 0);
        if posted.is_err() {
            self.hellos_free.push(slot);
        }
        posted.map_err(meaning)
    }

    pub(crate) fn open_handle(&mut self, peer: Rank, to: &Place) -> Result<(), String> {
        if !self.handles.contains_key(&peer) {
            let handle = Handle::new(&self.hub, self.port.route(to, &self.choice))?;
            self.handles.insert(peer, handle);
        }
        Ok(())
    }

    pub(crate) fn reads_kept(&self) -> u8 {
        self.port.device.max_qp_rd_atom.clamp(0, READS) as u8
    }

    /// Connects to what a peer has said: work may be posted then.
    pub fn connect(&mut self, peer: Rank, hello: &Hello, to: &Place) -> Result<(), String> {
        let ready = QpAttr {
            qp_state: STATE_RTR,
            path_mtu: i32::from(to.mtu).min(self.port.attr.active_mtu),
            dest_qp_num: hello.number,
            rq_psn: hello.packet,
            max_dest_rd_atomic: self.reads_kept(),
            min_rnr_timer: RNR_PAUSE,
            ah_attr: self.port.route(to, &self.choice),
            ..QpAttr::default()
        };
        let reads = self.port.device.max_qp_init_rd_atom.clamp(0, READS) as u8;
        let contact = self.contacts[peer].as_mut().ok_or("it has no queue pair")?;
        let pair = contact.pair.as_ref().ok_or("it has no queue pair")?;
        pair.modify(ready, STATE | ROUTE | PATH_MTU | DEST | RQ_PSN | DEST_READS | RNR_TIMER)?;
        let send = QpAttr {
            qp_state: STATE_RTS,
            sq_psn: contact.packet,
            timeout: TIMEOUT,
            retry_cnt: RETRIES_MOST,
            rnr_retry: RNR_WITHOUT_END,
            max_rd_atomic: reads.min(hello.reads),
            ..QpAttr::default()
        };
        pair.modify(send, STATE | SQ_PSN | attributes::TIMEOUT | RETRIES | RNR_RETRIES | attributes::READS)?;
        contact.requests_max = reads.min(hello.reads).into();
        contact.phase = Phase::Open;
        Ok(())
    }

    /// Ends the connection with a peer, over which nothing is under way.
    pub fn disconnect(&mut self, peer: Rank) {
        let Some(contact) = &mut self.contacts[peer] else { return };
        if matches!(contact.phase, Phase::Lost(_)) {
            return;
        }
        contact.phase = Phase::Nothing;
        self.drop_pair(peer);
    }

    /// Nothing goes to a peer any more: what is under way there ends.
    pub fn lose(&mut self, peer: Rank, why: &Fault) {
        let contact = self.contact(peer);
        if !matches!(contact.phase, Phase::Lost(_)) {
            contact.phase = Phase::Lost(why.clone());
            if let Some(pair) = &contact.pair {
                let _ = pair.modify(QpAttr { qp_state: STATE_ERR, ..QpAttr::default() }, STATE);
            }
        }
    }
}
