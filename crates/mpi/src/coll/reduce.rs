//! Reductions to one rank, to all ranks, and the parts both are made of.
//!
//! Trees move the whole vector ⌈log2 p⌉ times; Rabenseifner's algorithm (2004) scatters the
//! reduction by recursive halving first, so that every byte is combined once per rank, and gathers
//! the pieces after; the ring does the same with p pieces and only neighbours. Operations that do
//! not commute keep to algorithms in which neighbouring ranges of ranks are combined.
use super::bcast;
use super::build::{Builder, Split, View, floor_power};
use super::schedule::Buf;

/// A partial result that moves between buffers so that nothing is copied without need.
///
/// It starts in the send buffer, which may not be written; `home` is where the result belongs.
#[derive(Debug)]
struct Partial {
    now: Buf,
    home: Buf,
    spare: Option<Buf>,
    writable: bool,
    commutes: bool,
}

impl Partial {
    /// `input` and `home` are the same for `MPI_IN_PLACE`.
    fn new(input: Buf, home: Buf, commutes: bool) -> Partial {
        Partial { now: input, home, spare: None, writable: input == home, commutes }
    }

    /// A buffer to receive into: never where the partial result is.
    fn landing(&mut self, b: &mut Builder) -> Buf {
        if self.now != self.home {
            return self.home;
        }
        *self.spare.get_or_insert_with(|| b.temp_like(self.home))
    }

    /// Combines with what has landed; `lower` says that it comes from lower ranks.
    fn fold(&mut self, b: &mut Builder, landed: Buf, lower: bool) {
        if self.writable && (lower || self.commutes) {
            b.reduce(landed, self.now);
        } else if !lower || self.commutes {
            b.reduce(self.now, landed);
            (self.now, self.writable) = (landed, true);
        } else {
            let copy = self.spare.take().unwrap_or_else(|| b.temp_like(self.home));
            b.copy(self.now, copy);
            b.reduce(landed, copy);
            (self.now, self.writable, self.spare) = (copy, true, Some(copy));
        }
    }

    /// Moves to where it may be written in parts.
    fn settle(&mut self, b: &mut Builder) -> Buf {
        b.copy(self.now, self.home);
        (self.now, self.writable) = (self.home, true);
        self.home
    }
}

/// `home` for a rank that is asked for no result.
fn home_or_temp(b: &mut Builder, input: Buf, output: Option<Buf>) -> Buf {
    output.unwrap_or_else(|| b.temp_like(input))
}

/// Binomial tree around the root, for operations that commute.
pub fn binomial(b: &mut Builder, v: &View, input: Buf, output: Option<Buf>, root: usize) {
    let relative = (v.me + v.size - root) % v.size;
    let absolute = |r: usize| (r + root) % v.size;
    if v.size > 1 && relative % 2 == 1 {
        b.send(v, absolute(relative - 1), input);
        return;
    }
    let home = if relative + 1 < v.size || relative == 0 { home_or_temp(b, input, output) } else { input };
    let mut partial = Partial::new(input, home, true);
    let mut mask = 1;
    while mask < v.size {
        if relative & mask != 0 {
            b.send(v, absolute(relative - mask), partial.now);
            return;
        }
        if relative + mask < v.size {
            let into = partial.landing(b);
            let come = b.recv(v, absolute(relative + mask), into);
            b.wait(come);
            partial.fold(b, into, false);
        }
        mask *= 2;
    }
    partial.settle(b);
}

/// Binomial tree in rank order to rank 0, which hands the result to the root.
pub fn in_order(b: &mut Builder, v: &View, input: Buf, output: Option<Buf>, root: usize) {
    if v.me % 2 == 1 && v.me != root {
        b.send(v, v.me - 1, input);
        return;
    }
    let home = home_or_temp(b, input, output);
    let mut partial = Partial::new(input, home, false);
    let mut mask = 1;
    while mask < v.size && v.me & mask == 0 {
        if v.me + mask < v.size {
            let into = partial.landing(b);
            let come = b.recv(v, v.me + mask, into);
            b.wait(come);
            partial.fold(b, into, false);
        }
        mask *= 2;
    }
    if v.me != 0 {
        b.send(v, v.me & !mask, partial.now);
    }
    if root == 0 {
        if v.me == 0 {
            partial.settle(b);
        }
    } else if v.me == 0 {
        b.send(v, root, partial.now);
    } else if v.me == root {
        b.wait_all();
        let come = b.recv(v, 0, home);
        b.wait(come);
    }
}

/// The ranks that stay when the number is brought down to a power of two: of the first pairs, one
/// stands for both. `prefer` is never the one that leaves.
#[derive(Clone, Copy, Debug)]
struct Fold {
    power: usize,
    pairs: usize,
    prefer: Option<usize>,
}

impl Fold {
    fn new(size: usize, prefer: Option<usize>) -> Fold {
        let power = floor_power(size);
        Fold { power, pairs: size - power, prefer }
    }

    /// The rank that stands for folded number `i`.
    fn rank(&self, i: usize) -> usize {
        if i >= self.pairs {
            return i + self.pairs;
        }
        if self.prefer == Some(2 * i + 1) { 2 * i + 1 } else { 2 * i }
    }

    /// The folded number of `rank` and, where it is one of a pair, its partner.
    fn number(&self, rank: usize) -> (usize, Option<usize>) {
        if rank >= 2 * self.pairs { (rank - self.pairs, None) } else { (rank / 2, Some(rank ^ 1)) }
    }

    fn stays(&self, rank: usize) -> bool {
        self.rank(self.number(rank).0) == rank
    }
}

/// Brings the partner's contribution in, or hands this rank's over: then there is no more to do.
fn fold_in(b: &mut Builder, v: &View, fold: &Fold, partial: &mut Partial) -> Option<usize> {
    let (number, partner) = fold.number(v.me);
    let Some(partner) = partner else { return Some(number) };
    if !fold.stays(v.me) {
        b.send(v, partner, partial.now);
        return None;
    }
    let into = partial.landing(b);
    let come = b.recv(v, partner, into);
    b.wait(come);
    partial.fold(b, into, partner < v.me);
    Some(number)
}

/// Gives the result to the rank that left, or takes it.
fn fold_out(b: &mut Builder, v: &View, fold: &Fold, result: Buf) {
    if let (_, Some(partner)) = fold.number(v.me) {
        b.wait_all();
        if fold.stays(v.me) {
            b.send(v, partner, result);
        } else {
            b.recv(v, partner, result);
        }
    }
}

/// Allreduce by exchanging whole vectors with rank xor 2^k; keeps the order of ranks.
pub fn recursive_doubling(b: &mut Builder, v: &View, input: Buf, output: Buf, commutes: bool) {
    let fold = Fold::new(v.size, None);
    let mut partial = Partial::new(input, output, commutes);
    if let Some(number) = fold_in(b, v, &fold, &mut partial) {
        let mut mask = 1;
        while mask < fold.power {
            let peer = fold.rank(number ^ mask);
            let into = partial.landing(b);
            b.exchange(v, peer, partial.now, peer, into);
            partial.fold(b, into, peer < v.me);
            mask *= 2;
        }
        partial.settle(b);
    }
    fold_out(b, v, &fold, output);
}

/// Recursive halving: of the folded ranks, number `i` ends with part `i` of the result. Needs an
/// operation that commutes. `split` cuts the vector for the folded numbers.
fn halving(b: &mut Builder, v: &View, fold: &Fold, number: usize, whole: Buf, cuts: &dyn Fn(usize) -> u64) {
    let middle = cuts(fold.power / 2);
    let half = b.part(whole, 0, middle.max(whole.count - middle));
    let spare = b.temp_like(half);
    let mut mask = fold.power / 2;
    while mask >= 1 {
        let peer = number ^ mask;
        let part = |b: &Builder, of: usize| {
            let first = of & !(mask - 1);
            b.part(whole, cuts(first), cuts(first + mask) - cuts(first))
        };
        let (out, keep) = (part(b, peer), part(b, number));
        let into = b.part(spare, 0, keep.count);
        b.exchange(v, fold.rank(peer), out, fold.rank(peer), into);
        b.reduce(into, keep);
        mask /= 2;
    }
}

/// Allreduce after Rabenseifner: recursive halving, then recursive doubling of the pieces.
pub fn rabenseifner_all(b: &mut Builder, v: &View, input: Buf, output: Buf) {
    let fold = Fold::new(v.size, None);
    let split = Split { total: input.count, parts: fold.power as u64 };
    let mut partial = Partial::new(input, output, true);
    if let Some(number) = fold_in(b, v, &fold, &mut partial) {
        let whole = partial.settle(b);
        halving(b, v, &fold, number, whole, &|i| split.start(i));
        let mut mask = 1;
        while mask < fold.power {
            let peer = number ^ mask;
            let part = |b: &Builder, of: usize| {
                let first = of & !(mask - 1);
                b.part(whole, split.start(first), split.len(first, first + mask))
            };
            let (out, into) = (part(b, number), part(b, peer));
            b.exchange(v, fold.rank(peer), out, fold.rank(peer), into);
            mask *= 2;
        }
    }
    fold_out(b, v, &fold, output);
}

/// Reduce after Rabenseifner: recursive halving, then a binomial gather to the root.
pub fn rabenseifner(b: &mut Builder, v: &View, input: Buf, output: Option<Buf>, root: usize) {
    let fold = Fold::new(v.size, Some(root));
    let split = Split { total: input.count, parts: fold.power as u64 };
    if !fold.stays(v.me) {
        let (_, partner) = fold.number(v.me);
        b.send(v, partner.expect("only one of a pair leaves"), input);
        return;
    }
    let home = home_or_temp(b, input, output);
    let mut partial = Partial::new(input, home, true);
    let number = fold_in(b, v, &fold, &mut partial).expect("this rank stays");
    let whole = partial.settle(b);
    halving(b, v, &fold, number, whole, &|i| split.start(i));
    let (target, _) = fold.number(root);
    let mut mask = 1;
    while mask < fold.power {
        let peer = number ^ mask;
        let first = |of: usize| of & !(mask - 1);
        if (number ^ target) & mask != 0 {
            let out =
                b.part(whole, split.start(first(number)), split.len(first(number), first(number) + mask));
            b.send(v, fold.rank(peer), out);
            return;
        }
        let into = b.part(whole, split.start(first(peer)), split.len(first(peer), first(peer) + mask));
        let come = b.recv(v, fold.rank(peer), into);
        b.wait(come);
        mask *= 2;
    }
}

/// Allreduce round the ring: every piece visits all ranks once to be combined, once to be spread.
pub fn ring(b: &mut Builder, v: &View, input: Buf, output: Buf) {
    b.copy(input, output);
    if v.size == 1 {
        return;
    }
    let split = Split { total: output.count, parts: v.size as u64 };
    let piece = |b: &Builder, i: usize| b.part(output, split.start(i), split.len(i, i + 1));
    let largest = b.part(output, 0, split.len(0, 1));
    let landing = b.temp_like(largest);
    for round in 0..v.size - 1 {
        let (out, keep) = (piece(b, v.before(round)), piece(b, v.before(round + 1)));
        let into = b.part(landing, 0, keep.count);
        b.exchange(v, v.after(1), out, v.before(1), into);
        b.reduce(into, keep);
    }
    for round in 0..v.size - 1 {
        let (out, into) = (piece(b, (v.me + 1 + v.size - round) % v.size), piece(b, v.before(round)));
        b.exchange(v, v.after(1), out, v.before(1), into);
    }
}

/// Allreduce as a reduction to rank 0 and a broadcast.
pub fn reduce_bcast(b: &mut Builder, v: &View, input: Buf, output: Buf, commutes: bool) {
    if commutes {
        binomial(b, v, input, Some(output), 0);
    } else {
        in_order(b, v, input, Some(output), 0);
    }
    b.wait_all();
    bcast::binomial(b, v, output, 0);
}

/// Reduce_scatter by recursive halving; `cuts(i)` is where rank `i`'s part of the vector begins.
pub fn scatter_halving(b: &mut Builder, v: &View, input: Buf, output: Buf, cuts: &dyn Fn(usize) -> u64) {
    let fold = Fold::new(v.size, None);
    let own = |b: &Builder, buf: Buf, rank: usize| b.part(buf, cuts(rank), cuts(rank + 1) - cuts(rank));
    if !fold.stays(v.me) {
        let (_, partner) = fold.number(v.me);
        let partner = partner.expect("only one of a pair leaves");
        b.send(v, partner, input);
        b.wait_all();
        b.recv(v, partner, output);
        return;
    }
    // The vector is longer than the output, so the work is done in scratch memory.
    let whole = b.temp_like(input);
    let mut partial = Partial::new(input, whole, true);
    let number = fold_in(b, v, &fold, &mut partial).expect("this rank stays");
    let whole = partial.settle(b);
    let bound = |i: usize| if i == fold.power { cuts(v.size) } else { cuts(i.min(fold.pairs) + i) };
    halving(b, v, &fold, number, whole, &bound);
    if let (_, Some(partner)) = fold.number(v.me) {
        let theirs = own(b, whole, partner);
        b.send(v, partner, theirs);
    }
    let mine = own(b, whole, v.me);
    b.copy(mine, output);
}

/// Reduce_scatter in which every rank sends every other its share and combines what it gets.
///
/// The first share that comes lands where the result belongs, unless the input lies there.
pub fn scatter_pairwise(b: &mut Builder, v: &View, input: Buf, output: Buf, cuts: &dyn Fn(usize) -> u64) {
    let share = |b: &Builder, rank: usize| b.part(input, cuts(rank), cuts(rank + 1) - cuts(rank));
    let mine = share(b, v.me);
    let sum = if input.base == output.base { b.temp_like(mine) } else { output };
    let landing = if v.size > 2 { b.temp_like(mine) } else { sum };
    for distance in 1..v.size {
        let (out, into) = (share(b, v.after(distance)), if distance == 1 { sum } else { landing });
        b.exchange(v, v.after(distance), out, v.before(distance), into);
        b.reduce(if distance == 1 { mine } else { landing }, sum);
    }
    b.copy(if v.size == 1 { mine } else { sum }, output);
}

/// Reduce_scatter round the ring: each share collects contributions on its way to its owner.
pub fn scatter_ring(b: &mut Builder, v: &View, input: Buf, output: Buf, cuts: &dyn Fn(usize) -> u64) {
    let share = |b: &Builder, rank: usize| b.part(input, cuts(rank), cuts(rank + 1) - cuts(rank));
    let largest = (0..v.size).map(|i| cuts(i + 1) - cuts(i)).max().unwrap_or(0);
    let model = b.part(input, 0, largest);
    let landings = [b.temp_like(model), b.temp_like(model)];
    let mut out = share(b, v.before(1));
    for round in 1..v.size {
        let own = share(b, (v.me + 2 * v.size - 1 - round) % v.size);
        let into = b.part(landings[round % 2], 0, own.count);
        b.exchange(v, v.after(1), out, v.before(1), into);
        b.reduce(own, into);
        out = into;
    }
    b.copy(out, output);
}

/// Reduce_scatter for operations that do not commute: in order to rank 0, which deals out.
pub fn scatter_in_order(b: &mut Builder, v: &View, input: Buf, output: Buf, cuts: &dyn Fn(usize) -> u64) {
    if v.me != 0 {
        in_order(b, v, input, None, 0);
        b.wait_all();
        let come = b.recv(v, 0, output);
        b.wait(come);
        return;
    }
    let whole = b.temp_like(input);
    in_order(b, v, input, Some(whole), 0);
    for rank in 1..v.size {
        let share = b.part(whole, cuts(rank), cuts(rank + 1) - cuts(rank));
        b.send(v, rank, share);
    }
    let mine = b.part(whole, 0, cuts(1));
    b.copy(mine, output);
}
