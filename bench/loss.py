"""Bandwidth where packets are lost: Tern over TCP, RD, UD and hybrid, and a bare TCP socket, over one link between two network
namespaces (link.c) with a rate, a distance and losses from a seed.

usage: loss.py [--mpiexec PATH] [--mpicc PATH] [--mbit 1000] [--delay MICROSECONDS] [--loss 0,0.1,1,10] [--congestion reno,bbr]
               [--transports rc,rd,ud,hybrid] [--rounds 3] [--seconds 2]

Needs root, iproute2, /dev/net/tun and a C compiler. The programs run in namespaces of their own and touch nothing else.
"""

import argparse
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MESSAGE = 256 << 10
HOSTS = [f"loss{os.getpid()}{end}" for end in "ab"]


def common(doc, **defaults):
    """The options that all have who measure over this link."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpiexec", default=str(HERE.parent / "build/bin/mpiexec"))
    parser.add_argument("--mpicc", default=str(HERE.parent / "build/bin/mpicc"))
    parser.add_argument("--mbit", type=float)
    parser.add_argument("--congestion", default="reno,bbr")
    parser.add_argument("--transports")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE for Tern")
    parser.set_defaults(**defaults)
    return parser


def options():
    parser = common(__doc__, mbit=1000, transports="rc,rd,ud,hybrid", seconds=2)
    parser.add_argument("--delay", type=float, default=50, help="each way, in microseconds")
    parser.add_argument("--loss", default="0,0.1,1,10", help="in per cent")
    return parser.parse_args()


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True)


def inside(host, *words):
    return ["ip", "netns", "exec", host, *map(str, words)]


class Link:
    """The link, a cable beside it for the launcher, and what goes over it, compiled."""

    def __init__(self, scratch, given):
        self.scratch, self.mbit = scratch, given.mbit
        subprocess.run(["cc", "-O2", "-o", scratch / "link", HERE / "link.c"], check=True)
        subprocess.run([given.mpicc, "-O2", "-o", scratch / "loss", HERE / "loss.c"], check=True)
        launcher(scratch)
        for number, host in enumerate(HOSTS, 1):
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
        ip("link", "add", "cable", "netns", HOSTS[0], "type", "veth", "peer", "name", "cable", "netns", HOSTS[1])
        for number, host in enumerate(HOSTS, 1):
            ip("-n", host, "addr", "add", f"10.77.41.{number}/24", "dev", "cable")
            ip("-n", host, "link", "set", "cable", "up")

    def remove(self):
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", host])

    def open(self, congestion, *like):
        """Like this, by link.c's options; TCP by this."""
        for host in HOSTS:
            subprocess.run(inside(host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={congestion}"), check=True)
        # It must come in time, whatever else runs; where that is not granted (a control group without real time), as it can.
        priority = ["chrt", "-f", "20"]
        if not shutil.which("chrt") or subprocess.run([*priority, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            print("loss: no real-time priority here: what the link adds in delay varies more", file=sys.stderr)
            priority = []
        words = [*priority, self.scratch / "link", *HOSTS, "--mbit", self.mbit, *like]
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit("loss: the link cannot be made")
        for number, host in enumerate(HOSTS, 1):
            ip("-n", host, "addr", "add", f"10.77.42.{number}/24", "dev", "link0")
            ip("-n", host, "link", "set", "link0", "up")

    def close(self):
        self.process.terminate()
        return self.process.communicate(timeout=30)[0].strip()


def launcher(scratch):
    script = scratch / "launcher"
    script.write_text(f"#!/bin/sh\ncase $1 in *.1) n={HOSTS[0]} ;; *) n={HOSTS[1]} ;; esac\nshift\n"
                      "exec ip netns exec $n unshare -u -m sh -c 'mount -t tmpfs tmpfs /dev/shm; hostname '$n'; "
                      "exec sh -c \"$*\"' x \"$@\"\n")
    script.chmod(0o755)
    return script


def tern(given, scratch, transport):
    words = [given.mpiexec, "--launcher", scratch / "launcher", "--hosts", "10.77.41.1,10.77.41.2", "-n", "2", "-ppn", "1",
             "--genv", "TERN_INTERFACE", "10.77.42.0/24", "--genv", "TERN_TRANSPORT", transport]
    for setting in given.env:
        words += ["--genv", *setting.split("=", 1)]
    words += [scratch / "loss", MESSAGE, given.seconds]
    done = subprocess.run(inside(HOSTS[0], *words), capture_output=True, text=True, timeout=60 + 20 * given.seconds)
    if done.returncode != 0:
        sys.exit(f"loss: {transport} failed\n{done.stdout}{done.stderr}")
    return float(done.stdout.split()[-1])


SERVER = "import socket,sys\ns=socket.create_server(('10.77.42.2',7777))\nprint('ready',flush=True)\nc,_=s.accept()\n" \
         "while c.recv(1<<20): pass\n"
CLIENT = "import socket,sys,time\nc=socket.create_connection(('10.77.42.2',7777))\n" \
         "import struct,fcntl\nd=b'x'*262144;n=0;t=time.monotonic();e=t+float(sys.argv[1])\n" \
         "while time.monotonic()<e: c.sendall(d);n+=len(d)\n" \
         "q=lambda:struct.unpack('i',fcntl.ioctl(c,0x5411,b'0000'))[0]\n" \
         "left=q();print((n-left)/(time.monotonic()-t)/125000)\n"


def bare(given):
    """A stream over a bare socket, in Mbit/s."""
    server = subprocess.Popen(inside(HOSTS[1], sys.executable, "-c", SERVER), stdout=subprocess.PIPE, text=True)
    server.stdout.readline()
    done = subprocess.run(inside(HOSTS[0], sys.executable, "-c", CLIENT, given.seconds), capture_output=True, text=True)
    server.kill()
    server.wait()
    return float(done.stdout.split()[-1])


def main():
    given = options()
    rows = {}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        link = Link(scratch, given)
        try:
            for loss in given.loss.split(","):
                for seed in range(1, given.rounds + 1):
                    for congestion in given.congestion.split(","):
                        # What is no TCP does not care which one it is.
                        is_first = congestion == given.congestion.split(",")[0]
                        ways = [t for t in given.transports.split(",") if is_first or t == "rc"]
                        for way in ["socket", *ways]:
                            name = f"{way} {congestion}" if way in ("socket", "rc", "hybrid") else way
                            link.open(congestion, "--delay", given.delay, "--loss", loss, "--seed", seed)
                            try:
                                value = bare(given) if way == "socket" else tern(given, scratch, way)
                            finally:
                                said = link.close()
                            rows.setdefault(name, {}).setdefault(loss, []).append(value)
                            print(f"{loss:>5} % {name:14} {value:8.1f} Mbit/s   ({said})", flush=True)
                            time.sleep(0.1)
        finally:
            link.remove()
    losses = given.loss.split(",")
    print("| Mbit/s, lost | " + " | ".join(f"{loss} %" for loss in losses) + " |")
    print("| --- |" + " ---: |" * len(losses))
    for name, values in rows.items():
        print(f"| {name} | " + " | ".join(f"{statistics.median(values[loss]):.1f}" for loss in losses) + " |")


if __name__ == "__main__":
    main()
