"""Tern's streams beside a bare TCP flow over one narrow link (link.c): what each of the two gets, by TERN_TRANSPORT, and two TCP flows
beside each other for comparison.

usage: fairness.py [--mbit 200] [--link DELAY:QUEUE,…] [--congestion reno,bbr] [--transports rc,rd,ud]
                   [--rounds 3] [--seconds 10]

Of each pair the flow that is measured against begins first and goes on longest; what it sends is counted while the other runs. As loss.py, on
which it is built, it needs root, iproute2, /dev/net/tun and a C compiler.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import loss

# Longer than to start a job, and what TCP needs to fill the link.
AHEAD = 1.0
# A bare flow of the kind of the other one, and one that takes each loss for a sign of a queue.
SOCKETS = ["socket", "reno"]
SERVER = "import socket,sys\ns=socket.create_server(('10.77.42.2',int(sys.argv[1])))\nprint('ready',flush=True)\nc,_=s.accept()\n" \
         "while c.recv(1<<20): pass\n"
# Says again and again when how many bytes had left: written, less what the system still holds.
CLIENT = "import fcntl,select,socket,struct,sys,time\nc=socket.create_connection(('10.77.42.2',int(sys.argv[1])))\nc.setblocking(False)\n" \
         "c.setsockopt(6,socket.TCP_CONGESTION,sys.argv[3].encode())\n" \
         "d=b'x'*65536;n=0;t=time.monotonic();e=t+float(sys.argv[2])\n" \
         "q=lambda:struct.unpack('i',fcntl.ioctl(c,0x5411,b'0000'))[0]\n" \
         "while t<e:\n select.select([],[c],[],0.02)\n try: n+=c.send(d)\n except BlockingIOError: pass\n" \
         " s=time.monotonic()\n if s-t>0.02: t=s;print(s,n-q())\n"


def options():
    parser = loss.common(__doc__, mbit=200, transports="rc,rd,ud", seconds=10)
    parser.add_argument("--link", default="100:64000,2500:256000", help="DELAY:QUEUE,…: each way in microseconds, and what waits in front of it in bytes")
    return parser.parse_args()


class Flow:
    """A bare TCP flow, from one host to the other."""

    def __init__(self, port, seconds, congestion):
        self.server = subprocess.Popen(loss.inside(loss.HOSTS[1], sys.executable, "-c", SERVER, port), stdout=subprocess.PIPE, text=True)
        self.server.stdout.readline()
        words = loss.inside(loss.HOSTS[0], sys.executable, "-c", CLIENT, port, seconds, congestion)
        self.client = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def end(self):
        """When it had sent how many bytes."""
        said = self.client.communicate()[0]
        self.server.kill()
        self.server.wait()
        return [(float(when), int(sent)) for when, sent in map(str.split, said.splitlines())]


def rate(samples, begin, end):
    """Mbit/s between two times."""
    inside = [sample for sample in samples if begin <= sample[0] <= end]
    (first, before), (last, after) = inside[0], inside[-1]
    return (after - before) / (last - first) / 125000


def beside(given, scratch, way, congestion):
    """Mbit/s of this way and of the flow beside it."""
    flow = Flow(7777, given.seconds + 3 * AHEAD, congestion)
    time.sleep(AHEAD)
    begin = time.monotonic()
    if way in SOCKETS:
        own = Flow(7778, given.seconds, congestion if way == "socket" else way).end()
        end = time.monotonic()
        mine = rate(own, begin, end)
    else:
        mine = loss.tern(given, scratch, way)
        end = time.monotonic()
    return mine, rate(flow.end(), begin, end)


def main():
    given = options()
    rows = {}
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        ways = [*SOCKETS, *given.transports.split(",")]
        links = [pair.split(":") for pair in given.link.split(",")]
        link = loss.Link(scratch, given)
        try:
            for _ in range(given.rounds):
                for delay, queue, congestion in [(*pair, c) for pair in links for c in given.congestion.split(",")]:
                    for way in ways:
                        link.open(congestion, "--delay", delay, "--queue", queue)
                        try:
                            mine, others = beside(given, scratch, way, congestion)
                        finally:
                            said = link.close()
                        rows.setdefault((delay, queue, congestion), {}).setdefault(way, []).append((mine, others))
                        print(f"{delay} us, {queue} bytes, {congestion}: {way:7} {mine:6.1f} beside {others:6.1f} Mbit/s   ({said})", flush=True)
        finally:
            link.remove()
    print("| one way, queue, TCP | " + " | ".join(ways) + " |")
    print("| --- |" + " ---: |" * len(ways))
    for (delay, queue, congestion), values in rows.items():
        medians = [[statistics.median(side) for side in zip(*values[way])] for way in ways]
        print(f"| {delay} µs, {queue}, {congestion} | " + " | ".join(f"{mine:.0f} / {others:.0f}" for mine, others in medians) + " |")


if __name__ == "__main__":
    main()
