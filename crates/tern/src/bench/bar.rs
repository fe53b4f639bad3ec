//! Progress on standard error: a bar on a terminal, a line per step elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Instant;

const WIDTH: usize = 30;

/// Shows how far a known number of steps has come.
pub struct Bar {
    total: usize,
    done: usize,
    started: Instant,
    terminal: bool,
}

impl Bar {
    /// A bar of `total` steps.
    pub fn new(total: usize) -> Bar {
        Bar { total, done: 0, started: Instant::now(), terminal: std::io::stderr().is_terminal() }
    }

    /// Shows that the step called `what` begins.
    pub fn begin(&self, what: &str) {
        if self.terminal {
            eprint!("\r\x1b[K{}", self.text(what));
            // Progress that cannot be shown is no reason to stop.
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{}/{} {what}", self.done + 1, self.total);
        }
    }

    /// Shows a message that stays.
    pub fn say(&self, text: &str) {
        eprintln!("{}{text}", if self.terminal { "\r\x1b[K" } else { "" });
    }

    /// Counts the step that began last.
    pub fn end(&mut self) {
        self.done += 1;
        if self.terminal && self.done == self.total {
            eprint!("\r\x1b[K");
        }
    }

    fn text(&self, what: &str) -> String {
        let full = WIDTH * self.done / self.total.max(1);
        let left = match self.done {
            0 => String::new(),
            done => {
                let seconds = self.started.elapsed().as_secs_f64() / done as f64 * (self.total - done) as f64;
                format!(", about {:.0}:{:02.0} left", (seconds / 60.0).floor(), seconds % 60.0)
            }
        };
        let bar = format!("{}{}", "#".repeat(full), "-".repeat(WIDTH - full));
        format!("[{bar}] {}/{}{left}  {what}", self.done, self.total)
    }
}
