"""Jobs that Slurm starts: clusters for the tests, with a key, sockets and ports of their own: of one node on the loopback, and of two that
namespaces stand for."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

from hosts import made
from support import Case, Skip, run

NODE = "tern-node"
NEEDED = ["munged", "slurmctld", "slurmd", "srun", "sinfo"]


def cases():
    for protocol in ["pmi2", "pmix"]:
        yield Case(f"srun --mpi={protocol}: all bytes arrive, MPI_Abort ends the job", lambda tools, p=protocol: started(tools, p))
    for protocol in ["pmi2", "pmix"]:
        yield Case(f"srun --mpi={protocol}, two namespaces: all bytes arrive, MPI_Abort ends the job", lambda tools, p=protocol: started_on_two(tools, p))
    yield Case("srun that speaks nothing is told so", silent)
    yield Case("mpiexec --launcher srun: an agent is a step of Slurm", launches)


def speaking(tools, srun, protocol):
    """The words that start so many ranks with this protocol."""
    if protocol not in subprocess.run([*srun[:-1], "--mpi=list"], capture_output=True, text=True).stdout.split():
        raise Skip(f"this Slurm has no plugin for {protocol}", "slurm")
    words = [*srun, f"--mpi={protocol}", "-n"]
    if protocol == "pmix" and "can not load PMIx library" in run(tools, 1, "true", launcher=words).err:
        raise Skip("this Slurm finds no libpmix (Debian: libpmix-dev)", "slurm")
    return words


def started_on_two(tools, protocol):
    with made(tools, 2) as hosts, cluster(tools, hosts) as srun:
        words = [*speaking(tools, srun, protocol)[:-1], "-N", 2, "-n"]
        outcome = run(tools, 4, "hostname", launcher=words)
        names = [hosts.namespace(1), hosts.namespace(2)]
        outcome.expect(len(outcome.out.split()) == 4 and set(outcome.out.split()) == set(names), "ranks on both hosts")
        for ranks in [2, 4]:
            outcome = run(tools, ranks, tools.program("bytes"), launcher=words)
            outcome.expect(outcome.code == 0 and outcome.out.count("all bytes arrived") == 1, "all bytes, once")
            outcome.expect(outcome.err == "", "silence")
        outcome = run(tools, 4, tools.program("death"), "recv", "abort", launcher=words)
        outcome.expect(outcome.code != 0, "a failure")
        outcome.expect_message("MPI_Abort was called with code 42")
        outcome = run(tools, 2, tools.tern, "doctor", launcher=words)
        outcome.expect(all(re.search(rf"pass  reaches +{name} at 10", outcome.out) for name in names), "what tern doctor finds of both")


def started(tools, protocol):
    with cluster(tools) as srun:
        words = speaking(tools, srun, protocol)
        for ranks in [1, 4]:
            outcome = run(tools, ranks, tools.program("bytes"), launcher=words)
            outcome.expect(outcome.code == 0 and outcome.out.count("all bytes arrived") == 1, "all bytes, once")
            outcome.expect(outcome.err == "", "silence")
        outcome = run(tools, 3, tools.program("death"), "recv", "abort", launcher=words)
        outcome.expect(outcome.code != 0, "a failure")
        outcome.expect_message("MPI_Abort was called with code 42")


def silent(tools):
    with cluster(tools) as srun:
        outcome = run(tools, "-n", 2, tools.program("bytes"), launcher=[*srun, "--mpi=none"])
        outcome.expect(outcome.code != 0 and "arrived" not in outcome.out, "no jobs of one rank")
        outcome.expect_message(r"srun started this process .*--mpi=pmi2")


def launches(tools):
    """The node has a name of its own, so that it is none of the hosts that mpiexec is on."""
    with cluster(tools) as srun:
        path = f"{pathlib.Path(srun[2]).parent}:{os.environ['PATH']}"
        there = [*srun[:2], f"PATH={path}", tools.mpiexec, "--host-address", "127.0.0.1", "--launcher", "srun"]
        hosts = ["--hosts", f"127.0.0.1:1,{NODE}:2"]
        outcome = run(tools, *hosts, "sh", "-c", "echo rank $PMI_RANK: step $SLURM_STEP_ID.", launcher=there)
        steps = re.findall(r"rank (\d): step (\d*)\.", outcome.out)
        outcome.expect(sorted(steps) == [("0", ""), ("1", "0"), ("2", "0")], "two ranks in a step of Slurm")
        outcome = run(tools, *hosts, tools.program("bytes"), launcher=there)
        outcome.expect(outcome.code == 0 and outcome.out.count("all bytes arrived") == 1, "all bytes, once")
        outcome = run(tools, *hosts, tools.program("death"), "recv", "abort", launcher=there)
        outcome.expect(outcome.code == 42, "the code of MPI_Abort")
        outcome.expect_message("MPI_Abort was called with code 42")
        outcome = run(tools, "--hosts", f"127.0.0.1:1,{NODE}x:2", "true", launcher=there)
        outcome.expect(outcome.code != 0, "no job on a node that Slurm does not know")
        outcome.expect_message(f"host {NODE}x: ")


def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


CONFIGURATION = """\
ClusterName=tern
SlurmctldHost={host}({at})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool-%n
TmpFS={temporary}
SlurmctldPidFile={place}/controller.pid
SlurmdPidFile={place}/daemon-%n.pid
SlurmctldLogFile={place}/controller.log
SlurmdLogFile={place}/daemon-%n.log
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
PartitionName=tests Nodes=ALL Default=YES State=UP
"""


def inside(namespace, known):
    """As hosts.sh reaches one, but with the system's /sys: slurmd wants its control groups."""
    mounts = 'mount -t tmpfs tmpfs /dev/shm && mount --bind "$1" /etc/hosts && hostname "$0" && shift && exec "$@"'
    return ["nsenter", f"--net=/run/netns/{namespace}", "unshare", "--uts", "--mount", "sh", "-c", mounts, namespace, known]


@contextlib.contextmanager
def cluster(tools, hosts=None):
    """Words that start something under Slurm, on this host or from the first of those that namespaces stand for, a node each."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    programs = {name: shutil.which(name, path=path) for name in NEEDED}
    missing = [name for name, at in programs.items() if at is None]
    if missing:
        raise Skip(f"no {', '.join(missing)} here (Debian: slurmctld slurmd slurm-client munge)", "slurm")
    if os.geteuid() != 0:
        raise Skip("slurmd needs root", "slurm")
    place = tools.scratch / "slurm"
    shutil.rmtree(place, ignore_errors=True)
    for directory in [place, place / "state"]:
        directory.mkdir()
        directory.chmod(0o755)
    key = place / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    configuration = place / "slurm.conf"
    # Name, host name, address, and what stands before a command there.
    nodes = [(NODE, socket.gethostname(), "127.0.0.1", [])]
    if hosts:
        names = {k: hosts.namespace(k) for k in range(1, hosts.count + 1)}
        known = place / "hosts"
        known.write_text("127.0.0.1 localhost\n" + "".join(f"10.77.31.{k} {name}\n" for k, name in names.items()))
        nodes = [(name, name, f"10.77.31.{k}", inside(name, known)) for k, name in names.items()]
    _, host, at, first = nodes[0]
    # Nodes of one host would find files of each other's ranks in one place.
    temporary = "/dev/shm" if hosts else place
    text = CONFIGURATION.format(host=host, at=at, place=place, temporary=temporary, controller=port(), daemon=port())
    text += "".join(f"NodeName={name} NodeHostname={host} NodeAddr={at} CPUs=8 State=UNKNOWN\n" for name, host, at, _ in nodes)
    configuration.write_text(text)
    environment = dict(os.environ, SLURM_CONF=str(configuration))
    munged = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={place}/munge.socket"]
    munged += [f"--pid-file={place}/munge.pid", f"--log-file={place}/munge.log", f"--seed-file={place}/munge.seed"]
    daemons = []

    def start(name, *words, there=()):
        log = open(place / f"{name}-{len(daemons)}.out", "w")
        command = [str(word) for word in (*there, programs[name], *words)]
        daemons.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    try:
        start(*munged)
        await_that(place, lambda: (place / "munge.socket").exists())
        start("slurmctld", "-D", "-f", configuration, there=first)
        for *_, there in nodes:
            start("slurmd", "-D", "-f", configuration, there=there)

        def is_up():
            asked = [str(word) for word in (*first, programs["sinfo"], "-h", "-o", "%T:%D")]
            done = subprocess.run(asked, env=environment, capture_output=True, text=True)
            return done.stdout.strip() == f"idle:{len(nodes)}"

        await_that(place, is_up)
        yield [*first, "env", f"SLURM_CONF={configuration}", programs["srun"], "--quiet"]
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def await_that(place, condition, limit=120):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            logs = "".join(log.read_text()[-300:] for log in sorted(place.glob("*.out")) + sorted(place.glob("*.log")))
            raise Skip(f"Slurm does not start here: {logs.strip()}", "slurm")
        time.sleep(0.1)
