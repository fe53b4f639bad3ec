"""Much between hosts: random traffic for a while, over a cable that is cut for moments and with ranks that die; connections that
come and go; and more ranks and hosts than elsewhere.

TERN_TEST_SOAK_SECONDS=600 (default 20, shared out among the transports), TERN_TEST_SEED, TERN_TEST_CROWD=8x16 (hosts and ranks of each)."""

import os
import random
import re
import signal
import time

from cuts import BOUND
from hosts import TRANSPORTS, made, namespaces
from support import Case

PROTOCOLS = ["", "rget", "rput", "pipeline", "superpipeline", "speculative", "eager-copy"]
# How long one job of the soak is: then its protocol changes.
TURN = 5


def cases():
    for transport in TRANSPORTS:
        yield Case(f"three namespaces, {transport}: random traffic for a while", lambda t, x=transport: soak(t, x))
    yield Case("two namespaces, hybrid, one connection: connections come and go, and all bytes arrive", turns)
    for transport in ["rc", "ud"]:
        name = f"four namespaces, 32 ranks, {transport}: everybody speaks with everybody"
        yield Case(name, lambda t, x=transport: crowd(t, x), transport == "ud")


def soak(tools, transport):
    """Each job has a protocol and a seed of its own; their cable is cut again and again for a moment, and some lose a rank."""
    seed = int(os.environ.get("TERN_TEST_SEED", time.time_ns() % 1_000_000))
    chance = random.Random(f"{seed} {transport}")
    left = float(os.environ.get("TERN_TEST_SOAK_SECONDS", 20)) / len(TRANSPORTS)
    while left > 0:
        seconds, protocol, dies = min(left, TURN), chance.choice(PROTOCOLS), chance.random() < 0.2
        left -= TURN
        with made(tools, 3) as hosts:
            hosts.script("cable", 3, 32)
            chosen = ["--genv", "TERN_TRANSPORT", transport, "--genv", "TERN_INTERFACE", "10.77.32.0/24"]
            chosen += ["--genv", "TERN_PROTOCOL", protocol] if protocol else []
            words = [*hosts.words(2), *chosen, tools.program("soak"), seconds, chance.randrange(1 << 30)]
            with tools.job(*words, launcher=hosts.inside(tools.mpiexec)) as job:
                victim = disturb(job, hosts, chance, seconds, dies)
                outcome = job.end(BOUND)
        what = f"(protocol {protocol or 'chosen'}, TERN_TEST_SEED={seed})"
        if victim is None:
            outcome.expect(outcome.code == 0 and "all went well" in outcome.out, f"all bytes {what}")
            outcome.expect(outcome.err == "", f"silence {what}")
        else:
            outcome.expect(outcome.code == 137, f"the code of a signal {what}")
            outcome.expect_message(rf"rank {victim} \(.*\) was killed by signal 9")


def disturb(job, hosts, chance, seconds, dies):
    """Cuts cables of messages for moments, at the switch, until the job has ended, or kills one of its ranks: which."""
    moment = time.monotonic() + chance.uniform(0.1, 0.9) * seconds
    processes = r"rank (\d+), process (\d+)"
    if dies:
        job.wait_for("all to start", lambda: len(re.findall(processes, job.printed())) == 6)
    while job.process.poll() is None:
        if dies and time.monotonic() > moment:
            victim, process = chance.choice(sorted(re.findall(processes, job.printed())))
            os.kill(int(process), signal.SIGKILL)
            return int(victim)
        time.sleep(chance.uniform(0.2, 1))
        port = f"p32-{chance.randrange(1, 4)}"
        hosts.ip("s", "link", "set", port, "down")
        time.sleep(chance.uniform(0.01, 0.15))
        hosts.ip("s", "link", "set", port, "up")
    return None


def turns(tools):
    """Each rank has one connection and two peers that earn one."""
    with namespaces(tools) as (hosts, inside, _):
        chosen = {"TERN_TRANSPORT": "hybrid", "TERN_CONNECTIONS": "1", "TERN_EXPLAIN": "used"}
        words = [word for pair in chosen.items() for word in ("--genv", *pair)]
        with tools.job(*hosts, *words, tools.program("turns"), launcher=inside) as job:
            outcome = job.end()
        outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
        told = outcome.out + outcome.err
        counts = [[int(n) for n in found] for found in re.findall(r"(\d+) begun, (\d+) refused, (\d+) given back", told)]
        outcome.expect(sum(begun for begun, _, _ in counts) >= 4, "connections to begin")
        outcome.expect(sum(ended for _, _, ended in counts) >= 2, "connections to be given back")


def crowd(tools, transport):
    hosts, ranks = (int(number) for number in os.environ.get("TERN_TEST_CROWD", "4x8").split("x"))
    with made(tools, hosts) as switched:
        words = [*switched.words(ranks), "--genv", "TERN_TRANSPORT", transport, tools.program("crowd")]
        with tools.job(*words, launcher=switched.inside(tools.mpiexec)) as job:
            outcome = job.end()
    outcome.expect(outcome.code == 0 and f"all bytes arrived: {hosts * ranks} ranks" in outcome.out, "all bytes")
    outcome.expect(outcome.err == "", "silence")
    if "TERN_TEST_CROWD" in os.environ:
        print(f"{transport}: {outcome.out.strip()}")
