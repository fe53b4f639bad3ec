//! What peers say and what journals say is survived: what the fuzz targets do, briefly and without a fuzzer.

#[path = "../../../fuzz/decoders/inputs.rs"]
mod inputs;
#[path = "../../../fuzz/decoders/journals.rs"]
mod journal_decoders;
#[path = "../../../fuzz/decoders/reliable.rs"]
mod reliable_decoders;

/// What happens with the first peer: a kind with its flags, a number, and what is acknowledged; a key, an address, and content.
fn packet(kind: u8, key: u8, addr: u8, payload: &[u8]) -> Vec<u8> {
    [&[0, 6 + payload.len() as u8, kind | 0x10, 0, 0, 0, key, addr][..], payload].concat()
}

#[test]
fn any_packet_is_taken_or_refused() {
    const GIVEN: u8 = 0x80;
    let read = [9, 0, 0, 0, 200, 0, 0, 0];
    let pieces = [
        packet(0, 0, 0, &[1; 60]),
        packet(1, GIVEN, 4, &[2; 60]),
        packet(2, GIVEN, 0, &read),
        vec![0x0a, 40],
        packet(3, 0, 0, &[3; 40]),
        vec![0x08, 100, 0x09, 200, 0x0b, 0],
        packet(15, 0, 0, &[]),
        vec![0x0c, 40],
    ];
    let comes = [
        packet(4, 0, 0, &[]),
        packet(15, 0, 0, &[]),
        vec![0x08, 30, 0x0b, 0, 0x07, 3, 7, 7, 7, 0x07, 0, 0x0b, 0],
        packet(6, 0, 0, &[]),
        packet(7, 0, 0, &[]),
        packet(4, 0, 0, &[]),
    ];
    let refused = [vec![0x08, 1, 0x08, 1, 0x08, 1], packet(5, 0, 0, &[])];
    let ends = [packet(2, GIVEN, 0, &read), vec![0x0d, 20], packet(15, 0, 0, &[]), vec![0x0f, 0]];
    let mut good = Vec::new();
    for flags in [0x00, 0x09, 0x0d, 0x2b] {
        for all in [&pieces[..], &comes, &refused, &ends] {
            good.push([vec![flags], all.concat()].concat());
        }
        good.push([vec![flags], pieces.concat(), comes.concat(), pieces.concat()].concat());
    }
    let good: Vec<&[u8]> = good.iter().map(|input| &input[..]).collect();
    good.iter().for_each(|input| reliable_decoders::decode(input));
    inputs::try_many(&good, 100_000, reliable_decoders::decode);
}

#[test]
fn any_journal_is_read_or_refused() {
    let lines = "rank=3 at=17 to=network size=64K reuse=new receiver=early rtr=no mode=standard way=superpipeline # why\n\
                 rank=* at=1 to=host size=2M reuse=often receiver=late rtr=yes mode=synchronous way=eager\n\
                 rank=0 at=1 to=network puts=4 put=1K gets=0 get=0 order=issue messages=256 sync=merged # why\n\
                 rank=1 at=9 to=network puts=0 put=0 gets=1 get=64K order=issue messages=all sync=alone\n";
    let whole = format!("{}\n{lines}", proto::choice::journal::HEADER);
    assert_eq!(proto::choice::journal::parse("name", &whole).map(|read| read.len()), Ok(2));
    assert_eq!(proto::epoch::journal::parse("name", &whole).map(|read| read.len()), Ok(2));
    let mut good = vec![whole.as_bytes(), lines.as_bytes()];
    good.extend(lines.lines().map(str::as_bytes));
    inputs::try_many(&good, 100_000, journal_decoders::decode);
}

/// Wishes that are answered and whose answers nobody acknowledges: what cannot leave is bounded.
#[test]
fn who_wants_connections_without_end_is_refused() {
    reliable_decoders::decode(&[&[0][..], &packet(4, 0, 0, &[]).repeat(600)].concat());
}

/// The answer to a read waits for a packet; meanwhile the region ends, and another one that is shorter gets its key.
#[test]
fn an_answer_is_not_cut_from_a_region_with_the_same_key() {
    let read = packet(2, 0x80, 0, &[9, 0, 0, 0, 200, 0, 0, 0]);
    let input = [&[2][..], &[8, 255], &read, &[0x0d, 20, 0x0b, 0]];
    reliable_decoders::decode(&input.concat());
}

/// Peers with connections may write to every region of the adapter: to a packet that has come and waits, to one that waits for its
/// acknowledgement.
#[test]
fn packets_that_are_changed_where_they_wait_are_refused() {
    let early = [0, 6, 0x10, 1, 0, 0, 0, 0];
    for changed in [[1, 0, 9, 9, 9, 9, 9, 9, 9, 9], [1, 0, 1, 1, 0, 0, 99, 9, 9, 9]] {
        let change = [&[5, 10][..], &changed].concat();
        reliable_decoders::decode(&[&[1][..], &early, &change, &packet(0, 0, 0, &[])].concat());
    }
    let kept = [&[5, 10][..], &[7, 0, 9, 9, 9, 9, 9, 9, 9, 9]].concat();
    reliable_decoders::decode(&[&[1][..], &[8, 40], &kept, &[0x0c, 255, 0x0c, 255, 0x0c, 255]].concat());
}

/// A peer with a connection is lost, and the connection has been idle: that concerns nobody else.
#[test]
fn an_idle_connection_with_a_lost_peer_is_no_fault() {
    let begins = [&[8, 30, 8, 30][..], &packet(4, 0, 0, &[]), &packet(15, 0, 0, &[]), &[8, 30]].concat();
    for told in [0, 1] {
        let after = [0x0f, told, 0x0c, 255, 0x0c, 255, 0x07, 0, 0x0c, 255];
        reliable_decoders::decode(&[&[0x09][..], &begins, &after].concat());
    }
}
