//! A connection over a socket whose other end has gone.

mod pair;

use fabric::Span;
use pair::{BASE, Memory, settings};
use rnic::driver::{Landing, Link, Payload, Posted, prepare};
use rnic::stack::{Connection, Failure, Place, Proposal, Regions, Settings, Work};
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
    let posted = Posted { work: word.into(), payload: Payload::Inline([word; 8].into()) };
    assert!(link.post(posted, Work::Send { len: 8, solicited: false, invalidate: None }).is_none());
}

fn send(link: &mut Link, word: u8) {
    post(link, word);
    assert!(link.send(&Regions::new()));
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
