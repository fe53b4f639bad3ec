#!/usr/bin/env python3
"""Checks the linked libmpi_abi.so.1, its header and the compiler wrappers from outside.

usage: check.py PREFIX [--peer-header MPI_ABI_H]

PREFIX is a tree made by scripts/stage-abi.sh. With the header of another library of the standard
ABI (the MPICH wheel has include/mpi_abi.h) constants and prototypes are compared as well.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent


class Skip(Exception):
    pass


def run(command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)


def must(command, **options):
    done = run(command, **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class Checks:
    def __init__(self, prefix, peer_header, work):
        self.prefix = prefix
        self.peer_header = peer_header
        self.work = work
        self.library = prefix / "lib" / "libmpi_abi.so.1"
        self.mpicc = prefix / "bin" / "mpicc"
        self.plain_environment = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}

    def header_functions(self, path=None):
        """Name -> normalised prototype of everything the header declares."""
        text = Path(path or self.prefix / "include" / "mpi.h").read_text()
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"^#.*$", "", text, flags=re.M)
        text = re.sub(r"typedef[^;]*;", "", text)
        found = {}
        for returns, name, params in re.findall(r"(\w+)\s+(P?MPI_\w+)\s*\(([^()]*)\)\s*;", text):
            if returns in ("int", "double") or returns.startswith("MPI_"):
                found[name] = (returns, tuple(self.parameter(p) for p in params.split(",")))
        return found

    @staticmethod
    def parameter(text):
        """The type of a parameter without its name, arrays as pointers."""
        text = " ".join(text.split())
        if text in ("void", "..."):
            return text
        match = re.match(r"(.*?)(\w+)((?:\[\d*\])*)$", text)
        base, arrays = match.group(1), match.group(3)
        base = base.replace(" ", "") + ("*" if arrays else "") + arrays[2:]
        pointer = "*" in base
        if not pointer:
            base = base.removeprefix("const")
        # A parameter of function type is a pointer to the function.
        return base.removesuffix("*") if "_function" in base else base

    def compile(self, source, *flags, wrapper="mpicc"):
        target = self.work / (Path(source).stem + "-" + wrapper)
        must([self.prefix / "bin" / wrapper, *flags, source, "-o", target])
        return target

    # -- the library ------------------------------------------------------------------------

    def check_exports_are_the_functions_of_the_header(self):
        symbols = {}
        for line in must(["nm", "-D", "--defined-only", self.library]).splitlines():
            address, kind, name = line.split()
            assert kind == "T", line
            symbols[name] = address
        # What the library of Fortran asks of it beyond MPI.
        for name in ("tern_copies", "tern_refuse"):
            assert symbols.pop(name, None), f"no {name}"
        declared = set(self.header_functions())
        assert set(symbols) == declared, sorted(set(symbols) ^ declared)
        names = [name for name in declared if name.startswith("MPI_")]
        assert len(names) == 664, len(names)
        for name in names:
            assert symbols[name] == symbols["P" + name], f"{name} and P{name} differ"

    def check_soname(self):
        dynamic = must(["readelf", "-d", self.library])
        assert "soname: [libmpi_abi.so.1]" in dynamic
        assert (self.prefix / "lib" / "libmpi_abi.so").resolve() == self.library.resolve()

    def check_every_function_links_and_binds_at_start(self):
        names = sorted(n for n in self.header_functions())
        source = self.work / "all.c"
        table = ",\n".join(f"    (function) {name}" for name in names)
        source.write_text(
            "#include <mpi.h>\n#include <stdio.h>\ntypedef void (*function)(void);\n"
            f"static const function all[] = {{\n{table}\n}};\n"
            "int main(void)\n{\n    size_t i, n = sizeof all / sizeof *all;\n"
            '    for (i = 0; i < n; i++) if (!all[i]) return 1;\n    printf("%zu\\n", n);\n    return 0;\n}\n'
        )
        program = self.compile(source, "-std=c99")
        environment = dict(self.plain_environment, LD_BIND_NOW="1")
        assert must([program], env=environment).strip() == str(2 * 664)

    def check_a_preloaded_tool_takes_over_names(self):
        program = self.compile(SOURCES / "anytime.c", "-Wall", "-Wextra", "-Werror")
        tool = self.work / "tool.so"
        must([self.mpicc, "-shared", "-fPIC", SOURCES / "tool.c", "-o", tool])
        plain = run([program], env=self.plain_environment)
        assert plain.returncode == 0 and "tool:" not in plain.stderr, plain.stderr
        traced = run([program], env=dict(self.plain_environment, LD_PRELOAD=str(tool)))
        assert traced.returncode == 0, traced.stderr
        assert traced.stdout == plain.stdout
        assert "tool: MPI_Get_version 3 calls" in traced.stderr, traced.stderr

    def check_a_preloaded_tool_counts_messages(self):
        program = self.compile(SOURCES / "messages.c", "-Wall", "-Wextra", "-Werror")
        tool = self.work / "tool.so"
        must([self.mpicc, "-shared", "-fPIC", SOURCES / "tool.c", "-o", tool])
        mpiexec = self.prefix / "bin" / "mpiexec"
        if not mpiexec.exists():
            raise Skip("no mpiexec in this prefix")
        done = run([mpiexec, "-n", "2", "-env", "LD_PRELOAD", tool, program], env=self.plain_environment, timeout=60)
        assert done.returncode == 0, done.stderr
        # 7 messages from rank 0, one back.
        assert "tool: MPI_Send 7 calls" in done.stderr and "tool: MPI_Send 1 calls" in done.stderr, done.stderr

    def check_a_preloaded_tool_reads_variables(self):
        program = self.compile(SOURCES / "messages.c", "-Wall", "-Wextra", "-Werror")
        tool = self.work / "variables.so"
        source = SOURCES.parents[1] / "examples" / "variables" / "variables.c"
        must([self.mpicc, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", source, "-o", tool])
        mpiexec = self.prefix / "bin" / "mpiexec"
        if not mpiexec.exists():
            raise Skip("no mpiexec in this prefix")
        done = run([mpiexec, "-n", "2", "-env", "LD_PRELOAD", tool, program], env=self.plain_environment, timeout=60)
        assert done.returncode == 0, done.stderr
        # 7 messages and those of the barrier at the end, if that has begun; names and meaning as declared.
        sent = [int(n) for n in re.findall(r"^rank 0: tern_eager +(\d+)  a message left by copy eager$", done.stderr, re.M)]
        assert len(sent) == 1 and sent[0] >= 7, done.stderr

    def check_calls_outside_init_and_finalize_are_fatal(self):
        program = self.compile(SOURCES / "outside.c")
        done = run([program], env=self.plain_environment)
        assert done.returncode == 16, (done.returncode, done.stderr)
        assert done.stdout == "before\n", "the program's output up to the error is lost"
        assert done.stderr == "tern: MPI_Comm_size: MPI_ERR_OTHER: called before MPI_Init\n", done.stderr

    # -- the header and the wrappers ----------------------------------------------------------

    def check_the_header_in_every_language_level(self):
        for compiler, suffix, levels in [
            ("cc", ".c", ("c99", "c11", "c17")),
            ("c++", ".cc", ("c++11", "c++17", "c++20")),
        ]:
            if not shutil.which(compiler):
                raise Skip(f"no {compiler}")
            source = self.work / ("include" + suffix)
            source.write_text("#include <mpi.h>\n")
            for level in levels:
                must([compiler, f"-std={level}", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only",
                      f"-I{self.prefix / 'include'}", source])

    def check_wrappers_work_from_another_place(self):
        moved = self.work / "moved"
        shutil.copytree(self.prefix, moved, symlinks=True)
        shown = must([moved / "bin" / "mpicc", "-show", "-O2", "x.c"]).split()
        assert f"-I{moved}/include" in shown and f"-L{moved}/lib" in shown and "-lmpi_abi" in shown, shown
        assert "-lmpi_abi" not in must([moved / "bin" / "mpicc", "-show", "-c", "x.c"]).split()
        assert must([moved / "bin" / "mpicc", "-compile-info"]).split() == [f"-I{moved}/include"]
        assert "-lmpi_abi" in must([moved / "bin" / "mpicxx", "-link-info"]).split()
        must([moved / "bin" / "mpicc", "--version"])
        link = self.work / "elsewhere-mpicc"
        link.symlink_to(moved / "bin" / "mpicc")
        target = self.work / "moved-program"
        must([link, SOURCES / "anytime.c", "-o", target])
        assert str(moved / "lib") in must(["ldd", target], env=self.plain_environment)
        source = self.work / "anytime.cc"
        source.write_text((SOURCES / "anytime.c").read_text())
        must([self.compile(source, wrapper="mpicxx")], env=self.plain_environment)

    def check_pkg_config(self):
        if not shutil.which("pkg-config"):
            raise Skip("no pkg-config")
        environment = dict(self.plain_environment, PKG_CONFIG_PATH=str(self.prefix / "lib" / "pkgconfig"))
        flags = must(["pkg-config", "--cflags", "--libs", "mpi"], env=environment).split()
        target = self.work / "by-pkg-config"
        must(["cc", SOURCES / "anytime.c", "-o", target, *flags])
        must([target], env=self.plain_environment)

    # -- against another library of the same ABI ------------------------------------------------

    def peer(self):
        if self.peer_header is None:
            raise Skip("no --peer-header")
        return self.peer_header

    def check_prototypes_are_those_of_the_peer(self):
        theirs, ours = self.header_functions(self.peer()), self.header_functions()
        for name, prototype in theirs.items():
            assert ours.get(name) == prototype, f"{name}: {ours.get(name)} here, {prototype} there"
        extra = {name.removeprefix("P") for name in set(ours) - set(theirs)}
        assert extra <= {"MPI_Psend_init_c", "MPI_Precv_init_c"}, extra

    def check_constants_are_those_of_the_peer(self):
        text = self.peer().read_text()
        names = set(re.findall(r"^#define\s+(MPI_\w+)\s", text, re.M))
        names |= set(re.findall(r"^\s+(MPI_\w+)\s*=", text, re.M))
        others = {"MPI_H_ABI", "MPI_ABI_Aint", "MPI_ABI_Offset", "MPI_ABI_Count"}
        names = sorted(names - others)
        assert len(names) > 300, len(names)
        lines = "\n".join(f'    printf("{name} %lld\\n", (long long)(intptr_t) {name});' for name in names)
        printed = []
        for label, header in [("ours", self.prefix / "include" / "mpi.h"), ("theirs", self.peer())]:
            source = self.work / f"constants-{label}.c"
            layout = '    printf("status %zu %zu\\n", sizeof(MPI_Status), offsetof(MPI_Status, MPI_ERROR));'
            source.write_text(
                f'#include "{header}"\n#include <stddef.h>\n#include <stdio.h>\n'
                f"int main(void)\n{{\n{lines}\n{layout}\n    return 0;\n}}\n"
            )
            target = self.work / f"constants-{label}"
            must(["cc", "-w", source, "-o", target])
            printed.append(must([target]).splitlines())
        differing = [pair for pair in zip(*printed) if pair[0] != pair[1]]
        assert not differing, differing

    def all(self):
        passed = failed = skipped = 0
        for name in [n for n in dir(self) if n.startswith("check_")]:
            label = name.removeprefix("check_").replace("_", " ")
            try:
                getattr(self, name)()
            except Skip as reason:
                skipped += 1
                print(f"skip  {label}: {reason}")
            except (AssertionError, subprocess.TimeoutExpired, OSError) as error:
                failed += 1
                print(f"FAIL  {label}: {error}")
            else:
                passed += 1
                print(f"ok    {label}")
        print(f"{passed} passed, {failed} failed, {skipped} skipped")
        return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("--peer-header", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        checks = Checks(arguments.prefix.resolve(), arguments.peer_header, Path(work).resolve())
        sys.exit(1 if checks.all() else 0)


if __name__ == "__main__":
    main()
