//! What a job hears of its ranks and tells them, wherever they are.
use super::job::{Job, Reach};
use super::message::{Event, Order};
use super::token::Token;
use crate::sys::process::{Ended, Reaped};
use std::collections::BTreeSet;
use std::time::Instant;

impl Job {
    /// Handles a descriptor that belongs to a rank or to an agent.
    pub(super) fn on_ready(&mut self, token: Token) {
        match &mut self.reach {
            Reach::Here(hands) => {
                let events = hands.on_ready(token, &self.epoll);
                self.on_events(events);
            }
            Reach::Hosts(agents) => {
                let heard = agents.on_ready(token, &self.epoll);
                self.on_heard(heard);
            }
        }
    }

    pub(super) fn on_child(&mut self, child: Reaped) {
        match &mut self.reach {
            Reach::Here(hands) => {
                let events = hands.on_child(child, &self.epoll);
                self.on_events(events);
            }
            Reach::Hosts(agents) => {
                let heard = agents.on_child(child);
                self.on_heard(heard);
            }
        }
    }

    /// Takes what agents say; whatever an agent says of a rank that is not on its host is no event.
    fn on_heard(&mut self, heard: Vec<(usize, Result<Event, String>)>) {
        for (host, event) in heard {
            match event {
                Ok(event) if event.rank().is_none_or(|rank| self.is_on(rank, host)) => {
                    self.on_event(host, event)
                }
                Ok(_) => self.lose(host, 1, "it spoke of ranks that are not on its host"),
                Err(why) if self.is_lost_to_spread(host, &why) => {}
                Err(why) => self.lose(host, 1, &why),
            }
        }
    }

    fn is_on(&self, rank: usize, host: usize) -> bool {
        self.ranks.get(rank).is_some_and(|rank| rank.host == host)
    }

    pub(super) fn on_events(&mut self, events: Vec<Event>) {
        events.into_iter().for_each(|event| self.on_event(0, event));
    }

    fn on_event(&mut self, host: usize, event: Event) {
        match event {
            Event::Started { rank, pid, cpus } => {
                self.ranks[rank].pid = pid;
                if self.plan.show_places {
                    let text = format!("mpiexec: {} on CPUs {cpus}", self.placed_as(rank));
                    self.say(&text);
                }
            }
            Event::Pmi { rank, line } => self.on_pmi(rank, &line),
            Event::Deaf { rank } => self.distrust(rank, "PMI", "it does not read its answers"),
            Event::Control { rank, packet } => self.on_control(rank, &packet),
            Event::Silent { rank } => {
                self.ranks[rank].silent = true;
                self.on_silence(rank);
            }
            Event::Output { rank, which, bytes } => self.on_output(rank, which, &bytes),
            Event::InputTaken => self.on_input_wanted(),
            Event::InputClosed => self.forget_input(),
            Event::Looked { rank, text } => self.on_looked(rank, text),
            Event::Ended { rank, how } => {
                self.ranks[rank].ended = Some(how);
                self.judge(rank, how);
            }
            Event::Refused { code, text } => self.lose(host, code, &text),
            Event::Begun { first } => self.on_begun(host, first, Ok(())),
            Event::NotBegun { first, text } => self.on_begun(host, first, Err(text)),
        }
    }

    /// Has something done to a rank.
    pub(super) fn order(&mut self, rank: usize, order: Order) {
        match &mut self.reach {
            Reach::Here(hands) => {
                let events = hands.carry_out(order, &self.epoll);
                self.on_events(events);
            }
            Reach::Hosts(agents) => agents.order(self.ranks[rank].host, &order),
        }
    }

    /// Has something done to all ranks, which says nothing at once.
    pub(super) fn order_all(&mut self, order: &Order) {
        match &mut self.reach {
            Reach::Here(hands) => {
                let events = hands.carry_out(order.clone(), &self.epoll);
                self.on_events(events);
            }
            Reach::Hosts(agents) => agents.order_all(order),
        }
    }

    /// Sends the orders of the last turn.
    pub(super) fn flush_orders(&mut self) {
        if let Reach::Hosts(agents) = &mut self.reach {
            let heard = agents.flush(&self.epoll);
            self.on_heard(heard);
        }
    }

    /// Loses patience with agents that have not come.
    pub(super) fn look_after_agents(&mut self, now: Instant) {
        if let Reach::Hosts(agents) = &mut self.reach {
            let heard = agents.on_time(now, &self.epoll);
            self.on_heard(heard);
        }
    }

    /// Whether no agent has been told yet what to start, so that no rank runs.
    pub(super) fn starting(&self) -> bool {
        matches!(&self.reach, Reach::Hosts(agents) if agents.starting())
    }

    /// Waits no more for agents that have not come, and starts nothing by those that have.
    pub(super) fn give_up_starting(&mut self) {
        if self.starting() {
            self.ranks.iter().map(|rank| rank.host).max().into_iter().for_each(|last| {
                (0..=last).for_each(|host| self.forget(host));
            });
        }
    }

    /// Ends the job because nothing more will be heard of a host.
    fn lose(&mut self, host: usize, code: u8, why: &str) {
        let Reach::Hosts(agents) = &self.reach else { unreachable!("only agents are lost") };
        let name = agents.name(host).to_string();
        self.forget(host);
        self.end(code, Some(format!("host {name}: {why}")));
    }

    /// Waits no more for hosts that have been told to kill their ranks and do not say that they have ended: the agent may be
    /// stopped, and a connection that the system keeps up says nothing of that.
    pub(super) fn give_up_silent(&mut self) {
        let Reach::Hosts(agents) = &self.reach else { return };
        let silent: BTreeSet<usize> = self.running().map(|rank| self.ranks[rank].host).collect();
        let named: Vec<(usize, String)> =
            silent.into_iter().map(|host| (host, agents.name(host).to_string())).collect();
        for (host, name) in named {
            self.forget(host);
            self.say(&format!(
                "mpiexec: host {name}: its agent does not say that the ranks there have ended; they may be left behind"
            ));
        }
    }

    /// Takes all ranks of a host for ended: its agent is gone, and with it they are.
    fn forget(&mut self, host: usize) {
        if let Reach::Hosts(agents) = &mut self.reach {
            agents.forget(host, &self.epoll);
        }
        self.take_for_ended(host);
    }

    /// Takes all ranks of a host for ended.
    pub(super) fn take_for_ended(&mut self, host: usize) {
        for rank in (0..self.ranks.len()).filter(|rank| self.ranks[*rank].host == host).collect::<Vec<_>>() {
            for which in [0, 1] {
                self.on_output(rank, which, &[]);
            }
            self.ranks[rank].silent = true;
            self.ranks[rank].ended.get_or_insert(Ended::Signal(libc::SIGKILL, false));
            self.on_silence(rank);
        }
    }
}
