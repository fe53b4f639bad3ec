"""`tern doctor` and `tern info`: what is missing is said, with the command that mends it, and what is chosen for whom."""

import re
import subprocess

from containers import small
from hosts import namespaces
from sites import mpirun
from support import Case, Skip, run


def cases():
    yield Case("tern doctor: this host and a program", healthy)
    yield Case("tern doctor: a small file system", little_memory)
    yield Case("tern doctor: no directory, an unknown setting", broken)
    yield Case("tern doctor: a container that refuses single copy", refused)
    yield Case("tern doctor: limits", limits)
    yield Case("tern doctor: programs that cannot run", programs)
    yield Case("tern doctor --hosts: two namespaces", two_hosts)
    yield Case("tern doctor --hosts: a firewall between them", firewall)
    yield Case("tern doctor --hosts: no datagrams between them", datagrams)
    yield Case("tern doctor --hosts: a host that cannot be started on", unreachable)
    yield Case("tern doctor under mpirun", under_mpirun)
    yield Case("tern info: what is chosen for whom", chosen)


def doctor(tools, *words, **more):
    return run(tools, tools.tern, "doctor", *words, **{"launcher": (), **more})


def says(outcome, code, *patterns):
    outcome.expect(outcome.code == code, f"exit code {code}")
    for pattern in patterns:
        outcome.expect(re.search(pattern, outcome.out), f"/{pattern}/ on standard output")
    lines = outcome.out.splitlines()
    for line, following in zip(lines, [*lines[1:], ""]):
        if re.match("  (weak|FAIL)  ", line):
            outcome.expect(following.startswith("        mend: "), f"a remedy below {line!r}")


def healthy(tools):
    outcome = doctor(tools, tools.program("bytes"))
    says(outcome, 0, r"(?m)^  pass  ABI +the standard one; it loads .*libmpi_abi", r"memlock", r"interfaces", r"fork",
         r"(?m)^  (pass|weak)  UDP buffers +.*4096 ")
    outcome.expect("FAIL" not in outcome.out, "nothing that fails")


def little_memory(tools):
    with small(tools, 256) as place:
        says(doctor(tools, env={"TERN_SHM_DIR": str(place)}), 0, r"weak  shared memory .*\n +mend: mount -o remount")


def broken(tools):
    says(doctor(tools, env={"TERN_SHM_DIR": "/nowhere"}), 1, r"FAIL  shared memory +/nowhere cannot be used.*\n +mend: ")
    says(doctor(tools, env={"TERN_EAGER": "1"}), 1, r"FAIL  settings +.*TERN_EAGER")
    says(doctor(tools, env={"TERN_INTERFACE": "eth77"}), 1, r"FAIL  messages at +.*eth77")


def refused(tools):
    outcome = doctor(tools, launcher=[tools.program("sandbox"), "copy,membarrier"])
    if outcome.code == 77:
        raise Skip(f"no seccomp filter here: {outcome.err.strip()}")
    says(outcome, 0, r"weak  single copy .*process_vm_readv.*\n +mend: ", r"weak  membarrier .*\n +mend: ")


def limits(tools):
    shell = ["sh", "-c", 'ulimit -l 64 && ulimit -n 200 && exec "$@"', "sh"]
    says(doctor(tools, launcher=shell), 0, r"weak  memlock +64 KiB.*\n +mend: ulimit -l unlimited", r"weak  open files +200 ")


def programs(tools):
    says(doctor(tools, tools.scratch / "none"), 1, r"FAIL  program +there is no ")
    text = tools.scratch / "text"
    text.write_text("no program")
    text.chmod(0o644)
    says(doctor(tools, text), 1, r"FAIL  program .*\n +mend: chmod \+x ")
    source, lost = tools.scratch / "other.c", tools.scratch / "other"
    source.write_text("int MPI_Init(int *, char ***); int main(void) { return MPI_Init(0, 0); }\n")
    # A library of another ABI: only its name counts, and whether Tern has one with that ABI.
    stub = tools.scratch / "stub.c"
    stub.write_text("int MPI_Init(int *a, char ***b) { return !a && !b; }\n")
    for soname, code, pattern in [("libmpi.so.20", 1, r"FAIL  ABI .*another library's own ABI.*\n +mend: "),
                                  ("libmpi.so.40", 0, r"weak  ABI .*the ABI of Open MPI.*\n +mend: mpiexec --abi openmpi "),
                                  ("libmpi_abi.so.1", 1, r"FAIL  ABI .*is not found when it starts.*\n +mend: ")]:
        library = tools.scratch / "stubs" / soname
        library.parent.mkdir(exist_ok=True)
        for command in [
            ["cc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", stub, "-o", library],
            ["cc", source, library, "-o", lost],
        ]:
            subprocess.run([str(word) for word in command], check=True)
        says(doctor(tools, lost, env={"LD_LIBRARY_PATH": None}), code, pattern)


def across(tools, hosts, inside, *words):
    """The words of `namespaces` as the doctor takes them."""
    names = hosts[3].replace(":2", "")
    return run(tools, tools.tern, "doctor", "--hosts", names, "--launcher", hosts[1], *words, launcher=inside[:-1])


def two_hosts(tools):
    with namespaces(tools) as (hosts, inside, _):
        outcome = across(tools, hosts, inside, tools.program("bytes"))
        says(outcome, 0, r"host tern\d+h1 \(rank 0\)", r"host tern\d+h2 \(rank 1\)", r"pass  reaches +tern\d+h2 at 10\.77\.31\.2:",
             r"pass  reaches +tern\d+h1 at 10\.77\.31\.1:", r"pass  datagrams +to tern\d+h2 and back at 10\.77\.31\.2:",
             r"pass  datagrams +to tern\d+h1 and back at 10\.77\.31\.1:")
        outcome.expect(outcome.err == "", "silence")


def firewall(tools):
    """mpiexec reaches the second host by one address; messages would go by another, which leads nowhere."""
    with namespaces(tools) as (hosts, inside, both):
        both.ip(1, "addr", "add", "10.99.0.1/32", "dev", "lo")
        both.ip(1, "route", "add", "unreachable", "10.99.0.2/32")
        both.ip(2, "addr", "add", "10.99.0.2/32", "dev", "lo")
        command = [*inside[:-1], "env", "TERN_INTERFACE=10.99.0.0/24"]
        names = hosts[3].replace(":2", "")
        outcome = run(tools, tools.tern, "doctor", "--hosts", names, "--launcher", hosts[1], launcher=command)
        says(outcome, 1, r"FAIL  reaches +tern\d+h2 not at 10\.99\.0\.2:\d+: .*\n +mend: TERN_INTERFACE")


def datagrams(tools):
    """Connections get through, datagrams do not: jobs by connections run, others do not."""
    with namespaces(tools) as (hosts, inside, both):
        both.ip(2, "rule", "add", "ipproto", "udp", "to", "10.77.31.1", "prohibit")
        for transport, code, verdict in [("rc", 0, "weak"), ("hybrid", 1, "FAIL")]:
            outcome = across(tools, hosts, [*inside[:-1], "env", f"TERN_TRANSPORT={transport}", *inside[-1:]])
            says(outcome, code, r"pass  reaches +tern\d+h2 at 10\.77\.31\.2:",
                 verdict + r"  datagrams +not to tern\d+h2 and back at 10\.77\.31\.2:\d+: .*\n +mend: .*iptables -I INPUT -p udp")


def unreachable(tools):
    refusing = tools.scratch / "refusing"
    refusing.write_text("#!/bin/sh\necho no way to $1 >&2\nexit 255\n")
    refusing.chmod(0o755)
    outcome = doctor(tools, "--hosts", "127.0.0.1,127.0.0.2", "--launcher", refusing)
    outcome.expect(outcome.code == 1, "exit code 1")
    outcome.expect_message("no way to 127.0.0", r"ssh -o BatchMode=yes 127.0.0.\d .*must ask nothing")
    # One host is ready and waits for the other.
    for what in ["exit 255", "sleep 1; exit 255"]:
        refusing.write_text(f"#!/bin/sh\nhost=$1; shift\n[ $host = 127.0.0.1 ] || {{ {what}; }}\nexec sh -c \"$*\"\n")
        outcome = doctor(tools, "--hosts", "127.0.0.1,127.0.0.2", "--launcher", refusing)
        outcome.expect(outcome.code == 1, "exit code 1")
        outcome.expect_message("host 127.0.0.2: ", "ssh -o BatchMode=yes 127.0.0.2 .*must ask nothing")
    outcome = doctor(tools, "--hosts", "localhost,no.such.host.invalid")
    outcome.expect(outcome.code == 1, "exit code 1")
    outcome.expect_message("host no.such.host.invalid: the name cannot be resolved", "getent ahosts no.such.host.invalid")


def under_mpirun(tools):
    outcome = run(tools, "-n", 2, tools.tern, "doctor", launcher=mpirun(tools))
    says(outcome, 0, r"host .* \(rank 0\)")
    outcome.expect(outcome.out.count("(rank ") == 1, "one host, once")


def chosen(tools):
    outcome = run(tools, tools.tern, "info", "--devices", launcher=())
    says(outcome, 0, r"ranks that share memory: shm", r"(?m)^  rnic +.*iWARP")
    with namespaces(tools) as (hosts, inside, _):
        with tools.job(*hosts, tools.tern, "info", "--devices", launcher=inside) as job:
            outcome = job.end()
        says(outcome, 0, r"rank 0-1 on tern\d+h1: shm among them; rnic at 10\.77\.31\.1 to all others",
             r"rank 2-3 on tern\d+h2: shm among them; rnic at 10\.77\.31\.2 to all others")
        outcome.expect(outcome.out.count("Chosen") == 1, "one answer")
