//! From nothing to a connection of iWARP with a peer: there are no datagrams to say hello by, and the kernel sets streams of TCP up.
//!
//! ```text
//! caller     looks for address and way ─▶ asks: hello ──▶     ──▶ answer: hello ─▶ Open
//! called                                              takes it ─▶ Open
//! ```
//!
//! Both say who they are by what goes with request and answer ([`crate::hello`]): what is not of this job is refused. Where both call,
//! the lower rank's call stands, and the other's is refused. A call that comes to nothing is made again, as a hello that is not
//! answered is ([`crate::contact`]); the kernel waits some
//! seconds for an answer (siw 5), and a rank may compute for longer.

use crate::card::Place;
use crate::cm::{Event, Id};
use crate::contact::{Phase, Then};
use crate::device::Ibv;
use crate::hello::Hello;
use crate::rail::Rail;
use fabric::{Fault, Rank};
use rnic::driver::Secret;

impl Rail {
    /// Begins to connect, unless that is under way already.
    pub(crate) fn call(&mut self, peer: Rank, to: &Place, now_ns: u64) -> Result<(), String> {
        if self.contact(peer).id.is_some() {
            return Ok(());
        }
        if self.contact(peer).pair.is_none() {
            self.make_pair(peer, now_ns).map_err(|fault| fault.to_string())?;
        }
        let Some(line) = &self.line else { return Ok(()) };
        let id = line.call(to.address())?;
        self.hold(peer, id, true);
        Ok(())
    }

    fn hold(&mut self, peer: Rank, id: Id, calls: bool) {
        self.ids.insert(id.name(), peer);
        let contact = self.contact(peer);
        (contact.id, contact.calls) = (Some(id), calls);
    }

    /// Gives back what there is of a connection.
    pub(crate) fn drop_pair(&mut self, peer: Rank) {
        let Some(contact) = &mut self.contacts[peer] else { return };
        if let Some(pair) = contact.pair.take() {
            self.by_number.remove(&pair.number());
            self.last = (u32::MAX, 0);
        }
        // Behind the queue pair, which the kernel knows it by.
        if let Some(id) = contact.id.take() {
            self.ids.remove(&id.name());
        }
    }

    /// Says the own side to a peer, with the identifier that is held.
    fn say(&mut self, me: Rank, peer: Rank, secret: &Secret) -> Result<(), String> {
        let (reads, rail) = (self.reads_both(), self.index);
        let contact = self.contact(peer);
        let (Some(pair), Some(id)) = (&contact.pair, &contact.id) else { return Ok(()) };
        let (number, turn) = (pair.number(), contact.turn);
        let hello = Hello { asks: contact.calls, from: me as u32, turn, number, packet: 0, reads, rail };
        id.connect(!contact.calls, number, reads, &hello.encode(peer, secret))
    }

    /// Reads at a time that both ends of a connection bear.
    fn reads_both(&self) -> u8 {
        self.reads_kept().min(self.port.device.max_qp_init_rd_atom.clamp(0, i32::from(u8::MAX)) as u8)
    }

    /// How many may be asked of a peer that has said this.
    fn agree(&mut self, peer: Rank, hello: &Hello) {
        self.contact(peer).requests_max = self.reads_both().min(hello.reads).into();
    }
}

impl Ibv {
    /// Takes what has come of calls over one rail.
    pub(crate) fn hear_calls(&mut self, rail: usize) {
        while let Some(event) = self.rails[rail].line.as_ref().and_then(|line| line.next_event()) {
            let at = match &event {
                Event::Asks(..) => None,
                Event::Resolved(id) | Event::Routed(id) | Event::Closed(id) => Some(*id),
                Event::Established(id, _) | Event::Failed(id, _) => Some(*id),
            };
            let peer = at.and_then(|id| self.rails[rail].ids.get(&id).copied());
            match (event, peer) {
                (Event::Asks(id, said), _) => self.called(rail, id, &said),
                // Of an identifier that has been given back.
                (_, None) => {}
                (Event::Resolved(_), Some(peer)) => {
                    let routed = self.rails[rail].contact(peer).id.as_ref().map_or(Ok(()), Id::route);
                    self.unless_failed(rail, peer, routed);
                }
                (Event::Routed(_), Some(peer)) => {
                    let said = self.rails[rail].say(self.me, peer, &self.secret);
                    self.unless_failed(rail, peer, said);
                }
                (Event::Established(_, said), Some(peer)) => self.connected(rail, peer, &said),
                (Event::Closed(_), Some(peer)) => {
                    // What has come over it came before.
                    while self.fetch(rail) {}
                    self.gone(rail, peer, "its end of the connection is closed: its process or host is gone");
                }
                (Event::Failed(_, why), Some(peer)) => self.gone(rail, peer, &why),
            }
        }
    }

    fn unless_failed(&mut self, rail: usize, peer: Rank, step: Result<(), String>) {
        if let Err(why) = step {
            self.gone(rail, peer, &why);
        }
    }

    /// A connection that was there is lost; one that was not is tried again.
    fn gone(&mut self, rail: usize, peer: Rank, why: &str) {
        let contact = self.rails[rail].contact(peer);
        match contact.phase {
            Phase::Open if contact.has_left => {}
            Phase::Open => {
                let why = format!("{}: {why}", self.rails[rail].port.name());
                self.lose(peer, &Fault::PeerLost(peer, why));
            }
            Phase::Asking { .. } => self.rails[rail].drop_pair(peer),
            Phase::Nothing | Phase::Lost(_) => {}
        }
    }

    /// Somebody asks.
    fn called(&mut self, rail: usize, id: Id, said: &[u8]) {
        let of = &self.rails[rail];
        let hello = Hello::decode(said, self.me, of.contacts.len(), of.index, &self.secret);
        let Some(hello) = hello.filter(|hello| hello.asks) else { return id.reject() };
        let (me, peer) = (self.me, hello.from as Rank);
        self.watch.heard(peer);
        let contact = self.rails[rail].contact(peer);
        let mine_stands = me < peer && contact.calls && contact.id.is_some();
        if mine_stands || contact.heard(&hello) != Then::Connect {
            return id.reject();
        }
        let now_ns = self.clock_ns();
        self.rails[rail].drop_pair(peer);
        if let Err(fault) = self.rails[rail].make_pair(peer, now_ns) {
            id.reject();
            return self.lose(peer, &fault);
        }
        let contact = self.rails[rail].contact(peer);
        contact.turn = hello.turn;
        contact.asked(now_ns);
        self.note_asking(rail, peer);
        self.rails[rail].hold(peer, id, false);
        self.rails[rail].agree(peer, &hello);
        let said = self.rails[rail].say(me, peer, &self.secret);
        self.unless_failed(rail, peer, said);
    }

    /// A connection is there: the caller has the answer, who was called knows already who it is.
    fn connected(&mut self, rail: usize, peer: Rank, said: &[u8]) {
        let of = &self.rails[rail];
        let answer = Hello::decode(said, self.me, of.contacts.len(), of.index, &self.secret);
        let contact = self.rails[rail].contact(peer);
        if !matches!(contact.phase, Phase::Asking { .. }) {
            return;
        }
        if contact.calls {
            let turn = contact.turn;
            let Some(answer) = answer.filter(|it| !it.asks && it.from as Rank == peer && it.turn == turn)
            else {
                let name = self.rails[rail].port.name();
                let why = format!("{name}: who answers at its address is not of this job");
                return self.lose(peer, &Fault::PeerLost(peer, why));
            };
            self.rails[rail].agree(peer, &answer);
        }
        self.watch.heard(peer);
        self.rails[rail].contact(peer).phase = Phase::Open;
        self.forget_asking(rail, peer);
    }
}
