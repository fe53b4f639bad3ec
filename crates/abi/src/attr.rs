//! MPI 5.0 section 7.7: attributes of communicators and datatypes, and the calls of the functions
//! that copy and delete them. No guard is alive during such a call: the function may call MPI.

use mpi::attr::{AttrMap, CopyCall, Copying, DeleteCall, KEYVAL_INVALID, Kind};
use mpi::error::{Error, Result};
use mpi::handle::Handle;

use crate::cx::Cx;
use crate::kind::output::{IntRef, Out};

/// `MPI_Comm_copy_attr_function` and its kin: object, key, extra state, value, where the copy of
/// the value and the flag go.
type CopyFn = unsafe extern "C" fn(usize, i32, usize, usize, *mut usize, *mut i32) -> i32;
/// `MPI_Comm_delete_attr_function` and its kin: object, key, value, extra state.
type DeleteFn = unsafe extern "C" fn(usize, i32, usize, usize) -> i32;

/// Copies the attributes of an object for its duplicate. If a copy function fails, what was
/// copied until then is given back to its keys without a call: there is no new object yet that a
/// delete function could be told of.
pub fn copy_all(cx: &Cx, kind: Kind, object: Handle) -> Result<AttrMap> {
    let mut copying = {
        let mut objects = cx.objects();
        let (attrs, keyvals) = objects.attrs_mut(kind, object)?;
        Copying::begin(attrs, keyvals)
    };
    loop {
        let Some(call) = copying.next(&mut cx.objects().keyvals) else {
            return Ok(copying.finish(&mut cx.objects().keyvals));
        };
        match copy(cx, object, &call) {
            Ok(value) => copying.copied(&mut cx.objects().keyvals, value),
            Err(error) => {
                let mut objects = cx.objects();
                let partial = copying.finish(&mut objects.keyvals);
                objects.keyvals.forget(partial);
                return Err(error);
            }
        }
    }
}

/// Deletes the attributes of an object before it goes, last set first. If a delete function
/// fails, its attribute and those set before it stay, and so must the object.
pub fn delete_all(cx: &Cx, kind: Kind, object: Handle) -> Result {
    loop {
        let call = {
            let mut objects = cx.objects();
            let (attrs, keyvals) = objects.attrs_mut(kind, object)?;
            keyvals.next_delete(attrs)
        };
        match call {
            Some(call) => delete(cx, kind, object, &call)?,
            None => return Ok(()),
        }
    }
}

fn copy(cx: &Cx, object: Handle, call: &CopyCall) -> Result<Option<usize>> {
    let (mut value, mut flag) = (0, 0);
    // SAFETY: the application registered this address as a function of this type; no guard is
    // alive.
    let code = unsafe {
        let function: CopyFn = std::mem::transmute(call.function);
        let keyval = call.keyval.0 as i32;
        function(object.0 as usize, keyval, call.extra_state, call.value, &raw mut value, &raw mut flag)
    };
    if code != 0 {
        let text = format!("the copy function of attribute key {:#x} returned {code}", call.keyval.0);
        return Err(cx.objects().codes.from_callback(code, text));
    }
    Ok((flag != 0).then_some(value))
}

fn delete(cx: &Cx, kind: Kind, object: Handle, call: &DeleteCall) -> Result {
    // SAFETY: as in `copy`.
    let code = unsafe {
        let function: DeleteFn = std::mem::transmute(call.function);
        function(object.0 as usize, call.keyval.0 as i32, call.value, call.extra_state)
    };
    let mut objects = cx.objects();
    if code != 0 {
        let text = format!("the delete function of attribute key {:#x} returned {code}", call.keyval.0);
        return Err(objects.codes.from_callback(code, text));
    }
    let (attrs, keyvals) = objects.attrs_mut(kind, object)?;
    keyvals.deleted(attrs, call);
    Ok(())
}

fn create(cx: &Cx, kind: Kind, copy: usize, delete: usize, keyval: Out<i32>, extra_state: usize) -> Result {
    keyval.set(cx.objects().keyvals.create(kind, copy, delete, extra_state)?.0 as i32);
    Ok(())
}

fn free(cx: &Cx, kind: Kind, keyval: IntRef) -> Result {
    named("keyval", cx.objects().keyvals.free(kind, Handle(keyval.get() as u32)))?;
    keyval.set(KEYVAL_INVALID.0 as i32);
    Ok(())
}

fn set(cx: &Cx, kind: Kind, object: Handle, keyval: i32, value: usize) -> Result {
    let keyval = Handle(keyval as u32);
    let call = {
        let mut objects = cx.objects();
        let (attrs, keyvals) = objects.attrs_mut(kind, object)?;
        named("keyval", keyvals.begin_set(attrs, kind, keyval))?
    };
    if let Some(call) = call {
        delete(cx, kind, object, &call)?;
    }
    let mut objects = cx.objects();
    let (attrs, keyvals) = objects.attrs_mut(kind, object)?;
    named("keyval", keyvals.set(attrs, kind, keyval, value))
}

fn delete_attr(cx: &Cx, kind: Kind, object: Handle, keyval: i32) -> Result {
    let call = {
        let mut objects = cx.objects();
        let (attrs, keyvals) = objects.attrs_mut(kind, object)?;
        named("keyval", keyvals.begin_delete(attrs, kind, Handle(keyval as u32)))?
    };
    call.map_or(Ok(()), |call| delete(cx, kind, object, &call))
}

fn get(cx: &Cx, kind: Kind, object: Handle, keyval: i32, value: Out<usize>, flag: Out<bool>) -> Result {
    let objects = cx.objects();
    let found = named("keyval", objects.attr(kind, object, Handle(keyval as u32)))?;
    flag.set(found.is_some());
    if let Some(found) = found {
        value.set(found);
    }
    Ok(())
}

fn named<T>(arg: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| Error { text: format!("argument `{arg}` {}", error.text), ..error })
}

/// The operations of one kind of object, which differ by the kind alone.
macro_rules! operations {
    ($($kind:ident $c:literal: $create:ident $free:ident $set:ident $get:ident $delete:ident;)*) => { $(
        #[doc = concat!("`MPI_", $c, "_create_keyval`.")]
        pub fn $create(cx: &Cx, copy: usize, delete: usize, keyval: Out<i32>, extra_state: usize) -> Result {
            create(cx, Kind::$kind, copy, delete, keyval, extra_state)
        }

        #[doc = concat!("`MPI_", $c, "_free_keyval`.")]
        pub fn $free(cx: &Cx, keyval: IntRef) -> Result {
            free(cx, Kind::$kind, keyval)
        }

        #[doc = concat!("`MPI_", $c, "_set_attr`.")]
        pub fn $set(cx: &Cx, object: Handle, keyval: i32, value: usize) -> Result {
            set(cx, Kind::$kind, object, keyval, value)
        }

        #[doc = concat!("`MPI_", $c, "_get_attr`.")]
        pub fn $get(cx: &Cx, object: Handle, keyval: i32, value: Out<usize>, flag: Out<bool>) -> Result {
            get(cx, Kind::$kind, object, keyval, value, flag)
        }

        #[doc = concat!("`MPI_", $c, "_delete_attr`.")]
        pub fn $delete(cx: &Cx, object: Handle, keyval: i32) -> Result {
            delete_attr(cx, Kind::$kind, object, keyval)
        }
    )* };
}

operations! {
    Comm "Comm": comm_create_keyval comm_free_keyval comm_set_attr comm_get_attr comm_delete_attr;
    Type "Type": type_create_keyval type_free_keyval type_set_attr type_get_attr type_delete_attr;
}

/// `MPI_Win_create_keyval`: keys can be made before windows are there.
pub fn win_create_keyval(cx: &Cx, copy: usize, delete: usize, keyval: Out<i32>, extra_state: usize) -> Result {
    create(cx, Kind::Win, copy, delete, keyval, extra_state)
}

/// `MPI_Win_free_keyval`.
pub fn win_free_keyval(cx: &Cx, keyval: IntRef) -> Result {
    free(cx, Kind::Win, keyval)
}
