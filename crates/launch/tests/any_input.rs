//! The decoders survive any input: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/job.rs"]
mod job_decoders;
#[path = "../../../fuzz/decoders/launch.rs"]
mod launch_decoders;

use launch::links;
use launch::mpiexec::arguments::{Inherit, Plan, Segment};
use launch::mpiexec::message::{Event, Order};
use launch::mpiexec::{hello, task};
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
    let messages = [&output[..], &ended, &answer];
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
    ];
    assert!(task::decode(&task(), [7; 16], [127, 0, 0, 1].into()).is_ok());
    inputs::try_many(good, 100_000, job_decoders::decode);
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

/// A rank may say that it has more CPUs than there are numbers for its share.
#[test]
fn any_number_of_cpus_is_shared() {
    job_decoders::decode(b"\x0am/18446744073709551615/0\nm/1/1");
}
