//! What the loss of a peer means for those who may wait for it without naming it: receives from any source, and
//! collectives.
//!
//! A collective cannot end without one of its members, but only those who exchange messages with that one see why: who waits
//! for *them* would wait for ever. So a rank whose collective fails for a lost member gives up the collectives of
//! that communicator, and sends a notice, an empty message with a tag of its own, to those it has messages with in this
//! collective, and to the members 2^k further in either direction that it has not lost itself; who gets one does the same,
//! once. Other communicators go on.

use crate::coll::{Schedule, notice, noticed};
use crate::collio::InFlight;
use crate::comm::{Place, Purpose};
use crate::error::{Class, Error};
use crate::handle::Handle;
use crate::request::Keep;
use crate::world::{Detached, World};
use fabric::{Device, Fault, Rank, Span};
use proto::{Mode, Want};
use std::collections::BTreeSet;

/// A communicator whose collectives cannot end.
#[derive(Debug)]
pub(crate) struct GivenUp {
    pub context: u64,
    /// What its collectives end with.
    pub error: Error,
    /// The number of the lost member in the crowd.
    lost: u32,
}

/// Looks in vain between two looks for notices, while this rank does not sleep.
const LOOKS: u32 = 1024;

impl<D: Device> World<D> {
    /// Ends receives from any source that a lost rank might have been the source of.
    #[inline]
    pub(crate) fn heed_losses(&mut self) {
        if !self.engine.lost().is_empty() {
            self.end_wildcards();
        }
    }

    #[cold]
    fn end_wildcards(&mut self) {
        let lost = self.engine.lost().to_vec();
        let comms = &self.objects.comms;
        self.engine.end_wildcards(|context| {
            let (_, comm) = comms.by_context(context)?;
            let concerned = lost.iter().find(|(rank, _)| comm.place.peers.rank_of(*rank as u32).is_some())?;
            Some(concerned.1.clone())
        });
    }

    /// Takes in what others say of members that are lost, and what receivers wait for that ask for partitions; true if there
    /// was something new. Looked for before every sleep, else rarely.
    #[inline]
    pub(crate) fn heed_notices(&mut self) -> bool {
        self.vain_looks += 1;
        let is_due = self.vain_looks >= LOOKS || self.engine.is_asleep();
        is_due && self.take_notices()
    }

    #[cold]
    fn take_notices(&mut self) -> bool {
        self.vain_looks = 0;
        let has_hurried = self.take_urges();
        self.turn_away();
        let comms = &self.objects.comms;
        let found = self.engine.arrived().filter_map(|(envelope, _)| {
            let is_collective = envelope.context & 3 == Purpose::Collective as u64;
            let lost = noticed(envelope.tag).filter(|_| is_collective)?;
            // One of a communicator that is still being made here stays until then.
            let (_, comm) = comms.by_context(envelope.context)?;
            Some((*envelope, lost, comm.crowd.clone()))
        });
        let found: Vec<_> = found.collect();
        let known = self.given_up.len();
        for (envelope, lost, place) in found {
            let (source, tag) = (Some(envelope.source), Some(envelope.tag));
            self.engine.probe_matched(&Want { source, context: envelope.context, tag });
            let from = place.peers.rank_of(envelope.source as u32);
            if self.is_given_up(&place) || from.is_none() || lost >= place.peers_size() {
                continue;
            }
            let from = place.name_in_crowd(from.unwrap_or(lost));
            let why = format!("{from} says so, and no collective of this communicator can end without it");
            self.cut_off(&place, lost, why);
        }
        self.given_up.len() > known || has_hurried
    }

    fn is_given_up(&self, place: &Place) -> bool {
        self.given_up.iter().any(|given_up| given_up.context == place.context)
    }

    /// Whether the collectives of a communicator cannot end, for a member is lost to this rank or another one; if so, the
    /// others are told.
    pub fn is_cut(&mut self, comm: Handle) -> bool {
        let Some(held) = self.objects.comms.get(comm) else { return false };
        let place = held.crowd.clone();
        self.find_lost(&place);
        self.is_given_up(&place)
    }

    /// Gives up a collective of [`World::begin`] that has failed.
    pub fn leave_on(&mut self, comm: Handle, schedule: Box<Schedule>, flight: InFlight, error: &Error) {
        match self.objects.comms.get(comm).map(|held| held.crowd.clone()) {
            Some(place) => self.leave(&place, schedule, flight, error),
            None => self.abandon(schedule, flight),
        }
    }

    /// Gives up a collective that has failed; if that is for a lost member, those who may wait for this rank are told.
    pub(crate) fn leave(&mut self, place: &Place, schedule: Box<Schedule>, flight: InFlight, error: &Error) {
        if error.class == Class::PROC_ABORTED {
            self.find_lost(place);
            if let Some(given_up) = self.given_up.iter().find(|given_up| given_up.context == place.context) {
                let lost = given_up.lost;
                self.send_notices(place, lost, schedule.partners().collect());
            }
        }
        self.abandon(schedule, flight);
    }

    /// Gives up the collectives of a communicator if this rank has lost a member.
    fn find_lost(&mut self, place: &Place) {
        if self.is_given_up(place) {
            return;
        }
        let number = |(rank, _): &(Rank, Fault)| place.peers.rank_of(*rank as u32);
        if let Some(lost) = self.engine.lost().iter().find_map(number) {
            self.cut_off(place, lost, "no collective of this communicator can end without it".into());
        }
    }

    fn cut_off(&mut self, place: &Place, lost: u32, why: String) {
        let text = format!("{} is lost: {why}", self.name_of(place.world_rank(lost)));
        let error = Error::new(Class::PROC_ABORTED, text);
        self.given_up.push(GivenUp { context: place.context, error, lost });
        let is_lost = |number: usize| {
            let process = place.world_rank(number as u32) as Rank;
            self.engine.lost().iter().any(|(rank, _)| *rank == process)
        };
        let around = around(place.rank as usize, place.peers_size() as usize, is_lost);
        self.send_notices(place, lost, around);
    }

    fn send_notices(&mut self, place: &Place, lost: u32, to: BTreeSet<usize>) {
        let context = place.context_for(Purpose::Collective);
        for number in to.into_iter().filter(|number| *number != place.rank as usize) {
            let to = place.world_rank(number as u32) as Rank;
            // Who is lost to this rank needs no notice of it.
            if let Ok(Some(op)) = self.engine.send(to, context, notice(lost), Span::EMPTY, Mode::Standard) {
                self.detached.push((op, Detached::Send(Keep::Nothing)));
            }
        }
    }
}

/// The members 2^k further from `me` in either direction in a row of `size`, or the next ones beyond that are not lost.
fn around(me: usize, size: usize, is_lost: impl Fn(usize) -> bool) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for distance in (0..usize::BITS).map(|k| 1 << k).take_while(|distance| *distance < size) {
        let onward = (distance..size).map(|step| (me + step) % size).find(|member| !is_lost(*member));
        let back = (distance..size).map(|step| (me + size - step) % size).find(|member| !is_lost(*member));
        found.extend(onward.into_iter().chain(back));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of hosts of which some lose each other, and of ranks that tell each other: everybody who is connected with
    /// one that has lost somebody is told, however the ranks are placed.
    #[test]
    fn everybody_is_told_whoever_is_lost() {
        let mut chance = 1u64;
        let mut draw = |below: u64| {
            chance = chance.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (chance >> 33) % below
        };
        for _ in 0..2000 {
            let (size, hosts) = (2 + draw(40) as usize, 2 + draw(5));
            let place: Vec<u64> = (0..size).map(|_| draw(hosts)).collect();
            let (one, other) = (draw(hosts), draw(hosts));
            // A cable between two hosts, or all those of a host.
            let is_all = draw(2) == 0;
            let is_cut = |a: usize, b: usize| match (place[a], place[b]) {
                (a, b) if a == b => false,
                (a, b) if is_all => a == one || b == one,
                (a, b) => [(one, other), (other, one)].contains(&(a, b)),
            };
            let first = draw(size as u64) as usize;
            if (0..size).all(|member| !is_cut(first, member)) {
                continue;
            }
            let (mut told, mut next) = (BTreeSet::from([first]), vec![first]);
            while let Some(member) = next.pop() {
                let reached = around(member, size, |other| is_cut(member, other));
                assert!(!reached.contains(&member) && reached.len() <= 2 * (size.ilog2() as usize + 1));
                for other in reached.into_iter().filter(|other| !is_cut(member, *other)) {
                    next.extend(told.insert(other).then_some(other));
                }
            }
            // All that messages could reach from there.
            let (mut near, mut next) = (BTreeSet::from([first]), vec![first]);
            while let Some(member) = next.pop() {
                next.extend((0..size).filter(|other| !is_cut(member, *other) && near.insert(*other)));
            }
            let missing: Vec<_> = near.difference(&told).collect();
            assert!(missing.is_empty(), "{first} of {place:?}, cut {one} {other} {is_all}: {missing:?}");
        }
    }
}
