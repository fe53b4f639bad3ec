//! The cluster while it runs: virtual time, who continues when, and the state of every part.

use std::collections::VecDeque;
use std::sync::Arc;

use fabric::Fault;

use crate::adapter::{Adapter, AdapterCosts};
use crate::cluster::{Cluster, Datagram, Registration};
use crate::fault::Faults;
use crate::memory::Arena;
use crate::message::Messages;
use crate::queue::{Event, Ps, Queue, ps};
use crate::random::Random;
use crate::report::Counters;
use crate::seat::{Seat, State};
use crate::trace::Trace;

/// Whether a rank may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Everything before its time has happened.
    Reached,
    /// Others come first.
    Switch,
}

/// The state of all parts.
pub struct Net {
    /// Global time: everything before it has happened.
    pub now: Ps,
    /// What will happen.
    pub queue: Queue,
    /// Ranks that continue now.
    ready: VecDeque<u32>,
    /// The rank that has been taken out of that line for the scheduler to resume.
    pub chosen: Option<u32>,
    /// All ranks.
    pub seats: Vec<Seat>,
    /// Adapters, those of a host side by side.
    pub adapters: Vec<Adapter>,
    /// Messages that wait to leave an adapter with a limited bus: slot, rank, and since when it is ready.
    pub waiting: Vec<VecDeque<(u32, u32, Ps)>>,
    /// What they cost, by rail.
    pub costs: Vec<AdapterCosts>,
    /// What the path inside a host costs.
    pub local: AdapterCosts,
    /// By rail: work outstanding to one peer, and how long a peer is tried.
    pub limits: Vec<(u32, Ps)>,
    /// Limits of registration.
    pub registration: Registration,
    /// Messages under way.
    pub messages: Messages,
    /// Datagrams and what happens to them.
    pub datagram: Datagram,
    /// What goes wrong.
    pub faults: Faults,
    /// Chance.
    pub random: Random,
    /// What has happened.
    pub counters: Counters,
    /// Everything that has happened, in one number.
    pub hash: u64,
    /// What is drawn.
    pub trace: Option<Trace>,
    /// A rank that is known to be dead.
    pub gone: Option<usize>,
    /// Nothing will happen any more, but ranks wait.
    pub is_stuck: bool,
    /// Memory of all ranks.
    pub arena: Arena,
    /// By rank: its host, where there is shared memory.
    pub hosts: Arc<[u32]>,
    /// By host: since when its memory is free for what no cache holds.
    pub memories: Vec<Ps>,
    /// Numbers of messages.
    pub number: u64,
    /// Ranks that live and have not come to the end of their program.
    on_their_way: usize,
    cores: usize,
    /// What is posted now cannot be seen by anybody earlier than this.
    lookahead: Ps,
    /// Whether several ranks use one adapter.
    has_neighbours: bool,
}

impl Net {
    /// A cluster at time 0.
    pub fn new(cluster: &Cluster, ranks: usize, seed: u64, faults: Faults, trace: Option<Trace>) -> Net {
        let rails = cluster.rails.len();
        let has_neighbours = ranks > 1 && cluster.cores > 1;
        let mut queue = Queue::default();
        for (index, (_, at_ns)) in faults.deaths.iter().enumerate() {
            queue.push(ps(*at_ns as f64), Event::Fault(2 * index as u32));
        }
        Net {
            now: 0,
            queue,
            ready: (0..ranks as u32).collect(),
            chosen: None,
            seats: (0..ranks).map(|_| Seat::new(rails)).collect(),
            adapters: vec![Adapter::default(); cluster.hosts * rails],
            waiting: vec![VecDeque::new(); cluster.hosts * rails],
            costs: cluster.rails.iter().map(AdapterCosts::new).collect(),
            local: AdapterCosts::local(&cluster.local),
            limits: cluster.rails.iter().map(|rail| (rail.depth as u32, ps(rail.retry_ns))).collect(),
            registration: cluster.registration,
            messages: Messages::default(),
            datagram: faults.datagram.unwrap_or(cluster.datagram),
            random: Random::new(seed),
            faults,
            counters: Counters::default(),
            hash: 0xcbf2_9ce4_8422_2325,
            trace,
            gone: None,
            is_stuck: false,
            arena: Arena::default(),
            hosts: (0..ranks).map(|rank| cluster.host(rank) as u32).collect(),
            memories: vec![0; cluster.hosts],
            number: 0,
            on_their_way: ranks,
            cores: cluster.cores,
            lookahead: lookahead(cluster, has_neighbours),
            has_neighbours,
        }
    }

    /// Lets everything happen that comes before `limit`, the time of rank `me`.
    pub fn advance(&mut self, me: u32, limit: Ps) -> Step {
        while let Some((at, is_rank)) = self.queue.next()
            && (at < limit || (at == limit && !is_rank))
        {
            if at > self.now && !self.ready.is_empty() {
                return Step::Switch;
            }
            self.happen();
            if self.seats[me as usize].state == State::Dead {
                return Step::Switch;
            }
        }
        if !self.ready.is_empty() && self.now < limit {
            return Step::Switch;
        }
        self.now = limit;
        Step::Reached
    }

    /// Whether something may happen that rank `me` sees at `local`, which may be ahead of global time.
    #[inline]
    pub fn may_change(&self, me: u32, local: Ps) -> bool {
        local >= self.now + self.lookahead || self.seats[me as usize].expects(local)
    }

    /// Whether others than the rank that posts decide when an adapter is free.
    pub fn is_shared(&self, rail: usize) -> bool {
        self.has_neighbours || self.costs[rail].is_bus_limited()
    }

    /// The rank that continues next, at the time it then is; `None` if nothing will happen.
    pub fn next(&mut self) -> Option<u32> {
        loop {
            while let Some(rank) = self.ready.pop_front() {
                let seat = &mut self.seats[rank as usize];
                if seat.state == State::Ready {
                    seat.state = State::Running;
                    return Some(rank);
                }
            }
            self.queue.next()?;
            self.happen();
        }
    }

    fn happen(&mut self) {
        let Some((at, event)) = self.queue.pop() else { return };
        debug_assert!(at >= self.now, "time goes on");
        self.now = at;
        match event {
            Event::Arrive(index) => self.arrive(index),
            Event::Leave(adapter) => self.leave_next(adapter as usize),
            Event::Land(index) => self.land(index),
            Event::Retry(rank) => self.retry(rank),
            Event::Run(rank, generation) => {
                let seat = &self.seats[rank as usize];
                if seat.generation == generation && matches!(seat.state, State::Ahead | State::Napping) {
                    self.make_ready(rank);
                }
            }
            Event::Fault(index) => self.fault(index as usize),
        }
    }

    /// A rank continues at `at`, its own time.
    pub fn park(&mut self, rank: u32, at: Ps) {
        let seat = &mut self.seats[rank as usize];
        if seat.state != State::Dead {
            seat.state = State::Ahead;
            self.queue.push(at, Event::Run(rank, seat.generation));
        }
    }

    /// A rank waits for anything to happen, until `wake` at most.
    pub fn sleep(&mut self, rank: u32, wake: Ps) {
        let seat = &mut self.seats[rank as usize];
        seat.state = State::Napping;
        seat.wake = wake;
        if wake < Ps::MAX {
            self.queue.push(wake, Event::Run(rank, seat.generation));
        }
    }

    /// Something has landed that a rank may wait for.
    pub fn tell(&mut self, rank: u32) {
        let seat = &mut self.seats[rank as usize];
        seat.news = true;
        if seat.state == State::Napping {
            self.make_ready(rank);
        }
    }

    /// Something will be there at `at` that a rank may wait for.
    pub fn tell_at(&mut self, rank: u32, at: Ps) {
        if at <= self.now {
            return self.tell(rank);
        }
        let seat = &mut self.seats[rank as usize];
        if seat.state == State::Napping && at < seat.wake {
            seat.wake = at;
            self.queue.push(at, Event::Run(rank, seat.generation));
        }
    }

    fn make_ready(&mut self, rank: u32) {
        let seat = &mut self.seats[rank as usize];
        seat.state = State::Ready;
        seat.generation = seat.generation.wrapping_add(1);
        self.ready.push_back(rank);
    }

    /// A rank has returned.
    pub fn end(&mut self, rank: u32, at: Ps) {
        self.quit(rank, State::Ended);
        self.mix([at, rank as u64, 0x65]);
        self.counters.end_ps = self.counters.end_ps.max(at);
    }

    fn quit(&mut self, rank: u32, state: State) {
        let seat = &mut self.seats[rank as usize];
        self.on_their_way -= usize::from(seat.is_alive() && !seat.is_fenced);
        seat.state = state;
        seat.regions.clear();
        seat.receives.iter_mut().for_each(|of_rail| of_rail.clear());
        for index in std::mem::take(&mut seat.held) {
            self.refuse(index, Fault::PeerGone(rank as usize));
        }
    }

    fn fault(&mut self, index: usize) {
        let (rank, _) = self.faults.deaths[index / 2];
        if index.is_multiple_of(2) {
            if self.seats[rank].is_alive() {
                self.quit(rank as u32, State::Dead);
                let found = self.now + self.limits[0].1;
                self.queue.push(found, Event::Fault(index as u32 + 1));
            }
            return;
        }
        self.gone = Some(rank);
        for other in 0..self.seats.len() as u32 {
            self.tell(other);
        }
    }

    /// Nothing will happen any more: all who wait are told; false if they have been before.
    pub fn stuck(&mut self) -> bool {
        if std::mem::replace(&mut self.is_stuck, true) {
            return false;
        }
        for rank in 0..self.seats.len() as u32 {
            self.tell(rank);
        }
        true
    }

    /// A rank has come to the end of its program.
    pub fn fence(&mut self, rank: u32) {
        let seat = &mut self.seats[rank as usize];
        self.on_their_way -= usize::from(seat.is_alive() && !seat.is_fenced);
        seat.is_fenced = true;
        if self.is_open() {
            (0..self.seats.len() as u32).for_each(|rank| self.tell(rank));
        }
    }

    /// Whether all have that live, or none will any more.
    pub fn is_open(&self) -> bool {
        self.is_stuck || self.on_their_way == 0
    }

    /// Adds to the hash of everything.
    pub fn mix(&mut self, words: [u64; 3]) {
        for word in words {
            self.hash = (self.hash ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(23);
        }
    }

    /// Whether two ranks are of one host.
    pub fn is_local(&self, a: u32, b: u32) -> bool {
        self.host(a) == self.host(b)
    }

    /// The host of a rank.
    pub fn host(&self, rank: u32) -> usize {
        rank as usize / self.cores
    }
}

/// The least latency between two ranks.
fn lookahead(cluster: &Cluster, has_neighbours: bool) -> Ps {
    let shared = cluster.shared.map_or(f64::INFINITY, |shared| shared.path.latency_ns);
    let local = if has_neighbours { cluster.local.latency_ns.min(shared) } else { f64::INFINITY };
    let least = cluster.rails.iter().map(|rail| rail.path.latency_ns).fold(local, f64::min);
    ps(least)
}
