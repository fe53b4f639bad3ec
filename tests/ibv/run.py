#!/usr/bin/env python3
"""The device over libibverbs (TERN_DEVICES=ibv) on Tern's own libibverbs, which makes an adapter of each network interface:
between two namespaces, over rails and under each protocol, and what goes wrong with adapters, by a library in between that
does it (faults.c)."""

import argparse
import collections
import csv
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "hang"))

import cuts  # noqa: E402
from hosts import made  # noqa: E402
from lanes import play  # noqa: E402
from support import Case, Skip, run  # noqa: E402

HEADER = pathlib.Path("/usr/include/infiniband/verbs.h")
# Statuses of completions and events of adapters (verbs.h), and what is said of them.
RETRIES, RNR, ACCESS = 12, 13, 10
FATAL, QUEUE, OF_PAIR = 8, 0, 1
# Name, fault, length of messages, and what the rank that has it must say.
BROKEN = [
    ("retries exceeded", f"status:20:{RETRIES}", 100, r"transport retry counter exceeded .*gone, or the network"),
    ("retries exceeded, long messages", f"status:20:{RETRIES}", 300000, r"transport retry counter exceeded"),
    ("no receive buffer", f"status:20:{RNR}", 100, r"RNR retry counter exceeded .*no receive buffer"),
    ("remote access", f"status:20:{ACCESS}", 100, r"remote access error .*registered"),
    ("a queue pair gives up", f"event:20:{OF_PAIR}", 100, r".*"),
    ("port down", "port:20", 100, r".*the port is down"),
]
SHORT, FATALLY = ["100", "2000"], ["100", "2000", "fatal"]
# Name, fault, settings, arguments of lasting.c for two ranks, whether the job goes on, and what is said.
LIMITS = [
    ("nothing wrong", None, {}, ["1000000", "20"], True, "rank 1 done"),
    *((f"a small adapter, {transport}", "small", {"TERN_TRANSPORT": transport}, ["300000", "20"], True, "rank 1 done")
      for transport in ["rc", "ud", "hybrid"]),
    ("registrations refused", "regions:2000000", {}, ["3000000", "20"], True,
     r"messages are copied because .*Cannot allocate memory.*ulimit -l"),
    ("registrations refused, pages on demand", "paging:2000000", {}, ["3000000", "20"], True,
     r"faults: pages are fetched on demand"),
    ("no shared receive queue, without a reason", "mute", {}, SHORT, False,
     r"no shared receive queue of \d+: its library gives no reason .*the adapter has \d+ completion queues and \d+ shared receive queues\); .*TERN_DEVICES=rnic"),
    ("no queue pairs", "pairs:0", {}, SHORT, False, r"no queue pair: Cannot allocate memory"),
    ("device fatal", f"event:20:{FATAL}", {}, FATALLY, False, r"local catastrophic error: the adapter has given up"),
    ("completion queue overrun", f"event:20:{QUEUE}", {}, FATALLY, False, r"CQ error: the adapter has given up"),
    ("no adapters", "none", {}, SHORT, False, r"finds no adapter; .*TERN_DEVICES=rnic"),
    ("port not active", "down", {}, SHORT, False, r"the port is not active: is its cable plugged"),
    ("one rank without", "none", {"TERN_TEST_FAULT_RANK": "1"}, SHORT, False, r"rank 1 on \S+ has no adapter|finds no adapter"),
    ("no such adapter", None, {"TERN_IBV_PORTS": "mlx5_0"}, SHORT, False,
     r"TERN_IBV_PORTS: there is no adapter mlx5_0; there are: .*tern_lo"),
    ("no such address", None, {"TERN_IBV_PORTS": "tern_lo:1:7"}, SHORT, False,
     r"tern_lo port 1: it has no address \(GID\), or none of that index"),
    ("no such partition", None, {"TERN_IBV_PARTITION": "1234"}, SHORT, False, r"no partition key 0x1234"),
    ("no RD", None, {"TERN_TRANSPORT": "rd"}, SHORT, False, r"TERN_TRANSPORT=rd is the software adapter's"),
    ("no library", None, {"TERN_IBV_LIBRARY": "/nowhere/libibverbs.so.1"}, SHORT, False,
     r"libibverbs, which is not there: .*/nowhere.*TERN_DEVICES=rnic"),
]


# What `auto` makes of adapters: name, settings, whether it takes them, what is said; {bus} is a folder as devices of a bus have it.
AUTO = [
    ("adapters in software", {}, False, None),
    ("an adapter in software that is named", {"TERN_IBV_PORTS": "tern_tv31"}, True, None),
    ("adapters in hardware", {"TERN_TEST_FAULT": "hardware:{bus}"}, True, None),
    ("the port is not active", {"TERN_TEST_FAULT": "down", "TERN_IBV_PORTS": "tern_tv31"}, False,
     r"by the software adapter, not by what TERN_IBV_PORTS names: rank 0 on \S+: .*the port is not active"),
    ("a library that is not there", {"TERN_IBV_LIBRARY": "/nowhere/libibverbs.so.1"}, False,
     r"by the software adapter, not by what TERN_IBV_LIBRARY names: rank 0 on \S+: .*/nowhere"),
    ("one rank has none", {"TERN_TEST_FAULT": "hardware:{bus}", "TERN_TEST_FAULT_RANK": "0"}, False,
     r"by the software adapter, not by .*: rank 1 on \S+: .*in software"),
    ("a manner that they do not have", {"TERN_TEST_FAULT": "hardware:{bus}", "TERN_INTEGRITY": "mac"}, False, None),
    ("the software adapter is asked for", {"TERN_TEST_FAULT": "hardware:{bus}", "TERN_DEVICES": "shm+rnic"}, False, None),
]


def breaking():
    """An error about a peer is held back for 5 s, in which its death might be told: so these wait too."""
    for name, fault, length, why in BROKEN:
        yield Case(f"{name}: a named error, the others go on", lambda t, f=fault, n=length, w=why: broken(t, f, n, w))


def cases():
    for name, *what in LIMITS:
        yield Case(name, lambda t, x=what: limited(t, *x))
    yield Case("tern verbs bench: every row has a figure", bench)
    yield Case("tern verbs bench: every curve has its points", curves)
    yield Case("tern verbs bench, queues that are refused for their place: every row has a figure", bench_of_siw)
    for transport in ["rc", "ud"]:
        yield Case(f"a rank is killed, {transport}: the job ends", lambda t, x=transport: killed(t, x))
    for fault, way in (None, "adapter"), ("hca", "messages"):
        name = f"atomics of the adapter, {fault or 'also against the processor'}: by {way}"
        yield Case(name, lambda t, f=fault, w=way: words(t, f, w))
    yield Case("few queue pairs: an error that names the remedy", few_pairs)
    yield Case("little memory may be locked: messages are copied", memlock)


def waiting():
    """Those that wait most of their time, a lane for each."""
    for what, transport in ("hellos", "rc"), ("datagrams", "ud"):
        yield [Case(f"{what} go astray: a named error", lambda t, x=transport: astray(t, x))]
    yield [Case("a cable that is cut for good: a named error", cut)]


def between():
    for devices, transport in itertools.product(["ibv", "shm+ibv"], ["rc", "ud", "hybrid"]):
        settings = {"TERN_DEVICES": devices, "TERN_TRANSPORT": transport}
        yield Case(f"two namespaces, {devices}, {transport}: all bytes arrive", lambda t, s=settings: hosts(t, s))
    for name, settings, is_taken, says in AUTO:
        yield Case(f"two namespaces, auto, {name}", lambda t, s=settings, i=is_taken, w=says: unasked(t, s, i, w))
    for protocol in ["auto", "rput", "rget", "pipeline", "superpipeline", "speculative"]:
        settings = {"TERN_PROTOCOL": protocol, "TERN_IBV_PORTS": "tern_tv31,tern_tv32"}
        yield Case(f"two namespaces, two rails, {protocol}: all bytes arrive", lambda t, s=settings: hosts(t, s))


def library(tools):
    return tools.prefix / "lib" / "tern" / "verbs" / "libibverbs.so.1"


def faults(tools):
    """The library that does things wrong."""
    if not HEADER.exists():
        raise Skip(f"there is no {HEADER} (Debian's package libibverbs-dev)")
    built = tools.scratch / "libfaults.so"
    if not built.exists():
        real = library(tools)
        build = ["cc", "-O1", "-g", "-Wall", "-Werror", "-Wno-deprecated-declarations", "-fPIC", "-shared", "-o", built]
        build += [ROOT / "tests" / "ibv" / "faults.c", "-Wl,--no-as-needed", real, f"-Wl,-rpath,{real.parent}", "-ldl"]
        subprocess.run(build, check=True)
    return str(built)


def job(tools, ranks, *arguments, fault=None, launcher=None, **settings):
    """How lasting.c ends with these ranks and this fault."""
    environment = {"TERN_DEVICES": "ibv", "TERN_IBV_LIBRARY": faults(tools), "TERN_TEST_FAULT": fault} | settings
    return run(tools, "-n", ranks, tools.program("lasting", "../ibv"), *arguments, env=environment, launcher=launcher)


def broken(tools, fault, length, why):
    """Rank 1 has it: once errors are returned, once they end the job."""
    faulty = {"fault": fault, "TERN_TEST_FAULT_RANK": "1"}
    outcome = job(tools, 3, length, 2000, **faulty)
    outcome.expect(outcome.code == 0, "ranks that go on after the error")
    outcome.expect("rank 0: aborted" in outcome.out and "rank 1: aborted" in outcome.out, "errors of both ranks")
    outcome.expect(all(f"rank {rank} done" in outcome.out for rank in range(3)), "the end of all ranks")
    outcome = job(tools, 2, length, 2000, "fatal", 1, **faulty)
    outcome.expect(outcome.code == 58, "the class as exit code")
    outcome.expect_message(rf"rank 1: MPI_\w+\(.*\): .*rank 0 of MPI_COMM_WORLD is lost: tern_\w+ port 1: {why}")


def limited(tools, fault, settings, arguments, goes_on, says):
    outcome = job(tools, 2, *arguments, fault=fault, **settings)
    outcome.expect((outcome.code == 0) == goes_on, "success" if goes_on else "an error")
    outcome.expect(re.search(says, outcome.out + outcome.err), f"/{says}/")
    outcome.expect(not goes_on or outcome.out.count("done") == 2, "the end of both ranks")


def few_pairs(tools):
    outcome = job(tools, 3, "100", "20", "fatal", fault="pairs:1", TERN_TEST_FAULT_RANK="1")
    outcome.expect(outcome.code != 0, "an error")
    outcome.expect_message(r"no queue pair for it: Cannot allocate memory .*TERN_TRANSPORT=hybrid")


def memlock(tools):
    limited = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", "prlimit", "--memlock=4194304", tools.mpiexec]
    outcome = job(tools, 2, 3000000, 20, fault="memlock", launcher=limited)
    outcome.expect(outcome.code == 0, "success")
    outcome.expect_message(r"messages are copied because .*can be locked.*ulimit -l")


def astray(tools, transport):
    """What rank 1 answers never comes; that it is there is known."""
    outcome = job(tools, 2, 100, 20, "fatal", 0, fault="deaf", TERN_TEST_FAULT_RANK="1", TERN_TRANSPORT=transport)
    outcome.expect(outcome.code == 58, "the class as exit code")
    said = r"its process is there and looks around \(\S+\), but nothing of it has come over the adapter for \d+ s"
    outcome.expect_message(rf"rank 1 of MPI_COMM_WORLD is lost: {said}")


def killed(tools, transport):
    """A rank that only waits for one that dies at once."""
    outcome = job(tools, 2, 100, 20, "waits", fault="dies:20", TERN_TEST_FAULT_RANK="1", TERN_TRANSPORT=transport)
    outcome.expect(outcome.code == 137, "the code of a signal")
    outcome.expect_message(r"rank 1 \(.*\) was killed by signal 9")


def bench(tools):
    environment = {"TERN_DEVICES": None, "TERN_IBV_LIBRARY": str(library(tools))}
    outcome = run(tools, "verbs", "bench", "--rounds", "8", env=environment, launcher=[tools.tern])
    figures = re.findall(r"^(rnic|ibv) +(\S.*\S) +(\d+\.\d\d+)$", outcome.out, re.MULTILINE)
    outcome.expect(outcome.code == 0, "success")
    # 25 of one connection and 9 of datagrams; of the adapter of the system two more with each of four other numbers of connections.
    counts = [sum(adapter == name for adapter, *_ in figures) for name in ("rnic", "ibv")]
    outcome.expect(counts == [34, 42], f"34 and 42 figures, not {counts}")
    is_there = lambda name: any(row.startswith("datagram, 8 B") and float(value) > 0 for adapter, row, value in figures if adapter == name)
    outcome.expect(is_there("rnic") and is_there("ibv"), "the latency of datagrams of both")


# Curves of each adapter in a figure, and points of each; the software adapter has one connection.
CURVES = {"latency": (3, 8), "bandwidth": (4, 6), "registration": (2, 8), "reuse": (3, 4), "connections-latency": (4, 5), "connections-throughput": (3, 5)}


def curves(tools):
    """Datagrams are as long as a port lets them be: shorter curves."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"TERN_DEVICES": None, "TERN_IBV_LIBRARY": str(library(tools))}
        words = ["verbs", "bench", "--rounds", "8", "--plots", folder]
        outcome = run(tools, *words, env=environment, launcher=[tools.tern])
        outcome.expect(outcome.code == 0, "success")
        drawn = {path.stem: path.read_text(encoding="utf-8") for path in pathlib.Path(folder).glob("*.svg")}
        with open(pathlib.Path(folder) / "values.csv", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
    outcome.expect(sorted(drawn) == sorted(CURVES), f"a file for each figure, not {sorted(drawn)}")
    outcome.expect(all(float(row["value"]) > 0 for row in rows), "values above 0")
    for figure, (count, length) in CURVES.items():
        found = collections.Counter((row["adapter"], row["curve"]) for row in rows if row["figure"] == figure)
        whole = [key for key, points in found.items() if points == (1 if "connections" in figure and key[0] == "rnic" else length)]
        datagrams = [key for key in found if "datagram" in key[1]]
        outcome.expect(len({*whole, *datagrams}) == len(found) == 2 * count, f"{figure}: whole curves, not {dict(found)}")
        outcome.expect(drawn.get(figure, "").count("<polyline") == len(found), f"{figure}: all of them drawn")


def bench_of_siw(tools):
    """As many rails of one adapter as there are connections, each with queues whose places siw deals out."""
    environment = {"TERN_DEVICES": None, "TERN_IBV_LIBRARY": faults(tools), "TERN_TEST_FAULT": "siw"}
    outcome = run(tools, "verbs", "bench", "--adapter", "ibv", "--rounds", "8", env=environment, launcher=[tools.tern])
    outcome.expect(outcome.code == 0, "success")
    outcome.expect(len(re.findall(r"^ibv +\S.*\S +\d+\.\d\d+$", outcome.out, re.MULTILINE)) == 42, "42 figures")


def cut(tools):
    """Ranks that wait for messages of those behind the cable."""
    settings = {"TERN_DEVICES": "shm+ibv", "TERN_IBV_LIBRARY": library(tools), "TERN_IBV_PORTS": "tern_tv32"}
    words = [word for name, value in settings.items() for word in ("--genv", name, value)]
    with cuts.job(tools, "rc", "receive", *words) as (running, both, _):
        both.link(32, "down")
        cuts.expect_lost(running.end(cuts.BOUND))


def hosts(tools, settings):
    """Two hosts that namespaces stand for, with two nets between them."""
    with made(tools, 2) as both:
        both.script("cable", 2, 32)
        settings = {"TERN_DEVICES": "ibv", "TERN_IBV_LIBRARY": str(library(tools))} | settings
        words = [*both.words(2), tools.program("bytes")]
        outcome = run(tools, *words, env=settings, launcher=both.inside(tools.mpiexec))
        outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
        outcome.expect(outcome.err == "", "silence")


def words(tools, fault, way):
    """Words of windows are changed by the adapter where nothing comes between, else by messages; the sums are right either way."""
    program = tools.program("words", "../c/rma")
    environment = {"TERN_DEVICES": "ibv", "TERN_IBV_LIBRARY": faults(tools), "TERN_TEST_FAULT": fault}
    outcome = run(tools, "-n", 3, program, "create", "given", way, env=environment)
    outcome.expect(outcome.code == 0 and "test passed" in outcome.out, "the right sums, in this way")


def unasked(tools, settings, is_taken, says):
    """TERN_DEVICES=auto between two hosts."""
    bus = tools.scratch / "bus"
    (bus / "device").mkdir(parents=True, exist_ok=True)
    settings = {name: value.replace("{bus}", str(bus)) for name, value in settings.items()}
    settings = {"TERN_DEVICES": "auto", "TERN_IBV_LIBRARY": faults(tools), "TERN_TEST_COUNTS": "1"} | settings
    with made(tools, 2) as both:
        both.script("cable", 2, 32)
        words = [*both.words(2), tools.program("bytes")]
        outcome = run(tools, *words, env=settings, launcher=both.inside(tools.mpiexec))
    outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
    outcome.expect(("work was posted" in outcome.err) == is_taken, "the adapter" if is_taken else "no adapter of the system")
    said = [line for line in outcome.err.splitlines() if "faults: " not in line]
    outcome.expect(re.search(says, outcome.err) if says else not said, f"/{says}/" if says else "silence")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", type=pathlib.Path, default=ROOT / "build", help="tree to test (build/)")
    parser.add_argument("word", nargs="*", help="only cases whose name contains one of these")
    arguments = parser.parse_args()
    lanes = [*((lane, 1) for lane in waiting()), (list(breaking()), 4), (list(between()), 1), (list(cases()), 1)]
    if arguments.word:
        wanted = lambda case: any(word in case.name for word in arguments.word)
        lanes = [(list(filter(wanted, lane)), at_once) for lane, at_once in lanes]
    return play(lanes, arguments)


if __name__ == "__main__":
    sys.exit(main())
