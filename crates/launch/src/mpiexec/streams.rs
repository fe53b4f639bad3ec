//! Standard input, output and error of the ranks in the event loop.
use super::arguments::Reader;
use super::job::Job;
use super::message::Order;
use super::token::Token;
use crate::sys::{self, event};
use std::io::{self, ErrorKind, IsTerminal, Read};

/// The launcher's standard input, on its way to the rank that reads it. One piece is under way at a time, so that no
/// more is read than the rank takes.
pub(super) struct Source {
    terminal: bool,
    /// Whether the next piece may be sent.
    wanted: bool,
    watched: bool,
}

impl Source {
    /// Whether it will be read as soon as this process is in the foreground, which happens without an event.
    pub(super) fn waits_for_terminal(&self) -> bool {
        self.terminal && self.wanted && !self.watched
    }
}

impl Job {
    pub(super) fn on_output(&mut self, rank: usize, which: usize, bytes: &[u8]) {
        let whole = self.ranks.len() > 1 || self.plan.label;
        let target = if self.one_sink { 0 } else { which };
        let Some(stream) = &mut self.ranks[rank].streams[which] else { return };
        let sink = &mut self.sinks[target];
        stream.take(rank * 2 + which, bytes, whole, sink, &self.epoll);
        if bytes.is_empty() {
            self.ranks[rank].streams[which] = None;
        } else if sink.broken() {
            // When nobody reads the output, the rank is told so in the usual way: by SIGPIPE.
            self.ranks[rank].streams[which] = None;
            self.order(rank, Order::Close { rank, which });
        }
        self.balance(target);
    }

    pub(super) fn on_room(&mut self, target: usize) {
        self.sinks[target].flush(&self.epoll);
        self.balance(target);
    }

    /// Lets ranks write as much as is taken. Whatever is pushed may also have emptied the sink: what was under way
    /// when agents were told to pause still comes.
    pub(super) fn balance(&mut self, target: usize) {
        if self.sinks[target].full() {
            self.pause(target, true);
        } else if self.sinks[target].roomy() {
            self.pause(target, false);
        }
    }

    fn pause(&mut self, target: usize, paused: bool) {
        if self.paused[target] == paused {
            return;
        }
        self.paused[target] = paused;
        let all = self.one_sink;
        for which in (0..2).filter(|which| all || *which == target) {
            self.order_all(&Order::Pause { which, paused });
        }
    }

    /// Says once for each stream that what ranks wrote could not be passed on, and why.
    pub(super) fn say_what_is_lost(&mut self) {
        for (sink, name) in [(0, "standard output"), (1, "standard error")] {
            if let Some(error) = self.sinks[sink].why_lost() {
                self.say(&format!("mpiexec: {name} cannot be written, some of it is lost: {error}"));
            }
        }
    }

    pub(super) fn unfinished(&self) -> bool {
        let streams = self.ranks.iter().flat_map(|rank| rank.streams.iter().enumerate());
        streams
            .filter_map(|(which, stream)| Some((which, stream.as_ref()?)))
            .any(|(which, stream)| stream.unfinished(&self.sinks[if self.one_sink { 0 } else { which }]))
    }

    pub(super) fn show_unfinished(&mut self) {
        for (rank, state) in self.ranks.iter_mut().enumerate() {
            for (which, stream) in state.streams.iter_mut().enumerate() {
                let sink = &mut self.sinks[if self.one_sink { 0 } else { which }];
                if let Some(stream) = stream {
                    stream.show_unfinished(rank * 2 + which, sink, &self.epoll);
                }
            }
        }
    }

    /// The rank that reads has taken all it was sent.
    pub(super) fn on_input_wanted(&mut self) {
        let terminal = io::stdin().is_terminal();
        let source = self.input.get_or_insert(Source { terminal, wanted: false, watched: false });
        source.wanted = true;
        self.watch_input();
    }

    /// Reads from a terminal only in the foreground: in the background that would stop us.
    pub(super) fn watch_input(&mut self) {
        let Some(source) = &mut self.input else { return };
        let wanted = source.wanted && (!source.terminal || sys::in_foreground(0));
        if wanted && !source.watched {
            source.watched = self.epoll.add(0, Token::Input.pack(), event::READ).is_ok();
            if !source.watched && !source.terminal {
                // A file cannot be waited for, and need not be.
                self.on_input();
            }
        } else if !wanted && source.watched {
            self.epoll.remove(0);
            source.watched = false;
        }
    }

    pub(super) fn on_input(&mut self) {
        let Some(source) = self.input.as_mut().filter(|source| source.wanted) else { return };
        let mut bytes = vec![0u8; 1 << 16];
        match io::stdin().read(&mut bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            // An error is the end of input as well.
            read => {
                source.wanted = false;
                bytes.truncate(read.unwrap_or(0));
                let ended = bytes.is_empty();
                self.watch_input();
                if ended {
                    self.forget_input();
                }
                if let Reader::Rank(rank) = self.plan.reader {
                    self.order(rank, Order::Input { bytes });
                }
            }
        }
    }

    /// Reads no more of the input.
    pub(super) fn forget_input(&mut self) {
        if self.input.take().is_some_and(|source| source.watched) {
            self.epoll.remove(0);
        }
    }
}
