#!/usr/bin/env python3
"""Messages in shared memory as Tern chooses, beside each manner forced: near and far cores apart.

usage: bench/manners.py [--rounds N] [--seconds S] [--min BYTES] [--max BYTES] [--only touched,halo] [--realtime] PREFIX

PREFIX is an installation of Tern. In each round bench/distance.c runs once as it chooses and once with each TERN_MANNER, in random order, on
two ranks. Of each cell the median of the jobs is printed as Markdown: chosen, the best forced one, the factor between both, and all others.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MANNERS = ["blocks", "shared", "pulled"]
CHOSEN = "auto"


def job(options, program, manner):
    """The readings of one job: {(variant, bytes): µs}."""
    start = ["chrt", "-r", "5"] if options.realtime else []
    line = [*start, f"{options.prefix}/bin/mpiexec", "-n", "2", program, "--seconds", str(options.seconds)]
    line += ["--min", options.min, "--max", options.max, "--only", options.only]
    done = subprocess.run(line, env={**os.environ, "TERN_MANNER": manner}, capture_output=True, text=True, timeout=600, check=True)
    rows = [json.loads(row) for row in done.stdout.splitlines() if row.startswith("{")]
    return {(row["variant"], row["size"]): row["value"] for row in rows}


def measure(options):
    seen = {}
    with tempfile.TemporaryDirectory() as work:
        program = Path(work) / "distance"
        sources = [HERE / source for source in ("distance.c", "cores.c", "bench.c", "stats.c")]
        subprocess.run([f"{options.prefix}/bin/mpicc", "-O2", "-falign-loops=64", "-o", program, *sources, "-lm"], check=True)
        for _ in range(options.rounds):
            for manner in random.sample([CHOSEN, *MANNERS], 1 + len(MANNERS)):
                for cell, value in job(options, program, manner).items():
                    seen.setdefault(cell, {}).setdefault(manner, []).append(value)
    return seen


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(seen):
    print("| | bytes | chosen | best forced | factor | the others | jobs |\n| --- | ---: | ---: | --- | ---: | --- | ---: |")
    factors = []
    for (variant, size), times in sorted(seen.items()):
        mid = {manner: statistics.median(values) for manner, values in times.items()}
        chosen = mid.pop(CHOSEN, None)
        order = sorted(mid.items(), key=lambda item: item[1])
        if chosen is None or len(order) < len(MANNERS):
            continue  # the cores were never in this state for one of them
        (best, value), others = order[0], ", ".join(f"{manner} {number(value)}" for manner, value in order[1:])
        factors.append(chosen / value)
        fewest = min(len(values) for values in times.values())
        print(f"| {variant} | {size} | {number(chosen)} | {best} {number(value)} | {factors[-1]:.2f} | {others} | {fewest} |")
    within = sum(factor <= 1.05 for factor in factors)
    print(f"\n{within} of {len(factors)} cells within 1.05 of the best forced one, {sum(factor > 1.2 for factor in factors)} over 1.2")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--min", default="1K")
    parser.add_argument("--max", default="256K")
    parser.add_argument("--only", default="touched")
    parser.add_argument("--realtime", action="store_true", help="before whatever else runs (chrt)")
    parser.add_argument("prefix", type=os.path.abspath)
    table(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
