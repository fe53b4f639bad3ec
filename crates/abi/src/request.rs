//! MPI 5.0 section 3.7: completing requests, one or many.

use mpi::comm::COMM_NULL;
use mpi::error::{Class, Error, Result, fail};
use mpi::handle::Handle;
use mpi::request::{Body, Ended, REQUEST_NULL};
use mpi::status::Status;

use crate::cx::Cx;
use crate::global::World;
use crate::grequest;
use crate::kind::array::Array;
use crate::kind::handle::{HandleRef, live_or_null};
use crate::kind::output::Out;
use crate::kind::text::StatusPlace;
use crate::layout::{self, RawStatus, Slot};
use crate::object::Object;
use crate::report::Waits;
use crate::wait;

const UNDEFINED: i32 = mpi::group::UNDEFINED;

/// Waits for an operation that has no request.
pub fn finish(cx: &Cx, body: Body, status: StatusPlace) -> Result {
    let mut body = Some(body);
    let ready = |body: &mut Option<Body>, world: &mut World| {
        let (next, _) = world.settle_body(body.take().expect("put back below"));
        match next {
            Body::Ended(ended) => Ok(Some(ended)),
            other => {
                *body = Some(other);
                Ok(None)
            }
        }
    };
    match wait::on(cx, &mut body, ready, |body| body.as_ref().map_or(Waits::Nothing, Waits::Body)) {
        Ok(ended) => {
            status.set_keeping_error(ended.status.to_ints());
            ended.error.map_or(Ok(()), Err)
        }
        Err(error) => {
            body.into_iter().for_each(|body| cx.world().give_up(body));
            Err(error)
        }
    }
}

/// Waits for operations that have no request, unless starting them failed; after an error those
/// that are left are given up.
pub fn finish_all(cx: &Cx, bodies: Vec<Body>, started: Result) -> Result {
    let mut bodies = bodies.into_iter();
    let finished = started.and_then(|()| bodies.try_for_each(|body| finish(cx, body, StatusPlace::IGNORE)));
    bodies.for_each(|body| cx.world().give_up(body));
    finished
}

/// Whether the handle stands for something to wait for.
fn is_active(world: &World, handle: Handle) -> bool {
    world.objects.requests.get(handle).is_some_and(|request| request.body.is_some())
}

/// Takes the result of a request that has ended; the handle to leave behind comes with it.
fn take(cx: &Cx, handle: Handle) -> (Ended, Handle) {
    let general = {
        let mut world = cx.world();
        match world.objects.requests.get(handle) {
            None => return (Ended::WELL, REQUEST_NULL),
            Some(request) if matches!(request.body, Some(Body::General(_))) => true,
            Some(request) => {
                let concerned = match &request.body {
                    Some(Body::Beside(errand)) => (Object::File, errand.file),
                    _ => (Object::Comm, request.comm),
                };
                let (ended, keep) = world.take(handle);
                if ended.error.is_some() && concerned.1 != COMM_NULL {
                    cx.concerns(concerned.0, concerned.1);
                }
                return (ended, if keep { handle } else { REQUEST_NULL });
            }
        }
    };
    debug_assert!(general);
    (grequest::conclude(cx, handle), REQUEST_NULL)
}

/// `MPI_Wait`.
pub fn wait(cx: &Cx, request: HandleRef, status: StatusPlace) -> Result {
    if request.handle == REQUEST_NULL {
        status.set_empty();
        return Ok(());
    }
    let mut raw = [Slot::from(request.handle)];
    let ready = |_: &mut [Slot; 1], world: &mut World| {
        if let Some(taken) = world.take_plain(request.handle) {
            return Ok(Some(Some(taken)));
        }
        Ok(world.settle(request.handle)?.then(|| world.take_plain(request.handle)))
    };
    let plain = wait::on(cx, &mut raw, ready, |raw| Waits::Requests(raw))?;
    if let Some((found, keep)) = plain {
        if !keep {
            request.set(REQUEST_NULL);
        }
        status.set_keeping_error(found.to_ints());
        return Ok(());
    }
    let (ended, left) = take(cx, request.handle);
    request.set(left);
    status.set_keeping_error(ended.status.to_ints());
    ended.error.map_or(Ok(()), Err)
}

/// `MPI_Test`.
pub fn test(cx: &Cx, request: HandleRef, flag: Out<bool>, status: StatusPlace) -> Result {
    if request.handle == REQUEST_NULL {
        flag.set(true);
        status.set_empty();
        return Ok(());
    }
    flag.set(false);
    let ended = |world: &mut World| Ok(world.settle(request.handle)?.then_some(()));
    if wait::once(cx, ended)?.is_none() {
        return Ok(());
    }
    flag.set(true);
    let (ended, left) = take(cx, request.handle);
    request.set(left);
    status.set_keeping_error(ended.status.to_ints());
    ended.error.map_or(Ok(()), Err)
}

/// An array of requests, checked: the handles, and where they are.
pub(crate) struct Set<'a>(&'a mut [Slot]);

impl<'a> Set<'a> {
    pub(crate) fn new(cx: &Cx, count: usize, requests: Array<Slot>) -> Result<Set<'a>> {
        // SAFETY: MPI says the array has `count` elements; it is kept during the call only.
        let raw = unsafe { requests.slice_mut(count)? };
        let known = |raw: usize, world: &World| {
            raw <= u32::MAX as usize
                && (raw as u32 == REQUEST_NULL.0 || world.objects.requests.get(Handle(raw as u32)).is_some())
        };
        {
            let world = cx.world();
            if raw.iter().all(|slot| known(slot.get(Object::Request), &world)) {
                drop(world);
                return Ok(Set(raw));
            }
        }
        for (i, slot) in raw.iter().enumerate() {
            live_or_null(Object::Request, slot.get(Object::Request), "array_of_requests", cx)
                .map_err(|e| Error::new(e.class, format!("{} (element {i})", e.text)))?;
        }
        Ok(Set(raw))
    }

    pub(crate) fn handle(&self, i: usize) -> Handle {
        Handle(self.0[i].get(Object::Request) as u32)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn take(&mut self, cx: &Cx, i: usize) -> Ended {
        let (ended, left) = take(cx, self.handle(i));
        self.0[i] = left.into();
        ended
    }

    fn any_active(&self, world: &World) -> bool {
        (0..self.len()).any(|i| is_active(world, self.handle(i)))
    }

    /// The first active request that has ended.
    fn first_ended(&self, world: &mut World) -> Result<Option<usize>> {
        for i in 0..self.len() {
            if is_active(world, self.handle(i)) && world.settle(self.handle(i))? {
                return Ok(Some(i));
            }
        }
        Ok(None)
    }

    /// Whether nothing is left to wait for.
    fn all_ended(&self, world: &mut World, from: &mut usize) -> Result<bool> {
        while *from < self.len() {
            let handle = self.handle(*from);
            if handle != REQUEST_NULL && !world.settle(handle)? {
                return Ok(false);
            }
            *from += 1;
        }
        Ok(true)
    }

    /// Takes all results; one error makes it `MPI_ERR_IN_STATUS`.
    fn take_all(&mut self, cx: &Cx, statuses: Array<RawStatus>) -> Result {
        let indices: Vec<usize> = (0..self.len()).collect();
        self.take_some(cx, &indices, statuses)
    }

    /// Once the requests from `from` on have ended, completes those from `done` on: what had to be settled first has ended well as a rule, and is
    /// plain by then. Gives whether something special is left.
    #[inline(never)]
    fn take_settled(
        &mut self,
        world: &mut World,
        from: &mut usize,
        done: &mut usize,
        statuses: &mut [RawStatus],
    ) -> Result<Option<bool>> {
        Ok(self.all_ended(world, from)?.then(|| !self.take_plain(world, done, statuses)))
    }

    /// Completes requests from `from` on as long as they have ended and there is nothing special
    /// about them; true if that was all.
    #[inline(always)]
    fn take_plain(&mut self, world: &mut World, from: &mut usize, statuses: &mut [RawStatus]) -> bool {
        while *from < self.len() {
            let handle = self.handle(*from);
            let (status, keep) = if handle == REQUEST_NULL {
                (Status::EMPTY, false)
            } else {
                match world.take_plain(handle) {
                    Some(taken) => taken,
                    None => return false,
                }
            };
            if !keep {
                self.0[*from] = REQUEST_NULL.into();
            }
            if let Some(place) = statuses.get_mut(*from) {
                let error = *layout::error_of(place);
                *place = layout::pack(status.to_ints());
                *layout::error_of(place) = error;
            }
            *from += 1;
        }
        true
    }

    /// Takes the results from `done` on; those before ended well and have their status.
    fn take_rest(&mut self, cx: &Cx, done: usize, statuses: Array<RawStatus>) -> Result {
        let indices: Vec<usize> = (done..self.len()).collect();
        let ended: Vec<Ended> = indices.iter().map(|i| self.take(cx, *i)).collect();
        let failed = ended.iter().find_map(|e| e.error.clone());
        if !statuses.is_null() {
            // SAFETY: MPI says the array has as many elements as there are requests.
            let places = unsafe { statuses.slice_mut(self.len())? };
            if failed.is_some() {
                places[..done].iter_mut().for_each(|place| *layout::error_of(place) = 0);
            }
            put_ended(cx, &mut places[done..], &ended, failed.is_some());
        }
        in_status(failed)
    }

    fn take_some(&mut self, cx: &Cx, indices: &[usize], statuses: Array<RawStatus>) -> Result {
        let mut ended = Vec::with_capacity(indices.len());
        for i in indices {
            ended.push(self.take(cx, *i));
        }
        let failed = ended.iter().find_map(|e| e.error.clone());
        if !statuses.is_null() {
            // SAFETY: MPI says the array has as many elements as there are results.
            put_ended(cx, unsafe { statuses.slice_mut(indices.len())? }, &ended, failed.is_some());
        }
        in_status(failed)
    }
}

/// Stores statuses; the error field is written only if one of them failed.
fn put_ended(cx: &Cx, places: &mut [RawStatus], ended: &[Ended], failed: bool) {
    for (place, ended) in places.iter_mut().zip(ended) {
        let error = match &ended.error {
            _ if !failed => *layout::error_of(place),
            None => 0,
            Some(error) => layout::write(layout::Set::Code, crate::raise::code_of(cx, error)),
        };
        *place = layout::pack(ended.status.to_ints());
        *layout::error_of(place) = error;
    }
}

fn in_status(failed: Option<Error>) -> Result {
    match failed {
        None => Ok(()),
        Some(error) => {
            crate::raise::await_end(&error);
            fail(Class::IN_STATUS, format!("one of the requests failed: {error}"))
        }
    }
}

/// `MPI_Waitall`.
pub fn waitall(cx: &Cx, count: usize, requests: Array<Slot>, statuses: Array<RawStatus>) -> Result {
    let mut set = Set::new(cx, count, requests)?;
    // SAFETY: MPI says the array, if there is one, has as many elements as there are requests.
    let places = unsafe { statuses.slice_mut(if statuses.is_null() { 0 } else { count })? };
    let (mut done, mut from) = (0, 0);
    let ready = |set: &mut Set, world: &mut World| {
        if set.take_plain(world, &mut done, places) {
            return Ok(Some(false));
        }
        from = from.max(done);
        set.take_settled(world, &mut from, &mut done, places)
    };
    let rest = wait::on(cx, &mut set, ready, |set| Waits::Requests(set.0))?;
    if rest { set.take_rest(cx, done, statuses) } else { Ok(()) }
}

/// `MPI_Testall`.
pub fn testall(
    cx: &Cx,
    count: usize,
    requests: Array<Slot>,
    flag: Out<bool>,
    statuses: Array<RawStatus>,
) -> Result {
    flag.set(false);
    let mut set = Set::new(cx, count, requests)?;
    if wait::once(cx, |world| Ok(set.all_ended(world, &mut 0)?.then_some(())))?.is_none() {
        return Ok(());
    }
    flag.set(true);
    set.take_all(cx, statuses)
}

fn none_active(index: Out<i32>, status: StatusPlace) -> Result {
    index.set(UNDEFINED);
    status.set_empty();
    Ok(())
}

fn take_any(cx: &Cx, set: &mut Set, i: usize, index: Out<i32>, status: StatusPlace) -> Result {
    index.set(i as i32);
    let ended = set.take(cx, i);
    status.set_keeping_error(ended.status.to_ints());
    ended.error.map_or(Ok(()), Err)
}

/// `MPI_Waitany`.
pub fn waitany(cx: &Cx, count: usize, requests: Array<Slot>, index: Out<i32>, status: StatusPlace) -> Result {
    let mut set = Set::new(cx, count, requests)?;
    if !set.any_active(&cx.world()) {
        return none_active(index, status);
    }
    let i = wait::on(cx, &mut set, |set, world| set.first_ended(world), |set| Waits::Requests(set.0))?;
    take_any(cx, &mut set, i, index, status)
}

/// `MPI_Testany`.
pub fn testany(
    cx: &Cx,
    count: usize,
    requests: Array<Slot>,
    index: Out<i32>,
    flag: Out<bool>,
    status: StatusPlace,
) -> Result {
    let mut set = Set::new(cx, count, requests)?;
    flag.set(true);
    if !set.any_active(&cx.world()) {
        return none_active(index, status);
    }
    match wait::once(cx, |world| set.first_ended(world))? {
        Some(i) => take_any(cx, &mut set, i, index, status),
        None => {
            flag.set(false);
            index.set(UNDEFINED);
            Ok(())
        }
    }
}

fn some(
    cx: &Cx,
    set: &mut Set,
    outcount: Out<i32>,
    indices: Array<i32>,
    statuses: Array<RawStatus>,
) -> Result {
    let mut ended = Vec::new();
    {
        let mut world = cx.world();
        for i in 0..set.len() {
            if is_active(&world, set.handle(i)) && world.settle(set.handle(i))? {
                ended.push(i);
            }
        }
    }
    outcount.set(ended.len() as i32);
    // SAFETY: MPI says the array has room for `incount` elements.
    let places = unsafe { indices.slice_mut(ended.len())? };
    places.iter_mut().zip(&ended).for_each(|(place, i)| *place = *i as i32);
    set.take_some(cx, &ended, statuses)
}

/// `MPI_Waitsome`.
pub fn waitsome(
    cx: &Cx,
    incount: usize,
    requests: Array<Slot>,
    outcount: Out<i32>,
    indices: Array<i32>,
    statuses: Array<RawStatus>,
) -> Result {
    let mut set = Set::new(cx, incount, requests)?;
    if !set.any_active(&cx.world()) {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    // One look around even if some have ended already: all that have ended by now are reported.
    wait::progress(cx)?;
    wait::on(cx, &mut set, |set, world| set.first_ended(world), |set| Waits::Requests(set.0))?;
    some(cx, &mut set, outcount, indices, statuses)
}

/// `MPI_Testsome`.
pub fn testsome(
    cx: &Cx,
    incount: usize,
    requests: Array<Slot>,
    outcount: Out<i32>,
    indices: Array<i32>,
    statuses: Array<RawStatus>,
) -> Result {
    let mut set = Set::new(cx, incount, requests)?;
    if !set.any_active(&cx.world()) {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    wait::once(cx, |world| set.first_ended(world))?;
    some(cx, &mut set, outcount, indices, statuses)
}

/// The status of a request that has ended, which stays as it is; `None` if it has not.
fn peek(cx: &Cx, handle: Handle) -> Result<Option<Status>> {
    if handle == REQUEST_NULL {
        return Ok(Some(Status::EMPTY));
    }
    let mut world = cx.world();
    if !world.settle(handle)? {
        return Ok(None);
    }
    let body = world.objects.requests.get(handle).and_then(|request| request.body.as_ref());
    match body {
        Some(Body::Ended(ended)) => Ok(Some(ended.status)),
        Some(Body::Beside(errand)) => Ok(errand.outcome().map(|ended| ended.status)),
        Some(Body::General(general)) => {
            let callbacks = general.callbacks();
            drop(world);
            grequest::query(cx, callbacks).map(Some)
        }
        _ => Ok(Some(Status::EMPTY)),
    }
}

/// `MPI_Request_get_status`.
pub fn get_status(cx: &Cx, request: Handle, flag: Out<bool>, status: StatusPlace) -> Result {
    if request == REQUEST_NULL {
        flag.set(true);
        status.set_empty();
        return Ok(());
    }
    let ended = |world: &mut World| Ok(world.settle(request)?.then_some(()));
    let found = match wait::once(cx, ended)? {
        Some(()) => peek(cx, request)?,
        None => None,
    };
    flag.set(found.is_some());
    if let Some(found) = found {
        status.set_keeping_error(found.to_ints());
    }
    Ok(())
}

/// `MPI_Request_get_status_all`.
pub fn get_status_all(
    cx: &Cx,
    count: usize,
    requests: Array<Slot>,
    flag: Out<bool>,
    statuses: Array<RawStatus>,
) -> Result {
    flag.set(false);
    let set = Set::new(cx, count, requests)?;
    if wait::once(cx, |world| Ok(set.all_ended(world, &mut 0)?.then_some(())))?.is_none() {
        return Ok(());
    }
    let mut found = Vec::with_capacity(count);
    for i in 0..set.len() {
        match peek(cx, set.handle(i))? {
            Some(status) => found.push(status),
            None => return Ok(()),
        }
    }
    flag.set(true);
    put(&found, statuses)
}

fn put(found: &[Status], statuses: Array<RawStatus>) -> Result {
    if statuses.is_null() {
        return Ok(());
    }
    // SAFETY: MPI says the array has as many elements as there are results.
    let places = unsafe { statuses.slice_mut(found.len())? };
    places.iter_mut().zip(found).for_each(|(place, status)| *place = layout::pack(status.to_ints()));
    Ok(())
}

/// `MPI_Request_get_status_any`.
pub fn get_status_any(
    cx: &Cx,
    count: usize,
    requests: Array<Slot>,
    index: Out<i32>,
    flag: Out<bool>,
    status: StatusPlace,
) -> Result {
    let set = Set::new(cx, count, requests)?;
    flag.set(true);
    if !set.any_active(&cx.world()) {
        return none_active(index, status);
    }
    let Some(i) = wait::once(cx, |world| set.first_ended(world))? else {
        flag.set(false);
        index.set(UNDEFINED);
        return Ok(());
    };
    index.set(i as i32);
    if let Some(found) = peek(cx, set.handle(i))? {
        status.set_keeping_error(found.to_ints());
    }
    Ok(())
}

/// `MPI_Request_get_status_some`.
pub fn get_status_some(
    cx: &Cx,
    incount: usize,
    requests: Array<Slot>,
    outcount: Out<i32>,
    indices: Array<i32>,
    statuses: Array<RawStatus>,
) -> Result {
    let set = Set::new(cx, incount, requests)?;
    if !set.any_active(&cx.world()) {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    wait::once(cx, |world| set.first_ended(world))?;
    let (mut ended, mut found) = (Vec::new(), Vec::new());
    for i in 0..set.len() {
        if !is_active(&cx.world(), set.handle(i)) {
            continue;
        }
        if let Some(status) = peek(cx, set.handle(i))? {
            ended.push(i as i32);
            found.push(status);
        }
    }
    outcount.set(ended.len() as i32);
    // SAFETY: MPI says the array has room for `incount` elements.
    unsafe { indices.slice_mut(ended.len())? }.copy_from_slice(&ended);
    put(&found, statuses)
}
