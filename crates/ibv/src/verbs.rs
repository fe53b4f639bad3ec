//! The verbs that protocols use, over those of libibverbs.

use crate::device::Ibv;
use crate::objects::{Order, Pages};
use crate::watch::Owed;
use fabric::{
    Atomic, Charge, Completion, Costs, Distance, Done, Fault, Local, Nap, Rank, Region, Remote, Rights, Span,
    Verbs, VerbsCaps,
};
use memhook::{Frames, Monitor};
use rnic::driver::memory;

/// Looks in vain before an adapter is asked to wake this rank, which costs a call into it.
const PATIENCE: u32 = 64;
/// What is due so soon is waited for awake: to set a clock takes about as long.
const SOON_NS: u64 = 20_000;

/// What this rank may do until its next look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IbvNap {
    /// Look at once: who gives its core away to one that computes gets it back when that has used up its turn.
    Look,
    /// Sleep until the descriptor has something.
    Sleep,
}

impl Nap for IbvNap {
    fn take(self) {
        match self {
            IbvNap::Look => std::hint::spin_loop(),
            IbvNap::Sleep => std::thread::yield_now(),
        }
    }

    fn sleeps(&self) -> bool {
        *self == IbvNap::Sleep
    }
}

impl Ibv {
    fn post(
        &mut self,
        to: Rank,
        rail: usize,
        order: &Order,
        inline: bool,
        work: u64,
        done: Done,
    ) -> Result<bool, Fault> {
        if !self.is_open(to, rail)? {
            return Ok(false);
        }
        self.watch.told(to, Owed::ByAdapter);
        self.rails[rail].post(to, order, inline, work, done)
    }

    fn is_inline(&self, parts: &[Local]) -> bool {
        parts.iter().map(|part| part.span.len).sum::<usize>() <= self.caps.inline_bytes
    }

    fn monitor(&mut self) -> Option<&mut Monitor> {
        self.monitor.get_or_insert_with(|| Monitor::start(true).ok()).as_mut()
    }
}

impl Verbs for Ibv {
    type Nap = IbvNap;

    fn me(&self) -> Rank {
        self.me
    }

    fn size(&self) -> usize {
        self.size_of_job()
    }

    fn caps(&self) -> &VerbsCaps {
        &self.caps
    }

    fn rails(&self) -> usize {
        self.rails.len()
    }

    fn now_ns(&self) -> u64 {
        self.clock_ns()
    }

    fn costs(&self, _distance: Distance) -> Costs {
        self.costs
    }

    fn allocate(&mut self, len: usize) -> Span {
        let pages = Pages::new(len);
        let span = Span { len, ..pages.span() };
        self.memory.push(pages);
        span
    }

    fn register(&mut self, rail: usize, span: Span, rights: Rights) -> Result<Region, Fault> {
        self.rails[rail].register(span, rights)
    }

    fn deregister(&mut self, rail: usize, region: Region) {
        self.rails[rail].deregister(region);
    }

    fn watch(&mut self, span: Span) -> bool {
        self.monitor().is_some_and(|monitor| monitor.watch(span))
    }

    #[inline(always)]
    fn memory_changed(&self) -> bool {
        matches!(&self.monitor, Some(Some(monitor)) if monitor.has_changed())
    }

    fn take_changes(&mut self, gone: &mut Vec<Span>) {
        if let Some(Some(monitor)) = &mut self.monitor {
            monitor.take(gone);
        }
    }

    fn is_unchanged(&mut self, span: Span) -> bool {
        self.monitor().is_some_and(|monitor| monitor.is_unchanged(span))
    }

    fn frames(&mut self, rail: usize, region: Region, span: Span, out: &mut Vec<u64>) -> bool {
        let shown = self.frames.get_or_insert_with(|| Frames::open().ok());
        self.rails[rail].holds_pages(region) && shown.as_ref().is_some_and(|frames| frames.of(span, out))
    }

    fn post_send(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        let inline = self.is_inline(parts);
        self.post(to, rail, &Order::Send(parts), inline, work, Done::Sent)
    }

    fn post_datagram(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        let place = self.place(to, rail);
        self.watch.told(to, Owed::ByRank);
        self.rails[rail].post_datagram(self.me, to, &place, parts, work)
    }

    fn post_receive(&mut self, rail: usize, buffer: Local, work: u64) {
        if let Err(why) = self.rails[rail].post_receive(buffer, work) {
            let why = format!("{} takes no receive buffer: {why}", self.rails[rail].port.name());
            self.fault.get_or_insert(Fault::Device(why));
        }
    }

    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        parts: &[Local],
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let inline = self.is_inline(parts);
        self.post(to, rail, &Order::Write(parts, remote), inline, work, Done::Written)
    }

    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        self.post(from, rail, &Order::Read(local, remote), false, work, Done::Read)
    }

    /// By adapters of which the target's says that no instruction of a processor comes between (`IBV_ATOMIC_GLOB`). Those that are
    /// atomic among their own alone would clash with what the target does itself.
    fn post_atomic(
        &mut self,
        at: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        atomic: Atomic,
        work: u64,
    ) -> Result<bool, Fault> {
        if !self.place(at, rail).has_atomics {
            return Ok(false);
        }
        let is_posted = self.rails[rail].change(at, local, remote, atomic, work)?;
        if is_posted {
            self.watch.told(at, Owed::ByAdapter);
        }
        Ok(is_posted)
    }

    fn disconnect(&mut self, peer: Rank, rail: usize) {
        self.rails[rail].disconnect(peer);
    }

    fn poll(&mut self) -> Option<Completion> {
        if self.ended.is_empty() {
            self.look();
        }
        self.ended.pop_front()
    }

    /// Writes have no order here that anybody could count on, so nobody asks.
    fn touched(&mut self, _position: usize) -> Option<Rank> {
        None
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        memory::copy(to, from, len);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        out.copy_from_slice(memory::bytes(data));
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

    fn alarm(&mut self, at_ns: u64) {
        let now_ns = self.clock_ns();
        match at_ns > now_ns + SOON_NS {
            true => self.wake_at(at_ns, now_ns),
            false => self.has_alarm = true,
        }
    }

    fn awake(&mut self) {}

    fn rests(&mut self) {
        if std::mem::take(&mut self.has_alarm) {
            let now_ns = self.clock_ns();
            self.wake_at(now_ns + SOON_NS, now_ns);
        }
        // What it finds is there for the look that follows.
        self.may_sleep();
    }

    fn idle(&mut self, round: u32) -> IbvNap {
        let is_soon = std::mem::take(&mut self.has_alarm) || self.has_news();
        match !is_soon && round >= PATIENCE && self.may_sleep() {
            true => IbvNap::Sleep,
            false => IbvNap::Look,
        }
    }

    fn take_lost(&mut self) -> Option<(Rank, Fault)> {
        self.lost.pop_front()
    }

    fn check(&mut self) -> Result<(), Fault> {
        self.fault.take().map_or(Ok(()), Err)
    }
}
