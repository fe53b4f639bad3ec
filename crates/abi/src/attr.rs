//! MPI 5.0 section 7.7: attributes of communicators, datatypes and windows, and the calls of the functions
//! that copy and delete them. No guard is alive during such a call: the function may call MPI.

use mpi::attr::{AttrMap, CopyCall, Copying, DeleteCall, Holder, KEYVAL_INVALID};
use mpi::error::{Error, Result};
use mpi::handle::Handle;

use crate::cx::Cx;
use crate::kind::output::{IntRef, Out};
use crate::layout::{self, Set};

/// `MPI_Comm_copy_attr_function` and its kin: object, key, extra state, value, where the copy of
/// the value and the flag go.
type CopyFn = unsafe extern "C" fn(usize, i32, usize, usize, *mut usize, *mut i32) -> i32;
/// `MPI_Comm_delete_attr_function` and its kin: object, key, value, extra state.
type DeleteFn = unsafe extern "C" fn(usize, i32, usize, usize) -> i32;

/// Copies the attributes of an object for its duplicate. If a copy function fails, what was
/// copied until then is given back to its keys without a call: there is no new object yet that a
/// delete function could be told of.
pub fn copy_all(cx: &Cx, kind: Holder, object: Handle) -> Result<AttrMap> {
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
pub fn delete_all(cx: &Cx, kind: Holder, object: Handle) -> Result {
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
        let keyval = layout::write(Set::Keyval, call.keyval.0 as i32);
        function(layout::passed(object), keyval, call.extra_state, call.value, &raw mut value, &raw mut flag)
    };
    if code != 0 {
        let text = format!("the copy function of attribute key {:#x} returned {code}", call.keyval.0);
        return Err(cx.anytime().codes.from_callback(layout::read(Set::Code, code), text));
    }
    Ok((flag != 0).then_some(value))
}

fn delete(cx: &Cx, kind: Holder, object: Handle, call: &DeleteCall) -> Result {
    // SAFETY: as in `copy`.
    let code = unsafe {
        let function: DeleteFn = std::mem::transmute(call.function);
        let keyval = layout::write(Set::Keyval, call.keyval.0 as i32);
        function(layout::passed(object), keyval, call.value, call.extra_state)
    };
    if code != 0 {
        let text = format!("the delete function of attribute key {:#x} returned {code}", call.keyval.0);
        return Err(cx.anytime().codes.from_callback(layout::read(Set::Code, code), text));
    }
    let mut objects = cx.objects();
    let (attrs, keyvals) = objects.attrs_mut(kind, object)?;
    keyvals.deleted(attrs, call);
    Ok(())
}

fn create(cx: &Cx, kind: Holder, copy: usize, delete: usize, keyval: Out<i32>, extra_state: usize) -> Result {
    keyval.set(cx.objects().keyvals.create(kind, copy, delete, extra_state)?.0 as i32);
    Ok(())
}

fn free(cx: &Cx, kind: Holder, keyval: IntRef) -> Result {
    named("keyval", cx.objects().keyvals.free(kind, Handle(keyval.get() as u32)))?;
    keyval.set(KEYVAL_INVALID.0 as i32);
    Ok(())
}

fn set(cx: &Cx, kind: Holder, object: Handle, keyval: i32, value: usize) -> Result {
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

fn delete_attr(cx: &Cx, kind: Holder, object: Handle, keyval: i32) -> Result {
    let call = {
        let mut objects = cx.objects();
        let (attrs, keyvals) = objects.attrs_mut(kind, object)?;
        named("keyval", keyvals.begin_delete(attrs, kind, Handle(keyval as u32)))?
    };
    call.map_or(Ok(()), |call| delete(cx, kind, object, &call))
}

fn get(cx: &Cx, kind: Holder, object: Handle, keyval: i32, value: Out<usize>, flag: Out<bool>) -> Result {
    let objects = cx.objects();
    let found = named("keyval", objects.attr(kind, object, Handle(keyval as u32)))?;
    flag.set(found.is_some());
    if let Some(found) = found {
        value.set(layout::attribute(kind, Handle(keyval as u32), found));
    }
    Ok(())
}

/// Puts the name of the argument in front of what is wrong with it.
pub(crate) fn named<T>(arg: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| Error::new(error.class, format!("argument `{arg}` {}", error.text)))
}

/// The operations of one kind of object, which differ by the kind alone.
macro_rules! operations {
    ($($kind:ident $c:literal: $create:ident $free:ident $set:ident $get:ident $delete:ident;)*) => { $(
        #[doc = concat!("`MPI_", $c, "_create_keyval`.")]
        pub fn $create(cx: &Cx, copy: usize, delete: usize, keyval: Out<i32>, extra_state: usize) -> Result {
            create(cx, Holder::$kind, copy, delete, keyval, extra_state)
        }

        #[doc = concat!("`MPI_", $c, "_free_keyval`.")]
        pub fn $free(cx: &Cx, keyval: IntRef) -> Result {
            free(cx, Holder::$kind, keyval)
        }

        #[doc = concat!("`MPI_", $c, "_set_attr`.")]
        pub fn $set(cx: &Cx, object: Handle, keyval: i32, value: usize) -> Result {
            set(cx, Holder::$kind, object, keyval, value)
        }

        #[doc = concat!("`MPI_", $c, "_get_attr`.")]
        pub fn $get(cx: &Cx, object: Handle, keyval: i32, value: Out<usize>, flag: Out<bool>) -> Result {
            get(cx, Holder::$kind, object, keyval, value, flag)
        }

        #[doc = concat!("`MPI_", $c, "_delete_attr`.")]
        pub fn $delete(cx: &Cx, object: Handle, keyval: i32) -> Result {
            delete_attr(cx, Holder::$kind, object, keyval)
        }
    )* };
}

operations! {
    Comm "Comm": comm_create_keyval comm_free_keyval comm_set_attr comm_get_attr comm_delete_attr;
    Type "Type": type_create_keyval type_free_keyval type_set_attr type_get_attr type_delete_attr;
    Win "Win": win_create_keyval win_free_keyval win_set_attr win_get_attr win_delete_attr;
}

#[cfg(test)]
mod tests {
    use mpi::error::Class;

    use super::*;
    use crate::kind::Kind as _;
    use crate::kind::output::{FlagOut, IntInOut, IntOut, PtrOut};

    const FAIL_WITH_IO: usize = 77;

    unsafe extern "C" {
        fn PMPI_Info_create(info: *mut usize) -> i32;
        fn PMPI_Info_free(info: *mut usize) -> i32;
    }

    /// What the callbacks of one key have seen, reached through its extra state.
    #[derive(Default)]
    struct Seen {
        copied: Vec<usize>,
        deleted: Vec<usize>,
    }

    /// Copies value + 1; refuses odd values by the flag, fails for one value. Calls MPI.
    unsafe extern "C" fn copy_fn(
        _: usize,
        _: i32,
        seen: usize,
        value: usize,
        out: *mut usize,
        flag: *mut i32,
    ) -> i32 {
        let mut info = 0;
        // SAFETY: the tests pass the address of a `Seen` as extra state, the library the rest.
        unsafe {
            assert_eq!((PMPI_Info_create(&raw mut info), PMPI_Info_free(&raw mut info)), (0, 0));
            (*(seen as *mut Seen)).copied.push(value);
            *out = value + 1;
            *flag = i32::from(value.is_multiple_of(2));
        }
        if value == FAIL_WITH_IO { Class::IO.0 } else { 0 }
    }

    unsafe extern "C" fn delete_fn(_: usize, _: i32, value: usize, seen: usize) -> i32 {
        // SAFETY: as in `copy_fn`.
        unsafe { (*(seen as *mut Seen)).deleted.push(value) };
        if value == FAIL_WITH_IO { Class::IO.0 } else { 0 }
    }

    fn cx() -> Cx {
        crate::global::start_for_tests();
        Cx::new(crate::table::all().find(|row| row.name == "MPI_Type_set_attr").unwrap(), false)
    }

    fn key(cx: &Cx, seen: &mut Seen) -> i32 {
        let mut keyval = 0;
        // SAFETY: the address of a variable of this function.
        let out = unsafe { IntOut::small(&raw mut keyval as usize, "keyval", cx) }.unwrap();
        let (copy, delete) = (copy_fn as *const () as usize, delete_fn as *const () as usize);
        type_create_keyval(cx, copy, delete, out, seen as *mut Seen as usize).unwrap();
        keyval
    }

    fn value_of(cx: &Cx, object: Handle, keyval: i32) -> Option<usize> {
        let (mut value, mut flag) = (0usize, -1i32);
        // SAFETY: addresses of variables of this function.
        let (value_out, flag_out) = unsafe {
            (
                PtrOut::small(&raw mut value as usize, "attribute_val", cx).unwrap(),
                FlagOut::small(&raw mut flag as usize, "flag", cx).unwrap(),
            )
        };
        type_get_attr(cx, object, keyval, value_out, flag_out).unwrap();
        (flag == 1).then_some(value)
    }

    fn new_type(cx: &Cx) -> Handle {
        cx.objects().types.dup(Handle(0x209)).unwrap()
    }

    #[test]
    fn copies_and_deletions_call_the_program() {
        let (cx, mut even, mut odd) = (cx(), Seen::default(), Seen::default());
        let (old, new) = (new_type(&cx), new_type(&cx));
        let (even_key, odd_key) = (key(&cx, &mut even), key(&cx, &mut odd));
        type_set_attr(&cx, old, even_key, 10).unwrap();
        type_set_attr(&cx, old, odd_key, 11).unwrap();
        let copies = copy_all(&cx, Holder::Type, old).unwrap();
        cx.objects().types.get_mut(new).unwrap().attrs = copies;
        assert_eq!((value_of(&cx, new, even_key), value_of(&cx, new, odd_key)), (Some(11), None));
        type_set_attr(&cx, old, even_key, 20).unwrap();
        assert_eq!((value_of(&cx, old, even_key), &even.deleted[..]), (Some(20), &[10][..]));
        delete_all(&cx, Holder::Type, new).unwrap();
        delete_all(&cx, Holder::Type, old).unwrap();
        type_delete_attr(&cx, old, odd_key).unwrap();
        assert_eq!((&even.copied[..], &odd.copied[..]), (&[10][..], &[11][..]));
        assert_eq!((&even.deleted[..], &odd.deleted[..]), (&[10, 11, 20][..], &[11][..]));
        let mut keyval = even_key;
        // SAFETY: the address of a variable of this function.
        type_free_keyval(&cx, unsafe { IntInOut::small(&raw mut keyval as usize, "keyval", &cx) }.unwrap())
            .unwrap();
        assert_eq!(keyval, 0);
        let error = type_set_attr(&cx, old, even_key, 1).unwrap_err();
        assert!(
            error.class == Class::KEYVAL && error.text.starts_with("argument `keyval` is not"),
            "{error}"
        );
    }

    #[test]
    fn what_a_callback_returns_is_the_error_and_changes_nothing() {
        let (cx, mut seen) = (cx(), Seen::default());
        let old = new_type(&cx);
        let keyval = key(&cx, &mut seen);
        type_set_attr(&cx, old, keyval, FAIL_WITH_IO).unwrap();
        assert_eq!(copy_all(&cx, Holder::Type, old).unwrap_err().class, Class::IO);
        assert_eq!(delete_all(&cx, Holder::Type, old).unwrap_err().class, Class::IO);
        assert_eq!(type_delete_attr(&cx, old, keyval).unwrap_err().class, Class::IO);
        assert_eq!(type_set_attr(&cx, old, keyval, 2).unwrap_err().class, Class::IO);
        assert_eq!(value_of(&cx, old, keyval), Some(FAIL_WITH_IO));
        assert_eq!((seen.copied.len(), seen.deleted.len()), (1, 3));
    }
}
