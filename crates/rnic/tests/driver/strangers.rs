//! Who is not of the job, at the ports of its ranks; and a port that is not that of a rank.

use super::job::{LOCAL, LONG, Listen, SECRET, memory};
use super::{end, until};
use fabric::Verbs;
use rnic::{Listening, Rnic};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

/// Two ranks of a job, and where they listen.
fn two(listen: Listen) -> ([Rnic; 2], Vec<SocketAddr>) {
    let listening = [0, 1].map(|_| listen(LOCAL).unwrap());
    let addresses: Vec<SocketAddr> = listening.iter().map(|l| l.address().unwrap()).collect();
    let mut me = 0..;
    (listening.map(|l| l.open(me.next().unwrap(), addresses.clone().into(), SECRET).unwrap()), addresses)
}

/// A port scan, and strangers who say nothing: ranks find each other all the same.
#[test]
fn strangers_are_in_nobodys_way() {
    let listening = [0, 1].map(|_| Listening::at(LOCAL).unwrap());
    let addresses: Vec<SocketAddr> = listening.iter().map(|l| l.address().unwrap()).collect();
    let mut silent = Vec::new();
    for at in 0..30 {
        let mut stranger = TcpStream::connect(addresses[at % 2]).unwrap();
        if at % 3 == 0 {
            stranger.write_all(&vec![at as u8; 700]).unwrap();
        }
        silent.push(stranger);
    }
    let mut me = 0..;
    let mut job = listening.map(|l| l.open(me.next().unwrap(), addresses.clone().into(), SECRET).unwrap());
    let into = memory(&mut job[1], 10, 0);
    job[1].post_receive(0, into, 1);
    job[0].post_send(1, 0, &[], 2).unwrap();
    until(&mut job, [1, 1]);
    assert_eq!(job.each_mut().map(|rank| rank.check()), [Ok(()), Ok(())]);
    end(job);
}

/// More strangers than there are places for, who stay: a rank of the job takes the place of one.
#[test]
fn strangers_make_room_for_ranks() {
    let (mut job, addresses) = two(Listening::at);
    let mut strangers = Vec::new();
    for _ in 0..200 {
        strangers.push(TcpStream::connect(addresses[1]).unwrap());
        assert_eq!(job[1].poll(), None);
    }
    // The first has made room, the last is there.
    for (at, left) in [(0, true), (199, false)] {
        strangers[at].set_nonblocking(true).unwrap();
        assert_eq!(matches!(strangers[at].read(&mut [0]), Ok(0)), left);
    }
    let into = memory(&mut job[1], 10, 0);
    job[1].post_receive(0, into, 1);
    job[0].post_send(1, 0, &[], 2).unwrap();
    until(&mut job, [1, 1]);
    assert_eq!(job.each_mut().map(|rank| (rank.take_lost(), rank.check())), [(None, Ok(())), (None, Ok(()))]);
    end(job);
}

/// A connection that is closed without a word is begun again.
#[test]
fn who_is_turned_away_asks_again() {
    let (listening, peer) = (Listening::at(LOCAL).unwrap(), TcpListener::bind((LOCAL, 0)).unwrap());
    peer.set_nonblocking(true).unwrap();
    let addresses = [listening.address().unwrap(), peer.local_addr().unwrap()];
    let mut rank = listening.open(0, addresses.into(), SECRET).unwrap();
    assert_eq!(rank.post_send(1, 0, &[], 5), Ok(true));
    let (start, mut asked) = (Instant::now(), 0);
    while asked < 3 && start.elapsed() < LONG {
        assert_eq!((rank.poll(), rank.take_lost(), rank.check()), (None, None, Ok(())));
        asked += usize::from(peer.accept().is_ok());
    }
    assert_eq!(asked, 3);
    drop(peer);
    let lost = std::iter::repeat_with(|| (rank.poll(), rank.take_lost()).1);
    let (lost, why) = lost.take_while(|_| start.elapsed() < LONG).flatten().next().expect("it is gone");
    assert_eq!((lost, why.to_string().contains("cannot connect")), (1, true), "{why}");
}

/// Datagrams of strangers, and of a rank with another secret: nobody answers, nothing is placed, ranks go on.
#[test]
fn datagrams_of_strangers_are_dropped() {
    let (mut job, addresses) = two(Listening::for_datagrams);
    let wrong = Listening::for_datagrams(LOCAL).unwrap();
    let mut wrong = wrong.open(0, addresses.clone().into(), [9; 16]).unwrap();
    wrong.post_send(1, 0, &[], 1).unwrap();
    let stranger = UdpSocket::bind((LOCAL, 0)).unwrap();
    stranger.set_nonblocking(true).unwrap();
    for at in 0..300usize {
        let bytes: Vec<u8> = (0..at).map(|byte| (byte * at) as u8).collect();
        stranger.send_to(&bytes, addresses[at % 2]).unwrap();
    }
    let into = memory(&mut job[1], 10, 0);
    job[1].post_receive(0, into, 1);
    job[0].post_send(1, 0, &[], 2).unwrap();
    until(&mut job, [1, 1]);
    for _ in 0..1000 {
        assert_eq!(job.each_mut().map(|rank| rank.poll()), [None, None]);
        assert_eq!(wrong.poll(), None);
    }
    assert_eq!(stranger.recv(&mut [0; 64]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(job.each_mut().map(|rank| rank.check()), [Ok(()), Ok(())]);
    end(job);
    std::mem::forget(wrong); // it would wait for somebody to let it leave
}
