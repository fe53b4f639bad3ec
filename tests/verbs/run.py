#!/usr/bin/env python3
"""Programs that are written to verbs, unmodified from Debian, on the software adapter (`tern verbs`): over the loopback, and
between two network namespaces where these can be made. And a program of our own that does things wrong."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = pathlib.Path("/usr/include/infiniband/verbs.h")
LIMIT = 60

# Name, command, and what the output of both sides must have; {d} is the device.
RC = r"\d+ iters in"
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
        PAIRS.append((f"ib_{kind}_{what}", f"ib_{kind}_{what} -d {{d}} -F -n 100", r"(?m)^ *\d+ +\d+ +[\d.]+"))
PAIRS += [
    ("ib_send_lat, datagrams", "ib_send_lat -c UD -d {d} -F -n 100", r"(?m)^ *\d+ +\d+ +[\d.]+"),
    ("ib_send_bw, both ways", "ib_send_bw -b -d {d} -F -n 100 -s 4096", r"(?m)^ *\d+ +\d+ +[\d.]+"),
    ("ib_write_bw, all sizes", "ib_write_bw -a -d {d} -F -n 20", r"(?m)^ *8388608 +\d+ +[\d.]+"),
    ("ib_write_bw, 8 queue pairs", "ib_write_bw -q 8 -d {d} -F -n 50", r"(?m)^ *\d+ +\d+ +[\d.]+"),
    ("ib_send_bw, shared receive queue", "ib_send_bw -q 4 --use-srq -d {d} -F -n 50", r"(?m)^ *\d+ +\d+ +[\d.]+"),
]


class Place:
    """Where both sides run: on the loopback, or in two namespaces."""

    def __init__(self, namespaces=None):
        self.namespaces = namespaces
        self.name = "namespaces" if namespaces else "loopback"
        self.device = "tern_tv31" if namespaces else "tern_lo"
        self.server = "10.77.31.1" if namespaces else "127.0.0.1"

    def at(self, host):
        return ["ip", "netns", "exec", f"{self.namespaces}{host}"] if self.namespaces else []


def play(place, mpi, command):
    """Runs both sides; their output, or what went wrong."""
    words = command.format(d=place.device).split()
    tern = [str(mpi / "bin" / "tern"), "verbs"]
    started = subprocess.Popen(place.at(1) + tern + words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until, said = time.time() + LIMIT, ""
        while time.time() < until:
            # The server may not listen yet; programs that do not try again are started again.
            other = subprocess.run(place.at(2) + tern + words + [place.server], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, timeout=LIMIT)
            if other.returncode == 0 or started.poll() is not None or not re.search(r"(?i)connect", other.stdout):
                break
            time.sleep(0.1)
        said, _ = started.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None, f"not done after {LIMIT} s"
    finally:
        if started.poll() is None:
            started.kill()
            started.communicate()
    if started.returncode or other.returncode:
        return None, f"exit codes {started.returncode}, {other.returncode}\n{said}\n{other.stdout}"
    return said + other.stdout, None


def report(name, error, counts):
    counts[bool(error)] += 1
    print(f"{'FAIL' if error else 'ok':5} {name}" + (f"\n{error}" if error else ""), flush=True)


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
            print(f"skip  between namespaces: {(made.stdout + made.stderr).strip()}")
            skipped += 1
        if chosen("errors"):
            if HEADER.exists():
                with tempfile.TemporaryDirectory() as scratch:
                    program = pathlib.Path(scratch) / "errors"
                    build = ["cc", "-O1", "-Wall", "-Werror", "-o", program, ROOT / "tests" / "verbs" / "errors.c", "-libverbs"]
                    subprocess.run(build, check=True)
                    try:
                        done = subprocess.run([*tern, program, "tern_lo"], capture_output=True, text=True, timeout=LIMIT)
                        report("errors", None if done.returncode == 0 and "right" in done.stdout else done.stdout + done.stderr, counts)
                    except subprocess.TimeoutExpired:
                        report("errors", f"not done after {LIMIT} s", counts)
            else:
                print("skip  errors: there is no infiniband/verbs.h (Debian's package libibverbs-dev)")
                skipped += 1
        if chosen("devices") and shutil.which("ibv_devinfo"):
            done = subprocess.run([*tern, "ibv_devinfo", "-v"], capture_output=True, text=True)
            missing = [word for word in ["tern_lo", "PORT_ACTIVE", "::ffff:127.0.0.1"] if word not in done.stdout]
            report("devices", f"no {missing} in\n{done.stdout}{done.stderr}" if missing or done.returncode else None, counts)
        for place in places:
            for name_of, command, wanted in PAIRS:
                case = f"{name_of}, {place.name}"
                if not chosen(case):
                    continue
                if not shutil.which(command.split()[0]):
                    print(f"skip  {case}: {command.split()[0]} is not installed (Debian's packages ibverbs-utils, perftest)")
                    skipped += 1
                    continue
                said, error = play(place, mpi, command)
                if not error and len(re.findall(wanted, said)) < 1:
                    error = f"nothing like {wanted} in\n{said}"
                report(case, error, counts)
    finally:
        subprocess.run([hosts, "remove", name], capture_output=True)
    print(f"{counts[0]} passed, {counts[1]} failed, {skipped} skipped")
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
