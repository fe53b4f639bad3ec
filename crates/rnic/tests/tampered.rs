//! Somebody between two ranks who reads all, and changes, leaves out, doubles and moves what he likes: with MACs nothing is
//! taken that was not sent, nothing twice, and over a stream both sides are told.

mod job;

use fabric::{Completion, Done, Local, Verbs};
use job::{LOCAL, LONG, Listen, SECRET, bytes, memory};
use rnic::{Integrity, Listening, Rnic};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;
use wire::datagram;

/// What a MAC and its number are behind a datagram, and behind an FPDU.
const TRAILER: usize = 24;

/// Two ranks, each of whom finds the other at these addresses instead.
fn ranks(
    listen: Listen,
    integrity: Integrity,
    between: impl FnOnce([SocketAddr; 2]) -> [SocketAddr; 2],
) -> [Rnic; 2] {
    let listening = [0, 1].map(|_| listen(LOCAL).unwrap().checked_by(integrity));
    let [first, second] = [0, 1].map(|at: usize| listening[at].address().unwrap());
    let [seen_first, seen_second] = between([first, second]);
    let addresses = [[first, seen_second], [seen_first, second]];
    let mut me = 0..;
    listening.map(|one| {
        let me = me.next().unwrap();
        one.open(me, addresses[me].into(), SECRET).unwrap()
    })
}

/// Who carries datagrams from one rank to the other.
struct Middle {
    sockets: [UdpSocket; 2],
    to: [SocketAddr; 2],
    seen: Vec<Vec<u8>>,
    forged: u64,
}

impl Middle {
    fn new(to: [SocketAddr; 2]) -> Middle {
        let sockets = [0, 1].map(|_| {
            let socket = UdpSocket::bind((LOCAL, 0)).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        });
        Middle { sockets, to, seen: Vec::new(), forged: 0 }
    }

    fn addresses(&self) -> [SocketAddr; 2] {
        [0, 1].map(|at: usize| self.sockets[at].local_addr().unwrap())
    }

    /// Carries what there is; with `forges` also everything else that can be made of it.
    fn carry(&mut self, forges: bool) {
        let mut room = vec![0; 1 << 16];
        for at in 0..2 {
            while let Ok((got, _)) = self.sockets[at].recv_from(&mut room) {
                let one = room[..got].to_vec();
                if forges {
                    let forged = self.forgeries(&one);
                    self.forged += forged.len() as u64;
                    forged.iter().for_each(|datagram| self.send(at, datagram));
                }
                self.send(at, &one);
                if forges {
                    // Played again, to whom it was for and to whom it was from.
                    self.forged += 2;
                    self.send(at, &one);
                    self.send(1 - at, &one);
                    self.seen.push(one);
                }
            }
        }
    }

    fn send(&self, at: usize, datagram: &[u8]) {
        let _ = self.sockets[at].send_to(datagram, self.to[at]);
    }

    fn forgeries(&self, one: &[u8]) -> Vec<Vec<u8>> {
        let (inner, trailer) = one.split_at(one.len() - TRAILER);
        // Other content with a CRC that is right.
        let mut changed = inner[..inner.len() - datagram::CRC_LEN].to_vec();
        *changed.last_mut().unwrap() ^= 1;
        datagram::seal(&mut changed, 0);
        let mut all = vec![[&changed, trailer].concat(), [inner, &[0; TRAILER]].concat()];
        let mut numbered = one.to_vec();
        numbered[inner.len() + 7] ^= 0x80;
        all.push(numbered);
        all.push(one[..one.len() - 1].to_vec());
        all.push(inner.to_vec());
        // The end of another one.
        all.extend(self.seen.last().map(|other| [inner, &other[other.len() - TRAILER..]].concat()));
        all
    }
}

/// Reliable datagrams: all messages come, once and in order, and what was forged is counted.
#[test]
fn reliable_datagrams_that_were_forged_are_dropped_and_counted() {
    let mut middle = None;
    let between = |to| middle.insert(Middle::new(to)).addresses();
    let mut job = ranks(Listening::for_datagrams, Integrity::Mac, between);
    let mut middle = middle.unwrap();
    let outs: Vec<Local> = (0..40).map(|at| memory(&mut job[0], 20_000, at)).collect();
    let into: Vec<Local> = (0..40).map(|_| memory(&mut job[1], 20_000, 0)).collect();
    (0..40).for_each(|at| job[1].post_receive(0, into[at], at as u64));
    outs.iter().for_each(|out| assert_eq!(job[0].post_send(1, 0, &[*out], 2), Ok(true)));
    let (mut ended, start) = ([Vec::new(), Vec::new()], Instant::now());
    while ended.iter().any(|ended| ended.len() < 40) {
        for (rank, ended) in job.iter_mut().zip(&mut ended) {
            while let Some(completion) = rank.poll() {
                assert_eq!(completion.result, Ok(()));
                ended.push(completion.work as usize);
            }
        }
        middle.carry(true);
        assert!(start.elapsed() < LONG, "{ended:?}");
    }
    for (at, buffer) in ended[1].iter().enumerate() {
        assert!(bytes(&job[1], into[*buffer]) == vec![at as u8; 20_000], "{at}");
    }
    let refused: u64 = job.iter().map(Rnic::refused).sum();
    assert!(refused > 100 && refused <= middle.forged, "{refused} of {}", middle.forged);
    assert_eq!(job.each_mut().map(|rank| rank.check()), [Ok(()), Ok(())]);
    let is_over = &std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = job.map(|rank| scope.spawn(move || drop(rank)));
        let carrier = scope.spawn(move || {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                middle.carry(false);
                std::thread::yield_now();
            }
        });
        ends.into_iter().for_each(|end| end.join().unwrap());
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        carrier.join().unwrap();
    });
}

/// Unreliable datagrams: each once, and nothing else.
#[test]
fn unreliable_datagrams_that_were_forged_are_dropped_and_counted() {
    let mut middle = None;
    let between = |to| middle.insert(Middle::new(to)).addresses();
    let mut job = ranks(Listening::for_unreliable, Integrity::Mac, between);
    let mut middle = middle.unwrap();
    let len = job[0].caps().datagram_bytes;
    let (mut came, start) = (0u32, Instant::now());
    for round in 0..60u8 {
        let (out, into) = (memory(&mut job[0], len, 1 + round), memory(&mut job[1], len, 0));
        job[1].post_receive(0, into, 5);
        assert_eq!(job[0].post_datagram(1, 0, &[out], 6), Ok(true));
        job[0].flush(1);
        let mut ended: Option<Completion> = None;
        while ended.is_none() && start.elapsed() < LONG {
            job[0].poll();
            middle.carry(true);
            ended = job[1].poll();
        }
        assert_eq!(ended.unwrap().done, Done::Received { from: 0, len, datagram: true });
        assert!(bytes(&job[1], into) == vec![1 + round; len]);
        came += 1;
        for _ in 0..50 {
            assert_eq!(job[1].poll(), None, "nothing comes twice");
        }
    }
    assert_eq!(came, 60);
    assert!(job[1].refused() >= 60 * 4, "{}", job[1].refused());
}

/// Without MACs who has seen one datagram can forge the next: the difference that is tested above is one.
#[test]
fn without_macs_what_has_the_right_crc_is_taken() {
    let mut middle = None;
    let between = |to| middle.insert(Middle::new(to)).addresses();
    let mut job = ranks(Listening::for_unreliable, Integrity::Auto, between);
    let middle = middle.unwrap();
    let (out, into) = (memory(&mut job[0], 100, 1), memory(&mut job[1], 200, 0));
    job[1].post_receive(0, into, 5);
    job[0].post_datagram(1, 0, &[out], 6).unwrap();
    job[0].flush(1);
    let (mut room, start) = (vec![0; 1 << 16], Instant::now());
    let got = loop {
        match middle.sockets[1].recv_from(&mut room) {
            Ok((got, _)) => break got,
            Err(error) => assert!(error.kind() == ErrorKind::WouldBlock && start.elapsed() < LONG),
        }
    };
    let mut forged = room[..got - datagram::CRC_LEN].to_vec();
    *forged.last_mut().unwrap() = 99;
    datagram::seal(&mut forged, 0);
    middle.send(1, &forged);
    while job[1].poll().is_none() {
        assert!(start.elapsed() < LONG);
    }
    assert_eq!(bytes(&job[1], into)[99], 99);
}

/// What somebody does to the bytes of a stream from who connects to who listens.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Changes a byte behind so many.
    Change(usize),
    /// Leaves bytes out.
    Cut(usize, usize),
    /// Plays bytes again.
    Again(usize, usize),
    /// Ends it.
    End(usize),
}

/// Carries a stream both ways until one ends.
fn carry_stream(listener: TcpListener, to: SocketAddr, deed: Deed) {
    let Ok((client, _)) = listener.accept() else { return };
    let server = TcpStream::connect(to).unwrap();
    let (back_from, back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || copy(back_from, back_to, None));
    copy(client, server, Some(deed));
}

fn copy(mut from: TcpStream, mut to: TcpStream, deed: Option<Deed>) {
    let (mut room, mut at, mut kept) = ([0; 4096], 0, Vec::new());
    loop {
        let got = match from.read(&mut room) {
            Ok(0) | Err(_) => break,
            Ok(got) => got,
        };
        for byte in &room[..got] {
            at += 1;
            let mut out = vec![*byte];
            match deed {
                Some(Deed::Change(place)) if at == place => out[0] ^= 1,
                Some(Deed::Cut(begin, end)) if (begin..end).contains(&at) => out.clear(),
                Some(Deed::Again(begin, end)) => {
                    if (begin..end).contains(&at) {
                        kept.push(*byte);
                    }
                    if at == end {
                        out = [&kept[..], &out].concat();
                    }
                }
                Some(Deed::End(place)) if at > place => {
                    let _ = to.shutdown(std::net::Shutdown::Both);
                    let _ = from.shutdown(std::net::Shutdown::Both);
                    return;
                }
                _ => {}
            }
            if to.write_all(&out).is_err() {
                return;
            }
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
}

/// Bytes that the set-up takes in front of the first message: the frame, what RFC 6581 adds, the request.
const SET_UP: usize = 20 + 4 + 53;
/// Length of a message of 100 bytes on the stream: length, header, payload, pad, CRC, MAC.
const MESSAGE: usize = 2 + 18 + 100 + 4 + 16;
/// The empty message that opens the stream.
const OPENS: usize = 2 + 14 + 4 + 16;

/// A job whose stream somebody has changed: what arrived of 20 messages, and why each side has lost the other.
fn tampered(deed: Deed) -> (Vec<Vec<u8>>, [Option<String>; 2]) {
    let mut carriers = Vec::new();
    let between = |to: [SocketAddr; 2]| {
        to.map(|to| {
            let listener = TcpListener::bind((LOCAL, 0)).unwrap();
            let address = listener.local_addr().unwrap();
            carriers.push((listener, to));
            address
        })
    };
    let mut job = ranks(Listening::at, Integrity::Mac, between);
    for (listener, to) in carriers {
        std::thread::spawn(move || carry_stream(listener, to, deed));
    }
    let outs: Vec<Local> = (0..20).map(|at| memory(&mut job[0], 100, 1 + at)).collect();
    let into: Vec<Local> = (0..20).map(|_| memory(&mut job[1], 200, 0)).collect();
    (0..20).for_each(|at| job[1].post_receive(0, into[at], at as u64));
    outs.iter().for_each(|out| assert_eq!(job[0].post_send(1, 0, &[*out], 2), Ok(true)));
    let (mut came, mut why, start) = (Vec::new(), [None, None], Instant::now());
    while why.iter().any(Option::is_none) && came.len() < 20 {
        for (rank, why) in job.iter_mut().zip(&mut why) {
            while let Some(completion) = rank.poll() {
                if matches!(completion.done, Done::Received { .. }) {
                    came.push(completion.work as usize);
                }
            }
            *why = why.take().or(rank.take_lost().map(|(_, fault)| fault.to_string()));
        }
        assert!(start.elapsed() < LONG, "{deed:?}: {came:?} came, {why:?}");
    }
    let came = came.iter().map(|at| bytes(&job[1], into[*at])[..100].to_vec()).collect();
    job.into_iter().for_each(std::mem::forget);
    (came, why)
}

#[test]
fn a_stream_that_was_changed_ends_with_the_reason_and_nothing_of_it_is_taken() {
    let fifth = SET_UP + OPENS + 4 * MESSAGE;
    for (deed, is_mac) in [
        (Deed::Change(fifth + 30), true),
        (Deed::Change(fifth + MESSAGE), true),
        (Deed::Cut(fifth + 1, fifth + 1 + MESSAGE), true),
        (Deed::Again(fifth + 1, fifth + 1 + MESSAGE), true),
        (Deed::End(fifth + 50), false),
    ] {
        let (came, [first, second]) = tampered(deed);
        let most = if matches!(deed, Deed::Again(..)) { 5 } else { 4 };
        assert!(came.len() <= most, "{deed:?}: {} came", came.len());
        assert!(came.iter().enumerate().all(|(at, bytes)| *bytes == vec![1 + at as u8; 100]), "{deed:?}");
        let (first, second) = (first.unwrap(), second.unwrap());
        if is_mac {
            assert!(second.contains("rank 0") && second.contains("whose MAC is wrong"), "{deed:?}: {second}");
            assert!(first.contains("rank 1"), "{deed:?}: {first}");
        }
    }
}

/// All of it, where nobody interferes: long messages, writes and reads, by streams and by datagrams.
#[test]
fn messages_of_all_lengths_pass_with_macs() {
    for (listen, integrity) in [
        (Listening::at as Listen, Integrity::Mac),
        (Listening::at, Integrity::Crc),
        (Listening::for_datagrams, Integrity::Mac),
    ] {
        for len in [1, 255, 257, 5000, 64_512, 3 << 20] {
            let mut job = ranks(listen, integrity, |to| to);
            let (out, back) = (memory(&mut job[0], len, 77), memory(&mut job[0], len, 0));
            let (target, buffer) = (memory(&mut job[1], len, 0), memory(&mut job[1], len, 0));
            job[1].post_receive(0, buffer, 9);
            let remote = fabric::Remote { addr: target.span.addr as u64, key: target.key };
            assert_eq!(job[0].post_write(1, 0, &[out], remote, 1), Ok(true));
            assert_eq!(job[0].post_send(1, 0, &[out], 2), Ok(true));
            assert_eq!(job[0].post_read(1, 0, back, remote, 3), Ok(true));
            let (mut ended, start) = (0, Instant::now());
            while ended < 4 {
                for rank in &mut job {
                    while let Some(completion) = rank.poll() {
                        assert_eq!(completion.result, Ok(()));
                        ended += 1;
                    }
                    assert_eq!(rank.take_lost(), None);
                }
                assert!(start.elapsed() < LONG, "{len}: {ended}");
            }
            assert!(bytes(&job[1], target) == vec![77; len] && bytes(&job[1], buffer) == vec![77; len]);
            assert!(bytes(&job[0], back) == vec![77; len] && job.iter().all(|rank| rank.refused() == 0));
            std::thread::scope(|scope| {
                job.into_iter().for_each(|rank| drop(scope.spawn(move || drop(rank))))
            });
        }
    }
}

/// Ranks that do not mean the same find out when they meet.
#[test]
fn ranks_that_check_messages_in_different_ways_say_so() {
    let listening =
        [Integrity::Mac, Integrity::Auto].map(|way| Listening::at(LOCAL).unwrap().checked_by(way));
    let addresses: Vec<SocketAddr> = listening.iter().map(|one| one.address().unwrap()).collect();
    let mut me = 0..;
    let mut job =
        listening.map(|one| one.open(me.next().unwrap(), addresses.clone().into(), SECRET).unwrap());
    assert_eq!(job[0].post_send(1, 0, &[], 5), Ok(true));
    let start = Instant::now();
    let why = loop {
        job.iter_mut().for_each(|rank| drop(rank.poll()));
        if let Some((1, why)) = job[0].take_lost() {
            break why.to_string();
        }
        assert!(start.elapsed() < LONG);
    };
    assert!(why.contains("TERN_INTEGRITY must be the same on all ranks"), "{why}");
}
