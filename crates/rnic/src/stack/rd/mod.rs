//! Reliable datagrams (RD): towards one peer the stream of a [`Connection`], carried by datagrams that may be lost,
//! doubled, overtaken or changed (`docs/protocols/datagrams.md`).
//!
//! ```text
//!  post ──▶ Connection ──▶ FPDUs ──▶ flight.rs: numbered, kept until acknowledged ──▶ transmit ──▶ datagrams
//!  poll ◀── Connection ◀── acknowledged ◀── what is lost, by times (pace.rs) ◀──┐
//!  Sink ◀── Connection ◀── in order ◀── arrivals.rs ◀──────────────────────── receive ◀── datagrams
//! ```
//!
//! # The driver's side
//!
//! - [`Pair::receive`] takes what has come, after [`Head::decode`] and the comparison of its id; [`Pair::tick`] is called when
//!   [`Pair::timeout_ns`] has passed. After either, and after [`Pair::post`], the driver calls [`Pair::transmit`] until it
//!   gives nothing, then [`Pair::poll`].
//! - A datagram that the socket does not take is one that the network has lost.
//! - Memory of posted work stays until its completion is polled: lost datagrams are cut from it again.
//! - When [`Pair::is_waiting`], messages wait for receive buffers: [`Pair::resume`].
//! - When [`Pair::failure`] is there, the pair is kept all the same: it tells the peer, as often as that still sends.

mod arrivals;
mod flight;
mod pace;

use super::fpdu::Fpdu;
use super::{
    Cause, Completion, Connection, Failure, Regions, Rights, SEGMENT_MAX, Settings, Sink, Source, Terminate,
    Work,
};
use arrivals::{Arrivals, Taken};
use flight::Flight;
use pace::{Pace, RoundTrip};
use wire::datagram::{
    self, ASKS, CLOSES, DatagramType, Dropped, HEAD_LEN, Head, NUMBERED, RELIABLE_LEN, Reliable,
};
use wire::iwarp::ddp::UNTAGGED_LEN;

/// How long an acknowledgement waits for something to go with.
const ACK_DELAY_NS: u64 = 200_000;
/// Numbered datagrams of which one more is acknowledged before long (RFC 5681 section 4.2), and at once.
const ACK_EVERY: u32 = 2;
const ACK_AT_ONCE: u32 = 32;
/// How often a side that leaves repeats that to a peer that has left, too, and says nothing.
const FAREWELLS: u32 = 3;
/// What surrounds segments in a datagram: its head, bitmap and CRC; and one that is cut: its length and CRC, for it has no pad.
const AROUND: usize = HEAD_LEN + RELIABLE_LEN + 8 * datagram::WORDS_MAX + datagram::CRC_LEN;
const AROUND_SEGMENT: usize = 2 + 4;
/// The shortest segment that is cut to fill a datagram, with what surrounds it.
const PIECE_MIN: usize = AROUND_SEGMENT + UNTAGGED_LEN + 16;

/// What a pair is like.
#[derive(Clone, Copy, Debug)]
pub struct PairSettings {
    /// Who this side is.
    pub rank: u32,
    /// What is written into what it sends.
    pub id: u64,
    /// Longest datagram to send.
    pub datagram_max: usize,
    /// Number of the first datagram in both directions.
    pub first: u32,
    /// Work that is posted and not polled, at most.
    pub depth: usize,
    /// Requests of the peer that are kept, and requests to it that are under way, at most.
    pub requests: usize,
    /// Protection domain.
    pub domain: u32,
}

/// How a side leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Leave {
    /// This side does.
    leaves: bool,
    /// The peer does, and has heard that this side does.
    peer_leaves: bool,
    peer_has_heard: bool,
    repeated: u32,
}

/// One peer: see the [head of this module](self).
#[derive(Debug)]
pub struct Pair {
    settings: PairSettings,
    connection: Connection,
    /// Cut, and for the next datagram.
    cut: Option<Fpdu>,
    flight: Flight,
    arrivals: Arrivals,
    pace: Pace,
    trip: RoundTrip,
    /// Number from which on the peer keeps nothing.
    window_end: u64,
    /// The window of congestion was the limit.
    is_held: bool,
    /// Numbered datagrams that have not been acknowledged; whether that is urgent, and when it is due.
    unanswered: u32,
    answer: bool,
    answer_ns: Option<u64>,
    /// An answer is to be asked for; and is waited for, though nothing else is under way.
    ask: bool,
    probes: bool,
    /// When no answer has come for too long, and when more will be taken for lost.
    timer_ns: Option<u64>,
    loss_ns: Option<u64>,
    /// Since the last answer the last datagram was sent once more.
    has_probed: bool,
    leave: Leave,
    /// The error that the peer is to be told.
    error: Option<Terminate>,
    /// Datagrams sent again.
    resent: u64,
}

impl Pair {
    /// A peer that both sides know of; nothing is sent before something is posted.
    pub fn new(settings: PairSettings) -> Pair {
        let first = u64::from(settings.first);
        let room = settings.datagram_max.min(datagram::LONGEST) - AROUND - AROUND_SEGMENT;
        let connection = Connection::new(Settings {
            segment_max: room.min(SEGMENT_MAX),
            crc: false,
            send_markers: false,
            expect_markers: false,
            ird: settings.requests,
            ord: settings.requests,
            depth: settings.depth,
            domain: settings.domain,
            may_begin: true,
            rtr: None,
            interleave: true,
        });
        Pair {
            settings,
            connection,
            cut: None,
            flight: Flight::new(first),
            arrivals: Arrivals::new(first),
            pace: Pace::new(first),
            trip: RoundTrip::default(),
            window_end: first + arrivals::WINDOW as u64,
            is_held: false,
            unanswered: 0,
            answer: false,
            answer_ns: None,
            ask: false,
            probes: false,
            timer_ns: None,
            loss_ns: None,
            has_probed: false,
            leave: Leave::default(),
            error: None,
            resent: 0,
        }
    }

    /// As [`Connection::post`].
    pub fn post(&mut self, id: u64, work: Work) -> bool {
        self.connection.post(id, work)
    }

    /// As [`Connection::poll`]: Sends and Writes are complete when the peer has them.
    pub fn poll(&mut self) -> Option<Completion> {
        let ended = self.connection.poll();
        if ended.is_none() {
            self.connection.give_back();
        }
        ended
    }

    /// Why it has ended, if it has.
    pub fn failure(&self) -> Option<&Failure> {
        self.connection.failure()
    }

    /// As [`Connection::unfinished`].
    pub fn unfinished(&mut self) -> Option<u64> {
        self.connection.unfinished()
    }

    /// Datagrams that were sent again.
    pub fn resent(&self) -> u64 {
        self.resent
    }

    /// Whether messages wait for receive buffers.
    pub fn is_waiting(&self) -> bool {
        self.arrivals.is_waiting()
    }

    /// Whether all that was sent is acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        self.flight.is_empty()
    }

    /// When [`Pair::tick`] is due.
    pub fn timeout_ns(&self) -> Option<u64> {
        [self.timer_ns, self.loss_ns, self.answer_ns].into_iter().flatten().min()
    }

    /// Whether it is as good as lost: the peer was told something wrong, or has told it.
    fn has_failed(&self) -> bool {
        self.failure().is_some_and(|failure| !matches!(failure, Failure::Closed))
    }

    /// Whether several datagrams are not acknowledged: [`Pair::hurry`] once nothing more comes, for until then the program may answer.
    pub fn owes_answer(&self) -> bool {
        self.unanswered >= ACK_EVERY
    }

    /// Has an acknowledgement not wait for something to go with; whether one did.
    pub fn hurry(&mut self) -> bool {
        self.answer |= self.answer_ns.is_some();
        self.answer
    }

    /// Asks the peer for an answer, whatever is under way: it may be there no longer.
    pub fn probe(&mut self, now_ns: u64) {
        if self.failure().is_none() && !self.probes {
            (self.probes, self.ask) = (true, true);
            self.time(now_ns);
        }
    }

    /// There is no way to the peer any more: all that is posted ends.
    pub fn give_up(&mut self) {
        self.connection.closed();
        self.flight.clear();
        (self.cut, self.timer_ns, self.loss_ns, self.answer_ns) = (None, None, None, None);
        (self.answer, self.ask, self.probes, self.error) = (false, false, false, None);
        self.leave = Leave { leaves: true, peer_leaves: true, peer_has_heard: true, repeated: 0 };
    }

    /// Deals with what is due.
    pub fn tick(&mut self, now_ns: u64) {
        if self.loss_ns.is_some_and(|due| due <= now_ns) {
            self.lose(now_ns);
        }
        if self.answer_ns.is_some_and(|due| due <= now_ns) {
            (self.answer, self.answer_ns) = (true, None);
        }
        if self.timer_ns.is_none_or(|due| due > now_ns) {
            return;
        }
        self.timer_ns = None;
        if !self.wants_answer() {
            return;
        }
        if !std::mem::replace(&mut self.has_probed, true) && self.flight.out() > 0 {
            self.flight.lose_last();
            self.timer_ns = Some(now_ns + self.trip.timeout_ns());
            return;
        }
        self.trip.timed_out();
        if self.flight.is_empty() {
            self.ask = true;
            self.leave.repeated += u32::from(self.leave.peer_leaves);
        } else {
            self.flight.lose_all();
            self.pace.timed_out(self.flight.next());
        }
        self.timer_ns = Some(now_ns + self.trip.timeout_ns());
    }

    /// Whether something has to come from the peer.
    fn wants_answer(&self) -> bool {
        let is_shut = self.has_more() && self.flight.next() >= self.window_end;
        !self.flight.is_empty() || is_shut || self.probes || self.leave.leaves && !self.has_left()
    }

    /// Whether there is something new to send, apart from all limits.
    fn has_more(&self) -> bool {
        self.failure().is_none() && (self.cut.is_some() || self.connection.wants_to_write())
    }

    /// Takes in a datagram of this peer: what [`Head::decode`] gave.
    pub fn receive(
        &mut self,
        now_ns: u64,
        head: &Head,
        content: &[u8],
        regions: &mut Regions,
        sink: &mut impl Sink,
    ) -> Result<(), Dropped> {
        match head.kind {
            // Errors are not answered: both sides may have found one.
            DatagramType::Error if self.has_failed() => return Ok(()),
            DatagramType::Error => {
                let terminate =
                    Terminate::decode(content).unwrap_or(Terminate::new(Cause::RDMAP_UNSPECIFIED));
                self.connection.terminated(terminate);
                self.fail();
                return Ok(());
            }
            DatagramType::Unreliable => return Err(Dropped::Unknown),
            DatagramType::Reliable => {}
        }
        let (reliable, segments) = Reliable::decode(content)?;
        if self.has_failed() {
            self.error = self.own_error();
            return Ok(());
        }
        let is_numbered = head.flags & NUMBERED != 0;
        let ack = self.flight.number(reliable.ack).ok_or(Dropped::Unknown)?;
        if is_numbered == segments.is_empty() {
            return Err(Dropped::Unknown);
        }
        self.probes = false;
        self.acknowledged(now_ns, ack, &reliable);
        if is_numbered {
            self.take(now_ns, reliable.seq, segments, regions, sink);
        }
        self.answer |= head.flags & ASKS != 0;
        if head.flags & CLOSES != 0 && reliable.seq == self.arrivals.next() as u32 {
            let has_heard = head.flags & ASKS == 0;
            self.answer |= !self.leave.peer_leaves;
            self.leave.peer_leaves = true;
            self.leave.peer_has_heard |= has_heard;
            self.close();
        }
        Ok(())
    }

    /// Goes on with what waited for receive buffers.
    pub fn resume(&mut self, regions: &mut Regions, sink: &mut impl Sink) {
        if !self.arrivals.is_waiting() {
            return;
        }
        // The window opens, of which the peer is told.
        self.answer = true;
        for content in self.arrivals.waiting() {
            self.feed(&content, regions, sink);
        }
        self.close();
    }

    fn acknowledged(&mut self, now_ns: u64, ack: u64, reliable: &Reliable) {
        if ack < self.flight.first() {
            return;
        }
        let window_end = ack + u64::from(reliable.window).min(arrivals::WINDOW as u64);
        if window_end > self.window_end {
            self.window_end = window_end;
            self.trip.progressed();
        }
        let doubted = self.pace.is_in_doubt();
        let what = self.flight.acknowledge(ack, reliable, now_ns, self.trip.least_ns());
        if what.newly > 0 {
            if let Some(sent_ns) = what.sent_ns {
                self.trip.measured(now_ns.saturating_sub(sent_ns));
            }
            if doubted && what.was_not_lost {
                self.flight.find_all();
                self.pace.restore();
            }
            let (trip_ns, least_ns) = (self.trip.smoothed_ns(), self.trip.least_ns());
            self.pace.rate().acknowledged(now_ns, what.newly, trip_ns, least_ns, self.is_held);
            self.pace.settle();
            self.trip.progressed();
            if self.is_held {
                self.pace.acknowledged(what.newly);
            }
            self.connection.written(what.bytes);
            (self.timer_ns, self.has_probed) = (None, false);
            self.close();
        }
        self.lose(now_ns);
        self.time(now_ns);
    }

    fn lose(&mut self, now_ns: u64) {
        let (lost, due_ns) = self.flight.lose(now_ns, self.trip.reordering_ns());
        if let Some(seq) = lost {
            self.pace.lost(seq, self.flight.next());
        }
        self.loss_ns = due_ns;
    }

    /// Sets the timer if something has to come and it is not set.
    fn time(&mut self, now_ns: u64) {
        if self.timer_ns.is_none() && self.wants_answer() {
            let probes = !self.has_probed && self.flight.out() > 0;
            let patience_ns = if probes { self.trip.probe_ns() } else { self.trip.timeout_ns() };
            self.timer_ns = Some(now_ns + patience_ns);
        }
    }

    fn take(&mut self, now_ns: u64, seq: u32, segments: &[u8], regions: &mut Regions, sink: &mut impl Sink) {
        let had_gap = self.arrivals.has_gap();
        match self.arrivals.take(seq, segments) {
            Taken::Next => {
                self.feed(segments, regions, sink);
                while let Some(content) = self.arrivals.follow() {
                    self.feed(&content, regions, sink);
                }
                self.unanswered += 1;
                self.answer |= self.unanswered >= ACK_AT_ONCE || had_gap;
                self.answer_ns = self.answer_ns.or(Some(now_ns + ACK_DELAY_NS));
            }
            Taken::Early | Taken::Again | Taken::Beyond => self.answer = true,
        }
    }

    fn feed(&mut self, segments: &[u8], regions: &mut Regions, sink: &mut impl Sink) {
        if self.arrivals.is_waiting() {
            return self.arrivals.keep(segments);
        }
        let taken = self.connection.feed(segments, regions, sink);
        if taken < segments.len() || self.connection.is_undecided() {
            self.arrivals.keep(&segments[taken..]);
        }
        self.fail();
    }

    /// If the connection has failed, everything else ends.
    fn fail(&mut self) {
        if self.has_failed() && (!self.flight.is_empty() || self.error.is_none()) {
            self.error = self.own_error();
            self.flight.clear();
            (self.cut, self.timer_ns, self.loss_ns, self.answer_ns) = (None, None, None, None);
            (self.answer, self.ask) = (false, false);
        }
    }

    /// The error that this side has found.
    fn own_error(&self) -> Option<Terminate> {
        match self.failure() {
            Some(Failure::Refused(terminate)) => Some(*terminate),
            Some(Failure::Lost) => Some(Terminate::new(Cause::MPA_LOST)),
            _ => None,
        }
    }

    /// If the peer has left, all it has sent is taken and it has all that was sent to it, nothing more will come.
    fn close(&mut self) {
        let is_between = !self.arrivals.is_waiting() && self.flight.is_empty() && self.cut.is_none();
        if self.leave.peer_leaves && is_between && self.failure().is_none() {
            self.connection.closed();
            self.fail();
        }
    }

    /// This side has nothing more to post.
    pub fn leave(&mut self, now_ns: u64) {
        if !self.leave.leaves {
            self.leave.leaves = true;
            self.ask = true;
            self.time(now_ns);
        }
    }

    /// Whether both have left: nothing more has to be sent or taken.
    pub fn has_left(&self) -> bool {
        let Leave { leaves, peer_leaves, peer_has_heard, repeated } = self.leave;
        let is_over = peer_leaves && !self.answer && !self.ask && (peer_has_heard || repeated >= FAREWELLS);
        leaves && (is_over || self.has_failed() && self.error.is_none())
    }

    /// Appends the next datagram to `out`, if there is one to send. `memory` gives the payload of an FPDU.
    pub fn transmit<'m>(
        &mut self,
        now_ns: u64,
        regions: &Regions,
        memory: impl Fn(&Fpdu) -> [&'m [u8]; 2],
        out: &mut Vec<u8>,
    ) -> bool {
        if self.has_failed() {
            return self.tell_error(out);
        }
        if let Some(seq) = self.next_seq(now_ns, regions) {
            self.write(Some(seq), now_ns, memory, out);
            return true;
        }
        if self.has_failed() {
            return self.tell_error(out);
        }
        self.time(now_ns);
        let closes = self.leave.leaves && self.flight.is_empty() && !self.has_more();
        if !(self.answer || self.ask && (!self.leave.leaves || closes)) {
            return false;
        }
        self.write(None, now_ns, memory, out);
        true
    }

    /// The number of the datagram that is to leave: one that was lost, or one that is cut for it.
    fn next_seq(&mut self, now_ns: u64, regions: &Regions) -> Option<u64> {
        let lost = self.flight.lost();
        let may_send = self.flight.out() < self.pace.window();
        let has_work = lost.is_some() || self.has_more();
        self.is_held = (self.is_held || !may_send) && has_work
            || self.is_held && self.flight.out() * 2 >= self.pace.window();
        if !may_send {
            return None;
        }
        if let Some(seq) = lost {
            if let Err(cause) = self.may_read(seq, regions) {
                self.connection.terminate(cause);
                self.fail();
                return None;
            }
            self.flight.leaves_again(seq, now_ns);
            self.resent += 1;
            return Some(seq);
        }
        if self.flight.next() >= self.window_end || !self.has_more() {
            return None;
        }
        self.fill(now_ns, regions)
    }

    /// Fills a datagram. What would not fit is cut, so that datagrams of a stream of messages have one length, and the kernel takes many at once.
    fn fill(&mut self, now_ns: u64, regions: &Regions) -> Option<u64> {
        let room = self.settings.datagram_max.min(datagram::LONGEST) - AROUND;
        let (mut len, mut fpdus) = (0, 0);
        while self.failure().is_none() && (fpdus == 0 || self.cut.is_some() || len + PIECE_MIN <= room) {
            let shorten = |_, header: usize, payload: usize| {
                payload.min((room - len).saturating_sub(AROUND_SEGMENT + header) & !3)
            };
            let cut = self.cut.take();
            let Some(fpdu) = cut.or_else(|| self.connection.next_fpdu_of(regions, shorten)) else { break };
            if self.failure().is_some() {
                // It was the Terminate, which is told otherwise.
                break;
            }
            if fpdus > 0 && len + fpdu.len() > room {
                self.cut = Some(fpdu);
                break;
            }
            len += fpdu.len();
            fpdus += 1;
            self.flight.push(fpdu);
        }
        if self.failure().is_some() {
            self.fail();
            return None;
        }
        (fpdus > 0).then(|| self.flight.leaves(fpdus, now_ns))
    }

    /// What the peer reads may have ended since it was sent for the first time.
    fn may_read(&self, seq: u64, regions: &Regions) -> Result<(), Cause> {
        for fpdu in self.flight.carried(seq) {
            if let Source::Region { stag, to } = fpdu.source() {
                regions
                    .check(stag, to, fpdu.payload_len() as u64, Rights::REMOTE_READ, self.settings.domain)
                    .map_err(|denied| denied.of_request())?;
            }
        }
        Ok(())
    }

    fn write<'m>(
        &mut self,
        seq: Option<u64>,
        now_ns: u64,
        memory: impl Fn(&Fpdu) -> [&'m [u8]; 2],
        out: &mut Vec<u8>,
    ) {
        let begin = out.len();
        let closes = self.leave.leaves && self.flight.is_empty() && !self.has_more();
        let asks = if closes {
            !self.leave.peer_leaves || self.leave.repeated > 0 && !self.leave.peer_has_heard
        } else {
            self.ask
        };
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(seq.is_some(), NUMBERED) | flag(asks, ASKS) | flag(closes, CLOSES);
        Head { kind: DatagramType::Reliable, flags, rank: self.settings.rank, id: self.settings.id }
            .begin(out);
        let number = seq.unwrap_or(self.flight.next());
        let reliable = Reliable {
            seq: number as u32,
            ack: self.arrivals.next() as u32,
            window: self.arrivals.window(),
            came: self.arrivals.came(),
        };
        reliable.encode(out);
        if let Some(seq) = seq {
            for fpdu in self.flight.carried(seq) {
                fpdu.slices(&memory(fpdu), 0, |slice| out.extend_from_slice(slice));
            }
        }
        datagram::seal(out, begin);
        (self.unanswered, self.answer, self.answer_ns) = (0, false, None);
        self.ask &= self.leave.leaves && !closes;
        self.time(now_ns);
    }

    fn tell_error(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(terminate) = self.error.take() else { return false };
        let begin = out.len();
        Head { kind: DatagramType::Error, flags: 0, rank: self.settings.rank, id: self.settings.id }
            .begin(out);
        let mut body = [0; Terminate::MAX_LEN];
        let len = terminate.encode(&mut body);
        out.extend_from_slice(&body[..len]);
        datagram::seal(out, begin);
        true
    }
}
