//! A pair and a queue pair that are told anything by a rank of the job: they place nothing outside of what they may, keep
//! no more than their limits, complete what was posted at most once and in order, and answer in no more bytes than they
//! were sent.

use rnic::stack::rd::{Pair, PairSettings};
use rnic::stack::ud::{Handle, MESSAGES, QueuePair};
use rnic::stack::*;
use wire::datagram::{self, DatagramType, Head, Reliable};

const BASE: u64 = 0x1000;
const LEN: u64 = 0x400;
const BUFFER_LEN: usize = 300;
const BUFFERS: u64 = 100;

#[derive(Default)]
struct Checked {
    buffers: u64,
}

impl Sink for Checked {
    fn receive(&mut self, _msn: u32) -> Receive {
        self.buffers += 1;
        let id = self.buffers;
        if id > BUFFERS { Receive::Later } else { Receive::Buffer { id, len: BUFFER_LEN } }
    }
    fn place(&mut self, place: Place, bytes: &[u8]) {
        match place {
            Place::Region { to, .. } => {
                assert!(to >= BASE && to + bytes.len() as u64 <= BASE + LEN, "{place:?}")
            }
            Place::Buffer { id, offset } => {
                assert!(id <= self.buffers && offset as usize + bytes.len() <= BUFFER_LEN, "{place:?}");
            }
        }
    }
    fn arrived(&mut self, arrived: Arrived) {
        assert!(arrived.id <= self.buffers && arrived.len as usize <= BUFFER_LEN);
    }
    fn atomic(&mut self, _stag: u32, to: u64, _atomic: &Atomic) -> u64 {
        assert!(to.is_multiple_of(8) && to >= BASE && to + 8 <= BASE + LEN);
        7
    }
}

/// The whole input as datagram, as what RD adds, and as a sequence: a length, kind and flags, then content.
pub fn decode(input: &[u8]) {
    if let Ok((head, _)) = Head::decode(input) {
        assert_eq!(Head::claims(input), Some((head.rank, head.id)));
    }
    if let Ok((reliable, rest)) = Reliable::decode(input) {
        let mut again = Vec::new();
        reliable.encode(&mut again);
        assert_eq!(Reliable::decode(&[&again, rest].concat()), Ok((reliable, rest)));
    }
    let mut regions = Regions::new();
    let stag = regions.register(BASE, LEN, Rights::ALL, 1).expect("there is room for one");
    let (mut sink, mut ud_sink) = (Checked::default(), Checked::default());
    let settings =
        PairSettings { rank: 0, id: 1, datagram_max: 576, first: 0, depth: 8, requests: 2, domain: 1 };
    let mut pair = Pair::new(settings);
    assert!(pair.post(0, Work::Read { len: 200, sink_stag: stag, sink_to: BASE, stag: 1, to: 2 }));
    assert!(pair.post(1, Work::Send { len: 900, solicited: false, invalidate: None }));
    let mut queue_pair = QueuePair::new(0, 1);
    queue_pair.watch(stag);
    let back = Handle::new(1, 576);
    let (mut now_ns, mut done, mut out) = (0, 0, Vec::new());
    let payload = [0u8; 1024];
    let mut rest = input;
    while let [len, kind, behind @ ..] = rest {
        let (content, behind) = behind.split_at(behind.len().min(usize::from(*len)));
        rest = behind;
        let kinds =
            [DatagramType::Reliable, DatagramType::Reliable, DatagramType::Reliable, DatagramType::Error];
        let head = Head { kind: kinds[usize::from(kind & 3)], flags: kind >> 2 & 7, rank: 1, id: 2 };
        let _ = pair.receive(now_ns, &head, content, &mut regions, &mut sink);
        now_ns += u64::from(*kind) * 10_000;
        pair.tick(now_ns);
        pair.resume(&mut regions, &mut sink);
        for count in 0.. {
            out.clear();
            let memory = |fpdu: &Fpdu| [&payload[..fpdu.payload_len()], &[]];
            if !pair.transmit(now_ns, &regions, memory, &mut out) {
                break;
            }
            assert!(count < 300 && out.len() <= 576 && Head::decode(&out).is_ok());
        }
        while let Some(completion) = pair.poll() {
            assert_eq!(completion.id, done);
            done += 1;
        }
        let kind = if kind & 1 == 0 { DatagramType::Unreliable } else { DatagramType::Error };
        out.clear();
        let head = Head { kind, flags: 0, rank: u32::from(*len & 31), id: 2 };
        let received = queue_pair.receive(now_ns, &head, content, &regions, &mut ud_sink, &back, &mut out);
        if let Ok(Some(received)) = received {
            ud_sink.arrived(received.arrived);
        }
        assert!(out.is_empty() || kind == DatagramType::Unreliable);
        assert!(out.len() <= datagram::HEAD_LEN + content.len() + datagram::CRC_LEN);
        while queue_pair.returned().is_some() {}
        assert!(queue_pair.messages() <= MESSAGES);
        while queue_pair.error().is_some() {}
        let written = queue_pair.written(stag).expect("it is watched");
        assert!(written.all().iter().all(|range| range.0 >= BASE && range.1 <= BASE + LEN));
    }
}
