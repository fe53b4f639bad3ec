#!/usr/bin/env python3
"""The packages: made of what is in build/, installed where nothing else is, and used from there; and how build systems find
what is installed. Nothing of the library is compiled anew, but in the image that `--container` has made.

`--container` also installs the Debian package in roots made by mmdebstrap (as root, some minutes, once a night): beside
Debian's mpich and alone, and by the steps that the Containerfile has for it; and has buildah build the Containerfile.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types

import packages_root
from install import FORTRAN_PROGRAM, PROGRAM, ROOT, Failure, Skip
from packages_kubernetes import kubernetes

MPI4PY = "4.1.2"
CONFIGURE = """AC_INIT([probe], [1])
AC_PROG_CC
AX_MPI([], [AC_MSG_ERROR([no MPI])])
CC=$MPICC
LIBS="$MPILIBS $LIBS"
AC_CHECK_FUNCS([MPI_Send MPI_Cart_create MPI_File_open])
AC_CONFIG_FILES([flags])
AC_OUTPUT
"""
# What a program for another ABI is made of, without its header.
OTHER_PROGRAM = """#include <stdio.h>
typedef %(handle)s handle;
int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Allreduce(const void *, void *, int, handle, handle, handle);
int MPI_Comm_rank(handle, int *);
%(objects)s
int main(void) {
    int rank, sum;
    MPI_Init(0, 0);
    MPI_Comm_rank(%(world)s, &rank);
    MPI_Allreduce(&rank, &sum, 1, %(integer)s, %(add)s, %(world)s);
    printf("rank %%d of sum %%d\\n", rank, sum);
    return MPI_Finalize();
}
"""
# What it is linked with instead of that library: its names and nothing behind them.
OTHER_NAMES = "".join(f"int {name}(void) {{ return 1; }}\n" for name in ("MPI_Init", "MPI_Finalize", "MPI_Allreduce", "MPI_Comm_rank"))
# Open MPI's handles are addresses of objects: the program has copies of them, of this size.
OBJECTS = "ompi_mpi_comm_world[512], ompi_mpi_int[512], ompi_mpi_op_sum[512];"
# By ABI: values, version of the library, and by what names programs ask for it: Debian's as well as that of MPICH.
OTHERS = {
    "mpich": ({"handle": "int", "objects": "", "world": "0x44000000", "integer": "0x4c000405", "add": "0x58000003"}, 12,
              (["libmpi"], ["libmpich"], ["libmpi", "libmpich"], ["libmpich", "libmpi"], ["libmpichfort", "libmpich"])),
    "openmpi": ({"handle": "void *", "objects": f"extern char {OBJECTS}", "world": "ompi_mpi_comm_world", "integer": "ompi_mpi_int",
                 "add": "ompi_mpi_op_sum"}, 40, (["libmpi"],)),
}


class Bench:
    """A directory to work in, and an environment in which only PATH leads to MPI."""

    def __init__(self, scratch):
        self.scratch = scratch
        hidden = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PKG_CONFIG_PATH", "CPATH", "LIBRARY_PATH", "MAKEFLAGS", "MAKELEVEL",
                  "MFLAGS", "VIRTUAL_ENV", "PYTHONPATH", "MPI4PY_MPIABI", "MPI4PY_LIBMPI")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}
        (scratch / "program.c").write_text(PROGRAM)
        (scratch / "program.f90").write_text(FORTRAN_PROGRAM)
        self.venv = scratch / "venv"

    def run(self, *command, cwd=None, first=None, timeout=600, **environment):
        """`first` is a directory in front of PATH."""
        environment = {**self.environment, **environment}
        if first:
            environment["PATH"] = f"{first}:{environment['PATH']}"
        words = [str(word) for word in command]
        done = subprocess.run(words, cwd=cwd or self.scratch, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout)
        if done.returncode != 0:
            raise Failure(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
        return done.stdout

    def refuses(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=self.environment)
        if done.returncode == 0:
            raise Failure(f"{command} is not refused")
        return done.stderr

    def try_program(self, commands, library, launcher="mpiexec"):
        """Compiled and run with the commands of this directory, and with that library and no other."""
        self.run("mpicc", "-Wall", "-Werror", "program.c", "-o", "program", first=commands)
        binaries = ["program"]
        if shutil.which("gfortran"):
            self.run("mpifort", "-fc=gfortran", "program.f90", "-o", "fortran", first=commands)
            binaries.append("fortran")
        for binary in binaries:
            linked = self.run("ldd", self.scratch / binary).replace("/bin/../", "/")
            if f"libmpi_abi.so.1 => {library}" not in linked:
                raise Failure(f"{binary} is linked with another library than {library}:\n{linked}")
            said = sorted(self.run(launcher, "-n", 2, self.scratch / binary, first=commands).splitlines())
            if said != ["rank 0 of sum 1", "rank 1 of sum 1"]:
                raise Failure(f"{launcher} -n 2 {binary} says {said}")

    def try_others(self, prefix):
        """Programs that were linked with libraries of other ABIs, by each name and by two at once, find Tern's."""
        (self.scratch / "names.c").write_text(f"char {OBJECTS}\n{OTHER_NAMES}")
        for abi, (values, version, found) in OTHERS.items():
            (self.scratch / "other.c").write_text(OTHER_PROGRAM % values)
            for name in {name for names in found for name in names}:
                library = f"{name}.so.{version}"
                self.run("cc", "-shared", "-fPIC", "names.c", "-o", library, f"-Wl,-soname,{library}")
            for names in found:
                self.run("cc", "other.c", "-o", "other", "-Wl,--no-as-needed", *(f"./{name}.so.{version}" for name in names))
                ran = self.run("mpiexec", "--abi", abi, "-n", 2, self.scratch / "other", first=prefix / "bin")
                if sorted(ran.splitlines()) != ["rank 0 of sum 1", "rank 1 of sum 1"]:
                    raise Failure(f"mpiexec --abi {abi} with {names} says {ran}")


def wheel(bench):
    """`pip install` into an empty virtual environment: everything is on its PATH."""
    out = bench.scratch / "dist"
    made = pathlib.Path(bench.run(sys.executable, ROOT / "packaging" / "wheel.py", "--out", out).split()[-1])
    if not re.fullmatch(r"tern_mpi-[\d.]+-py3-none-manylinux_2_\d+_\w+\.whl", made.name):
        raise Failure(f"the wheel is called {made.name}")
    bench.run(sys.executable, "-m", "venv", bench.venv)
    bench.run(bench.venv / "bin" / "pip", "install", "-q", "--no-index", made)
    bench.try_program(bench.venv / "bin", bench.venv / "lib" / "libmpi_abi.so.1")
    bench.run("mpirun", "-n", "1", bench.scratch / "program", first=bench.venv / "bin")
    bench.try_others(bench.venv)
    for name in ("share/man/man1/mpiexec.1", "share/tern/bench/bench.h", "lib/pkgconfig/mpi.pc"):
        if not (bench.venv / name).exists():
            raise Failure(f"the wheel has no {name}")
    again = pathlib.Path(bench.run(sys.executable, ROOT / "packaging" / "wheel.py", "--out", bench.scratch / "again").split()[-1])
    if made.read_bytes() != again.read_bytes():
        raise Failure("the same sources make another wheel")


def wheel_tag(bench):
    """A binary that wants a newer glibc than the tag would say is refused, and the symbols are named."""
    said = bench.refuses(sys.executable, ROOT / "packaging" / "wheel.py", "--out", bench.scratch / "old", "--manylinux", "2.17")
    if not re.search(r"a glibc of at least 2\.\d+ is needed, for .*libmpi_abi\.so\.1: \w+", said):
        raise Failure(f"wheel.py --manylinux 2.17: {said}")
    if list(bench.scratch.glob("old/*.whl")):
        raise Failure("a wheel was made all the same")


def mpi4py(bench):
    """Built with nothing but the wheel in its environment."""
    bench.run(bench.venv / "bin" / "pip", "install", "-q", "--no-cache-dir", "--no-binary", "mpi4py", f"mpi4py=={MPI4PY}",
              first=bench.venv / "bin", CFLAGS="-O0 -g0")
    said = bench.run("mpiexec", "-n", 4, bench.venv / "bin" / "python", "-m", "mpi4py.bench", "helloworld", first=bench.venv / "bin")
    if sorted(re.findall(r"I am process (\d) of 4", said)) != ["0", "1", "2", "3"]:
        raise Failure(f"mpi4py.bench: {said}")
    said = bench.run(bench.venv / "bin" / "python", "-c", "from mpi4py import MPI; print(MPI.Get_library_version())")
    if "Tern MPI" not in said:
        raise Failure(f"mpi4py runs on {said}")


def mpi4py_wheel(bench):
    """Both wheels in one environment, and nothing else: no variable, no option."""
    venv = bench.scratch / "venv-wheels"
    if not next((bench.scratch / "dist").glob("*.whl"), None):
        bench.run(sys.executable, ROOT / "packaging" / "wheel.py", "--out", bench.scratch / "dist")
    bench.run(sys.executable, "-m", "venv", venv)
    bench.run(venv / "bin" / "pip", "install", "-q", "--no-index", next((bench.scratch / "dist").glob("*.whl")))
    bench.run(venv / "bin" / "pip", "install", "-q", "--only-binary", ":all:", f"mpi4py=={MPI4PY}")
    said = bench.run("mpiexec", "-n", 2, "python", "-m", "mpi4py.bench", "helloworld", first=venv / "bin")
    if sorted(re.findall(r"I am process (\d) of 2", said)) != ["0", "1"]:
        raise Failure(f"mpi4py.bench of the wheel: {said}")
    said = bench.run("python", "-c", "from mpi4py import MPI; print(MPI.Get_library_version())", first=venv / "bin")
    if "Tern MPI" not in said or "ABI of MPICH" not in said:
        raise Failure(f"mpi4py's wheel runs on {said}")
    bench.run(venv / "bin" / "pip", "uninstall", "-q", "-y", "tern-mpi")
    if left := [path for path in venv.rglob("*") if path.name.startswith("libmpi") and ".so" in path.name]:
        raise Failure(f"tern-mpi has left behind {left}")


def deb(bench):
    """The Debian package of what is in build/."""
    return bench.run(sys.executable, ROOT / "packaging" / "deb.py", "--out", bench.scratch / "dist").split()[-1]


def debian(bench):
    """The package unpacked into an empty root, and what it would have alternatives lead to."""
    if not shutil.which("dpkg-deb"):
        raise Skip("no dpkg-deb")
    # Packages are dated where there is no git, too, as in images.
    bench.run(sys.executable, "-c", "import tree; tree.when()", cwd=ROOT / "packaging", PATH="/nowhere")
    made = deb(bench)
    root = bench.scratch / "root"
    bench.run("dpkg-deb", "-x", made, root)
    home = next(root.glob("usr/lib/*/tern"))
    bench.try_program(home / "bin", home / "lib" / "libmpi_abi.so.1", "mpirun")
    bench.try_others(home)
    bench.run("tern", "info", first=root / "usr" / "bin")
    if f"-I{home}/include" not in bench.run(root / "usr" / "bin" / "mpicxx.tern", "-show", "a.cc"):
        raise Failure("mpicxx.tern does not find the tree")
    bench.run("dpkg-deb", "-e", made, bench.scratch / "control")
    postinst = (bench.scratch / "control" / "postinst").read_text()
    groups = re.findall(r"--install (\S+) (\S+) (\S+) 30", postinst)
    if [group[:2] for group in groups][:2] != [("/usr/bin/mpicc", "mpi"), ("/usr/bin/mpirun", "mpirun")] or len(groups) != 3:
        raise Failure(f"alternatives: {groups}")
    lost = [path for path in re.findall(r"(?:--install \S+|--slave \S+) \S+ (\S+)", postinst)
            if not (root / path.lstrip("/")).exists()]
    if lost:
        raise Failure(f"alternatives that lead nowhere: {lost}")


def cmake(bench):
    """FindMPI in C, C++ and Fortran by PATH alone: the example of examples/cmake."""
    if not shutil.which("cmake"):
        raise Skip("no cmake")
    place = bench.scratch / "cmake"
    first = bench.venv / "bin"
    said = bench.run("cmake", "-S", ROOT / "examples" / "cmake", "-B", place, first=first)
    for language in ("C", "CXX", *(["Fortran"] if shutil.which("gfortran") else [])):
        if not re.search(rf"Found MPI_{language}: {re.escape(str(bench.venv))}/.* \(found suitable version \"5\.0\"", said):
            raise Failure(f"cmake has not found MPI for {language} there:\n{said}")
    bench.run("cmake", "--build", place, first=first)
    bench.run("ctest", "--test-dir", place, "--output-on-failure", first=first)


def autoconf(bench):
    """AX_MPI of the autoconf archive, which asks for mpicc and links."""
    macro = bench.scratch / "m4" / "ax_mpi.m4"
    macro.parent.mkdir()
    if not shutil.which("autoconf"):
        raise Skip("no autoconf")
    installed = pathlib.Path("/usr/share/aclocal/ax_mpi.m4")
    if not installed.exists():
        if not shutil.which("apt-get"):
            raise Skip("no autoconf-archive")
        try:
            bench.run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "autoconf-archive", cwd=macro.parent)
        except Failure:
            raise Skip("no autoconf-archive, and apt-get cannot fetch it") from None
        bench.run("dpkg-deb", "-x", next(macro.parent.glob("*.deb")), macro.parent / "root")
        installed = macro.parent / "root" / str(installed).lstrip("/")
    place = bench.scratch / "autoconf"
    place.mkdir()
    (place / "configure.ac").write_text(CONFIGURE)
    (place / "aclocal.m4").write_text(installed.read_text())
    (place / "flags.in").write_text("@MPICC@ @MPILIBS@\n@DEFS@\n")
    bench.run("autoconf", cwd=place)
    bench.run("./configure", cwd=place, first=bench.venv / "bin")
    found = (place / "flags").read_text()
    for word in ("mpicc", "HAVE_MPI_SEND=1", "HAVE_MPI_CART_CREATE=1", "HAVE_MPI_FILE_OPEN=1"):
        if word not in found:
            raise Failure(f"AX_MPI: {word} is not in {found}")


class Recorder(types.ModuleType):
    """A module of Spack that knows its names and writes down the directives."""

    def __init__(self, name):
        super().__init__(name)
        self.said = []
        for directive in ("license", "version", "variant", "provides", "depends_on", "filter_compiler_wrappers"):
            setattr(self, directive, lambda *words, _directive=directive, **more: self.said.append((_directive, words, more)))
        self.make = lambda *words: self.said.append(("make", words, {}))
        self.join_path = lambda *parts: "/".join(str(part) for part in parts)
        self.__all__ = [name for name in vars(self) if not name.startswith("_")]


class Variables(dict):
    """The environment that a recipe changes."""

    def set(self, name, value):
        self[name] = value


def spack(_bench):
    """The recipe, carried out by stand-ins for Spack's modules: Spack itself is in no registry."""
    package = Recorder("spack.package")
    makefile = types.ModuleType("spack_repo.builtin.build_systems.makefile")
    makefile.MakefilePackage = type("MakefilePackage", (), {})
    parents = ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems")
    modules = {**{name: types.ModuleType(name) for name in parents}, "spack.package": package, makefile.__name__: makefile}
    path = ROOT / "packaging" / "spack" / "spack_repo" / "tern" / "packages" / "tern_mpi" / "package.py"
    names = {"__file__": str(path), "__name__": "package"}
    sys.modules.update(modules)
    try:
        exec(compile(path.read_text(), str(path), "exec"), names)
    finally:
        for name in modules:
            del sys.modules[name]
    recipe = names["TernMpi"]()
    recipe.prefix, recipe.spec = types.SimpleNamespace(bin="/p/bin", lib="/p/lib", include="/p/include"), types.SimpleNamespace()
    if ("provides", ("mpi@:5.0",), {}) not in package.said or recipe.git != ROOT.as_uri():
        raise Failure(f"the recipe says {package.said}, {recipe.git}")
    recipe.build(None, "/p")
    recipe.install(None, "/p")
    targets = {word for name, words, _ in package.said if name == "make" for word in words if word in ("build", "install")}
    missing = [target for target in targets if f"\n{target}:" not in (ROOT / "Makefile").read_text()]
    variables = Variables()
    recipe.setup_dependent_build_environment(variables, None)
    recipe.setup_dependent_package(None, None)
    commands = [value.rsplit("/", 1)[1] for value in variables.values()] + [pathlib.Path(recipe.spec.mpifc).name]
    missing += [name for name in commands if not (ROOT / "build" / "bin" / name).exists()]
    if missing or len(targets) != 2:
        raise Failure(f"the recipe names what is not there: {missing}")


def debian_root(bench):
    """Installed in a Debian system, used from there and purged."""
    packages_root.debian_root(bench, deb(bench))


def container(bench):
    """The second image of the Containerfile: its RUN steps in a root made by mmdebstrap."""
    for tool in ("mmdebstrap", "chroot"):
        if not shutil.which(tool):
            raise Skip(f"no {tool}")
    made = deb(bench)
    root = bench.scratch / "image"
    bench.run("mmdebstrap", "--variant=apt", "bookworm", root, "http://deb.debian.org/debian", timeout=1800)
    image = (ROOT / "packaging" / "Containerfile").read_text().split("\nFROM ")[2]
    steps = [step.replace("\\\n", " ") for step in re.findall(r"^RUN ((?:.*\\\n)*.*)$", image, flags=re.M)]
    (root / "tmp" / "dist").mkdir()
    for name in ("resolv.conf", "hosts"):
        shutil.copy(pathlib.Path("/etc") / name, root / "etc" / name)
    shutil.copy(made, root / "tmp" / "dist")
    shutil.copy(ROOT / "examples" / "cmake" / "sum.c", root / "usr" / "local" / "src")
    for step in steps:
        said = bench.run("chroot", root, "sh", "-ec", step, timeout=1800)
    if "the sum of 2 ranks is 1" not in said:
        raise Failure(f"the image says {said}")


def engine(bench):
    """The Containerfile by buildah, of what is committed, and ranks in its image. The two images that it begins with are made here and not fetched: Debian's
    root, and the same with the Rust of this machine."""
    for tool in ("mmdebstrap", "buildah", "git", "rustc"):
        if not shutil.which(tool):
            raise Skip(f"no {tool}")
    storage = bench.scratch / "storage.conf"
    places = "".join(f'{name} = "{bench.scratch / name}"\n' for name in ("runroot", "graphroot"))
    storage.write_text(f'[storage]\ndriver = "vfs"\n{places}')

    def buildah(*words):
        return bench.run("buildah", *words, timeout=3600, CONTAINERS_STORAGE_CONF=str(storage)).strip()

    def begun(image):
        return buildah("from", "--pull-never", image).splitlines()[-1]

    def image(name, begin, *copied):
        made = begun(begin)
        for source, to in copied:
            buildah("add", made, source, to)
        buildah("commit", "--rm", made, name)

    root, sources = bench.scratch / "root.tar", bench.scratch / "sources"
    bench.run("mmdebstrap", "--variant=apt", "--include=ca-certificates", "bookworm", root, "http://deb.debian.org/debian", timeout=1800)
    rust = pathlib.Path(bench.run("rustc", "--print", "sysroot").strip())
    certificates = "/etc/ssl/certs/ca-certificates.crt"
    image("docker.io/library/debian:bookworm-slim", "scratch", (root, "/"))
    image("docker.io/library/rust:1-bookworm", "docker.io/library/debian:bookworm-slim", (rust / "bin", "/usr/local/bin"), (rust / "lib", "/usr/local/lib"),
          (certificates, certificates))
    bench.run("git", "clone", "--quiet", ROOT, sources)
    apart = ("--isolation", "chroot", "--network", "host")
    buildah("bud", *apart, "--pull-never", "-t", "tern", "-f", sources / "packaging" / "Containerfile", sources)
    said = buildah("run", *apart, begun("localhost/tern"), "mpiexec", "-n", 4, "/usr/local/bin/sum")
    if "the sum of 4 ranks is 6" not in said:
        raise Failure(f"the image says {said}")


def main():
    parser = argparse.ArgumentParser(description="test the packages")
    parser.add_argument("--container", action="store_true", help="install the Debian package in roots of its own and build the Containerfile as well")
    parser.add_argument("check", nargs="*", help="only these")
    arguments = parser.parse_args()
    checks = [wheel, wheel_tag, mpi4py, mpi4py_wheel, debian, cmake, autoconf, spack, kubernetes] + ([debian_root, container, engine] if arguments.container else [])
    known = [check.__name__ for check in checks]
    if unknown := [name for name in arguments.check if name not in known]:
        parser.error(f"no check is called {' or '.join(unknown)}; there are {', '.join(known)}")
    passed, failed, skipped = 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="tern-packages-") as scratch:
        bench = Bench(pathlib.Path(scratch).resolve())
        for check in checks:
            name = check.__name__.replace("_", " ")
            if arguments.check and check.__name__ not in arguments.check:
                continue
            try:
                check(bench)
                passed += 1
                print(f"ok      {name}", flush=True)
            except Skip as reason:
                skipped += 1
                print(f"skipped {name}: {reason}", flush=True)
            except Failure as failure:
                failed += 1
                print(f"FAILED  {name}: {failure}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
