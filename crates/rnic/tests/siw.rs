//! What Linux' siw has put on the wire (`siw.pcap`: rping and perftest over the kernel's software iWARP,
//! recorded by tcpdump; MPA revision 2, neither CRC nor markers): this stack writes the same bytes, and reads them.

mod pair;

use pair::{BASE, Host, settings};
use rnic::stack::*;
use wire::iwarp::ddp::{Header, Target};
use wire::iwarp::rdmap::{Opcode, ReadRequest};

/// Frame 8, client to server: a Send that says where its buffer is.
const SEND: &str = "00224143000000000000000000000001000000000000562918f355d0f9b1300000000bb800000000";
/// Frame 10, server to client: a Read Request for those 3000 bytes.
const REQUEST: &str = "002e414100000000000000010000000100000000359e0a0000005618329f5f0000000bb8\
                       f9b130000000562918f355d000000000";
/// Frame 11, client to server: the head of its answer, and its end.
const RESPONSE: (&str, &str) = ("0bc6c142359e0a0000005618329f5f0072646d612d70696e", "5a5b5c0000000000");
/// Frame 12, server to client: an empty buffer's worth of zeros, sent.
const ANSWER: &str = "00224143000000000000000000000001000000000000000000000000000000000000000000000000";
/// Frame 14, server to client: the head of a Write of 3000 bytes, and its end.
const WRITE: (&str, &str) = ("0bc6c140f4067a000000562918f349d072646d612d70696e", "5a5b5c0000000000");
/// Frame 52: a Send of two bytes, with two of pad.
const PADDED: &str = "00144143000000000000000000000004000000003500004000000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The payload of rping: `rdma-ping-0: ` and letters that rise from A to z, again and again, with a zero at the end.
fn rping() -> Vec<u8> {
    let mut payload = b"rdma-ping-0: ".to_vec();
    payload.extend((b'A'..=b'z').cycle().take(3000 - 1 - payload.len()));
    payload.push(0);
    payload
}

fn host() -> Host {
    let proposal = Proposal { peer_to_peer: false, ird: 1, ord: 1, ..Proposal::default() };
    let (here, _) = settings(&proposal, &proposal);
    Host::new(Settings { segment_max: 8192, interleave: false, ..here })
}

fn out(host: &mut Host) -> Vec<u8> {
    assert!(host.cut());
    let written = host.out.drain(..).collect::<Vec<u8>>();
    host.connection.written(written.len());
    written
}

#[test]
fn the_same_bytes_are_written() {
    let mut client = host();
    let message = &bytes(SEND)[20..36];
    client.memory.bytes[..16].copy_from_slice(message);
    let send = |len| Work::Send { len, solicited: false, invalidate: None };
    assert!(client.post(1, BASE, send(16)));
    assert_eq!(out(&mut client), bytes(SEND));

    let mut server = host();
    let (sink_stag, sink_to) = (0x359e_0a00, 0x5618_329f_5f00);
    let read = Work::Read { len: 3000, sink_stag, sink_to, stag: 0xf9b1_3000, to: 0x5629_18f3_55d0 };
    assert!(server.post(1, BASE, read));
    assert_eq!(out(&mut server), bytes(REQUEST));
    assert!(server.post(2, BASE + 4096, send(16)));
    assert_eq!(out(&mut server), bytes(ANSWER));
    server.memory.bytes[..3000].copy_from_slice(&rping());
    let write = Work::Write { len: 3000, stag: 0xf406_7a00, to: 0x5629_18f3_49d0, immediate: None };
    assert!(server.post(3, BASE, write));
    let written = out(&mut server);
    assert_eq!(written.len(), 3020);
    assert_eq!((&written[..24], &written[3012..]), (&bytes(WRITE.0)[..], &bytes(WRITE.1)[..]));
}

#[test]
fn they_are_read() {
    let mut server = host();
    server.memory.buffers.extend([(BASE, 64), (BASE + 64, 64)]);
    server.feed(&bytes(SEND));
    assert_eq!((server.memory.arrived[0].len, server.memory.placed[0]), (16, (BASE, 16)));
    assert_eq!(server.memory.bytes[..16], bytes(SEND)[20..36]);
    // Padded; its number made the second.
    let mut padded = bytes(PADDED);
    padded[15] = 2;
    server.feed(&padded);
    assert_eq!(server.memory.arrived[1].len, 2);
    assert_eq!(server.memory.bytes[64..66], [0x35, 0]);
    // A Read Request for a region of another process.
    server.feed(&bytes(REQUEST));
    assert_eq!(server.refused(), Some(Cause::RDMAP_STAG));
}

#[test]
fn headers_say_what_tshark_says() {
    let header = |hex: &str| Header::decode(&bytes(hex)[2..]).unwrap();
    let tagged = |opcode, stag, to| Header { last: true, opcode, target: Target::Tagged { stag, to } };
    assert_eq!(header(RESPONSE.0), tagged(Opcode::ReadResponse, 0x359e_0a00, 0x5618_329f_5f00));
    assert_eq!(header(WRITE.0), tagged(Opcode::Write, 0xf406_7a00, 0x5629_18f3_49d0));
    let request = ReadRequest::decode(&bytes(REQUEST)[20..48]).unwrap();
    assert_eq!((request.len, request.source_stag, request.source_to), (3000, 0xf9b1_3000, 0x5629_18f3_55d0));
}

/// The answer of siw to a Read of this stack, with tag and offset of this side in its header.
#[test]
fn an_answer_completes_a_read() {
    let mut server = host();
    let (sink_stag, sink_to) = (server.stag, BASE + 8192);
    let read = Work::Read { len: 3000, sink_stag, sink_to, stag: 0xf9b1_3000, to: 0x5629_18f3_55d0 };
    assert!(server.post(1, BASE, read));
    out(&mut server);
    let mut answer = bytes(RESPONSE.0)[..16].to_vec();
    answer[4..8].copy_from_slice(&sink_stag.to_be_bytes());
    answer[8..16].copy_from_slice(&sink_to.to_be_bytes());
    answer.extend(rping());
    answer.extend(&bytes(RESPONSE.1)[4..]);
    assert_eq!(answer.len(), 3020);
    server.feed(&answer);
    assert_eq!(server.done, [Completion { id: 1, result: Ok(Done::Read) }]);
    assert_eq!(server.memory.bytes[8192..][..3000], rping());
}

/// Frames 4 and 6: how rping's two sides came to their connection.
const ASKED: &str = "4d504120494420526571204672616d651002000400010001";
const AGREED: &str = "4d504120494420526570204672616d651002000400010001";
/// Frames 13 and 15: what stands around the Write.
const SECOND_SEND: &str = "00224143000000000000000000000002000000000000562918f349d0f4067a0000000bb800000000";
const SECOND_ANSWER: &str =
    "00224143000000000000000000000002000000000000000000000000000000000000000000000000";

/// The set-up in both roles: the same frames are written, and those of siw are agreed with.
#[test]
fn the_set_up_is_that_of_siw_in_both_roles() {
    let own = Proposal { peer_to_peer: false, ird: 1, ord: 1, ..Proposal::default() };
    assert_eq!(own.request(), bytes(ASKED));
    let (reply, len) = Start::decode(Side::Reply, &bytes(AGREED)).unwrap().unwrap();
    assert_eq!((len, reply.private.len()), (24, 0));
    let agreed = own.agree(&reply).unwrap();
    let limits = |agreed: Agreed| (agreed.revision, agreed.crc, agreed.ird, agreed.ord, agreed.rtr);
    assert_eq!((limits(agreed), agreed.may_begin), ((2, false, 1, 1, None), true));

    let (request, _) = Start::decode(Side::Request, &bytes(ASKED)).unwrap().unwrap();
    let (answer, agreed) = Proposal { ird: 1, ord: 1, ..Proposal::default() }.reply(&request, &[]);
    assert_eq!(answer, bytes(AGREED));
    assert_eq!((limits(agreed), agreed.may_begin), ((2, false, 1, 1, None), false));
}

/// One round of rping as it was recorded: who sends, and the frame.
fn round() -> Vec<(bool, Vec<u8>)> {
    let long = |(head, end): (&str, &str)| {
        let mut frame = bytes(head)[..16].to_vec();
        frame.extend(rping());
        frame.extend(&bytes(end)[4..]);
        frame
    };
    let (client, server) = (true, false);
    vec![
        (client, bytes(SEND)),
        (server, bytes(REQUEST)),
        (client, long(RESPONSE)),
        (server, bytes(ANSWER)),
        (client, bytes(SECOND_SEND)),
        (server, long(WRITE)),
        (server, bytes(SECOND_ANSWER)),
    ]
}

/// Plays one side of the round against the recording of the other. Tags and offsets of this side's memory, which the recording
/// has of another process, are its own.
fn play(is_client: bool) -> Host {
    let mut here = host();
    let (request, _) = Start::decode(Side::Request, &bytes(ASKED)).unwrap().unwrap();
    let own = Proposal { peer_to_peer: false, ird: 1, ord: 1, ..Proposal::default() };
    let (reply, as_server) = own.reply(&request, &[]);
    let (reply, _) = Start::decode(Side::Reply, &reply).unwrap().unwrap();
    let agreed = if is_client { own.agree(&reply).unwrap() } else { as_server };
    let settings = Settings { segment_max: 8192, interleave: false, domain: pair::DOMAIN, ..agreed.into() };
    here.connection = Connection::new(settings);
    here.memory.buffers.extend([(BASE + 60_000, 64), (BASE + 60_100, 64)]);
    // Of the client: what is read, and what is written. Of the server: what it reads into.
    let recorded: &[(u32, u64, u64)] = match is_client {
        true => {
            &[(0xf9b1_3000, 0x5629_18f3_55d0, BASE + 4096), (0xf406_7a00, 0x5629_18f3_49d0, BASE + 16_384)]
        }
        false => &[(0x359e_0a00, 0x5618_329f_5f00, BASE + 4096)],
    };
    here.memory.at(BASE + 4096, 3000).copy_from_slice(&if is_client { rping() } else { vec![0; 3000] });
    let translated = |frame: &[u8], stag: u32| {
        let mut frame = frame.to_vec();
        for (tag, to, at) in recorded {
            let was = [&tag.to_be_bytes()[..], &to.to_be_bytes()].concat();
            let is = [&stag.to_be_bytes()[..], &at.to_be_bytes()].concat();
            // In the headers tags stand in front of their offsets.
            for at in
                (0..40.min(frame.len() - 12)).filter(|at| frame[*at..].starts_with(&was)).collect::<Vec<_>>()
            {
                frame[at..at + 12].copy_from_slice(&is);
            }
        }
        frame
    };
    for (at, (from_client, frame)) in round().into_iter().enumerate() {
        let frame = if frame[3] == 0x43 { frame } else { translated(&frame, here.stag) };
        if from_client != is_client {
            here.feed(&frame);
            assert!(here.connection.failure().is_none(), "frame {at}: {:?}", here.connection.failure());
            continue;
        }
        let from = BASE + 32_768;
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        let offset = |at: usize| u64::from_be_bytes(frame[at..at + 8].try_into().unwrap());
        let work = match frame[3] {
            0x43 => Some((20, Work::Send { len: 16, solicited: false, invalidate: None })),
            0x40 => Some((16, Work::Write { len: 3000, stag: word(4), to: offset(8), immediate: None })),
            0x41 => {
                let (sink_stag, sink_to, stag, to) = (word(20), offset(24), word(36), offset(40));
                Some((48, Work::Read { len: 3000, sink_stag, sink_to, stag, to }))
            }
            _ => None,
        };
        if let Some((head, work)) = work {
            let payload = &frame[head..frame.len() - 4];
            here.memory.at(from, payload.len().min(3000)).copy_from_slice(payload);
            assert!(here.post(at as u64, from, work));
        }
        assert_eq!(out(&mut here), frame, "frame {at}");
    }
    here.poll();
    here
}

#[test]
fn a_round_of_rping_is_played_as_it_was_recorded() {
    let mut client = play(true);
    assert_eq!(client.memory.arrived.len(), 2);
    assert_eq!(client.memory.at(BASE + 16_384, 3000), rping());
    assert!(client.done.iter().all(|done| done.result == Ok(Done::Sent)) && client.done.len() == 2);
    let mut server = play(false);
    assert_eq!(server.memory.arrived.len(), 2);
    assert_eq!(server.memory.at(BASE + 60_000, 16), &bytes(SEND)[20..36]);
    assert_eq!(server.memory.at(BASE + 4096, 3000), rping());
    let results: Vec<_> = server.done.iter().map(|done| done.result).collect();
    assert_eq!(results, [Done::Read, Done::Sent, Done::Written, Done::Sent].map(Ok));
}
