"""PETSc in C and Fortran, and petsc4py: their own checks."""

import re

from common import Failure

DESCRIPTION = ("`make check` (C and Fortran), a solver of the examples on 4 ranks, petsc4py's suite on 1, 2 and 3, but for test_dmstag and "
               "test_tao*, which compute for minutes, and on 3 for testMean, which takes it that 100 elements divide evenly")
VERSION = "3.26.1"
NUMPY = "numpy==2.4.6"

# It takes the mean over ranks for that of 100 elements, which is so where each rank has as many of them.
UNEVEN = {"testMean"}
# They compute for minutes, and communicate as the others do.
LEFT_OUT = ["-e", "dmstag", "-e", "tao"]


def library(place):
    tree = place.sdist("petsc", VERSION)
    if not place.done("petsc", VERSION, place.prefix):
        blas, lapack = place.lapack()
        place.build("python3", "configure", "PETSC_ARCH=tern", "--with-cc=mpicc", "--with-cxx=0", "--with-fc=mpifort",
                    "--with-mpiexec=mpiexec", "--with-debugging=0", "--with-x=0", "--with-make-np=1",
                    "COPTFLAGS=-O0 -g0", "FOPTFLAGS=-O0 -g0",
                    f"--with-blaslapack-lib=[{lapack}/liblapack.so,{blas}/libblas.so]",
                    f"LDFLAGS=-Wl,-rpath,{lapack} -Wl,-rpath,{blas}", cwd=tree)
        place.build("make", "all", f"PETSC_DIR={tree}", "PETSC_ARCH=tern", "MAKE_NP=1", cwd=tree)
        place.mark("petsc", VERSION, place.prefix)
    return tree


def python(place, tree):
    """petsc4py in a virtual environment, built against that library."""
    python = place.venv(NUMPY, "cython==3.3.1", "setuptools<81", "wheel")
    source = tree / "src" / "binding" / "petsc4py"
    if not place.done("petsc4py", VERSION, place.prefix):
        place.build(python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", source, PETSC_DIR=str(tree),
                    PETSC_ARCH="tern", CFLAGS="-O0 -g0")
        place.mark("petsc4py", VERSION, place.prefix)
    place.python_version(python, "petsc4py", "mpi4py")
    return python, source


def check(place):
    tree = library(place)
    said = place.run("make", "check", f"PETSC_DIR={tree}", "PETSC_ARCH=tern", cwd=tree, timeout=600)
    place.expect("make check", said, r"ex19 run successfully with 1 MPI process$", r"ex19 run successfully with 2 MPI processes$",
                 r"Fortran example .*ex5f run successfully", r"^Completed PETSc check examples")
    if re.search(r"Possible error|Error (while|detected)", said):
        raise Failure(f"make check: {said}")
    tutorials = tree / "src" / "ksp" / "ksp" / "tutorials"
    place.run("make", "ex2", f"PETSC_DIR={tree}", "PETSC_ARCH=tern", cwd=tutorials, timeout=600)
    said = place.mpiexec(4, "./ex2", "-m", "40", "-n", "40", "-ksp_converged_reason", cwd=tutorials)
    place.expect("ksp ex2 on 4 ranks", said, r"converged due to CONVERGED_RTOL", r"Norm of error [\d.]+e-0[2-9]|Norm of error 0\.00\d+")
    interpreter, source = python(place, tree)
    for ranks in (1, 2, 3):
        said = place.mpiexec(ranks, interpreter, "test/runtests.py", *LEFT_OUT, cwd=source, timeout=900, accept=(0, 1))
        broken = set(re.findall(r"^(?:FAIL|ERROR): (\w+) ", said, flags=re.M)) - (UNEVEN if 100 % ranks else set())
        place.expect(f"petsc4py's suite on {ranks}", f"{said}\nbroken: {sorted(broken)}", r"^broken: \[\]$", r"^Ran \d+ tests")
        place.told[-1] += f" ({re.search(r'Ran ([0-9]+) tests', said)[1]} tests)"
