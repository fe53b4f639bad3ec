//! Unreliable datagrams over a way that loses, doubles and mixes them, and any input to both kinds of queue pairs.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
mod net;
#[path = "../../../fuzz/decoders/datagrams.rs"]
mod stack_decoders;

use net::Random;
use rnic::stack::ud::{Append, Error, Handle, MESSAGES_OF_PEER, PATIENCE_NS, QueuePair, Received};
use rnic::stack::*;
use std::collections::HashMap;
use std::iter::once;
use wire::datagram::Head;

const BUFFER: usize = 5000;

/// Receive buffers and a region of 4096 bytes at address 0.
#[derive(Default)]
struct Memory {
    buffers: HashMap<u64, Vec<u8>>,
    taken: u64,
    region: Vec<u8>,
    is_empty: bool,
}

impl Sink for Memory {
    fn receive(&mut self, _msn: u32) -> Receive {
        if self.is_empty {
            return Receive::Later;
        }
        self.taken += 1;
        self.buffers.insert(self.taken, vec![0; BUFFER]);
        Receive::Buffer { id: self.taken, len: BUFFER }
    }
    fn place(&mut self, place: Place, bytes: &[u8]) {
        let (memory, at) = match place {
            Place::Region { to, .. } => (&mut self.region, to as usize),
            Place::Buffer { id, offset } => (self.buffers.get_mut(&id).unwrap(), offset as usize),
        };
        memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn arrived(&mut self, _arrived: Arrived) {
        unreachable!("what comes stands in the completion");
    }
    fn atomic(&mut self, _stag: u32, _to: u64, _atomic: &Atomic) -> u64 {
        unreachable!("there are none on UD");
    }
}

struct Side {
    queue_pair: QueuePair,
    memory: Memory,
    regions: Regions,
    stag: u32,
    answers: Vec<Vec<u8>>,
}

impl Side {
    fn new(rank: u32) -> Side {
        let mut regions = Regions::new();
        let stag = regions.register(0, 4096, Rights::REMOTE_WRITE, 1).unwrap();
        let memory = Memory { region: vec![0; 4096], ..Memory::default() };
        Side { queue_pair: QueuePair::new(rank, 1), memory, regions, stag, answers: Vec::new() }
    }

    fn take(&mut self, now_ns: u64, datagram: &[u8]) -> Option<Received> {
        let (head, content) = Head::decode(datagram).ok()?;
        let mut answer = Vec::new();
        let (back, memory) = (Handle::new(9, 1472), &mut self.memory);
        let came = self
            .queue_pair
            .receive(now_ns, &head, content, &self.regions, memory, &back, &mut answer)
            .unwrap();
        if !answer.is_empty() {
            assert!(answer.len() <= datagram.len(), "no amplification");
            self.answers.push(answer);
        }
        came
    }
}

fn message(sender: u32, number: u32) -> Vec<u8> {
    let mut random = Random(u64::from(sender) << 32 | u64::from(number));
    let len = [0, 1, 100, 1400, 3000, BUFFER as u64][random.below(6) as usize];
    (0..len).map(|_| random.next() as u8).collect()
}

/// Of three senders, mixed, some lost and some doubled: what comes is right, from whom it says, and comes once; every buffer is
/// filled, given back or still in use.
#[test]
fn messages_come_whole_and_once_or_not_at_all() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let has_losses = seed % 2 == 0;
        let mut into = Side::new(9);
        let senders: Vec<Side> = (0..3).map(Side::new).collect();
        let mut handles = [Handle::new(5, 600); 3];
        let mut sent: Vec<HashMap<Vec<u8>, usize>> = vec![HashMap::new(); 3];
        let (mut came, mut now_ns) = ([0; 3], 0);
        for round in 0..30 {
            let mut way: Vec<Vec<u8>> = Vec::new();
            for (at, sender) in senders.iter().enumerate() {
                for part in 0..2 {
                    let message = message(at as u32, 2 * round + part);
                    *sent[at].entry(message.clone()).or_default() += 1;
                    sender.queue_pair.send(
                        &mut handles[at],
                        once(&message[..]),
                        false,
                        whole(|datagram| {
                            let copies =
                                if has_losses { [0, 1, 1, 1, 1, 1, 2][random.below(7) as usize] } else { 1 };
                            (0..copies).for_each(|_| way.push(datagram.to_vec()));
                        }),
                    );
                }
            }
            while !way.is_empty() {
                now_ns += 1000;
                let datagram = way.swap_remove(random.below(way.len() as u64) as usize);
                let Some(received) = into.take(now_ns, &datagram) else { continue };
                let mut bytes = into.memory.buffers.remove(&received.arrived.id).unwrap();
                bytes.truncate(received.arrived.len as usize);
                let from = received.from as usize;
                let left = sent[from].get_mut(&bytes).expect("it was sent");
                *left = left.checked_sub(1).expect("it comes once");
                came[from] += 1;
            }
        }
        into.queue_pair.tick(now_ns + PATIENCE_NS);
        while let Some(id) = into.queue_pair.returned() {
            assert!(into.memory.buffers.remove(&id).is_some(), "seed {seed}");
        }
        assert!(into.memory.buffers.is_empty(), "seed {seed}: buffers are lost");
        assert_eq!((into.queue_pair.messages(), into.queue_pair.error()), (0, None));
        let total: usize = came.iter().sum();
        assert!(if has_losses { (30..180).contains(&total) } else { total == 180 }, "seed {seed}: {came:?}");
    }
}

/// Gives datagrams on as they are.
fn whole(mut each: impl FnMut(&[u8])) -> impl FnMut(Append) {
    move |append| {
        let mut datagram = Vec::new();
        append(&mut datagram);
        each(&datagram);
    }
}

#[test]
fn what_begins_and_does_not_end_is_bounded() {
    let mut into = Side::new(9);
    let sender = Side::new(1);
    let mut handle = Handle::new(5, 600);
    for number in 0..10u64 {
        let mut first = None;
        sender.queue_pair.send(
            &mut handle,
            once(&[7; 2000][..]),
            false,
            whole(|datagram| {
                first.get_or_insert(datagram.to_vec());
            }),
        );
        assert_eq!(into.take(number, &first.unwrap()), None);
        assert!(into.queue_pair.messages() <= MESSAGES_OF_PEER);
    }
    assert_eq!(std::iter::from_fn(|| into.queue_pair.returned()).count(), 10 - MESSAGES_OF_PEER);
    assert_eq!(into.queue_pair.timeout_ns(), Some(6 + PATIENCE_NS));
    into.queue_pair.tick(9 + PATIENCE_NS);
    assert_eq!(std::iter::from_fn(|| into.queue_pair.returned()).count(), MESSAGES_OF_PEER);
    assert_eq!(into.queue_pair.timeout_ns(), None);
}

#[test]
fn a_record_tells_what_was_written() {
    let mut into = Side::new(9);
    let sender = Side::new(1);
    let handle = Handle::new(5, 600);
    into.queue_pair.watch(into.stag);
    let payload: Vec<u8> = (0..3000u32).map(|at| at as u8).collect();
    let mut parts = Vec::new();
    sender.queue_pair.write(
        &handle,
        into.stag,
        500,
        &payload,
        whole(|datagram| parts.push(datagram.to_vec())),
    );
    let lost = parts.remove(2);
    parts.iter().rev().for_each(|part| assert_eq!(into.take(0, part), None));
    let ranges = into.queue_pair.written(into.stag).unwrap().all().to_vec();
    let [(500, gap), (behind, 3500)] = ranges[..] else { panic!("{ranges:?}") };
    assert!(into.memory.region[500..gap as usize] == payload[..gap as usize - 500]);
    assert!(into.memory.region[behind as usize..3500] == payload[behind as usize - 500..]);
    assert!(into.memory.region[gap as usize..behind as usize].iter().all(|byte| *byte == 0));
    into.take(0, &lost);
    assert_eq!(into.queue_pair.unwatch(into.stag).unwrap().all(), [(500, 3500)]);
    assert!(into.memory.region[500..3500] == payload);
}

/// What is wrong is named on both sides, and the queue pair goes on with everybody.
#[test]
fn errors_stand_in_the_queues_of_both_sides() {
    let (mut into, mut sender) = (Side::new(9), Side::new(1));
    let mut handle = Handle::new(5, 1472);
    let mut sent = Vec::new();
    sender.queue_pair.write(
        &handle,
        into.stag + 1,
        0,
        &[1; 100],
        whole(|datagram| sent.push(datagram.to_vec())),
    );
    sender.queue_pair.write(
        &handle,
        into.stag,
        4090,
        &[1; 100],
        whole(|datagram| sent.push(datagram.to_vec())),
    );
    let parts = once(&[1; BUFFER + 1][..]);
    sender.queue_pair.send(&mut handle, parts, false, whole(|datagram| sent.push(datagram.to_vec())));
    sent.iter().for_each(|datagram| assert_eq!(into.take(0, datagram), None));
    let causes = [Cause::TAGGED_STAG, Cause::TAGGED_BOUNDS, Cause::UNTAGGED_TOO_LONG];
    let msns = [None, None, Some(1)];
    for answer in std::mem::take(&mut into.answers) {
        assert_eq!(sender.take(0, &answer), None);
    }
    assert!(sender.answers.is_empty(), "errors are not answered");
    for (cause, msn) in causes.into_iter().zip(msns) {
        assert_eq!(into.queue_pair.error(), Some(Error { peer: 1, cause, msn, is_own: false }));
        assert_eq!(sender.queue_pair.error(), Some(Error { peer: 9, cause, msn, is_own: true }));
    }
    assert!(into.memory.region.iter().all(|byte| *byte == 0));
    let mut came = None;
    let parts = [&b"goes"[..], b"", b" on"].into_iter();
    sender.queue_pair.send(&mut handle, parts, true, whole(|datagram| came = into.take(0, datagram)));
    assert!(came.is_some_and(|received| received.from == 1 && received.arrived.solicited));
}

#[test]
fn any_input_is_taken_or_dropped() {
    let mut good: Vec<Vec<u8>> = Vec::new();
    let mut keep = |datagram: &[u8]| {
        let content = &datagram[16..datagram.len() - 4];
        let len = content.len().min(255);
        good.push([&[len as u8, 0], &content[..len]].concat());
        good.push(datagram.to_vec());
    };
    let sender = QueuePair::new(3, 1);
    let mut handle = Handle::new(5, 200);
    sender.send(&mut handle, once(&[4; 290][..]), true, whole(&mut keep));
    sender.write(&handle, 0x101, 0x1010, &[4; 200], whole(&mut keep));
    let mut net = net::Net::new(
        2,
        1 << 16,
        net::Link { delay_ns: 10, ns_per_byte: 0.0, queue_bytes: 1 },
        Default::default(),
        1,
    );
    net.join(0, 1, 300, 0);
    for (id, work) in [
        Work::Send { len: 280, solicited: false, invalidate: None },
        Work::Write { len: 90, stag: 0x101, to: 0x1000, immediate: None },
        Work::Read { len: 10, sink_stag: 0x101, sink_to: net::BASE, stag: 0x101, to: 0x1000 },
    ]
    .into_iter()
    .enumerate()
    {
        net.hosts[0].post(1, id as u64, net::BASE, work);
        let datagram = net.hosts[0].transmit(1, 1).unwrap();
        let content = &datagram[16..datagram.len() - 4];
        good.push([&[content.len().min(255) as u8, 4], &content[..content.len().min(255)]].concat());
        good.push(datagram);
    }
    let all = good.concat();
    good.push(all);
    let good: Vec<&[u8]> = good.iter().map(|input| &input[..]).collect();
    good.iter().for_each(|input| stack_decoders::decode(input));
    inputs::try_many(&good, 100_000, stack_decoders::decode);
}
