//! Attribute caching (MPI 5.0 section 7.7).
//!
//! The copy and delete functions of the program are C functions, which this crate never calls: it
//! hands the C layer one call after another and takes each result back. Nothing is borrowed in
//! between, because the function may call MPI, even change the attributes of the same object.
//! An attribute stays where it is until its delete function has succeeded.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::error::{Class, Result, fail};
use crate::handle::{Handle, Slab};

/// `MPI_KEYVAL_INVALID`.
pub const KEYVAL_INVALID: Handle = Handle(0);
/// `MPI_NULL_COPY_FN` of each kind: the attribute is not copied.
pub const NULL_COPY_FN: usize = 0;
/// `MPI_DUP_FN` of each kind: the value is copied as it is.
pub const DUP_FN: usize = 1;
/// `MPI_NULL_DELETE_FN` of each kind: nothing happens when the attribute goes.
pub const NULL_DELETE_FN: usize = 0;

/// The kind of object a key value is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holder {
    /// Communicators.
    Comm,
    /// Datatypes.
    Type,
    /// Windows.
    Win,
}

/// The attributes of one object, in the order in which they were set.
///
/// Emptied through [`Keyvals::next_delete`], never just dropped: the keys count the attributes.
#[derive(Debug, Default)]
pub struct AttrMap {
    attributes: Vec<Attribute>,
}

#[derive(Clone, Copy, Debug)]
struct Attribute {
    keyval: Handle,
    value: usize,
    /// Tells this setting of the attribute from a later one made by a callback.
    serial: u64,
}

/// All key values of one rank.
#[derive(Debug, Default)]
pub struct Keyvals {
    keys: Slab<Keyval>,
    serial: u64,
}

#[derive(Debug)]
struct Keyval {
    kind: Holder,
    copy: usize,
    delete: usize,
    extra_state: usize,
    /// Attributes with this key, and copies of them under way.
    used: u32,
    /// The program has freed the key; it lives on until `used` is zero.
    freed: bool,
}

/// A copy function the C layer has to call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyCall {
    /// The key.
    pub keyval: Handle,
    /// The address of the function.
    pub function: usize,
    /// What the program gave when it made the key.
    pub extra_state: usize,
    /// The value to copy.
    pub value: usize,
}

/// A delete function the C layer has to call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeleteCall {
    /// The key.
    pub keyval: Handle,
    /// The address of the function.
    pub function: usize,
    /// What the program gave when it made the key.
    pub extra_state: usize,
    /// The value to delete.
    pub value: usize,
    serial: u64,
}

impl AttrMap {
    /// The value of an attribute. The key has to be checked with [`Keyvals::check`] before.
    pub fn get(&self, keyval: Handle) -> Option<usize> {
        self.attributes.iter().find(|a| a.keyval == keyval).map(|a| a.value)
    }

    /// Whether there is no attribute.
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    /// How many attributes there are.
    pub fn len(&self) -> usize {
        self.attributes.len()
    }
}

/// Keys.
impl Keyvals {
    /// `MPI_*_create_keyval`.
    pub fn create(&mut self, kind: Holder, copy: usize, delete: usize, extra_state: usize) -> Result<Handle> {
        self.keys.insert(Keyval { kind, copy, delete, extra_state, used: 0, freed: false })
    }

    /// `MPI_*_free_keyval`: the key lives on while attributes have it. Until then a program may free
    /// it again, through a copy of the handle: that is nothing more to do, for every MPI.
    pub fn free(&mut self, kind: Holder, keyval: Handle) -> Result {
        if self.keys.get(keyval).is_none_or(|key| !key.freed) {
            self.check_settable(kind, keyval)?;
        }
        self.check(kind, keyval)?;
        self.keys.get_mut(keyval).expect("checked").freed = true;
        self.reclaim(keyval);
        Ok(())
    }

    /// Whether attributes with this key can be read and deleted: also after the key was freed,
    /// while attributes have it (MPI 5.0 section 7.7.2).
    pub fn check(&self, kind: Holder, keyval: Handle) -> Result {
        match self.keys.get(keyval) {
            Some(key) if key.kind == kind => Ok(()),
            Some(key) => {
                let (is, wanted) = (key.kind.objects(), kind.objects());
                fail(Class::KEYVAL, format!("is an attribute key for {is}, not for {wanted}"))
            }
            None if keyval == KEYVAL_INVALID => fail(Class::KEYVAL, "is MPI_KEYVAL_INVALID"),
            None => fail(
                Class::KEYVAL,
                format!("is not an attribute key (freed or never created: {:#x})", keyval.0),
            ),
        }
    }

    fn check_settable(&self, kind: Holder, keyval: Handle) -> Result {
        if let Some(name) = predefined_name(keyval) {
            return fail(Class::KEYVAL, format!("is {name}, which a program cannot set, delete or free"));
        }
        self.check(kind, keyval)?;
        if self.keys.get(keyval).is_some_and(|key| key.freed) {
            return fail(Class::KEYVAL, format!("is an attribute key that was freed ({:#x})", keyval.0));
        }
        Ok(())
    }

    fn key(&self, keyval: Handle) -> &Keyval {
        self.keys.get(keyval).expect("a key lives as long as attributes have it")
    }

    fn acquire(&mut self, keyval: Handle) {
        self.keys.get_mut(keyval).expect("a key lives as long as attributes have it").used += 1;
    }

    fn release(&mut self, keyval: Handle) {
        self.keys.get_mut(keyval).expect("a key lives as long as attributes have it").used -= 1;
        self.reclaim(keyval);
    }

    fn reclaim(&mut self, keyval: Handle) {
        let key = self.key(keyval);
        if key.freed && key.used == 0 {
            self.keys.remove(keyval);
        }
    }
}

/// Setting and deleting.
impl Keyvals {
    /// First half of `MPI_*_set_attr`: the delete function to call for the old value, if any. Its
    /// result goes to [`Keyvals::deleted`] before [`Keyvals::set`] follows.
    pub fn begin_set(
        &mut self,
        map: &mut AttrMap,
        kind: Holder,
        keyval: Handle,
    ) -> Result<Option<DeleteCall>> {
        self.check_settable(kind, keyval)?;
        Ok(self.begin_delete_of(map, keyval))
    }

    /// Second half of `MPI_*_set_attr`.
    pub fn set(&mut self, map: &mut AttrMap, kind: Holder, keyval: Handle, value: usize) -> Result {
        // Checked again: the delete function in between may have freed the key or set a value.
        self.check_settable(kind, keyval)?;
        self.serial += 1;
        let attribute = Attribute { keyval, value, serial: self.serial };
        match map.attributes.iter_mut().find(|a| a.keyval == keyval) {
            Some(old) => *old = attribute,
            None => {
                map.attributes.push(attribute);
                self.acquire(keyval);
            }
        }
        Ok(())
    }

    /// First half of `MPI_*_delete_attr`: the delete function to call, if any; its result goes to
    /// [`Keyvals::deleted`]. An attribute that is not set is deleted already.
    pub fn begin_delete(
        &mut self,
        map: &mut AttrMap,
        kind: Holder,
        keyval: Handle,
    ) -> Result<Option<DeleteCall>> {
        if predefined_name(keyval).is_some() {
            self.check_settable(kind, keyval)?;
        }
        self.check(kind, keyval)?;
        Ok(self.begin_delete_of(map, keyval))
    }

    /// The next delete function to call before the object can go, last set first (the order that
    /// MPI 5.0 section 11.2.4 demands for `MPI_COMM_SELF`). `None`: no attribute is left.
    pub fn next_delete(&mut self, map: &mut AttrMap) -> Option<DeleteCall> {
        while let Some(last) = map.attributes.last() {
            let call = self.begin_delete_of(map, last.keyval);
            if call.is_some() {
                return call;
            }
        }
        None
    }

    /// The delete function of `call` has succeeded: the attribute goes, unless the function
    /// itself has already removed or replaced it. (If it failed, nothing is to be done.)
    pub fn deleted(&mut self, map: &mut AttrMap, call: &DeleteCall) {
        if let Some(at) = map.attributes.iter().position(|a| a.serial == call.serial) {
            map.attributes.remove(at);
            self.release(call.keyval);
        }
    }

    /// Drops attributes that belong to no object without calling delete functions.
    pub fn forget(&mut self, map: AttrMap) {
        map.attributes.iter().for_each(|attribute| self.release(attribute.keyval));
    }

    fn begin_delete_of(&mut self, map: &mut AttrMap, keyval: Handle) -> Option<DeleteCall> {
        let at = map.attributes.iter().position(|a| a.keyval == keyval)?;
        let (attribute, key) = (map.attributes[at], self.key(keyval));
        if key.delete == NULL_DELETE_FN {
            map.attributes.remove(at);
            self.release(keyval);
            return None;
        }
        Some(DeleteCall {
            keyval,
            function: key.delete,
            extra_state: key.extra_state,
            value: attribute.value,
            serial: attribute.serial,
        })
    }
}

/// The attributes of an object on their way to its duplicate.
///
/// `while let Some(call) = copying.next(…)` the C layer calls and reports success through
/// [`Copying::copied`]; then [`Copying::finish`]. After a failure [`Copying::finish`] gives what
/// was copied until then, to be deleted with the new object.
#[derive(Debug)]
pub struct Copying {
    pending: VecDeque<Attribute>,
    done: AttrMap,
}

impl Copying {
    /// Starts to copy the attributes of an object.
    pub fn begin(source: &AttrMap, keyvals: &mut Keyvals) -> Copying {
        let pending: VecDeque<Attribute> = source.attributes.iter().copied().collect();
        pending.iter().for_each(|attribute| keyvals.acquire(attribute.keyval));
        Copying { pending, done: AttrMap::default() }
    }

    /// The next copy function to call.
    pub fn next(&mut self, keyvals: &mut Keyvals) -> Option<CopyCall> {
        while let Some(attribute) = self.pending.front().copied() {
            let key = keyvals.key(attribute.keyval);
            match key.copy {
                NULL_COPY_FN => self.copied(keyvals, None),
                DUP_FN => self.copied(keyvals, Some(attribute.value)),
                function => {
                    let (keyval, value) = (attribute.keyval, attribute.value);
                    return Some(CopyCall { keyval, function, extra_state: key.extra_state, value });
                }
            }
        }
        None
    }

    /// The copy function of the last [`Copying::next`] has succeeded, with a value if its flag
    /// was set.
    pub fn copied(&mut self, keyvals: &mut Keyvals, value: Option<usize>) {
        let attribute = self.pending.pop_front().expect("a copy is under way");
        match value {
            Some(value) => {
                keyvals.serial += 1;
                let serial = keyvals.serial;
                self.done.attributes.push(Attribute { value, serial, ..attribute });
            }
            None => keyvals.release(attribute.keyval),
        }
    }

    /// The attributes of the new object.
    pub fn finish(self, keyvals: &mut Keyvals) -> AttrMap {
        self.pending.iter().for_each(|attribute| keyvals.release(attribute.keyval));
        self.done
    }
}

/// Predefined keys of communicators (MPI 5.0 section 9.1.2): key, name.
const PREDEFINED: &[(u32, &str)] = &[
    (501, "MPI_TAG_UB"),
    (502, "MPI_IO"),
    (503, "MPI_HOST"),
    (504, "MPI_WTIME_IS_GLOBAL"),
    (505, "MPI_APPNUM"),
    (506, "MPI_LASTUSEDCODE"),
    (507, "MPI_UNIVERSE_SIZE"),
    (601, "MPI_WIN_BASE"),
    (602, "MPI_WIN_DISP_UNIT"),
    (603, "MPI_WIN_SIZE"),
    (604, "MPI_WIN_CREATE_FLAVOR"),
    (605, "MPI_WIN_MODEL"),
];

/// `MPI_TAG_UB`.
pub const TAG_UB: Handle = Handle(501);
/// `MPI_IO`.
pub const IO: Handle = Handle(502);
/// `MPI_HOST`.
pub const HOST: Handle = Handle(503);
/// `MPI_WTIME_IS_GLOBAL`.
pub const WTIME_IS_GLOBAL: Handle = Handle(504);
/// `MPI_APPNUM`.
pub const APPNUM: Handle = Handle(505);
/// `MPI_LASTUSEDCODE`; its value belongs to [`crate::codes::ErrorCodes`].
pub const LASTUSEDCODE: Handle = Handle(506);
/// `MPI_UNIVERSE_SIZE`.
pub const UNIVERSE_SIZE: Handle = Handle(507);

/// The name of a predefined key.
pub fn predefined_name(keyval: Handle) -> Option<&'static str> {
    PREDEFINED.iter().find(|row| row.0 == keyval.0).map(|row| row.1)
}

/// The values behind the predefined keys of communicators. C is given their addresses, which
/// stay the same however this value moves.
#[derive(Debug, Default)]
pub struct Predefined {
    values: Box<[AtomicI32; 7]>,
    known: [bool; 7],
}

impl Predefined {
    /// Sets a value; a key without value (such as `MPI_APPNUM` of a program started alone) reads
    /// as not set.
    pub fn set(&mut self, keyval: Handle, value: i32) {
        let at = (keyval.0 - TAG_UB.0) as usize;
        self.values[at].store(value, Ordering::Relaxed);
        self.known[at] = true;
    }

    /// The address of the value of a key; `None` if it has none.
    pub fn address(&self, keyval: Handle) -> Option<usize> {
        let at = keyval.0.checked_sub(TAG_UB.0)? as usize;
        self.known.get(at)?.then(|| std::ptr::from_ref(&self.values[at]).addr())
    }
}

impl Holder {
    fn objects(self) -> &'static str {
        match self {
            Holder::Comm => "communicators",
            Holder::Type => "datatypes",
            Holder::Win => "windows",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: usize = 0x1000;
    const DELETE: usize = 0x2000;

    fn with(keyvals: &mut Keyvals, map: &mut AttrMap, copy: usize, delete: usize, value: usize) -> Handle {
        let key = keyvals.create(Holder::Comm, copy, delete, 7).unwrap();
        assert_eq!(keyvals.begin_set(map, Holder::Comm, key).unwrap(), None);
        keyvals.set(map, Holder::Comm, key, value).unwrap();
        key
    }

    #[test]
    fn a_freed_key_lives_while_attributes_have_it() {
        let (mut keyvals, mut map) = (Keyvals::default(), AttrMap::default());
        let key = with(&mut keyvals, &mut map, 0, 0, 5);
        keyvals.free(Holder::Comm, key).unwrap();
        keyvals.check(Holder::Comm, key).unwrap();
        assert_eq!(map.get(key), Some(5));
        assert_eq!(keyvals.begin_set(&mut map, Holder::Comm, key).unwrap_err().class, Class::KEYVAL);
        keyvals.free(Holder::Comm, key).unwrap();
        assert_eq!(keyvals.free(Holder::Type, key).unwrap_err().class, Class::KEYVAL);
        assert_eq!(map.get(key), Some(5));
        assert_eq!(keyvals.begin_delete(&mut map, Holder::Comm, key).unwrap(), None);
        assert!(map.is_empty() && keyvals.keys.is_empty());
        assert_eq!(keyvals.free(Holder::Comm, key).unwrap_err().class, Class::KEYVAL);
        assert!(keyvals.check(Holder::Comm, key).unwrap_err().text.contains("freed"));
    }

    #[test]
    fn replacing_a_value_deletes_the_old_one_first_and_failure_keeps_it() {
        let (mut keyvals, mut map) = (Keyvals::default(), AttrMap::default());
        let key = with(&mut keyvals, &mut map, 0, DELETE, 5);
        let call = keyvals.begin_set(&mut map, Holder::Comm, key).unwrap().unwrap();
        assert_eq!((call.function, call.extra_state, call.value), (DELETE, 7, 5));
        assert_eq!(map.get(key), Some(5), "the function failed: nothing has changed");
        let call = keyvals.begin_set(&mut map, Holder::Comm, key).unwrap().unwrap();
        keyvals.deleted(&mut map, &call);
        keyvals.set(&mut map, Holder::Comm, key, 6).unwrap();
        assert_eq!((map.get(key), map.len()), (Some(6), 1));
        keyvals.deleted(&mut map, &call);
        assert_eq!(map.get(key), Some(6), "the result of an old call does not touch a new value");
    }

    #[test]
    fn an_object_loses_its_attributes_in_reverse_order() {
        let (mut keyvals, mut map) = (Keyvals::default(), AttrMap::default());
        let first = with(&mut keyvals, &mut map, 0, DELETE, 1);
        with(&mut keyvals, &mut map, 0, NULL_DELETE_FN, 2);
        let third = with(&mut keyvals, &mut map, 0, DELETE, 3);
        keyvals.free(Holder::Comm, third).unwrap();
        let call = keyvals.next_delete(&mut map).unwrap();
        assert_eq!((call.keyval, call.value), (third, 3));
        assert_eq!(keyvals.next_delete(&mut map), Some(call), "not deleted yet");
        keyvals.deleted(&mut map, &call);
        let call = keyvals.next_delete(&mut map).unwrap();
        assert_eq!(call.keyval, first);
        // The function deletes its own attribute: it is not deleted twice.
        keyvals.deleted(&mut map, &call);
        keyvals.deleted(&mut map, &call);
        assert_eq!(keyvals.next_delete(&mut map), None);
        assert_eq!(keyvals.keys.len(), 2);
    }

    #[test]
    fn copies_follow_the_copy_function() {
        let (mut keyvals, mut map) = (Keyvals::default(), AttrMap::default());
        with(&mut keyvals, &mut map, NULL_COPY_FN, 0, 1);
        let dup = with(&mut keyvals, &mut map, DUP_FN, 0, 2);
        let yes = with(&mut keyvals, &mut map, COPY, 0, 3);
        let no = with(&mut keyvals, &mut map, COPY, 0, 4);
        let mut copying = Copying::begin(&map, &mut keyvals);
        let call = copying.next(&mut keyvals).unwrap();
        assert_eq!(call, CopyCall { keyval: yes, function: COPY, extra_state: 7, value: 3 });
        copying.copied(&mut keyvals, Some(33));
        assert_eq!(copying.next(&mut keyvals).unwrap().keyval, no);
        copying.copied(&mut keyvals, None);
        assert_eq!(copying.next(&mut keyvals), None);
        let copy = copying.finish(&mut keyvals);
        assert_eq!((copy.get(dup), copy.get(yes), copy.get(no), copy.len()), (Some(2), Some(33), None, 2));
        assert_eq!((keyvals.key(yes).used, keyvals.key(no).used), (2, 1));
    }

    #[test]
    fn a_failed_copy_leaves_no_key_behind() {
        let (mut keyvals, mut map) = (Keyvals::default(), AttrMap::default());
        let dup = with(&mut keyvals, &mut map, DUP_FN, 0, 1);
        let fails = with(&mut keyvals, &mut map, COPY, 0, 2);
        let mut copying = Copying::begin(&map, &mut keyvals);
        assert_eq!(copying.next(&mut keyvals).unwrap().keyval, fails);
        let mut partial = copying.finish(&mut keyvals);
        assert_eq!((partial.get(dup), partial.len()), (Some(1), 1));
        assert_eq!(keyvals.next_delete(&mut partial), None);
        assert_eq!((keyvals.key(dup).used, keyvals.key(fails).used), (1, 1));
    }

    #[test]
    fn keys_have_a_kind_and_predefined_ones_are_fixed() {
        let (mut keyvals, mut map) = (Keyvals::default(), AttrMap::default());
        let key = keyvals.create(Holder::Type, 0, 0, 0).unwrap();
        for error in [
            keyvals.begin_set(&mut map, Holder::Comm, key).unwrap_err(),
            keyvals.begin_set(&mut map, Holder::Comm, KEYVAL_INVALID).unwrap_err(),
            keyvals.begin_set(&mut map, Holder::Comm, TAG_UB).unwrap_err(),
            keyvals.begin_delete(&mut map, Holder::Comm, TAG_UB).unwrap_err(),
            keyvals.begin_delete(&mut map, Holder::Comm, key).unwrap_err(),
            keyvals.free(Holder::Comm, key).unwrap_err(),
            keyvals.free(Holder::Comm, HOST).unwrap_err(),
        ] {
            assert_eq!(error.class, Class::KEYVAL, "{error}");
        }
    }

    #[test]
    fn predefined_values_keep_their_address() {
        let mut values = Predefined::default();
        values.set(TAG_UB, 32767);
        let address = values.address(TAG_UB).unwrap();
        let moved = Box::new(values);
        assert_eq!(moved.address(TAG_UB), Some(address));
        assert_eq!(moved.address(APPNUM), None);
        assert_eq!(moved.address(Handle(601)), None);
    }
}
