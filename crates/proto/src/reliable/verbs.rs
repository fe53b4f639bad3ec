//! The verbs that are reliable, and their end.

use super::outward::Job;
use super::{READS, Read, Reliable, Standing, Ways};
use fabric::{
    Atomic, Charge, Completion, Costs, Distance, Done, Fault, Local, Nap, Rank, Region, Remote, Rights, Span,
    Verbs, VerbsCaps,
};
use wire::packet::Opcode;

/// Looks in vain after which acknowledgements do not wait for something to go with.
const PATIENCE: u32 = 32;
/// How often a side that leaves repeats that to a peer that has left, too, and says nothing.
const FAREWELLS: u32 = 3;

impl<V: Verbs> Reliable<V> {
    /// A sleep ends when something is due.
    fn set_alarm(&mut self) {
        let Some(ways) = &mut self.ways else { return };
        if !ways.ended.is_empty() || !ways.touched.is_empty() || ways.fault.is_some() {
            self.verbs.alarm(self.verbs.now_ns());
        } else if ways.due_ns != u64::MAX {
            self.verbs.alarm(ways.due_ns);
        }
    }

    /// How each peer is reached that something was sent to; nothing where the adapter is reliable itself.
    pub fn standings(&self) -> impl Iterator<Item = Standing> {
        self.ways.iter().flat_map(|ways| ways.standings())
    }

    /// Posts over a connection, or as a job.
    fn post(
        &mut self,
        to: Rank,
        bytes: usize,
        work: u64,
        over: impl FnOnce(&mut V, u64) -> Result<bool, Fault>,
        job: impl FnOnce(&V) -> Job,
    ) -> Result<bool, Fault> {
        if let Some(ways) = &mut self.ways
            && !ways.peer(to).route.is_connected()
        {
            let posted = ways.post(to, job(&self.verbs), &mut self.verbs);
            // A window may be full, or packets lacking, only because who sends and computes has not looked for acknowledgements, which are behind
            // the ends of what it has sent.
            while self.ways.as_mut().is_some_and(|ways| ways.is_held_up(to)) && self.look() {}
            return posted;
        }
        self.pass(to, bytes, work, over)
    }

    /// Posts to a peer that is not reached by packets.
    fn pass(
        &mut self,
        to: Rank,
        bytes: usize,
        work: u64,
        over: impl FnOnce(&mut V, u64) -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let Some(ways) = &mut self.ways else { return over(&mut self.verbs, work) };
        let bytes = bytes as u64;
        let work = ways.passing(to, work, bytes, self.verbs.now_ns());
        let posted = over(&mut self.verbs, work);
        if posted != Ok(true) {
            ways.not_passed(to, work, bytes);
        }
        posted
    }

    /// Looks at datagrams once; whether the adapter may have more.
    fn look(&mut self) -> bool {
        let Some(ways) = &mut self.ways else { return false };
        ways.look(&mut self.verbs).unwrap_or_else(|fault| {
            ways.fault.get_or_insert(fault);
            false
        })
    }
}

fn len_of(parts: &[Local]) -> usize {
    parts.iter().map(|part| part.span.len).sum()
}

/// What stands for others passes on all they can.
#[deny(clippy::missing_trait_methods)]
impl<V: Verbs> Verbs for Reliable<V> {
    type Nap = V::Nap;

    fn me(&self) -> Rank {
        self.verbs.me()
    }

    fn size(&self) -> usize {
        self.verbs.size()
    }

    fn caps(&self) -> &VerbsCaps {
        &self.caps
    }

    /// Packets go over one; where there are none it has no part in anything.
    fn rails(&self) -> usize {
        if self.ways.is_some() { 1 } else { self.verbs.rails() }
    }

    fn now_ns(&self) -> u64 {
        self.verbs.now_ns()
    }

    fn distance(&self, peer: Rank) -> Distance {
        self.verbs.distance(peer)
    }

    fn costs(&self, distance: Distance) -> Costs {
        self.verbs.costs(distance)
    }

    fn allocate(&mut self, len: usize) -> Span {
        self.verbs.allocate(len)
    }

    fn register(&mut self, rail: usize, span: Span, rights: Rights) -> Result<Region, Fault> {
        let region = self.verbs.register(rail, span, rights)?;
        if let Some(ways) = &mut self.ways {
            ways.regions.insert(region.remote, (span, rights));
        }
        Ok(region)
    }

    fn deregister(&mut self, rail: usize, region: Region) {
        if let Some(ways) = &mut self.ways {
            // An answer that is not sent yet would be read from memory that may be gone.
            ways.regions.remove(&region.remote);
        }
        self.verbs.deregister(rail, region);
    }

    fn watch(&mut self, span: Span) -> bool {
        self.verbs.watch(span)
    }

    #[inline(always)]
    fn memory_changed(&self) -> bool {
        self.verbs.memory_changed()
    }

    fn take_changes(&mut self, gone: &mut Vec<Span>) {
        self.verbs.take_changes(gone);
    }

    #[inline(always)]
    fn is_unchanged(&mut self, span: Span) -> bool {
        self.verbs.is_unchanged(span)
    }

    fn frames(&mut self, rail: usize, region: Region, span: Span, out: &mut Vec<u64>) -> bool {
        self.verbs.frames(rail, region, span, out)
    }

    fn post_send(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        let inline = self.caps.inline_bytes;
        let job = |verbs: &V| Job::new(Opcode::Send, parts, inline, verbs).telling(work, Done::Sent);
        self.post(to, len_of(parts), work, |verbs, work| verbs.post_send(to, rail, parts, work), job)
    }

    fn post_datagram(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        match self.ways {
            None => self.verbs.post_datagram(to, rail, parts, work),
            Some(_) => Err(Fault::Device("datagrams are used up for what is reliable".into())),
        }
    }

    fn post_receive(&mut self, rail: usize, buffer: Local, work: u64) {
        match &mut self.ways {
            None => self.verbs.post_receive(rail, buffer, work),
            // The one that was read last is in the caches, and those that nobody needs are never touched.
            Some(ways) => ways.receives.push((buffer, work)),
        }
    }

    fn received_in(&mut self, work: u64) -> Option<Local> {
        let Some(ways) = &mut self.ways else { return self.verbs.received_in(work) };
        let at = ways.exchanged.iter().position(|(of, _)| *of == work)?;
        Some(ways.exchanged.swap_remove(at).1)
    }

    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        parts: &[Local],
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let inline = self.caps.inline_bytes;
        let job = |verbs: &V| {
            let job = Job::new(Opcode::Write, parts, inline, verbs).naming(remote.key, remote.addr);
            job.telling(work, Done::Written)
        };
        let over = |verbs: &mut V, work| verbs.post_write(to, rail, parts, remote, work);
        self.post(to, len_of(parts), work, over, job)
    }

    fn post_at_once(
        &mut self,
        to: Rank,
        parts: &[Local],
        remote: Option<Remote>,
        work: u64,
    ) -> Result<bool, Fault> {
        if self.ways.as_mut().is_some_and(|ways| !ways.peer(to).route.is_connected()) {
            return Ok(false);
        }
        self.pass(to, len_of(parts), work, |verbs, work| verbs.post_at_once(to, parts, remote, work))
    }

    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        if let Some(ways) = &mut self.ways
            && !ways.peer(from).route.is_connected()
        {
            if let Some(why) = &ways.peer(from).lost {
                return Err(Fault::clone(why));
            }
            return ways.post_read(from, local, remote, work, &mut self.verbs);
        }
        let over = |verbs: &mut V, work| verbs.post_read(from, rail, local, remote, work);
        self.pass(from, local.span.len, work, over)
    }

    /// Datagrams that are sent again would be carried out again, and where there are some a message may go another way than this.
    fn post_atomic(
        &mut self,
        at: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        atomic: Atomic,
        work: u64,
    ) -> Result<bool, Fault> {
        match self.ways {
            None => self.verbs.post_atomic(at, rail, local, remote, atomic, work),
            Some(_) => Ok(false),
        }
    }

    fn flush(&mut self, to: Rank) {
        self.verbs.flush(to);
    }

    fn flush_unless_many(&mut self, to: Rank) {
        self.verbs.flush_unless_many(to);
    }

    fn leads(&mut self, to: Rank) {
        self.verbs.leads(to);
    }

    fn owes(&self) -> bool {
        self.verbs.owes() || self.ways.as_ref().is_some_and(|ways| ways.due_ns != u64::MAX)
    }

    fn may_leave(&self, peer: Rank) -> bool {
        self.verbs.may_leave(peer)
    }

    fn gives_slots(&mut self, peer: Rank) -> bool {
        self.ways.as_mut().is_none_or(|ways| ways.peer(peer).route.is_connected())
    }

    fn disconnect(&mut self, peer: Rank, rail: usize) {
        if self.ways.is_none() {
            self.verbs.disconnect(peer, rail);
        }
    }

    fn poll(&mut self) -> Option<Completion> {
        if self.ways.is_none() {
            return self.verbs.poll();
        }
        if self.ways.as_ref().is_some_and(|ways| ways.ended.is_empty()) {
            self.look();
        }
        let ways = self.ways.as_mut()?;
        let completion = ways.ended.pop_front()?;
        if let Done::Parted { from } = completion.done {
            ways.peer(from).route.tell();
        }
        Some(completion)
    }

    fn touched(&mut self, position: usize) -> Option<Rank> {
        let Some(ways) = &mut self.ways else { return self.verbs.touched(position) };
        if let Some(rank) = ways.touched.get(position) {
            return Some(*rank);
        }
        let found = self.verbs.touched(position - ways.touched.len());
        if found.is_none() {
            ways.touched.clear();
        }
        found
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        self.verbs.copy(to, from, len);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        self.verbs.peek_bytes(data, out);
    }

    fn poke_bytes(&mut self, to: usize, bytes: &[u8]) {
        self.verbs.poke_bytes(to, bytes);
    }

    fn load(&self, addr: usize) -> u64 {
        self.verbs.load(addr)
    }

    fn store(&mut self, addr: usize, value: u64) {
        self.verbs.store(addr, value);
    }

    fn charge(&mut self, what: Charge) {
        self.verbs.charge(what);
    }

    #[inline(always)]
    fn label(&mut self, name: impl FnOnce() -> &'static str) {
        self.verbs.label(name);
    }

    fn alarm(&mut self, at_ns: u64) {
        self.verbs.alarm(at_ns);
    }

    fn awake(&mut self) {
        self.verbs.awake();
    }

    fn waiters(&mut self, threads: usize) {
        self.verbs.waiters(threads);
    }

    fn rests(&mut self) {
        self.set_alarm();
        self.verbs.rests();
    }

    fn idle(&mut self, round: u32) -> V::Nap {
        if round == PATIENCE
            && let Some(ways) = &mut self.ways
            && let Err(fault) = ways.hurry(&mut self.verbs)
        {
            ways.fault.get_or_insert(fault);
        }
        self.set_alarm();
        self.verbs.idle(round)
    }

    #[inline]
    fn has_served(&mut self) -> bool {
        self.verbs.has_served()
    }

    fn take_lost(&mut self) -> Option<(Rank, Fault)> {
        let (rank, why) = self.verbs.take_lost()?;
        if let Some(ways) = &mut self.ways {
            ways.lose(rank, &why, &mut self.verbs);
        }
        Some((rank, why))
    }

    fn check(&mut self) -> Result<(), Fault> {
        if let Some(fault) = self.ways.as_ref().and_then(|ways| ways.fault.clone()) {
            return Err(fault);
        }
        self.verbs.check()
    }
}

impl Ways {
    /// Asks a peer for what its memory holds.
    fn post_read(
        &mut self,
        from: Rank,
        local: Local,
        remote: Remote,
        work: u64,
        verbs: &mut impl Verbs,
    ) -> Result<bool, Fault> {
        let len = u32::try_from(local.span.len).map_err(|_| {
            Fault::Device(format!("a read of {} bytes; {} are the most", local.span.len, u32::MAX))
        })?;
        let peer = self.peer(from);
        if peer.reads.len() >= READS {
            return Ok(false);
        }
        let id = peer.next_read;
        let request = [id.to_le_bytes(), len.to_le_bytes()].concat();
        // The answer may come while the request is posted.
        peer.reads.push(Read { id, work, to: local.span, got: 0 });
        peer.next_read = id.wrapping_add(1);
        let posted =
            self.post(from, Job::bytes(Opcode::Read, &request).naming(remote.key, remote.addr), verbs)?;
        if !posted {
            self.peer(from).reads.pop();
        }
        Ok(posted)
    }

    /// Before this rank may sleep: acknowledgements leave.
    fn hurry(&mut self, verbs: &mut impl Verbs) -> Result<(), Fault> {
        if self.due_ns == u64::MAX {
            return Ok(());
        }
        for at in 0..self.known.len() {
            let rank = self.known[at];
            self.peer(rank).stream.hurry();
            if self.peer(rank).stream.answers() {
                self.send(rank, verbs)?;
            }
        }
        self.find_due();
        Ok(())
    }

    /// Whether work for a peer waits: for acknowledgements, or for packets that these give back.
    fn is_held_up(&mut self, to: Rank) -> bool {
        !self.peer(to).jobs.is_empty()
    }

    /// Whether a peer and this rank have nothing more to tell each other.
    fn has_left(&self, rank: Rank) -> bool {
        let Some(peer) = &self.peers[rank] else { return true };
        let is_acknowledged = peer.jobs.is_empty() && peer.stream.is_acknowledged();
        peer.lost.is_some() || peer.said_bye && (is_acknowledged || peer.repeated >= FAREWELLS)
    }
}

impl<V: Verbs> Drop for Reliable<V> {
    /// What peers have not taken yet is theirs all the same: this rank stays until they have it, and have said that they
    /// have nothing more.
    fn drop(&mut self) {
        let linger_ns = self.ways.as_ref().map_or(0, |ways| ways.settings.linger_ns);
        if linger_ns == 0 {
            return;
        }
        let until_ns = self.verbs.now_ns().saturating_add(linger_ns);
        let Some(ways) = &mut self.ways else { return };
        for at in 0..ways.known.len() {
            ways.say(ways.known[at], Opcode::Bye);
        }
        let mut round = 0;
        while ways.fault.is_none() && self.verbs.now_ns() < until_ns {
            while let Some((rank, why)) = self.verbs.take_lost() {
                ways.lose(rank, &why, &mut self.verbs);
            }
            if ways.look(&mut self.verbs).is_err() || ways.known.iter().all(|rank| ways.has_left(*rank)) {
                break;
            }
            round += 1;
            let _ = ways.hurry(&mut self.verbs);
            self.verbs.idle(round).take();
        }
        // A peer that has not heard this would ask for as long as this rank has.
        for _ in 0..FAREWELLS {
            for at in 0..ways.known.len() {
                let _ = ways.answer(ways.known[at], &mut self.verbs);
                let _ = self.verbs.poll();
            }
        }
    }
}
