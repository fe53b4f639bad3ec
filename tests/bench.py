#!/usr/bin/env python3
"""The benchmarks of bench/ still compile, without warnings, and the programs in Python there still run, print what they are to print and
leave no namespace behind: one round each, as short as it can be. What comes of it as figures is of no interest here."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
sys.path.insert(0, str(ROOT / "tests" / "hang"))

from lanes import play  # noqa: E402
from support import LIMIT, Case, Failure, Outcome, Skip  # noqa: E402

# A program says by it that something is missing here.
NOT_HERE = 77
# Name, arguments in which {build} is the tree that is tested, and what must be printed: headings, and rows of tables and plots.
SHORT = ["--rounds", "1", "--seconds", "0.001"]
APPLICATION = r"^\| application {} of 4, in MPI, {} B \| us( \| [\d.e+]+){{2}} \| [-+]\d+ % \|"
HOSTS = [
    ("datagrams", ["--build", "{build}", *SHORT, "--transports", "rc,ud", "--only",
                   "latency,application CG of 4,application LU of 4,application SMG2000 of 4"],
     [r"^\| latency, 1 B \| us \| [\d.]+ \| [\d.]+ \| [-+]\d+ % \|",
      *(APPLICATION.format(kernel, size) for kernel, size in (("CG", 4096), ("LU", 4096), ("SMG2000", 16384))),
      r"^times RC's: U UD; p the paper's$", r"^latency, 1 B +.*p"]),
    ("chapter3", ["--build", "{build}", *SHORT, "--ways", "shm,rc,rput", "--only", "both ways,reuse,progress"],
     [r"^\| 1 MB \| GB/s( \| [\d.,e-]+( ~)?){2} \|$", r"^\| 0 %, 512 B \| us( \| [\d.,e-]+( ~)?){3} \|$", r"^0 %, 32 KB +.*p",
      r"^\| receiver computes, early receiver, 256 KB \| %( \| [\d.,e-]+( ~)?){3} \|$", r"^sender computes, early sender, 8 KB +.*p"]),
    ("choice", [*SHORT, "--shapes", "2x1", "--sizes", "8", "--only", "bcast,reduce", "--chosen", "{build}"],
     [r"^\| 2x1 \| bcast \| 8 \| [\d.,]+ \|", r"^\| 2x1 \| reduce \| 8 \| [\d.,]+ \|"]),
    ("loss", ["--mpiexec", "{build}/bin/mpiexec", "--mpicc", "{build}/bin/mpicc", "--rounds", "1", "--seconds", "0.2", "--loss", "0",
              "--congestion", "reno", "--transports", "rc"], [r"^\| rc reno \| [\d.]+ \|$", r"^\| socket reno \| [\d.]+ \|$"]),
]
ALONE = [("manners", [*SHORT, "--min", "64K", "--max", "64K", "--only", "touched", "{build}"], [r"^\| \| bytes \| chosen \|"])]


def compiles(tools):
    """With the flags of the C tests."""
    for source in sorted(BENCH.glob("*.c")):
        words = [tools.prefix / "bin" / "mpicc", "-std=gnu11", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-c", source,
                 "-o", tools.scratch / f"{source.stem}.o"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"{source.name} does not compile\n{done.stdout}{done.stderr}")


def namespaces():
    known = pathlib.Path("/run/netns")
    return set(os.listdir(known)) if known.exists() else set()


def runs(tools, name, arguments, printed):
    words = [sys.executable, str(BENCH / f"{name}.py"), *(word.format(build=tools.prefix) for word in arguments)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tools.scratch)
    out, err = process.communicate(timeout=LIMIT)
    if process.returncode == NOT_HERE:
        raise Skip(err.strip() or out.strip(), "namespaces")
    outcome = Outcome(words, process.returncode, out, err)
    outcome.expect(process.returncode == 0, "success")
    for pattern in printed:
        outcome.expect(re.search(pattern, out, re.MULTILINE), f"/{pattern}/")
    left = [host for host in namespaces() if str(process.pid) in host]
    outcome.expect(not left, f"no namespace left behind, not {left}")


def between(tools, *what):
    if os.geteuid() != 0 or not shutil.which("ip"):
        raise Skip("namespaces take root and iproute2", "namespaces")
    if what[0] == "loss" and not os.path.exists("/dev/net/tun"):
        raise Skip("there is no /dev/net/tun", "namespaces")
    runs(tools, *what)


def cases():
    yield Case("bench/*.c compile without warnings", compiles)
    for what in HOSTS:
        yield Case(f"bench/{what[0]}.py: one round between namespaces", lambda tools, w=what: between(tools, *w))
    for what in ALONE:
        yield Case(f"bench/{what[0]}.py: one round", lambda tools, w=what: runs(tools, *w))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", type=pathlib.Path, default=ROOT / "build", help="tree to test (build/)")
    parser.add_argument("word", nargs="*", help="only cases whose name contains one of these")
    arguments = parser.parse_args()
    wanted = [case for case in cases() if not arguments.word or any(word in case.name for word in arguments.word)]
    return play([(wanted, 1)], arguments)


if __name__ == "__main__":
    sys.exit(main())
