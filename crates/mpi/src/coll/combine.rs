//! Contributions that are combined as they come, where they lie.
//!
//! Algorithms receive into a buffer, wait, and combine. Where the message lies in memory that this rank can read, the buffer is not
//! needed: its elements are combined piece by piece, behind the sender that writes them, so each is written once less and read while it
//! is in the cache. So a wait and the reduction behind it become one step, [`Step::Combine`], wherever that is the same:
//!
//! ```text
//! Recv L    Wait         Reduce L → x    Combine: x = message op x           L stays as it was
//! Recv L    Wait         Reduce x → L    Combine: L = x op message
//! Recv L  Send  WaitAll  Reduce …        Combine …, WaitAll
//! ```
//!
//! In the first form nobody may read L afterwards before something else has come there, and what is sent from x is waited for first.
use super::program::{Base, Buf, Lands, Step};
use super::ty::Type;
use fabric::PIECE_STEP;

/// How many steps of a reduction there are until results are sent: what is sent before is combined with something by its receiver.
pub(super) fn contributions(steps: &[Step]) -> usize {
    let last = steps.iter().rposition(|step| matches!(step, Step::Combine { .. } | Step::Reduce { .. }));
    let combined = last.map_or(0, |last| last + 1);
    let rest = &steps[combined..];
    combined + rest.iter().position(|step| matches!(step, Step::Recv { .. })).unwrap_or(rest.len())
}

/// Steps that do the same.
pub(super) fn combine(steps: Vec<Step>, types: &[Type]) -> Vec<Step> {
    let mut done =
        Done { steps: Vec::with_capacity(steps.len()), messages: Vec::new(), waited: Vec::new(), before: 0 };
    for (at, &step) in steps.iter().enumerate() {
        if let Step::Reduce { from, inout } = step
            && let Some((message, lands)) = done.landed(&from, &inout, types)
            && (lands == Lands::Inout || is_left(&steps[at + 1..], &from, types))
        {
            done.combine(message, Step::Combine { message, from, inout, lands }, &inout, types);
        } else {
            done.push(step);
        }
    }
    done.steps
}

/// The steps so far.
struct Done {
    steps: Vec<Step>,
    /// Where the messages are among them, by their numbers.
    messages: Vec<usize>,
    /// Which of them were waited for before the last step: those with lower numbers than `before`, and these.
    waited: Vec<bool>,
    before: usize,
}

impl Done {
    fn push(&mut self, step: Step) {
        // What the step before this one has waited for.
        match self.steps.last() {
            Some(Step::Wait(message) | Step::Combine { message, .. }) => {
                self.waited[*message as usize] = true
            }
            Some(Step::WaitAll) => self.before = self.messages.len(),
            _ => {}
        }
        if let Step::Send { .. } | Step::Recv { .. } = step {
            self.messages.push(self.steps.len());
            self.waited.push(false);
        }
        self.steps.push(step);
    }

    fn is_open(&self, message: u32) -> bool {
        message as usize >= self.before && !self.waited[message as usize]
    }

    /// The messages that nobody had waited for before the last step.
    fn open(&self) -> impl DoubleEndedIterator<Item = u32> {
        (self.before as u32..self.messages.len() as u32).filter(|message| self.is_open(*message))
    }

    /// The message that the last step waits for and that comes into an operand of the reduction behind it, and into which one.
    fn landed(&self, from: &Buf, inout: &Buf, types: &[Type]) -> Option<(u32, Lands)> {
        let ty = &types[from.ty as usize];
        if !ty.dense || ty.size == 0 || !(PIECE_STEP as u64).is_multiple_of(ty.size) {
            return None;
        }
        let lands = |message: u32| match self.steps[self.messages[message as usize]] {
            Step::Recv { buf, .. } if buf == *from => Some((message, Lands::From)),
            Step::Recv { buf, .. } if buf == *inout => Some((message, Lands::Inout)),
            _ => None,
        };
        match *self.steps.last()? {
            Step::Wait(message) => lands(message).filter(|_| self.is_open(message)),
            Step::WaitAll => self.open().rev().find_map(lands),
            _ => None,
        }
    }

    /// Combines in place of waiting, which the last step does. What else that waits for is waited for behind, unless it is on its way from where the
    /// result belongs.
    fn combine(&mut self, message: u32, step: Step, result: &Buf, types: &[Type]) {
        let waits = self.steps.pop();
        let leaves = |other: &u32| match &self.steps[self.messages[*other as usize]] {
            Step::Send { buf, .. } => buf.base == result.base && meet(buf, result, types),
            _ => false,
        };
        let others: Vec<u32> = match waits {
            Some(Step::WaitAll) => self.open().filter(leaves).collect(),
            _ => Vec::new(),
        };
        others.into_iter().for_each(|other| self.push(Step::Wait(other)));
        if let Step::Recv { combined, .. } = &mut self.steps[self.messages[message as usize]] {
            *combined = true;
        }
        self.push(step);
        if waits == Some(Step::WaitAll) {
            self.push(Step::WaitAll);
        }
    }
}

/// Where the data of a buffer begin and end, if they are one run.
fn run(buf: &Buf, types: &[Type]) -> Option<(i64, i64)> {
    let ty = &types[buf.ty as usize];
    ty.dense.then(|| (buf.offset, buf.offset + (buf.count * ty.size) as i64))
}

/// Whether two buffers of one base may share a byte.
fn meet(a: &Buf, b: &Buf, types: &[Type]) -> bool {
    let runs = run(a, types).zip(run(b, types));
    runs.is_none_or(|(a, b)| a.0 < b.1 && b.0 < a.1)
}

/// Whether none of these steps reads what lies in scratch memory before something else has come there.
fn is_left(rest: &[Step], landing: &Buf, types: &[Type]) -> bool {
    let Some((mut start, mut end)) = run(landing, types) else { return false };
    for step in rest {
        let (reads, writes): ([Option<&Buf>; 2], Option<&Buf>) = match step {
            Step::Send { buf, .. } => ([Some(buf), None], None),
            Step::Recv { buf, .. } => ([None; 2], Some(buf)),
            Step::Copy { from, to } => ([Some(from), None], Some(to)),
            Step::Reduce { from, inout } | Step::Combine { from, inout, .. } => {
                ([Some(from), Some(inout)], None)
            }
            Step::Expect { word, .. } => ([Some(word), None], None),
            Step::Wait(_) | Step::WaitAll => continue,
        };
        let here = |buf: &&Buf| buf.base == landing.base;
        let mut reads = reads.into_iter().flatten().filter(here).map(|buf| run(buf, types));
        if reads.any(|run| run.is_none_or(|(first, last)| first < end && start < last)) {
            return false;
        }
        if let Some((first, last)) = writes.filter(here).and_then(|buf| run(buf, types)) {
            if first <= start {
                start = start.max(last);
            }
            if last >= end {
                end = end.min(first);
            }
            if start >= end {
                return true;
            }
        }
    }
    landing.base == Base::Temp
}

#[cfg(test)]
mod tests {
    use super::super::build::{Builder, View};
    use super::super::levels::Spread;
    use super::super::program::Program;
    use super::super::tag::Collective;
    use super::super::{linear, reduce};
    use super::*;
    use crate::handle::Handle;
    use crate::op::{Op, Predefined};

    const INT: Handle = Handle(0x209);

    /// The program of one of four ranks, of 1000 numbers.
    fn program(write: impl FnOnce(&mut Builder, &View, Buf, Buf)) -> Program {
        let op = Op::Predefined(Predefined::Sum);
        let (mut b, ty) = (Builder::reducing(Some(&op), &Spread::Apart), Type::predefined(INT).unwrap());
        let (input, output) = (b.buf(Base::Send, 1000, &ty), b.buf(Base::Recv, 1000, &ty));
        write(&mut b, &View::all(1, 4), input, output);
        b.finish(Collective::Allreduce, None, None, Some(op))
    }

    /// How many steps combine what comes, and how many what has come.
    fn count(program: &Program) -> (usize, usize) {
        let count = |is: &dyn Fn(&Step) -> bool| program.steps.iter().filter(|step| is(step)).count();
        (count(&|s| matches!(s, Step::Combine { .. })), count(&|s| matches!(s, Step::Reduce { .. })))
    }

    #[test]
    fn what_comes_is_combined_as_it_comes() {
        let recursive = program(|b, v, i, o| reduce::recursive_doubling(b, v, i, o, true));
        assert_eq!(count(&recursive), (2, 0));
        assert_eq!(count(&program(reduce::rabenseifner_all)), (2, 0));
        assert_eq!(count(&program(reduce::ring)), (3, 0));
        // This rank's own is combined with the first that comes.
        assert_eq!(count(&program(linear::allreduce_by_shares)), (3, 0));
    }

    /// Each contribution of a piece can go by a block: of 64 bytes in these tests. Ranks of several hosts send whole shares.
    #[test]
    fn long_vectors_go_in_pieces_on_one_host() {
        let (ty, op) = (Type::predefined(INT).unwrap(), Op::Predefined(Predefined::Sum));
        for (spread, ranks, pieces) in
            [(Spread::OneHost, 1, 63), (Spread::OneHost, 4, 16), (Spread::Apart, 4, 1)]
        {
            let mut b = Builder::reducing(Some(&op), &spread);
            let vector = b.buf(Base::Send, 1000, &ty);
            let found = b.pieces(vector, ranks);
            assert_eq!(found.len(), pieces);
            assert!(found.iter().all(|(_, count)| pieces == 1 || *count <= 16 * ranks));
            let mut ends = found.iter().map(|(from, count)| from + count);
            assert!(found.iter().map(|(from, _)| *from).skip(1).eq(ends.clone().take(pieces - 1)));
            assert_eq!(ends.next_back(), Some(1000));
            let empty = b.part(vector, 0, 0);
            assert_eq!(b.pieces(empty, ranks), [(0, 0)]);
        }
    }

    /// Sends before that are contributions, those behind results.
    #[test]
    fn results_are_told_from_contributions() {
        let sends = |program: &Program| {
            let is_send = |step: &&Step| matches!(step, Step::Send { .. });
            let contributions = program.steps[..program.contributions].iter().filter(is_send).count();
            (contributions, program.steps.iter().filter(is_send).count())
        };
        assert_eq!(sends(&program(linear::allreduce_by_shares)), (3, 6));
        assert_eq!(sends(&program(reduce::rabenseifner_all)), (2, 4));
        // A rank that has nothing to combine sends first and receives then.
        assert_eq!(sends(&program(linear::allreduce_by_star)), (1, 1));
    }

    /// What is sent while something else comes is waited for behind that, unless it lies where the result belongs.
    #[test]
    fn sends_are_waited_for_in_time() {
        let exchanged = |sent: fn(Buf, Buf) -> Buf| {
            let program = program(|b, v, input, output| {
                let landing = b.temp_like(output);
                b.exchange(v, 0, sent(input, output), 0, landing);
                b.reduce(landing, output);
            });
            program.steps[2..].to_vec()
        };
        let of_input = exchanged(|input, _| input);
        assert!(matches!(of_input[..], [Step::Combine { message: 0, .. }, Step::WaitAll]), "{of_input:?}");
        let of_output = exchanged(|_, output| output);
        let waits_first =
            matches!(of_output[..], [Step::Wait(1), Step::Combine { message: 0, .. }, Step::WaitAll]);
        assert!(waits_first, "{of_output:?}");
    }

    /// What has landed and is read twice, or goes on to others, must land.
    #[test]
    fn what_is_read_again_must_land() {
        let twice = program(|b, v, input, output| {
            let landing = b.temp_like(output);
            let come = b.recv(v, 0, landing);
            b.wait(come);
            b.reduce(landing, input);
            b.reduce(landing, output);
        });
        assert_eq!(count(&twice), (0, 2));
        let sent_on = program(|b, v, _, output| {
            let landing = b.temp_like(output);
            let come = b.recv(v, 0, landing);
            b.wait(come);
            b.reduce(landing, output);
            let half = b.part(landing, 500, 500);
            b.send(v, 2, half);
        });
        assert_eq!(count(&sent_on), (0, 1));
        // Where the result belongs to the application what has landed there is the result.
        let given = program(|b, v, input, output| {
            let come = b.recv(v, 0, output);
            b.wait(come);
            b.reduce(output, input);
        });
        assert_eq!(count(&given), (0, 1));
    }
}
