//! What was chosen and how it went, for people, with what this rank knows.

use super::Engine;
use crate::choice::choose::{Choice, LONG, Seen, Why, choose};
use crate::choice::explain::{Detail, because};
use crate::choice::facts::Facts;
use crate::choice::journal::{bytes, time};
use crate::choice::terms::Message;
use crate::choice::way::Way;
use crate::event::Event;
use fabric::{Device, Distance};

impl<D: Device> Engine<D> {
    /// The account as text, each line after `prefix`.
    pub fn explanation(&self, prefix: &str) -> String {
        let account = &self.learner.account;
        let facts = self.facts_seen();
        let host = facts.path(Distance::Host);
        let text = account
            .text(prefix, self.learner.choices.entries(), |to, way, len| self.why(&facts, to, way, len));
        let text = if account.is_on() {
            text + &self.planned.text(prefix) + &self.windows_text(prefix)
        } else {
            text
        };
        if account.detail() != Detail::All || host.registration || text.is_empty() {
            return text;
        }
        let limit = &self.eager_limits[Distance::Host as usize];
        let (longest, facts) = (bytes(limit.limit() as u64), limit.costs());
        let cost = |ns: Option<f64>| ns.map_or("not measured".into(), |ns| format!("{ns:.4} ns per byte"));
        let single = format!("{} + {}", time(facts.setup.value().unwrap_or(0.0)), cost(Some(facts.single)));
        let single = if host.reach { &single } else { "not possible" };
        let habits = self.habits.iter().flat_map(|habits| habits.lines());
        let habits: String = habits.map(|line| format!("{prefix}{line}\n")).collect();
        text + &habits
            + &format!(
                "{prefix}eager up to {longest} at most; copy into shared memory {}, out of it {}; single copy {single}\n",
                cost(facts.copy_in.value()),
                cost(facts.copy_out.value()),
            )
    }

    /// What was done in windows, and which way; nothing where there were none.
    fn windows_text(&self, prefix: &str) -> String {
        let n = |event| self.counters.get(event);
        let (direct, active) = (n(Event::WindowDirect), n(Event::WindowActive));
        let mut text = String::new();
        if direct > 0 {
            text += &format!(
                "{prefix}{direct} windows in shared memory: {} Puts, {} Gets, {} accumulates, all by their origin\n",
                n(Event::WindowPut),
                n(Event::WindowGet),
                n(Event::WindowAtomic),
            );
        }
        if active > 0 {
            text += &format!(
                "{prefix}{active} other windows: {} operations handed over, {} of them atomics of adapters, {} Puts that went with accumulates, {} copied by their origin\n",
                n(Event::WindowTold),
                n(Event::WindowWord),
                n(Event::WindowAlong),
                n(Event::WindowCopied),
            );
        }
        if direct + active > 0 {
            text += &format!(
                "{prefix}epochs: {} fences of which {} were told to each rank, {} posts, {} starts, {} locks of which {} were not free, {} flushes\n",
                n(Event::WindowFence),
                n(Event::WindowFenceTold),
                n(Event::WindowPost),
                n(Event::WindowStart),
                n(Event::WindowLock),
                n(Event::WindowLockWaited),
                n(Event::WindowFlush),
            );
        }
        text
    }

    /// What is known; in shared memory with what its own measurements say.
    fn facts_seen(&self) -> Facts {
        let mut facts = self.learner.facts.clone();
        if !facts.path(Distance::Host).registration {
            let seen = self.eager_limits[Distance::Host as usize].costs();
            facts.single.fixed = seen.setup.value().unwrap_or(facts.single.fixed);
            if let Some(either) = seen.copy_in.value().or(seen.copy_out.value()) {
                let both = seen.copy_in.value().unwrap_or(either) + seen.copy_out.value().unwrap_or(either);
                facts.copy.iter_mut().for_each(|(_, fact)| fact.value = both / 2.0);
            }
        }
        facts
    }

    /// Why messages of this length go this way where a limit decides, or a setting.
    fn why(&self, facts: &Facts, to: Distance, way: Way, len: usize) -> String {
        if self.limits.force.is_some() && way.protocol().is_some() {
            return "asked for by TERN_PROTOCOL".into();
        }
        let is_eager = matches!(way, Way::Eager | Way::Frequent);
        let limit = &self.eager_limits[to as usize];
        if self.habits.is_some() && limit.is_tried(len) && len <= limit.limit() {
            let why = if is_eager { "habit: begun so" } else { "synchronous, or habit: tried" };
            return format!("{why}, or the application gets on fastest so");
        }
        if !is_eager && len <= limit.limit() {
            return "synchronous send".into();
        }
        if way == Way::Frames && self.habits.is_some() && facts.path(to).reach {
            return "habit: tried, or the application gets on fastest so".into();
        }
        let message = Message { len, distance: to, reuse: 0.0, rtr: false, late_ns: 0.0, eager: true };
        let mut ways = vec![Way::Eager, Way::Both, Way::Frames];
        ways.extend(LONG);
        match choose(facts, &message, &Seen::default(), &ways) {
            Some(Choice { why: Why::Only, .. }) if way == Way::Frames => {
                self.dev.caps(to).remote_access_note.clone()
            }
            Some(Choice { why: Why::Only, .. }) => {
                format!("longer than {}, the most for eager", bytes(limit.max() as u64))
            }
            Some(choice) => because(way, &choice),
            None => String::new(),
        }
    }
}
