#!/usr/bin/env python3
"""Datagrams against connections: what chapter 6 of the dissertation on message passing over iWARP measures, over the software
adapter, between network namespaces on this machine. Prints a table with the paper's figures beside.

usage: datagrams.py [--build DIRECTORY] [--transports rc,rd,ud,hybrid] [--rounds 3] [--seconds 0.05] [--mtu 1500] [--only latency,memory,…]

Each figure is the median of as many runs, or the least where others use the machine (`--least`: of times, not of rates), one transport
after the other in each round. Needs root and iproute2.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile

from measuring import HERE, Hosts, compiled, machine, plot, points, ratios

NAME = f"dg{os.getpid()}x"

# Kernels of applications, and the sizes at which they are measured (head of each kernel_*.c).
KERNELS = (("CG", (4096, 65536)), ("MG", (1024, 4096)), ("LU", (1024, 4096)), ("SMG2000", (1024, 16384)), ("Radix", (4096, 65536)))
# Table 6.1: pages of 4 KB by UD and by RC on cluster C2, by kernel and ranks.
PAGES = {("CG", 16): (556_801, 570_207), ("CG", 64): (1_994_428, 2_097_580), ("MG", 16): (534_255, 555_854),
         ("MG", 64): (1_913_295, 2_038_179), ("LU", 16): (473_740, 495_422), ("LU", 64): (1_894_628, 1_978_663),
         ("SMG2000", 16): (418_063, 461_478), ("SMG2000", 64): (1_815_192, 2_577_276), ("Radix", 16): (453_124, 491_937),
         ("Radix", 64): (1_727_232, 2_493_291)}


def times_of(kernel, sizes, ranks):
    """A case: what an iteration takes, and what of it passes in MPI. A host for each rank: nothing goes through shared memory."""
    points = [("kernels", variant, size) for variant in (kernel, f"{kernel}, in MPI") for size in sizes]
    arguments = ["--quick", "--only", kernel, "--min", min(sizes), "--max", max(sizes)]
    return (f"application {kernel} of {ranks}", ranks, ranks, "kernels", arguments, points, "figures 6.6, 6.7: shorter, of 64 up to -45 %")


def memory_of(kernel, ranks):
    """A case: what a rank takes beside the data of a kernel. The paper's figure contains them."""
    datagrams, connections = PAGES[kernel, ranks]
    return (f"memory {kernel} of {ranks}", 8, ranks, "kernels", ["--only", f"{kernel},memory", "--min", "4K", "--max", "4K"],
            [("kernels", f"{kernel}, beside its data", 4096)], f"table 6.1: {100 * (datagrams / connections - 1):.0f} %, with all data")


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
    ("application Jacobi of 4", 2, 4, "stencil", ["--min", "256", "--max", "16384"],
     [("stencil", "", size) for size in (256, 4096, 16384)], "–"),
    *(times_of(kernel, sizes, ranks) for ranks in (2, 4, 8) for kernel, sizes in KERNELS),
    *(("memory", 8, ranks, "memory", [], [("memory", variant, ranks) for variant in ("init", "neighbours", "", "used, 8 B", "used, 4 KB")], paper)
      for ranks, paper in ((16, "table 6.1: CG -2 %, SMG2000 -9 %, Radix -8 %"),
                           (64, "table 6.1: CG -5 %, SMG2000 -30 %, Radix -31 %"), (128, "–"))),
    *(memory_of(kernel, ranks) for ranks in (16, 64) for kernel, _ in KERNELS),
]
# Of what the paper says the figures: times those of connections, by case and size.
PAPER = {**{("latency", size): 0.75 for size in (1, 64, 256)}, ("both ways", 2048): 1.4, ("memory", 16): 0.91, ("memory", 64): 0.7,
         **{(f"memory {kernel} of {ranks}", 4096): ud / rc for (kernel, ranks), (ud, rc) in PAGES.items()}}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--transports", default="rc,rd,ud,hybrid")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="for one point")
    parser.add_argument("--least", action="store_true", help="the least of the runs in place of their median")
    parser.add_argument("--mtu", type=int, default=1500, help="of the cables between the namespaces")
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
    with Hosts(NAME, case[1], given.mtu) as hosts:
        for _ in range(given.rounds):
            for transport in transports:
                for point, value in run(given, hosts, case, binary, transport).items():
                    readings[transport].setdefault(point, []).append(value)
    return readings


def label(name, bench, variant, size):
    if bench == "kernels":
        variant = variant.partition(", ")[2]
    elif variant in ("plain", "pairs"):
        variant = ""
    return f"{name}{variant and ', '}{variant}, {size} {'ranks' if bench == 'memory' else 'B'}"


def rows(case, readings, transports, middle):
    name, paper = case[0], case[6]
    for point in case[5]:
        known = [readings[transport].get(point) for transport in transports]
        if not all(known):
            sys.exit(f"datagrams: {name}: no {point} among {sorted(readings[transports[0]])}")
        values = [middle(value for value, _ in each) for each in known]
        change = [f"{100 * (value / values[0] - 1):+.0f} %" for value in values[1:]]
        placed = [(transport[0].upper(), value / values[0]) for transport, value in zip(transports[1:], values[1:])]
        placed += [("p", PAPER[name, point[2]])] if (name, point[2]) in PAPER else []
        yield (label(name, *point), placed), [label(name, *point), known[0][0][1], *(f"{value:.4g}" for value in values), *change, paper]


def main():
    given = options()
    transports = given.transports.split(",")
    wanted = [word for word in given.only.split(",") if word]
    print(f"{machine()}; {'least' if given.least else 'medians'} of {given.rounds} runs\n")
    first = transports[0].upper()
    head = ["", "unit", *map(str.upper, transports), *(f"{t.upper()} beside {first}" for t in transports[1:]), "paper"]
    print(f"| {' | '.join(head)} |\n| --- | --- {'| ---: ' * (2 * len(transports) - 1)}| --- |", flush=True)
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        for case in CASES:
            if wanted and not any(word in case[0] for word in wanted):
                continue
            binary = compiled(given.build / "bin" / "mpicc", pathlib.Path(scratch), case[3])
            for line, row in rows(case, measure(given, case, binary, transports), transports, min if given.least else statistics.median):
                lines.append(line)
                print(f"| {' | '.join(row)} |", flush=True)
    marks = ", ".join(f"{transport[0].upper()} {transport.upper()}" for transport in transports[1:])
    plot(f"times {first}'s: {marks}; p the paper's", lines, ratios(4))


if __name__ == "__main__":
    main()
