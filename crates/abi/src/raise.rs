//! What happens to an error: the error handler of the object concerned decides
//! (MPI 5.0 section 9.3).

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use mpi::errhandler::{Action, Kind};
use mpi::error::{Class, Error};
use mpi::handle::Handle;

use crate::cx::Cx;
use crate::global::{self, Phase};
use crate::kind::Role;
use crate::lookup;
use crate::object::{self, Object};
use crate::table::Row;

/// Handles the error of a call with these raw arguments and returns what the operation returns,
/// if it returns.
#[cold]
#[inline(never)]
pub fn failed(cx: &Cx, words: &[i64], error: Error) -> i32 {
    if cx.row().flags.tool {
        return error.class.0;
    }
    let subject = cx.subject().or_else(|| subject(cx.row(), words));
    let (action, rank) = global::error_action(subject);
    match action {
        Action::Return => error.class.0,
        Action::Call { kind, function } => {
            call(kind, function, subject, error.class);
            error.class.0
        }
        Action::Fatal | Action::Abort => fatal(rank, &cx.name(), &arguments(cx.row(), words), &error),
    }
}

/// The error of a row that has no handler yet.
#[cold]
#[inline(never)]
pub fn missing(row: &'static Row, suffix: &'static str, words: &[i64]) -> i32 {
    let cx = Cx::new(row, suffix);
    if !cx.is_allowed() {
        return outside(&cx);
    }
    let text = format!("{} is not there yet (docs/conformance.md lists what is)", cx.name());
    failed(&cx, words, Error::new(Class::UNSUPPORTED_OPERATION, text))
}

/// A call before MPI_Init or after MPI_Finalize of an operation that needs MPI: there is no
/// error handler to ask, the initial one of MPI_COMM_SELF is fatal.
#[cold]
#[inline(never)]
pub fn outside(cx: &Cx) -> i32 {
    let text = match global::phase() {
        Phase::After => "called after MPI_Finalize",
        _ => "called before MPI_Init",
    };
    fatal(None, &cx.name(), "", &Error::new(Class::OTHER, text))
}

/// `MPI_*_call_errhandler`: the program raises an error of its own on an object.
pub fn call_errhandler(cx: &Cx, object: Object, handle: Handle, code: i32, text: &str) {
    let subject = Some((object, handle));
    let (action, rank) = global::error_action(subject);
    match action {
        Action::Return => {}
        Action::Call { kind, function } => call(kind, function, subject, Class(code)),
        Action::Fatal | Action::Abort => {
            fatal(rank, &cx.name(), "", &Error::new(Class(code), format!("raised by the program: {text}")))
        }
    }
}

/// Calls the application's function, which C declares `void f(MPI_Comm *, int *, ...)`.
fn call(kind: Kind, function: usize, subject: Option<(Object, Handle)>, class: Class) {
    let mut handle = match (kind, subject) {
        (_, Some((_, handle))) => handle.0 as usize,
        (_, None) => object::COMM_SELF.0 as usize,
    };
    let mut code = class.0;
    // SAFETY: the application registered this address as a function of this type; no guard of
    // the world is alive, so it may call MPI.
    unsafe {
        let function: unsafe extern "C" fn(*mut usize, *mut i32, ...) = std::mem::transmute(function);
        function(&raw mut handle, &raw mut code);
    }
}

/// The first argument that names a live object with an error handler.
fn subject(row: &Row, words: &[i64]) -> Option<(Object, Handle)> {
    let objects = global::objects();
    row.params.iter().zip(words).find_map(|(param, &word)| {
        let Role::Handle(object @ (Object::Comm | Object::Win | Object::File | Object::Session)) = param.role
        else {
            return None;
        };
        let handle = Handle(u32::try_from(word).ok()?);
        let live = object.is_predefined(handle) || lookup::is_live(&objects, object, handle);
        live.then_some((object, handle))
    })
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
        (Role::Address | Role::Text, _) => String::new(),
        (Role::Rank, -1) => "MPI_ANY_SOURCE".to_string(),
        (Role::Rank, -3) => "MPI_PROC_NULL".to_string(),
        (Role::Rank, -4) => "MPI_ROOT".to_string(),
        (Role::Tag, -2) => "MPI_ANY_TAG".to_string(),
        (Role::Handle(_), _) => match u32::try_from(word).ok().and_then(|raw| object::name_of(Handle(raw))) {
            Some(name) => name.to_string(),
            None => format!("{word:#x}"),
        },
        (Role::Number | Role::Rank | Role::Tag, _) => word.to_string(),
    }
}

/// Prints the one message of this process and ends it.
fn fatal(rank: Option<u32>, name: &str, arguments: &str, error: &Error) -> ! {
    static PRINTED: AtomicBool = AtomicBool::new(false);
    if !PRINTED.swap(true, Ordering::Relaxed) {
        let rank = rank.map_or(String::new(), |rank| format!("rank {rank}: "));
        let arguments = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
        eprintln!("tern: {rank}{name}{arguments}: {error}");
    }
    end(error.class.0)
}

/// Ends the process with the exit code of a fatal error: the class, cut to what a shell sees.
fn end(code: i32) -> ! {
    let code = match code & 0xff {
        0 => 1,
        code => code,
    };
    // SAFETY: flushes C's streams so that the application's output up to here is not lost, then
    // leaves without running handlers that could call MPI.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(code)
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
}
