//! `libibverbs`, loaded while the program runs: the functions of it that are used.
//!
//! What the header does without a symbol (`ibv_post_send`, `ibv_poll_cq`) goes through the context's table, in
//! `super::objects`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;
use verbs_layout::layout::*;

type QueryGid = unsafe extern "C" fn(*mut Context, u32, u32, *mut GidEntry, u32, usize) -> c_int;
type IsFork = unsafe extern "C" fn() -> c_int;

macro_rules! functions {
    ($($field:ident = $name:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by their names without prefix.
        #[allow(missing_docs)]
        pub struct Library {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Since rdma-core 34.
            pub query_gid_ex: Option<QueryGid>,
            /// Since rdma-core 35: `enum ibv_fork_status`.
            pub is_fork_initialized: Option<IsFork>,
            /// As it was asked for.
            pub name: String,
        }

        fn fill(handle: *mut c_void, name: &str) -> Result<Library, String> {
            Ok(Library {
                // SAFETY: by rdma-core's header each name stands for a function of the type given.
                $($field: unsafe {
                    std::mem::transmute::<NonNull<c_void>, unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                        find(handle, $name).ok_or_else(|| format!("{name} has no {}", $name.to_string_lossy()))?,
                    )
                },)*
                // SAFETY: as above; an address that is there is no null.
                query_gid_ex: unsafe { std::mem::transmute::<Option<NonNull<c_void>>, Option<QueryGid>>(find(handle, c"_ibv_query_gid_ex")) },
                // SAFETY: as above.
                is_fork_initialized: unsafe { std::mem::transmute::<Option<NonNull<c_void>>, Option<IsFork>>(find(handle, c"ibv_is_fork_initialized")) },
                name: name.into(),
            })
        }
    };
}

functions! {
    get_device_list = c"ibv_get_device_list": fn(*mut c_int) -> *mut *mut Device;
    free_device_list = c"ibv_free_device_list": fn(*mut *mut Device);
    open_device = c"ibv_open_device": fn(*mut Device) -> *mut Context;
    close_device = c"ibv_close_device": fn(*mut Context) -> c_int;
    query_device = c"ibv_query_device": fn(*mut Context, *mut DeviceAttr) -> c_int;
    query_port = c"ibv_query_port": fn(*mut Context, u8, *mut PortAttr) -> c_int;
    query_gid = c"ibv_query_gid": fn(*mut Context, u8, c_int, *mut Gid) -> c_int;
    query_pkey = c"ibv_query_pkey": fn(*mut Context, u8, c_int, *mut u16) -> c_int;
    alloc_pd = c"ibv_alloc_pd": fn(*mut Context) -> *mut Pd;
    dealloc_pd = c"ibv_dealloc_pd": fn(*mut Pd) -> c_int;
    reg_mr = c"ibv_reg_mr": fn(*mut Pd, *mut c_void, usize, c_int) -> *mut Mr;
    dereg_mr = c"ibv_dereg_mr": fn(*mut Mr) -> c_int;
    create_comp_channel = c"ibv_create_comp_channel": fn(*mut Context) -> *mut CompChannel;
    destroy_comp_channel = c"ibv_destroy_comp_channel": fn(*mut CompChannel) -> c_int;
    create_cq = c"ibv_create_cq": fn(*mut Context, c_int, *mut c_void, *mut CompChannel, c_int) -> *mut Cq;
    destroy_cq = c"ibv_destroy_cq": fn(*mut Cq) -> c_int;
    get_cq_event = c"ibv_get_cq_event": fn(*mut CompChannel, *mut *mut Cq, *mut *mut c_void) -> c_int;
    ack_cq_events = c"ibv_ack_cq_events": fn(*mut Cq, c_uint);
    create_srq = c"ibv_create_srq": fn(*mut Pd, *mut SrqInitAttr) -> *mut Srq;
    destroy_srq = c"ibv_destroy_srq": fn(*mut Srq) -> c_int;
    create_qp = c"ibv_create_qp": fn(*mut Pd, *mut QpInitAttr) -> *mut Qp;
    modify_qp = c"ibv_modify_qp": fn(*mut Qp, *mut QpAttr, c_int) -> c_int;
    destroy_qp = c"ibv_destroy_qp": fn(*mut Qp) -> c_int;
    create_ah = c"ibv_create_ah": fn(*mut Pd, *mut AhAttr) -> *mut Ah;
    destroy_ah = c"ibv_destroy_ah": fn(*mut Ah) -> c_int;
    get_async_event = c"ibv_get_async_event": fn(*mut Context, *mut AsyncEvent) -> c_int;
    ack_async_event = c"ibv_ack_async_event": fn(*mut AsyncEvent);
    wc_status_str = c"ibv_wc_status_str": fn(c_int) -> *const c_char;
    event_type_str = c"ibv_event_type_str": fn(c_int) -> *const c_char;
}

/// What a missing library or adapter is answered with.
pub const WITHOUT: &str = "the software adapter needs none (TERN_DEVICES=rnic)";

fn find(handle: *mut c_void, name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a handle that stays open, and a C string.
    NonNull::new(unsafe { libc::dlsym(handle, name.as_ptr()) })
}

impl Library {
    /// Loads the library from a file, or from wherever the system finds one of this name. It stays loaded: its providers
    /// have threads and handlers of their own.
    pub fn load(name: &str) -> Result<&'static Library, String> {
        let path = CString::new(name).map_err(|_| "TERN_IBV_LIBRARY: a name with a zero byte".to_string())?;
        // SAFETY: initialisers of a system library run; its names stay its own.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!(
                "adapters are reached by libibverbs, which is not there: {}; Debian has it in libibverbs1 and \
                 ibverbs-providers; {WITHOUT}",
                last_error()
            ));
        }
        fill(handle, name).map(|library| &*Box::leak(Box::new(library)))
    }

    /// What a status of a completion is called.
    pub fn status(&self, status: i32) -> String {
        // SAFETY: it gives a string of the library's for any number.
        text(unsafe { (self.wc_status_str)(status) })
    }

    /// What an asynchronous event is called.
    pub fn event(&self, kind: i32) -> String {
        // SAFETY: as above.
        text(unsafe { (self.event_type_str)(kind) })
    }

    /// What becomes of registered memory in a child of a fork, as `tern info` says it. It is never asked for here that pages
    /// be kept from children (`ibv_fork_init`): that would be for the application to say, before it registers anything.
    pub fn fork_safety(&self) -> &'static str {
        // SAFETY: no arguments.
        match self.is_fork_initialized.map(|asked| unsafe { asked() }) {
            Some(2) => {
                "children of a fork share nothing that matters: the kernel copies registered pages for them"
            }
            Some(1) => "ibv_fork_init is in force: registered pages are kept from children of a fork",
            Some(_) => {
                "a program that forks and goes on to communicate needs RDMAV_FORK_SAFE=1, or a kernel from 5.12 on"
            }
            None => "whether children of a fork are safe cannot be asked (rdma-core before 35)",
        }
    }
}

/// A string of the library.
pub fn text(at: *const c_char) -> String {
    if at.is_null() {
        return "unknown".into();
    }
    // SAFETY: not null: a C string that the library keeps.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

fn last_error() -> String {
    // SAFETY: dlerror gives null or a C string that is valid until the next call of this thread.
    text(unsafe { libc::dlerror() })
}
