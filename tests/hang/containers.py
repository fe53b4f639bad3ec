"""Hosts on which little is permitted: the same bytes, silently, and `tern info` says what is missing."""

import contextlib
import os
import re
import subprocess

from support import Case, Failure, Skip, run


def cases():
    for refused in ("copy", "membarrier", "copy,membarrier"):
        for ranks in (2, 5):
            yield Case(f"container refuses {refused}, {ranks} ranks", lambda tools, r=refused, n=ranks: bytes_arrive(tools, r, n))
    yield Case("TERN_SINGLE_COPY=0", lambda tools: bytes_arrive(tools, None, 3, {"TERN_SINGLE_COPY": "0"}))
    yield Case("one rank of three refuses single copy", one_refuses)
    for way in ("read", "write", "read,write"):
        for who in ("0", "all"):
            yield Case(f"single copy ({way}) refused in the middle to {who}",
                       lambda tools, w=way, r=who: good(run(tools, "-n", 3, tools.program("refused"), w, r)))
    yield Case("only writing is refused", lambda tools: bytes_arrive(tools, "write", 3))
    yield Case("one rank of three lacks membarrier", lambda tools: one_refuses(tools, "membarrier"))
    yield Case("ranks in PID namespaces of their own", namespaces)
    yield Case("a rank waits for one in another PID namespace", namespaces_wait)
    for kib, frames in ((192, "1"), (256, "0"), (192, "0"), (24, "0")):
        yield Case(f"{kib} KiB of shared memory, TERN_SINGLE_COPY={frames}",
                   lambda tools, k=kib, f=frames: little_space(tools, k, f))
    yield Case("tern info", info)
    yield Case("tern info in a container", info_refused)
    yield Case("tern info without single copy", lambda tools: info_says(tools, r"switched off by TERN_SINGLE_COPY", {"TERN_SINGLE_COPY": "0"}))
    yield Case("tern info without a directory", lambda tools: info_says(tools, r"/nowhere cannot be used \(No such file", {"TERN_SHM_DIR": "/nowhere"}))


def good(outcome):
    if outcome.code == 77:
        raise Skip(f"no seccomp filter here: {outcome.err.strip()}")
    outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
    outcome.expect(outcome.err == "", "silence")


def bytes_arrive(tools, refused, ranks, env=None):
    sandbox = [tools.program("sandbox"), refused] if refused else []
    good(run(tools, "-n", ranks, *sandbox, tools.program("bytes"), env=env))


def one_refuses(tools, what="copy"):
    program = tools.program("bytes")
    good(run(tools, "-n", 1, tools.program("sandbox"), what, program, ":", "-n", 2, program))


def isolated():
    """Words that start a program in a PID namespace of its own, where it is not the first process."""
    words = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        raise Skip("no PID namespaces here", "namespaces")
    return [*words, "sh", "-c", '"$@"; exit $?', "sh"]


def namespaces(tools):
    program = [*isolated(), tools.program("bytes")]
    good(run(tools, "-n", 1, *program, ":", "-n", 2, *program))


def namespaces_wait(tools):
    # The process id of rank 1 names nobody where rank 0 is.
    program = [tools.program("waits"), 10]
    good(run(tools, "-n", 1, *isolated(), *program, ":", "-n", 1, *program))


@contextlib.contextmanager
def small(tools, kib):
    """A file system of so many KiB."""
    place = tools.scratch / "small"
    place.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k,mode=1777", "none", place], capture_output=True)
    if mounted.returncode != 0:
        raise Skip("cannot mount a small file system here", "namespaces")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def little_space(tools, kib, copy):
    """The bytes arrive, slowly maybe, or the job ends and says what is missing."""
    with small(tools, kib) as place:
        env = {"TERN_SHM_DIR": str(place), "TERN_SINGLE_COPY": copy}
        outcome = run(tools, "-n", 3, tools.program("bytes"), env=env)
        if outcome.code == 0:
            good(outcome)
        else:
            outcome.expect_message(rf"no space for shared memory in {place}.*TERN_SHM_DIR")
        if kib >= 192:
            outcome.expect(outcome.code == 0, "enough for rings and a block for each")
        if os.listdir(place):
            raise Failure(f"{os.listdir(place)} is left in {place}")


def info_says(tools, says, env=None, launcher=()):
    outcome = run(tools, tools.tern, "info", launcher=launcher, env=env)
    if outcome.code == 77:
        raise Skip(f"no seccomp filter here: {outcome.err.strip()}")
    outcome.expect(outcome.code == 0 and re.search(says, outcome.out), f"/{says}/ on standard output")
    return outcome


def info(tools):
    outcome = info_says(tools, r"(?s)Devices\n  shm .*single copy: .*membarrier: .*memory: /dev/shm .*cores: \d+")
    outcome.expect("TERN_EAGER_MAX=" in outcome.out, "the settings as well")


def info_refused(tools):
    says = r"(?s)single copy: not permitted, .*process_vm_readv.*membarrier: missing \(Function not implemented"
    info_says(tools, says, launcher=[tools.program("sandbox"), "copy,membarrier"])
