//! Partitioned communication (MPI 5.0 chapter 4): a persistent message of which parts are handed over one by one.
//!
//! The two sides are matched once, by a message that each send request sends when it is made: its channel, a context
//! of its own, and how it is cut. From then on the messages of a round are those of the channel, told apart by their
//! place. Both buffers are streams of bytes, and a message is a piece of the stream that ends where partitions of the
//! sender do; how the receiver has divided its buffer matters for `MPI_Parrived` alone.
//! The protocol is described in docs/protocols/partitioned.md.

mod receiver;
mod sender;

pub use receiver::Receiver;
pub use sender::{Hello, Sender, Term};

use crate::comm::{Place, Purpose};
use crate::error::{Class, Result, fail};
use crate::handle::Handle;
use crate::p2p::peer;
use crate::request::{Body, Buffer, Ended, Keep, REQUEST_NULL, Recipe, Request, Requests};
use crate::status::Status;
use crate::world::World;
use fabric::Device;
use proto::{Envelope, Want};
use sender::URGE_TAG;

/// What a partitioned request was made of, checked.
#[derive(Clone, Debug)]
pub struct Parts {
    /// All partitions.
    pub buffer: Buffer,
    /// How many there are.
    pub partitions: usize,
    /// Bytes of one.
    each: u64,
}

impl Parts {
    /// So many partitions of a buffer, of which each has as many elements.
    pub fn new(buffer: Buffer, partitions: usize) -> Parts {
        let each = buffer.count * buffer.ty.size() / partitions.max(1) as u64;
        Parts { buffer, partitions, each }
    }

    /// Bytes of the whole message.
    pub fn bytes(&self) -> u64 {
        self.each * self.partitions as u64
    }

    /// Bytes of one partition.
    fn part_bytes(&self) -> u64 {
        self.each
    }

    /// A partition that the application names.
    fn check(&self, partition: i32, arg: &str) -> Result<usize> {
        match usize::try_from(partition) {
            Ok(known) if known < self.partitions => Ok(known),
            _ => fail(
                Class::ARG,
                format!(
                    "argument `{arg}` is {partition}, the request has {} partitions, from 0 on",
                    self.partitions
                ),
            ),
        }
    }
}

/// One side of a partitioned message.
#[derive(Debug)]
pub enum Partitioned {
    /// The sender.
    Send(Box<Sender>),
    /// The receiver.
    Receive(Box<Receiver>),
    /// Either side, whose peer is `MPI_PROC_NULL`.
    Nobody {
        /// Whether it is the sender.
        sends: bool,
        /// Its partitions.
        parts: Parts,
    },
}

/// What a report says of a partitioned request that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Whether it is the sender.
    pub sends: bool,
    /// Rank of the other side in the job.
    pub peer: usize,
    /// The tag.
    pub tag: i32,
    /// Bytes of the whole message.
    pub bytes: u64,
    /// Partitions, and how many of them wait: a sender's to be marked ready, a receiver's to come.
    pub partitions: usize,
    /// See above.
    pub waiting: usize,
}

impl Partitioned {
    /// What a report says of it; nothing of one whose peer is nobody.
    pub fn standing(&self) -> Option<Standing> {
        let of = |sends, parts: &Parts, peer, tag, waiting| Standing {
            sends,
            peer,
            tag,
            bytes: parts.bytes(),
            partitions: parts.partitions,
            waiting,
        };
        match self {
            Partitioned::Send(sender) => {
                Some(of(true, &sender.parts, sender.to, sender.tag, sender.unready()))
            }
            Partitioned::Receive(receiver) => {
                Some(of(false, &receiver.parts, receiver.from, receiver.tag, receiver.missing()))
            }
            Partitioned::Nobody { .. } => None,
        }
    }
}

impl<D: Device> World<D> {
    /// The request of `MPI_Psend_init`.
    pub fn partitioned_send(
        &mut self,
        place: Place,
        comm: Handle,
        parts: Parts,
        dest: i32,
        tag: i32,
    ) -> Result<Handle> {
        self.objects.requests.room()?;
        let part = match peer(&place, dest, "dest")? {
            None => Partitioned::Nobody { sends: true, parts },
            Some(to) => Partitioned::Send(Box::new(Sender::open(self, &place, parts, to, tag)?)),
        };
        self.objects.requests.add_persistent(comm, Recipe::Partitioned(part), place)
    }

    /// The request of `MPI_Precv_init`.
    pub fn partitioned_receive(
        &mut self,
        place: Place,
        comm: Handle,
        parts: Parts,
        source: i32,
        tag: i32,
    ) -> Result<Handle> {
        self.objects.requests.room()?;
        let part = match peer(&place, source, "source")? {
            None => Partitioned::Nobody { sends: false, parts },
            Some(from) => Partitioned::Receive(Box::new(Receiver::open(
                &mut self.engine,
                &place,
                parts,
                (source, from),
                tag,
            )?)),
        };
        self.objects.requests.add_persistent(comm, Recipe::Partitioned(part), place)
    }

    /// Starts a round.
    pub(crate) fn start_partitioned(&mut self, part: &mut Partitioned) -> Result<Body> {
        match part {
            Partitioned::Send(sender) => sender.start(self)?,
            Partitioned::Receive(receiver) => receiver.start(&mut self.engine)?,
            Partitioned::Nobody { sends: true, .. } => return Ok(Body::Ended(Ended::WELL)),
            Partitioned::Nobody { .. } => {
                return Ok(Body::Ended(Ended { status: Status::PROC_NULL, error: None }));
            }
        }
        Ok(Body::Partitioned)
    }

    /// Gets the receives on that wait to be told how their messages are cut, or cut anew.
    pub(crate) fn advance_partitioned(&mut self) {
        let waiting = std::mem::take(&mut self.untold);
        for handle in waiting {
            if let Some(receiver) = receiver(self.objects.requests.get_mut(handle)) {
                receiver.post(&mut self.engine);
                if receiver.is_expectant() {
                    self.untold.push(handle);
                }
            }
        }
    }

    /// Notes a receive that has to be told how its messages are cut; whether it is one.
    pub(crate) fn note_untold(&mut self, handle: Handle) -> bool {
        let is_untold =
            receiver(self.objects.requests.get_mut(handle)).is_some_and(|receiver| receiver.is_expectant());
        if is_untold && !self.untold.contains(&handle) {
            self.untold.push(handle);
        }
        is_untold
    }

    /// Whether the round of a partitioned request has ended; then its body says how.
    pub(crate) fn settle_partitioned(&mut self, handle: Handle) -> Result<bool> {
        let Some(request) = self.objects.requests.get_mut(handle) else { return Requests::refuse(handle) };
        let Some((Recipe::Partitioned(part), _)) = request.recipe.as_deref_mut() else {
            panic!("only partitioned requests have this body")
        };
        let ended = match part {
            Partitioned::Send(sender) => sender.settle(&mut self.engine),
            Partitioned::Receive(receiver) => receiver.settle(&mut self.engine),
            Partitioned::Nobody { .. } => Some(Ended::WELL),
        };
        let has_ended = ended.is_some();
        if let Some(ended) = ended {
            request.body = Some(Body::Ended(ended));
        }
        Ok(has_ended)
    }

    /// Whether a partitioned send has this partition.
    pub fn check_partition(&self, handle: Handle, partition: i32, arg: &str) -> Result {
        let parts = match self.objects.requests.get(handle).and_then(|request| request.recipe.as_deref()) {
            Some((Recipe::Partitioned(Partitioned::Send(sender)), _)) => &sender.parts,
            Some((Recipe::Partitioned(Partitioned::Nobody { sends: true, parts }), _)) => parts,
            _ => return not_a_send(),
        };
        parts.check(partition, arg).map(drop)
    }

    /// `MPI_Pready` of one or several.
    pub fn ready(&mut self, handle: Handle, partitions: impl Iterator<Item = i32>, arg: &str) -> Result {
        let Some(request) = self.objects.requests.get_mut(handle) else { return Requests::refuse(handle) };
        let is_active = request.body.is_some();
        match request.recipe.as_deref_mut() {
            Some((Recipe::Partitioned(Partitioned::Send(sender)), _)) => {
                if !is_active {
                    return fail(
                        Class::REQUEST,
                        "argument `request` is a partitioned send that has not been started",
                    );
                }
                for partition in partitions {
                    sender.ready(&mut self.engine, partition, arg)?;
                }
                Ok(())
            }
            Some((Recipe::Partitioned(Partitioned::Nobody { sends: true, parts }), _)) => {
                for partition in partitions {
                    parts.check(partition, arg)?;
                }
                Ok(())
            }
            _ => not_a_send(),
        }
    }

    /// `MPI_Pready` of one that waits for others of its message: whether it was that, else nothing has been done.
    #[inline]
    pub fn note_now(&mut self, handle: Handle, partition: i32) -> bool {
        let request = self.objects.requests.get_mut(handle).filter(|request| request.body.is_some());
        match request.and_then(|request| request.recipe.as_deref_mut()) {
            Some((Recipe::Partitioned(Partitioned::Send(sender)), _)) => sender.note_now(partition),
            _ => false,
        }
    }

    /// `MPI_Pready` of one whose message, if it is the last of it, leaves at once: whether it was that, else nothing has been done.
    pub fn ready_now(&mut self, handle: Handle, partition: i32) -> bool {
        let request = self.objects.requests.get_mut(handle).filter(|request| request.body.is_some());
        match request.and_then(|request| request.recipe.as_deref_mut()) {
            Some((Recipe::Partitioned(Partitioned::Send(sender)), _)) => {
                sender.ready_now(&mut self.engine, partition)
            }
            _ => false,
        }
    }

    /// Starts rounds that are like those before them, if all these requests are partitioned and theirs are; else nothing has been done.
    pub fn start_all_now(&mut self, mut handles: impl Iterator<Item = Handle> + Clone) -> bool {
        let is_usual = |handle| {
            let request = self.objects.requests.get(handle).filter(|request| request.body.is_none());
            match request.and_then(|request| request.recipe.as_deref()) {
                Some((Recipe::Partitioned(Partitioned::Send(sender)), _)) => sender.is_usual(),
                Some((Recipe::Partitioned(Partitioned::Receive(receiver)), _)) => receiver.is_usual(),
                _ => false,
            }
        };
        // One that is named twice is found out by the general path, which it is left to.
        handles.clone().all(is_usual) && handles.all(|handle| self.start_partitioned_now(handle))
    }

    /// Starts a round like the one before it; false if it is not that, then nothing has been done.
    #[inline(always)]
    pub(crate) fn start_partitioned_now(&mut self, handle: Handle) -> bool {
        let recipe = self.objects.requests.get(handle).and_then(|request| request.recipe.as_deref());
        matches!(recipe, Some((Recipe::Partitioned(_), _))) && self.start_round_now(handle)
    }

    /// Apart, so that other persistent requests do not pay for it.
    #[inline(never)]
    fn start_round_now(&mut self, handle: Handle) -> bool {
        let request = self.objects.requests.get_mut(handle).filter(|request| request.body.is_none());
        let Some(request) = request else { return false };
        let has_begun = match request.recipe.as_deref_mut() {
            Some((Recipe::Partitioned(Partitioned::Send(sender)), _)) => sender.start_now(&self.engine),
            Some((Recipe::Partitioned(Partitioned::Receive(receiver)), _)) => {
                receiver.start_now(&mut self.engine)
            }
            _ => false,
        };
        if has_begun {
            request.body = Some(Body::Partitioned);
        }
        has_begun
    }

    /// Completes a round of which nothing is left to be said: its status.
    pub(crate) fn take_partitioned(&mut self, handle: Handle) -> Option<Status> {
        let request = self.objects.requests.get_mut(handle)?;
        let status = match request.recipe.as_deref_mut() {
            Some((Recipe::Partitioned(Partitioned::Send(sender)), _)) => sender.end_now(),
            Some((Recipe::Partitioned(Partitioned::Receive(receiver)), _)) => {
                receiver.end_now(&mut self.engine)
            }
            _ => None,
        }?;
        request.body = None;
        Some(status)
    }

    /// `MPI_Parrived`: true of what is not under way, as `MPI_REQUEST_NULL` never is (MPI 5.0 section 4.2.2).
    pub fn has_arrived(&mut self, handle: Handle, partition: i32) -> Result<bool> {
        if handle == REQUEST_NULL {
            return Ok(true);
        }
        let Some(request) = self.objects.requests.get_mut(handle) else { return Requests::refuse(handle) };
        let is_active = matches!(request.body, Some(Body::Partitioned));
        match request.recipe.as_deref_mut() {
            Some((Recipe::Partitioned(Partitioned::Receive(receiver)), _)) => {
                let partition = receiver.parts.check(partition, "partition")?;
                if !is_active || receiver.has_arrived(&mut self.engine, partition) {
                    return Ok(true);
                }
                let urge = receiver.urge(&mut self.engine)?;
                if receiver.is_expectant() {
                    self.note_untold(handle);
                }
                if let Some(op) = urge {
                    self.detach(Body::Send(op, Keep::Nothing));
                }
                Ok(false)
            }
            Some((Recipe::Partitioned(Partitioned::Nobody { sends: false, parts }), _)) => {
                parts.check(partition, "partition").map(|_| true)
            }
            _ => fail(Class::REQUEST, "argument `request` is not a partitioned receive"),
        }
    }

    /// Takes in what receivers wait for that urge: whether something leaves that waited.
    pub(crate) fn take_urges(&mut self) -> bool {
        // A sender that introduces itself may have that tag from its program, but says something.
        let is_urge = |envelope: &Envelope, len: u64| {
            len == 0 && envelope.tag == URGE_TAG && envelope.context & 3 == Purpose::Partitioned as u64
        };
        let arrived = self.engine.arrived().filter(|(envelope, len)| is_urge(envelope, *len));
        let urges: Vec<Envelope> = arrived.map(|(envelope, _)| *envelope).collect();
        let mut has_hurried = false;
        for Envelope { source, context, tag } in urges {
            self.engine.probe_matched(&Want { source: Some(source), context, tag: Some(tag) });
            has_hurried |= self.hurry(context);
        }
        has_hurried
    }

    /// A receiver urges the sender of this channel. One that has been freed meanwhile owes nothing.
    fn hurry(&mut self, channel: u64) -> bool {
        let is_it = |request: &Request| match request.recipe.as_deref() {
            Some((Recipe::Partitioned(Partitioned::Send(sender)), _)) => sender.channel == channel,
            _ => false,
        };
        let found =
            self.objects.requests.iter().find(|(_, request)| is_it(request)).map(|(handle, _)| handle);
        let request = found.and_then(|handle| self.objects.requests.get_mut(handle));
        match request.and_then(|request| request.recipe.as_deref_mut()) {
            Some((Recipe::Partitioned(Partitioned::Send(sender)), _)) => sender.hurry(&mut self.engine),
            _ => false,
        }
    }

    /// A partitioned request that is not under way is forgotten.
    pub fn close_partitioned(&mut self, part: Partitioned) {
        if let Partitioned::Receive(receiver) = part {
            receiver.close(&mut self.engine);
        }
    }
}

fn not_a_send<T>() -> Result<T> {
    fail(Class::REQUEST, "argument `request` is not a partitioned send")
}

fn receiver(request: Option<&mut Request>) -> Option<&mut Receiver> {
    let request = request.filter(|request| matches!(request.body, Some(Body::Partitioned)))?;
    match request.recipe.as_deref_mut() {
        Some((Recipe::Partitioned(Partitioned::Receive(receiver)), _)) => Some(receiver),
        _ => None,
    }
}
