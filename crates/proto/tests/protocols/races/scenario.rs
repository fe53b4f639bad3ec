//! What ranks call, and under which conditions.

use super::LONG;
use crate::random::Random;
use fabric::Rank;
use proto::{Mode, Protocol};

/// One call of a rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    Send {
        to: Rank,
        tag: i32,
        len: usize,
        mode: Mode,
    },
    Receive {
        source: Option<Rank>,
        tag: Option<i32>,
        room: usize,
    },
    /// Of the receive with this number.
    Cancel(usize),
    /// Of the send with this number.
    TakeBack(usize),
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub ranks: Vec<Vec<Act>>,
    /// Frames that fit into each direction.
    pub room: usize,
    pub unexpected_bytes: usize,
    /// Whether ranks also look around between calls without anything having arrived: matters
    /// where room is short.
    pub looks: bool,
    /// The protocol of long messages, if it is not to be chosen.
    pub force: Option<Protocol>,
    pub reach: Vec<bool>,
    /// After how many copies each rank is refused.
    pub grants: Vec<usize>,
    /// Envelopes of which account is kept.
    pub envelopes: usize,
    /// Whether eager messages are found while their sender is still writing them.
    pub slow: bool,
}

impl Scenario {
    pub fn new(ranks: Vec<Vec<Act>>) -> Scenario {
        let (reach, grants) = (vec![true; ranks.len()], vec![usize::MAX; ranks.len()]);
        Scenario {
            ranks,
            room: 64,
            unexpected_bytes: 1 << 20,
            looks: false,
            force: None,
            reach,
            grants,
            envelopes: 64,
            slow: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Call(Rank),
    /// A frame from the first to the second rank arrives, and the second looks around.
    Arrive(Rank, Rank),
    Look(Rank),
}

/// What the tests draw from it.
impl Random {
    pub fn scenario(&mut self) -> Scenario {
        let size = 2 + self.below(2);
        let mut scenario = Scenario::new((0..size).map(|_| self.calls(size)).collect());
        scenario.room = self.of(&[1, 2, 5, 64]);
        scenario.looks = self.below(2) == 0;
        scenario.unexpected_bytes = self.of(&[0, 1 << 20]);
        scenario.reach = (0..size).map(|_| self.below(8) > 0).collect();
        let forced: Vec<_> = forced().collect();
        scenario.force = self.of(&forced);
        scenario.slow = self.below(2) == 0;
        scenario.envelopes = self.of(&[1, 64]);
        scenario
    }

    fn calls(&mut self, size: usize) -> Vec<Act> {
        let (mut receives, mut sends) = (0, 0);
        let mut call = |_| match self.below(20) {
            0 | 1 if receives > 0 => Act::Cancel(self.below(receives)),
            2 if sends > 0 => Act::TakeBack(self.below(sends)),
            0..=9 => {
                sends += 1;
                Act::Send {
                    to: self.below(size),
                    tag: self.of(&[1, 1, 2]),
                    len: self.of(&[0, 4, LONG, LONG, LONG + 20, 100]),
                    mode: self.of(&[Mode::Standard, Mode::Standard, Mode::Synchronous]),
                }
            }
            _ => {
                receives += 1;
                let source = Some(self.below(size));
                let tag = Some(self.of(&[1, 1, 2]));
                let source = if self.below(6) == 0 { None } else { source };
                let tag = if self.below(6) == 0 { None } else { tag };
                Act::Receive { source, tag, room: self.of(&[4, LONG, LONG, 100]) }
            }
        };
        (0..14).map(&mut call).collect()
    }
}

/// A send to rank 1.
pub fn send(tag: i32, len: usize) -> Act {
    Act::Send { to: 1, tag, len, mode: Mode::Standard }
}

/// A receive that has room for a long message.
pub fn receive(source: Option<Rank>, tag: Option<i32>) -> Act {
    Act::Receive { source, tag, room: LONG }
}

/// All sequences of `len` items.
pub fn sequences<T: Copy>(items: &[T], len: usize) -> Vec<Vec<T>> {
    (0..len).fold(vec![Vec::new()], |all, _| {
        all.iter().flat_map(|s| items.iter().map(|i| s.iter().copied().chain([*i]).collect())).collect()
    })
}

/// A synchronous send to rank 1.
pub fn synchronous(tag: i32, len: usize) -> Act {
    Act::Send { to: 1, tag, len, mode: Mode::Synchronous }
}

/// Receives of every kind.
pub fn wants() -> [Act; 5] {
    let tags = [Some(1), Some(2), None];
    let [one, two, any] = tags.map(|tag| receive(Some(0), tag));
    [one, two, any, receive(None, Some(1)), receive(None, None)]
}

/// The choice, and the protocols whose rules depend on who comes first.
pub const RACING: [Option<Protocol>; 3] = [None, Some(Protocol::Rget), Some(Protocol::Speculative)];

/// The choice, and each protocol by itself.
pub fn forced() -> impl Iterator<Item = Option<Protocol>> {
    [None].into_iter().chain(Protocol::ALL.map(|(protocol, _)| Some(protocol)))
}
