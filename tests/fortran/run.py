#!/usr/bin/env python3
"""Builds and runs the Fortran programs of this directory with every Fortran compiler that is found, on several
numbers of ranks. A program may have a part in C, of the same name. One that has a text of its name ends with an error that
says each line of that. Some are compiled as each standard of Fortran that the compiler knows, too. Where there is no compiler
all are skipped, unless TERN_TEST_REQUIRE names `fortran` (a list of words).

usage: run.py [--mpi PREFIX] [--np 1,2,4] [PATTERN…]
"""

import argparse
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TIMEOUT_S = 60
# Of those before it that Debian has, none compiles a call of mpi_f08 that has a buffer (docs/fortran.md).
OLDEST_FLANG = 19
# What a program may be held to, and programs that keep to all of them: of both modules, and of mpif.h in both forms.
STANDARDS = ["f2003", "f2008", "f2018"]
STRICT = ["sizes.f90", "include_file.f", "include_file_free.f90"]


def compilers():
    """Those that are there, each once, however many names it has."""
    found = {}
    versions = {p.name: re.fullmatch(r"flang(?:-new)?-(\d+)", p.name) for p in map(pathlib.Path, glob.glob("/usr/bin/flang*-[0-9]*"))}
    for name, version in sorted(versions.items()):
        if version and int(version[1]) < OLDEST_FLANG:
            print(f"{name} is left out: it is older than flang {OLDEST_FLANG}")
    flangs = sorted(name for name, version in versions.items() if version and int(version[1]) >= OLDEST_FLANG)
    for name in ["gfortran", "flang", "flang-new", *flangs]:
        path = shutil.which(name)
        if path:
            found.setdefault(os.path.realpath(path), name)
    return list(found.values())


def run(command, cwd=None):
    try:
        done = subprocess.run([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=TIMEOUT_S)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        return 124, f"{late.stdout or ''}\nnot done after {TIMEOUT_S} s"


def lacking(prefix):
    """Procedures that the modules declare and the library has not: their linker names."""
    wanted = set()
    for module in ("mpi_f08", "mpi"):
        text = (prefix / "share" / "tern" / "fortran" / f"{module}.f90").read_text()
        text = re.sub(r"abstract interface.*?end interface", "", text, flags=re.S)
        pattern = r"^ +(?:subroutine|function) (\w+)\([^)]*\)(?:[ &\n]*bind\(C, name=\"(\w+)\"\))?"
        for name, label in re.findall(pattern, text, flags=re.M):
            wanted.add(label or f"{name.lower()}_")
    library = prefix / "lib" / "libmpi_tern_fortran.so.1"
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return len(wanted), sorted(wanted - {line.split()[-1] for line in symbols.splitlines()})


def standards(compiler, prefix, work, names):
    """How many of these programs compile as they do without an option, and what is said of the others."""
    passed, said = 0, []
    empty = pathlib.Path(work) / "empty.f90"
    empty.write_text("end program\n")
    for standard in STANDARDS:
        words = [prefix / "bin" / "mpifort", f"-fc={compiler}", f"-std={standard}", "-c", "-o", os.devnull]
        if run([*words, empty], work)[0] != 0:
            continue
        for name in names:
            code, text = run([*words, HERE / name], work)
            passed += code == 0
            if code != 0:
                said.append(f"FAILED {compiler} -std={standard} {name}: does not compile\n{text}")
    return passed, said


def as_wanted(program, code, text):
    """Whether a program has ended as it should."""
    told = program.with_suffix(".txt")
    if not told.exists():
        return code == 0
    return code not in (0, 124) and all(line in text for line in told.read_text().splitlines())


def main():
    parser = argparse.ArgumentParser(description="run the Fortran programs")
    parser.add_argument("--mpi", type=pathlib.Path, default=ROOT / "build", help="installation with bin/mpifort")
    parser.add_argument("--np", default="1,2,4", help="numbers of ranks")
    parser.add_argument("pattern", nargs="*", help="only programs whose name contains one of these")
    arguments = parser.parse_args()
    programs = sorted([*HERE.glob("*.f90"), *HERE.glob("*.f")])
    if unmatched := [word for word in arguments.pattern if not any(word in p.name for p in programs)]:
        sys.exit(f"run.py: no program has {' or '.join(unmatched)} in its name")
    programs = [p for p in programs if not arguments.pattern or any(word in p.name for word in arguments.pattern)]
    ranks = [int(n) for n in arguments.np.split(",")]
    found = compilers()
    passed = failed = 0
    if not arguments.pattern:
        wanted, missing = lacking(arguments.mpi)
        passed, failed = (0, 1) if missing or wanted < 2000 else (1, 0)
        if failed:
            print(f"FAILED of {wanted} procedures of the modules the library lacks {missing}")
    with tempfile.TemporaryDirectory() as work:
        for compiler in found:
            kept, said = standards(compiler, arguments.mpi, work, [name for name in STRICT if HERE / name in programs])
            passed, failed = passed + kept, failed + len(said)
            print("".join(said), end="")
            for program in programs:
                binary = pathlib.Path(work) / f"{program.stem}-{compiler}"
                code, text, beside = 0, "", []
                if program.with_suffix(".c").exists():
                    beside = [pathlib.Path(work) / f"{program.stem}.o"]
                    code, text = run([arguments.mpi / "bin" / "mpicc", "-Wall", "-Wextra", "-Werror", "-O1", "-c",
                                      program.with_suffix(".c"), "-o", *beside])
                if code == 0:
                    words = [arguments.mpi / "bin" / "mpifort", f"-fc={compiler}", "-g", "-O1", "-o", binary, program, *beside]
                    code, text = run(words, work)
                if code != 0:
                    print(f"FAILED {compiler} {program.name}: does not compile\n{text}")
                    failed += len(ranks)
                    continue
                for n in ranks:
                    code, text = run([arguments.mpi / "bin" / "mpiexec", "-n", n, binary])
                    if as_wanted(program, code, text):
                        passed += 1
                        continue
                    failed += 1
                    print(f"FAILED {compiler} {program.name} on {n} ranks: exit code {code}\n{text}")
    if not found and "fortran" in os.environ.get("TERN_TEST_REQUIRE", "").replace(",", " ").split():
        print("FAILED: TERN_TEST_REQUIRE names fortran, and there is no Fortran compiler")
        failed += 1
    elif not found:
        print("skipped: there is no Fortran compiler (gfortran, flang)")
    skipped = 0 if found else len(programs) * len(ranks)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
