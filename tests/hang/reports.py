"""Reports change nothing: whom they ask goes on as if nobody had asked, and what moves is not said to wait."""

import re
import shutil
import signal
import time

from support import Case, Skip, run, wait_until
from hangs import ask_until, has_started, is_told, reports

# A program that gets on is asked so often.
ROUNDS = 12


def cases():
    yield Case("report interrupts no system call", lambda tools: undisturbed(tools, "sleeps"))
    yield Case("report leaves SIGUSR1 to the program", lambda tools: undisturbed(tools, "default"))
    yield Case("report of a rank that executed another program", executed)
    yield Case("report in other PID namespaces", other_namespaces)
    yield Case("report after the library was unloaded", unloaded)
    for name in ("ring", "barriers"):
        yield Case(f"report of a program that gets on: {name}", lambda tools, n=name: gets_on(tools, n))
    for launcher in (None, ()):
        under = "alone" if launcher == () else "under mpiexec"
        yield Case(f"MPI_Abort with a stream that another thread reads, {under}", lambda tools, l=launcher: stream(tools, l))


def ask(job, round):
    job.signal(signal.SIGUSR1)
    job.wait_for(f"report {round}", lambda: len(reports(job.errors())) == round and job.errors().endswith("\n"))


def start(tools, ranks, name, file=None, launcher=None, before=()):
    file = [file] if file else []
    return tools.job("-n", ranks, *before, tools.program("asked"), name, *file, launcher=launcher)


def undisturbed(tools, name):
    file = tools.scratch / f"over-{name}"
    with start(tools, 3, name, file) as job:
        job.wait_for("a start", lambda: has_started(job, 3))
        # From the moment on that a rank waits in MPI, rank 0 is past MPI_Init.
        ask_until(job, "ranks that wait", lambda report: "rank 1 waits in MPI_Recv" in report)
        for round in range(ROUNDS // 3):
            asked = len(reports(job.errors()))
            ask(job, asked + 1)
        file.touch()
        outcome = job.end()
    outcome.expect(outcome.code == 0 and "a good end" in outcome.out, "a good end after the reports")


def executed(tools):
    outcome = run(tools, "--timeout", "3", "-n", 2, tools.program("asked"), "exec")
    outcome.expect(outcome.code == 124, "exit code 124")
    outcome.expect_message(r"rank 1 .* executed another program")
    # Without the time limit, who waits for it is told that it will not answer.
    outcome = run(tools, "-n", 2, tools.program("asked"), "exec")
    outcome.expect(outcome.code not in (0, 128 + signal.SIGUSR1), "an error, and no death by the report's signal")
    outcome.expect_message(r"rank 1 of MPI_COMM_WORLD has died")


def other_namespaces(tools):
    unshare = shutil.which("unshare")
    if unshare is None:
        raise Skip("there is no unshare", "namespaces")
    private = [unshare, "--pid", "--fork", "--kill-child"]
    tried = run(tools, *private, "true", launcher=())
    if tried.code != 0:
        raise Skip(f"no PID namespace: {tried.err.strip()}", "namespaces")
    says = [r"rank 0 waits in MPI_Recv", r"cycle: rank 0 → rank 1 → rank 0: both wait in MPI_Recv"]
    with tools.job("-n", 2, *private, tools.program("hang"), "cycle") as job:
        job.wait_for("a start", lambda: has_started(job, 2))
        ask_until(job, f"a report with {says}", lambda report: is_told(report, says, ["malformed"]))
        # The first process of a namespace does not heed what would end another.
        wait_until("end", lambda: interrupted(job))
        outcome = job.end()
    outcome.expect(outcome.code == 128 + signal.SIGINT, "exit code 130")


def interrupted(job):
    job.signal(signal.SIGINT)
    return job.process.poll() is not None


def unloaded(tools):
    file = tools.scratch / "over-unload"
    library = tools.prefix / "lib" / "libmpi_abi.so.1"
    with tools.job("-n", 2, tools.program("unload"), library, file) as job:
        job.wait_for("unloading", lambda: job.printed().count("unloaded") == 2)
        ask(job, 1)
        file.touch()
        outcome = job.end()
    outcome.expect(outcome.code == 0, "exit code 0")


def gets_on(tools, name):
    file = tools.scratch / f"over-{name}"
    with start(tools, 4, name, file) as job:
        job.wait_for("a start", lambda: has_started(job, 4))
        for round in range(1, ROUNDS + 1):
            ask(job, round)
            time.sleep(0.05)
        file.touch()
        outcome = job.end()
    outcome.expect(outcome.code == 0 and "a good end" in outcome.out, "a good end after the reports")
    wrong = [report for report in reports(outcome.err) if re.search("cycle|mismatched", report)]
    outcome.expect(not wrong, "no cycle, no mismatch")


def stream(tools, launcher):
    ranks = ["-n", 2] if launcher is None else []
    outcome = run(tools, *ranks, tools.program("asked"), "stream", launcher=launcher)
    outcome.expect(outcome.code == 9, "exit code 9")
    outcome.expect("the last words" in outcome.out, "what was printed before")
