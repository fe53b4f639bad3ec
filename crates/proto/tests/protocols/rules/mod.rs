//! What MPI demands of matching (MPI 5.0 section 3.5), checked on what happened.

use fabric::Rank;
use proto::{Envelope, Want};

/// The message a receive got: the number counts what `source` sent to the receiver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Got {
    /// Who sent it.
    pub source: Rank,
    /// Which of its messages to this receiver, from 0.
    pub number: usize,
}

#[derive(Debug)]
struct Message {
    to: Rank,
    envelope: Envelope,
    number: usize,
    /// Which receive got it.
    taken_by: Option<usize>,
    cancelled: bool,
}

#[derive(Debug)]
struct Receive {
    at: Rank,
    want: Want,
    got: Option<Got>,
}

/// All messages and all receives of a run.
#[derive(Default, Debug)]
pub struct History {
    messages: Vec<Message>,
    receives: Vec<Receive>,
}

impl History {
    /// Rank `from` sent a message, and may have cancelled it since; in the order in which it did.
    pub fn sent(&mut self, from: Rank, to: Rank, context: u64, tag: i32, cancelled: bool) {
        let earlier = self.messages.iter().filter(|m| m.to == to && m.envelope.source == from);
        let number = earlier.count();
        let envelope = Envelope { source: from, context, tag };
        self.messages.push(Message { to, envelope, number, taken_by: None, cancelled });
    }

    /// Rank `at` posted a receive, which was not cancelled; in the order in which it did.
    pub fn received(&mut self, at: Rank, want: Want, got: Option<Got>) {
        self.receives.push(Receive { at, want, got });
    }

    /// No message twice, none in a receive that does not accept it, none that overtook another,
    /// none waiting beside a receive that accepts it.
    pub fn check(&mut self) -> Result<(), String> {
        for index in 0..self.receives.len() {
            let Receive { at, want, got, .. } = self.receives[index];
            let Some(got) = got else { continue };
            let of =
                |m: &&mut Message| m.to == at && m.envelope.source == got.source && m.number == got.number;
            let message = self.messages.iter_mut().find(of).ok_or("a message that nobody sent")?;
            if !want.accepts(&message.envelope) {
                return Err(format!("{want:?} at rank {at} got {message:?}"));
            }
            if message.cancelled {
                return Err(format!("{message:?} was delivered though it is cancelled"));
            }
            if let Some(other) = message.taken_by.replace(index) {
                return Err(format!("{message:?} was delivered twice, also to receive {other}"));
            }
        }
        self.nobody_overtook()
    }

    /// A receive must not get a message if an earlier one of the same sender, which it accepts
    /// too, went to a later receive or to none.
    fn nobody_overtook(&self) -> Result<(), String> {
        for message in self.messages.iter().filter(|m| !m.cancelled) {
            let candidates = self.receives.iter().enumerate();
            for (index, receive) in
                candidates.filter(|(_, r)| r.at == message.to && r.want.accepts(&message.envelope))
            {
                let later_or_none = message.taken_by.is_none_or(|by| by > index);
                let preferred = match receive.got {
                    None => true,
                    Some(got) => got.source == message.envelope.source && got.number > message.number,
                };
                if later_or_none && preferred {
                    return Err(format!(
                        "{message:?} belongs to receive {index} at rank {}, {receive:?}",
                        receive.at
                    ));
                }
            }
        }
        Ok(())
    }
}
