"""Jobs on two hosts that network namespaces stand for: half of the ranks in each (scripts/hosts.sh)."""

import pathlib
import subprocess

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "scripts" / "hosts.sh"
LINKS = SCRIPT.parent.parent / "build" / "links"
NOT_HERE = 77


def command(mpiexec, ranks, *words):
    """What starts `ranks` ranks of `words`; what they find out of these hosts is nothing for jobs of others."""
    return [str(word) for word in ("env", f"TERN_LINKS={LINKS}", SCRIPT, "run", 2, mpiexec, ranks, *words)]


def lacking(mpiexec):
    """Why namespaces cannot be made here, or None."""
    done = subprocess.run(command(mpiexec, 2, "true"), capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == NOT_HERE else None
