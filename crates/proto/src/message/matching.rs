//! Matching of messages with receives (MPI 5.0 section 3.5).
//!
//! Receives with a source wait in a queue per source, those for any source in one of their own;
//! a running number tells which of two candidates came first. Messages without a receive wait
//! per source likewise.

use crate::message::fifo::Fifo;
use crate::message::kept::Kept;
use crate::message::op::OpId;
use crate::message::sparse::Sparse;
use fabric::{Rank, Span};
use std::collections::VecDeque;
use wire::head::{Offer, eager_word};
use wire::long::LongRts;

/// What a receive accepts; `None` stands for the wildcard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Want {
    /// Rank in the job.
    pub source: Option<Rank>,
    /// Context of communicator and purpose.
    pub context: u64,
    /// MPI tag.
    pub tag: Option<i32>,
}

/// Where a message comes from and what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Envelope {
    /// Rank in the job.
    pub source: Rank,
    /// Context of communicator and purpose.
    pub context: u64,
    /// MPI tag.
    pub tag: i32,
}

impl Want {
    /// Whether a message with this envelope matches.
    #[inline]
    pub fn accepts(&self, e: &Envelope) -> bool {
        self.context == e.context
            && self.tag.is_none_or(|tag| tag == e.tag)
            && self.source.is_none_or(|source| source == e.source)
    }
}

/// Payload of a message that nobody waits for yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A few bytes, kept without an allocation.
    Small([u8; 40], u8),
    /// More bytes.
    Heap(Vec<u8>),
    /// More bytes, which the device retains.
    InPlace(Span),
    /// Still at the sender.
    Rts(Offer),
    /// Still at the sender but for its beginning.
    Long(LongRts, Vec<u8>),
    /// On its way into this memory, as that operation says. Never a box: the one who moves a box is the only
    /// one to write what is in it.
    Coming(OpId, Vec<u8>),
}

impl Body {
    /// Length of the message in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Body::Small(_, len) => *len as u64,
            Body::Heap(bytes) | Body::Coming(_, bytes) => bytes.len() as u64,
            Body::InPlace(data) => data.len as u64,
            Body::Rts(offer) => offer.len,
            Body::Long(rts, _) => rts.len,
        }
    }

    /// Whether the message carries nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory its entry holds.
    fn held(&self) -> usize {
        size_of::<Unexpected>()
            + match self {
                Body::Heap(bytes) | Body::Long(_, bytes) | Body::Coming(_, bytes) => bytes.len(),
                Body::InPlace(data) => data.len,
                Body::Small(..) | Body::Rts(_) => 0,
            }
    }
}

/// A message that nobody waits for yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// Its envelope.
    pub envelope: Envelope,
    /// Its payload.
    pub body: Body,
    order: u64,
}

/// A message that waits and is still at its sender.
pub(crate) struct Offered {
    pub envelope: Envelope,
    pub offer: Offer,
    order: u64,
}

/// A receive in its queue, with what is compared for every message.
#[derive(Clone, Copy, Debug)]
struct Posted {
    /// The first word of the header of an eager message with its tag; 0: any tag.
    word: u64,
    context: u64,
    order: u64,
    /// Its buffer, where an eager frame may be taken straight into it.
    direct: Span,
    op: OpId,
    is_direct: bool,
}

impl Posted {
    #[inline]
    fn accepts(&self, e: &Envelope) -> bool {
        self.context == e.context && (self.word == 0 || self.word == eager_word(e.tag))
    }
}

/// What the next message from a source must look like to go straight into a posted buffer.
pub(crate) struct Direct {
    /// Its header.
    pub head: [u64; 2],
    /// The buffer.
    pub buf: Span,
    /// The receive.
    pub op: OpId,
}

#[derive(Default)]
struct PerSource {
    posted: Fifo<Posted>,
    /// Messages that wait; `None` stands where one was taken out of the middle. The first is none of these.
    unexpected: VecDeque<Option<Unexpected>>,
    /// How many of those there are.
    gone: usize,
    passed: Passed,
}

/// How far the last search of a queue has come: none of that many messages at the front is one for this context
/// and tag. Who takes many messages of one tag from behind as many of another does not pass all of these
/// each time.
#[derive(Default)]
struct Passed {
    context: u64,
    tag: Option<i32>,
    count: usize,
}

impl PerSource {
    /// Where the oldest message lies that `want` accepts, whose source this is.
    #[inline]
    fn locate(&self, want: &Want) -> Option<usize> {
        let Passed { context, tag, count } = self.passed;
        let from = if (context, tag) == (want.context, want.tag) { count } else { 0 };
        let accepts = |u: &Option<Unexpected>| u.as_ref().is_some_and(|u| want.accepts(&u.envelope));
        let at = self.unexpected.range(from..).position(accepts)?;
        Some(from + at)
    }

    /// Takes the message out that a search for `want` has found there.
    fn take(&mut self, want: &Want, at: usize) -> Option<Unexpected> {
        self.passed = Passed { context: want.context, tag: want.tag, count: at };
        let taken = self.unexpected.get_mut(at)?.take();
        self.gone += 1;
        while let Some(None) = self.unexpected.front() {
            self.unexpected.pop_front();
            self.gone -= 1;
            self.passed.count = self.passed.count.saturating_sub(1);
        }
        // To close every gap at once would move all that is behind it each time.
        if self.gone > self.unexpected.len() / 2 {
            self.unexpected.retain(Option::is_some);
            (self.gone, self.passed) = (0, Passed::default());
        }
        taken
    }
}

/// Both queues of one rank.
pub struct Matching {
    sources: Sparse<PerSource>,
    any: Fifo<Posted>,
    order: u64,
    /// Receives, and one more where no message may be taken before its receive is posted.
    posted: usize,
    /// Whether every match is seen.
    is_watched: bool,
    /// Memory for what waits.
    pub memory: Kept,
    waiting: usize,
    held_bytes: usize,
    most_held_bytes: usize,
}

impl Matching {
    /// Empty queues for messages from `n` ranks. Unless messages may be taken `at_once`, none of them is ever quiet.
    pub fn new(n: usize, at_once: bool) -> Matching {
        Matching {
            sources: Sparse::new(n),
            any: Fifo::default(),
            order: 0,
            posted: usize::from(!at_once),
            is_watched: false,
            memory: Kept::default(),
            waiting: 0,
            held_bytes: 0,
            most_held_bytes: 0,
        }
    }

    /// Makes room for messages from `n` ranks, which cannot be taken at once where they lie.
    pub fn grow(&mut self, n: usize, was_at_once: bool) {
        self.sources.grow(n);
        self.posted += usize::from(was_at_once);
    }

    /// Messages may be taken at once from here on; before they could not.
    pub fn take_at_once(&mut self) {
        self.posted -= 1;
    }

    /// Whether no receive is posted and no message from `source` waits: then the next message
    /// from it can be matched where it lies.
    #[inline(always)]
    pub fn is_quiet(&self, source: Rank) -> bool {
        self.posted == 0 && (self.waiting == 0 || self.sources[source].unexpected.is_empty())
    }

    /// From here on, or no longer, every message is matched by the general path, so that it is seen.
    pub fn watch(&mut self, is_watched: bool) {
        if self.is_watched != is_watched {
            self.is_watched = is_watched;
            // As if there were always a receive: then no message is taken where it lies.
            self.posted = if is_watched { self.posted + 1 } else { self.posted - 1 };
        }
    }

    /// Whether a message may be taken where it lies, though other receives are posted: none of them is for it.
    pub fn leaves(&self, e: &Envelope) -> bool {
        !self.is_watched
            && !self.expects(e)
            && (self.waiting == 0 || self.sources[e.source].unexpected.is_empty())
    }

    /// Bytes held by messages that wait.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// The most that these were so far.
    pub fn most_held_bytes(&self) -> usize {
        self.most_held_bytes
    }

    /// Whether one more message, of which `len` bytes are here, may wait if all together may hold so many.
    #[inline]
    pub fn fits(&self, len: usize, most_bytes: usize) -> bool {
        self.held_bytes + size_of::<Unexpected>() + len <= most_bytes
    }

    /// Whether there is one receive, for whose message nothing else has to be looked at.
    pub fn has_one_posted(&self) -> bool {
        self.posted == 1
    }

    /// Number of messages that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Appends a receive that no waiting message matches. With `direct` a frame may be copied
    /// into its buffer with nothing else to be done.
    #[inline(always)]
    pub fn post(&mut self, want: Want, op: OpId, direct: Option<Span>) {
        let direct = direct.filter(|_| !self.is_watched);
        self.order += 1;
        self.posted += 1;
        let queue = match want.source {
            Some(source) => &mut self.sources[source].posted,
            None => &mut self.any,
        };
        queue.push_back(Posted {
            word: want.tag.map_or(0, eager_word),
            context: want.context,
            order: self.order,
            direct: direct.unwrap_or(Span::EMPTY),
            op,
            is_direct: direct.is_some() && want.tag.is_some(),
        });
    }

    /// The oldest receive posted for this source, if no receive for any source could be meant
    /// and it is direct: then one comparison with a header decides.
    #[inline(always)]
    pub(crate) fn next_direct(&self, source: Rank) -> Option<Direct> {
        if !self.any.is_empty() {
            return None;
        }
        let front = self.sources[source].posted.front()?;
        let direct = Direct { head: [front.word, front.context], buf: front.direct, op: front.op };
        front.is_direct.then_some(direct)
    }

    /// Removes the receive that [`Matching::next_direct`] has shown.
    #[inline(always)]
    pub(crate) fn pop_direct(&mut self, source: Rank) {
        self.posted -= 1;
        self.sources[source].posted.pop_front();
    }

    /// Takes the oldest receive that a message with this envelope matches.
    #[inline]
    pub fn take_posted(&mut self, e: &Envelope) -> Option<OpId> {
        if self.posted == 0 {
            return None;
        }
        let own = &mut self.sources[e.source].posted;
        let mine = own.iter().position(|p| p.accepts(e));
        let any = self.any.iter().position(|p| p.accepts(e));
        let from_any = match (mine, any) {
            (Some(m), Some(a)) => self.any[a].order < own[m].order,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return None,
        };
        self.posted -= 1;
        let (queue, at) = if from_any { (&mut self.any, any?) } else { (own, mine?) };
        queue.remove(at).map(|p| p.op)
    }

    /// Whether a receive is posted that would accept this envelope.
    #[inline]
    pub fn expects(&self, e: &Envelope) -> bool {
        self.posted != 0 && self.posted_for(e).next().is_some()
    }

    /// The receives posted so far that would accept this envelope, those for any source last.
    pub fn posted_for<'a>(&'a self, e: &'a Envelope) -> impl Iterator<Item = OpId> + 'a {
        let own = &self.sources[e.source].posted;
        own.iter().chain(self.any.iter()).filter(|p| p.accepts(e)).map(|p| p.op)
    }

    /// Removes a posted receive; false if it is not there any more.
    pub fn withdraw(&mut self, want: &Want, op: OpId) -> bool {
        let queue = match want.source {
            Some(source) => &mut self.sources[source].posted,
            None => &mut self.any,
        };
        let found = queue.iter().position(|p| p.op == op);
        if let Some(at) = found {
            queue.remove(at);
            self.posted -= 1;
        }
        found.is_some()
    }

    /// Appends a message that no posted receive matches.
    #[inline]
    pub fn keep(&mut self, envelope: Envelope, body: Body) {
        self.order += 1;
        self.waiting += 1;
        self.held_bytes += body.held();
        self.most_held_bytes = self.most_held_bytes.max(self.held_bytes);
        let entry = Unexpected { envelope, body, order: self.order };
        let unexpected = &mut self.sources[envelope.source].unexpected;
        fabric::begin_with_one(unexpected);
        unexpected.push_back(Some(entry));
    }

    /// The oldest waiting message that `want` accepts.
    pub fn find(&self, want: &Want) -> Option<&Unexpected> {
        let (source, at) = self.locate(want)?;
        self.sources[source].unexpected.get(at)?.as_ref()
    }

    /// All messages that wait, source by source. Who asks does so again and again while nothing waits, and there may be many
    /// sources: no more of them are looked at than is needed.
    pub fn unexpected(&self) -> impl Iterator<Item = &Unexpected> {
        let sources = (self.waiting > 0).then(|| self.sources.iter());
        let all = sources.into_iter().flatten().flat_map(|(_, source)| source.unexpected.iter().flatten());
        all.take(self.waiting)
    }

    /// The waiting messages that are still at their senders, of those whose offers are asked for.
    pub(crate) fn offered(&self, asked: impl Fn(&Offer) -> bool) -> Vec<Offered> {
        let offered = |message: &Unexpected| match &message.body {
            Body::Rts(offer) if asked(offer) => {
                Some(Offered { envelope: message.envelope, offer: *offer, order: message.order })
            }
            _ => None,
        };
        self.unexpected().filter_map(offered).collect()
    }

    /// The waiting messages from `source` whose payloads the device retains.
    pub(crate) fn in_place(&self, source: Rank) -> Vec<(u64, Span)> {
        let waiting = self.sources[source].unexpected.iter().flatten();
        let retained = waiting.filter_map(|message| match message.body {
            Body::InPlace(data) => Some((message.order, data)),
            _ => None,
        });
        retained.collect()
    }

    /// The payload of such a message is here, or on its way.
    pub(crate) fn now_kept(&mut self, message: &Offered, body: Body) {
        self.replace(message.envelope.source, message.order, body);
    }

    /// The payload of the message from `source` with this number lies elsewhere now.
    pub(crate) fn replace(&mut self, source: Rank, order: u64, body: Body) {
        let waiting = &mut self.sources[source].unexpected;
        let entry = waiting.iter_mut().flatten().find(|entry| entry.order == order);
        // What is written into `body` would be freed with it.
        let entry = entry.expect("no receive has come between");
        self.held_bytes = self.held_bytes - entry.body.held() + body.held();
        self.most_held_bytes = self.most_held_bytes.max(self.held_bytes);
        entry.body = body;
    }

    /// Takes the oldest waiting message that `want` accepts.
    #[inline]
    pub fn take_unexpected(&mut self, want: &Want) -> Option<Unexpected> {
        if self.waiting == 0 {
            return None;
        }
        let (source, at) = self.locate(want)?;
        let taken = self.sources[source].take(want, at)?;
        self.waiting -= 1;
        self.held_bytes -= taken.body.held();
        Some(taken)
    }

    /// Takes a message with this envelope out that `is_it` knows by its body; whether there was one.
    pub(crate) fn forget(&mut self, envelope: &Envelope, is_it: impl Fn(&Body) -> bool) -> bool {
        let source = &mut self.sources[envelope.source];
        let fits =
            |u: &Option<Unexpected>| u.as_ref().is_some_and(|u| u.envelope == *envelope && is_it(&u.body));
        let Some(at) = source.unexpected.iter().position(fits) else { return false };
        let want = Want { source: None, context: envelope.context, tag: Some(envelope.tag) };
        let taken = source.take(&want, at).expect("it was found there");
        // Others with this envelope may stand before it.
        source.passed = Passed::default();
        self.waiting -= 1;
        self.held_bytes -= taken.body.held();
        true
    }

    fn locate(&self, want: &Want) -> Option<(Rank, usize)> {
        let in_source = |source: Rank| Some((source, self.sources[source].locate(want)?));
        match want.source {
            Some(source) => in_source(source),
            None => (self.sources.iter())
                .filter_map(|(source, _)| in_source(source))
                .min_by_key(|(source, at)| self.sources[*source].unexpected[*at].as_ref().map(|u| u.order)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Act {
        Post(Want),
        Arrive(Envelope),
    }

    fn act() -> impl Strategy<Value = Act> {
        let source = 0..3usize;
        let tag = 0..3i32;
        let context = 0..2u64;
        prop_oneof![
            (prop::option::of(source.clone()), context.clone(), prop::option::of(tag.clone()))
                .prop_map(|(source, context, tag)| Act::Post(Want { source, context, tag })),
            (source, context, tag).prop_map(|(source, context, tag)| Act::Arrive(Envelope {
                source,
                context,
                tag
            })),
        ]
    }

    proptest! {
        /// The queues give the same pairs as two plain lists searched from the front, which is
        /// how the standard words it.
        #[test]
        fn equals_two_lists(acts in prop::collection::vec(act(), 1..80)) {
            let mut queues = Matching::new(3, true);
            let (mut receives, mut messages) = (Vec::new(), Vec::new());
            for (i, act) in acts.iter().enumerate() {
                match act {
                    Act::Post(want) => {
                        let op = OpId(i as u32);
                        let got = queues.take_unexpected(want).map(|u| u.body);
                        let model = messages.iter().position(|(e, _)| want.accepts(e)).map(|at| messages.remove(at).1);
                        prop_assert_eq!(&got, &model);
                        if got.is_none() {
                            queues.post(*want, op, Some(Span::EMPTY));
                            receives.push((*want, op));
                        }
                    }
                    Act::Arrive(e) => {
                        let head = [eager_word(e.tag), e.context];
                        let direct = queues.next_direct(e.source).filter(|d| d.head == head);
                        let got = match direct {
                            Some(direct) => {
                                queues.pop_direct(e.source);
                                Some(direct.op)
                            }
                            None => queues.take_posted(e),
                        };
                        let model = receives.iter().position(|(w, _)| w.accepts(e)).map(|at| receives.remove(at).1);
                        prop_assert_eq!(got, model);
                        if got.is_none() {
                            let body = Body::Heap(vec![i as u8; i]);
                            queues.keep(*e, body.clone());
                            messages.push((*e, body));
                        }
                    }
                }
                prop_assert_eq!(queues.waiting(), messages.len());
                prop_assert_eq!(queues.held_bytes(), messages.iter().map(|(_, b)| b.held()).sum::<usize>());
                prop_assert_eq!(queues.posted == 0, receives.is_empty());
            }
        }
    }
}
