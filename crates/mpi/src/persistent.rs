//! Persistent requests (MPI 5.0 sections 3.9 and 6.13): starting them.

use crate::error::{Class, Result, fail};
use crate::handle::Handle;
use crate::request::{Body, Ended, Recipe, Requests};
use crate::world::World;
use fabric::Device;

impl<D: Device> World<D> {
    /// `MPI_Start`.
    pub fn start(&mut self, handle: Handle) -> Result {
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
        let scheduled = matches!(started, Ok(Body::Collective(_)));
        let request = self.objects.requests.get_mut(handle).expect("looked at above");
        request.recipe = Some(recipe);
        request.body = Some(started?);
        if scheduled {
            self.start_schedule(handle);
        }
        Ok(())
    }

    fn start_recipe(&mut self, comm: Handle, recipe: &mut (Recipe, crate::comm::Place)) -> Result<Body> {
        let (recipe, place) = recipe;
        match recipe {
            Recipe::Send(send) => {
                let body = self.start_send(place, comm, send)?;
                Ok(body.unwrap_or(Body::Ended(Ended::WELL)))
            }
            Recipe::Receive(receive) => self.start_receive(place, receive),
            Recipe::Collective(running, tag) => {
                let Some(mut running) = running.take() else {
                    return fail(Class::REQUEST, "is a persistent collective that has failed, which ends it");
                };
                running.schedule.start(*tag);
                Ok(Body::Collective(running))
            }
        }
    }
}
