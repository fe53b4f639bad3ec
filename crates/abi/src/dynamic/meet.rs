//! How two groups that know nothing of each other come to an intercommunicator: their roots meet, at a port of one of
//! them, and tell each other the cards of all; then each tells its group.
//!
//! ```text
//! root that connects                         root that accepts
//!   its adapter asks for a connection  ────▶   held until it accepts at that port
//!   size, context, tag (HELLO, port)   ────▶   from anybody
//!                                      ◀────   size, context, tag (ANSWER, the first tag)
//!   cards of its group (ANSWER)        ───▶◀── cards of its group
//! ```
//! The context is that of the root that accepts, and its group comes first.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use fabric::Span;
use mpi::comm::Place;
use mpi::error::{Class, Error, Result, fail};
use mpi::group::Group;
use mpi::handle::Handle;
use proto::Want;
use rnic::{Card, Port};

use super::{ANSWER, HELLO, admit, own_card};
use crate::coll::run;
use crate::cx::Cx;
use crate::{comm, device, letter, wait};

/// Which part the root takes.
pub enum Part {
    /// It waits at this port of its own, so long if that is bounded.
    Accept(u32, Option<Duration>),
    /// It comes to a port of another process, which may take so long.
    Connect(Port, Duration),
}

/// What the roots have agreed on.
struct Met {
    context: u64,
    /// Whether the other group comes first.
    is_second: bool,
    others: Vec<Card>,
}

/// The tag of what this process is told next, which no other letter to it has.
fn new_tag() -> i32 {
    static LAST: AtomicI32 = AtomicI32::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) & i32::MAX
}

/// An intercommunicator of the group of `comm`, all of whose members call this, and one of which the root finds out.
pub fn groups(cx: &Cx, comm: Handle, root: i32, part: impl FnOnce() -> Result<Part>) -> Result<Handle> {
    let place = intra(cx, comm)?;
    let root = check_root(&place, root)?;
    let (own, failed) = match own_card(cx) {
        Ok(card) => (card.to_words(), None),
        Err(error) => ([0; Card::WORDS], Some(error)),
    };
    let cards = run::exchange_words(cx, comm, own)?;
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some(rank) = cards.iter().position(|words| *words == [0; Card::WORDS]) {
        return fail(Class::OTHER, format!("rank {rank} cannot be reached by processes of other jobs"));
    }
    let met = (place.rank == root).then(|| match part()? {
        Part::Accept(port, patience) => accept(cx, port, patience, &cards),
        Part::Connect(port, patience) => connect(cx, &port, patience, &cards),
    });
    let met = tell_group(cx, comm, root, met)?;
    let others: Vec<u32> = {
        let mut world = cx.world();
        met.others.iter().map(|card| admit(&mut world, card)).collect()
    };
    if let Some(both) = others.iter().find(|other| place.mine.rank_of(**other).is_some()) {
        let text = format!("process {both} is in both groups, which must have no member in common");
        return fail(Class::COMM, text);
    }
    let peers = Arc::new(Group::from_ranks(others));
    let between = Place::in_order(met.context, place.mine, peers, place.rank, !met.is_second);
    comm::add(cx, comm, between)
}

/// The place in an intracommunicator.
pub fn intra(cx: &Cx, comm: Handle) -> Result<Place> {
    let place = cx.world().comm(comm)?.place.clone();
    match place.is_inter() {
        true => fail(Class::COMM, "argument `comm` is an intercommunicator, must be an intracommunicator"),
        false => Ok(place),
    }
}

/// The root as a rank of the communicator.
pub fn check_root(place: &Place, root: i32) -> Result<u32> {
    let known = u32::try_from(root).ok().filter(|root| *root < place.size());
    known.ok_or_else(|| {
        let last = place.size() - 1;
        Error::new(Class::ROOT, format!("argument `root` is {root}, must be a rank of `comm` (0 to {last})"))
    })
}

fn accept(cx: &Cx, port: u32, patience: Option<Duration>, mine: &[[u64; Card::WORDS]]) -> Result<Met> {
    let until = patience.map(|patience| Instant::now() + patience);
    let mut hello = Box::new([0u64; 3]);
    let span = Span { addr: hello.as_mut_ptr() as usize, len: size_of_val(&*hello) };
    let want = Want { source: None, context: HELLO, tag: Some(port as i32) };
    let op = cx.world().engine.receive(want, span).map_err(mpi::world::fault)?;
    let outcome = wait::until(cx, |world| {
        let asker = world.engine.extend(|device| device::adapter(device).asker(port));
        if let Some(card) = asker {
            admit(world, &card);
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            world.engine.cancel(op);
        }
        Ok(world.engine.take(op))
    })?;
    if outcome.cancelled {
        let patience = patience.unwrap_or_default().as_secs();
        return fail(Class::PORT, format!("nobody has connected within {patience} s"));
    }
    let from = outcome.source as u32;
    // They were written through their address.
    let [size, _, their_tag] = *std::hint::black_box(hello);
    let (context, tag) = (cx.world().new_context(), new_tag());
    let answer = vec![mine.len() as u64, context, tag as u64];
    letter::post(cx, ANSWER, their_tag as i32, [(from, answer)].into_iter())?;
    let others = swap_cards(cx, from, [their_tag as i32, tag], mine, size as usize, None)?;
    Ok(Met { context, is_second: false, others })
}

fn connect(cx: &Cx, port: &Port, patience: Duration, mine: &[[u64; Card::WORDS]]) -> Result<Met> {
    let until = Instant::now() + patience;
    let peer = reach(cx, port, until)?;
    let tag = new_tag();
    let hello = vec![mine.len() as u64, 0, tag as u64];
    letter::post(cx, HELLO, port.number as i32, [(peer, hello)].into_iter())?;
    let bound = Some((until, port));
    let answer = hear_until(cx, peer, tag, 3, bound)?;
    let [size, context, their_tag] = answer[..] else { unreachable!("as many as were awaited") };
    let others = swap_cards(cx, peer, [their_tag as i32, tag], mine, size as usize, bound)?;
    Ok(Met { context, is_second: true, others })
}

/// Nobody is at a port.
fn refused(port: &Port, why: &str) -> Error {
    let text = format!("argument `port_name` is the port {}, at which nobody accepts: {why}", port.shown());
    Error::new(Class::PORT, text)
}

const TOO_LATE: &str = "no MPI_Comm_accept in time (info key `timeout`, in seconds)";

/// Connects to the process of a port.
fn reach(cx: &Cx, port: &Port, until: Instant) -> Result<u32> {
    let peer = {
        let mut world = cx.world();
        let peer = admit(&mut world, &port.card);
        if peer < world.job_size() {
            return Ok(peer);
        }
        let begun = world.engine.extend(|device| device::adapter(device).reach(peer as usize, port.number));
        begun.map_err(|why| refused(port, &why))?;
        peer
    };
    wait::until(cx, |world| {
        let reached = world.engine.extend(|device| device::adapter(device).is_reached(peer as usize));
        match reached {
            Ok(true) => Ok(Some(())),
            Ok(false) if Instant::now() < until => Ok(None),
            Ok(false) => {
                world.engine.extend(|device| device::adapter(device).give_up(peer as usize));
                Err(refused(port, TOO_LATE))
            }
            Err(why) => Err(refused(port, &why)),
        }
    })?;
    Ok(peer)
}

/// Both roots tell each other the cards of their groups.
fn swap_cards(
    cx: &Cx,
    with: u32,
    [their_tag, tag]: [i32; 2],
    mine: &[[u64; Card::WORDS]],
    count: usize,
    bound: Option<(Instant, &Port)>,
) -> Result<Vec<Card>> {
    letter::post(cx, ANSWER, their_tag, [(with, mine.concat())].into_iter())?;
    let words = hear_until(cx, with, tag, Card::WORDS * count, bound)?;
    Ok(words.as_chunks().0.iter().map(|words| Card::from_words(*words)).collect())
}

/// Words that another root sends, who at this port may not take longer than until then.
fn hear_until(
    cx: &Cx,
    from: u32,
    tag: i32,
    count: usize,
    bound: Option<(Instant, &Port)>,
) -> Result<Vec<u64>> {
    let Some((until, port)) = bound else { return letter::hear(cx, from, ANSWER, tag, count) };
    let mut words = vec![0u64; count];
    let span = Span { addr: words.as_mut_ptr() as usize, len: count * size_of::<u64>() };
    let want = Want { source: Some(from as usize), context: ANSWER, tag: Some(tag) };
    let op = cx.world().engine.receive(want, span).map_err(mpi::world::fault)?;
    let mut why = TOO_LATE;
    let outcome = wait::until(cx, |world| {
        if world.is_turned_away(from as usize, port.number) {
            why = "its process has closed it";
            world.engine.cancel(op);
        } else if Instant::now() >= until {
            world.engine.cancel(op);
        }
        Ok(world.engine.take(op))
    })?;
    if outcome.cancelled {
        return Err(refused(port, why));
    }
    // They were written through their address.
    Ok(std::hint::black_box(words))
}

/// Tells all members what the root has agreed on, or that it has failed.
fn tell_group(cx: &Cx, comm: Handle, root: u32, met: Option<Result<Met>>) -> Result<Met> {
    let head = match &met {
        None => vec![0; 4],
        Some(Ok(met)) => vec![0, met.context, u64::from(met.is_second), met.others.len() as u64],
        Some(Err(error)) => vec![error.class.0 as u64, 0, 0, 0],
    };
    let head = run::spread_words(cx, comm, root as usize, head)?;
    let [class, context, is_second, count] = head[..] else { unreachable!("as many as were sent") };
    if let Some(class) = Class::told(class) {
        let text = format!("rank {root}, the root, could not meet the root of the other group");
        let told = Error::new(class, text);
        return Err(met.and_then(Result::err).unwrap_or(told));
    }
    let cards = match &met {
        Some(Ok(met)) => met.others.iter().flat_map(Card::to_words).collect(),
        _ => vec![0; Card::WORDS * count as usize],
    };
    let words = run::spread_words(cx, comm, root as usize, cards)?;
    let others = words.as_chunks().0.iter().map(|words| Card::from_words(*words)).collect();
    Ok(Met { context, is_second: is_second != 0, others })
}
