//! Arithmetic of the library apart from the floating-point environment of the application.
//!
//! That may trap what the library does on the way: a quotient that a branch does not take is computed all the same by what compilers
//! make of it.

use libc::c_int;

/// `fenv_t` of C (7.6): 32 bytes on x86-64, 8 on aarch64.
#[repr(C, align(16))]
struct Environment([u8; 64]);

unsafe extern "C" {
    fn feholdexcept(environment: *mut Environment) -> c_int;
    fn fesetenv(environment: *const Environment) -> c_int;
}

/// While it lives nothing is trapped in this thread, nor in those it starts; flags raised meanwhile are forgotten.
pub struct Held(Environment);

/// Holds the environment of the calling thread.
pub fn hold() -> Held {
    let mut held = Held(Environment([0; 64]));
    // SAFETY: the value is as large as the `fenv_t` of any platform that is supported, and aligned.
    unsafe { feholdexcept(&mut held.0) };
    held
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: `feholdexcept` has filled it.
        unsafe { fesetenv(&self.0) };
    }
}
