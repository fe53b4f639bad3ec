#!/usr/bin/env python3
"""Debian's perftest on Tern's adapter (`tern verbs`) beside bare sockets of the same run, on the loopback: `ib_send_lat` beside
ping-pongs over TCP (RC) and UDP (UD), `ib_write_bw` beside a stream over TCP. Each side has a core. Medians of some rounds, of which
each measures all of it once. It needs perftest, cc and two cores that nothing else uses.

usage: verbs.py [--rounds N] [--mpi TREE]"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 60
# Name, what perftest is asked for, its column, and the line of bench/raw.c beside it.
LATENCY = [
    ("8 bytes, RC, half a round, us", "ib_send_lat -c RC -s 8 -n 20000", 4, ("latency", "tcp", 8)),
    ("1 KB, RC, half a round, us", "ib_send_lat -c RC -s 1024 -n 20000", 4, ("latency", "tcp", 1024)),
    ("8 bytes, UD, half a round, us", "ib_send_lat -c UD -s 8 -n 20000", 4, ("latency", "udp", 8)),
    ("1 KB, UD, half a round, us", "ib_send_lat -c UD -s 1024 -n 20000", 4, ("latency", "udp", 1024)),
]
BANDWIDTH = [
    ("64 KB, Write, GB/s", "ib_write_bw -s 65536 -n 20000 --report_gbits", 3, ("bandwidth", "tcp", 65536)),
    ("1 MB, Write, GB/s", "ib_write_bw -s 1048576 -n 2000 --report_gbits", 3, ("bandwidth", "tcp", 1048576)),
    ("4 MB, Write, GB/s", "ib_write_bw -s 4194304 -n 500 --report_gbits", 3, ("bandwidth", "tcp", 4194304)),
]


def both(server, client, **environment):
    """Runs both sides, each on a core; what the second has said."""
    def begin(core, words, **more):
        return subprocess.Popen(["taskset", "-c", str(core), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env=os.environ | environment | more)
    first = begin(0, server, PMI_RANK="0")
    time.sleep(0.5)
    second = begin(1, client, PMI_RANK="1")
    said = [each.communicate(timeout=LIMIT)[0] for each in (first, second)]
    if first.returncode or second.returncode:
        raise SystemExit("\n".join([f"exit codes {first.returncode}, {second.returncode}", *said]))
    return said


def perftest(tern, command, column):
    words = [*tern, *command.split(), "-d", "tern_lo", "-F"]
    _, said = both(words, [*words, "127.0.0.1"])
    row = next(line.split() for line in said.splitlines() if line.split() and line.split()[0] == command.split("-s ")[1].split()[0])
    return float(row[column]) / (8 if "gbits" in command else 1)


def raw(program):
    words = [program, "127.0.0.1", "18520", "--seconds", "0.3"]
    said, _ = both(words, words)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return {(line["bench"], line["variant"], line["size"]): line["value"] for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mpi", type=pathlib.Path, default=ROOT / "build")
    arguments = parser.parse_args()
    tern = [str(arguments.mpi / "bin" / "tern"), "verbs"]
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        program = str(pathlib.Path(scratch) / "raw")
        sources = [ROOT / "bench" / name for name in ("raw.c", "stats.c")]
        subprocess.run(["cc", "-O2", "-o", program, *sources, "-lm"], check=True)
        for _ in range(arguments.rounds):
            bare = raw(program)
            for name, command, column, beside in LATENCY + BANDWIDTH:
                found.setdefault(name, []).append((perftest(tern, command, column), bare[beside]))
    print(f"| {'':30} | perftest | sockets | ratio |\n|{'-' * 32}|---|---|---|")
    for name, readings in found.items():
        ours, bare = (statistics.median(side) for side in zip(*readings))
        print(f"| {name:30} | {ours:.2f} | {bare:.2f} | {ours / bare:.2f} |")


main()
