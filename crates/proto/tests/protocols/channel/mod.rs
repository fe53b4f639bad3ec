//! Frames over registered memory: whole, once, in order, by whichever path, whatever the adapters
//! delay; and a fault that names the peer for everything a peer must not do.

mod frames;
mod malformed;
mod parted;
mod paths;
mod swarm;

use crate::adapter::{Adapter, Net, Shared};
use fabric::{Device, Rank, Span};
use proto::channel::{Channel, Settings};

fn span(bytes: &[u8]) -> Span {
    Span { addr: bytes.as_ptr() as usize, len: bytes.len() }
}

fn bytes(device: &impl Device, data: Span) -> Vec<u8> {
    let mut bytes = vec![0; data.len];
    device.peek_bytes(data, &mut bytes);
    bytes
}

fn settings() -> Settings {
    Settings {
        frame_bytes: 512,
        staged_bytes: 512,
        slot_bytes: 256,
        slots: 8,
        fast_after: 0,
        fast_peers: 8,
        fast_bytes: 1 << 20,
        buffers: 8,
        window: 4,
        staged: 15,
        cache_headers: true,
    }
}

fn pair(settings: &Settings) -> (Shared, [Channel<Adapter>; 2]) {
    let net = Net::shared(2);
    let channel = |me| Channel::new(Adapter::new(me, &net), settings.clone()).unwrap();
    let channels = [channel(0), channel(1)];
    (net, channels)
}

/// Lets everything arrive that was posted.
fn arrive(net: &Shared) {
    let under_way = || net.get().under_way();
    while let Some(&(from, to)) = under_way().first() {
        net.get().advance(from, to, None);
    }
}

/// Lets everything that was posted come to its end, and everybody look.
fn settle(net: &Shared, channels: &mut [Channel<Adapter>]) {
    loop {
        let (pairs, late) = net.get().pending();
        pairs.iter().for_each(|&(from, to)| net.get().advance(from, to, None));
        late.iter().for_each(|&rank| net.get().finish(rank));
        channels.iter_mut().for_each(look);
        if pairs.is_empty() && late.is_empty() && net.get().under_way().is_empty() {
            return;
        }
    }
}

/// Looks at the next frame of everybody and takes none.
fn look(channel: &mut Channel<Adapter>) {
    let mut position = 0;
    while let Some(from) = channel.source(position) {
        channel.peek(from);
        position += 1;
    }
}

/// Both have slots for each other.
fn connected(settings: &Settings) -> (Shared, [Channel<Adapter>; 2]) {
    let (net, mut channels) = pair(settings);
    for (from, to) in [(0, 1), (1, 0)] {
        assert!(channels[from].try_send(to, [1, 1], Span::EMPTY));
        settle(&net, &mut channels);
        assert!(take(&mut channels[to], from).is_some());
    }
    settle(&net, &mut channels);
    (net, channels)
}

fn take(channel: &mut Channel<Adapter>, from: Rank) -> Option<([u64; 2], Vec<u8>)> {
    let frame = channel.peek(from)?;
    let taken = (frame.head, bytes(channel, frame.data));
    channel.pop(from);
    Some(taken)
}
