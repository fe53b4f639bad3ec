//! `libpmix`, the client library of PMIx, loaded while the program runs: what of it is used, by its documented layout.
//!
//! The wire protocol between that library and its server differs from version to version; its binary interface
//! (PMIx Standard 4.1, chapters 3, 4 and 7) has been the same since version 2.
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{mem, ptr};

/// `PMIX_RANK_WILDCARD`: the job, not one of its processes.
pub const WHOLE_JOB: u32 = u32::MAX - 1;
const SUCCESS: c_int = 0;
const NAME_BYTES: usize = 256;
const KEY_BYTES: usize = 512;
const BOOL: u16 = 1;
const STRING: u16 = 3;
const UINT32: u16 = 14;
/// `PMIX_GLOBAL`: for processes of this host and of others.
const GLOBAL: u8 = 3;

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Proc {
    nspace: [c_char; NAME_BYTES],
    rank: u32,
}

/// `pmix_value_t`. Of the union what is used; it is aligned for pointers and has three words.
#[repr(C)]
struct Value {
    kind: u16,
    data: Data,
}

#[repr(C)]
union Data {
    flag: bool,
    number: u32,
    string: *mut c_char,
    room: [usize; 3],
}

/// `pmix_info_t`.
#[repr(C)]
struct Info {
    key: [c_char; KEY_BYTES],
    flags: u32,
    value: Value,
}

const _: () = assert!(mem::size_of::<Proc>() == 260);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(mem::size_of::<Value>() == 32 && mem::offset_of!(Value, data) == 8);
#[cfg(target_pointer_width = "64")]
const _: () = assert!(mem::size_of::<Info>() == 552 && mem::offset_of!(Info, value) == 520);

type Init = unsafe extern "C" fn(*mut Proc, *mut Info, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Proc, usize, *const Info, usize) -> c_int;
type Get = unsafe extern "C" fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *mut Proc, usize) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;

/// The calls that are used.
#[derive(Clone, Copy)]
struct Calls {
    init: Init,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    abort: Abort,
    error: ErrorString,
}

/// A connection to the PMIx server, from init to finalize. The process has one; all its threads may use it at once, which
/// the library sees to itself.
#[derive(Clone)]
pub struct Library {
    calls: Calls,
    me: Proc,
}

impl Library {
    /// Loads the library from a file, or from wherever the system finds a library of this name, and connects.
    pub fn open(path: &OsStr) -> Result<Library, String> {
        let calls = load(path)?;
        let mut me = Proc { nspace: [0; NAME_BYTES], rank: 0 };
        // SAFETY: `me` is a writable `pmix_proc_t`; there are no infos.
        let code = unsafe { (calls.init)(&raw mut me, ptr::null_mut(), 0) };
        me.nspace[NAME_BYTES - 1] = 0;
        let library = Library { calls, me };
        library.check("PMIx_Init", code)?;
        Ok(library)
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.me.rank
    }

    /// The name of the job.
    pub fn name(&self) -> String {
        text(&self.me.nspace)
    }

    /// Keeps a text under a key until the next [`Library::fence`].
    pub fn put(&self, key: &str, value: &str) -> Result<(), String> {
        let (key, value) = (words(key)?, words(value)?);
        let mut value = Value { kind: STRING, data: Data { string: value.as_ptr().cast_mut() } };
        // SAFETY: a C string shorter than a key may be, and a value that the library copies.
        let code = unsafe { (self.calls.put)(GLOBAL, key.as_ptr(), &raw mut value) };
        self.check("PMIx_Put", code)
    }

    /// Waits for all processes of the job; what they have put is known to all then.
    pub fn fence(&self) -> Result<(), String> {
        // SAFETY: no arguments.
        let code = unsafe { (self.calls.commit)() };
        self.check("PMIx_Commit", code)?;
        let all = Proc { rank: WHOLE_JOB, ..self.me };
        let collect = info("pmix.collect");
        // SAFETY: one process and one info, both initialised; the library keeps neither.
        let code = unsafe { (self.calls.fence)(&raw const all, 1, &raw const collect, 1) };
        self.check("PMIx_Fence", code)
    }

    /// The text under a key that a process has put before the last fence.
    pub fn text(&self, rank: u32, key: &str) -> Result<String, String> {
        self.get(rank, key, |value| {
            // SAFETY: the kind says which member is valid; a string of PMIx ends with a zero byte.
            (value.kind == STRING).then(|| unsafe {
                let string = value.data.string;
                let text = CStr::from_ptr(string).to_string_lossy().into_owned();
                libc::free(string.cast());
                text
            })
        })
    }

    /// The number under a key of the launcher's.
    pub fn number(&self, rank: u32, key: &str) -> Result<u32, String> {
        // SAFETY: any four bytes are a number, and the kind says whether they are this one.
        self.get(rank, key, |value| (value.kind == UINT32).then_some(unsafe { value.data.number }))
    }

    /// Has the launcher end the whole job.
    pub fn abort(&self, code: i32) -> Result<(), String> {
        let why = c"MPI_Abort";
        // SAFETY: a C string; no processes means all of them.
        let code = unsafe { (self.calls.abort)(code, why.as_ptr(), ptr::null_mut(), 0) };
        self.check("PMIx_Abort", code)
    }

    /// Takes leave.
    pub fn finalize(&self) -> Result<(), String> {
        // SAFETY: there are no infos.
        let code = unsafe { (self.calls.finalize)(ptr::null(), 0) };
        self.check("PMIx_Finalize", code)
    }

    fn get<T>(&self, rank: u32, key: &str, read: impl Fn(&Value) -> Option<T>) -> Result<T, String> {
        let name = words(key)?;
        let of = Proc { rank, ..self.me };
        let mut value: *mut Value = ptr::null_mut();
        // SAFETY: a process, a C string and room for a pointer.
        let code = unsafe { (self.calls.get)(&raw const of, name.as_ptr(), ptr::null(), 0, &raw mut value) };
        self.check(&format!("PMIx_Get({key})"), code)?;
        // SAFETY: after success it is null or points to a value that is the caller's, from malloc.
        let found = unsafe { value.as_ref() }.and_then(read);
        // SAFETY: as above; nothing points to it any more.
        unsafe { libc::free(value.cast()) };
        found.ok_or_else(|| format!("PMIx_Get({key}): the value is of another type"))
    }

    fn check(&self, call: &str, code: c_int) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: the library returns a constant text for each number.
        let why = unsafe { (self.calls.error)(code) };
        if why.is_null() {
            return Err(format!("{call} failed ({code})"));
        }
        // SAFETY: not null, and as above.
        let why = unsafe { CStr::from_ptr(why) }.to_string_lossy();
        Err(format!("{call} failed: {why} ({code})"))
    }
}

/// A flag that is set.
fn info(key: &str) -> Info {
    let mut name = [0; KEY_BYTES];
    name.iter_mut().zip(key.bytes()).for_each(|(to, from)| *to = from as c_char);
    let mut data = Data { room: [0; 3] };
    data.flag = true;
    Info { key: name, flags: 0, value: Value { kind: BOOL, data } }
}

fn words(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| format!("{text:?} has a zero byte"))
}

fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|c| *c as u8).take_while(|b| *b != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Loads the library and finds all calls in it, or says why not. It stays loaded: threads of it may run.
fn load(path: &OsStr) -> Result<Calls, String> {
    let name = CString::new(path.as_bytes()).map_err(|_| "a path with a zero byte".to_string())?;
    // SAFETY: initialisers of a system library run; its names stay its own.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(last_error());
    }
    let find = |name: &CStr| {
        // SAFETY: a handle that stays open, and a C string.
        let at = unsafe { libc::dlsym(handle, name.as_ptr()) };
        let lacking = || format!("{} has no {}", Path::new(path).display(), name.to_string_lossy());
        if at.is_null() { Err(lacking()) } else { Ok(at) }
    };
    // SAFETY: by the PMIx Standard each name stands for a function of the type given.
    unsafe {
        Ok(Calls {
            init: mem::transmute::<*mut c_void, Init>(find(c"PMIx_Init")?),
            finalize: mem::transmute::<*mut c_void, Finalize>(find(c"PMIx_Finalize")?),
            put: mem::transmute::<*mut c_void, Put>(find(c"PMIx_Put")?),
            commit: mem::transmute::<*mut c_void, Commit>(find(c"PMIx_Commit")?),
            fence: mem::transmute::<*mut c_void, Fence>(find(c"PMIx_Fence")?),
            get: mem::transmute::<*mut c_void, Get>(find(c"PMIx_Get")?),
            abort: mem::transmute::<*mut c_void, Abort>(find(c"PMIx_Abort")?),
            error: mem::transmute::<*mut c_void, ErrorString>(find(c"PMIx_Error_string")?),
        })
    }
}

fn last_error() -> String {
    // SAFETY: dlerror returns null or a C string that is valid until the next call of this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown".into();
    }
    // SAFETY: not null, and as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_libpmix_is_refused_by_name() {
        let missing = Library::open(OsStr::new("/nowhere/libpmix.so.2")).err().unwrap();
        assert!(missing.contains("/nowhere/libpmix.so.2"), "{missing}");
        let other = Library::open(OsStr::new("libc.so.6")).err().unwrap();
        assert!(other.contains("PMIx_Init"), "{other}");
    }
}
