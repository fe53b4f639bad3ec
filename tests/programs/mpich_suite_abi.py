"""MPICH's own test suite once more, compiled with MPICH's own headers and linked with its libraries, on `mpiexec --abi mpich`.

The packages of Debian are taken apart, not installed, so wrappers stand here for those that they have. Module mpi_f08 is left
out: programs that use that of MPICH do not run on Tern (docs/mpich-abi.md).
"""

import shutil

import mpich_suite
from common import Place

DESCRIPTION = ("the suite of the line above, compiled with MPICH's own headers and linked with its libraries (Debian), run by "
               "`--abi mpich`; without mpi_f08")
WRAPPER = """#!/bin/sh
# usage: as {compiler}
link="-L{libraries} -Wl,-rpath,{run} -Wl,--allow-shlib-undefined -l:libmpichfort.so.12 -l:libmpich.so.12"
for word do
    case $word in
    -c | -S | -E | -M | -MM) link= ;;
    -show) echo {compiler} -I{include} $link; exit ;;
    esac
done
exec {compiler} -I{include} -I{modules} "$@" $link
"""
UNBUILT = {"f77/rma/aintf": mpich_suite.UNBUILT["f77/rma/aintf"]}
OTHERWISE = {
    **mpich_suite.OTHERWISE,
    "comm/cmsplit_type": mpich_suite.BEYOND, "mpi_t/qmpi_test": mpich_suite.BEYOND,
    "init/version": "wants the version of the headers, 4.0; Tern's library has 5.0, as that of MPICH 5 with the same name",
}


def wrappers(place):
    """The directory whose bin has them."""
    usr = place.debian_packages("libmpich12", "libmpich-dev")
    libraries = usr / "lib" / place.triplet()
    modules = next((usr / "lib" / place.triplet() / "fortran").glob("gfortran-mod-*/mpich"))
    stands = place.work / "mpich"
    (stands / "bin").mkdir(parents=True, exist_ok=True)
    for compiler, names in (("gcc", ["mpicc"]), ("g++", ["mpicxx"]), ("gfortran", ["mpifort", "mpif77", "mpif90"])):
        text = WRAPPER.format(compiler=compiler, libraries=libraries, run=place.prefix / "lib" / "tern" / "mpich",
                              include=usr / "include" / place.triplet() / "mpich", modules=modules)
        for name in names:
            (stands / "bin" / name).write_text(text)
            (stands / "bin" / name).chmod(0o755)
    return stands


def check(place):
    suite = Place("mpich_suite", place.prefix)
    source = suite.debian_source("mpich") / "test" / "mpi"
    place.versions = suite.versions
    stands = wrappers(place)
    tree = place.work / "tests"
    facts = (place.versions["mpich"], place.prefix)
    if not place.done("tests", *facts):
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(source, tree, symlinks=True)
        # Its headers have what MPI 3.0 has removed.
        mpich_suite.configure(place, tree, stands, "f77,f90", {})
        mpich_suite.make(place, tree, UNBUILT, has_f08=False)
        place.mark("tests", *facts)
    mpich_suite.judge(place, tree, "mpich", UNBUILT, OTHERWISE)
