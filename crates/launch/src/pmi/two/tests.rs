//! The client with a server of its own.
use super::*;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// What a server of one rank answers.
fn answer(pairs: &mut HashMap<String, String>, request: &Answer) -> String {
    let field = |key| request.field(key).unwrap().to_string();
    let doubled = |text: &str| text.replace(';', ";;");
    match field("cmd").as_str() {
        "fullinit" => "rc=0;pmi-version=2;pmi-subversion=0;rank=0;size=1;appnum=3;debugged=FALSE;".into(),
        "job-getid" => "rc=0;jobid=7.0;".into(),
        "kvs-put" => {
            pairs.insert(field("key"), field("value"));
            "rc=0;".into()
        }
        "kvs-get" => match pairs.get(&field("key")) {
            Some(value) => format!("rc=0;found=TRUE;value={};", doubled(value)),
            None => "rc=0;found=FALSE;".into(),
        },
        "info-getjobattr" => "rc=0;found=TRUE;value=8;".into(),
        _ => "rc=0;".into(),
    }
}

/// Serves until the client goes.
fn serve(mut stream: UnixStream) {
    let mut pairs = HashMap::new();
    let mut length = [0; LENGTH_BYTES];
    while stream.read_exact(&mut length).is_ok() {
        let count = std::str::from_utf8(&length).unwrap().trim().parse().unwrap();
        let mut body = vec![0; count];
        stream.read_exact(&mut body).unwrap();
        let request = Answer::parse("test", &body).unwrap();
        let reply =
            format!("cmd={}-response;{}", request.field("cmd").unwrap(), answer(&mut pairs, &request));
        // Slurm writes the length to the left, and nobody promises whole messages.
        for byte in format!("{:<6}{reply}", reply.len()).bytes() {
            stream.write_all(&[byte]).unwrap();
        }
    }
}

#[test]
fn a_good_conversation() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = std::thread::spawn(|| serve(theirs));
    let mut client = Two::begin(Channel::over(ours.into()), 0).unwrap();
    assert_eq!((client.rank(), client.size(), client.appnum()), (0, 1, Ok(3)));
    assert_eq!(client.name().unwrap(), "7.0");
    assert_eq!(client.universe(), Ok(Some(8)));
    let all: Vec<u8> = (0..4000).map(|i| (i % 256) as u8).collect();
    client.put("all", &all).unwrap();
    client.put("few", b";a;;").unwrap();
    client.barrier().unwrap();
    assert_eq!(client.get("all").unwrap(), all);
    assert_eq!(client.get("few").unwrap(), b";a;;");
    assert!(client.get("none").unwrap_err().contains("none"));
    client.finalize().unwrap();
    drop(client);
    server.join().unwrap();
}

#[test]
fn corrupt_answers_name_the_command_and_what_was_received() {
    let cases = [
        ("", "closed"),
        ("abcdef", "not a length"),
        ("999999", "not a length"),
        ("    20cmd=short;", "closed"),
        ("     7cmd=abc", "no end"),
        ("     3cmd", "no ="),
        ("    10cmd=other;", "fullinit-response was expected"),
        ("    22cmd=fullinit-response;", "no rc="),
        ("    28cmd=fullinit-response;rc=-1;", "rc=-1"),
        ("    34cmd=fullinit-response;rc=0;rc=1;x=y", "twice"),
        ("    41cmd=fullinit-response;rc=0;rank=2;size=2;", "rank 2 of size 2"),
        ("    41cmd=fullinit-response;rc=0;rank=x;size=2;", "rank is not a number"),
        ("     6cmd=\u{7f};", "not text"),
    ];
    for (script, named) in cases {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(script.as_bytes()).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        let error = Two::begin(Channel::over(ours.into()), 0).err().unwrap();
        assert!(error.contains("fullinit") && error.contains(named), "{script}: {error}");
    }
}

/// Whatever one changed byte makes of an answer, it is read or refused.
#[test]
fn one_changed_byte_never_crashes() {
    let body = b"cmd=kvs-get-response;rc=0;found=TRUE;value=a;;b;";
    for at in 0..body.len() {
        for byte in 0..=255 {
            let mut changed = body.to_vec();
            changed[at] = byte;
            let _ = Answer::parse("kvs-get", &changed);
        }
    }
}

#[test]
fn the_job_can_be_ended_while_others_are_waited_for() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let mut client =
        Two { channel: Channel::over(ours.into()), rank: 0, size: 2, appnum: 0, job: "7.0".into() };
    let ender = client.ender();
    let waits = std::thread::spawn(move || client.barrier());
    let mut heard = |expected: &str| {
        let mut length = [0; LENGTH_BYTES];
        theirs.read_exact(&mut length).unwrap();
        let mut body = vec![0; std::str::from_utf8(&length).unwrap().trim().parse().unwrap()];
        theirs.read_exact(&mut body).unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), expected);
    };
    heard("cmd=kvs-fence;");
    ender.end(7).unwrap();
    heard("cmd=abort;isworld=TRUE;msg=MPI_Abort;exitcode=7;");
    theirs.write_all(b"28    cmd=kvs-fence-response;rc=0;").unwrap();
    waits.join().unwrap().unwrap();
}
