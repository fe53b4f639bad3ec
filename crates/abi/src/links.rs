//! What links between hosts take: told by jobs before this one, and measured at its end for the next.
//!
//! Collectives are chosen by all ranks alike, so rank 0 alone looks into the file ([`launch::links`]) and tells the others
//! the rates with what ranks agree on anyway. Nothing is measured where a program waits for it: a link of which too little is
//! known is measured in MPI_Finalize, behind the last barrier, between rank 0 and the first rank of the other host, by
//! messages of the engine to and fro. After some jobs ([`JOBS`]) a link is known, and later jobs choose by the same figures.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fabric::settings::Settings;
use fabric::{Distance, Span};
use launch::links;
use mpi::coll::link::{JOBS, LENGTHS, lengths};
use mpi::coll::{Agreed, Link, Tariff};
use mpi::comm::Purpose;
use mpi::error::Result;
use mpi::handle::Handle;
use mpi::request::{Body, Keep};
use mpi::world::fault;
use proto::{Mode, Want};

use crate::cx::Cx;
use crate::device::Hosts;
use crate::kind::text::StatusPlace;
use crate::request;

/// What this rank does at the end of the job.
#[derive(Debug)]
enum Part {
    /// Measures links to these ranks, each with the words by which the file knows it.
    Measure(PathBuf, Vec<(usize, String)>),
    /// Sends back what rank 0 sends.
    Answer,
}

static PART: Mutex<Option<Part>> = Mutex::new(None);

/// The most links that a job measures.
const MOST: usize = 4;
/// Time for messages of one length, by the shortest of those before; a link that would take longer is too slow to be measured in
/// passing. Ranks that are rarely given their core may take four times as long for all of it.
const BUDGET: Duration = Duration::from_millis(500);
/// How often a message of each length goes to and fro.
const TIMES: [u32; LENGTHS.len()] = [16, 8, 4, 3];
/// Messages in a row that nobody answers, but the last.
const ROW: u32 = 32;
/// Set in the word at the front of a message that is to be sent back; the others bits are its length. Without any bit it is the
/// last one.
const ANSWER: u64 = 1 << 63;
/// The tag of all of them, in a context where nothing else is sent.
const TAG: i32 = 1;

/// What all go by, as rank 0 sees it.
pub fn agree(tariff: Tariff, settings: &Settings, file: Option<&Path>, hosts: &Hosts) -> Agreed {
    let may_learn = settings.flag("TERN_ADAPT") && settings.text("TERN_PROTOCOL") == "auto";
    let file = file.filter(|_| may_learn);
    let places = file.map_or(Vec::new(), |_| hosts.places(settings));
    let (Some(file), Some(((_, own), others))) = (file, places.split_first()) else {
        return Agreed { tariff, measured: Vec::new() };
    };
    let kept = links::read(file);
    let how = match settings.text("TERN_INTEGRITY") {
        "auto" => settings.text("TERN_TRANSPORT").to_owned(),
        checked => format!("{}+{checked}", settings.text("TERN_TRANSPORT")),
    };
    let between: Vec<_> =
        others.iter().map(|(rank, other)| (*rank, format!("{how} {own} {other}"))).collect();
    let known = |words: &str| find(&kept, words);
    let is_open = |(_, words): &&(usize, String)| known(words).is_none_or(|link| link.jobs < JOBS);
    let open: Vec<_> = between.iter().filter(is_open).take(MOST).cloned().collect();
    let measured = open.iter().map(|(rank, _)| *rank).collect();
    let all = between.iter().filter_map(|(_, words)| known(words)).reduce(Link::slower);
    set(Part::Measure(file.into(), open));
    Agreed { tariff: all.map_or(tariff, |link| tariff.on(&link, settings)), measured }
}

/// What rank 0 has told rank `me`.
pub fn heed(agreed: &Agreed, me: usize) {
    if agreed.measured.contains(&me) {
        set(Part::Answer);
    }
}

fn set(part: Part) {
    *PART.lock().unwrap_or_else(|e| e.into_inner()) = Some(part);
}

fn find(kept: &[(String, String)], words: &str) -> Option<Link> {
    kept.iter().rfind(|line| line.0 == words).and_then(|line| Link::parse(&line.1))
}

/// What was known of links, for people; nothing where there are no other hosts.
pub fn explanation(tariff: &Tariff, has_others: bool, head: &str) -> String {
    if !has_others {
        return String::new();
    }
    let network = &tariff.network;
    let bare_us = (network.latency_ns + network.overhead_ns + network.receive_ns) / 1000.0;
    let per_byte = network.levels[0].link;
    format!(
        "{head}collectives between hosts were chosen by costs that were {}: a message {bare_us:.1} us and {per_byte:.3} ns per byte\n",
        tariff.source.name()
    )
}

/// Does this rank's part behind the last barrier of the job, in its communicator: unless some rank is lost and so not all `have_met` there.
/// What fails is not measured.
pub fn measure(cx: &Cx, last: Handle, have_met: bool) {
    let part = PART.lock().unwrap_or_else(|e| e.into_inner()).take();
    match part {
        None => {}
        Some(Part::Answer) if !have_met => {}
        Some(Part::Answer) => {
            let _ = Line::to(cx, last, 0).and_then(Line::answer);
        }
        Some(Part::Measure(file, between)) => {
            let link = |rank| Line::to(cx, last, rank).and_then(|line| line.ask(have_met)).ok().flatten();
            let seen: Vec<_> =
                between.into_iter().filter_map(|(rank, words)| Some((words, link(rank)?))).collect();
            if !seen.is_empty() {
                keep(&file, seen);
            }
        }
    }
}

/// Adds what was seen to what the file says by now. It is a cache: that it cannot be written is no error.
fn keep(file: &std::path::Path, seen: Vec<(String, Link)>) {
    let mut kept = links::read(file);
    for (words, link) in seen {
        let known = find(&kept, &words).map_or(link, |known| known.and(link));
        kept.retain(|line| line.0 != words);
        kept.push((words, known.text()));
    }
    let _ = links::write(file, &kept);
}

/// The other end of a link, and memory for messages to it.
struct Line<'a> {
    cx: &'a Cx,
    peer: usize,
    context: u64,
    room: Vec<u64>,
}

impl Line<'_> {
    fn to<'a>(cx: &'a Cx, comm: Handle, peer: usize) -> Result<Line<'a>> {
        let context = cx.world().comm(comm)?.place.context_for(Purpose::Message);
        Ok(Line { cx, peer, context, room: vec![1; LENGTHS[LENGTHS.len() - 1] / size_of::<u64>()] })
    }

    /// The side of rank 0, which measures nothing where ranks were lost.
    fn ask(mut self, have_met: bool) -> Result<Option<Link>> {
        let found = if have_met { self.times() } else { Ok(None) };
        // Whatever has failed, the other side waits for this.
        let ended = self.send(0, LENGTHS[0]);
        self.end(found.and_then(|link| ended.map(|()| link)))
    }

    /// The other one.
    fn answer(mut self) -> Result<()> {
        let answered = self.echo();
        self.end(answered)
    }

    /// Memory that an operation may still touch stays.
    fn end<T>(self, ended: Result<T>) -> Result<T> {
        if ended.is_err() {
            std::mem::forget(self.room);
        }
        ended
    }

    fn echo(&mut self) -> Result<()> {
        loop {
            self.receive(LENGTHS[LENGTHS.len() - 1])?;
            // It was written through its address.
            let word = std::hint::black_box(&self.room)[0];
            match word & !ANSWER {
                0 => return Ok(()),
                len if word & ANSWER != 0 => self.send(word, (len as usize).min(self.room.len() * 8))?,
                _ => {}
            }
        }
    }

    /// What messages take; nothing of a link that is too slow for it.
    fn times(&mut self) -> Result<Option<Link>> {
        let begun = Instant::now();
        let eager_bytes = self.cx.world().engine.learner().facts.path(Distance::Network).eager_bytes as f64;
        let mut link =
            Link { jobs: 1, eager_bytes, send_ns: f64::MAX, gap_ns: f64::MAX, trips_ns: [f64::MAX; 4] };
        let lengths = lengths(eager_bytes);
        for (at, len) in lengths.into_iter().enumerate() {
            // What goes before the second length says nothing of bytes.
            let known = at.checked_sub(1).filter(|before| *before > 0);
            let expected_ns = known.map_or(0.0, |at| link.trips_ns[at] / lengths[at] as f64 * len as f64);
            if expected_ns * 2.0 * f64::from(TIMES[at]) > BUDGET.as_nanos() as f64 {
                return Ok(None);
            }
            for _ in 0..TIMES[at] {
                if begun.elapsed() > 4 * BUDGET {
                    return Ok(None);
                }
                let (sent_ns, back_ns) = self.there_and_back(len)?;
                link.trips_ns[at] = link.trips_ns[at].min(back_ns / 2.0);
                if at == 0 {
                    link.send_ns = link.send_ns.min(sent_ns);
                }
            }
        }
        for _ in 0..TIMES[2] {
            let row = Instant::now();
            for _ in 1..ROW {
                self.send(LENGTHS[0] as u64, LENGTHS[0])?;
            }
            self.there_and_back(LENGTHS[0])?;
            let further_ns = row.elapsed().as_nanos() as f64 - 2.0 * link.trips_ns[0];
            link.gap_ns = link.gap_ns.min(further_ns.max(0.0) / f64::from(ROW - 1));
        }
        Ok(Some(link).filter(Link::is_sane))
    }

    /// How long it took to send a message, and until it was back.
    fn there_and_back(&mut self, len: usize) -> Result<(f64, f64)> {
        let begun = Instant::now();
        self.send(ANSWER | len as u64, len)?;
        let sent = begun.elapsed();
        self.receive(len)?;
        Ok((sent.as_nanos() as f64, begun.elapsed().as_nanos() as f64))
    }

    fn send(&mut self, word: u64, len: usize) -> Result<()> {
        self.room[0] = word;
        let span = Span { addr: self.room.as_ptr() as usize, len };
        let sent = self.cx.world().engine.send(self.peer, self.context, TAG, span, Mode::Standard);
        let Some(op) = sent.map_err(fault)? else { return Ok(()) };
        request::finish(self.cx, Body::Send(op, Keep::Nothing), StatusPlace::IGNORE)
    }

    fn receive(&mut self, len: usize) -> Result<()> {
        let span = Span { addr: self.room.as_mut_ptr() as usize, len };
        let want = Want { source: Some(self.peer), context: self.context, tag: Some(TAG) };
        let op = self.cx.world().engine.receive(want, span).map_err(fault)?;
        request::finish(self.cx, Body::of_receive(op, 0), StatusPlace::IGNORE)
    }
}
