//! The verbs of the adapter, and its end.

use super::postings::{Payload, Posted};
use super::{Contact, Door, LINGER, PATIENCE, PATIENT, Rnic, RnicNap, TIRED, TRANSFER, memory};
use crate::stack::{MAX_REGIONS, Rights, Work};
use fabric::{
    Atomic, Charge, Completion, Costs, Distance, Done, Fault, Local, Rank, Region, Remote, Span, Verbs,
    VerbsCaps,
};
use std::time::{Duration, Instant};

impl Verbs for Rnic {
    type Nap = RnicNap;

    fn me(&self) -> Rank {
        self.me
    }

    fn size(&self) -> usize {
        self.addresses.len()
    }

    fn caps(&self) -> &VerbsCaps {
        &self.caps
    }

    fn rails(&self) -> usize {
        1
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn costs(&self, _distance: Distance) -> Costs {
        Costs::ethernet()
    }

    fn allocate(&mut self, len: usize) -> Span {
        let mut words = vec![0u64; len.div_ceil(8)].into_boxed_slice();
        let addr = words.as_mut_ptr() as usize;
        self.memory.push(words);
        Span { addr, len }
    }

    fn register(&mut self, _rail: usize, span: Span, rights: fabric::Rights) -> Result<Region, Fault> {
        let stag = self.regions.register(span.addr as u64, span.len as u64, rights_of(rights), 0);
        stag.map(Region::of)
            .ok_or_else(|| Fault::Device(format!("{MAX_REGIONS} regions of memory are registered")))
    }

    fn deregister(&mut self, _rail: usize, region: Region) {
        assert!(self.regions.deregister(region.local), "what is given back is registered");
    }

    fn post_send(&mut self, to: Rank, _rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        let what = Work::Send { len: len_of(parts)?, solicited: false, invalidate: None };
        self.post(to, parts, work, what)
    }

    fn post_datagram(&mut self, to: Rank, _rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        if self.unreliable.is_none() {
            return Err(Fault::Device("this adapter has no datagrams".into()));
        }
        self.send_unreliable(to, parts);
        self.ended.push_back(Completion { work, done: Done::Sent, result: Ok(()) });
        Ok(true)
    }

    fn post_receive(&mut self, _rail: usize, buffer: Local, work: u64) {
        // The one that was read last is in the caches, and those that nobody needs are never touched.
        self.host.free.push_front((buffer, work));
    }

    fn post_write(
        &mut self,
        to: Rank,
        _rail: usize,
        parts: &[Local],
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let Remote { addr, key } = remote;
        let what = Work::Write { len: len_of(parts)?, stag: key, to: addr, immediate: None };
        self.post(to, parts, work, what)
    }

    fn post_at_once(
        &mut self,
        to: Rank,
        parts: &[Local],
        remote: Option<Remote>,
        work: u64,
    ) -> Result<bool, Fault> {
        let len = len_of(parts)?;
        let what = match remote {
            Some(Remote { addr, key }) => Work::Write { len, stag: key, to: addr, immediate: None },
            None => Work::Send { len, solicited: false, invalidate: None },
        };
        Ok(self.caps.at_once_bytes > 0 && self.post_to_stream(to, parts, work, what))
    }

    fn post_read(
        &mut self,
        from: Rank,
        _rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let what = Work::Read {
            len: len_of(&[local])?,
            sink_stag: local.key,
            sink_to: local.span.addr as u64,
            stag: remote.key,
            to: remote.addr,
        };
        self.post(from, &[], work, what)
    }

    fn post_atomic(
        &mut self,
        at: Rank,
        _rail: usize,
        local: Local,
        remote: Remote,
        atomic: Atomic,
        work: u64,
    ) -> Result<bool, Fault> {
        // What is posted behind it must not overtake it, and datagrams have no one order.
        if !matches!(&self.contacts[at], Contact::Connected(link) if link.connection.keeps_order()) {
            return Ok(false);
        }
        let atomic = match atomic {
            Atomic::Add(add) => wire::iwarp::rdmap::Atomic::FetchAdd { add, mask: 0 },
            Atomic::CompareSwap { compare, swap } => wire::iwarp::rdmap::Atomic::CompareSwap {
                swap,
                swap_mask: u64::MAX,
                compare,
                compare_mask: u64::MAX,
            },
        };
        let what = Work::Atomic { stag: remote.key, to: remote.addr, atomic };
        let posted = Posted::new(work, Payload::Lent([local.span, Span::EMPTY]));
        self.post_this(at, posted, what)
    }

    fn flush(&mut self, to: Rank) {
        if !self.waiting.is_empty() {
            self.waiting.retain(|peer| *peer != to);
        }
        self.send_what_waits(to);
        self.send_outbox();
    }

    fn leads(&mut self, to: Rank) {
        self.leads = Some(to);
    }

    fn flush_unless_many(&mut self, to: Rank) {
        let look = self.look;
        if self.burst(to).is_some_and(|burst| !burst.may_wait(look)) {
            self.flush(to);
        }
    }

    /// Memory is reached by its addresses in this process, so what a registration names is always what lies there now: it
    /// cannot outlive its memory, and nothing has to be watched.
    fn watch(&mut self, _span: Span) -> bool {
        true
    }

    fn owes(&self) -> bool {
        let has_unsent = self.unsent.iter().any(|peer| self.contacts[*peer].has_unsent());
        has_unsent || !self.waiting.is_empty() || self.has_datagrams_under_way() || self.has_in_outbox()
    }

    fn may_leave(&self, peer: Rank) -> bool {
        Rnic::may_leave(self, peer)
    }

    fn poll(&mut self) -> Option<Completion> {
        if self.ended.is_empty() && !self.in_row {
            self.look();
        }
        let completion = self.ended.pop_front();
        self.in_row = completion.is_some();
        completion
    }

    fn touched(&mut self, position: usize) -> Option<Rank> {
        match self.host.touched.get(position) {
            Some(peer) => Some(*peer),
            None => {
                self.host.touched.clear();
                None
            }
        }
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        memory::copy(to, from, len);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        assert_eq!(data.len, out.len());
        memory::copy(out.as_mut_ptr() as usize, data.addr, data.len);
    }

    fn poke_bytes(&mut self, to: usize, bytes: &[u8]) {
        memory::copy(to, bytes.as_ptr() as usize, bytes.len());
    }

    fn load(&self, addr: usize) -> u64 {
        memory::load(addr)
    }

    fn store(&mut self, addr: usize, value: u64) {
        memory::store(addr, value);
    }

    fn charge(&mut self, _what: Charge) {}

    fn disconnect(&mut self, peer: Rank, _rail: usize) {
        self.disconnect_from(peer);
    }

    fn alarm(&mut self, at_ns: u64) {
        match at_ns > self.clock_ns() {
            true => self.alarm_ns = self.alarm_ns.min(at_ns),
            false => self.is_due = true,
        }
    }

    fn waiters(&mut self, threads: usize) {
        self.threads_wait(threads);
    }

    fn rests(&mut self) {
        self.somebody_rests();
        self.hurry();
        let alarm_ns = std::mem::replace(&mut self.alarm_ns, u64::MAX);
        self.set_timers(alarm_ns);
    }

    fn awake(&mut self) {
        self.may_sleep(false);
    }

    fn idle(&mut self, round: u32) -> RnicNap {
        self.send_waiting();
        if round == PATIENCE {
            self.hurry();
        }
        if round == PATIENCE || round.is_multiple_of(PATIENT) && round > 0 {
            // Who shares its core sleeps from here on.
            self.keep_unacknowledged(round == PATIENCE && !self.shares_core);
        }
        self.may_sleep(round >= PATIENCE);
        // Nothing would end a sleep.
        if self.alone.is_out() {
            return RnicNap::Look;
        }
        let has_told_all = !self.watch.has_news() && self.ended.is_empty() && self.host.touched.is_empty();
        let is_due = std::mem::take(&mut self.is_due);
        // A timer costs much more than a look, the more so if it ends, and is in vain where something comes soon.
        let alarm_ns = std::mem::replace(&mut self.alarm_ns, u64::MAX);
        let has_times = alarm_ns != u64::MAX || self.has_datagrams_under_way();
        let is_early = has_times && round < PATIENCE;
        let is_timed = !has_times || is_early || self.set_timers(alarm_ns);
        let waits = std::mem::take(&mut self.has_news) || self.guests.any_missing();
        let holds = self.unreliable.as_ref().is_some_and(|unreliable| unreliable.holds());
        match !is_timed || waits || holds {
            _ if is_due || !has_told_all => RnicNap::Look,
            true if round >= TIRED => RnicNap::Doze,
            true => RnicNap::Yield,
            false if is_early && self.shares_core => RnicNap::Yield,
            false if is_early => RnicNap::Look,
            false => RnicNap::Sleep,
        }
    }

    fn has_served(&mut self) -> bool {
        std::mem::take(&mut self.has_served)
    }

    fn take_lost(&mut self) -> Option<(Rank, Fault)> {
        self.watch.take_lost()
    }

    fn check(&mut self) -> Result<(), Fault> {
        if self.guests.any_missing()
            && let Some(peer) = self.guests.missing()
        {
            return Err(Fault::PeerGone(peer));
        }
        self.fault.take().map_or(Ok(()), Err)
    }
}

impl Rnic {
    /// Has a sleep end when something is due, here or above, where it is at `alarm_ns`; false if nothing can end it then.
    fn set_timers(&mut self, alarm_ns: u64) -> bool {
        let now_ns = self.clock_ns();
        if let Door::Datagrams(datagrams) = &mut self.door {
            datagrams.alarm.arm(datagrams.due_ns, now_ns);
        }
        match &mut self.unreliable {
            _ if alarm_ns == u64::MAX => true,
            Some(unreliable) => {
                unreliable.alarm.arm(alarm_ns, now_ns);
                true
            }
            None => false,
        }
    }
}

impl Drop for Rnic {
    /// What peers have not taken yet is theirs all the same. A socket that is closed with something unread in it
    /// resets the connection, and what is under way to the peer is lost: so each side says that it has ended, and reads
    /// on until the other has.
    fn drop(&mut self) {
        self.send_waiting();
        self.leave();
        let start = Instant::now();
        let taken = self.contacts.iter_mut().map(std::mem::take);
        let link = |contact| if let Contact::Connected(link) = contact { Some(link) } else { None };
        let mut links: Vec<_> = taken.filter_map(link).collect();
        while !links.is_empty() && start.elapsed() < LINGER {
            links.retain_mut(|link| !link.takes_leave(&self.regions, &mut self.room));
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// What the stack is to allow.
fn rights_of(asked: fabric::Rights) -> Rights {
    let all = [
        (fabric::Rights::LOCAL_WRITE, Rights::LOCAL_WRITE),
        (fabric::Rights::REMOTE_READ, Rights::REMOTE_READ),
        (fabric::Rights::REMOTE_WRITE, Rights::REMOTE_WRITE),
        (fabric::Rights::REMOTE_ATOMIC, Rights::REMOTE_ATOMIC),
    ];
    let given = all.into_iter().filter(|(right, _)| asked.include(*right));
    given.fold(Rights::NONE, |rights, (_, right)| rights | right)
}

/// The length of what these parts make.
fn len_of(parts: &[Local]) -> Result<u32, Fault> {
    let len: usize = parts.iter().map(|part| part.span.len).sum();
    u32::try_from(len)
        .map_err(|_| Fault::Device(format!("a transfer of {len} bytes; {TRANSFER} are the most")))
}
