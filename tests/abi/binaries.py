#!/usr/bin/env python3
"""Runs binaries that others have built, unmodified, on the libraries with the ABIs of MPICH and Open MPI.

Intel's MPI benchmarks (IMB) from the wheel `impi-rt` on PyPI, which were built for Intel MPI; NetPIPE from Debian, which was built
for MPICH, where it asks for `libmpich.so.12`, and for Open MPI; Debian's mpi4py, for Open MPI. Too much to fetch for every change: CI
leaves it out. Fetched are some 130 MB, into build/abi/.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / "build" / "abi"
# Debian's Python, where its packages lie, and a program for them.
PYTHON = pathlib.Path("/usr/bin/python3")
PACKAGES = "usr/lib/python3/dist-packages"
REDUCES = """from mpi4py import MPI
world = MPI.COMM_WORLD
assert "ABI of Open MPI" in MPI.Get_library_version() and world.allgather(world.rank) == list(range(world.size))
print(world.rank, "of", world.allreduce(1))
"""
WHEEL = "impi-rt==2021.19.0"
# Program, benchmarks, rows of numbers that at least come out.
IMB = [
    ("IMB-MPI1", "PingPong Sendrecv Exchange Allreduce Reduce_scatter Allgatherv Alltoallv Bcast Barrier", 80),
    ("IMB-NBC", "Ibcast Iallreduce Iallgatherv Ialltoallv Ireduce_scatter", 40),
    ("IMB-RMA", "Unidir_put All_put_all Accumulate Get_accumulate Fetch_and_op Compare_and_swap", 40),
    ("IMB-P2P", "PingPong Unirandom Stencil2D", 15),
]


def fetch_imb():
    """The programs of the wheel; the library in it is left there."""
    folder = CACHE / "imb"
    if not (folder / "IMB-MPI1").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", CACHE, WHEEL], check=True)
        with zipfile.ZipFile(next(CACHE.glob("impi_rt-*.whl"))) as wheel:
            for name in wheel.namelist():
                if re.search(r"/bin/IMB-\w+$", name):
                    program = folder / pathlib.PurePath(name).name
                    program.write_bytes(wheel.read(name))
                    program.chmod(0o755)
    return folder


def fetch_debian(package, inside):
    """A file of Debian's package, which is taken apart and not installed; None where there is no apt."""
    found = CACHE / "debian" / inside
    if not found.exists():
        (CACHE / "debian").mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["apt-get", "download", "-q", package], cwd=CACHE, check=True, capture_output=True)
            archive = str(next(CACHE.glob(f"{package}_*.deb")))
            subprocess.run(["dpkg", "-x", archive, CACHE / "debian"], check=True)
        except (OSError, subprocess.CalledProcessError, StopIteration):
            return None
    return found


def run(mpiexec, abi, ranks, command, rows):
    """What is wrong with a run, if anything."""
    words = [str(mpiexec), "--abi", abi, "-n", str(ranks), *map(str, command)]
    environment = dict(os.environ, PYTHONPATH=str(CACHE / "debian" / PACKAGES))
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, cwd=CACHE, env=environment)
    except subprocess.TimeoutExpired:
        return "no end after 300 s"
    found = len(re.findall(r"^ +\d+(?: +[\d.]+)+ *$|^ *\d+: +\d+ bytes|^\d+ of \d+", done.stdout + done.stderr, flags=re.M))
    if done.returncode != 0 or found < rows:
        return f"exit code {done.returncode}, {found} rows of numbers\n{done.stdout[-1500:]}{done.stderr[-1500:]}"
    return None


def main():
    parser = argparse.ArgumentParser(description="run binaries built for MPICH, Intel MPI and Open MPI")
    parser.add_argument("--mpi", default=str(ROOT / "build"), help="prefix of the library (default: build)")
    parser.add_argument("--np", default="2,4", help="numbers of ranks")
    arguments = parser.parse_args()
    mpiexec = pathlib.Path(arguments.mpi).resolve() / "bin" / "mpiexec"
    folder = fetch_imb()
    netpipes = {"mpich": fetch_debian("netpipe-mpich2", "usr/bin/NPmpich2"),
                "openmpi": fetch_debian("netpipe-openmpi", "usr/bin/NPopenmpi")}
    jobs = []
    for ranks in map(int, arguments.np.split(",")):
        for program, benchmarks, rows in IMB:
            jobs.append(("mpich", ranks, [folder / program, "-iter", "50", "-msglog", "0:12", *benchmarks.split()], rows))
    jobs += [(abi, 2, [netpipe, "-u", "100000", "-n", "20", "-o", os.devnull], 40) for abi, netpipe in netpipes.items() if netpipe]
    skipped = list(netpipes.values()).count(None)
    # It was built for Debian's own Python.
    if PYTHON.exists() and fetch_debian("python3-mpi4py", f"{PACKAGES}/mpi4py"):
        jobs.append(("openmpi", 4, [PYTHON, "-c", REDUCES], 4))
    else:
        skipped += 1
    failed = 0
    for abi, ranks, command, rows in jobs:
        complaint = run(mpiexec, abi, ranks, command, rows)
        failed += complaint is not None
        print(f"{'FAILED' if complaint else 'ok    '} {command[0].name} -n {ranks} ({abi}) {complaint or ''}", flush=True)
    print(f"{len(jobs) - failed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
