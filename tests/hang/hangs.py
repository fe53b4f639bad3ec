"""Programs that never end: mpiexec says who waits for whom, and why."""

import pathlib
import re
import shutil
import signal
import time

from support import Case, HERE, LIMIT, Skip, run

COMPUTES = r"it is not waiting in MPI \(it computes, or is stopped\)"
# A wait that is under way has been for some time: never "0.0 s" for ever.
LONG = r" since (?!0\.0 s)\d+\.\d s"

# Where the call was made, as far as it is known.
AT = r" at \S+(?: \(\S+\))?"

# Name, ranks, what one report must say, what it must not say.
HANGS = [
    ("cycle", 2, [
        rf"rank 0 waits in MPI_Recv\(source=1, tag=3, comm=MPI_COMM_WORLD, 4 bytes\){LONG}{AT}; rank 1 has no matching send",
        r"cycle: rank 0 → rank 1 → rank 0: both wait in MPI_Recv",
    ], ["message"]),
    ("wrong-tag", 2, [
        r"rank 1 waits in MPI_Recv\(source=0, tag=7, .*; rank 0 sends tag 6 instead: that message has arrived",
    ], []),
    ("wrong-communicator", 2, [
        r"rank 1 waits in MPI_Recv\(source=0, tag=7, comm=MPI_COMM_WORLD, .*; rank 0 sends on communicator halo instead",
        r"rank 0 waits in MPI_Recv\(source=1, tag=9, comm=an unnamed communicator of ranks 0-1 ",
    ], []),
    ("partitioned", 2, [
        r"rank 0 waits in MPI_Psend_init, 3 of 4 partitions not marked ready\(dest=1, tag=6, comm=MPI_COMM_WORLD, 40 bytes",
        r"rank 1 waits in MPI_Precv_init, 2 of 2 partitions not here\(source=0, tag=6, comm=MPI_COMM_WORLD, 40 bytes",
    ], []),
    ("peer-computes", 2, [rf"rank 1 waits in MPI_Recv\(source=0, tag=7, .*{LONG}{AT}; rank 0 has no matching send pending: {COMPUTES}"], ["cycle"]),
    ("peer-finalizes", 2, [
        r"rank 1 waits in MPI_Recv.*; rank 0 has no matching send pending: it waits in MPI_Finalize",
        r"MPI_Finalize on MPI_COMM_WORLD waits for rank 1: it waits in MPI_Recv\(source=0, tag=7",
    ], ["MPI_Barrier"]),
    ("bcast-reduce", 2, [
        rf"mismatched collectives on MPI_COMM_WORLD: rank 0 waits in MPI_Bcast\(root=1\){AT}, rank 1 waits in MPI_Reduce\(root=1\){AT}{LONG}",
    ], ["MPI_Recv", "MPI_Isend", "tag="]),
    ("bcast-allreduce", 4, [
        rf"rank 0 waits in MPI_Allreduce on MPI_COMM_WORLD{LONG}",
        r"all other members are past collective number 1 on MPI_COMM_WORLD: theirs was another one than MPI_Allreduce,",
        r"MPI_Barrier on MPI_COMM_WORLD waits for rank 0: it waits in MPI_Allreduce",
    ], ["cycle", "has left", "waits for ranks? 1"]),
    ("not-in-barrier", 4, [
        rf"ranks 0-1,3 wait in MPI_Barrier on MPI_COMM_WORLD{LONG}",
        rf"MPI_Barrier on MPI_COMM_WORLD waits for rank 2: {COMPUTES}",
    ], ["tag=", "cycle"]),
    ("one-receives", 3, [
        r"MPI_Barrier on MPI_COMM_WORLD waits for rank 1: it waits in MPI_Recv\(source=0, tag=2",
        r"cycle: rank 0 → rank 1 → rank 0: they wait in MPI_Barrier, MPI_Recv",
    ], []),
    ("ahead", 4, [
        r"rank 3 waits in MPI_Bcast\(root=0\) on MPI_COMM_WORLD",
        rf"MPI_Bcast\(root=0\) on MPI_COMM_WORLD waits for rank 2: {COMPUTES}",
        r"ranks 0-1 wait in MPI_Barrier on MPI_COMM_WORLD",
    ], ["mismatched", "cycle"]),
    ("ssend-ring", 3, [r"cycle: rank 0 → rank 1 → rank 2 → rank 0: all wait in MPI_Ssend"], []),
    ("posted", 2, [
        rf"rank 0 waits in MPI_Recv\(source=1, tag=5, .*; rank 1 has no matching send pending: {COMPUTES}",
        r"rank 0 has posted MPI_Irecv\(source=1, tag=11,",
    ], ["cycle", r"waits in MPI_Irecv"]),
    ("waitall", 3, [
        rf"rank 0 waits in MPI_Waitall{LONG}",
        r"rank 0 waits in MPI_Irecv\(source=1, tag=1,",
        rf"rank 0 waits in MPI_Irecv\(source=2, tag=2, .*rank 2 has no matching send pending: {COMPUTES}",
        r"cycle: rank 0 → rank 1 → rank 0",
    ], []),
    ("waitany", 3, [r"rank 0 waits in MPI_Waitany", r"rank 1 waits in MPI_Recv\(source=0, tag=1"], ["cycle"]),
    ("wait", 2, [rf"rank 0 waits in MPI_Wait{LONG}", r"rank 0 waits in MPI_Irecv\(source=1, tag=8, comm=MPI_COMM_WORLD, 16 bytes\)", r"cycle: "], []),
    ("probe", 2, [rf"rank 1 waits in MPI_Probe\(source=0, tag=any, comm=MPI_COMM_WORLD, .*{LONG}"], ["cycle"]),
    ("ibarrier", 3, [r"ranks 0,2 wait in MPI_Ibarrier on MPI_COMM_WORLD", rf"waits for rank 1: {COMPUTES}"], ["tag="]),
    ("dup", 2, [r"rank 1 waits in MPI_Comm_dup on MPI_COMM_WORLD", rf"waits for rank 0: {COMPUTES}"], ["MPI_Bcast"]),
    ("sendrecv", 2, [r"rank 0 waits in MPI_Sendrecv\(source=1, tag=2, .*; rank 1 sends tag 1 instead", r"cycle: .*MPI_Sendrecv"], []),
    ("large-send", 2, [r"rank 0 waits in MPI_Send\(dest=1, tag=0, comm=MPI_COMM_WORLD, 1048576 bytes\)", r"cycle: .*: both wait in MPI_Send"], []),
    ("any-source", 2, [r"rank 0 waits in MPI_Recv\(source=any, tag=any, .*; no rank has a matching send pending"], ["cycle"]),
    ("itself", 1, [r"rank 0 waits in MPI_Recv\(source=0, tag=1, comm=MPI_COMM_SELF", r"cycle: rank 0 → rank 0: it waits for itself"], []),
    ("test-loop", 2, [
        r"rank 0 has posted MPI_Irecv\(source=1, tag=3",
        r"rank 1 waits in MPI_Recv\(source=0, tag=3, .*: it is inside MPI and waits for nothing, having posted MPI_Irecv",
    ], ["cycle"]),
    ("fence", 3, [r"ranks 0,2 wait in MPI_Win_fence on window counters", rf"MPI_Win_fence on window counters waits for rank 1: {COMPUTES}"], ["cycle"]),
    ("fence-told", 3, [r"rank 0 waits in MPI_Win_fence\(rank=1, window counters\)"], ["cycle"]),
    ("free-window", 3, [
        r"ranks 0,2 wait in MPI_Win_free on window counters", rf"MPI_Win_free on window counters waits for rank 1: {COMPUTES}",
    ], ["cycle", "unnamed"]),
    ("start-without-post", 2, [
        rf"rank 0 waits in MPI_Win_start\(rank=1, window counters\){LONG}",
        r"cycle: rank 0 → rank 1 → rank 0: they wait in MPI_Win_start, MPI_Recv",
    ], []),
    ("lock-held", 2, [rf"rank 0 waits in MPI_Win_lock\(rank=0, window counters\){LONG}"], ["cycle"]),
]


def cases():
    for name, ranks, says, silent in HANGS:
        yield Case(f"hang {name}", lambda tools, n=name, r=ranks, s=says, q=silent: hang(tools, n, r, s, q))
    yield Case("hang --timeout", timeout)
    yield Case("hang MPIEXEC_TIMEOUT", timeout_by_variable)
    yield Case("hang says file and line", file_and_line)
    yield Case("hang without addr2line", no_addr2line)
    yield Case("hang SIGUSR1 lets the job go on", goes_on)


def reports(text):
    return text.split("mpiexec: state of the job:")[1:]


def is_told(report, says, silent):
    return all(re.search(p, report) for p in says) and not any(re.search(p, report) for p in silent)


def ask_until(job, what, condition):
    """Asks for reports until the last complete one is right."""
    end = time.monotonic() + LIMIT
    asked = 0
    while not any(map(condition, reports(job.errors()))):
        outcome = job.outcome()
        outcome.expect(outcome.code is None, f"a job that hangs ({what})")
        outcome.expect(time.monotonic() < end, what)
        if len(reports(outcome.err)) == asked:
            asked += 1
            job.signal(signal.SIGUSR1)
        time.sleep(0.25)


def hang(tools, name, ranks, says, silent):
    with tools.job("-n", ranks, tools.program("hang"), name) as job:
        job.wait_for("a start", lambda: has_started(job, ranks))
        ask_until(job, f"a report with {says} and without {silent}", lambda r: is_told(r, says, silent))
        job.signal(signal.SIGTERM)
        outcome = job.end()
        outcome.expect(outcome.code == 128 + signal.SIGTERM, "exit code 143")


def has_started(job, ranks):
    """mpiexec has children and has taken signals: from then on it can be asked."""
    process = pathlib.Path(f"/proc/{job.process.pid}")
    blocked = re.search(r"^SigBlk:\s*(\w+)$", (process / "status").read_text(), re.M)[1]
    children = (process / "task" / str(job.process.pid) / "children").read_text().split()
    return int(blocked, 16) >> (signal.SIGUSR1 - 1) & 1 and len(children) >= ranks


def timeout(tools):
    outcome = run(tools, "--timeout", "3", "-n", 2, tools.program("hang"), "cycle")
    outcome.expect(outcome.code == 124, "exit code 124")
    outcome.expect_message(r"the job is not done after 3 s \(--timeout\)", r"cycle: rank 0 → rank 1 → rank 0")
    outcome.expect("should not come here" not in outcome.err, "ranks that never return")


def timeout_by_variable(tools):
    outcome = run(tools, "-n", 2, tools.program("hang"), "cycle", env={"MPIEXEC_TIMEOUT": "2"})
    outcome.expect(outcome.code == 124, "exit code 124")
    outcome.expect_message(r"the job is not done after 2 s \(--timeout\)", r"cycle: rank 0 → rank 1 → rank 0")
    outcome = run(tools, "--timeout", "1", "-n", 2, tools.program("hang"), "cycle", env={"MPIEXEC_TIMEOUT": "2"})
    outcome.expect_message(r"the job is not done after 1 s")
    outcome = run(tools, "-n", 2, tools.program("hang"), "cycle", env={"MPIEXEC_TIMEOUT": "soon"})
    outcome.expect(outcome.code == 1, "exit code 1")
    outcome.expect_message(r"variable MPIEXEC_TIMEOUT needs a number of seconds above 0; 'soon' is none")


def line_of(text):
    """The line of hang.c that begins with the text."""
    lines = (HERE / "hang.c").read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if line.strip().startswith(text))


def file_and_line(tools):
    if not shutil.which("addr2line"):
        raise Skip("no addr2line")
    receive, bcast, reduce = (line_of(f"MPI_{call}(&value") for call in ("Recv", "Bcast", "Reduce"))
    outcome = run(tools, "--timeout", "2", "-n", 2, tools.program("hang"), "cycle")
    outcome.expect_message(rf"rank 1 waits in MPI_Recv\(.* at hang\.c:{receive} \(receive\);")
    outcome = run(tools, "--timeout", "2", "-n", 2, tools.program("hang"), "bcast-reduce")
    outcome.expect_message(rf"rank 0 waits in MPI_Bcast\(root=1\) at hang\.c:{bcast} .*, "
                           rf"rank 1 waits in MPI_Reduce\(root=1\) at hang\.c:{reduce} ")


def no_addr2line(tools):
    outcome = run(tools, "--timeout", "2", "-n", 2, tools.program("hang"), "cycle", env={"PATH": str(tools.scratch)})
    outcome.expect(outcome.code == 124, "exit code 124")
    outcome.expect_message(r"rank 1 waits in MPI_Recv\(.* at hang\+0x[0-9a-f]+;")


def goes_on(tools):
    file = tools.scratch / "go"
    with tools.job("-n", 3, tools.program("hang"), "slow", file) as job:
        job.wait_for("a start", lambda: has_started(job, 3))
        says = [rf"rank 1 waits in MPI_Recv\(source=0, tag=7, .* since [1-9]\d*\.\d s", r"rank 2 waits in MPI_Finalize"]
        ask_until(job, f"a report with {says}", lambda r: is_told(r, says, []))
        file.touch()
        outcome = job.end()
    outcome.expect(outcome.code == 0 and "the message came" in outcome.out, "a good end after the report")
