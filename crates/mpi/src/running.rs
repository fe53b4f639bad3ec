//! Collectives under way: from where they are begun to where their requests end.

use crate::coll::{Collective, Progress, Schedule, Spread, UserReduce};
use crate::collio::{InFlight, io};
use crate::comm::Comms;
use crate::error::Result;
use crate::handle::Handle;
use crate::request::{Body, Copies, Ended, Recipe, Request, Running, Then};
use crate::world::World;
use fabric::Device;

impl<D: Device> World<D> {
    /// The function asked for by [`Polled::Call`] has returned.
    pub fn called(&mut self, handle: Handle) {
        if let Some(Request { body: Some(Body::Collective(running)), .. }) =
            self.objects.requests.get_mut(handle)
        {
            running.schedule.called();
            self.engine.note();
        }
    }

    /// Advances a collective that has no request.
    pub fn advance(&mut self, running: &mut Running) -> Result<Progress> {
        let mut io = io!(self, &running.place, &mut running.flight);
        running.schedule.advance(&mut io)
    }

    /// Starts a collective that completes a request, as far as it comes at once; whether it is done.
    pub fn launch(
        &mut self,
        comm: Handle,
        mut schedule: Box<Schedule>,
        then: Then,
    ) -> Result<(Handle, bool)> {
        self.objects.requests.room()?;
        let Some(held) = self.objects.comms.get_mut(comm) else { return Comms::refuse(comm) };
        schedule.start(held.coll.next_tag(schedule.program().kind));
        let mut flight = InFlight::default();
        let mut io = io!(self, &held.crowd, &mut flight);
        let progress = schedule.advance(&mut io);
        match (progress, then) {
            (Ok(Progress::Done), Then::Nothing) => Ok((self.objects.requests.collected()?, true)),
            (Ok(Progress::Done), Then::Keep(_, call)) => {
                held.coll.keep(call, schedule);
                Ok((self.objects.requests.collected()?, true))
            }
            (progress, then) => {
                let place = held.crowd.clone();
                let running = Box::new(Running { schedule, flight, place, then, copies: None });
                let (body, call) = self.begun(running, progress);
                let goes_on = matches!(body, Body::Collective(_));
                let handle = self.objects.requests.add(comm, body)?;
                if goes_on {
                    self.start_schedule(handle, call);
                }
                Ok((handle, false))
            }
        }
    }

    /// A collective in which this rank has no data to send and none to receive, as `moves_nothing` says of its number
    /// and how many there are: nothing is left of it but that it is counted. False, and nothing has happened, where
    /// that is not so, where a rank may pass on what is not its own (several hosts), and on intercommunicators.
    #[inline(always)]
    pub fn empty_now(
        &mut self,
        kind: Collective,
        comm: Handle,
        moves_nothing: impl FnOnce((usize, usize)) -> bool,
    ) -> bool {
        let Some(held) = self.objects.comms.get_mut(comm) else { return false };
        let is_flat = !held.place.is_inter() && matches!(held.coll.spread, Spread::OneHost);
        if !is_flat || !moves_nothing((held.place.rank as usize, held.place.size() as usize)) {
            return false;
        }
        held.coll.next_tag(kind);
        true
    }

    /// The body of the request of a collective that has come so far, and the function of the application that
    /// has to be called.
    pub(crate) fn begun(
        &mut self,
        running: Box<Running>,
        progress: Result<Progress>,
    ) -> (Body, Option<UserReduce>) {
        match progress {
            Ok(Progress::Call(call)) => (Body::Collective(running), Some(call)),
            Ok(_) => (Body::Collective(running), None),
            Err(error) => {
                let mut running = running;
                std::mem::forget(running.copies.take());
                self.leave(&running.place, running.schedule, running.flight, &error);
                (Body::Ended(Ended { error: Some(error), ..Ended::WELL }), None)
            }
        }
    }

    /// Gives a collective that has been begun, or a persistent one that has not, the copies of buffers that it works on; one
    /// that has ended needs them no more.
    pub fn add_copies(&mut self, handle: Handle, mut copies: Box<dyn Copies>) {
        match self.objects.requests.get_mut(handle) {
            Some(Request { body: Some(Body::Collective(running)), .. }) => running.copies = Some(copies),
            Some(Request { body: None, recipe: Some(recipe), is_of_nothing, .. }) => {
                if let Recipe::Collective(Some(running), _) = &mut recipe.0 {
                    running.copies = Some(copies);
                    *is_of_nothing = false;
                }
            }
            Some(Request { body: Some(Body::Ended(Ended { error: Some(_), .. })), .. }) => {
                std::mem::forget(copies)
            }
            _ => copies.end(),
        }
    }

    /// Puts a collective request among those that are advanced, with the function of the application that it
    /// waits for.
    pub(crate) fn start_schedule(&mut self, handle: Handle, call: Option<UserReduce>) {
        self.schedules.push(handle);
        self.calls.extend(call.map(|call| (handle, call)));
    }

    pub(crate) fn next_call(&mut self) -> Option<(Handle, UserReduce)> {
        self.calls.pop().or_else(|| self.advance_schedules())
    }

    pub(crate) fn advance_schedules(&mut self) -> Option<(Handle, UserReduce)> {
        let mut at = 0;
        while at < self.schedules.len() {
            let handle = self.schedules[at];
            match self.advance_schedule(handle) {
                Ok(Progress::Pending) => at += 1,
                Ok(Progress::Call(call)) => return Some((handle, call)),
                Ok(Progress::Done) => {
                    self.schedules.swap_remove(at);
                    self.end_schedule(handle, Ended::WELL);
                }
                Err(error) => {
                    self.schedules.swap_remove(at);
                    self.end_schedule(handle, Ended { error: Some(error), ..Ended::WELL });
                }
            }
        }
        None
    }

    fn advance_schedule(&mut self, handle: Handle) -> Result<Progress> {
        let request = self.objects.requests.get_mut(handle);
        let Some(Request { body: Some(Body::Collective(running)), .. }) = request else {
            return Ok(Progress::Done);
        };
        let running = &mut **running;
        let mut io = io!(self, &running.place, &mut running.flight);
        running.schedule.advance(&mut io)
    }

    fn end_schedule(&mut self, handle: Handle, ended: Ended) {
        self.engine.note();
        let Some(request) = self.objects.requests.get_mut(handle) else { return };
        let error = ended.error.clone();
        let Some(Body::Collective(mut running)) = request.body.replace(Body::Ended(ended)) else { return };
        if let Some(error) = error {
            // What is under way may still come into them.
            std::mem::forget(running.copies.take());
            return self.leave(&running.place, running.schedule, running.flight, &error);
        }
        if let Some(copies) = &mut running.copies {
            copies.end();
        }
        match running.then {
            Then::Nothing => {}
            Then::NameComm(comm) => {
                if let Some(comm) = self.objects.comms.get_mut(comm) {
                    comm.set_context(running.schedule.words()[0]);
                }
            }
            Then::Keep(comm, call) => {
                // The handle may have gone to another communicator meanwhile.
                if let Some(comm) = self.objects.comms.get_mut(comm)
                    && comm.place.context == running.place.context
                {
                    comm.coll.keep(call, running.schedule);
                }
                return;
            }
        }
        if let Some(recipe) = &mut request.recipe
            && let Recipe::Collective(place, _) = &mut recipe.0
        {
            *place = Some(running);
        }
    }
}
