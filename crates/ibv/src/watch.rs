//! Whether peers are still there that are silent.
//!
//! A message over a connection (RC) is answered by the peer's adapter, also while its rank computes; a hello and a datagram by the
//! rank itself, when it looks around. So silence alone means nothing, and the system of the peer is asked
//! ([`rnic::driver::knock`]): each rank listens at a port of TCP beside its adapters.
//!
//! | the knock | means |
//! |---|---|
//! | stays open | the peer computes: it is waited for |
//! | is closed by the peer | it looks around |
//! | the same [`IN_VAIN`] times more, and still no answer to hellos, datagrams or a question to its adapter | the way between the adapters is cut |
//! | is refused, or not answered | process or host are gone |
//!
//! Of a connection over which nothing comes the adapter says nothing: the peer's is asked a question when it has been silent
//! for long ([`Found::Silent`]), so that who only waits for a message is told that none will come. Adapters in software may
//! answer as late as the rank itself: so that counts as owed by the rank.

use fabric::Rank;
use rnic::driver::knock::{Answer, Knock, answer_knocks};
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};

/// How often it is looked who has been silent.
const LOOK_NS: u64 = 1_000_000_000;
/// Looks for which a peer that owes something is silent before it is knocked at.
const PATIENCE: u32 = 5;
/// Looks after which a silent peer is asked that owes nothing.
const SELDOM: u32 = 10;
/// How often a peer looks around, a look apart, that has been told something each time and of which nothing comes. Hellos and
/// datagrams wait at the adapter until it looks, and are repeated: to lose them so often takes a way that is cut.
const IN_VAIN: u32 = 10;

/// Who is to answer what was said to a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Owed {
    /// Nothing was said.
    #[default]
    Nothing,
    /// Its adapter.
    ByAdapter,
    /// The rank itself.
    ByRank,
}

/// What is known of a peer.
#[derive(Clone, Default)]
struct Silence {
    /// Something was said to it, or has come from it, at any time.
    known: bool,
    /// Nothing is expected of it any more.
    gone: bool,
    /// Something has come since the last look.
    heard: bool,
    /// Since it was last found to look around.
    owed: Owed,
    /// Looks for which it has been silent.
    looks: u32,
    /// Looks for which it has owed something.
    waited: u32,
    /// When the first of them was.
    since_ns: u64,
    /// See [`IN_VAIN`].
    in_vain: u32,
}

/// What a look has found out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// This peer is not there, for this reason.
    Lost(Rank, String),
    /// This one has been silent for long.
    Silent(Rank),
}

/// See the [module](self).
pub struct Watch {
    /// Where peers knock at this rank.
    door: TcpListener,
    /// By rank.
    doors: Box<[SocketAddr]>,
    peers: Box<[Silence]>,
    knocks: HashMap<Rank, Knock>,
    due_ns: u64,
}

impl Watch {
    /// Over peers that listen there; `door` does not block.
    pub fn new(door: TcpListener, doors: Box<[SocketAddr]>) -> Watch {
        let peers = vec![Silence::default(); doors.len()].into();
        Watch { door, doors, peers, knocks: HashMap::new(), due_ns: 0 }
    }

    /// Where peers knock at this rank.
    pub fn door(&self) -> &TcpListener {
        &self.door
    }

    /// Tells those that have knocked that this rank looks around.
    pub fn answer(&self) {
        answer_knocks(&self.door);
    }

    /// Something has come from this peer that only itself can send.
    #[inline]
    pub fn heard(&mut self, peer: Rank) {
        self.peers[peer].heard = true;
    }

    /// Something was sent to this peer.
    #[inline]
    pub fn told(&mut self, peer: Rank, owed: Owed) {
        let silence = &mut self.peers[peer];
        silence.known = true;
        silence.owed = silence.owed.max(owed);
    }

    /// Nothing more is expected of this peer.
    pub fn forget(&mut self, peer: Rank) {
        self.peers[peer] = Silence { gone: true, ..Silence::default() };
        self.knocks.remove(&peer);
    }

    /// Whether it is time for [`Watch::stand`].
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// Finds out who has been silent and whether those are there.
    #[cold]
    pub fn stand(&mut self, now_ns: u64) -> Vec<Found> {
        self.due_ns = now_ns + LOOK_NS;
        let mut found = Vec::new();
        for peer in 0..self.peers.len() {
            let silence = &mut self.peers[peer];
            if silence.gone {
                continue;
            }
            if std::mem::take(&mut silence.heard) {
                *silence = Silence { known: true, ..Silence::default() };
                self.knocks.remove(&peer);
                continue;
            }
            silence.looks += u32::from(silence.known);
            if silence.known && silence.looks.is_multiple_of(SELDOM) {
                silence.owed = silence.owed.max(Owed::ByAdapter);
                found.push(Found::Silent(peer));
            }
            if silence.owed == Owed::Nothing {
                continue;
            }
            if silence.waited == 0 {
                silence.since_ns = now_ns;
            }
            silence.waited += 1;
            if silence.waited > PATIENCE
                && let Some(why) = self.knock(peer, now_ns)
            {
                self.forget(peer);
                found.push(Found::Lost(peer, why));
            }
        }
        found
    }

    /// Knocks at a silent peer, or looks what has come of it; why it is lost, if it is.
    fn knock(&mut self, peer: Rank, now_ns: u64) -> Option<String> {
        let at = self.doors[peer];
        match self.knocks.entry(peer).or_default().answer(at) {
            Answer::Waits => None,
            Answer::Lost(why) => Some(format!("{at} does not answer: {why}")),
            Answer::There => {
                self.knocks.remove(&peer);
                let silence = &mut self.peers[peer];
                match std::mem::take(&mut silence.owed) {
                    // It goes on from here if it is told more, and owes nothing if not.
                    Owed::ByRank => silence.in_vain += 1,
                    _ => (silence.waited, silence.in_vain) = (0, 0),
                }
                let waited = (now_ns - silence.since_ns) / 1_000_000_000;
                (silence.in_vain > IN_VAIN).then(|| {
                    format!(
                        "its process is there and looks around ({at}), but nothing of it has come over the adapter for {waited} s: \
                         does the network carry what the adapters send each other?"
                    )
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> TcpListener {
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        door.set_nonblocking(true).unwrap();
        door
    }

    /// Rank 0 of two, and where the other one listens.
    fn watch() -> (Watch, TcpListener) {
        let (own, other) = (door(), door());
        let doors = [own.local_addr().unwrap(), other.local_addr().unwrap()];
        (Watch::new(own, Box::new(doors)), other)
    }

    /// So many looks, before each of which this happens; which look found a peer lost, and why.
    fn looks(watch: &mut Watch, count: u64, mut before: impl FnMut(&mut Watch)) -> Option<(u64, String)> {
        (0..count).find_map(|at| {
            before(watch);
            watch.stand(at * LOOK_NS).into_iter().find_map(|found| match found {
                Found::Lost(1, why) => Some((at, why)),
                found => {
                    assert_eq!(found, Found::Silent(1));
                    watch.told(1, Owed::ByAdapter);
                    None
                }
            })
        })
    }

    #[test]
    fn a_peer_that_computes_is_waited_for() {
        let (mut watch, _other) = watch();
        assert_eq!(looks(&mut watch, 200, |watch| watch.told(1, Owed::ByRank)), None);
    }

    #[test]
    fn a_peer_that_was_never_met_is_left_alone() {
        let (mut watch, other) = watch();
        drop(other);
        assert_eq!(looks(&mut watch, 200, |_| {}), None);
    }

    #[test]
    fn a_peer_that_answers_is_not_knocked_at() {
        let (mut watch, other) = watch();
        drop(other);
        let answered = |watch: &mut Watch| {
            watch.told(1, Owed::ByRank);
            watch.heard(1);
        };
        assert_eq!(looks(&mut watch, 200, answered), None);
    }

    #[test]
    fn a_peer_that_has_ended_is_lost() {
        for owed in [Owed::ByRank, Owed::ByAdapter] {
            let (mut watch, other) = watch();
            let at = other.local_addr().unwrap();
            drop(other);
            let (look, why) = looks(&mut watch, 200, |watch| watch.told(1, owed)).expect("it is found out");
            assert!(why.starts_with(&format!("{at} does not answer: its process has ended")), "{why}");
            assert!(look < 10, "{look}");
            assert_eq!(looks(&mut watch, 200, |watch| watch.told(1, owed)), None, "it is told once");
        }
    }

    #[test]
    fn a_peer_that_owes_nothing_and_has_ended_is_lost() {
        let (mut watch, other) = watch();
        watch.told(1, Owed::ByAdapter);
        assert_eq!(looks(&mut watch, 30, |_| answer_knocks(&other)), None);
        drop(other);
        assert!(looks(&mut watch, 30, |_| {}).is_some());
    }

    #[test]
    fn a_peer_that_looks_around_and_does_not_answer_is_lost() {
        let (mut watch, other) = watch();
        let told = |watch: &mut Watch| {
            watch.told(1, Owed::ByRank);
            answer_knocks(&other);
        };
        let (look, why) = looks(&mut watch, 200, told).expect("it is found out");
        assert!(why.contains("looks around") && why.contains(&format!("for {look} s")), "{why}");
        assert!(look < 40, "{look}");
        // One word of it, and all begins anew.
        let spoken = |watch: &mut Watch| {
            told(watch);
            if watch.peers[1].in_vain == IN_VAIN {
                watch.heard(1);
            }
        };
        assert_eq!(looks(&mut watch, 200, spoken), None);
        // To a message the adapter answers, not the rank.
        let (mut watch, other) = self::watch();
        let written = |watch: &mut Watch| {
            watch.told(1, Owed::ByAdapter);
            answer_knocks(&other);
        };
        assert_eq!(looks(&mut watch, 200, written), None);
    }
}
