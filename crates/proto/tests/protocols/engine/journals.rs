//! The journal of epochs: what plans of a kind were like, when that changed and why, and the same again.

use fabric::{Distance, Span};
use proto::choice::journal::{HEADER, last, parse as messages};
use proto::epoch::cost::Predicted;
use proto::epoch::journal::{EpochKind, Journal, parse};
use proto::epoch::plan::{Form, InMessages, Part, Plan, Step};
use proto::epoch::{Action, Held, Order};

const FORM: Form = Form { order: Order::Interleaved, messages: InMessages::UpTo(512), merges: true };

fn kind(ops: &[(Action, usize)]) -> EpochKind {
    let held = |(action, len): &(Action, usize)| Held {
        action: *action,
        offset: 0,
        local: Span { addr: 4096, len: *len },
        since_ns: 0,
    };
    EpochKind::of(Distance::Network, &ops.iter().map(held).collect::<Vec<_>>())
}

/// Three Puts and five Gets, the sixth and the seventh operation in messages.
fn plan(form: Form) -> Plan {
    let parts = [5, 6].map(|op| Part { op, from: 0, len: 8 }).to_vec();
    let direct = [0, 2, 1, 3, 4, 7].map(Step::Direct);
    let steps = direct.into_iter().chain([Step::Message(parts, form.merges)]).collect();
    let predicted = Predicted { ends_ns: 5000.0, ..Predicted::default() };
    Plan { steps, predicted, form, small_bytes: Some(8), bundled: 2, merged: form.merges, reordered: 1 }
}

fn mixed() -> EpochKind {
    let puts = [(Action::Put, 1000); 3];
    kind(&puts.into_iter().chain([(Action::Get, 8); 5]).collect::<Vec<_>>())
}

fn journalled() -> Journal {
    let mut journal = Journal::default();
    journal.keep();
    for (form, took_ns) in [(FORM, 6000.0), (FORM, 8000.0), (Form { merges: false, ..FORM }, 5000.0)] {
        journal.planned(mixed(), &plan(form), 1);
        journal.ended(mixed(), took_ns);
    }
    journal
}

#[test]
fn every_change_is_a_line_and_behind_them_stands_what_became_of_each_kind() {
    let ops = "9 operations: 1 reordered, 2 in messages, 1 early; predicted 5.0 us";
    let key = "to=network puts=2 put=512 gets=4 get=8";
    let expected = format!(
        "rank=3 at=1 {key} order=interleaved messages=512 sync=merged # {ops}\n\
         rank=3 at=3 {key} order=interleaved messages=512 sync=alone # {ops}; 2 epochs before: predicted 5.0 us, observed 7.0 us\n\
         # rank 3: epochs of 2+ Puts of 512+, 4+ Gets of 8+: 3 (27 operations); order interleaved, 3 reordered; in \
         messages up to 512, 6 of them; 2 synchronisations merged; 3 early; predicted 5.0 us, observed 6.3 us\n"
    );
    assert_eq!(journalled().lines(3), expected);
    assert_eq!(Journal::default().lines(3), "", "nobody asked for one");
}

#[test]
fn plans_are_made_again_from_the_same_epoch_on() {
    let text = format!("{HEADER}\n{}", journalled().lines(3));
    let decisions = parse("j", &text).unwrap();
    assert_eq!(
        (decisions.len(), messages("j", &text).unwrap().len()),
        (2, 0),
        "lines of epochs are no messages'"
    );
    let forms = |decisions: &[_], me| {
        let mut journal = Journal::default();
        journal.replay(me, decisions);
        let mut next = || {
            let pinned = journal.pinned(mixed());
            journal.planned(mixed(), &plan(FORM), 0);
            pinned.map(|form| form.merges)
        };
        [next(), next(), next(), next()]
    };
    assert_eq!(forms(&decisions, 3), [Some(true), Some(true), Some(false), Some(false)]);
    assert_eq!(forms(&last(decisions.clone()), 3), [Some(false); 4]);
    assert_eq!(forms(&decisions, 4), [None; 4], "what rank 3 did is not what rank 4 does");
    let mut other = Journal::default();
    other.replay(3, &decisions);
    assert_eq!(other.pinned(kind(&[(Action::Put, 8)])), None, "nothing is said of other kinds");
}

#[test]
fn forms_are_read_as_they_are_written() {
    let messages = [
        InMessages::None,
        InMessages::Last,
        InMessages::UpTo(100),
        InMessages::UpTo(4096),
        InMessages::UpTo(usize::MAX),
    ];
    for (order, _) in Order::ALL {
        for (messages, merges) in messages.iter().flat_map(|messages| [(*messages, true), (*messages, false)])
        {
            let mut journal = Journal::default();
            journal.keep();
            let form = Form { order, messages, merges };
            journal.planned(mixed(), &plan(form), 0);
            let read = parse("j", &format!("{HEADER}\n{}", journal.lines(0))).unwrap();
            assert_eq!((read[0].key, read[0].way, read[0].at), (mixed(), form, 1), "{}", journal.lines(0));
        }
    }
}

#[test]
fn wrong_lines_of_epochs_name_file_and_line() {
    let good = "rank=* at=1 to=network puts=4 put=1K gets=0 get=0 order=issue messages=256 sync=merged";
    assert_eq!(parse("j", &format!("{HEADER}\n{good} # b\n")).unwrap()[0].rank, None);
    for (from, to, part) in [
        ("at=1", "at=one", "`one` is no number of a message"),
        ("to=network", "to=networks", "to `networks` is unknown; the nearest known one is `network`"),
        ("puts=4", "puts=5", "puts `5` is neither 0 nor a power of two"),
        ("put=1K", "get=1K", "`get=1K` stands where `put=` should"),
        ("order=issue", "order=isue", "order `isue` is unknown; the nearest known one is `issue`"),
        (
            "messages=256",
            "messages=some",
            "messages `some` is none of `none`, `last` and `all`, and no length",
        ),
        ("sync=merged", "", "`sync=` is missing"),
        ("sync=merged", "sync=merged more", "`more` stands behind the end"),
    ] {
        let text = format!("{HEADER}\n# why\n{}\n", good.replace(from, to));
        assert_eq!(parse("my.journal", &text).unwrap_err(), format!("my.journal:3: {part}"));
    }
}
