//! MPI 5.0 sections 11.8.1 to 11.8.3: processes that are started by others. The launcher starts them as a job of their
//! own, and gives them the name of a port of the root that has asked; in MPI_Init they connect to it.

#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use launch::asked;
use launch::pmi::spawn::Program;
use mpi::comm::{COMM_NULL, COMM_WORLD};
use mpi::error::{Class, Error, Result, fail};
use mpi::handle::Handle;
use rnic::Port;

use super::meet::{self, Part};
use super::port;
use crate::coll::run;
use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::handle::live_or_null;
use crate::kind::output::Out;
use crate::kind::text::MaybeText;
use crate::layout::{self, Set, Slot};
use crate::object::Object;
use crate::start;

/// Under which key the processes find the port.
const PARENT_PORT: &str = "tern.parent";
/// How long they wait for those that have started them, who wait for them.
const PATIENCE: Duration = Duration::from_secs(120);

/// The intercommunicator with those that have started this process.
static PARENT: AtomicU64 = AtomicU64::new(0);

/// `MPI_Comm_get_parent`.
pub fn get_parent(cx: &Cx, parent: Out<Handle>) -> Result {
    let handle = Handle(PARENT.load(Ordering::Relaxed) as _);
    let is_there = handle.0 != 0 && cx.world().comm(handle).is_ok();
    parent.set(if is_there { handle } else { COMM_NULL });
    Ok(())
}

/// In MPI_Init: connects those that were started together to those that have started them.
pub fn find_parent(cx: &Cx) -> Result {
    if std::env::var("PMI_SPAWNED").map_or(true, |spawned| spawned != "1") {
        return Ok(());
    }
    let fail =
        |text: String| Error::new(Class::SPAWN, format!("the processes that have started this one: {text}"));
    // Also one that another library's MPI has started is a job by itself.
    let Ok(name) = start::with_launcher(|client| client.get(PARENT_PORT)).map_err(fail)? else {
        return Ok(());
    };
    let port = Port::named(&String::from_utf8_lossy(&name)).ok_or_else(|| fail("a corrupt name".into()))?;
    let parent = meet::groups(cx, COMM_WORLD, 0, || Ok(Part::Connect(port, PATIENCE)))?;
    cx.world().comm_mut(parent)?.set_name(b"MPI_COMM_PARENT");
    PARENT.store(parent.0 as u64, Ordering::Relaxed);
    Ok(())
}

/// `MPI_Comm_spawn`.
pub fn spawn(
    cx: &Cx,
    command: MaybeText,
    argv: usize,
    maxprocs: i32,
    info: usize,
    root: i32,
    comm: Handle,
    intercomm: Out<Handle>,
    array_of_errcodes: Array<i32>,
) -> Result {
    let asked = || {
        let asked = Asked { command: command.get()?.to_text().into_bytes(), argv, maxprocs, info };
        Ok(vec![program(cx, &asked, "")?])
    };
    let most = || usize::try_from(maxprocs).unwrap_or(0);
    start_job(cx, asked, most, root, comm, intercomm, array_of_errcodes)
}

/// `MPI_Comm_spawn_multiple`.
pub fn spawn_multiple(
    cx: &Cx,
    count: i32,
    array_of_commands: usize,
    array_of_argv: usize,
    array_of_maxprocs: Array<i32>,
    array_of_info: Array<Slot>,
    root: i32,
    comm: Handle,
    intercomm: Out<Handle>,
    array_of_errcodes: Array<i32>,
) -> Result {
    let asked = || {
        let count = usize::try_from(count).ok().filter(|count| *count > 0);
        let Some(count) = count else {
            return fail(Class::ARG, "argument `count` is not positive: there is nothing to start");
        };
        if array_of_commands == 0 {
            return fail(Class::ARG, "argument `array_of_commands` is NULL");
        }
        // SAFETY: at the root these have `count` elements, and are not kept.
        let (most, infos) = unsafe { (array_of_maxprocs.slice(count)?, array_of_info.slice(count)?) };
        let one = |at: usize| {
            // SAFETY: `count` terminated strings, and as many lists unless it is MPI_ARGVS_NULL.
            let (command, argv) = unsafe {
                let command = *(array_of_commands as *const *const libc::c_char).add(at);
                let argv = match array_of_argv {
                    0 => 0,
                    lists => *(lists as *const usize).add(at),
                };
                (CStr::from_ptr(command).to_bytes().to_vec(), argv)
            };
            let asked = Asked { command, argv, maxprocs: most[at], info: infos[at].get(Object::Info) };
            program(cx, &asked, &format!("[{at}]"))
        };
        (0..count).map(one).collect()
    };
    let most = || {
        // SAFETY: as above.
        let most = unsafe { array_of_maxprocs.slice(usize::try_from(count).unwrap_or(0)) };
        most.unwrap_or_default().iter().map(|most| usize::try_from(*most).unwrap_or(0)).sum()
    };
    start_job(cx, asked, most, root, comm, intercomm, array_of_errcodes)
}

/// One program as the application names it.
struct Asked {
    command: Vec<u8>,
    argv: usize,
    maxprocs: i32,
    info: usize,
}

/// What the launcher is told of a program, and how many processes were asked for.
fn program(cx: &Cx, asked: &Asked, at: &str) -> Result<(Program, usize)> {
    let Some(most) = usize::try_from(asked.maxprocs).ok().filter(|most| *most > 0) else {
        let text = format!("argument `maxprocs`{at} is {}, must be positive", asked.maxprocs);
        return fail(Class::SPAWN, text);
    };
    if asked.command.is_empty() {
        return fail(Class::SPAWN, format!("argument `command`{at} is empty"));
    }
    let info = live_or_null(Object::Info, asked.info, "info", cx)?;
    let hints: Vec<(String, Vec<u8>)> = match cx.anytime().optional_info(info)? {
        None => Vec::new(),
        Some(info) => {
            let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
            info.iter().map(|(key, value)| (text(key), value.to_vec())).collect()
        }
    };
    let hint = |key: &str| hints.iter().find(|(known, _)| known == key).map(|(_, value)| value);
    let count = match hint("soft") {
        None => most,
        Some(soft) => asked::soft(&String::from_utf8_lossy(soft), most)
            .map_err(|why| Error::new(Class::SPAWN, format!("info key `soft` is {why}")))?,
    };
    if let Some(arch) = hint("arch")
        && arch != std::env::consts::ARCH.as_bytes()
    {
        let arch = String::from_utf8_lossy(arch);
        let text =
            format!("info key `arch` is `{arch}`, all hosts of this job are {}", std::env::consts::ARCH);
        return fail(Class::SPAWN, text);
    }
    if hint("file").is_some() {
        return fail(Class::SPAWN, "info key `file` names a file of no format that this library knows");
    }
    // SAFETY: a list ended by NULL, or MPI_ARGV_NULL.
    let arguments = unsafe { words(asked.argv) };
    Ok((Program { command: asked.command.clone(), arguments, count, info: hints }, most))
}

/// # Safety
/// The address of a list of terminated strings that NULL ends, or 0.
unsafe fn words(list: usize) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    if list != 0 {
        let mut next = list as *const *const libc::c_char;
        // SAFETY: by the contract of this function.
        unsafe {
            while !(*next).is_null() {
                words.push(CStr::from_ptr(*next).to_bytes().to_vec());
                next = next.add(1);
            }
        }
    }
    words
}

/// Starts what the root asks for, and meets it.
fn start_job(
    cx: &Cx,
    asked: impl FnOnce() -> Result<Vec<(Program, usize)>>,
    most: impl FnOnce() -> usize,
    root: i32,
    comm: Handle,
    intercomm: Out<Handle>,
    array_of_errcodes: Array<i32>,
) -> Result {
    intercomm.set(COMM_NULL);
    let place = meet::intra(cx, comm)?;
    let root_rank = meet::check_root(&place, root)?;
    let started = (place.rank == root_rank).then(|| match asked() {
        Ok(asked) => start_here(cx, asked),
        Err(error) => Err((vec![Class::SPAWN.0 as u64; most()], error)),
    });
    let (port, codes, failed) = match started {
        None => (0, Vec::new(), None),
        Some(Ok((port, codes))) => (port, codes, None),
        Some(Err((codes, error))) => (0, codes, Some(error)),
    };
    let class = failed.as_ref().map_or(0, |error| error.class.0 as u64);
    let why = failed.as_ref().map_or(&b""[..], |error| error.text.as_bytes());
    let head = vec![class, codes.len() as u64, why.len() as u64];
    let head = run::spread_words(cx, comm, root as usize, head)?;
    let [class, count, why_len] = head[..] else { unreachable!("as many as were sent") };
    let codes = if place.rank == root_rank { codes } else { vec![0; count as usize] };
    let codes = run::spread_words(cx, comm, root as usize, codes)?;
    if !array_of_errcodes.is_null() {
        // SAFETY: MPI says that it has an element for each process that was asked for.
        let room = unsafe { array_of_errcodes.slice_mut(codes.len())? };
        room.iter_mut().zip(&codes).for_each(|(code, word)| *code = layout::write(Set::Code, *word as i32));
    }
    if let Some(class) = Class::told(class) {
        // Whoever is the first to fail for it says why.
        let words = why.chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        });
        let words = match &failed {
            Some(_) => words.collect(),
            None => vec![0; (why_len as usize).div_ceil(8)],
        };
        let words = run::spread_words(cx, comm, root as usize, words)?;
        let bytes: Vec<u8> =
            words.iter().flat_map(|word| word.to_le_bytes()).take(why_len as usize).collect();
        let text = format!("root {root}: {}", String::from_utf8_lossy(&bytes));
        return Err(failed.unwrap_or_else(|| Error::new(class, text)));
    }
    let met = meet::groups(cx, comm, root, || Ok(Part::Accept(port, Some(PATIENCE))));
    if place.rank == root_rank {
        port::end(cx, port);
    }
    let late = |error: Error| match error.class {
        Class::PORT => Error::new(Class::SPAWN, format!("the processes that were started: {}", error.text)),
        _ => error,
    };
    intercomm.set(met.map_err(late)?);
    Ok(())
}

type Codes = Vec<u64>;

/// Has the launcher start the programs: the port at which they come, and a code for each process that was asked for.
fn start_here(cx: &Cx, asked: Vec<(Program, usize)>) -> std::result::Result<(u32, Codes), (Codes, Error)> {
    let all = |code: Class| asked.iter().flat_map(|(_, most)| vec![code.0 as u64; *most]).collect::<Codes>();
    let port = port::new(cx).map_err(|error| (all(error.class), error))?;
    // Those that `soft` has left out were not started.
    let codes = asked.iter().flat_map(|(program, most)| {
        let left_out = most - program.count;
        [vec![0; program.count], vec![Class::SPAWN.0 as u64; left_out]].concat()
    });
    let codes: Codes = codes.collect();
    let refused = all(Class::SPAWN);
    let programs = asked.into_iter().map(|(program, _)| program).collect();
    let name = port.name();
    let started = start::with_launcher(|client| client.spawn(programs, PARENT_PORT, name.as_bytes()));
    match started.and_then(|started| started) {
        Ok(()) => Ok((port.number, codes)),
        Err(why) => {
            port::end(cx, port.number);
            Err((refused, Error::new(Class::SPAWN, format!("no process was started: {why}"))))
        }
    }
}
