#!/usr/bin/env python3
"""Fortran programs built with MPICH run on Tern's `libmpifort.so.12`, and C programs find all of its functions in `libmpi.so.12`.

Debian's package of MPICH (libmpich-dev, libmpich12) is taken apart, not installed. Programs are compiled with its mpif.h
and its module `mpi`, linked with its libraries, and run by `mpiexec --abi mpich`. Every procedure that its library has for
them must be in Tern's. Skipped where there is no apt, or no gfortran.
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

PROGRAMS = [ROOT / "tests" / "fortran" / "include_file.f", ROOT / "tests" / "fortran" / "module_mpi.f90",
            ROOT / "tests" / "mpich" / "removed.f", ROOT / "tests" / "mpich" / "ignored.f90", ROOT / "tests" / "mpich" / "deleted.c",
            ROOT / "tests" / "mpich" / "sizes.f90"]
# What the mpif.h and the modules of MPICH 4.0 lack: MPI_SIZEOF of arrays of several dimensions, types of two functions.
LACKING = [
    ("      integer op\n", "      integer op\n      integer(kind=MPI_ADDRESS_KIND) MPI_AINT_ADD, MPI_AINT_DIFF\n"),
    ("  call MPI_Sizeof(grid, n, ierror)\n  if (n /= 8) error stop 'MPI_Sizeof'\n", ""),
]
# Extensions of MPICH, what module mpi_f08 and its interfaces to C alone call, names of compilers that append two underscores.
OTHERS = re.compile(r"_f08(ts)?(_large)?_$|__$|^p?mpix|^p?mpir")


def exported(library, pattern):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = (line.split()[-1].split("@")[0] for line in listed.splitlines())
    return {name for name in names if re.fullmatch(pattern, name)}


def procedures(library):
    """What Fortran programs may call of a library."""
    return {name for name in exported(library, r"p?mpi\w*_") if not OTHERS.search(name)}


def functions(library):
    """What C programs may call of a library."""
    return exported(library, r"P?MPIX?_\w+")


def lacking(wanted, found, least):
    """What is wrong with what was found, where so many must be wanted."""
    missing = sorted(wanted - found)
    if len(wanted) < least:
        return f"only {len(wanted)} found in MPICH's library"
    return f"lacking: {' '.join(missing)}" if missing else None


def run(*words, cwd):
    try:
        done = subprocess.run([str(word) for word in words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=60)
    except subprocess.TimeoutExpired as late:
        return f"not done after 60 s\n{late.stdout or ''}"
    return None if done.returncode == 0 else f"exit code {done.returncode}\n{done.stdout[-3000:]}"


def complaints(place, usr, ranks):
    """(what was tried, what is wrong with it) of all there is to try."""
    libraries = usr / "lib" / place.triplet()
    ours = place.prefix / "lib" / "tern" / "mpich"
    yield "the procedures", lacking(procedures(libraries / "libmpichfort.so.12"), procedures(ours / "libmpifort.so.12"), 700)
    yield "the functions", lacking(functions(libraries / "libmpich.so.12"), functions(ours / "libmpi.so.12"), 700)
    include = usr / "include" / place.triplet() / "mpich"
    modules = next((usr / "lib" / place.triplet() / "fortran").glob("gfortran-mod-*/mpich"))
    with tempfile.TemporaryDirectory() as work:
        for program in PROGRAMS:
            binary, source = pathlib.Path(work) / program.stem, pathlib.Path(work) / program.name
            text = program.read_text()
            for here, there in LACKING:
                text = text.replace(here, there)
            source.write_text(text)
            wrong = run("gfortran", "-w", "-fallow-argument-mismatch", f"-I{include}", f"-I{modules}", "-o", binary, source,
                        f"-L{libraries}", "-l:libmpichfort.so.12", "-l:libmpich.so.12", "-Wl,--allow-shlib-undefined", cwd=work)
            if wrong:
                yield f"{program.name} compiled", wrong
                continue
            for n in ranks:
                yield f"{program.name} -n {n}", run(place.prefix / "bin" / "mpiexec", "--abi", "mpich", "-n", n, binary, cwd=work)


def main():
    parser = argparse.ArgumentParser(description="run Fortran programs built with MPICH")
    parser.add_argument("--mpi", type=pathlib.Path, default=ROOT / "build", help="installation (default: build)")
    parser.add_argument("--np", default="1,2,4", help="numbers of ranks")
    arguments = parser.parse_args()
    place = common.Place("mpich", arguments.mpi)
    try:
        if not shutil.which("gfortran"):
            raise common.Skip("there is no gfortran")
        usr = place.debian_packages("libmpich12", "libmpich-dev")
    except (common.Skip, common.Failure) as reason:
        print(f"skipped: {str(reason).splitlines()[0]}\n0 passed, 0 failed, 1 skipped")
        return 0
    passed = failed = 0
    for what, wrong in complaints(place, usr, [int(n) for n in arguments.np.split(",")]):
        passed, failed = (passed, failed + 1) if wrong else (passed + 1, failed)
        print(f"{'FAILED' if wrong else 'ok    '} {what} {wrong or ''}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
