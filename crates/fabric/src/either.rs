//! One of two kinds of adapters, which it is being found out when a job begins.

use crate::costs::{Costs, Distance};
use crate::device::{Fault, Rank, Span};
use crate::rights::{Region, Rights};
use crate::verbs::{Atomic, Charge, Completion, Local, Remote, Verbs, VerbsCaps};
use crate::waiting::Nap;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Either<A, B> {
    /// The first kind.
    First(A),
    /// The second.
    Second(B),
}

/// The same call of whichever it is.
macro_rules! either {
    ($of:expr, $it:ident => $call:expr) => {
        match $of {
            Either::First($it) => $call,
            Either::Second($it) => $call,
        }
    };
}

impl<A: Nap, B: Nap> Nap for Either<A, B> {
    #[inline]
    fn take(self) {
        either!(self, it => it.take());
    }

    #[inline]
    fn sleeps(&self) -> bool {
        either!(self, it => it.sleeps())
    }
}

/// Methods of [`Verbs`] that are passed on as they are: those that change nothing, and those that do.
macro_rules! passed_on {
    (looking: $(fn $look:ident($($seen:ident: $of:ty),*) $(-> $found:ty)?;)*
     acting: $(fn $act:ident($($given:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        $(#[inline(always)]
        fn $look(&self, $($seen: $of),*) $(-> $found)? {
            either!(self, it => it.$look($($seen),*))
        })*
        $(#[inline(always)]
        fn $act(&mut self, $($given: $kind),*) $(-> $result)? {
            either!(self, it => it.$act($($given),*))
        })*
    };
}

/// What stands for others passes on all they can.
#[deny(clippy::missing_trait_methods)]
impl<A: Verbs, B: Verbs> Verbs for Either<A, B> {
    type Nap = Either<A::Nap, B::Nap>;

    passed_on! {
        looking:
        fn me() -> Rank;
        fn size() -> usize;
        fn caps() -> &VerbsCaps;
        fn rails() -> usize;
        fn now_ns() -> u64;
        fn distance(peer: Rank) -> Distance;
        fn costs(distance: Distance) -> Costs;
        fn memory_changed() -> bool;
        fn may_leave(peer: Rank) -> bool;
        fn owes() -> bool;
        fn peek_bytes(data: Span, out: &mut [u8]);
        fn load(addr: usize) -> u64;
        acting:
        fn allocate(len: usize) -> Span;
        fn register(rail: usize, span: Span, rights: Rights) -> Result<Region, Fault>;
        fn deregister(rail: usize, region: Region);
        fn watch(span: Span) -> bool;
        fn take_changes(gone: &mut Vec<Span>);
        fn is_unchanged(span: Span) -> bool;
        fn frames(rail: usize, region: Region, span: Span, out: &mut Vec<u64>) -> bool;
        fn post_send(to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault>;
        fn post_datagram(to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault>;
        fn post_receive(rail: usize, buffer: Local, work: u64);
        fn received_in(work: u64) -> Option<Local>;
        fn post_write(to: Rank, rail: usize, parts: &[Local], remote: Remote, work: u64) -> Result<bool, Fault>;
        fn post_at_once(to: Rank, parts: &[Local], remote: Option<Remote>, work: u64) -> Result<bool, Fault>;
        fn post_read(from: Rank, rail: usize, local: Local, remote: Remote, work: u64) -> Result<bool, Fault>;
        fn post_atomic(at: Rank, rail: usize, local: Local, remote: Remote, atomic: Atomic, work: u64) -> Result<bool, Fault>;
        fn flush(to: Rank);
        fn flush_unless_many(to: Rank);
        fn leads(to: Rank);
        fn gives_slots(peer: Rank) -> bool;
        fn disconnect(peer: Rank, rail: usize);
        fn poll() -> Option<Completion>;
        fn touched(position: usize) -> Option<Rank>;
        fn copy(to: usize, from: usize, len: usize);
        fn poke_bytes(to: usize, bytes: &[u8]);
        fn store(addr: usize, value: u64);
        fn charge(what: Charge);
        fn alarm(at_ns: u64);
        fn awake();
        fn waiters(threads: usize);
        fn rests();
        fn has_served() -> bool;
        fn take_lost() -> Option<(Rank, Fault)>;
        fn check() -> Result<(), Fault>;
    }

    #[inline]
    fn label(&mut self, name: impl FnOnce() -> &'static str) {
        either!(self, it => it.label(name));
    }

    fn idle(&mut self, round: u32) -> Self::Nap {
        match self {
            Either::First(it) => Either::First(it.idle(round)),
            Either::Second(it) => Either::Second(it.idle(round)),
        }
    }
}
