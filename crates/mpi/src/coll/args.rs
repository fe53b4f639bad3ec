//! The checks that need more than one argument (MPI 5.0 chapter 6).
//!
//! What can be seen on one rank is reported before any message leaves, with the name of the
//! argument; what needs two ranks shows when a message of the wrong size arrives.
use super::blocks::Ints;
use super::compile::{Call, Side};
use super::overlap;
use super::tag::Collective;
use super::ty::Type;
use crate::datatype::basic;
use crate::error::{Class, Result, fail};

/// `MPI_IN_PLACE`.
pub const IN_PLACE: usize = 1;

/// The root as a rank of a communicator of `size` ranks.
#[inline]
pub fn root(root: i32, size: usize) -> Result<usize> {
    match usize::try_from(root) {
        Ok(root) if root < size => Ok(root),
        _ => fail(
            Class::ROOT,
            format!("argument `root` is {root}, the communicator has ranks 0 to {}", size - 1),
        ),
    }
}

/// Whether this rank works in place, or the argument in which `MPI_IN_PLACE` has no meaning.
///
/// `rooted` says for collectives with a root whether this rank is it.
pub fn in_place(kind: Collective, send: usize, recv: usize, rooted: bool) -> Result<bool> {
    use Collective::*;
    let refuse =
        |arg: &str, why: &str| fail(Class::BUFFER, format!("argument `{arg}` is MPI_IN_PLACE, {why}"));
    match kind {
        Barrier => Ok(false),
        Bcast if recv == IN_PLACE => {
            refuse("buffer", "which Bcast does not have: all ranks give the same buffer")
        }
        Bcast => Ok(false),
        Gather | Gatherv | Reduce => match (send == IN_PLACE, recv == IN_PLACE && rooted) {
            (_, true) => refuse("recvbuf", "which stands for the send buffer"),
            (true, false) if !rooted => refuse("sendbuf", "which only the root may give"),
            (in_place, false) => Ok(in_place),
        },
        Scatter | Scatterv => match (send == IN_PLACE && rooted, recv == IN_PLACE) {
            (true, _) => refuse("sendbuf", "which stands for the receive buffer"),
            (false, true) if !rooted => refuse("recvbuf", "which only the root may give"),
            (false, in_place) => Ok(in_place),
        },
        _ if recv == IN_PLACE => refuse("recvbuf", "which stands for the send buffer"),
        _ => Ok(send == IN_PLACE),
    }
}

/// Names of the buffer arguments of a collective, as the standard has them.
fn names(kind: Collective) -> (&'static str, &'static str) {
    match kind {
        Collective::Bcast => ("buffer", "buffer"),
        _ => ("sendbuf", "recvbuf"),
    }
}

/// Checks a call with its buffers.
pub fn check(call: &Call, send: usize, recv: usize) -> Result {
    let (send_name, recv_name) = names(call.kind);
    measure(&call.send, call.blocks(), send_name)?;
    measure(&call.recv, call.blocks(), recv_name)?;
    present(&call.send, send, send_name, call.blocks(), sends_blocks(call.kind))?;
    present(&call.recv, recv, recv_name, call.blocks(), receives_blocks(call.kind))?;
    if let Some(op) = call.op
        && let Some(ty) = element_type(call)
    {
        op.check(ty.basic, ty.handle)?;
    }
    overlap::check(call, send, recv)?;
    to_itself(call)
}

fn sends_blocks(kind: Collective) -> bool {
    use Collective::*;
    matches!(kind, Scatter | Scatterv | Alltoall | Alltoallv | Alltoallw | ReduceScatterBlock)
}

fn receives_blocks(kind: Collective) -> bool {
    use Collective::*;
    matches!(kind, Gather | Gatherv | Allgather | Allgatherv | Alltoall | Alltoallv | Alltoallw)
}

fn element_type<'a>(call: &Call<'a>) -> Option<&'a Type> {
    match (call.recv, call.send) {
        (Side::Even { ty, .. } | Side::Varied { ty, .. }, _) | (_, Side::Even { ty, .. }) => Some(ty),
        _ => None,
    }
}

/// The buffers must be addressable: sums and products of counts and extents fit 64 bits.
pub(super) fn measure(side: &Side, size: usize, name: &str) -> Result {
    let fits = match *side {
        Side::Absent => true,
        Side::Even { count, ty } => span(count, size as u64, ty),
        Side::Varied { counts, displs, ty } => {
            let end = |i: usize| {
                let at = if displs.is_empty() { 0 } else { displs.at(i) };
                at.checked_mul(ty.extent).is_some() && span(counts.at(i) as u64, 1, ty)
            };
            let total = counts.iter().try_fold(0i64, |sum, n| sum.checked_add(n));
            (0..counts.len()).all(end) && total.is_some_and(|total| span(total as u64, 1, ty))
        }
        Side::Mixed { counts, types, .. } => {
            let each = counts.iter().zip(types).all(|(n, ty)| span(n as u64, 1, ty));
            let total =
                counts.iter().zip(types).try_fold(0u64, |sum, (n, ty)| sum.checked_add(n as u64 * ty.size));
            each && total.is_some()
        }
    };
    if fits {
        Ok(())
    } else {
        fail(Class::COUNT, format!("the data of argument `{name}` would exceed 64 bits"))
    }
}

fn span(count: u64, blocks: u64, ty: &Type) -> bool {
    let widest = ty.size.max(ty.extent.unsigned_abs()).max(ty.true_extent.unsigned_abs());
    let bytes = count.checked_mul(blocks).and_then(|n| n.checked_mul(widest));
    bytes.is_some_and(|bytes| i64::try_from(bytes).is_ok())
}

/// `MPI_BOTTOM` (NULL) can only be meant with types that hold absolute addresses.
pub(super) fn present(side: &Side, addr: usize, name: &str, size: usize, blocks: bool) -> Result {
    if addr != 0 {
        return Ok(());
    }
    let relative = |ty: &Type| ty.dense && ty.size > 0;
    let refuse = |count: u64, ty: &Type| {
        let ty = basic::predefined(ty.handle).map_or("a derived datatype", |row| row.name);
        fail(Class::BUFFER, format!("argument `{name}` is NULL with {count} elements of {ty}"))
    };
    match *side {
        Side::Even { count, ty } if count > 0 && relative(ty) => {
            refuse(if blocks { count * size as u64 } else { count }, ty)
        }
        Side::Varied { counts, displs, ty } if relative(ty) => {
            let absolute = |i: usize| !displs.is_empty() && displs.at(i) != 0;
            match (0..counts.len()).find(|i| counts.at(*i) > 0 && !absolute(*i)) {
                Some(i) => refuse(counts.at(i) as u64, ty),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// What a rank sends to itself must fit what it expects from itself.
fn to_itself(call: &Call) -> Result {
    use Collective::*;
    let own = |side: &Side, index: usize| match *side {
        Side::Absent => None,
        Side::Even { count, ty } => Some(count * ty.size),
        Side::Varied { counts, ty, .. } => Some(counts.at(index) as u64 * ty.size),
        Side::Mixed { counts, types, .. } => Some(counts.at(index) as u64 * types[index].size),
    };
    // In an intercommunicator nobody sends to itself.
    if call.across.is_some()
        || !matches!(
            call.kind,
            Gather | Gatherv | Scatter | Scatterv | Allgather | Allgatherv | Alltoall | Alltoallv | Alltoallw
        )
    {
        return Ok(());
    }
    match (own(&call.send, call.rank), own(&call.recv, call.rank)) {
        (Some(sent), Some(expected)) if sent != expected => fail(
            Class::TRUNCATE,
            format!(
                "this rank sends {sent} bytes to itself and expects {expected}: counts and datatypes differ"
            ),
        ),
        _ => Ok(()),
    }
}

/// Counts must not be negative; the C layer has checked that where it reads them as an array.
pub fn counts_ok(counts: Ints, name: &str) -> Result {
    match counts.iter().enumerate().find(|count| count.1 < 0) {
        None => Ok(()),
        Some((i, count)) => {
            fail(Class::COUNT, format!("argument `{name}`[{i}] is {count}, must not be negative"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Handle;
    use crate::op::{Op, Predefined};

    fn int() -> Type {
        Type::predefined(Handle(0x209)).unwrap()
    }

    fn call<'a>(kind: Collective, send: Side<'a>, recv: Side<'a>, op: Option<&'a Op>) -> Call<'a> {
        Call { kind, rank: 0, size: 4, send, recv, in_place: false, op, root: 0, across: None }
    }

    #[test]
    fn roots_outside_the_communicator_are_named() {
        assert_eq!(root(3, 4), Ok(3));
        for bad in [4, -1, -3, -4] {
            let error = root(bad, 4).unwrap_err();
            assert_eq!(error.class, Class::ROOT);
            assert!(error.text.contains("ranks 0 to 3"), "{error}");
        }
    }

    #[test]
    fn in_place_is_taken_where_the_standard_has_it() {
        use Collective::*;
        assert_eq!(in_place(Allreduce, IN_PLACE, 64, false), Ok(true));
        assert_eq!(in_place(Allreduce, 64, 128, false), Ok(false));
        assert_eq!(in_place(Gather, IN_PLACE, 64, true), Ok(true));
        assert_eq!(in_place(Scatter, 64, IN_PLACE, true), Ok(true));
        // Arguments that are not significant on a rank may hold anything.
        assert_eq!(in_place(Reduce, 64, IN_PLACE, false), Ok(false));
        assert_eq!(in_place(Scatter, IN_PLACE, 64, false), Ok(false));
        let wrong = [
            (Bcast, 0, IN_PLACE, true, "buffer"),
            (Reduce, IN_PLACE, 64, false, "sendbuf"),
            (Reduce, 64, IN_PLACE, true, "recvbuf"),
            (Gather, IN_PLACE, IN_PLACE, true, "recvbuf"),
            (Scatter, IN_PLACE, 64, true, "sendbuf"),
            (Scatter, 64, IN_PLACE, false, "recvbuf"),
            (Alltoall, 64, IN_PLACE, false, "recvbuf"),
        ];
        for (kind, send, recv, rooted, arg) in wrong {
            let error = in_place(kind, send, recv, rooted).unwrap_err();
            assert_eq!(error.class, Class::BUFFER);
            assert!(error.text.starts_with(&format!("argument `{arg}`")), "{kind:?}: {error}");
        }
    }

    #[test]
    fn buffers_that_cannot_be_meant_are_refused() {
        let int = int();
        let some = Side::Even { count: 3, ty: &int };
        let none = Side::Even { count: 0, ty: &int };
        let error = check(&call(Collective::Allgather, some, some, None), 64, 0).unwrap_err();
        assert_eq!(error.class, Class::BUFFER);
        assert_eq!(error.text, "argument `recvbuf` is NULL with 12 elements of MPI_INT");
        let error = check(&call(Collective::Allgather, some, some, None), 64, 64).unwrap_err();
        assert!(error.class == Class::BUFFER && error.text.contains("MPI_IN_PLACE"), "{error}");
        check(&call(Collective::Allgather, none, none, None), 0, 0).unwrap();
        check(&call(Collective::Allgather, some, some, None), 64, 128).unwrap();
        let huge = Side::Even { count: 1 << 62, ty: &int };
        assert_eq!(
            check(&call(Collective::Bcast, Side::Absent, huge, None), 0, 64).unwrap_err().class,
            Class::COUNT
        );
    }

    #[test]
    fn operations_and_own_blocks_are_checked() {
        let (int, char) = (int(), Type::predefined(Handle(0x21e)).unwrap());
        let some = Side::Even { count: 3, ty: &int };
        let chars = Side::Even { count: 3, ty: &char };
        let sum = Op::Predefined(Predefined::Sum);
        let error = check(&call(Collective::Allreduce, chars, chars, Some(&sum)), 64, 128).unwrap_err();
        assert_eq!(
            (error.class, error.text.as_str()),
            (Class::OP, "MPI_SUM is not defined for MPI_CHARACTER")
        );
        // Not significant on this rank: the receive side of a Reduce, so the send side decides.
        assert!(check(&call(Collective::Reduce, chars, Side::Absent, Some(&sum)), 64, 0).is_err());
        let error = check(&call(Collective::Gather, chars, some, None), 64, 128).unwrap_err();
        assert_eq!(error.class, Class::TRUNCATE);
        let (counts, displs) = ([1, 3, 3, 3], [0, 3, 6, 9]);
        let varied = Side::Varied { counts: Ints::Small(&counts), displs: Ints::Small(&displs), ty: &int };
        assert!(check(&call(Collective::Allgatherv, some, varied, None), 64, 128).is_err());
        assert_eq!(counts_ok(Ints::Small(&[1, -2]), "recvcounts").unwrap_err().class, Class::COUNT);
    }
}
