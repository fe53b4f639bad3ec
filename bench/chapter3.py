#!/usr/bin/env python3
"""What chapter 3 of the dissertation on message passing over InfiniBand, iWARP and Myrinet measures at the level of MPI, between two
network namespaces on this machine, on each transport and on other libraries; where two ranks of one host can show it, in shared memory
as well. Prints a table for each definition, and a plot with what the paper's text says in numbers.

usage: chapter3.py [--build DIRECTORY] [--ways rc,rd,…] [--rounds 3] [--seconds 0.05] [--only latency,overlap,…]

Each figure is the median of as many runs, in random order in each round. `~` stands beside those whose greatest run is more than 1.5 times
the least, or 20 per cent points above it. Needs root and iproute2; libraries that are not in DIRECTORY/peers are left out.

Beside other load: `sh -c 'echo -20 > /proc/$$/autogroup; exec nice -n -20 python3 bench/chapter3.py'` in a session of its own, for where the
kernel shares processors out by sessions first, `nice` alone does nothing among them. Not at real-time priority (`chrt`): more ranks than cores that poll and never give way keep all others
from theirs for good, and no thread of a library comes between beside a program that computes.
"""

import argparse
import dataclasses
import os
import pathlib
import random
import statistics
import sys
import tempfile
import typing

import measuring
from measuring import HERE, SHARES, Hosts, compiled, machine, plot, points, ratios

NAME = f"chapter{os.getpid()}x"
KB, MB = 1 << 10, 1 << 20
EXCHANGES = [f"{who} computes, early {early}" for who in ("sender", "receiver") for early in ("sender", "receiver")]
# Programs of which one side computes.
TWO_SIDED = ("overlap", "progress", "stall")
# Rendezvous as the paper's libraries had it: from 16 KB on, one protocol, by an adapter with a thread of its own in place of a processor
# on the card, and nobody who goes on with it while the program computes.
PAPER_LIKE = {"TERN_EAGER_MAX": "16K", "TERN_PROGRESS": "inside"}
PEERS = ("mpich", "openmpi")
# How often a job of theirs is started at most: UCX now and then finds no device but `lo` in a namespace.
TRIES = 3
SOFTWARE = ("rc", "rd", "ud", "hybrid")
ALL = ("shm", *SOFTWARE, "ibv", *PEERS)
BETWEEN = ALL[1:]
COMPUTING = ("shm", *SOFTWARE, "ibv", "rget", "rput", *PEERS)
LETTERS = {"shm": "s", "rc": "c", "rd": "d", "ud": "u", "hybrid": "h", "ibv": "i", "rget": "g", "rput": "w", "mpich": "m", "openmpi": "o"}


@dataclasses.dataclass
class Definition:
    """One of the chapter's: what the paper says, who is measured, by which programs (name, ranks, arguments), which points (benchmark,
    variant, size), and what a plot is drawn of: a value beside that of another way or point, or itself."""

    name: str
    paper: str
    ways: tuple
    runs: list
    points: list
    title: str = ""
    beside: typing.Callable | None = None
    scale: measuring.Scale | None = None
    told: dict = dataclasses.field(default_factory=dict)
    settings: dict = dataclasses.field(default_factory=dict)


def each_size(program, ranks, only, sizes, *more):
    return [(program, ranks, ["--only", only, "--min", size, "--max", size, *more]) for size in sizes]


def beside_rc(way, point):
    return "rc", point


def beside_one(way, point):
    return way, (point[0], "1 at once", point[2])


def beside_kept(way, point):
    return way.removesuffix(" off"), point


def beside_reused(way, point):
    return way, (point[0], "100 %", point[2])


def itself(way, point):
    return None


def off(*ways):
    return tuple(name for way in ways for name in (way, f"{way} off"))


def basic():
    sizes = (8, KB, 8 * KB, 64 * KB, 256 * KB, MB)
    yield Definition(
        "latency", "Figure 3.3: half a ping-pong of short messages takes 7 µs over iWARP, 1.5 over InfiniBand, 3 over Myrinet, and 13 over "
        "Ethernet without any of them (section 3.3.2).",
        ALL, [("latency", 2, ["--only", "plain", "--quick", "--min", 8, "--max", "1M"])], [("latency", "plain", size) for size in sizes],
        "times RC's; p the paper's Ethernet beside its iWARP", beside_rc, ratios(16), {("plain", 8): [13 / 7]})
    yield Definition(
        "both ways", "Figure 3.5: up to 2.3 GB/s over iWARP and Myrinet, 3.2 over InfiniBand; 1.4 at 64 KB over Ethernet.",
        ALL, [("stream", 2, ["--only", "both_ways", "--quick", "--min", KB, "--max", "1M"])],
        [("both_ways", "", size) for size in sizes[1:]], "times RC's", beside_rc, ratios(16))


def pairs():
    short, long = (8, 2 * KB, 64 * KB), (2 * KB, 64 * KB, 256 * KB)
    at_once = [f"{count} at once" for count in (1, 2, 4)]
    yield Definition(
        "pairs, latency", "Figure 3.8: the mean of half a ping-pong over the pairs, divided by their number, decreases up to four pairs on all "
        "networks, whatever the length. No number stands in the text.",
        BETWEEN, each_size("connections", 8, "latency", short), [("latency", variant, size) for size in short for variant in at_once],
        "times what one pair takes", beside_one, ratios(16))
    yield Definition(
        "pairs, throughput", "Figure 3.9: the sum over the pairs grows very fast with them over iWARP and InfiniBand and is almost fixed over "
        "Myrinet, whatever the length.",
        BETWEEN, each_size("connections", 8, "throughput", long), [("throughput", variant, size) for size in long for variant in at_once],
        "times what one pair has; p the paper's Myrinet", beside_one, ratios(4),
        {(variant, size): [1] for variant in at_once[1:] for size in long})


def registration():
    sizes = (64 * KB, 256 * KB, MB, 4 * MB)
    settings = {"TERN_EAGER_MAX": "16K", "TERN_PROTOCOL": "rput"}
    ways, what = off("rc", "rd", "ibv"), ["--quick", "--min", "64K", "--max", "4M"]
    says = "the effect of the cache is considerable over iWARP and InfiniBand and lower over Myrinet. No number stands in the text. " \
           "Rendezvous by RPUT from 16 KB on, `off`: TERN_REGISTERED_MAX=0."
    yield Definition(
        "cache, latency", f"Figure 3.11: {says}", ways, [("latency", 2, ["--only", "plain", *what])],
        [("latency", "plain", size) for size in sizes], "without the cache, times what it takes with it", beside_kept, ratios(4), {}, settings)
    yield Definition(
        "cache, both ways", f"Figure 3.11: {says}", ways, [("stream", 2, ["--only", "both_ways", *what])],
        [("both_ways", "", size) for size in sizes], "without the cache, times what there is with it", beside_kept, ratios(4), {}, settings)
    sizes = (512, 16 * KB, 32 * KB, MB, 4 * MB)
    yield Definition(
        "reuse", "Figure 3.12: messages with new buffers take less than 1.2 times as long up to 512 bytes; eager ones less than 1.4 (iWARP), 1.7 "
        "(InfiniBand), 1.9 (Myrinet); then up to 6.7 at 16 KB over InfiniBand, 2.8 at 32 KB over iWARP, 2.3 at 1 MB over Myrinet.",
        COMPUTING, each_size("reuse", 2, "0 %,50 %,100 %", sizes),
        [("reuse", f"{share} %", size) for size in sizes for share in (0, 50, 100)], "times what it takes with buffers that are always reused; "
        "p the paper's", beside_reused, ratios(16), {("0 %", 512): [1.2], ("0 %", 16 * KB): [6.7], ("0 %", 32 * KB): [2.8], ("0 %", MB): [2.3]})


def computing():
    sizes = (8 * KB, 256 * KB, MB)
    yield Definition(
        "overlap", "Figure 3.14: sending overlaps much while it is eager and, over RGET, beyond, up to nearly 100 % at 1 MB; over RPUT "
        "very little beyond; receiving much while it is eager, beyond only over Myrinet. `rget` and `rput`: rendezvous as the paper's "
        "libraries had it.",
        COMPUTING, [("overlap", 2, ["--quick", "--min", low, "--max", high]) for low, high in (("8K", "8K"), ("256K", "1M"))],
        [("overlap", name, size) for name in EXCHANGES for size in sizes], "%; p the paper's RGET", itself, SHARES,
        {(name, MB): [100] for name in EXCHANGES[:2]})
    flat, both = {(name, 8 * KB): [0] for name in EXCHANGES[:2]}, {(name, 256 * KB): [0, 100] for name in EXCHANGES}
    yield Definition(
        "progress", "Figure 3.15: the part of a delay by which a message comes later. A sender's delay does not show at 8 KB, nor at 256 KB over "
        "RGET and Myrinet; all of it does over RPUT. A receiver's shows at both, but not over Myrinet.",
        COMPUTING, [("progress", 2, ["--quick", "--min", size, "--max", size]) for size in ("8K", "256K")],
        [("late", name, size) for name in EXCHANGES for size in (8 * KB, 256 * KB)], "% of a delay of 1 ms; p the paper's, flat and late", itself, SHARES,
        {**flat, **{(name, 8 * KB): [0, 100] for name in EXCHANGES[2:]}, **both})
    yield Definition(
        "stall", "None of the paper's (section 3.6.2 from the other side): how long the blocking side waits while the other one computes for 1 ms, and "
        "`alone`, when it does not.",
        COMPUTING, [("stall", 2, ["--quick", "--min", "1M", "--max", "16M"])],
        [("stall", f"{name}{alone}", size) for name in EXCHANGES for size in (MB, 4 * MB, 16 * MB) for alone in (", alone", "")])


def definitions():
    return [*basic(), *pairs(), *registration(), *computing()]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--ways", default="", help=f"some of {','.join(LETTERS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.05, help="for one point")
    parser.add_argument("--only", default="", help="definitions whose names contain one of these")
    given = parser.parse_args()
    given.build = given.build.absolute()
    given.ways = [word for word in given.ways.split(",") if word] or list(LETTERS)
    return given


def settings(build, way):
    """What a job of this way is told."""
    if way in PEERS:
        # Hosts that are namespaces look like one to who asks the kernel.
        return {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "tv31"} if way == "mpich" else {}
    name, _, is_off = way.partition(" ")
    told = {"TERN_REGISTERED_MAX": "0"} if is_off else {}
    if name in ("ibv", "rget", "rput"):
        told |= {"TERN_DEVICES": "ibv", "TERN_IBV_LIBRARY": str(build / "lib" / "tern" / "verbs" / "libibverbs.so.1")}
        return told if name == "ibv" else told | PAPER_LIKE | {"TERN_PROTOCOL": name}
    return told | ({"TERN_DEVICES": "shm"} if name == "shm" else {"TERN_TRANSPORT": name})


def as_favoured():
    """What starts a program in a session as much favoured as this one: launchers open sessions of their own."""
    try:
        # Empty for the first session of a machine, and where the kernel makes no such groups.
        favour = (pathlib.Path("/proc/self/autogroup").read_text(encoding="ascii").split() or ["0"])[-1]
    except OSError:
        return []
    return ["sh", "-c", f'echo {favour} > /proc/$$/autogroup; exec "$@"', "sh"] if favour != "0" else []


def launcher(hosts, scratch):
    """What others start in place of ssh."""
    script = scratch / "launcher"
    script.write_text(f'#!/bin/sh\nexec {hosts.reach} "$@"\n')
    script.chmod(0o755)
    return script


def launched(given, hosts, scratch, way, ranks):
    """What starts so many ranks."""
    if way not in PEERS:
        return [given.build / "bin" / "mpiexec", "-n", ranks] if way == "shm" else hosts.tern(given.build, ranks)
    mpiexec, script = given.build / "peers" / way / "bin" / "mpiexec", launcher(hosts, scratch)
    each = ranks // hosts.count
    if way == "mpich":
        where = ["-hosts", ",".join(hosts.names), "-ppn", each, "-launcher", "ssh", "-launcher-exec", script, "-iface", "tv31", "-bind-to", "none"]
    else:
        where = ["--host", ",".join(f"{name}:{each}" for name in hosts.names), "--mca", "plm_rsh_agent", script,
                 "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    return [*hosts.inside(), mpiexec, *where, "-n", ranks]


def run(given, hosts, scratch, definition, way):
    """All points of one way, once."""
    prefix = given.build / "peers" / way if way in PEERS else given.build
    folder, found = scratch / prefix.name, {}
    folder.mkdir(exist_ok=True)
    environment = settings(given.build, way)
    if way not in PEERS:
        environment = definition.settings | environment
    for program, ranks, arguments in definition.runs:
        binary = compiled(prefix / "bin" / "mpicc", folder, program, *(["exchange"] if program in TWO_SIDED else []))
        words = [*launched(given, hosts, scratch, way, ranks), *as_favoured(), binary, "--seconds", given.seconds, *arguments]
        found |= tried(words, environment, f"chapter3: {definition.name} by {way}", TRIES if way in PEERS else 1)
    return found


def tried(words, environment, what, times):
    """The points of a job that may fail, but so many times."""
    for _ in range(times - 1):
        try:
            return points(words, environment, what)
        except SystemExit as failed:
            print(f"{failed}\nchapter3: once more", file=sys.stderr)
    return points(words, environment, what)


def measure(given, scratch, definition, ways):
    """By way and point, all readings; and the units of the points."""
    readings, units = {}, {}
    with Hosts(NAME, 2) as hosts:
        for _ in range(given.rounds):
            for way in random.sample(ways, len(ways)):
                found = run(given, hosts, scratch, definition, way)
                for point in definition.points:
                    if point not in found:
                        sys.exit(f"chapter3: {definition.name} by {way}: no {point} among {sorted(found)}")
                    value, units[point] = found[point]
                    readings.setdefault((way, point), []).append(value)
    return readings, units


def label(point):
    size = point[2]
    length = f"{size // MB} MB" if size >= MB else f"{size // KB} KB" if size >= KB else f"{size} B"
    return length if point[1] in ("", "plain") else f"{point[1]}, {length}"


def cell(values, unit):
    least, greatest = min(values), max(values)
    is_noisy = greatest - least > 20 if unit == "%" else greatest > 1.5 * least
    middle = statistics.median(values)
    return f"{middle:,.0f}{' ~' * is_noisy}" if middle >= 1000 else f"{middle:.3g}{' ~' * is_noisy}"


def table(definition, ways, readings, units):
    print(f"\n### {definition.name}\n\n{definition.paper}\n\n|  | unit | {' | '.join(ways)} |\n| --- | --- {'| ---: ' * len(ways)}|")
    for point in definition.points:
        cells = [cell(readings[way, point], units[point]) for way in ways]
        print(f"| {label(point)} | {units[point]} | {' | '.join(cells)} |")


def drawn(definition, ways, middle):
    """Lines of the plot: those points that have something to stand beside."""
    for point in definition.points:
        values = []
        for way in ways:
            base = definition.beside(way, point)
            if base is None:
                values.append((LETTERS[way], middle[way, point]))
            elif base != (way, point) and middle.get(base):
                values.append((LETTERS[way.removesuffix(" off")], middle[way, point] / middle[base]))
        if values:
            yield label(point), [*values, *(("p", value) for value in definition.told.get(point[1:], []))]


def report(given, scratch, definition):
    is_there = lambda way: way not in PEERS or (given.build / "peers" / way / "bin" / "mpicc").exists()
    ways = [way for way in definition.ways if way.partition(" ")[0] in given.ways and is_there(way)]
    if not ways:
        return
    readings, units = measure(given, scratch, definition, ways)
    table(definition, ways, readings, units)
    if definition.beside:
        middle = {key: statistics.median(values) for key, values in readings.items()}
        names = ", ".join(f"{LETTERS[way]} {way}" for way in ways if way in LETTERS)
        plot(f"{definition.title}; {names}", list(drawn(definition, ways, middle)), definition.scale)


def main():
    given = options()
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        sys.exit("chapter3: not at real-time priority: ranks that poll would keep all others from running for good")
    wanted = [word for word in given.only.split(",") if word]
    print(f"{machine()}; medians of {given.rounds} runs", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for definition in definitions():
            if not wanted or any(word in definition.name for word in wanted):
                report(given, pathlib.Path(scratch), definition)


if __name__ == "__main__":
    main()
