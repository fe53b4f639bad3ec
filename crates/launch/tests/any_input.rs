//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/job.rs"]
mod job_decoders;
#[path = "../../../fuzz/decoders/launch.rs"]
mod launch_decoders;
#[path = "../../../fuzz/decoders/meeting.rs"]
mod meeting_decoders;

use launch::links;
use launch::meeting;
use launch::mpiexec::arguments::{Inherit, Plan, Segment};
use launch::mpiexec::message::{Event, Order};
use launch::mpiexec::{foreign, hello, task};
use launch::pmi::line::parse_line;
use launch::report::Line;
use launch::sys::process::Ended;

const PMI: &[&[u8]] =
    &[b"cmd=put kvsname=job key=a value=b", b"cmd=get kvsname=job key=a", b"cmd=barrier_in"];
const REPORTS: &[&[u8]] = &[
    b"ready",
    b"end question=1 moves=9 left_out=3",
    b"begun question=1 runs=0:7,3:65535",
    b"fatal code=1 text=wrong",
    b"pending question=1 rank=0 op=MPI_Recv kind=recv blocking=1 peer=1 world_peer=1 tag=4 comm=w context=0 bytes=8 since_ms=9 address=/a+0x1 members=0-3",
];

#[test]
fn any_line_is_read_or_refused() {
    // Mutations of what is wrong already would try little.
    assert!(PMI.iter().all(|line| parse_line(line).is_ok()));
    assert!(REPORTS.iter().all(|line| Line::decode(line).is_ok()));
    let output = Event::Output { rank: 3, which: 1, bytes: b"hello".to_vec() }.encode();
    let ended = Event::Ended { rank: 3, how: Ended::Signal(9, false) }.encode();
    let answer = Order::Pmi { rank: 3, line: "cmd=get_result rc=0 value=v\n".into() }.encode();
    let spawn =
        b"mcmd=spawn\nnprocs=2\nexecname=a\ntotspawns=1\nargcnt=1\narg1=b\npreput_num=1\npreput_key_0=k\n\
                  preput_val_0=v\ninfo_num=1\ninfo_key_0=wdir\ninfo_val_0=/tmp\ntern_escaped=1\nendcmd";
    let messages = [&output[..], &ended, &answer, spawn];
    let good: Vec<&[u8]> = PMI.iter().chain(REPORTS).copied().chain(messages).collect();
    inputs::try_many(&good, 100_000, launch_decoders::decode);
}

#[test]
fn any_job_is_read_or_refused() {
    let end = b"\nend question=1 moves=2 left_out=0\n".as_slice();
    let deadlock = [b"\x03".as_slice(), REPORTS[4], end, REPORTS[4], end.trim_ascii_end()].concat();
    let links = links::text(&[("rc a/1 b/1".into(), "1 2 3".into()), ("rc a/1 c/d".into(), "7".into())]);
    let good: &[&[u8]] = &[
        b"\x00-n\n2\n--bind\nnone\n-env\nA\n1\nprog\n:\n-n\n1\n--label\nother\nargument",
        b"\x00--timeout\n3\n-wdir\n/tmp\nprog",
        b"\x00--map-by\nppr:2:node\n-genvlist\nA,B\n--stdin\n1\n-usize\n9\n--mca\na\nb\n--output\ntag,dir=%\nprog",
        b"\x00--hosts\na:2,[fe::1]:3,b\n--launcher\nmy ssh\n--map-by\nnode\n-n\n5\nprog\n:\n-host\nc\n-ppn\n2\nother",
        b"\x01PMI_FD=7\nPMI_RANK=0\nPMI_SIZE=2",
        b"\x01PMI_PORT=host:99\nPMI_ID=3",
        b"\x02m2\nabc\ndef",
        b"\x02sabc%20",
        &deadlock,
        b"\x04# all\na:2 # one\nb slots=4 max_slots=8\n[fe::1]:3\n\nfe::2\nb",
        &[&b"\x05"[..], links.as_bytes()].concat(),
        b"\x05rc a/1 b/1 1 2 3\nrc a/1 c/d 7\n",
        b"\x06cmd=kvs-get-response;rc=0;found=TRUE;value=a;;b;",
        &[&b"\x07"[..], &hello::challenge(&[3; 16]), &[4; 30]].concat(),
        b"\x08tern-agent 3 000102030405060708090a0b0c0d0eff 10.0.0.1:77\n",
        b"\x08tern-agent 4294967295 ff0102030405060708090a0b0c0d0eff [fe80::1]:65535",
        &[&b"\x09"[..], &task()].concat(),
        b"\x0am/4/0,1\nm/4/2,3\nn/1/",
        b"\x0b#!/bin/sh -e\necho",
        b"\x0b\x01\x02\x01\0\0\0\0\0\0\0\0\0\0\0\x15\x00",
        b"\x0c\x20\x001:4,9,3:30:5,20:1:-3",
        b"\x0d10.1.0.0/16\neth0\t00000000\t0101010A\n",
        &[&b"\x0e"[..], &program()].concat(),
        b"\x0dfd00:1::/64\n00000000000000000000000000000000 00 0 00 fd 4 1 0 3 eth0",
    ];
    assert!(task::decode(&task(), [7; 16], [127, 0, 0, 1].into()).is_ok());
    let elf = [&[0x7f, b'E', b'L', b'F', 2, 1][..], &program()].concat();
    let read =
        |at: u64, most: usize| elf.get(at as usize..).map(|rest| rest[..most.min(rest.len())].to_vec());
    assert!(cfg!(target_endian = "big") || foreign::needed(&read) == Some(vec!["libc.so.6".into()]));
    inputs::try_many(good, 100_000, job_decoders::decode);
}

#[test]
fn whatever_ranks_say_of_themselves_is_read_or_refused() {
    let manner = "TERN_DEVICES=auto,TERN_TRANSPORT=rc,TERN_INTEGRITY=auto";
    let place = meeting::place("[fd00::1]:7", manner, "host a");
    assert!(meeting::read_place::<std::net::SocketAddr>(0, &place, manner).is_ok());
    let behind = format!("10.0.0.1:7 {manner} host");
    let other = format!("tern-0.0.9-s390x-64be {behind}");
    let good: &[&[u8]] = &[
        place.as_bytes(),
        behind.as_bytes(),
        other.as_bytes(),
        b"memory m/4/0,1 tern-ibv 10.0.0.1:7\nmemory m/4/2,3 none: no adapter\nother n/1/ ",
        b"1500\n9000\n1500",
        b"3 a\n1 b%20c\n5 \n",
    ];
    inputs::try_many(good, 100_000, meeting_decoders::decode);
}

/// Of two ranks with an environment, arguments and files.
fn task() -> Vec<u8> {
    let word = |text: &str| text.into();
    let segment = Segment {
        program: word("prog"),
        arguments: vec![word("a"), word("b")],
        inherit: Some(Inherit::Only(vec![word("HOME")])),
        environment: vec![(word("A"), word("1"))],
        directory: Some("/tmp".into()),
        count: 2,
        ..Segment::default()
    };
    let plan = Plan {
        segments: vec![segment],
        inherited: vec![(word("B"), word("2"))],
        files: [Some(word("out")), None],
        ..Plan::default()
    };
    task::encode(&plan, "job", [0, 2], &[(0, 0), (1, 0)])
}

/// A program of 64 bits behind its first six bytes: two headers, of which one has it all and the other is the dynamic section, which names a library.
fn program() -> Vec<u8> {
    let mut elf = vec![0; 320];
    let mut put = |at: usize, value: u64, bytes: usize| {
        elf[at..at + bytes].copy_from_slice(&value.to_ne_bytes()[..bytes])
    };
    for (at, value, bytes) in [(32, 64, 8), (54, 56, 2), (56, 2, 2)] {
        put(at, value, bytes);
    }
    for (header, fields) in [(64, [1, 0, 0, 320]), (120, [2, 200, 200, 64])] {
        for (at, value, bytes) in
            [(0, fields[0], 4), (8, fields[1], 8), (16, fields[2], 8), (32, fields[3], 8)]
        {
            put(header + at, value, bytes);
        }
    }
    for (number, word) in [5, 280, 1, 4, 0].into_iter().enumerate() {
        put(200 + 8 * number, word, 8);
    }
    elf[284..293].copy_from_slice(b"libc.so.6");
    elf.split_off(6)
}

/// A rank may say that it has more CPUs than there are numbers for its share.
#[test]
fn any_number_of_cpus_is_shared() {
    job_decoders::decode(b"\x0am/18446744073709551615/0\nm/1/1");
}
