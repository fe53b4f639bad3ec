"""Ways between hosts that are narrower in the middle than at their ends, and ways that lose packets."""

import contextlib
import itertools
import os
import subprocess
import time

from hosts import TRANSPORTS, ip, made, namespaces
from support import HERE, Case, Skip

BOUND = 180
RANKS = 4


def cases():
    # The kinds of rc and ud are both in hybrid.
    for family, transport in itertools.product([4, 6], TRANSPORTS):
        name = f"a way with a narrow middle that changes, IPv{family}, {transport}: all arrives"
        yield Case(name, lambda t, f=family, x=transport: narrow(t, f, x), family == 6 and transport in ("rc", "ud"))
    for transport in TRANSPORTS:
        name = f"a link that loses, doubles and delays packets, {transport}: all bytes arrive"
        yield Case(name, lambda t, x=transport: bad_link(t, x))
    for transport in ["rd", "ud"]:
        name = f"16 senders through one port, {transport}: all arrives, and little of it comes again"
        yield Case(name, lambda t, x=transport: incast(t, x))


@contextlib.contextmanager
def routed(tools, family):
    """Two hosts, 1 and 4, with two routers between them: the words that start something on the first, and what sets the MTU
    between the routers. Hosts and routers think of 1500 bytes at first."""
    with made(tools, 4) as hosts:
        for left, net in [(1, 36), (2, 37), (3, 38)]:
            ends = [hosts.namespace(left), "type", "veth", "peer", "name", f"w{net}", "netns", hosts.namespace(left + 1)]
            ip("link", "add", f"e{net}", "netns", *ends)
            for host, end in [(left, f"e{net}"), (left + 1, f"w{net}")]:
                hosts.ip(host, "addr", "add", f"10.77.{net}.{host}/24", "dev", end)
                hosts.ip(host, "addr", "add", f"fd77:{net}::{host}/64", "dev", end, "nodad")
                hosts.ip(host, "link", "set", end, "up")
        for host, to, via in [(1, 38, "36.2"), (4, 36, "38.3"), (2, 38, "37.3"), (3, 36, "37.2")]:
            hosts.ip(host, "route", "add", f"10.77.{to}.0/24", "via", f"10.77.{via}")
            hosts.ip(host, "route", "add", f"fd77:{to}::/64", "via", "fd77:" + via.replace(".", "::"))
        for router in 2, 3:
            forwards = ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]
            forward = ["ip", "netns", "exec", hosts.namespace(router), "sysctl", "-qw", *forwards]
            if (done := subprocess.run(forward, capture_output=True, text=True)).returncode != 0:
                raise Skip(f"no router can be made here: {done.stderr.strip()}", "namespaces")

        def middle(mtu):
            hosts.ip(2, "link", "set", "e37", "mtu", mtu)
            hosts.ip(3, "link", "set", "w37", "mtu", mtu)

        ends = "10.77.36.1:2,10.77.38.4:2" if family == 4 else "[fd77:36::1]:2,[fd77:38::4]:2"
        words = ["--launcher", hosts.launcher, "--hosts", ends]
        yield words, hosts.inside(tools.mpiexec), middle


def narrow(tools, family, transport):
    """Narrow from the start, where only routers tell; narrower under way; then wide again. IPv6 has no link of less than 1280 bytes."""
    mtus = ["1200", "700", "1500", "576", "1400"] if family == 4 else ["1300", "1280", "1500", "1280", "1400"]
    stop = tools.scratch / "stop"
    stop.unlink(missing_ok=True)
    with routed(tools, family) as (words, inside, middle):
        middle(mtus[0])
        with tools.job(*words, "--genv", "TERN_TRANSPORT", transport, tools.program("lost"), "survive", stop,
                       launcher=inside) as running:
            running.wait_for("all to meet", lambda: running.printed().count("met") == RANKS)
            for mtu in mtus:
                middle(mtu)
                time.sleep(0.4)
            stop.touch()
            outcome = running.end(BOUND)
        outcome.expect(outcome.code == 0 and outcome.out.count("all went well") == RANKS, "that all arrives")
        outcome.expect(outcome.err == "", "silence")


@contextlib.contextmanager
def link(tools, hosts, *words):
    """A link in user space (bench/link.c) between the two hosts, beside their cable."""
    program = tools.scratch / "link"
    if not program.exists():
        subprocess.run(["cc", "-O2", "-o", program, HERE.parent.parent / "bench" / "link.c"], check=True)
    command = [program, hosts.namespace(1), hosts.namespace(2), *words]
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout.readline() != "ready\n":
                raise Skip(f"no link can be made here: {process.stderr.read().strip()}", "namespaces")
            for host in 1, 2:
                hosts.ip(host, "addr", "add", f"10.77.39.{host}/24", "dev", "link0")
                hosts.ip(host, "link", "set", "link0", "up")

            def carried():
                process.terminate()
                return int(process.communicate(timeout=30)[0].split()[0])

            yield ["--genv", "TERN_INTERFACE", "10.77.39.0/24"], carried
        finally:
            process.terminate()


def bad_link(tools, transport):
    seed = os.environ.get("TERN_TEST_SEED", "1")
    with namespaces(tools) as (hosts, inside, both):
        with link(tools, both, "--loss", "2", "--double", "1", "--late", "1", "--seed", seed) as (interface, _):
            words = [*hosts, *interface, "--genv", "TERN_TRANSPORT", transport, tools.program("bytes")]
            with tools.job(*words, launcher=inside) as job:
                outcome = job.end(BOUND)
        outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
        outcome.expect(outcome.err == "", "silence")


def incast(tools, transport):
    """Their first windows alone overflow the port. Collapse (Vasudevan et al., SIGCOMM 2009) is that most of what is carried
    was sent before, and it is counted, not timed."""
    messages, length = 20, 64 << 10
    with namespaces(tools) as (hosts, inside, both):
        with link(tools, both, "--mbit", "1000", "--queue", "65536") as (interface, carried):
            words = [*hosts[:2], "--hosts", "10.77.31.1:16,10.77.31.2:16", "-n", "32", *interface]
            words += ["--genv", "TERN_TRANSPORT", transport, tools.program("incast"), str(messages), str(length)]
            with tools.job(*words, launcher=inside) as job:
                outcome = job.end(BOUND)
            packets = carried()
        outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
        least = 16 * messages * length / 1400
        outcome.expect(packets < 3 * least, f"fewer than three times as many packets as it takes: {packets} beside {least:.0f}")
