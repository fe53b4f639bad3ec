"""Jobs that Slurm starts: a cluster of one node for the tests, with a key, sockets and ports of its own."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

from support import Case, Skip, run

NODE = "tern-node"
NEEDED = ["munged", "slurmctld", "slurmd", "srun", "sinfo"]


def cases():
    for protocol in ["pmi2", "pmix"]:
        yield Case(f"srun --mpi={protocol}: all bytes arrive, MPI_Abort ends the job", lambda tools, p=protocol: started(tools, p))
    yield Case("srun that speaks nothing is told so", silent)
    yield Case("mpiexec --launcher srun: an agent is a step of Slurm", launches)


def started(tools, protocol):
    with cluster(tools) as srun:
        if protocol not in subprocess.run([*srun[:-1], "--mpi=list"], capture_output=True, text=True).stdout.split():
            raise Skip(f"this Slurm has no plugin for {protocol}", "slurm")
        words = [*srun, f"--mpi={protocol}", "-n"]
        if protocol == "pmix" and "can not load PMIx library" in run(tools, 1, "true", launcher=words).err:
            raise Skip("this Slurm finds no libpmix (Debian: libpmix-dev)", "slurm")
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
SlurmctldHost={host}(127.0.0.1)
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
SlurmdSpoolDir={place}/spool
TmpFS={place}
SlurmctldPidFile={place}/controller.pid
SlurmdPidFile={place}/daemon.pid
SlurmctldLogFile={place}/controller.log
SlurmdLogFile={place}/daemon.log
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=tests Nodes={node} Default=YES State=UP
"""


@contextlib.contextmanager
def cluster(tools):
    """Words that start something under Slurm."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    programs = {name: shutil.which(name, path=path) for name in NEEDED}
    missing = [name for name, at in programs.items() if at is None]
    if missing:
        raise Skip(f"no {', '.join(missing)} here (Debian: slurmctld slurmd slurm-client munge)", "slurm")
    if os.geteuid() != 0:
        raise Skip("slurmd needs root", "slurm")
    place = tools.scratch / "slurm"
    shutil.rmtree(place, ignore_errors=True)
    for directory in [place, place / "state", place / "spool"]:
        directory.mkdir()
        directory.chmod(0o755)
    key = place / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    configuration = place / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(node=NODE, host=socket.gethostname(), place=place, controller=port(), daemon=port()))
    environment = dict(os.environ, SLURM_CONF=str(configuration))
    munged = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={place}/munge.socket"]
    munged += [f"--pid-file={place}/munge.pid", f"--log-file={place}/munge.log", f"--seed-file={place}/munge.seed"]
    daemons = []

    def start(name, *words):
        log = open(place / f"{name}.out", "w")
        command = [programs[name], *words]
        daemons.append(subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    try:
        start(*munged)
        await_that(place, lambda: (place / "munge.socket").exists())
        start("slurmctld", "-D", "-f", configuration)
        start("slurmd", "-D", "-f", configuration)

        def is_up():
            done = subprocess.run([programs["sinfo"], "-h", "-o", "%T"], env=environment, capture_output=True, text=True)
            return done.stdout.strip() == "idle"

        await_that(place, is_up)
        yield ["env", f"SLURM_CONF={configuration}", programs["srun"], "--quiet"]
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
