"""ScaLAPACK's own tests, as Debian has built them with MPICH: Fortran and C of others on `mpiexec --abi mpich`."""

import re

from common import Failure

DESCRIPTION = ("Debian's build for MPICH, by --abi mpich on 4 ranks: tests of LU, Cholesky, QR, eigenvalues, "
               "singular values, PBLAS 1 to 3 in double precision, and of the BLACS")
PACKAGES = ("libscalapack-mpich2.2", "scalapack-mpi-test", "scalapack-test-common", "libblas3", "liblapack3")
SOLVERS = ("xdlu", "xdllt", "xdqr", "xdsep")
PBLAS = ("dpb1tst", "dpb2tst", "dpb3tst")


def check(place):
    usr = place.debian_packages(*PACKAGES)
    place.versions["scalapack"] = place.debian_version("libscalapack-mpich2.2")
    libraries = usr / "lib" / place.triplet()
    tests = libraries / "scalapack" / "mpich-tests"
    found = ":".join(str(path) for path in (libraries, libraries / "blas", libraries / "lapack"))

    def run(program, folder, **more):
        return place.run("mpiexec", "--abi", "mpich", "-n", 4, f"./{program}", cwd=folder, timeout=1800, LD_LIBRARY_PATH=found,
                         **more)

    for program in SOLVERS:
        said = run(program, tests)
        failed = re.findall(r"^ +(\d+) tests completed and failed", said, flags=re.M)
        if failed != ["0"]:
            raise Failure(f"{program}: failed {failed}\n{said[-3000:]}")
        place.expect(program, said, r"^ +[1-9]\d* tests completed and passed")
    # It says of each test what has come of it, and counts none.
    said = run("xdsvd", tests)
    outcomes = re.findall(r"^(Passed|Failed)\b", said, flags=re.M)
    if not outcomes or "Failed" in outcomes:
        raise Failure(f"xdsvd: {outcomes}\n{said[-3000:]}")
    place.expect("xdsvd", said, r"End of tests")
    for program in PBLAS:
        said = run(program, tests / "PBLAS")
        if re.search(r"check: \w+ +FAILED", said):
            raise Failure(f"{program}: {said[-3000:]}")
        place.expect(program, said, r"check: PD\w+ +PASSED", r"End of Tests")
    # The last of its tests ends the job, as it should.
    said = run("xFbtest", tests / "BLACS", accept=(255,))
    results = re.findall(r"^.* TESTS; +\d+ PASSED, +\d+ SKIPPED, +(\d+) FAILED", said, flags=re.M)
    if len(results) < 20 or set(results) != {"0"}:
        raise Failure(f"xFbtest: {results}\n{said[-3000:]}")
    place.expect("BLACS", said, r"MPI_Abort was called with code -1")
