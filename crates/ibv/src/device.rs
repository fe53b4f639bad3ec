//! The adapters of one rank and its connections with all peers: what happens between the calls of [`fabric::Verbs`].
//!
//! Everything happens in calls of its owner; there is no thread.

use crate::card::{self, Place};
use crate::contact::{Contact, Phase, Then};
use crate::find::{self, Choice};
use crate::hello::Hello;
use crate::objects::{PIECES, Pages};
use crate::rail::{News, Rail, Traffic};
use crate::sleep::{Sleep, Woken};
use crate::watch::{Found, Owed, Watch};
use fabric::{Completion, Costs, Done, Fault, Rank, VerbsCaps};
use memhook::{Frames, Monitor};
use rnic::driver::{Secret, datagram_id};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
use verbs_layout::constants::*;

/// Looks between two questions whether an answer is due, where any is, and whether an adapter has something to tell.
const SOME: u32 = 16;
/// How long the end of this rank waits for peers to take their leave.
const LINGER: Duration = Duration::from_secs(5);
/// Bit of CAP_IPC_LOCK in the sets of `/proc/self/status`: who has it may lock any memory.
const MAY_LOCK: u32 = 14;

/// Adapters that are open, before it is known where the others are.
pub struct Opened {
    rails: Vec<Rail>,
    traffic: Traffic,
    door: TcpListener,
}

impl Opened {
    /// The ports that are to be used, for this traffic; peers that hear nothing of this rank ask at the address whether it is
    /// there.
    pub fn open(choice: &Choice, traffic: Traffic, at: IpAddr) -> Result<Opened, String> {
        let ports = find::ports(choice)?;
        let rails = ports.into_iter().map(|port| Rail::new(port, choice, traffic));
        let rails: Vec<Rail> = rails.collect::<Result<_, _>>()?;
        // What is lacking is found before all are told that there are adapters here.
        rails.iter().try_for_each(|rail| rail.inline_bytes().map(drop))?;
        let listen = || -> std::io::Result<TcpListener> {
            let door = TcpListener::bind((at, 0))?;
            door.set_nonblocking(true)?;
            Ok(door)
        };
        let door = listen().map_err(|error| format!("cannot listen at {at}: {error}"))?;
        Ok(Opened { rails, traffic, door })
    }

    /// What all ranks must be told.
    pub fn card(&self) -> Result<String, String> {
        let told = |rail: &Rail| (rail.port.place(), rail.numbers());
        let door = self.door.local_addr();
        let door = door.map_err(|error| format!("cannot tell where this rank listens: {error}"))?;
        Ok(card::text(door, self.rails.iter().map(told)))
    }

    /// Rank `me` of those that have said these cards; `secret` is that of their job.
    pub fn join(mut self, me: Rank, cards: &[Vec<u8>], secret: Secret) -> Result<Ibv, String> {
        let read = |(rank, text): (usize, &Vec<u8>)| {
            let text = String::from_utf8_lossy(text);
            card::door(&text).zip(card::read(&text)).ok_or_else(|| {
                format!("rank {rank} says `{text}` of its adapters: it runs another version of Tern")
            })
        };
        let read: Vec<(SocketAddr, Vec<Place>)> =
            cards.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let (doors, places): (Vec<SocketAddr>, Vec<Vec<Place>>) = read.into_iter().unzip();
        let watch = Watch::new(self.door, doors.into());
        // Who has the fewest decides.
        let rails = places.iter().map(Vec::len).min().unwrap_or(0).min(self.rails.len());
        self.rails.truncate(rails);
        for (at, rail) in self.rails.iter().enumerate() {
            let own = rail.port.place();
            for (rank, theirs) in places.iter().enumerate() {
                if let Some(why) = own.refuses(&theirs[at]) {
                    return Err(format!("rank {rank} cannot be reached by {}: {why}", rail.port.name()));
                }
            }
        }
        // It stands in each datagram, so it tells nothing of the secret. Keys with the highest bit are the system's (IBTA
        // specification, section 10.2.5).
        let key = datagram_id(&secret, b"key", 0, 0) as u32 & !(1 << 31);
        let mut rails = self.rails.iter_mut().enumerate();
        rails.try_for_each(|(index, rail)| rail.begin(index, places.len(), key))?;
        let sleep = Sleep::new(&self.rails, watch.door())?;
        let caps = caps(&self.rails, &places, self.traffic != Traffic::Messages)?;
        let mut costs = Costs::default();
        costs.wire_ns_per_byte = self.rails[0].port.wire_ns_per_byte().unwrap_or(costs.wire_ns_per_byte);
        Ok(Ibv {
            me,
            rails: self.rails,
            places,
            traffic: self.traffic,
            secret,
            caps,
            costs,
            ended: VecDeque::new(),
            news: VecDeque::new(),
            lost: VecDeque::new(),
            asking: Vec::new(),
            sleep,
            watch,
            has_alarm: false,
            is_stirred: true,
            looks: 0,
            rests: 0,
            fault: None,
            monitor: None,
            frames: None,
            start: Instant::now(),
            memory: Vec::new(),
        })
    }
}

/// What these adapters are like together.
fn caps(rails: &[Rail], places: &[Vec<Place>], has_datagrams: bool) -> Result<VerbsCaps, String> {
    let mut inline_bytes = usize::MAX;
    for rail in rails {
        inline_bytes = inline_bytes.min(rail.inline_bytes()?);
    }
    let least = |value: fn(&Rail) -> usize| rails.iter().map(value).min().unwrap_or(0);
    // `enum ibv_mtu`: 1 is 256 bytes.
    let mtu = places.iter().filter_map(|of| of.first()).map(|place| 128usize << place.mtu.clamp(1, 5)).min();
    Ok(VerbsCaps {
        name: "ibv",
        inline_bytes,
        at_once_bytes: 0,
        gather: least(|rail| rail.port.device.max_sge.max(0) as usize).min(PIECES),
        datagram_bytes: if has_datagrams { mtu.unwrap_or(256) } else { 0 },
        transfer_bytes: least(|rail| transfer_bytes(rail.port.attr.max_msg_sz)),
        depth: least(Rail::depth),
        lockable_bytes: least(
            |rail| if rail.port.device.vendor_id == 0 { usize::MAX / 8 } else { lockable() },
        ),
        regions: least(|rail| rail.port.device.max_mr.max(0) as usize),
        page_bytes: 4096,
        offload: true,
        // Adapters promise it in words of their own, if at all: without it there is nothing to be found out wrong.
        writes_in_order: false,
        holds_receives: rails.iter().filter_map(Rail::holds_receives).min(),
        // Of each peer its place says it.
        coherent_atomics: places.iter().any(|of| of.first().is_some_and(|place| place.has_atomics)),
    })
}

/// The most that one work request moves over a port that says this of itself; one that says nothing moves what the field can hold of
/// InfiniBand's messages (2^31 bytes).
fn transfer_bytes(max_msg_sz: u32) -> usize {
    if max_msg_sz == 0 { 1 << 31 } else { max_msg_sz as usize }
}

/// Bytes that this process may lock.
fn lockable() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let may_lock = set
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .is_some_and(|set| set >> MAY_LOCK & 1 == 1);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    if may_lock { usize::MAX / 8 } else { limit.map_or(usize::MAX / 8, |bytes| bytes as usize) }
}

/// One rank's adapters.
pub struct Ibv {
    pub(crate) me: Rank,
    pub(crate) rails: Vec<Rail>,
    /// By rank and rail.
    places: Vec<Vec<Place>>,
    traffic: Traffic,
    pub(crate) secret: Secret,
    pub(crate) caps: VerbsCaps,
    pub(crate) costs: Costs,
    pub(crate) ended: VecDeque<Completion>,
    news: VecDeque<News>,
    pub(crate) lost: VecDeque<(Rank, Fault)>,
    /// Peers that have been asked and have not answered: rail and rank.
    asking: Vec<(usize, Rank)>,
    sleep: Sleep,
    pub(crate) watch: Watch,
    /// Something is due by the clock, too soon to sleep.
    pub(crate) has_alarm: bool,
    /// Something may have come since events were taken last.
    is_stirred: bool,
    looks: u32,
    /// Counts how often this rank might have slept.
    rests: u32,
    pub(crate) fault: Option<Fault>,
    /// Who tells when memory goes away, once that was asked for.
    pub(crate) monitor: Option<Option<Monitor>>,
    /// Who shows the frames of memory, once that was asked for.
    pub(crate) frames: Option<Option<Frames>>,
    pub(crate) start: Instant,
    /// The last to go: registrations of it have ended then.
    pub(crate) memory: Vec<Pages>,
}

impl Ibv {
    /// Readable when there is something to look at.
    pub fn descriptor(&self) -> RawFd {
        self.sleep.descriptor()
    }

    pub(crate) fn size_of_job(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn clock_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Where a peer's port is.
    pub(crate) fn place(&self, peer: Rank, rail: usize) -> Place {
        self.places[peer][rail]
    }

    /// Whether work may be posted to a peer; begins to get there if not.
    #[inline]
    pub(crate) fn is_open(&mut self, peer: Rank, rail: usize) -> Result<bool, Fault> {
        match self.rails[rail].contacts[peer].as_ref().map(|contact| &contact.phase) {
            Some(Phase::Open) => Ok(true),
            Some(Phase::Asking { .. }) => Ok(false),
            Some(Phase::Lost(fault)) => Err(fault.clone()),
            Some(Phase::Nothing) | None => self.ask(peer, rail).map(|()| false),
        }
    }

    #[cold]
    fn ask(&mut self, peer: Rank, rail: usize) -> Result<(), Fault> {
        let now_ns = self.clock_ns();
        self.rails[rail].make_pair(peer, now_ns).inspect_err(|fault| self.lose(peer, fault))?;
        let contact = self.rails[rail].contact(peer);
        contact.turn += 1;
        self.asking.push((rail, peer));
        self.ask_again(rail, peer, now_ns);
        Ok(())
    }

    fn ask_again(&mut self, rail: usize, peer: Rank, now_ns: u64) {
        self.rails[rail].contact(peer).asked(now_ns);
        self.watch.told(peer, Owed::ByRank);
        self.tell(rail, peer, true);
    }

    fn tell(&mut self, rail: usize, peer: Rank, asks: bool) {
        let (place, now_ns) = (self.place(peer, rail), self.clock_ns());
        let of = &mut self.rails[rail];
        let told = match of.line {
            Some(_) => of.call(peer, &place, now_ns),
            None => of.tell(self.me, peer, asks, &place, &self.secret),
        };
        if let Err(why) = told {
            let why = format!("{} cannot reach it: {why}", self.rails[rail].port.name());
            self.lose(peer, &Fault::PeerLost(peer, why));
        }
    }

    /// A peer has said where its queue pair is.
    fn hear(&mut self, rail: usize, hello: &Hello) {
        let peer = hello.from as Rank;
        match self.rails[rail].contact(peer).heard(hello) {
            Then::Nothing => {}
            Then::Answer => self.tell(rail, peer, false),
            Then::Connect => {
                let now_ns = self.clock_ns();
                if self.rails[rail].contact(peer).pair.is_none() {
                    if let Err(fault) = self.rails[rail].make_pair(peer, now_ns) {
                        return self.lose(peer, &fault);
                    }
                    self.rails[rail].contact(peer).turn = hello.turn;
                }
                let place = self.place(peer, rail);
                if let Err(why) = self.rails[rail].connect(peer, hello, &place) {
                    let why = format!("{} does not connect to it: {why}", self.rails[rail].port.name());
                    return self.lose(peer, &Fault::PeerLost(peer, why));
                }
                self.forget_asking(rail, peer);
                if hello.asks {
                    self.tell(rail, peer, false);
                }
            }
        }
    }

    /// There is no way to a peer any more.
    pub(crate) fn lose(&mut self, peer: Rank, why: &Fault) {
        self.watch.forget(peer);
        self.rails.iter_mut().for_each(|rail| rail.lose(peer, why));
        self.asking.retain(|(_, asked)| *asked != peer);
        self.lost.push_back((peer, why.clone()));
    }

    fn has_left(&self, peer: Rank) -> bool {
        self.rails.iter().any(|rail| rail.contacts[peer].as_ref().is_some_and(|contact| contact.has_left))
    }

    /// Fetches what has ended, and does what is due; whether anything had ended.
    pub(crate) fn look(&mut self) -> bool {
        let mut has_moved = false;
        for at in 0..self.rails.len() {
            has_moved |= self.fetch(at);
        }
        self.is_stirred |= has_moved;
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(SOME) {
            let now_ns = self.clock_ns();
            if !self.asking.is_empty() {
                self.ask_those_due(now_ns);
            }
            if self.watch.is_due(now_ns) {
                self.stand_watch(now_ns);
            }
            // To ask whether there is a call costs a call of the system.
            if !self.asking.is_empty() || self.looks.is_multiple_of(SOME * SOME) {
                (0..self.rails.len()).for_each(|rail| self.hear_calls(rail));
            }
        }
        has_moved
    }

    /// Fetches what has ended over one rail; whether anything had.
    pub(crate) fn fetch(&mut self, at: usize) -> bool {
        if !self.rails[at].look(self.me, &self.secret, &mut self.news) {
            return false;
        }
        while let Some(news) = self.news.pop_front() {
            match news {
                News::Ended(completion) => {
                    if let Done::Received { from, .. } = completion.done {
                        self.watch.heard(from);
                    }
                    self.ended.push_back(completion);
                }
                News::Hello(hello) => {
                    self.watch.heard(hello.from as Rank);
                    self.hear(at, &hello);
                }
                News::Answered(peer) => self.watch.heard(peer),
                News::Broken(peer, why) => self.lose(peer, &Fault::PeerLost(peer, why)),
                News::Event(kind, about) => self.heard_event(at, kind, about),
                News::Fault(why) => {
                    self.fault.get_or_insert(Fault::Device(why));
                }
            }
        }
        true
    }

    /// A peer is asked, or has asked, and there is no connection yet.
    pub(crate) fn note_asking(&mut self, rail: usize, peer: Rank) {
        if !self.asking.contains(&(rail, peer)) {
            self.asking.push((rail, peer));
        }
    }

    /// There is, or will be none.
    pub(crate) fn forget_asking(&mut self, rail: usize, peer: Rank) {
        self.asking.retain(|asked| *asked != (rail, peer));
    }

    /// Loses peers that are not there, and hears what adapters have to say of themselves, also where no rank sleeps.
    #[cold]
    fn stand_watch(&mut self, now_ns: u64) {
        self.take_events();
        for peer in 0..self.places.len() {
            if self.rails.iter().any(|rail| rail.is_asking(peer)) {
                self.watch.told(peer, Owed::ByRank);
            }
        }
        for found in self.watch.stand(now_ns) {
            match found {
                // Who has taken its leave may be gone.
                Found::Lost(peer, _) if self.has_left(peer) => {}
                Found::Lost(peer, why) => self.lose(peer, &Fault::PeerLost(peer, why)),
                // Connections that come and go are given back by who knows that nothing is under way.
                Found::Silent(peer) if self.traffic == Traffic::Messages => {
                    self.rails.iter_mut().for_each(|rail| rail.probe(peer));
                }
                Found::Silent(_) => {}
            }
        }
    }

    fn ask_those_due(&mut self, now_ns: u64) {
        for at in 0..self.asking.len() {
            let Some(&(rail, peer)) = self.asking.get(at) else { return };
            if self.rails[rail].contact(peer).due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
                self.ask_again(rail, peer, now_ns);
            }
        }
    }

    /// Takes what has woken this rank, or would: events of adapters become faults with names.
    fn take_events(&mut self) {
        self.is_stirred = false;
        let now_ns = self.clock_ns();
        let woken = match self.sleep.look(now_ns) {
            Ok(woken) => woken,
            Err(why) => {
                self.fault.get_or_insert(Fault::Device(why));
                return;
            }
        };
        for woken in woken {
            match woken {
                Woken::Completions(rail) => {
                    self.rails[rail].hub().take_event();
                    self.rails[rail].is_armed = false;
                }
                Woken::Adapter(rail) => self.take_events_of(rail),
                Woken::Line(rail) => self.hear_calls(rail),
                Woken::Door => self.watch.answer(),
            }
        }
    }

    fn take_events_of(&mut self, rail: usize) {
        let adapter = self.rails[rail].port.adapter.clone();
        while let Some((kind, about)) = adapter.next_event() {
            self.heard_event(rail, kind, about);
        }
    }

    /// An adapter has told something, of which a port or a queue pair has this number.
    fn heard_event(&mut self, rail: usize, kind: i32, about: u32) {
        let adapter = self.rails[rail].port.adapter.clone();
        match kind {
            EVENT_PORT_ERR | EVENT_PORT_ACTIVE => {
                let is_of = |rail: &&mut Rail| rail.port.adapter.name == adapter.name;
                self.rails.iter_mut().filter(is_of).for_each(|rail| rail.note_port(kind, about));
            }
            EVENT_CQ_ERR | EVENT_DEVICE_FATAL | EVENT_SRQ_ERR => {
                let why =
                    format!("{}: {}: the adapter has given up", adapter.name, adapter.library.event(kind));
                self.fault.get_or_insert(Fault::Device(why));
            }
            EVENT_QP_FATAL..=EVENT_QP_ACCESS_ERR => self.lose_pair(rail, kind, about),
            _ => {}
        }
    }

    /// A queue pair has given up. Work that is under way there ends with an error, which says more; there may be none.
    fn lose_pair(&mut self, rail: usize, kind: i32, number: u32) {
        let of = &self.rails[rail];
        let Some(&peer) = of.by_number.get(&number) else { return };
        let is_open = |contact: &Contact| matches!(contact.phase, Phase::Open) && contact.under_way == 0;
        if of.contacts[peer].as_ref().is_some_and(|contact| is_open(contact) && !contact.has_left) {
            let why = format!("{}: {}", of.port.name(), of.port.adapter.library.event(kind));
            self.lose(peer, &Fault::PeerLost(peer, why));
        }
    }

    /// Whether this rank may sleep: all adapters will wake it, and nothing is there already.
    pub(crate) fn may_sleep(&mut self) -> bool {
        let now_ns = self.clock_ns();
        self.rests = self.rests.wrapping_add(1);
        // A sleep may have ended for what no completion tells of.
        if self.is_stirred || self.rests.is_multiple_of(SOME) {
            self.take_events();
        }
        let due_ns = |(rail, peer): &(usize, Rank)| {
            self.rails[*rail].contacts[*peer].as_ref().and_then(|contact| contact.due_ns())
        };
        if let Some(due_ns) = self.asking.iter().filter_map(due_ns).min() {
            self.ask_those_due(now_ns);
            self.sleep.until(due_ns, now_ns);
        }
        for at in 0..self.rails.len() {
            if !self.rails[at].is_armed {
                if let Err(why) = self.rails[at].hub().arm() {
                    self.fault.get_or_insert(Fault::Device(why));
                }
                self.rails[at].is_armed = true;
            }
        }
        // What came before it was armed wakes nobody.
        !self.look() && !self.has_news()
    }

    /// Whether something is there to be asked for.
    pub(crate) fn has_news(&self) -> bool {
        !self.ended.is_empty() || !self.lost.is_empty() || self.fault.is_some()
    }

    /// Ends a sleep at this time.
    pub(crate) fn wake_at(&mut self, at_ns: u64, now_ns: u64) {
        self.sleep.until(at_ns, now_ns);
    }

    /// The connections there are: rail and rank.
    fn open(&self) -> Vec<(usize, Rank)> {
        let of = |(at, rail): (usize, &Rail)| {
            let is_open =
                |rank: &Rank| matches!(rail.contacts[*rank].as_ref().map(|c| &c.phase), Some(Phase::Open));
            (0..rail.contacts.len()).filter(is_open).map(|rank| (at, rank)).collect::<Vec<_>>()
        };
        self.rails.iter().enumerate().flat_map(of).collect()
    }
}

impl Drop for Ibv {
    /// What is under way to peers is theirs all the same, and what they still send finds a queue pair: each side says that it
    /// leaves, and stays until the others have.
    fn drop(&mut self) {
        let begun = Instant::now();
        let mut owed = self.open();
        while begun.elapsed() < LINGER && self.fault.is_none() {
            owed.retain(|(rail, peer)| !self.rails[*rail].leave(*peer));
            self.look();
            self.ended.clear();
            let open = self.open();
            owed.retain(|of| open.contains(of));
            let has_parted = |(rail, peer): &(usize, Rank)| {
                self.rails[*rail].contacts[*peer]
                    .as_ref()
                    .is_none_or(|contact| contact.has_left && contact.has_parted)
            };
            if owed.is_empty() && open.iter().all(has_parted) {
                break;
            }
            std::thread::yield_now();
        }
    }
}
