//! Who waits for whom: from the reports of all ranks to sentences that name the missing partner,
//! the tag that differs, the collectives that do not match, or the cycle.
//!
//! An edge goes from a rank that cannot go on to one that would have to act first. Operations that
//! hold nobody up make no edges, nor does a receive from any source, which one of many could
//! complete: a cycle that is named is one that cannot resolve by itself.
use crate::report::{OpType, Pending, ranges};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is known about one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The rank in the job.
    pub rank: usize,
    /// What it does.
    pub state: State,
    /// The last collective that it had begun on each communicator, by context, when it was asked first.
    pub begun: BTreeMap<u64, u64>,
}

/// What a rank does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It has operations that are not complete.
    Pending {
        /// The operations, in the order in which they began.
        operations: Vec<Pending>,
        /// How many more there are.
        left_out: u64,
    },
    /// It is inside MPI with nothing pending.
    Idle,
    /// It gets on: what it said first was not so any more when it was asked again.
    Moving,
    /// It did not answer; the text says what else is known.
    Silent(String),
    /// Its process has ended.
    Ended,
}

/// Sentences for a person: first what each rank does, then what is wrong.
pub fn graph(reports: &[Report]) -> Vec<String> {
    let view = View {
        states: reports.iter().map(|r| (r.rank, &r.state)).collect(),
        begun: reports.iter().map(|r| (r.rank, &r.begun)).collect(),
    };
    let mut lines = view.messages();
    lines.extend(view.collectives());
    lines.extend(view.others());
    lines.extend(view.cycles());
    lines
}

struct View<'a> {
    states: BTreeMap<usize, &'a State>,
    begun: BTreeMap<usize, &'a BTreeMap<u64, u64>>,
}

impl<'a> View<'a> {
    fn operations(&self, rank: usize) -> &'a [Pending] {
        match self.states.get(&rank) {
            Some(State::Pending { operations, .. }) => operations,
            _ => &[],
        }
    }

    fn all(&self) -> impl Iterator<Item = (usize, &'a Pending)> {
        self.states.keys().flat_map(|rank| self.operations(*rank).iter().map(|p| (*rank, p)))
    }

    /// A line for every send and receive.
    fn messages(&self) -> Vec<String> {
        let describe = |(rank, p): (usize, &Pending)| {
            let verb = if p.blocking { "waits in" } else { "has posted" };
            let head = format!("rank {rank} {verb} {}{}", call(p), since(p));
            match p.kind {
                OpType::Recv => Some(format!("{head}; {}", self.why_no_send(rank, p))),
                OpType::Send => Some(format!("{head}; {}", self.why_no_receive(rank, p))),
                OpType::Wait => Some(head),
                OpType::Collective | OpType::Arrived => None,
            }
        };
        self.all().filter_map(describe).collect()
    }

    fn why_no_send(&self, rank: usize, recv: &Pending) -> String {
        if let Some((from, _)) = self.sends_to(rank).find(|(from, send)| matches(*from, send, rank, recv)) {
            return format!("rank {from} has a matching send pending");
        }
        let near = self.sends_to(rank).find(|(from, _)| recv.world_peer.is_none_or(|p| p == *from));
        if let Some((from, send)) = near {
            return format!("rank {from} {} instead", sends(send, recv));
        }
        let arrived = self.operations(rank).iter().find(|p| {
            p.kind == OpType::Arrived && (recv.world_peer.is_none() || recv.world_peer == p.world_peer)
        });
        if let Some(message) = arrived {
            let from = message.world_peer.map_or_else(|| "a rank".into(), |rank| format!("rank {rank}"));
            return format!("{from} {} instead: that message has arrived", sends(message, recv));
        }
        match recv.world_peer {
            None => "no rank has a matching send pending".into(),
            Some(peer) => format!("rank {peer} has no matching send pending: {}", self.activity(peer)),
        }
    }

    fn why_no_receive(&self, rank: usize, send: &Pending) -> String {
        let Some(peer) = send.world_peer else { return "its peer is unknown".into() };
        let receives = || self.operations(peer).iter().filter(|p| p.kind == OpType::Recv);
        if receives().any(|recv| matches(rank, send, peer, recv)) {
            return format!("rank {peer} has a matching receive pending");
        }
        let near = receives().find(|recv| recv.world_peer.is_none_or(|p| p == rank));
        match near {
            Some(recv) => format!("rank {peer} {} instead", receives_what(recv, send)),
            None => format!("rank {peer} has no matching receive pending: {}", self.activity(peer)),
        }
    }

    fn sends_to(&self, rank: usize) -> impl Iterator<Item = (usize, &'a Pending)> {
        self.all().filter(move |(_, p)| p.kind == OpType::Send && p.world_peer == Some(rank))
    }

    /// What a rank does, as the end of a sentence.
    fn activity(&self, rank: usize) -> String {
        match self.states.get(&rank) {
            None => "there is no such rank in this job".into(),
            Some(State::Ended) => "it has ended".into(),
            Some(State::Idle) => "it is inside MPI with nothing pending".into(),
            Some(State::Moving) => "it is moving".into(),
            Some(State::Silent(text)) => format!("it is {text}"),
            Some(State::Pending { operations, .. }) => {
                let own = || operations.iter().filter(|p| p.kind != OpType::Arrived);
                let part = || own().find(|p| p.blocking && p.kind != OpType::Wait);
                match part().or_else(|| own().find(|p| p.blocking)).or_else(|| own().next()) {
                    Some(p) if p.blocking => format!("it waits in {}", call(p)),
                    Some(p) => format!("it is inside MPI and waits for nothing, having posted {}", call(p)),
                    None => "it is inside MPI with nothing pending".into(),
                }
            }
        }
    }

    /// For every communicator the collective operations that wait on it, and who is missing.
    fn collectives(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for oldest in self.oldest_collectives().into_values() {
            let runs: BTreeSet<Option<u64>> = oldest.values().map(|p| p.run).collect();
            for run in runs {
                lines.extend(self.one_run(&oldest, run));
            }
        }
        lines
    }

    /// One call of a collective: who is in it, and which members have not come to it. Those in a
    /// later one have done their part of this one.
    fn one_run(&self, oldest: &BTreeMap<usize, &'a Pending>, run: Option<u64>) -> Vec<String> {
        let here: BTreeMap<usize, &Pending> =
            oldest.iter().filter(|(_, p)| p.run == run).map(|(rank, p)| (*rank, *p)).collect();
        let mut calls: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (rank, p) in &here {
            calls.entry(collective(p)).or_default().push(*rank);
        }
        let longest = here.values().max_by_key(|p| p.since_ms).expect("a run is listed for an operation");
        let comm = &longest.communicator;
        let late = |on: &[usize]| on.iter().all(|rank| !here[rank].blocking);
        let note = |on: &[usize]| if late(on) { " (not waited for yet)" } else { "" };
        // Calls that do not match are in different places of the program, so each names its own.
        let own_place = |on: &[usize]| if calls.len() > 1 { place(here[&on[0]]) } else { String::new() };
        let part = |(op, on): (&String, &Vec<usize>)| {
            format!("{} in {op}{}{}", waiting(on), note(on), own_place(on))
        };
        let all = calls.iter().map(part).collect::<Vec<_>>().join(", ");
        let mut lines = vec![match calls.len() {
            1 => format!("{all} on {comm}{}", since(longest)),
            _ => format!("mismatched collectives on {comm}: {all}{}", duration(longest)),
        }];
        let came = |rank: &usize| {
            here.contains_key(rank)
                || oldest.get(rank).is_some_and(|p| is_later(p, longest))
                || self.has_begun(*rank, longest) == Some(true)
        };
        let missing: Vec<usize> = self.members(longest).filter(|rank| !came(rank)).collect();
        let op = calls.keys().next().expect("as above");
        if let Some(run) = run
            && missing.is_empty()
            && here.len() < self.members(longest).count()
            // Who is moving may be in it.
            && !self.members(longest).any(|rank| matches!(self.states.get(&rank), Some(State::Moving)))
        {
            lines.push(format!(
                "all other members are past collective number {run} on {comm}: theirs was another one than {op}, or with other counts"
            ));
        }
        lines.extend(self.absent(missing, &format!("{op} on {comm}")));
        lines
    }

    fn absent(&self, missing: Vec<usize>, what: &str) -> Vec<String> {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for rank in missing {
            groups.entry(self.activity(rank)).or_default().push(rank);
        }
        let line = |(activity, ranks): (String, Vec<usize>)| match ranks.len() {
            1 => format!("{what} waits for rank {}: {activity}", ranks[0]),
            _ => format!("{what} waits for ranks {}: of each, {activity}", ranges(&ranks)),
        };
        groups.into_iter().map(line).collect()
    }

    /// By communicator, the oldest collective operation of each rank: members begin them in order,
    /// so these should be the same one.
    fn oldest_collectives(&self) -> BTreeMap<u64, BTreeMap<usize, &'a Pending>> {
        let mut oldest: BTreeMap<u64, BTreeMap<usize, &Pending>> = BTreeMap::new();
        for (rank, p) in self.all().filter(|(_, p)| p.kind == OpType::Collective) {
            oldest.entry(p.context).or_default().entry(rank).or_insert(p);
        }
        oldest
    }

    /// Whether a rank has begun the collective that `p` is one rank's part of; `None`: not known.
    fn has_begun(&self, rank: usize, p: &Pending) -> Option<bool> {
        let run = p.run?;
        let begun = *self.begun.get(&rank)?.get(&p.context)?;
        Some(begun == run || is_ahead(begun, run))
    }

    fn members(&self, p: &'a Pending) -> Box<dyn Iterator<Item = usize> + 'a> {
        match &p.members {
            Some(members) => Box::new(members.iter().copied()),
            None => Box::new(self.states.keys().copied().collect::<Vec<_>>().into_iter()),
        }
    }

    /// Ranks without operations.
    fn others(&self) -> Vec<String> {
        let (mut idle, mut moving, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        let mut lines = Vec::new();
        for (rank, state) in &self.states {
            match state {
                State::Idle => idle.push(*rank),
                State::Moving => moving.push(*rank),
                State::Ended => ended.push(*rank),
                State::Silent(text) => lines.push(format!("rank {rank} is {text}")),
                State::Pending { operations, .. } if operations.iter().all(|p| p.kind == OpType::Arrived) => {
                    idle.push(*rank);
                }
                State::Pending { left_out: 0, .. } => {}
                State::Pending { left_out, .. } => {
                    lines.push(format!("rank {rank} has {left_out} more operations pending"));
                }
            }
        }
        let mut name = |ranks: Vec<usize>, one: &str, many: &str| match ranks.len() {
            0 => {}
            1 => lines.push(format!("rank {} {one}", ranks[0])),
            _ => lines.push(format!("ranks {} {many}", ranges(&ranks))),
        };
        name(idle, "is inside MPI with nothing pending", "are inside MPI with nothing pending");
        name(moving, "is moving: it gets on", "are moving: they get on");
        name(ended, "has ended", "have ended");
        lines
    }

    /// Whom each rank waits for, and in which operation.
    fn edges(&self) -> BTreeMap<usize, BTreeMap<usize, &'a Pending>> {
        let oldest = self.oldest_collectives();
        let mut edges: BTreeMap<usize, BTreeMap<usize, &Pending>> = BTreeMap::new();
        for (rank, p) in self.all().filter(|(rank, p)| p.blocking && !self.one_of_many(*rank, p)) {
            let waits_for: Vec<usize> = match p.kind {
                OpType::Recv => match p.world_peer {
                    Some(peer) if !self.sends_to(rank).any(|(from, s)| matches(from, s, rank, p)) => {
                        vec![peer]
                    }
                    _ => Vec::new(),
                },
                OpType::Send => match p.world_peer {
                    Some(peer) if !self.operations(peer).iter().any(|r| matches(rank, p, peer, r)) => {
                        vec![peer]
                    }
                    _ => Vec::new(),
                },
                OpType::Collective => {
                    let others = &oldest[&p.context];
                    // Who is in another call of the same number holds this one up, too. Whoever has
                    // left the call, or may have, does not.
                    let holds_up = |r: &usize| match others.get(r) {
                        Some(o) if o.run == p.run => collective(o) != collective(p),
                        _ => self.has_begun(*r, p) == Some(false),
                    };
                    self.members(p).filter(holds_up).collect()
                }
                OpType::Wait => p.world_peer.into_iter().collect(),
                OpType::Arrived => Vec::new(),
            };
            for peer in waits_for {
                edges.entry(rank).or_default().entry(peer).or_insert(p);
            }
        }
        edges
    }

    /// Whether the rank goes on when any one of several operations is complete.
    fn one_of_many(&self, rank: usize, p: &Pending) -> bool {
        let chooses = |p: &Pending| p.operation.ends_with("any") || p.operation.ends_with("some");
        let own = self.operations(rank);
        let parts = own.iter().filter(|o| o.blocking && o.kind != OpType::Wait).count();
        parts > 1 && (chooses(p) || own.iter().any(|o| o.kind == OpType::Wait && chooses(o)))
    }

    fn cycles(&self) -> Vec<String> {
        let edges = self.edges();
        let mut seen = BTreeSet::new();
        let mut lines = Vec::new();
        for start in edges.keys() {
            if seen.contains(start) {
                continue;
            }
            let Some(cycle) = shortest_cycle(*start, &edges) else { continue };
            let steps = cycle.iter().chain([start]).map(|rank| format!("rank {rank}"));
            let steps = steps.collect::<Vec<_>>().join(" → ");
            let operation = |i: usize| edges[&cycle[i]][&cycle[(i + 1) % cycle.len()]].operation.as_str();
            let operations: Vec<&str> = (0..cycle.len()).map(operation).collect();
            let same = operations.iter().all(|op| *op == operations[0]);
            lines.push(match (same, cycle.len()) {
                (_, 1) => format!("cycle: {steps}: it waits for itself in {}", operations[0]),
                (true, 2) => format!("cycle: {steps}: both wait in {}", operations[0]),
                (true, _) => format!("cycle: {steps}: all wait in {}", operations[0]),
                _ => format!("cycle: {steps}: they wait in {}", operations.join(", ")),
            });
            seen.extend(cycle);
        }
        lines
    }
}

/// The shortest way from `start` back to itself, by breadth-first search.
fn shortest_cycle(start: usize, edges: &BTreeMap<usize, BTreeMap<usize, &Pending>>) -> Option<Vec<usize>> {
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(rank) = queue.pop_front() {
        for next in edges.get(&rank).into_iter().flat_map(|to| to.keys()) {
            if *next == start {
                let mut cycle = vec![rank];
                while *cycle.last().expect("not empty") != start {
                    cycle.push(came_from[cycle.last().expect("not empty")]);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if !came_from.contains_key(next) {
                came_from.insert(*next, rank);
                queue.push_back(*next);
            }
        }
    }
    None
}

/// Whether `send` by rank `from` is what `recv` by rank `to` takes.
fn matches(from: usize, send: &Pending, to: usize, recv: &Pending) -> bool {
    send.kind == OpType::Send
        && recv.kind == OpType::Recv
        && send.context == recv.context
        && send.world_peer == Some(to)
        && recv.world_peer.is_none_or(|peer| peer == from)
        && (recv.tag.is_none() || recv.tag == send.tag)
}

/// How a message differs from what is received.
fn sends(send: &Pending, recv: &Pending) -> String {
    if send.context != recv.context {
        return format!("sends on communicator {}", send.communicator);
    }
    format!("sends tag {}", or_any(send.tag))
}

/// How a receive differs from what is sent.
fn receives_what(recv: &Pending, send: &Pending) -> String {
    if send.context != recv.context {
        return format!("receives on communicator {}", recv.communicator);
    }
    format!("receives tag {}", or_any(recv.tag))
}

/// A call as a programmer would write it, with what decides.
fn call(p: &Pending) -> String {
    let peer = or_any(p.peer);
    let (op, comm, tag, bytes) = (&p.operation, &p.communicator, or_any(p.tag), p.bytes);
    match p.kind {
        OpType::Send => format!("{op}(dest={peer}, tag={tag}, comm={comm}, {bytes} bytes)"),
        OpType::Recv | OpType::Arrived => {
            format!("{op}(source={peer}, tag={tag}, comm={comm}, {bytes} bytes)")
        }
        OpType::Collective if p.peer.is_some() => format!("{op}(root={peer}, comm={comm})"),
        OpType::Collective => format!("{op}(comm={comm})"),
        OpType::Wait if p.peer.is_some() => format!("{op}(rank={peer}, {comm})"),
        OpType::Wait => op.clone(),
    }
}

/// A collective by what must be the same on all members.
fn collective(p: &Pending) -> String {
    match p.peer {
        Some(root) => format!("{}(root={root})", p.operation),
        None => p.operation.clone(),
    }
}

/// Whether the rank in `other` has left the call `p` behind.
fn is_later(other: &Pending, p: &Pending) -> bool {
    matches!((other.run, p.run), (Some(theirs), Some(ours)) if is_ahead(theirs, ours))
}

/// Numbers wrap; members are never half a round apart.
fn is_ahead(theirs: u64, ours: u64) -> bool {
    theirs != ours && (theirs.wrapping_sub(ours) as u16) < 1 << 15
}

fn since(p: &Pending) -> String {
    format!("{}{}", duration(p), place(p))
}

fn duration(p: &Pending) -> String {
    format!(" since {}.{} s", p.since_ms / 1000, p.since_ms % 1000 / 100)
}

/// Where in the program it was called.
fn place(p: &Pending) -> String {
    p.address.as_ref().map(|address| format!(" at {address}")).unwrap_or_default()
}

fn waiting(ranks: &[usize]) -> String {
    match ranks {
        [one] => format!("rank {one} waits"),
        many => format!("ranks {} wait", ranges(many)),
    }
}

fn or_any<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "any".into(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(rank: usize, kind: OpType, op: &str, peer: Option<usize>, tag: Option<i32>) -> Pending {
        Pending {
            rank,
            operation: op.into(),
            kind,
            blocking: true,
            peer,
            world_peer: peer,
            tag,
            communicator: "MPI_COMM_WORLD".into(),
            context: 0,
            run: None,
            members: None,
            bytes: 8,
            since_ms: 3250,
            address: None,
        }
    }

    fn recv(rank: usize, source: usize, tag: i32) -> Pending {
        operation(rank, OpType::Recv, "MPI_Recv", Some(source), Some(tag))
    }

    fn send(rank: usize, dest: usize, tag: i32) -> Pending {
        operation(rank, OpType::Send, "MPI_Send", Some(dest), Some(tag))
    }

    fn collective(rank: usize, op: &str) -> Pending {
        Pending { run: Some(1), ..operation(rank, OpType::Collective, op, None, None) }
    }

    fn pending(operations: Vec<Pending>) -> State {
        State::Pending { operations, left_out: 0 }
    }

    /// What is said of ranks that have begun no collective but those they are in.
    fn text(states: Vec<State>) -> String {
        let begun = |state: &State| match state {
            State::Pending { operations, .. } => operations.iter().filter_map(|p| p.run).max().unwrap_or(0),
            _ => 0,
        };
        let report = |(rank, state)| {
            let begun = BTreeMap::from([(0, begun(&state))]);
            Report { rank, state, begun }
        };
        graph(&states.into_iter().enumerate().map(report).collect::<Vec<_>>()).join("\n")
    }

    #[test]
    fn two_receives_are_a_cycle() {
        let text = text(vec![pending(vec![recv(0, 1, 0)]), pending(vec![recv(1, 0, 0)])]);
        assert!(text.ends_with("cycle: rank 0 → rank 1 → rank 0: both wait in MPI_Recv"), "{text}");
    }

    #[test]
    fn three_sends_are_a_cycle_and_a_matched_one_is_none() {
        let ring = |r: usize| pending(vec![send(r, (r + 1) % 3, 0)]);
        let found = text((0..3).map(ring).collect());
        assert!(found.contains("cycle: rank 0 → rank 1 → rank 2 → rank 0: all wait in MPI_Send"), "{found}");
        let found = text(vec![pending(vec![send(0, 1, 5)]), pending(vec![recv(1, 0, 5)])]);
        assert!(found.contains("matching") && !found.contains("cycle"), "{found}");
    }

    #[test]
    fn a_missing_send_names_who_should_send() {
        let silent = State::Silent("outside MPI".into());
        let found = text(vec![silent, State::Idle, pending(vec![recv(2, 0, 7)])]);
        let line = "rank 2 waits in MPI_Recv(source=0, tag=7, comm=MPI_COMM_WORLD, 8 bytes) since 3.2 s; \
                    rank 0 has no matching send pending: it is outside MPI";
        assert!(found.contains(line), "{found}");
        assert!(found.contains("rank 1 is inside MPI with nothing pending"), "{found}");
        let found = text(vec![State::Ended, pending(vec![recv(1, 0, 7)])]);
        assert!(found.contains("rank 0 has no matching send pending: it has ended"), "{found}");
        let found = text(vec![pending(vec![recv(0, 9, 7)])]);
        assert!(found.contains("no such rank"), "{found}");
    }

    #[test]
    fn a_wrong_tag_or_communicator_is_named() {
        let found = text(vec![pending(vec![send(0, 1, 6)]), pending(vec![recv(1, 0, 7)])]);
        assert!(found.contains("rank 0 sends tag 6 instead"), "{found}");
        assert!(found.contains("rank 1 receives tag 7 instead"), "{found}");
        let other = Pending { context: 3, communicator: "halo".into(), ..send(0, 1, 7) };
        let found = text(vec![pending(vec![other]), pending(vec![recv(1, 0, 7)])]);
        assert!(found.contains("rank 0 sends on communicator halo instead"), "{found}");
        let eager = operation(1, OpType::Arrived, "message", Some(0), Some(6));
        let found = text(vec![State::Idle, pending(vec![recv(1, 0, 7), eager])]);
        assert!(found.contains("rank 0 sends tag 6 instead: that message has arrived"), "{found}");
    }

    #[test]
    fn any_source_makes_no_cycle() {
        let any = operation(0, OpType::Recv, "MPI_Recv", None, None);
        let found = text(vec![pending(vec![any]), pending(vec![recv(1, 0, 1)])]);
        assert!(
            found.contains("source=any, tag=any") && found.contains("no rank has a matching send"),
            "{found}"
        );
        assert!(!found.contains("cycle"), "{found}");
    }

    #[test]
    fn collectives_that_do_not_match_and_members_that_are_missing() {
        let found = text(vec![
            pending(vec![collective(0, "MPI_Bcast")]),
            pending(vec![collective(1, "MPI_Barrier")]),
            pending(vec![collective(2, "MPI_Bcast")]),
        ]);
        let line = "mismatched collectives on MPI_COMM_WORLD: rank 1 waits in MPI_Barrier, ranks 0,2 wait in MPI_Bcast";
        assert!(found.contains(line), "{found}");
        let found = text(vec![
            pending(vec![collective(0, "MPI_Barrier")]),
            pending(vec![recv(1, 0, 1)]),
            pending(vec![collective(2, "MPI_Barrier")]),
            State::Silent("computing".into()),
        ]);
        assert!(found.contains("ranks 0,2 wait in MPI_Barrier on MPI_COMM_WORLD since 3.2 s"), "{found}");
        assert!(
            found.contains("MPI_Barrier on MPI_COMM_WORLD waits for rank 1: it waits in MPI_Recv"),
            "{found}"
        );
        assert!(found.contains("waits for rank 3: it is computing"), "{found}");
        assert!(
            found.contains("cycle: rank 0 → rank 1 → rank 0: they wait in MPI_Barrier, MPI_Recv"),
            "{found}"
        );
        let two = Pending { members: Some(vec![0, 1]), ..collective(0, "MPI_Barrier") };
        let found = text(vec![pending(vec![two]), State::Idle, State::Idle]);
        assert!(found.contains("waits for rank 1") && !found.contains("rank 2:"), "{found}");
    }

    /// A member may be in the next collective already: that is no mismatch.
    #[test]
    fn runs_of_collectives_are_told_apart() {
        let nth = |rank, op, run| Pending { run: Some(run), ..collective(rank, op) };
        let found = text(vec![
            pending(vec![nth(0, "MPI_Bcast", 5)]),
            pending(vec![nth(1, "MPI_Barrier", 6)]),
            State::Silent("computing".into()),
        ]);
        assert!(!found.contains("mismatched"), "{found}");
        let line =
            "MPI_Barrier on MPI_COMM_WORLD waits for rank 0: it waits in MPI_Bcast(comm=MPI_COMM_WORLD)";
        assert!(found.contains(line), "{found}");
        assert!(found.contains("MPI_Bcast on MPI_COMM_WORLD waits for rank 2: it is computing"), "{found}");
        assert!(!found.contains("cycle"), "{found}");
        let found =
            text(vec![pending(vec![nth(0, "MPI_Bcast", 65535)]), pending(vec![nth(1, "MPI_Barrier", 1)])]);
        assert!(
            found.contains("past collective number 65535 ") && !found.contains("past collective number 1 "),
            "{found}"
        );
        let rooted = |rank, root| Pending { peer: Some(root), ..nth(rank, "MPI_Bcast", 5) };
        let found = text(vec![pending(vec![rooted(0, 0)]), pending(vec![rooted(1, 1)])]);
        let line = "mismatched collectives on MPI_COMM_WORLD: rank 0 waits in MPI_Bcast(root=0), rank 1 waits in MPI_Bcast(root=1)";
        assert!(found.contains(line), "{found}");
        let found = text(vec![pending(vec![rooted(0, 0)]), pending(vec![nth(1, "MPI_Barrier", 6)])]);
        assert!(found.contains("all other members are past collective number 5 on MPI_COMM_WORLD: theirs was another one than MPI_Bcast(root=0)"), "{found}");
    }

    /// A member that has left the call on its way to another communicator holds nobody up in it.
    #[test]
    fn who_has_left_a_collective_is_not_waited_for() {
        let twin = Pending { context: 7, members: Some(vec![0, 1, 2]), ..collective(2, "MPI_Allreduce") };
        let past = |first, begun: [u64; 3]| {
            let states = [first, pending(vec![collective(1, "MPI_Barrier")]), pending(vec![twin.clone()])];
            let reports = states.into_iter().enumerate().map(|(rank, state)| Report {
                rank,
                state,
                begun: BTreeMap::from([(0, begun[rank]), (7, u64::from(rank == 2))]),
            });
            graph(&reports.collect::<Vec<_>>()).join("\n")
        };
        let found = past(State::Moving, [0, 1, 1]);
        assert!(!found.contains("cycle") && !found.contains("for rank 2"), "{found}");
        assert!(found.contains("MPI_Barrier on MPI_COMM_WORLD waits for rank 0: it is moving"), "{found}");
        let found = past(State::Moving, [0, 1, 0]);
        assert!(found.contains("cycle: rank 1 → rank 2 → rank 1"), "{found}");
        // Who is moving may be in the call still.
        let found = past(State::Moving, [1, 1, 1]);
        assert!(!found.contains("past collective"), "{found}");
        let found = past(State::Idle, [1, 1, 1]);
        assert!(
            found.contains("all other members are past collective number 1 on MPI_COMM_WORLD"),
            "{found}"
        );
    }

    #[test]
    fn posted_receives_and_waitany_make_no_cycle() {
        let posted = |rank, source| Pending { blocking: false, ..recv(rank, source, 0) };
        let found = text(vec![pending(vec![posted(0, 1)]), pending(vec![posted(1, 0)])]);
        assert!(found.contains("has posted") && !found.contains("cycle"), "{found}");
        let any = operation(0, OpType::Wait, "MPI_Waitany", None, None);
        let found = text(vec![
            pending(vec![any, recv(0, 1, 0), recv(0, 2, 0)]),
            pending(vec![recv(1, 0, 0)]),
            State::Idle,
        ]);
        assert!(!found.contains("cycle"), "{found}");
    }

    #[test]
    fn who_moves_is_not_said_to_wait() {
        let found = text(vec![pending(vec![recv(0, 1, 7)]), State::Moving, State::Moving]);
        assert!(found.contains("rank 1 has no matching send pending: it is moving"), "{found}");
        assert!(found.contains("ranks 1-2 are moving") && !found.contains("cycle"), "{found}");
        let found = text(vec![pending(vec![collective(0, "MPI_Barrier")]), State::Moving]);
        assert!(found.contains("MPI_Barrier on MPI_COMM_WORLD waits for rank 1: it is moving"), "{found}");
    }

    #[test]
    fn a_rank_that_waits_for_itself_and_what_was_left_out() {
        let state = State::Pending { operations: vec![recv(0, 0, 1)], left_out: 3 };
        let found = text(vec![state]);
        assert!(found.contains("cycle: rank 0 → rank 0: it waits for itself in MPI_Recv"), "{found}");
        assert!(found.contains("rank 0 has 3 more operations pending"), "{found}");
    }
}
