//! What the library of Fortran asks of this one beyond MPI: to say when a collective begins and ends that works on copies
//! of sections of arrays which no datatype describes, and to raise the error of an operation that is refused a section
//! (docs/fortran.md).

use std::ffi::{CStr, c_char, c_void};

use mpi::error::{Class, Error};
use mpi::handle::Handle;
use mpi::request::Copies;

use crate::cx::Cx;
use crate::layout::Slot;
use crate::object::Object;
use crate::{global, raise, table};

/// What the function is called for.
const BEGIN: i32 = 0;
const END: i32 = 1;
const FREE: i32 = 2;

/// The copies, which only the function knows.
#[derive(Debug)]
struct Shadow {
    state: usize,
    call: unsafe extern "C" fn(*mut c_void, i32),
}

impl Shadow {
    fn tell(&self, what: i32) {
        // SAFETY: whoever has given the function has given the state with it, which lives until FREE.
        unsafe { (self.call)(self.state as *mut c_void, what) }
    }
}

impl Copies for Shadow {
    fn begin(&mut self) {
        self.tell(BEGIN);
    }

    fn end(&mut self) {
        self.tell(END);
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        self.tell(FREE);
    }
}

/// The collective of this request works on copies: the function is called with `state` when it begins anew, when it has
/// ended well, and when the copies may go. It copies memory and calls nothing of MPI.
///
/// # Safety
/// `request` is one that MPI has given, and `call` may be called with `state` until it has been called for the last time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tern_copies(
    request: Slot,
    state: *mut c_void,
    call: unsafe extern "C" fn(*mut c_void, i32),
) {
    let shadow = Shadow { state: state as usize, call };
    global::world().add_copies(Handle(request.get(Object::Request) as u32), Box::new(shadow));
}

/// A call that Fortran has made and that does not come to be one of C, since `argument` cannot be passed: the error that `operation`
/// has for it, which goes where its others go. Returns what the operation returns.
///
/// # Safety
/// The strings are strings of C, and `words` are the arguments of the operation as C passes them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tern_refuse(
    operation: *const c_char,
    words: *const i64,
    argument: *const c_char,
    text: *const c_char,
) -> i32 {
    // SAFETY: the caller says that these are strings.
    let [operation, argument, text] =
        [operation, argument, text].map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy());
    let row = table::all().find(|row| row.names().any(|name| name == operation));
    let row = row.unwrap_or_else(|| panic!("{operation} is in the table that Fortran is made from"));
    let cx = Cx::new(row, operation.ends_with("_c"));
    if !cx.is_allowed() {
        return raise::outside(&cx);
    }
    // SAFETY: the caller says that there are as many as parameters.
    let words = unsafe { std::slice::from_raw_parts(words, row.params.len()) };
    raise::failed(&cx, words, Error::new(Class::BUFFER, format!("argument `{argument}` {text}")))
}
