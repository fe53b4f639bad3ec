"""What the scripts of this directory have in common: where sources come from, how things are built, run and judged.

A program is a file with DESCRIPTION, SOURCES and `check(place)`; run.py finds and runs it. Sources come from PyPI and from
Debian's source packages by their own clients, and stay below build/programs/, as does what is built of them.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MPI4PY = "4.1.2"


class Failure(Exception):
    """What was expected and what was found."""


class Skip(Exception):
    """Why a program cannot be tried here."""


def say(text):
    print(text, file=sys.stderr, flush=True)


class Place:
    """Where one program is built, and the MPI it is built with."""

    def __init__(self, name, prefix):
        self.name, self.prefix = name, pathlib.Path(prefix).absolute()
        self.base = ROOT / "build" / "programs"
        self.work = self.base / name
        self.work.mkdir(parents=True, exist_ok=True)
        # What is found is found by PATH alone, as users have it.
        hidden = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PKG_CONFIG_PATH", "CPATH", "LIBRARY_PATH", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self.environment["PATH"] = f"{self.prefix / 'bin'}:{self.environment['PATH']}"
        self.versions = {}
        self.told = []

    def run(self, *command, cwd=None, timeout=120, accept=(0,), **environment):
        """Its output; a failure shows the end of it."""
        words = [str(word) for word in command]
        try:
            done = subprocess.run(words, cwd=cwd or self.work, env={**self.environment, **environment}, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"").decode(errors="replace")[-3000:]
            raise Failure(f"{' '.join(words)}: not done after {timeout} s\n{said}") from None
        if done.returncode not in accept:
            raise Failure(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
        return done.stdout

    def build(self, *command, **more):
        """As `run`, for what takes long."""
        say(f"  {' '.join(map(str, command))[:150]}")
        return self.run(*command, **{"timeout": 5400, **more})

    def mpiexec(self, ranks, *command, **more):
        return self.run("mpiexec", "-n", ranks, *command, **more)

    def expect(self, what, output, *patterns):
        """Every pattern stands in the output; what that shows goes into the report."""
        missing = [pattern for pattern in patterns if not re.search(pattern, output, flags=re.M)]
        if missing:
            raise Failure(f"{what}: nothing like {missing} in\n{output[-4000:]}")
        self.told.append(what)

    def done(self, step, *facts):
        """Whether a step of the building was done before, with the same facts; if not it is recorded by `mark`."""
        mark = self.work / f".{step}"
        return mark.exists() and mark.read_text() == " ".join(map(str, facts))

    def mark(self, step, *facts):
        (self.work / f".{step}").write_text(" ".join(map(str, facts)))

    # Python

    def venv(self, *requirements):
        """A virtual environment with these, and mpi4py built for the standard ABI; the path of its Python."""
        venv = self.work / "venv"
        python = venv / "bin" / "python"
        if not self.done("venv", self.prefix, MPI4PY, *requirements):
            shutil.rmtree(venv, ignore_errors=True)
            self.run(sys.executable, "-m", "venv", venv)
            self.build(python, "-m", "pip", "install", "-q", self.mpi4py_wheel(python), *requirements)
            self.mark("venv", self.prefix, MPI4PY, *requirements)
        return python

    def mpi4py_wheel(self, python):
        """Built once for all programs."""
        wheels = self.base / "wheels"
        found = sorted(wheels.glob(f"mpi4py-{MPI4PY}-*.whl"))
        if not found:
            self.build(python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-binary", "mpi4py", "-w", wheels,
                       f"mpi4py=={MPI4PY}", MPICC=str(self.prefix / "bin" / "mpicc"), MPI4PY_BUILD_MPIABI="1", CFLAGS="-O0 -g0")
            found = sorted(wheels.glob(f"mpi4py-{MPI4PY}-*.whl"))
        return found[-1]

    def python_version(self, python, *modules):
        for module in modules:
            text = self.run(python, "-c", f"from importlib.metadata import version; print(version('{module}'))")
            self.versions[module] = text.split()[-1]

    def sdist(self, package, version, python=None):
        """The unmodified source distribution of PyPI, unpacked: its directory. pip asks a source for its metadata, for which
        it may want what `python` has."""
        archives = self.base / "sdist"
        archives.mkdir(exist_ok=True)
        stem = re.compile(rf"{package.replace('-', '[-_]')}-{re.escape(version)}\.tar\.gz$", re.I)
        found = [path for path in archives.iterdir() if stem.match(path.name)]
        if not found:
            isolated = ["--no-build-isolation"] if python else []
            self.build(python or sys.executable, "-m", "pip", "download", "-q", "--no-deps", *isolated, "--no-binary", package,
                       "-d", archives, f"{package}=={version}")
            found = [path for path in archives.iterdir() if stem.match(path.name)]
        tree = self.work / found[0].name.removesuffix(".tar.gz")
        if not tree.exists():
            with tarfile.open(found[0]) as tar:
                tar.extractall(self.work, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        self.versions[package] = version
        return tree

    # Debian

    def apt(self, *words, **more):
        """apt-get with a state of its own, which has the source packages as well."""
        state = self.base / "apt"
        (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', pathlib.Path("/etc/os-release").read_text(), flags=re.M))
        if release.get("ID") != "debian" or not shutil.which("apt-get"):
            raise Skip("its sources come from Debian, and this is another system")
        sources = state / "sources.list"
        entry = f"http://deb.debian.org/debian {release['VERSION_CODENAME']} main\n"
        sources.write_text(f"deb {entry}deb-src {entry}")
        options = [f"Dir::Etc::sourcelist={sources}", "Dir::Etc::sourceparts=-", f"Dir::State::lists={state / 'lists'}",
                   "APT::Get::List-Cleanup=0", "APT::Sandbox::User=root"]
        return self.build("apt-get", "-q", *(word for option in options for word in ("-o", option)), *words, **more)

    def updated(self):
        if not any((self.base / "apt" / "lists").glob("*_Sources*")):
            self.apt("update")

    def debian_source(self, package):
        """The source package with Debian's patches: its directory."""
        holds = self.work / "source"
        if not self.done("source", package):
            if not shutil.which("dpkg-source"):
                raise Skip("dpkg-source is missing: install dpkg-dev")
            shutil.rmtree(holds, ignore_errors=True)
            holds.mkdir()
            self.updated()
            self.apt("source", package, cwd=holds)
            self.mark("source", package)
        description = next(holds.glob("*.dsc")).read_text()
        self.versions[package] = re.search(r"^Version: (\S+)", description, flags=re.M)[1]
        return next(path for path in holds.iterdir() if path.is_dir())

    def debian_packages(self, *packages):
        """Binary packages unpacked without being installed: the directory that stands for /usr."""
        root = self.base / "root"
        mark = f"root-{'-'.join(packages)}"
        if not self.done(mark):
            archives = self.base / "debs"
            archives.mkdir(exist_ok=True)
            self.updated()
            self.apt("download", *packages, cwd=archives)
            for package in packages:
                newest = max(archives.glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime)
                self.run("dpkg-deb", "-x", newest, root)
            self.mark(mark)
        return root / "usr"

    def debian_version(self, package):
        """Of one that debian_packages has fetched."""
        newest = max((self.base / "debs").glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime)
        return self.run("dpkg-deb", "-f", newest, "Version").strip()

    def triplet(self):
        """The name of the directory that Debian has for libraries of this machine."""
        return self.run("dpkg", "--print-architecture").strip().replace("amd64", "x86_64").replace("arm64", "aarch64") + "-linux-gnu"

    def lapack(self):
        """The reference BLAS and LAPACK: the directories of the two libraries."""
        usr = self.debian_packages("libblas3", "libblas-dev", "liblapack3", "liblapack-dev")
        libraries = usr / "lib" / self.triplet()
        return libraries / "blas", libraries / "lapack"
