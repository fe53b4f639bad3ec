//! A connection over a socket whose other end has gone.

mod pair;

use fabric::Span;
use pair::{BASE, Memory, settings};
use rnic::driver::{Landing, Link, Payload, Posted, prepare};
use rnic::stack::{Connection, Failure, Place, Proposal, Regions, SEGMENT_MAX, Settings, Work};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

impl Landing for Memory {
    fn span(&self, _place: Place, _len: usize) -> Span {
        Span::EMPTY
    }

    fn touched(&mut self) {}
}

/// Two sides of which the second has sent a message and gone, without having read the last that came to it.
fn with_one_gone() -> Link {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let other = listener.accept().unwrap().0;
    let (here, there) = settings(&Proposal::default(), &Proposal::default());
    let link = |socket: TcpStream, settings: Settings| {
        prepare(&socket).unwrap();
        Link::new(socket, Connection::new(settings), &[], None)
    };
    let (mut here, mut there) = (link(one, here), link(other, there));
    send(&mut here, 1);
    // Who was connected to has to hear first.
    let mut memory = memory();
    let start = Instant::now();
    while memory.arrived.is_empty() {
        there.receive(&mut Regions::new(), &mut memory, &mut [0; 4096]);
        assert!(start.elapsed() < LONG);
    }
    send(&mut there, 2);
    send(&mut here, 1);
    here
}

fn memory() -> Memory {
    let mut memory = Memory::new();
    memory.buffers.push_back((BASE, 64));
    memory
}

fn post(link: &mut Link, word: u8) {
    let posted = Posted::new(word.into(), Payload::Inline([word; 8].into()));
    assert!(link.post(posted, Work::Send { len: 8, solicited: false, invalidate: None }).is_none());
}

fn send(link: &mut Link, word: u8) {
    post(link, word);
    assert!(link.send(&Regions::new()));
}

/// A peer that lives must not be waited for by who cannot send it what it waits for.
#[test]
fn what_is_not_in_memory_ends_the_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut other = listener.accept().unwrap().0;
    prepare(&one).unwrap();
    let (here, _) = settings(&Proposal::default(), &Proposal::default());
    let here = Settings { segment_max: SEGMENT_MAX, ..here };
    let mut here = Link::new(one, Connection::new(here), &[], None);
    let nowhere = Span { addr: 4096, len: 100_000 };
    let posted = Posted::new(7, Payload::Lent([nowhere, Span::EMPTY]));
    let send = Work::Send { len: 100_000, solicited: false, invalidate: None };
    assert!(here.post(posted, send).is_none());
    assert!(here.send(&Regions::new()));
    assert!(here.connection.failure().is_some());
    assert!(here.why_ended().unwrap().contains("not in memory"));
    assert!(matches!(here.poll(), Some((7, Err(_)))));
    drop(here);
    other.set_read_timeout(Some(LONG)).unwrap();
    while !matches!(std::io::Read::read(&mut other, &mut [0; 4096]), Ok(0) | Err(_)) {}
}

/// Payload in two parts as a driver lends it: where it lies and what it is.
fn lend(memory: &[u8], from: usize, first: usize, second: usize) -> (Payload, Vec<u8>) {
    let span = |at: usize, len| Span { addr: memory.as_ptr() as usize + at, len };
    let bytes = [&memory[from..from + first], &memory[20_480..20_480 + second]].concat();
    (Payload::Lent([span(from, first), span(20_480, second)]), bytes)
}

/// The payload of each whole FPDU of a stream of Sends and Writes, and where in the stream it begins; the one that opens a stream has
/// none.
fn payloads(mut stream: &[u8]) -> Vec<(usize, &[u8])> {
    let (mut all, mut at) = (Vec::new(), 0);
    while let Some(len) = stream.first_chunk().map(|len| usize::from(u16::from_be_bytes(*len))) {
        let whole = 2 + len + (4 - (2 + len) % 4) % 4 + 4;
        if stream.len() < whole {
            break;
        }
        let header_len = 2 + wire::iwarp::ddp::header_len(stream[2]);
        if header_len < 2 + len {
            all.push((at + header_len, &stream[header_len..2 + len]));
        }
        (stream, at) = (&stream[whole..], at + whole);
    }
    all
}

/// What the kernel copies to the beginning of a page does not lie close behind its source there, wherever that is; short FPDUs
/// in front of it see to it. Payload that comes in two parts counts as its longer one.
#[test]
fn long_payload_is_laid_out_for_the_kernels_copy() {
    memcopy::assume_slow(true);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut other = listener.accept().unwrap().0;
    prepare(&one).unwrap();
    let (here, _) = settings(&Proposal::default(), &Proposal::default());
    let here = Settings { segment_max: SEGMENT_MAX, depth: 256, ..here };
    let mut here = Link::new(one, Connection::new(here), &[], None);
    let mut memory = memcopy::Room::new(24_576);
    memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 251) as u8);
    let (mut leads, mut close) = (0, 0);
    for (from, (first, second)) in (0..64).step_by(4).flat_map(|from| {
        [(16_384, 0), (16_384, 8), (2048, 0), (2047, 0), (0, 4000)].map(|lengths| (from, lengths))
    }) {
        for is_write in [false, true] {
            let (payload, bytes) = lend(&memory, from, first, second);
            let len = (first + second) as u32;
            let source = if first > second { from } else { 20_480 };
            let work = match is_write {
                true => Work::Write { len, stag: 1, to: 0, immediate: None },
                false => Work::Send { len, solicited: false, invalidate: None },
            };
            assert!(here.post(Posted::new(1, payload), work).is_none());
            assert!(here.send(&Regions::new()) && !here.has_unsent());
            let mut stream = vec![0; 20_000];
            let mut got = 0;
            while payloads(&stream[..got]).iter().map(|(_, part)| part.len()).sum::<usize>() < bytes.len() {
                let more = std::io::Read::read(&mut other, &mut stream[got..]).unwrap();
                assert!(more > 0, "the stream ended");
                got += more;
            }
            let parts = payloads(&stream[..got]);
            assert_eq!(parts.iter().flat_map(|(_, part)| *part).copied().collect::<Vec<u8>>(), bytes);
            let mut offset = 0;
            for (at, part) in &parts {
                let is_close = memcopy::is_close_behind(*at, source + offset);
                assert!(!is_close || part.len() < 2048, "{from} {first} {second}");
                (close, offset) = (close + usize::from(is_close), offset + part.len());
            }
            leads += parts.len() - 1;
            assert!(parts.len() <= 3, "{} FPDUs", parts.len());
        }
    }
    assert!(leads > 0 && close > leads, "{leads} short FPDUs, {close} close behind");
}

/// What is sent now is refused, and its message is there.
#[test]
fn what_a_peer_sent_before_it_went_is_read() {
    let mut here = with_one_gone();
    // Until the kernel has found out.
    let start = Instant::now();
    while here.why_ended().is_none() {
        post(&mut here, 3);
        here.send(&Regions::new());
        assert!(start.elapsed() < LONG);
    }
    assert_eq!(here.connection.failure(), None);
    let mut memory = memory();
    while here.connection.failure().is_none() {
        here.receive(&mut Regions::new(), &mut memory, &mut [0; 4096]);
        assert!(start.elapsed() < LONG);
    }
    assert_eq!(here.connection.failure(), Some(&Failure::Lost));
    assert_eq!((memory.arrived.len(), &memory.bytes[..8]), (1, &[2; 8][..]));
    // Its work ends, too: the first had left, the last had not.
    let ended: Vec<bool> = std::iter::from_fn(|| here.poll()).map(|(_, result)| result.is_ok()).collect();
    assert!(ended[0] && !ended[ended.len() - 1], "{ended:?}");
}

/// So it ends, too, where what it sent finds no buffer.
#[test]
fn who_has_gone_is_not_waited_for_where_there_is_no_room() {
    let mut here = with_one_gone();
    let mut memory = Memory { without: rnic::stack::Receive::Later, ..Memory::new() };
    let start = Instant::now();
    while here.connection.failure().is_none() {
        here.receive(&mut Regions::new(), &mut memory, &mut [0; 4096]);
        if here.why_ended().is_none() {
            post(&mut here, 3);
            here.send(&Regions::new());
        }
        assert!(start.elapsed() < LONG);
    }
    assert_eq!(here.connection.failure(), Some(&Failure::Lost));
    assert_eq!(memory.arrived, []);
}
