//! MPI 5.0 section 14.4.5: split collectives. The first call does all that needs other ranks, and has the rest done beside the
//! application; the second waits for it and says what came of it.

use std::sync::Arc;

use mpi::error::{Class, Result, fail};
use mpi::file::{Errand, Split};
use mpi::handle::Handle;
use mpi::request::Ended;

use super::access::{self, Access, At, Begun, Direction, Raw, Who};
use crate::cx::Cx;
use crate::kind::text::StatusPlace;
use crate::wait;

fn begin(cx: &Cx, fh: Handle, name: &'static str, access: Access, raw: Raw) -> Result {
    let errand = match access::begin(cx, fh, access, raw)? {
        Begun::Beside(errand) => errand,
        Begun::Done(status) => {
            let errand = Errand::new(fh);
            errand.end(Ended { status, error: None });
            Arc::new(errand)
        }
    };
    cx.objects().file_mut(fh)?.split = Some(Split { name, buf: raw.0, errand });
    Ok(())
}

fn end(cx: &Cx, fh: Handle, name: &'static str, buf: usize, place: StatusPlace) -> Result {
    let mut objects = cx.objects();
    let file = objects.file_mut(fh)?;
    let begun = match &file.split {
        None => return fail(Class::IO, format!("{name}_begin was not called")),
        Some(split) if split.name != name => {
            return fail(Class::IO, format!("{}_begin was called, this is the end of another", split.name));
        }
        Some(split) if split.buf != buf => {
            return fail(Class::BUFFER, format!("argument `buf` is not that of {name}_begin"));
        }
        Some(split) => split.errand.clone(),
    };
    file.split = None;
    drop(objects);
    let ended = wait::until(cx, |_| Ok(begun.outcome().cloned()))?;
    place.set_keeping_error(ended.status.to_ints());
    ended.error.map_or(Ok(()), Err)
}

macro_rules! splits {
    ($($name:literal $begin:ident $end:ident: $way:ident $at:ident $who:ident ($($offset:ident)?);)*) => {$(
        #[doc = concat!("`", $name, "_begin`.")]
        pub fn $begin(
            cx: &Cx, fh: Handle, $($offset: i64,)? buf: usize, count: u64, datatype: Handle,
        ) -> Result {
            let access = Access { way: Direction::$way, at: At::$at$(($offset))?, who: Who::$who };
            begin(cx, fh, $name, access, (buf, count, datatype))
        }

        #[doc = concat!("`", $name, "_end`.")]
        pub fn $end(cx: &Cx, fh: Handle, buf: usize, status: StatusPlace) -> Result {
            end(cx, fh, $name, buf, status)
        }
    )*};
}

splits! {
    "MPI_File_read_all" read_all_begin read_all_end: Read Own All ();
    "MPI_File_read_at_all" read_at_all_begin read_at_all_end: Read Offset All (offset);
    "MPI_File_read_ordered" read_ordered_begin read_ordered_end: Read Shared Ordered ();
    "MPI_File_write_all" write_all_begin write_all_end: Write Own All ();
    "MPI_File_write_at_all" write_at_all_begin write_at_all_end: Write Offset All (offset);
    "MPI_File_write_ordered" write_ordered_begin write_ordered_end: Write Shared Ordered ();
}
