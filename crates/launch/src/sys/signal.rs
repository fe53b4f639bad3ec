//! Signals as a descriptor for the launcher, and their names.
use super::check;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// Blocked signals that arrive through a descriptor.
pub struct Signals {
    arrivals: File,
}

/// The signals that a process blocks.
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

impl Mask {
    /// No signal.
    pub(super) fn empty() -> Mask {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initialises the set it is given, and cannot fail.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: initialised on the line above.
        Mask(unsafe { set.assume_init() })
    }

    /// All signals.
    pub(super) fn full() -> Mask {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigfillset initialises the set it is given, and cannot fail.
        unsafe { libc::sigfillset(set.as_mut_ptr()) };
        // SAFETY: initialised on the line above.
        Mask(unsafe { set.assume_init() })
    }

    /// Makes this the mask of the calling thread; safe between fork and exec.
    pub(super) fn apply(&self) -> io::Result<()> {
        // SAFETY: the set is initialised; the old mask is not asked for.
        check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) }).map(drop)
    }
}

/// What a user asks a program to ignore: `nohup` SIGHUP, the background of a script SIGINT and
/// SIGQUIT, and a script that is to survive `kill` SIGTERM.
const LEFT_IGNORED: [i32; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Ends the ignoring of all signals that this process was told to ignore, except `LEFT_IGNORED` and SIGPIPE, which
/// is the runtime's own.
///
/// Ignored signals survive exec, and nobody means them: with SIGCHLD ignored the kernel reaps children by itself,
/// and neither this process nor a rank would learn how one ended.
pub fn reset_ignored() {
    let reset = |signal: &i32| !LEFT_IGNORED.contains(signal) && *signal != libc::SIGPIPE;
    for signal in (1..=libc::SIGRTMAX()).filter(reset) {
        if disposition(signal) == Some(libc::SIG_IGN) {
            // SAFETY: the default action replaces an ignored signal, no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Who stops reading what this process writes ends it, as a filter in a shell is used to; the runtime would have it fail.
pub fn end_when_unread() {
    // SAFETY: the default action replaces an ignored signal, no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

impl Signals {
    /// Blocks `wanted`, except those that this process was told to ignore (as `nohup` does for
    /// SIGHUP), and delivers them through the descriptor. All others are not blocked.
    pub fn take(wanted: &[i32]) -> io::Result<Signals> {
        let mut set = Mask::empty();
        for &signal in wanted.iter().filter(|s| disposition(**s) != Some(libc::SIG_IGN)) {
            // SAFETY: `set` is an initialised set.
            check(unsafe { libc::sigaddset(&mut set.0, signal) })?;
        }
        set.apply()?;
        // SAFETY: `set` is initialised; -1 asks for a new descriptor.
        let fd = check(unsafe { libc::signalfd(-1, &set.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })?;
        // SAFETY: the descriptor is new and owned by nobody else.
        Ok(Signals { arrivals: unsafe { File::from_raw_fd(fd) } })
    }

    /// The next signal that has arrived, if any.
    pub fn take_next(&mut self) -> Option<i32> {
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        let mut info = [0u8; SIZE];
        match self.arrivals.read(&mut info) {
            Ok(SIZE) => Some(i32::from_ne_bytes([info[0], info[1], info[2], info[3]])),
            _ => None,
        }
    }
}

impl AsRawFd for Signals {
    fn as_raw_fd(&self) -> RawFd {
        self.arrivals.as_raw_fd()
    }
}

fn disposition(signal: i32) -> Option<libc::sighandler_t> {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action only asks; the old one is written to `action`.
    check(unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) }).ok()?;
    // SAFETY: the call succeeded, so `action` is initialised.
    Some(unsafe { action.assume_init() }.sa_sigaction)
}

/// The usual name of a signal.
pub fn name(signal: i32) -> String {
    const NAMES: &[(i32, &str)] = &[
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGUSR1, "SIGUSR1"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGUSR2, "SIGUSR2"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGALRM, "SIGALRM"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    match NAMES.iter().find(|(number, _)| *number == signal) {
        Some((_, name)) => format!("signal {signal} ({name})"),
        None => format!("signal {signal}"),
    }
}
