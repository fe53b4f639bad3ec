//! A peer does with memory what it was registered for and nothing else: the rest is refused, both sides are told, and the
//! memory is as it was.

use super::{LONG, SECRET, TRANSPORTS, bytes, connect, end, memory, ranks, until};
use fabric::{Atomic, Local, Remote, Rights, Verbs};
use rnic::Rnic;
use std::time::Instant;

const LEN: usize = 64;

/// What the peer does that is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    Write,
    Read,
    Change,
}

impl Access {
    fn needs(self) -> Rights {
        match self {
            Access::Write => Rights::REMOTE_WRITE,
            Access::Read => Rights::REMOTE_READ,
            Access::Change => Rights::REMOTE_ATOMIC,
        }
    }

    fn post(self, rank: &mut Rnic, local: Local, remote: Remote) {
        let word = Local { span: local.span.part(0, 8), ..local };
        let posted = match self {
            Access::Write => rank.post_write(1, 0, &[local], remote, 1),
            Access::Read => rank.post_read(1, 0, local, remote, 1),
            Access::Change => rank.post_atomic(1, 0, word, remote, Atomic::Add(1), 1),
        };
        assert_eq!(posted, Ok(true));
    }
}

/// Both sides lose each other.
fn part(job: &mut [Rnic; 2]) {
    let (start, mut lost) = (Instant::now(), [false; 2]);
    while lost != [true; 2] {
        for (rank, lost) in job.iter_mut().zip(&mut lost) {
            rank.poll();
            *lost |= rank.take_lost().is_some();
        }
        assert!(start.elapsed() < LONG, "{lost:?}");
    }
}

#[test]
fn memory_is_used_for_what_it_is_registered_for_alone() {
    let all = [
        Rights::NONE,
        Rights::LOCAL_WRITE,
        Rights::REMOTE_READ,
        Rights::REMOTE_WRITE,
        Rights::REMOTE_ATOMIC,
        Rights::REMOTE_READ | Rights::REMOTE_WRITE,
        Rights::ALL,
    ];
    for (at, listen) in TRANSPORTS.into_iter().enumerate() {
        for rights in all {
            for access in [Access::Write, Access::Read, Access::Change] {
                // Reliable datagrams carry no changes of words.
                if access != Access::Change || at == 0 {
                    try_out(ranks([SECRET; 2], listen), rights, access);
                }
            }
        }
    }
}

fn try_out(mut job: [Rnic; 2], rights: Rights, access: Access) {
    connect(&mut job);
    let local = memory(&mut job[0], LEN, 5);
    let span = job[1].allocate(LEN);
    job[1].poke_bytes(span.addr, &[9; LEN]);
    let region = job[1].register(0, span, rights).unwrap();
    access.post(&mut job[0], local, region.remote(span.addr));
    let may = rights.include(access.needs());
    if may {
        let [ended, _] = until(&mut job, [1, 0]);
        assert_eq!(ended[0].result, Ok(()), "{rights:?}, {access:?}");
    } else {
        part(&mut job);
    }
    let changed = bytes(&job[1], region.local(span)) != [9; LEN];
    assert!(!changed || may && access != Access::Read, "{rights:?}, {access:?}");
    let told = bytes(&job[0], local) != [5; LEN];
    assert_eq!(told, may && access != Access::Write, "{rights:?}, {access:?}");
    end(job);
}

/// What this rank reads is placed where its adapter may write alone.
#[test]
fn what_is_read_goes_to_memory_that_is_registered_for_it() {
    for listen in TRANSPORTS {
        for (rights, may) in [(Rights::LOCAL_WRITE, true), (Rights::REMOTE_READ, false)] {
            let mut job = ranks([SECRET; 2], listen);
            connect(&mut job);
            let there = memory(&mut job[1], LEN, 9);
            let span = job[0].allocate(LEN);
            let local = job[0].register(0, span, rights).unwrap().local(span);
            let remote = Remote { addr: there.span.addr as u64, key: there.key };
            assert_eq!(job[0].post_read(1, 0, local, remote, 1), Ok(true));
            if may {
                assert_eq!(until(&mut job, [1, 0])[0][0].result, Ok(()));
                end(job);
            } else {
                part(&mut job);
                assert_eq!(bytes(&job[0], local), [0; LEN]);
            }
        }
    }
}
