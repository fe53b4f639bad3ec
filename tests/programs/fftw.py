"""FFTW's transforms over MPI: its own programs compare with known transforms."""

import re

DESCRIPTION = "its mpi-bench --verify: complex, real and real-to-real transforms of 1 to 4 dimensions, in and out of place, on 1 to 4 ranks"


def check(place):
    tree = place.debian_source("fftw3")
    facts = (place.versions["fftw3"], place.prefix)
    if not place.done("fftw", *facts):
        place.build("./configure", "--enable-mpi", "--disable-fortran", "--disable-shared", "--enable-static", "MPICC=mpicc",
                    "CFLAGS=-O1", cwd=tree)
        place.build("make", cwd=tree)
        place.mark("fftw", *facts)
    place.build("make", "mpi-bench", cwd=tree / "mpi")
    # Sizes that divide among the ranks and such that do not; complex, real, in and out of place, transposed.
    for ranks in (1, 2, 3, 4):
        for problem in ("ocf1024", "icb1000", "ocf12x13", "irf32x20", "orb8x9x10", "icf6x7x8x9", "ok16e00x12e01"):
            said = place.mpiexec(ranks, "./mpi-bench", "--verbose=1", "--verify", problem, cwd=tree / "mpi")
            errors = [float(word) for word in re.findall(r" ([\d.e+-]+)", said)]
            is_right = len(errors) == 3 and max(errors) < 1e-10
            place.expect(f"{problem} on {ranks}", f"{said}\n{'right' if is_right else 'wrong'}", "^right$")
    place.told = ["28 transforms verified on 1, 2, 3 and 4 ranks"]
