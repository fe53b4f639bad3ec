#!/usr/bin/env python3
"""Runs binaries that others have built, unmodified, on the library with MPICH's ABI.

Intel's MPI benchmarks (IMB) from the wheel `impi-rt` on PyPI, which were built for Intel MPI, and NetPIPE from
Debian, which was built for MPICH and asks for `libmpich.so.12`. Too much to fetch for every change: CI leaves it out.
Fetched are some 130 MB, into build/mpich/.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / "build" / "mpich"
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


def fetch_netpipe():
    """Debian's package, taken apart and not installed; None where there is no apt."""
    program = CACHE / "debian" / "usr" / "bin" / "NPmpich2"
    if not program.exists():
        (CACHE / "debian").mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["apt-get", "download", "-q", "netpipe-mpich2"], cwd=CACHE, check=True, capture_output=True)
            package = str(next(CACHE.glob("netpipe-mpich2_*.deb")))
            subprocess.run(["dpkg", "-x", package, CACHE / "debian"], check=True)
        except (OSError, subprocess.CalledProcessError, StopIteration):
            return None
    return program


def run(mpiexec, ranks, command, rows):
    """What is wrong with a run, if anything."""
    words = [str(mpiexec), "--abi", "mpich", "-n", str(ranks), *map(str, command)]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, cwd=CACHE)
    except subprocess.TimeoutExpired:
        return "no end after 300 s"
    found = len(re.findall(r"^ +\d+(?: +[\d.]+)+ *$|^ *\d+: +\d+ bytes", done.stdout + done.stderr, flags=re.M))
    if done.returncode != 0 or found < rows:
        return f"exit code {done.returncode}, {found} rows of numbers\n{done.stdout[-1500:]}{done.stderr[-1500:]}"
    return None


def main():
    parser = argparse.ArgumentParser(description="run binaries built for MPICH and Intel MPI")
    parser.add_argument("--mpi", default=str(ROOT / "build"), help="prefix of the library (default: build)")
    parser.add_argument("--np", default="2,4", help="numbers of ranks")
    arguments = parser.parse_args()
    mpiexec = pathlib.Path(arguments.mpi).resolve() / "bin" / "mpiexec"
    folder, netpipe = fetch_imb(), fetch_netpipe()
    jobs = []
    for ranks in map(int, arguments.np.split(",")):
        for program, benchmarks, rows in IMB:
            jobs.append((ranks, [folder / program, "-iter", "50", "-msglog", "0:12", *benchmarks.split()], rows))
    if netpipe:
        jobs.append((2, [netpipe, "-u", "100000", "-o", os.devnull], 40))
    failed = 0
    for ranks, command, rows in jobs:
        complaint = run(mpiexec, ranks, command, rows)
        failed += complaint is not None
        print(f"{'FAILED' if complaint else 'ok    '} {command[0].name} -n {ranks} {complaint or ''}", flush=True)
    print(f"{len(jobs) - failed} passed, {failed} failed, {0 if netpipe else 1} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
