//! `tern explain --puts --gets`: how the operations of an epoch at one target would be planned, what each plan would cost, and why.

use fabric::Distance;
use fabric::settings::Settings;
use proto::choice::explain::table;
use proto::choice::facts::Facts;
use proto::choice::journal::{bytes, time};
use proto::epoch::plan::{Item, Limits, Memory, Plan, plan};
use proto::epoch::{Action, Schedule};

/// What is asked: operations of one length, called in turn, a Put first.
pub struct Question {
    pub puts: usize,
    pub gets: usize,
    pub bytes: usize,
    /// The origin's buffers are found registered.
    pub is_registered: bool,
}

impl Question {
    fn items(&self, slot_bytes: usize) -> Vec<Item> {
        let memory = match (self.is_registered, self.bytes <= slot_bytes) {
            (true, _) => Memory::Registered,
            (false, true) => Memory::Copied,
            (false, false) => Memory::Fresh,
        };
        let both = self.puts.min(self.gets);
        let turns = (0..both).flat_map(|_| [Action::Put, Action::Get]);
        let rest = if self.puts > both { Action::Put } else { Action::Get };
        let rest = std::iter::repeat_n(rest, self.puts.max(self.gets) - both);
        turns.chain(rest).map(|action| Item { action, len: self.bytes, memory }).collect()
    }

    fn text(&self) -> String {
        let some = |n: usize, what: &str| match n {
            0 => None,
            1 => Some(format!("1 {what}")),
            _ => Some(format!("{n} {what}s")),
        };
        let all: Vec<String> =
            [some(self.puts, "Put"), some(self.gets, "Get")].into_iter().flatten().collect();
        format!("{} of {}", all.join(" and "), bytes(self.bytes as u64))
    }
}

/// The answer for a target that is so far away.
pub fn answer(
    question: &Question,
    facts: &Facts,
    distance: Distance,
    settings: &Settings,
    place: &str,
) -> String {
    let path = facts.path(distance);
    let limits = Limits {
        distance,
        message_bytes: path.eager_bytes,
        direct: path.registration,
        ends: true,
        meets_once: false,
        lands: false,
        alternates: false,
    };
    let items = question.items(path.eager_bytes);
    let planned = |schedule: &Schedule| plan(&items, &[], schedule, &limits, facts);
    // When operations leave depends on what is computed meanwhile.
    let known = Schedule::ALL.iter().filter(|(schedule, _)| schedule.early != Some(true));
    let mut plans: Vec<(&str, Plan)> = known.map(|(schedule, name)| (*name, planned(schedule))).collect();
    let name = settings.text("TERN_WIN_SCHEDULE");
    let taken = planned(&Schedule::named(name).unwrap_or_default());
    plans.sort_by(|a, b| a.1.predicted.total_ns().total_cmp(&b.1.predicted.total_ns()));
    let head = ["schedule", "total", "origin", "target", "in messages", "reordered", "plan"];
    let mut lines = vec![head.map(String::from).to_vec()];
    for (name, plan) in &plans {
        let predicted = plan.predicted;
        lines.push(vec![
            name.to_string(),
            time(predicted.total_ns()),
            time(predicted.origin_ns),
            time(predicted.target_ns),
            plan.bundled.to_string(),
            plan.reordered.to_string(),
            plan.form.text(),
        ]);
    }
    let text = format!("{}, {place}: {}\n\n{}", question.text(), taken.form.text(), table("", &lines));
    let original = planned(&Schedule::ORIGINAL).predicted.total_ns();
    text + &match name {
        "auto" => {
            let times = original / taken.predicted.total_ns().max(1.0);
            format!("\ndirectly and in the order of the calls takes {times:.2} times as long\n")
        }
        name => format!("\nasked for by TERN_WIN_SCHEDULE={name}; {} would be the cheapest\n", plans[0].0),
    }
}
