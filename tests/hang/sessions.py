"""Jobs that begin with sessions: who waits for whom, under which launcher, and what becomes of those who wait for one that does not come."""

import itertools
import os
import re
import signal

from deaths import nothing_left, processes
from hangs import LONG, ask_until, is_told
from hosts import namespaces
from sites import hydra, hydra_words, mpirun, prterun
from support import Case, segments, run

RANKS = 3
# No job is to find what another has left.
NUMBERS = itertools.count()


def mpiexec(tools):
    return [tools.mpiexec]


def by_hydra(tools):
    return [hydra(tools)]


LAUNCHERS = {"mpiexec": mpiexec, "Hydra": by_hydra, "mpirun of Open MPI": mpirun, "prterun": prterun}


def cases():
    for name, launcher in LAUNCHERS.items():
        yield Case(f"sessions: one rank is elsewhere, under {name}", lambda tools, l=launcher: elsewhere(tools, l(tools)))
    # Hydra (MPICH 5.0) leaves some of a hundred such jobs standing, as many before ranks met each other in a thread.
    yield Case("sessions: MPI_Abort where nobody else has come, under mpiexec",
               lambda tools: aborted(tools, mpiexec(tools), "abort-alone"))
    # mpirun and prterun (Open MPI 5.0.11) lock themselves up, or crash, in one of thirty jobs whose ranks they end within a fence
    # (PMIx_server_deregister_client waits for a thread that waits for it).
    yield Case("sessions: MPI_Abort by who is elsewhere, under mpiexec", lambda tools: aborted(tools, mpiexec(tools), "abort"))
    # One of twenty Hydras on busy cores dies of SIGPIPE or of an assertion when the ranks that it ends are speaking to it.
    yield Case("sessions: MPI_Abort by who is elsewhere, others wait, under Hydra",
               lambda tools: aborted(tools, by_hydra(tools), "abort-late"))
    yield Case("sessions: one rank is elsewhere, Hydra, two namespaces", between)
    yield Case("sessions: exit code 3 while others wait", lambda tools: ended(tools, 3, 3))
    yield Case("sessions: exit code 0 while others wait", lambda tools: ended(tools, 0, 1))
    yield Case("sessions: a report of who waits for one that does not come", reported)
    yield Case("sessions: death by SIGKILL while others wait", killed)


def elsewhere(tools, launcher):
    for then in ["all", "init", "ends"]:
        word = tools.scratch / f"word-{next(NUMBERS)}"
        outcome = run(tools, "-n", RANKS, tools.program("elsewhere", "../c/session"), then, word, launcher=launcher)
        outcome.expect(outcome.code == 0 and "test passed" in outcome.out, f"the end, then {then}")


def between(tools):
    with namespaces(tools) as (hosts, inside, _):
        elsewhere(tools, [*inside[:-1], hydra(tools), *hydra_words(tools, hosts[1])])


def start(tools, how, code, launcher=None):
    """A job whose first process does something else than the others."""
    mark = tools.scratch / f"first-{next(NUMBERS)}"
    return tools.job("-n", RANKS, tools.program("sessions"), how, mark, code, launcher=launcher)


def aborted(tools, launcher, how):
    """Also with code 0, which a launcher may take for a good end if it is not told. Others than mpiexec remove no shared memory of
    ranks that they kill while these meet, so its name may stay."""
    for code in (42, 0):
        before = segments()
        with start(tools, how, code, launcher) as job:
            outcome = job.end()
            pids = processes(job)
        outcome.expect_message(f"MPI_Abort was called with code {code}")
        if code:
            outcome.expect(outcome.code == code, f"exit code {code}")
        nothing_left(before if launcher[0] == tools.mpiexec else segments(), pids.values())


def ended(tools, code, expected):
    before = segments()
    with start(tools, "exit", code) as job:
        outcome = job.end()
        pids = processes(job)
    outcome.expect(outcome.code == expected, f"exit code {expected}")
    outcome.expect_message(f"exited with code {code} without MPI_Finalize")
    nothing_left(before, pids.values())


def killed(tools):
    before = segments()
    with start(tools, "", 0) as job:
        job.wait_for("all ranks", lambda: len(processes(job)) == RANKS)
        pids = processes(job)
        os.kill(pids[1], signal.SIGKILL)
        outcome = job.end()
    outcome.expect(outcome.code == 128 + signal.SIGKILL, "exit code 137")
    lines = [line for line in outcome.err.splitlines() if line.strip()]
    outcome.expect(len(lines) == 1 and re.search(r"rank 1 .* was killed by signal 9", lines[0]), "one line that says so")
    nothing_left(before, pids.values())


def reported(tools):
    with start(tools, "absent", 0) as job:
        job.wait_for("the others", lambda: len(processes(job)) == RANKS - 1)
        says = [rf"ranks? .* waits? in MPI_Comm_create_from_group{LONG}", r"rank \d is before MPI_Init or after MPI_Finalize"]
        ask_until(job, f"a report with {says}", lambda report: is_told(report, says, ["is not waiting in MPI"]))
