"""Cases that run beside each other, in lanes, because they wait most of their time."""

import multiprocessing
import pathlib
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from require import is_required  # noqa: E402
from support import Failure, Skip, Tools  # noqa: E402


def play(lanes, arguments):
    """Runs all lanes at once, so many of the cases of each at a time; the exit code. A lane is its cases and that number."""
    # Each in a process of its own: what a case makes is named after that.
    fork = multiprocessing.get_context("fork")
    counts = fork.SimpleQueue()
    workers = []
    for cases, at_once in lanes:
        taken = fork.Value("i", 0)
        workers += [fork.Process(target=run, args=(arguments, cases, taken, counts)) for _ in range(min(at_once, len(cases)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    passed, failed, skipped = 0, 0, 0
    for worker in workers:
        good, bad, left = counts.get() if worker.exitcode == 0 else (0, 1, 0)
        passed, failed, skipped = passed + good, failed + bad, skipped + left
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def run(arguments, cases, taken, counts):
    """One case after the other that nobody else has taken; puts how many passed, failed and were skipped."""
    passed, failed, skipped = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="tern-hang-") as scratch:
        tools = Tools(arguments.mpi, getattr(arguments, "hydra", None), getattr(arguments, "openmpi", None), scratch)
        for case in untaken(cases, taken):
            begun = time.monotonic()
            try:
                case.run(tools)
                passed += 1
                print(f"ok      {case.name} ({time.monotonic() - begun:.0f} s)", flush=True)
            except Skip as reason:
                if is_required(reason.wanting):
                    failed += 1
                    print(f"FAILED  {case.name}: TERN_TEST_REQUIRE names {reason.wanting}: {reason}", flush=True)
                    continue
                skipped += 1
                print(f"skipped {case.name}: {reason}", flush=True)
            except Failure as failure:
                failed += 1
                print(f"FAILED  {case.name} ({time.monotonic() - begun:.0f} s): {failure}", flush=True)
            except Exception:
                failed += 1
                print(f"FAILED  {case.name}: {traceback.format_exc()}", flush=True)
    counts.put((passed, failed, skipped))


def untaken(cases, taken):
    while True:
        with taken.get_lock():
            index = taken.value
            taken.value += 1
        if index >= len(cases):
            return
        yield cases[index]
