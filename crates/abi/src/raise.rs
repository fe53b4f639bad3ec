//! What happens to an error: the error handler of the object concerned decides
//! (MPI 5.0 section 9.3).

use std::fmt::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mpi::errhandler::Action;
use mpi::error::{Class, Error, Result};
use mpi::handle::Handle;
use mpi::tools::class as tools;
use mpi::win::about;

use crate::cx::Cx;
use crate::global::{self, Phase};
use crate::kind::Role;
use crate::layout::{self, Set};
use crate::object::{self, Object};
use crate::table::Row;
use crate::{lookup, report, start};

/// Handles the error of a call with these raw arguments and returns what the operation returns,
/// if it returns.
#[cold]
#[inline(never)]
pub fn failed(cx: &Cx, words: &[i64], error: Error) -> i32 {
    if cx.row().flags.tool {
        // What the kinds refuse is for every other chapter MPI_ERR_ARG.
        return if error.class == Class::ARG { tools::INVALID.0 } else { error.class.0 };
    }
    await_end(&error);
    let subject = cx.subject().or_else(|| subject(cx.row(), words));
    let error = with_name(subject, with_argument(cx.row(), error));
    let code = code_of(cx, &error);
    let (action, handle, rank) = global::error_action(subject);
    match action {
        Action::Return => RETURNED.store(true, Ordering::Relaxed),
        Action::Call { function, .. } => {
            RETURNED.store(true, Ordering::Relaxed);
            return call(function, handle, code);
        }
        Action::Fatal | Action::Abort => fatal(rank, &cx.name(), &arguments(cx.row(), words), &error),
    }
    code
}

/// The code that the program gets: the text goes with it, for `MPI_Error_string`. `MPI_ERR_IN_STATUS` is itself a code (MPI 5.0
/// section 3.7.5).
pub fn code_of(cx: &Cx, error: &Error) -> i32 {
    let is_told = error.class != Class::IN_STATUS && global::is_active();
    if is_told { cx.anytime().codes.tell(error) } else { error.class.0 }
}

/// How long an error about a rank that has died is held back: longer than `mpiexec` takes to be sure
/// that a rank which left in silence is missed.
const NEWS: Duration = Duration::from_secs(5);

/// If the error is that another rank has died: gives the launcher, which knows how it died, the time
/// to end the job. What this rank could say is only what followed from that, and if it were said
/// first it would be taken for the cause. A launcher may let the others live; then the error is told.
pub fn await_end(error: &Error) {
    static SINCE: OnceLock<Instant> = OnceLock::new();
    if error.class == Class::PROC_ABORTED && start::is_launched() {
        let end = *SINCE.get_or_init(Instant::now) + NEWS;
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
    }
}

/// `MPI_*_call_errhandler`: the error handler of this object with a code of the application's.
/// The operation itself succeeds if the handler returns (MPI 5.0 section 9.3.4).
pub fn call_errhandler(cx: &Cx, object: Object, handle: Handle, code: i32) -> Result {
    let (action, handle, rank) = global::error_action(Some((object, handle)));
    match action {
        Action::Return => {}
        Action::Call { function, .. } => _ = call(function, handle, code),
        Action::Fatal | Action::Abort => {
            let text = cx.anytime().codes.string_of(code);
            let text = format!("called by the program: {}", String::from_utf8_lossy(&text));
            let shown = object::name_of(handle).map_or(format!("{:#x}", handle.0), str::to_string);
            fatal(rank, &cx.name(), &shown, &Error::new(Class(code), text))
        }
    }
    Ok(())
}

/// A call before MPI_Init or after MPI_Finalize of an operation that needs MPI: it goes to the initial error handler, which is fatal
/// unless the start of the program names another one (MPI 5.0 section 9.3).
#[cold]
#[inline(never)]
pub fn outside(cx: &Cx) -> i32 {
    if cx.row().flags.tool {
        return tools::NOT_INITIALIZED.0;
    }
    let text = match global::phase() {
        Phase::After => "called after MPI_Finalize",
        Phase::Idle => "called when no session is open, and not between MPI_Init and MPI_Finalize",
        Phase::Child => {
            "called in a child process made by fork, which is no rank of the job and may only call what MPI \
             allows at any time"
        }
        _ => "called before MPI_Init",
    };
    let error = Error::new(Class::OTHER, text);
    match global::error_action(None).0 {
        Action::Return => error.class.0,
        _ => fatal(None, &cx.name(), "", &error),
    }
}

/// Calls the application's function, which C declares `void f(MPI_Comm *, int *, ...)`. The code that it leaves is what the operation
/// returns, as in MPICH and Open MPI: MPI 5.0 section 9.3.1 passes its address and says no more.
fn call(function: usize, handle: Handle, mut code: i32) -> i32 {
    let (function, mut handle) = layout::handed(function, handle);
    code = layout::write(Set::Code, code);
    // SAFETY: the application registered this address as a function of this type; no guard of
    // the world is alive, so it may call MPI.
    unsafe {
        let function: unsafe extern "C" fn(*mut usize, *mut i32, ...) = std::mem::transmute(function);
        function(&raw mut handle, &raw mut code);
    }
    layout::read(Set::Code, code)
}

/// The first argument that names a live object with an error handler; of operations on files MPI_FILE_NULL if there
/// is none, or no file yet (MPI 5.0 section 14.7). Where an operation makes such an object out of none, it is the error
/// handler that the object is to have (MPI 5.0 sections 7.4.2 and 11.3.1).
fn subject(row: &Row, words: &[i64]) -> Option<(Object, Handle)> {
    let of_files = row.is_of_files();
    let none = of_files.then_some((Object::File, Object::File.null().0));
    let raises =
        |object: Object| matches!(object, Object::Comm | Object::Win | Object::File | Object::Session);
    let makes_one = !row.params.iter().any(|param| matches!(param.role, Role::Handle(of) if raises(of)));
    let found = row.params.iter().zip(words).find_map(|(param, &word)| {
        let Role::Handle(object) = param.role else {
            return None;
        };
        let handle = Handle(u32::try_from(word).ok()?);
        let concerns = raises(object) || makes_one && object == Object::Errhandler;
        let live = concerns && (object.is_predefined(handle) || lookup::is_live(object, handle));
        (live && (object == Object::File || !of_files)).then_some((object, handle))
    });
    found.or(none)
}

/// The error with the window concerned, and with the name that the program has given to it beside its handle.
fn with_name(subject: Option<(Object, Handle)>, error: Error) -> Error {
    let Some((Object::Win, handle)) = subject else { return error };
    let known = format!("window {:#x}", handle.0);
    let is_named = error.text.contains(&format!("{:#x}", handle.0));
    let error = if is_named { error } else { about(handle, &error) };
    match lookup::window_name(handle) {
        Some(name) => {
            let named = format!("window {name} ({:#x})", handle.0);
            Error::new(error.class, error.text.replacen(&known, &named, 1))
        }
        None => error,
    }
}

/// The error of a handle, with the arguments that it may have come by: where a handle is looked up nothing says which.
fn with_argument(row: &Row, error: Error) -> Error {
    let kind = match error.class {
        Class::TYPE => "MPI_Datatype",
        Class::OP => "MPI_Op",
        Class::INFO => "MPI_Info",
        _ => return error,
    };
    let names: Vec<String> = (row.params.iter())
        .filter(|param| param.c_small.contains(kind) && !param.kind.ends_with("Out"))
        .map(|param| format!("`{}`", param.name))
        .collect();
    if !error.text.starts_with("is ") || names.is_empty() {
        return error;
    }
    Error::new(error.class, format!("argument {} {}", names.join(" or "), error.text))
}

/// The arguments that say something to a person: "dest=7, comm=MPI_COMM_WORLD".
fn arguments(row: &Row, words: &[i64]) -> String {
    let mut text = String::new();
    for (param, &word) in row.params.iter().zip(words) {
        let shown = show(param.role, word);
        if !shown.is_empty() {
            let comma = if text.is_empty() { "" } else { ", " };
            write!(text, "{comma}{}={shown}", param.name).expect("writing to a string");
        }
    }
    text
}

fn show(role: Role, word: i64) -> String {
    match (role, word) {
        (Role::Address | Role::Text | Role::Result(_) | Role::InOut(_), _) => String::new(),
        (Role::Buffer | Role::BufferResult | Role::FileResult | Role::Status, _) => String::new(),
        (Role::Rank, -1) => "MPI_ANY_SOURCE".to_string(),
        (Role::Rank, -3) => "MPI_PROC_NULL".to_string(),
        (Role::Rank, -4) => "MPI_ROOT".to_string(),
        (Role::Tag, -2) => "MPI_ANY_TAG".to_string(),
        (Role::Handle(_), _) => match u32::try_from(word).ok().and_then(|raw| object::name_of(Handle(raw))) {
            Some(name) => name.to_string(),
            None => format!("{word:#x}"),
        },
        (Role::Number | Role::Constant(_) | Role::Rank | Role::Tag, _) => word.to_string(),
    }
}

/// An error has gone back to the program.
static RETURNED: AtomicBool = AtomicBool::new(false);

/// Whether the program has lived through an error: then what it left half done is no surprise.
pub fn has_returned() -> bool {
    RETURNED.load(Ordering::Relaxed)
}

/// How a fatal error ends more than this process: told the exit code and the message, it says
/// whether the message will be printed.
pub type EndJob = Box<dyn Fn(i32, &str) -> bool + Send + Sync>;

static END_JOB: OnceLock<EndJob> = OnceLock::new();

/// From now on fatal errors go through `end` first, which MPI_Init connects to the launcher: it
/// prints one message for the whole job.
pub fn on_fatal(end: EndJob) {
    let _ = END_JOB.set(end);
}

/// Sees to the one message and ends the process with the class as exit code, cut to what a shell
/// sees.
fn fatal(rank: Option<u32>, name: &str, arguments: &str, error: &Error) -> ! {
    let rank = rank.map_or(String::new(), |rank| format!("rank {rank}: "));
    let arguments = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
    let code = match error.class.0 & 0xff {
        0 => 1,
        code => code,
    };
    end(code, &format!("tern: {rank}{name}{arguments}: {error}"))
}

/// Ends the job and this process, which prints `text` if the launcher does not. A second thread
/// that comes here waits for the first to end the process. A thread that comes here again was
/// interrupted on its way, by a signal whose handler calls MPI: what is left to it is to leave.
pub fn end(code: i32, text: &str) -> ! {
    static ENDING: AtomicUsize = AtomicUsize::new(0);
    match ENDING.compare_exchange(0, global::this_thread(), Ordering::Relaxed, Ordering::Relaxed) {
        // SAFETY: leaves without running handlers.
        Err(thread) if thread == global::this_thread() => unsafe { libc::_exit(code) },
        Err(_) => loop {
            std::thread::park();
        },
        Ok(_) => {}
    }
    let printed = match END_JOB.get() {
        Some(end) => end(code, text),
        // Before MPI_Init nobody has looked for the launcher.
        None => report::connect().is_ok() && report::fatal(code, text),
    };
    if !printed {
        print(text);
    }
    flush();
    // SAFETY: leaves without running handlers that could call MPI.
    unsafe { libc::_exit(code) }
}

/// Writes a line to standard error, past all streams and their locks.
pub fn print(text: &str) {
    let line = format!("{text}\n");
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        // SAFETY: `rest` is readable for its length.
        match unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) } {
            count if count > 0 => rest = &rest[count as usize..],
            _ if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
    fn ftrylockfile(stream: *mut libc::FILE) -> libc::c_int;
    fn fflush_unlocked(stream: *mut libc::FILE) -> libc::c_int;
}

/// Writes out what the application has printed up to here. A stream that another thread is using is
/// left: that thread may keep it for ever.
fn flush() {
    // SAFETY: the C library's own streams, each flushed while this thread holds its lock, which is not
    // given back because the process ends.
    unsafe {
        for stream in [stdout, stderr] {
            if ftrylockfile(stream) == 0 {
                fflush_unlocked(stream);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn arguments_are_shown_by_what_they_mean() {
        let row = table::all().find(|row| row.name == "MPI_Recv").unwrap();
        let text = arguments(row, &[0x1000, -3, 0x209, -1, -2, 0x101, 0]);
        assert_eq!(
            text,
            "count=-3, datatype=MPI_INT, source=MPI_ANY_SOURCE, tag=MPI_ANY_TAG, comm=MPI_COMM_WORLD"
        );
        assert_eq!(show(Role::Handle(Object::Comm), 0x300001), "0x300001");
        assert_eq!(show(Role::Rank, -3), "MPI_PROC_NULL");
    }

    #[test]
    fn the_object_concerned_is_the_first_live_one() {
        let row = table::all().find(|row| row.name == "MPI_Send").unwrap();
        let comm = |raw| subject(row, &[0, 0, 0x209, 0, 0, raw]);
        assert_eq!(comm(0x101), Some((Object::Comm, Handle(0x101))));
        assert_eq!(comm(0x100), None);
        assert_eq!(comm(0x7000_0001), None);
    }

    #[test]
    fn what_makes_an_object_out_of_none_concerns_the_error_handler_it_is_given() {
        let row = |name| table::all().find(|row| row.name == name).unwrap();
        let errors_return = Handle(0x143);
        let given = Some((Object::Errhandler, errors_return));
        assert!(object::name_of(errors_return) == Some("MPI_ERRORS_RETURN"));
        assert_eq!(subject(row("MPI_Session_init"), &[0x131, 0x143, 0]), given);
        assert_eq!(subject(row("MPI_Comm_create_from_group"), &[0x100, 0, 0, 0x143, 0]), given);
        assert_eq!(subject(row("MPI_Intercomm_create_from_groups"), &[0, 0, 0, 0, 0, 0, 0x143, 0]), given);
        // What is no error handler decides nothing, nor does one that an object is to get which is none.
        assert_eq!(subject(row("MPI_Session_init"), &[0x131, 0x140, 0]), None);
        assert_eq!(subject(row("MPI_Comm_set_errhandler"), &[0x100, 0x143]), None);
    }
}
