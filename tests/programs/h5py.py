"""HDF5 over MPI-IO, and h5py on it."""

import os

from common import Failure

DESCRIPTION = "HDF5's parallel tests (testpar) on 3 ranks; h5py's tests for MPI on 2; a file written by 4 ranks and read by 3"
VERSION = "3.16.0"
# All of its directory testpar; the last two are one test, which leaves files without closing them and looks at what is there.
TESTPAR = ("t_mpi", "t_bigio", "testphdf5", "t_cache", "t_cache_image", "t_pread", "t_pshutdown", "t_prestart", "t_init_term",
           "t_shapesame", "t_filters_parallel", "t_pflush1", "t_pflush2")
# What they say at their end, where all is well; what has failed t_bigio says, but not at its end.
ENDS = r"(?i)(no errors|no failures|finished successfully|passed|Dataset4 with Point selection)"
FAILURES = ("***FAIL", "FAILED", "verify failed", "MPI_Allreduce() failed")
PROGRAM = """
import sys
import numpy
import h5py
from mpi4py import MPI

world = MPI.COMM_WORLD
rows = 12
def row(of):
    return numpy.arange(of * 1000, of * 1000 + 1000, dtype="f8")

if sys.argv[1] == "write":
    with h5py.File("rows.h5", "w", driver="mpio", comm=world) as file:
        whole = file.create_dataset("whole", (rows, 1000), dtype="f8")
        chunks = file.create_dataset("chunks", (rows, 1000), dtype="f8", chunks=(1, 100))
        file.attrs["ranks"] = world.size
        for at in range(world.rank, rows, world.size):
            with whole.collective:
                whole[at, :] = row(at)
            chunks[at, ::2] = row(at)[::2]
else:
    with h5py.File("rows.h5", "r", driver="mpio", comm=world) as file:
        assert file.attrs["ranks"] == 4
        with file["whole"].collective:
            assert (file["whole"][:, world.rank::world.size] == numpy.array([row(at) for at in range(rows)])[:, world.rank::world.size]).all()
        for at in range(rows):
            assert (file["chunks"][at, ::2] == row(at)[::2]).all() and not file["chunks"][at, 1::2].any()
world.Barrier()
if world.rank == 0:
    print(sys.argv[1], "done by", world.size)
"""


def library(place):
    tree, prefix = place.debian_source("hdf5"), place.work / "hdf5"
    facts = (place.versions["hdf5"], place.prefix)
    if not place.done("hdf5", *facts):
        # Debian's own names for several libraries beside each other are not wanted.
        place.build("./configure", f"--prefix={prefix}", "--enable-parallel", "--disable-static", "--disable-tools",
                    "--enable-build-mode=production", "CC=mpicc", "CFLAGS=-O0 -w", "RUNPARALLEL=mpiexec -n 3", cwd=tree)
        for part in ("src", "hl/src"):
            place.build("make", "install", cwd=tree / part)
        place.build("make", "libh5test.la", cwd=tree / "test")
        place.mark("hdf5", *facts)
    place.build("make", *TESTPAR, cwd=tree / "testpar")
    return tree, prefix


def check(place):
    tree, prefix = library(place)
    for program in TESTPAR:
        # The first of the two leaves without MPI_Finalize, which is an error.
        accept = range(256) if program == "t_pflush1" else (0,)
        said = place.mpiexec(3, f"./{program}", cwd=tree / "testpar", timeout=1200, accept=accept)
        if any(failure in said for failure in FAILURES):
            raise Failure(f"{program}: {said}")
        place.expect(f"HDF5's {program}", said, ENDS)
    place.told = [f"HDF5's {', '.join(TESTPAR)}"]
    python = place.venv("numpy==2.4.6", "cython==3.3.1", "pkgconfig", "setuptools>=77", "wheel", "pytest", "pytest-mpi")
    if not place.done("h5py", VERSION, place.prefix):
        place.build(python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-binary", "h5py",
                    f"h5py=={VERSION}", CC="mpicc", HDF5_MPI="ON", HDF5_DIR=str(prefix), CFLAGS="-O0 -g0 -w")
        place.mark("h5py", VERSION, place.prefix)
    place.python_version(python, "h5py", "mpi4py")
    libraries = {"LD_LIBRARY_PATH": str(prefix / "lib")}
    # It wants to be refused a file that may only be read, which root is not.
    without = ("-k", "not test_append_permissions") if os.geteuid() == 0 else ()
    said = place.mpiexec(2, python, "-m", "pytest", "-q", "--with-mpi", "--only-mpi", *without, "--pyargs", "h5py", **libraries)
    place.expect("h5py's tests for MPI on 2", said, r"^\d+ passed")
    (place.work / "rows.py").write_text(PROGRAM)
    said = place.mpiexec(4, python, "rows.py", "write", **libraries) + place.mpiexec(3, python, "rows.py", "read", **libraries)
    place.expect("written by 4 ranks, read by 3", said, r"^write done by 4$", r"^read done by 3$")
