//! Asynchronous events: what happens to an object or to a port and is not the end of any work (`man ibv_get_async_event`).
//!
//! ```text
//! object ── its owner: a context ──▶ channel ──▶ fetched: owed ──▶ acknowledged: the object may go
//! kernel ── link, address ─────────▶ channels of all contexts at this interface
//! ```
//!
//! An object does not go as long as the program has fetched an event of it and has not acknowledged it. What was not fetched goes with
//! the object.

use super::constants::*;
use super::{Adapter, Channel, PORTS, Queues};
use crate::interfaces::Interface;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, netlink, recv, socket_with};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// `RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR`, `RTMGRP_IPV6_IFADDR`.
const GROUPS: u32 = 1 | 0x10 | 0x100;
/// Longest message of the kernel's; what it says is not read.
const NEWS: usize = 8192;

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Object {
    /// A completion queue.
    Completions(u32),
    /// A queue pair.
    Pair(u32),
    /// A shared receive queue.
    Receives(u32),
    /// The only port.
    Port,
}

/// Who is told of what happens to an object.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// The context, by its number.
    pub context: u32,
    /// Events that were fetched and not acknowledged.
    pub owed: u32,
    /// What events call the object: the address of the program's.
    pub address: usize,
}

impl Owner {
    /// This context; the object's address is told when it is known.
    pub fn new(context: u32) -> Owner {
        Owner { context, owed: 0, address: 0 }
    }
}

impl Default for Owner {
    /// Nobody.
    fn default() -> Owner {
        Owner::new(u32::MAX)
    }
}

/// An event that was not fetched so far.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// `enum ibv_event_type`.
    pub kind: i32,
    /// See [`Object`].
    pub object: Object,
    /// The address of the program's object, or the number of the port.
    pub element: usize,
}

/// An open device.
#[derive(Debug)]
pub struct Context {
    events: Channel<Event>,
    interface: Interface,
    /// Whether its interface is up, with the address that it had.
    pub is_up: bool,
}

impl Queues {
    /// Tells the owner of an object of what has happened to it.
    pub fn tell(&mut self, owner: Owner, object: Object, kind: i32) {
        if let Some(context) = self.contexts.get(owner.context) {
            context.events.tell(Event { kind, object, element: owner.address });
        }
    }
}

/// What tells of changes of interfaces.
fn news_of_interfaces() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    bind(&socket, &netlink::SocketAddrNetlink::new(0, GROUPS))?;
    Ok(socket)
}

/// Whether the interface of a device is one of these that are up, has its link, and the device's address.
fn is_up(of: &Interface, known: &[launch::sys::net::Interface]) -> bool {
    let name = of.name.strip_prefix("tern_").unwrap_or(&of.name);
    known.iter().any(|found| found.is_linked && found.at == of.at && found.name == name)
}

impl Adapter {
    /// Takes up a device that is opened: its number, and the descriptor of its events.
    pub fn open(&mut self, interface: Interface) -> std::io::Result<(u32, RawFd)> {
        if self.ports.is_none() {
            // Where the kernel tells nothing of them, ports stay as they are.
            self.ports = news_of_interfaces().ok();
            if let Some(socket) = &self.ports {
                rnic::driver::hear(&self.epoll, socket, PORTS, false, false)?;
            }
        }
        let events = Channel::new()?;
        let descriptor = events.descriptor.as_raw_fd();
        let is_up = launch::sys::net::interfaces().map_or(true, |known| is_up(&interface, &known));
        let number = self.queues.contexts.insert(Context { events, interface, is_up });
        Ok((number, descriptor))
    }

    /// A device is closed.
    pub fn close(&mut self, context: u32) {
        self.queues.contexts.remove(context);
    }

    /// The next event of a context, which the program gets and has to acknowledge.
    pub fn fetch(&mut self, context: u32) -> Option<Event> {
        let event = self.queues.contexts.get(context)?.events.ready.pop_front()?;
        if let Some(owner) = self.owner(event.object) {
            owner.owed += 1;
        }
        Some(event)
    }

    /// The owner of an object, if that is there and has one.
    pub fn owner(&mut self, object: Object) -> Option<&mut Owner> {
        match object {
            Object::Completions(queue) => self.queues.completions.get(queue).map(|known| &mut known.owner),
            Object::Pair(pair) => self.pairs.get(pair).map(|pair| &mut pair.owner),
            Object::Receives(queue) => {
                let shared = self.receives.get(queue)?.shared.as_mut()?;
                Some(&mut shared.owner)
            }
            Object::Port => None,
        }
    }

    /// Discards what was not fetched of an object that goes.
    pub fn forget_events(&mut self, object: Object) {
        let Some(context) = self.owner(object).map(|owner| owner.context) else { return };
        if let Some(context) = self.queues.contexts.get(context) {
            context.events.forget(|event| event.object == object);
        }
    }

    /// A shared receive queue has fewer buffers than its program wants to hear of: it is told, once.
    pub fn look_at_limit(&mut self, queue: u32) {
        let Some(receives) = self.receives.get(queue) else { return };
        let left = receives.free.len();
        let Some(shared) = receives.shared.as_mut().filter(|shared| left < shared.limit as usize) else {
            return;
        };
        shared.limit = 0;
        let owner = shared.owner;
        self.queues.tell(owner, Object::Receives(queue), EVENT_SRQ_LIMIT_REACHED);
    }

    /// A message has come for a queue pair (RC). If it may not send so far, its program may be waiting for that.
    pub fn heard(&mut self, handle: u32) {
        let Some(pair) = self.pairs.get(handle) else { return };
        let super::Transport::Connection(rc) = &mut pair.transport else { return };
        if std::mem::replace(&mut rc.is_heard, true) || pair.state != STATE_RTR {
            return;
        }
        let owner = pair.owner;
        self.queues.tell(owner, Object::Pair(handle), EVENT_COMM_EST);
    }

    /// If a queue pair was told to send no more (`IBV_QPS_SQD`), and what it had begun has ended: its program is told, if it wants to be.
    pub fn look_at_drain(&mut self, handle: u32) {
        let Some(pair) = self.pairs.get(handle) else { return };
        let super::Transport::Connection(rc) = &mut pair.transport else { return };
        if !rc.is_draining || !rc.is_drained() {
            return;
        }
        rc.is_draining = false;
        let (owner, is_wanted) = (pair.owner, pair.attr.en_sqd_async_notify != 0);
        if is_wanted {
            self.queues.tell(owner, Object::Pair(handle), EVENT_SQ_DRAINED);
        }
    }

    /// Looks what has become of the interfaces, if the kernel has told that something has.
    pub fn look_at_ports(&mut self) {
        let Some(socket) = &self.ports else { return };
        let (mut has_come, mut room) = (false, [0u8; NEWS]);
        loop {
            match recv(socket, &mut room[..], RecvFlags::empty()) {
                // There was more than the socket holds: what it was does not matter.
                Ok(_) | Err(Errno::NOBUFS) => has_come = true,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if !has_come {
            return;
        }
        let Ok(known) = launch::sys::net::interfaces() else { return };
        for context in self.queues.contexts.iter_mut() {
            let is_up = is_up(&context.interface, &known);
            if std::mem::replace(&mut context.is_up, is_up) != is_up {
                let kind = if is_up { EVENT_PORT_ACTIVE } else { EVENT_PORT_ERR };
                context.events.tell(Event { kind, object: Object::Port, element: 1 });
            }
        }
    }
}
