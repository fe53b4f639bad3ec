"""A rank dies, leaves or aborts while others wait or compute: the job ends and leaves nothing behind."""

import os
import re
import signal

from support import Case, Skip, is_alive, nothing_shared, segments, wait_until

RANKS = 4
WAYS = ["recv", "barrier", "finalize", "busy", "fence", "fence-told", "start", "lock"]


def cases():
    for hydra in (False, True):
        under = "Hydra" if hydra else "mpiexec"
        for way in WAYS:
            yield Case(f"death by SIGKILL, others in {way}, under {under}",
                       lambda tools, w=way, h=hydra: killed(tools, w, h))
        yield Case(f"death by abort(), under {under}",
                   lambda tools, h=hydra: left(tools, "barrier", "crash", h, [128 + signal.SIGABRT], "SIGABRT"))
        yield Case(f"MPI_Abort, under {under}",
                   lambda tools, h=hydra: left(tools, "recv", "abort", h, [42], "MPI_Abort was called with code 42"))
        yield Case(f"exit code 3 without MPI_Finalize, under {under}",
                   lambda tools, h=hydra: left(tools, "recv", "fail", h, [3], "exited with code 3 without MPI_Finalize"))
    yield Case("exit code 0 without MPI_Finalize",
               lambda tools: left(tools, "barrier", "exit", False, [1], "exited with code 0 without MPI_Finalize"))
    yield Case("death in a long transfer", in_transfer)
    yield Case("death while a file is written leaves one that others can open", with_file)
    yield Case("death of mpiexec by SIGKILL", launcher_killed)


def launcher(tools, hydra):
    if not hydra:
        return None
    if tools.hydra is None:
        raise Skip("there is no Hydra (build/peers/mpich, mpiexec.hydra in PATH, or --hydra)", "hydra")
    return [tools.hydra]


def start(tools, hydra, *words):
    return tools.job("-n", RANKS, tools.program("death"), *words, launcher=launcher(tools, hydra))


def processes(job):
    return {int(rank): int(pid) for rank, pid in re.findall(r"rank (\d+) is process (\d+)", job.printed())}


def nothing_left(before, pids):
    wait_until("end of all processes", lambda: not any(is_alive(pid) for pid in pids))
    nothing_shared(before)


def killed(tools, way, hydra):
    before = segments()
    with start(tools, hydra, way) as job:
        job.wait_for("all ranks", lambda: len(processes(job)) == RANKS)
        pids = processes(job)
        os.kill(pids[1], signal.SIGKILL)
        outcome = job.end()
    outcome.expect(outcome.code != 0, "an exit code that says failure")
    if not hydra:
        outcome.expect(outcome.code == 128 + signal.SIGKILL, "exit code 137")
        outcome.expect_message(rf"mpiexec: rank 1 \(.*, process {pids[1]}\) was killed by signal 9 \(SIGKILL\); ending the job")
        lines = [line for line in outcome.err.splitlines() if line.strip()]
        outcome.expect(len(lines) == 1, "one line of error")
    nothing_left(before, pids.values())


def in_transfer(tools):
    """Whoever is in the middle of a copy from the dead sees it before mpiexec does, and must not be the one who says it."""
    for round in range(50):
        with tools.job("-n", 3, tools.program("death"), "transfer", 1000 + 997 * round) as job:
            outcome = job.end()
        outcome.expect(outcome.code == 128 + signal.SIGALRM, "exit code 142")
        outcome.expect_message(r"mpiexec: rank 1 \(.*\) was killed by signal 14 \(SIGALRM\); ending the job")
        lines = [line for line in outcome.err.splitlines() if line.strip()]
        outcome.expect(len(lines) == 1, "one line of error")


def with_file(tools):
    """Locks of the dead are gone, and so is their shared pointer."""
    path = tools.scratch / "written"
    with tools.job("-n", 3, tools.program("writer"), path, "write") as job:
        writing = lambda: dict(re.findall(r"rank (\d) writes, process (\d+)", job.errors()))
        job.wait_for("all ranks", lambda: len(writing()) == 3)
        os.kill(int(writing()["1"]), signal.SIGKILL)
        outcome = job.end()
    outcome.expect(outcome.code == 128 + signal.SIGKILL, "exit code 137")
    for ranks in (1, 2):
        with tools.job("-n", ranks, tools.program("writer"), path) as job:
            outcome = job.end()
        outcome.expect(outcome.code == 0 and outcome.out.count("the file is well") == ranks, "a file that can be used")
    outcome.expect(sorted(path.parent.glob(".written*")) == [], "no pointer beside it")


def left(tools, way, how, hydra, codes, says):
    before = segments()
    with start(tools, hydra, way, how) as job:
        outcome = job.end()
        pids = processes(job)
    outcome.expect(outcome.code != 0, "an exit code that says failure")
    if not hydra:
        outcome.expect(outcome.code in codes, f"exit code {codes}")
        outcome.expect_message(says)
    elif how == "abort":
        outcome.expect(outcome.code in codes, f"exit code {codes}")
        outcome.expect_message("MPI_Abort")
    nothing_left(before, pids.values())


def launcher_killed(tools):
    before = segments()
    with start(tools, False, "barrier") as job:
        job.wait_for("all ranks", lambda: len(processes(job)) == RANKS)
        pids = processes(job)
        job.process.kill()
        job.end()
    nothing_left(before, pids.values())
