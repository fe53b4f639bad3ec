#!/usr/bin/env python3
"""Fortran programs built with MPICH or Open MPI run on Tern's `libmpifort.so.12` and `libmpi_mpifh.so.40`, and C programs find all
functions of MPICH in `libmpi.so.12`.

Debian's packages of that library are taken apart, not installed. Programs are compiled with its mpif.h and its module `mpi`,
linked with its libraries, and run by `mpiexec --abi`. Every procedure that its library has for them must be in Tern's. Skipped
where there is no apt, or no gfortran.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "programs"))
import common  # noqa: E402

ABI = ROOT / "tests" / "abi"
PROGRAMS = [ROOT / "tests" / "fortran" / "include_file.f", ROOT / "tests" / "fortran" / "module_mpi.f90",
            ABI / "removed.f", ABI / "ignored.f90"]
# What is called that only this library has, under names of its own.
OWN = {"mpich": [ABI / "deleted.c", ABI / "sizes.f90"], "openmpi": []}
# By ABI: packages, the library in them and its name as Tern has it, at least so many procedures, libraries to link with, and where
# mpif.h and the modules lie.
OTHERS = {
    "mpich": (("libmpich12", "libmpich-dev"), "libmpichfort.so.12", "libmpifort.so.12", 700, ("libmpichfort.so.12", "libmpich.so.12"),
              "include/{}/mpich", "mpich"),
    "openmpi": (("libopenmpi3", "libopenmpi-dev"), "libmpi_mpifh.so.40", "libmpi_mpifh.so.40", 700,
                ("libmpi_usempi_ignore_tkr.so.40", "libmpi_mpifh.so.40", "libmpi.so.40"), "lib/{}/openmpi/include", "openmpi"),
}
# What the mpif.h and the modules of MPICH 4.0 lack: MPI_SIZEOF of arrays of several dimensions, types of two functions. Open MPI's
# MPI_SIZEOF is of its own compiler, and left out.
SIZEOF = ("  call MPI_Sizeof(grid, n, ierror)\n  if (n /= 8) error stop 'MPI_Sizeof'\n", "")
LACKING = {
    "mpich": [SIZEOF,
              ("      integer op\n", "      integer op\n      integer(kind=MPI_ADDRESS_KIND) MPI_AINT_ADD, MPI_AINT_DIFF\n")],
    "openmpi": [SIZEOF],
}
# Extensions, what module mpi_f08 and its interfaces to C alone call, MPI_Sizeof of module mpi, names of compilers that append two
# underscores.
BESIDES = re.compile(r"_f08(ts)?(_large)?_$|__$|^p?mpix|^p?mpir|^p?mpi_sizeof_")


def exported(library, pattern):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = (line.split()[-1].split("@")[0] for line in listed.splitlines())
    return {name for name in names if re.fullmatch(pattern, name)}


def procedures(library):
    """What Fortran programs may call of a library."""
    return {name for name in exported(library, r"p?mpi\w*_") if not BESIDES.search(name)}


def functions(library):
    """What C programs may call of a library."""
    return exported(library, r"P?MPIX?_\w+")


def lacking(wanted, found, least):
    """What is wrong with what was found, where so many must be wanted."""
    missing = sorted(wanted - found)
    if len(wanted) < least:
        return f"only {len(wanted)} found in the other library"
    return f"lacking: {' '.join(missing)}" if missing else None


def run(*words, cwd):
    try:
        done = subprocess.run([str(word) for word in words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=60)
    except subprocess.TimeoutExpired as late:
        return f"not done after 60 s\n{late.stdout or ''}"
    return None if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout[-3000:]}"


def complaints(place, abi, usr, ranks):
    """(what was tried, what is wrong with it) of all there is to try."""
    _, theirs, ours, least, linked, include, modules = OTHERS[abi]
    libraries = usr / "lib" / place.triplet()
    own = place.prefix / "lib" / "tern" / abi
    yield "the procedures", lacking(procedures(libraries / theirs), procedures(own / ours), least)
    if abi == "mpich":
        yield "the functions", lacking(functions(libraries / "libmpich.so.12"), functions(own / "libmpi.so.12"), least)
    include = usr / include.format(place.triplet())
    modules = next((usr / "lib" / place.triplet() / "fortran").glob(f"gfortran-mod-*/{modules}"))
    with tempfile.TemporaryDirectory() as work:
        for program in PROGRAMS + OWN[abi]:
            binary, source = pathlib.Path(work) / program.stem, pathlib.Path(work) / program.name
            text = program.read_text()
            for here, there in LACKING[abi]:
                text = text.replace(here, there)
            source.write_text(text)
            wrong = run("gfortran", "-w", "-fallow-argument-mismatch", f"-I{include}", f"-I{modules}", "-o", binary, source,
                        f"-L{libraries}", *(f"-l:{name}" for name in linked), "-Wl,--allow-shlib-undefined", cwd=work)
            if wrong:
                yield f"{program.name} compiled", wrong
                continue
            for n in ranks:
                yield f"{program.name} -n {n}", run(place.prefix / "bin" / "mpiexec", "--abi", abi, "-n", n, binary, cwd=work)


def main():
    parser = argparse.ArgumentParser(description="run Fortran programs built with another library")
    parser.add_argument("abi", choices=OTHERS, help="as mpiexec --abi takes it")
    parser.add_argument("--mpi", type=pathlib.Path, default=ROOT / "build", help="installation (default: build)")
    parser.add_argument("--np", default="1,2,4", help="numbers of ranks")
    arguments = parser.parse_args()
    place = common.Place(arguments.abi, arguments.mpi)
    try:
        if not shutil.which("gfortran"):
            raise common.Skip("there is no gfortran")
        usr = place.debian_packages(*OTHERS[arguments.abi][0])
    except (common.Skip, common.Failure) as reason:
        print(f"skipped: {str(reason).splitlines()[0]}\n0 passed, 0 failed, 1 skipped")
        return 0
    passed = failed = 0
    for what, wrong in complaints(place, arguments.abi, usr, [int(n) for n in arguments.np.split(",")]):
        passed, failed = (passed, failed + 1) if wrong else (passed + 1, failed)
        print(f"{'FAILED' if wrong else 'ok    '} {what} {wrong or ''}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
