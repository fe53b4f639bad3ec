#!/usr/bin/env python3
"""Tern against the RDMA and the NFS of the Linux kernel: boots two kernels as ordinary programs (User Mode Linux), with the adapters
in software rxe and siw, three cables between them, a server and clients of NFS, and runs inside.py in the first. Takes neither root nor virtualisation.

Kernel and root folder are made once, below build/rdma: the kernel from Debian's package linux-source-6.1 (eight minutes of one
processor, some 2 GB while it is built), the folder by mmdebstrap. What is lacking for that is said, and everything skipped."""

import argparse
import os
import pathlib
import shutil
import socket
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests" / "rdma"
KEPT = ROOT / "build" / "rdma"
SOURCE = pathlib.Path("/usr/src/linux-source-6.1.tar.xz")
# The last ones are for what has verbs below it: MPICH and Open MPI over UCX, on rxe beside Tern and on Tern's adapter.
PACKAGES = "rdma-core,ibverbs-utils,ibverbs-providers,rdmacm-utils,perftest,iproute2,python3,tshark,tcpdump," \
    "mpich,libmpich-dev,openmpi-bin,libopenmpi-dev,ucx-utils,nfs-kernel-server,nfs-common"
# Commands and files with Debian's packages that have them.
NEEDED = {"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "mmdebstrap": "mmdebstrap",
          str(SOURCE): "linux-source-6.1"}
MEMORY = "1500M"
# The headers and the library of each MPI, below the root folder.
LIBRARIES = "usr/lib/x86_64-linux-gnu"
PEERS = {"mpich": ("usr/include/x86_64-linux-gnu/mpich", f"{LIBRARIES}/libmpich.so.12"),
         "openmpi": (f"{LIBRARIES}/openmpi/include", f"{LIBRARIES}/libmpi.so.40")}
# Each case inside has a bound of its own, and all of them take up to an hour; this one is for a kernel that stands still.
LIMIT = 7200
# Modules of mpi4py's suite that are run over both kernels, as inside.py has them.
MPI4PY = ["test_p2p_buf", "test_p2p_obj", "test_cco_buf", "test_rma"]
C_TESTS = ["p2p/blocking", "p2p/truncate", "p2p/modes", "p2p/remapped", "p2p/constant", "rma/put_get", "io"]
# What is otherwise in the kernel's source: file, text, and what stands in its place.
CHANGES = [
    # A tick of 1 ms, of which a rank that yields waits for one, in place of 10.
    ("arch/um/Kconfig", "config HZ\n\tint\n\tdefault 100\n", "config HZ\n\tint\n\tdefault 1000\n"),
    # Room for the registers of processors with AMX, whose 11,008 bytes have to be given back as a whole.
    ("arch/x86/um/user-offsets.c", "DEFINE_LONGS(HOST_FP_SIZE, 2696)", "DEFINE_LONGS(HOST_FP_SIZE, 12288)"),
    # Who keeps registrations is told of memory that goes away by a userfaultfd in the mode for write protection, without ever protecting a
    # page. That mode is refused on processors whose tables of pages cannot tell protected ones, as this one's; its events need none of that.
    ("fs/userfaultfd.c", "#ifndef CONFIG_HAVE_ARCH_USERFAULTFD_WP\n\t\tgoto out;\n#endif\n", ""),
    ("fs/userfaultfd.c", "#ifndef CONFIG_HAVE_ARCH_USERFAULTFD_WP\n\tuffdio_api.features &= ~UFFD_FEATURE_PAGEFAULT_FLAG_WP;\n#endif\n", ""),
]


def lacking():
    """Packages that are not there."""
    return [package for what, package in NEEDED.items() if not (shutil.which(what) or pathlib.Path(what).is_file())]


def kernel():
    """The kernel, built where it is not there."""
    built = KEPT / "linux"
    config = (HERE / "kernel.config").read_text()
    wanted, told = f"{config}{CHANGES}\n", KEPT / "linux.made"
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
        for name, old, new in CHANGES:
            text = (source / name).read_text()
            if old not in text:
                sys.exit(f"tests/rdma: {name} of the kernel is another one: there is no {old!r}")
            (source / name).write_text(text.replace(old, new))
        make = ["nice", "make", "-C", str(source), "-s", f"-j{os.cpu_count() or 1}", "ARCH=um", f"O={objects}"]
        run(*make, "defconfig")
        with (objects / ".config").open("a") as options:
            options.write(config)
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


def programs(folder):
    """The program that is measured, for each MPI, and those for Tern alone."""
    source = str(HERE / "pingpong.c")
    build = [["-o", KEPT / f"pingpong.{name}", source, f"-I{folder / headers}", folder / library,
              f"-Wl,-rpath-link,{folder / LIBRARIES}", "-Wno-stringop-overflow"] for name, (headers, library) in PEERS.items()]
    for words in build:
        subprocess.run(["gcc", "-O2", *words], check=True)
    subprocess.run([ROOT / "build" / "bin" / "mpicc", "-O2", "-o", KEPT / "pingpong.tern", source], check=True)
    for name in ["silent", "kept"]:
        subprocess.run([ROOT / "build" / "bin" / "mpicc", "-O2", "-o", KEPT / name, HERE / f"{name}.c"], check=True)


def cable():
    """Both ends of a cable: sockets of datagrams on the loopback, which hear each other alone. Those of AF_UNIX keep ten frames and lose
    the others."""
    ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        end.bind(("127.0.0.1", 0))
    for end, other in zip(ends, reversed(ends)):
        end.connect(other.getsockname())
    return ends


def boot(linux, folder, host, cables, words, output):
    """One of the two kernels. A cable carries frames, each a datagram, with room for the 4096 bytes of a packet of RoCE; one at a time
    (vec=0), for where several go at once the driver counts those in flight wrongly and the kernel gives up (dql_completed)."""
    nets = [f"vec{at}:transport=fd,fd={cable[host - 1].fileno()},mtu=4500,vec=0" for at, cable in enumerate(cables)]
    command = ["timeout", str(LIMIT), linux, f"mem={MEMORY}", "rootfstype=hostfs", f"rootflags={folder}", "rw", "init=/tern-init",
               "con=null", "con0=null,fd:1", "quiet", f"TREE={ROOT}", f"HOST={host}", f"WORDS={','.join(words)}", *nets]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, text=True, errors="replace",
                            pass_fds=[cable[host - 1].fileno() for cable in cables])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="*", help="only cases whose name contains one of these (no blanks or commas); `measured`: those that measure, which are left out else, `measured-bench`: of these `tern verbs bench`")
    arguments = parser.parse_args()
    is_made = (KEPT / "linux").exists() and (KEPT / "root.packages").exists()
    if lacks := [] if is_made else lacking():
        print(f"skip  a kernel with RDMA: it takes Debian's packages {' '.join(lacks)}\n0 passed, 0 failed, 1 skipped")
        return 0
    KEPT.mkdir(parents=True, exist_ok=True)
    linux, folder = kernel(), root()
    # Compiled here, since there is no compiler inside: on shared memory they pass first.
    first = [["run.py", "--np", "2", *C_TESTS]]
    if not arguments.word or any(word in "mpi4py" for word in arguments.word):
        first.append(["mpi4py/run.py", "--np", "2", *MPI4PY])
    for words in first:
        if subprocess.run([sys.executable, ROOT / "tests" / words[0], *words[1:]], stdout=subprocess.DEVNULL).returncode:
            print(f"FAIL  tests/{' '.join(words)}, on this host, without the kernel\n0 passed, 1 failed, 0 skipped")
            return 1
    programs(folder)
    cables = [cable() for _ in range(3)]
    with (KEPT / "second.log").open("w") as log:
        second = boot(linux, folder, 2, cables, [], log)
    booted = boot(linux, folder, 1, cables, arguments.word, subprocess.PIPE)
    last = failed = None
    for line in booted.stdout:
        print(line, end="", flush=True)
        if line.rstrip().endswith(" skipped") and " failed, " in line:
            last, failed = line, int(line.split(" failed")[0].split()[-1])
    booted.wait()
    second.terminate()
    second.wait()
    if last is None:
        print("FAIL  the kernel has ended before its tests\n0 passed, 1 failed, 0 skipped")
    return 1 if last is None or failed else 0


if __name__ == "__main__":
    sys.exit(main())
