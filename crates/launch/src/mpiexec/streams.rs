//! Standard input, output and error of the ranks in the event loop.
use super::job::{Job, Token};
use crate::sys::{self, event};
use std::io::{self, ErrorKind, Read};

impl Job {
    pub(super) fn on_output(&mut self, rank: usize, which: usize) {
        let whole = self.ranks.len() > 1 || self.plan.label;
        let target = if self.one_sink { 0 } else { which };
        let Some(stream) = &mut self.ranks[rank].streams[which] else { return };
        let sink = &mut self.sinks[target];
        let more = stream.pump(rank * 2 + which, whole, sink, &self.epoll);
        // When nobody reads the output, the rank is told so in the usual way: by SIGPIPE.
        if !more || sink.broken() {
            self.epoll.remove(stream.fd());
            self.ranks[rank].streams[which] = None;
        }
        if self.sinks[target].full() {
            self.pause(target, true);
        }
    }

    pub(super) fn on_room(&mut self, target: usize) {
        self.sinks[target].flush(&self.epoll);
        if self.paused[target] && self.sinks[target].roomy() {
            self.pause(target, false);
        }
    }

    fn pause(&mut self, target: usize, paused: bool) {
        if self.paused[target] == paused {
            return;
        }
        self.paused[target] = paused;
        for (rank, state) in self.ranks.iter().enumerate() {
            for (which, stream) in state.streams.iter().enumerate() {
                let (Some(stream), true) = (stream, self.one_sink || which == target) else { continue };
                let token = if which == 0 { Token::Stdout(rank) } else { Token::Stderr(rank) };
                if paused {
                    self.epoll.remove(stream.fd());
                } else {
                    // It was in the set before: only lack of kernel memory can refuse it.
                    self.epoll.add(stream.fd(), token.pack(), event::READ).expect("epoll takes it back");
                }
            }
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

    /// Reads from the terminal only in the foreground: in the background that would stop us.
    pub(super) fn watch_terminal(&mut self) {
        let room = self.stdin.as_ref().is_some_and(|sink| sink.wants_more());
        let wanted = room && sys::in_foreground(0);
        if wanted && !self.terminal_watched {
            self.terminal_watched = self.epoll.add(0, Token::Terminal.pack(), event::READ).is_ok();
        } else if !wanted && self.terminal_watched {
            self.epoll.remove(0);
            self.terminal_watched = false;
        }
    }

    pub(super) fn on_terminal(&mut self) {
        self.watch_terminal();
        let (Some(sink), true) = (&mut self.stdin, self.terminal_watched) else { return };
        let mut buffer = [0u8; 4096];
        match io::stdin().read(&mut buffer) {
            Ok(count) if count > 0 => sink.push(buffer[..count].to_vec(), &self.epoll),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            // End of input: the rank sees it when our end of the pipe closes.
            _ => {
                self.epoll.remove(0);
                self.terminal_watched = false;
                sink.finish();
            }
        }
        self.close_finished_stdin();
        self.watch_terminal();
    }

    pub(super) fn on_stdin_room(&mut self) {
        if let Some(sink) = &mut self.stdin {
            sink.flush(&self.epoll);
        }
        self.close_finished_stdin();
        self.watch_terminal();
    }

    fn close_finished_stdin(&mut self) {
        if self.stdin.as_ref().is_some_and(|sink| sink.finished() || sink.broken()) {
            self.stdin = None;
        }
    }
}
