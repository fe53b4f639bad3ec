//! Words that the library itself sends from process to process, where no communicator of all of them is there
//! yet: those who make one tell each other of it.

use mpi::error::Result;
use mpi::request::{Body, Keep, Origin, Unpack};
use proto::{Mode, Want};

use crate::coll::run;
use crate::cx::Cx;
use crate::kind::text::StatusPlace;
use crate::request;

/// Sends words to processes, named by their rank in the job, and waits until they have left.
pub fn post(cx: &Cx, context: u64, tag: i32, letters: impl Iterator<Item = (u32, Vec<u64>)>) -> Result {
    let mut bodies = Vec::new();
    let sent =
        letters.into_iter().try_for_each(|(to, words)| send(cx, to, context, tag, &words, &mut bodies));
    request::finish_all(cx, bodies, sent)
}

/// Sends words to a process and receives `count` from it.
pub fn exchange(cx: &Cx, with: u32, context: u64, tag: i32, words: &[u64], count: usize) -> Result<Vec<u64>> {
    let mut bodies = Vec::new();
    let sent = send(cx, with, context, tag, words, &mut bodies);
    let heard = sent.and_then(|()| hear(cx, with, context, tag, count));
    let (heard, received) = match heard {
        Ok(words) => (words, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    };
    request::finish_all(cx, bodies, received)?;
    Ok(heard)
}

/// Begins to send a copy of the words, which lives as long as the engine needs it, whatever fails meanwhile.
fn send(cx: &Cx, to: u32, context: u64, tag: i32, words: &[u64], bodies: &mut Vec<Body>) -> Result {
    let copy: Box<[u8]> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let span = fabric::Span { addr: copy.as_ptr() as usize, len: copy.len() };
    let sent = cx.world().engine.send(to as usize, context, tag, span, Mode::Standard);
    bodies.extend(sent.map_err(mpi::world::fault)?.map(|op| Body::Send(op, Keep::Packed(copy))));
    Ok(())
}

/// Receives so many words from a process.
pub fn hear(cx: &Cx, from: u32, context: u64, tag: i32, count: usize) -> Result<Vec<u64>> {
    let mut words = vec![0u64; count];
    let word = run::word();
    let base = words.as_mut_ptr() as usize;
    let mut unpack = Box::new(Unpack::new(base, count as u64, word.datatype().clone())?);
    let want = Want { source: Some(from as usize), context, tag: Some(tag) };
    let op = cx.world().engine.receive(want, unpack.span()).map_err(mpi::world::fault)?;
    request::finish(cx, Body::Receive(op, Origin::Rank(0), Some(unpack)), StatusPlace::IGNORE)?;
    // They were written through their address.
    Ok(std::hint::black_box(words))
}
