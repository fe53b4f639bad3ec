//! Processes: starting them so that they never outlive the job, ending and reaping them.
use super::check;
use super::signal::Mask;
use std::ffi::{CString, OsStr, OsString, c_char};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// It called exit with this code.
    Code(i32),
    /// A signal killed it; the flag says whether it left a core file.
    Signal(i32, bool),
}

/// A child that has been reaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reaped {
    /// Its process id.
    pub pid: i32,
    /// How it ended.
    pub how: Ended,
}

/// Reaps one child that has ended, if there is one.
pub fn reap() -> Option<Reaped> {
    let mut status = 0;
    // SAFETY: `status` is writable; WNOHANG never waits.
    let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
    if pid <= 0 {
        return None;
    }
    let how = if libc::WIFSIGNALED(status) {
        Ended::Signal(libc::WTERMSIG(status), libc::WCOREDUMP(status))
    } else {
        Ended::Code(libc::WEXITSTATUS(status))
    };
    Some(Reaped { pid, how })
}

/// Waits until the child `pid` has ended.
pub fn wait(pid: i32) {
    let mut status = 0;
    // SAFETY: `status` is writable.
    while unsafe { libc::waitpid(pid, &mut status, 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Whether this user may execute a file; the error says why not.
pub fn may_execute(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a terminated string.
    check(unsafe { libc::access(path.as_ptr(), libc::X_OK) }).map(drop)
}

/// Sends a signal to one process.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    assert!(pid > 1, "kill({pid}) would reach a group, or everybody");
    // SAFETY: touches no memory.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Kills the process with this number, if it `is_meant` to be. That is asked when the number can no
/// longer pass to another process, where the kernel can see to it (pidfd, Linux 5.3).
pub fn kill_if(pid: i32, is_meant: impl FnOnce() -> bool) -> io::Result<()> {
    assert!(pid > 1, "process {pid} is not to be killed");
    // SAFETY: touches no memory.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if opened == -1 {
        return if is_meant() { kill(pid, libc::SIGKILL) } else { Ok(()) };
    }
    // SAFETY: the descriptor is new and owned by nobody else.
    let process = unsafe { OwnedFd::from_raw_fd(opened as RawFd) };
    if !is_meant() {
        return Ok(());
    }
    let (fd, no_info) = (process.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: no information goes with the signal: the pointer is null.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGKILL, no_info, 0) };
    check(sent as libc::c_int).map(drop)
}

/// Sends a signal to a process group.
pub fn kill_group(group: i32, signal: i32) -> io::Result<()> {
    assert!(group > 1, "kill_group({group}) would reach this group, or everybody");
    // SAFETY: touches no memory.
    check(unsafe { libc::kill(-group, signal) }).map(drop)
}

/// Stops this process, as the terminal does at Ctrl-Z.
pub fn stop_self() {
    // SAFETY: touches no memory.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Makes this process the parent of every descendant whose own parent has ended.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: sets an attribute of this process.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// What a rank's process gets between fork and exec.
#[derive(Clone)]
pub struct Birth {
    /// Descriptors that it inherits beside 0, 1 and 2.
    pub inherited: Vec<RawFd>,
    /// CPUs that it may run on; empty: as its parent.
    pub cpus: Vec<usize>,
    /// Its limit of open files, which the launcher may have raised for itself.
    pub open_files: OpenFiles,
    /// Its own name for itself, if it is to be executed by the kernel or not at all, with the arguments and the environment that
    /// `Command` has by then. Without, `Command` looks for it in `PATH` and has a shell run what the kernel does not know, as
    /// execvp does.
    pub strictly: Option<OsString>,
}

/// Prepares `command` so that its process leads a group of its own, blocks no signal, dies when this
/// process dies, and is set up as `birth` says.
pub fn prepare(command: &mut Command, birth: Birth) {
    let parent = std::process::id() as i32;
    let image = birth.strictly.as_ref().and_then(|name| Image::new(command, name));
    let cpus = cpu_set(&birth.cpus);
    let unblocked = Mask::empty();
    command.process_group(0);
    // SAFETY: between fork and exec the closure makes system calls only: no allocation, no lock.
    // The errors it returns are made from errno.
    unsafe {
        command.pre_exec(move || {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
            if libc::getppid() != parent {
                // The launcher died before the line above took effect.
                libc::_exit(1);
            }
            for &fd in &birth.inherited {
                check(libc::fcntl(fd, libc::F_SETFD, 0))?;
            }
            if let Some(cpus) = &cpus {
                check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus))?;
            }
            // The limit may only have been raised; lowering it again cannot fail.
            libc::setrlimit(libc::RLIMIT_NOFILE, &birth.open_files.0);
            unblocked.apply()?;
            match &image {
                Some(image) => Err(image.execute()),
                None => Ok(()),
            }
        });
    }
}

/// What `execve` takes, made before the fork.
struct Image {
    program: CString,
    // What the pointers lead to.
    _words: [Vec<CString>; 2],
    arguments: Pointers,
    environment: Pointers,
}

/// Pointers to strings, with a null behind the last.
struct Pointers(Vec<*const c_char>);

// SAFETY: what they point to is owned beside them, is on the heap and is not changed.
unsafe impl Send for Pointers {}
// SAFETY: as above.
unsafe impl Sync for Pointers {}

impl Pointers {
    fn new(words: &[CString]) -> Pointers {
        Pointers(words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect())
    }
}

impl Image {
    /// `None` where there is a zero byte in a word, which `Command` itself refuses.
    fn new(command: &Command, name: &OsStr) -> Option<Image> {
        let word = |word: &OsStr| CString::new(word.as_bytes()).ok();
        let arguments: Vec<CString> =
            std::iter::once(name).chain(command.get_args()).map(word).collect::<Option<_>>()?;
        let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let variable = |(name, value): (&OsStr, &OsStr)| {
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        };
        let environment: Vec<CString> = set.map(variable).collect::<Option<_>>()?;
        Some(Image {
            program: word(command.get_program())?,
            arguments: Pointers::new(&arguments),
            environment: Pointers::new(&environment),
            _words: [arguments, environment],
        })
    }

    /// Becomes the program; why it has not.
    fn execute(&self) -> io::Error {
        // SAFETY: all are terminated strings, and both rows end with a null pointer.
        unsafe {
            libc::execve(self.program.as_ptr(), self.arguments.0.as_ptr(), self.environment.0.as_ptr())
        };
        io::Error::last_os_error()
    }
}

fn cpu_set(cpus: &[usize]) -> Option<libc::cpu_set_t> {
    // SAFETY: all-zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus.iter().filter(|cpu| **cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the index is below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    (!cpus.is_empty()).then_some(set)
}

/// The CPUs that this process may run on, in ascending order.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: all-zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is writable and of the size given.
    check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) })?;
    // SAFETY: the index is below CPU_SETSIZE.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect())
}

/// The CPUs of this host that are in operation, whether this process may use them or not.
pub fn online_cpus() -> usize {
    // SAFETY: touches no memory.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}

/// A limit of open files.
#[derive(Clone, Copy)]
pub struct OpenFiles(libc::rlimit);

impl std::fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} of at most {}", self.0.rlim_cur, self.0.rlim_max)
    }
}

impl OpenFiles {
    /// The limit in force.
    pub fn current() -> io::Result<OpenFiles> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is writable.
        check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
        Ok(OpenFiles(limit))
    }

    /// Makes room for `needed` descriptors in this process if the limit is lower;
    /// the error names the remedy.
    pub fn reserve(&self, needed: u64) -> Result<(), String> {
        if self.0.rlim_cur >= needed {
            return Ok(());
        }
        let remedy = || {
            format!(
                "the limit of open files is {} here and this job needs {needed}: raise it with 'ulimit -Hn' \
                 (or LimitNOFILE=, limits.conf) or start fewer ranks",
                self.0.rlim_max
            )
        };
        if self.0.rlim_max < needed {
            return Err(remedy());
        }
        let raised = libc::rlimit { rlim_cur: needed, rlim_max: self.0.rlim_max };
        // SAFETY: `raised` is a valid limit.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) }).map(drop).map_err(|_| remedy())
    }
}

/// Starts a process that runs `body` and then ends. It is a copy of this one, so this one must
/// have a single thread.
pub fn fork(body: impl FnOnce()) -> io::Result<i32> {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count).unwrap_or(1);
    assert_eq!(threads, 1, "fork would copy the locks of other threads but not the threads");
    // SAFETY: there is one thread, so the child may do whatever the parent may do.
    match check(unsafe { libc::fork() })? {
        0 => {
            body();
            // SAFETY: ends the child without running what the parent registered for its own exit.
            unsafe { libc::_exit(0) }
        }
        pid => Ok(pid),
    }
}

/// Takes this process out of its session, so that no terminal signal reaches it, blocks all other
/// signals that can be blocked, gives it the `name` that tools show, and points its standard
/// descriptors at /dev/null.
pub fn detach(name: &std::ffi::CStr) -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    // SAFETY: no memory is touched but `name`, which is a C string and copied; the descriptors
    // replaced are those of the standard streams, which stay open.
    unsafe {
        libc::setsid();
        Mask::full().apply()?;
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        for fd in 0..=2 {
            check(libc::dup2(null.as_raw_fd(), fd))?;
        }
    }
    Ok(())
}
