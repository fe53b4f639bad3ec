//! What the network keeps for each rank: its memory, its queues, and whether it waits.

use std::collections::VecDeque;

use fabric::{Completion, Done, Fault, Local, Rank};

use crate::adapter::{Adapter, Passage};
use crate::queue::Ps;
use crate::regions::Regions;
use crate::shared::Mail;

/// Peers per page of the table of queue pairs.
const PAGE: usize = 16;
/// Addresses that a napping rank is woken for.
const WATCHED: usize = 8;

/// What a rank does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is in the line of those that continue now.
    Ready,
    /// It has the processor.
    Running,
    /// It computes until a time that others have not reached.
    Ahead,
    /// It waits for something to happen.
    Napping,
    /// Its program has returned.
    Ended,
    /// A fault ended it.
    Dead,
}

/// A queue pair with one peer over one adapter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pair {
    /// Work posted whose completion was not fetched.
    pub outstanding: u32,
    /// Messages that wait for receive buffers of the peer.
    pub held: u32,
    /// When the last message reached the peer.
    pub last: Ps,
    /// Whether writes of the peer have landed that were not looked at.
    pub touched: bool,
}

/// The end of work, waiting to be fetched.
#[derive(Clone, Debug)]
pub struct Ended {
    /// When it can be.
    pub at: Ps,
    /// The queue pair it occupies until then: peer and rail.
    pub pair: Option<(u32, u16)>,
    /// What it says.
    pub completion: Completion,
}

/// A rank as the network sees it.
pub struct Seat {
    /// What it does.
    pub state: State,
    /// Changes whenever it continues: earlier [`crate::queue::Event::Run`] are void.
    pub generation: u32,
    /// When it continues by itself.
    pub wake: Ps,
    /// Whether something has landed since it looked.
    pub news: bool,
    /// Its naps have ended for all completions up to this time.
    pub told: Ps,
    /// Work posted to anybody whose completion was not fetched.
    pub outstanding: u64,
    /// Whether it is at the end of its program.
    pub is_fenced: bool,
    /// Times before which nothing under way can change what it sees, ascending: each message to or from it has
    /// one until it has landed.
    bounds: VecDeque<Ps>,
    /// Its registered memory.
    pub regions: Regions,
    /// Its receive buffers by rail, in the order they were given.
    pub receives: Vec<VecDeque<(Local, u64)>>,
    /// Messages that wait for one.
    pub held: VecDeque<u32>,
    /// Ends of its work, by time.
    pub ended: VecDeque<Ended>,
    /// Peers whose writes have landed.
    pub touched: Vec<Rank>,
    /// Long messages that land in its memory.
    pub landing: Vec<u32>,
    /// Words it has looked at since it last napped.
    watched: [usize; WATCHED],
    watches: usize,
    /// What others of its host have for it in shared memory, by their places there.
    pub mail: Vec<Mail>,
    /// When it sees something there, ascending.
    alerts: VecDeque<Ps>,
    /// The path to the other ranks of its host.
    pub local: Adapter,
    /// The name of what it sends, see [`fabric::Verbs::label`].
    pub label: u16,
    pairs: Vec<Option<Box<[Pair; PAGE]>>>,
    rails: usize,
}

/// Puts a time where it belongs.
fn insert(times: &mut VecDeque<Ps>, at: Ps) {
    let mut place = times.len();
    while place > 0 && times[place - 1] > at {
        place -= 1;
    }
    if place == times.len() { times.push_back(at) } else { times.insert(place, at) }
}

impl Seat {
    /// A rank that has not begun.
    pub fn new(rails: usize) -> Seat {
        Seat {
            state: State::Ready,
            generation: 0,
            wake: Ps::MAX,
            news: false,
            told: 0,
            outstanding: 0,
            is_fenced: false,
            bounds: VecDeque::new(),
            regions: Regions::default(),
            receives: vec![VecDeque::new(); rails],
            held: VecDeque::new(),
            ended: VecDeque::new(),
            touched: Vec::new(),
            landing: Vec::new(),
            watched: [0; WATCHED],
            watches: 0,
            mail: Vec::new(),
            alerts: VecDeque::new(),
            local: Adapter::default(),
            label: 0,
            pairs: Vec::new(),
            rails,
        }
    }

    /// Its queue pair with a peer.
    pub fn pair(&mut self, peer: u32, rail: u16) -> &mut Pair {
        let index = peer as usize * self.rails + rail as usize;
        if self.pairs.len() <= index / PAGE {
            self.pairs.resize_with(index / PAGE + 1, || None);
        }
        let page = self.pairs[index / PAGE].get_or_insert_with(|| Box::new([Pair::default(); PAGE]));
        &mut page[index % PAGE]
    }

    /// Puts the end of work where it belongs in time; those of one time stay in order.
    pub fn end(
        &mut self,
        at: Ps,
        pair: Option<(u32, u16)>,
        work: u64,
        done: Done,
        result: Result<(), Fault>,
    ) {
        let ended = Ended { at, pair, completion: Completion { work, done, result } };
        let mut place = self.ended.len();
        while place > 0 && self.ended[place - 1].at > at {
            place -= 1;
        }
        if place == self.ended.len() { self.ended.push_back(ended) } else { self.ended.insert(place, ended) }
    }

    /// Something under way may change what it sees at `at`, not before.
    pub fn expect(&mut self, at: Ps) {
        insert(&mut self.bounds, at);
    }

    /// There is something in shared memory from `at` on.
    pub fn alert(&mut self, at: Ps) {
        insert(&mut self.alerts, at);
    }

    /// When the next such thing is there that it was not told of.
    pub fn next_alert(&mut self) -> Option<Ps> {
        while self.alerts.front().is_some_and(|at| *at <= self.told) {
            self.alerts.pop_front();
        }
        self.alerts.front().copied()
    }

    /// Whether something under way may have changed by `at` what it sees.
    pub fn expects(&self, at: Ps) -> bool {
        self.bounds.front().is_some_and(|bound| *bound <= at)
    }

    /// Everything until `at` has happened.
    pub fn met(&mut self, at: Ps) {
        while self.expects(at) {
            self.bounds.pop_front();
        }
    }

    /// A write of `peer` is in memory.
    pub fn touch(&mut self, peer: u32) {
        let pair = self.pair(peer, 0);
        if !pair.touched {
            pair.touched = true;
            self.touched.push(peer as Rank);
        }
    }

    /// It looked at the word at `addr`.
    pub fn watch(&mut self, addr: usize) {
        let watched = &self.watched[..self.watches.min(WATCHED)];
        if !watched.contains(&addr) {
            self.watched[self.watches % WATCHED] = addr;
            self.watches += 1;
        }
    }

    /// Forgets what it looked at.
    pub fn forget_watches(&mut self) {
        self.watches = 0;
    }

    /// Words it looked at since it last napped.
    pub fn watched(&self) -> &[usize] {
        &self.watched[..self.watches.min(WATCHED)]
    }

    /// Whether it takes part.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, State::Ended | State::Dead)
    }

    /// The adapter of the path inside its host: when a message leaves.
    pub fn leave(&mut self, costs: &crate::adapter::AdapterCosts, ready: Ps, len: usize) -> Passage {
        self.local.send(costs, ready, len, 1)
    }
}
