#!/usr/bin/env python3
"""Programs of tests/c, chosen by chance with arguments, ranks and settings, several jobs at once on few cores, until the time is over.

A rank that is not run for a while meets its peers in other states than on a quiet machine: what waits for something that does not come again
hangs here, and in thousands of quiet runs does not. Each failure is printed with the command that repeats its job; the same --seed draws the
same jobs. A job that does not end says who waits for whom.
"""

import argparse
import concurrent.futures
import os
import random
import signal
import sys
import threading
import time

import run
import two_hosts
from all import protocols

# Programs that draw what they do from a seed, as their first argument.
SEEDED = ["p2p/random", "p2p/order_stress", "p2p/posted_stress", "coll/random_sequence", "rma/random"]
KINDS = ["p2p/", "coll/", "rma/", "partitioned/", "datatype/", "comm/", "topo/", "threads/", "io/", "dynamic/", "session/"]
# Sends that have left over adapters cannot be cancelled; others ask for what shared memory alone has, for a protocol that a setting forbids, or for
# many threads at once, which take long there; jobs meet each other by connections alone.
NOT_OVER_ADAPTERS = ["p2p/cancel_sends", "rma/path", "rma/frequent", "comm/host", "comm/create", "topo/hosts", "threads/crowded", "session/ports", "dynamic/"]
RANKS = range(1, 9)
SHARED_MEMORY = ["", "TERN_MANNER=blocks", "TERN_MANNER=shared", "TERN_MANNER=pulled", "TERN_SINGLE_COPY=0", "TERN_RTR=0", "TERN_ADAPT=0"]
ADAPTERS = ["", "", "TERN_RTR=0", "TERN_ADAPT=0", "TERN_EAGER_MAX=64", "TERN_INTEGRITY=mac", "TERN_INTEGRITY=crc"]


def settings(chance, forced, between_hosts):
    """Those of a job, and whether it runs over an adapter; `forced` are the protocols that can be."""
    if chance.random() < 0.25 and not between_hosts:
        return [*filter(None, [chance.choice(SHARED_MEMORY)])], False
    chosen = [] if between_hosts else ["TERN_DEVICES=rnic"]
    chosen.append(f"TERN_TRANSPORT={chance.choice(['rc', 'rc', 'rd', 'ud', 'hybrid'])}")
    chosen += filter(None, [chance.choice(ADAPTERS)])
    if chance.random() < 0.3:
        chosen.append(f"TERN_PROTOCOL={chance.choice(forced)}")
    return chosen, True


def goes_over_adapters(name):
    return not name.startswith(tuple(NOT_OVER_ADAPTERS))


def draw(chance, programs, forced):
    """A job, of a program with a seed every other time."""
    between_hosts = next(iter(programs.values())).library.two_hosts
    names = []
    while not names:
        chosen, is_over_adapter = settings(chance, forced, between_hosts)
        names = [name for name in programs if not is_over_adapter or goes_over_adapters(name)]
    seeded = [name for name in names if name in SEEDED]
    name = chance.choice(seeded if seeded and chance.random() < 0.5 else names)
    program = programs[name]
    ranks = chance.choice(program.rank_counts([2, 3, 4, 5]) or program.rank_counts(RANKS))
    arguments = chance.choice(program.argument_lists())
    if name in SEEDED:
        arguments = [str(chance.randrange(1, 1 << 30)), *arguments[1:]]
    return run.Case(program, ranks, arguments, chosen)


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300, help="for how long jobs are begun")
    parser.add_argument("--seed", type=int, default=None, help="of the choices (default: another one each time, which is said)")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 2), help="jobs at once")
    parser.add_argument("--timeout", type=float, default=60, help="seconds after which a job hangs, beside the others")
    parser.add_argument("--two-hosts", action="store_true", help="half of the ranks of each job in each of two network namespaces")
    parser.add_argument("filter", nargs="*", help="only programs whose name contains one of these")
    return parser.parse_args()


def chosen_programs(words, library):
    """By name: those that can be run, compiled."""
    arguments = argparse.Namespace(filter=words or KINDS, without=[])
    programs = [program for program in run.select(arguments, library) if not program.skip_reason()]
    programs = [program for program in programs if program.rank_counts(RANKS) and (not library.two_hosts or goes_over_adapters(program.name))]
    if not programs:
        sys.exit("random_jobs.py: none of these programs can be run so")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        for program, complaint in zip(programs, pool.map(run.Program.compile, programs)):
            if complaint:
                sys.exit(f"{program.name} does not compile\n{complaint}")
    return {program.name: program for program in programs}


def main():
    arguments = options()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, run.end)
    library = run.Library(run.ROOT / "build", None, two_hosts=arguments.two_hosts)
    if reason := arguments.two_hosts and two_hosts.lacking(library.mpiexec):
        return two_hosts.without(reason, 1)
    programs = chosen_programs(arguments.filter, library)
    seed = arguments.seed if arguments.seed is not None else random.randrange(1 << 30)
    chance, lock, forced = random.Random(seed), threading.Lock(), protocols()
    until = time.monotonic() + arguments.seconds
    report = run.Report(False, 0)
    report.line(f"--seed {seed}, {arguments.jobs} jobs at once")

    def lane():
        while time.monotonic() < until:
            with lock:
                case = draw(chance, programs, forced)
            result = case.run(arguments.timeout)
            with lock:
                report.result(case.label, *result)

    lanes = [threading.Thread(target=lane) for _ in range(arguments.jobs)]
    for each in lanes:
        each.start()
    for each in lanes:
        each.join()
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
