//! Prefix reductions. Both algorithms keep the order of ranks.
use super::build::{Builder, View};
use super::schedule::Buf;

/// Round k: exchange what 2^k neighbouring ranks have together; what comes from lower ranks
/// belongs to the result (Thakur, Rabenseifner, Gropp 2005, as in recursive doubling).
pub fn recursive_doubling(b: &mut Builder, v: &View, input: Buf, output: Buf, exclusive: bool) {
    // `together` is what the ranks of this group have; `output` what the ranks up to this one have.
    let mut together = b.temp_like(output);
    b.copy(input, together);
    if !exclusive {
        b.copy(input, output);
    }
    let mut landing = b.temp_like(output);
    let mut empty = exclusive;
    let mut mask = 1;
    while mask < v.size {
        let peer = v.me ^ mask;
        if peer < v.size {
            b.exchange(v, peer, together, peer, landing);
            if peer < v.me {
                if empty {
                    b.copy(landing, output);
                } else {
                    b.reduce(landing, output);
                }
                empty = false;
                b.reduce(landing, together);
            } else {
                b.reduce(together, landing);
                (together, landing) = (landing, together);
            }
        }
        mask *= 2;
    }
}

/// Down the line: few messages, but each waits for the one before.
pub fn linear(b: &mut Builder, v: &View, input: Buf, output: Buf, exclusive: bool) {
    let (first, last) = (v.me == 0, v.me + 1 == v.size);
    if !exclusive {
        b.copy(input, output);
        if !first {
            let landing = b.temp_like(output);
            let come = b.recv(v, v.me - 1, landing);
            b.wait(come);
            b.reduce(landing, output);
        }
        if !last {
            b.send(v, v.me + 1, output);
        }
        return;
    }
    let mut pass = input;
    if !first {
        if !last {
            pass = b.temp_like(output);
            b.copy(input, pass);
        }
        let come = b.recv(v, v.me - 1, output);
        b.wait(come);
        if !last {
            b.reduce(output, pass);
        }
    }
    if !last {
        b.send(v, v.me + 1, pass);
    }
}
