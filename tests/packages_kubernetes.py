"""The files for containers and Kubernetes (packaging/): that they can be read, that what one says of another holds, and that the command
lines in them start ranks, on hosts that commands in place of ssh, kubectl and docker stand for. No cluster is asked."""

import re
import shlex

from install import ROOT, Failure, Skip

PLACE = ROOT / "packaging" / "kubernetes"
SCRIPTS = [PLACE / "in-pod", ROOT / "packaging" / "in-docker"]
# How the operator writes a host file, by the kind of MPI that a job says it has.
HOST_FILES = {"OpenMPI": "{name}-worker-{i}.{name}.default.svc slots={slots}\n", "Intel": "{name}-worker-{i}.{name}.default.svc:{slots}\n",
              "MPICH": "{name}-worker-{i}.{name}.default.svc:{slots}\n"}


def kubernetes(bench):
    """An image, a job of the MPI operator, and the commands by which mpiexec reaches pods and containers."""
    image = re.sub(r"\\\n", "", re.sub(r"(?m)^ *#.*\n", "", (PLACE / "Dockerfile").read_text()))
    steps = re.findall(r"(?m)^RUN (.*)$", image)
    for step in steps:
        bench.run("sh", "-n", "-c", step)
    said = scripts(bench)
    try:
        import yaml
    except ImportError:
        raise Skip(f"no yaml for Python; {said}") from None
    job = yaml.safe_load((PLACE / "mpijob.yaml").read_text())
    starts_ranks(bench, job)
    fits_image(job, image, " ".join(steps))


def expect(condition, what):
    if not condition:
        raise Failure(what)


def lines(bench, *words):
    """What ranks print that a build of mpiexec starts on hosts whose names nobody can resolve."""
    return bench.run("mpiexec", "--host-address", "127.0.0.1", *words, "sh", "-c", "echo rank $PMI_RANK of $PMI_SIZE", first=ROOT / "build" / "bin").splitlines()


def ranks(count):
    return [f"rank {rank} of {count}" for rank in range(count)]


def scripts(bench):
    """Each with the command that its comment has, kubectl and docker being scripts that run here what is for a container."""
    for script in SCRIPTS:
        bench.run("sh", "-n", script)
        expect(script.stat().st_mode & 0o111, f"{script} is not executable")
        text = script.read_text()
        tool = bench.scratch / re.search(r"exec (\w+) exec -i ", text)[1]
        tool.write_text('#!/bin/sh\n[ "$1 $2" = "exec -i" ] || exit 9\nshift 3\n[ "$1" != -- ] || shift\nexec "$@"\n')
        tool.chmod(0o755)
        words = shlex.split(re.search(r"(?m)^# .*: mpiexec (.*)$", text)[1])
        expect(words[:2] == ["--launcher", f"./{script.name}"] and words[2] == "--hosts", f"{script} is called as {words}")
        path = f"{bench.scratch}:{bench.environment['PATH']}"
        reach = bench.scratch / f"reach-{script.name}"
        reach.write_text(f'#!/bin/sh\nPATH={shlex.quote(path)} exec {shlex.quote(str(script))} "$@"\n')
        reach.chmod(0o755)
        said = lines(bench, "--launcher", reach, "--hosts", words[3])
        expect(sorted(said) == ranks(8), f"{script}: {said}")
    return "the scripts are right"


def starts_ranks(bench, job):
    """The launcher's command line, with this host in place of the pods."""
    spec = job["spec"]
    expect((job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob"), "another kind of job")
    expect(set(spec) == {"slotsPerWorker", "mpiImplementation", "runPolicy", "mpiReplicaSpecs"}, f"the operator knows not all of {set(spec)}")
    launcher, worker = (spec["mpiReplicaSpecs"][name] for name in ("Launcher", "Worker"))
    expect(launcher["replicas"] == 1 and spec["mpiImplementation"] in HOST_FILES, "a launcher, and a host file that is known")
    mpiexec, *words = launcher["template"]["spec"]["containers"][0]["command"]
    program = words.index("/opt/heat")
    options = words[:program]
    expect(mpiexec == "mpiexec" and options == ["--launcher", "ssh", "-f", "/etc/mpi/hostfile"], f"the launcher runs {options}")
    ssh, hosts = bench.scratch / "in-place-of-ssh", bench.scratch / "hostfile"
    ssh.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    ssh.chmod(0o755)
    for kind, line in HOST_FILES.items():
        names = [line.format(name=job["metadata"]["name"], i=i, slots=spec["slotsPerWorker"]) for i in range(worker["replicas"])]
        hosts.write_text("".join(names))
        said = lines(bench, *(ssh if word == "ssh" else hosts if word.startswith("/etc") else word for word in options))
        expect(sorted(said) == ranks(worker["replicas"] * spec["slotsPerWorker"]), f"{kind}: {said}")


def fits_image(job, image, steps):
    """What the job's containers run is in the image, under the name by which it is built."""
    named = re.search(r"-t (\S+) ", (PLACE / "Dockerfile").read_text())[1]
    copied = re.findall(r"(?m)^COPY \S+ (\S+)$", image)
    for role in job["spec"]["mpiReplicaSpecs"].values():
        pod = role["template"]["spec"]
        for container in pod["containers"]:
            expect(container["image"] == named, f"{container['image']} is not the {named} that is built")
            volumes = {mount["name"] for mount in container.get("volumeMounts", [])}
            expect(volumes == {volume["name"] for volume in pod.get("volumes", [])}, f"volumes {volumes}")
            words = [word for word in container["command"] if word.startswith("/") and "/etc/" not in word]
            for word in words:
                expect(word in copied or word == "/usr/sbin/sshd" and " openssh-server " in steps, f"the image has no {word}")
    expect("/opt/tern/" in copied and "ENV PATH=/opt/tern/bin:" in image, "mpiexec is in PATH")
