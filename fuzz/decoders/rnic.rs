//! A connection that is fed anything: it goes on or ends with a reason, places nothing outside of what it may,
//! and completes what was posted, each once and in order.

use rnic::stack::*;

const BASE: u64 = 0x1000;
const LEN: u64 = 0x400;
const BUFFER_LEN: usize = 300;
const BUFFERS: u64 = 4;

#[derive(Default)]
struct Checked {
    buffers: u64,
    filled: u64,
}

impl Sink for Checked {
    fn receive(&mut self, _msn: u32) -> Receive {
        self.buffers += 1;
        let id = self.buffers;
        if id > BUFFERS { Receive::None } else { Receive::Buffer { id, len: BUFFER_LEN } }
    }
    fn place(&mut self, place: Place, bytes: &[u8]) {
        match place {
            Place::Region { to, .. } => {
                assert!(
                    to >= BASE && to + bytes.len() as u64 <= BASE + LEN,
                    "{place:?}, {} bytes",
                    bytes.len()
                );
            }
            Place::Buffer { id, offset } => {
                assert!(id == self.buffers && offset as usize + bytes.len() <= BUFFER_LEN, "{place:?}");
            }
        }
    }
    fn arrived(&mut self, arrived: Arrived) {
        self.filled += 1;
        assert!(arrived.id == self.filled && arrived.len as usize <= BUFFER_LEN);
    }
    fn atomic(&mut self, _stag: u32, to: u64, _atomic: &Atomic) -> u64 {
        assert!(to.is_multiple_of(8) && to >= BASE && to + 8 <= BASE + LEN);
        7
    }
}

/// The first byte says what the connection is like, the second how the rest is cut.
pub fn decode(input: &[u8]) {
    let [flags, chunk, stream @ ..] = input else { return };
    let bit = |n: u8| flags >> n & 1 != 0;
    let mut connection = Connection::new(Settings {
        segment_max: SEGMENT_MIN,
        crc: bit(0),
        send_markers: bit(1),
        expect_markers: bit(2),
        ird: 2,
        ord: 2,
        depth: 16,
        domain: 1,
        may_begin: bit(3),
        rtr: if bit(4) { Some(Rtr::Read) } else { None },
        interleave: bit(5),
    });
    let mut regions = Regions::new();
    let stag = regions.register(BASE, LEN, Rights::ALL, 1).expect("there is room for one");
    assert!(connection.post(0, Work::Read { len: 200, sink_stag: stag, sink_to: BASE, stag: 1, to: 2 }));
    let atomic = Atomic::FetchAdd { add: 1, mask: 0 };
    assert!(connection.post(1, Work::Atomic { stag: 1, to: 8, atomic }));
    assert!(connection.post(2, Work::Send { len: 200, solicited: false, invalidate: None }));
    let (mut sink, mut done) = (Checked::default(), 0);
    let payload = [0u8; LEN as usize];
    for piece in stream.chunks(usize::from(*chunk).max(1)) {
        assert_eq!(connection.feed(piece, &mut regions, &mut sink), piece.len());
        while let Some(mut fpdu) = connection.next_fpdu(&regions) {
            fpdu.seal(&[&payload[..fpdu.payload_len()]]);
            connection.written(fpdu.len());
        }
        while let Some(completion) = connection.poll() {
            assert_eq!(completion.id, done);
            done += 1;
        }
    }
    connection.closed();
    done += std::iter::from_fn(|| connection.poll()).count() as u64;
    assert_eq!(done, 3);
    assert!(connection.failure().is_some() && connection.next_fpdu(&regions).is_none());
}
