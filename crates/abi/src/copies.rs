//! What the library of Fortran asks of this one beyond MPI: to say when a collective begins and ends that works on copies
//! of sections of arrays which no datatype describes (docs/fortran.md).

use std::ffi::c_void;

use mpi::handle::Handle;
use mpi::request::Copies;

use crate::global;
use crate::layout::Slot;
use crate::object::Object;

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
