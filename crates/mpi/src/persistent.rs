//! Persistent requests (MPI 5.0 sections 3.9 and 6.13): starting them.

use crate::coll::{Progress, UserReduce};
use crate::comm::Purpose;
use crate::error::{Class, Result, fail};
use crate::handle::Handle;
use crate::p2p::peer_at_once;
use crate::request::{Body, Ended, Keep, Recipe, Requests, SendMode};
use crate::status::ANY_TAG;
use crate::world::World;
use fabric::{Device, Distance};
use proto::{Mode, Want};

impl<D: Device> World<D> {
    /// `MPI_Start`; whether no look around is due: the operation is over already, or a receive is posted, behind which
    /// `MPI_Irecv` does not look either, or it is in parts, which wait for `MPI_Pready` or are posted.
    pub fn start(&mut self, handle: Handle) -> Result<bool> {
        if self.start_partitioned_now(handle) {
            return Ok(true);
        }
        let Some(request) = self.objects.requests.get_mut(handle) else { return Requests::refuse(handle) };
        if request.recipe.is_none() {
            return fail(Class::REQUEST, "is not a persistent request");
        }
        if request.body.is_some() {
            return fail(Class::REQUEST, "is a persistent request that is active already");
        }
        let comm = request.comm;
        let mut recipe = request.recipe.take().expect("looked at above");
        let started = self.start_recipe(comm, &mut recipe);
        let request = self.objects.requests.get_mut(handle).expect("looked at above");
        request.recipe = Some(recipe);
        let (body, call) = started?;
        let goes_on = matches!(body, Body::Collective(_));
        let is_partitioned = matches!(body, Body::Partitioned);
        let is_left = matches!(body, Body::Ended(_) | Body::Receive(..) | Body::Partitioned);
        request.body = Some(body);
        if goes_on {
            self.start_schedule(handle, call);
        }
        Ok(is_left && !(is_partitioned && self.note_untold(handle)))
    }

    /// `MPI_Start` of a collective in which this rank moves nothing; false if it is something else or not plainly right, or
    /// if its time is to be told: then nothing has been done.
    #[inline(always)]
    pub fn start_nothing(&mut self, handle: Handle) -> bool {
        let Some(request) = self.objects.requests.get_mut(handle) else { return false };
        if !request.is_of_nothing || request.body.is_some() || self.account.is_some() {
            return false;
        }
        std::mem::forget(request.body.replace(Body::Over));
        true
    }

    /// `MPI_Start` of a message if nothing is wrong; else nothing has been done that does not fail again. Whether it may be
    /// under way.
    #[inline(always)]
    pub fn start_message_now(&mut self, handle: Handle) -> Option<bool> {
        let request = self.objects.requests.get_mut(handle).filter(|request| request.body.is_none())?;
        let body = match &**request.recipe.as_ref()? {
            (Recipe::Send(send), place)
                if send.mode == SendMode::Standard && send.buffer.ty.is_contiguous() =>
            {
                let to = peer_at_once(place, send.dest)?;
                let (context, span) = (place.context_for(Purpose::Message), send.buffer.span());
                let op = match self.engine.send_now::<false>(to, context, send.tag, span) {
                    true => None,
                    // Behind one to another host a look is due.
                    false if self.engine.device().distance(to) == Distance::Network => return None,
                    false => self.engine.send_among(to, context, send.tag, span, Mode::Standard).ok()?,
                };
                op.map_or(Body::Over, |op| Body::Send(op, Keep::Nothing))
            }
            (Recipe::Receive(receive), place) if receive.buffer.ty.is_contiguous() => {
                let from = peer_at_once(place, receive.source)?;
                let tag = (receive.tag != ANY_TAG).then_some(receive.tag);
                let want = Want { source: Some(from), context: place.context_for(Purpose::Message), tag };
                let op = self.engine.receive(want, receive.buffer.span()).ok()?;
                Body::of_receive(op, receive.source)
            }
            _ => return None,
        };
        let is_over = matches!(body, Body::Over);
        request.body = Some(body);
        Some(!is_over)
    }

    /// The body of the active request, and the function of the application that has to be called.
    fn start_recipe(
        &mut self,
        comm: Handle,
        recipe: &mut (Recipe, crate::comm::Place),
    ) -> Result<(Body, Option<UserReduce>)> {
        let (recipe, place) = recipe;
        match recipe {
            Recipe::Send(send) => {
                let body = self.start_send(place, comm, send)?;
                Ok((body.unwrap_or(Body::Ended(Ended::WELL)), None))
            }
            Recipe::Receive(receive) => Ok((self.start_receive(place, receive)?, None)),
            Recipe::Partitioned(part) => Ok((self.start_partitioned(part)?, None)),
            Recipe::Collective(idle, tag) => {
                let Some(mut running) = idle.take() else {
                    return fail(Class::REQUEST, "is a persistent collective that has failed, which ends it");
                };
                if let Some(copies) = &mut running.copies {
                    copies.begin();
                }
                running.schedule.start(*tag);
                match self.advance(&mut running) {
                    Ok(Progress::Done) => {
                        if let Some(copies) = &mut running.copies {
                            copies.end();
                        }
                        *idle = Some(running);
                        Ok((Body::Ended(Ended::WELL), None))
                    }
                    progress => Ok(self.begun(running, progress)),
                }
            }
        }
    }
}
