#!/usr/bin/env python3
"""Programs that are written to verbs and to librdmacm, unmodified from Debian, on the software adapter (`tern verbs`): over the
loopback, and between two network namespaces where these can be made. And programs of our own that do things wrong."""

import argparse
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

from symbols import LIBRARIES, recorded, symbols

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from require import is_required  # noqa: E402

HEADER = pathlib.Path("/usr/include/infiniband/verbs.h")
RDMA_HEADER = HEADER.parent.parent / "rdma" / "rdma_cma.h"
# Programs of our own: name, source, what they are linked with, arguments; and those that need a namespace with an interface of its own.
OWN = [
    ("errors", "errors.c", ["-libverbs"], ["tern_lo"]),
    ("queue pairs that are their own peers", "itself.c", ["-libverbs"], ["tern_lo"]),
    ("connections", "connections.c", ["-lrdmacm", "-libverbs"], ["127.0.0.1"]),
    ("asynchronous events", "events.c", ["-libverbs", "-lpthread"], ["tern_lo"]),
    ("polling and sleeping by turns", "alone.c", ["-libverbs"], ["tern_lo"]),
    ("memory of a thousand queue pairs", "memory.c", ["-libverbs"], ["tern_lo"]),
]
APART = [("asynchronous events of a port", "events.c", ["-libverbs", "-lpthread"], ["tern_tv31", "tv31"])]
LIMIT = 60
AGAIN = 6
# What is a race of the programs' own. perftest's server ends its listener and begins another: a client that asks in between is
# refused, and some then go on with an identifier that they have given back. rping's first thread gives its channel back at the end,
# on which the second one may be about to wait: its descriptor is closed then, or what is read of the channel is no longer one. Whose
# datagram is lost, under load, waits for it without end.
RACES = {"-R": "RDMA_CM_EVENT_REJECTED", "-c UD": "not done after", "rping": "rdma_get_cm_event: (Bad file descriptor|Invalid argument)"}

# Name, command, and what the output of both sides must have; {d} is the device.
RC = r"\d+ iters in"
TABLE = r"(?m)^ *\d+ +\d+ +[\d.]+"
PAIRS = [
    ("rc_pingpong", "ibv_rc_pingpong -d {d} -g 0 -n 200", RC),
    ("rc_pingpong, events", "ibv_rc_pingpong -d {d} -g 0 -n 200 -e", RC),
    ("rc_pingpong, checked", "ibv_rc_pingpong -d {d} -g 0 -n 50 -s 1000000 -c", RC),
    ("ud_pingpong", "ibv_ud_pingpong -d {d} -g 0 -n 200 -s 1000", RC),
    ("ud_pingpong, events", "ibv_ud_pingpong -d {d} -g 0 -n 200 -s 1000 -e", RC),
    ("srq_pingpong", "ibv_srq_pingpong -d {d} -g 0 -n 200", RC),
    ("srq_pingpong, events", "ibv_srq_pingpong -d {d} -g 0 -n 200 -e", RC),
]
for kind in ["send", "write", "read", "atomic"]:
    for what in ["lat", "bw"]:
        PAIRS.append((f"ib_{kind}_{what}", f"ib_{kind}_{what} -d {{d}} -F -n 100", TABLE))
        PAIRS.append((f"ib_{kind}_{what}, rdma_cm", f"ib_{kind}_{what} -R -F -n 100", TABLE))
PAIRS += [
    ("ib_send_lat, datagrams", "ib_send_lat -c UD -d {d} -F -n 100", TABLE),
    ("ib_send_lat, datagrams, rdma_cm", "ib_send_lat -R -c UD -F -n 100", TABLE),
    # What is lost of these is waited for for ever.
    ("ib_send_bw, datagrams", "ib_send_bw -c UD -d {d} -F -n 500 -s 64", TABLE),
    ("ib_send_bw, datagrams of 1 KB", "ib_send_bw -c UD -d {d} -F -n 500 -s 1024", TABLE),
    ("ib_send_bw, datagrams, rdma_cm", "ib_send_bw -R -c UD -F -n 500 -s 64", TABLE),
    ("ib_send_bw, both ways", "ib_send_bw -b -d {d} -F -n 100 -s 4096", TABLE),
    ("ib_write_bw, all sizes", "ib_write_bw -a -d {d} -F -n 20", r"(?m)^ *8388608 +\d+ +[\d.]+"),
    ("ib_write_bw, 8 queue pairs", "ib_write_bw -q 8 -d {d} -F -n 50", TABLE),
    ("ib_write_bw, 4 queue pairs, rdma_cm", "ib_write_bw -R -q 4 -F -n 50", TABLE),
    ("ib_send_bw, shared receive queue", "ib_send_bw -q 4 --use-srq -d {d} -F -n 50", TABLE),
]
# Programs whose sides are called differently: name, server, client, and what the output of both must have; {a} is the
# server's address.
SIDES = [
    ("rping", "rping -s -a {a} -v -V -C 20 -S 100", "rping -c -a {a} -v -V -C 20 -S 100", r"(?s)server ping data: rdma-ping-19:.*ping data: rdma-ping-19: TUVW"),
    ("rping, 60 KB", "rping -s -a {a} -V -C 50 -S 60000", "rping -c -a {a} -V -C 50 -S 60000 -v", r"ping data: rdma-ping-49:"),
    ("rping, any address", "rping -s -a 0.0.0.0 -V -C 5 -S 100", "rping -c -a {a} -V -C 5 -S 100 -v", r"ping data: rdma-ping-4:"),
    ("udaddy", "udaddy -c 3 -C 20 -S 1000", "udaddy -s {a} -c 3 -C 20 -S 1000", r"(?s)data transfers complete.*return status 0.*return status 0"),
    ("ucmatose", "ucmatose -c 5 -C 20 -S 5000", "ucmatose -s {a} -c 5 -C 20 -S 5000", r"(?s)data transfers complete.*return status 0.*return status 0"),
    ("ucmatose, 50 at a time", "ucmatose -c 50", "ucmatose -s {a} -c 50", r"(?s)return status 0.*return status 0"),
    ("ucmatose, migrated", "ucmatose -c 3 -C 5 -m", "ucmatose -s {a} -c 3 -C 5 -m", r"(?s)return status 0.*return status 0"),
    ("rdma_client", "rdma_server", "rdma_client -s {a}", r"(?s)rdma_server: end 0.*rdma_client: end 0"),
]
# Libraries that have verbs below them. UCX takes devices only where there is a folder of device files; why of libfabric there are datagrams
# alone: docs/verbs.md.
UCX_FOLDER = pathlib.Path("/dev/infiniband")
UCP = "env UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES={d}:1 ucx_perftest -n 200"
SIDES += [
    *((f"ucx_perftest, {test}, {way}", f"ucx_perftest -d {{d}}:1 -x {way} -t {test} -n 200 -s 64",
       f"ucx_perftest {{a}} -d {{d}}:1 -x {way} -t {test} -n 200 -s 64", r"Final: +200") for way, test in
      [("rc_verbs", "am_lat"), ("rc_verbs", "put_bw"), ("ud_verbs", "am_lat")]),
    *((f"ucx_perftest, {test}", f"{UCP} -t {test} -s {size}", f"{UCP} {{a}} -t {test} -s {size}", r"Final: +200") for test, size in
      [("tag_lat", 8), ("tag_bw", 100000), ("ucp_get", 1000), ("ucp_fadd", 8), ("ucp_cswap", 8)]),
    # Not at its own port, 47592, which the kernel gives to whoever connects.
    ("fi_pingpong, datagrams", "fi_pingpong -B 17592 -p verbs -e dgram -I 50", "fi_pingpong -P 17592 -p verbs -e dgram -I 50 {a}", r"(?m)^1k +50"),
]
PERSISTENT = ("rping -P -s -a {a} -V -S 1000", "rping -c -a {a} -V -C 20 -S 1000 -v", 4)


class Place:
    """Where both sides run: on the loopback, or in two namespaces."""

    def __init__(self, namespaces=None):
        self.namespaces = namespaces
        self.name = "namespaces" if namespaces else "loopback"
        self.device = "tern_tv31" if namespaces else "tern_lo"
        self.server = "10.77.31.1" if namespaces else "127.0.0.1"

    def at(self, host):
        return ["ip", "netns", "exec", f"{self.namespaces}{host}"] if self.namespaces else []


def await_listener(place, process):
    """Waits until a process listens: what asks before is refused, and perftest and udaddy do not get over that."""
    until = time.time() + LIMIT
    while time.time() < until and process.poll() is None:
        if f"pid={process.pid}," in subprocess.run(place.at(1) + ["ss", "-Hltnp"], capture_output=True, text=True).stdout:
            return
        time.sleep(0.02)


def cannot(command):
    """Why a command cannot be tried here, or None."""
    program = next(word for word in command.split() if word != "env" and "=" not in word)
    if not shutil.which(program):
        return f"{program} is not installed (Debian's packages ibverbs-utils, rdmacm-utils, perftest, ucx-utils, libfabric-bin)"
    if program == "ucx_perftest" and not UCX_FOLDER.is_dir():
        return f"UCX takes no device where {UCX_FOLDER} is not there"
    return None


def end(server):
    """Ends a server whose client has failed: most wait for it without end. What it has to say of that it says at once."""
    try:
        server.wait(timeout=2)
    except subprocess.TimeoutExpired:
        server.kill()


def play(place, mpi, command, other_command):
    """Runs both sides; their output, or what went wrong."""
    words, others = (one.format(d=place.device, a=place.server).split() for one in (command, other_command))
    tern = [str(mpi / "bin" / "tern"), "verbs"]
    started = subprocess.Popen(place.at(1) + tern + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        await_listener(place, started)
        until, said, before = time.time() + LIMIT, "", ""
        while time.time() < until:
            # The server may not listen yet; programs that do not try again are started again.
            other = subprocess.run(place.at(2) + tern + others, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   timeout=LIMIT)
            if other.returncode == 0 or started.poll() is not None or not re.search(r"(?i)connect|REJECTED|CM event", other.stdout):
                break
            before += other.stdout
            time.sleep(0.1)
        if other.returncode:
            end(started)
        said, _ = started.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None, f"not done after {LIMIT} s"
    finally:
        if started.poll() is None:
            started.kill()
            started.communicate()
    if started.returncode or other.returncode:
        return None, f"exit codes {started.returncode}, {other.returncode}\n{said}\n{before}{other.stdout}"
    return said + other.stdout, None


def play_persistent(place, mpi):
    """A server that stays, and clients one after the other; what went wrong."""
    command, other, times = PERSISTENT
    tern = [str(mpi / "bin" / "tern"), "verbs"]
    server = subprocess.Popen(place.at(1) + tern + command.format(a=place.server).split(), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        await_listener(place, server)
        until = time.time() + LIMIT
        while times and time.time() < until:
            done = subprocess.run(place.at(2) + tern + other.format(a=place.server).split(), capture_output=True, text=True, timeout=LIMIT)
            is_done = done.returncode == 0 or re.search(RACES["rping"], done.stderr)
            if is_done and "rdma-ping-19" in done.stdout:
                times -= 1
            elif "REJECTED" not in done.stderr or server.poll() is not None:
                return f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return f"{times} clients were not answered" if times else None
    except subprocess.TimeoutExpired:
        return f"not done after {LIMIT} s"
    finally:
        server.kill()
        server.wait()


def missing_symbols(mpi):
    """What Debian's libraries define and these do not: those of this host, and of the releases that are recorded."""
    own = set().union(*(symbols(mpi / "lib" / "tern" / "verbs" / name) for name in LIBRARIES))
    paths = [line.split()[-1] for line in subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout.splitlines()[1:]
             if line.split()[0] in LIBRARIES and "x86-64" in line]
    wanted = set().union(*(symbols(path) for path in paths))
    lacking = [f"{name}@{version} of this host" for version, name in sorted(wanted - own)]
    for release, named in recorded().items():
        lacking += [f"{name}@{version} of {release}" for version, name in sorted(named - own)]
    return " ".join(lacking)


def report(name, error, counts):
    counts[bool(error)] += 1
    print(f"{'FAIL' if error else 'ok':5} {name}" + (f"\n{error}" if error else ""), flush=True)


def watch(place, mpi):
    """Debian's program for asynchronous events, while an interface goes down and comes back; what went wrong."""
    command = place.at(1) + [str(mpi / "bin" / "tern"), "verbs", "stdbuf", "-oL", "ibv_asyncwatch", "-d", place.device]
    watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = watching.stdout.readline()
        for state, event in [("down", "PORT_ERR (10), port 1"), ("up", "PORT_ACTIVE (9), port 1")]:
            subprocess.run(place.at(1) + ["ip", "link", "set", "dev", place.device.removeprefix("tern_"), state], check=True)
            ready, _, _ = select.select([watching.stdout], [], [], LIMIT)
            line = watching.stdout.readline() if ready else f"nothing for {LIMIT} s\n"
            said += line
            if event not in line:
                return f"no {event} in\n{said}"
        return None
    finally:
        watching.kill()
        watching.wait()


def run_own(tern, chosen, counts, programs=OWN):
    """Programs of our own; how many cannot be built here."""
    skipped = 0
    for name, source, libraries, words in programs:
        if not chosen(name):
            continue
        headers = [HEADER] + [RDMA_HEADER] * ("-lrdmacm" in libraries)
        if not all(header.exists() for header in headers):
            print(f"skip  {name}: there are no headers (Debian's packages libibverbs-dev, librdmacm-dev)")
            skipped += 1
            continue
        with tempfile.TemporaryDirectory() as scratch:
            program = pathlib.Path(scratch) / name
            build = ["cc", "-O1", "-Wall", "-Werror", "-o", program, ROOT / "tests" / "verbs" / source, *libraries]
            subprocess.run(build, check=True)
            try:
                done = subprocess.run([*tern, program, *words], capture_output=True, text=True, timeout=LIMIT)
                report(name, None if done.returncode == 0 and "right" in done.stdout else done.stdout + done.stderr, counts)
            except subprocess.TimeoutExpired:
                report(name, f"not done after {LIMIT} s", counts)
    return skipped


def without_namespaces(why, counts):
    """How many are skipped for that, unless one has failed."""
    if is_required("namespaces"):
        report("between namespaces", why, counts)
        return 0
    print(f"skip  between namespaces: {why}")
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", type=pathlib.Path, default=ROOT / "build", help="tree to test (build/)")
    parser.add_argument("word", nargs="*", help="only cases whose name contains one of these")
    arguments = parser.parse_args()
    mpi = arguments.mpi.resolve()
    chosen = lambda name: not arguments.word or any(word in name for word in arguments.word)
    counts, skipped = [0, 0], 0
    tern = [str(mpi / "bin" / "tern"), "verbs"]

    name = f"ternverbs{os.getpid()}h"
    hosts = ROOT / "scripts" / "hosts.sh"
    made = subprocess.run([hosts, "make", name, "2"], capture_output=True, text=True)
    try:
        places = [Place()] + ([Place(name)] if made.returncode == 0 else [])
        if made.returncode:
            skipped += without_namespaces((made.stdout + made.stderr).strip(), counts)
        skipped += run_own(tern, chosen, counts)
        if chosen("symbols"):
            lacking = missing_symbols(mpi) if shutil.which("objdump") else None
            if lacking is None:
                print("skip  symbols: there is no objdump")
                skipped += 1
            else:
                report("symbols", f"not there: {lacking}" if lacking else None, counts)
        if chosen("multicast") and shutil.which("mckey"):
            done = subprocess.run([*tern, "mckey", "-m", "239.1.2.3"], capture_output=True, text=True, timeout=LIMIT)
            is_said = done.returncode and "Operation not supported" in done.stderr
            report("multicast", None if is_said else f"exit code {done.returncode}\n{done.stdout}{done.stderr}", counts)
        if chosen("devices") and shutil.which("ibv_devinfo"):
            done = subprocess.run([*tern, "ibv_devinfo", "-v"], capture_output=True, text=True)
            missing = [word for word in ["tern_lo", "PORT_ACTIVE", "::ffff:127.0.0.1"] if word not in done.stdout]
            report("devices", f"no {missing} in\n{done.stdout}{done.stderr}" if missing or done.returncode else None, counts)
        for place in places:
            sides = [(name_of, command, command + " {a}", wanted) for name_of, command, wanted in PAIRS] + SIDES
            for name_of, command, other, wanted in sides:
                case = f"{name_of}, {place.name}"
                if not chosen(case):
                    continue
                if why := cannot(command):
                    print(f"skip  {case}: {why}")
                    skipped += 1
                    continue
                said, error = play(place, mpi, command, other)
                for tries in range(AGAIN):
                    if not error or not any(word in command and re.search(text, error) for word, text in RACES.items()):
                        break
                    # Beside builds one loses this race several times in a row.
                    time.sleep(0.3 * tries)
                    said, error = play(place, mpi, command, other)
                if not error and len(re.findall(wanted, said)) < 1:
                    error = f"nothing like {wanted} in\n{said}"
                report(case, error, counts)
            if chosen(f"rping, persistent, {place.name}") and shutil.which("rping"):
                report(f"rping, persistent, {place.name}", play_persistent(place, mpi), counts)
        # At the end, for interfaces lose addresses by that.
        for place in places[1:]:
            skipped += run_own([*place.at(1), *tern], chosen, counts, APART)
            if chosen("asyncwatch") and shutil.which("ibv_asyncwatch"):
                report("asyncwatch", watch(place, mpi), counts)
    finally:
        subprocess.run([hosts, "remove", name], capture_output=True)
    print(f"{counts[0]} passed, {counts[1]} failed, {skipped} skipped")
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
