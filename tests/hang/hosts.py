"""Jobs on several hosts: this one under two addresses, and two network namespaces joined by a cable."""

import contextlib
import itertools
import os
import pathlib
import re
import shlex
import subprocess
import time

from hangs import ask_until, has_started
from support import Case, Failure, Skip, run

LAUNCHER = pathlib.Path(__file__).resolve().parents[2] / "crates" / "launch" / "tests" / "fake-launcher.sh"
TRANSPORTS = ["rc", "rd", "ud", "hybrid"]
TWICE = ["--launcher", LAUNCHER, "--hosts", "127.0.0.1:2,127.0.0.2:2"]


def cases():
    yield Case("two addresses of this host: all bytes arrive", bytes_arrive)
    yield Case("two addresses of this host: a deadlock is named", deadlock)
    for devices, transport in itertools.product(["auto", "rnic"], TRANSPORTS):
        name = f"two namespaces, devices {devices}, transport {transport}: all bytes arrive"
        yield Case(name, lambda tools, d=devices, t=transport: between(tools, d, t))
    for transport, integrity in [*itertools.product(TRANSPORTS, ["mac"]), ("rc", "crc")]:
        name = f"two namespaces, transport {transport}, integrity {integrity}: all bytes arrive"
        yield Case(name, lambda tools, t=transport, i=integrity: between(tools, "auto", t, i))
    for transport in TRANSPORTS:
        name = f"two namespaces, transport {transport}: jobs beside each other that take each other's ports"
        yield Case(name, lambda tools, t=transport: neighbours(tools, t))
    yield Case("two hosts whose ranks check messages in different ways: refused", unlike)
    for program in ["allgather", "alltoall", "barrier", "bcast", "gather_scatter", "reduce", "persistent", "random_sequence"]:
        for algorithm in ["auto", "two-level"]:
            yield Case(
                f"two namespaces: coll/{program}, {algorithm}",
                lambda tools, p=program, a=algorithm: collectives(tools, p, a),
            )
    for transport in TRANSPORTS:
        yield Case(f"two namespaces: what messages take is kept, transport {transport}", lambda tools, t=transport: links_kept(tools, t))
    for program, transport in itertools.product(["put_get", "pscw", "passive", "random"], ["rc", "hybrid"]):
        name = f"two namespaces: rma/{program}, transport {transport}"
        yield Case(name, lambda tools, p=program, t=transport: windows(tools, p, t))
    for transport, protocol in itertools.product(["rc", "rd"], ["", "rget", "rput", "pipeline", "superpipeline", "speculative"]):
        name = f"two namespaces: sends are cancelled, transport {transport}, protocol {protocol or 'chosen'}"
        yield Case(name, lambda tools, t=transport, p=protocol: cancels(tools, t, p))
    for transport, alone in itertools.product(TRANSPORTS, [True, False]):
        name = f"two namespaces over IPv6, {'agents too' if alone else 'agents over IPv4'}, transport {transport}: all bytes arrive"
        yield Case(name, lambda tools, t=transport, a=alone: over_ipv6(tools, t, a))
    yield Case("two namespaces, one of IPv4 and one of IPv6: refused", mixed)
    for ranks in [2, 4]:
        yield Case(f"two namespaces: {ranks} ranks start processes on both", lambda tools, n=ranks: spread(tools, n))
    yield Case("two namespaces: processes that cannot be started there are refused", spread_in_vain)
    yield Case("two namespaces: ranks start, and a cut of 100 ms is survived", short_cut)
    yield Case("two namespaces: a cable that is cut for good ends the job", long_cut)


def bytes_arrive(tools):
    outcome = run(tools, *TWICE, tools.program("bytes"))
    outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
    outcome.expect(outcome.err == "", "silence")


def between(tools, devices, transport, integrity="auto"):
    """Shared memory inside a host, iWARP over TCP or by datagrams between them; or that alone."""
    with namespaces(tools) as (hosts, inside, _):
        program = tools.program("bytes")
        chosen = ["--genv", "TERN_DEVICES", devices, "--genv", "TERN_TRANSPORT", transport, "--genv", "TERN_INTEGRITY", integrity]
        with tools.job(*hosts, *chosen, program, launcher=inside) as job:
            outcome = job.end()
        outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
        outcome.expect(outcome.err == "", "silence")


def neighbours(tools, transport):
    """Jobs with secrets of their own, all of whose ports are among few: what one has given up, the next one takes while peers of the first
    may still speak to it."""
    with made(tools, 2) as both:
        for host in (1, 2):
            few = "echo 40000 40159 >/proc/sys/net/ipv4/ip_local_port_range"
            done = subprocess.run(["ip", "netns", "exec", both.namespace(host), "sh", "-c", few], capture_output=True, text=True)
            if done.returncode != 0:
                raise Skip(f"the range of ports cannot be changed: {done.stderr.strip()}", "namespaces")
        words = [*both.words(2), "--genv", "TERN_TRANSPORT", transport, tools.program("bytes")]
        for _ in range(2):
            with contextlib.ExitStack() as stack:
                jobs = [stack.enter_context(tools.job(*words, launcher=both.inside(tools.mpiexec))) for _ in range(3)]
                for outcome in [job.end() for job in jobs]:
                    outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
                    outcome.expect(outcome.err == "", "silence")


def unlike(tools):
    program = tools.program("bytes")
    words = ["-n", "1", "-host", "127.0.0.1", "-env", "TERN_INTEGRITY", "mac", program, ":"]
    words += ["-n", "1", "-host", "127.0.0.2", "-env", "TERN_INTEGRITY", "auto", program]
    outcome = run(tools, *TWICE[:2], *words, env={"TERN_DEVICES": "rnic"})
    outcome.expect(outcome.code != 0, "a failure")
    outcome.expect_message(r"rank [01] on \S+ has TERN_DEVICES=rnic,TERN_TRANSPORT=rc,TERN_INTEGRITY=(mac|auto), this rank TERN_DEVICES=rnic,TERN_TRANSPORT=rc,TERN_INTEGRITY=")


def cancels(tools, transport, protocol):
    """Rank 1 is on the other host."""
    with namespaces(tools) as (hosts, inside, _):
        chosen = ["--genv", "TERN_TRANSPORT", transport]
        chosen += ["--genv", "TERN_PROTOCOL", protocol] if protocol else []
        words = [*hosts, *chosen, "-rr", "-n", "2", tools.program("cancel_sends", "../c/p2p")]
        with tools.job(*words, launcher=inside) as job:
            outcome = job.end()
        outcome.expect(outcome.code == 0 and "test passed" in outcome.out, "right answers")


def over_ipv6(tools, transport, alone):
    """There is nothing else, or it is asked for. Two of four ranks send to the other host."""
    with namespaces(tools) as (hosts, inside, both):
        chosen = ["--genv", "TERN_TRANSPORT", transport]
        if alone:
            hosts = [*hosts[:2], "--hosts", "[fd77:31::1]:2,[fd77:31::2]:2"]
            for host in 1, 2:
                both.ip(host, "-4", "addr", "flush", "dev", "tv31")
        else:
            chosen += ["--genv", "TERN_INTERFACE", "fd77:31::/64"]
        for program, says, least in [("bytes", "all bytes arrived", 10 << 20), ("../c/rma/put_get", "test passed", 100 << 10)]:
            folder, _, name = program.rpartition("/")
            before = octets(both)
            with tools.job(*hosts, *chosen, tools.program(name, folder or "."), launcher=inside) as job:
                outcome = job.end()
            outcome.expect(outcome.code == 0 and says in outcome.out and outcome.err == "", f"`{says}` and silence")
            of_4, of_6 = (now - then for now, then in zip(octets(both), before))
            outcome.expect(of_6 > least and of_4 < of_6 / 10, f"data over IPv6: {of_6} bytes beside {of_4} over IPv4")


def octets(both):
    """What the first host has sent over IPv4 and over IPv6."""
    def read(name):
        command = ["ip", "netns", "exec", both.namespace(1), "cat", f"/proc/net/{name}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    names, values = [line.split() for line in read("netstat").splitlines() if line.startswith("IpExt:")]
    of_6 = re.search(r"^Ip6OutOctets\s+(\d+)$", read("snmp6"), re.M).group(1)
    return int(dict(zip(names, values))["OutOctets"]), int(of_6)


def mixed(tools):
    with namespaces(tools) as (hosts, inside, _):
        words = ["-n", "1", "-host", "10.77.31.1", "-env", "TERN_INTERFACE", "10.77.31.0/24", tools.program("bytes"), ":"]
        words += ["-n", "1", "-host", "10.77.31.2", "-env", "TERN_INTERFACE", "fd77:31::/64", tools.program("bytes")]
        with tools.job(*hosts[:2], *words, launcher=inside) as job:
            outcome = job.end()
        outcome.expect(outcome.code != 0, "a failure")
        outcome.expect_message(r"rank 0 listens at 10\.77\.31\.1:\d+ and rank 1 at \[fd77:31::2\]:\d+, one of IPv4.*TERN_INTERFACE")


def spread(tools, ranks):
    """With two ranks the second host has none, and so no agent, until they ask for processes."""
    with namespaces(tools) as (hosts, inside, _):
        program = tools.program("spread")
        with tools.job(*hosts, "-n", str(ranks), program, "10.77.31.1", "10.77.31.2", launcher=inside) as job:
            outcome = job.end()
        outcome.expect(outcome.code == 0 and outcome.out.count("rank done") == ranks, "the end of all ranks")
        outcome.expect(outcome.err == "", "silence")


def spread_in_vain(tools):
    with namespaces(tools) as (hosts, inside, _):
        broken = tools.scratch / "broken-launcher"
        broken.write_text(f"#!/bin/sh\ncase $1 in *.77) exit 3 ;; esac\nexec {hosts[1]} \"$@\"\n")
        broken.chmod(0o755)
        one_less = ["--launcher", broken, "--hosts", "10.77.31.1:2,10.77.31.77:2", "--host-address", "10.77.31.1"]
        program = tools.program("spread_refused")
        for words, message in [
            ([*one_less, "-n", "2", program, program], r"host 10\.77\.31\.77: .* exited with code 3 before the agent had come"),
            ([*hosts, "-n", "4", program, "./none", "host", "10.77.31.2"], r"host 10\.77\.31\.2: cannot start '\./none': "),
            ([*hosts, "-n", "2", program, "./none"], r"host 10\.77\.31\.2: cannot start '\./none': "),
            ([*hosts, "-n", "2", program, program, "host", "elsewhere.invalid"],
             r"`host`: elsewhere\.invalid is none of the hosts of this job, which are 10\.77\.31\.1, 10\.77\.31\.2"),
        ]:
            with tools.job(*words, launcher=inside) as job:
                outcome = job.end()
            outcome.expect(outcome.code not in (0, 9), "two refusals that are survived, and one that is fatal")
            outcome.expect_message(message)


# The collectives that can have two levels.
FORCED = ["ALLGATHER", "ALLREDUCE", "ALLTOALL", "BARRIER", "BCAST", "GATHER", "REDUCE", "REDUCE_SCATTER", "SCAN", "SCATTER"]


def collectives(tools, program, algorithm):
    """A program of tests/c/coll with two ranks on each of two hosts, placed by blocks and in turn."""
    with namespaces(tools) as (hosts, inside, _):
        forced = [word for name in FORCED for word in ("--genv", f"TERN_COLL_{name}", algorithm)]
        for placement in ["block", "cyclic"]:
            words = [*hosts, *forced, "--map-by", "slot" if placement == "block" else "node"]
            with tools.job(*words, tools.program(program, "../c/coll"), launcher=inside) as job:
                outcome = job.end()
            outcome.expect(outcome.code == 0 and "test passed" in outcome.out, f"right results, placed by {placement}")


def links_kept(tools, transport):
    """Four jobs measure what messages take between the hosts; all ranks of each later one go by that."""
    kept = tools.scratch / f"links-{transport}"
    with namespaces(tools) as (hosts, inside, _):
        def costs(**chosen):
            chosen = {"TERN_LINKS": kept, "TERN_EXPLAIN": "used", "TERN_TRANSPORT": transport, **chosen}
            words = [word for name, value in chosen.items() for word in ("--genv", name, value)]
            with tools.job(*hosts, *words, tools.program("allgather", "../c/coll"), launcher=inside) as job:
                outcome = job.end()
            outcome.expect(outcome.code == 0 and "test passed" in outcome.out, "right results")
            said = re.findall(r"^tern: rank \d: collectives between hosts were chosen by costs that were (.*)$", outcome.err, re.M)
            outcome.expect(len(said) == 4 and len(set(said)) == 1, "four ranks that go by the same")
            return outcome, said[0]

        def expect(word, **chosen):
            outcome, said = costs(**chosen)
            outcome.expect(said.startswith(word), f"costs that are {word}")
            return said

        def jobs():
            line = re.fullmatch(rf"tern links 2: .*\n{transport} tern\d+h1/10\.77\.31\.1 tern\d+h2/10\.77\.31\.2 (\d) .*\n", kept.read_text())
            if not line:
                raise Failure(f"{kept} has\n{kept.read_text()}")
            return int(line.group(1))

        expect("assumed", TERN_LINKS="off")
        expect("assumed", TERN_ADAPT="0")
        expect("assumed", TERN_PROTOCOL="rget")
        if kept.exists():
            raise Failure(f"{kept} was written, though nothing is to be learnt")
        kept.write_text("tern links 0\nnonsense\n")
        # Ranks that have no core for long measure nothing.
        for _ in range(20):
            expect("assumed") if "links 0" in kept.read_text() else expect("kept")
            if "links 0" not in kept.read_text() and jobs() == 4:
                break
        known = kept.read_bytes()
        if "links 0" in kept.read_text() or jobs() != 4 or expect("kept") != expect("kept") or kept.read_bytes() != known:
            raise Failure(f"{kept} should have what four jobs have measured and no more change: {known}")
        expect("assumed", TERN_ADAPT="0")


def windows(tools, program, transport):
    """A program of tests/c/rma on windows that have ranks on the same host and on another one."""
    arguments = ["21", "create"] if program == "random" else ["create"]
    with namespaces(tools) as (hosts, inside, _):
        words = [*hosts, "--genv", "TERN_TRANSPORT", transport]
        with tools.job(*words, tools.program(program, "../c/rma"), *arguments, launcher=inside) as job:
            outcome = job.end()
        outcome.expect(outcome.code == 0 and "test passed" in outcome.out, "right results")


def deadlock(tools):
    # Rank 1 is on the other host.
    with tools.job(*TWICE, "-rr", "-n", "2", tools.program("hang"), "cycle") as job:
        job.wait_for("a start", lambda: has_started(job, 2))
        ask_until(job, "the cycle", lambda report: "cycle: rank 0 → rank 1 → rank 0" in report)


SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "hosts.sh"
NOT_HERE = 77


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"no network namespaces here: {done.stderr.strip()}", "namespaces")


class Hosts:
    """So many hosts that namespaces stand for (scripts/hosts.sh), which begin with 1."""

    def __init__(self, tools, count):
        self.name, self.count = f"tern{os.getpid()}h", count
        self.launcher = tools.scratch / "namespace-launcher"
        self.launcher.write_text(f"#!/bin/sh\nexec {SCRIPT} reach {self.name} \"$@\"\n")
        self.launcher.chmod(0o755)

    def script(self, verb, *words):
        command = [str(word) for word in (SCRIPT, verb, self.name, *words)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == NOT_HERE:
            raise Skip(done.stdout.strip(), "namespaces")
        if done.returncode != 0:
            raise Failure(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")

    def namespace(self, host):
        return f"{self.name}{host}"

    def ip(self, host, *words):
        """A command of iproute2 on a host; `s` is the switch."""
        ip("-n", self.namespace(host), *words)

    def link(self, net, *words, host=2):
        """What becomes of a host's end of a cable."""
        self.ip(host, "link", "set", f"tv{net}", *words)

    def words(self, ranks):
        """What places so many ranks on each."""
        hosts = ",".join(f"10.77.31.{host + 1}:{ranks}" for host in range(self.count))
        return ["--launcher", self.launcher, "--hosts", hosts]

    def inside(self, command):
        """What starts something on the first."""
        return ["ip", "netns", "exec", self.namespace(1), command]


@contextlib.contextmanager
def made(tools, count):
    """Hosts for as long as the case lasts."""
    hosts = Hosts(tools, count)
    hosts.script("make", count)
    try:
        yield hosts
    finally:
        hosts.script("remove")


@contextlib.contextmanager
def namespaces(tools):
    """Two hosts: the words that place two ranks on each, what starts something on the first, and the hosts."""
    with made(tools, 2) as hosts:
        yield hosts.words(2), hosts.inside(tools.mpiexec), hosts


def short_cut(tools):
    with namespaces(tools) as (hosts, inside, both):
        script = f"echo $PMI_RANK $(hostname) $TERN_HOST_ADDRESS; until [ -e {tools.scratch}/cable-is-back ]; do sleep 0.05; done; echo on"
        with tools.job(*hosts, "sh", "-c", script, launcher=inside) as job:
            job.wait_for("all ranks", lambda: len(job.printed().splitlines()) == 4)
            both.link(31, "down")
            time.sleep(0.1)
            both.link(31, "up")
            (tools.scratch / "cable-is-back").touch()
            outcome = job.end()
        places = sorted(line for line in outcome.out.splitlines() if line != "on")
        expected = [rf"{rank} tern\d+h{rank // 2 + 1} 10\.77\.31\.{rank // 2 + 1}" for rank in range(4)]
        fits = len(places) == 4 and all(re.fullmatch(p, line) for p, line in zip(expected, places))
        outcome.expect(outcome.code == 0 and fits, "four ranks on two hosts")
        outcome.expect(outcome.out.count("on\n") == 4 and outcome.err == "", "all of them to go on in silence")


def long_cut(tools):
    with namespaces(tools) as (hosts, inside, both):
        with tools.job(*hosts, "sh", "-c", "echo here; sleep 1000", launcher=inside) as job:
            job.wait_for("all ranks", lambda: job.printed().count("here") == 4)
            both.link(31, "down")
            outcome = job.end()
        outcome.expect(outcome.code == 1, "exit code 1")
        outcome.expect_message(r"host 10\.77\.31\.2: its agent is gone: .*(timed out|No route to host)")
