"""What the packages have in common: the installed tree, its version, and what its binaries need of a system."""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = "MPI 5.0 with the standard ABI, for C, C++, Fortran and Python"
# Libraries that every system with a glibc has; those of the manylinux policy that are needed (PEP 600).
SYSTEM = re.compile(r"(libc|libm|libgcc_s|libdl|libpthread|librt)\.so\.\d+|ld-linux-[\w-]+\.so\.\d+")


class Refused(Exception):
    """Why no package can be made of what was built."""


def run(*command, **more):
    """Its output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)
    if done.returncode != 0:
        raise Refused(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def version():
    return re.search(r'^\[workspace\.package\]\nversion = "(.*)"', (ROOT / "Cargo.toml").read_text(), flags=re.M)[1]


def when():
    """Of the last commit, so that the same sources make the same package; seconds since 1970."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    if shutil.which("git"):
        done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
        if done.returncode == 0:
            return int(done.stdout)
    return int((ROOT / "Cargo.toml").stat().st_mtime)


def install(scratch):
    """`make install` of what is in build/, without what debuggers want: the directory of the tree."""
    # The variables of an outer make stay outside.
    outside = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    run("make", "-s", "-o", "build", "install", f"DESTDIR={scratch}", "PREFIX=/tern", cwd=ROOT, env=outside)
    tree = scratch / "tern"
    # Module files are for one compiler in one version: mpifort makes those that are wanted.
    shutil.rmtree(tree / "lib" / "tern" / "fortran", ignore_errors=True)
    for path in binaries(tree):
        run("strip", "--strip-unneeded", path)
    return tree


def binaries(tree):
    files = (path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink())
    return [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]


def glibc(tree):
    """The oldest glibc (major, minor) that has every symbol the binaries want of it, and the symbols that want it."""
    own = {path.name for path in binaries(tree)}
    wanted = {}
    for path in binaries(tree):
        needed = re.findall(r"^ +NEEDED +(\S+)$", run("objdump", "-p", path), flags=re.M)
        # One that is needed by its place (scripts/stand-in.sh) has no other name for it.
        others = [name for name in needed if pathlib.PurePath(name).name not in own and not SYSTEM.fullmatch(name)]
        if others:
            raise Refused(f"{path.name} needs {', '.join(others)}, which not every system has")
        # A weak symbol that is missing is one that the program does without; the version it names must be there all the same.
        for release, symbol in re.findall(r"\*UND\*.*\(GLIBC_([\d.]+)\) +(\S+)$", run("objdump", "-T", path), flags=re.M):
            wanted.setdefault(tuple(int(n) for n in release.split(".")[:2]), set()).add(f"{path.name}: {symbol}")
    newest = max(wanted)
    return newest, sorted(wanted[newest])


def machine():
    return platform.machine()


def main(make):
    """Calls `make` and says what came of it."""
    try:
        print(make())
    except Refused as why:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {why}")
