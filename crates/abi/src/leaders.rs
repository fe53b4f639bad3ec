//! How two groups that have no communicator in common come to an intercommunicator: their leaders meet, and each tells
//! its group what they have agreed on.
//!
//! ```text
//! leaders:        size, context, whether guests are about   ◀─▶   the same
//! to each group:  what became of it, the size of the other group
//! without guests: the other group by its ranks in the job
//! with guests:    every member gives its card to its leader; cards and a context ◀─▶ the same; to each group
//! ```
//! A guest is a process of another job, which has another number in every process ([`crate::dynamic`]): of such, cards are told.

use std::sync::Arc;

use mpi::comm::Place;
use mpi::error::{Class, Error, Result, fail};
use mpi::group::Group;
use mpi::handle::Handle;
use rnic::Card;

use crate::coll::run;
use crate::cx::Cx;
use crate::{dynamic, letter};

/// A group, as its leader and its members speak with each other.
pub enum Circle<'a> {
    /// They have a communicator.
    Comm(Handle),
    /// They have nothing but the group, and a context and a tag that they have found from its name.
    Letters(&'a Group, u64, i32),
}

/// What the leaders agree on.
pub struct Met {
    /// The context of the new communicator.
    context: u64,
    /// The members of the other group, as this process numbers them.
    others: Vec<u32>,
    /// Whether the other group comes second.
    is_first: bool,
}

impl Met {
    /// This process in what was agreed on.
    pub fn place(self, mine: Arc<Group>, rank: u32) -> Place {
        Place::in_order(self.context, mine, Arc::new(Group::from_ranks(self.others)), rank, self.is_first)
    }
}

/// Where a leader meets the other one: who that is, and a context and a tag that nothing else has there.
#[derive(Clone, Copy)]
pub struct Bridge {
    /// The other leader.
    pub other: u32,
    /// The context.
    pub context: u64,
    /// The tag.
    pub tag: i32,
}

/// What the leaders know after their first words.
struct Head {
    context: u64,
    size: usize,
    is_mixed: bool,
    is_ours: bool,
}

/// Agrees with another group; every member calls this, the leader with where it meets the other one, if it knows.
pub fn agree(
    cx: &Cx,
    circle: &Circle,
    mine: &Group,
    [rank, leader]: [u32; 2],
    bridge: impl FnOnce() -> Result<Bridge>,
) -> Result<Met> {
    let mut at = None;
    let begun = (rank == leader).then(|| {
        let bridge = *at.insert(bridge()?);
        greet(cx, mine, bridge)
    });
    let words = match &begun {
        None => vec![0; 5],
        Some(Ok(head)) => {
            vec![0, head.context, head.size as u64, head.is_mixed.into(), head.is_ours.into()]
        }
        Some(Err(error)) => vec![error.class.0 as u64, 0, 0, 0, 0],
    };
    let words = circle.tell(cx, leader, rank, words)?;
    let [class, context, size, is_mixed, is_ours] = words[..] else { unreachable!("as many as were sent") };
    if let Some(class) = Class::told(class) {
        let text = format!("rank {leader}, the leader of this group, could not agree with the remote leader");
        let told = Error::new(class, text);
        return Err(begun.and_then(Result::err).unwrap_or(told));
    }
    if is_mixed != 0 {
        return agree_by_cards(cx, circle, mine, [rank, leader], at, size as usize);
    }
    let members: Vec<u64> = mine.iter().map(u64::from).collect();
    let swapped = at.map(|at| letter::exchange(cx, at.other, at.context, at.tag, &members, size as usize));
    let others = told_or_failed(cx, circle, [rank, leader], swapped, size as usize)?;
    let others: Vec<u32> = others.into_iter().map(|rank| rank as u32).collect();
    check_apart(mine, others.iter().copied())?;
    Ok(Met { context, others, is_first: is_ours != 0 })
}

/// The first words of the leaders to each other. The context is that which the first of them has made.
fn greet(cx: &Cx, mine: &Group, at: Bridge) -> Result<Head> {
    let (own, has_guests) = {
        let mut world = cx.world();
        let size = world.job_size();
        (world.new_context(), at.other >= size || mine.iter().any(|process| process >= size))
    };
    let first = u64::from(mine.world_rank(0));
    let words = [mine.size().into(), own, has_guests.into(), first];
    let head = letter::exchange(cx, at.other, at.context, at.tag, &words, words.len())?;
    let [size, theirs, is_mixed, their_first] = head[..] else { unreachable!("as many as were sent") };
    let is_mixed = has_guests || is_mixed != 0;
    // Groups of the job that have their first member in common are refused when all are known.
    let is_ours = first < their_first;
    Ok(Head { context: if is_ours { own } else { theirs }, size: size as usize, is_mixed, is_ours })
}

/// The rest where processes of several jobs are among the members, by the cards of all.
fn agree_by_cards(
    cx: &Cx,
    circle: &Circle,
    mine: &Group,
    [rank, leader]: [u32; 2],
    at: Option<Bridge>,
    size: usize,
) -> Result<Met> {
    // One that cannot be reached says so by a card of zeros, so that nobody waits for it.
    let (card, failed) = match dynamic::own_card(cx) {
        Ok(card) => (card.to_words(), None),
        Err(error) => ([0; Card::WORDS], Some(error)),
    };
    let cards = circle.gather(cx, leader, rank, card)?;
    let swapped = at.map(|at| {
        let own = cx.world().new_context();
        let words: Vec<u64> = std::iter::once(own).chain(cards.iter().flatten().copied()).collect();
        let count = 1 + Card::WORDS * size;
        let theirs = letter::exchange(cx, at.other, at.context, at.tag, &words, count)?;
        if [&words, &theirs].iter().any(|words| words[1..].as_chunks().0.contains(&[0; Card::WORDS])) {
            return fail(Class::OTHER, "a member of one of the groups cannot be reached by other jobs");
        }
        let is_ours = words[1..=Card::WORDS] < theirs[1..=Card::WORDS];
        let context = if is_ours { own } else { theirs[0] };
        Ok([&[is_ours.into(), context], &theirs[1..]].concat())
    });
    let words = told_or_failed(cx, circle, [rank, leader], swapped, 2 + Card::WORDS * size);
    let words = words.map_err(|error| failed.unwrap_or(error))?;
    let others: Vec<u32> = {
        let mut world = cx.world();
        let cards = words[2..].as_chunks().0.iter();
        cards.map(|words| dynamic::admit(&mut world, &Card::from_words(*words))).collect()
    };
    check_apart(mine, others.iter().copied())?;
    Ok(Met { context: words[1], others, is_first: words[0] != 0 })
}

/// What the leader has heard, or that it has failed: `count` words.
fn told_or_failed(
    cx: &Cx,
    circle: &Circle,
    [rank, leader]: [u32; 2],
    heard: Option<Result<Vec<u64>>>,
    count: usize,
) -> Result<Vec<u64>> {
    let words = match &heard {
        Some(Ok(words)) => [&[0], &words[..]].concat(),
        Some(Err(error)) => [vec![error.class.0 as u64], vec![0; count]].concat(),
        None => vec![0; 1 + count],
    };
    let mut words = circle.tell(cx, leader, rank, words)?;
    let Some(class) = Class::told(words.remove(0)) else { return Ok(words) };
    let text = format!("rank {leader}, the leader of this group, could not agree with the remote leader");
    let told = Error::new(class, text);
    Err(heard.and_then(Result::err).unwrap_or(told))
}

impl Circle<'_> {
    /// The words of the leader, as many as every member passes.
    fn tell(&self, cx: &Cx, leader: u32, rank: u32, words: Vec<u64>) -> Result<Vec<u64>> {
        match *self {
            Circle::Comm(comm) => run::spread_words(cx, comm, leader as usize, words),
            Circle::Letters(members, context, tag) if rank == leader => {
                let rest = members.iter().filter(|to| *to != members.world_rank(leader));
                letter::post(cx, context, tag, rest.map(|to| (to, words.clone())))?;
                Ok(words)
            }
            Circle::Letters(members, context, tag) => {
                letter::hear(cx, members.world_rank(leader), context, tag, words.len())
            }
        }
    }

    /// The cards of all members, in the order of their ranks, at the leader.
    fn gather(
        &self,
        cx: &Cx,
        leader: u32,
        rank: u32,
        card: [u64; Card::WORDS],
    ) -> Result<Vec<[u64; Card::WORDS]>> {
        match *self {
            Circle::Comm(comm) => run::exchange_words(cx, comm, card),
            Circle::Letters(members, context, tag) if rank == leader => {
                let own = members.world_rank(leader);
                let heard = |from: u32| match from == own {
                    true => Ok(card),
                    false => {
                        let words = letter::hear(cx, from, context, tag, Card::WORDS)?;
                        Ok(words.try_into().expect("as many as were awaited"))
                    }
                };
                members.iter().map(heard).collect()
            }
            Circle::Letters(members, context, tag) => {
                letter::post(cx, context, tag, [(members.world_rank(leader), card.to_vec())].into_iter())?;
                Ok(Vec::new())
            }
        }
    }
}

/// The groups of an intercommunicator have no member in common.
pub fn check_apart(mine: &Group, mut others: impl Iterator<Item = u32>) -> Result {
    match others.find(|rank| mine.rank_of(*rank).is_some()) {
        None => Ok(()),
        Some(both) => fail(
            Class::COMM,
            format!("process {both} is in both groups, which must have no member in common"),
        ),
    }
}
