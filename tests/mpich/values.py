#!/usr/bin/env python3
"""Compares the values of MPICH's ABI in crates/abi/src/layout/mpich with MPICH's own header.

A program of static assertions is made of the tables there and compiled by MPICH's mpicc.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LAYOUT = ROOT / "crates" / "abi" / "src" / "layout" / "mpich"
OTHERS = {
    "MPI_ANY_SOURCE": -2, "MPI_PROC_NULL": -1, "MPI_ROOT": -3, "MPI_ANY_TAG": -1, "MPI_UNDEFINED": -32766,
    "MPI_MAX_ERROR_STRING": 512, "MPI_MAX_OBJECT_NAME": 128, "MPI_MAX_DATAREP_STRING": 128,
    "MPI_MAX_LIBRARY_VERSION_STRING": 8192, "sizeof(MPI_Status)": 20, "offsetof(MPI_Status, MPI_SOURCE)": 8,
    "offsetof(MPI_Status, MPI_TAG)": 12, "offsetof(MPI_Status, MPI_ERROR)": 16, "sizeof(MPI_File)": 8,
    "(long)MPI_IN_PLACE": -1, "(long)MPI_BUFFER_AUTOMATIC": -2, "(long)MPI_BOTTOM": 0, "(long)MPI_STATUS_IGNORE": 1,
    "(long)MPI_STATUSES_IGNORE": 1, "(long)MPI_ERRCODES_IGNORE": 0, "(long)MPI_ARGV_NULL": 0, "(long)MPI_FILE_NULL": 0,
}


def values():
    """(expression, value), from the tables and from what has no row."""
    constants = (LAYOUT / "constants.rs").read_text(encoding="utf-8")
    for name, value in re.findall(r'\("(MPI_\w+)", -?\w+, (-?\w+)\)', constants):
        yield name, int(value, 0)
    handles = (LAYOUT / "names.rs").read_text(encoding="utf-8")
    for name, value in re.findall(r'\("(MPI_\w+)", (0x\w+)\)', handles):
        yield f"(unsigned){name}", int(value.replace("_", ""), 0)
    for name, value in re.findall(r"pub const (MAX_\w+): usize = (\d+);", (LAYOUT / "mod.rs").read_text(encoding="utf-8")):
        yield f"MPI_{name}", int(value)
    yield from OTHERS.items()


def main():
    parser = argparse.ArgumentParser(description="compare the values of MPICH's ABI with its header")
    parser.add_argument("mpicc", help="MPICH's compiler wrapper")
    mpicc = parser.parse_args().mpicc
    found = list(values())
    if len(found) < 250:
        sys.exit(f"values.py: only {len(found)} values found in {LAYOUT}: have the tables moved?")
    lines = [f'_Static_assert(({name}) == {value}, "{name.replace(chr(34), "")}");' for name, value in found]
    program = "#include <mpi.h>\n#include <stddef.h>\n" + "\n".join(lines) + "\n"
    done = subprocess.run([mpicc, "-std=gnu11", "-fsyntax-only", "-x", "c", "-"], input=program, text=True,
                          capture_output=True)
    if done.returncode != 0:
        print("\n".join(line for line in done.stderr.splitlines() if "error" in line))
        return 1
    print(f"{len(found)} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
