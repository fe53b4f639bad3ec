#!/usr/bin/env python3
"""Collectives between hosts: every algorithm forced, beside the one that is chosen.

usage: bench/choice.py [--rounds N] [--seconds S] [--shapes 2x1,2x2,4x1] [--only bcast,...] [--env NAME=VALUE ...] PREFIX [PREFIX ...]

Each PREFIX is an installation of Tern; their jobs take turns. Hosts are network namespaces (scripts/hosts.sh; takes root), HOSTSxRANKS
a shape. One job forces the k-th algorithm of each collective, the next one the k+1-th; of each cell the median of all rounds is
printed as Markdown: chosen, the best forced one, the factor between both, and the others.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPT = HERE.parent / "scripts/hosts.sh"
COLLECTIVES = ["bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"]
SIZES = [8, 1 << 10, 64 << 10, 1 << 20]


def algorithms(prefix):
    """The words of each setting TERN_COLL_..., but auto."""
    text = subprocess.run([f"{prefix}/bin/tern", "info", "--settings"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"TERN_COLL_(\w+)=.*\n +one of auto, (.*?);", text)
    return {name.lower(): words.split(", ") for name, words in found}


def words(known, kind, ranks):
    """Algorithms that are others than the next one here: two levels take hosts of several ranks."""
    return [word for word in known[kind] if word != "two-level" or ranks > 1]


def job(prefix, program, name, shape, env, size, options):
    """The readings of one job, in microseconds by collective; nothing of those that took too long."""
    hosts, ranks = shape
    listed = ",".join(f"10.77.31.{k}" for k in range(1, hosts + 1))
    said = " ".join(f"{key}={value}" for key, value in {**options.env, **env}.items())
    line = (
        f"exec env {said} {prefix}/bin/mpiexec --launcher \"{SCRIPT} reach {name}\" --hosts {listed} -n {hosts * ranks} -ppn {ranks} "
        f"{program} --min {size} --max {size} --seconds {options.seconds} --no-pin --only {','.join(options.only)}"
    )
    start = ["chrt", "-r", "5"] if options.realtime else []
    try:
        done = subprocess.run([*start, SCRIPT, "reach", name, "1", line], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        print(f"took too long: {said} {size}", file=sys.stderr)
        return {}
    if done.returncode:
        print(done.stderr[-400:], file=sys.stderr)
    rows = [json.loads(row) for row in done.stdout.splitlines() if row.startswith("{")]
    return {row["bench"]: row["value"] for row in rows}


def measure(options, work):
    seen = {}
    programs = []
    known = algorithms(options.prefixes[-1])
    for at, prefix in enumerate(options.prefixes):
        program = Path(work) / f"collectives{at}"
        sources = [HERE / source for source in ("collectives.c", "bench.c", "stats.c")]
        subprocess.run([f"{prefix}/bin/mpicc", "-O2", "-falign-loops=64", "-o", program, *sources, "-lm"], check=True)
        programs.append(program)
    for shape in options.shapes:
        name = f"choice{os.getpid()}h"
        subprocess.run([SCRIPT, "make", name, str(shape[0])], check=True)
        try:
            most = max(len(words(known, kind, shape[1])) for kind in options.only)
            for _ in range(options.rounds):
                for size in options.sizes:
                    turns = [None, *range(most)] if options.forced else [None]
                    for k in random.sample(turns, len(turns)):
                        for prefix, program in zip(options.prefixes, programs):
                            turn = {}
                            for kind in options.only if k is not None else []:
                                forced = words(known, kind, shape[1])
                                turn[kind] = forced[k % len(forced)]
                            env = {f"TERN_COLL_{kind.upper()}": word for kind, word in turn.items()}
                            got = job(prefix, program, name, shape, env, size, options)
                            for kind, value in got.items():
                                seen.setdefault((shape, kind, size), {}).setdefault((prefix, turn.get(kind)), []).append(value)
        finally:
            subprocess.run([SCRIPT, "remove", name], check=False)
    return seen


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def table(options, seen):
    for prefix in options.prefixes:
        print(f"\n{prefix}\n\n| hosts x ranks | | bytes | chosen | best forced | factor | the others |\n| --- | --- | ---: | ---: | --- | ---: | --- |")
        behind = cells = 0
        for (shape, kind, size), times in seen.items():
            mid = {word: statistics.median(t) for (of, word), t in times.items() if of == prefix}
            chosen = mid.pop(None, None)
            order = sorted(mid.items(), key=lambda item: item[1])
            if chosen is None:
                continue
            row = f"| {shape[0]}x{shape[1]} | {kind} | {size} | {number(chosen)} |"
            if order:
                factor = chosen / order[0][1]
                cells, behind = cells + 1, behind + (factor > 1.2)
                rest = ", ".join(f"{word} {number(value)}" for word, value in order[1:])
                row += f" {order[0][0]} {number(order[0][1])} | {factor:.2f} | {rest} |"
            print(row)
        if cells:
            print(f"\n{behind} of {cells} cells more than 1.2 times the best forced one")


def main():
    def shapes(text):
        return [tuple(map(int, shape.split("x"))) for shape in text.split(",")]

    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--shapes", type=shapes, default=shapes("2x1,2x2,4x1"))
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], default=SIZES)
    parser.add_argument("--only", type=lambda text: text.split(","), default=COLLECTIVES)
    parser.add_argument("--env", type=lambda text: tuple(text.split("=", 1)), action="append", default=[])
    parser.add_argument("--chosen", dest="forced", action="store_false", help="only what is chosen")
    parser.add_argument("--realtime", action="store_true", help="before whatever else runs (chrt)")
    parser.add_argument("prefixes", nargs="+", type=os.path.abspath)
    options = parser.parse_args()
    options.env = dict(options.env)
    with tempfile.TemporaryDirectory() as work:
        table(options, measure(options, work))


if __name__ == "__main__":
    main()
