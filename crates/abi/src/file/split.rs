//! MPI 5.0 section 14.4.5: split collectives. The first call does it all, which the standard allows; the second says
//! what came of it.

use mpi::error::{Class, Result, fail};
use mpi::file::Split;
use mpi::handle::Handle;

use super::access::{Access, At, Raw, Way, Who, go};
use crate::cx::Cx;
use crate::kind::text::StatusPlace;

fn begin(cx: &Cx, fh: Handle, name: &'static str, access: Access, raw: Raw) -> Result {
    let status = go(cx, fh, access, raw)?;
    cx.objects().file_mut(fh)?.split = Some(Split { name, buf: raw.0, status });
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
        Some(split) => split.status,
    };
    file.split = None;
    drop(objects);
    place.set_keeping_error(begun.to_ints());
    Ok(())
}

macro_rules! splits {
    ($($name:literal $begin:ident $end:ident: $way:ident $at:ident $who:ident ($($offset:ident)?);)*) => {$(
        #[doc = concat!("`", $name, "_begin`.")]
        pub fn $begin(
            cx: &Cx, fh: Handle, $($offset: i64,)? buf: usize, count: u64, datatype: Handle,
        ) -> Result {
            let access = Access { way: Way::$way, at: At::$at$(($offset))?, who: Who::$who };
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
