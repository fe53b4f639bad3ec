#!/usr/bin/env python3
"""Builds mpi4py from PyPI's source distribution for an MPI with the standard ABI.

Prints the virtual environment's directory, below build/mpi4py/. A second call with an
unchanged compiler wrapper does nothing. Used by the suite (run.py) and by `make run`.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERSION = "4.1.2"


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, what, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", **more)
    if done.returncode != 0:
        say(done.stdout)
        sys.exit(f"install.py: {what} failed (above); the command was: {' '.join(map(str, command))}")


def compiler_of(prefix):
    """The wrapper that compiles against the standard ABI (MPICH's wheel has it beside its own; Open MPI has its own alone)."""
    for name in ("mpicc_abi", "mpicc"):
        if (prefix / "bin" / name).exists():
            return prefix / "bin" / name
    sys.exit(f"install.py: no bin/mpicc below {prefix}: `make build` first")


def name_of(prefix):
    """Which library this is, by a tool that only it has."""
    tools = {"mpichversion": "mpich", "ompi_info": "openmpi"}
    return next((name for tool, name in tools.items() if (prefix / "bin" / tool).exists()), "tern")


def make_venv(venv):
    """Debian splits ensurepip from python3: it is installed where that is possible, else named."""
    if (venv / "bin" / "pip").exists():
        return
    shutil.rmtree(venv, ignore_errors=True)
    if subprocess.run([sys.executable, "-c", "import ensurepip"], capture_output=True).returncode != 0:
        if os.geteuid() == 0 and shutil.which("apt-get"):
            say("installing python3-venv")
            run(["apt-get", "update", "-q"], "apt-get update")
            run(["apt-get", "install", "-qy", "python3-venv"], "installing python3-venv")
        else:
            sys.exit("install.py: this Python has no ensurepip; install it (Debian, Ubuntu: python3-venv) and repeat")
    run([sys.executable, "-m", "venv", venv], "making a virtual environment")


def source_archive(pip, directory):
    """The unmodified source distribution, as PyPI has it."""
    archive = directory / f"mpi4py-{VERSION}.tar.gz"
    if not archive.exists():
        directory.mkdir(parents=True, exist_ok=True)
        run([pip, "download", "-q", "--no-deps", "--no-binary", "mpi4py", "-d", directory, f"mpi4py=={VERSION}"],
            "fetching mpi4py's source distribution")
    return archive


def unpack(archive, directory):
    tree = directory / f"mpi4py-{VERSION}"
    if not (tree / "test" / "main.py").exists():
        with tarfile.open(archive) as tar:
            tar.extractall(directory, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return tree


def install(prefix):
    """Returns (virtual environment, unpacked source tree)."""
    base = ROOT / "build" / "mpi4py"
    venv = base / f"venv-{name_of(prefix)}"
    mpicc = compiler_of(prefix)
    make_venv(venv)
    archive = source_archive(venv / "bin" / "pip", base / "sdist")
    tree = unpack(archive, base)
    mark = venv / "built-with"
    state = f"{mpicc} mpi4py {VERSION}\n"
    if mark.exists() and mark.read_text() == state:
        return venv, tree
    say(f"building mpi4py {VERSION} with {mpicc} (a minute or two)")
    environment = dict(os.environ, MPICC=str(mpicc), CFLAGS=os.environ.get("CFLAGS", "-O1 -g0"))
    if name_of(prefix) != "openmpi":
        environment["MPI4PY_BUILD_MPIABI"] = "1"
    run([venv / "bin" / "pip", "install", "-q", "--no-cache-dir", "--force-reinstall", "--no-binary", "mpi4py", archive],
        "building mpi4py", env=environment)
    mark.write_text(state)
    return venv, tree


def install_wheel():
    """As install, with the wheel that PyPI has: its modules were built for MPICH and for Open MPI."""
    base = ROOT / "build" / "mpi4py"
    venv = base / "venv-wheel"
    make_venv(venv)
    tree = unpack(source_archive(venv / "bin" / "pip", base / "sdist"), base)
    run([venv / "bin" / "pip", "install", "-q", "--only-binary", ":all:", f"mpi4py=={VERSION}"], "fetching mpi4py's wheel")
    return venv, tree


def main():
    parser = argparse.ArgumentParser(description="build mpi4py for an MPI with the standard ABI")
    parser.add_argument("--mpi", default=str(ROOT / "build"), help="prefix of the library (default: build)")
    venv, _ = install(pathlib.Path(parser.parse_args().mpi).resolve())
    print(venv)


if __name__ == "__main__":
    main()
