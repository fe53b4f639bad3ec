#!/usr/bin/env python3
"""Datagrams against connections: what chapter 6 of the dissertation on message passing over iWARP measures, over the software
adapter, between network namespaces on this machine. Prints a table with the paper's figures beside.

usage: datagrams.py [--build DIRECTORY] [--transports rc,rd,ud,hybrid] [--rounds 3] [--seconds 0.05] [--only latency,memory,…]

Each figure is the median of as many runs, one transport after the other in each round. Needs root and iproute2.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile

from measuring import HERE, Hosts, compiled, machine, plot, points, ratios

NAME = f"dg{os.getpid()}x"

# What is measured: its name, hosts, ranks, program and arguments, the points (benchmark, variant, size), what the paper says
# of datagrams beside connections.
CASES = [
    ("latency", 2, 2, "latency", ["--only", "plain", "--max", "32768"],
     [("latency", "plain", size) for size in (1, 64, 256, 1024, 2048, 8192, 32768)], "figure 6.4: shorter up to 32 KB, -25 % for short ones"),
    ("both ways", 2, 4, "stream", ["--only", "both_ways", "--min", "512", "--max", "32768"],
     [("both_ways", "pairs", size) for size in (512, 2048, 8192, 32768)], "figure 6.5: more, over +40 % at 2 KB"),
    ("one way", 2, 2, "stream", ["--only", "bandwidth", "--min", "512", "--max", "32768"],
     [("bandwidth", "", size) for size in (512, 2048, 8192, 32768)], "–"),
    ("pairs", 2, 8, "connections", ["--only", "throughput", "--min", "2048", "--max", "2048"],
     [("throughput", f"{pairs} at once", 2048) for pairs in (1, 2, 4)], "– (defined in section 3.4.2)"),
    ("application", 2, 4, "stencil", ["--min", "256", "--max", "16384"],
     [("stencil", "", size) for size in (256, 4096, 16384)], "figure 6.7: shorter for CG, MG, LU, SMG2000, Radix"),
    *(("memory", 8, ranks, "memory", [], [("memory", variant, ranks) for variant in ("init", "neighbours", "", "used, 8 B", "used, 4 KB")], paper)
      for ranks, paper in ((16, "table 6.1: CG -2 %, SMG2000 -9 %, Radix -8 %"),
                           (64, "table 6.1: CG -5 %, SMG2000 -30 %, Radix -31 %"), (128, "–"))),
]


# Of what the paper says the figures: times those of connections, by case and size.
PAPER = {**{("latency", size): 0.75 for size in (1, 64, 256)}, ("both ways", 2048): 1.4, ("memory", 16): 0.91, ("memory", 64): 0.7}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--transports", default="rc,rd,ud,hybrid")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="for one point")
    parser.add_argument("--only", default="", help="cases whose names contain one of these")
    return parser.parse_args()


def run(given, hosts, case, binary, transport):
    """The points of one run: benchmark, variant and size to value and unit."""
    name, _, ranks, _, arguments, _, _ = case
    words = [*hosts.tern(given.build, ranks), binary, "--seconds", given.seconds, *arguments]
    return points(words, {"TERN_TRANSPORT": transport}, f"datagrams: {name} by {transport}")


def measure(given, case, binary, transports):
    """By transport and point, all readings."""
    readings = {transport: {} for transport in transports}
    with Hosts(NAME, case[1]) as hosts:
        for _ in range(given.rounds):
            for transport in transports:
                for point, value in run(given, hosts, case, binary, transport).items():
                    readings[transport].setdefault(point, []).append(value)
    return readings


def rows(case, readings, transports):
    name, paper = case[0], case[6]
    for point in case[5]:
        known = [readings[transport].get(point) for transport in transports]
        if not all(known):
            sys.exit(f"datagrams: {name}: no {point} among {sorted(readings[transports[0]])}")
        values = [statistics.median(value for value, _ in each) for each in known]
        change = [f"{100 * (value / values[0] - 1):+.0f} %" for value in values[1:]]
        variant = "" if point[1] in ("plain", "pairs") else point[1]
        label = f"{name}{variant and ', '}{variant}, {point[2]} {'ranks' if name == 'memory' else 'B'}"
        placed = [(transport[0].upper(), value / values[0]) for transport, value in zip(transports[1:], values[1:])]
        placed += [("p", PAPER[name, point[2]])] if (name, point[2]) in PAPER else []
        yield (label, placed), [label, known[0][0][1], *(f"{value:.4g}" for value in values), *change, paper]


def main():
    given = options()
    transports = given.transports.split(",")
    wanted = [word for word in given.only.split(",") if word]
    print(f"{machine()}; medians of {given.rounds} runs\n")
    first = transports[0].upper()
    head = ["", "unit", *map(str.upper, transports), *(f"{t.upper()} beside {first}" for t in transports[1:]), "paper"]
    print(f"| {' | '.join(head)} |\n| --- | --- {'| ---: ' * (2 * len(transports) - 1)}| --- |", flush=True)
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        for case in CASES:
            if wanted and not any(word in case[0] for word in wanted):
                continue
            binary = compiled(given.build / "bin" / "mpicc", pathlib.Path(scratch), case[3])
            for line, row in rows(case, measure(given, case, binary, transports), transports):
                lines.append(line)
                print(f"| {' | '.join(row)} |", flush=True)
    marks = ", ".join(f"{transport[0].upper()} {transport.upper()}" for transport in transports[1:])
    plot(f"times {first}'s: {marks}; p the paper's", lines, ratios(4))


if __name__ == "__main__":
    main()
