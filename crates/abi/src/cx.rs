//! What a handler runs in: which operation was called, access to the rank, whose error handler
//! is concerned.

use std::cell::Cell;

use mpi::anytime::Anytime;
use mpi::handle::Handle;
use shm::owner::Guard;

use crate::global::{self, ObjectsGuard, WorldGuard};
use crate::object::Object;
use crate::table::Row;

/// One call of an operation.
pub struct Cx {
    row: &'static Row,
    large: bool,
    subject: Cell<Option<(Object, Handle)>>,
}

impl Cx {
    /// A call of the plain form of `row`, or of its `_c` form.
    #[inline(always)]
    pub fn new(row: &'static Row, large: bool) -> Cx {
        Cx { row, large, subject: Cell::new(None) }
    }

    /// Whether the operation may be called now.
    #[inline(always)]
    pub fn is_allowed(&self) -> bool {
        let flags = self.row.flags;
        flags.anytime || if flags.tool { self.anytime().tools.is_initialised() } else { global::is_active() }
    }

    /// The row of the operation.
    pub fn row(&self) -> &'static Row {
        self.row
    }

    /// The name the operation was called by, without `P`.
    pub fn name(&self) -> String {
        format!("{}{}", self.row.name, if self.large { "_c" } else { "" })
    }

    /// Whether the `_c` form was called.
    pub fn is_large(&self) -> bool {
        self.large
    }

    /// The rank. No second guard may be taken while one is alive, and no function of the
    /// application may be called.
    #[inline(always)]
    pub fn world(&self) -> WorldGuard {
        global::world()
    }

    /// The tables of objects of the rank; as [`Cx::world`].
    #[inline(always)]
    pub fn objects(&self) -> ObjectsGuard {
        global::objects()
    }

    /// What may be used at any time, from any thread. The rank must not be asked for while the guard
    /// is alive.
    pub fn anytime(&self) -> Guard<'static, Anytime> {
        global::anytime()
    }

    /// Calls the functions that tools have registered for events, if something has happened; no guard may be alive.
    #[inline(always)]
    pub fn tell_tools(&self) {
        if crate::tools::event::are_heard() && !self.row.flags.tool && !self.row.flags.anytime {
            crate::tools::event::deliver();
        }
    }

    /// Says whose error handler an error of this call concerns, when the arguments do not tell
    /// ([`crate::raise`]): MPI_Wait and the like.
    #[inline]
    pub fn concerns(&self, object: Object, handle: Handle) {
        self.subject.set(Some((object, handle)));
    }

    /// What [`Cx::concerns`] was told.
    pub fn subject(&self) -> Option<(Object, Handle)> {
        self.subject.get()
    }
}
