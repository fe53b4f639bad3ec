"""Ranks of two hosts lose the way to each other: two network namespaces with a cable for the launcher and one for messages,
which is cut, for a moment or for good, or changed."""

import contextlib
import itertools
import os
import random
import re
import signal
import time

from hosts import made, namespaces
from support import Case

# After so long a peer that does not answer is lost: it is looked for every 5 s, and may take 15 s to answer; an error about
# it is held back for another 5 s. The rest is what a busy machine takes.
BOUND = 180
RANKS = 4
TRANSPORTS = ["rc", "rd"]


def cases():
    for transport, what in itertools.product(TRANSPORTS, ["receive", "any", "probe", "send", "exchange", "collective"]):
        name = f"a cable cut for good, {transport}, {what}: a named error"
        is_long = (transport, what) not in [("rc", "receive"), ("rd", "collective")]
        yield Case(name, lambda t, x=transport, w=what: cut(t, x, w), is_long)
    for transport, algorithm in itertools.product(TRANSPORTS, ["auto", "ring", "linear"]):
        name = f"one of three hosts is cut off, {transport}, allreduce {algorithm}: all who wait are told"
        is_long = (transport, algorithm) != ("rc", "ring")
        yield Case(name, lambda t, x=transport, a=algorithm: cut_off(t, x, a), is_long)
    for transport, what in itertools.product(["ud", "hybrid"], ["receive", "send", "exchange"]):
        name = f"a cable cut for good, {transport}, {what}: a named error"
        yield Case(name, lambda t, x=transport, w=what: cut(t, x, w), (transport, what) != ("ud", "exchange"))
    yield Case("a peer that computes for 40 s, ud: waited for", lambda t: computes(t, "ud"), True)
    for transport in [*TRANSPORTS, "ud", "hybrid"]:
        for host, end in (1, "own"), (2, "other"):
            name = f"the first messages while the {end} end of the cable is down, {transport}: they arrive"
            yield Case(name, lambda t, x=transport, h=host: first(t, x, h), (transport, end) != ("rc", "own"))
    yield Case("the first messages over a cable that stays cut, rc: a named error", lambda t: first(t, "rc", 1, True), True)
    for transport in ["ud", "hybrid"]:
        yield Case(f"cuts of 100 ms, {transport}: survived", lambda t, x=transport: short_cuts(t, x))
        yield Case(f"the MTU changes, {transport}: all arrives", lambda t, x=transport: mtu(t, x))
    for transport in [*TRANSPORTS, "ud", "hybrid"]:
        name = f"a short message is lost and its sender computes, {transport}: it arrives meanwhile"
        yield Case(name, lambda t, x=transport: leaves(t, x), transport not in ["rd", "ud"])
    for transport in TRANSPORTS:
        is_rc = transport == "rc"
        for what in ["receive", "collective"]:
            name = f"a cable cut for good, {transport}, {what}, not expected by the program: ends the job"
            is_long = (transport, what) != ("rd", "collective")
            yield Case(name, lambda t, x=transport, w=what: fatal(t, x, w), is_long)
        yield Case(f"cuts of 100 ms, {transport}: survived", lambda t, x=transport: short_cuts(t, x))
        yield Case(f"a peer that computes for 40 s, {transport}: waited for", lambda t, x=transport: computes(t, x), True)
        yield Case(f"the MTU changes, {transport}: all arrives", lambda t, x=transport: mtu(t, x))
        yield Case(f"no route, {transport}: a named error", lambda t, x=transport: no_route(t, x), is_rc)
        yield Case(f"half-open connections, {transport}: a named error", lambda t, x=transport: half_open(t, x), not is_rc)
        yield Case(f"a rank is killed, {transport}: the job ends", lambda t, x=transport: killed(t, x))


@contextlib.contextmanager
def job(tools, transport, what, *more):
    """Two ranks on each of two hosts, which have all met, the hosts, and what ends the program; messages have a cable of their own, net 32."""
    stop = tools.scratch / "stop"
    stop.unlink(missing_ok=True)
    with namespaces(tools) as (hosts, inside, both):
        both.script("cable", 2, 32)
        settings = ["--genv", "TERN_INTERFACE", "10.77.32.0/24", "--genv", "TERN_TRANSPORT", transport]
        words = [*hosts, *settings, *more, tools.program("lost"), what, stop]
        with tools.job(*words, launcher=inside) as running:
            running.wait_for("all to meet", lambda: running.printed().count("met") == RANKS)
            yield running, both, stop


def expect_lost(outcome):
    outcome.expect(outcome.code == 0, "ranks that go on after the error")
    for rank in range(RANKS):
        outcome.expect(f"rank {rank}: goes on" in outcome.out, f"that rank {rank} goes on")
    outcome.expect(outcome.out.count(": aborted: ") == RANKS, "MPI_ERR_PROC_ABORTED on all ranks")
    outcome.expect("all went well" not in outcome.out, "no success")


def cut(tools, transport, what):
    with job(tools, transport, what) as (running, hosts, _):
        time.sleep(0.5)
        hosts.link(32, "down")
        expect_lost(running.end(BOUND))


def cut_off(tools, transport, algorithm):
    """A rank that waits for one that has given up is told of it; so are those who come to the end of the program."""
    with made(tools, 3) as hosts:
        hosts.script("cable", 3, 32)
        words = [*hosts.words(2), "--genv", "TERN_INTERFACE", "10.77.32.0/24"]
        words += ["--genv", "TERN_TRANSPORT", transport, "--genv", "TERN_COLL_ALLREDUCE", algorithm]
        words += [tools.program("lost"), "collective", tools.scratch / "stop"]
        with tools.job(*words, launcher=hosts.inside(tools.mpiexec)) as running:
            running.wait_for("all to meet", lambda: running.printed().count("met") == 6)
            time.sleep(0.5)
            hosts.ip("s", "link", "set", "p32-3", "down")
            outcome = running.end(BOUND)
        outcome.expect(outcome.code == 0, "ranks that go on after the error")
        for rank in range(6):
            outcome.expect(f"rank {rank}: goes on" in outcome.out, f"that rank {rank} goes on")
        outcome.expect(outcome.out.count(": aborted: ") == 6, "MPI_ERR_PROC_ABORTED on all ranks")


def fatal(tools, transport, what):
    with job(tools, transport, what, "--genv", "LOST_IS_FATAL", "1") as (running, hosts, _):
        hosts.link(32, "down")
        outcome = running.end(BOUND)
        outcome.expect(outcome.code == 58, "the class as exit code")
        outcome.expect_message(r"MPI_\w+\(.*\): .*rank \d of MPI_COMM_WORLD is lost: (10\.77\.32\.\d:\d+ does not answer: )?\w")


def short_cuts(tools, transport):
    with job(tools, transport, "survive") as (running, hosts, stop):
        for _ in range(5):
            time.sleep(0.3)
            hosts.link(32, "down")
            time.sleep(0.1)
            hosts.link(32, "up")
        # A TCP that has lost something just then tries again some 100 ms later.
        time.sleep(1)
        stop.touch()
        outcome = running.end(BOUND)
        outcome.expect(outcome.code == 0 and outcome.out.count("all went well") == RANKS, "that all arrives")
        outcome.expect(outcome.err == "", "silence")


def first(tools, transport, host, stays=False):
    """Longer than a system looks for a neighbour (3 s), and says then that there is no way."""
    with job(tools, transport, "first") as (running, hosts, begin):
        hosts.link(32, "down", host=host)
        begin.touch()
        if stays:
            return expect_lost(running.end(BOUND))
        time.sleep(4)
        hosts.link(32, "up", host=host)
        outcome = running.end(BOUND)
        outcome.expect(outcome.code == 0 and outcome.out.count("all went well") == RANKS, "that all arrives")
        outcome.expect(outcome.err == "", "silence")


def leaves(tools, transport):
    """What was lost while the cable was cut is sent again although its sender does not call MPI any more."""
    with job(tools, transport, "leaves") as (running, hosts, begin):
        for rank in range(RANKS):
            begin.with_name(f"{begin.name}.{rank}").unlink(missing_ok=True)
        hosts.link(32, "down", host=2)
        begin.touch()
        time.sleep(0.5)
        hosts.link(32, "up", host=2)
        outcome = running.end(BOUND)
        outcome.expect(outcome.code == 0 and outcome.out.count("all went well") == RANKS, "that all arrives")


def computes(tools, transport):
    with job(tools, transport, "computes") as (running, _, _):
        outcome = running.end(120)
        outcome.expect(outcome.code == 0 and outcome.out.count("all went well") == RANKS, "that all arrives")


def mtu(tools, transport):
    with job(tools, transport, "survive") as (running, hosts, stop):
        for length in ["9000", "1300", "600", "1500"]:
            time.sleep(0.3)
            # The way back is found out when a packet is refused: the narrow end is the sender's first.
            for host in (1, 2) if int(length) < 1500 else (2, 1):
                hosts.link(32, "mtu", length, host=host)
        time.sleep(1)
        stop.touch()
        outcome = running.end(BOUND)
        outcome.expect(outcome.code == 0 and outcome.out.count("all went well") == RANKS, "that all arrives")


def no_route(tools, transport):
    with job(tools, transport, "exchange") as (running, hosts, _):
        time.sleep(0.5)
        for host, other in (1, 2), (2, 1):
            hosts.ip(host, "route", "add", "unreachable", f"10.77.32.{other}/32")
            hosts.ip(host, "neigh", "flush", "all")
        expect_lost(running.end(BOUND))


def half_open(tools, transport):
    """One end is deaf from now on, and the other hears no more than that it is: nothing tells it that anything ended."""
    with job(tools, transport, "receive") as (running, hosts, _):
        hosts.ip(2, "addr", "flush", "dev", "tv32")
        expect_lost(running.end(BOUND))


def killed(tools, transport):
    """Any rank, at any time: the job ends, and who died is named."""
    seed = int(os.environ.get("TERN_TEST_SEED", time.time_ns() % 1_000_000))
    chance = random.Random(seed)
    for _ in range(int(os.environ.get("TERN_KILLS", 3))):
        rank, after = chance.randrange(RANKS), chance.random()
        with job(tools, transport, chance.choice(["exchange", "send", "collective"])) as (running, _, _):
            pids = {int(r): int(p) for r, p in re.findall(r"met: rank (\d+), process (\d+)", running.printed())}
            time.sleep(after)
            os.kill(pids[rank], signal.SIGKILL)
            outcome = running.end(BOUND)
            outcome.expect(outcome.code == 137, f"the code of a signal (TERN_TEST_SEED={seed})")
            outcome.expect_message(rf"rank {rank} \(.*\) was killed by signal 9")
