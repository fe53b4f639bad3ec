#!/usr/bin/env python3
"""Runs mpi4py's own test suite, unmodified, on the library, module by module.

Modules of later work, and single tests that cannot pass yet, are in exceptions.txt, each
with its reason. Some modules try at import whether an operation is there and only expect
mpi4py's own NotImplementedError; where the file says so, they are given a copy that also
takes the library's MPI_ERR_UNSUPPORTED_OPERATION for «not there». Each module is a job of its own, so that one which crashes or hangs
takes nothing else with it. A test counts once per number of ranks, and as failed when it
failed on any rank.

counts.txt says how many tests each module runs and skips. A module that runs fewer or skips more is a
failure, as is one of which nothing is left but skipped tests, unless exceptions.txt gives the reason
(`skips NAME — reason`). `--record` writes the counts of this run.

With `--abi mpich` or `--abi openmpi` it is mpi4py's wheel as PyPI has it that is run, on the library with that ABI.

With `--mpi` the suite runs on another library, whole: exceptions.txt is Tern's. `--record` then writes what came of it, and which
tests fail, into peers.txt; table.py makes docs/mpi4py.md of both files.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import install
from counts import Counts, Peers

sys.path.insert(0, str(install.ROOT / "tests"))
import two_hosts  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = install.ROOT
RAN = re.compile(r"Ran (\d+) tests? in")
SKIPPED = re.compile(r"(?:OK|FAILED) \(.*?skipped=(\d+)")
BROKEN = re.compile(r"(?:FAIL|ERROR|UNEXPECTED SUCCESS): (.*)")


def exceptions(name):
    """The lines `module NAME — reason`, `test PATTERN — reason`, `probe NAME — reason`, `skips NAME — reason`."""
    found = {"module": {}, "test": {}, "probe": {}, "skips": {}}
    for line in (HERE / "exceptions.txt").read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"(?:\[(\w+)\] )?(module|test|probe|skips) (\S+) — (.+)", line)
        if not match:
            sys.exit(f"exceptions.txt: cannot read: {line}")
        only, kind, what, reason = match.groups()
        if only in (None, name):
            found[kind][what] = reason
    return found


class Suite:
    """The suite of one library."""

    def __init__(self, arguments):
        self.prefix = pathlib.Path(arguments.mpi).resolve()
        self.name = install.name_of(self.prefix)
        self.timeout = arguments.timeout
        self.two_hosts = arguments.two_hosts
        self.abi = arguments.abi
        self.venv, tree = install.install_wheel() if self.abi else install.install(self.prefix)
        # The exceptions and the counts are Tern's; other libraries run everything, and it is recorded what came of it.
        listed = exceptions(self.name) if self.name == "tern" else dict.fromkeys(("module", "test", "probe", "skips"), {})
        over_datagrams = self.two_hosts and os.environ.get("TERN_TRANSPORT", "rc") != "rc"
        for name, holds in ((f"wheel_{self.abi}", self.abi), ("hosts", self.two_hosts), ("datagrams", over_datagrams)):
            for kind, more in exceptions(name).items() if holds else ():
                listed[kind].update(more)
        self.left_out, self.patterns, self.may_skip = listed["module"], listed["test"], listed["skips"]
        self.counts = Counts() if self.name == "tern" and not self.abi else None
        self.peers = Peers() if self.name != "tern" else None
        self.recording = arguments.record
        self.tests = self.venv / "test"
        shutil.rmtree(self.tests, ignore_errors=True)
        shutil.copytree(tree / "test", self.tests)
        for module in listed["probe"]:
            self.widen_probes(self.tests / f"{module}.py")
        self.xfile = self.venv / "excluded-tests"
        self.xfile.write_text("".join(f"{pattern}\n" for pattern in self.patterns))

    @staticmethod
    def widen_probes(path):
        """Only what stands at the left margin: the probes, never the tests."""
        text = path.read_text(encoding="utf-8")
        wider = re.sub(r"^except NotImplementedError:", "except (NotImplementedError, MPI.Exception):", text, flags=re.M)
        if wider == text:
            sys.exit(f"exceptions.txt: {path.name} has no probe at its left margin")
        path.write_text(wider, encoding="utf-8")

    def modules(self, filters):
        names = sorted(path.stem for path in self.tests.glob("test_*.py"))
        unknown = (set(self.left_out) | set(self.may_skip)) - set(names)
        if unknown:
            sys.exit(f"exceptions.txt: no such module: {', '.join(sorted(unknown))}")
        chosen = [n for n in names if n not in self.left_out]
        return [n for n in chosen if not filters or any(f in n for f in filters)]

    def run(self, module, ranks):
        """Returns (passed, failed names, skipped, output)."""
        words = [self.venv / "bin" / "python", self.tests / "main.py", "--no-builddir", "-q", "--xfile", self.xfile,
                 "-i", rf"^{module}\.py$"]
        mpiexec = self.prefix / "bin" / "mpiexec"
        if self.two_hosts and ranks > 1:
            command = two_hosts.command(mpiexec, ranks, *words)
        else:
            options = ["--abi", self.abi] if self.abi else ["--oversubscribe"] if self.name == "openmpi" else []
            command = [mpiexec, *options, "-n", ranks, *words]
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1", OMP_NUM_THREADS="1")
        if self.name == "openmpi":
            environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        # Why no session of its own: see Job in ../hang/support.py.
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=environment, cwd=self.venv, preexec_fn=os.setpgrp)
        try:
            out, _ = process.communicate(timeout=self.timeout)
            text = out.decode(errors="replace")
        except subprocess.TimeoutExpired:
            text = stop(process)
            if self.peers:
                self.peers.note(self.name, module, ranks, 0, 0, [module])
            return 0, [f"{module}: no end after {self.timeout:.0f} s"], 0, text
        return (*self.judge(module, ranks, process.returncode, text), text)

    def judge(self, module, ranks, code, text):
        ran = [int(n) for n in RAN.findall(text)]
        broken = sorted(set(BROKEN.findall(text)))
        skipped = max(map(int, SKIPPED.findall(text)), default=0)
        if len(ran) < ranks:
            broken.append(f"{module}: {ranks - len(ran)} of {ranks} ranks did not end the module (exit code {code})")
        elif code != 0 and not broken:
            broken.append(f"{module}: exit code {code}")
        elif self.peers is None:
            broken += self.uncounted(module, ranks, min(ran), skipped)
        if self.peers and len(ran) < ranks:
            self.peers.note(self.name, module, ranks, 0, 0, [module])
        elif self.peers:
            self.peers.note(self.name, module, ranks, min(ran), skipped, broken)
        passed = max(0, min(ran, default=0) - skipped - len(broken))
        return passed, broken, skipped

    def uncounted(self, module, ranks, ran, skipped):
        """What a module that ended well has not looked at."""
        if ran == skipped and module not in self.may_skip:
            return [f"{module}: all of its {ran} tests are skipped: that is no success"]
        # What is left out between hosts names its module, and is in the counts, which are those of one host.
        left_out = sum(pattern.startswith(f"{module}.") for pattern in self.patterns)
        complaint = self.counts and self.counts.complaint(module, ranks, ran + left_out, skipped)
        return [complaint] if complaint and not self.recording else []


def stop(process):
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, number)
            return process.communicate(timeout=patience)[0].decode(errors="replace")
        except (subprocess.TimeoutExpired, ProcessLookupError):
            continue
    return ""


def main():
    parser = argparse.ArgumentParser(description="run mpi4py's test suite")
    parser.add_argument("filter", nargs="*", help="run modules whose name contains one of these")
    parser.add_argument("--without", action="append", default=[], help="but none whose name contains this")
    parser.add_argument("--mpi", default=str(ROOT / "build"), help="prefix of the library (default: build)")
    parser.add_argument("--abi", help="run the wheel of PyPI, which has modules for this ABI (mpich, openmpi), instead")
    parser.add_argument("--np", default="1,2,3,4", help="numbers of ranks")
    parser.add_argument("--timeout", type=float, default=120, help="seconds per module")
    parser.add_argument("--record", action="store_true", help="write the counts of this run into counts.txt, of another library into peers.txt")
    parser.add_argument("--two-hosts", action="store_true", help="half of the ranks in each of two network namespaces")
    parser.add_argument("-v", "--verbose", action="store_true", help="one line per module")
    arguments = parser.parse_args()
    if reason := arguments.two_hosts and two_hosts.lacking(pathlib.Path(arguments.mpi).resolve() / "bin" / "mpiexec"):
        return two_hosts.without(reason, 1)
    suite = Suite(arguments)
    passed, failed, skipped = 0, [], 0
    for ranks in (int(n) for n in arguments.np.split(",")):
        for module in suite.modules(arguments.filter):
            if any(word in module for word in arguments.without):
                continue
            begun = time.monotonic()
            good, bad, left, text = suite.run(module, ranks)
            passed, skipped = passed + good, skipped + left
            failed += [f"-n {ranks} {name}" for name in bad]
            if bad or arguments.verbose:
                print(f"{'FAILED' if bad else 'ok    '} {module} -n {ranks}: {good} passed, {len(bad)} failed, "
                      f"{left} skipped ({time.monotonic() - begun:.1f} s)", flush=True)
            if bad:
                print("".join(f"    {line}\n" for line in text.splitlines()[-40:]), end="", flush=True)
    if arguments.record and (counts := suite.counts or suite.peers):
        counts.record()
    for label in failed:
        print(f"failed: {label}")
    print(f"{len(suite.left_out)} modules and {len(suite.patterns)} patterns are left out (tests/mpi4py/exceptions.txt)")
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
