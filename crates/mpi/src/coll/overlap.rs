//! The send and the receive buffer of one call may share no byte (MPI 5.0 section 6.2): a program that
//! gives one buffer twice means `MPI_IN_PLACE`, and would get a hang or nonsense from an algorithm that
//! receives before it has sent everything.
//!
//! Only what fills its memory is looked at; types with gaps may be interlaced on purpose.

use super::compile::{Call, Side};
use super::tag::Collective;
use super::ty::Type;
use crate::error::{Class, Result, fail};

/// A run of bytes: where it begins and where it ends.
type Run = (usize, usize);

/// Between which distances from their addresses the two buffers of a call lie, for calls that are kept for
/// other buffers.
#[derive(Clone, Copy, Default, Debug)]
pub struct Reach {
    send: (isize, isize),
    recv: (isize, isize),
}

impl Reach {
    /// Of a checked call: what it counts with fits 64 bits.
    pub fn of(call: &Call) -> Reach {
        Sides::of(call).reach()
    }

    /// Whether the buffers share nothing when they lie here. Where blocks have gaps between them this may be
    /// false though they do not; it is never true though they do.
    #[inline]
    pub fn is_apart(&self, send: usize, recv: usize) -> bool {
        let at = |addr: usize, run: (isize, isize)| {
            (addr.wrapping_add_signed(run.0), addr.wrapping_add_signed(run.1))
        };
        let (send, recv) = (at(send, self.send), at(recv, self.recv));
        send.0 == send.1 || recv.0 == recv.1 || send.0 >= recv.1 || recv.0 >= send.1
    }
}

/// Refuses a call whose buffers overlap.
pub fn check(call: &Call, send: usize, recv: usize) -> Result {
    Sides::of(call).check(send, recv)
}

/// Both buffers of a call, with the number of blocks in each where all are equal.
pub(super) struct Sides<'a> {
    /// This rank.
    pub rank: usize,
    pub send: (Side<'a>, u64),
    pub recv: (Side<'a>, u64),
}

impl<'a> Sides<'a> {
    fn of(call: &Call<'a>) -> Sides<'a> {
        let (send, recv) = ((call.send, sent_blocks(call)), (call.recv, received_blocks(call)));
        Sides { rank: call.rank, send, recv }
    }

    /// See [`Reach::of`].
    pub fn reach(&self) -> Reach {
        let hull = |side: &(Side, u64)| {
            // From the middle of the numbers on, for displacements may be negative.
            let middle = usize::MAX / 2;
            let mut hull = Hull::default();
            each(self.rank, side, middle, |run| hull.add(run));
            let from = |at: usize| at.wrapping_sub(middle) as isize;
            hull.0.map_or((0, 0), |run| (from(run.0), from(run.1)))
        };
        Reach { send: hull(&self.send), recv: hull(&self.recv) }
    }

    /// See [`check`].
    pub fn check(&self, send: usize, recv: usize) -> Result {
        let mut received = Hull::default();
        each(self.rank, &self.recv, recv, |run| received.add(run));
        let mut sent = Hull::default();
        each(self.rank, &self.send, send, |run| sent.add(run));
        if !meet(sent.0, received.0) {
            return Ok(());
        }
        let (mut from, mut to) = (Vec::new(), Vec::new());
        each(self.rank, &self.send, send, |run| from.push(run));
        each(self.rank, &self.recv, recv, |run| to.push(run));
        match first_shared(from, to) {
            None => Ok(()),
            Some(_) if send == recv => fail(
                Class::BUFFER,
                "arguments `sendbuf` and `recvbuf` are the same buffer; MPI_IN_PLACE says that on purpose",
            ),
            Some(shared) => {
                fail(Class::BUFFER, format!("arguments `sendbuf` and `recvbuf` overlap in {shared} bytes"))
            }
        }
    }
}

/// The first and the last byte of several runs.
#[derive(Default)]
struct Hull(Option<Run>);

impl Hull {
    fn add(&mut self, run: Run) {
        let (start, end) = self.0.unwrap_or(run);
        self.0 = Some((start.min(run.0), end.max(run.1)));
    }
}

fn meet(a: Option<Run>, b: Option<Run>) -> bool {
    a.zip(b).is_some_and(|(a, b)| a.0 < b.1 && b.0 < a.1)
}

/// The bytes that the first run of `a` and one of `b` which meet have in common.
fn first_shared(mut a: Vec<Run>, mut b: Vec<Run>) -> Option<usize> {
    a.sort_unstable();
    b.sort_unstable();
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (start, end) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if start < end {
            return Some(end - start);
        }
        // What ends first meets nothing that is to come, for that begins no earlier.
        if a[i].1 <= b[j].1 { i += 1 } else { j += 1 }
    }
    None
}

/// Calls `f` with the runs of one side that fill their memory.
fn each(rank: usize, side: &(Side, u64), addr: usize, mut f: impl FnMut(Run)) {
    let (side, blocks) = *side;
    match side {
        Side::Absent => {}
        Side::Even { count, ty } => run(addr, count * blocks, ty).into_iter().for_each(f),
        // The receive buffer of Reduce_scatter holds the part of this rank.
        Side::Varied { counts, displs, ty } if displs.is_empty() => {
            run(addr, counts.at(rank) as u64, ty).into_iter().for_each(f);
        }
        Side::Varied { counts, displs, ty } => {
            for i in 0..counts.len() {
                let at = addr.wrapping_add_signed((displs.at(i) * ty.extent) as isize);
                run(at, counts.at(i) as u64, ty).into_iter().for_each(&mut f);
            }
        }
        Side::Mixed { counts, displs, types } => {
            for (i, ty) in types.iter().enumerate() {
                let at = addr.wrapping_add_signed(displs.at(i) as isize);
                run(at, counts.at(i) as u64, ty).into_iter().for_each(&mut f);
            }
        }
    }
}

/// Elements that fill their memory but for the padding that C gives them.
fn run(addr: usize, count: u64, ty: &Type) -> Option<Run> {
    let bytes = match ty.dense {
        true => count.checked_mul(ty.size)?,
        false if ty.is_predefined() => count.checked_mul(ty.extent as u64)?,
        false => 0,
    };
    (bytes > 0).then_some((addr, addr.saturating_add(bytes as usize)))
}

fn sent_blocks(call: &Call) -> u64 {
    use Collective::*;
    if matches!(call.kind, Alltoall | Scatter | ReduceScatterBlock) { call.blocks() as u64 } else { 1 }
}

fn received_blocks(call: &Call) -> u64 {
    use Collective::*;
    if matches!(call.kind, Alltoall | Gather | Allgather) { call.blocks() as u64 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::Ints;
    use crate::handle::Handle;

    fn int() -> Type {
        Type::predefined(Handle(0x209)).unwrap()
    }

    fn refused(kind: Collective, send: (Side, usize), recv: (Side, usize)) -> Option<String> {
        let call = Call {
            kind,
            rank: 1,
            size: 3,
            send: send.0,
            recv: recv.0,
            in_place: false,
            op: None,
            root: 1,
            across: None,
        };
        let error = check(&call, send.1, recv.1).err()?;
        assert_eq!(error.class, Class::BUFFER);
        Some(error.text.clone())
    }

    #[test]
    fn equal_blocks_are_told_apart_to_the_byte() {
        let int = int();
        let side = Side::Even { count: 2, ty: &int };
        let shared = |kind, send, recv| refused(kind, (side, send), (side, recv));
        use Collective::*;
        for (kind, sent, received) in [
            (Alltoall, 24, 24),
            (Allgather, 8, 24),
            (Gather, 8, 24),
            (Scatter, 24, 8),
            (ReduceScatterBlock, 24, 8),
            (Allreduce, 8, 8),
            (Reduce, 8, 8),
            (Scan, 8, 8),
            (Exscan, 8, 8),
        ] {
            assert_eq!(shared(kind, 1000, 1000 + sent), None, "{kind:?}");
            assert_eq!(shared(kind, 1000 + received, 1000), None, "{kind:?}");
            assert!(shared(kind, 1000, 1000 + sent - 1).unwrap().ends_with("in 1 bytes"), "{kind:?}");
            assert!(shared(kind, 1000 + received - 1, 1000).unwrap().ends_with("in 1 bytes"), "{kind:?}");
            assert!(shared(kind, 1000, 1000).unwrap().contains("MPI_IN_PLACE"), "{kind:?}");
        }
        let nothing = Side::Even { count: 0, ty: &int };
        assert_eq!(refused(Allreduce, (nothing, 1000), (nothing, 1000)), None);
        assert_eq!(refused(Gather, (side, 1000), (Side::Absent, 1000)), None);
    }

    #[test]
    fn blocks_of_their_own_length_are_compared_one_by_one() {
        let int = int();
        let (counts, gaps, ends) = ([1, 2, 1], [0, 10, 20], [4, 14, 22]);
        let varied =
            |displs| Side::Varied { counts: Ints::Small(&counts), displs: Ints::Small(displs), ty: &int };
        let one = Side::Even { count: 1, ty: &int };
        use Collective::*;
        for kind in [Gatherv, Allgatherv] {
            assert_eq!(
                refused(kind, (one, 1000 + 48), (varied(&gaps), 1000)),
                None,
                "in the gap behind block 1"
            );
            assert!(refused(kind, (one, 1000 + 44), (varied(&gaps), 1000)).unwrap().ends_with("in 4 bytes"));
            assert!(refused(kind, (one, 1000), (varied(&gaps), 1000)).unwrap().contains("MPI_IN_PLACE"));
        }
        assert!(refused(Scatterv, (varied(&gaps), 1000), (one, 1080)).is_some());
        // One buffer, whose parts are taken in turn.
        assert_eq!(refused(Alltoallv, (varied(&gaps), 1000), (varied(&ends), 1000)), None);
        assert!(refused(Alltoallv, (varied(&gaps), 1000), (varied(&gaps), 1000)).is_some());
        let types = [int.clone(), int.clone(), int.clone()];
        let mixed =
            |displs| Side::Mixed { counts: Ints::Small(&counts), displs: Ints::Small(displs), types: &types };
        assert!(refused(Alltoallw, (mixed(&gaps), 1000), (mixed(&ends), 1000)).is_some(), "bytes 14 to 18");
        assert_eq!(refused(Alltoallw, (mixed(&[0, 40, 80]), 1000), (mixed(&[4, 48, 84]), 1000)), None);
        // Reduce_scatter: the sum of the counts is sent, the count of this rank received.
        let own = Side::Varied { counts: Ints::Small(&counts), displs: Ints::Small(&[]), ty: &int };
        let all = Side::Even { count: 4, ty: &int };
        assert!(refused(ReduceScatter, (all, 1007), (own, 1000)).unwrap().ends_with("in 1 bytes"));
        assert_eq!(refused(ReduceScatter, (all, 1008), (own, 1000)), None);
    }

    #[test]
    fn what_is_kept_of_a_call_refuses_all_buffers_that_overlap() {
        let int = int();
        let (counts, displs) = ([1, 0, 2], [4, 90, -2]);
        let varied = Side::Varied { counts: Ints::Small(&counts), displs: Ints::Small(&displs), ty: &int };
        let one = Side::Even { count: 1, ty: &int };
        let none = Side::Even { count: 0, ty: &int };
        let call = |send| Call {
            kind: Collective::Allgatherv,
            rank: 0,
            size: 3,
            send,
            recv: varied,
            in_place: false,
            op: None,
            root: 0,
            across: None,
        };
        // Blocks of 8 bytes before the address, and of 4 bytes 16 behind it.
        let reach = Reach::of(&call(one));
        for at in 960..1040 {
            let overlaps = check(&call(one), at, 1000).is_err();
            assert!(!(overlaps && reach.is_apart(at, 1000)), "{at}");
            assert_eq!(reach.is_apart(at, 1000), at + 4 <= 992 || at >= 1020, "{at}");
            assert!(Reach::of(&call(none)).is_apart(at, 1000));
        }
    }

    #[test]
    fn types_that_c_pads_fill_their_memory() {
        let pair = Type::predefined(Handle(0x229)).unwrap();
        let side = Side::Even { count: 2, ty: &pair };
        assert!(refused(Collective::Allreduce, (side, 1000), (side, 1000)).is_some());
        assert_eq!(refused(Collective::Allreduce, (side, 1000), (side, 1032)), None);
    }

    #[test]
    fn the_sweep_agrees_with_comparing_all_pairs() {
        let mut state = 12345u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % below) as usize
        };
        for _ in 0..20_000 {
            let mut runs = |n: usize| -> Vec<Run> {
                (0..n)
                    .map(|_| {
                        let start = next(60);
                        (start, start + 1 + next(8))
                    })
                    .collect()
            };
            let (a, b) = (runs(3), runs(4));
            let slow = a.iter().any(|a| b.iter().any(|b| meet(Some(*a), Some(*b))));
            assert_eq!(first_shared(a.clone(), b.clone()).is_some(), slow, "{a:?} {b:?}");
        }
    }
}
