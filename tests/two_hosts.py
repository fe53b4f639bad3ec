"""Jobs on two hosts that network namespaces stand for: half of the ranks in each (scripts/hosts.sh)."""

import pathlib
import subprocess

from require import is_required

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "hosts.sh"
NOT_HERE = 77


def command(mpiexec, ranks, *words):
    """What starts `ranks` ranks of `words`."""
    return [str(word) for word in (SCRIPT, "run", 2, mpiexec, ranks, *words)]


def lacking(mpiexec):
    """Why namespaces cannot be made here, or None."""
    done = subprocess.run(command(mpiexec, 2, "true"), capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == NOT_HERE else None


def without(reason, cases):
    """Says that so many cases are skipped, or one has failed where namespaces must be there; the exit code."""
    if is_required("namespaces"):
        print(f"FAILED: TERN_TEST_REQUIRE names namespaces: {reason}\n0 passed, 1 failed, {cases} skipped")
        return 1
    print(f"{reason}\n0 passed, 0 failed, {cases} skipped")
    return 0
