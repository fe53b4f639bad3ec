"""Hosts on which little is permitted: the same bytes, silently, and `tern info` says what is missing."""

import re

from support import Case, Skip, run


def cases():
    for refused in ("copy", "membarrier", "copy,membarrier"):
        for ranks in (2, 5):
            yield Case(f"container refuses {refused}, {ranks} ranks", lambda tools, r=refused, n=ranks: bytes_arrive(tools, r, n))
    yield Case("TERN_SINGLE_COPY=0", lambda tools: bytes_arrive(tools, None, 3, {"TERN_SINGLE_COPY": "0"}))
    yield Case("one rank of three refuses single copy", one_refuses)
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


def one_refuses(tools):
    program = tools.program("bytes")
    good(run(tools, "-n", 1, tools.program("sandbox"), "copy", program, ":", "-n", 2, program))


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
