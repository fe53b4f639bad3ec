"""ROMIO's own tests of files, from Debian's source package of MPICH: those that its suite (mpich_suite.py) does not hold."""

import re
import shutil

from common import Failure, Place, say

DESCRIPTION = ("its test/*.c and *.f, which write, read back and compare: blocks of arrays, overlapping accesses in atomic mode, shared and "
               "ordered pointers, split and non-blocking accesses, hints, external32, extents and files beyond 4 GiB")
# Ranks, and what comes before the name of the file. What asks for ROMIO itself is left out: syshints reads hints from a file,
# error.c wants a certain word in the text of an error; coll_perf measures only, with a file of 14 GB.
NAMED = ("-fname",)
PROGRAMS = {
    "simple": (4, NAMED), "psimple": (4, NAMED), "async": (4, NAMED), "async-multiple": (4, NAMED), "atomicity": (8, NAMED),
    "coll_test": (4, NAMED), "split_coll": (4, NAMED), "excl": (4, NAMED), "creat_excl": (4, NAMED), "file_info": (4, NAMED),
    "noncontig": (2, NAMED), "i_noncontig": (2, NAMED), "noncontig_coll": (2, NAMED), "noncontig_coll2": (4, NAMED),
    "misc": (4, NAMED), "shared_fp": (4, NAMED), "ordered_fp": (4, NAMED), "status": (1, NAMED),
    "aggregation1": (4, ("-h", "-f")), "aggregation2": (4, ()), "hindexed": (4, ()), "types_with_zeros": (2, ()),
    "darray_read": (4, ()), "big_extents": (4, ()), "external32": (1, ()), "large_file": (1, NAMED), "large_array": (2, NAMED),
    "perf": (4, NAMED),
    "fmisc": (4, NAMED), "fcoll_test": (4, NAMED), "pfcoll_test": (4, NAMED), "fperf": (4, NAMED),
}
# These print what they found or measured, or complain.
SAYS = {"external32": r"external32 datarep is BIG ENDIAN", "large_file": r"Data read back is correct",
        "large_array": r"Process 1: data read back is correct", "perf": r"Read bandwidth", "fperf": r"Read bandwidth"}
COMPLAINT = r"(?i)error|wrong|should be|fail|found \d|abort"
# What configure puts into the sources.
FORTRAN = {"F77MPIOINC": "", "FORTRAN_MPI_OFFSET": "integer(kind=MPI_OFFSET_KIND)", "F77IARGC": "iargc()",
           "F77GETARG": "call getarg(i, str)"}


# What MPI 3.0 has removed, and the names of MPI-2's drafts: markers of bounds in a struct, which is three blocks here.
REMOVED = """
#include <mpi.h>
#define MPIO_Request MPI_Request
#define MPIO_Wait MPI_Wait
#define MPIO_Test MPI_Test
#define MPI_LB MPI_DATATYPE_NULL
#define MPI_UB MPI_DATATYPE_NULL
static inline int with_markers(int n, int *blocks, MPI_Aint *at, MPI_Datatype *types, MPI_Datatype *type)
{
    MPI_Datatype inside;
    int code;
    if (n != 3 || types[0] != MPI_LB || types[2] != MPI_UB)
        return MPI_Type_create_struct(n, blocks, at, types, type);
    code = MPI_Type_create_struct(1, blocks + 1, at + 1, types + 1, &inside);
    if (code == MPI_SUCCESS) code = MPI_Type_create_resized(inside, at[0], at[2] - at[0], type);
    if (code == MPI_SUCCESS) code = MPI_Type_free(&inside);
    return code;
}
#define MPI_Type_create_struct with_markers
"""


def build(place, source, tree):
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(source, tree)
    (tree / "removed.h").write_text(REMOVED)
    for program in PROGRAMS:
        c, fortran = tree / f"{program}.c", tree / f"{program}.f"
        for written, values in ((c, {"LL": "lld"}), (fortran, FORTRAN)):
            before = written.with_name(f"{written.name}.in")
            if before.exists():
                written.write_text(re.sub(r"@(\w+)@", lambda match, values=values: values[match[1]], before.read_text()))
        if c.exists():
            place.run("mpicc", "-O1", "-w", "-include", "removed.h", "-o", program, c.name, cwd=tree)
        else:
            place.run("mpifort", "-O1", "-w", "-fallow-argument-mismatch", "-o", program, fortran.name, cwd=tree)


def wrong(place, tree, program):
    """What it says if that is not what it should."""
    ranks, before = PROGRAMS[program]
    for left in tree.glob("file.*"):
        left.unlink()
    try:
        said = place.mpiexec(ranks, f"./{program}", *before, "file.tmp", cwd=tree, timeout=600)
    except Failure as failure:
        return str(failure)
    if program in SAYS and re.search(COMPLAINT, said):
        return said
    return None if re.search(SAYS.get(program, r"^\s*No Errors\s*$"), said, flags=re.M) else said or "it says nothing"


def check(place):
    # The sources are those of its suite.
    suite = Place("mpich_suite", place.prefix)
    source = suite.debian_source("mpich") / "src" / "mpi" / "romio" / "test"
    place.versions = suite.versions
    tree = place.work / "tests"
    facts = (place.versions["mpich"], place.prefix)
    if not place.done("tests", *facts):
        build(place, source, tree)
        place.mark("tests", *facts)
    failed = []
    for program in PROGRAMS:
        if why := wrong(place, tree, program):
            failed.append(program)
            say(f"  {program}: {why[-3000:]}")
    for left in tree.glob("file.*"):
        left.unlink()
    if failed:
        raise Failure(f"of ROMIO's tests {', '.join(failed)}")
    place.told = [f"{len(PROGRAMS)} programs"]
