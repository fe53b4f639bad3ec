"""The Debian package in a root of Debian's own, used from there by chroot: beside Debian's mpich, alone, and purged again.

The root is made by mmdebstrap, once, and kept below build/.
"""

import os
import shutil
import subprocess

from install import PROGRAM, ROOT, Failure, Skip

KEPT = ROOT / "build" / "roots" / "bookworm-mpich.tar"
INCLUDED = "gcc,libc6-dev,mpich"
MIRROR = "http://deb.debian.org/debian"
# What changes in any case when packages come and go.
BOOKKEEPING = ("var/lib/dpkg/", "var/log/", "var/cache/", "dev/", "proc/", "tmp/", "srv/")
SAID = ["rank 0 of sum 1", "rank 1 of sum 1"]
# A namespace of its own for what a container has mounted, which goes with it.
INSIDE = 'mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/dev/shm"; exec chroot "$0" "$@"'


class Root:
    """A Debian system in a directory."""

    def __init__(self, bench, place):
        self.bench, self.place = bench, place
        place.mkdir()
        bench.run("tar", "--extract", "--file", kept(bench), "--directory", place)
        (place / "dev" / "shm").mkdir(exist_ok=True)
        (place / "srv" / "program.c").write_text(PROGRAM)

    def run(self, *command):
        return self.bench.run("unshare", "--mount", "sh", "-ec", INSIDE, self.place, *command, PATH="/usr/sbin:/usr/bin:/sbin:/bin",
                              HOME="/srv", LC_ALL="C", DEBIAN_FRONTEND="noninteractive")

    def files(self):
        """All paths but those that packages share."""
        found = set()
        for directory, directories, files in os.walk(self.place):
            found |= {os.path.relpath(os.path.join(directory, name), self.place) for name in directories + files}
        return {path for path in found if not path.startswith(BOOKKEEPING)}

    def leads(self, command):
        """Where a command leads, through its alternative."""
        return self.run("readlink", "-f", f"/usr/bin/{command}").strip()

    def leads_to_tern(self, what):
        for command in ("mpicc", "mpiexec", "mpirun"):
            if "/tern/" not in self.leads(command):
                raise Failure(f"{what} {command} leads to {self.leads(command)}")

    def try_program(self, library):
        """Compiled and run with what is on PATH, and linked with that library."""
        self.run("mpicc", "-Wall", "-Werror", "/srv/program.c", "-o", "/srv/program")
        linked = self.run("ldd", "/srv/program").replace("/bin/../", "/")
        if f"libmpi_abi.so.1 => {library}" not in linked:
            raise Failure(f"the program is linked with another library than {library}:\n{linked}")
        for launcher in ("mpiexec", "mpirun"):
            said = sorted(self.run(launcher, "-n", 2, "/srv/program").splitlines())
            if said != SAID:
                raise Failure(f"{launcher} -n 2 says {said}")


def kept(bench):
    """The root as an archive, made if it is not there."""
    if KEPT.exists():
        return KEPT
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    # Of this process: what is not finished is nobody's.
    made = KEPT.with_name(f"{os.getpid()}-{KEPT.name}")
    command = ["mmdebstrap", "--variant=apt", f"--include={INCLUDED}", "bookworm", made, MIRROR]
    done = subprocess.run(command, capture_output=True, text=True, env=bench.environment, timeout=1800)
    if done.returncode != 0:
        made.unlink(missing_ok=True)
        raise Skip(f"mmdebstrap makes no root: {done.stderr.strip().splitlines()[-1:]}")
    made.rename(KEPT)
    return KEPT


def groups(root):
    """The groups of alternatives in which Tern is, with what of it is in each."""
    found = {}
    for line in root.run("update-alternatives", "--get-selections").splitlines():
        group = line.split()[0]
        listed = root.run("update-alternatives", "--list", group).split()
        if own := [path for path in listed if path.endswith(".tern") or "/tern/" in path]:
            found[group] = (own, listed)
    return found


def beside_mpich(root, library):
    """Debian's own comes first, unless somebody chooses."""
    if "mpich" not in root.leads("mpicc") or "hydra" not in root.leads("mpiexec"):
        raise Failure(f"beside mpich mpicc leads to {root.leads('mpicc')}, mpiexec to {root.leads('mpiexec')}")
    found = groups(root)
    # Headers and libraries of mpich are a package of their own, with compilers that are not needed here.
    listed = {group: len(listed) for group, (_, listed) in found.items() if not group.startswith("mpi-")}
    if listed != {"mpi": 2, "mpirun": 2} or len(found) != 3:
        raise Failure(f"the alternatives are not those of mpich: {found}")
    for group, (own, _) in found.items():
        root.run("update-alternatives", "--set", group, *own)
    root.leads_to_tern("chosen,")
    root.try_program(library)
    for group in found:
        root.run("update-alternatives", "--auto", group)
    if "mpich" not in root.leads("mpicc"):
        raise Failure(f"by priority mpicc leads to {root.leads('mpicc')}")


def debian_root(bench, made):
    """Installs the package `made`, uses it and purges it."""
    for tool in ("mmdebstrap", "chroot", "unshare", "dpkg-deb"):
        if not shutil.which(tool):
            raise Skip(f"no {tool}")
    if os.geteuid() != 0:
        raise Skip("needs root")
    root = Root(bench, bench.scratch / "debian-root")
    before = root.files()
    shutil.copy(made, root.place / "srv" / "tern.deb")
    root.run("dpkg", "--install", "/srv/tern.deb")
    home = min((path for path in root.files() if path.startswith("usr/lib/") and path.endswith("/tern")), key=len)
    library = f"/{home}/lib/libmpi_abi.so.1"
    beside_mpich(root, library)

    root.run("dpkg", "--purge", "mpich")
    root.leads_to_tern("alone")
    root.try_program(library)

    # As mpifort does on first use.
    modules = root.place / home / "lib" / "tern" / "fortran" / "some-compiler"
    modules.mkdir(parents=True)
    (modules / "mpi.mod").touch()
    root.run("dpkg", "--purge", "tern-mpi")
    if left := sorted(root.files() - before) + sorted(groups(root)):
        raise Failure(f"purged, and left behind: {left}")
    if said := root.run("dpkg", "--audit"):
        raise Failure(f"dpkg --audit: {said}")
