#!/usr/bin/env python3
"""Finds the ports at which processes listen, and does there what strangers do.

usage: scan.py PID...
Says of each port a line `tcp|udp PID ADDRESS PORT sent BYTES had BYTES`: what it has sent, and what came back; then `done`. Connections are
held until its standard input ends; its output ends before. It must be in the network namespace of the processes, or in one from which theirs is reached.
"""

import os
import pathlib
import random
import re
import resource
import select
import socket
import sys
import time

HELD = 200
LENGTHS = [0, 1, 2, 7, 8, 20, 28, 44, 64, 255, 532, 1400, 1472, 1473, 9000, 65000]
TIMES = 20
# The request of MPA (RFC 5044 section 7.1), as connections of the software adapter begin: revision 2, and 53 bytes of private data.
GREETING = b"MPA ID Req Frame" + b"\0\2\0\x35"
LISTENS = "0A"


def ports(pid):
    """(kind, family, address, port) of all sockets of a process that take what anybody sends."""
    open_files = pathlib.Path(f"/proc/{pid}/fd").iterdir()
    inodes = {match.group(1) for file in open_files if (match := re.fullmatch(r"socket:\[(\d+)\]", link_of(file)))}
    for kind, family in [("tcp", 4), ("tcp", 6), ("udp", 4), ("udp", 6)]:
        lines = pathlib.Path(f"/proc/{pid}/net/{kind}{family if family == 6 else ''}").read_text().splitlines()[1:]
        for fields in map(str.split, lines):
            if fields[9] in inodes and (kind == "udp" or fields[3] == LISTENS):
                address, _, port = fields[1].partition(":")
                yield kind, socket.AF_INET if family == 4 else socket.AF_INET6, decoded(address), int(port, 16)


def link_of(file):
    try:
        return os.readlink(file)
    except FileNotFoundError:
        return ""


def decoded(address):
    """An address as the kernel writes it: words of 32 bits, each in the order of the processor. Who listens everywhere is met at home."""
    words = bytes.fromhex(address)
    octets = b"".join(int.from_bytes(words[at:at + 4], "big").to_bytes(4, sys.byteorder) for at in range(0, len(words), 4))
    if not any(octets):
        return "127.0.0.1" if len(octets) == 4 else "::1"
    return socket.inet_ntop(socket.AF_INET if len(octets) == 4 else socket.AF_INET6, octets)


def ready(links, what):
    """The descriptors of which this holds, or does within a tenth of a second of one."""
    poll = select.poll()
    for link in links:
        poll.register(link, what)
    return {descriptor for descriptor, _ in poll.poll(100)}


class Port:
    """A port, what was sent to it, and what came back."""

    def __init__(self, kind, family, address, port):
        self.kind, self.family, self.at = kind, family, (address, port)
        self.sent = self.had = 0
        self.held = []

    def connect(self, said):
        """So many connections at once, with these words over each. Who is not let in soon is not waited for."""
        links = [socket.socket(self.family, socket.SOCK_STREAM) for _ in said]
        for link in links:
            link.setblocking(False)
            link.connect_ex(self.at)
        waits, until = links, time.monotonic() + 0.5
        while waits and time.monotonic() < until:
            let_in = ready(waits, select.POLLOUT)
            waits = [link for link in waits if link.fileno() not in let_in]
        for link, words in zip(links, said):
            try:
                self.sent += link.send(words)
            except OSError:
                pass
        self.held += links

    def hear(self):
        """Counts what has come back."""
        for link in self.held:
            link.setblocking(False)
            try:
                # A datagram of no bytes is no end.
                while (more := link.recv(1 << 16)) or self.kind == "udp":
                    self.had += len(more)
            except OSError:
                pass

    def close(self):
        while self.held:
            self.held.pop().close()


def greet(port, chance):
    """Over connections: nothing, noise, and what begins as a peer does; then many at once, which stay."""
    for _ in range(TIMES):
        port.connect([b""])
        port.close()
    whole = GREETING + chance.randbytes(53)
    said = [b"\0", chance.randbytes(100), chance.randbytes(5000), b"GET / HTTP/1.0\r\n\r\n", whole, GREETING + b"\0" * 53]
    said += [whole[:length] for length in (1, 15, 16, 19, 20, 21, 72)] + [whole + chance.randbytes(5000)]
    said += [b"MPA ID Req Frame\0\2\xff\xff", b"MPA ID Rep Frame" + whole[16:]]
    port.connect(said)
    port.connect([whole[:number % len(whole)] if number % 2 else b"" for number in range(HELD)])


def pelt(port, chance):
    """Datagrams of all lengths: noise, zeros and ones."""
    sender = socket.socket(port.family, socket.SOCK_DGRAM)
    port.held.append(sender)
    for _ in range(TIMES):
        for length in LENGTHS:
            for datagram in chance.randbytes(length), b"\0" * length, b"\xff" * length:
                try:
                    port.sent += sender.sendto(datagram, port.at)
                except OSError:
                    pass


def main():
    chance = random.Random(1)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    found = [(pid, Port(*port)) for pid in sys.argv[1:] for port in ports(pid)]
    for _, port in found:
        (greet if port.kind == "tcp" else pelt)(port, chance)
    ready([link for _, port in found for link in port.held if port.kind == "udp"], select.POLLIN)
    for pid, port in found:
        port.hear()
        print(port.kind, pid, *port.at, "sent", port.sent, "had", port.had)
    print("done", flush=True)
    os.close(sys.stdout.fileno())
    sys.stdin.read()


if __name__ == "__main__":
    main()
