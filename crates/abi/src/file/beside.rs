//! The thread that moves the bytes of non-blocking accesses while the application computes. It does one after the
//! other, in the order in which they were begun, and rings when one is done, for the rank may sleep. There is none
//! before the first access that is worth it, and none where the library may have no threads (`TERN_PROGRESS=inside`).

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use fabric::{Bell, Device};
use mpi::error::{Class, Error};
use mpi::file::Errand;
use mpi::handle::Handle;
use mpi::request::Ended;
use mpi::status::Status;

use crate::cx::Cx;
use crate::engine;

/// Most accesses that wait for the thread; of more the caller does each itself, as it would without one.
const QUEUE_MAX: usize = 16;
/// Accesses that take less are done at once: the thread has to be woken, and its core has not the data in its caches. With
/// two ranks on two cores writes of 1 MiB into a page cache gained nothing, those of 4 MiB did (bench/files.c).
const WORTH_NS: u64 = 300_000;
/// What takes longer for a byte waits for a device: a page cache takes a core and a tenth of that, and where there are
/// more ranks than cores a thread finds none (eight ranks on two cores lost by it).
const DEVICE_PS: u64 = 1000;

type Work = Box<dyn FnOnce() -> Ended + Send>;

struct Order {
    work: Work,
    errand: Arc<Errand>,
    bell: Arc<dyn Bell>,
}

type Running = (SyncSender<Order>, JoinHandle<()>);
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// Whether an access that is predicted to take so long, and so long for a byte, is one for the thread.
pub fn is_worth(cx: &Cx, took_ns: u64, byte_ps: u64) -> bool {
    let has_cores = || cx.world().engine.in_vain().is_none();
    took_ns >= WORTH_NS && engine::may_have_threads() && (byte_ps >= DEVICE_PS || has_cores())
}

/// Has the thread do something; if it cannot, the caller does it.
pub fn begin(cx: &Cx, file: Handle, work: impl FnOnce() -> Ended + Send + 'static) -> Arc<Errand> {
    let errand = Arc::new(Errand::new(file));
    let bell = cx.world().engine.device().bell();
    let refused = match bell {
        Some(bell) => hand_over(Order { work: Box::new(work), errand: errand.clone(), bell }),
        None => Some(Box::new(work) as Work),
    };
    if let Some(work) = refused {
        errand.end(work());
    }
    errand
}

/// Gives the thread something to do; gives it back if there is no room, or no thread.
fn hand_over(order: Order) -> Option<Work> {
    let mut running = RUNNING.lock().unwrap_or_else(|e| e.into_inner());
    if running.is_none() {
        let (send, orders) = sync_channel(QUEUE_MAX);
        let builder = || std::thread::Builder::new().name("tern-files".into()).stack_size(256 * 1024);
        let spawned = engine::without_signals(|| builder().spawn(move || run(orders)));
        *running = spawned.ok().map(|handle| (send, handle));
    }
    let Some((queue, _)) = &*running else { return Some(order.work) };
    queue.try_send(order).err().map(|full| match full {
        std::sync::mpsc::TrySendError::Full(order) | std::sync::mpsc::TrySendError::Disconnected(order) => {
            order.work
        }
    })
}

fn run(orders: Receiver<Order>) {
    for order in orders {
        // A bug in here must not leave somebody waiting for ever.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(order.work));
        order.errand.end(ended.unwrap_or_else(|_| Ended {
            status: Status::EMPTY,
            error: Some(Error::new(Class::INTERN, "the thread that moves the bytes of files has failed")),
        }));
        order.bell.ring();
    }
}

/// Ends the thread; what was begun is done before.
pub fn stop() {
    let running = RUNNING.lock().unwrap_or_else(|e| e.into_inner()).take();
    if let Some((queue, handle)) = running {
        drop(queue);
        let _ = handle.join();
    }
}
