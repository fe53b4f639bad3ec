"""Ways between hosts that are narrower in the middle than at their ends, and ways that lose packets."""

import contextlib
import os
import subprocess
import time

from hosts import TRANSPORTS, in_namespace, ip, names, namespaces
from support import HERE, Case, Skip

BOUND = 180
RANKS = 4


def cases():
    for transport in TRANSPORTS:
        name = f"a way with a narrow middle that changes, {transport}: all arrives"
        yield Case(name, lambda t, x=transport: narrow(t, x))
    for transport in TRANSPORTS:
        name = f"a link that loses, doubles and delays packets, {transport}: all bytes arrive"
        yield Case(name, lambda t, x=transport: bad_link(t, x))
    for transport in ["rd", "ud"]:
        name = f"16 senders through one port, {transport}: all arrives, and little of it comes again"
        yield Case(name, lambda t, x=transport: incast(t, x))


@contextlib.contextmanager
def routed(tools):
    """Two hosts with two routers between them: the words that start something on the first, and what sets the MTU between
    the routers. Hosts and routers think of 1500 bytes at first."""
    a, b = names()
    r, s = f"{a}r", f"{b}r"
    try:
        for name in [a, r, s, b]:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        for left, right, net in [(a, r, 36), (r, s, 37), (s, b, 38)]:
            ip("link", "add", f"e{net}", "netns", left, "type", "veth", "peer", "name", f"w{net}", "netns", right)
            for number, (name, end) in enumerate([(left, "e"), (right, "w")], 1):
                ip("-n", name, "addr", "add", f"10.77.{net}.{number}/24", "dev", f"{end}{net}")
                ip("-n", name, "link", "set", f"{end}{net}", "up")
        ip("-n", a, "route", "add", "default", "via", "10.77.36.2")
        ip("-n", b, "route", "add", "default", "via", "10.77.38.1")
        ip("-n", r, "route", "add", "10.77.38.0/24", "via", "10.77.37.2")
        ip("-n", s, "route", "add", "10.77.36.0/24", "via", "10.77.37.1")
        for name in [r, s]:
            in_namespace(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        launcher = tools.scratch / "routed-launcher"
        launcher.write_text(
            f"#!/bin/sh\ncase $1 in *.36.1) n={a} ;; *) n={b} ;; esac\nshift\n"
            "exec ip netns exec $n unshare -u -m sh -c 'mount -t tmpfs tmpfs /dev/shm; hostname '$n'; "
            "exec sh -c \"$*\"' x \"$@\"\n"
        )
        launcher.chmod(0o755)

        def middle(mtu):
            ip("-n", r, "link", "set", "e37", "mtu", mtu)
            ip("-n", s, "link", "set", "w37", "mtu", mtu)

        words = ["--launcher", launcher, "--hosts", "10.77.36.1:2,10.77.38.2:2"]
        yield words, ["ip", "netns", "exec", a, tools.mpiexec], middle
    finally:
        for name in [a, r, s, b]:
            ip("netns", "del", name, check=False)


def narrow(tools, transport):
    """Narrow from the start, where only routers tell; narrower under way; then wide again."""
    stop = tools.scratch / "stop"
    stop.unlink(missing_ok=True)
    with routed(tools) as (words, inside, middle):
        middle("1200")
        with tools.job(*words, "--genv", "TERN_TRANSPORT", transport, tools.program("lost"), "survive", stop,
                       launcher=inside) as running:
            running.wait_for("all to meet", lambda: running.printed().count("met") == RANKS)
            for mtu in ["1200", "700", "1500", "576", "1400"]:
                middle(mtu)
                time.sleep(0.4)
            stop.touch()
            outcome = running.end(BOUND)
        outcome.expect(outcome.code == 0 and outcome.out.count("all went well") == RANKS, "that all arrives")
        outcome.expect(outcome.err == "", "silence")


@contextlib.contextmanager
def link(tools, *words):
    """A link in user space (bench/link.c) between the two hosts, beside their cable."""
    program = tools.scratch / "link"
    if not program.exists():
        subprocess.run(["cc", "-O2", "-o", program, HERE.parent.parent / "bench" / "link.c"], check=True)
    command = [program, *names(), *words]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout.readline() != "ready\n":
                raise Skip(f"no link can be made here: {process.stderr.read().strip()}")
            for number, name in enumerate(names(), 1):
                ip("-n", name, "addr", "add", f"10.77.39.{number}/24", "dev", "link0")
                ip("-n", name, "link", "set", "link0", "up")


            def carried():
                process.terminate()
                return int(process.communicate(timeout=30)[0].split()[0])

            yield ["--genv", "TERN_INTERFACE", "10.77.39.0/24"], carried
        finally:
            process.terminate()


def bad_link(tools, transport):
    seed = os.environ.get("TERN_TEST_SEED", "1")
    with namespaces(tools) as (hosts, inside, _):
        with link(tools, "--loss", "2", "--double", "1", "--late", "1", "--seed", seed) as (interface, _):
            words = [*hosts, *interface, "--genv", "TERN_TRANSPORT", transport, tools.program("bytes")]
            with tools.job(*words, launcher=inside) as job:
                outcome = job.end(BOUND)
        outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
        outcome.expect(outcome.err == "", "silence")


def incast(tools, transport):
    """Their first windows alone overflow the port. Collapse (Vasudevan et al., SIGCOMM 2009) is that most of what is carried
    was sent before, and it is counted, not timed."""
    messages, length = 20, 64 << 10
    with namespaces(tools) as (hosts, inside, _):
        with link(tools, "--mbit", "1000", "--queue", "65536") as (interface, carried):
            words = [*hosts[:2], "--hosts", "10.77.31.1:16,10.77.31.2:16", "-n", "32", *interface]
            words += ["--genv", "TERN_TRANSPORT", transport, tools.program("incast"), str(messages), str(length)]
            with tools.job(*words, launcher=inside) as job:
                outcome = job.end(BOUND)
            packets = carried()
        outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
        least = 16 * messages * length / 1400
        outcome.expect(packets < 3 * least, f"fewer than three times as many packets as it takes: {packets} beside {least:.0f}")
