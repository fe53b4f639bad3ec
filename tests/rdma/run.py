#!/usr/bin/env python3
"""Tern against the RDMA and the NFS of the Linux kernel: boots a kernel as an ordinary program (User Mode Linux), with the adapters
in software rxe and siw, a server and clients of NFS, and runs inside.py in it. Takes neither root nor virtualisation.

Kernel and root folder are made once, below build/rdma: the kernel from Debian's package linux-source-6.1 (eight minutes of one
processor, some 2 GB while it is built), the folder by mmdebstrap. What is lacking for that is said, and everything skipped."""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests" / "rdma"
KEPT = ROOT / "build" / "rdma"
SOURCE = pathlib.Path("/usr/src/linux-source-6.1.tar.xz")
PACKAGES = "rdma-core,ibverbs-utils,ibverbs-providers,rdmacm-utils,perftest,iproute2,python3,tshark,tcpdump,nfs-kernel-server,nfs-common"
# Commands and files with Debian's packages that have them.
NEEDED = {"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "mmdebstrap": "mmdebstrap",
          str(SOURCE): "linux-source-6.1"}
MEMORY = "1500M"
# Each case inside has a bound of its own; this one is for a kernel that stands still.
LIMIT = 1800
C_TESTS = ["p2p/blocking", "p2p/truncate", "p2p/modes", "rma/put_get", "io"]


def lacking():
    """Packages that are not there."""
    return [package for what, package in NEEDED.items() if not (shutil.which(what) or pathlib.Path(what).is_file())]


def kernel():
    """The kernel, built where it is not there."""
    built = KEPT / "linux"
    wanted = (HERE / "kernel.config").read_text()
    told = KEPT / "linux.config"
    if built.exists() and told.exists() and told.read_text() == wanted:
        return built
    print("building a kernel (some minutes, once)", flush=True)
    source, objects = KEPT / "source", KEPT / "objects"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    objects.mkdir(exist_ok=True)
    log = KEPT / "kernel.log"
    with log.open("w") as out:
        def run(*words):
            if subprocess.run(words, stdout=out, stderr=subprocess.STDOUT).returncode:
                sys.exit(f"tests/rdma: the kernel cannot be built: see {log}")
        run("tar", "xf", str(SOURCE), "-C", str(source), "--strip-components=1")
        make = ["nice", "make", "-C", str(source), "-s", f"-j{os.cpu_count() or 1}", "ARCH=um", f"O={objects}"]
        run(*make, "defconfig")
        with (objects / ".config").open("a") as config:
            config.write(wanted)
        run(*make, "olddefconfig")
        run(*make, "linux")
        run("strip", "-o", str(built), str(objects / "linux"))
    shutil.rmtree(source)
    shutil.rmtree(objects)
    told.write_text(wanted)
    return built


def root():
    """The folder that the kernel has as root, made where it is not there."""
    folder, told = KEPT / "root", KEPT / "root.packages"
    if not (told.exists() and told.read_text() == PACKAGES):
        print("making a root folder by mmdebstrap", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        # Unpacked as this user, without devices: nothing here takes root.
        make = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", "-"]
        made = subprocess.Popen(make, stdout=subprocess.PIPE)
        unpacked = subprocess.run(["tar", "x", "-C", folder, "--no-same-owner", "--exclude=./dev/*"], stdin=made.stdout)
        made.stdout.close()
        if made.wait() or unpacked.returncode:
            sys.exit("tests/rdma: mmdebstrap makes no root folder")
        told.write_text(PACKAGES)
    shutil.copy(HERE / "init.sh", folder / "tern-init")
    (folder / "tern-init").chmod(0o755)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="*", help="only cases whose name contains one of these (no blanks or commas)")
    arguments = parser.parse_args()
    is_made = (KEPT / "linux").exists() and (KEPT / "root.packages").exists()
    if lacks := [] if is_made else lacking():
        print(f"skip  a kernel with RDMA: it takes Debian's packages {' '.join(lacks)}\n0 passed, 0 failed, 1 skipped")
        return 0
    KEPT.mkdir(parents=True, exist_ok=True)
    linux, folder = kernel(), root()
    # Compiled here, since there is no compiler inside: on shared memory they pass first.
    if subprocess.run([sys.executable, ROOT / "tests" / "run.py", "--np", "2", *C_TESTS], stdout=subprocess.DEVNULL).returncode:
        print("FAIL  the C tests on this host, without the kernel\n0 passed, 1 failed, 0 skipped")
        return 1
    words = [linux, f"mem={MEMORY}", "rootfstype=hostfs", f"rootflags={folder}", "rw", "init=/tern-init", "con=null",
             "con0=null,fd:1", "quiet", f"TREE={ROOT}", f"WORDS={','.join(arguments.word)}"]
    booted = subprocess.Popen(["timeout", str(LIMIT), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
    last = failed = None
    for line in booted.stdout:
        print(line, end="", flush=True)
        if line.rstrip().endswith(" skipped") and " failed, " in line:
            last, failed = line, int(line.split(" failed")[0].split()[-1])
    booted.wait()
    if last is None:
        print("FAIL  the kernel has ended before its tests\n0 passed, 1 failed, 0 skipped")
    return 1 if last is None or failed else 0


if __name__ == "__main__":
    sys.exit(main())
