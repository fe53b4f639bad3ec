//! Gatherv, Scatterv, Alltoallv and Alltoallw on two levels: short blocks through leaders, long ones straight.
//!
//! Only the two ends of a block know its length, and by it both decide how it goes: up to a length that all ranks work out alike
//! ([`super::across::through_leaders`]) it is worth being copied to share a message between hosts, beyond it is not. Within a host
//! every block goes straight.
//!
//! ```text
//! Gatherv        1 ── length, block ─▶ 0 ── lengths, blocks ──▶ root
//! Scatterv    root ── lengths ─▶ 0, then ── blocks ─▶ 0 ── block ──▶ 1
//! Alltoallv      1 ── lengths out and in, blocks ─▶ 0 ── lengths, blocks ──▶ 2 ── blocks ──▶ 3
//! ```
//!
//! A leader learns what its host sends and gets, and writes the rest of its program by that ([`super::sequel`]). Lengths
//! travel with blocks between hosts, where they are compared with what receivers ask for: blocks that lie behind one another
//! would else be cut at wrong places.
use super::alltoall;
use super::blocks::{Blocks, Ints};
use super::build::{Builder, View};
use super::gather::Window;
use super::schedule::{Base, Buf};
use super::two_level::Places;
use crate::error::{Class, Result, fail};

/// Bytes of a length.
const WORD: u64 = size_of::<u64>() as u64;

/// What goes through leaders of a block of so many bytes: all or nothing.
fn short(bytes: u64, most: u64) -> u64 {
    if bytes <= most { bytes } else { 0 }
}

/// The blocks of these ranks as bytes, and how much of each goes through leaders.
fn lengths(b: &Builder, all: &Blocks, ranks: &[u32], most: u64) -> Vec<(Buf, u64)> {
    let block = |rank: &u32| all.get(b, *rank as usize);
    ranks.iter().map(block).map(|buf| (buf, short(b.bytes(buf), most))).collect()
}

fn total(blocks: &[(Buf, u64)]) -> u64 {
    blocks.iter().map(|(_, bytes)| bytes).sum()
}

/// Copies between blocks and where they lie packed, from `at` on; blocks of which nothing goes through leaders are left out.
fn repack(b: &mut Builder, packed: Buf, mut at: u64, blocks: &[(Buf, u64)], to_blocks: bool) {
    for &(block, bytes) in blocks {
        if bytes > 0 {
            let part = b.part(packed, at, bytes);
            at += bytes;
            if to_blocks { b.copy(part, block) } else { b.copy(block, part) }
        }
    }
}

/// Blocks of up to `most` bytes through the leader of each host to the root; `mine` is `None` for the root in place.
pub fn gather(b: &mut Builder, places: &Places, mine: Option<Buf>, all: Option<&Blocks>, most: u64) {
    if let Some(all) = all {
        return collect(b, places, mine, all, most);
    }
    let mine = mine.expect("only the root can be in place");
    let (rank, size, root) = (places.rank, places.levels.size(), places.root);
    let world = View::all(rank, size);
    if places.host == places.root_host() || places.is_alone() {
        b.send(&world, root, mine);
        return;
    }
    let (v, own) = (places.inside(), short(b.bytes(mine), most));
    let word = b.words(&[own]);
    if !places.leads() {
        b.send(&v, places.head(), word);
        if own > 0 {
            b.send(&v, places.head(), mine)
        } else {
            b.send(&world, root, mine)
        };
        return;
    }
    let sizes = learn(b, &v, word);
    let (members, me) = (places.members().to_vec(), v.me);
    let write = move |words: &[u64], b: &mut Builder| {
        let (v, world, head) = (View::of(&members, me), View::all(rank, size), WORD * words.len() as u64);
        if words.iter().any(|bytes| *bytes > 0) {
            let out = b.temp(head + words.iter().sum::<u64>());
            let told = b.part(out, 0, head);
            b.copy(sizes, told);
            let mut at = head;
            for (place, &bytes) in words.iter().enumerate() {
                let part = b.part(out, at, bytes);
                at += bytes;
                match place == me {
                    true if bytes > 0 => b.copy(mine, part),
                    true => {}
                    false => {
                        b.recv(&v, place, part);
                    }
                }
            }
            b.wait_all();
            b.send(&world, root, out);
        }
        if own == 0 {
            b.send(&world, root, mine);
        }
        Ok(())
    };
    b.then(sizes, most, Box::new(write));
}

/// What every member tells its leader: rows of numbers in the order of members.
fn learn(b: &mut Builder, v: &View, own: Buf) -> Buf {
    let row = own.count;
    let table = b.temp(row * v.size as u64);
    for place in 0..v.size {
        let into = b.part(table, row * place as u64, row);
        if place == v.me {
            b.copy(own, into);
        } else {
            b.recv(v, place, into);
        }
    }
    table
}

/// The root's side of [`gather()`].
fn collect(b: &mut Builder, places: &Places, mine: Option<Buf>, all: &Blocks, most: u64) {
    let (levels, root) = (places.levels, places.root);
    let world = View::all(places.rank, levels.size());
    let (mut window, mut letters) = (Window::default(), Vec::new());
    for distance in 1..=levels.count() {
        let host = (places.host + distance) % levels.count();
        let members = levels.members(host);
        let blocks = lengths(b, all, members, most);
        let is_led = host != places.host && members.len() > 1;
        if is_led && total(&blocks) > 0 {
            let letter = b.temp(WORD * members.len() as u64 + total(&blocks));
            let posted = b.recv(&world, members[0] as usize, letter);
            window.push(b, posted);
            letters.push((host, letter));
        }
        for (&rank, &(block, through)) in members.iter().zip(&blocks) {
            if rank as usize != root && !(is_led && through > 0) {
                let posted = b.recv(&world, rank as usize, block);
                window.push(b, posted);
            }
        }
    }
    if let Some(mine) = mine {
        let own = all.get(b, root);
        b.copy(mine, own);
    }
    b.wait_all();
    for (host, letter) in letters {
        let members = levels.members(host);
        let blocks = lengths(b, all, members, most);
        for (place, (&rank, &(_, bytes))) in members.iter().zip(&blocks).enumerate() {
            let word = b.part(letter, WORD * place as u64, WORD);
            b.expect(word, bytes, rank, root as u32);
        }
        repack(b, letter, WORD * members.len() as u64, &blocks, true);
    }
}

/// As [`gather()`], the other way.
pub fn scatter(b: &mut Builder, places: &Places, mine: Option<Buf>, all: Option<&Blocks>, most: u64) {
    if let Some(all) = all {
        return deal(b, places, mine, all, most);
    }
    let mine = mine.expect("only the root can be in place");
    let (rank, size, root) = (places.rank, places.levels.size(), places.root);
    let world = View::all(rank, size);
    let (v, own) = (places.inside(), short(b.bytes(mine), most));
    if places.host == places.root_host() || places.is_alone() || (own == 0 && !places.leads()) {
        b.recv(&world, root, mine);
        return;
    }
    if !places.leads() {
        b.recv(&v, places.head(), mine);
        return;
    }
    let sizes = b.temp(WORD * v.size as u64);
    b.recv(&world, root, sizes);
    let (members, me) = (places.members().to_vec(), v.me);
    let write = move |words: &[u64], b: &mut Builder| {
        let (v, world) = (View::of(&members, me), View::all(rank, size));
        if words[me] != own {
            let told = words[me];
            let text = format!(
                "rank {root} sends {told} bytes through leaders here, where count and datatype ask for {own}"
            );
            return fail(Class::TRUNCATE, text);
        }
        let packed = b.temp(words.iter().sum());
        let come = b.recv(&world, root, packed);
        if own == 0 {
            b.recv(&world, root, mine);
        }
        b.wait(come);
        let mut at = 0;
        for (place, &bytes) in words.iter().enumerate() {
            let part = b.part(packed, at, bytes);
            at += bytes;
            match place == me {
                true if bytes > 0 => b.copy(part, mine),
                true => {}
                false => {
                    b.send(&v, place, part);
                }
            }
        }
        Ok(())
    };
    b.then(sizes, most, Box::new(write));
}

/// The root's side of [`scatter()`].
fn deal(b: &mut Builder, places: &Places, mine: Option<Buf>, all: &Blocks, most: u64) {
    let levels = places.levels;
    let world = View::all(places.rank, levels.size());
    let mut window = Window::default();
    for distance in 1..=levels.count() {
        let host = (places.host + distance) % levels.count();
        let members = levels.members(host);
        let blocks = lengths(b, all, members, most);
        let is_led = host != places.host && members.len() > 1;
        if is_led {
            let told: Vec<u64> = blocks.iter().map(|(_, bytes)| *bytes).collect();
            let told = b.words(&told);
            let packed = b.temp(total(&blocks));
            repack(b, packed, 0, &blocks, false);
            for buf in [told, packed] {
                let posted = b.send(&world, members[0] as usize, buf);
                window.push(b, posted);
            }
        }
        for (&rank, &(block, through)) in members.iter().zip(&blocks) {
            if rank as usize != places.rank && !(is_led && through > 0) {
                let posted = b.send(&world, rank as usize, block);
                window.push(b, posted);
            }
        }
    }
    if let Some(mine) = mine {
        let own = all.get(b, places.rank);
        b.copy(own, mine);
    }
}

/// Blocks of up to `most` bytes through the leaders of both hosts, all others straight.
pub fn alltoall(b: &mut Builder, places: &Places, send: &Blocks, recv: &Blocks, in_place: bool, most: u64) {
    let (levels, v) = (places.levels, places.inside());
    let here = levels.start(places.host)..levels.start(places.host + 1);
    let away = |b: &Builder, all: &Blocks| {
        let mut blocks = lengths(b, all, levels.order(), most);
        blocks[here.clone()].iter_mut().for_each(|(_, bytes)| *bytes = 0);
        blocks
    };
    let (out, into) = (away(b, send), away(b, recv));
    let numbers: Vec<u64> = out.iter().chain(&into).map(|(_, bytes)| *bytes).collect();
    let numbers = b.words(&numbers);
    let packed = b.temp(total(&out));
    repack(b, packed, 0, &out, false);
    let table = match places.leads() {
        true => Some(learn(b, &v, numbers)),
        false => {
            b.send(&v, places.head(), numbers);
            None
        }
    };
    straight(b, places, &out, &into, in_place);
    if let Some(table) = table {
        let leader = Leader {
            members: places.members().to_vec(),
            me: v.me,
            leaders: places.leaders.clone(),
            starts: (0..=levels.count()).map(|host| levels.start(host)).collect(),
            order: levels.order().to_vec(),
            host: places.host,
            pairwise: places.passes_in_pairs(),
            table,
            packed,
            into,
        };
        return b.then(table, most, Box::new(move |words: &[u64], b: &mut Builder| leader.write(words, b)));
    }
    b.send(&v, places.head(), packed);
    let come = b.temp(total(&into));
    let posted = b.recv(&v, places.head(), come);
    b.wait(posted);
    repack(b, come, 0, &into, true);
}

/// The blocks that do not go through leaders. In place each leaves from a copy, for it is received where it lies.
fn straight(b: &mut Builder, places: &Places, out: &[(Buf, u64)], into: &[(Buf, u64)], in_place: bool) {
    let (size, me) = (places.levels.size(), places.rank);
    let mut blocks = vec![(None, None); size];
    for ((&rank, &(from, sent)), &(to, come)) in places.levels.order().iter().zip(out).zip(into) {
        let from = Some(from).filter(|_| sent == 0);
        let copied = from.filter(|_| in_place && rank as usize != me).map(|from| {
            let copy = b.temp(b.bytes(from));
            b.copy(from, copy);
            copy
        });
        blocks[rank as usize] = (copied.or(from), Some(to).filter(|_| come == 0));
    }
    let (v, mut window) = (View::all(me, size), Window::default());
    for distance in 1..size {
        let (to, from) = (v.after(distance), v.before(distance));
        if let Some(block) = blocks[from].1 {
            let posted = b.recv(&v, from, block);
            window.push(b, posted);
        }
        if let Some(block) = blocks[to].0 {
            let posted = b.send(&v, to, block);
            window.push(b, posted);
        }
    }
    if let (Some(from), Some(to)) = blocks[me] {
        b.copy(from, to);
    }
}

/// What a leader goes on with when it knows what its host sends and gets.
struct Leader {
    members: Vec<u32>,
    me: usize,
    leaders: Vec<u32>,
    /// Where each host begins in `order`, which has all ranks host by host.
    starts: Vec<usize>,
    order: Vec<u32>,
    host: usize,
    pairwise: bool,
    /// A row of each member: what it sends to each rank of `order`, and what it gets from each.
    table: Buf,
    /// What this rank itself sends, and where it gets what.
    packed: Buf,
    into: Vec<(Buf, u64)>,
}

/// A message to or from another leader.
type Letter = Option<(Buf, u64)>;

impl Leader {
    fn write(&self, words: &[u64], b: &mut Builder) -> Result {
        let (size, v) = (self.order.len(), View::of(&self.members, self.me));
        let rows: Vec<(&[u64], &[u64])> =
            words.chunks_exact(2 * size).map(|row| row.split_at(size)).collect();
        self.check(&rows)?;
        let mut inbox = Vec::with_capacity(rows.len());
        for (place, (out, _)) in rows.iter().enumerate() {
            let bytes = out.iter().sum();
            let buf = if place == self.me { self.packed } else { b.temp(bytes) };
            if place != self.me {
                b.recv(&v, place, buf);
            }
            inbox.push(buf);
        }
        b.wait_all();
        let leaving = self.leaving(b, &rows, &inbox);
        let coming = self.coming(b, &rows);
        self.exchange(b, &leaving, &coming);
        let results = self.sort(b, &rows, &coming);
        for (place, result) in results.into_iter().enumerate() {
            if place == self.me {
                repack(b, result, 0, &self.into, true);
            } else {
                b.send(&v, place, result);
            }
        }
        Ok(())
    }

    /// Blocks inside of the host go straight: a member that tells of one contradicts what is done here.
    fn check(&self, rows: &[(&[u64], &[u64])]) -> Result {
        let here = self.starts[self.host]..self.starts[self.host + 1];
        let tells = |(out, into): &(&[u64], &[u64])| {
            out[here.clone()].iter().chain(&into[here.clone()]).any(|bytes| *bytes > 0)
        };
        let Some(place) = rows.iter().position(tells) else { return Ok(()) };
        let text = format!("rank {} has told its leader of blocks inside of its host", self.members[place]);
        fail(Class::INTERN, text)
    }

    fn hosts(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> + '_ {
        self.starts.windows(2).map(|pair| pair[0]..pair[1]).enumerate()
    }

    /// Of each host the lengths, member by member, and the blocks in the same order.
    fn leaving(&self, b: &mut Builder, rows: &[(&[u64], &[u64])], inbox: &[Buf]) -> Vec<Letter> {
        let (size, mut read) = (self.order.len() as u64, vec![0; rows.len()]);
        let mut letters = Vec::new();
        for (_, theirs) in self.hosts() {
            let (first, run) = (theirs.start as u64 * WORD, theirs.len() as u64 * WORD);
            let runs: Vec<u64> = rows.iter().map(|(out, _)| out[theirs.clone()].iter().sum()).collect();
            if runs.iter().all(|bytes| *bytes == 0) {
                letters.push(None);
                continue;
            }
            let letter = b.temp(run * rows.len() as u64 + runs.iter().sum::<u64>());
            let mut at = run * rows.len() as u64;
            for (place, bytes) in runs.into_iter().enumerate() {
                let told = b.part(self.table, 2 * size * WORD * place as u64 + first, run);
                let to = b.part(letter, run * place as u64, run);
                b.copy(told, to);
                let (from, to) = (b.part(inbox[place], read[place], bytes), b.part(letter, at, bytes));
                b.copy(from, to);
                (read[place], at) = (read[place] + bytes, at + bytes);
            }
            letters.push(Some((letter, at)));
        }
        letters
    }

    /// Where what comes of each host lands.
    fn coming(&self, b: &mut Builder, rows: &[(&[u64], &[u64])]) -> Vec<Letter> {
        let letter = |(_, theirs): (usize, std::ops::Range<usize>)| {
            let bytes: u64 = rows.iter().flat_map(|(_, into)| &into[theirs.clone()]).sum();
            let bytes = bytes + WORD * (theirs.len() * rows.len()) as u64;
            let is_empty = bytes == WORD * (theirs.len() * rows.len()) as u64;
            (!is_empty).then(|| (b.temp(bytes), bytes))
        };
        self.hosts().map(letter).collect()
    }

    fn exchange(&self, b: &mut Builder, leaving: &[Letter], coming: &[Letter]) {
        let lists = |letters: &[Letter]| -> (Vec<i64>, Vec<i64>) {
            letters
                .iter()
                .map(|letter| letter.map_or((0, 0), |(buf, bytes)| (bytes as i64, buf.offset)))
                .unzip()
        };
        let (out, into) = (lists(leaving), lists(coming));
        let blocks = |lists| {
            let (counts, displs): &(Vec<i64>, Vec<i64>) = lists;
            Blocks::Varied {
                base: Base::Temp,
                ty: 0,
                counts: Ints::Large(counts),
                displs: Ints::Large(displs),
            }
        };
        let between = View::of(&self.leaders, self.host);
        match self.pairwise {
            true => alltoall::pairwise(b, &between, &blocks(&out), &blocks(&into)),
            false => alltoall::linear(b, &between, &blocks(&out), &blocks(&into)),
        }
        b.wait_all();
    }

    /// What each member gets, in the order of `order`.
    fn sort(&self, b: &mut Builder, rows: &[(&[u64], &[u64])], coming: &[Letter]) -> Vec<Buf> {
        let results: Vec<Buf> = rows.iter().map(|(_, into)| b.temp(into.iter().sum())).collect();
        let mut filled = vec![0; rows.len()];
        for ((_, theirs), letter) in self.hosts().zip(coming) {
            let Some((letter, _)) = *letter else { continue };
            let (mut word, mut at) = (0, WORD * (theirs.len() * rows.len()) as u64);
            for source in theirs {
                for (place, (_, into)) in rows.iter().enumerate() {
                    let bytes = into[source];
                    let told = b.part(letter, word, WORD);
                    b.expect(told, bytes, self.order[source], self.members[place]);
                    word += WORD;
                    let (from, to) =
                        (b.part(letter, at, bytes), b.part(results[place], filled[place], bytes));
                    b.copy(from, to);
                    (at, filled[place]) = (at + bytes, filled[place] + bytes);
                }
            }
        }
        results
    }
}
