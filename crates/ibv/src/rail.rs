//! One port with its queues: what is posted there, and what comes of it.

use crate::card::{IWARP, Place};
use crate::cm::Line;
use crate::contact::{Contact, Phase};
use crate::find::{Choice, Port};
use crate::hello::{self, Hello};
use crate::library::WITHOUT;
use crate::objects::{FULL, Handle, Hub, Order, PIECES, Pages, Pair, Region, meaning, why};
use fabric::{Atomic, Completion, Done, Fault, Local, Rank, Remote, Rights, Span, Table};
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use verbs_layout::constants::attributes::{PKEY, PORT, QKEY, SQ_PSN, STATE};
use verbs_layout::constants::*;
use verbs_layout::layout::{DeviceAttr, QpAttr, QpCap};

/// Work requests that may be outstanding to one peer.
const DEPTH: u32 = 256;
/// Receive buffers in a queue.
const RECEIVES: u32 = 512;
/// Completions that are waited for at a time; where that is all, posts are refused: a queue never overruns.
const COMPLETIONS: u32 = 8192;
/// The vendor of the kernel's siw. Memory of its queues is shown to a process at numbers that the kernel deals out in pages, the first
/// that are free (`rdma_user_mmap_entry_insert`), and its library takes one of them for none: a queue that begins there is refused, and no
/// other can take its place. So what is made first lies over that number: the completion queue.
const SIW: u32 = 0x62_6d74;
/// That number (`SIW_INVAL_UOBJ_KEY`), and the bytes of a completion (`struct siw_cqe`).
const SIW_NOWHERE: u32 = 0x9_0000;
const SIW_COMPLETION: u32 = 32;
/// Hellos that may come before this rank looks, and those that leave at a time.
pub(crate) const HELLOS_IN: u32 = 64;
const HELLOS_OUT: u32 = 32;
/// The word by which a rank takes its leave.
pub(crate) const LEAVE: u32 = 0x6c65_6176;
/// Work that is the device's own: a word of leave, and a question whether a peer's adapter is there.
pub(crate) const OWN: u64 = u64::MAX;
pub(crate) const PROBE: u64 = u64::MAX - 1;
/// What stands in front of a datagram.
pub(crate) const HEAD: usize = 40;

/// Where the kernel lists its adapters.
const KNOWN: &str = "/sys/class/infiniband";

/// What a completion is of, in the two highest bits of its number.
pub(crate) const FLIGHT: u64 = 0;
pub(crate) const RECEIVE: u64 = 1;
pub(crate) const HELLO_IN: u64 = 2;
pub(crate) const HELLO_OUT: u64 = 3;

pub(crate) fn id(what: u64, index: u32) -> u64 {
    what << 62 | u64::from(index)
}

/// Work under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) peer: Rank,
    pub(crate) work: u64,
    pub(crate) done: Done,
    pub(crate) kind: Kind,
}

/// What work is, as far as it is kept account of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Message,
    /// A Read.
    Request,
    Atomic,
    Datagram,
}

/// A buffer that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    pub(crate) buffer: Local,
    pub(crate) work: u64,
    pub(crate) is_for_datagrams: bool,
}

/// What receive buffers are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// Messages over connections.
    Messages,
    /// Datagrams alone.
    Datagrams,
    /// Both: three quarters of the buffers are for datagrams, because who makes them reliable (`proto::reliable`) keeps half of
    /// all, until the datagram has come that is missing: that one must find a buffer.
    Both,
}

/// What has come of a look.
#[derive(Debug)]
pub enum News {
    /// Work has ended.
    Ended(Completion),
    /// A peer says where its queue pair is.
    Hello(Hello),
    /// Its adapter has answered.
    Answered(Rank),
    /// A connection is broken, for this reason.
    Broken(Rank, String),
    /// The adapter tells something, and of which port or queue pair.
    Event(i32, u32),
    /// Something is wrong with the adapter.
    Fault(String),
}

/// See the [module](self).
pub struct Rail {
    /// Where it is.
    pub port: Port,
    /// Peers, as far as there is anything with them.
    pub contacts: Vec<Option<Box<Contact>>>,
    /// Whether its completion queue is asked to tell.
    pub is_armed: bool,
    /// The port has gone down.
    pub is_down: bool,
    traffic: Traffic,
    /// None of iWARP, which has a line instead.
    pub(crate) hellos: Option<Pair>,
    pub(crate) line: Option<Line>,
    /// Whose connections the identifiers of the line are.
    pub(crate) ids: HashMap<usize, Rank>,
    pub(crate) datagrams: Option<Pair>,
    pub(crate) handles: HashMap<Rank, Handle>,
    pub(crate) by_number: HashMap<u32, Rank>,
    pub(crate) last: (u32, Rank),
    pub(crate) flights: Table<Flight>,
    pub(crate) receives: Table<Filling>,
    pub(crate) spare: VecDeque<(Local, u64)>,
    /// Buffers in the two queues, and their room.
    pub(crate) shared: (u32, u32),
    pub(crate) own: (u32, u32),
    /// Completions that fit.
    completions: usize,
    pub(crate) depth: usize,
    /// Buffers for hellos, and slots for those that leave.
    hellos_in: u32,
    pub(crate) hellos_free: Vec<u32>,
    /// Of memory that is registered, by the key for work of this rank.
    regions: HashMap<u32, Region>,
    notes: Local,
    /// Whether the kernel knows its adapter.
    is_known: bool,
    /// Whether its adapter does, once that was asked.
    pages_on_demand: Option<bool>,
    pub(crate) key: u32,
    /// Which of the rank's rails it is.
    pub(crate) index: u8,
    pub(crate) choice: Choice,
    pub(crate) hub: Arc<Hub>,
    _pages: Pages,
}

/// Why a port is of no use for a job.
#[cold]
fn too_little(port: &Port) -> String {
    let device = &port.device;
    format!(
        "{}: too little for a job: {} shared receive queues of {}, {} work requests in a queue of {} pieces, {} completions",
        port.name(),
        device.max_srq,
        device.max_srq_wr,
        device.max_qp_wr,
        device.max_sge,
        device.max_cqe
    )
}

/// Completions that a queue of this vendor's adapters is to have room for.
fn completions(vendor: u32) -> u32 {
    if vendor == SIW { SIW_NOWHERE / SIW_COMPLETION + 1 } else { COMPLETIONS }
}

/// What its queue pairs share; where that cannot be made, with what may be used up and what to do then.
fn hub(port: &Port, completions: u32, receives: u32) -> Result<Arc<Hub>, String> {
    let DeviceAttr { max_cq, max_srq, .. } = port.device;
    let hub = Hub::new(port.adapter.clone(), completions, receives);
    hub.map(Arc::new).map_err(|why| {
        format!(
            "{why} (for all processes together the adapter has {max_cq} completion queues and {max_srq} shared receive queues); {WITHOUT}"
        )
    })
}

/// By which an iWARP adapter is connected.
fn line(port: &Port, traffic: Traffic) -> Result<Option<Line>, String> {
    let about = |why: String| format!("{}: {why}", port.name());
    match (port.kind, traffic) {
        (IWARP, Traffic::Messages) => {
            Line::new(&port.adapter.name, &port.adapter.library.name).map(Some).map_err(about)
        }
        (IWARP, _) => Err(about("iWARP adapters carry no datagrams: TERN_TRANSPORT=rc".into())),
        _ => Ok(None),
    }
}

/// Memory for hellos, and in front of them for what stands in front of datagrams.
fn paper(hub: &Arc<Hub>) -> Result<(Pages, Region), String> {
    let pages = Pages::new(HEAD + (HELLOS_IN + HELLOS_OUT) as usize * hello::LEN);
    let region = Region::new(hub, pages.span(), ACCESS_LOCAL_WRITE).map_err(why)?;
    Ok((pages, region))
}

impl Rail {
    /// At this port; with datagrams for the library where they are part of the traffic.
    pub fn new(port: Port, choice: &Choice, traffic: Traffic) -> Result<Rail, String> {
        let device = &port.device;
        let most = |limit: i32, wanted: u32| wanted.min(limit.max(0) as u32);
        let completions = most(device.max_cqe, completions(device.vendor_id));
        let shared = most(device.max_srq_wr, RECEIVES);
        let (depth, own) = (most(device.max_qp_wr, DEPTH), most(device.max_qp_wr, RECEIVES));
        let (hellos_in, hellos_out) = (most(device.max_qp_wr, HELLOS_IN), most(device.max_qp_wr, HELLOS_OUT));
        if device.max_srq <= 0 || shared.min(depth) < 16 || completions < 4 * HELLOS_IN || device.max_sge < 2
        {
            return Err(too_little(&port));
        }
        let hub = hub(&port, completions, shared)?;
        let lacks = |what: &str, why: String| format!("{}: no {what}: {why}", port.name());
        let pair = |cap| Pair::new(&hub, TYPE_UD, cap);
        let (pieces, inline) = (PIECES as u32, 0);
        let cap = QpCap {
            max_send_wr: hellos_out,
            max_recv_wr: hellos_in,
            max_send_sge: 1,
            max_recv_sge: 2,
            max_inline_data: inline,
        };
        let line = line(&port, traffic)?;
        let hellos = line.is_none().then(|| pair(cap)).transpose();
        let hellos = hellos.map_err(|why| lacks("queue pair for datagrams", why))?;
        let cap = QpCap {
            max_send_wr: depth,
            max_recv_wr: own,
            max_send_sge: pieces.min(device.max_sge as u32),
            ..cap
        };
        let datagrams = (traffic != Traffic::Messages).then(|| pair(cap)).transpose();
        let datagrams = datagrams.map_err(|why| lacks("queue pair for datagrams", why))?;
        let (pages, region) = paper(&hub).map_err(|why| lacks("registered memory", why))?;
        let notes = region.keys().local(pages.span());
        let mut rail = Rail {
            contacts: Vec::new(),
            is_armed: false,
            is_down: false,
            traffic,
            hellos,
            line,
            ids: HashMap::new(),
            datagrams,
            handles: HashMap::new(),
            by_number: HashMap::new(),
            last: (u32::MAX, 0),
            flights: Table::default(),
            receives: Table::default(),
            spare: VecDeque::new(),
            shared: (0, shared),
            own: (0, own),
            completions: (completions - HELLOS_IN - HELLOS_OUT) as usize,
            depth: depth as usize,
            hellos_in: if port.kind == IWARP { 0 } else { hellos_in },
            hellos_free: (0..hellos_out).collect(),
            regions: HashMap::new(),
            notes,
            is_known: Path::new(KNOWN).join(&port.adapter.name).exists(),
            pages_on_demand: None,
            key: 0,
            index: 0,
            choice: choice.clone(),
            hub,
            _pages: pages,
            port,
        };
        rail.keep(region);
        Ok(rail)
    }

    /// What all queue pairs share.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// The numbers of its queue pairs for hellos and for datagrams; of iWARP the port where it is called.
    pub fn numbers(&self) -> (u32, u32) {
        let line = || self.line.as_ref().map_or(0, |line| line.at.port().into());
        (
            self.hellos.as_ref().map_or_else(line, Pair::number),
            self.datagrams.as_ref().map_or(0, Pair::number),
        )
    }

    /// What a queue pair of this rail takes with an order; asked of one that is made for it.
    pub fn inline_bytes(&self) -> Result<usize, String> {
        let pair = self.fresh().map_err(|why| format!("{}: no queue pair: {why}", self.port.name()))?;
        Ok(pair.inline_bytes)
    }

    /// See [`fabric::VerbsCaps::holds_receives`].
    pub fn holds_receives(&self) -> Option<usize> {
        self.line.as_ref().map(|_| self.shared.1 as usize)
    }

    /// Work requests that may be outstanding to one peer.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Begins to hear and to send as the rail of this index: `size` ranks, whose datagrams have this key.
    pub fn begin(&mut self, index: usize, size: usize, key: u32) -> Result<(), String> {
        self.contacts.resize_with(size, || None);
        (self.index, self.key) = (index as u8, key);
        for pair in self.hellos.iter().chain(&self.datagrams) {
            let about =
                |why| format!("{}: a queue pair for datagrams does not begin: {why}", self.port.name());
            let init = QpAttr {
                qp_state: STATE_INIT,
                pkey_index: self.port.partition,
                port_num: self.port.number,
                qkey: key,
                ..QpAttr::default()
            };
            pair.modify(init, STATE | PKEY | PORT | QKEY).map_err(about)?;
            pair.modify(QpAttr { qp_state: STATE_RTR, ..QpAttr::default() }, STATE).map_err(about)?;
            pair.modify(QpAttr { qp_state: STATE_RTS, ..QpAttr::default() }, STATE | SQ_PSN)
                .map_err(about)?;
        }
        (0..self.hellos_in).try_for_each(|slot| self.expect_hello(slot))
    }

    pub(crate) fn note(&self, slot: u32) -> Local {
        let span = self.notes.span.part(HEAD + slot as usize * hello::LEN, hello::LEN);
        Local { span, key: self.notes.key }
    }

    /// Where the routing headers of datagrams go, which nobody reads.
    fn head(&self) -> Local {
        Local { span: self.notes.span.part(0, HEAD), key: self.notes.key }
    }

    pub(crate) fn expect_hello(&self, slot: u32) -> Result<(), String> {
        let Some(hellos) = &self.hellos else { return Ok(()) };
        hellos.post_receive(self.head(), self.note(slot), id(HELLO_IN, slot))
    }

    /// Registers memory for these uses.
    pub fn register(&mut self, span: Span, rights: Rights) -> Result<fabric::Region, Fault> {
        let access = self.access_for(rights);
        let kept = Region::new(&self.hub, span, access);
        // Where memory cannot be locked the adapter may do without.
        let region = kept.or_else(|number| match self.pages_on_demand() {
            true => Region::new(&self.hub, span, access | ACCESS_ON_DEMAND).map_err(|_| number),
            false => Err(number),
        });
        match region {
            Ok(region) => Ok(self.keep(region)),
            Err(number) => Err(Fault::Device(format!(
                "{} does not register {} bytes: {} ({} regions are, of {} at most)",
                self.port.name(),
                span.len,
                why(number),
                self.regions.len(),
                self.port.device.max_mr
            ))),
        }
    }

    /// Whether this region's pages stay where they are because the adapter holds them: not where it takes them on demand, and adapters
    /// that the kernel does not know, as Tern's, go by addresses.
    pub fn holds_pages(&self, region: fabric::Region) -> bool {
        self.is_known && self.regions.get(&region.local).is_some_and(Region::is_pinned)
    }

    fn keep(&mut self, region: Region) -> fabric::Region {
        let keys = region.keys();
        self.regions.insert(keys.local, region);
        keys
    }

    /// Gives a registration back.
    pub fn deregister(&mut self, region: fabric::Region) {
        assert!(self.regions.remove(&region.local).is_some(), "what is given back is registered");
    }

    /// Posts to a peer that is connected; false if there is no room.
    pub fn post(
        &mut self,
        to: Rank,
        order: &Order,
        inline: bool,
        work: u64,
        done: Done,
    ) -> Result<bool, Fault> {
        if self.is_full() {
            return Ok(false);
        }
        let depth = self.depth;
        let kind = match order {
            Order::Read(..) | Order::Question => Kind::Request,
            Order::Change(..) => Kind::Atomic,
            _ => Kind::Message,
        };
        let flight = self.flights.insert(Flight { peer: to, work, done, kind });
        let contact = self.contacts[to].as_mut().expect("it is connected");
        let pair = contact.pair.as_ref().expect("it is connected");
        let posted = match contact.under_way < depth {
            true => {
                // An adapter may begin what stands behind an atomic operation before that is done (IBTA specification, section
                // 10.8.3.3), unless it is told to wait.
                let fence = if contact.atomics > 0 { SEND_FENCE } else { 0 };
                let inline = if inline { SEND_INLINE } else { 0 };
                pair.post(order, id(FLIGHT, flight), fence | inline)
            }
            false => Err(FULL),
        };
        match posted {
            Ok(()) => {
                contact.under_way += 1;
                contact.requests += usize::from(matches!(kind, Kind::Request | Kind::Atomic));
                contact.atomics += usize::from(kind == Kind::Atomic);
            }
            Err(_) => drop(self.flights.remove(flight)),
        }
        match posted {
            Ok(()) => Ok(true),
            Err(FULL) => Ok(false),
            Err(error) => Err(Fault::PeerLost(
                to,
                format!("{} takes no work for it: {}", self.port.name(), meaning(error)),
            )),
        }
    }

    /// Posts a datagram; false if there is no room.
    pub fn post_datagram(
        &mut self,
        me: Rank,
        to: Rank,
        place: &Place,
        parts: &[Local],
        work: u64,
    ) -> Result<bool, Fault> {
        if self.is_full() {
            return Ok(false);
        }
        let fault = |why: String| Fault::Device(format!("a datagram to rank {to}: {why}"));
        self.open_handle(to, place).map_err(fault)?;
        let flight = self.flights.insert(Flight { peer: to, work, done: Done::Sent, kind: Kind::Datagram });
        let order = Order::Datagram(parts, &self.handles[&to], place.datagrams, self.key, me as u32);
        let pair = self
            .datagrams
            .as_ref()
            .ok_or_else(|| fault("this adapter was opened without datagrams".into()))?;
        match pair.post(&order, id(FLIGHT, flight), 0) {
            Ok(()) => Ok(true),
            Err(error) => {
                self.flights.remove(flight);
                if error == FULL { Ok(false) } else { Err(fault(meaning(error))) }
            }
        }
    }

    /// Changes a word of a peer's memory, if it is connected; false if there is no room, or the adapters do not take one more at a time: it
    /// would be overtaken then.
    pub fn change(
        &mut self,
        at: Rank,
        local: Local,
        remote: Remote,
        atomic: Atomic,
        work: u64,
    ) -> Result<bool, Fault> {
        match &self.contacts[at] {
            Some(contact)
                if matches!(contact.phase, Phase::Open) && contact.requests < contact.requests_max =>
            {
                self.post(at, &Order::Change(local, remote, atomic), false, work, Done::Read)
            }
            _ => Ok(false),
        }
    }

    /// What peers may do over a queue pair, with memory that is registered for it.
    pub(crate) fn access(&self) -> i32 {
        ACCESS_ALL | if self.port.device.atomic_cap == ATOMIC_NONE { 0 } else { ACCESS_ATOMIC }
    }

    /// As the library says what memory is registered for.
    fn access_for(&self, rights: Rights) -> i32 {
        let write = if self.line.is_some() { ACCESS_LOCAL_WRITE | ACCESS_WRITE } else { ACCESS_LOCAL_WRITE };
        let all = [
            // A peer of iWARP answers a read by writing, to the key of where that goes (RFC 5040 section 4.4).
            (Rights::LOCAL_WRITE, write),
            (Rights::REMOTE_READ, ACCESS_READ),
            (Rights::REMOTE_WRITE, ACCESS_WRITE),
            (Rights::REMOTE_ATOMIC, self.access() & ACCESS_ATOMIC),
        ];
        let given = all.into_iter().filter(|(right, _)| rights.include(*right));
        given.fold(0, |access, (_, more)| access | more)
    }

    fn pages_on_demand(&mut self) -> bool {
        *self.pages_on_demand.get_or_insert_with(|| self.port.adapter.pages_on_demand())
    }

    fn is_full(&self) -> bool {
        self.flights.len() + (self.shared.0 + self.own.0) as usize >= self.completions
    }

    /// Takes leave of a peer; whether that is posted.
    pub fn leave(&mut self, peer: Rank) -> bool {
        // iWARP has no words; nothing else is empty.
        let order = if self.line.is_some() { Order::Send(&[]) } else { Order::Word(LEAVE) };
        self.post(peer, &order, false, OWN, Done::Sent) == Ok(true)
    }

    /// Asks whether a silent peer's adapter is there: it answers while the rank computes. If it does not, that work ends with an
    /// error, and so the connection; adapters in software may find that out late, or not at all ([`Rail::is_asking`]).
    pub fn probe(&mut self, peer: Rank) {
        // iWARP wants a place for what is read, also where that is nothing.
        let nothing = Local { span: self.notes.span.part(0, 0), key: self.notes.key };
        let order = match self.line {
            Some(_) => Order::Read(nothing, Remote { addr: 0, key: 0 }),
            None => Order::Question,
        };
        let contact = self.contacts[peer].as_ref();
        if contact.is_some_and(|it| matches!(it.phase, Phase::Open) && !it.is_asked && !it.has_left)
            && self.post(peer, &order, false, PROBE, Done::Read) == Ok(true)
            && let Some(contact) = &mut self.contacts[peer]
        {
            contact.is_asked = true;
        }
    }

    /// Whether the peer's adapter has not answered yet.
    pub fn is_asking(&self, peer: Rank) -> bool {
        self.contacts[peer].as_ref().is_some_and(|contact| contact.is_asked)
    }

    /// Gives a buffer for messages or for datagrams, see [`Traffic`].
    pub fn post_receive(&mut self, buffer: Local, work: u64) -> Result<(), String> {
        let is_for_datagrams = match self.traffic {
            Traffic::Messages => false,
            Traffic::Datagrams => true,
            Traffic::Both => self.own.0 < 3 * self.shared.0,
        };
        let queue = if is_for_datagrams { self.own } else { self.shared };
        if queue.0 >= queue.1 {
            self.spare.push_back((buffer, work));
            return Ok(());
        }
        let at = self.receives.insert(Filling { buffer, work, is_for_datagrams });
        self.post_filling(at)
    }

    pub(crate) fn post_filling(&mut self, at: u32) -> Result<(), String> {
        let Some(filling) = self.receives.get(at).copied() else { return Ok(()) };
        let (buffer, id) = (filling.buffer, id(RECEIVE, at));
        match (&self.datagrams, filling.is_for_datagrams) {
            (Some(pair), true) => {
                self.own.0 += 1;
                pair.post_receive(self.head(), buffer, id)
            }
            _ => {
                self.shared.0 += 1;
                self.hub.post_receive(buffer, id)
            }
        }
    }
}
