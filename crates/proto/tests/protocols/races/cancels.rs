//! What is taken back meanwhile.

use super::scenario::{Act, RACING, Scenario, receive, send, sequences, synchronous, wants};
use super::{LONG, both, explore_all, wide};

/// One of the receives is cancelled, at every moment: either it was matched or it never is.
#[test]
fn a_receive_is_cancelled_meanwhile() {
    let sends = sequences(&[send(1, LONG), send(2, LONG), send(1, 4)], 2);
    let wants = sequences(&wants()[..3], 2);
    let after = |cancel: usize| wants.iter().map(move |w| [w[0], w[1], Act::Cancel(cancel)].to_vec());
    let between = wants.iter().map(|w| [w[0], Act::Cancel(0), w[1]].to_vec());
    let receives: Vec<_> = between.chain(after(0)).chain(after(1)).collect();
    explore_all(&sends, &receives, |_| ());
}

/// A receive is cancelled while sends of another envelope wait for room: the RTR behind that of the
/// cancelled receive must not be used before its receiver knows that the first is given up.
#[test]
fn a_receive_is_cancelled_while_sends_wait() {
    let sends = vec![send(2, LONG), send(2, LONG), send(1, LONG)];
    let [one, two, ..] = wants();
    let receives = vec![one, one, Act::Cancel(0), two, two];
    for force in RACING {
        let scenario = Scenario { room: 1, force, ..Scenario::new(vec![sends.clone(), receives.clone()]) };
        both(&scenario, if wide() { 1_000_000 } else { 20_000 });
    }
}

/// A send is taken back, at every moment: either its message never was, or it is received.
#[test]
fn a_send_is_cancelled_meanwhile() {
    let sends = [send(1, LONG), send(1, 4), synchronous(1, 4), synchronous(2, 0), send(1, LONG + 20)];
    let pairs = sequences(&sends[..if wide() { 5 } else { 4 }], 2);
    let after = |taken: usize| pairs.iter().map(move |s| [s[0], s[1], Act::TakeBack(taken)].to_vec());
    let between = pairs.iter().map(|s| [s[0], Act::TakeBack(0), s[1]].to_vec());
    let sends: Vec<_> = between.chain(after(0)).chain(after(1)).collect();
    explore_all(&sends, &sequences(&wants()[..3], 2), |_| ());
}

/// As before, while the receiver takes its buffer back, and with little room.
#[test]
fn both_sides_cancel_meanwhile() {
    let sends = [send(1, LONG), send(1, LONG + 20), synchronous(1, 4), send(1, 4)];
    let pairs = sequences(&sends, 2);
    for s in pairs.iter().map(|s| [s[0], s[1], Act::TakeBack(0), Act::TakeBack(1)].to_vec()) {
        for r in sequences(&wants()[..3], 2).into_iter().map(|w| [w[0], w[1], Act::Cancel(0)].to_vec()) {
            for room in [1, 2, 64] {
                let scenario = Scenario { room, looks: true, ..Scenario::new(vec![s.clone(), r.clone()]) };
                both(&scenario, if wide() { 10_000 } else { 100 });
            }
        }
    }
}

/// As before, of messages whose sender is still writing them when they are found: a receive that
/// has part of one cannot be cancelled, and no other receive gets it.
#[test]
fn a_receive_is_cancelled_while_its_message_is_written() {
    let sends = sequences(&[send(1, 4), send(2, 4)], 2);
    let short = |tag| Act::Receive { source: Some(0), tag: Some(tag), room: 4 };
    let wants = sequences(&[short(1), short(2), receive(Some(0), Some(1)), receive(None, Some(1))], 2);
    let calls = |cancel: usize| wants.iter().map(move |w| [w[0], w[1], Act::Cancel(cancel)].to_vec());
    let receives: Vec<_> = calls(0).chain(calls(1)).collect();
    explore_all(&sends, &receives, |scenario| scenario.slow = true);
}
