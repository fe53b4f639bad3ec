#!/usr/bin/env python3
"""Compares the values of another ABI in crates/abi/src/layout with the header of the library whose ABI it is.

A program of static assertions is made of the tables there and compiled by that library's mpicc. What predefined handles of Open
MPI lead to, addresses of objects, is read from what its preprocessor makes of them.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LAYOUT = ROOT / "crates" / "abi" / "src" / "layout"
# What has no row, of both.
COMMON = {"MPI_UNDEFINED": -32766, "MPI_MAX_DATAREP_STRING": 128, "(long)MPI_BOTTOM": 0, "(long)MPI_ERRCODES_IGNORE": 0,
          "(long)MPI_ARGV_NULL": 0, "sizeof(MPI_File)": 8}
OTHERS = {
    "mpich": {
        "MPI_ANY_SOURCE": -2, "MPI_PROC_NULL": -1, "MPI_ROOT": -3, "MPI_ANY_TAG": -1, "sizeof(MPI_Status)": 20,
        "offsetof(MPI_Status, MPI_SOURCE)": 8, "offsetof(MPI_Status, MPI_TAG)": 12, "offsetof(MPI_Status, MPI_ERROR)": 16,
        "(long)MPI_IN_PLACE": -1, "(long)MPI_BUFFER_AUTOMATIC": -2, "(long)MPI_STATUS_IGNORE": 1, "(long)MPI_STATUSES_IGNORE": 1,
        "(long)MPI_FILE_NULL": 0,
    },
    "openmpi": {
        "MPI_ANY_SOURCE": -1, "MPI_PROC_NULL": -2, "MPI_ROOT": -4, "MPI_ANY_TAG": -1, "sizeof(MPI_Status)": 24,
        "offsetof(MPI_Status, MPI_SOURCE)": 0, "offsetof(MPI_Status, MPI_TAG)": 4, "offsetof(MPI_Status, MPI_ERROR)": 8,
        "offsetof(MPI_Status, _cancelled)": 12, "offsetof(MPI_Status, _ucount)": 16, "sizeof(MPI_Comm)": 8,
        "(long)MPI_IN_PLACE": 1, "(long)MPI_STATUS_IGNORE": 0, "(long)MPI_STATUSES_IGNORE": 0, "(long)MPI_UNWEIGHTED": 2,
        "(long)MPI_WEIGHTS_EMPTY": 3, "(long)MPI_T_PVAR_ALL_HANDLES": -1, "(long)MPI_T_ENUM_NULL": 0,
        "(long)MPI_T_CVAR_HANDLE_NULL": 0, "(long)MPI_CONVERSION_FN_NULL": 0,
    },
}
# Names in the tables that an Open MPI may not have: it has them with other compilers, or not in each release.
OPTIONAL = {"MPI_REAL2", "MPI_COMPLEX4", "MPI_INTEGER16", "MPI_LOGICAL16"}


def text(abi, name):
    return (LAYOUT / abi / name).read_text(encoding="utf-8")


def values(abi):
    """(expression, value), from the tables and from what has no row."""
    constants = text(abi, "constants.rs")
    own = re.search(r"OWN: &\[&str\] = &\[(.*?)\];", constants, flags=re.S)
    own = re.findall(r"MPI_\w+", own[1]) if own else []
    for name, value in re.findall(r'\("(MPI_\w+)", -?\w+, (-?\w+)\)', constants):
        if name not in own:
            yield name, int(value, 0)
    for name, value in re.findall(r'\("(MPI_\w+)", (0x\w+)\)', text(abi, "names.rs")):
        yield f"(unsigned){name}", int(value.replace("_", ""), 0)
    for name, value in re.findall(r"pub const (MAX_\w+): usize = (\d+);", text(abi, "mod.rs")):
        yield f"MPI_{name}", int(value)
    yield from (COMMON | OTHERS[abi]).items()


def wrong_values(mpicc, found):
    lines = [f'_Static_assert(({name}) == {value}, "{name.replace(chr(34), "")}");' for name, value in found]
    program = "#include <mpi.h>\n#include <stddef.h>\n" + "\n".join(lines) + "\n"
    done = subprocess.run([mpicc, "-std=gnu11", "-fsyntax-only", "-x", "c", "-"], input=program, text=True,
                          capture_output=True)
    return [] if done.returncode == 0 else [line for line in done.stderr.splitlines() if "error" in line]


def wrong_objects(mpicc, objects):
    """Predefined handles that the header makes of another object."""
    program = "#include <mpi.h>\n" + "".join(f'handle "{name}" = {name}\n' for name, _ in objects)
    done = subprocess.run([mpicc, "-std=gnu11", "-E", "-P", "-x", "c", "-"], input=program, text=True, capture_output=True, check=True)
    for name, symbol in objects:
        made = re.search(rf'handle "{name}" = (.*)', done.stdout)[1]
        if made == name and name in OPTIONAL:
            continue
        if not re.search(rf"&\s*\(?{symbol}\b", made):
            yield f"{name} is {made}, not the address of {symbol}"


def main():
    parser = argparse.ArgumentParser(description="compare the values of another ABI with the header of its library")
    parser.add_argument("abi", choices=OTHERS, help="as mpiexec --abi takes it")
    parser.add_argument("mpicc", help="that library's compiler wrapper")
    arguments = parser.parse_args()
    found = list(values(arguments.abi))
    objects = re.findall(r"^    (MPI_\w+) (ompi_\w+) -?\d+;$", text(arguments.abi, "names.rs"), flags=re.M)
    if len(found) + len(objects) < 250:
        sys.exit(f"values.py: only {len(found) + len(objects)} values found in {LAYOUT / arguments.abi}: have the tables moved?")
    wrong = [*wrong_values(arguments.mpicc, found), *wrong_objects(arguments.mpicc, objects)]
    print("\n".join([*wrong, f"{len(found) + len(objects) - len(wrong)} passed, {len(wrong)} failed"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
