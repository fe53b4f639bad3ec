"""What run.py runs inside the kernel it has booted: Debian's programs on rxe and siw, Tern's MPI on rxe, Tern's librdmacm with
siw; files of MPI on NFS. The last line counts."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = ROOT / "build" / "bin"
RXE, SIW = "10.9.0.1", "10.9.1.1"
# One processor has both sides, whose ranks wait for a tick of 10 ms now and then.
LIMIT = 60
FILES = ["io/open", "io/views", "io/collective", "io/shared", "io/forms", "io/places pieces", "io/places pointer"]
FEW = ["p2p/blocking", "p2p/truncate", "rma/put_get"]
# How Tern's side of a pair of rpings begins.
TERN = f"{BIN}/tern verbs "
RPING = r"ping data: rdma-ping-4: EFGHIJ"
CAPTURE = "/tmp/siw.pcap"


def ended(words, **settings):
    """Exit code and output of a command, which is ended after its time."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=LIMIT, env=os.environ | settings)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
        return None, f"no end after {LIMIT} s\n" + (said if isinstance(said, str) else said.decode(errors="replace"))


def listens(process, port):
    """Waits until a server is ready: a port that is taken, or for siw, whose ports the kernel keeps, a moment."""
    until = time.monotonic() + 5
    while port and time.monotonic() < until and process.poll() is None:
        if f":{port} " in subprocess.run(["ss", "-Hltn"], capture_output=True, text=True).stdout:
            return
        time.sleep(0.05)
    time.sleep(0.5)


def pair(server, client, wanted, port=None):
    """Both sides of a program; what went wrong."""
    begun = subprocess.Popen(server.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        listens(begun, port)
        code, said = ended(client.split())
        heard, _ = begun.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"the server does not end after {LIMIT} s"
    finally:
        if begun.poll() is None:
            begun.kill()
            begun.communicate()
    if code or begun.returncode or not re.search(wanted, said) or not re.search(wanted, heard):
        return f"exit codes {begun.returncode}, {code}, /{wanted}/\n{heard}\n{said}"
    return None


def pingpong(name, *words):
    command = " ".join([name, "-d rxe0 -g 1 -n 50 -e", *words])
    return pair(command, f"{command} {RXE}", r"50 iters in")


def rping(server, client, port):
    words = f"-a {SIW} -p {port} -C 5 -S 100 -v -V"
    return pair(f"{server}rping -s {words}", f"{client}rping -c {words}", RPING, port if server else None)


def siw_captured(integrity, port):
    """Both directions of rping, seen by tcpdump and dissected by tshark; with CRCs all of them are there and right."""
    os.environ["TERN_INTEGRITY"] = integrity
    watching = subprocess.Popen(["tcpdump", "-U", "-i", "lo", "-w", CAPTURE, "tcp"], stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        why = rping("", TERN, port) or rping(TERN, "", port + 1)
        time.sleep(1)
    finally:
        watching.send_signal(signal.SIGTERM)
        watching.wait()
    del os.environ["TERN_INTEGRITY"]
    command = ["tshark", "-r", CAPTURE, "--disable-protocol", "rpcordma"]
    code, said = ended(command)
    _, whole = ended([*command, "-O", "iwarp_mpa"])
    checks = re.findall(r"CRC check: .*", whole)
    if bool(checks) != (integrity == "crc") or not all("(Good CRC32)" in check for check in checks):
        why = why or "\n".join(["CRCs that are wrong, lacking or not asked for:", *checks])
    kinds = ["MPA Request Frame", "MPA Reply Frame", " Write ", " Read Request ", " Read Response ", " Send "]
    lacking = [kind for kind in kinds if kind not in said]
    bad = [line for line in said.splitlines() if "Malformed" in line]
    if why or code or bad or lacking:
        return why or "\n".join([f"tshark: exit code {code}, no {lacking}", *bad[:20]])
    return None


def program(name, ranks=2, **settings):
    built = ROOT / "build" / "tests" / "tern" / name
    code, said = ended([BIN / "mpiexec", "-n", str(ranks), built], TERN_DEVICES="ibv", **settings)
    return None if code == 0 and "test passed" in said else f"exit code {code}\n{said}"


def nfs(places):
    """A server in this kernel, and clients of it with caches of their own, as on so many hosts; why there are none."""
    served, states = pathlib.Path("/tmp/served"), "/proc/fs/nfsd"
    if not served.exists():
        served.mkdir()
        steps = [["mount", "-t", "tmpfs", "tmpfs", "/var/lib/nfs"], ["mkdir", "-p", "/var/lib/nfs/rpc_pipefs", "/var/lib/nfs/v4recovery"],
                 ["touch", "/var/lib/nfs/etab", "/var/lib/nfs/rmtab"], ["mount", "-t", "nfsd", "nfsd", states],
                 ["exportfs", "-o", "rw,no_root_squash,insecure,fsid=0,no_subtree_check", f"127.0.0.1:{served}"],
                 ["rpc.mountd", "-N", "3"], ["rpc.nfsd", "-N", "3", "-V", "4", "4"],
                 # Nobody has locks from before.
                 ["sh", "-c", f"echo Y >{states}/v4_end_grace"]]
        for step in steps:
            code, said = ended(step)
            if code:
                return f"{' '.join(step)}: exit code {code}\n{said}"
    for place in places:
        place = pathlib.Path(place)
        if not place.exists():
            place.mkdir()
            code, said = ended(["mount.nfs4", "127.0.0.1:/", place, "-o", "nosharecache,acregmin=30,acregmax=60"])
            if code:
                return f"{place} cannot be mounted: exit code {code}\n{said}"
    return None


def file_on_nfs(name, places, ranks, **settings):
    """A program of files, whose ranks have different clients if several are named."""
    if why := nfs(places):
        return why
    program, *arguments = name.split()
    built = ROOT / "build" / "tests" / "tern" / program
    code, said = ended([BIN / "mpiexec", "-n", str(ranks), built, *arguments], TMPDIR=places[0], TERN_TEST_PLACES=":".join(places), **settings)
    return None if code == 0 and "test passed" in said else f"exit code {code}\n{said}"


def cases():
    for name in ["ibv_rc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"]:
        yield f"{name} on rxe", lambda n=name: pingpong(n, *["-s", "1000"] if "ud" in n else [])
    yield "rping on siw", lambda: rping("", "", 7300)
    yield "rping, siw serves Tern", lambda: rping("", TERN, 7303)
    yield "rping, Tern serves siw", lambda: rping(TERN, "", 7304)
    yield "rping, Tern and siw, dissected by tshark", lambda: siw_captured("auto", 7301)
    yield "rping, Tern and siw, CRCs verified by tshark", lambda: siw_captured("crc", 7305)
    for transport in ["rc", "ud", "hybrid"]:
        for name in FEW:
            yield f"MPI on rxe, {transport}: {name}", lambda n=name, t=transport: program(n, TERN_TRANSPORT=t)
    for name in FILES:
        yield f"files on NFS: {name}", lambda n=name: file_on_nfs(n, ["/tmp/client-0"], 2)
    # Each rank counts as a host where the adapter is forced.
    clients = [f"/tmp/client-{i}" for i in range(3)]
    for part in ["pieces", "pointer"]:
        name = f"io/places {part}"
        yield f"files on NFS, three clients: {name}", lambda n=name: file_on_nfs(n, clients, 3, TERN_DEVICES="rnic")
    for protocol in ["rput", "rget", "pipeline", "superpipeline", "speculative"]:
        yield f"MPI on rxe, {protocol}: p2p/modes", lambda p=protocol: program("p2p/modes", TERN_PROTOCOL=p)


def main():
    passed = failed = 0
    for name, case in cases():
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        begun = time.monotonic()
        why = case()
        passed, failed = passed + (not why), failed + bool(why)
        print(f"{'FAIL' if why else 'ok':5} {name} ({time.monotonic() - begun:.0f} s)" + (f"\n{why}" if why else ""), flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped", flush=True)


main()
