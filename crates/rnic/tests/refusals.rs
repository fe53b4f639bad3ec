//! Whatever breaks a rule ends the connection with the Terminate that names the rule, places nothing,
//! and flushes what was posted.

mod pair;

use pair::raw::{fpdu, segment, tagged, untagged};
use pair::{BASE, DOMAIN, Host, settings};
use rnic::stack::*;
use wire::iwarp::ddp::{Header, Target, queue};
use wire::iwarp::rdmap::{AtomicRequest, AtomicResponse, Opcode, ReadRequest};

const OPEN: u64 = BASE + 0x1000;
const OPEN_LEN: u64 = 0x100;

/// A host with one region of 256 bytes for everybody, and what else the rules are about.
struct Victim {
    host: Host,
    open: u32,
    read_only: u32,
    write_only: u32,
    foreign: u32,
    ended: u32,
}

fn victim(crc: bool) -> Victim {
    let proposal = Proposal { crc, ird: 2, ord: 2, ..Proposal::default() };
    let (_, there) = settings(&proposal, &proposal);
    let mut host = Host::new(there);
    assert!(host.regions.deregister(host.stag), "nothing but what is registered here");
    let regions = &mut host.regions;
    let open = regions.register(OPEN, OPEN_LEN, Rights::ALL, DOMAIN).unwrap();
    let read_only = regions.register(OPEN, OPEN_LEN, Rights::REMOTE_READ, DOMAIN).unwrap();
    let write_only = regions.register(OPEN, OPEN_LEN, Rights::REMOTE_WRITE, DOMAIN).unwrap();
    let foreign = regions.register(OPEN, OPEN_LEN, Rights::ALL, DOMAIN + 1).unwrap();
    let ended = regions.register(OPEN, OPEN_LEN, Rights::ALL, DOMAIN).unwrap();
    assert!(regions.deregister(ended));
    host.memory.buffers.push_back((BASE, 64));
    Victim { host, open, read_only, write_only, foreign, ended }
}

/// Feeds a stream to a victim in whole and byte by byte, with and without CRC.
fn refused(cause: Cause, stream: impl Fn(&Victim) -> Vec<u8>) -> Terminate {
    let mut said = None;
    for crc in [false, true] {
        for chunk in [usize::MAX, 1, 7] {
            let mut victim = victim(crc);
            let stream = stream(&victim);
            let send = Work::Send { len: 8, solicited: false, invalidate: None };
            assert!(victim.host.post(99, BASE, send));
            for piece in stream.chunks(chunk.min(stream.len())) {
                victim.host.feed(piece);
            }
            let Some(Failure::Refused(terminate)) = victim.host.connection.failure().copied() else {
                panic!("{cause}: {:?}, CRC {crc}", victim.host.connection.failure());
            };
            assert_eq!(terminate.cause, cause, "CRC {crc}, {chunk} bytes at a time");
            assert!(said.replace(terminate).is_none_or(|before| before == terminate));
            ended_well(&mut victim, terminate);
        }
    }
    said.expect("tried")
}

/// What holds behind every refusal.
fn ended_well(victim: &mut Victim, terminate: Terminate) {
    let host = &mut victim.host;
    assert_eq!(host.memory.placed, [], "nothing is placed");
    assert_eq!(host.memory.arrived, []);
    assert_eq!(host.done, [Completion { id: 99, result: Err(NotDone::Flushed) }]);
    assert!(host.cut() && !host.cut(), "one Terminate, and nothing behind it");
    // The other side reads it, and says nothing.
    let crc = host.out.iter().rev().take(4).any(|byte| *byte != 0);
    let proposal = Proposal { crc, ..Proposal::default() };
    let (here, _) = settings(&proposal, &proposal);
    let mut peer = Host::new(here);
    assert!(peer.cut());
    assert!(peer.post(5, BASE, Work::Send { len: 8, solicited: false, invalidate: None }));
    let word: Vec<u8> = host.out.drain(..).collect();
    peer.feed(&word);
    assert_eq!(peer.connection.failure(), Some(&Failure::Terminated(terminate)));
    assert_eq!(peer.done, [Completion { id: 5, result: Err(NotDone::Flushed) }]);
    assert!(!peer.cut());
}

fn write(stag: u32, to: u64, body: &[u8]) -> Vec<u8> {
    tagged(Opcode::Write, true, stag, to, body)
}

fn read(stag: u32, to: u64, len: u32) -> ReadRequest {
    ReadRequest { sink_stag: 9, sink_to: 8, len, source_stag: stag, source_to: to }
}

fn ask(msn: u32, request: ReadRequest) -> Vec<u8> {
    untagged(Opcode::ReadRequest, true, queue::REQUEST, msn, 0, &request.encode())
}

fn atomic(stag: u32, to: u64, atomic: Option<Atomic>) -> Vec<u8> {
    let body = AtomicRequest { id: 1, stag, to, atomic }.encode();
    untagged(Opcode::AtomicRequest, true, queue::REQUEST, 1, 0, &body)
}

const ADD: Option<Atomic> = Some(Atomic::FetchAdd { add: 1, mask: 0 });

#[test]
fn writes_outside_of_what_is_registered() {
    refused(Cause::TAGGED_STAG, |v| write(v.ended, OPEN, &[1]));
    refused(Cause::TAGGED_STAG, |v| write(v.open ^ 0x80, OPEN, &[1]));
    refused(Cause::TAGGED_STAG, |_| write(0, OPEN, &[1]));
    refused(Cause::TAGGED_DOMAIN, |v| write(v.foreign, OPEN, &[1]));
    refused(Cause::RDMAP_RIGHTS, |v| write(v.read_only, OPEN, &[1]));
    refused(Cause::TAGGED_WRAP, |v| write(v.open, u64::MAX, &[1, 2]));
    refused(Cause::TAGGED_BOUNDS, |v| write(v.open, OPEN - 1, &[1]));
    refused(Cause::TAGGED_BOUNDS, |v| write(v.open, OPEN + OPEN_LEN, &[1]));
    let terminate = refused(Cause::TAGGED_BOUNDS, |v| write(v.open, OPEN + OPEN_LEN - 2, &[1, 2, 3]));
    assert_eq!(terminate.segment_len, Some(17));
    assert_eq!(terminate.ddp.unwrap()[..2], [0xc1, 0x40]);
    assert_eq!(terminate.request, None);
}

#[test]
fn an_empty_segment_names_nothing() {
    let mut victim = victim(true);
    victim.host.feed(&write(0xdead_beef, u64::MAX, &[]));
    victim.host.feed(&ask(1, read(0xdead_beef, u64::MAX, 0)));
    assert_eq!(victim.host.connection.failure(), None);
}

#[test]
fn requests_for_what_is_not_theirs() {
    refused(Cause::RDMAP_STAG, |v| ask(1, read(v.ended, OPEN, 1)));
    refused(Cause::RDMAP_DOMAIN, |v| ask(1, read(v.foreign, OPEN, 1)));
    refused(Cause::RDMAP_RIGHTS, |v| ask(1, read(v.write_only, OPEN, 1)));
    refused(Cause::RDMAP_BOUNDS, |v| ask(1, read(v.open, OPEN, 0x101)));
    refused(Cause::RDMAP_WRAP, |v| ask(1, read(v.open, u64::MAX - 1, 3)));
    refused(Cause::RDMAP_WRAP, |v| ask(1, ReadRequest { sink_to: u64::MAX, ..read(v.open, OPEN, 3) }));
    let terminate = refused(Cause::RDMAP_STAG, |v| ask(1, read(v.open ^ 1, OPEN, 1)));
    let request = ReadRequest::decode(&terminate.request.unwrap()).unwrap();
    assert_eq!((request.len, request.sink_stag, terminate.segment_len), (1, 9, Some(46)));
    refused(Cause::RDMAP_STAG, |v| atomic(v.ended, OPEN, ADD));
    refused(Cause::RDMAP_RIGHTS, |v| atomic(v.read_only, OPEN, ADD));
    refused(Cause::RDMAP_RIGHTS, |v| atomic(v.write_only, OPEN, ADD));
    refused(Cause::RDMAP_BOUNDS, |v| atomic(v.open, OPEN + OPEN_LEN - 7, ADD));
    refused(Cause::RDMAP_STREAM, |v| atomic(v.open, OPEN + 4, ADD));
    refused(Cause::RDMAP_OPCODE, |v| atomic(v.open, OPEN, None));
}

#[test]
fn more_requests_than_were_agreed_on() {
    refused(Cause::UNTAGGED_NO_BUFFER, |v| {
        (1..=3).flat_map(|msn| ask(msn, read(v.open, OPEN, 16))).collect()
    });
}

#[test]
fn a_region_that_ends_before_its_answer() {
    let mut victim = victim(true);
    victim.host.feed(&ask(1, read(victim.open, OPEN, 16)));
    assert!(victim.host.regions.deregister(victim.open));
    assert!(victim.host.cut() && !victim.host.cut());
    assert_eq!(victim.host.refused(), Some(Cause::RDMAP_STAG));
}

#[test]
fn queues_numbers_and_offsets() {
    let send = |qn, msn, mo, len: usize| untagged(Opcode::Send, true, qn, msn, mo, &vec![1; len]);
    refused(Cause::UNTAGGED_QN, |_| send(4, 1, 0, 4));
    refused(Cause::UNTAGGED_QN, |_| send(u32::MAX, 1, 0, 4));
    refused(Cause::RDMAP_OPCODE, |_| send(1, 1, 0, 4));
    refused(Cause::RDMAP_OPCODE, |_| send(3, 1, 0, 4));
    refused(Cause::UNTAGGED_MSN, |_| send(0, 0, 0, 4));
    refused(Cause::UNTAGGED_MSN, |_| send(0, 2, 0, 4));
    refused(Cause::UNTAGGED_MO, |_| send(0, 1, 1, 4));
    refused(Cause::UNTAGGED_TOO_LONG, |_| send(0, 1, 0, 65));
    refused(Cause::UNTAGGED_MSN, |v| ask(2, read(v.open, OPEN, 4)));
    let request = read(0, 0, 0).encode();
    let ask = |last, mo, body: &[u8]| untagged(Opcode::ReadRequest, last, queue::REQUEST, 1, mo, body);
    refused(Cause::UNTAGGED_MO, |_| ask(true, 4, &request));
    refused(Cause::UNTAGGED_TOO_LONG, |_| ask(false, 0, &request));
    refused(Cause::UNTAGGED_TOO_LONG, |_| ask(true, 0, &[0; 29]));
    refused(Cause::RDMAP_UNSPECIFIED, |_| ask(true, 0, &request[..27]));
    let immediate = |len: usize| untagged(Opcode::Immediate, true, queue::SEND, 1, 0, &vec![1; len]);
    refused(Cause::RDMAP_UNSPECIFIED, |_| immediate(7));
    refused(Cause::UNTAGGED_TOO_LONG, |_| immediate(9));
}

#[test]
fn no_buffer_is_posted() {
    let mut victim = victim(false);
    victim.host.memory.buffers.clear();
    let message = untagged(Opcode::Send, true, 0, 1, 0, &[]);
    victim.host.feed(&message);
    assert_eq!(victim.host.refused(), Some(Cause::UNTAGGED_NO_BUFFER));
    // One that comes later is waited for: nothing behind it is taken.
    let mut victim = self::victim(true);
    let buffer = victim.host.memory.buffers.pop_front().unwrap();
    victim.host.memory.without = Receive::Later;
    victim.host.feed(&message);
    victim.host.feed(&write(victim.open, OPEN, &[7]));
    assert_eq!((victim.host.memory.arrived.len(), victim.host.memory.placed.len()), (0, 0));
    victim.host.memory.buffers.push_back(buffer);
    victim.host.feed(&[]);
    assert_eq!((victim.host.memory.arrived.len(), victim.host.memory.placed.len()), (1, 1));
    assert_eq!(victim.host.connection.failure(), None);
}

#[test]
fn versions_opcodes_and_lengths() {
    let with = |at: usize, value: u8, opcode: Opcode| {
        let target = if opcode.is_tagged() {
            Target::Tagged { stag: 1, to: 2 }
        } else {
            Target::Untagged { qn: 0, msn: 1, mo: 0, invalidate: 0 }
        };
        let mut bytes = segment(Header { last: true, opcode, target }, &[1; 8]);
        bytes[at] = value;
        fpdu(&bytes)
    };
    refused(Cause::TAGGED_VERSION, |_| with(0, 0xc2, Opcode::Write));
    refused(Cause::UNTAGGED_VERSION, |_| with(0, 0x40, Opcode::Send));
    refused(Cause::RDMAP_VERSION, |_| with(1, 0x83, Opcode::Send));
    refused(Cause::RDMAP_OPCODE, |_| with(1, 0x4f, Opcode::Send));
    refused(Cause::RDMAP_OPCODE, |_| with(1, 0x43, Opcode::Write));
    for len in 0..14 {
        refused(Cause::DDP_CATASTROPHIC, |_| fpdu(&[0xc1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..len]));
    }
}

#[test]
fn messages_that_change_in_the_middle() {
    let mut victim = victim(true);
    victim.host.feed(&untagged(Opcode::Send, false, 0, 1, 0, &[1; 4]));
    victim.host.feed(&untagged(Opcode::SendSolicited, true, 0, 1, 4, &[1; 4]));
    assert_eq!(victim.host.refused(), Some(Cause::RDMAP_OPCODE));
    assert_eq!(victim.host.connection.unfinished(), Some(BASE));
    let mut victim = self::victim(true);
    victim.host.feed(&untagged(Opcode::Send, false, 0, 1, 0, &[]));
    victim.host.feed(&untagged(Opcode::Immediate, true, 0, 1, 0, &[1; 8]));
    assert_eq!(victim.host.refused(), Some(Cause::RDMAP_OPCODE));
    let mut victim = self::victim(true);
    victim.host.feed(&untagged(Opcode::Send, false, 0, 1, 0, &[1; 60]));
    victim.host.feed(&untagged(Opcode::Send, true, 0, 1, 60, &[1; 5]));
    assert_eq!(victim.host.refused(), Some(Cause::UNTAGGED_TOO_LONG));
    assert_eq!(victim.host.memory.placed, [(BASE, 60)]);
}

#[test]
fn answers_that_nobody_asked_for() {
    refused(Cause::RDMAP_OPCODE, |v| tagged(Opcode::ReadResponse, true, v.open, OPEN, &[1]));
    let response = AtomicResponse { id: 0, original: 1 }.encode();
    let answer = |msn| untagged(Opcode::AtomicResponse, true, queue::ATOMIC_RESPONSE, msn, 0, &response);
    refused(Cause::RDMAP_OPCODE, |_| answer(1));
    refused(Cause::UNTAGGED_MSN, |_| answer(2));
}

/// What answers a Read of eight bytes wrongly, and with what it ends.
#[test]
fn answers_that_are_not_what_was_asked_for() {
    type Answer = fn(&Victim) -> Vec<u8>;
    let cases: [(Cause, Answer); 9] = [
        (Cause::TAGGED_STAG, |v| tagged(Opcode::ReadResponse, true, v.read_only, OPEN, &[1; 8])),
        (Cause::TAGGED_BOUNDS, |v| tagged(Opcode::ReadResponse, true, v.open, OPEN + 1, &[1; 8])),
        (Cause::TAGGED_BOUNDS, |v| tagged(Opcode::ReadResponse, true, v.open, OPEN, &[1; 9])),
        (Cause::TAGGED_BOUNDS, |v| tagged(Opcode::ReadResponse, true, v.open, OPEN, &[1; 7])),
        (Cause::TAGGED_BOUNDS, |v| tagged(Opcode::ReadResponse, false, v.open, OPEN, &[1; 8])),
        (Cause::TAGGED_BOUNDS, |v| tagged(Opcode::ReadResponse, true, v.open, OPEN, &[])),
        (Cause::RDMAP_OPCODE, |_| {
            let response = AtomicResponse { id: 1, original: 1 }.encode();
            untagged(Opcode::AtomicResponse, true, queue::ATOMIC_RESPONSE, 1, 0, &response)
        }),
        (Cause::TAGGED_STAG, |v| tagged(Opcode::ReadResponse, true, v.open, OPEN, &[1; 8])),
        (Cause::RDMAP_RIGHTS, |v| tagged(Opcode::ReadResponse, true, v.read_only, OPEN, &[1; 8])),
    ];
    for (at, (cause, answer)) in cases.into_iter().enumerate() {
        let mut victim = victim(true);
        // The last reads into what it may not write to.
        let sink_stag = if at == 8 { victim.read_only } else { victim.open };
        let request = Work::Read { len: 8, sink_stag, sink_to: OPEN, stag: 1, to: 2 };
        assert!(victim.host.post(1, BASE, request));
        // The peer begins with an empty Write; then the request goes.
        victim.host.feed(&write(0, 0, &[]));
        assert!(victim.host.cut());
        if at == 7 {
            assert!(victim.host.regions.deregister(victim.open), "the sink ends meanwhile");
        }
        let answer = answer(&victim);
        victim.host.feed(&answer);
        assert_eq!(victim.host.refused(), Some(cause), "case {at}");
        assert_eq!(victim.host.memory.placed, [], "case {at}");
        assert_eq!(victim.host.done, [Completion { id: 1, result: Err(NotDone::Flushed) }]);
    }
}

#[test]
fn tags_that_cannot_be_invalidated() {
    let send = |stag| {
        let target = Target::Untagged { qn: 0, msn: 1, mo: 0, invalidate: stag };
        fpdu(&segment(Header { last: true, opcode: Opcode::SendInvalidate, target }, &[]))
    };
    refused(Cause::RDMAP_INVALIDATE, |v| send(v.ended));
    refused(Cause::RDMAP_INVALIDATE_DOMAIN, |v| send(v.foreign));
    let mut victim = victim(true);
    victim.host.feed(&send(victim.open));
    assert_eq!(victim.host.memory.arrived[0].invalidated, Some(victim.open));
    victim.host.feed(&write(victim.open, OPEN, &[1]));
    assert_eq!(victim.host.refused(), Some(Cause::TAGGED_STAG));
}

#[test]
fn a_wrong_crc_completes_nothing_and_hides_no_other_error() {
    // Not the length, which says where the CRC is.
    for flip in 2..48 {
        let mut victim = victim(true);
        let mut message = untagged(Opcode::Send, true, 0, 1, 0, &[7; 22]);
        assert_eq!(message.len(), 48);
        message[flip] ^= 0x10;
        victim.host.feed(&message);
        assert_eq!(victim.host.refused(), Some(Cause::MPA_CRC), "byte {flip}");
        assert_eq!(victim.host.memory.arrived, []);
        let terminate = victim.host.connection.failure();
        assert_eq!(terminate, Some(&Failure::Refused(Terminate::new(Cause::MPA_CRC))));
    }
}

#[test]
fn markers_that_do_not_point_to_the_length() {
    let proposal = Proposal { markers: true, ..Proposal::default() };
    let (_, there) = settings(&proposal, &proposal);
    for wrong in [false, true] {
        let mut host = Host::new(there);
        let mut stream = vec![0, 0, 0, 0];
        stream.extend(write(0, 0, &[]));
        // The next one belongs to a longer Write, 24 bytes behind the first FPDU's beginning.
        let body = vec![5; 600];
        let message = write(host.stag, BASE, &body);
        let before = 512 - stream.len();
        stream.extend(&message[..before]);
        stream.extend([0, 0, (before >> 8) as u8, before as u8 + u8::from(wrong) * 4]);
        stream.extend(&message[before..]);
        host.feed(&stream);
        let said = wrong.then_some(Cause::MPA_MARKER);
        assert_eq!(host.refused(), said);
        assert_eq!(host.memory.bytes[..600] == body[..], !wrong);
    }
}

#[test]
fn a_terminate_with_an_atomic_request_in_it_is_read() {
    let mut victim = victim(true);
    let mut body = vec![0x01, 0x00, 0xe0, 0, 0, 70];
    body.extend(segment(
        Header {
            last: true,
            opcode: Opcode::AtomicRequest,
            target: Target::Untagged { qn: 1, msn: 1, mo: 0, invalidate: 0 },
        },
        &[5; 52],
    ));
    victim.host.feed(&untagged(Opcode::Terminate, true, queue::TERMINATE, 1, 0, &body));
    let Some(Failure::Terminated(terminate)) = victim.host.connection.failure() else {
        panic!("no Terminate")
    };
    assert_eq!((terminate.cause, terminate.segment_len), (Cause::RDMAP_STAG, Some(70)));
}

#[test]
fn the_driver_may_end_it_and_later_bytes_are_dropped() {
    let mut victim = victim(false);
    victim.host.connection.terminate(Cause::RDMAP_CATASTROPHIC);
    victim.host.feed(&write(victim.open, OPEN, &[1]));
    assert_eq!((victim.host.memory.placed.len(), victim.host.rest.len()), (0, 0));
    assert!(victim.host.cut() && !victim.host.cut());
    victim.host.connection.closed();
    assert_eq!(victim.host.refused(), Some(Cause::RDMAP_CATASTROPHIC), "the first reason stays");
    let said = victim.host.connection.failure().unwrap().to_string();
    assert!(said.contains("local catastrophic error"), "{said}");
}
