//! Reductions in which every contribution goes straight to whoever needs it.
//!
//! One round, in which nobody waits for what another has to do first: best for short vectors where
//! a round costs a turn of all ranks of a core. Contributions are combined in the order of ranks,
//! so it serves operations that do not commute as well, and all ranks get the same bits. All sends
//! are posted before anything is waited for: a limit on them would let ranks wait for each other.
use super::build::{Builder, Posted, Split, View};
use super::schedule::Buf;

/// Everybody sends to the root, which combines.
pub fn reduce(b: &mut Builder, v: &View, input: Buf, output: Option<Buf>, root: usize) {
    for (from, count) in b.pieces(input, 1) {
        let piece = b.part(input, from, count);
        match output {
            Some(output) => fold(b, v, piece, b.part(output, from, count)),
            None => _ = b.send(v, root, piece),
        }
    }
}

/// Everybody sends to everybody and combines all.
pub fn allreduce(b: &mut Builder, v: &View, input: Buf, output: Buf) {
    for distance in 1..v.size {
        b.send(v, v.after(distance), input);
    }
    fold(b, v, input, output);
}

/// Everybody sends to rank 0, which combines and sends the result to everybody.
pub fn allreduce_by_star(b: &mut Builder, v: &View, input: Buf, output: Buf) {
    if v.me != 0 {
        b.send(v, 0, input);
        // In place the result comes where the contribution lies.
        b.wait_all();
        b.recv(v, 0, output);
        return;
    }
    fold(b, v, input, output);
    for rank in 1..v.size {
        b.send(v, rank, output);
    }
}

/// Everybody sends every other its share, combines its own and sends the result to everybody.
pub fn allreduce_by_shares(b: &mut Builder, v: &View, input: Buf, output: Buf) {
    for (from, count) in b.pieces(output, v.size as u64) {
        let (input, output) = (b.part(input, from, count), b.part(output, from, count));
        let split = Split { total: count, parts: v.size as u64 };
        let share = |b: &Builder, rank: usize| b.part(output, split.start(rank), split.len(rank, rank + 1));
        let mine = share(b, v.me);
        scatter(b, v, input, mine, &|rank| split.start(rank));
        for distance in 1..v.size {
            let into = share(b, v.before(distance));
            b.recv(v, v.before(distance), into);
        }
        for distance in 1..v.size {
            b.send(v, v.after(distance), mine);
        }
    }
}

/// Everybody sends every other its share and combines its own.
pub fn scatter(b: &mut Builder, v: &View, input: Buf, output: Buf, cuts: &dyn Fn(usize) -> u64) {
    let share = |b: &Builder, rank: usize| b.part(input, cuts(rank), cuts(rank + 1) - cuts(rank));
    for distance in 1..v.size {
        let out = share(b, v.after(distance));
        b.send(v, v.after(distance), out);
    }
    let mine = share(b, v.me);
    fold(b, v, mine, output);
}

/// Receives everybody's contribution, this rank's being `own`, and combines them in order; one is
/// on its way while the one before is combined.
///
/// The sum lies where the last contribution was, so the last one lands where the result belongs. The first is only
/// read: this rank's own stays where it is. In place that is where the result belongs, and it may still be on its
/// way to others.
fn fold(b: &mut Builder, v: &View, own: Buf, output: Buf) {
    if own.count == 0 {
        b.wait_all();
        return;
    }
    let last = v.size - 1;
    let in_place = own.base == output.base;
    if b.commutes && !in_place && last > 0 {
        return add_up(b, v, own, output);
    }
    let mut landings = [None; 3];
    let mut get = |b: &mut Builder, rank: usize| -> (Buf, Option<Posted>) {
        let into = match rank {
            0 if v.me == 0 => own,
            _ if rank == last && !in_place => output,
            _ => *landings[rank % 3].get_or_insert_with(|| b.temp_like(own)),
        };
        if rank == v.me { (into, None) } else { (into, Some(b.recv(v, rank, into))) }
    };
    let mut next = get(b, 0);
    let mut sum: Option<Buf> = None;
    for rank in 0..v.size {
        let (here, posted) = next;
        if rank < last {
            next = get(b, rank + 1);
        }
        match posted {
            Some(posted) => b.wait(posted),
            None => b.copy(own, here),
        }
        if let Some(sum) = sum {
            b.reduce(sum, here);
        }
        sum = Some(here);
    }
    b.wait_all();
    b.copy(sum.expect("there is a rank"), output);
}

/// As [`fold`], in the same order, where the operands may change sides: the sum lies where the result belongs from the beginning, and
/// what comes is added to it.
fn add_up(b: &mut Builder, v: &View, own: Buf, output: Buf) {
    let mut landings = [None; 2];
    let from = |at: usize| if at < v.me { at } else { at + 1 };
    let mut coming = (b.recv(v, from(0), output), output);
    for at in 0..v.size - 1 {
        let (posted, into) = coming;
        if at + 2 < v.size {
            let into = *landings[at % 2].get_or_insert_with(|| b.temp_like(own));
            coming = (b.recv(v, from(at + 1), into), into);
        }
        b.wait(posted);
        if at > 0 {
            b.reduce(into, output);
        }
        // The first two may be in either order.
        if at == v.me.saturating_sub(1) {
            b.reduce(own, output);
        }
    }
    b.wait_all();
}
