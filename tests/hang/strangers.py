"""Strangers at all ports of a job that runs: they are in nobody's way, and learn and cost nothing."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys

from hosts import TRANSPORTS, namespaces
from support import HERE, Case, Failure

RANKS = 3
# What a rank may grow by: strangers have 64 places and one for each rank, with a frame each, and what is between is noise of the system's.
GROWTH = 8 << 20
# Places for strangers, and what the rank may open for itself meanwhile: a connection that a peer has earned, a question whether it is there.
PLACES = 64 + RANKS + 2 * RANKS
BOUND = 60


def cases():
    for transport in TRANSPORTS:
        yield Case(f"strangers at all ports of one host, {transport}", lambda t, x=transport: at_home(t, x))
        yield Case(f"strangers at all ports before ranks meet, {transport}", lambda t, x=transport: lost(t, x, "first"), transport in ["rd", "ud"])
        yield Case(f"strangers at all ports of a rank that computes, {transport}", lambda t, x=transport: lost(t, x, "computes"), True)
    for transport in ["rc", "hybrid"]:
        yield Case(f"strangers at all ports of two namespaces, {transport}", lambda t, x=transport: between(t, x), transport == "rc")


def lost(tools, transport, what):
    """Strangers at the ports of two ranks that have not met yet (`first`), or of which one lets nobody in for 40 s while its peer waits
    for it (`computes`)."""
    begin = tools.scratch / f"begin-{what}-{transport}"
    words = ["-n", 2, "--genv", "TERN_DEVICES", "rnic", "--genv", "TERN_TRANSPORT", transport, tools.program("lost"), what, begin]
    with tools.job(*words) as job:
        job.wait_for("both ranks to begin", lambda: job.printed().count("met") == 2)
        with scanned([], re.findall(r"^met: rank \d+, process (\d+)$", job.printed(), re.M)):
            begin.touch()
            outcome = job.end(BOUND)
    outcome.expect(outcome.code == 0 and outcome.out.count("all went well") == 2, "that all arrives")
    outcome.expect(outcome.err == "", "silence")


def at_home(tools, transport):
    words = ["-n", RANKS, "--genv", "TERN_DEVICES", "rnic"]
    visited(tools, transport, words, [])


def between(tools, transport):
    """Of the launcher and its agents, too, every port would be found."""
    with namespaces(tools) as (hosts, inside, _):
        visited(tools, transport, [*hosts, "-n", RANKS], inside[:-1])


def visited(tools, transport, words, within):
    program, stop = tools.program("bytes"), tools.scratch / f"stop-{transport}-{'between' if within else 'home'}"
    command = [*words, "--genv", "TERN_TRANSPORT", transport, program, stop]
    with tools.job(*command, launcher=[*within, tools.mpiexec]) as job:
        # By then ranks have used the memory that their messages need.
        job.wait_for("rounds", lambda: rounds(job) >= 10)
        processes = family(job.process.pid)
        ranks = [pid for pid in processes if os.readlink(f"/proc/{pid}/exe") == program]
        job.outcome().expect(len(ranks) == RANKS, f"{RANKS} ranks among {processes}")
        before = [costs(pid) for pid in ranks]
        with scanned(within, processes) as report:
            seen = rounds(job)
            # One may have been under way.
            job.wait_for("two rounds beside strangers", lambda: rounds(job) >= seen + 2)
            grown = [[now - then for now, then in zip(costs(pid), was)] for pid, was in zip(ranks, before)]
        stop.touch()
        outcome = job.end(BOUND)
    outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
    outcome.expect(outcome.err == "", "silence")
    for memory, descriptors in grown:
        outcome.expect(memory < GROWTH, f"less than {GROWTH} bytes that a rank grows by, not {memory}")
        outcome.expect(descriptors <= PLACES, f"no more than {PLACES} descriptors more, not {descriptors}")
    kinds = ["tcp"] if transport == "rc" else ["tcp", "udp"]
    met = re.findall(r"^(tcp|udp) (\d+) \S+ \d+ sent (\d+) had (\d+)$", report, re.M)
    missed = {(kind, pid) for kind in kinds for pid in ranks} - {(kind, int(pid)) for kind, pid, *_ in met}
    outcome.expect(not missed, f"ports of all ranks to be found, but {missed} in\n{report}")
    for kind, pid, sent, had in met:
        outcome.expect(int(sent) > 0 and had == "0", f"nothing for strangers to hear:\n{report}")


def rounds(job):
    return job.printed().count("a round")


def family(pid):
    """A process and all that it has started, and they in turn."""
    children = map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [pid, *(below for child in children for below in family(child))]


def costs(pid):
    """Bytes of memory, and descriptors."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) << 10, len(os.listdir(f"/proc/{pid}/fd"))


@contextlib.contextmanager
def scanned(within, processes):
    """What strangers have to say who have been at all ports, and stay for as long as this does."""
    command = [*within, sys.executable, HERE / "scan.py", *processes]
    with subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as strangers:
        try:
            report = "".join(iter(strangers.stdout.readline, ""))
            if not report.endswith("done\n"):
                raise Failure(f"the scan has failed:\n{report}")
            yield report
        finally:
            strangers.terminate()
