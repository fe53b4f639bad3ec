"""What run.py runs inside the first of the kernels it has booted: Debian's programs on rxe and siw, Tern's MPI on rxe of one
kernel and of both, Tern's librdmacm with siw; files of MPI on NFS. The last line counts."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = ROOT / "build" / "bin"
SHELL = str(ROOT / "tests" / "rdma" / "shell.py")
# The first cable between the kernels.
HOSTS = "10.9.2.1,10.9.2.2"
# What goes over it, as the adapter counts it.
SENT = pathlib.Path("/sys/class/infiniband/rxe1/ports/1/hw_counters/sent_pkts")
RXE, SIW = "10.9.0.1", "10.9.1.1"
# What goes over the third, which siw alone has.
SENT_SIW = pathlib.Path("/sys/class/net/vec2/statistics/tx_packets")
# One processor has both sides, whose ranks wait for a tick of 10 ms now and then.
LIMIT = 240
# For what measures.
LONG = 300
FILES = ["io/open", "io/views", "io/collective", "io/shared", "io/forms", "io/places pieces", "io/places pointer", "io/places room"]
# What is remembered of files is to last, so that it shows.
MOUNTED = "acregmin=30,acregmax=60"
IWARP = ["p2p/blocking", "p2p/constant", "p2p/truncate", "p2p/modes", "rma/put_get"]
FEW = ["p2p/blocking", "p2p/truncate", "rma/put_get"]
VERIFIED = [*FEW, "p2p/remapped"]
# How Tern's side of a pair of rpings begins.
TERN = f"{BIN}/tern verbs "
TERN_AT = "10.9.2.1"
RPING = r"ping data: rdma-ping-4: EFGHIJ"
CAPTURE = "/tmp/siw.pcap"


def ended(words, limit=LIMIT, **settings):
    """Exit code and output of a command, which is ended after its time."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=limit, env=os.environ | settings)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
        return None, f"no end after {limit} s\n" + (said if isinstance(said, str) else said.decode(errors="replace"))


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


def built_at(name):
    """A program that was compiled outside: one of the C tests, or named by its path."""
    return name if name.startswith("/") else str(ROOT / "build" / "tests" / "tern" / name)


def program(name, ranks=2, says="test passed", **settings):
    code, said = ended([BIN / "mpiexec", "-n", str(ranks), built_at(name)], **{"TERN_DEVICES": "ibv", "TERN_IBV_PORTS": "rxe0"} | settings)
    return None if code == 0 and re.search(says, said) else f"exit code {code}, no /{says}/\n{said}"


def apart(name, ranks=2, says="test passed", used=True, counter=SENT, **settings):
    """A program with ranks in both kernels; whether the adapter has carried it."""
    words = [str(BIN / "mpiexec"), "--launcher", SHELL, "--hosts", HOSTS, "-n", str(ranks), *built_at(name).split()]
    before = int(counter.read_text())
    code, said = ended(words, **{"TERN_DEVICES": "shm+ibv", "TERN_IBV_PORTS": "rxe1"} | settings)
    sent = int(counter.read_text()) - before
    if code or not re.search(says, said) or (sent > 20) != used:
        return f"exit code {code}, {sent} packets as {counter} has them\n{said}\n{counted()}"
    return None


def mpi4py(module):
    """A module of mpi4py's suite, as tests/mpi4py/run.py has prepared it outside, with a rank in each kernel."""
    venv = ROOT / "build" / "mpi4py" / "venv-tern"
    # The Python of this folder, with what was built for that of the host.
    site = venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    if not site.is_dir():
        return f"mpi4py was built for another Python than the one here: there is no {site}"
    words = f"/usr/bin/env PYTHONPATH={site} python3 {venv}/test/main.py --no-builddir -q --xfile {venv}/excluded-tests -i ^{module}\\.py$"
    # Lines of the two ranks may come in any order.
    return apart(words, says=r"(?s)^(?=.*Ran [1-9]\d* tests.*Ran [1-9]\d* tests).*\nOK.*\nOK", PYTHONUNBUFFERED="1", OMP_NUM_THREADS="1")


def counted():
    """What the adapters have counted that is not nothing: packets that came again tell of losses and of patience that was too short."""
    found = sorted(SENT.parents[4].glob("*/ports/1/hw_counters/*"))
    return " ".join(f"{path.parents[3].name}.{path.name}={path.read_text().strip()}" for path in found if path.read_text().strip() != "0")


def measured(kind, *words, prints=True, says=None, least=0):
    """Figures of one MPI between the kernels. Where it is to have gone over the adapter, what each rank says of that, and how many
    packets the adapter must have counted."""
    before = int(SENT.read_text())
    code, said = ended([str(word) for word in words])
    sent = int(SENT.read_text()) - before
    if prints:
        print("\n".join(f"      {kind:8} {line}" for line in said.splitlines() if "MB/s" in line), flush=True)
    lacking = [host for host in ("uml1", "uml2") if says and not re.search(rf"\[{host}:.*{says}", said)]
    if code == 0 and "measured" in said and not lacking and sent >= least:
        return None
    return f"exit code {code}, {sent} packets over rxe1, not {least}, /{says}/ not of {lacking}\n{said}"


PINGPONG = ROOT / "build" / "rdma" / "pingpong"


def mpich(**settings):
    """The command of MPICH's program with a rank in each kernel."""
    words = ["mpiexec.hydra", "-launcher", "rsh", "-launcher-exec", SHELL, "-hosts", HOSTS, "-iface", "vec0", "-n", "2"]
    return [*words, *(word for name, value in settings.items() for word in ("-genv", name, value)), f"{PINGPONG}.mpich"]


def openmpi(*more, **settings):
    """The same of Open MPI."""
    words = ["mpirun.openmpi", *more, "--allow-run-as-root", "--host", HOSTS, "--mca", "plm_rsh_agent", SHELL, "--mca", "pml", "ucx"]
    words += ["--mca", "osc", "^ucx", "--mca", "btl", "self", "--mca", "oob_tcp_if_include", "vec0", "-n", "2"]
    return [*words, *(word for name, value in settings.items() for word in ("-x", f"{name}={value}")), f"{PINGPONG}.openmpi"]


# UCX looks at the destination of each datagram, and takes no IPv4 address of rxe's for its own; to connect takes datagrams.
ON_RXE = {"UCX_NET_DEVICES": "rxe1:1", "UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_UD_VERBS_ETH_DGID_CHECK": "n", "UCX_LOG_LEVEL": "info"}
# The lane of messages, as UCX names it when it has made it.
LANE = r"tag\(rc_verbs/rxe1:1"
# Each message of 1 MB of the ping-pong is 256 packets of RoCE, and there are 361.
PACKETS = 361 * 256
# Of Open MPI: who waits lets others have the processor. So does Tern, where there is one.
YIELDS = ["--mca", "mpi_yield_when_idle", "1"]
# What `tern verbs bench` measures: adapter, port, and how many figures there are. The software adapter has one connection, iWARP no datagrams.
BENCHED = {"rxe": ("ibv", "rxe1", 42), "siw": ("ibv", "siw1", 33), "rnic": ("rnic", "", 34)}


def peer(name, words, prints):
    """Another MPI over UCX's connections on the same adapter."""
    return measured(name, *words, prints=prints, says=LANE, least=PACKETS)


def figures():
    """Three MPIs over the same adapter, by connections."""
    tern = [BIN / "mpiexec", "--launcher", SHELL, "--hosts", HOSTS, "--genv", "TERN_DEVICES", "ibv", "--genv", "TERN_IBV_PORTS", "rxe1"]
    tern += ["-n", 2, f"{PINGPONG}.tern"]
    for _ in range(3):
        yield "measured: Tern", lambda: measured("Tern", *tern, least=PACKETS)
        yield "measured: MPICH over UCX", lambda: peer("MPICH", mpich(**ON_RXE), True)
        yield "measured: Open MPI over UCX", lambda: peer("Open MPI", openmpi(**ON_RXE), True)
        yield "measured: Open MPI over UCX, yielding", lambda: peer("yielding", openmpi(*YIELDS, **ON_RXE), True)
        for kind in BENCHED:
            yield f"measured-bench: {kind}", lambda k=kind: bench(k, 100, True)


def bench(kind, rounds, prints):
    """`tern verbs bench` between the kernels."""
    adapter, port, wanted = BENCHED[kind]
    words = [str(BIN / "tern"), "verbs", "bench", "--adapter", adapter, "--rounds", str(rounds), "--by", f"{SHELL} 10.9.2.2"]
    code, said = ended(words, LONG, TERN_IBV_PORTS=port, TERN_INTERFACE="vec0")
    figures = re.findall(rf"^{adapter} +(\S.*\S +\d+\.\d\d+)$", said, re.MULTILINE)
    if prints:
        print("\n".join(f"      {kind:8} {line}" for line in figures), flush=True)
    return None if code == 0 and len(figures) == wanted else f"exit code {code}, {len(figures)} figures, not {wanted}\n{said}"


def iwarp():
    """Connections of iWARP: in one kernel, and between both."""
    protocols = ["rput", "rget", "pipeline", "superpipeline", "speculative"]
    for name in IWARP:
        yield f"MPI on siw: {name}", lambda n=name: program(n, TERN_IBV_PORTS="siw0")
        yield f"MPI on siw, three ranks: {name}", lambda n=name: program(n, 3, TERN_IBV_PORTS="siw0")
    for protocol in protocols:
        yield f"MPI on siw, {protocol}: p2p/modes", lambda p=protocol: program("p2p/modes", TERN_IBV_PORTS="siw0", TERN_PROTOCOL=p)
    yield "MPI on siw: who computes for long is waited for", lambda: program(f"{ROOT}/build/rdma/silent", TERN_IBV_PORTS="siw0")
    siw = {"TERN_IBV_PORTS": "siw1", "counter": SENT_SIW}
    for name in [*FEW, "p2p/modes"]:
        yield f"two kernels, siw: {name}", lambda n=name: apart(n, **siw)
    yield "two kernels, siw, two ranks each: p2p/blocking", lambda: apart("p2p/blocking", 4, **siw)
    yield "two kernels, siw, tern info: ibv to all others", lambda: apart(f"{BIN}/tern info --devices", says="ibv at siw1 port 1", used=False, **siw)
    for transport in ["ud", "hybrid"]:
        yield f"siw has no datagrams, which is said: {transport}", lambda t=transport: refused("p2p/blocking", "iWARP adapters carry no datagrams: TERN_TRANSPORT=rc", TERN_TRANSPORT=t)


def refused(name, says, **settings):
    """What a program is told that cannot have siw."""
    built = ROOT / "build" / "tests" / "tern" / name
    code, said = ended([BIN / "mpiexec", "-n", "2", built], TERN_DEVICES="ibv", TERN_IBV_PORTS="siw0", **settings)
    return None if code and says in said else f"exit code {code}, no `{says}`\n{said}"


def on_rxe():
    """MPIs over UCX on the kernel's adapter."""
    yield "two kernels, rxe: MPICH over UCX", lambda: peer("", mpich(**ON_RXE), False)
    yield "two kernels, rxe: Open MPI over UCX", lambda: peer("", openmpi(**ON_RXE), False)


def on_tern():
    """What others have over verbs, on Tern's adapter."""
    folder = str(ROOT / "build" / "lib" / "tern" / "verbs")
    ucx = {"LD_LIBRARY_PATH": folder, "UCX_NET_DEVICES": "tern_vec0:1", "UCX_TLS": "rc_verbs,ud_verbs,self"}
    yield "Tern's adapter: MPICH over UCX, two kernels", lambda: measured("", *mpich(**ucx), prints=False)
    yield "Tern's adapter: Open MPI over UCX, two kernels", lambda: measured("", *openmpi(**ucx), prints=False)
    for way, test in [("rc_verbs", "am_lat"), ("rc_verbs", "put_bw"), ("ud_verbs", "am_lat")]:
        words = f"ucx_perftest -d tern_vec0:1 -x {way} -t {test} -n 200 -s 64"
        server = f"{TERN}{words}"
        yield f"Tern's adapter: {words}", lambda s=server: pair(s, f"{s} {TERN_AT}", r"Final: +200|Message size", 13337)


def verified(name, run=program, **settings):
    """A program each of whose uses of a kept registration is verified: whether one was stale, which is said by MPI_Finalize."""
    return run(name, TERN_REGISTERED_VERIFY="1", says=r"(?s)^(?!.*TERN_REGISTERED_VERIFY: ).*test passed", **settings)


def kept():
    """Registrations that outlive their messages: that there are any on this kernel, that they end with their memory, and that none is stale."""
    told = "told of munmap, MAP_FIXED, mremap, madvise and free.*registrations are kept.*physical frames, which are shown"
    yield "tern info: registrations are kept, and can be verified", lambda: shown([f"{BIN}/tern", "info"], told)
    own = f"{ROOT}/build/rdma/kept"
    for transport in ["rc", "hybrid"]:
        yield f"kept on rxe, {transport}", lambda t=transport: program(own, TERN_TRANSPORT=t)
        yield f"kept on rxe, {transport}, each use verified", lambda t=transport: verified(own, TERN_TRANSPORT=t)
    yield "kept on siw, each use verified", lambda: verified(own, TERN_IBV_PORTS="siw0")
    for name in VERIFIED:
        yield f"MPI on rxe, each use verified: {name}", lambda n=name: verified(n)
    for name in [*VERIFIED, "p2p/modes"]:
        yield f"two kernels, each use verified: {name}", lambda n=name: verified(n, apart)
    for protocol in ["rput", "rget", "caching-pipeline", "superpipeline", "speculative"]:
        settings = {"TERN_PROTOCOL": protocol, "TERN_IBV_PORTS": "rxe1,rxe2"}
        yield f"two kernels, two rails, {protocol}, each use verified: p2p/remapped", lambda s=settings: verified("p2p/remapped", apart, **s)


def shown(words, says):
    """Whether a command says this."""
    code, said = ended(words)
    return None if code == 0 and re.search(says, said, re.DOTALL) else f"exit code {code}, no /{says}/\n{said}"


def both_kernels():
    for transport in ["rc", "ud", "hybrid"]:
        for name in FEW:
            yield f"two kernels, {transport}: {name}", lambda n=name, t=transport: apart(n, TERN_TRANSPORT=t)
        yield f"two kernels, {transport}, two ranks each: p2p/blocking", lambda t=transport: apart("p2p/blocking", 4, TERN_TRANSPORT=t)
    for protocol in ["auto", "rput", "rget", "pipeline", "superpipeline", "speculative"]:
        rails = {"TERN_PROTOCOL": protocol, "TERN_IBV_PORTS": "rxe1,rxe2"}
        yield f"two kernels, two rails, {protocol}: p2p/modes", lambda r=rails: apart("p2p/modes", **r)
    for module in ["test_p2p_buf", "test_p2p_obj", "test_cco_buf", "test_rma"]:
        yield f"two kernels, mpi4py: {module}", lambda m=module: mpi4py(m)
    auto = {"TERN_DEVICES": "auto"}
    yield "two kernels, auto takes a port that is named", lambda: apart("p2p/blocking", **auto)
    yield "two kernels, auto takes no adapter in software by itself", lambda: apart("p2p/blocking", used=False, TERN_IBV_PORTS="", **auto)
    yield "two kernels, tern info: ibv to all others", lambda: apart(f"{BIN}/tern info --devices", says="ibv at rxe1 port 1", used=False, **auto)


def serve_nfs():
    """A server in this kernel; why there is none."""
    served, states = pathlib.Path("/tmp/served"), "/proc/fs/nfsd"
    if served.exists():
        return None
    served.mkdir()
    steps = [["mount", "-t", "tmpfs", "tmpfs", "/var/lib/nfs"], ["mkdir", "-p", "/var/lib/nfs/rpc_pipefs", "/var/lib/nfs/v4recovery"],
             ["touch", "/var/lib/nfs/etab", "/var/lib/nfs/rmtab"], ["mount", "-t", "nfsd", "nfsd", states],
             ["exportfs", "-o", "rw,no_root_squash,insecure,fsid=0,no_subtree_check", f"10.9.0.0/16:{served}"],
             ["rpc.mountd", "-N", "3"], ["rpc.nfsd", "-N", "3", "-V", "4", "4"],
             # Nobody has locks from before.
             ["sh", "-c", f"echo Y >{states}/v4_end_grace"]]
    return first_fault(steps)


def nfs(places):
    """A server in this kernel, and clients of it as on so many hosts: /tmp/client-0 and so on; why there are none. A kernel is one client
    of a server however often it mounts: what one mount writes does not take a delegation from another, which then keeps locks to
    itself. So each has a network and a host name of its own, by which the server tells clients apart."""
    why = serve_nfs()
    for place in places:
        name, subnet = place.removeprefix("/tmp/"), f"10.9.{16 + int(place[-1])}"
        if why or pathlib.Path(place).exists():
            continue
        mount = f"hostname {name} && exec mount.nfs4 {subnet}.1:/ {place} -o {MOUNTED}"
        why = first_fault([["mkdir", place], ["ip", "netns", "add", name], ["ip", "link", "add", name, "type", "veth", "peer", "name", "vc", "netns", name],
                           ["ip", "addr", "add", f"{subnet}.1/24", "dev", name], ["ip", "link", "set", name, "up"],
                           ["ip", "-n", name, "addr", "add", f"{subnet}.2/24", "dev", "vc"], ["ip", "-n", name, "link", "set", "vc", "up"],
                           ["nsenter", f"--net=/run/netns/{name}", "unshare", "--uts", "sh", "-c", mount]])
    clients = len(list(pathlib.Path("/proc/fs/nfsd/clients").glob("*")))
    return why or (None if clients >= len(places) else f"the server knows {clients} clients, not {len(places)}")


def first_fault(steps):
    """What went wrong in one of these commands, of which those behind it are not run."""
    for step in steps:
        code, said = ended(step)
        if code != 0:
            return f"{' '.join(step)}: exit code {code}\n{said}"
    return None


def file_on_nfs(name, places, ranks, **settings):
    """A program of files, whose ranks have different clients if several are named."""
    if why := nfs(places):
        return why
    program, *arguments = name.split()
    built = ROOT / "build" / "tests" / "tern" / program
    code, said = ended([BIN / "mpiexec", "-n", str(ranks), built, *arguments], TMPDIR=places[0], TERN_TEST_PLACES=":".join(places), **settings)
    return None if code == 0 and "test passed" in said else f"exit code {code}\n{said}"


def far_file_on_nfs(name):
    """A program of files with ranks in both kernels, whose mounts have the same name."""
    place = "/tmp/client-0"
    if why := nfs([place]):
        return why
    mount = f"mountpoint -q {place} || {{ mkdir -p {place} && mount.nfs4 10.9.2.1:/ {place} -o {MOUNTED}; }} && echo mounted"
    _, said = ended([SHELL, "10.9.2.2", mount])
    return apart(name, TERN_TEST_PLACES=place) if "mounted" in said.split() else f"the other kernel mounts nothing\n{said}"


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
    for part in ["pieces", "pointer", "room"]:
        name = f"io/places {part}"
        yield f"files on NFS, three clients: {name}", lambda n=name: file_on_nfs(n, clients, 3, TERN_DEVICES="rnic")
        yield f"files on NFS, two kernels: {name}", lambda n=name: far_file_on_nfs(n)
    for protocol in ["rput", "rget", "pipeline", "superpipeline", "speculative"]:
        yield f"MPI on rxe, {protocol}: p2p/modes", lambda p=protocol: program("p2p/modes", TERN_PROTOCOL=p)
        yield f"MPI on rxe, {protocol}: p2p/constant", lambda p=protocol: program("p2p/constant", TERN_PROTOCOL=p)
    yield from kept()
    yield from both_kernels()
    yield from iwarp()
    for kind in BENCHED:
        yield f"two kernels, tern verbs bench, {kind}: every row has a figure", lambda k=kind: bench(k, 8, False)
    yield from on_rxe()
    yield from on_tern()
    if any(word.startswith("measured") for word in sys.argv[1:]):
        yield from figures()


def main():
    passed = failed = 0
    for name, case in cases():
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        begun = time.monotonic()
        why = case()
        passed, failed = passed + (not why), failed + bool(why)
        print(f"{'FAIL' if why else 'ok':5} {name} ({time.monotonic() - begun:.0f} s)" + (f"\n{why}" if why else ""), flush=True)
    print(f"      counted by the adapters: {counted()}")
    print(f"{passed} passed, {failed} failed, 0 skipped", flush=True)


main()
