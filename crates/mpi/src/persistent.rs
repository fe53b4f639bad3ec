//! Persistent requests (MPI 5.0 sections 3.9 and 6.13): starting them.

use crate::coll::{Progress, UserReduce};
use crate::comm::Purpose;
use crate::error::{Class, Result, fail};
use crate::handle::Handle;
use crate::request::{Body, Ended, Recipe, Requests, SendMode};
use crate::world::World;
use fabric::Device;

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

    /// `MPI_Start` of what is over at once, if nothing is wrong and no time is to be told: a short message that can leave, a
    /// collective in which this rank moves nothing.
    #[inline(always)]
    pub fn start_at_once(&mut self, handle: Handle) -> bool {
        let Some(request) = self.objects.requests.get_mut(handle) else { return false };
        let Some(recipe) = request.recipe.as_ref().filter(|_| request.body.is_none()) else { return false };
        let is_over = match &**recipe {
            (Recipe::Collective(Some(idle), _), _) => {
                idle.schedule.is_nothing() && idle.copies.is_none() && self.account.is_none()
            }
            (Recipe::Send(send), place) => {
                let is_plain = send.mode == SendMode::Standard && send.buffer.ty.is_contiguous();
                is_plain && (send.dest as u32) < place.peers_size() && {
                    let (to, context) =
                        (place.world_rank(send.dest as u32), place.context_for(Purpose::Message));
                    self.engine.send_now::<false>(to as usize, context, send.tag, send.buffer.span())
                }
            }
            _ => false,
        };
        if is_over {
            request.body = Some(Body::Ended(Ended::WELL));
        }
        is_over
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
