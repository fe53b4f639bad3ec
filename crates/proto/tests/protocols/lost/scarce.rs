//! The same where the applications have all cores: a thread beside one would take its time, so whoever comes back to MPI
//! first copies (`Duty::Inside`), whichever side has found the other's buffer.

use super::{
    AT_ONCE, COSTS, LATER_NS, LONG, LONG_NS, NOTE_NS, Shares, Side, TURN_NS, copy_ns, early, job, late,
    play_in, whole_ns,
};

/// What the last of so many messages takes where no core is to spare.
fn last(rounds: usize, len: usize, manner: Option<&str>, sides: [Side; 2]) -> Shares {
    play_in(job(manner, false), len, rounds, sides).0
}

/// What the applications lose; the threads beside them copy nothing.
fn lost(lost_ns: [u64; 2]) -> Shares {
    Shares { lost_ns, aside_ns: [0, 0] }
}

/// What both take for a message when they come to it at these times: whoever is earlier claims next, half of what is left, and
/// who finds nothing left waits for the last piece of the other one.
fn together_ns(len: usize, begin_ns: [u64; 2]) -> [u64; 2] {
    let (mut left, mut at_ns) = (len, begin_ns);
    while left > 0 {
        let earlier = usize::from(at_ns[1] < at_ns[0]);
        let piece = (left / 2).clamp(AT_ONCE, 1 << 20).min(left);
        at_ns[earlier] += copy_ns(piece) + COSTS.call_ns;
        left -= piece;
    }
    begin_ns.map(|begin_ns| at_ns[0].max(at_ns[1]) - begin_ns)
}

/// A sender that comes back after its receiver has ended finds there, too, that it may go on.
const TOLD_NS: u64 = COSTS.frame_ns;
/// A computation that is longer by more than all copies. A receiver that gains the difference in the round before has not come
/// back when its sender begins.
const LONGER_NS: u64 = LONG_NS + LONG_NS / 3;

/// The sender has found the buffer.
#[test]
fn of_two_sides_that_compute_the_one_that_comes_back_first_copies() {
    for (len, manner) in LONG {
        let shares = last(2, len, manner, [late(LONG_NS), early(LONGER_NS)]);
        assert_eq!(shares, lost([NOTE_NS + whole_ns(len), NOTE_NS]), "{len} bytes");
        let shares = last(2, len, manner, [late(LONGER_NS), early(LONG_NS)]);
        assert_eq!(shares, lost([NOTE_NS + TOLD_NS, NOTE_NS + whole_ns(len)]), "{len} bytes");
    }
}

/// The receiver has found the message, and copies little at once.
#[test]
fn it_does_so_whoever_has_found_the_others_buffer() {
    for (len, manner) in LONG {
        let whole_ns = whole_ns(len);
        let copies_ns = if len <= AT_ONCE { [0, whole_ns] } else { [whole_ns, 0] };
        let shares = last(2, len, manner, [early(LONG_NS), late(LONGER_NS)]);
        assert_eq!(shares, lost([NOTE_NS + copies_ns[0], copies_ns[1]]), "{len} bytes");
        // The first message: before a second one the receiver would be the early one.
        let shares = last(1, len, manner, [early(LONGER_NS), late(LONG_NS)]);
        assert_eq!(shares, lost([NOTE_NS + TOLD_NS, whole_ns]), "{len} bytes");
    }
}

/// Both compute for as long, so the one that began later comes back while the other one copies.
#[test]
fn who_comes_back_while_the_other_one_copies_helps() {
    for len in [512 << 10, 1 << 20, 8 << 20] {
        let [sender_ns, receiver_ns] = together_ns(len, [LATER_NS + TURN_NS, 0]);
        let shares = last(2, len, None, [late(LONG_NS), early(LONG_NS)]);
        assert_eq!(shares, lost([NOTE_NS + sender_ns, NOTE_NS + receiver_ns]), "{len} bytes");
        let [sender_ns, receiver_ns] = together_ns(len, [NOTE_NS, LATER_NS - TURN_NS]);
        let shares = last(2, len, None, [early(LONG_NS), late(LONG_NS)]);
        assert_eq!(shares, lost([NOTE_NS + sender_ns, receiver_ns]), "{len} bytes");
    }
}

#[test]
fn a_sender_that_waits_copies_for_a_receiver_that_computes() {
    for (len, manner) in LONG {
        // It has found the buffer.
        let shares = last(2, len, manner, [late(0), early(LONG_NS)]);
        assert_eq!(shares, lost([NOTE_NS + whole_ns(len), NOTE_NS]), "{len} bytes");
        // The receiver has found the message, and copies little at once.
        let shares = last(2, len, manner, [early(0), late(LONG_NS)]);
        let receiver_ns = if len <= AT_ONCE { whole_ns(len) } else { 0 };
        assert_eq!(shares, lost([LATER_NS - TURN_NS + whole_ns(len), receiver_ns]), "{len} bytes");
    }
}

#[test]
fn a_receiver_that_waits_copies_for_a_sender_that_computes() {
    for (len, manner) in LONG {
        let sender_ns = NOTE_NS + TOLD_NS;
        // The receiver has found the message.
        let shares = last(1, len, manner, [early(LONG_NS), late(0)]);
        assert_eq!(shares, lost([sender_ns, whole_ns(len)]), "{len} bytes");
        // It waits for the message, and what fits into a block it finds, too: of that it offers no buffer the first time.
        let arrives_ns = LATER_NS + NOTE_NS + COSTS.flight_ns;
        let shares = last(1, len, manner, [late(LONG_NS), early(0)]);
        assert_eq!(shares, lost([sender_ns, arrives_ns + whole_ns(len)]), "{len} bytes");
        // The sender has found the buffer, of any length. The receiver waits from the end of one copy to the end of the next: a
        // round of its sender.
        let shares = last(2, len, manner, [late(LONG_NS), early(0)]);
        assert_eq!(shares, lost([sender_ns, LATER_NS + LONG_NS + sender_ns]), "{len} bytes");
    }
}
