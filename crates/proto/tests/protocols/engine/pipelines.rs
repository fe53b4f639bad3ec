//! The pipelines on a device that a test looks into: what they move, and what they do where
//! registrations and staging memory run out.

use crate::fake::{Fake, Net};
use fabric::Span;
use proto::{Engine, Event, Limits, Mode, OpId, Protocol, Tuning, Want};
use std::cell::RefCell;
use std::rc::Rc;

const CONTEXT: u64 = 1;

struct Pair {
    net: Rc<RefCell<Net>>,
    engines: [Engine<Fake>; 2],
}

impl Pair {
    fn new(protocol: Protocol, tuning: &Tuning, regions: usize) -> Pair {
        let net = Net::new(2, 8);
        net.borrow_mut().regions.0 = regions;
        let limits = Limits {
            eager_bytes: 8,
            unexpected_bytes: 1 << 20,
            adapt: false,
            rtr: false,
            force: Some(protocol),
            ..Limits::default()
        };
        let engines = [0, 1].map(|me| {
            let mut engine = Engine::new(Fake::new(me, &net), limits.clone());
            engine.tune(tuning.clone());
            engine
        });
        Pair { net, engines }
    }

    /// Lets everything arrive and both look around.
    fn look(&mut self) {
        for (from, to) in [(0, 1), (1, 0)] {
            while self.net.borrow_mut().under_way(from, to) {
                self.net.borrow_mut().arrive(from, to);
            }
        }
        for engine in &mut self.engines {
            engine.progress().unwrap();
        }
    }

    fn send(&mut self, tag: i32, data: &[u8]) -> Option<OpId> {
        let span = Span { addr: data.as_ptr() as usize, len: data.len() };
        self.engines[0].send(1, CONTEXT, tag, span, Mode::Standard).unwrap()
    }

    fn receive(&mut self, tag: i32, buffer: &mut [u8]) -> OpId {
        let span = Span { addr: buffer.as_mut_ptr() as usize, len: buffer.len() };
        self.engines[1].receive(Want { source: Some(0), context: CONTEXT, tag: Some(tag) }, span).unwrap()
    }

    /// Messages of these lengths, all at once, received in the opposite order.
    fn exchange(&mut self, lens: &[usize]) {
        let data: Vec<Vec<u8>> = lens
            .iter()
            .enumerate()
            .map(|(i, len)| (0..*len).map(|k| (k * 7 + k / 256 + i) as u8).collect())
            .collect();
        let mut buffers: Vec<Vec<u8>> = lens.iter().map(|len| vec![0; *len]).collect();
        let sends: Vec<_> = data.iter().enumerate().map(|(i, data)| self.send(i as i32, data)).collect();
        (0..20).for_each(|_| self.look());
        let mut receives: Vec<_> = Vec::new();
        for (i, buffer) in buffers.iter_mut().enumerate().rev() {
            receives.push(self.receive(i as i32, buffer));
            self.look();
        }
        let mut rounds = 0;
        while !self.engines.iter().all(|engine| engine.pending().is_empty()) {
            self.look();
            rounds += 1;
            assert!(rounds < 100_000, "{:?}", self.engines.each_ref().map(Engine::pending));
        }
        sends
            .into_iter()
            .flatten()
            .for_each(|op| assert_eq!(self.engines[0].take(op).unwrap().failure, None));
        receives.into_iter().for_each(|op| assert_eq!(self.engines[1].take(op).unwrap().failure, None));
        assert!(buffers == data);
        assert_eq!([0, 1].map(|rank| self.net.borrow().shares_held(rank)), [0, 0]);
    }

    fn count(&self, event: Event) -> u64 {
        self.engines[0].counters().get(event)
    }

    fn regions(&self) -> Vec<usize> {
        self.net.borrow().regions.1.clone()
    }
}

const PIPELINES: [Protocol; 4] =
    [Protocol::Pipeline, Protocol::CachingPipeline, Protocol::Superpipeline, Protocol::CopyPipeline];

fn small() -> Tuning {
    Tuning {
        head_bytes: 20,
        rdma_offset_bytes: 1000,
        block_bytes: 4096,
        depth: 3,
        staging_bytes: 16 * 1024,
        staged_messages: 2,
        ..Tuning::default()
    }
}

#[test]
fn blocks_and_chunks_are_as_planned() {
    let mut pair = Pair::new(Protocol::Pipeline, &small(), usize::MAX);
    pair.exchange(&[100_000]);
    assert_eq!(pair.count(Event::BlockWritten), (100_000u64 - 1000).div_ceil(4096));
    assert_eq!(pair.count(Event::FrameSent), 980u64.div_ceil(64));
    assert_eq!(pair.regions(), [0, 0]);
    // 3, 4 and 4 blocks of 4088 bytes, up to the length of a buffer.
    let mut pair = Pair::new(Protocol::Superpipeline, &small(), usize::MAX);
    pair.exchange(&[45_000]);
    assert_eq!((pair.count(Event::ChunkWritten), pair.count(Event::FrameSent)), (4, 0));
    assert_eq!(pair.regions(), [1, 1], "staging memory, once");
}

/// All staging memory is in use: receivers wait for it, and so do senders.
#[test]
fn more_messages_than_staging_memory() {
    for protocol in PIPELINES {
        let mut pair = Pair::new(protocol, &small(), usize::MAX);
        pair.exchange(&[50_000; 12]);
        pair.exchange(&[16_000, 9, 12_264, 12_265, 100_000, 40, 4088, 4089]);
    }
}

/// A side that can register nothing, or one region at a time, needs no memory it cannot have.
#[test]
fn registrations_run_out() {
    for protocol in Protocol::ALL.map(|(protocol, _)| protocol) {
        for regions in [0, 1, 2] {
            let mut pair = Pair::new(protocol, &small(), regions);
            pair.exchange(&[50_000, 9, 5_000, 30_000]);
            assert!(pair.regions().into_iter().all(|held| held <= 1), "{protocol:?}");
        }
    }
}
