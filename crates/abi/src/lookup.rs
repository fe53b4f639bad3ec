//! Whether a dynamic handle names a live object: the one place that knows which table belongs to which
//! kind.

use mpi::error::Error;
use mpi::handle::Handle;
use mpi::objects::Objects;

use crate::object::Object;
use crate::{global, places};

/// Whether `handle`, which is not predefined, names a live object of this kind. No guard may be alive.
#[inline]
pub fn is_live(object: Object, handle: Handle) -> bool {
    match object {
        Object::Info => global::anytime().infos.get(handle).is_some(),
        Object::Errhandler => global::anytime().errhandlers.check(handle).is_ok(),
        Object::Comm => places::of(handle).is_some(),
        // Asked for at any time, also when there is no rank.
        Object::Session => global::is_active() && global::objects().sessions.get(handle).is_some(),
        _ => is_in(&global::objects(), object, handle),
    }
}

/// The part of [`is_live`] that asks the rank.
fn is_in(objects: &Objects, object: Object, handle: Handle) -> bool {
    match object {
        Object::File => objects.files.get(handle).is_some(),
        Object::Group => objects.groups.get(handle).is_some(),
        Object::Datatype => objects.types.get(handle).is_ok(),
        Object::Request => objects.requests.get(handle).is_some(),
        Object::Message => objects.messages.get(handle).is_some(),
        Object::Win => objects.windows.get(handle).is_some(),
        Object::Op => objects.ops.is_live(handle),
        _ => false,
    }
}

/// The name that the program has given to a window, if it lives and has one. No guard may be alive.
#[cold]
pub fn window_name(handle: Handle) -> Option<String> {
    let objects = global::is_active().then(global::objects)?;
    let name = objects.windows.get(handle)?.name();
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// What is wrong with the raw handle given as argument `arg`.
#[cold]
#[inline(never)]
pub fn refuse(object: Object, raw: usize, arg: &str) -> Error {
    let (null, null_name) = object.null();
    let text = match u32::try_from(raw).map(Handle) {
        Ok(handle) if handle == null => format!("argument `{arg}` is {null_name}"),
        Ok(handle) if handle.is_predefined() => match crate::object::name_of(handle) {
            Some(name) => format!("argument `{arg}` is {name}, which is not {}", object.noun()),
            None => format!("argument `{arg}` is {raw:#x}, which is not {}", object.noun()),
        },
        _ => format!("argument `{arg}` is not {} (freed or never created: {raw:#x})", object.noun()),
    };
    Error::new(object.class(), text)
}

#[cfg(test)]
mod tests {
    use mpi::error::Class;

    use super::*;

    #[test]
    fn refusals_say_what_the_handle_is() {
        let text = |object, raw| refuse(object, raw, "x");
        assert_eq!(text(Object::Comm, 0x100).text, "argument `x` is MPI_COMM_NULL");
        assert_eq!(text(Object::Comm, 0x209).text, "argument `x` is MPI_INT, which is not a communicator");
        assert_eq!(
            text(Object::Datatype, 0x500000).text,
            "argument `x` is not a datatype (freed or never created: 0x500000)"
        );
        assert_eq!(text(Object::Group, 0x7fff_0000_1234).class, Class::GROUP);
        assert_eq!(text(Object::Op, 0).text, "argument `x` is 0x0, which is not an operation");
    }
}
