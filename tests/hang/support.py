"""What the cases share: programs, jobs that are watched, and what is left behind."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
# Only a job that never ends comes near it, whatever else the machine does.
LIMIT = 120


class Failure(Exception):
    """The case failed; the text says what was expected and what was found."""


class Skip(Exception):
    """The case cannot be tried here; the text says why. It is a failure where TERN_TEST_REQUIRE names what is wanting."""

    def __init__(self, why, wanting=None):
        super().__init__(why)
        self.wanting = wanting


class Case:
    """A name and what to do with the tools; a long one waits for most of a minute, and others show much of the same."""

    def __init__(self, name, action, is_long=False):
        self.name, self.run, self.is_long = name, action, is_long


class Tools:
    """The library under test and the programs built with it."""

    def __init__(self, prefix, hydra, openmpi, scratch):
        self.prefix = pathlib.Path(prefix).resolve()
        self.scratch = pathlib.Path(scratch)
        self.mpiexec = self.prefix / "bin" / "mpiexec"
        self.tern = self.prefix / "bin" / "tern"
        self.hydra = self.find_hydra(hydra)
        self.mpirun = self.find_openmpi(openmpi)
        self.built = {}

    def find_hydra(self, given):
        places = [given, HERE.parent.parent / "build" / "peers" / "mpich" / "bin" / "mpiexec.hydra"]
        places += [shutil.which("mpiexec.hydra")]
        return next((str(place) for place in places if place and pathlib.Path(place).exists()), None)

    def find_openmpi(self, given):
        places = [given, HERE.parent.parent / "build" / "peers" / "openmpi" / "bin" / "mpirun"]
        return next((str(place) for place in places if place and pathlib.Path(place).exists()), None)

    def program(self, name, folder="."):
        """The path of NAME.c of a folder, named from tests/hang, compiled."""
        if name not in self.built:
            binary = self.scratch / name
            command = [self.prefix / "bin" / "mpicc", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
            # The header of tests/c has functions that not every program needs.
            command += ["-Wno-unused-function", "-I", HERE.parent / "c"]
            command += [HERE / folder / f"{name}.c", "-o", binary]
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if done.returncode != 0:
                raise Failure(f"{name}.c does not compile\n{done.stdout}{done.stderr}")
            self.built[name] = binary
        return str(self.built[name])

    def job(self, *words, env=None, launcher=None, **more):
        """A job under Tern's mpiexec or another launcher, or a program alone (launcher=())."""
        if launcher is None:
            launcher = [self.mpiexec]
        return Job([str(word) for word in [*launcher, *words]], env or {}, **more)


class Outcome:
    """How a job ended."""

    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err

    def __str__(self):
        text = "".join(f"    {line}\n" for line in (self.out + self.err).splitlines()[-25:])
        return f"exit code {self.code}\n{text}  again: {shlex.join(self.command)}"

    def expect(self, condition, what):
        if not condition:
            raise Failure(f"expected {what}; {self}")

    def expect_message(self, *patterns):
        for pattern in patterns:
            self.expect(re.search(pattern, self.err), f"/{pattern}/ on standard error")


def heed():
    """Heeds what ends a program again: what a script starts in the background ignores it, and so would the command."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Job:
    """A running command; its output goes to files, so that nobody has to read it.

    It is a process group of this session. A session of its own would make it a group of the scheduler (`sched_autogroup`),
    and Linux 6.18 lets such groups starve beside others for up to minutes, although they could run.
    """

    def __init__(self, command, env, cwd=None, before=None, keep=()):
        def begin():
            heed()
            os.setpgid(0, 0)
            if before:
                before()

        self.command = command
        self.out, self.err = (open_scratch() for _ in range(2))
        environment = {name: value for name, value in dict(os.environ, **env).items() if value is not None}
        self.process = subprocess.Popen(
            command, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
            preexec_fn=begin, pass_fds=keep,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            # Its own processes end with it: it passes the signal on.
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.out.close()
        self.err.close()

    def read(self, stream):
        return os.pread(stream.fileno(), 1 << 24, 0).decode(errors="replace")

    def errors(self):
        return self.read(self.err)

    def printed(self):
        return self.read(self.out)

    def signal(self, number):
        self.process.send_signal(number)

    def wait_for(self, what, condition, limit=LIMIT):
        """Waits until the condition holds while the job runs."""
        end = time.monotonic() + limit
        while not condition():
            if self.process.poll() is not None and not condition():
                raise Failure(f"the job ended before {what}; {self.outcome()}")
            if time.monotonic() > end:
                raise Failure(f"no {what} in {limit} s; {self.outcome()}")
            time.sleep(0.02)

    def outcome(self):
        return Outcome(self.command, self.process.poll(), self.printed(), self.errors())

    def end(self, limit=LIMIT):
        """How it ended; a job that does not end is a failure."""
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failure(f"no end after {limit} s; {self.outcome()}") from None
        return self.outcome()


def open_scratch():
    return tempfile.TemporaryFile()


def run(tools, *words, **more):
    """Runs a job to its end."""
    with tools.job(*words, **more) as job:
        return job.end()


def private_mount(mount):
    """Words before a command that give it mounts of its own, of which nothing is left; `mount` is a command to try it with."""
    unshare = shutil.which("unshare")
    if unshare is None:
        raise Skip("there is no unshare", "namespaces")
    private = [unshare, "-m"] if os.geteuid() == 0 else [unshare, "-rm"]
    tried = subprocess.run([*private, "sh", "-c", mount], capture_output=True, text=True)
    if tried.returncode != 0:
        raise Skip(f"no private mount: {tried.stderr.strip()}", "namespaces")
    return private


def segments(directory="/dev/shm"):
    """Shared memory of jobs."""
    return {name for name in os.listdir(directory) if name.startswith("tern-")}


def nothing_shared(before):
    """Waits until the shared memory is gone that is there since `before`: that of other jobs is, as soon as their ranks have it."""
    left = segments() - before
    wait_until(f"end of the shared memory {left}", lambda: not left & segments())


def is_alive(pid):
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def wait_until(what, condition, limit=LIMIT):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"no {what} in {limit} s")
        time.sleep(0.02)
