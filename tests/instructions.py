#!/usr/bin/env python3
"""Counts the instructions of a small message, by valgrind: the same in every run.

MPI_Send and MPI_Recv of 8 bytes from a rank to itself, rounds of a partitioned message and persistent requests; two runs of different length are
subtracted, so that neither start nor end counts. More than the ceiling below is a failure.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Instructions per message of the release build, the functions they call included. Lower a ceiling
# when the count has fallen for good; raise it only with the reason in the commit.
CEILING = {"messages": {"MPI_Send": 164, "MPI_Recv": 196},
           "partitions": {"MPI_Startall": 680, "MPI_Pready": 1300, "MPI_Waitall": 1480},
           "persistent": {"MPI_Start": 550, "MPI_Wait": 590}, "nothing": {"MPI_Start": 41, "MPI_Wait": 36}}
UNIT = {"messages": "message of 8 bytes", "partitions": "round of 16 partitions",
        "persistent": "persistent send and receive of 8 bytes", "nothing": "persistent collective of nothing"}
FEW, MANY = 1000, 3000


def profile(program, count, what, folder):
    """Instructions inside each MPI function, all it calls included."""
    out = pathlib.Path(folder) / f"out.{count}"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, str(count), what]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"instructions.py: {' '.join(map(str, command))}: {run.stderr[-2000:]}")
    # Annotate prints «total (percent) file:function»; the inclusive cost needs the option.
    command = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(out)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    costs = {}
    for line in text.splitlines():
        if match := re.match(r"\s*([\d,]+)(?: \([ \d.]+%\))?\s+\S*:(?:P?(MPI_(?:Send|Recv|Start|Startall|Pready|Wait|Waitall)))\b", line):
            costs.setdefault(match[2], int(match[1].replace(",", "")))
    return costs


def compare(what, ceilings, few, many):
    """How many functions take more than they may."""
    failed = 0
    for function, ceiling in ceilings.items():
        if function not in few or function not in many:
            print(f"{function}: not found in the profile")
            failed += 1
            continue
        count = (many[function] - few[function]) / (MANY - FEW)
        verdict = "ok" if count <= ceiling else "TOO MANY"
        failed += count > ceiling
        print(f"{function}: {count:.1f} instructions per {UNIT[what]}, ceiling {ceiling}: {verdict}")
    return failed


def main():
    prefix = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"
    if not shutil.which("valgrind") or not shutil.which("callgrind_annotate"):
        print("instructions.py: valgrind is missing\n0 passed, 0 failed, 1 skipped")
        return 0
    total, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "instructions"
        subprocess.run([prefix / "bin" / "mpicc", "-O2", "-o", program, ROOT / "tests" / "instructions.c"], check=True)
        for what, ceilings in CEILING.items():
            total += len(ceilings)
            failed += compare(what, ceilings, *(profile(program, count, what, folder) for count in (FEW, MANY)))
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
