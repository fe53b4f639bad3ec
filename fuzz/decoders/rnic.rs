//! A connection that is fed anything, from its set-up in both roles or from behind it: it comes to be or not, goes on or ends with a reason, places nothing outside of what it may,
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

/// The first byte says what the connection is like and which side of its set-up this is, if any, the second how the rest
/// is cut.
pub fn decode(input: &[u8]) {
    let [flags, chunk, stream @ ..] = input else { return };
    let bit = |n: u8| flags >> n & 1 != 0;
    let some = |n: u8| if bit(n) { 2 } else { 0 };
    let own = Proposal {
        revision: if bit(2) { 2 } else { 1 },
        crc: bit(0),
        markers: bit(1),
        peer_to_peer: bit(3),
        ird: some(4),
        ord: some(5),
        private: stream.iter().take(3).copied().collect(),
    };
    match flags >> 6 {
        1 => connect(&own, usize::from(*chunk), stream),
        2 => listen(&own, usize::from(*chunk), stream),
        _ => {
            let settings = Settings {
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
            };
            go_on(settings, usize::from(*chunk), stream);
        }
    }
}

/// A frame of our own.
fn whole(side: Side, bytes: &[u8]) -> Start {
    let (start, len) = Start::decode(side, bytes).expect("it is one").expect("it is all there");
    assert_eq!(len, bytes.len());
    start
}

/// The side that connects, which is told the stream.
fn connect(own: &Proposal, chunk: usize, stream: &[u8]) {
    let request = whole(Side::Request, &own.request());
    assert_eq!((request.revision, &request.private), (own.revision, &own.private));
    let Ok(Some((reply, len))) = Start::decode(Side::Reply, stream) else { return };
    match own.agree(&reply) {
        Ok(agreed) => {
            assert!(!reply.rejected && reply.revision == own.revision && agreed.may_begin);
            assert!(agreed.ird == own.ird && agreed.ord <= own.ord && agreed.crc >= own.crc);
            assert!(agreed.rtr.is_none() || own.peer_to_peer && own.revision == 2);
            go_on(Settings { domain: 1, ..agreed.into() }, chunk, &stream[len..]);
        }
        Err(Refusal::Rejected(why)) => assert!(reply.rejected && why == reply.private),
        Err(Refusal::Unfit(_)) => assert!(!reply.rejected),
    }
}

/// The side that listens: whoever asks as this software does is content with the answer.
fn listen(own: &Proposal, chunk: usize, stream: &[u8]) {
    let Ok(Some((request, len))) = Start::decode(Side::Request, stream) else { return };
    let refused = whole(Side::Reply, &Proposal::reject(&request, b"no"));
    assert!(refused.rejected && refused.private == b"no");
    let (reply, there) = own.reply(&request, b"yes");
    let reply = whole(Side::Reply, &reply);
    assert!(!reply.rejected && reply.private == b"yes" && !there.may_begin);
    assert!(there.ird == own.ird && there.ord <= own.ord);
    if request.enhanced.is_some() == (request.revision == 2) {
        let enhanced = request.enhanced.unwrap_or_default();
        let asks = Proposal {
            revision: request.revision,
            crc: request.crc,
            markers: request.markers,
            peer_to_peer: enhanced.peer_to_peer,
            ird: enhanced.ird,
            ord: enhanced.ord,
            private: request.private.clone(),
        };
        if whole(Side::Request, &asks.request()) == request {
            let here = asks.agree(&reply).expect("it is what was asked for");
            assert_eq!((here.revision, here.crc), (there.revision, there.crc));
            assert_eq!((here.send_markers, here.expect_markers), (there.expect_markers, there.send_markers));
            let fits = here.ord <= there.ird && there.ord <= here.ird;
            assert!(fits || request.enhanced.is_none());
        }
    }
    go_on(Settings { domain: 1, ..there.into() }, chunk, &stream[len..]);
}

/// A connection with work that is told the stream.
fn go_on(settings: Settings, chunk: usize, stream: &[u8]) {
    let mut connection = Connection::new(settings);
    let mut regions = Regions::new();
    let stag = regions.register(BASE, LEN, Rights::ALL, 1).expect("there is room for one");
    assert!(connection.post(0, Work::Read { len: 200, sink_stag: stag, sink_to: BASE, stag: 1, to: 2 }));
    let atomic = Atomic::FetchAdd { add: 1, mask: 0 };
    assert!(connection.post(1, Work::Atomic { stag: 1, to: 8, atomic }));
    assert!(connection.post(2, Work::Send { len: 200, solicited: false, invalidate: None }));
    let (mut sink, mut done) = (Checked::default(), 0);
    let payload = [0u8; LEN as usize];
    for piece in stream.chunks(chunk.max(1)) {
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
