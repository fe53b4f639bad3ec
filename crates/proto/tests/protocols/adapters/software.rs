//! The exchanges of [`super::exchange`] over Tern's own software adapter, through sockets of the loopback: by connections (RC),
//! reliable datagrams (RD), unreliable ones that `proto::reliable` makes reliable (UD), and by those until a peer has
//! earned a connection (hybrid). The devices are made as a job makes them.

use super::exchange::{PATIENCE, exchange_of, limits, run, until_all};
use proto::channel::{Channel, STAGED_BYTES, STREAM_FRAME_BYTES, Settings};
use proto::reliable::{self, Reliable, Use};
use proto::{EagerBy, Engine, Limits, Protocol};
use rnic::{Listening, Rnic, Secret};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

const RANKS: usize = 3;
/// Messages from each rank to each: what goes through sockets takes longer than what is copied.
const COUNT: usize = 20;
/// Exchanges in which all peers must have come to have a connection.
const ROUNDS: usize = 100;
/// Messages by datagrams that earn a peer one.
const EARNED: u64 = 8;
const SECRET: Secret = [7; 16];

type Device = Channel<Reliable<Rnic>>;

/// The adapters of one job, which all listen in this way.
fn adapters(listen: fn(IpAddr) -> Result<Listening, String>) -> Vec<Rnic> {
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listening: Vec<Listening> = (0..RANKS).map(|_| listen(local).unwrap()).collect();
    let addresses: Vec<SocketAddr> = listening.iter().map(|rank| rank.address().unwrap()).collect();
    let open = |(me, rank): (usize, Listening)| rank.open(me, addresses.clone().into(), SECRET).unwrap();
    listening.into_iter().enumerate().map(open).collect()
}

/// By what of the adapter is reliable itself.
fn plain(listen: fn(IpAddr) -> Result<Listening, String>, frame_bytes: usize) -> Vec<Device> {
    let settings = Settings { slots: 0, window: 64, frame_bytes, ..Settings::default() };
    let device = |rank| Channel::new(Reliable::plain(rank), settings.clone()).unwrap();
    adapters(listen).into_iter().map(device).collect()
}

fn connections() -> Vec<Device> {
    plain(Listening::at, STREAM_FRAME_BYTES)
}

fn reliable_datagrams() -> Vec<Device> {
    plain(Listening::for_datagrams, STAGED_BYTES)
}

/// By packets; who has a connection has slots, too.
fn made_reliable(ranks: Vec<Rnic>, settings: &Settings, reliable: &reliable::Settings) -> Vec<Device> {
    let reliable = reliable::Settings { linger_ns: 5_000_000_000, ..reliable.clone() };
    let device = |rank| Channel::new(Reliable::new(rank, reliable.clone())?, settings.clone());
    ranks.into_iter().map(|rank| device(rank).unwrap()).collect()
}

fn unreliable_datagrams() -> Vec<Device> {
    let settings =
        Settings { frame_bytes: STAGED_BYTES, slots: 0, window: 64, fast_peers: 0, ..Settings::default() };
    made_reliable(adapters(Listening::for_unreliable), &settings, &reliable::Settings::default())
}

/// Each peer may have a connection, has it soon if it is spoken to, and keeps it.
fn hybrid() -> Vec<Device> {
    let peers = RANKS - 1;
    let plain = Settings::default();
    let settings = Settings {
        frame_bytes: STREAM_FRAME_BYTES,
        staged_bytes: plain.frame_bytes,
        slots: 16,
        slot_bytes: 4096 + 24,
        fast_peers: peers,
        window: 32,
        ..plain
    };
    let reliable = reliable::Settings {
        connections: peers,
        message_bytes: settings.message_bytes(),
        earned_messages: EARNED,
        earned_bytes: u64::MAX,
        idle_ns: 3_600_000_000_000,
        ..reliable::Settings::default()
    };
    made_reliable(adapters(Listening::for_both), &settings, &reliable)
}

/// What may be set for the protocols, one after the other. That nothing is forced is among the eager ones.
fn every_limits() -> Vec<Limits> {
    let mut all = vec![
        Limits { rtr: false, ..limits() },
        Limits { remote_access: false, ..limits() },
        Limits { eager_bytes: 0, ..limits() },
        // All that an adapter takes at once leaves so.
        Limits { eager_bytes: STREAM_FRAME_BYTES, unexpected_bytes: 64 << 20, ..limits() },
    ];
    for (protocol, _) in Protocol::ALL {
        all.push(Limits { force: Some(protocol), ..limits() });
        all.push(Limits { force: Some(protocol), eager_bytes: 0, ..limits() });
    }
    for (eager_by, _) in EagerBy::ALL {
        all.push(Limits { eager_by, ..limits() });
        all.push(Limits { eager_by, unexpected_bytes: 1000, ..limits() });
    }
    all
}

/// All to all, whatever is set.
fn all_to_all(job: fn() -> Vec<Device>, rank: impl Fn(usize, &mut Engine<Device>) + Sync) {
    for limits in every_limits() {
        // Shown if the test fails.
        println!("{limits:?}");
        run(job(), &limits, &rank);
    }
}

#[test]
fn all_to_all_over_connections() {
    all_to_all(connections, |me, engine| exchange_of(COUNT, me, engine));
}

#[test]
fn all_to_all_by_reliable_datagrams() {
    all_to_all(reliable_datagrams, |me, engine| exchange_of(COUNT, me, engine));
}

#[test]
fn all_to_all_by_unreliable_datagrams_made_reliable() {
    all_to_all(unreliable_datagrams, |me, engine| {
        exchange_of(COUNT, me, engine);
        let used = uses(engine);
        let by_datagrams = used.iter().filter(|(_, used)| used.datagrams.0 > 0 && used.connected.0 == 0);
        assert_eq!(by_datagrams.count(), RANKS - 1, "{used:?}");
    });
}

/// What all ranks of a hybrid job know of it.
struct Rounds {
    /// By exchange: how many ranks have finished it, and how many of them had sent something over a connection to each of their
    /// peers by then. Of each by itself, so that all ranks read the same, and go on or stop together.
    exchanges: [(AtomicUsize, AtomicUsize); ROUNDS],
    /// By pair of ranks: messages by datagrams, from the one of the two that has sent more.
    datagrams: [AtomicU64; RANKS],
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds {
            exchanges: std::array::from_fn(|_| Default::default()),
            datagrams: std::array::from_fn(|_| Default::default()),
        }
    }
}

/// What was sent to each peer by datagrams and over connections.
fn uses(engine: &Engine<Device>) -> Vec<(usize, Use)> {
    engine.device().verbs().standings().map(|peer| (peer.rank, peer.used)).collect()
}

/// Exchanges until all ranks have gone over to connections, and one more, whose messages go by them from the first to the last.
fn exchange_until_connected(rounds: &Rounds, me: usize, engine: &mut Engine<Device>) {
    let since = Instant::now();
    for (at, (finished, connected)) in rounds.exchanges.iter().enumerate() {
        exchange_of(COUNT / 2, me, engine);
        let used = uses(engine);
        let over = used.iter().filter(|(_, used)| used.begun == 1 && used.connected.0 > 0);
        connected.fetch_add(usize::from(over.count() == RANKS - 1), Ordering::Relaxed);
        for (peer, used) in &used {
            // Of three ranks each pair has its own sum.
            rounds.datagrams[me + peer - 1].fetch_max(used.datagrams.0, Ordering::Relaxed);
        }
        finished.fetch_add(1, Ordering::Release);
        until_all(engine, finished, RANKS);
        if connected.load(Ordering::Relaxed) == RANKS {
            return exchange_over_connections(me, engine);
        }
        assert!(since.elapsed() < PATIENCE, "after {at} exchanges rank {me} has sent {used:#?}");
    }
    panic!("after {ROUNDS} exchanges rank {me} has sent {:#?}", uses(engine));
}

/// Who has connections is sent nothing by datagrams any more.
fn exchange_over_connections(me: usize, engine: &mut Engine<Device>) {
    let before = uses(engine);
    exchange_of(COUNT / 2, me, engine);
    for ((peer, before), (_, after)) in before.into_iter().zip(uses(engine)) {
        assert_eq!(before.datagrams, after.datagrams, "by datagrams from rank {me} to {peer}");
        assert!(before.connected.0 < after.connected.0, "over the connection from rank {me} to {peer}");
    }
}

#[test]
fn all_to_all_by_datagrams_first_and_over_connections_later() {
    for limits in every_limits() {
        println!("{limits:?}");
        let rounds = Rounds::default();
        run(hybrid(), &limits, |me, engine| exchange_until_connected(&rounds, me, engine));
        let datagrams = rounds.datagrams.map(AtomicU64::into_inner);
        assert!(
            datagrams.iter().all(|sent| *sent >= EARNED),
            "a connection nobody has earned: {datagrams:?}"
        );
    }
}
