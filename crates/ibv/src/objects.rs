//! Objects of libibverbs with an owner each: what is open is closed once, after all that was made of it.
//!
//! Memory is named by address: who posts work or registers memory keeps it valid until the work has completed or the
//! registration has ended ([`fabric::verbs`]), and the adapter checks keys and bounds.
#![allow(unsafe_code)]

use crate::card::UNKNOWN;
use crate::library::{Library, text};
use fabric::{Atomic, Local, Remote, Span};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ffi::{c_int, c_void};
use std::mem::{MaybeUninit, offset_of, zeroed};
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::sync::Arc;
use verbs_layout::constants::*;
use verbs_layout::layout::*;

/// What a call makes, or why there is none. Who makes nothing need not say why (siw's library does not always): the last error of the
/// system is then that of an earlier call, here or in another library, and not told.
fn made<T>(make: impl FnOnce() -> *mut T) -> Result<*mut T, String> {
    made_or_number(make).map_err(why)
}

/// As [`made`], with the number of the error; 0 where there is none.
fn made_or_number<T>(make: impl FnOnce() -> *mut T) -> Result<*mut T, c_int> {
    // SAFETY: a variable of this thread.
    unsafe { *libc::__errno_location() = 0 };
    let made = make();
    let number = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if made.is_null() { Err(number) } else { Ok(made) }
}

/// Why a call made nothing.
pub fn why(number: c_int) -> String {
    if number == 0 { "its library gives no reason".into() } else { meaning(number) }
}

/// The error number of `ENOMEM`: a queue is full.
pub const FULL: c_int = libc::ENOMEM;

/// What an error number means.
pub fn meaning(number: c_int) -> String {
    std::io::Error::from_raw_os_error(number.abs()).to_string()
}

/// An error number that was returned.
fn said(number: c_int) -> Result<(), String> {
    if number == 0 { Ok(()) } else { Err(meaning(number)) }
}

/// Whole pages of zeros.
pub struct Pages(Span);

impl Pages {
    /// At least `len` bytes, which share no page with anything else: a fork that keeps pages of an adapter from children keeps
    /// nothing of the application from them.
    pub fn new(len: usize) -> Pages {
        let len = len.max(1).next_multiple_of(4096);
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: new pages at a place of the kernel's choice.
        let at = unsafe { mmap_anonymous(null_mut(), len, rights, flags) };
        let at = at.unwrap_or_else(|error| panic!("no memory for {len} bytes of an adapter: {error}"));
        Pages(Span { addr: at as usize, len })
    }

    /// Where they are.
    pub fn span(&self) -> Span {
        self.0
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and given back once; registrations of them have ended before.
        let _ = unsafe { munmap(self.0.addr as *mut c_void, self.0.len) };
    }
}

/// An adapter that is open.
pub struct Adapter {
    raw: *mut Context,
    /// What it was opened by.
    pub library: &'static Library,
    /// Its name.
    pub name: String,
    /// Where the kernel tells of it.
    pub path: String,
    /// `enum ibv_transport_type`.
    pub transport: c_int,
}

// SAFETY: libibverbs may be called from any thread.
unsafe impl Send for Adapter {}
// SAFETY: as above.
unsafe impl Sync for Adapter {}

impl Adapter {
    /// All adapters there are, opened; those that cannot be, with the reason.
    pub fn all(library: &'static Library) -> Result<Vec<Result<Adapter, String>>, String> {
        let mut count = 0;
        // SAFETY: a variable of our own.
        let list = made(|| unsafe { (library.get_device_list)(&mut count) })
            .map_err(|why| format!("{} cannot list adapters: {why}", library.name))?;
        let open = |at: usize| {
            // SAFETY: the list has `count` devices, which are there until it is freed.
            let device = unsafe { *list.add(at) };
            // SAFETY: as above; both are C strings.
            let (name, path, transport) = unsafe {
                (text((*device).name.as_ptr()), text((*device).ibdev_path.as_ptr()), (*device).transport_type)
            };
            // SAFETY: as above.
            let raw = made(|| unsafe { (library.open_device)(device) }).map_err(|why| {
                format!(
                    "{name} cannot be opened: {why}: are /dev/infiniband/uverbs* there, and may this user write them?"
                )
            })?;
            Ok(Adapter { raw, library, name, path, transport })
        };
        let all = (0..count.max(0) as usize).map(open).collect();
        // SAFETY: the list from above.
        unsafe { (library.free_device_list)(list) };
        Ok(all)
    }

    /// What it is like.
    pub fn attributes(&self) -> Result<DeviceAttr, String> {
        let mut room = MaybeUninit::zeroed();
        // SAFETY: an open adapter, and room for its attributes.
        said(unsafe { (self.library.query_device)(self.raw, room.as_mut_ptr()) })?;
        // SAFETY: filled in, and of numbers alone.
        Ok(unsafe { room.assume_init() })
    }

    /// Whether it fetches pages of registered memory when it needs them (on-demand paging), for all that is done over connections.
    pub fn pages_on_demand(&self) -> bool {
        // SAFETY: an open adapter. A context with this mark lies in a larger one, which says how long it is (`verbs_get_ctx_op`).
        let query = unsafe {
            if (*self.raw).abi_compat != EXTENDED {
                return false;
            }
            let extended = self.raw.byte_sub(offset_of!(VerbsContext, context)).cast::<VerbsContext>();
            let needed = size_of::<VerbsContext>() - offset_of!(VerbsContext, query_device_ex);
            if (*extended).sz < needed {
                return false;
            }
            (*extended).query_device_ex
        };
        let Some(query) = query else { return false };
        let mut room = MaybeUninit::<DeviceAttrEx>::zeroed();
        // SAFETY: an open adapter, and room of this size.
        if unsafe { query(self.raw, std::ptr::null(), room.as_mut_ptr().cast(), size_of::<DeviceAttrEx>()) }
            != 0
        {
            return false;
        }
        // SAFETY: filled in, and of numbers alone.
        let told = unsafe { room.assume_init() };
        told.odp_general & ODP_SUPPORT != 0 && told.odp_rc & ODP_ALL == ODP_ALL
    }

    /// What a port is like.
    pub fn port(&self, number: u8) -> Result<PortAttr, String> {
        let mut room = PortAttr::default();
        // SAFETY: as above.
        said(unsafe { (self.library.query_port)(self.raw, number, &mut room) })?;
        Ok(room)
    }

    /// The address of this index at a port, and its kind (`enum ibv_gid_type`, or [`UNKNOWN`]).
    pub fn gid(&self, port: u8, index: u32) -> Option<(Gid, u32)> {
        if let Some(query) = self.library.query_gid_ex {
            let mut entry =
                GidEntry { gid: Gid::default(), gid_index: 0, port_num: 0, gid_type: 0, ndev_ifindex: 0 };
            // SAFETY: an open adapter, and room for an entry of this size.
            let answer = unsafe { query(self.raw, port.into(), index, &mut entry, 0, size_of::<GidEntry>()) };
            return (answer == 0).then_some((entry.gid, entry.gid_type));
        }
        let mut gid = Gid::default();
        // SAFETY: as above.
        let answer = unsafe { (self.library.query_gid)(self.raw, port, index as c_int, &mut gid) };
        (answer == 0 && gid != Gid::default()).then_some((gid, UNKNOWN))
    }

    /// The partition key of this index at a port, if there is one.
    pub fn partition(&self, port: u8, index: u16) -> Option<u16> {
        let mut key = 0;
        // SAFETY: as above.
        let answer = unsafe { (self.library.query_pkey)(self.raw, port, index.into(), &mut key) };
        (answer == 0).then(|| u16::from_be(key))
    }

    /// The descriptor that is readable when there is an asynchronous event.
    pub fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: an open adapter, whose descriptor is open as long.
        unsafe { BorrowedFd::borrow_raw((*self.raw).async_fd) }
    }

    /// The next asynchronous event: its kind, and the number of the port or queue pair it is about. The descriptor must not
    /// block.
    pub fn next_event(&self) -> Option<(c_int, u32)> {
        let mut event = AsyncEvent { element: null_mut(), event_type: 0 };
        // SAFETY: an open adapter, and room for an event.
        if unsafe { (self.library.get_async_event)(self.raw, &mut event) } != 0 {
            return None;
        }
        let about = match event.event_type {
            // SAFETY: an event of a queue pair, which is there until the event is acknowledged.
            EVENT_QP_FATAL..=EVENT_QP_ACCESS_ERR => unsafe { (*event.element.cast::<Qp>()).qp_num },
            // A port's number stands in the place of a pointer (`union element`), in its first four bytes.
            EVENT_PORT_ACTIVE | EVENT_PORT_ERR => {
                let bytes = (event.element as usize).to_ne_bytes();
                u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
            }
            _ => 0,
        };
        // SAFETY: the event from above, once.
        unsafe { (self.library.ack_async_event)(&mut event) };
        Some((event.event_type, about))
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        // SAFETY: opened by `all`, closed once.
        unsafe { (self.library.close_device)(self.raw) };
    }
}

/// What all queue pairs of a port share: protection domain, completion queue with its channel, receive buffers.
pub struct Hub {
    domain: *mut Pd,
    channel: *mut CompChannel,
    completions: *mut Cq,
    receives: *mut Srq,
    /// The adapter.
    pub adapter: Arc<Adapter>,
}

// SAFETY: as for `Adapter`.
unsafe impl Send for Hub {}
// SAFETY: as above.
unsafe impl Sync for Hub {}

impl Hub {
    /// With room for so many completions and receive buffers.
    pub fn new(adapter: Arc<Adapter>, completions: u32, receives: u32) -> Result<Hub, String> {
        let library = adapter.library;
        let lacks = |what: &str, why: String| format!("{}: no {what}: {why}", adapter.name);
        let (domain, channel, queue) = (null_mut(), null_mut(), null_mut());
        let mut hub =
            Hub { domain, channel, completions: queue, receives: null_mut(), adapter: adapter.clone() };
        // SAFETY: an open adapter.
        hub.domain = made(|| unsafe { (library.alloc_pd)(adapter.raw) })
            .map_err(|why| lacks("protection domain", why))?;
        // SAFETY: as above.
        hub.channel = made(|| unsafe { (library.create_comp_channel)(adapter.raw) })
            .map_err(|why| lacks("completion channel", why))?;
        let room = completions as c_int;
        // SAFETY: as above, and a channel of it.
        hub.completions =
            made(|| unsafe { (library.create_cq)(adapter.raw, room, null_mut(), hub.channel, 0) })
                .map_err(|why| lacks(&format!("completion queue of {completions}"), why))?;
        let attr = SrqAttr { max_wr: receives, max_sge: 1, srq_limit: 0 };
        let mut init = SrqInitAttr { srq_context: null_mut(), attr };
        // SAFETY: a domain of this adapter.
        hub.receives = made(|| unsafe { (library.create_srq)(hub.domain, &mut init) })
            .map_err(|why| lacks(&format!("shared receive queue of {receives}"), why))?;
        Ok(hub)
    }

    /// The descriptor that is readable when a completion queue that was asked to tell has something.
    pub fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel is there as long as this, and its descriptor is open as long.
        unsafe { BorrowedFd::borrow_raw((*self.channel).fd) }
    }

    /// Asks to be told of the next completion.
    pub fn arm(&self) -> Result<(), String> {
        // SAFETY: the queue is there as long as this, and its table has what adapters must.
        let answer = unsafe {
            let arm = (*(*self.completions).context).ops.req_notify_cq.ok_or("no ibv_req_notify_cq")?;
            arm(self.completions, 0)
        };
        said(answer)
    }

    /// Takes an event, which the descriptor has said is there.
    pub fn take_event(&self) {
        let (mut queue, mut context) = (null_mut(), null_mut());
        // SAFETY: the channel and the one queue that tells it.
        unsafe {
            if (self.adapter.library.get_cq_event)(self.channel, &mut queue, &mut context) == 0 {
                (self.adapter.library.ack_cq_events)(queue, 1);
            }
        }
    }

    /// Fetches completions; how many.
    #[inline]
    pub fn poll(&self, out: &mut [Wc]) -> Result<usize, String> {
        // SAFETY: the queue is there as long as this, its table has what adapters must, and there is room.
        let count = unsafe {
            let poll = (*(*self.completions).context).ops.poll_cq.ok_or("no ibv_poll_cq")?;
            poll(self.completions, out.len() as c_int, out.as_mut_ptr())
        };
        usize::try_from(count).map_err(|_| format!("{}: ibv_poll_cq fails ({count})", self.adapter.name))
    }

    /// Gives a buffer for messages of any connection.
    pub fn post_receive(&self, buffer: Local, id: u64) -> Result<(), String> {
        let mut piece = sge(buffer);
        let mut order = RecvWr { wr_id: id, next: null_mut(), sg_list: &mut piece, num_sge: 1 };
        let mut bad = null_mut();
        // SAFETY: the queue is there as long as this; the order is copied.
        let answer = unsafe {
            let post = (*(*self.receives).context).ops.post_srq_recv.ok_or("no ibv_post_srq_recv")?;
            post(self.receives, &mut order, &mut bad)
        };
        said(answer)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let library = self.adapter.library;
        // SAFETY: each was made by `new` and is given back once, the last made first.
        unsafe {
            if !self.receives.is_null() {
                (library.destroy_srq)(self.receives);
            }
            if !self.completions.is_null() {
                (library.destroy_cq)(self.completions);
            }
            if !self.channel.is_null() {
                (library.destroy_comp_channel)(self.channel);
            }
            if !self.domain.is_null() {
                (library.dealloc_pd)(self.domain);
            }
        }
    }
}

/// Registered memory.
pub struct Region {
    raw: *mut Mr,
    is_pinned: bool,
    /// The domain is there as long as this.
    hub: Arc<Hub>,
}

// SAFETY: as for `Adapter`.
unsafe impl Send for Region {}

impl Region {
    /// Registers memory for access by this adapter and by peers, as `access` says; else the number of the error, see [`why`].
    pub fn new(hub: &Arc<Hub>, span: Span, access: c_int) -> Result<Region, c_int> {
        let at = span.addr as *mut c_void;
        // SAFETY: a domain; the kernel looks whether the memory is there.
        let raw =
            made_or_number(|| unsafe { (hub.adapter.library.reg_mr)(hub.domain, at, span.len, access) })?;
        Ok(Region { raw, is_pinned: access & ACCESS_ON_DEMAND == 0, hub: hub.clone() })
    }

    /// Whether the kernel holds its pages for the adapter, as it does unless they are taken on demand.
    pub fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// Its keys.
    pub fn keys(&self) -> fabric::Region {
        // SAFETY: made by `new`.
        unsafe { fabric::Region { local: (*self.raw).lkey, remote: (*self.raw).rkey } }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: made by `new`, given back once.
        unsafe { (self.hub.adapter.library.dereg_mr)(self.raw) };
    }
}

/// The way to a peer's port.
pub struct Handle {
    raw: *mut Ah,
    hub: Arc<Hub>,
}

// SAFETY: as for `Adapter`.
unsafe impl Send for Handle {}

impl Handle {
    /// To this address.
    pub fn new(hub: &Arc<Hub>, mut to: AhAttr) -> Result<Handle, String> {
        // SAFETY: a domain, and attributes that are copied.
        let raw = made(|| unsafe { (hub.adapter.library.create_ah)(hub.domain, &mut to) })?;
        Ok(Handle { raw, hub: hub.clone() })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by `new`, given back once.
        unsafe { (self.hub.adapter.library.destroy_ah)(self.raw) };
    }
}

/// What a queue pair is asked to do.
pub enum Order<'a> {
    /// Into a receive buffer of the peer.
    Send(&'a [Local]),
    /// Into memory of the peer.
    Write(&'a [Local], Remote),
    /// From memory of the peer.
    Read(Local, Remote),
    /// Changes a word of the peer's memory; what it was comes back.
    Change(Local, Remote, Atomic),
    /// A Read of nothing: the peer's adapter answers, and looks at neither key nor address, as InfiniBand's specification and
    /// RFC 5040 have it for a length of zero.
    Question,
    /// An empty message that says this word.
    Word(u32),
    /// To the queue pair of this number and key, with a word.
    Datagram(&'a [Local], &'a Handle, u32, u32, u32),
}

/// Entries of a gather list, at most.
pub const PIECES: usize = 4;

/// A queue pair.
pub struct Pair {
    raw: *mut Qp,
    /// Payload that it takes with the order, in bytes.
    pub inline_bytes: usize,
    hub: Arc<Hub>,
}

// SAFETY: as for `Adapter`.
unsafe impl Send for Pair {}

impl Pair {
    /// A queue pair of this type with room as asked for; where one has receives of its own they are not shared.
    pub fn new(hub: &Arc<Hub>, kind: c_int, cap: QpCap) -> Result<Pair, String> {
        let shared = if cap.max_recv_wr == 0 { hub.receives } else { null_mut() };
        let mut attr = QpInitAttr {
            qp_context: null_mut(),
            send_cq: hub.completions,
            recv_cq: hub.completions,
            srq: shared,
            cap,
            qp_type: kind,
            sq_sig_all: 0,
        };
        // SAFETY: a domain and its queues; the attributes are copied, and what it got is written back.
        let raw = made(|| unsafe { (hub.adapter.library.create_qp)(hub.domain, &mut attr) })?;
        Ok(Pair { raw, inline_bytes: attr.cap.max_inline_data as usize, hub: hub.clone() })
    }

    /// By which others name it.
    pub fn number(&self) -> u32 {
        // SAFETY: made by `new`.
        unsafe { (*self.raw).qp_num }
    }

    /// Changes what the mask names.
    pub fn modify(&self, mut attr: QpAttr, mask: c_int) -> Result<(), String> {
        // SAFETY: made by `new`; the attributes are copied.
        said(unsafe { (self.hub.adapter.library.modify_qp)(self.raw, &mut attr, mask) })
    }

    /// Posts work, of which a completion tells; `flags` are those of `enum ibv_send_flags` beside that. With `SEND_INLINE` its
    /// payload is free at once.
    pub fn post(&self, order: &Order, id: u64, flags: u32) -> Result<(), c_int> {
        let mut pieces = [Sge { addr: 0, length: 0, lkey: 0 }; PIECES];
        let (opcode, parts, wr, word) = match order {
            Order::Send(parts) => (WR_SEND, *parts, None, 0),
            Order::Write(parts, remote) => (WR_WRITE, *parts, Some(rdma(*remote)), 0),
            Order::Read(local, remote) => (WR_READ, std::slice::from_ref(local), Some(rdma(*remote)), 0),
            Order::Change(local, remote, atomic) => {
                let (opcode, target) = changes(*remote, *atomic);
                (opcode, std::slice::from_ref(local), Some(target), 0)
            }
            Order::Question => (WR_READ, &[][..], Some(rdma(Remote { addr: 0, key: 0 })), 0),
            Order::Word(word) => (WR_SEND_WITH_IMMEDIATE, &[][..], None, *word),
            Order::Datagram(parts, handle, number, key, word) => {
                let ud = UdTarget { ah: handle.raw, remote_qpn: *number, remote_qkey: *key };
                (WR_SEND_WITH_IMMEDIATE, *parts, Some(Target { ud }), *word)
            }
        };
        for (piece, part) in pieces.iter_mut().zip(parts) {
            *piece = sge(*part);
        }
        // SAFETY: of numbers and pointers alone, for which zeros are values.
        let mut wr_out: SendWr = unsafe { zeroed() };
        wr_out.wr_id = id;
        wr_out.sg_list = pieces.as_mut_ptr();
        wr_out.num_sge = parts.len().min(PIECES) as c_int;
        wr_out.opcode = opcode;
        wr_out.send_flags = SEND_SIGNALED | flags;
        wr_out.imm_data = word.to_be();
        if let Some(wr) = wr {
            wr_out.wr = wr;
        }
        let mut bad = null_mut();
        // SAFETY: made by `new`, and its table has what adapters must; the order is copied.
        let answer = unsafe {
            let post = (*(*self.raw).context).ops.post_send.ok_or(libc::ENOSYS)?;
            post(self.raw, &mut wr_out, &mut bad)
        };
        if answer == 0 { Ok(()) } else { Err(answer.abs()) }
    }

    /// Gives a buffer for datagrams, in front of which their routing headers go to `head`.
    pub fn post_receive(&self, head: Local, buffer: Local, id: u64) -> Result<(), String> {
        let mut pieces = [sge(head), sge(buffer)];
        let mut order = RecvWr { wr_id: id, next: null_mut(), sg_list: pieces.as_mut_ptr(), num_sge: 2 };
        let mut bad = null_mut();
        // SAFETY: as above.
        let answer = unsafe {
            let post = (*(*self.raw).context).ops.post_recv.ok_or("no ibv_post_recv")?;
            post(self.raw, &mut order, &mut bad)
        };
        said(answer)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: made by `new`, given back once.
        unsafe { (self.hub.adapter.library.destroy_qp)(self.raw) };
    }
}

#[inline]
fn sge(part: Local) -> Sge {
    Sge { addr: part.span.addr as u64, length: part.span.len as u32, lkey: part.key }
}

fn changes(remote: Remote, atomic: Atomic) -> (c_int, Target) {
    let (opcode, compare_add, swap) = match atomic {
        Atomic::Add(add) => (WR_FETCH_ADD, add, 0),
        Atomic::CompareSwap { compare, swap } => (WR_COMPARE_SWAP, compare, swap),
    };
    let atomic = AtomicTarget { remote_addr: remote.addr, compare_add, swap, rkey: remote.key };
    (opcode, Target { atomic })
}

fn rdma(remote: Remote) -> Target {
    Target { rdma: Rdma { remote_addr: remote.addr, rkey: remote.key } }
}
