//! Two levels: inside each host, and between one rank of each, its leader.
//!
//! The phases are flat algorithms among some of the ranks, each the cheapest of its level. The leader of the root's
//! host is the root, that of the others their first rank. Hosts may have different numbers of ranks, and any of
//! the communicator's. What leaders pass on is packed host by host; where the ranks of hosts follow each other, and
//! elements lie without gaps, that is the layout of the application's buffer, and nothing is copied.
use super::blocks::{Blocks, Ints};
use super::build::{Builder, View};
use super::compile::{
    allgather_by, allreduce_by, bcast_by, gather_by, reduce_by, reduce_scatter_by, scan_by, scatter_by,
};
use super::cost::{Algorithm, Problem, choose, segment};
use super::levels::{Levels, Spread};
use super::rates::Tariff;
use super::schedule::{Base, Buf};
use super::tag::Collective;
use super::{across, alltoall, barrier, gather};

/// A rank's place on both levels.
pub struct Places<'a> {
    pub(super) levels: &'a Levels,
    pub(super) tariff: &'a Tariff,
    pub(super) rank: usize,
    pub(super) root: usize,
    /// This rank's host.
    pub(super) host: usize,
    /// One rank of each host.
    pub(super) leaders: Vec<u32>,
}

impl<'a> Places<'a> {
    /// Those of `rank` in a collective with this root; 0 where there is none.
    pub fn new(levels: &'a Levels, tariff: &'a Tariff, rank: usize, root: usize) -> Places<'a> {
        let mut leaders: Vec<u32> = (0..levels.count()).map(|host| levels.members(host)[0]).collect();
        leaders[levels.host(root)] = root as u32;
        Places { levels, tariff, rank, root, host: levels.host(rank), leaders }
    }

    pub(super) fn members(&self) -> &'a [u32] {
        self.levels.members(self.host)
    }

    fn place(&self, rank: u32) -> usize {
        self.members().binary_search(&rank).expect("a rank of this host")
    }

    /// The ranks of this host.
    pub(super) fn inside(&self) -> View<'a> {
        View::of(self.members(), self.place(self.rank as u32))
    }

    /// The place of this host's leader among them.
    pub(super) fn head(&self) -> usize {
        self.place(self.leaders[self.host])
    }

    pub(super) fn leads(&self) -> bool {
        self.leaders[self.host] as usize == self.rank
    }

    /// The leaders, for one of them.
    pub(super) fn between(&self) -> View<'_> {
        View::of(&self.leaders, self.host)
    }

    pub(super) fn root_host(&self) -> usize {
        self.levels.host(self.root)
    }

    pub(super) fn is_alone(&self) -> bool {
        self.members().len() == 1
    }

    /// The cheapest algorithm of a phase inside this host, and its segment.
    fn near(&self, kind: Collective, bytes: u64, commutes: bool) -> (Algorithm, u64) {
        self.cheapest(kind, self.members().len(), bytes, commutes, &Spread::OneHost)
    }

    /// The same between hosts.
    fn far(&self, kind: Collective, bytes: u64, commutes: bool) -> (Algorithm, u64) {
        self.cheapest(kind, self.levels.count(), bytes, commutes, &Spread::Apart)
    }

    fn cheapest(
        &self,
        kind: Collective,
        size: usize,
        bytes: u64,
        commutes: bool,
        spread: &Spread,
    ) -> (Algorithm, u64) {
        let problem = Problem { size, bytes, commutes, root: 0, spread };
        (choose(kind, &problem, self.tariff, None).winner, segment(&problem, self.tariff))
    }

    /// The longest block that goes through leaders where only its ends know how long it is.
    pub(super) fn through(&self, kind: Collective) -> u64 {
        across::through_leaders(kind, self.levels, self.tariff)
    }

    /// Whether leaders send each other what short blocks of a host make one after the other.
    pub(super) fn passes_in_pairs(&self) -> bool {
        let words = (self.levels.most() * self.levels.most() * size_of::<u64>()) as u64;
        self.far(Collective::Alltoallv, words, true).0 == Algorithm::Pairwise
    }

    /// Whether a buffer that holds a block of each rank lies as leaders pass it on.
    fn is_packed(&self, b: &Builder, blocks: &Blocks) -> Option<Buf> {
        match *blocks {
            Blocks::Even { all, .. } if self.levels.is_in_order() => b.as_bytes(all),
            _ => None,
        }
    }
}

/// Everybody tells the leader, leaders tell each other, and each tells everybody.
pub fn barrier(b: &mut Builder, places: &Places) {
    let (v, head) = (places.inside(), places.head());
    let (shape, _) = places.near(Collective::Bcast, 0, true);
    barrier::enter(b, &v, head, shape);
    if places.leads() {
        b.wait_all();
        barrier::by(b, &places.between(), places.far(Collective::Barrier, 0, true).0);
        b.wait_all();
    }
    barrier::release(b, &v, head, shape);
}

/// Between the leaders, then inside each host.
pub fn bcast(b: &mut Builder, places: &Places, buf: Buf) {
    let bytes = b.bytes(buf);
    if places.leads() {
        let (algorithm, segment) = places.far(Collective::Bcast, bytes, true);
        bcast_by(algorithm, b, &places.between(), buf, places.root_host(), segment);
        b.wait_received();
    }
    spread(b, places, buf);
}

/// The leader's data to its host.
fn spread(b: &mut Builder, places: &Places, buf: Buf) {
    if !places.is_alone() {
        let (algorithm, segment) = places.near(Collective::Bcast, b.bytes(buf), true);
        bcast_by(algorithm, b, &places.inside(), buf, places.head(), segment);
    }
}

/// Inside each host to its leader, whose result is in `home`.
fn combine(b: &mut Builder, places: &Places, input: Buf, home: Buf, commutes: bool) {
    if places.is_alone() {
        return b.copy(input, home);
    }
    let (algorithm, _) = places.near(Collective::Reduce, b.bytes(input), commutes);
    let home = Some(home).filter(|_| places.leads());
    reduce_by(algorithm, b, &places.inside(), input, home, places.head());
    b.wait_all();
}

/// Inside each host to its leader, then among the leaders to the root.
pub fn reduce(b: &mut Builder, places: &Places, input: Buf, output: Option<Buf>, commutes: bool) {
    if !places.leads() {
        return combine(b, places, input, input, commutes);
    }
    let mut partial = input;
    if !places.is_alone() {
        partial = output.unwrap_or_else(|| b.temp_like(input));
        combine(b, places, input, partial, commutes);
    }
    let (algorithm, _) = places.far(Collective::Reduce, b.bytes(input), commutes);
    reduce_by(algorithm, b, &places.between(), partial, output, places.root_host());
}

/// Inside each host to its leader, among the leaders, and back.
pub fn allreduce(b: &mut Builder, places: &Places, input: Buf, output: Buf, commutes: bool) {
    if !places.is_alone() {
        combine(b, places, input, output, commutes);
    }
    if places.leads() {
        let (algorithm, _) = places.far(Collective::Allreduce, b.bytes(input), commutes);
        let partial = if places.is_alone() { input } else { output };
        allreduce_by(algorithm, b, &places.between(), partial, output, commutes);
        b.wait_all();
    }
    spread(b, places, output);
}

/// Inside each host to its leader, among the leaders by hosts, and each host's part to its ranks.
pub fn reduce_scatter(
    b: &mut Builder,
    places: &Places,
    input: Buf,
    output: Buf,
    cuts: &dyn Fn(usize) -> u64,
    commutes: bool,
) {
    let v = places.inside();
    if !places.leads() {
        combine(b, places, input, input, commutes);
        let come = b.recv(&v, places.head(), output);
        b.wait(come);
        return;
    }
    let whole = b.temp_like(input);
    combine(b, places, input, whole, commutes);
    let first = |host: usize| cuts(places.levels.start(host));
    let part = b.part(whole, 0, first(places.host + 1) - first(places.host));
    let part = b.temp_like(part);
    let (algorithm, _) = places.far(Collective::ReduceScatter, b.bytes(whole), commutes);
    reduce_scatter_by(algorithm, b, &places.between(), whole, part, &first);
    b.wait_all();
    let begin = first(places.host);
    for (place, &rank) in places.members().iter().enumerate() {
        let rank = rank as usize;
        let share = b.part(part, cuts(rank) - begin, cuts(rank + 1) - cuts(rank));
        if rank == places.rank {
            b.copy(share, output);
        } else {
            b.send(&v, place, share);
        }
    }
}

/// Inside each host; its last rank, which has what the host has, learns what the hosts before have, and tells its host.
/// The ranks of each host follow each other.
pub fn scan(b: &mut Builder, places: &Places, input: Buf, output: Buf, exclusive: bool) {
    let (v, bytes) = (places.inside(), b.bytes(input));
    let (levels, tail) = (places.levels, v.size - 1);
    // In place the input is gone after the first phase.
    let mut whole = output;
    if v.me == tail && exclusive {
        whole = b.temp_like(output);
        b.copy(input, whole);
    }
    let (algorithm, _) =
        places.near(if exclusive { Collective::Exscan } else { Collective::Scan }, bytes, true);
    scan_by(algorithm, b, &v, input, output, exclusive);
    b.wait_all();
    let before = b.temp_like(output);
    if v.me == tail {
        if exclusive && tail > 0 {
            b.reduce(output, whole);
        }
        let tails = (0..levels.count()).map(|host| levels.members(host)[levels.members(host).len() - 1]);
        let tails: Vec<u32> = tails.collect();
        let (algorithm, _) = places.far(Collective::Exscan, bytes, true);
        scan_by(algorithm, b, &View::of(&tails, places.host), whole, before, true);
        b.wait_all();
    }
    if places.host == 0 {
        return;
    }
    if !places.is_alone() {
        let (algorithm, segment) = places.near(Collective::Bcast, bytes, true);
        bcast_by(algorithm, b, &v, before, tail, segment);
        b.wait_all();
    }
    match exclusive && v.me == 0 {
        true => b.copy(before, output),
        false => b.reduce(before, output),
    }
}

/// The blocks of one host in the root's buffer: where they lie together, or scratch memory for them.
fn landing(b: &mut Builder, places: &Places, all: &Blocks, host: usize, each: u64) -> (Buf, bool) {
    let members = places.levels.members(host);
    let first = all.get(b, members[0] as usize);
    if places.levels.follow(host) {
        return (Buf { count: first.count * members.len() as u64, ..first }, true);
    }
    (b.temp(members.len() as u64 * each), false)
}

/// Copies between the blocks of a host and where they lie packed.
fn unpack(b: &mut Builder, places: &Places, packed: Buf, all: &Blocks, host: usize, to_blocks: bool) {
    let mut at = 0;
    for &rank in places.levels.members(host) {
        let block = all.get(b, rank as usize);
        let bytes = b.bytes(block);
        let part = b.part(packed, at, bytes);
        at += bytes;
        if to_blocks {
            b.copy(part, block);
        } else {
            b.copy(block, part);
        }
    }
}

/// Inside each host to its leader, then a message per host to the root. Blocks are of `each` bytes; `all` at
/// the root, `mine` is `None` for the root in place.
pub fn gather(b: &mut Builder, places: &Places, mine: Option<Buf>, all: Option<&Blocks>, each: u64) {
    if each == 0 {
        return;
    }
    let (v, head) = (places.inside(), places.head());
    let (algorithm, _) = places.near(Collective::Gather, each, true);
    let own = |b: &Builder, all: &Blocks| mine.unwrap_or_else(|| all.get(b, places.rank));
    if !places.leads() {
        return gather_by(algorithm, b, &v, mine, None, each, head);
    }
    let Some(all) = all else {
        let blocks = b.temp(v.size as u64 * each);
        gather_by(algorithm, b, &v, mine, Some(&Blocks::Even { all: blocks, each }), each, head);
        b.wait_all();
        b.send(&places.between(), places.root_host(), blocks);
        return;
    };
    let hosts = places.levels.count();
    let places_of: Vec<_> = (0..hosts).map(|host| landing(b, places, all, host, each)).collect();
    for (host, (into, _)) in places_of.iter().enumerate().filter(|(host, _)| *host != places.host) {
        b.recv(&places.between(), host, *into);
    }
    let (into, lies) = places_of[places.host];
    let count = if lies { into.count / v.size as u64 } else { each };
    let mine = if lies { mine } else { Some(own(b, all)) };
    gather_by(algorithm, b, &v, mine, Some(&Blocks::Even { all: into, each: count }), each, head);
    b.wait_all();
    for (host, (packed, lies)) in places_of.into_iter().enumerate() {
        if !lies {
            unpack(b, places, packed, all, host, true);
        }
    }
}

/// A message per host from the root to its leader, then inside each host. As [`gather()`], the other way.
pub fn scatter(b: &mut Builder, places: &Places, mine: Option<Buf>, all: Option<&Blocks>, each: u64) {
    if each == 0 {
        return;
    }
    let (v, head) = (places.inside(), places.head());
    let (algorithm, _) = places.near(Collective::Scatter, each, true);
    if !places.leads() {
        return scatter_by(algorithm, b, &v, mine, None, each, head);
    }
    let Some(all) = all else {
        let blocks = b.temp(v.size as u64 * each);
        let come = b.recv(&places.between(), places.root_host(), blocks);
        b.wait(come);
        return scatter_by(algorithm, b, &v, mine, Some(&Blocks::Even { all: blocks, each }), each, head);
    };
    let mut own = None;
    for distance in 1..=places.levels.count() {
        let host = (places.host + distance) % places.levels.count();
        let (packed, lies) = landing(b, places, all, host, each);
        if !lies {
            unpack(b, places, packed, all, host, false);
        }
        if host == places.host {
            own = Some((packed, lies));
        } else {
            b.send(&places.between(), host, packed);
        }
    }
    let (packed, lies) = own.expect("the root is on a host");
    let count = if lies { packed.count / v.size as u64 } else { each };
    scatter_by(algorithm, b, &v, mine, Some(&Blocks::Even { all: packed, each: count }), each, head);
}

/// Inside each host to its leader, all blocks among the leaders, and back.
pub fn allgather(b: &mut Builder, places: &Places, mine: Option<Buf>, all: &Blocks) {
    let (levels, v, head) = (places.levels, places.inside(), places.head());
    let bytes: Vec<u64> = levels.order().iter().map(|rank| b.bytes(all.get(b, *rank as usize))).collect();
    let total: u64 = bytes.iter().sum();
    let direct = places.is_packed(b, all);
    let whole = direct.unwrap_or_else(|| b.temp(total));
    let own = mine.unwrap_or_else(|| all.get(b, places.rank));
    if places.leads() {
        let (first, end) = (levels.start(places.host), levels.start(places.host + 1));
        let displs = displacements(whole, &bytes);
        let counts: Vec<i64> = bytes.iter().map(|bytes| *bytes as i64).collect();
        let varied = |counts, displs| Blocks::Varied {
            base: whole.base,
            ty: 0,
            counts: Ints::Large(counts),
            displs: Ints::Large(displs),
        };
        let here = varied(&counts[first..end], &displs[first..end]);
        let mine = if direct.is_some() { mine } else { Some(own) };
        gather::gather_linear(b, &v, mine, Some(&here), head);
        b.wait_all();
        let of_host = |host: usize| bytes[levels.start(host)..levels.start(host + 1)].iter().sum();
        let sizes: Vec<u64> = (0..levels.count()).map(of_host).collect();
        let displs = displacements(whole, &sizes);
        let counts: Vec<i64> = sizes.iter().map(|bytes| *bytes as i64).collect();
        let (algorithm, _) = places.far(Collective::Allgatherv, total, true);
        allgather_by(algorithm, b, &places.between(), None, &varied(&counts, &displs));
        b.wait_all();
    } else {
        gather::gather_linear(b, &v, Some(own), None, head);
        b.wait_all();
    }
    if total > 0 {
        spread(b, places, whole);
    }
    if direct.is_none() {
        b.wait_all();
        let mut at = 0;
        for (&rank, &bytes) in levels.order().iter().zip(&bytes) {
            let (from, to) = (b.part(whole, at, bytes), all.get(b, rank as usize));
            at += bytes;
            b.copy(from, to);
        }
    }
}

/// Where things of these lengths begin that lie one behind the other from `whole` on.
fn displacements(whole: Buf, lengths: &[u64]) -> Vec<i64> {
    let mut at = whole.offset;
    let next = |length: &u64| {
        let begin = at;
        at += *length as i64;
        begin
    };
    lengths.iter().map(next).collect()
}

/// All that a host sends goes to its leader, a message goes from each leader to each other, and leaders deal out
/// what has come. Blocks are of `each` bytes.
pub fn alltoall(b: &mut Builder, places: &Places, send: &Blocks, recv: &Blocks, each: u64) {
    if each == 0 {
        return;
    }
    let (levels, v, head) = (places.levels, places.inside(), places.head());
    let size = levels.size() as u64;
    let out = places.is_packed(b, send).unwrap_or_else(|| {
        let temp = b.temp(size * each);
        move_all(b, places, temp, send, each, false);
        temp
    });
    let direct = places.is_packed(b, recv);
    let into = direct.unwrap_or_else(|| b.temp(size * each));
    if places.leads() {
        let inbox = b.temp(v.size as u64 * size * each);
        gather::gather_linear(b, &v, Some(out), Some(&Blocks::Even { all: inbox, each: size * each }), head);
        b.wait_all();
        let outbox = exchange(b, places, inbox, each);
        gather::scatter_linear(
            b,
            &v,
            Some(into),
            Some(&Blocks::Even { all: outbox, each: size * each }),
            head,
        );
    } else {
        b.send(&v, head, out);
        b.wait_all();
        let come = b.recv(&v, head, into);
        b.wait(come);
    }
    if direct.is_none() {
        b.wait_all();
        move_all(b, places, into, recv, each, true);
    }
}

/// Copies between the blocks of all ranks and where they lie packed, host by host.
fn move_all(b: &mut Builder, places: &Places, packed: Buf, all: &Blocks, each: u64, to_blocks: bool) {
    for host in 0..places.levels.count() {
        let start = places.levels.start(host) as u64 * each;
        let part = b.part(packed, start, places.levels.members(host).len() as u64 * each);
        unpack(b, places, part, all, host, to_blocks);
    }
}

/// What a leader does between hosts: `inbox` holds what each rank of this host has for all, the result what each
/// of them gets from all.
fn exchange(b: &mut Builder, places: &Places, inbox: Buf, each: u64) -> Buf {
    let (levels, here) = (places.levels, places.members().len() as u64);
    let size = levels.size() as u64;
    let lengths: Vec<u64> =
        (0..levels.count()).map(|host| levels.members(host).len() as u64 * here * each).collect();
    let (out, into) = (b.temp(here * size * each), b.temp(here * size * each));
    let begin = |host: usize| levels.start(host) as u64 * here * each;
    for host in 0..levels.count() {
        let run = levels.members(host).len() as u64 * each;
        for place in 0..here {
            let from = b.part(inbox, (place * size + levels.start(host) as u64) * each, run);
            let to = b.part(out, begin(host) + place * run, run);
            b.copy(from, to);
        }
    }
    let counts: Vec<i64> = lengths.iter().map(|bytes| *bytes as i64).collect();
    let [from, to] = [out, into].map(|buf| displacements(buf, &lengths));
    let blocks = |displs| Blocks::Varied {
        base: Base::Temp,
        ty: 0,
        counts: Ints::Large(&counts),
        displs: Ints::Large(displs),
    };
    let (algorithm, _) = places.far(Collective::Alltoallv, here * here * each, true);
    match algorithm {
        Algorithm::Pairwise => alltoall::pairwise(b, &places.between(), &blocks(&from), &blocks(&to)),
        _ => alltoall::linear(b, &places.between(), &blocks(&from), &blocks(&to)),
    }
    b.wait_all();
    let outbox = b.temp(here * size * each);
    for source in 0..size {
        for place in 0..here {
            let from = b.part(into, (source * here + place) * each, each);
            let to = b.part(outbox, (place * size + source) * each, each);
            b.copy(from, to);
        }
    }
    outbox
}
