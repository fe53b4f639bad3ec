#!/usr/bin/env python3
"""`make install`, the tree moved elsewhere, and programs built and run with what is there.

What is installed comes from build/; nothing is compiled anew.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of sum %d\\n", rank, sum);
    MPI_Finalize();
    return 0;
}
"""
FORTRAN_PROGRAM = """program sums
  use mpi_f08
  integer :: rank, total
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  print '(a,i0,a,i0)', 'rank ', rank, ' of sum ', total
  call MPI_Finalize()
end program
"""
FIXED_PROGRAM = """      program sums
      include 'mpif.h'
      integer rank, total, code
      call MPI_Init(code)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
      call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, code)
      print '(a,i0,a,i0)', 'rank ', rank, ' of sum ', total
      call MPI_Finalize(code)
      end
"""

EXPECTED = ["bin/mpicc", "bin/mpicxx", "bin/mpic++", "bin/mpifort", "bin/mpif90", "bin/mpif77",
            "bin/mpiexec", "bin/mpirun", "bin/tern", "include/mpi.h", "lib/libmpi_abi.so", "lib/libmpi_abi.so.1",
            "lib/pkgconfig/mpi.pc", "lib/pkgconfig/mpi-c.pc", "lib/pkgconfig/mpi-cxx.pc", "share/man/man1/mpiexec.1",
            "share/man/man1/mpicc.1", "share/man/man1/mpifort.1", "include/mpif.h", "lib/libmpi_tern_fortran.so",
            "lib/tern/mpich/libmpi.so.12", "lib/tern/mpich/libmpich.so.12",
            "lib/tern/mpich/libmpifort.so.12", "lib/tern/mpich/libmpichfort.so.12", "lib/tern/openmpi/libmpi.so.40",
            "lib/tern/openmpi/libmpi_mpifh.so.40", "lib/tern/openmpi/libmpi_usempi_ignore_tkr.so.40",
            "lib/tern/verbs/libibverbs.so.1",
            "share/tern/fortran/mpi.f90", "share/tern/fortran/mpi_f08.f90", "share/man/man7/tern.7", "share/tern/bench/bench.h"]


class Failure(Exception):
    """What was expected and what was found."""


class Skip(Exception):
    """Why a check cannot be made here."""


class Tree:
    """An installed tree that has been moved, and a directory to work in that is not beside it."""

    def __init__(self, scratch):
        self.installed = scratch / "first" / "opt" / "tern"
        self.prefix = scratch / "second place" / "mpi"
        self.work = scratch / "work"
        self.work.mkdir()
        # Nothing of the caller's may help to find anything.
        hidden = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PKG_CONFIG_PATH", "CPATH", "LIBRARY_PATH")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}

    def install(self):
        # `-o build`: what was built is taken as it is. The variables of an outer make stay outside.
        command = ["make", "-s", "-o", "build", "install", f"DESTDIR={self.installed.parent.parent}", "PREFIX=/opt/tern"]
        outside = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        done = subprocess.run(command, cwd=ROOT, env=outside, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        self.prefix.parent.mkdir()
        self.installed.rename(self.prefix)

    def run(self, *command, **environment):
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=self.work, env={**self.environment, **environment}, capture_output=True,
                              text=True, timeout=300)
        if done.returncode != 0:
            raise Failure(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def try_program(self, binary, launcher="mpiexec"):
        """Two ranks of it, with the library that has been moved and no other."""
        libraries = self.run("ldd", binary)
        if f"libmpi_abi.so.1 => {self.prefix.resolve()}" not in libraries.replace("/bin/../", "/"):
            raise Failure(f"{binary} is linked with another library:\n{libraries}")
        said = sorted(self.run(self.prefix / "bin" / launcher, "-n", 2, binary).splitlines())
        if said != ["rank 0 of sum 1", "rank 1 of sum 1"]:
            raise Failure(f"{launcher} -n 2 {binary} says {said}")


def all_is_there(tree):
    missing = [name for name in EXPECTED if not (tree.prefix / name).exists()]
    if missing:
        raise Failure(f"not installed: {missing}")
    for path in tree.prefix.rglob("*"):
        if path.is_file() and str(tree.installed.parent).encode() in path.read_bytes():
            raise Failure(f"{path.relative_to(tree.prefix)} names the place it was installed in")


def c(tree):
    (tree.work / "program.c").write_text(PROGRAM)
    tree.run(tree.prefix / "bin" / "mpicc", "-Wall", "-Werror", "program.c", "-o", "by_mpicc")
    tree.try_program(tree.work / "by_mpicc")


def cxx(tree):
    if not shutil.which(os.environ.get("CXX", "c++")):
        raise Skip("no C++ compiler")
    (tree.work / "program.cc").write_text(PROGRAM)
    tree.run(tree.prefix / "bin" / "mpicxx", "-Wall", "-Werror", "program.cc", "-o", "by_mpicxx")
    tree.try_program(tree.work / "by_mpicxx", "mpirun")


def pkg_config(tree):
    if not shutil.which("pkg-config"):
        raise Skip("no pkg-config")
    (tree.work / "program.c").write_text(PROGRAM)
    for package in ("mpi", "mpi-c", "mpi-cxx"):
        # The flags are text for a shell.
        command = f'eval "${{CC:-cc}} program.c -o by_pkg_config $(pkg-config --cflags --libs {package})"'
        tree.run("sh", "-ec", command, PKG_CONFIG_PATH=str(tree.prefix / "lib" / "pkgconfig"))
        tree.try_program(tree.work / "by_pkg_config")


def flags(tree):
    """Built with the flags that build systems ask for, in the notation of MPICH and of Open MPI."""
    (tree.work / "program.c").write_text(PROGRAM)
    mpicc = tree.prefix / "bin" / "mpicc"
    for compiling, linking in (("-compile_info", "-link_info"), ("-showme:compile", "--showme:link")):
        command = f'eval "${{CC:-cc}} $("$0" {compiling}) program.c -o by_flags $("$0" {linking})"'
        tree.run("sh", "-ec", command, mpicc)
        tree.try_program(tree.work / "by_flags")
    tree.run("sh", "-ec", 'eval "$("$0" -show program.c -o by_show)"', mpicc)
    tree.try_program(tree.work / "by_show")
    asked = {word: tree.run(mpicc, f"-showme:{word}") for word in ("incdirs", "libdirs", "libs", "command", "version")}
    prefix = tree.prefix.resolve()
    expected = {"incdirs": f'"{prefix}/include"\n', "libdirs": f'"{prefix}/lib"\n', "libs": "mpi_abi\n", "command": "cc\n"}
    wrong = {word: asked[word] for word in expected if asked[word] != expected[word]}
    if wrong or not re.search(r"Tern \d+\.\d+\.\d+", asked["version"]):
        raise Failure(f"mpicc -showme: {wrong} {asked['version']}")
    if "-compile_info" not in tree.run(mpicc, "-help"):
        raise Failure("mpicc -help does not list its options")
    refused = subprocess.run([mpicc, "-showme:nonsense"], capture_output=True, text=True)
    if refused.returncode == 0 or "nonsense" not in refused.stderr:
        raise Failure(f"mpicc -showme:nonsense: {refused}")


def cmake(tree):
    """FindMPI by PATH alone, which reads what the wrappers print, though the name of the place has a blank in it."""
    if not shutil.which("cmake"):
        raise Skip("no cmake")
    there = {"PATH": f"{tree.prefix / 'bin'}:{os.environ['PATH']}"}
    tree.run("cmake", "-S", ROOT / "examples" / "cmake", "-B", "by_cmake", **there)
    tree.run("cmake", "--build", "by_cmake", **there)
    tree.run("ctest", "--test-dir", "by_cmake", "--output-on-failure", **there)


def fortran(tree):
    """By each name of the wrapper, with module files that came along and with ones that are made on first use."""
    compiler = next((name for name in ("gfortran", "flang", "flang-new") if shutil.which(name)), None)
    if compiler is None:
        done = subprocess.run([tree.prefix / "bin" / "mpifort", "-show", "program.f90"], capture_output=True, text=True)
        if done.returncode == 0 or "cannot be run" not in done.stderr:
            raise Failure(f"mpifort without a compiler: {done}")
        raise Skip("no Fortran compiler")
    (tree.work / "program.f90").write_text(FORTRAN_PROGRAM)
    for name in ("mpifort", "mpif90", "mpif77"):
        tree.run(tree.prefix / "bin" / name, f"-fc={compiler}", "program.f90", "-o", f"by_{name}")
        tree.try_program(tree.work / f"by_{name}")
    shutil.rmtree(tree.prefix / "lib" / "tern" / "fortran")
    tree.run(tree.prefix / "bin" / "mpifort", f"-fc={compiler}", "program.f90", "-o", "by_first_use")
    tree.try_program(tree.work / "by_first_use")


def fortran_without_home(tree):
    """Where neither the tree nor a home can be written to: module files go below TMPDIR, and mpif.h needs none."""
    compiler = next((name for name in ("gfortran", "flang", "flang-new") if shutil.which(name)), None)
    if compiler is None:
        raise Skip("no Fortran compiler")
    (tree.work / "program.f90").write_text(FORTRAN_PROGRAM)
    (tree.work / "program.f").write_text(FIXED_PROGRAM)
    shutil.rmtree(tree.prefix / "lib" / "tern" / "fortran", ignore_errors=True)
    # Root may write anywhere, so nobody does it.
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    outside = tree.work / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    for place in (tree.work, *tree.work.parents):
        if place == pathlib.Path("/tmp"):
            break
        place.chmod(place.stat().st_mode | 0o055)
    (tree.prefix / "lib" / "tern").chmod(0o555)
    environment = {name: value for name, value in tree.environment.items() if name != "XDG_CACHE_HOME"}

    def mpifort(source, name, directory):
        words = [tree.prefix / "bin" / "mpifort", f"-fc={compiler}", tree.work / source, "-o", outside / name]
        return subprocess.run([str(word) for word in words], cwd=outside, capture_output=True, text=True, timeout=300, **other,
                              env={**environment, "HOME": "/nonexistent", "TMPDIR": str(directory)})

    try:
        for source, directory in (("program.f90", outside), ("program.f", "/nonexistent")):
            done = mpifort(source, "by_nobody", directory)
            if done.returncode != 0:
                raise Failure(f"mpifort {source} without a home: {done}")
            tree.try_program(outside / "by_nobody")
        done = mpifort("program.f90", "by_nobody", "/nonexistent")
        if done.returncode == 0 or "XDG_CACHE_HOME" not in done.stderr:
            raise Failure(f"mpifort without a place for modules: {done}")
    finally:
        (tree.prefix / "lib" / "tern").chmod(0o755)


def path(tree):
    """As a user has it: the directory in PATH, a command through a link from elsewhere."""
    (tree.work / "program.c").write_text(PROGRAM)
    link = tree.work / "cc-for-mpi"
    link.symlink_to(tree.prefix / "bin" / "mpicc")
    search = f"{tree.prefix / 'bin'}:{tree.environment['PATH']}"
    tree.run(link, "program.c", "-o", "by_link", PATH=search)
    tree.try_program(tree.work / "by_link")
    tree.run("mpiexec", "-n", "1", "./by_link", PATH=search)


def tern(tree):
    said = tree.run(tree.prefix / "bin" / "tern", "info")
    if "TERN_EAGER_MAX" not in said:
        raise Failure(f"tern info says {said}")


def main():
    passed, failed, skipped = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="tern-install-") as scratch:
        tree = Tree(pathlib.Path(scratch).resolve())
        tree.install()
        for check in (all_is_there, c, cxx, pkg_config, flags, cmake, fortran, fortran_without_home, path, tern):
            name = check.__name__.replace("_", " ")
            try:
                check(tree)
                passed += 1
                print(f"ok      {name}")
            except Skip as reason:
                skipped += 1
                print(f"skipped {name}: {reason}")
            except Failure as failure:
                failed += 1
                print(f"FAILED  {name}: {failure}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
