//! `librdmacm`, loaded while the program runs: what connects queue pairs of iWARP, whose streams of TCP the kernel sets up.
//!
//! Queue pairs are made by libibverbs, as all others, and named to the kernel by their numbers: an identifier here has none of its
//! own. Nothing waits: what has come of a call is an event, and the descriptor of the [`Line`] is readable then.
#![allow(unsafe_code)]

use crate::library::text;
use rustix::fs::OFlags;
use std::ffi::{CString, c_char, c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::sync::Arc;
use verbs_layout::address::{address, storage};
use verbs_layout::cm::{CmEvent, CmId, ConnParam, EventChannel, SPACE_TCP};

/// Requests that wait for this rank to look.
const BACKLOG: c_int = 256;
/// How long a way is looked for on the network.
const RESOLVE_MS: c_int = 2000;
/// What a request may say, at most: as much as siw passes on, and more than is said.
const SAID_MOST: usize = 200;

// `enum rdma_cm_event_type`.
const ADDR_RESOLVED: c_int = 0;
const ROUTE_RESOLVED: c_int = 2;
const CONNECT_REQUEST: c_int = 4;
const ESTABLISHED: c_int = 9;
const DISCONNECTED: c_int = 10;

/// The functions, by their names without prefix.
struct Library {
    create_event_channel: unsafe extern "C" fn() -> *mut EventChannel,
    destroy_event_channel: unsafe extern "C" fn(*mut EventChannel),
    create_id: unsafe extern "C" fn(*mut EventChannel, *mut *mut CmId, *mut c_void, c_int) -> c_int,
    destroy_id: unsafe extern "C" fn(*mut CmId) -> c_int,
    bind_addr: unsafe extern "C" fn(*mut CmId, *mut libc::sockaddr) -> c_int,
    listen: unsafe extern "C" fn(*mut CmId, c_int) -> c_int,
    get_src_port: unsafe extern "C" fn(*mut CmId) -> u16,
    resolve_addr: unsafe extern "C" fn(*mut CmId, *mut libc::sockaddr, *mut libc::sockaddr, c_int) -> c_int,
    resolve_route: unsafe extern "C" fn(*mut CmId, c_int) -> c_int,
    connect: unsafe extern "C" fn(*mut CmId, *mut ConnParam) -> c_int,
    accept: unsafe extern "C" fn(*mut CmId, *mut ConnParam) -> c_int,
    reject: unsafe extern "C" fn(*mut CmId, *const c_void, u8) -> c_int,
    get_cm_event: unsafe extern "C" fn(*mut EventChannel, *mut *mut CmEvent) -> c_int,
    ack_cm_event: unsafe extern "C" fn(*mut CmEvent) -> c_int,
    event_str: unsafe extern "C" fn(c_int) -> *const c_char,
}

/// Where librdmacm is that goes with a libibverbs: beside it, if that is named with a folder.
fn beside(verbs: &str) -> String {
    match verbs.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/librdmacm.so.1"),
        None => "librdmacm.so.1".into(),
    }
}

/// A function of it.
///
/// # Safety
/// `F` is the type of a pointer to what has this name.
unsafe fn function<F>(handle: *mut c_void, name: &str) -> Result<F, String> {
    let symbol = CString::new(format!("rdma_{name}")).map_err(|error| error.to_string())?;
    // SAFETY: a handle that stays open, and a C string.
    let found = unsafe { libc::dlsym(handle, symbol.as_ptr()) };
    if found.is_null() {
        return Err(format!("librdmacm has no rdma_{name}"));
    }
    // SAFETY: as the caller says; a pointer to a function is as long as one to data.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
}

impl Library {
    /// It stays loaded, as libibverbs does.
    fn load(verbs: &str) -> Result<Library, String> {
        let name = beside(verbs);
        let path = CString::new(name.as_str()).map_err(|_| "TERN_IBV_LIBRARY: a name with a zero byte")?;
        // SAFETY: initialisers of a system library run; its names stay its own.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!(
                "iWARP adapters are connected through librdmacm, and {name} is not there; Debian has it in librdmacm1"
            ));
        }
        // SAFETY: by rdma/rdma_cma.h each name stands for a function of the type of its field.
        unsafe {
            Ok(Library {
                create_event_channel: function(handle, "create_event_channel")?,
                destroy_event_channel: function(handle, "destroy_event_channel")?,
                create_id: function(handle, "create_id")?,
                destroy_id: function(handle, "destroy_id")?,
                bind_addr: function(handle, "bind_addr")?,
                listen: function(handle, "listen")?,
                get_src_port: function(handle, "get_src_port")?,
                resolve_addr: function(handle, "resolve_addr")?,
                resolve_route: function(handle, "resolve_route")?,
                connect: function(handle, "connect")?,
                accept: function(handle, "accept")?,
                reject: function(handle, "reject")?,
                get_cm_event: function(handle, "get_cm_event")?,
                ack_cm_event: function(handle, "ack_cm_event")?,
                event_str: function(handle, "event_str")?,
            })
        }
    }
}

fn last(what: &str) -> String {
    format!("{what}: {}", std::io::Error::last_os_error())
}

/// The addresses of this host, without those that hold on one link or inside this host only.
fn addresses() -> Vec<IpAddr> {
    let mut list = null_mut();
    // SAFETY: a variable of our own.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Vec::new();
    }
    let (mut found, mut at) = (Vec::new(), list);
    while !at.is_null() {
        // SAFETY: an entry of the list, which is there until it is freed; addresses are as their family says.
        unsafe {
            found.extend(address((*at).ifa_addr).map(|at| at.ip()));
            at = (*at).ifa_next;
        }
    }
    // SAFETY: the list from above, once.
    unsafe { libc::freeifaddrs(list) };
    let is_far = |at: &IpAddr| match at {
        IpAddr::V4(at) => !at.is_loopback() && !at.is_link_local(),
        IpAddr::V6(at) => !at.is_loopback() && !at.is_unicast_link_local(),
    };
    found.retain(is_far);
    found
}

/// A channel of events.
struct Channel {
    raw: *mut EventChannel,
    library: Library,
}

// SAFETY: librdmacm may be called from any thread.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: made by `Line::new`, given back once, after its identifiers, which keep it.
        unsafe { (self.library.destroy_event_channel)(self.raw) };
    }
}

/// An identifier: one end of a connection, or what listens.
pub struct Id {
    raw: *mut CmId,
    channel: Arc<Channel>,
}

// SAFETY: as for `Channel`.
unsafe impl Send for Id {}

impl Drop for Id {
    fn drop(&mut self) {
        // SAFETY: given back once; its events are acknowledged as soon as they are taken.
        unsafe { (self.channel.library.destroy_id)(self.raw) };
    }
}

impl Id {
    fn new(channel: &Arc<Channel>) -> Result<Id, String> {
        let mut raw = null_mut();
        // SAFETY: a channel, and a variable of our own.
        let answer = unsafe { (channel.library.create_id)(channel.raw, &mut raw, null_mut(), SPACE_TCP) };
        if answer == 0 { Ok(Id { raw, channel: channel.clone() }) } else { Err(last("rdma_create_id")) }
    }

    fn bind(&self, at: IpAddr) -> Result<(), String> {
        let mut at = storage(SocketAddr::new(at, 0));
        // SAFETY: an identifier, and an address that is copied.
        let answer = unsafe { (self.channel.library.bind_addr)(self.raw, (&raw mut at).cast()) };
        if answer == 0 { Ok(()) } else { Err(last("rdma_bind_addr")) }
    }

    /// The adapter that it is bound to.
    fn adapter(&self) -> Option<String> {
        // SAFETY: an identifier; what it is bound to is open as long as the library is loaded.
        unsafe {
            let context = (*self.raw).verbs;
            (!context.is_null()).then(|| text((*(*context).device).name.as_ptr()))
        }
    }

    /// By which events name it.
    pub fn name(&self) -> usize {
        self.raw as usize
    }

    /// Goes on to the next step of a connection that has found its peer.
    pub fn route(&self) -> Result<(), String> {
        // SAFETY: an identifier.
        let answer = unsafe { (self.channel.library.resolve_route)(self.raw, RESOLVE_MS) };
        if answer == 0 { Ok(()) } else { Err(last("rdma_resolve_route")) }
    }

    /// Asks the peer, or, where it has asked, takes what it asks for: with the queue pair of this number, so many Reads at a time, and
    /// what is said.
    pub fn connect(&self, is_answer: bool, pair: u32, reads: u8, said: &[u8]) -> Result<(), String> {
        assert!(said.len() <= SAID_MOST, "a request that says too much");
        let mut all = ConnParam {
            private_data: said.as_ptr().cast(),
            private_data_len: said.len() as u8,
            responder_resources: reads,
            initiator_depth: reads,
            flow_control: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            srq: 1,
            qp_num: pair,
        };
        let library = &self.channel.library;
        // SAFETY: an identifier, and values that are copied.
        let answer = unsafe {
            if is_answer {
                (library.accept)(self.raw, &mut all)
            } else {
                (library.connect)(self.raw, &mut all)
            }
        };
        if answer == 0 { Ok(()) } else { Err(last(if is_answer { "rdma_accept" } else { "rdma_connect" })) }
    }

    /// Refuses what the peer asks for.
    pub fn reject(self) {
        // SAFETY: an identifier that came with a request.
        unsafe { (self.channel.library.reject)(self.raw, std::ptr::null(), 0) };
    }
}

/// What has come: of which identifier, and what the peer has said.
pub enum Event {
    /// A peer asks.
    Asks(Id, Vec<u8>),
    /// The peer's address is known.
    Resolved(usize),
    /// The way there is.
    Routed(usize),
    /// The connection is there.
    Established(usize, Vec<u8>),
    /// It is not any more.
    Closed(usize),
    /// It does not come about.
    Failed(usize, String),
}

/// Where a rank listens, over one adapter.
pub struct Line {
    /// At which address and port.
    pub at: SocketAddr,
    _listener: Id,
    channel: Arc<Channel>,
}

impl Line {
    /// At the first address that is this adapter's; `verbs` is the name of its libibverbs.
    pub fn new(adapter: &str, verbs: &str) -> Result<Line, String> {
        let library = Library::load(verbs)?;
        // SAFETY: no arguments.
        let raw = unsafe { (library.create_event_channel)() };
        if raw.is_null() {
            let why = last("rdma_create_event_channel");
            return Err(format!("{why}: is /dev/infiniband/rdma_cm there, and may this user write it?"));
        }
        let channel = Arc::new(Channel { raw, library });
        let mut seen = Vec::new();
        for at in addresses() {
            let listener = Id::new(&channel)?;
            seen.push(at.to_string());
            if listener.bind(at).is_err() || listener.adapter().as_deref() != Some(adapter) {
                continue;
            }
            // SAFETY: an identifier that is bound.
            if unsafe { (channel.library.listen)(listener.raw, BACKLOG) } != 0 {
                return Err(last("rdma_listen"));
            }
            // SAFETY: as above.
            let port = u16::from_be(unsafe { (channel.library.get_src_port)(listener.raw) });
            let line = Line { at: SocketAddr::new(at, port), _listener: listener, channel };
            let unblocked = rustix::fs::fcntl_getfl(line.events())
                .and_then(|flags| rustix::fs::fcntl_setfl(line.events(), flags | OFlags::NONBLOCK));
            return unblocked.map(|()| line).map_err(|error| format!("events of librdmacm: {error}"));
        }
        let seen = if seen.is_empty() { "none".into() } else { seen.join(", ") };
        Err(format!(
            "no IP address of this host is this adapter's, by which others connect to it (there are, beside such as hold on one \
             link only: {seen})"
        ))
    }

    /// Readable when there is an event.
    pub fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel is there as long as this, and its descriptor is open as long.
        unsafe { BorrowedFd::borrow_raw((*self.channel.raw).fd) }
    }

    /// Begins to look for a peer.
    pub fn call(&self, to: SocketAddr) -> Result<Id, String> {
        let id = Id::new(&self.channel)?;
        let (mut from, mut to) = (storage(SocketAddr::new(self.at.ip(), 0)), storage(to));
        let resolve = self.channel.library.resolve_addr;
        // SAFETY: an identifier, and addresses that are copied.
        let answer = unsafe { resolve(id.raw, (&raw mut from).cast(), (&raw mut to).cast(), RESOLVE_MS) };
        if answer == 0 { Ok(id) } else { Err(last("rdma_resolve_addr")) }
    }

    /// The next event, if there is one.
    pub fn next_event(&self) -> Option<Event> {
        let mut raw = null_mut();
        // SAFETY: a channel whose descriptor does not block, and a variable of our own.
        if unsafe { (self.channel.library.get_cm_event)(self.channel.raw, &mut raw) } != 0 {
            return None;
        }
        // SAFETY: an event, which is there until it is acknowledged.
        let (id, kind, status, param) =
            unsafe { ((*raw).id, (*raw).event, (*raw).status, (*raw).param.conn) };
        let (said, len) = (param.private_data.cast::<u8>(), usize::from(param.private_data_len));
        let has_said = matches!(kind, CONNECT_REQUEST | ESTABLISHED) && !said.is_null();
        let said = match has_said {
            // SAFETY: of such an event the private data are so long.
            true => unsafe { std::slice::from_raw_parts(said, len) }.to_vec(),
            false => Vec::new(),
        };
        // SAFETY: it gives a string of the library's for any number.
        let called = text(unsafe { (self.channel.library.event_str)(kind) });
        // SAFETY: the event from above, once.
        unsafe { (self.channel.library.ack_cm_event)(raw) };
        Some(match kind {
            CONNECT_REQUEST => Event::Asks(Id { raw: id, channel: self.channel.clone() }, said),
            ADDR_RESOLVED => Event::Resolved(id as usize),
            ROUTE_RESOLVED => Event::Routed(id as usize),
            ESTABLISHED => Event::Established(id as usize, said),
            DISCONNECTED => Event::Closed(id as usize),
            _ => Event::Failed(id as usize, format!("{called}, {}", crate::objects::meaning(status))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_lies_beside_the_other() {
        assert_eq!(beside("libibverbs.so.1"), "librdmacm.so.1");
        assert_eq!(beside("/opt/verbs/libibverbs.so.1"), "/opt/verbs/librdmacm.so.1");
    }
}
